// Package explain shows the way from a URL to its code, and back.
//
//   - [URL] shows each step: the rules that changed the URL, its canonical form, what is
//     hashed, the hash, and the code for each salt that is asked for.
//   - [Ask] looks up who has the codes of a canonical URL in a store, and says what a run
//     would do with the URL now. [Others] looks up the other links of the URL.
//   - [Code] looks up which URL a code leads to.
//
// An [Explanation] has all that is needed to compute the same in another language. Steps,
// reasons and codes come from the packages that a run uses.
package explain

import (
	"bytes"
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
	Scheme     codegen.Scheme
	Workspace  string
	MaxRetries int // highest salt; 0 is salt 0 only, unlike in pipeline.Config

	// Of link rules: the parameters of the URL, as of a run in which it has one row. A run without
	// link rules obeys them, too, in a workspace that has links with any.
	Ruled    bool // the run has link rules
	Identity rules.Identity
	Params   rules.Params
	Terms    rules.Terms // AsOf counts also without link rules: links are live then, or not
}

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
	if r.Scheme == (codegen.Scheme{}) {
		problems = append(problems, errors.New("no scheme"))
	}
	if err := codegen.CheckWorkspace([]byte(r.Workspace)); err != nil {
		problems = append(problems, fmt.Errorf("--workspace: %w: %q", err, r.Workspace))
	}
	if r.MaxRetries < 0 || r.MaxRetries > codegen.MostRetries {
		problems = append(problems, fmt.Errorf("--max-retries %d is not within 0 to %d", r.MaxRetries, codegen.MostRetries))
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
	Scheme    string        `json:"scheme,omitempty"`
	Codings   []Coding      `json:"codings,omitempty"` // one for each salt that was asked for
	Store     *Standing     `json:"store,omitempty"`
}

// A Step is a rule that changed the URL, and what it made of it.
type Step struct {
	Rule string        `json:"rule"`
	URL  manifest.Text `json:"url"`
}

// A Coding is the way from a canonical URL and a salt to a code.
type Coding struct {
	Salt      int    `json:"salt"`
	HashInput string `json:"hash_input"`
	SHA256    string `json:"sha256"`  // hexadecimal
	Integer   string `json:"integer"` // of its first 16 bytes, big-endian; decimal
	Digits    string `json:"digits"`  // of the integer in Base58, without leading zeros
	Code      string `json:"code"`
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
	e.Canonical, e.Workspace, e.Scheme = string(canonical), r.Workspace, codegen.Name
	for _, salt := range salts {
		e.Codings = append(e.Codings, coding(r, canonical, salt))
	}
	return e
}

func coding(r *Rules, canonical []byte, salt int) Coding {
	input := r.input(canonical, salt)
	h := codegen.Sum(input)
	key := h.Key()
	full, _ := codegen.New(codegen.MaxDigits) // pads; the digits themselves have no leading zeros
	return Coding{
		Salt: salt, HashInput: string(input), SHA256: fmt.Sprintf("%x", sha256.Sum256(input)),
		Integer: new(big.Int).SetBytes(key[:]).String(),
		Digits:  strings.TrimLeft(string(full.AppendCode(nil, h)), codegen.Alphabet[:1]),
		Code:    string(r.Scheme.AppendCode(nil, h)),
	}
}

// A Standing is how a URL stands in a store.
type Standing struct {
	// Owners of the codes of salt 0 to Salt; if all are taken, to Rules.MaxRetries; none if no
	// salt gives the code of the existing link.
	Owners []Owner `json:"owners"`
	// What a run would do now: "existing", "created" or, if it would reject the URL, the reason:
	// "code_space_exhausted" if all codes are taken, or "drifted" or "other_owner" because of the
	// existing link.
	Outcome string `json:"outcome"`
	Change  string `json:"change,omitempty"`  // of package rules: what the run would do with the existing link
	Differs string `json:"differs,omitempty"` // the columns in which the existing link has other parameters, if it keeps them
	Code    string `json:"code,omitempty"`
	Salt    *int   `json:"salt,omitempty"`   // nil: none gives the code
	RunID   *int32 `json:"run_id,omitempty"` // that made the existing link
	Life    *Life  `json:"rules,omitempty"`  // of the existing link; nil: it has nothing beyond its URL
	// The other links of the URL, see Others: those of other identities, and further codes that were
	// kept from another shortener.
	Links   []Link `json:"links,omitempty"`
	Aliases []Link `json:"aliases,omitempty"`
}

// An Owner is the URL that has the code of a salt.
type Owner struct {
	Salt  int    `json:"salt"`
	Code  string `json:"code"`
	Owner string `json:"owner,omitempty"` // canonical URL; "": nobody
	Alias bool   `json:"alias,omitempty"` // the code is an alias of that URL
	Other bool   `json:"other,omitempty"` // it is that of another link of the URL that is asked for
	RunID *int32 `json:"run_id,omitempty"`
}

