package canon

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// assumeTests are inputs without a scheme, and their forms or reasons where https is assumed.
var assumeTests = []struct{ input, complete, want string }{
	{"//example.com/a", "https://example.com/a", "https://example.com/a"},
	{"//localhost", "https://localhost", "https://localhost/"},
	{"//bob@a.example/", "https://bob@a.example/", "userinfo"},
	{"//?a", "https://?a", "empty_host"},
	{"//", "https://", "empty_host"},
	{"example.com/a", "https://example.com/a", "https://example.com/a"},
	{"\ufeff Example.com\n", "https://Example.com", "https://example.com/"},
	{"example.com?a=http://b", "https://example.com?a=http://b", "https://example.com/?a=http://b"},
	{"example.com#a", "https://example.com#a", "https://example.com/"},
	{`example.com\a:b`, `https://example.com\a:b`, "https://example.com/a:b"},
	{"bücher.example/ü", "https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"},
	{"user.example.com:8080/x?y", "https://user.example.com:8080/x?y", "https://user.example.com:8080/x?y"},
	{"example.com:8080", "https://example.com:8080", "https://example.com:8080/"},
	{"example.com:443#a", "https://example.com:443#a", "https://example.com/"},
	{`example.com:1?a`, `https://example.com:1?a`, "https://example.com:1/?a"},
	{"example.com:99999", "https://example.com:99999", "bad_port"},
	{"127.0.0.1:8080/a", "https://127.0.0.1:8080/a", "https://127.0.0.1:8080/a"},
	{"a_b.example:80/", "https://a_b.example:80/", "https://a_b.example:80/"},
	{"a_b.example:c/", "https://a_b.example:c/", "bad_port"},
	{"bob@a.example", "https://bob@a.example", "userinfo"},
	{"@a.example", "https://@a.example", "https://a.example/"},
	{"a..example", "https://a..example", "bad_host"},
	{"see a.example", "https://see a.example", "bad_host"},
	{"a.example/" + strings.Repeat("b", MaxLength), "https://a.example/" + strings.Repeat("b", MaxLength), "too_long"},
	{"a.example/#" + strings.Repeat("b", maxInput-11), "https://a.example/#" + strings.Repeat("b", maxInput-11), "https://a.example/"},
	{"a.example/#" + strings.Repeat("b", maxInput-10), "https://a.example/#" + strings.Repeat("b", maxInput-10), "too_long"},
	{"", "", "empty"},
	{"a.exa\x01mple", "https://a.exa\x01mple", "control_character"},
	{"/path", "/path", "missing_scheme"},
	{"/path.example/", "/path.example/", "missing_scheme"},
	{"///a.example", "///a.example", "missing_scheme"},
	{`//\a.example`, `//\a.example`, "missing_scheme"},
	{`/\a.example`, `/\a.example`, "missing_scheme"},
	{`\\a.example`, `\\a.example`, "missing_scheme"},
	{"?a.example", "?a.example", "missing_scheme"},
	{"#a.example", "#a.example", "missing_scheme"},
	{"foo", "foo", "missing_scheme"},
	{"foo/a.example", "foo/a.example", "missing_scheme"},
	{`foo\a.example`, `foo\a.example`, "missing_scheme"},
	{"foo?a.example", "foo?a.example", "missing_scheme"},
	{"b.c@localhost/", "b.c@localhost/", "missing_scheme"},
	{"0:a.example", "0:a.example", "missing_scheme"},
	{"localhost", "localhost", "missing_scheme"},
	{"localhost:8080", "localhost:8080", "unsupported_scheme"},
	{"example.com:", "example.com:", "unsupported_scheme"},
	{"example.com:/a", "example.com:/a", "unsupported_scheme"},
	{"example.com:8a", "example.com:8a", "unsupported_scheme"},
	{"example.com:123456", "example.com:123456", "unsupported_scheme"},
	{"bob.b:123@a.example", "bob.b:123@a.example", "unsupported_scheme"},
	{"mailto:bob@a.example", "mailto:bob@a.example", "unsupported_scheme"},
	{"tel:12345", "tel:12345", "unsupported_scheme"},
	{`C:\a.example`, `C:\a.example`, "unsupported_scheme"},
	{"ftp://a.example", "ftp://a.example", "unsupported_scheme"},
	{"http:a.example", "http:a.example", "missing_authority"},
	{"http://a.example", "http://a.example", "http://a.example/"},
}

func TestAssumeScheme(t *testing.T) {
	for _, test := range assumeTests {
		p := Profile{AssumeScheme: HTTPS}
		if got := formOrReason(p, test.input); got != test.want {
			t.Errorf("Append(%.80q) = %.80q, want %q", test.input, got, test.want)
		}
		if got := p.Complete([]byte(test.input)); string(got) != test.complete {
			t.Errorf("Complete(%.80q) = %.80q, want %q", test.input, got, test.complete)
		}
		for _, p := range allProfiles {
			checkAssumed(t, p, []byte(test.input))
			checkIdempotent(t, p, []byte(test.input))
			checkPlain(t, p, []byte(test.input))
			checkExplain(t, p, []byte(test.input))
			checkChanged(t, p, []byte(test.input), []byte(test.complete))
		}
	}
}

