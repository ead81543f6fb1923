// Package diff compares two runs, or two mappings. [Runs] calls a function with each
// [Difference]. The differences and their order depend only on what the files say: not on the
// formats of the mappings, nor on the order of their rows.
package diff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"golang.org/x/sync/errgroup"
)

// Config says what Runs compares.
type Config struct {
	A, B    string // each is the output directory of a run, or a mapping of any format
	Workers int    // goroutines that sort; 0: one for each processor
	Memory  int64  // bound in bytes, at least LeastMemory; the caller must set debug.SetMemoryLimit to three quarters of it; 0: no bound
	TempDir string // for what does not fit in memory; "": the directory of the system
	// NoMapping is called with the path of a run that has no mapping, because it had too
	// many rejects. Its links cannot be compared. May be nil.
	NoMapping func(path string)
	// Compared is called with what A and B are, before the first difference. May be nil.
	Compared func(a, b Side)

	spillAt int64 // of tests: bytes of a sort, whatever Memory says
}

// LeastMemory is the smallest bound that Runs can keep. For each side it holds blocks of rows
// and an Arrow batch, whose cells may have 32 MiB; and for each writer of the sort a chunk of
// every range.
const LeastMemory = overhead + 96<<20

const overhead = 416 << 20 // what is held beside the sort

// A Side is what was found at a path.
type Side struct {
	Path   manifest.Text    `json:"path"`
	SHA256 string           `json:"sha256"`           // of manifest.json, hexadecimal; of a mapping alone, of that
	Counts *manifest.Counts `json:"counts,omitempty"` // rows of the run; nil: a mapping alone
}

// side describes an operand.
func (s *operand) side(path string) Side {
	d := Side{Path: manifest.Text(path), SHA256: s.digest}
	if s.manifest != nil {
		d.Counts = &s.manifest.Counts
	}
	return d
}

// A Change is a kind of difference.
type Change string

// The kinds of differences.
const (
	Added           Change = "added"        // only B has the link
	Removed         Change = "removed"      // only A has the link
	Remapped        Change = "remapped"     // the same workspace and URL, another code
	Moved           Change = "moved"        // the same workspace and code, another URL, or another identity of the URL
	RowAdded        Change = "row_added"    // B has more rows of a link of both; only if the inputs differ
	RowRemoved      Change = "row_removed"  // A has more rows of a link of both; only if the inputs differ
	RowRemapped     Change = "row_remapped" // the row has another link, or legacy code; only if both runs had the same inputs
	KindChanged     Change = "kind"         // the link has another kind, link_code or link_salt; only if both runs have legacy codes
	ParamChanged    Change = "parameter"    // the link has another expires_at, max_uses, link_type or owner_id; only if both runs have link rules
	OutcomeChanged  Change = "outcome"      // the outcome or change of a row, if both runs had the same inputs, otherwise of a link
	RejectChanged   Change = "reject"       // a row rejected for another reason, or on one side only
	ManifestChanged Change = "manifest"     // an option, the profile or the scheme; or only one run has a mapping
	FileChanged     Change = "file"         // a report does not have the SHA-256 that its manifest says
)

// Changed and Unchanged stand in a FileChanged for what happened to the file of a side since
// its run.
const (
	Changed   = "changed"
	Unchanged = "unchanged"
)

// Accepted stands in a RejectChanged for the side that did not reject the row, if both runs
// had the same inputs.
const Accepted = "accepted"

// A Difference is one thing that differs. Fields that do not apply are empty.
type Difference struct {
	Change    Change        `json:"change"`
	Workspace manifest.Text `json:"workspace_id,omitempty"`
	Canonical manifest.Text `json:"canonical_url,omitempty"`
	Code      manifest.Text `json:"short_code,omitempty"`
	Source    manifest.Text `json:"source,omitempty"`
	Row       int64         `json:"row,omitempty"`
	Field     string        `json:"field"` // of which A and B are the values
	A         manifest.Text `json:"a"`
	B         manifest.Text `json:"b"`
}

