package verify

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/packed"
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
	c.plain = c.spec.Name == codegen.Name && m.Blocklist == ""
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
	return codegen.Choice{Name: r.spec.Name, Length: r.length, Secret: r.secret, Multiplier: r.manifest.Scheme.Multiplier}
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
func (r *run) allClaim() bool { return r.mode().Keeps() || !r.sorts() }

// stored returns the scheme as a store keeps it.
func (r *run) stored() sink.Scheme {
	m := &r.manifest.Scheme
	if m.Name == codegen.Name {
		return sink.Scheme{Name: m.Name}
	}
	return sink.Scheme{Name: m.Name, CodeLength: m.CodeLength, Multiplier: m.Multiplier, Fingerprint: m.Fingerprint}
}

// fill fills in the first code of a link.
func (w *checker) fill(l *link) {
	l.code0, l.salt0 = l.code0[:0], 0
	h := l.hash
	switch {
	case w.run.plain:
	case w.run.spec.Counts:
		l.order = byHash.AppendCode(l.order[:0], h)
		return
	case !w.run.sorts():
		return
	default:
		h, l.salt0 = w.run.maker.First(h, l.Canonical, l.Workspace, l.parts, w.run.retries)
	}
	l.code0 = w.run.maker.AppendCode(l.code0, h)
}

// hasFirst reports whether a link has the code of salt 0, and the mapping is in the order of these.
func (l *link) hasFirst() bool {
	return l.salt0 == 0 && len(l.code0) > 0 && bytes.Equal(l.Code, l.code0)
}

// firstCode returns the first code of a row, by which the mapping is sorted, as far as it is known.
// With a counter that is the code that the scheme by default would give.
func (w *checker) firstCode(l *link) (code []byte, known bool) {
	switch {
	case w.run.spec.Counts:
		return l.order, true
	case w.run.sorts():
		return l.code0, true
	case l.Salt == 0 && len(l.Code) == w.run.length && (w.run.listed || l.Outcome == outcome.Created):
		return l.Code, true
	}
	return nil, false
}

// byHash makes the codes by which rows are sorted if theirs come from numbers.
var byHash, _ = codegen.New(codegen.DefaultLength)

// appendCode appends the code of an identity at a salt: of the length of the run, or if there may be
// such codes of that of another one.
func (w *checker) appendCode(dst, like, canonical, workspace, parts []byte, salt int) []byte {
	scheme := w.run.maker.Scheme
	if len(like) > 0 && len(like) != w.run.length {
		if other, err := scheme.WithLength(len(like)); err == nil {
			scheme = other
		}
	}
	w.input = codegen.AppendIdentity(w.input[:0], canonical, workspace, parts, salt)
	return scheme.AppendCode(dst, scheme.Sum(w.input))
}

// salt0 appends the code of salt 0 of an identity, or what stands in for it.
func (w *checker) salt0(dst, canonical, workspace, parts []byte) []byte {
	if w.run.hashes() {
		return w.appendCode(dst, nil, canonical, workspace, parts, 0)
	}
	return w.standIn(dst, canonical, workspace, parts, 0)
}

// A standIn stands for the code of a URL at a salt, if codes cannot be made: for those that claim it
// to meet. No code begins as it does.
func (w *checker) standIn(dst, canonical, workspace, parts []byte, salt int) []byte {
	key := w.hash(canonical, workspace, parts, salt).Key()
	return append(append(dst, 0), key[:]...)
}

func isStandIn(code []byte) bool { return len(code) > 0 && code[0] == 0 }

// codeText names a code for a finding.
func codeText(code []byte, salt int) string {
	if isStandIn(code) {
		return "its code of salt " + saltText(salt)
	}
	return string(code)
}

// isDigits reports whether a code may be one of the scheme of the run.
func (c *coding) isDigits(code []byte) bool {
	return len(code) == c.length && len(bytes.Trim(code, c.spec.Alphabet)) == 0
}

func (c *coding) digitsText() string {
	return fmt.Sprintf("a code of %s with %d characters", c.spec.Name, c.length)
}

// checkWord checks that a code which the run made has none of the words.
func (w *checker) checkWord(r *link, column string) {
	if word := w.run.maker.Word(r.Code); word != "" {
		w.fault(w.file, r.Number).of(r.Workspace, r.Code).wrong(Blocked, column, "no word of the blocklist, such as "+word, string(r.Code))
	}
}