// checkAssumed fails if raw is not what its completion is without an assumed scheme.
func checkAssumed(t *testing.T, p Profile, raw []byte) {
	t.Helper()
	q := p
	q.AssumeScheme = NoScheme
	s, complete := string(Trim(raw)), string(p.Complete(raw))
	form, reason := formOrReason(p, string(raw)), formOrReason(q, string(raw))
	if complete == s {
		if form != reason {
			t.Fatalf("%+v: %q gives %q without a scheme, otherwise %q", p, raw, form, reason)
		}
		return
	}
	if complete != p.AssumeScheme.String()+"://"+strings.TrimPrefix(s, "//") {
		t.Fatalf("%+v: %q is completed as %q", p, raw, complete)
	}
	if reason != "missing_scheme" && reason != "unsupported_scheme" && reason != "control_character" {
		t.Fatalf("%+v: %q is completed as %q, and was %q", p, raw, complete, reason)
	}
	if want := formOrReason(q, complete); form != want && len(complete) <= maxInput {
		t.Fatalf("%+v: %q gives %q, but %q gives %q", p, raw, form, complete, want)
	}
}

func FuzzAssumed(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, p := range allProfiles {
			checkAssumed(t, p, raw)
		}
	})
}

// TestAssumedPairs takes the scheme away from what a browser was given.
func TestAssumedPairs(t *testing.T) {
	bare := 0
	for _, pair := range browserPairs {
		s := Trim([]byte(pair[0]))
		for _, scheme := range []AssumedScheme{HTTP, HTTPS} {
			p := Profile{AssumeScheme: scheme, KeepUserinfo: true, KeepFragment: true}
			rest, ok := bytes.CutPrefix(s, []byte(scheme.String()+"://"))
			if !ok {
				continue
			}
			if !checkBrowser(t, p, "//"+string(rest), pair[1]) {
				t.Errorf("//%s is refused", rest)
			}
			if checkBrowser(t, p, string(rest), pair[1]) {
				bare++
			}
		}
	}
	if bare < 60 {
		t.Errorf("%d URLs without slashes have a form", bare)
	}
}

func TestParseAssumedScheme(t *testing.T) {
	for _, a := range []AssumedScheme{NoScheme, HTTP, HTTPS} {
		if got, err := ParseAssumedScheme(a.String()); got != a || err != nil {
			t.Errorf("%q is read as %d, %v", a, got, err)
		}
	}
	for _, text := range []string{"HTTP", "ftp", "https:", " http"} {
		if got, err := ParseAssumedScheme(text); got != NoScheme || err == nil || !strings.HasSuffix(err.Error(), " is not http or https") {
			t.Errorf("%q is read as %d, %v", text, got, err)
		}
	}
}

func TestExplainAssumed(t *testing.T) {
	for raw, want := range map[string][]Step{
		"example.com/": {{"scheme: assumed", "https://example.com/"}},
		" //Example.com": {
			{"trim", "//Example.com"}, {"scheme: assumed", "https://Example.com"},
			{"host", "https://example.com"}, {"path: empty", "https://example.com/"},
		},
	} {
		if steps, err := (Profile{AssumeScheme: HTTPS}).Explain([]byte(raw)); err != nil || !slices.Equal(steps, want) {
			t.Errorf("%q: steps %q, %v, want %q", raw, steps, err, want)
		}
	}
}

func TestDetailAssumed(t *testing.T) {
	for raw, want := range map[string]string{
		"/a":                                    `"/a" does not start with http:// or https://`,
		"localhost:80":                          `scheme "localhost" is not http or https`,
		"a.exa\x01mple":                         "control character 0x01 at byte 6",
		"bob@a.example":                         `user name "bob" before host "a.example"`,
		"//bob:secret@a.example":                `user name "bob" and password before host "a.example"`,
		"//bob:se/cret@a.example":               "port is not a number",
		"//bob%3Ase@cr/et@a.example/":           `user name "bob" and password before host`,
		"0b:se@cr.et/x@a.example":               `user name "0b" and password before host`,
		"a.example:99999/":                      `port "99999" is above 65535`,
		"//?a":                                  "host is empty",
		"see a.example":                         `host "see a.example" contains " "`,
		"1.2.3.256":                             `host "1.2.3.256" ends in a number but is not an IPv4 address`,
		"a.b/" + strings.Repeat("c", maxInput):  "input has 65540 bytes, above 65536",
		"a.b/" + strings.Repeat("c", MaxLength): "canonical form is longer than the limit",
	} {
		for _, scheme := range []AssumedScheme{HTTP, HTTPS} {
			_, err := Profile{AssumeScheme: scheme}.Append(nil, []byte(raw))
			r, ok := err.(Reason)
			if got := Detail([]byte(raw), r); !ok || got != want {
				t.Errorf("%.80q: %v, detail %q, want %q", raw, err, got, want)
			}
		}
	}
}
