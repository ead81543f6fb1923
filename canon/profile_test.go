package canon

import (
	"slices"
	"strings"
	"testing"
)

func TestOptionVectors(t *testing.T) {
	all := readVectors(t, "options.jsonl")
	if len(all) != 105 {
		t.Errorf("%d vectors, want 105", len(all))
	}
	for i, v := range all {
		p, err := ParseProfile(v.Profile)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := formOrReason(p, v.Input), v.Canonical+string(v.Reason); got != want {
			t.Errorf("vector %d: %s: %q gives %q, want %q", i+1, v.Profile, v.Input, got, want)
		}
		checkExplain(t, p, v.Raw)
	}
}

func TestParseStripParams(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"utm_*,gclid":            "gclid,utm_*",
		"UTM_*,b,a,b,utm_*":      "a,b,utm_*",
		"x[],%41%2f,é*,%zz,a'%*": "%25zz,%c3%a9*,a%27%25*,a%2f,x%5b%5d",
		"a|b,%2A*":               "%2a*,a%7cb",
	} {
		s, err := ParseStripParams(text)
		if err != nil || s.String() != want {
			t.Errorf("%q: %q, %v, want %q", text, s, err, want)
		}
		if again, err := ParseStripParams(s.String()); err != nil || again != s {
			t.Errorf("%q: again %q, %v", text, again, err)
		}
	}
	for _, text := range []string{"*", ",", "a,", ",a", "a,,b", "a b", " a", "a&b", "a=", "a(", "a)", "a*b", "**", "a**", "a,*"} {
		if s, err := ParseStripParams(text); err == nil || !strings.HasPrefix(err.Error(), "pattern ") || s != (StripParams{}) {
			t.Errorf("%q: %q, %v", text, s, err)
		}
	}
}

func TestProfileNames(t *testing.T) {
	want := []string{
		"linkforge-1", "linkforge-1+userinfo", "linkforge-1+fragment", "linkforge-1+fragment+userinfo",
		"linkforge-1+strip(b,utm_*,x%5b%5d*)", "linkforge-1+strip(b,utm_*,x%5b%5d*)+userinfo",
		"linkforge-1+fragment+strip(b,utm_*,x%5b%5d*)", "linkforge-1+fragment+strip(b,utm_*,x%5b%5d*)+userinfo",
	}
	for i, p := range profiles {
		if q, err := ParseProfile(want[i]); p.Name() != want[i] || q != p || err != nil {
			t.Errorf("%s, want %s, read as %+v, %v", p.Name(), want[i], q, err)
		}
	}
	for _, name := range []string{
		"", "linkforge", "linkforge-2", "linkforge-1+", "linkforge-1+userinfo+fragment", "linkforge-1+fragment+fragment", "linkforge-1+strip()",
		"linkforge-1+strip(a", "linkforge-1+strip(b,a)", "linkforge-1+strip(A)", "linkforge-1+strip(a,a)", "linkforge-1+strip(*)",
		"linkforge-1+strip(a)+strip(b)", "linkforge-1+userinfo ", "+fragment", "linkforge-1linkforge-1",
	} {
		if p, err := ParseProfile(name); err == nil || p != (Profile{}) {
			t.Errorf("%q is read as %+v", name, p)
		}
	}
}

func TestOptionChanges(t *testing.T) {
	p := Profile{KeepFragment: true, StripParams: mustStrip("utm_*,b")}
	for raw, want := range map[string]string{
		"http://a.example/b?c#d":            "",
		"http://a.example/#":                "fragment",
		"http://a.example/#a b":             "escapes",
		"http://a.example/x/#a":             "trailing slash",
		"http://a.example/?z=1&b=%c3":       "parameters",
		"http://a.example/?B=1":             "parameters",
		"http://a.example?&utm_a&c":         "empty path, empty query parts, parameters",
		"http://a.example/?utm_a&d&c":       "parameters, query order",
		"http://a.example/c/?utm_a&d#":      "fragment, parameters, trailing slash",
		"HTTP://a.example/?c&utm_&e=%7e#%x": "escapes, parameters, scheme",
	} {
		var c Changes
		if _, err := p.AppendChanged(nil, []byte(raw), &c); err != nil || c.named() != want {
			t.Errorf("%q: %s, %v, want %s", raw, c.named(), err, want)
		}
	}
	for _, tt := range []struct{ raw, other, want string }{
		{"http://a.example/#a", "http://a.example/#%61", ""},
		{"http://a.example/#", "http://a.example/", ""},
		{"http://a.example/?utm_a=1&c", "http://a.example/?c&utm_a=1", ""},
		{"http://a.example/?utm_a=1&c", "http://a.example/?c&utm_a=2", "parameters"},
		{"http://a.example/?utm_a", "http://a.example/", "parameters"},
		{"http://a.example/?d&c&b", "http://a.example/?c&d", "parameters, query order"},
	} {
		if got := p.Elsewhere([]byte(tt.raw), []byte(tt.other)).named(); got != tt.want {
			t.Errorf("%q and %q: %s, want %s", tt.raw, tt.other, got, tt.want)
		}
	}
}

func TestExplainOptions(t *testing.T) {
	p := Profile{KeepFragment: true, StripParams: mustStrip("utm_*,b")}
	steps, err := p.Explain([]byte("http://a.example/?utm_a=1&d&B&&c#%7e é"))
	want := []Step{
		{"query: strip utm_*", "http://a.example/?d&B&&c#%7e é"},
		{"query: strip b", "http://a.example/?d&&c#%7e é"},
		{"query: empty pieces", "http://a.example/?d&c#%7e é"},
		{"query: order", "http://a.example/?c&d#%7e é"},
		{"fragment: percent-encoding", "http://a.example/?c&d#~%20%C3%A9"},
	}
	if err != nil || !slices.Equal(steps, want) {
		t.Errorf("steps %q, %v, want %q", steps, err, want)
	}
}
