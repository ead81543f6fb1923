package canon

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// named returns the names of changes, in their order.
func (c Changes) named() string {
	var n ChangeCounts
	n.Add(c)
	return strings.Join(slices.Sorted(maps.Keys(n.ByName())), ", ")
}

func TestChanged(t *testing.T) {
	for raw, want := range map[string]string{
		"http://example.com/a":              "",
		" http://example.com/a\t":           "white space",
		"HTTP://example.com/a":              "scheme",
		`http:\\example.com/a`:              "scheme",
		"http://@example.com/a":             "user name",
		"http://Example.com./a":             "host",
		"http://example.com:080/a":          "port",
		"http://example.com:8080/a/":        "trailing slash",
		"http://example.com":                "empty path",
		"http://example.com?":               "empty path, empty query parts",
		"http://example.com/%7ejoe/%e9":     "escapes",
		`http://example.com\a`:              "escapes",
		"http://example.com/a b?c d":        "escapes",
		"http://example.com/./a":            "dot segments",
		"http://example.com/a/..//":         "dot segments, runs of slashes",
		"http://example.com//a///":          "runs of slashes, trailing slash",
		"http://example.com/a/":             "trailing slash",
		"http://example.com/a/#x":           "fragment, trailing slash",
		"http://example.com/a#":             "fragment",
		"http://example.com/?b=2&a=1":       "query order",
		"http://example.com/?a=1&&b=2&":     "empty query parts",
		"http://example.com/?b=2&&a=1":      "empty query parts, query order",
		"http://example.com/a/?x=1":         "trailing slash",
		"http://example.com/a?x=%7e#/":      "escapes, fragment",
		"http://b\u00fccher.example/":       "host",
		" HTTP://Example.com:80/?b=%7e&a#x": "escapes, fragment, host, port, query order, scheme, white space",
	} {
		var c Changes
		if _, err := (Profile{}).AppendChanged(nil, []byte(raw), &c); err != nil || c.named() != want {
			t.Errorf("%q: %s, %v, want %s", raw, c.named(), err, want)
		}
	}
}

func TestElsewhere(t *testing.T) {
	for _, tt := range []struct{ raw, other, want string }{
		{"http://example.com/a", "HTTP://Example.com:80/./%61", ""},
		{"http://example.com", "http://example.com/", ""},
		{"http://example.com", "http://example.com//", "runs of slashes"},
		{"http://example.com/a", "http://example.com/a/", "trailing slash"},
		{"http://example.com/b/", "http://example.com//b", "runs of slashes, trailing slash"},
		{"http://example.com/a#b", "http://example.com/a#c", "fragment"},
		{"http://example.com/a#", "http://example.com/a", ""},
		{"http://example.com/?a=1&b=2", "http://example.com/?b=2&a=1", "query order"},
		{"http://example.com/?c&b&a", "http://example.com/?b&c&a", "query order"},
		{"http://example.com/?a=1&b=2", "http://example.com/?a=1&&b=2", "empty query parts"},
		{"http://example.com/?a=%7e", "http://example.com/?a=~", ""},
		{"http://example.com/?", "http://example.com/#x", "empty query parts, fragment"},
	} {
		for range 2 {
			if got := (Profile{}).Elsewhere([]byte(tt.raw), []byte(tt.other)).named(); got != tt.want {
				t.Errorf("%q and %q: %s, want %s", tt.raw, tt.other, got, tt.want)
			}
			tt.raw, tt.other = tt.other, tt.raw
		}
	}
}

// Whatever a URL is, it differs from its canonical form in some way or not at all, and what
// leads elsewhere is among what was changed of either.
func FuzzChanged(f *testing.F) {
	for _, tt := range [][2]string{{"http://example.com/a/?b&a#x", " HTTP://example.com//a?b&a"}, {"http://a", "http://a//"}, {"http://a/?b&&a", "http://a/%2e/?"}} {
		f.Add([]byte(tt[0]), []byte(tt[1]))
	}
	f.Add([]byte("http://a/?b&utm_a=1&c"), []byte("http://a/?c&b&UTM_b"))
	f.Add([]byte("a.example/b:c#d"), []byte("//a.example:443/b:c/"))
	f.Fuzz(func(t *testing.T, raw, other []byte) {
		for _, p := range allProfiles {
			checkChanged(t, p, raw, other)
		}
	})
}

func checkChanged(t *testing.T, p Profile, raw, other []byte) {
	t.Helper()
	var changed, otherChanged Changes
	form, err := p.AppendChanged(nil, raw, &changed)
	if err != nil {
		return
	}
	if same := string(raw) == string(form); same != (changed == 0) {
		t.Errorf("%s: %q becomes %q by %q", p.Name(), raw, form, changed.named())
	}
	if where := p.Elsewhere(raw, form); where&^changed != 0 {
		t.Errorf("%s: %q leads elsewhere by %q, and was changed by %q", p.Name(), raw, where.named(), changed.named())
	}
	otherForm, err := p.AppendChanged(nil, other, &otherChanged)
	if err != nil || string(otherForm) != string(form) {
		return
	}
	if where := p.Elsewhere(raw, other); where&^(changed|otherChanged) != 0 || where != p.Elsewhere(other, raw) {
		t.Errorf("%s: %q and %q lead elsewhere by %q", p.Name(), raw, other, where.named())
	}
}
