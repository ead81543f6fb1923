package hygiene

import (
	"strings"
	"testing"
)

func TestSecrets(t *testing.T) {
	for _, tt := range []struct{ text, what, redacted string }{
		{"https://shop.example/a?id=1#top", "", ""},
		{"", "", ""},

		{"https://u:p@shop.example/", "a user name and password", "https://…@shop.example/"},
		{"https://u@shop.example/", "a user name", "https://…@shop.example/"},
		{"https://:p@w@shop.example/", "a password", "https://…@shop.example/"},
		{"u:p@shop.example/a", "a user name and password", "…@shop.example/a"},
		{"//u:p@shop.example/a", "a user name and password", "//…@shop.example/a"},
		{"https://u:p q@shop.example/", "a user name and password", "https://…@shop.example/"},
		{"https://u:p/w@shop.example/", "a user name and password", "https://…@shop.example/"},
		{"https://u:p?w#@shop.example/", "a user name and password", "https://…@shop.example/"},
		{"https://:@shop.example/", "", ""},
		{"https://@shop.example/", "", ""},
		{"https://shop.example/@user", "", ""},
		{"https://shop.example:8080/@user", "", ""},
		{"https://[::1]/@user", "", ""},
		{"https://shop.example/?u=https://u:p@b.test/", "a user name and password", "https://shop.example/?u=https://…/"},

		{"https://shop.example/?token=x", `the parameter "token"`, "https://shop.example/?token=…"},
		{"https://shop.example/?a=1&Access-Token=x&b=2", `the parameter "Access-Token"`, "https://shop.example/?a=1&Access-Token=…&b=2"},
		{"https://shop.example/#access_token=x&b=2", `the parameter "access_token"`, "https://shop.example/#access_token=…&b=2"},
		{"https://shop.example/#/a?api_key=x#b", `the parameter "api_key"`, "https://shop.example/#/a?api_key=…#b"},
		{"https://shop.example/?user%5Bpassword%5D=x", `the parameter "user%5Bpassword%5D"`, "https://shop.example/?user%5Bpassword%5D=…"},
		{"https://shop.example/?a=1;sig=x;y?z&b", `the parameter "sig"`, "https://shop.example/?a=1;sig=…&b"},
		{"https://shop.example/?X-Amz-Credential=x&X-Amz-Signature=y", `the parameter "X-Amz-Credential"`,
			"https://shop.example/?X-Amz-Credential=…&X-Amz-Signature=…"},
		{"https://shop.example/?PHPSESSID=x", `the parameter "PHPSESSID"`, "https://shop.example/?PHPSESSID=…"},
		{"https://shop.example/?pwd=a b=c", `the parameter "pwd"`, "https://shop.example/?pwd=…"},
		{"shop.example/?otp=1", `the parameter "otp"`, "shop.example/?otp=…"},
		{"https://shop.example/?token=&a=1", "", ""},
		{"https://shop.example/?token", "", ""},
		{"https://shop.example/token=x", "", ""},
		{"https://shop.example/?tokens=x&oauth=x&bypass=x&key=x&tokenid=x", "", ""},

		{"https://shop.example/?to=jane.doe%2Bx@mail.example&a=1", "an e-mail address", "https://shop.example/?to=…&a=1"},
		{"https://shop.example/?to=jane%40mail.example", "an e-mail address", "https://shop.example/?to=…"},
		{"https://shop.example/?jane@mail.example", "an e-mail address", "https://shop.example/?…"},
		{"https://shop.example/?to=Jane <jané@mail.example>, you@b.example@c", "an e-mail address", "https://shop.example/?to=Jane <…>, …"},
		{"https://shop.example/#to=jane@mail.example", "an e-mail address", "https://shop.example/#to=…"},
		{"https://shop.example/jane@mail.example", "", ""},
		{"https://shop.example/?at=@51.5,0.1,15z&u=@user&v=a@b&w=x@4.17.21", "", ""},

		{`the URL "https://u:p@shop.example/?token=x" leads to jane@mail.example`, "a user name and password",
			`the URL "https://…@shop.example/?token=…" leads to jane@mail.example`},
		{"see https://shop.example/?token=x, or <https://shop.example/?a=1&sig=y>.", `the parameter "token"`,
			"see https://shop.example/?token=…, or <https://shop.example/?a=1&sig=…>."},
		{"see shop.example/?token=a://b for row #5", `the parameter "token"`, "see shop.example/?token=… for row #5"},
		{"row #5: what @ that?", "", ""},
	} {
		what, redacted := "", tt.redacted
		if found := secrets([]byte(tt.text)); len(found) > 0 {
			if !maySecrets([]byte(tt.text)) {
				t.Errorf("%q: not at a glance", tt.text)
			}
			what = found[0].String()
		} else {
			redacted = tt.text
		}
		if what != tt.what {
			t.Errorf("%s has %q, want %q", tt.text, what, tt.what)
		}
		if got := Redact(tt.text); got != redacted {
			t.Errorf("%s: %s, want %s", tt.text, got, redacted)
		}
	}
}

// without returns a text without these bytes.
func without(text, bytes string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(bytes, r) {
			return -1
		}
		return r
	}, text)
}

// Nothing of a secret stays, all around it does, and what is left has no secret.
func FuzzRedact(f *testing.F) {
	for _, text := range []string{
		"https://u:p/w@h?x=a@b.cc@d%40e.ff&token=x;y#…@z.example", "x: <https://a:b@c> h/?sig=a://b?pwd=c#d", "a@b c@d://e:f/g@h", "p:@b.cc …@c.dd", "://:@://a:b@?c@d.ee", "https://h?u=://@&a@=b",
	} {
		f.Add(text)
	}
	f.Add("#access_token=x?b=1")
	f.Add("#token\x14=?") // 0x14 is no '4' in lower case
	f.Fuzz(func(t *testing.T, text string) {
		redacted := Redact(text)
		if redacted != text && !maySecrets([]byte(text)) {
			t.Errorf("%q: not at a glance", text)
		}
		if again := Redact(redacted); again != redacted {
			t.Errorf("%q: %q, then %q", text, redacted, again)
		}
		for before, after := range map[string]string{
			"https://h.example/p?x=1&access_token=": "&y=2#z",
			"h.example/#jwt=":                       "",
		} {
			secret := without(text, "&#")
			if url, want := before+secret+after, before+"…"+after; secret != "" && Redact(url) != want {
				t.Errorf("%q: %q", url, Redact(url))
			}
		}
		if secret := without(text, `/\?#`); strings.Trim(secret, ":") != "" {
			if url := "https://" + secret + "@h.example/p?q=1"; Redact(url) != "https://…@h.example/p?q=1" {
				t.Errorf("%q: %q", url, Redact(url))
			}
		}
	})
}
