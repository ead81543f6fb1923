// Package verify checks a finished run: [Run] computes everything again and tells what does
// not match. It needs only the files of the run. If it is given the inputs, it also compares
// each row with its record; if it is given the store, each link with what is stored.
//
// What is wrong is a [Finding] of a [Kind]; README.md beside this file lists what each depth
// of the check proves and what it must believe. Nothing is changed, and the files are not
// trusted: they may come from anybody.
//
// The way through, a file or a group of files for each stage: the manifest says how rows were made
// (manifest.go, and scheme.go, legacy.go, rules.go and migration.go for its features). Run, in this
// file, makes each check with what it needs; a check finds (finding.go), and what it says to later ones
// it returns, or puts into a sort (sorters.go). Most make codes (coder.go).
//
//   - reports: the files are there, have their digests and can be read; which rows of the inputs they
//     have; and that the counts of all rows agree (reports.go, reports_*.go).
//   - mapping: each row by itself and against the row before (mapping_rows.go); its code
//     (mapping_codes.go), its cells in the input (mapping_cells.go), the order (mapping_order.go,
//     mapping_sorted.go), rows of one URL with kept codes (mapping_urls.go), numbers (mapping_numbers.go).
//   - rejects: why each row was rejected (rejects.go), and of dead links (rejects_dead.go).
//   - codes: what one row says about the code of another is sorted by code (codes_claims.go,
//     codes_collisions.go) and met at the end (codes_slots.go).
//   - held: rows that were held against links with link rules are sorted by identity, and held against
//     them once more (held.go).
//   - inputs: every row is made again from its record (inputs.go, inputs_*.go).
//   - store: the run (store_runs.go), its links (store.go, store_wanted.go), what became of them
//     (store_since.go), and each link by itself (store_links.go).
//
// Mapping, rejects and collisions are checked side by side. Inputs and store are compared by adding up
// digests first, and are sorted only if the sums differ.
package verify

import (
	"context"
	"errors"
	"hash/maphash"
	"runtime"
	"strings"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/sink"
	"golang.org/x/sync/errgroup"
)

// Config says what Run checks. Dir must be set. In all other fields the zero value, or a
// negative number, means the default.
type Config struct {
	Dir            string             // the output directory of a run
	ManifestSHA256 string             // SHA-256 that the manifest must have, in hexadecimal; "": any
	Inputs         []string           // inputs of the run, which are read again and compared row by row; nil: not compared
	Secret         codegen.Secret     // of the scheme; none: what only it can tell is believed
	Words          *codegen.Blocklist // that no generated code contains; nil: what only they can tell is believed
	Source         source.Options     // how inputs are read: Stdin, MaxField and TempDir; the rest is in the manifest
	Store          sink.Store         // the store of the run, which is compared with the mapping; nil: not compared
	Workers        int                // goroutines that compute rows again; 0: one for each processor
	Memory         int64              // bytes that sorts hold; the rest goes to TempDir; 0: 256 MiB
	TempDir        string             // also for Source, if Source.TempDir is ""; "": the directory of the system
	MaxFindings    int                // of each list of findings in Result; 0: 1,000
	Version        string             // of this program; details of rejects from another version are not compared, as it may have other words
}

const (
	defaultSortMemory  = 256 << 20
	defaultMaxFindings = 1000
)

// Result is what Run found.
type Result struct {
	ManifestSHA256 string // of the manifest as it is
	Rows           int64  // of the mapping
	Rejects        int64
	Inputs         int            // number of inputs that the rows were compared with
	NotCompared    []Part         // in the order of the constants; the problems may say why
	DryRun         bool           // it was a dry run: the links that it would have created are not in the store
	NoMapping      bool           // the run had too many rejects, so that there is no mapping
	Undone         bool           // the store says that the run was undone
	Since          Since          // what became of its links since
	Findings       []Finding      // the first problems, by file and row
	Unlisted       int64          // number of problems beyond Config.MaxFindings
	Kinds          map[Kind]int64 // number of all problems, by kind
	Unexplained    []Finding      // the first findings that are no problems, by file and row
	// MoreUnexplained is the number of those beyond Config.MaxFindings.
	MoreUnexplained int64
}

