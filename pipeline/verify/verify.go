// Package verify checks a finished run: [Run] computes everything again and tells what does
// not match. It needs only the files of the run. If it is given the inputs, it also compares
// each row with its record; if it is given the store, each link with what is stored.
//
// What is wrong is a [Finding] of a [Kind]; README.md beside this file lists what each depth
// of the check proves and what it must believe. Nothing is changed, and the files are not
// trusted: they may come from anybody.
//
// The way through: the manifest says how rows were made (manifest.go). Mapping, rejects and
// collisions are then checked side by side, row by row; what one row says about the code of
// another is sorted by code and met at the end (claims.go, slots.go). Rows that were held
// against links with link rules are sorted by identity, and held against them once more
// (held.go). Inputs (inputs.go, sums.go) and store (store.go) are compared by adding up digests
// first, and are sorted only if the sums differ.
package verify

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
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
	sorters            = 5 // that share Config.Memory: claims, sorted, stored, and rows or two of verifyStore
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

// A verifier is one call of Run. What is not safe for concurrent use is set before the
// checks begin.
type verifier struct {
	*findings
	cfg        Config
	run        *run
	books      books
	unread     []string        // files of the manifest that cannot be read
	inputs     []string        // paths, one for each input of the manifest; nil: they are not read again
	other      []bool          // for each input: it cannot be read any more as the run read it
	groups     groups          // the workspaces
	claims     *extsort.Sorter // see claim
	seed       maphash.Seed    // of all sums
	rows       *extsort.Sorter // two records for each row of the inputs: the sums of the run and of the input; nil: sums are only added up
	runTotal   atomic.Uint64   // sum of all rows of the run
	inputTotal atomic.Uint64   // sum of all rows of the inputs
	sorted     *extsort.Sorter // rows of a mapping that is in the order of the input; nil: it is in the order of the sort
	stored     *extsort.Sorter // links and owners that the store must have; nil: the store is not compared
	created    atomic.Uint64   // sum of all links that the run created
	held       *extsort.Sorter // see heldRow; nil: rows were not held against links
	numbered   *extsort.Sorter // of rows, as of fileNumber; nil: the scheme has no counter
	telling    sync.Mutex      // guards told
	told       told            // of legacy codes
	bare       int64           // URLs of which no row is the link; only if legacy codes are kept
	broken     atomic.Bool     // a file is missing or could not be read to the end
	aliased    atomic.Bool     // the store has aliases
	mixed      atomic.Bool     // the mapping is not in order
	schemes    sync.Map        // workspaces whose scheme in the store was compared
	result     Result
}

// Run computes everything again that the files of a run say, and returns what does not
// match. A file of the run that is missing or damaged is a finding. It is an error if the
// manifest or an input cannot be read, or if the disk or the store fails. Errors to tell
// apart: manifest.ErrNotOurs (there is no manifest), UsageError (the secret or the words are not
// those of the run), columns.UsageError (the inputs cannot be those of the run), those of package sink, and the cause that ended ctx.
//
// Run holds in memory a few blocks of rows for each worker, a bit for each row of the
// inputs, the names of the workspaces (and 60 bytes of each for each worker), and up to
// Config.Memory of what it sorts. It sorts claims on codes (see claims.go); for the store
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
		v.wrong(ManifestSum, "", want, digest)
	}
	defer func() { err = errors.Join(err, v.close()) }()
	run, ok := understand(m, v.findings)
	if ok {
		if err := run.take(cfg.Secret, cfg.Words); err != nil {
			return nil, err
		}
		if err := v.all(ctx, run); err != nil {
			return nil, err
		}
	}
	v.sayParts(run, ok)
	v.result.DryRun, v.result.NoMapping = run.terms.DryRun, run.noMapping
	v.result.Findings, v.result.Unlisted = v.faults.all()
	v.result.Unexplained, v.result.MoreUnexplained = v.doubts.all()
	v.result.Kinds = v.faults.kinds
	return &v.result, nil
}

func newVerifier(cfg Config) *verifier {
	v := &verifier{findings: newFindings(cfg.MaxFindings), cfg: cfg, groups: groups{ids: map[string]uint32{}}, seed: maphash.MakeSeed()}
	v.claims = v.newSorter(compareClaims)
	if cfg.Store != nil {
		v.stored = v.newSorter(compareClaims)
	}
	return v
}

// close deletes what the sorts have on disk.
func (v *verifier) close() error {
	var errs []error
	for _, s := range []*extsort.Sorter{v.claims, v.stored, v.sorted, v.held, v.numbered} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// all does every check. The reports are checked side by side. What must be compared in
// another order is put into a sort meanwhile. Then come, one after the other, the inputs,
// the counts, the owners of codes, and the store.
func (v *verifier) all(ctx context.Context, run *run) (err error) {
	v.run, v.books = run, newBooks(run.manifest.Inputs)
	if run.mode().Keeps() {
		if err := v.claims.Close(); err != nil {
			return err
		}
		v.claims = v.newSorter(run.foldedClaims)
	}
	if run.spec.Counts && run.mapping != "" {
		v.numbered = v.newSorter(compareNumbered)
	}
	if run.ruled && run.mapping != "" {
		v.held = v.newSorter(bytes.Compare)
	}
	if err := v.findInputs(); err != nil {
		return err
	}
	if v.unread, err = checkDir(v.cfg.Dir, run.manifest.Files, v.findings); err != nil {
		return err
	}
	v.broken.Store(len(v.unread) > 0)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return v.checkDigests(gctx) })
	if v.run.mapping != "" {
		g.Go(func() error { return v.verifyMapping(gctx) })
		g.Go(func() error { return v.verifyCollisions(gctx) })
	}
	g.Go(func() error { return v.verifyRejects(gctx) })
	if err := g.Wait(); err != nil {
		return err
	}
	if v.inputs != nil {
		if err := v.verifyInputs(ctx); err != nil {
			return err
		}
	}
	if v.held != nil {
		if err := v.verifyHeld(ctx); err != nil {
			return err
		}
	}
	v.verifyComplete()
	if v.run.mapping != "" {
		if err := v.verifyClaims(ctx); err != nil {
			return err
		}
	}
	if v.stored == nil {
		return nil
	}
	return v.verifyStore(ctx)
}
