package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/sink"
)

// storeName stands for the store in findings.
const storeName = "store"

// A storeCheck compares the store with the run.
type storeCheck struct {
	findings *findings
	run      *run
	store    sink.Store
	reports  *reports
	sorts    *sorters
	sums     linkSummer
	created  uint64 // sum of all links that the run created, but for those that no row has
	workers  int
	digest   string // of the manifest
	version  string // of this program
}

// stored is what the store says of the run.
type stored struct {
	undone bool
	since  Since
}

// A storeMatcher moves over all links of the store, and side by side over the links that
// should be there.
type storeMatcher struct {
	findings *findings
	run      *run
	runs     *storeRuns
	schemes  *schemes
	version  string       // of this program
	wanted   *claimCursor // links of the mapping, and codes that must have an owner
	number   int64        // of the link in the store's order, from 1
	all      bool         // the wanted links are all links of the run: any other link with its ID is too many
	sums     linkSummer   // of bare
	bare     int64        // links of the run that no row of the mapping has, so far
	gone     int64        // further links that no row has, which the store does not have any more
	sum      uint64       // of bare
	first    bool         // it meets them
	since    Since
}

// check checks every link of the store by itself, and that every link of
// the mapping is there as the run stored it.
//
// For links that the run created, both sides add up keyed digests. If the sums agree, the
// links agree, with a chance of 2^-64 to be wrong. If they differ, these links of the mapping
// are sorted, and the store is listed once more. Existing links and owners of codes are
// always sorted. What the store says goes into to.
func (c *storeCheck) check(ctx context.Context, to *stored) (err error) {
	runs, err := c.findRun(ctx)
	if err != nil {
		return err
	}
	if runs.unknown {
		defer c.findings.tellOnce()
	}
	to.undone = runs.undone
	if err := c.sorts.stored.Finish(ctx); err != nil {
		return err
	}
	low, aliases := c.sorts.new(compareClaims), c.sorts.new(bytes.Compare)
	defer func() { err = errors.Join(err, low.Close(), aliases.Close()) }()
	schemes := &schemes{findings: c.findings, run: c.run, runs: runs}
	s := c.newMatcher(ctx, runs, schemes, c.sorts.stored)
	defer s.wanted.claims.Close()
	s.first = true
	created, aliased, err := c.links(ctx, s, low, aliases, &to.since)
	if err != nil {
		return err
	}
	to.since.add(&s.since)
	same := created == c.created+s.sum
	c.checkCreated(s, same)
	if (runs.ours == 0 || !same) && c.run.stores() && !c.reports.broken.Load() {
		if err := c.compareCreated(ctx, runs, schemes, &to.since); err != nil {
			return err
		}
	}
	if err := low.Finish(ctx); err != nil {
		return err
	}
	if low.Len() > 0 {
		if err := c.listAgain(ctx, c.newMatcher(ctx, runs, schemes, low), &to.since); err != nil {
			return err
		}
	}
	return c.checkAliases(ctx, runs, aliased, aliases)
}

// newMatcher returns what meets the wanted links of a sort, which it reads.
func (c *storeCheck) newMatcher(ctx context.Context, runs *storeRuns, schemes *schemes, wanted *extsort.Sorter) *storeMatcher {
	return &storeMatcher{findings: c.findings, run: c.run, runs: runs, schemes: schemes, version: c.version, sums: c.sums,
		wanted: &claimCursor{claims: wanted.Cursor(ctx, 0), groups: c.sorts.groups}}
}

// checkCreated checks how many links the run created, once s has met all; same: they are those of
// the mapping.
func (c *storeCheck) checkCreated(s *storeMatcher, same bool) {
	undone := s.runs.undone
	if want := c.run.bareCreated(); s.runs.ours != 0 && !undone && !c.reports.broken.Load() && (s.bare > want || s.bare+s.gone < want) {
		c.findings.wrong(BadCount, "links_created", c.run.manifest.Counts.Created+s.bare, c.run.links())
	}
	if undone && same && c.run.manifest.Counts.Created > 0 {
		c.findings.doubt(storeName, int64(s.runs.ours)).wrong(Unexplained, "state",
			"finished: all its links are there, unless others changed them or refer to them", string(sink.Undone))
	}
}

