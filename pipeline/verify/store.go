package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/sink"
)

// storeName stands for the store in findings.
const storeName = "store"

// A storeChecker moves over all links of the store, and side by side over the links that
// should be there.
type storeChecker struct {
	*verifier
	runs   *storeRuns
	wanted *claimCursor // links of the mapping, and codes that must have an owner
	number int64        // of the link in the store's order, from 1
	all    bool         // the wanted links are all links of the run: any other link with its ID is too many
	bare   int64        // links of the run that no row of the mapping has, so far
	gone   int64        // further links that no row has, which the store does not have any more
	sum    uint64       // of bare
	first  bool         // it meets them
	since  Since
}

// verifyStore checks every link of the store by itself, and that every link of
// the mapping is there as the run stored it.
//
// For links that the run created, both sides add up keyed digests. If the sums agree, the
// links agree, with a chance of 2^-64 to be wrong. If they differ, these links of the mapping
// are sorted, and the store is listed once more. Existing links and owners of codes are
// always sorted.
func (v *verifier) verifyStore(ctx context.Context) (err error) {
	runs, err := v.findRun(ctx)
	if err != nil {
		return err
	}
	if runs.unknown {
		defer v.tellOnce()
	}
	if err := v.stored.Finish(ctx); err != nil {
		return err
	}
	low := v.newSorter(compareClaims)
	defer func() { err = errors.Join(err, low.Close()) }()
	c := &storeChecker{verifier: v, runs: runs, wanted: &claimCursor{Cursor: v.stored.Cursor(ctx, 0), v: v}, first: true}
	defer c.wanted.Close()
	aliases := v.newSorter(bytes.Compare)
	defer func() { err = errors.Join(err, aliases.Close()) }()
	created, err := v.checkStore(ctx, c, low, aliases)
	if err != nil {
		return err
	}
	v.result.Since.add(&c.since)
	v.created.Add(c.sum)
	if want := v.run.bareCreated(); runs.ours != 0 && !v.result.Undone && !v.broken.Load() && (c.bare > want || c.bare+c.gone < want) {
		v.wrong(BadCount, "links_created", v.run.manifest.Counts.Created+c.bare, v.run.links())
	}
	if v.result.Undone && created == v.created.Load() && v.run.manifest.Counts.Created > 0 {
		v.doubt(storeName, int64(runs.ours)).wrong(Unexplained, "state",
			"finished: all its links are there, unless others changed them or refer to them", string(sink.Undone))
	}
	if (runs.ours == 0 || created != v.created.Load()) && v.run.stores() && !v.broken.Load() {
		if err := v.compareCreated(ctx, runs); err != nil {
			return err
		}
	}
	if err := low.Finish(ctx); err != nil {
		return err
	}
	if low.Len() > 0 {
		if err := v.listAgain(ctx, runs, low, false); err != nil {
			return err
		}
	}
	return v.verifyAliases(ctx, runs, aliases)
}

