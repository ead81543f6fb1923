package stage

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/sink"
)

// Links is an export whose links count as those of the store.
type Links struct {
	Name string         `json:"name"`
	Told manifest.Links `json:"told"`

	Parts []source.Groups `json:"parts,omitempty"` // none: it is one
}

// FindLinks reads what is told of exports. The links of each workspace must be in one of them, and made as
// the run makes links: by this profile and scheme.
func FindLinks(ctx context.Context, names []string, profile string, scheme sink.Scheme, rows int64) (list []Links, err error) {
	has := map[manifest.Text]string{} // the export of each workspace
	for _, name := range names {
		told, err := manifest.ReadLinks(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, w := range told.Workspaces {
			theirs := sink.Scheme{Name: w.Scheme, CodeLength: w.CodeLength, Multiplier: w.Multiplier, Fingerprint: w.Fingerprint, Fold: w.Fold}
			why := ""
			switch {
			case has[w.Workspace] != "":
				why = fmt.Sprintf("the links of workspace %q are in %s, too", w.Workspace, has[w.Workspace])
			case w.Rules:
				why = fmt.Sprintf("workspace %q has links with link rules, or that were deleted, which stages do not know", w.Workspace)
			case w.Profile != profile:
				why = fmt.Sprintf("workspace %q has links of profile %s, and the options are those of profile %s", w.Workspace, w.Profile, profile)
			case theirs != scheme:
				why = fmt.Sprintf("workspace %q has links of scheme %s, and the options are those of scheme %s", w.Workspace, schemeText(theirs), schemeText(scheme))
			}
			if why != "" {
				return nil, fmt.Errorf("%s: %s", name, why)
			}
			has[w.Workspace] = name
		}
		in, err := openLinks(ctx, name, source.Options{})
		if err != nil {
			return nil, err
		}
		list = append(list, Links{name, *told, parts(in.Input, rows)})
		if err := in.Close(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func schemeText(s sink.Scheme) string {
	text := s.Name
	if s.CodeLength > 0 {
		text += fmt.Sprintf(" with codes of %d characters", s.CodeLength)
	}
	if s.Fold {
		text += ", folding case"
	}
	if s.Fingerprint != "" {
		text += ", secret " + s.Fingerprint
	}
	return text
}

// unfit are columns of an export that only links have which stages do not know.
var unfit = []string{"expires_at", "max_uses", "link_type", "owner_id", "ref", "marked_at"}

// A linkReader reads an export.
type linkReader struct {
	*source.Input
	at    [6]int // columns: workspace, code, kind, canonical URL; base key and status, which may be lacking
	cells source.Cells
}

func openLinks(ctx context.Context, name string, opts source.Options) (*linkReader, error) {
	opts.URLColumn = "canonical_url"
	in, err := source.Open(ctx, name, opts)
	if err != nil {
		return nil, err
	}
	r := &linkReader{Input: in}
	for i, column := range []string{"workspace_id", "short_code", "kind", "canonical_url", "base_key", "status"} {
		if r.at[i] = slices.Index(in.Columns, column); r.at[i] < 0 && i < 4 {
			return nil, errors.Join(fmt.Errorf("%s: has no column %s", name, column), in.Close())
		}
	}
	for _, column := range unfit {
		if slices.Contains(in.Columns, column) {
			return nil, errors.Join(fmt.Errorf("%s: has the column %s: links that end, have an owner or are marked cannot be used", name, column), in.Close())
		}
	}
	return r, nil
}

// A link is what stages know of one that exists.
type link struct {
	workspace, code, canonical []byte
	alias                      bool
}

// read visits the links, each valid during the call.
func (r *linkReader) read(ctx context.Context, visit func(l *link) error) error {
	return r.Read(ctx, 1, func(_ int, b *source.Batch) error {
		if len(b.Errors) > 0 {
			return fmt.Errorf("row %d: %s", b.Errors[0].Row, b.Errors[0].Detail)
		}
		r.cells.Of(b)
		for i := range b.Rows {
			cell := func(n int) []byte { return r.cells.Cell(r.at[n], i) }
			l := link{workspace: cell(0), code: cell(1), canonical: cell(3), alias: string(cell(2)) == legacy.KindAlias}
			if !l.alias && len(cell(4)) > 0 {
				return fmt.Errorf("row %d: links that have parts cannot be used", b.Rows[i])
			}
			if status := cell(5); len(status) > 0 && string(status) != sink.Active {
				return fmt.Errorf("row %d: its status is %s: links that ended or were deleted cannot be used", b.Rows[i], status)
			}
			if err := visit(&l); err != nil {
				return err
			}
		}
		return nil
	})
}

// An entry is a link, as the shards need it that may have its code as a first one (isOwner), or its URL
// (isURL):
//
//	1 byte: isOwner, isURL, isAlias | code and canonical URL as of packed.AppendCell
const (
	isOwner = 1 << iota
	isURL
	isAlias
)

func appendEntry(dst []byte, l *link, as byte) []byte {
	if l.alias {
		as |= isAlias
	}
	return packed.AppendCell(packed.AppendCell(append(dst, as), l.code), l.canonical)
}

func cutEntry(entry []byte) (l link, as byte) {
	as = entry[0]
	l.alias = as&isAlias != 0
	l.code, entry = packed.CutCell(entry[1:])
	l.canonical, _ = packed.CutCell(entry)
	return l, as
}

// linked is what an attempt of Map tells of links.
type linked struct {
	Rows   File               `json:"rows"` // see exchange: of entries; without a name: an engine has them
	Read   []manifest.LinksOf `json:"read"` // of each workspace how many links there are, and their digest
	SHA256 string             `json:"sha256"`
	Digest string             `json:"digest"`
	Sum    uint64             `json:"sum"` // of all entries, as of recordSum
}

func (l linked) files() []File  { return named(l.Rows) }
func (l linked) digest() string { return l.SHA256 + l.Digest }

// mapLinks distributes the links of an export, or of a row group of it, which is known by its number, and
// returns the name of the report.
func (j *Job) mapLinks(ctx context.Context, n int, emit Emit) (reported string, err error) {
	file, part := partOf(j.linksParts(), n)
	of := &j.plan.Links[file]
	r, err := openLinks(ctx, of.Name, source.Options{TempDir: j.opts.TempDir, RowGroups: part})
	if err != nil {
		return "", err
	}
	cfg := j.sorter(recordMemory)
	entries := extsort.NewByKey(cfg) // by shard; each entry with its workspace and key before it
	defer func() { err = errors.Join(err, entries.Close()) }()
	told := map[string]*linksSum{}
	w := entries.NewWriter()
	err = r.read(ctx, func(l *link) error {
		sum := told[string(l.workspace)]
		if sum == nil {
			sum = &linksSum{digest: report.NewLinksDigest()}
			told[string(l.workspace)] = sum
		}
		sum.rows++
		sum.digest.Add(l.workspace, l.canonical, l.code, l.alias)
		j.fileLink(w, l)
		return w.Err()
	})
	if err = errors.Join(err, r.Close()); err != nil {
		return "", fmt.Errorf("%s: %w", of.Name, err)
	}
	done := linked{}
	for _, w := range slices.Sorted(maps.Keys(told)) {
		done.Read = append(done.Read, manifest.LinksOf{Workspace: manifest.Text(w), Links: told[w].rows, Digest: told[w].digest.Sum()})
	}
	sha := r.SHA256()
	done.SHA256 = hex.EncodeToString(sha[:])
	if part.To == 0 {
		err = of.check(done.Read) // as is all later
	}
	if err != nil {
		return "", err
	}
	if err := entries.Finish(ctx); err != nil {
		return "", err
	}
	a := j.begin("map", j.inputTasks()+n)
	defer func() { a.ended(err) }()
	x, err := a.exchange(".links", ofLinks, emit)
	if err != nil {
		return "", err
	}
	if done.Rows, done.Digest, err = x.finish(writeEntries(ctx, x, entries)); err != nil {
		return "", err
	}
	done.Sum = x.total
	return a.report(done)
}

// writeEntries writes entries to the stretches of their shards.
func writeEntries(ctx context.Context, x *exchange, entries *extsort.Sorter) error {
	at := entries.Cursor(ctx, 1)
	defer at.Close()
	for at.Next() {
		for x.shard() < int(at.Key()) {
			if err := x.next(); err != nil {
				return err
			}
		}
		workspace, rest := packed.CutCell(at.Record())
		if err := x.add(workspace, binary.BigEndian.Uint64(rest), rest[8:]); err != nil {
			return err
		}
	}
	return at.Err()
}

// linksSum is what was read of the links of a workspace.
type linksSum struct {
	rows   int64
	digest *report.LinksDigest
}

// check compares what was read with what is told.
func (l *Links) check(read []manifest.LinksOf) error {
	sums, links := map[manifest.Text][]string{}, map[manifest.Text]int64{}
	for _, w := range read {
		sums[w.Workspace], links[w.Workspace] = append(sums[w.Workspace], w.Digest), links[w.Workspace]+w.Links
	}
	for _, w := range l.Told.Workspaces {
		if sum, err := report.SumDigests(sums[w.Workspace]); err != nil || links[w.Workspace] != w.Links || sum != w.Digest {
			return fmt.Errorf("%s: the links of workspace %q are not those that %s describes", l.Name, w.Workspace, manifest.LinksNameOf(l.Name))
		}
	}
	if len(sums) != len(l.Told.Workspaces) {
		return fmt.Errorf("%s: it has workspaces that %s does not describe", l.Name, manifest.LinksNameOf(l.Name))
	}
	return nil
}

// links returns what the tasks of Map tell of the exports, in order, and whether these are as they were
// described.
func (j *Job) links() ([]linked, error) {
	told, err := accepted[linked](j, "map", upTo(j.MapTasks())[j.inputTasks():])
	if err != nil {
		return nil, err
	}
	list, n := inOrder(told), 0
	for i := range j.plan.Links {
		of := &j.plan.Links[i]
		var read []manifest.LinksOf
		tasks := max(len(of.Parts), 1)
		for _, l := range list[n:][:tasks] {
			read = append(read, l.Read...)
		}
		if err := of.check(read); err != nil {
			return nil, err
		}
		n += tasks
	}
	return list, nil
}

// fileLink files the entries of a link for the shards that need it.
func (j *Job) fileLink(w *extsort.Writer, l *link) {
	order := &j.coder.Order
	owner, url := order.KeyOf(l.code), uint64(0)
	if !l.alias {
		h := codegen.Sum(codegen.AppendInput(nil, l.canonical, l.workspace, 0))
		url = order.Key(order.First(h, l.canonical, l.workspace, nil).Hash)
	}
	switch {
	case l.alias:
		j.fileEntry(w, l, owner, isOwner)
	case owner == url:
		j.fileEntry(w, l, owner, isOwner|isURL)
	default:
		j.fileEntry(w, l, owner, isOwner)
		j.fileEntry(w, l, url, isURL)
	}
}

func (j *Job) fileEntry(w *extsort.Writer, l *link, key uint64, as byte) {
	rec := binary.BigEndian.AppendUint64(packed.AppendCell(nil, l.workspace), key)
	rec = appendEntry(rec, l, as)
	first, last := j.span(l.workspace, key)
	for n := first; n <= last; n++ {
		copy(w.Reserve(0, uint64(n), len(rec)), rec)
	}
}

// A store is the links that concern a shard, in the order of workspaces and keys.
type store struct {
	mu      sync.Mutex
	entries *extsort.Sorter
	names   *record.Workspaces
	order   record.Order
	has     map[string]bool // workspaces
}

// newStore begins the links of a shard; nil: the plan has none. The names of workspaces are frozen later.
func (j *Job) newStore(names *record.Workspaces) *store {
	if len(j.plan.Links) == 0 {
		return nil
	}
	cfg := j.sorter(recordMemory / 2)
	cfg.CompareGroups, cfg.Compare = names.Compare, bytes.Compare
	return &store{entries: extsort.New(cfg), names: names, order: j.coder.Order, has: map[string]bool{}}
}

// Populated implements settle.Store.
func (s *store) Populated(_ context.Context, workspaces []string) ([]bool, error) {
	has := make([]bool, len(workspaces))
	for i, w := range workspaces {
		has[i] = s.has[w]
	}
	return has, nil
}

// Gone implements settle.Store.
func (s *store) Gone(_ context.Context, bases []sink.Key) ([]bool, error) {
	return make([]bool, len(bases)), nil
}

// Lookup implements settle.Store. Each probe has the first code of its URL.
func (s *store) Lookup(ctx context.Context, probes []sink.Probe, visit func(sink.Found) error) error {
	s.mu.Lock() // a bucket is loaded by one goroutine at a time
	defer s.mu.Unlock()
	at := s.entries.Finder()
	defer at.Close()
	for i := range probes {
		p := &probes[i]
		var failed error
		err := at.Find(ctx, s.names.ID(string(p.Workspace)), s.order.KeyOf(p.Code), func(entry []byte) bool {
			l, as := cutEntry(entry)
			same := !l.alias && bytes.Equal(l.canonical, p.Canonical)
			switch {
			case as&isURL != 0 && same:
				failed = visit(sink.Found{Probe: i, Same: true, Code: l.code, Canonical: l.canonical})
			case as&isOwner != 0 && !same && bytes.Equal(l.code, p.Code):
				failed = visit(sink.Found{Probe: i, Alias: l.alias, Code: l.code, Canonical: l.canonical})
			}
			return failed == nil
		})
		if err = errors.Join(err, failed); err != nil {
			return err
		}
	}
	return nil
}

// writeOwners writes who has the codes of links.
func (s *store) writeOwners(ctx context.Context, a *attempt) (t table, err error) {
	f, name, err := a.create(".owners")
	if err != nil {
		return t, err
	}
	h := &holders{file: f}
	at := s.entries.Cursor(ctx, 1)
	defer at.Close()
	for err == nil && at.Next() {
		if l, as := cutEntry(at.Record()); as&isOwner != 0 {
			err = h.add(s.names.Name(at.Group()), at.Key(), l.code, l.canonical)
		}
	}
	return h.finish(name, errors.Join(err, at.Err()))
}