// checkAliases checks that the store has the link of each of its aliases, unless that may have been
// swept. Layout of both in the sort, where the group is the workspace and the key the beginning of the
// link's url_key:
//
//	url_key 16 | 0, of a link; 1 | number in the store's order uvarint | code, of an alias
func (c *storeCheck) checkAliases(ctx context.Context, runs *storeRuns, aliased bool, both *extsort.Sorter) error {
	if aliased {
		w, groups := both.NewWriter(), newGrouper(c.sorts.groups)
		if err := c.store.Scan(ctx, func(l *sink.Stored) error {
			if !l.Alias {
				fileKey(w, groups.id(l.Workspace), l.Key, []byte{0})
			}
			return w.Err()
		}); err != nil {
			return err
		}
	}
	if err := both.Finish(ctx); err != nil {
		return err
	}
	var link sink.Key
	group, known := uint32(0), false
	list := both.Cursor(ctx, 0)
	defer list.Close()
	for list.Next() {
		key, rec := sink.Key(list.Record()), list.Record()[len(link):]
		if rec[0] == 0 {
			link, group, known = key, list.Group(), true
		} else if (!known || key != link || group != list.Group()) && !runs.ruled[c.sorts.groups.name(list.Group())] {
			number, n := binary.Uvarint(rec[1:])
			c.findings.fault(storeName, int64(number)).of([]byte(c.sorts.groups.name(list.Group())), rec[1+n:]).wrong(StoreAlias, "short_code", "a link of the alias's URL", string(rec[1+n:]))
		}
	}
	return list.Err()
}

func fileKey(w *extsort.Writer, group uint32, key sink.Key, rest []byte) {
	copy(w.Reserve(group, binary.BigEndian.Uint64(key[:]), len(key)+len(rest)), append(key[:], rest...))
}

// links lets s meet the links of the store with the wanted ones while workers check
// each by itself, and returns the sum of those that the run created, and whether there are aliases. The
// lower codes of links that have a salt go into low, aliases into aliases.
func (c *storeCheck) links(ctx context.Context, s *storeMatcher, low, aliases *extsort.Sorter, since *Since) (created uint64, aliased bool, err error) {
	workers := make([]*linkChecker, c.workers)
	for i := range workers {
		workers[i] = &linkChecker{findings: c.findings, run: c.run, runs: s.runs, schemes: s.schemes, codes: newCoder(c.run), groups: newGrouper(c.sorts.groups),
			sums: c.sums, low: low.NewWriter(), aliases: aliases.NewWriter()}
	}
	err = inBlocks(ctx, len(workers), func(block *storedLinks, send func(*storedLinks) (*storedLinks, error)) error {
		if err := s.list(block, send, func(visit func(*sink.Stored) error) error { return c.scan(ctx, s.runs, visit) }); err != nil {
			return err
		}
		return s.rest()
	}, func(worker int, block *storedLinks) {
		for i := range block.list {
			workers[worker].check(&block.list[i], block.first+int64(i))
		}
	})
	for _, w := range workers {
		created, aliased = created+w.created, aliased || w.aliased
		since.add(&w.since)
	}
	return created, aliased, err
}

// list meets every link that scan visits, and sends them to the workers.
func (c *storeMatcher) list(block *storedLinks, send func(*storedLinks) (*storedLinks, error), scan func(visit func(*sink.Stored) error) error) error {
	block.reset(1)
	err := scan(func(l *sink.Stored) (err error) {
		if err := c.meet(l); err != nil {
			return err
		}
		if block.add(l); len(block.list) == cap(block.list) {
			if block, err = send(block); err == nil {
				block.reset(c.number + 1)
			}
		}
		return err
	})
	if err == nil && len(block.list) > 0 {
		_, err = send(block)
	}
	return err
}

// storedLinks are some links of the store, on their way to a worker.
type storedLinks struct {
	list  []sink.Stored
	first int64 // number of the first
	cells []byte
}

func (b *storedLinks) reset(first int64) {
	if b.list == nil {
		b.list = make([]sink.Stored, 0, 1<<10)
	}
	b.list, b.cells, b.first = b.list[:0], b.cells[:0], first
}

// add copies a link. When cells moves to a larger array, earlier links keep the old one.
func (b *storedLinks) add(l *sink.Stored) {
	c := *l
	b.keep(&c.Workspace, &c.Code, &c.Canonical, &c.Original, &c.Attrs)
	if l.Rules != nil {
		r := *l.Rules
		b.keep(&r.Type, &r.Owner, &r.Ref)
		c.Rules = &r
	}
	b.list = append(b.list, c)
}

func (b *storedLinks) keep(cells ...*[]byte) {
	for _, cell := range cells {
		if *cell == nil {
			continue
		}
		at := len(b.cells)
		b.cells = append(b.cells, *cell...)
		*cell = b.cells[at:len(b.cells):len(b.cells)]
	}
}

