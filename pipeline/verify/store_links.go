package verify

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// lenient returns the profile that rejects least and has the same forms as p: other runs may have
// had other options.
func lenient(p canon.Profile) canon.Profile {
	p.KeepUserinfo, p.MaxLength = true, 0
	return p
}

// saltOfAny is the highest salt that is tried to explain a link that only the store has. A
// run with more retries may have made it.
const saltOfAny = 1000

// A linkChecker checks single links of the store, for one goroutine.
type linkChecker struct {
	findings *findings
	run      *run
	runs     *storeRuns
	schemes  *schemes
	codes    *coder
	groups   *grouper
	sums     linkSummer
	low      *extsort.Writer
	aliases  *extsort.Writer

	since   Since
	created uint64 // sum of the links of the run
	aliased bool   // there was an alias
	checked string // the last workspace whose scheme was compared
	of      string // the workspace that scheme is of; "": none yet
	scheme  codegen.Scheme
	makes   bool // codes of scheme can be made
	canon   []byte
	text    []byte
}

// check checks a link, which has this number in the store's order.
func (c *linkChecker) check(l *sink.Stored, number int64) {
	here := c.findings.fault(storeName, number).of(l.Workspace, l.Code)
	parts, known := partsOf(l)
	h := c.checkKeys(here, l, parts, known, number)
	c.checkCanonical(here, l)
	if run, ok := c.runs.byID[l.Run]; ok && l.Run != c.runs.ours && !run.KeepCreated && !l.Created.Equal(run.AsOf) {
		here.wrong(StoreRun, "created_at", "as_of of run "+fmt.Sprint(l.Run)+", "+timeText(run.AsOf), timeText(l.Created))
	}
	if l.Run == c.runs.ours {
		if c.since.see(l, c.runs.ours); string(l.Workspace) != c.checked {
			c.checked = string(l.Workspace)
			c.schemes.check(c.checked)
		}
		c.text = c.run.hasAs(c.text[:0], l)
		c.created += c.sums.sum(l.Workspace, l.Code, l.Canonical, c.text, l.Alias)
	}
	if string(l.Workspace) != c.of {
		c.of = string(l.Workspace)
		c.scheme, c.makes = c.schemes.of(c.of)
	}
	if !l.Alias && known && c.makes {
		c.checkCode(here, l, h, parts, number)
	}
}

// checkKeys checks the keys of a link, whose identity has these parts if they are known, and returns
// the hash of the identity. Aliases it files.
func (c *linkChecker) checkKeys(here spot, l *sink.Stored, parts []byte, known bool, number int64) codegen.Hash {
	h := c.codes.hash(l.Canonical, l.Workspace, nil, 0)
	key := h.Key()
	if base := key; (l.Alias || l.Base != sink.Key{}) && l.Base != base {
		here.wrong(StoreKey, "base_key", fmt.Sprintf("%x", base), fmt.Sprintf("%x", l.Base))
	}
	switch {
	case l.Alias:
		c.aliased = true
		parts, possible := c.partsOfAlias(l)
		of := c.codes.hash(l.Canonical, l.Workspace, parts, 0).Key()
		fileKey(c.aliases, c.groups.id(l.Workspace), of, append(binary.AppendUvarint([]byte{1}, uint64(number)), l.Code...))
		if key = l.Key; !possible {
			key = c.aliasKey(l, parts)
		}
	case !known:
		key = l.Key
	case len(parts) > 0:
		h = c.codes.hash(l.Canonical, l.Workspace, parts, 0)
		key = h.Key()
	}
	if key != l.Key {
		here.wrong(StoreKey, "url_key", fmt.Sprintf("%x", key), fmt.Sprintf("%x", l.Key))
	}
	return h
}

// partsOfAlias returns the parts of the identity of an alias that make its key, if what the store has of
// it tells them. Else its key is possible only where links have rules: an expiry may have been reckoned, or
// changed.
func (c *linkChecker) partsOfAlias(l *sink.Stored) (parts []byte, possible bool) {
	cells := storedCells(rulesOf(l))
	has := linkOf(&cells)
	p := rules.Params{Expiry: has.Expiry, Limit: has.Limit, Ref: rulesOf(l).Ref}
	parts, _, possible = rules.PartsThat(&p, func(parts []byte) bool { return l.Key == c.aliasKey(l, parts) })
	return parts, possible || c.runs.ruled[string(l.Workspace)]
}

// aliasKey returns the url_key of an alias whose identity has these parts.
func (c *linkChecker) aliasKey(l *sink.Stored, parts []byte) sink.Key {
	c.text = codegen.AppendAlias(c.text[:0], l.Canonical, l.Workspace, parts, l.Code)
	return codegen.Sum(c.text).Key()
}