// Failed returns the number of problems.
func (v *Result) Failed() int64 { return int64(len(v.Findings)) + v.Unlisted }

// A verifier is one call of Run.
type verifier struct {
	findings *findings
	cfg      Config
	run      *run
	reports  *reports // nil: not yet
	books    *books
	inputs   *inputs      // nil: they are not read again
	sorts    *sorters     // nil: not yet
	seed     maphash.Seed // of all sums
	result   Result
}

// Run computes everything again that the files of a run say, and returns what does not
// match. A file of the run that is missing or damaged is a finding. It is an error if the
// manifest or an input cannot be read, or if the disk or the store fails. Errors to tell
// apart: manifest.ErrNotOurs (there is no manifest), UsageError (the secret or the words are not
// those of the run), columns.UsageError (the inputs cannot be those of the run), those of package sink, and the cause that ended ctx.
//
// Run holds in memory a few blocks of rows for each worker, a bit for each row of the
// inputs, the names of the workspaces (and 60 bytes of each for each worker), and up to
// Config.Memory of what it sorts. It sorts claims on codes (see codes_claims.go); for the store
// the existing links; a mapping in the order of the input; if rows were held against links, some
// 60 bytes of every row; and, if the run and its inputs differ, some 80 bytes of every row from both.
func Run(ctx context.Context, cfg Config) (_ *Result, err error) {
	if cfg.Workers < 1 {
		cfg.Workers = runtime.GOMAXPROCS(0)
	}
	if cfg.Memory < 1 {
		cfg.Memory = defaultSortMemory
	}
	if cfg.MaxFindings < 1 {
		cfg.MaxFindings = defaultMaxFindings
	}
	if cfg.Source.TempDir == "" {
		cfg.Source.TempDir = cfg.TempDir
	}
	m, digest, err := manifest.ReadDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	v := newVerifier(cfg)
	v.result.ManifestSHA256 = digest
	if want := strings.ToLower(cfg.ManifestSHA256); want != "" && want != digest {
		v.findings.wrong(ManifestSum, "", want, digest)
	}
	defer func() { err = errors.Join(err, v.close()) }()
	run, ok := understand(m, v.findings)
	if ok {
		if err := run.take(cfg.Secret, cfg.Words); err != nil {
			return nil, err
		}
		if err := v.begin(run); err != nil {
			return nil, err
		}
		if err := v.all(ctx); err != nil {
			return nil, err
		}
	}
	v.sayParts(run, ok)
	v.result.DryRun, v.result.NoMapping = run.terms.DryRun, run.noMapping
	v.result.Findings, v.result.Unlisted = v.findings.faults.all()
	v.result.Unexplained, v.result.MoreUnexplained = v.findings.doubts.all()
	v.result.Kinds = v.findings.faults.kinds
	return &v.result, nil
}

func newVerifier(cfg Config) *verifier {
	return &verifier{findings: newFindings(cfg.MaxFindings), cfg: cfg, seed: maphash.MakeSeed()}
}

// begin makes what the checks of a run share.
func (v *verifier) begin(run *run) (err error) {
	v.run, v.sorts, v.books = run, newSorters(&v.cfg, run), newBooks(run, v.findings)
	if v.inputs, err = findInputs(&v.cfg, run.manifest, v.findings); err != nil {
		return err
	}
	v.reports, err = newReports(v.cfg.Dir, run, v.findings)
	return err
}

// close deletes what the sorts have on disk.
func (v *verifier) close() error {
	if v.sorts == nil {
		return nil
	}
	return v.sorts.close()
}

// broken reports whether a report is missing or could not be read to the end.
func (v *verifier) broken() bool { return v.reports.broken.Load() }

