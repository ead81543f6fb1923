package canon

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// checkExplain fails if the steps do not lead from raw to its form.
func checkExplain(t *testing.T, p Profile, raw []byte) {
	t.Helper()
	before := bytes.Clone(raw)
	form, err := p.Append(nil, raw)
	steps, explainErr := p.Explain(raw)
	if err != explainErr || err != nil && steps != nil || !bytes.Equal(raw, before) {
		t.Fatalf("%q: Append gives %v, Explain %v and %d steps", before, err, explainErr, len(steps))
	}
	if err != nil {
		return
	}
	at := string(raw)
	for _, s := range steps {
		if s.After == at || s.Rule == "" {
			t.Fatalf("%q: step %+v changes nothing of %q", raw, s, at)
		}
		at = s.After
	}
	if at != string(form) {
		t.Fatalf("%q: form %q, explained as %q by %+v", raw, form, at, steps)
	}
}

// checkDetail fails if a detail is not fit to print.
func checkDetail(t *testing.T, raw []byte, r Reason) {
	t.Helper()
	d := Detail(raw, r)
	unprintable := strings.ContainsFunc(d, func(r rune) bool { return !unicode.IsPrint(r) })
	if d == "" || len(d) > 700 || !utf8.ValidString(d) || unprintable {
		t.Fatalf("detail of %q, %v: %q", raw, r, d)
	}
}

func TestExplainVectors(t *testing.T) {
	for _, v := range vectors(t) {
		for _, p := range allProfiles {
			checkExplain(t, p, v.Raw)
		}
	}
}

func TestExplain(t *testing.T) {
	raw := " HTTP:\\\\u:@Example.com:80/a%7eb/./c\\\\d/?b=2&&a=%c3#x"
	steps, err := Profile{KeepUserinfo: true}.Explain([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	want := []Step{
		{"trim", raw[1:]},
		{"scheme", `http:\\u:@Example.com:80/a%7eb/./c\\d/?b=2&&a=%c3#x`},
		{"authority", `http://u:@Example.com:80/a%7eb/./c\\d/?b=2&&a=%c3#x`},
		{"userinfo", `http://u@Example.com:80/a%7eb/./c\\d/?b=2&&a=%c3#x`},
		{"port", `http://u@Example.com/a%7eb/./c\\d/?b=2&&a=%c3#x`},
		{"host", `http://u@example.com/a%7eb/./c\\d/?b=2&&a=%c3#x`},
		{"path: backslashes", `http://u@example.com/a%7eb/./c//d/?b=2&&a=%c3#x`},
		{"path: percent-encoding", `http://u@example.com/a~b/./c//d/?b=2&&a=%c3#x`},
		{"path: dot segments", `http://u@example.com/a~b/c//d/?b=2&&a=%c3#x`},
		{"path: runs of slashes", `http://u@example.com/a~b/c/d/?b=2&&a=%c3#x`},
		{"path: trailing slash", `http://u@example.com/a~b/c/d?b=2&&a=%c3#x`},
		{"query: empty pieces", `http://u@example.com/a~b/c/d?b=2&a=%c3#x`},
		{"query: percent-encoding", `http://u@example.com/a~b/c/d?b=2&a=%C3#x`},
		{"query: order", `http://u@example.com/a~b/c/d?a=%C3&b=2#x`},
		{"fragment", `http://u@example.com/a~b/c/d?a=%C3&b=2`},
	}
	if !slices.Equal(steps, want) {
		t.Errorf("steps %q, want %q", steps, want)
	}
	if steps, err := (Profile{}).Explain([]byte("http://example.com/")); steps != nil || err != nil {
		t.Errorf("a canonical URL has steps %v, %v", steps, err)
	}
}

func TestDetail(t *testing.T) {
	tests := []struct{ input, want string }{
		{"", "nothing is left after trimming"},
		{" http://a.example/\x7fb", "control character 0x7f at byte 19"},
		{"ftp://a.example", `scheme "ftp" is not http or https`},
		{"www.example.com", `"www.example.com" does not start with http:// or https://`},
		{"//u:secret@a.example", "input does not start with http:// or https://"},
		{"//u:secret%40a.example", "input does not start with http:// or https://"},
		{"HTTP:/a.example", `two slashes must follow "HTTP:"`},
		{"http://bob@a.example", `user name "bob" before host "a.example"`},
		{"http://bob:secret@a.example", `user name "bob" and password before host "a.example"`},
		{"http://:secret@a.example", `password before host "a.example"`},
		{"http://a.example:99999/", `port "99999" is above 65535`},
		{"http://a.example:8a/", `port "8a" is not a number`},
		{"http://bob:se/cret@a.example/", "port is not a number"},
		{"http://bob:se:80/cret@a.example/", "host is not a valid name"},
		{"http://bob:se@cr/et@a.example/", `user name "bob" and password before host`},
		{"http://bob:secret%40a.example/", "port is not a number"},
		{"http://bob:se/cret%40a.example/", "port is not a number"},
		{"http://bob:se%40cret:80/", "host is not a valid name"},
		{"http://bob%3Asecret@a.example", `user name "bob" and password before host "a.example"`},
		{"http://%3asecret@a.example", `password before host "a.example"`},
		{"http://bob%3Ase@cr/et@a.example/", `user name "bob" and password before host`},
		{"http://bob%3asecret%40a.example/", "host is not a valid name"},
		{"http://bob%3Ase/cret@a.example/", "host is not a valid name"},
		{"http://bob%3Ase%40cret:80/", "host is not a valid name"},
		{"http://bob@a.example/@x", `user name "bob" before host "a.example"`},
		{"http://a b/@x", `host "a b" contains " "`},
		{"https:///a", "host is empty"},
		{"http://[::g]/", `host "[::g]" is not an IPv6 address in brackets`},
		{"http://a%FF/", `host "a%FF" is not UTF-8`},
		{"http://a b/", `host "a b" contains " "`},
		{"http://é%7C/", `host "é%7C" contains "|"`},
		{"http://a%5B/", `host "a%5B" contains "["`},
		{"http://a..b/", `host "a..b" has an empty label`},
		{"http://1.2.3.256/", `host "1.2.3.256" ends in a number but is not an IPv4 address`},
		{"http://اa.example/", `host "اa.example" is not a valid internationalized name`},
		{"http://aẞ.xn--a.b/", `host "aẞ.xn--a.b" is not a valid internationalized name`},
		{"http://" + strings.Repeat("é", 40) + "^", `host "` + strings.Repeat("é", 30) + `"… contains "^"`},
		{"http://a/" + strings.Repeat("a", maxInput), "input has 65545 bytes, above 65536"},
		{"http://a/" + strings.Repeat("a", MaxLength), "canonical form is longer than the limit"},
	}
	for _, test := range tests {
		_, err := Profile{}.Append(nil, []byte(test.input))
		r, ok := err.(Reason)
		if got := Detail([]byte(test.input), r); !ok || got != test.want {
			t.Errorf("%.80q: detail %q, want %q", test.input, got, test.want)
		}
	}
	if got := Detail([]byte("x"), "malformed_row"); got != "" {
		t.Errorf("detail of another package's reason: %q", got)
	}
}

func FuzzExplain(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, p := range allProfiles {
			checkExplain(t, p, raw)
		}
		for _, r := range reasons { // the wrong ones must not panic either
			checkDetail(t, raw, r)
		}
	})
}
