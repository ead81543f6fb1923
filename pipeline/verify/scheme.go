package verify

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/sink"
)

// A UsageError is a secret or a list of words that are not those of the run.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// coding is what the manifest says of how codes are made, with the secret and the words that Config
// has. What makes codes is missing if the secret is.
type coding struct {
	spec    codegen.Spec
	length  int           // of codes
	maker   codegen.Maker // of a scheme without a counter; of its Scheme only if known
	known   bool          // codes can be made again: of hashes by maker, or of numbers by newCounter
	listed  bool          // there are no words, or maker has them
	plain   bool          // the hash of a URL makes its first code
	secret  codegen.Secret
	numbers []manifest.Range // that the run took, in ascending order
}

// readScheme reads how codes were made, and calls bad with what no run writes.
func (r *run) readScheme(bad func(field string, expected, got any)) {
	m, c := &r.manifest.Scheme, &r.coding
	var err error
	if c.spec, err = codegen.SpecOf(m.Name); err != nil {
		var names []string
		for _, s := range codegen.Specs() {
			names = append(names, s.Name)
		}
		bad("scheme.name", strings.Join(names, ", "), m.Name)
		return
	}
	if c.length = m.CodeLength; c.length < c.spec.MinLength || c.length > c.spec.MaxLength {
		bad("scheme.code_length", fmt.Sprintf("%d to %d", c.spec.MinLength, c.spec.MaxLength), c.length)
	}
	if m.MaxRetries < 0 || m.MaxRetries > codegen.MostRetries {
		bad("scheme.max_retries", fmt.Sprint("0 to ", codegen.MostRetries), m.MaxRetries)
	}
	switch print := isHex(m.Fingerprint, 8); {
	case !c.spec.Secret && m.Fingerprint != "":
		bad("scheme.fingerprint", "nothing: the scheme has no secret", m.Fingerprint)
	case c.spec.Secret && !print && (m.Fingerprint != "" || c.needsSecret()):
		bad("scheme.fingerprint", "16 hexadecimal digits", m.Fingerprint)
	}
	switch n := m.Multiplier; {
	case m.Name != codegen.NameCounter && n != 0:
		bad("scheme.multiplier", "nothing: the scheme has no multiplier", n)
	case m.Name == codegen.NameCounter && (n < 1 || n%2 == 0 || n%31 == 0):
		bad("scheme.multiplier", "a number that 2 and 31 do not divide", n)
	}
	if r.terms.Fold && c.spec.Alphabet != codegen.Base32Alphabet {
		bad("options.fold_case", "nothing, or false: codes of "+m.Name+" are not all in lower case", true)
	}
	if m.Blocklist != "" && !isHex(m.Blocklist, 32) {
		bad("scheme.blocklist_sha256", "64 hexadecimal digits", m.Blocklist)
	}
	r.readNumbers(bad)
}

func isHex(text string, bytes int) bool {
	digits, err := hex.DecodeString(text)
	return err == nil && len(digits) == bytes && strings.ToLower(text) == text
}

// needsSecret reports whether the scheme has no codes without a secret.
func (c *coding) needsSecret() bool { return c.spec.Secret && c.spec.Name != codegen.NameCounter }

// take takes the secret and the words, which may be missing. The error is a UsageError if they are
// not those of the run.
func (r *run) take(secret codegen.Secret, words *codegen.Blocklist) error {
	m, c := &r.manifest.Scheme, &r.coding
	var problems []error
	switch given := secret.Fingerprint(); {
	case given == "" || given == m.Fingerprint:
	case !c.spec.Secret:
		problems = append(problems, fmt.Errorf("Config.Secret: scheme %s has no secret", m.Name))
	case m.Fingerprint == "":
		problems = append(problems, fmt.Errorf("Config.Secret: the run had no secret, and this one has the fingerprint %s", given))
	default:
		problems = append(problems, fmt.Errorf("Config.Secret: the secret of the run has the fingerprint %s, and this one has %s", m.Fingerprint, given))
	}
	switch {
	case words == nil:
	case m.Blocklist == "":
		problems = append(problems, fmt.Errorf("Config.Words: the run had no list of words"))
	case words.SHA256() != m.Blocklist:
		problems = append(problems, fmt.Errorf("Config.Words: the words of the run have the SHA-256 %s, and these have %s", m.Blocklist, words.SHA256()))
	}
	if err := errors.Join(problems...); err != nil {
		return &UsageError{err}
	}
	c.secret, c.maker.Words = secret, words
	c.known, c.listed = secret.Fingerprint() == m.Fingerprint, words != nil || m.Blocklist == ""
	c.plain = !c.spec.Secret && m.Blocklist == ""
	if !c.known {
		return nil
	}
	var err error
	var wrong *codegen.ChoiceError
	if c.maker.Scheme, _, err = r.choice().Make(); errors.As(err, &wrong) { // a secret that is too short has this fingerprint
		return &UsageError{fmt.Errorf("Config.Secret: %w", wrong.Err)}
	}
	return nil
}

// choice is the scheme of the run with the secret that was given.
func (r *run) choice() codegen.Choice {
	return codegen.Choice{Name: r.coding.spec.Name, Length: r.coding.length, Secret: r.coding.secret, Multiplier: r.manifest.Scheme.Multiplier}
}

// newCounter returns what makes codes of numbers, for one goroutine.
func (r *run) newCounter() codegen.Counter {
	_, counter, _ := r.choice().Make() // take has the error
	return counter
}

// hashes reports whether the codes of URLs can be made again. If not, the scheme has a counter, or
// its secret is missing.
func (c *coding) hashes() bool { return c.known && !c.spec.Counts }

// sorts reports whether it can be told which code of a URL comes first, so that its rows are sorted
// by it.
func (c *coding) sorts() bool { return c.hashes() && c.listed }

// allClaim reports whether every link must claim its code, since the mapping does not have those of
// salt 0 in the order of their codes.
func (r *run) allClaim() bool { return r.codes.mode.Keeps() || !r.coding.sorts() }

// stored returns the scheme as a store keeps it.
func (r *run) stored() sink.Scheme {
	m := &r.manifest.Scheme
	if r.coding.spec.AnyLength() {
		return sink.Scheme{Name: m.Name, Fold: r.terms.Fold}
	}
	return sink.Scheme{Name: m.Name, CodeLength: m.CodeLength, Multiplier: m.Multiplier, Fingerprint: m.Fingerprint, Fold: r.terms.Fold}
}

// isDigits reports whether a code may be one of the scheme of the run.
func (c *coding) isDigits(code []byte) bool {
	return len(code) == c.length && len(bytes.Trim(code, c.spec.Alphabet)) == 0
}

func (c *coding) digitsText() string {
	return fmt.Sprintf("a code of %s with %d characters", c.spec.Name, c.length)
}