// Ask looks up the codes of a canonical URL. Nothing is locked: the answer is true at one
// moment. The error is that of Validate, or of the session.
func Ask(ctx context.Context, r *Rules, session sink.Session, canonical string) (*Standing, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	flagged, err := session.Rules(ctx, []string{r.Workspace})
	if err != nil && (r.Ruled || !errors.Is(err, sink.ErrOldTables)) {
		return nil, err
	}
	ruled := r.Ruled || flagged[r.Workspace]
	s := &Standing{}
	var own sink.Key
	byCode := map[string][]int{} // short codes of several salts may be the same
	for salt := range r.MaxRetries + 1 {
		h := codegen.Sum(r.input([]byte(canonical), salt))
		if salt == 0 {
			own = h.Key()
		}
		code := string(r.Scheme.AppendCode(nil, h))
		s.Owners = append(s.Owners, Owner{Salt: salt, Code: code})
		byCode[code] = append(byCode[code], salt)
	}
	probes := make([]sink.Probe, 0, len(byCode))
	for code := range byCode {
		p := sink.Probe{Workspace: []byte(r.Workspace), Code: []byte(code), WantRun: true, WantRules: true}
		if code == s.Owners[0].Code {
			p.Key, p.Canonical = own, []byte(canonical)
		}
		probes = append(probes, p)
	}
	slices.SortFunc(probes, func(a, b sink.Probe) int { return bytes.Compare(a.Code, b.Code) })
	err = session.Lookup(ctx, probes, func(f sink.Found) error {
		owner, run := string(f.Canonical), f.Run
		if f.Same {
			owner = canonical
			s.Outcome, s.Code, s.RunID, s.Life = outcome.Existing.String(), string(f.Code), &run, r.lifeOf(f.Rules)
			if ruled && f.Rules != nil {
				r.judge(s, f.Rules)
			}
		}
		for _, salt := range byCode[string(f.Code)] {
			o := &s.Owners[salt]
			o.Owner, o.RunID, o.Alias = owner, &run, f.Alias
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range s.Owners {
		o := &s.Owners[i]
		o.Other = o.Owner == canonical && !o.Alias && o.Code != s.Code
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

// Others looks up the links of a canonical URL whose identity is another one than that of the rules,
// and the aliases of the URL, in the order of their codes. The error is that of the store.
func Others(ctx context.Context, r *Rules, store sink.Store, canonical string) (links, aliases []Link, err error) {
	url := codegen.Sum(codegen.AppendInput(nil, []byte(canonical), []byte(r.Workspace), 0)).Key()
	own := codegen.Sum(r.input([]byte(canonical), 0)).Key()
	err = store.OfURL(ctx, r.Workspace, url, func(l *sink.Stored) error {
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
	Kept      bool       `json:"kept,omitempty"`       // the code of the link is none that a salt up to the retries gives: it was kept, or another program made it
	LinkCode  string     `json:"link_code,omitempty"`  // of an alias: the code of the URL's link; "": it has none
	Identity  string     `json:"identity,omitempty"`   // params or row (package rules), if the identity of the link is more than its URL
	Life      *Life      `json:"rules,omitempty"`      // nil: the link has nothing beyond its URL
}

// Code looks up the link that has a code in a workspace. Nothing is locked: the answer is true
// at one moment. Of the rules only the workspace, the retries and Terms.AsOf count. The error is that
// of the store, or of the session.
func Code(ctx context.Context, r *Rules, store sink.Store, session sink.Session, code string) (*Link, error) {
	link := &Link{Code: code, Workspace: r.Workspace}
	var key sink.Key
	err := store.Find(ctx, r.Workspace, code, func(l *sink.Stored) error {
		link, key = r.linkOf(l), l.Base
		link.Kept = link.Identity == "" && codegen.SaltOf(l.Canonical, l.Workspace, l.Code, max(r.MaxRetries, codegen.DefaultRetries)) < 0
		return nil
	})
	if err != nil || !link.Alias {
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

func (r *Rules) linkOf(l *sink.Stored) *Link {
	link := &Link{Code: string(l.Code), Workspace: string(l.Workspace), Found: true, Canonical: string(l.Canonical), Original: string(l.Original), Alias: l.Alias, Life: r.lifeOf(l.Rules)}
	if l.Base != (sink.Key{}) && !l.Alias {
		link.Identity = rules.ByParams.String()
		if len(l.Rules.Ref) > 0 {
			link.Identity = rules.ByRow.String()
		}
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
	if s.Code != "" {
		most := max(r.MaxRetries, codegen.DefaultRetries) // the link may have been made with more retries
		if salt := codegen.SaltOf(canonical, append([]byte(r.Workspace), r.parts()...), []byte(s.Code), most); salt >= 0 {
			s.Salt = &salt
		}
		return
	}
	for i := range s.Owners {
		if o := &s.Owners[i]; o.Owner == "" {
			s.Outcome, s.Code, s.Salt = outcome.Created.String(), o.Code, &o.Salt
			return
		}
	}
	s.Outcome = outcome.CodeSpaceExhausted
}