// all does every check. The reports are checked side by side. What must be compared in
// another order is put into a sort meanwhile. Then come, one after the other, the inputs,
// the counts, the owners of codes, and the store.
func (v *verifier) all(ctx context.Context) error {
	sums := v.newSums()
	var rows mapped
	var refused rejected
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return v.reports.checkDigests(gctx) })
	if v.run.mapping != "" {
		g.Go(func() error { return v.mapping(sums).check(gctx, &rows) })
		g.Go(func() error { return verifyCollisions(gctx, v.reports, v.sorts) })
	}
	g.Go(func() error { return v.rejects(sums).check(gctx, &refused) })
	if err := g.Wait(); err != nil {
		return err
	}
	v.result.Rows, v.result.Rejects, v.result.Since = rows.rows, refused.rows, refused.since
	rows.told.merge(&refused.told)
	if v.inputs != nil {
		if err := v.records(sums).check(ctx, rows.sum+refused.sum); err != nil {
			return err
		}
	}
	if err := v.rowsHeld(ctx); err != nil {
		return err
	}
	if v.sorts.variants != nil {
		if err := verifyVariants(ctx, v.sorts.variants, v.run, !v.broken(), v.findings); err != nil {
			return err
		}
	}
	v.balance(&rows).check()
	if v.run.mapping != "" {
		if err := v.owners(&rows).check(ctx); err != nil {
			return err
		}
	}
	if v.cfg.Store == nil {
		return nil
	}
	return v.stored(ctx, rows.created)
}

// rowsHeld checks the rows that were held against links, and gives the memory of their sort back.
func (v *verifier) rowsHeld(ctx context.Context) error {
	held := v.sorts.held
	if held == nil {
		return nil
	}
	v.sorts.held = nil
	return errors.Join(verifyHeld(ctx, held, v.run, !v.broken(), v.findings), held.Close())
}

// stored compares the store with the run, of which created is the sum of the links that it created.
func (v *verifier) stored(ctx context.Context, created uint64) error {
	var found stored
	err := v.links(created).check(ctx, &found)
	v.result.Undone = found.undone
	v.result.Since.add(&found.since)
	return err
}

// joins reports whether only the inputs tell what parameters rows give. Then those of the mapping are
// filed once the inputs are read.
func (v *verifier) joins() bool {
	return v.inputs != nil && v.sorts.held != nil && v.run.ruling.flags != nil && !v.run.terms.Carry
}

// Each of the following returns a check with what it needs.

func (v *verifier) newSums() *sums {
	if v.inputs == nil {
		return nil
	}
	return &sums{run: v.run, seed: v.seed, details: v.cfg.Version == v.run.manifest.Version}
}

func (v *verifier) mapping(sums *sums) *mappingCheck {
	return &mappingCheck{findings: v.findings, run: v.run, reports: v.reports, books: v.books, sorts: v.sorts, seed: v.seed, sums: sums, joins: v.joins(), workers: v.cfg.Workers}
}

func (v *verifier) rejects(sums *sums) *rejectCheck {
	return &rejectCheck{findings: v.findings, run: v.run, reports: v.reports, books: v.books, sorts: v.sorts, sums: sums, store: v.cfg.Store, version: v.cfg.Version}
}

func (v *verifier) records(sums *sums) *inputCheck {
	return &inputCheck{findings: v.findings, run: v.run, reports: v.reports, books: v.books, sorts: v.sorts, sums: sums, inputs: v.inputs, joins: v.joins(), source: v.cfg.Source, workers: v.cfg.Workers}
}

func (v *verifier) balance(rows *mapped) *balance {
	return &balance{findings: v.findings, run: v.run, books: v.books, whole: !v.broken(), most: v.cfg.MaxFindings, told: &rows.told, bare: rows.bare}
}

func (v *verifier) owners(rows *mapped) *claimCheck {
	return &claimCheck{findings: v.findings, run: v.run, reports: v.reports, sorts: v.sorts, version: v.cfg.Version, bare: rows.bare, mixed: rows.mixed}
}

func (v *verifier) links(created uint64) *storeCheck {
	return &storeCheck{findings: v.findings, run: v.run, store: v.cfg.Store, reports: v.reports, sorts: v.sorts, sums: linkSummer{seed: v.seed}, created: created,
		workers: v.cfg.Workers, digest: v.result.ManifestSHA256, version: v.cfg.Version}
}
