package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
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
	if err := v.stored.Finish(ctx); err != nil {
		return err
	}
	low := v.newSorter(compareClaims)
	defer func() { err = errors.Join(err, low.Close()) }()
	c := &storeChecker{verifier: v, runs: runs, wanted: &claimCursor{Cursor: v.stored.Cursor(ctx, 0), v: v}}
	defer c.wanted.Close()
	created, err := v.checkStore(ctx, c, low)
	if err != nil {
		return err
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
	if err := low.Finish(ctx); err != nil || low.Len() == 0 {
		return err
	}
	return v.listAgain(ctx, runs, low, false)
}

// checkStore meets the links of the store with the wanted ones while workers check
// each by itself, and returns the sum of those that the run created. The lower
// codes of links that have a salt go into low.
func (v *verifier) checkStore(ctx context.Context, c *storeChecker, low *extsort.Sorter) (created uint64, err error) {
	workers := make([]*linkChecker, v.cfg.Workers)
	for i := range workers {
		workers[i] = &linkChecker{checker: &checker{verifier: v}, runs: c.runs, low: low.NewWriter()}
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
	}
	return created, err
}

// list meets every link of the store, and sends them to the workers.
func (c *storeChecker) list(ctx context.Context, block *storedLinks, send func(*storedLinks) (*storedLinks, error)) error {
	block.reset(1)
	err := c.cfg.Store.Scan(ctx, func(l *sink.Stored) (err error) {
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
	for _, cell := range []*[]byte{&c.Workspace, &c.Code, &c.Canonical, &c.Original} {
		if *cell == nil {
			continue
		}
		at := len(b.cells)
		b.cells = append(b.cells, *cell...)
		*cell = b.cells[at:len(b.cells):len(b.cells)]
	}
	b.list = append(b.list, c)
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
	if err := v.cfg.Store.Scan(ctx, c.meet); err != nil {
		return err
	}
	return c.rest()
}

// want files a link of the mapping that the store must have.
func (w *checker) want(r *link) {
	c := claim{created: r.Outcome == outcome.Created, row: r.Number, code: r.Code, canonical: r.Canonical, owner: storedAs(r)}
	file(w.wanted, w.group(r.Workspace), &c)
}

// storedAs returns the original URL as the store has it; nil: none, since it is
// the canonical one.
func storedAs(r *link) []byte {
	text := canon.Trim(r.Original)
	if bytes.Equal(text, r.Canonical) {
		return nil
	}
	return canon.EscapeInvalid(text)
}

// sumCreated returns the sum of a link as the run created it.
func (w *checker) sumCreated(workspace, code, canonical, original []byte) uint64 {
	w.input = w.input[:0]
	for _, cell := range [...][]byte{workspace, code, canonical, original} {
		w.input = extsort.AppendCell(w.input, cell)
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
		c.fault(storeName, c.number).wrong(StoreExtra, "run_id", fmt.Sprint("only links of run ", c.runs.ours, " that its mapping has as created"), string(l.Code))
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
	w := &c.wanted.claim
	owner := "an owner of " + string(w.code) + " in the store"
	switch w.what {
	case line:
		c.doubt(manifest.CollisionsName, w.row).wrong(Unexplained, "owner", owner, string(w.canonical))
	case refused:
		c.doubt(manifest.RejectsName, w.row).wrong(Unexplained, "reason", owner, outcome.CodeSpaceExhausted)
	case needs: // of a link that only the store has
		c.doubt(storeName, w.row).wrong(Unexplained, "short_code", owner, string(w.canonical))
	default:
		c.fault(c.run.mapping, w.row).wrong(StoreMissing, "short_code", "a link of the store", string(w.code))
	}
}

// same compares a link of the mapping, or the owner of a code, with what the store
// has.
func (c *storeChecker) same(w *claim, l *sink.Stored) {
	if w.what == line && !bytes.Equal(w.canonical, l.Canonical) {
		if c.isBefore(l) {
			c.fault(manifest.CollisionsName, w.row).wrong(BadOwner, "owner", string(l.Canonical), string(w.canonical))
		} else { // another URL may have had the code when the run was made
			c.doubt(manifest.CollisionsName, w.row).wrong(Unexplained, "owner", string(l.Canonical), string(w.canonical))
		}
	}
	if w.what == refused && bytes.Equal(w.canonical, l.Canonical) && c.isBefore(l) {
		c.fault(manifest.RejectsName, w.row).wrong(BadReason, "reason", "no link of "+string(w.canonical)+" in the store", outcome.CodeSpaceExhausted)
	}
	if w.what != holds {
		return
	}
	here := c.fault(c.run.mapping, w.row)
	if !bytes.Equal(w.canonical, l.Canonical) {
		here.wrong(StoreDiffers, "canonical_url", string(w.canonical), string(l.Canonical))
	}
	if !w.created {
		if c.runs.ours != 0 && l.Run == c.runs.ours {
			here.wrong(StoreDiffers, "outcome", outcome.Existing.String(), outcome.Created.String())
		}
		return
	}
	if !bytes.Equal(w.owner, l.Original) {
		here.wrong(StoreDiffers, "original_url", string(w.owner), string(l.Original))
	}
	if c.runs.ours != 0 && l.Run != c.runs.ours {
		here.wrong(StoreDiffers, "run_id", fmt.Sprint(c.runs.ours), fmt.Sprint(l.Run))
	}
	if !l.Created.Equal(c.run.manifest.AsOf) {
		here.wrong(StoreDiffers, "created_at", c.run.manifest.AsOf.String(), timeText(l.Created))
	}
}

// lenient is the profile that rejects least: other runs may have had other options.
var lenient = canon.Profile{KeepUserinfo: true}

// saltOfAny is the highest salt that is tried to explain a link that only the store has. A
// run with more retries may have made it.
const saltOfAny = 1000

// A linkChecker checks single links of the store, for one goroutine.
type linkChecker struct {
	*checker
	runs *storeRuns
	low  *extsort.Writer
}

func (c *linkChecker) link(l *sink.Stored, number int64) {
	here := c.fault(storeName, number)
	h := c.hash(l.Canonical, l.Workspace, 0)
	if key := h.Key(); key != l.Key {
		here.wrong(StoreKey, "url_key", fmt.Sprintf("%x", key), fmt.Sprintf("%x", l.Key))
	}
	original := l.Original
	if original == nil {
		original = l.Canonical
	}
	var err error
	if c.canon, err = lenient.Append(c.canon[:0], original); err == canon.TooLong && len(original) > 1<<16 {
		// Escaped bytes have made it longer than any input.
		c.canon, err = lenient.Append(c.canon[:0], l.Canonical)
	}
	if err != nil || !bytes.Equal(c.canon, l.Canonical) {
		here.wrong(StoreCanonical, "canonical_url", string(c.canon), string(l.Canonical))
	}
	if run, ok := c.runs.byID[l.Run]; ok && l.Run != c.runs.ours && !l.Created.Equal(run.AsOf) {
		here.wrong(StoreRun, "created_at", "as_of of run "+fmt.Sprint(l.Run)+", "+timeText(run.AsOf), timeText(l.Created))
	}
	if l.Run == c.runs.ours && l.Created.Equal(c.run.manifest.AsOf) {
		c.created += c.sumCreated(l.Workspace, l.Code, l.Canonical, l.Original)
	} else if l.Run == c.runs.ours {
		c.created++ // so that the sums differ
	}
	if c.code = c.run.scheme.AppendCode(c.code[:0], h); bytes.Equal(c.code, l.Code) {
		return
	}
	salt := codegen.SaltOf(l.Canonical, l.Workspace, l.Code, max(c.run.mostSalt, saltOfAny))
	if salt < 0 {
		here.wrong(StoreCode, "short_code", "a code of its URL", string(l.Code))
	}
	scheme, err := codegen.New(len(l.Code))
	for s := 0; s < salt && err == nil; s++ {
		code := scheme.AppendCode(nil, c.hash(l.Canonical, l.Workspace, s))
		file(c.low, c.group(l.Workspace), &claim{what: needs, salt: s, row: number, code: code, canonical: l.Canonical})
	}
}
