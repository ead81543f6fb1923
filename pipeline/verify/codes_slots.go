package verify

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
)

// A slotChecker checks all claims, one code after the other. There may be very many claims on
// a code; of these it keeps only the holder and the last line of collisions.csv.
type slotChecker struct {
	findings *findings
	run      *run
	groups   *groups
	version  string // of this program
	created  bool   // the run created all links of which no row has the code
	links    *linkCursor
	wanted   *extsort.Writer // of codes whose owners must be in the store; nil: it is not looked at

	known     bool // there is a code in hand
	group     uint32
	workspace string
	code      []byte
	holder    *claim // the link that has it; nil: none of the mapping, so far
	line      claim  // the last of collisions.csv, if its link has not asked for it yet; of row 0: none
	elsewhere claim  // the last link that has another code; another claim: there is none

	// If legacy codes are kept. All links have claims then, and there is no cursor over them.
	twins legacy.Twins
}

// claim checks the next claim.
func (s *slotChecker) claim(group uint32, rec []byte) error {
	c := decodeClaim(rec)
	if !s.known || group != s.group || !bytes.Equal(c.code, s.code) {
		if err := s.turn(group, c.code); err != nil {
			return err
		}
	}
	s.check(&c)
	return nil
}

// turn begins with another code.
func (s *slotChecker) turn(group uint32, code []byte) (err error) {
	s.closeLine()
	s.known, s.group, s.workspace = true, group, s.groups.name(group)
	s.code, s.elsewhere.what = append(s.code[:0], code...), holds
	if s.holder = nil; s.run.allClaim() {
		return nil
	}
	s.holder, err = s.first()
	return err
}

// first returns the link of salt 0 that has the code in hand; nil: none.
func (s *slotChecker) first() (*claim, error) {
	found, err := s.links.seek(s.workspace, s.code)
	if err != nil || !found {
		return nil, err
	}
	l := &s.links.row // derived from that in hand
	holder := &claim{created: l.Outcome == outcome.Created, row: l.Number, canonical: bytes.Clone(l.Canonical), parts: bytes.Clone(l.parts)}
	for {
		if err := s.links.next(); err != nil {
			return nil, err
		}
		if found, err = s.links.seek(s.workspace, s.code); err != nil || !found {
			return holder, err
		}
		s.shared(s.links.at.Number)
	}
}

// check checks a claim on the code in hand.
func (s *slotChecker) check(c *claim) {
	if c.flags&bare != 0 && s.created {
		c.created = true // as all of them
	}
	if c.flags&ownCode != 0 && !s.run.ruling.ruled || c.what >= lost {
		s.twins.Add(s.group, c.code)
	}
	switch {
	case c.what == holds && s.run.codes.mode.Keeps():
		s.hold(c)
	case c.what == holds && s.holder == nil:
		s.holder = &claim{created: c.created, row: c.row, canonical: bytes.Clone(c.canonical), parts: bytes.Clone(c.parts)}
	case c.what == holds:
		s.shared(max(c.row, s.holder.row))
	case c.what == line:
		if s.addLine(c); !isStandIn(c.code) {
			s.checkOwner(c)
		}
	case c.what == ownerOnly:
		s.checkOwner(c)
	case c.what == needs:
		s.findLine(c)
		if c.created && s.before(c) {
			s.findings.fault(s.run.mapping, s.holder.row).wrong(BadPrecedence, "short_code", string(c.canonical), string(s.holder.canonical))
		}
	case c.what == elsewhere:
		s.elsewhere = claim{what: elsewhere, canonical: append(s.elsewhere.canonical[:0], c.canonical...), parts: append(s.elsewhere.parts[:0], c.parts...)}
	case c.what == refused || c.what == full:
		s.checkRefused(c)
	case c.what == lost || c.what == taken:
		s.checkLost(c)
	}
}

