// Package explain shows the way from a URL to its code, and back.
//
//   - [URL] shows each step: the rules that changed the URL, its canonical form, what is
//     hashed, the hash, and the code for each salt that is asked for. With a counter a URL has
//     no code of its own: [Number] shows the steps from a number to a code, and [NumberOf] those
//     to a given code.
//   - [Ask] looks up who has the codes of a canonical URL in a store, and says what a run
//     would do with the URL now. [Others] looks up the other links of the URL.
//   - [Code] looks up which URL a code leads to.
//
// An [Explanation] has all that is needed to compute the same in another language. Steps,
// reasons and codes come from the packages that a run uses.
package explain

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// Rules decide, together with the store, which code a URL gets.
type Rules struct {
	Profile    canon.Profile
	Scheme     codegen.Scheme     // makes codes, or
	Counter    codegen.Counter    // does; if neither does, the secret of Of is not known
	Of         sink.Scheme        // what a store keeps of the scheme; the zero value: that of sha256-base58
	Words      *codegen.Blocklist // that no code may contain; nil: none
	Workspace  string
	MaxRetries int // highest salt; 0 is salt 0 only, unlike in pipeline.Config

	// Of link rules: the parameters of the URL, as of a run in which it has one row. A run without
	// link rules obeys them, too, in a workspace that has links with any.
	Ruled    bool // the run has link rules
	Identity rules.Identity
	Params   rules.Params
	Terms    rules.Terms // AsOf counts also without link rules: links are live then, or not
}

// knows reports whether codes can be computed.
func (r *Rules) knows() bool { return r.Counter != nil || r.Scheme != codegen.Scheme{} }

// name is the name of the scheme.
func (r *Rules) name() string { return cmp.Or(r.Of.Name, codegen.Name) }

// counts reports whether the codes of the scheme are made from numbers.
func (r *Rules) counts() bool {
	spec, _ := codegen.SpecOf(r.name())
	return spec.Counts
}

// word returns the word that makes a code blocked; "": none.
func (r *Rules) word(code []byte) string { return codegen.Maker{Words: r.Words}.Word(code) }

// parts are those of the identity of the URL.
func (r *Rules) parts() []byte { return r.Identity.AppendParts(nil, &r.Params) }

// input returns what is hashed for a salt.
func (r *Rules) input(canonical []byte, salt int) []byte {
	return codegen.AppendIdentity(nil, canonical, []byte(r.Workspace), r.parts(), salt)
}

// Validate joins all problems of rules that no run can have. The zero value has no scheme and
// no workspace.
func (r *Rules) Validate() error {
	problems := []error{r.Profile.Validate()}
	if !r.knows() && r.Of.Fingerprint == "" {
		problems = append(problems, errors.New("no scheme"))
	}
	if err := codegen.CheckWorkspace([]byte(r.Workspace)); err != nil {
		problems = append(problems, fmt.Errorf("Rules.Workspace: %w: %q", err, r.Workspace))
	}
	if r.MaxRetries < 0 || r.MaxRetries > codegen.MostRetries {
		problems = append(problems, fmt.Errorf("Rules.MaxRetries %d is not within 0 to %d", r.MaxRetries, codegen.MostRetries))
	}
	return errors.Join(problems...)
}

// An Explanation shows how a URL gets its code. Bytes of the input that are not UTF-8 appear
// in JSON as manifest.Text writes them.
type Explanation struct {
	Input     manifest.Text `json:"input"`
	Trimmed   manifest.Text `json:"trimmed"`
	Profile   string        `json:"profile"`
	Reason    string        `json:"reason,omitempty"` // why a run rejects it; then only Detail follows
	Detail    string        `json:"detail,omitempty"`
	Steps     []Step        `json:"steps,omitempty"`
	Canonical string        `json:"canonical,omitempty"`
	Workspace string        `json:"workspace,omitempty"`
	SchemeFacts
	Note    string    `json:"note,omitempty"`    // why there is no code
	Codings []Coding  `json:"codings,omitempty"` // one for each salt that was asked for, and those that follow one that is blocked; none with a counter
	Store   *Standing `json:"store,omitempty"`
}

// SchemeFacts are what may be shown of a scheme.
type SchemeFacts struct {
	Scheme      string `json:"scheme,omitempty"`
	Multiplier  int64  `json:"multiplier,omitempty"`
	Fingerprint string `json:"secret_fingerprint,omitempty"`
}

