package hygiene

import (
	"slices"
	"strings"
	"testing"
)

// set returns the set of kinds that are joined by spaces.
func set(t *testing.T, kinds string) (s Set) {
	t.Helper()
	for name := range strings.FieldsSeq(kinds) {
		k, err := ParseKind(name)
		if err != nil {
			t.Fatal(err)
		}
		s.Add(k)
	}
	return s
}

// text joins the kinds of a set by spaces.
func text(s Set) string {
	var kinds []string
	for k := range s.All() {
		kinds = append(kinds, k.String())
	}
	return strings.Join(kinds, " ")
}

func TestSet(t *testing.T) {
	var s Set
	for _, k := range []Kind{Secret, Pattern, Loop, Loop} {
		s.Add(k)
	}
	if got := slices.Collect(s.All()); !slices.Equal(got, []Kind{Pattern, Loop, Secret}) || !s.Has(Loop) || s.Has(Chain) {
		t.Errorf("%v", got)
	}
	for k := range s.All() {
		if k != Pattern {
			t.Errorf("%s after a break", k)
		}
		break
	}
}

func TestParseKind(t *testing.T) {
	for k := range Kind(KindCount) {
		if got, err := ParseKind(k.String()); got != k || err != nil {
			t.Errorf("%s: %v, %v", k, got, err)
		}
	}
	const want = `"Loop" is not pattern, protected, inactive, expired, targeted, starts, ends, loop, chain, secret, suspect or private`
	if _, err := ParseKind("Loop"); err == nil || err.Error() != want {
		t.Error(err)
	}
}

func TestParsePolicy(t *testing.T) {
	const defaults = "chain=warn,ends=warn,expired=warn,inactive=reject,loop=reject,pattern=reject,private=warn,protected=reject,secret=warn,starts=warn,suspect=warn,targeted=warn"
	for text, want := range map[string]string{
		"":                             defaults,
		"loop=reject":                  defaults,
		"protected=warn,secret=reject": "chain=warn,ends=warn,expired=warn,inactive=reject,loop=reject,pattern=reject,private=warn,protected=warn,secret=reject,starts=warn,suspect=warn,targeted=warn",
		"expired=keep":                 "chain=warn,ends=warn,expired=keep,inactive=reject,loop=reject,pattern=reject,private=warn,protected=reject,secret=warn,starts=warn,suspect=warn,targeted=warn",
		"loop":                         `!"loop" is not KIND=DECISION`,
		"loop=keep,":                   `!"" is not KIND=DECISION`,
		"=keep":                        `!"" is not pattern, protected,`,
		"ip=keep":                      `!"ip" is not pattern, protected,`,
		"loop=":                        `!loop: "" is not keep, warn or reject`,
		"loop=drop":                    `!loop: "drop" is not keep, warn or reject`,
		"loop=keep,loop=keep":          `!"loop" is given twice`,
	} {
		p, err := ParsePolicy(text)
		switch {
		case strings.HasPrefix(want, "!"):
			if err == nil || !strings.HasPrefix(err.Error(), want[1:]) || p != (Policy{}) {
				t.Errorf("%q: %v, %v", text, p, err)
			}
		case err != nil || p.String() != want:
			t.Errorf("%q: %v, %v", text, p, err)
		}
	}
}

// Every policy is what its text says.
func TestPolicies(t *testing.T) {
	for n := range 59049 { // 3 to the power of KindCount
		var p Policy
		for k := range p {
			p[k], n = Decision(n%3), n/3
		}
		if again, err := ParsePolicy(p.String()); again != p || err != nil {
			t.Fatalf("%s: %s, %v", p, again, err)
		}
	}
}

func TestRejects(t *testing.T) {
	policy, err := ParsePolicy("loop=keep,targeted=reject")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ kinds, rejects, warned string }{
		{"", "", ""},
		{"loop", "", ""},
		{"expired loop secret", "", "expired secret"},
		{"expired targeted secret", "targeted", "expired secret"},
		{"pattern protected targeted", "pattern", ""},
		{"protected inactive", "protected", ""},
	} {
		kinds, got := set(t, tt.kinds), ""
		if k, ok := policy.Rejects(kinds); ok {
			got = k.String()
		}
		if warned := policy.Warned(kinds); got != tt.rejects || warned != set(t, tt.warned) {
			t.Errorf("%s: rejects %q, warned %s", tt.kinds, got, text(warned))
		}
	}
}