// hold makes a link of a run that keeps legacy codes the holder.
func (s *slotChecker) hold(c *claim) {
	if s.holder != nil {
		s.shared(max(c.row, s.holder.row))
		return
	}
	h := *c
	h.code, h.canonical, h.parts, h.owner = bytes.Clone(c.code), bytes.Clone(c.canonical), bytes.Clone(c.parts), nil
	s.holder = &h
}

// checkLost checks a row whose legacy code is another URL's: of one that has it in the store, or
// else of the smallest that claims it.
func (s *slotChecker) checkLost(c *claim) {
	name, column, kind := s.run.mapping, "legacy_code", BadLegacy
	if c.what == taken || c.flags&isReject != 0 {
		name, column, kind = manifest.RejectsName, "reason", BadReason
	}
	here, h := s.findings.fault(name, c.row), s.holder
	told := func(owner []byte) bool {
		return string(c.owner) == outcome.CodeTakenDetail(c.code, owner, c.canonical) || s.version != s.run.manifest.Version
	}
	switch {
	case h == nil:
		if begin := outcome.CodeTakenDetail(c.code, nil, []byte{0}); c.what == taken && (!bytes.HasPrefix(c.owner, []byte(begin)) || !s.run.ruling.ruled && told(c.canonical)) && s.version == s.run.manifest.Version {
			here.wrong(BadDetail, "detail", begin+"another URL", string(c.owner))
		}
		if s.wanted != nil {
			file(s.wanted, s.group, c)
		}
	case h.compareIdentities(c) == 0:
		here.wrong(kind, column, "a code of another URL", string(c.code))
	case h.created && (h.flags&ownCode == 0 || h.compareIdentities(c) > 0):
		here.wrong(BadPrecedence, column, "a URL before "+string(c.canonical)+" as owner of "+string(c.code), string(h.canonical))
	case c.what == taken && !told(h.canonical):
		here.wrong(BadDetail, "detail", outcome.CodeTakenDetail(c.code, h.canonical, c.canonical), string(c.owner))
	}
}

// before reports whether the URL of a claim has a better right to the code than its holder,
// because it sorts first.
func (s *slotChecker) before(c *claim) bool {
	return s.holder != nil && s.holder.created && s.holder.flags&ownCode == 0 && s.holder.compareIdentities(c) > 0
}

func (s *slotChecker) shared(row int64) {
	s.findings.fault(s.run.mapping, row).wrong(CodeShared, "short_code", "a code of its own", string(s.code))
}

// addLine makes a line the last.
func (s *slotChecker) addLine(c *claim) {
	if s.isLine(c) {
		s.findings.fault(manifest.CollisionsName, max(c.row, s.line.row)).wrong(BadCollision, "", "one line for each code", string(c.canonical))
		return
	}
	s.closeLine()
	s.line = claim{row: c.row, salt: c.salt, canonical: append(s.line.canonical[:0], c.canonical...), parts: append(s.line.parts[:0], c.parts...)}
}

// isLine reports whether the last line is that of an identity and salt.
func (s *slotChecker) isLine(c *claim) bool {
	return s.line.row > 0 && s.line.salt == c.salt && s.line.compareIdentities(c) == 0
}

// findLine finds the line of a link that needs it.
func (s *slotChecker) findLine(c *claim) {
	if s.isLine(c) {
		s.line.row = 0
		return
	}
	s.findings.fault(s.run.mapping, c.row).wrong(Uncollided, "salt", "a line of "+manifest.CollisionsName+" for "+codeText(s.code, c.salt), "")
}

// closeLine makes a finding of the last line if no link has asked for it.
func (s *slotChecker) closeLine() {
	if s.line.row > 0 {
		s.findings.fault(manifest.CollisionsName, s.line.row).wrong(BadCollision, "canonical_url",
			"a link of the mapping with a salt above "+saltText(s.line.salt), string(s.line.canonical))
	}
	s.line.row = 0
}

