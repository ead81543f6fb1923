package verify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"reflect"
	"strings"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// A claim is what a row says about a code: that it has the code, or that it found it taken.
// Most links have their code of salt 0 and need no claim. Claims are sorted by workspace and
// code. The mapping has the links of salt 0 in the same order. So both can be read side by
// side, and everything about one code is seen at once. (If legacy codes are kept, or codes cannot be
// made again, every link files a claim.)
type claim struct {
	what      claimKind
	created   bool // by this run; of holds and needs
	flags     claimFlags
	salt      int
	row       int64 // of the file that it is from
	code      []byte
	canonical []byte // of the URL that claims
	parts     []byte // of its identity
	owner     []byte // of a line; of a link that the store must have, its original URL there; of taken, the detail
}

// claimFlags say more of a link that the run has.
type claimFlags byte

const (
	ownCode  claimFlags = 1 << (iota + 1) // a row has the code as its own
	bare                                  // no row has it: it may be created by the run, or not
	isAlias                               // what the store must have is an alias
	isReject                              // the row is a reject

	changeBit = 5 // rules.Change of the row, three bits
)

type claimKind byte

const (
	holds     claimKind = iota // a link that has the code, at a salt above 0, or of another length
	line                       // a line of collisions.csv
	ownerOnly                  // the owner that such a line names, if codes cannot be made again; the line has a stand-in then
	needs                      // a link that could not have the code: there must be such a line
	elsewhere                  // a link that has another code than this, its own of salt 0; filed only beside refused; or one whose code may be that of no row
	refused                    // a reject for which every code was taken
	full                       // a link with a code of its own, since every code that can be generated was taken
	lost                       // from here on, of rows that bring a legacy code: one whose code is another URL's
	taken                      // a reject for that reason
	brings                     // a row that has its legacy code; filed only if another may speak for its link
	asks                       // a reject for what its link is, which has claimed its legacy code
)

// change returns what the run did to a link that existed.
func (c *claim) change() rules.Change { return rules.Change(c.flags >> changeBit) }

// subject orders the claims on a code, before URL and salt: first its holder, then lines of
// collisions.csv and the links that need them, side by side, then rejects. So no claim has to
// wait for a later one.
func (k claimKind) subject() byte {
	switch k {
	case holds:
		return 0
	case line, ownerOnly, needs:
		return 1
	default:
		return 2
	}
}

// Layout of a claim in the sort: the group is the workspace, the key the first 8
// bytes of the code; the content, in which lengths and numbers are uvarints,
//
//	code length, code | subject | canonical length, canonical | salt | parts length, parts | kind | created, flags | row | owner
func (c *claim) append(dst []byte) []byte {
	dst = append(packed.AppendCell(dst, c.code), c.what.subject())
	dst = binary.AppendUvarint(packed.AppendCell(dst, c.canonical), uint64(c.salt))
	dst = packed.AppendCell(dst, c.parts)
	dst = append(dst, byte(c.what), byte(btoi(c.created))|byte(c.flags))
	return append(binary.AppendUvarint(dst, uint64(c.row)), c.owner...)
}

// decodeClaim splits the content of a claim, to which the result refers.
func decodeClaim(rec []byte) (c claim) {
	c.code, rec = packed.CutCell(rec)
	c.canonical, rec = packed.CutCell(rec[1:])
	salt, n := binary.Uvarint(rec)
	c.parts, rec = packed.CutCell(rec[n:])
	c.salt, c.what, c.created, c.flags = int(salt), claimKind(rec[0]), rec[1]&1 == 1, claimFlags(rec[1]&^1)
	row, m := binary.Uvarint(rec[2:])
	c.row, c.owner = int64(row), rec[2+m:]
	return c
}

// compareIdentities orders the identities of two claims as codes are given out to them.
func (c *claim) compareIdentities(o *claim) int {
	return cmp.Or(bytes.Compare(c.canonical, o.canonical), bytes.Compare(c.parts, o.parts))
}

func compareClaims(a, b []byte) int {
	codeA, restA := packed.CutCell(a)
	codeB, restB := packed.CutCell(b)
	return cmp.Or(bytes.Compare(codeA, codeB), bytes.Compare(restA, restB))
}

// file files a claim on a code of a workspace.
func file(w *extsort.Writer, group uint32, c *claim) {
	rec := c.append(make([]byte, 0, 256)) // on the stack
	copy(w.Reserve(group, packed.TextKey(c.code), len(rec)), rec)
}