// checkCanonical checks that the canonical URL of a link is that of its original one.
func (c *linkChecker) checkCanonical(here spot, l *sink.Stored) {
	original := l.Original
	if original == nil {
		original = l.Canonical
	}
	profile, ok := c.runs.profiles[string(l.Workspace)]
	if !ok {
		profile = lenient(canon.Profile{})
	}
	var err error
	if c.canon, err = profile.Append(c.canon[:0], original); err == canon.TooLong && len(original) > 1<<16 {
		// Escaped bytes have made it longer than any input.
		c.canon, err = profile.Append(c.canon[:0], l.Canonical)
	}
	if err != nil || !bytes.Equal(c.canon, l.Canonical) {
		here.wrong(StoreCanonical, "canonical_url", string(c.canon), string(l.Canonical))
	}
}

// checkCode checks that a salt gives the code of a link, whose identity has this hash at salt 0, and
// files the codes that it could not have.
func (c *linkChecker) checkCode(here spot, l *sink.Stored, h codegen.Hash, parts []byte, number int64) {
	scheme := c.scheme
	if scheme.Keyed() {
		c.text = codegen.AppendIdentity(c.text[:0], l.Canonical, l.Workspace, parts, 0)
		h = scheme.Sum(c.text)
	}
	if c.text = scheme.AppendCode(c.text[:0], h); bytes.Equal(c.text, l.Code) {
		return
	}
	most, kept := max(c.run.mostSalt, saltOfAny), c.mayKeep(l.Run)
	switch {
	case kept && l.Run == c.runs.ours && len(l.Code) != c.run.coding.length:
		return
	case kept && l.Run == c.runs.ours:
		most = c.run.retries
	case kept: // or made with more retries
		most = c.run.mostSalt
	}
	salt := scheme.SaltOf(l.Canonical, slices.Concat(l.Workspace, parts), l.Code, most)
	if salt < 0 && !kept {
		here.wrong(StoreCode, "short_code", "a code of its URL", string(l.Code))
	}
	if !c.run.coding.listed { // they may be blocked
		return
	}
	scheme, err := scheme.WithLength(len(l.Code))
	for s := 0; s < salt && err == nil; s++ {
		c.text = codegen.AppendIdentity(c.text[:0], l.Canonical, l.Workspace, parts, s)
		code := scheme.AppendCode(nil, scheme.Sum(c.text))
		if c.run.coding.maker.Word(code) != "" {
			continue
		}
		file(c.low, c.groups.id(l.Workspace), &claim{what: needs, salt: s, row: number, code: code, canonical: l.Canonical})
	}
}

// mayKeep reports whether a run may have kept a code that no salt gives. The store does not tell
// of other runs whether they kept any.
func (c *linkChecker) mayKeep(run int32) bool {
	_, known := c.runs.byID[run]
	return known && (run != c.runs.ours || c.run.codes.mode.Keeps())
}

// schemes compares the schemes of the workspaces of a store. It is safe for concurrent use.
type schemes struct {
	findings *findings
	run      *run
	runs     *storeRuns
	seen     sync.Map // workspaces whose scheme was compared
}

// of returns the scheme of the links in a workspace of the store. If known is false their codes
// cannot be made again.
func (s *schemes) of(workspace string) (scheme codegen.Scheme, known bool) {
	stored := s.runs.scheme(workspace)
	if stored == s.run.stored() {
		return s.run.coding.maker.Scheme, s.run.coding.hashes()
	}
	spec, err := codegen.SpecOf(stored.Name)
	if err != nil || spec.Secret {
		return codegen.Scheme{}, false
	}
	scheme, _, err = codegen.Choice{Name: stored.Name}.Make()
	return scheme, err == nil
}

// scheme returns that of a workspace.
func (r *storeRuns) scheme(workspace string) sink.Scheme {
	return cmp.Or(r.schemes[workspace], sink.Scheme{Name: codegen.Name})
}

// check checks that a workspace of the store in which there are links of the mapping has the
// scheme of the run. It can be called more than once.
func (s *schemes) check(workspace string) {
	if _, again := s.seen.LoadOrStore(workspace, true); again {
		return
	}
	if want, got := s.run.stored(), s.runs.scheme(workspace); want != got {
		s.findings.fault(storeName, 0).wrong(StoreScheme, "scheme", schemeText(want)+", in workspace "+workspace, schemeText(got))
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
	if s.Fold {
		text += ", folding case"
	}
	if spec, err := codegen.SpecOf(s.Name); err != nil || spec.Secret {
		text += ", secret " + cmp.Or(s.Fingerprint, "none")
	}
	return text
}
