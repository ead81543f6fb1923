package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// checkIdempotent fails if a form is not its own form, or if what scan leaves
// out makes another form than doing everything.
func checkIdempotent(t *testing.T, p Profile, raw []byte) {
	t.Helper()
	form, err := p.Append(nil, raw)
	slow, slowErr := p.appendFrom(nil, Trim(raw), 0, atScheme, new(Changes))
	if err != slowErr || !bytes.Equal(form, slow) {
		t.Fatalf("%q: form %q, %v; without the fast path %q, %v", raw, form, err, slow, slowErr)
	}
	if err != nil {
		return
	}
	if again, err := p.Append(nil, form); err != nil || !bytes.Equal(again, form) {
		t.Fatalf("%q: form %q; its form %q, %v", raw, form, again, err)
	}
}

// plain is the grammar of RFC 3986, appendix A, for what a form can be: schemes
// http and https, an authority, and an absolute path. It captures an IPv6
// literal and the fragment.
var plain = regexp.MustCompile(`^https?://` +
	`(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-F]{2})*@)?` +
	`(?:\[([0-9a-f:.]+)\]|[a-z0-9._~!$&'()*+,;=-]+)` +
	`(?::[0-9]{1,5})?` +
	`(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-F]{2})*)+` +
	`(?:\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-F]{2})+)?` +
	`(#(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-F]{2})+)?$`)

func checkPlain(t *testing.T, p Profile, raw []byte) {
	t.Helper()
	form, err := p.Append(nil, raw)
	if err != nil {
		var r Reason
		if form != nil || !errors.As(err, &r) {
			t.Fatalf("%q: Append = %q, %#v", raw, form, err)
		}
		return
	}
	m := plain.FindSubmatch(form)
	if m == nil || m[2] != nil && !p.KeepFragment || len(form) > MaxLength || bytes.ContainsAny(form, "| ") {
		t.Fatalf("%q: form %q is not plain", raw, form)
	}
	if m[1] == nil {
		return
	}
	if ip, err := netip.ParseAddr(string(m[1])); err != nil || !ip.Is6() || ip.String() != string(m[1]) {
		t.Fatalf("%q: IPv6 address %q: %v", raw, m[1], err)
	}
}

// profiles are the eight kinds of profile; the first two keep no fragment and drop no parameter.
var profiles = []Profile{
	{}, {KeepUserinfo: true},
	{KeepFragment: true}, {KeepFragment: true, KeepUserinfo: true},
	{StripParams: someParams}, {StripParams: someParams, KeepUserinfo: true},
	{StripParams: someParams, KeepFragment: true}, {StripParams: someParams, KeepFragment: true, KeepUserinfo: true},
}

// allProfiles are these, and some that assume a scheme.
var allProfiles = append(slices.Clone(profiles), Profile{AssumeScheme: HTTPS}, Profile{AssumeScheme: HTTP, KeepUserinfo: true},
	Profile{AssumeScheme: HTTPS, StripParams: someParams, KeepFragment: true})

var someParams = mustStrip("utm_*,b,x[]*")

func mustStrip(patterns string) StripParams {
	s, err := ParseStripParams(patterns)
	if err != nil {
		panic(err)
	}
	return s
}

// drawn returns a profile with these patterns, and whether there is one.
func drawn(patterns string, fragment, userinfo bool) (Profile, bool) {
	s, err := ParseStripParams(patterns)
	return Profile{StripParams: s, KeepFragment: fragment, KeepUserinfo: userinfo}, err == nil
}

// FuzzDrawn holds the properties for profiles of any patterns.
func FuzzDrawn(f *testing.F) {
	for _, patterns := range []string{"", "utm_*,gclid", "a", "%41*,B", "é,%zz", "x%5b%5d", "'", "a%*", "%2a*", "+"} {
		for _, raw := range []string{"http://a/?a&A=1&aa&x[]=2&utm_b&&#c%2f'", "http://b.example/x/?&b&%c3%A9=1&%25zz&'&%2A2&+#"} {
			f.Add(patterns, true, true, []byte(raw))
			f.Add(patterns, false, false, []byte(raw))
		}
	}
	f.Fuzz(func(t *testing.T, patterns string, fragment, userinfo bool, raw []byte) {
		p, ok := drawn(patterns, fragment, userinfo)
		if !ok {
			return
		}
		if q, err := ParseProfile(p.Name()); err != nil || q != p {
			t.Fatalf("%q is read as %+v, %v", p.Name(), q, err)
		}
		for _, p.AssumeScheme = range []AssumedScheme{NoScheme, HTTPS} {
			checkIdempotent(t, p, raw)
			checkPlain(t, p, raw)
			checkExplain(t, p, raw)
			checkChanged(t, p, raw, nil)
		}
	})
}

