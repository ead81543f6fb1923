package codegen

import (
	"cmp"
	"fmt"
)

// A Choice is the name of a scheme, and what the scheme takes. It is the one place that makes the
// codes of a scheme and a secret.
type Choice struct {
	Name       string // "": the first of Specs
	Length     int    // of codes, in characters; 0: the default of the scheme
	Secret     Secret // of a scheme that takes one
	Multiplier int64  // of counter-base62; 0: 1
}

// A ChoiceError says what is wrong with a field of a Choice.
type ChoiceError struct {
	Field string // such as "Length"
	Err   error
}

func (e *ChoiceError) Error() string { return e.Field + ": " + e.Err.Error() }
func (e *ChoiceError) Unwrap() error { return e.Err }

// Make returns what makes the codes: of numbers, if the scheme counts, otherwise of hashes. The error
// is a *ChoiceError.
func (c Choice) Make() (scheme Scheme, counter Counter, err error) {
	c.Name = cmp.Or(c.Name, Name)
	spec, err := SpecOf(c.Name)
	if err != nil {
		return scheme, nil, &ChoiceError{"Name", err}
	}
	c.Length = cmp.Or(c.Length, spec.Length)
	if spec.Counts && c.Length != spec.Length {
		return scheme, nil, &ChoiceError{"Length", fmt.Errorf("codes of scheme %s have %d characters", c.Name, spec.Length)}
	}
	field := "Secret"
	switch c.Name {
	case NameKeyed:
		scheme, err = NewKeyed(c.Secret, spec.Length)
	case NameBase32:
		scheme, err = NewBase32(spec.Length)
	case NameKeyedBase32:
		scheme, err = NewKeyedBase32(c.Secret, spec.Length)
	case NameCounter:
		field = "Multiplier"
		counter, err = NewCounter(c.Secret, uint64(cmp.Or(c.Multiplier, 1)))
	case NamePermuted:
		counter, err = NewPermuted(c.Secret)
	default:
		scheme, err = New(spec.Length)
	}
	if err == nil && !spec.Counts {
		field = "Length"
		scheme, err = scheme.WithLength(c.Length)
	}
	if err != nil {
		return Scheme{}, nil, &ChoiceError{field, err}
	}
	return scheme, counter, nil
}