// compareCreated compares the links of the mapping that the run created, one by
// one, with those of the store.
func (c *storeCheck) compareCreated(ctx context.Context, runs *storeRuns, schemes *schemes, since *Since) (err error) {
	created := c.sorts.new(compareClaims)
	defer func() { err = errors.Join(err, created.Close()) }()
	w := newWantWriter(c.run, newGrouper(c.sorts.groups), c.sums.seed, created)
	if err := c.reports.eachLink(ctx, func(l *link) {
		if l.Outcome == outcome.Created {
			w.file(l)
		}
		if l.Alias && c.run.bareCreated() > 0 { // no row may have it, and it was looked at before
			file(w.to, w.groups.id(l.Workspace), &claim{what: elsewhere, row: l.Number, code: l.LinkCode, canonical: l.Canonical})
		}
	}); err != nil {
		return err
	}
	if err := created.Finish(ctx); err != nil {
		return err
	}
	s := c.newMatcher(ctx, runs, schemes, created)
	s.all = true
	return c.listAgain(ctx, s, since)
}

// listAgain lets s meet the links of the store with other wanted ones.
func (c *storeCheck) listAgain(ctx context.Context, s *storeMatcher, since *Since) error {
	defer s.wanted.claims.Close()
	if err := c.scan(ctx, s.runs, s.meet); err != nil {
		return err
	}
	err := s.rest()
	since.add(&s.since)
	return err
}

// meet meets a link of the store with the wanted ones.
func (c *storeMatcher) meet(l *sink.Stored) error {
	c.number++
	for ; c.wanted.more() && c.wanted.compare(l) < 0; c.wanted.next() {
		c.missing()
	}
	found := false
	for ; c.wanted.more() && c.wanted.compare(l) == 0; c.wanted.next() {
		found = true
		c.same(&c.wanted.claim, l)
	}
	if c.all && !found && l.Run == c.runs.ours && c.runs.ours != 0 {
		c.findings.fault(storeName, c.number).of(l.Workspace, l.Code).wrong(StoreExtra, "run_id", fmt.Sprint("only links of run ", c.runs.ours, " that its mapping has as created"), string(l.Code))
	}
	return c.wanted.claims.Err()
}

// rest are the wanted links after the last of the store.
func (c *storeMatcher) rest() error {
	for ; c.wanted.more(); c.wanted.next() {
		c.missing()
	}
	return c.wanted.claims.Err()
}

func (c *storeMatcher) missing() {
	w, workspace := &c.wanted.claim, []byte(c.wanted.group)
	owner := "an owner of " + string(w.code) + " in the store"
	switch {
	case w.what == elsewhere:
	case w.what == line:
		c.findings.doubt(manifest.CollisionsName, w.row).of(workspace, w.code).wrong(Unexplained, "owner", owner, string(w.canonical))
	case (w.what == refused || w.what == full) && !c.run.coding.listed: // it may be blocked
	case w.what == refused:
		c.findings.doubt(manifest.RejectsName, w.row).of(workspace, w.code).wrong(Unexplained, "reason", owner, outcome.CodeSpaceExhausted)
	case w.what == full || w.what == lost || w.what == taken:
		c.findings.doubt(c.fileOf(w), w.row).of(workspace, w.code).wrong(Unexplained, "short_code", owner, string(w.canonical))
	case w.what == needs: // of a link that only the store has
		c.findings.doubt(storeName, w.row).of(workspace, w.code).wrong(Unexplained, "short_code", owner, string(w.canonical))
	case c.run.terms.DryRun && w.flags&bare != 0 && c.bare < c.run.bareCreated(): // it would have made this one
		c.bare++
	default:
		if c.maySweep() {
			c.countGone(w)
			return
		}
		c.mapped(w).of(workspace, w.code).wrong(StoreMissing, "short_code", "a link of the store", string(w.code))
	}
}

// mapped returns where a link of the mapping is found fault with. If the store does not know the run,
// that would be one line for each link: only one of each kind is kept.
func (c *storeMatcher) mapped(w *claim) spot {
	here := c.findings.fault(c.run.mapping, w.row)
	if c.runs.unknown {
		here.to = &c.findings.once
	}
	return here
}

// fileOf returns the report that a claim is from.
func (c *storeMatcher) fileOf(w *claim) string {
	if w.what == refused || w.what == taken || w.flags&isReject != 0 {
		return manifest.RejectsName
	}
	return c.run.mapping
}

