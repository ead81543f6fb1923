package canon

import (
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustBase(t interface {
	Helper()
	Fatal(...any)
}, text string) *Base {
	t.Helper()
	b, err := ParseBase(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParseBase(t *testing.T) {
	for text, fault := range map[string]string{
		"https://shop.example": "", " https://shop.example:8080/a/?b ": "", "HTTP://Shop.Example": "",
		"shop.example": "missing_scheme", "//shop.example": "missing_scheme", "/shop": "missing_scheme", "": "empty", "ftp://a.example": "unsupported_scheme",
		"https://": "empty_host", "https://a..b": "bad_host", "https://bob:pw@a.example": "the URL has a user name or password", "https://a.example/#b": "has a fragment",
		"https:\\\\a.example": "is not a URL such as", "https:/\\a.example/://": "is not a URL such as",
	} {
		b, err := ParseBase(text)
		if fault != "" {
			if err == nil || !strings.Contains(err.Error(), fault) || strings.Contains(err.Error(), "pw") {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if err != nil || b.String() != strings.TrimSpace(text) {
			t.Errorf("%s: %q, %v", text, b, err)
		}
	}
}

// The examples of RFC 3986, section 5.4, that begin as a reference must; all others are left alone.
func TestResolve(t *testing.T) {
	rfc := mustBase(t, "http://a/b/c/d;p?q")
	for reference, want := range map[string]string{
		"/g": "http://a/g", "?y": "http://a/b/c/d;p?y", "#s": "http://a/b/c/d;p?q#s", "./": "http://a/b/c/", "../": "http://a/b/", "../g": "http://a/b/g",
		"../../": "http://a/", "../../g": "http://a/g", "./g": "http://a/b/c/g", "../../../g": "http://a/g", "../../../../g": "http://a/g", "/./g": "http://a/g", "/../g": "http://a/g",
		"./../g": "http://a/b/g", "./g/.": "http://a/b/c/g/", "./..": "http://a/b/", "../..": "http://a/", "/": "http://a/", "#": "http://a/b/c/d;p?q#",
		"/a//../b/./c/..": "http://a/a/b/", "/g?y/./x#s/../x": "http://a/g?y/./x#s/../x", "\u00a0/g ": "http://a/g", "/.//g": "http://a//g", "/\xe9 \\": "http://a/\xe9 \\",
		"": "", " ": "", "//g": "", "/\\g": "", "///": "", "g": "", ".": "", "..": "", ".g": "", "..g/": "", "http://b/": "", "g:h": "", "\\g": "",
	} {
		if got, ok := rfc.Resolve(nil, []byte(reference)); string(got) != want || ok != (want != "") {
			t.Errorf("%q: %q, not %q", reference, got, want)
		}
	}
	for base, want := range map[string][4]string{
		"https://shop.example":       {"https://shop.example/new", "https://shop.example?a", "https://shop.example#a", "https://shop.example/x"},
		"https://shop.example/":      {"https://shop.example/new", "https://shop.example/?a", "https://shop.example/#a", "https://shop.example/x"},
		"https://shop.example/de":    {"https://shop.example/new", "https://shop.example/de?a", "https://shop.example/de#a", "https://shop.example/x"},
		"https://shop.example/a/../": {"https://shop.example/new", "https://shop.example/a/../?a", "https://shop.example/a/../#a", "https://shop.example/x"},
		"https://shop.example?a/b":   {"https://shop.example/new", "https://shop.example?a", "https://shop.example?a/b#a", "https://shop.example/x"},
	} {
		for i, reference := range []string{"/new", "?a", "#a", "./x"} {
			if got, ok := mustBase(t, base).Resolve([]byte("x"), []byte(reference)); !ok || string(got) != "x"+want[i] {
				t.Errorf("%s %s: %q", base, reference, got)
			}
		}
	}
}

// References are resolved as by the standard library, where it can parse them.
func TestResolveAsNetURL(t *testing.T) {
	part := rapid.StringOf(rapid.SampledFrom([]rune("./a/b.")))
	rapid.Check(t, func(t *rapid.T) {
		base := mustBase(t, "https://shop.example"+rapid.SampledFrom([]string{"", "/"}).Draw(t, "slash")+rapid.SampledFrom([]string{"", "a", "a/b", "a/b/", "a/../b"}).Draw(t, "path"))
		reference := rapid.SampledFrom([]string{"/a", "?", "#", "./", "../"}).Draw(t, "begin") + part.Draw(t, "rest")
		u, err := url.Parse(base.String())
		if err != nil {
			t.Fatal(err)
		}
		r, err := u.Parse(reference)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := base.Resolve(nil, []byte(reference))
		// The library writes neither an empty query nor an empty fragment, and a slash before a query.
		mine, errMine := Profile{KeepFragment: true}.Append(nil, got)
		its, errIts := Profile{KeepFragment: true}.Append(nil, []byte(r.String()))
		if !ok || string(mine) != string(its) || errMine != nil || errIts != nil {
			t.Errorf("%s %s: %q, not %q", base, reference, got, r)
		}
	})
}

// What is resolved is not resolved again.
func FuzzResolve(f *testing.F) {
	f.Add("/../a?b#c")
	base := mustBase(f, "https://shop.example/a/b?c")
	f.Fuzz(func(t *testing.T, reference string) {
		if once, ok := base.Resolve(nil, []byte(reference)); ok {
			if twice, again := base.Resolve(nil, once); again || len(twice) > 0 || !strings.HasPrefix(string(once), "https://shop.example") {
				t.Errorf("%q: %q, %q", reference, once, twice)
			}
		}
	})
}