// verifyAliases checks that the store has the link of each of its aliases, unless that may have been
// swept. Layout of both in the sort, where the group is the workspace and the key the beginning of the
// link's url_key:
//
//	url_key 16 | 0, of a link; 1 | number in the store's order uvarint | code, of an alias
func (v *verifier) verifyAliases(ctx context.Context, runs *storeRuns, both *extsort.Sorter) error {
	if v.aliased.Load() {
		w := both.NewWriter()
		c := &checker{verifier: v}
		if err := v.cfg.Store.Scan(ctx, func(l *sink.Stored) error {
			if !l.Alias {
				fileKey(w, c.group(l.Workspace), l.Key, []byte{0})
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
		} else if (!known || key != link || group != list.Group()) && !runs.ruled[v.groups.name(list.Group())] {
			number, n := binary.Uvarint(rec[1:])
			v.fault(storeName, int64(number)).of([]byte(v.groups.name(list.Group())), rec[1+n:]).wrong(StoreAlias, "short_code", "a link of the alias's URL", string(rec[1+n:]))
		}
	}
	return list.Err()
}

func fileKey(w *extsort.Writer, group uint32, key sink.Key, rest []byte) {
	copy(w.Reserve(group, binary.BigEndian.Uint64(key[:]), len(key)+len(rest)), append(key[:], rest...))
}

// checkStore meets the links of the store with the wanted ones while workers check
// each by itself, and returns the sum of those that the run created. The lower
// codes of links that have a salt go into low, aliases into aliases.
func (v *verifier) checkStore(ctx context.Context, c *storeChecker, low, aliases *extsort.Sorter) (created uint64, err error) {
	workers := make([]*linkChecker, v.cfg.Workers)
	for i := range workers {
		workers[i] = &linkChecker{checker: &checker{verifier: v}, runs: c.runs, low: low.NewWriter(), aliases: aliases.NewWriter()}
	}
	err = inBlocks(ctx, len(workers), func(block *storedLinks, send func(*storedLinks) (*storedLinks, error)) error {
		if err := c.list(ctx, block, send); err != nil {
			return err
		}
		return c.rest()
	}, func(worker int, block *storedLinks) {
		for i := range block.list {
			workers[worker].link(&block.list[i], block.first+int64(i))
		}
	})
	for _, w := range workers {
		created += w.created
		v.result.Since.add(&w.since)
	}
	return created, err
}

// list meets every link of the store, and sends them to the workers.
func (c *storeChecker) list(ctx context.Context, block *storedLinks, send func(*storedLinks) (*storedLinks, error)) error {
	block.reset(1)
	err := c.scan(ctx, c.runs, func(l *sink.Stored) (err error) {
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
func (v *verifier) compareCreated(ctx context.Context, runs *storeRuns) (err error) {
	created := v.newSorter(compareClaims)
	defer func() { err = errors.Join(err, created.Close()) }()
	w := &checker{verifier: v, wanted: created.NewWriter()}
	if err := v.eachLink(ctx, func(l *link) {
		if l.Outcome == outcome.Created {
			w.want(l)
		}
		if l.Alias && v.run.bareCreated() > 0 { // no row may have it, and it was looked at before
			file(w.wanted, w.group(l.Workspace), &claim{what: elsewhere, row: l.Number, code: l.LinkCode, canonical: l.Canonical})
		}
	}); err != nil {
		return err
	}
	if err := created.Finish(ctx); err != nil {
		return err
	}
	return v.listAgain(ctx, runs, created, true)
}

// listAgain meets the links of the store with other wanted ones.
func (v *verifier) listAgain(ctx context.Context, runs *storeRuns, wanted *extsort.Sorter, all bool) error {
	c := &storeChecker{verifier: v, runs: runs, wanted: &claimCursor{Cursor: wanted.Cursor(ctx, 0), v: v}, all: all}
	defer c.wanted.Close()
	if err := v.scan(ctx, runs, c.meet); err != nil {
		return err
	}
	err := c.rest()
	v.result.Since.add(&c.since)
	return err
}

// want files a link of the mapping that the store must have.
func (w *checker) want(r *link) {
	w.beyond = w.run.storedAs(w.beyond[:0], r)
	w.wantAs(r, 0, w.beyond)
}

// wantAs does so for a link of which storedAs says this.
func (w *checker) wantAs(r *link, flags claimFlags, beyond []byte) {
	c := w.holding(r, flags)
	c.owner = beyond
	file(w.wanted, w.group(r.Workspace), c)
}

// originalOf returns the original URL as the store has it; nil: none, since it is the canonical one.
func (r *run) originalOf(l *link) []byte {
	text := r.terms.URLs.Complete(l.Original)
	if bytes.Equal(text, l.Canonical) {
		return nil
	}
	return canon.EscapeInvalid(text)
}

// sumCreated returns the sum of a link as the run created it; beyond is of storedAs or hasAs.
func (w *checker) sumCreated(workspace, code, canonical, beyond []byte, alias bool) uint64 {
	w.input = w.input[:0]
	if alias {
		w.input = append(w.input, 0)
	}
	for _, cell := range [...][]byte{workspace, code, canonical, beyond} {
		w.input = packed.AppendCell(w.input, cell)
	}
	return maphash.Bytes(w.seed, w.input)
}

// meet meets a link of the store with the wanted ones.
func (c *storeChecker) meet(l *sink.Stored) error {
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
		c.fault(storeName, c.number).of(l.Workspace, l.Code).wrong(StoreExtra, "run_id", fmt.Sprint("only links of run ", c.runs.ours, " that its mapping has as created"), string(l.Code))
	}
	return c.wanted.Err()
}

// rest are the wanted links after the last of the store.
func (c *storeChecker) rest() error {
	for ; c.wanted.more(); c.wanted.next() {
		c.missing()
	}
	return c.wanted.Err()
}

func (c *storeChecker) missing() {
	w, workspace := &c.wanted.claim, []byte(c.wanted.group)
	owner := "an owner of " + string(w.code) + " in the store"
	switch {
	case w.what == elsewhere:
	case w.what == line:
		c.doubt(manifest.CollisionsName, w.row).of(workspace, w.code).wrong(Unexplained, "owner", owner, string(w.canonical))
	case (w.what == refused || w.what == full) && !c.run.listed: // it may be blocked
	case w.what == refused:
		c.doubt(manifest.RejectsName, w.row).of(workspace, w.code).wrong(Unexplained, "reason", owner, outcome.CodeSpaceExhausted)
	case w.what == full || w.what == lost || w.what == taken:
		c.doubt(c.fileOf(w), w.row).of(workspace, w.code).wrong(Unexplained, "short_code", owner, string(w.canonical))
	case w.what == needs: // of a link that only the store has
		c.doubt(storeName, w.row).of(workspace, w.code).wrong(Unexplained, "short_code", owner, string(w.canonical))
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
func (c *storeChecker) mapped(w *claim) spot {
	here := c.fault(c.run.mapping, w.row)
	if c.runs.unknown {
		here.to = &c.once
	}
	return here
}

// tellOnce tells of the faults of which one of each kind was kept.
func (v *verifier) tellOnce() {
	for _, f := range v.once.first {
		if more := v.once.kinds[f.Kind] - 1; more > 0 {
			f.Expected += manifest.Text(fmt.Sprintf(" (%d more faults are of this kind)", more))
		}
		v.faults.add(f)
	}
}

// fileOf returns the report that a claim is from.
func (c *storeChecker) fileOf(w *claim) string {
	if w.what == refused || w.what == taken || w.flags&isReject != 0 {
		return manifest.RejectsName
	}
	return c.run.mapping
}

// sameLost compares a row that has lost its legacy code with the link that has it in the store.
func (c *storeChecker) sameLost(w *claim, l *sink.Stored) {
	here, name := c.fault(c.fileOf(w), w.row).of(l.Workspace, l.Code), "legacy_code"
	if !c.isBefore(l) {
		here = c.doubt(c.fileOf(w), w.row).of(l.Workspace, l.Code)
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
	switch detail := outcome.CodeTakenDetail(w.code, l.Canonical); {
	case bytes.Equal(w.canonical, l.Canonical):
		here.wrong(kind(BadLegacy), name, "a code of another URL", string(w.code))
	case w.what == taken && string(w.owner) != detail && c.cfg.Version == c.run.manifest.Version:
		here.wrong(kind(BadDetail), name, detail, string(w.owner))
	}
}

// same compares a link of the mapping, or the owner of a code, with what the store
// has.
func (c *storeChecker) same(w *claim, l *sink.Stored) {
	if w.what == line && !bytes.Equal(w.canonical, l.Canonical) {
		if c.isBefore(l) {
			c.fault(manifest.CollisionsName, w.row).of(l.Workspace, l.Code).wrong(BadOwner, "owner", string(l.Canonical), string(w.canonical))
		} else { // another URL may have had the code when the run was made
			c.doubt(manifest.CollisionsName, w.row).of(l.Workspace, l.Code).wrong(Unexplained, "owner", string(l.Canonical), string(w.canonical))
		}
	}
	if w.what == refused && bytes.Equal(w.canonical, l.Canonical) && codegen.Sum(codegen.AppendIdentity(nil, w.canonical, l.Workspace, w.parts, 0)).Key() == l.Key && c.isBefore(l) {
		c.fault(manifest.RejectsName, w.row).of(l.Workspace, l.Code).wrong(BadReason, "reason", "no link of "+string(w.canonical)+" in the store", outcome.CodeSpaceExhausted)
	}
	if w.what == lost || w.what == taken {
		c.sameLost(w, l)
	}
	if w.what == holds {
		c.sameLink(w, l)
	}
}

// countGone counts a link of the mapping that the store does not have any more.
func (c *storeChecker) countGone(w *claim) {
	c.since.Gone++
	if w.flags&bare != 0 {
		c.gone++
	}
}

// sameLink compares a link of the mapping with the one that has its code in the store.
func (c *storeChecker) sameLink(w *claim, l *sink.Stored) {
	if c.isAnother(w, l) {
		c.countGone(w)
		return
	}
	if !c.result.Undone {
		c.checkScheme(c.runs, c.wanted.group)
	}
	here := c.mapped(w).of(l.Workspace, l.Code)
	if !bytes.Equal(w.canonical, l.Canonical) {
		here.wrong(StoreDiffers, "canonical_url", string(w.canonical), string(l.Canonical))
	}
	if alias := w.flags&isAlias != 0; alias != l.Alias {
		here.wrong(StoreDiffers, "kind", legacy.KindOf(alias), legacy.KindOf(l.Alias))
	}
	if w.flags&bare != 0 && l.Run == c.runs.ours && c.runs.ours != 0 && c.run.bareCreated() > 0 {
		if c.run.ruled { // which row speaks for it, the mapping does not tell
			w.owner = c.run.hasAs(nil, l)
		}
		if w.created = true; c.first {
			c.bare++
			c.sum += (&checker{verifier: c.verifier}).sumCreated(l.Workspace, w.code, w.canonical, w.owner, false)
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
	*checker
	runs    *storeRuns
	low     *extsort.Writer
	aliases *extsort.Writer
	since   Since
	checked string // the last workspace whose scheme was compared
	of      string // the workspace that scheme is of; "": none yet
	scheme  codegen.Scheme
	makes   bool // codes of scheme can be made
}

func (c *linkChecker) link(l *sink.Stored, number int64) {
	here := c.fault(storeName, number).of(l.Workspace, l.Code)
	h := c.hash(l.Canonical, l.Workspace, nil, 0)
	key := h.Key()
	if base := key; (l.Alias || l.Base != sink.Key{}) && l.Base != base {
		here.wrong(StoreKey, "base_key", fmt.Sprintf("%x", base), fmt.Sprintf("%x", l.Base))
	}
	parts, known := partsOf(l)
	switch {
	case l.Alias:
		c.aliased.Store(true)
		fileKey(c.aliases, c.group(l.Workspace), key, append(binary.AppendUvarint([]byte{1}, uint64(number)), l.Code...))
		c.input = codegen.AppendAlias(c.input[:0], l.Canonical, l.Workspace, l.Code)
		key = codegen.Sum(c.input).Key()
	case !known:
		key = l.Key
	case len(parts) > 0:
		h = c.hash(l.Canonical, l.Workspace, parts, 0)
		key = h.Key()
	}
	if key != l.Key {
		here.wrong(StoreKey, "url_key", fmt.Sprintf("%x", key), fmt.Sprintf("%x", l.Key))
	}
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
	if run, ok := c.runs.byID[l.Run]; ok && l.Run != c.runs.ours && !run.KeepCreated && !l.Created.Equal(run.AsOf) {
		here.wrong(StoreRun, "created_at", "as_of of run "+fmt.Sprint(l.Run)+", "+timeText(run.AsOf), timeText(l.Created))
	}
	if l.Run == c.runs.ours {
		if c.since.see(l, c.runs.ours); string(l.Workspace) != c.checked {
			c.checked = string(l.Workspace)
			c.checkScheme(c.runs, c.checked)
		}
		c.beyond = c.run.hasAs(c.beyond[:0], l)
		c.created += c.sumCreated(l.Workspace, l.Code, l.Canonical, c.beyond, l.Alias)
	}
	if string(l.Workspace) != c.of {
		c.of = string(l.Workspace)
		c.scheme, c.makes = c.schemeOf(c.runs, c.of)
	}
	if l.Alias || !known || !c.makes {
		return
	}
	scheme := c.scheme
	if scheme.Name() != codegen.Name {
		c.input = codegen.AppendIdentity(c.input[:0], l.Canonical, l.Workspace, parts, 0)
		h = scheme.Sum(c.input)
	}
	if c.code = scheme.AppendCode(c.code[:0], h); bytes.Equal(c.code, l.Code) {
		return
	}
	most, kept := max(c.run.mostSalt, saltOfAny), c.mayKeep(l.Run)
	switch {
	case kept && l.Run == c.runs.ours && len(l.Code) != c.run.length:
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
	if !c.run.listed { // they may be blocked
		return
	}
	scheme, err = scheme.WithLength(len(l.Code))
	for s := 0; s < salt && err == nil; s++ {
		c.input = codegen.AppendIdentity(c.input[:0], l.Canonical, l.Workspace, parts, s)
		code := scheme.AppendCode(nil, scheme.Sum(c.input))
		if c.run.maker.Word(code) != "" {
			continue
		}
		file(c.low, c.group(l.Workspace), &claim{what: needs, salt: s, row: number, code: code, canonical: l.Canonical})
	}
}

// mayKeep reports whether a run may have kept a code that no salt gives. The store does not tell
// of other runs whether they kept any.
func (c *linkChecker) mayKeep(run int32) bool {
	_, known := c.runs.byID[run]
	return known && (run != c.runs.ours || c.run.mode().Keeps())
}