// checkRefused checks a reject that found the code taken. Its URL must have no link, as far
// as the claims on its code of salt 0 tell.
func (s *slotChecker) checkRefused(c *claim) {
	name, column := manifest.RejectsName, "reason"
	if c.what == full {
		name, column = s.run.mapping, "short_code"
	}
	here := s.findings.fault(name, c.row)
	if s.holder == nil && s.wanted != nil && !isStandIn(s.code) && s.run.coding.maker.Word(s.code) == "" {
		file(s.wanted, s.group, &claim{what: c.what, row: c.row, code: s.code, canonical: c.canonical, parts: c.parts})
	}
	if s.before(c) {
		here.wrong(BadPrecedence, column, "a URL before "+string(c.canonical)+" as owner of "+string(s.code), string(s.holder.canonical))
	}
	isElsewhere := s.elsewhere.what == elsewhere && s.elsewhere.compareIdentities(c) == 0
	if c.what == refused && c.salt == 0 && (isElsewhere || s.holder != nil && s.holder.flags&isAlias == 0 && s.holder.compareIdentities(c) == 0) {
		here.wrong(BadReason, "reason", "no link of "+string(c.canonical), outcome.CodeSpaceExhausted)
	}
}

// checkOwner checks the owner that a line of collisions.csv names. If the mapping has the
// holder of the code, that is the owner. If not, the owner must be a canonical URL, and only
// the store can tell whether it has the code. Without the store, an owner that does not get
// the code by a salt of the run is a doubt: a run with more retries may have made it, or one
// that kept the code.
func (s *slotChecker) checkOwner(c *claim) {
	if s.checkBlocked(c) {
		return
	}
	here, owner := s.findings.fault(manifest.CollisionsName, c.row), string(c.owner)
	if s.holder != nil {
		if owner != string(s.holder.canonical) {
			here.wrong(BadOwner, "owner", string(s.holder.canonical), owner)
		}
		return
	}
	form, _ := lenient(s.run.terms.URLs).Append(nil, c.owner) // nil if it is refused
	can := func(most int) bool {
		return bytes.Equal(form, c.owner) && !bytes.Equal(c.owner, c.canonical) && (!s.run.coding.known || s.run.coding.maker.SaltOf(c.owner, []byte(s.workspace), s.code, most) >= 0)
	}
	doubt := s.findings.doubt(manifest.CollisionsName, c.row)
	switch {
	case owner != "" && !bytes.Equal(form, c.owner): // any other may have any code, as a kept one
		here.wrong(BadOwner, "owner", "a canonical URL", owner)
	case s.wanted != nil:
		file(s.wanted, s.group, &claim{what: line, row: c.row, code: s.code, canonical: c.owner})
	case owner == "":
		doubt.wrong(Unexplained, "owner", "an owner of "+string(s.code), "")
	case !can(s.run.mostSalt):
		doubt.wrong(Unexplained, "owner", "a URL that can have "+string(s.code)+" by a salt up to "+strconv.Itoa(s.run.mostSalt), owner)
	}
}

// checkBlocked checks the owner of a code that contains a word of the blocklist, or that is said to
// do so, and reports whether there is nothing else to check. Without the words it is believed, if the
// code contains that word and no link that the run made has the code.
func (s *slotChecker) checkBlocked(c *claim) (done bool) {
	here, owner := s.findings.fault(manifest.CollisionsName, c.row), string(c.owner)
	word, says := strings.CutPrefix(owner, outcome.BlockedBy)
	switch want := s.run.coding.maker.Word(c.code); {
	case s.run.manifest.Scheme.Blocklist == "" && says:
		here.wrong(BadOwner, "owner", "a canonical URL", owner)
	case s.run.coding.listed && want != "" && owner != outcome.BlockedBy+want:
		here.wrong(BadOwner, "owner", outcome.BlockedBy+want, owner)
	case s.run.coding.listed && want == "" && says:
		here.wrong(BadOwner, "owner", "a canonical URL: the code contains no word of the blocklist", owner)
	case s.run.coding.listed:
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