// foldedClaims orders claims for a run that keeps legacy codes: codes that differ only in case
// come together.
func foldedClaims(a, b []byte) int {
	codeA, restA := packed.CutCell(a)
	codeB, restB := packed.CutCell(b)
	return cmp.Or(legacy.CompareFolded(codeA, codeB), bytes.Compare(codeA, codeB), bytes.Compare(restA, restB))
}

// A claimCheck compares the claims of all rows.
type claimCheck struct {
	findings *findings
	run      *run
	reports  *reports
	sorts    *sorters
	version  string // of this program
	bare     int64  // URLs of which no row is the link; only if legacy codes are kept
	mixed    bool   // the mapping is not in order
}

// check compares the claims with the links of salt 0. It does nothing if the mapping
// is not in order or could not be read, because then these links cannot be found.
func (c *claimCheck) check(ctx context.Context) error {
	if err := c.sorts.claims.Finish(ctx); err != nil || c.reports.broken.Load() {
		return err
	}
	s := &slotChecker{findings: c.findings, run: c.run, groups: c.sorts.groups, version: c.version, created: c.run.bareCreated() == c.bare, wanted: writer(c.sorts.stored)}
	if c.run.codes.mode.Keeps() {
		if err := s.all(ctx, c.sorts.claims); err != nil {
			return err
		}
		c.checkTwins(&s.twins)
		return nil
	}
	switch {
	case c.sorts.claims.Len() == 0:
		return nil
	case c.run.allClaim():
		return s.all(ctx, c.sorts.claims)
	case c.mixed:
		return nil
	}
	m, err := openReport(ctx, c.reports, c.run.mapping, false, readback.OpenMapping)
	if m == nil || err != nil {
		return err
	}
	defer m.Close()
	s.links = &linkCursor{ctx: ctx, rows: newDeriver(c.run, m.Text), read: m.Next}
	if c.sorts.sorted != nil {
		sorted := newSortedReader(ctx, c.sorts.sorted, m, c.run, c.findings)
		defer sorted.rows.Close()
		s.links.read = sorted.next
	}
	return s.all(ctx, c.sorts.claims)
}

// checkTwins compares the twins with those of the manifest.
func (c *claimCheck) checkTwins(t *legacy.Twins) {
	var has manifest.CaseTwins
	found := manifest.TwinsOf(t.Groups, t.Examples)
	if twins := c.run.manifest.Legacy.CaseTwins; twins != nil {
		has = *twins
	}
	if !reflect.DeepEqual(has, found) {
		c.findings.wrong(BadCount, "legacy.case_twins", found, has)
	}
}

// all checks all claims.
func (s *slotChecker) all(ctx context.Context, from *extsort.Sorter) error {
	claims := from.Cursor(ctx, 0)
	defer claims.Close()
	for claims.Next() {
		if err := s.claim(claims.Group(), claims.Record()); err != nil {
			return err
		}
	}
	if claims.Err() == nil {
		s.closeLine()
	}
	return claims.Err()
}

// A linkCursor moves over the links of the mapping that have their code of salt 0.
type linkCursor struct {
	ctx  context.Context
	rows *deriver
	read func() (*readback.MappingRow, error) // the next of the mapping, in the order of the sort
	row  link                                 // what seek has found
	at   *readback.MappingRow                 // nil: before the first, or at the end
	end  bool
}

// seek moves to the first link that is not before a code, and reports whether it has that
// code. It skips rows whose code is wrong: they are findings already, and may be anywhere.
func (c *linkCursor) seek(workspace string, code []byte) (bool, error) {
	for !c.end {
		if c.at != nil {
			if d := cmp.Or(strings.Compare(string(c.at.Workspace), workspace), bytes.Compare(c.at.Code, code)); d >= 0 && c.isOwn() {
				return d == 0, nil
			}
		}
		if err := c.next(); err != nil {
			return false, err
		}
	}
	return false, nil
}

// isOwn reports whether the link in hand has its code of salt 0, as it says.
func (c *linkCursor) isOwn() bool {
	c.row.MappingRow = *c.at
	c.rows.derive(&c.row)
	return c.row.hasFirst()
}

// next moves to the next link, or to the end.
func (c *linkCursor) next() error {
	for c.ctx.Err() == nil {
		r, err := c.read()
		switch {
		case isCell(err):
		case err != nil:
			c.at, c.end = nil, true
			return eof(err)
		case r.Outcome != outcome.Duplicate && r.Salt == 0 && len(r.Code) == c.rows.run.coding.length:
			c.at = r
			return nil
		}
	}
	return context.Cause(c.ctx)
}

