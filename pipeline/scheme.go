package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/sink"
)

// A Scheme says how codes are made. The functions take their length, in characters; 0: the default
// of the scheme.
type Scheme struct {
	Name   string             // "": sha256-base58, or sha256-base32 if the workspaces fold case
	Fold   bool               // they do: all their codes are in ASCII lower case
	Secret codegen.Secret     // of a scheme that takes one
	Words  *codegen.Blocklist // that no generated code may contain; nil: none

	// Of counters.
	CounterStart int64 // the counter of the store is moved to this number if it is behind; 0: it is not
	Multiplier   int64 // of counter-base62; 0: 1
}

// maxStart leaves room for the numbers of very many runs.
const maxStart = 1 << 62

// withDefaults fills in the defaults. If there is no such scheme, Make has the error.
func (s Scheme) withDefaults() (Scheme, codegen.Spec) {
	plain := codegen.Name
	if s.Fold {
		plain = codegen.NameBase32
	}
	s.Name = cmp.Or(s.Name, plain)
	spec, _ := codegen.SpecOf(s.Name)
	if s.Name == codegen.NameCounter {
		s.Multiplier = cmp.Or(s.Multiplier, 1)
	}
	return s, spec
}

// mayFold reports whether the scheme can make codes for workspaces that fold case.
func (s Scheme) mayFold() bool {
	s.Fold = true
	_, spec := s.withDefaults()
	return spec.Alphabet == codegen.Base32Alphabet
}

// Make returns what makes codes: a counter, or a maker. The error says what is wrong with
// which fields of a Config.
func (s Scheme) Make(length int) (maker codegen.Maker, counter codegen.Counter, err error) {
	c, spec := s.withDefaults()
	if _, err := codegen.SpecOf(c.Name); err != nil {
		return maker, nil, fmt.Errorf("Config.Scheme.Name: %w", err)
	}
	var problems []error
	complain := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	complain(!spec.Secret && c.Secret.Fingerprint() != "", "Config.Scheme.Secret: scheme %s has no secret", c.Name)
	complain(!spec.Counts && c.CounterStart != 0, "Config.Scheme.CounterStart: scheme %s has no counter", c.Name)
	complain(c.CounterStart < 0, "Config.Scheme.CounterStart %d is below 1", c.CounterStart)
	complain(c.CounterStart > maxStart, "Config.Scheme.CounterStart %d is above 2^62", c.CounterStart)
	complain(c.Name != codegen.NameCounter && c.Multiplier != 0, "Config.Scheme.Multiplier goes with scheme %s only", codegen.NameCounter)
	complain(c.Fold && !c.mayFold(), "Config.Scheme.Fold goes with scheme %s or %s, not %s", codegen.NameBase32, codegen.NameKeyedBase32, c.Name)
	complain(c.Multiplier < 0, "Config.Scheme.Multiplier %d is below 1", c.Multiplier)
	if len(problems) > 0 {
		return maker, nil, errors.Join(problems...)
	}
	maker.Words = c.Words
	maker.Scheme, counter, err = codegen.Choice{Name: c.Name, Length: length, Secret: c.Secret, Multiplier: c.Multiplier}.Make()
	if counter != nil { // rows are sorted as by default
		maker.Scheme, _ = codegen.New(codegen.DefaultLength)
		maker.Words = nil
	}
	var wrong *codegen.ChoiceError
	if errors.As(err, &wrong) {
		err = fmt.Errorf("%s: %w", "Config."+choiceFields[wrong.Field], wrong.Err)
	}
	return maker, counter, err
}

// choiceFields are the fields of a Config that are those of a codegen.Choice.
var choiceFields = map[string]string{"Name": "Scheme.Name", "Length": "CodeLength", "Secret": "Scheme.Secret", "Multiplier": "Scheme.Multiplier"}

// describe returns what the manifest says of the scheme.
func (s Scheme) describe(length, maxRetries int) manifest.Scheme {
	s, _ = s.withDefaults()
	m := manifest.Scheme{Name: s.Name, CodeLength: length, MaxRetries: maxRetries, Fingerprint: s.Secret.Fingerprint(), Multiplier: s.Multiplier}
	if s.Words != nil {
		m.Blocklist = s.Words.SHA256()
	}
	return m
}

// Stored returns the scheme as a store keeps it.
func (s Scheme) Stored(length int) sink.Scheme {
	s, spec := s.withDefaults()
	if spec.AnyLength() {
		return sink.Scheme{Name: s.Name, Fold: s.Fold}
	}
	return sink.Scheme{Name: s.Name, CodeLength: cmp.Or(length, spec.Length), Multiplier: s.Multiplier, Fingerprint: s.Secret.Fingerprint(), Fold: s.Fold}
}

// checkScheme refuses the run if CheckScheme does, or if only some of its workspaces fold case. It
// notes the workspaces whose scheme is to be set. It returns errOtherFold if the rows are to be read
// once more.
func (j *job) checkScheme(ctx context.Context, session sink.Session) error {
	if j.otherScheme = nil; session == nil || len(j.result.Workspaces) == 0 {
		return nil
	}
	set, err := session.Schemes(ctx, j.result.Workspaces)
	if err == nil {
		err = j.checkFold(ctx, session, set)
	}
	if err == nil {
		j.otherScheme, err = checkSchemes(ctx, session, set, j.result.Workspaces, j.cfg.Scheme.Stored(j.cfg.CodeLength))
	}
	return err
}

// CheckScheme returns a UsageError if one of these workspaces, of which there must be one, has
// links of another scheme, or if the secret belongs to another scheme. Otherwise it returns those
// that have another scheme and no links.
func CheckScheme(ctx context.Context, session sink.Session, workspaces []string, scheme sink.Scheme) (others []string, err error) {
	set, err := session.Schemes(ctx, workspaces)
	if err != nil {
		return nil, err
	}
	return checkSchemes(ctx, session, set, workspaces, scheme)
}

// checkSchemes is CheckScheme with the schemes that the store has of the workspaces.
func checkSchemes(ctx context.Context, session sink.Session, set map[string]sink.Scheme, workspaces []string, scheme sink.Scheme) (others []string, err error) {
	plain := sink.Scheme{Name: codegen.Name}
	for _, w := range workspaces {
		if cmp.Or(set[w], plain) != scheme {
			others = append(others, w)
		}
	}
	if scheme.Fingerprint != "" {
		used, err := session.Fingerprints(ctx)
		if err != nil {
			return nil, err
		}
		if err := scheme.CheckSecret(used); err != nil {
			return nil, &UsageError{err}
		}
	}
	return others, refuseLinks(ctx, session, others, func(w string) (theirs, options string) {
		its := cmp.Or(set[w], plain)
		return "scheme " + schemeText(its, scheme), "scheme " + schemeText(scheme, its)
	})
}

// schemeText names a scheme, with what tells it from another one.
func schemeText(s, other sink.Scheme) string {
	text := s.Name
	if s.Fold != other.Fold {
		text += map[bool]string{true: ", folding case", false: ", not folding case"}[s.Fold]
	}
	if s.Name != other.Name {
		return text
	}
	if s.CodeLength != other.CodeLength {
		text += fmt.Sprintf(", code length %d", s.CodeLength)
	}
	if s.Multiplier != other.Multiplier {
		text += fmt.Sprintf(", multiplier %d", s.Multiplier)
	}
	if s.Fingerprint != other.Fingerprint {
		text += ", secret " + cmp.Or(s.Fingerprint, "none")
	}
	return text
}
