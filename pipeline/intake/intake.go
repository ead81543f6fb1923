// Package intake reads the inputs of a run: [Open] determines their formats and columns,
// [Read] makes a record of each row that has a canonical URL and a workspace, and a reject
// of any other, and sorts both.
package intake

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/along"
	"github.com/linkforge/bulk/pipeline/claim"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/judge"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/shorturl"
	"github.com/linkforge/bulk/pipeline/terms"
)

// Config says how rows are read. All fields but Limit, Claims, Beyond, Base and Others must be set.
type Config struct {
	Judge     *judge.Judge
	Codes     codegen.Maker // of the codes by which records are sorted
	Retries   int           // highest salt of these
	Workspace []byte        // of rows whose cell of the workspace column is blank; empty: such rows are rejected
	Limit     int64         // most records that are read, of all inputs together; 0: all
	Workers   int           // goroutines that canonicalize and hash

	Beyond *terms.Beyond  // nil: nothing but code and URL is looked at
	Base   *shorturl.Base // of short URLs; nil: there are none
	Others *Others        // nil: no other profiles are looked at

	Records extsort.Config // all but the order
	Rejects extsort.Config // all but the order
	Claims  extsort.Config // of legacy codes that are kept; all but the order
	// Room returns an error if so many bytes do not fit where rows are spilled. Slack is
	// how many bytes that the sorts hold need no room there: memory that is not full.
	Room  func(need int64) error
	Slack int64

	// Progress, for another goroutine: bytes of the inputs as they lie, records, rejects.
	Bytes, Read, Rejected *atomic.Int64
}

// Rows are what the inputs hold: accepted rows and rejects, each in a sort of its own.
type Rows struct {
	*Inputs
	Records    *extsort.Sorter // see package record
	Rejects    *extsort.Sorter // by place
	Order      record.Order
	Workspaces *record.Workspaces
	Reasons    map[string]int64 // rejects by reason
	Nones      int64            // accepted rows whose expiry or limit is a word for none
	Dates      int64            // accepted rows whose expiry is a date without a time
	Rewritten  int64            // accepted rows whose URL is not as its canonical form
	NotUTF8    record.Noted     // accepted rows whose URL has bytes that are not UTF-8
	Resolved   record.Noted     // accepted rows whose URL was resolved against Judge.Base
	Changes    canon.ChangeCounts

	Claims      *extsort.Sorter    // on codes that are to be kept (package claim); nil: none are
	WithoutCode int64              // rows without a legacy code
	Damaged     *manifest.OddCodes // codes that a spreadsheet or a data frame has rewritten; nil: none
	Escaped     *manifest.OddCodes // codes that should be decoded, perhaps; nil: none
	variants    int64              // rows that the inputs do not have, since one of theirs became several
	Expanded    int64              // rows of the inputs that have variants of a campaign
	Tagged      record.Noted       // of these, rows whose own URL had a parameter of it
	Told        along.Told         // beyond code and URL
	Ruled       map[uint32]bool    // workspaces, by number, of rows that have a parameter or a reference
	Defaulted   int64              // accepted rows whose domain is that of columns.Choice.DefaultDomain
	NoHost      record.Noted       // rows whose domain cannot be a part of their short URL as of Config.Base; the text is the domain

	others   *extsort.Sorter // nil: no other profiles are looked at
	profiles int             // how many

	room atomic.Int64 // spilled bytes past which the room is looked at
}