// sameLost compares a row that has lost its legacy code with the link that has it in the store.
func (c *storeMatcher) sameLost(w *claim, l *sink.Stored) {
	here, name := c.findings.fault(c.fileOf(w), w.row).of(l.Workspace, l.Code), "legacy_code"
	if !c.isBefore(l) {
		here = c.findings.doubt(c.fileOf(w), w.row).of(l.Workspace, l.Code)
	}
	if w.what == taken {
		name = "detail"
	}
	kind := func(k Kind) Kind {
		if c.isBefore(l) {
			return k
		}
		return Unexplained
	}
	switch detail := outcome.CodeTakenDetail(w.code, l.Canonical, w.canonical); {
	case c.isOf(w, l):
		here.wrong(kind(BadLegacy), name, "a code of another URL", string(w.code))
	case w.what == taken && string(w.owner) != detail && c.version == c.run.manifest.Version:
		here.wrong(kind(BadDetail), name, detail, string(w.owner))
	}
}

// isOf reports whether a link of the store is one of the identity that claims its code.
func (c *storeMatcher) isOf(w *claim, l *sink.Stored) bool {
	switch {
	case !bytes.Equal(w.canonical, l.Canonical):
		return false
	case !c.run.ruling.ruled: // no identity has parts
		return true
	case l.Alias:
		return codegen.Sum(codegen.AppendAlias(nil, l.Canonical, l.Workspace, w.parts, l.Code)).Key() == l.Key
	}
	return codegen.Sum(codegen.AppendIdentity(nil, l.Canonical, l.Workspace, w.parts, 0)).Key() == l.Key
}

// same compares a link of the mapping, or the owner of a code, with what the store
// has.
func (c *storeMatcher) same(w *claim, l *sink.Stored) {
	if w.what == line && !bytes.Equal(w.canonical, l.Canonical) {
		if c.isBefore(l) {
			c.findings.fault(manifest.CollisionsName, w.row).of(l.Workspace, l.Code).wrong(BadOwner, "owner", string(l.Canonical), string(w.canonical))
		} else { // another URL may have had the code when the run was made
			c.findings.doubt(manifest.CollisionsName, w.row).of(l.Workspace, l.Code).wrong(Unexplained, "owner", string(l.Canonical), string(w.canonical))
		}
	}
	if w.what == refused && bytes.Equal(w.canonical, l.Canonical) && codegen.Sum(codegen.AppendIdentity(nil, w.canonical, l.Workspace, w.parts, 0)).Key() == l.Key && c.isBefore(l) {
		c.findings.fault(manifest.RejectsName, w.row).of(l.Workspace, l.Code).wrong(BadReason, "reason", "no link of "+string(w.canonical)+" in the store", outcome.CodeSpaceExhausted)
	}
	if w.what == lost || w.what == taken {
		c.sameLost(w, l)
	}
	if w.what == holds {
		c.sameLink(w, l)
	}
}

// countGone counts a link of the mapping that the store does not have any more.
func (c *storeMatcher) countGone(w *claim) {
	c.since.Gone++
	if w.flags&bare != 0 {
		c.gone++
	}
}

// sameLink compares a link of the mapping with the one that has its code in the store.
func (c *storeMatcher) sameLink(w *claim, l *sink.Stored) {
	if c.isAnother(w, l) {
		c.countGone(w)
		return
	}
	if !c.runs.undone {
		c.schemes.check(c.wanted.group)
	}
	here := c.mapped(w).of(l.Workspace, l.Code)
	if !bytes.Equal(w.canonical, l.Canonical) {
		here.wrong(StoreDiffers, "canonical_url", string(w.canonical), string(l.Canonical))
	}
	if alias := w.flags&isAlias != 0; alias != l.Alias {
		here.wrong(StoreDiffers, "kind", legacy.KindOf(alias), legacy.KindOf(l.Alias))
	}
	if w.flags&bare != 0 && l.Run == c.runs.ours && c.runs.ours != 0 && c.run.bareCreated() > 0 {
		if c.run.ruling.ruled { // which row speaks for it, the mapping does not tell
			w.owner = c.run.hasAs(nil, l)
		}
		if w.created = true; c.first {
			c.bare++
			c.sum += c.sums.sum(l.Workspace, w.code, w.canonical, w.owner, false)
		}
	}
	if !w.created {
		if c.runs.ours != 0 && l.Run == c.runs.ours {
			here.wrong(StoreDiffers, "outcome", outcome.Existing.String(), outcome.Created.String())
		}
		c.compareChange(here, w, l)
		return
	}
	compareBeyond(here, w.owner, c.run.hasAs(nil, l), func(column string, _ []byte) bool {
		return !changedSince(l, c.runs.ours) || !slices.Contains(changeable, column)
	})
	if c.runs.ours != 0 && l.Run != c.runs.ours {
		here.wrong(StoreDiffers, "run_id", fmt.Sprint(c.runs.ours), fmt.Sprint(l.Run))
	}
}