func (r *Rules) facts() SchemeFacts {
	return SchemeFacts{r.name(), r.Of.Multiplier, r.Of.Fingerprint}
}

// A Step is a rule that changed the URL, and what it made of it.
type Step struct {
	Rule string        `json:"rule"`
	URL  manifest.Text `json:"url"`
}

// A Coding is the way from a canonical URL and a salt to a code. If the secret is not known, it has
// only the salt and the hash input.
type Coding struct {
	Salt      int    `json:"salt"`
	HashInput string `json:"hash_input"`
	SHA256    string `json:"sha256,omitempty"`      // without a secret; hexadecimal
	HMAC      string `json:"hmac_sha256,omitempty"` // with one: its first 16 bytes; hexadecimal
	Integer   string `json:"integer,omitempty"`     // of the first 16 bytes, big-endian; decimal; not in base 32
	Digits    string `json:"digits,omitempty"`      // of sha256-base58: of the integer in Base58, without leading zeros; in base 32: of the first 120 bits
	Remainder string `json:"remainder,omitempty"`   // of keyed-base62: of the integer divided by 62 to the power of the length; decimal
	Code      string `json:"code,omitempty"`
	Blocked   string `json:"blocked,omitempty"` // the word that the code contains, so that it counts as taken
}

// URL explains the codes that a URL has with these salts. It does not check its arguments:
// rules that Validate refuses, and salts below 0, give codes that no run makes.
func URL(r *Rules, raw []byte, salts []int) *Explanation {
	e := &Explanation{Input: manifest.Text(raw), Trimmed: manifest.Text(canon.Trim(raw)), Profile: r.Profile.Name()}
	if len(raw) == 0 { // a run has a reason of its own for this
		e.Reason, e.Detail = outcome.MissingURL, outcome.MissingURLDetail
		return e
	}
	steps, err := r.Profile.Explain(raw)
	if reason, ok := errors.AsType[canon.Reason](err); ok {
		e.Reason, e.Detail = string(reason), canon.Detail(raw, reason)
		return e
	}
	canonical := raw
	for _, s := range steps {
		e.Steps = append(e.Steps, Step{s.Rule, manifest.Text(s.After)})
		canonical = []byte(s.After)
	}
	e.Canonical, e.Workspace, e.SchemeFacts = string(canonical), r.Workspace, r.facts()
	switch {
	case !r.knows():
		e.Note = unknownSecret
	case r.counts():
		e.Note = numbered
	}
	if r.counts() {
		return e
	}
	for i := 0; i < len(salts); i++ {
		c := coding(r, canonical, salts[i])
		e.Codings = append(e.Codings, c)
		if c.Blocked != "" && c.Salt < r.MaxRetries && !slices.Contains(salts, c.Salt+1) {
			salts = slices.Insert(slices.Clone(salts), i+1, c.Salt+1)
		}
	}
	return e
}

// Notes.
const (
	unknownSecret = "the secret is not given, so no code can be computed"
	numbered      = "the code depends on the number that the store gives to a URL, not on the URL"
)

func coding(r *Rules, canonical []byte, salt int) Coding {
	input := r.input(canonical, salt)
	c := Coding{Salt: salt, HashInput: string(input)}
	if !r.knows() {
		return c
	}
	h := r.Scheme.Sum(input)
	key := h.Key()
	integer := new(big.Int).SetBytes(key[:])
	code := r.Scheme.AppendCode(nil, h)
	c.Code, c.Blocked = string(code), r.word(code)
	if r.Scheme.Keyed() {
		c.HMAC = fmt.Sprintf("%x", key)
	} else {
		c.SHA256 = fmt.Sprintf("%x", sha256.Sum256(input))
	}
	switch r.Scheme.Name() {
	case codegen.NameKeyed:
		codes := new(big.Int).Exp(big.NewInt(62), big.NewInt(int64(r.Scheme.Length())), nil)
		c.Integer, c.Remainder = integer.String(), codes.Mod(integer, codes).String()
	case codegen.Name:
		full, _ := codegen.New(codegen.MaxDigits) // pads; the digits themselves have no leading zeros
		c.Integer, c.Digits = integer.String(), strings.TrimLeft(string(full.AppendCode(nil, h)), codegen.Alphabet[:1])
	default:
		full, _ := codegen.NewBase32(codegen.MaxLength)
		c.Digits = string(full.AppendCode(nil, h))
	}
	return c
}

