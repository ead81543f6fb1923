package stage

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/linkforge/bulk/pipeline/assign"
	"github.com/linkforge/bulk/pipeline/emit"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/settle"
)

// A shard is its records, surveyed.
type shard struct {
	j       *Job
	rows    *intake.Rows // with no rejects
	settled *settle.Settlement
	contest []assign.URL
	links   *store // nil: there are none
	sum     uint64 // of all that came, as of recordSum
}

// A part is what an attempt wrote of the mapping.
type part struct {
	File   File                    `json:"file"`
	Rows   [outcome.Count]int64    `json:"rows"`  // by outcome
	Lower  int64                   `json:"lower"` // rows of the collisions
	Digest string                  `json:"row_digest"`
	Merged *manifest.MergedDiffers `json:"merged_differs,omitempty"`
}

// load reads what Map made for a shard, and surveys it. The caller closes it.
func (j *Job) load(ctx context.Context, from feed) (s *shard, err error) {
	names, coder := record.NewWorkspaces(), j.coder
	cfg := j.sorter(recordMemory)
	cfg.CompareGroups, cfg.Compare, cfg.Head = names.Compare, coder.Order.Compare, record.KeySize
	s = &shard{j: j, rows: &intake.Rows{Inputs: j.inputs, Records: extsort.New(cfg), Rejects: extsort.NewByKey(j.sorter(rejectMemory)), Order: coder.Order, Workspaces: names}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	s.links = j.newStore(names)
	if err := s.take(ctx, from); err != nil {
		return s, err
	}
	names.Freeze()
	if err := errors.Join(s.rows.Records.Finish(ctx), s.rows.Rejects.Finish(ctx)); err != nil {
		return s, err
	}
	var has settle.Store
	if s.links != nil {
		if err := s.links.entries.Finish(ctx); err != nil {
			return s, err
		}
		has = s.links
	}
	s.settled, s.contest, err = settle.Survey(ctx, s.rows.Records, names, has, settle.Config{
		Order: coder.Order, MaxRetries: coder.MaxRetries, Workers: j.opts.Workers, Settled: new(atomic.Int64),
	})
	return s, err
}

// take puts what comes to a shard into its sorters.
func (s *shard) take(ctx context.Context, from feed) error {
	records, ids := s.rows.Records.NewWriter(), s.rows.Workspaces.NewCache()
	var entries *extsort.Writer
	if s.links != nil {
		entries = s.links.entries.NewWriter()
	}
	return from(func(of byte, stretch []byte) error {
		var group uint32
		var workspace []byte
		w := records
		if of == ofLinks {
			w = entries
		}
		readStretch(stretch, func(name []byte) {
			workspace = name
			if group = ids.ID(name); of == ofLinks {
				s.links.has[string(name)] = true
			}
		}, func(key uint64, rec []byte) {
			s.sum += recordSum(of, workspace, key, rec)
			copy(w.Reserve(group, key, len(rec)), rec)
		})
		return errors.Join(w.Err(), cancelled(ctx))
	})
}

func (s *shard) close() error {
	err := s.rows.Close()
	if s.settled != nil {
		err = errors.Join(err, s.settled.Close())
	}
	if s.links != nil {
		err = errors.Join(err, s.links.entries.Close())
	}
	return err
}

// write writes the part of the mapping, and the collisions. The first rows may be of a URL that begins in a
// shard before, with this record.
func (s *shard) write(ctx context.Context, a *attempt, origin *record.Record, collisions io.Writer) (p part, err error) {
	j, columns := s.j, report.ColumnsOf(s.j.terms, false, false)
	opts := report.MappingOptions{BaseURL: j.terms.BaseURL, ExcelSafe: j.terms.ExcelSafe, Workers: j.opts.Workers, Columns: columns}
	if j.terms.Carry {
		opts.Carried = report.CarriedNames(columns.Names(), j.inputs.Carried)
	}
	f, name, err := a.createIn(manifest.PartsDir, ".csv")
	if err != nil {
		return p, err
	}
	mapping, err := report.NewMapping(f.digested(), report.CSV, opts)
	if err != nil {
		return p, err
	}
	c := report.NewCollisions(collisions, j.terms.ExcelSafe, false)
	w, err := emit.Sorted(ctx, s.rows, s.settled, mapping, c, nil, emit.Config{
		Workers: j.opts.Workers, NoCarry: !j.terms.Carry, Columns: columns, AsOf: j.run.AsOf.Unix(), Profile: j.terms.URLs,
		Origin: origin, Written: new(atomic.Int64),
	})
	if err == nil {
		err = errors.Join(mapping.Close(), c.Close())
	}
	p.Rows, p.Lower, p.Digest, p.Merged = w.Rows, w.Collisions, w.Digest, w.Merged
	p.File, err = f.written(name, err)
	return p, err
}

// reduced is what an attempt of Reduce tells.
type reduced struct {
	Part      part       `json:"part"`      // as if each URL had its first code
	Contested []url      `json:"contested"` // URLs that want a code which another URL of the shard has or wants
	First     *edge      `json:"first"`     // nil: the shard has no rows
	Last      *edge      `json:"last"`
	Holders   table      `json:"holders"`          // of first codes
	Owners    table      `json:"owners"`           // links that have the codes; without a name: there are none
	Salted    []decision `json:"salted,omitempty"` // URLs whose link has a code of a salt above 0
	Sum       uint64     `json:"sum"`              // of all that came, as of recordSum
	Kept      File       `json:"kept"`             // what came from an engine; without a name: it is in the files of Map
}

func (r reduced) files() []File {
	return named(r.Part.File, r.Holders.File, r.Owners.File, r.Kept)
}

func (r reduced) digest() string { return r.Part.File.SHA256 }

// A url is a canonical URL in a workspace.
type url struct {
	Workspace []byte `json:"workspace"`
	Canonical []byte `json:"canonical"`
}

func (u *url) id() urlID { return urlID{string(u.Workspace), string(u.Canonical)} }

type urlID struct{ workspace, canonical string }

// An edge is the first or the last code of a shard, which may be that of rows of the shard before or after
// it, too.
type edge struct {
	Workspace []byte   `json:"workspace"`
	Code      string   `json:"code"` // the first one of its URLs
	New       [][]byte `json:"new"`  // canonical URLs that no link has, in the order of the sort
	URL       []byte   `json:"url"`  // the outermost one
	Origin    origin   `json:"origin"`
	All       bool     `json:"all"`    // all rows of the shard are of this code
	Single    bool     `json:"single"` // all rows of the shard are of this URL
}

// An origin is what the rows of a URL in later shards need of its first row.
type origin struct {
	Original []byte `json:"original"`
	Source   int    `json:"source"`
	Row      int64  `json:"row"`
}

func (o *origin) record() *record.Record {
	return &record.Record{Original: o.Original, Place: record.Place{Source: o.Source, Row: o.Row, Offset: -1}}
}

// Reduce writes a shard, which is known by its number.
func (j *Job) Reduce(ctx context.Context, n int) error {
	if err := checkTask("reduce", n, j.Shards()); err != nil {
		return err
	}
	a := j.begin("reduce", n)
	_, err := j.reduce(ctx, a, j.files(n), &reduced{})
	a.ended(err)
	return err
}

// reduce writes a shard of what comes to it, and returns the name of the report.
func (j *Job) reduce(ctx context.Context, a *attempt, from feed, told *reduced) (reported string, err error) {
	s, err := j.load(ctx, from)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	told.Sum = s.sum
	for i := range s.contest {
		told.Contested = append(told.Contested, s.urlOf(&s.contest[i]))
	}
	for d := range s.settled.Found {
		if d.Salt > 0 {
			told.Salted = append(told.Salted, decision{url: s.urlOf(&d.URL), Code: d.Code, Salt: d.Salt})
		}
	}
	if err := s.walk(ctx, a, told); err != nil {
		return "", err
	}
	if s.links != nil {
		if told.Owners, err = s.links.writeOwners(ctx, a); err != nil {
			return "", err
		}
	}
	if told.Part, err = s.write(ctx, a, nil, io.Discard); err != nil {
		return "", err
	}
	return a.report(told)
}

func (s *shard) urlOf(u *assign.URL) url {
	return url{s.rows.Workspaces.Name(u.Workspace), u.Canonical}
}

// walk visits the URLs in order: it writes who has the first codes, and notes the edges.
func (s *shard) walk(ctx context.Context, a *attempt, told *reduced) error {
	f, name, err := a.create(".holders")
	if err != nil {
		return err
	}
	h := &holders{file: f}
	e := edges{s: s, contested: map[urlID]bool{}, told: told}
	for i := range told.Contested {
		e.contested[told.Contested[i].id()] = true
	}
	err = s.rows.Records.InOrder(ctx, 1, func(i int, b *extsort.Bucket) error {
		defer b.Release()
		var code []byte
		for first := range b.Runs(record.KeySize) {
			if first == 0 && s.settled.Continues(i) {
				continue
			}
			rec := b.Record(first)
			isNew := s.settled.Decide(i, first, b.Group(first), rec).Outcome == outcome.Created
			workspace := s.rows.Workspaces.Name(b.Group(first))
			code = s.rows.Order.AppendFirst(code[:0], rec)
			if contested := e.see(workspace, code, rec, isNew); isNew && !contested {
				if err := h.add(workspace, b.Key(first), code, record.Canonical(rec)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	e.end()
	told.Holders, err = h.finish(name, err)
	return err
}

// edges finds the first and the last code of a shard. It copies what it sees of a code into memory that it
// uses again for the next one.
type edges struct {
	s         *shard
	contested map[urlID]bool
	told      *reduced
	now       edge // of the code in hand; what it has belongs to texts
	code      []byte
	texts     []byte
	slots     int // with the one in hand
	urls      int
}

// see takes the next URL, which has this record first, and reports whether it is contested.
func (e *edges) see(workspace, code, rec []byte, isNew bool) (contested bool) {
	r := record.Decode(rec)
	if e.slots == 0 || !bytes.Equal(e.code, code) || !bytes.Equal(e.now.Workspace, workspace) {
		e.close()
		e.slots++
		e.code, e.texts = append(e.code[:0], code...), e.texts[:0]
		e.now = edge{Workspace: workspace, New: e.now.New[:0]}
	}
	e.urls++
	e.now.URL = e.keep(r.Canonical)
	e.now.Origin = origin{e.keep(r.Original), r.Place.Source, r.Place.Row}
	if isNew {
		e.now.New = append(e.now.New, e.now.URL)
		contested = len(e.contested) > 0 && e.contested[urlID{string(workspace), string(r.Canonical)}]
	}
	if e.urls == 1 {
		e.told.First = &edge{URL: bytes.Clone(e.now.URL)}
	}
	return contested
}

// keep copies a text, valid until the next code.
func (e *edges) keep(text []byte) []byte {
	at := len(e.texts)
	e.texts = append(e.texts, text...)
	return e.texts[at:len(e.texts):len(e.texts)]
}

// close ends the code in hand, which is the first one if there was none before.
func (e *edges) close() {
	if e.slots != 1 {
		return
	}
	first := e.told.First
	first.Workspace, first.Code = e.now.Workspace, string(e.code)
	for _, u := range e.now.New {
		first.New = append(first.New, bytes.Clone(u))
	}
}

func (e *edges) end() {
	e.close()
	if e.slots == 0 {
		return
	}
	e.now.Code, e.now.All, e.now.Single = string(e.code), e.slots == 1, e.urls == 1
	e.told.Last = &e.now
}
