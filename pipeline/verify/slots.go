package verify

import (
	"bytes"
	"strconv"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
)

// A slotChecker checks all claims, one code after the other. There may be very many claims on
// a code; of these it keeps only the holder and the last line of collisions.csv.
type slotChecker struct {
	*verifier
	links  *linkCursor
	wanted *extsort.Writer // of codes whose owners must be in the store; nil: it is not looked at

	known     bool // there is a code in hand
	group     uint32
	workspace string
	code      []byte
	holder    *claim // the link that has it; nil: none of the mapping, so far
	line      claim  // the last of collisions.csv, if no link has asked for it yet; of row 0: none
	elsewhere []byte // the URL of the last link that has another code
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
	s.code, s.elsewhere = append(s.code[:0], code...), s.elsewhere[:0]
	s.holder, err = s.first()
	return err
}

// first returns the link of salt 0 that has the code in hand; nil: none.
func (s *slotChecker) first() (*claim, error) {
	found, err := s.links.seek(s.workspace, s.code)
	if err != nil || !found {
		return nil, err
	}
	l := s.links.at
	holder := &claim{created: l.Outcome == outcome.Created, row: l.Number, canonical: bytes.Clone(l.Canonical)}
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
	switch {
	case c.what == holds && s.holder == nil:
		s.holder = &claim{created: c.created, row: c.row, canonical: bytes.Clone(c.canonical)}
	case c.what == holds:
		s.shared(max(c.row, s.holder.row))
	case c.what == line:
		s.addLine(c)
		s.checkOwner(c)
	case c.what == needs:
		s.findLine(c)
		if c.created && s.before(c) {
			s.fault(s.run.mapping, s.holder.row).wrong(BadPrecedence, "short_code", string(c.canonical), string(s.holder.canonical))
		}
	case c.what == elsewhere:
		s.elsewhere = append(s.elsewhere[:0], c.canonical...)
	case c.what == refused:
		s.checkRefused(c)
	}
}

// before reports whether the URL of a claim has a better right to the code than its holder,
// because it sorts first.
func (s *slotChecker) before(c *claim) bool {
	return s.holder != nil && s.holder.created && bytes.Compare(s.holder.canonical, c.canonical) > 0
}

func (s *slotChecker) shared(row int64) {
	s.fault(s.run.mapping, row).wrong(CodeShared, "short_code", "a code of its own", string(s.code))
}

// addLine makes a line the last.
func (s *slotChecker) addLine(c *claim) {
	if s.isLine(c) {
		s.fault(manifest.CollisionsName, max(c.row, s.line.row)).wrong(BadCollision, "", "one line for each code", string(c.canonical))
		return
	}
	s.closeLine()
	s.line = claim{row: c.row, salt: c.salt, canonical: append(s.line.canonical[:0], c.canonical...)}
}

// isLine reports whether the last line is that of a URL and salt.
func (s *slotChecker) isLine(c *claim) bool {
	return s.line.row > 0 && s.line.salt == c.salt && bytes.Equal(s.line.canonical, c.canonical)
}

// findLine finds the line of a link that needs it.
func (s *slotChecker) findLine(c *claim) {
	if s.isLine(c) {
		s.line.row = 0
		return
	}
	s.fault(s.run.mapping, c.row).wrong(Uncollided, "salt", "a line of "+manifest.CollisionsName+" for "+string(s.code), "")
}

// closeLine makes a finding of the last line if no link has asked for it.
func (s *slotChecker) closeLine() {
	if s.line.row > 0 {
		s.fault(manifest.CollisionsName, s.line.row).wrong(BadCollision, "canonical_url",
			"a link of the mapping with a salt above "+saltText(s.line.salt), string(s.line.canonical))
	}
	s.line.row = 0
}

// checkRefused checks a reject that found the code taken. Its URL must have no link, as far
// as the claims on its code of salt 0 tell.
func (s *slotChecker) checkRefused(c *claim) {
	here := s.fault(manifest.RejectsName, c.row)
	if s.holder == nil && s.wanted != nil {
		file(s.wanted, s.group, &claim{what: refused, row: c.row, code: s.code, canonical: c.canonical})
	}
	if s.before(c) {
		here.wrong(BadPrecedence, "reason", "a URL before "+string(c.canonical)+" as owner of "+string(s.code), string(s.holder.canonical))
	}
	if c.salt == 0 && (bytes.Equal(s.elsewhere, c.canonical) || s.holder != nil && bytes.Equal(s.holder.canonical, c.canonical)) {
		here.wrong(BadReason, "reason", "no link of "+string(c.canonical), outcome.CodeSpaceExhausted)
	}
}

// checkOwner checks the owner that a line of collisions.csv names. If the mapping has the
// holder of the code, that is the owner. If not, the owner must be a canonical URL that can
// have the code; only the store can tell whether it has. Without the store, an owner that
// gets the code by a salt above those of the run is a doubt: a run with more retries may have
// made it.
func (s *slotChecker) checkOwner(c *claim) {
	here, owner := s.fault(manifest.CollisionsName, c.row), string(c.owner)
	if s.holder != nil {
		if owner != string(s.holder.canonical) {
			here.wrong(BadOwner, "owner", string(s.holder.canonical), owner)
		}
		return
	}
	form, _ := lenient.Append(nil, c.owner) // nil if it is refused
	can := func(most int) bool {
		return bytes.Equal(form, c.owner) && !bytes.Equal(c.owner, c.canonical) && codegen.SaltOf(c.owner, []byte(s.workspace), s.code, most) >= 0
	}
	doubt := s.doubt(manifest.CollisionsName, c.row)
	switch {
	case owner != "" && !can(max(s.run.mostSalt, saltOfAny)):
		here.wrong(BadOwner, "owner", "a canonical URL that can have "+string(s.code), owner)
	case s.wanted != nil:
		file(s.wanted, s.group, &claim{what: line, row: c.row, code: s.code, canonical: c.owner})
	case owner == "":
		doubt.wrong(Unexplained, "owner", "an owner of "+string(s.code), "")
	case !can(s.run.mostSalt):
		doubt.wrong(Unexplained, "owner", "a URL that can have "+string(s.code)+" by a salt up to "+strconv.Itoa(s.run.mostSalt), owner)
	}
}