// A Standing is how a URL stands in a store.
type Standing struct {
	// Owners of the codes of salt 0 to Salt; if all are taken, to Rules.MaxRetries; none if no
	// salt gives the code of the existing link, or if codes are made from numbers.
	Owners []Owner `json:"owners"`
	// Of a counter: the number that the store gives out next, and those that follow one whose code is
	// taken, to the first that is free, but at most maxTurns.
	Next []Turn `json:"next,omitempty"`
	// What a run would do now: "existing", "created" or, if it would reject the URL, the reason:
	// "code_space_exhausted" if all codes are taken, or "drifted" or "other_owner" because of the
	// existing link.
	Outcome string `json:"outcome"`
	Change  string `json:"change,omitempty"`  // of package rules: what the run would do with the existing link
	Differs string `json:"differs,omitempty"` // the columns in which the existing link has other parameters, if it keeps them
	Code    string `json:"code,omitempty"`
	Salt    *int   `json:"salt,omitempty"`   // nil: none gives the code
	Number  *int64 `json:"number,omitempty"` // of a counter: that gives the code; nil: none does, or the secret is not known
	RunID   *int32 `json:"run_id,omitempty"` // that made the existing link
	Life    *Life  `json:"rules,omitempty"`  // of the existing link; nil: it has nothing beyond its URL
	// The other links of the URL, see Others: those of other identities, and further codes that were
	// kept from another shortener.
	Links   []Link `json:"links,omitempty"`
	Aliases []Link `json:"aliases,omitempty"`
}

// An Owner is the URL that has the code of a salt.
type Owner struct {
	Salt int `json:"salt"`
	Holder
}

// A Turn is a number that the store would give out, and the URL that has its code.
type Turn struct {
	Number int64 `json:"number"`
	Holder
}

// A Holder is the URL that has a code.
type Holder struct {
	Code    string `json:"code,omitempty"`    // "": the secret is not known
	Blocked string `json:"blocked,omitempty"` // the word that the code contains, so that it counts as taken
	Owner   string `json:"owner,omitempty"`   // canonical URL; "": nobody
	Alias   bool   `json:"alias,omitempty"`   // the code is an alias of that URL
	Other   bool   `json:"other,omitempty"`   // it is that of another link of the URL that is asked for
	RunID   *int32 `json:"run_id,omitempty"`
}

// free reports whether a new link could get the code.
func (h *Holder) free() bool { return h.Owner == "" && h.Blocked == "" }

