package estimate

import (
	"testing"

	"github.com/linkforge/bulk/codegen"
)

// A counter collides with nothing until it wraps. A word costs numbers, and codes.
func TestNumbers(t *testing.T) {
	words := manyWords(t)
	share := words.Share(codegen.CounterAlphabet, codegen.CounterLength)
	for _, tt := range []struct {
		load Load
		want Counting
	}{
		{Load{Links: 10}, Counting{Numbers: 10, Left: codegen.CounterSpace - 10, WrapsAfter: codegen.CounterSpace}},
		{Load{Links: 10, Existing: codegen.CounterSpace - 10}, Counting{Numbers: 10, WrapsAfter: 10}},
		{Load{Links: 10, Existing: codegen.CounterSpace - 4}, Counting{Numbers: 10, WrapsAfter: 4, Exhausted: 6}},
		{Load{Links: 10, Existing: codegen.CounterSpace + 4}, Counting{Numbers: 10, Exhausted: 10}},
		{Load{Links: 1e6, Words: words}, Counting{Numbers: 1e6 / (1 - share), Left: codegen.CounterSpace - 1e6/(1-share), WrapsAfter: codegen.CounterSpace * (1 - share),
			Blocking: Blocking{share, 1e6/(1-share) - 1e6}}},
	} {
		tt.load.CodeLength, tt.want.Codes = codegen.CounterLength, codegen.CounterSpace
		for _, scheme := range []string{codegen.NameCounter, codegen.NamePermuted} {
			tt.load.Scheme = scheme
			got, err := Numbers(tt.load)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "numbers", got.Numbers, tt.want.Numbers, 1e-9)
			near(t, "left", got.Left, tt.want.Left, 1e-9)
			near(t, "wraps after", got.WrapsAfter, tt.want.WrapsAfter, 1e-9)
			near(t, "exhausted", got.Exhausted, tt.want.Exhausted, 1e-9)
			near(t, "blocked", got.Blocked, tt.want.Blocked, 1e-9)
			near(t, "codes", got.Codes, tt.want.Codes, 0)
		}
	}
	for _, l := range []Load{{CodeLength: 8}, {CodeLength: 7, Links: -1}, {CodeLength: 7, Scheme: codegen.NameKeyed}} {
		if l.Scheme == "" {
			l.Scheme = codegen.NameCounter
		}
		if got, err := Numbers(l); err == nil {
			t.Errorf("%+v: %+v", l, got)
		}
	}
}

// A list that blocks all codes is refused.
func TestAllBlocked(t *testing.T) {
	var text []byte
	for _, a := range codegen.KeyedAlphabet {
		for _, b := range codegen.KeyedAlphabet {
			for _, c := range codegen.KeyedAlphabet {
				text = append(text, byte(a), byte(b), byte(c), '\n')
			}
		}
	}
	words, err := codegen.ParseBlocklist(text)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Collisions(Load{Links: 1, CodeLength: 10, Words: words}); err == nil {
		t.Errorf("%+v", got)
	}
	if got, err := Numbers(Load{Scheme: codegen.NamePermuted, Links: 1, CodeLength: 7, Words: words}); err == nil {
		t.Errorf("%+v", got)
	}
}
