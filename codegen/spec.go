package codegen

import (
	"fmt"
	"strings"
)

// A Spec is what a scheme takes and does, before there is a [Scheme] or a [Counter] of it.
type Spec struct {
	Name      string
	Counts    bool   // codes are made from numbers by a Counter, not from hashes by a Scheme
	Secret    bool   // it takes a secret
	Alphabet  string // digits of its codes, in ascending order
	MinLength int    // of codes, in characters
	MaxLength int
	Length    int // by default
	Retries   int // highest salt to try by default; a Counter has no salts
}

// AnyLength reports whether the codes of a workspace may have several lengths, as those do that anybody
// can make.
func (s Spec) AnyLength() bool { return !s.Secret }

// Specs returns the schemes; the first is the default.
func Specs() []Spec {
	return []Spec{
		{Name, false, false, Alphabet, MinLength, MaxLength, DefaultLength, DefaultRetries},
		{NameKeyed, false, true, KeyedAlphabet, minKeyed, maxKeyed, 7, 4},
		{NameBase32, false, false, Base32Alphabet, MinLength, MaxLength, DefaultLength, DefaultRetries},
		{NameKeyedBase32, false, true, Base32Alphabet, minKeyed, maxKeyed, 8, 4},
		{NameCounter, true, true, CounterAlphabet, CounterLength, CounterLength, CounterLength, 0},
		{NamePermuted, true, true, CounterAlphabet, CounterLength, CounterLength, CounterLength, 0},
	}
}

// SpecOf returns the scheme that has the name.
func SpecOf(name string) (Spec, error) {
	var names []string
	for _, s := range Specs() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Spec{}, fmt.Errorf("there is no scheme %q; there are %s", name, strings.Join(names, ", "))
}