// Ask looks up the codes of a canonical URL. Nothing is locked: the answer is true at one
// moment. The error is that of Validate, or of the session.
func Ask(ctx context.Context, r *Rules, session sink.Session, canonical string) (*Standing, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	flagged, err := session.Rules(ctx, []string{r.Workspace})
	if err != nil {
		return nil, err
	}
	ruled := r.Ruled || flagged[r.Workspace]
	s := &Standing{Owners: []Owner{}}
	held, err := r.candidates(ctx, s, session, []byte(canonical))
	if err != nil {
		return nil, err
	}
	byCode := map[string][]*Holder{} // short codes of several salts may be the same
	for _, h := range held {
		byCode[h.Code] = append(byCode[h.Code], h)
	}
	var probes []sink.Probe
	for code := range byCode {
		probes = append(probes, sink.Probe{Workspace: []byte(r.Workspace), Code: []byte(code), WantRun: true, WantRules: true})
	}
	if len(probes) == 0 { // only the link of the URL is asked for
		probes = []sink.Probe{{Workspace: []byte(r.Workspace), WantRun: true, WantRules: true}}
	}
	slices.SortFunc(probes, func(a, b sink.Probe) int { return bytes.Compare(a.Code, b.Code) })
	probes[0].Key, probes[0].Canonical = codegen.Sum(r.input([]byte(canonical), 0)).Key(), []byte(canonical)
	err = session.Lookup(ctx, probes, func(f sink.Found) error {
		owner, run := string(f.Canonical), f.Run
		if f.Same {
			owner = canonical
			s.Outcome, s.Code, s.RunID, s.Life = outcome.Existing.String(), string(f.Code), &run, r.lifeOf(f.Rules)
			if ruled {
				r.judge(s, f.Rules)
			}
		}
		for _, h := range byCode[string(f.Code)] {
			h.Owner, h.RunID, h.Alias = owner, &run, f.Alias
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if ruled && s.Outcome == "" && r.Terms.Revive != rules.ReviveAll {
		gone, err := session.Gone(ctx, []sink.Key{r.urlKey(canonical)})
		if err != nil {
			return nil, err
		}
		if gone[0] {
			s.Outcome, s.Owners, s.Next = rules.LinkDeleted.String(), s.Owners[:0], nil
			return s, nil
		}
	}
	for _, h := range held {
		h.Other = h.Owner == canonical && !h.Alias && h.Code != s.Code
	}
	decide(r, s, []byte(canonical))
	switch {
	case s.Salt != nil:
		s.Owners = s.Owners[:min(*s.Salt+1, len(s.Owners))]
	case s.Code != "":
		s.Owners = s.Owners[:0]
	}
	return s, nil
}

// maxTurns bounds Standing.Next.
const maxTurns = 1 + codegen.DefaultRetries

// candidates fills in the codes that a URL may get, and returns them.
func (r *Rules) candidates(ctx context.Context, s *Standing, session sink.Session, canonical []byte) (held []*Holder, err error) {
	switch {
	case r.counts():
		next, err := session.NextNumber(ctx)
		if err != nil {
			return nil, err
		}
		next = max(next, 1)
		if !r.knows() {
			s.Next = []Turn{{Number: next}}
			return nil, nil
		}
		for number := next; number < next+maxTurns; number++ {
			code := r.Counter.AppendCode(nil, uint64(number))
			s.Next = append(s.Next, Turn{number, Holder{Code: string(code), Blocked: r.word(code)}})
		}
	case r.knows():
		for salt := range r.MaxRetries + 1 {
			code := r.Scheme.AppendCode(nil, r.Scheme.Sum(r.input(canonical, salt)))
			s.Owners = append(s.Owners, Owner{salt, Holder{Code: string(code), Blocked: r.word(code)}})
		}
	}
	for i := range s.Next {
		held = append(held, &s.Next[i].Holder)
	}
	for i := range s.Owners {
		held = append(held, &s.Owners[i].Holder)
	}
	return held, nil
}

// urlKey returns the url_key of a URL alone.
func (r *Rules) urlKey(canonical string) sink.Key {
	return codegen.Sum(codegen.AppendInput(nil, []byte(canonical), []byte(r.Workspace), 0)).Key()
}

// Others looks up the links of a canonical URL whose identity is another one than that of the rules,
// and the aliases of the URL, in the order of their codes. The error is that of the store.
func Others(ctx context.Context, r *Rules, store sink.Store, canonical string) (links, aliases []Link, err error) {
	own := codegen.Sum(r.input([]byte(canonical), 0)).Key()
	err = store.OfURL(ctx, r.Workspace, r.urlKey(canonical), func(l *sink.Stored) error {
		switch link := r.linkOf(l); {
		case l.Alias:
			aliases = append(aliases, *link)
		case l.Key != own:
			links = append(links, *link)
		}
		return nil
	})
	return links, aliases, err
}

// A Link is what a store has behind a code.
type Link struct {
	Code      string     `json:"code"`
	Workspace string     `json:"workspace"`
	Found     bool       `json:"found"`                  // otherwise no link has the code
	Original  string     `json:"original_url,omitempty"` // as it was given, without spaces around it; bytes that are not UTF-8 as %XX
	Canonical string     `json:"canonical_url,omitempty"`
	RunID     *int32     `json:"run_id,omitempty"`     // that made the link; nil if Found: another program made it
	Created   *time.Time `json:"created_at,omitempty"` // UTC; nil if Found: the stored value is not a time
	Alias     bool       `json:"alias,omitempty"`      // the code was kept, beside that of the URL's link
	Kept      bool       `json:"kept,omitempty"`       // the code of the link is none that a salt up to the retries, or a number, gives: it was kept, or another program made it
	LinkCode  string     `json:"link_code,omitempty"`  // of an alias: the code of the link of its identity; "": it has none, or its identity is not known
	Identity  string     `json:"identity,omitempty"`   // params or row (package rules), if the identity of the link or the alias is more than its URL
	Life      *Life      `json:"rules,omitempty"`      // nil: the link has nothing beyond its URL
	Note      string     `json:"note,omitempty"`       // why it is not said how the code is made
	Counting  *Counting  `json:"counting,omitempty"`   // of a counter: how the code is made
}

// Code looks up the link that has a code in a workspace. Nothing is locked: the answer is true
// at one moment. Of the rules only the scheme, the workspace, the retries and Terms.AsOf count. The error
// is that of the store, or of the session.
func Code(ctx context.Context, r *Rules, store sink.Store, session sink.Session, code string) (*Link, error) {
	link := &Link{Code: code, Workspace: r.Workspace}
	var key sink.Key // of the link of its identity; zero: not known
	err := store.Find(ctx, r.Workspace, code, func(l *sink.Stored) error {
		link = r.linkOf(l)
		parts, _, known := partsOf(l)
		if !known {
			return nil
		}
		key = codegen.Sum(codegen.AppendIdentity(nil, l.Canonical, l.Workspace, parts, 0)).Key()
		if r.knows() && !r.counts() {
			link.Kept = r.Scheme.SaltOf(l.Canonical, slices.Concat(l.Workspace, parts), l.Code, max(r.MaxRetries, codegen.DefaultRetries)) < 0
		}
		return nil
	})
	if !r.knows() {
		link.Note = unknownSecret
	}
	if r.Counter != nil && !link.Alias {
		link.Counting = NumberOf(r, code)
		link.Kept = link.Found && link.Counting == nil
	}
	if err != nil || !link.Alias || key == (sink.Key{}) {
		return link, err
	}
	probe := sink.Probe{Workspace: []byte(r.Workspace), Code: []byte(code), Key: key, Canonical: []byte(link.Canonical), WantRules: true, Parts: true}
	return link, session.Lookup(ctx, []sink.Probe{probe}, func(f sink.Found) error {
		if f.Same {
			link.LinkCode = string(f.Code)
		}
		return nil
	})
}

// partsOf returns the parts of the identity of a link or an alias, if what the store has of it tells them:
// those that make its key.
func partsOf(l *sink.Stored) (parts []byte, by rules.Identity, known bool) {
	if !l.Alias && l.Base == (sink.Key{}) {
		return nil, rules.ByURL, true
	}
	p := rules.Params{}
	if l.Rules != nil {
		link := linkOfRules(l.Rules)
		p = rules.Params{Expiry: link.Expiry, Limit: link.Limit, Ref: l.Rules.Ref}
	}
	return rules.PartsThat(&p, func(parts []byte) bool {
		input := codegen.AppendIdentity(nil, l.Canonical, l.Workspace, parts, 0)
		if l.Alias {
			input = codegen.AppendAlias(nil, l.Canonical, l.Workspace, parts, l.Code)
		}
		return codegen.Sum(input).Key() == l.Key
	})
}

func (r *Rules) linkOf(l *sink.Stored) *Link {
	link := &Link{Code: string(l.Code), Workspace: string(l.Workspace), Found: true, Canonical: string(l.Canonical), Original: string(l.Original), Alias: l.Alias, Life: r.lifeOf(l.Rules)}
	switch _, by, known := partsOf(l); {
	case l.Base == sink.Key{}:
	case known && by != rules.ByURL:
		link.Identity = by.String()
	case !known:
		link.Identity = rules.ByParams.String()
	}
	if l.Original == nil {
		link.Original = link.Canonical
	}
	if run := l.Run; run > 0 {
		link.RunID = &run
	}
	if created := l.Created; !created.IsZero() {
		link.Created = &created
	}
	return link
}

// decide fills in what a run would do.
func decide(r *Rules, s *Standing, canonical []byte) {
	if r.counts() {
		r.decideNumber(s)
		return
	}
	if s.Code != "" {
		most := max(r.MaxRetries, codegen.DefaultRetries) // the link may have been made with more retries
		if !r.knows() {
			return
		}
		if salt := r.Scheme.SaltOf(canonical, append([]byte(r.Workspace), r.parts()...), []byte(s.Code), most); salt >= 0 {
			s.Salt = &salt
		}
		return
	}
	for i := range s.Owners {
		if o := &s.Owners[i]; o.free() {
			s.Outcome, s.Code, s.Salt = outcome.Created.String(), o.Code, &o.Salt
			return
		}
	}
	s.Outcome = outcome.CodeSpaceExhausted
	if !r.knows() {
		s.Outcome = outcome.Created.String()
	}
}

// decideNumber is decide with a counter.
func (r *Rules) decideNumber(s *Standing) {
	if i := slices.IndexFunc(s.Next, func(t Turn) bool { return t.free() }); i >= 0 {
		s.Next = s.Next[:i+1]
	}
	last := &s.Next[len(s.Next)-1]
	switch {
	case s.Code == "":
		if s.Outcome = outcome.Created.String(); last.free() && r.knows() {
			s.Code, s.Number = last.Code, &last.Number
		}
	case r.knows():
		if number, ok := r.Counter.Number([]byte(s.Code)); ok {
			n := int64(number)
			s.Number = &n
		}
	}
}