func addSeeds(f *testing.F) {
	for _, v := range vectors(f) {
		if len(v.Raw) < 1000 {
			f.Add(v.Raw)
		}
	}
	for _, pair := range browserPairs {
		f.Add([]byte(pair[0]))
	}
	for _, u := range append(ordinaryURLs, dirtyURLs...) {
		f.Add([]byte(u))
	}
	for _, test := range assumeTests {
		f.Add([]byte(test.input))
	}
}

func FuzzIdempotent(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, p := range allProfiles {
			checkIdempotent(t, p, raw)
		}
	})
}

// Trim takes away what its documentation lists, and no more.
func FuzzTrim(f *testing.F) {
	for _, s := range []string{"", " \x00x\u200b", "\ufeffx\u3000", "\xc2x\x85", "\u2028", "x\u0085\xa0"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		want := strings.TrimFunc(string(raw), func(r rune) bool {
			return r <= 0x20 || unicode.In(r, unicode.White_Space) || r == 0x200b || r == 0xfeff
		})
		if got := Trim(raw); string(got) != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

func FuzzPlain(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, p := range allProfiles {
			checkPlain(t, p, raw)
		}
	})
}

// TestRestartedScan cuts and spoils canonical URLs at every byte, so that scan
// gives up at every place.
func TestRestartedScan(t *testing.T) {
	for _, u := range ordinaryURLs {
		for i := range len(u) {
			for _, spoil := range []string{"", "A", "/", "//", "/.", "?", "&", "=", "%", "%2f", "%41", "#", "\\", " ", "@", ":", "é", "\x01"} {
				for _, p := range []Profile{{}, profiles[6], {AssumeScheme: HTTP}} {
					checkIdempotent(t, p, []byte(u[:i]+spoil+u[i:]))
					checkIdempotent(t, p, []byte(u[:i]+spoil))
				}
			}
		}
	}
}

// checkBrowser fails if the form of x is not the form of what a WHATWG parser
// makes of x, and reports whether both have one.
func checkBrowser(t *testing.T, p Profile, x, href string) bool {
	t.Helper()
	a, err := p.Append(nil, []byte(x))
	if err != nil {
		return false
	}
	b, err := p.Append(nil, []byte(href))
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("%q has form %q; a browser makes it %q, of form %q, %v", x, a, href, b, err)
	}
	return true
}

// TestBrowserPairs holds the property on pairs that are ours.
func TestBrowserPairs(t *testing.T) {
	for _, pair := range browserPairs {
		for _, p := range profiles {
			if p.KeepUserinfo && !checkBrowser(t, p, pair[0], pair[1]) {
				t.Errorf("%q is refused", pair[0])
			}
		}
	}
}

// TestWebPlatformPairs holds the property on pairs of the web platform tests,
// where they are at hand; they are not ours to copy.
func TestWebPlatformPairs(t *testing.T) {
	text, err := os.ReadFile("../../shared/data/wpt_http_pairs.json")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the pairs of the web platform tests are not at hand")
	}
	if err != nil {
		t.Fatal(err)
	}
	var pairs [][2]*string // null where a browser refuses
	if err := json.Unmarshal(text, &pairs); err != nil {
		t.Fatal(err)
	}
	type tally struct{ same, refused, browserRefused int }
	want := []tally{{93, 40, 147}, {105, 28, 147}}
	for i, p := range profiles {
		var got tally
		for _, pair := range pairs {
			switch x, href := pair[0], pair[1]; {
			case href == nil:
				got.browserRefused++
				if form, err := p.Append(nil, []byte(*x)); err == nil {
					t.Errorf("%q has form %q; a browser refuses it", *x, form)
				}
			case checkBrowser(t, p, *x, *href):
				got.same++
			default:
				got.refused++
			}
		}
		if got != want[i%2] {
			t.Errorf("%s: %+v, want %+v", p.Name(), got, want[i%2])
		}
	}
}