// checkBelieved checks code and salt of a link as far as that can be done without the secret.
func (w *checker) checkBelieved(r *link, column, saltColumn string) {
	here, most := w.fault(w.file, r.Number).of(r.Workspace, r.Code), w.run.mostSalt
	created := r.Outcome == outcome.Created
	if created {
		most = w.run.retries
	}
	if r.Salt > most || created && r.Salt < 0 {
		here.wrong(BadSalt, saltColumn, fmt.Sprint("0 to ", most), saltText(r.Salt))
	}
	if created && !w.run.isDigits(r.Code) {
		here.wrong(BadCode, column, w.run.digitsText(), string(r.Code))
	}
}

// urlSortKey is a key of a sort by canonical URL: the beginning of what follows its scheme.
func urlSortKey(canonical []byte) uint64 {
	if rest, ok := bytes.CutPrefix(canonical, []byte("https://")); ok {
		return 1<<63 | packed.TextKey(rest)>>1
	}
	rest, _ := bytes.CutPrefix(canonical, []byte("http://"))
	return packed.TextKey(rest) >> 1
}

// checkBlocked checks the owner of a code that contains a word of the blocklist, or that is said to
// do so, and reports whether there is nothing else to check. Without the words it is believed, if the
// code contains that word and no link that the run made has the code.
func (s *slotChecker) checkBlocked(c *claim) (done bool) {
	here, owner := s.fault(manifest.CollisionsName, c.row), string(c.owner)
	word, says := strings.CutPrefix(owner, outcome.BlockedBy)
	switch want := s.run.maker.Word(c.code); {
	case s.run.manifest.Scheme.Blocklist == "" && says:
		here.wrong(BadOwner, "owner", "a canonical URL", owner)
	case s.run.listed && want != "" && owner != outcome.BlockedBy+want:
		here.wrong(BadOwner, "owner", outcome.BlockedBy+want, owner)
	case s.run.listed && want == "" && says:
		here.wrong(BadOwner, "owner", "a canonical URL: the code contains no word of the blocklist", owner)
	case s.run.listed:
		return want != ""
	case !says:
		return false
	default:
		list, err := codegen.ParseBlocklist([]byte(word))
		if err != nil || word == "" || list.Match(c.code) != word {
			here.wrong(BadOwner, "owner", "a word that "+string(c.code)+" contains", owner)
		} else if h := s.holder; h != nil && h.created && h.flags&ownCode == 0 {
			here.wrong(BadOwner, "owner", string(h.canonical), owner)
		}
	}
	return true
}

// schemeOf returns the scheme of the links in a workspace of the store. If known is false their codes
// cannot be made again.
func (v *verifier) schemeOf(runs *storeRuns, workspace string) (scheme codegen.Scheme, known bool) {
	switch stored := runs.scheme(workspace); {
	case stored.Name == codegen.Name && v.run.spec.Name == codegen.Name:
		return v.run.maker.Scheme, true
	case stored.Name == codegen.Name:
		scheme, err := codegen.New(codegen.DefaultLength)
		return scheme, err == nil
	case stored == v.run.stored() && v.run.hashes():
		return v.run.maker.Scheme, true
	}
	return codegen.Scheme{}, false
}

// scheme returns that of a workspace.
func (r *storeRuns) scheme(workspace string) sink.Scheme {
	return cmp.Or(r.schemes[workspace], sink.Scheme{Name: codegen.Name})
}

// checkScheme checks that a workspace of the store in which there are links of the mapping has the
// scheme of the run. It can be called more than once.
func (v *verifier) checkScheme(runs *storeRuns, workspace string) {
	if _, again := v.schemes.LoadOrStore(workspace, true); again {
		return
	}
	if want, got := v.run.stored(), runs.scheme(workspace); want != got {
		v.fault(storeName, 0).wrong(StoreScheme, "scheme", schemeText(want)+", in workspace "+workspace, schemeText(got))
	}
}

// schemeText says all that a store has of a scheme.
func schemeText(s sink.Scheme) string {
	text := s.Name
	if s.CodeLength > 0 {
		text += fmt.Sprint(", code length ", s.CodeLength)
	}
	if s.Multiplier > 0 {
		text += fmt.Sprint(", multiplier ", s.Multiplier)
	}
	if s.Name != codegen.Name {
		text += ", secret " + cmp.Or(s.Fingerprint, "none")
	}
	return text
}
