package audit

import (
	"bytes"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/report"
)

// A slotChecker goes over the codes that claims are about, one after the other.
type slotChecker struct {
	*verifier
	links  *linkCursor
	wanted *extsort.Writer // of codes whose owners must be in the store; nil: it is not looked at

	group  uint32
	code   []byte
	claims []claim // of that code; nil: none so far
}

// bucket adds the claims of a bucket. A code may go on in the next one.
func (s *slotChecker) bucket(b *extsort.Bucket) error {
	for i := range b.Len() {
		c := decodeClaim(b.Record(i))
		if len(s.claims) > 0 && (b.Group(i) != s.group || !bytes.Equal(c.code, s.code)) {
			if err := s.close(); err != nil {
				return err
			}
		}
		s.group, s.code = b.Group(i), append(s.code[:0], c.code...)
		c.code, c.canonical, c.owner = nil, bytes.Clone(c.canonical), bytes.Clone(c.owner)
		s.claims = append(s.claims, c)
	}
	return nil
}

// close checks the claims of the code in hand. They come by kind, lines before the
// links that need them.
func (s *slotChecker) close() error {
	if len(s.claims) == 0 {
		return nil
	}
	defer func() { s.claims = s.claims[:0] }()
	workspace := s.groups.name(s.group)
	holder, err := s.holder(workspace)
	if err != nil {
		return err
	}
	for i := range s.claims {
		switch c := &s.claims[i]; {
		case c.what != holds:
		case holder == nil:
			holder = c
		default:
			s.shared(max(c.row, holder.row))
		}
	}
	s.matchLines()
	var linked map[string]bool // nil until it is needed, as it rarely is
	for i := range s.claims {
		c := &s.claims[i]
		s.check(c, holder, workspace)
		if c.what != refused || c.salt != 0 {
			continue
		}
		if linked == nil {
			linked = s.linked(holder)
		}
		if linked[string(c.canonical)] {
			s.log.add(Finding{Kind: BadReason, File: report.RejectsName, Row: c.row, Column: "reason",
				Expected: "no link of " + report.Text(c.canonical), Found: report.CodeSpaceExhausted})
		}
	}
	return nil
}

// holder returns the link of salt 0 that has the code in hand; nil: none.
func (s *slotChecker) holder(workspace string) (*claim, error) {
	found, err := s.links.seek(workspace, s.code)
	if err != nil || !found {
		return nil, err
	}
	l := s.links.at
	holder := &claim{created: l.Outcome == report.Created, row: l.Number, canonical: bytes.Clone(l.Canonical)}
	for {
		if err := s.links.next(); err != nil {
			return nil, err
		}
		if found, err = s.links.seek(workspace, s.code); err != nil || !found {
			return holder, err
		}
		s.shared(s.links.at.Number)
	}
}

// linked returns the URLs whose code of salt 0 is the one in hand and that have a
// link, as far as claims and their holder tell.
func (s *slotChecker) linked(holder *claim) map[string]bool {
	urls := map[string]bool{}
	if holder != nil {
		urls[string(holder.canonical)] = true
	}
	for i := range s.claims {
		if c := &s.claims[i]; c.what == elsewhere {
			urls[string(c.canonical)] = true
		}
	}
	return urls
}

func (s *slotChecker) shared(row int64) {
	s.log.add(Finding{Kind: CodeShared, File: s.mapping, Row: row, Column: "short_code", Expected: "a code of its own", Found: report.Text(s.code)})
}

// matchLines finds for each link that needs a line its line, and the reverse.
func (s *slotChecker) matchLines() {
	type match struct {
		canonical string
		salt      int
	}
	open := map[match]int64{}
	for i := range s.claims {
		c := &s.claims[i]
		key := match{string(c.canonical), c.salt}
		switch row, ok := open[key]; {
		case c.what == line && ok:
			s.log.add(Finding{Kind: BadCollision, File: report.CollisionsName, Row: max(c.row, row), Expected: "one line a code", Found: report.Text(c.canonical)})
		case c.what == line:
			open[key] = c.row
		case c.what == needs && !ok:
			s.log.add(Finding{Kind: Uncollided, File: s.mapping, Row: c.row, Column: "salt",
				Expected: report.Text("a line of " + report.CollisionsName + " for " + string(s.code))})
		case c.what == needs:
			delete(open, key)
		}
	}
	for key, row := range open {
		s.log.add(Finding{Kind: BadCollision, File: report.CollisionsName, Row: row, Column: "canonical_url",
			Expected: "a link of the mapping with a salt above " + report.Text(saltText(key.salt)), Found: report.Text(key.canonical)})
	}
}

// check checks a claim against the link that has the code; nil: none of the
// mapping.
func (s *slotChecker) check(c, holder *claim, workspace string) {
	switch {
	case c.what == line:
		s.checkOwner(c, holder, workspace)
	case c.what == refused && holder == nil && s.wanted != nil:
		s.file(s.wanted, []byte(workspace), &claim{what: refused, row: c.row, code: s.code, canonical: c.canonical})
	case c.what == holds || c.what == elsewhere || holder == nil || !holder.created:
	case c.what == needs && c.created && bytes.Compare(holder.canonical, c.canonical) > 0:
		s.log.add(Finding{Kind: BadPrecedence, File: s.mapping, Row: holder.row, Column: "short_code",
			Expected: report.Text(c.canonical), Found: report.Text(holder.canonical)})
	case c.what == refused && bytes.Compare(holder.canonical, c.canonical) > 0:
		s.log.add(Finding{Kind: BadPrecedence, File: report.RejectsName, Row: c.row, Column: "reason",
			Expected: "a URL before " + report.Text(c.canonical) + " as owner of " + report.Text(s.code), Found: report.Text(holder.canonical)})
	}
}

// checkOwner checks the owner in a line of collisions.csv. One that the mapping
// does not have must at least be able to have the code; that it has it, the store
// can tell.
func (s *slotChecker) checkOwner(c, holder *claim, workspace string) {
	f := Finding{Kind: BadOwner, File: report.CollisionsName, Row: c.row, Column: "owner", Found: report.Text(c.owner)}
	switch {
	case holder != nil:
		if f.Expected = report.Text(holder.canonical); bytes.Equal(c.owner, holder.canonical) {
			return
		}
	case len(c.owner) == 0 && s.wanted == nil:
		f.Kind, f.Expected = Unexplained, "an owner of "+report.Text(s.code)
		s.open.add(f)
		return
	case len(c.owner) == 0, codegen.SaltOf(c.owner, []byte(workspace), s.code, s.run.mostSalt) >= 0 && !bytes.Equal(c.owner, c.canonical):
		if s.wanted != nil {
			s.file(s.wanted, []byte(workspace), &claim{what: line, row: c.row, code: s.code, canonical: c.owner})
		}
		return
	default:
		f.Expected = "a URL that can have " + report.Text(s.code)
	}
	s.log.add(f)
}