// Runs calls emit with each difference between two runs or mappings, from one goroutine:
// first those of the files and of the manifests, then of the links, then moved codes and
// remapped rows, then rejects. Emit may keep what it is given. Its error ends the comparison and is returned. The rows of the files
// may be in any order; mappings that differ are mostly read twice. Runs compares
//
//   - links, once for each workspace and canonical URL, by the code of the row that is
//     created, or else existing; the salt follows from the code;
//   - if both runs have a mode of legacy codes: links, once for each workspace, canonical URL and
//     legacy code, and their kind, link_code and link_salt, as far as both mappings have them;
//   - if both are runs: links, once for each identity (package rules) of a URL;
//   - if both mappings have link rules: the parameters of that row, and its change. An expiry that
//     is reckoned from the as_of is the same in a run of another as_of. One that lies just as long
//     after the as_of is taken for reckoned;
//   - rows, by source and record, and of a campaign by the values of its parameters, if both are runs whose inputs have the same digests, one
//     by one, whatever their names; otherwise the number of rows of each link;
//   - rejects, if both are runs: by source and record if the inputs are the same, and
//     otherwise by the content of their cells.
//
// A run that had too many rejects has no mapping. Then manifests and rejects are compared,
// and the missing mapping is a difference of the manifests.
//
// Runs does not compare how a mapping is written (format, short_url, cells made safe for
// spreadsheets), how URLs were spelled (original_url), and the columns that were copied. But
// every file of a run must have the digest that its manifest says. Mappings whose digests
// agree are not read row by row. Package verify checks that a manifest is right.
//
// Errors to tell apart, beside that of emit: manifest.ErrNotOurs (a directory without a
// manifest), columns.UsageError (not a regular file), readback.DamageError and readback.CellError
// (a file that is not as a run writes it; with ErrChanged, if a FileChanged has told why), and
// the cause that ended ctx.
func Runs(ctx context.Context, cfg Config, emit func(*Difference) error) (err error) {
	if cfg.Workers < 1 {
		cfg.Workers = runtime.GOMAXPROCS(0)
	}
	d := &differ{cfg: cfg, emit: emit}
	for i, path := range []string{cfg.A, cfg.B} {
		if d.sides[i], err = openSide(path); err != nil {
			return err
		}
	}
	a, b := d.sides[0], d.sides[1]
	d.sameInputs = sameInputs(a.manifest, b.manifest)
	d.legacy = a.terms.Codes != nil && b.terms.Codes != nil
	d.fields = comparedFields(a.columns(), b.columns())
	d.parts = a.manifest != nil && b.manifest != nil && (a.terms.Identity() != rules.ByURL || b.terms.Identity() != rules.ByURL)
	d.rules = a.columns().Rules && b.columns().Rules
	for i, side := range d.sides {
		if side.manifest == nil {
			side.excelSafe = d.sides[1-i].excelSafe
		}
	}
	if err := d.digests(ctx); err != nil {
		return err
	}
	if cfg.Compared != nil {
		cfg.Compared(a.side(cfg.A), b.side(cfg.B))
	}
	err = d.compare(ctx)
	damage, cell := errors.As(err, new(*readback.DamageError)), errors.As(err, new(*readback.CellError))
	if (damage || cell) && (a.isChanged() || b.isChanged()) {
		err = fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return err
}

// ErrChanged is the error if a file that was changed after its run cannot be read.
var ErrChanged = errors.New("a changed file cannot be read, and the rest was not compared")

// compare compares manifests, mappings and rejects.
func (d *differ) compare(ctx context.Context) error {
	a, b := d.sides[0], d.sides[1]
	if err := d.manifests(); err != nil {
		return err
	}
	lacking, err := d.noMapping()
	if err != nil {
		return err
	}
	if !lacking && !sameMapping(a, b) {
		if err := d.mappings(ctx); err != nil {
			return err
		}
	}
	if a.manifest == nil || b.manifest == nil || a.rejects.SHA256 != "" && a.rejects.SHA256 == b.rejects.SHA256 {
		return nil
	}
	return d.rejects(ctx)
}

// A differ is one call of Runs.
type differ struct {
	cfg        Config
	sides      [2]*operand
	sameInputs bool
	legacy     bool // both mappings have legacy codes
	parts      bool // links are compared by identity
	rules      bool // both mappings have link rules
	fields     []*report.Column
	emit       func(*Difference) error
}

// newSorter returns a sorter for records that are ordered by key and then by
// their bytes, with a share of the memory.
func (d *differ) newSorter(eighths int64) *extsort.Sorter {
	cfg := extsort.Config{
		CompareGroups: func(_, _ uint32) int { return 0 },
		Compare:       bytes.Compare,
		Loads:         d.cfg.Workers + 2, TempDir: d.cfg.TempDir,
	}
	if d.cfg.Memory > 0 {
		cfg.Memory = (max(d.cfg.Memory, LeastMemory) - overhead) / 8 * eighths
	}
	if d.cfg.spillAt > 0 {
		cfg.Memory = d.cfg.spillAt
	}
	return extsort.New(cfg)
}

// bothSides runs f for each side, in parallel.
func (d *differ) bothSides(ctx context.Context, f func(ctx context.Context, side int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for side := range d.sides {
		g.Go(func() error { return f(ctx, side) })
	}
	return g.Wait()
}

// both runs f for each side, in parallel, with a writer of the sorter.
func (d *differ) both(ctx context.Context, s *extsort.Sorter, f func(ctx context.Context, side int, w *extsort.Writer) error) error {
	writers := [2]*extsort.Writer{s.NewWriter(), s.NewWriter()}
	if err := d.bothSides(ctx, func(ctx context.Context, side int) error { return f(ctx, side, writers[side]) }); err != nil {
		return err
	}
	return s.Finish(ctx)
}

// inGroups visits all records in order. Records with the same first cells are a group: visit
// is called with these cells and the rest of each record, and then finish once. One goroutine
// does all of this, while others load what follows.
func (d *differ) inGroups(ctx context.Context, s *extsort.Sorter, cells int, visit func(group, rest []byte) error, finish func(group []byte) error) error {
	var group []byte // empty: none
	records := s.Cursor(ctx, d.cfg.Workers)
	defer records.Close()
	for records.Next() {
		rest := records.Record()
		for range cells {
			_, rest = packed.CutCell(rest)
		}
		if head := records.Record()[:len(records.Record())-len(rest)]; !bytes.Equal(head, group) {
			if len(group) > 0 {
				if err := finish(group); err != nil {
					return err
				}
			}
			group = append(group[:0], head...)
		}
		if err := visit(group, rest); err != nil {
			return err
		}
	}
	if records.Err() != nil || len(group) == 0 {
		return records.Err()
	}
	return finish(group)
}