// Read reads all inputs. A worker takes a stretch of an input all the way into the sort,
// while it is in its processor's cache. A small input has one worker, so that several are
// read at once. The error is that of the first input that has one, that of spilling, or the
// cause that ended ctx. The caller closes the rows, which it gets with an error, too.
func Read(ctx context.Context, in *Inputs, cfg Config) (*Rows, error) {
	rows := &Rows{
		Inputs: in, Order: record.Order{Maker: cfg.Codes, Retries: cfg.Retries, Carried: len(in.Carried)},
		Workspaces: record.NewWorkspaces(), Reasons: map[string]int64{}, Ruled: map[uint32]bool{},
	}
	if cfg.Judge.Rules != nil {
		rows.Order.Params = in.carriedParams()
	}
	if c := cfg.Judge.Codes; c != nil && c.Mode.Keeps() {
		rows.Order.Kept, rows.Claims = true, claim.NewSorter(cfg.Claims, rows.Workspaces)
	}
	cfg.Records.CompareGroups, cfg.Records.Compare, cfg.Records.Head = rows.Workspaces.Compare, rows.Order.Compare, record.KeySize
	rows.Records = extsort.New(cfg.Records)
	rows.Rejects = extsort.NewByKey(cfg.Rejects)
	if cfg.Others != nil {
		rows.others, rows.profiles = cfg.Others.newSorter(), len(cfg.Others.Profiles)
	}
	workers := make([]*worker, cfg.Workers)
	for i := range workers {
		workers[i] = newWorker(rows, &cfg)
	}
	if err := rows.read(ctx, workers, &cfg); err != nil {
		return rows, err
	}
	for _, w := range workers {
		for reason, n := range w.reasons {
			rows.Reasons[reason] += n
		}
		rows.Rewritten += w.rewritten
		rows.Defaulted += w.defaulted
		rows.NoHost.Merge(&w.noHost)
		rows.Dates += w.dates
		rows.Expanded += w.expanded
		rows.Tagged.Merge(&w.tagged)
		rows.NotUTF8.Merge(&w.notUTF8)
		rows.Resolved.Merge(&w.resolved)
		rows.Nones += w.nones
		rows.Changes.Merge(&w.changes)
		rows.WithoutCode, rows.variants = rows.WithoutCode+w.withoutCode, rows.variants+w.variants
		rows.Told.Merge(&w.told)
		maps.Copy(rows.Ruled, w.ruled)
	}
	rows.tellOddCodes(workers)
	rows.Workspaces.Freeze()
	for _, s := range rows.sorters() {
		if err := s.Finish(ctx); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// tellOddCodes tells of the codes that may not be those of the old server.
func (r *Rows) tellOddCodes(workers []*worker) {
	var damaged record.Damaged
	for _, w := range workers {
		damaged.Merge(&w.damaged)
	}
	r.Damaged = r.oddCodes(damaged.All())
	r.Escaped = r.oddCodes(damaged.Escaped(func(source int) bool { return r.List[source].CutsPaths() }))
}

func (r *Rows) oddCodes(all record.Noted) *manifest.OddCodes {
	if all.Rows == 0 {
		return nil
	}
	return &manifest.OddCodes{Rows: all.Rows, Example: manifest.CodeOfRow{
		Source: manifest.Text(r.List[all.First.Source].Name), Row: all.First.Row, Code: manifest.Text(all.Text),
	}}
}

// Read returns how many rows were read. A row of the inputs with several codes, or with variants of a
// campaign, counts as so many.
func (r *Rows) Read() int64 { return r.RowsRead() + r.variants }

func (r *Rows) sorters() []*extsort.Sorter {
	return slices.DeleteFunc([]*extsort.Sorter{r.Records, r.Rejects, r.Claims, r.others}, func(s *extsort.Sorter) bool { return s == nil })
}

// Close closes the sorts, but not the inputs.
func (r *Rows) Close() (err error) {
	if r == nil { // the run ended before it had any
		return nil
	}
	for _, s := range r.sorters() {
		err = errors.Join(err, s.Close())
	}
	return err
}

// read has the workers read the inputs in their order, several at a time.
func (r *Rows) read(ctx context.Context, workers []*worker, cfg *Config) error {
	free := make(chan *worker, len(workers))
	for _, w := range workers {
		free <- w
	}
	var reading sync.WaitGroup
	var failed atomic.Bool
	errs := make([]error, len(r.List))
	left := cfg.Limit
	for i, in := range r.List {
		if in.described {
			continue
		}
		if in.Limit = left; cfg.Limit > 0 && left == 0 {
			break
		}
		taken := make([]*worker, in.Workers(cfg.Workers))
		for n := range taken {
			taken[n] = <-free
		}
		if failed.Load() {
			break // no error of an input that follows would be the first
		}
		in.begun = true
		reading.Go(func() {
			if errs[i] = r.readInput(ctx, i, taken, cfg); errs[i] != nil {
				failed.Store(true)
			}
			for _, w := range taken {
				free <- w
			}
		})
		if cfg.Limit > 0 {
			reading.Wait()
			left -= in.Records()
		}
	}
	reading.Wait()
	return cmp.Or(errs...)
}
