package hygiene

import (
	"fmt"
	"slices"
	"strings"
)

// A Decision says what becomes of the links of a kind.
type Decision uint8

// The decisions.
const (
	Keep   Decision = iota // they are stored
	Warn                   // they are stored and counted
	Reject                 // their rows are rejects
)

var decisions = [...]string{"keep", "warn", "reject"}

func (d Decision) String() string { return decisions[d] }

// A Policy has a decision for each kind. The zero value keeps all.
type Policy [KindCount]Decision

// Defaults returns the policy of a run that was not told another.
func Defaults() Policy {
	return Policy{
		Pattern: Reject, Protected: Reject, Inactive: Reject, Loop: Reject,
		Expired: Warn, Chain: Warn, Targeted: Warn, Starts: Warn, Ends: Warn, Secret: Warn, Suspect: Warn, Private: Warn,
	}
}

// ParsePolicy reads decisions such as protected=warn,secret=reject. The other kinds have their
// defaults.
func ParsePolicy(text string) (Policy, error) {
	p := Defaults()
	if text == "" {
		return p, nil
	}
	var given Set
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return Policy{}, fmt.Errorf("%q is not KIND=DECISION", part)
		}
		k, err := ParseKind(name)
		d := slices.Index(decisions[:], value)
		switch {
		case err != nil:
			return Policy{}, err
		case d < 0:
			return Policy{}, fmt.Errorf("%s: %q is not keep, warn or reject", k, value)
		case given.Has(k):
			return Policy{}, fmt.Errorf("%q is given twice", name)
		}
		given.Add(k)
		p[k] = Decision(d)
	}
	return p, nil
}

// String returns the policy as ParsePolicy reads it: all kinds, in byte order of their names.
func (p Policy) String() string {
	parts := make([]string, KindCount)
	for k, d := range p {
		parts[k] = names[k] + "=" + d.String()
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// Rejects returns the first kind of a set whose links are rejected, if there is one.
func (p Policy) Rejects(s Set) (Kind, bool) {
	for k := range s.All() {
		if p[k] == Reject {
			return k, true
		}
	}
	return 0, false
}

// Warned returns the kinds of a set that are to be counted.
func (p Policy) Warned(s Set) (warned Set) {
	for k := range s.All() {
		if p[k] == Warn {
			warned.Add(k)
		}
	}
	return warned
}