// A claimCursor moves over sorted claims. It stays at a claim until next is called.
type claimCursor struct {
	claims *extsort.Cursor
	groups *groups
	known  bool // there is a claim in hand
	claim  claim
	group  string
}

// more reports whether there is a claim, which is then in claim and group.
func (c *claimCursor) more() bool {
	if !c.known && c.claims.Next() {
		c.claim, c.group, c.known = decodeClaim(c.claims.Record()), c.groups.name(c.claims.Group()), true
	}
	return c.known
}

func (c *claimCursor) next() { c.known = false }

// compare compares the claim in hand with a link, by workspace and code.
func (c *claimCursor) compare(l *sink.Stored) int {
	return cmp.Or(strings.Compare(c.group, string(l.Workspace)), bytes.Compare(c.claim.code, l.Code))
}

// A claimer files claims of rows, for one goroutine.
type claimer struct {
	run    *run
	codes  *coder
	groups *grouper
	to     *extsort.Writer
	code   []byte
}

func newClaimer(run *run, codes *coder, groups *grouper, claims *extsort.Sorter) *claimer {
	return &claimer{run: run, codes: codes, groups: groups, to: claims.NewWriter()}
}

// file files a claim on a code of a workspace.
func (w *claimer) file(workspace []byte, c *claim) {
	if !w.run.codes.mode.Keeps() {
		file(w.to, w.groups.id(workspace), c)
		return
	}
	rec := c.append(make([]byte, 0, 256)) // on the stack
	copy(w.to.Reserve(w.groups.id(workspace), record.CodeKey(c.code), len(rec)), rec)
}

// holding returns the claim of a link on its code.
func holding(r *link, flags claimFlags) *claim {
	if flags |= claimFlags(r.Rules.Change) << changeBit; r.Alias {
		flags |= isAlias
	}
	return &claim{what: holds, created: r.Outcome == outcome.Created, flags: flags, row: r.Number, code: r.Code, canonical: r.Canonical, parts: r.parts}
}

// link files a link that does not have its code of salt 0, and the codes that it
// could not have. If legacy codes are kept, it files any link.
func (w *claimer) link(r *link, flags claimFlags) {
	own := r.hasFirst()
	if own && !w.run.codes.mode.Keeps() {
		return
	}
	c := holding(r, flags)
	w.file(r.Workspace, c)
	if w.run.manifest.Reasons[outcome.CodeSpaceExhausted] > 0 && !own {
		w.code = w.codes.salt0(w.code[:0], r.Canonical, r.Workspace, r.parts)
		w.file(r.Workspace, &claim{what: elsewhere, code: w.code, canonical: r.Canonical, parts: r.parts})
	}
	if spec := &w.run.coding.spec; spec.Counts || len(r.Code) < spec.MinLength || len(r.Code) > spec.MaxLength || r.Salt > w.run.mostSalt {
		return // a finding already
	}
	c.what = needs
	for c.salt = range max(r.Salt, 0) {
		if w.run.coding.known {
			w.code = w.codes.appendCode(w.code[:0], r.Code, r.Canonical, r.Workspace, r.parts, c.salt)
		} else {
			w.code = w.codes.standIn(w.code[:0], r.Canonical, r.Workspace, r.parts, c.salt)
		}
		c.code = w.code
		w.file(r.Workspace, c)
	}
}

// lost files the claim of a row that has lost its code.
func (w *claimer) lost(r *link) {
	w.file(r.Workspace, &claim{what: lost, row: r.Number, code: w.run.codes.asKept(r.Legacy), canonical: r.Canonical, parts: r.parts})
}

// exhausted files the codes that an identity could not have.
func (w *claimer) exhausted(row int64, canonical, workspace, parts []byte, what claimKind) {
	c := claim{what: what, row: row, canonical: canonical, parts: parts}
	for c.salt = 0; c.salt <= w.run.retries && (c.salt == 0 || w.run.coding.hashes()); c.salt++ {
		if c.salt == 0 {
			w.code = w.codes.salt0(w.code[:0], canonical, workspace, parts)
		} else {
			w.code = w.codes.appendCode(w.code[:0], nil, canonical, workspace, parts, c.salt)
		}
		c.code = w.code
		w.file(workspace, &c)
	}
}
