// Package sink is the contract between the pipeline and a store of links. Its
// subpackages implement it and are the only importers of their drivers; package
// sinktest holds the conformance suite that every store passes.
//
// Everything a run does to a store goes through a [Session], which holds the
// locks of the run's workspaces from before the first lookup until the run is
// finished, so that bulk runs on one workspace exclude each other. Other
// writers (an online service) may add links at any time: that shows up as a
// conflict while loading, and the caller looks again.
package sink

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// A Key is the url_key of a link: the first 16 bytes of
// SHA-256(canonical|workspace). A match on it is confirmed on the canonical URL.
type Key = [16]byte

// A Link is one row of the table links as it is loaded. The byte slices belong
// to whoever made the Link.
type Link struct {
	Workspace []byte
	Code      []byte
	Key       Key
	Canonical []byte
	Original  []byte // nil: the same as Canonical
}

// A Probe asks whether a URL has a link, and who owns the code that it would
// like. The byte slices belong to whoever made the Probe.
type Probe struct {
	Workspace []byte
	Code      []byte
	Key       Key    // zero with a nil Canonical: only the owner of the code is asked for
	Canonical []byte // nil: only the owner of the code is asked for
	WantRun   bool   // the run of the link is asked for too
}

// A Found is a link that answers a Probe. Its byte slices are valid only
// during the call of the visitor.
type Found struct {
	Probe     int    // index of the probe that was passed
	Same      bool   // the link is the one of the probe's own URL
	Code      []byte // differs from the probe's code only if Same
	Canonical []byte // the owner's; may be nil if Same
	Run       int32  // the run that created it; if the probe does not want it, perhaps 0
}

// State of a run.
type State string

const (
	Loading  State = "loading"  // committed before the first link, or together with all of them
	Loaded   State = "loaded"   // committed with the last link
	Finished State = "finished" // the run's files have their names
	Undone   State = "undone"   // its links were taken back; it is over, as a finished one is
)

// Counts are the books of a run: Read = Created + Existing + Duplicate + Rejected.
type Counts struct {
	Read, Created, Existing, Duplicate, Rejected int64
}

// A Run is a row of the table runs.
type Run struct {
	ID             int32
	Fingerprint    string // of the inputs and of every option that can change a result
	State          State
	AsOf           time.Time // created_at of the run's links; UTC, whole microseconds
	Counts         Counts    // zero until Loaded
	ManifestSHA256 string    // of the file, hexadecimal; "" until Loaded
	Started        time.Time // by the clock
	Finished       time.Time // by the clock; zero until Finished
}

// CheckOpen returns nil if the run can go on. A run that is over is ErrConflict: another
// process has ended it. One without an AsOf, as where somebody edited the table, cannot
// go on either.
func (r *Run) CheckOpen() error {
	switch {
	case r.State != Loading && r.State != Loaded:
		return fmt.Errorf("%w, or ended run %d, which is %s", ErrConflict, r.ID, r.State)
	case r.AsOf.IsZero():
		return fmt.Errorf("run %d cannot go on, since its as_of is not a valid time: start a new one (--new-run)", r.ID)
	}
	return nil
}

// A Store is an opened database with the tables links and runs, or the place for
// one: Lock creates it, and until then all that looks or takes back fails with
// ErrMissing and creates nothing. It is safe for concurrent use. Once a context is
// over, each call with it, of a Session too, fails with its cause (context.Cause) and
// leaves the session usable. A Store that is a file also has a method Files() []string:
// the paths of the file and of those that may appear beside it, absolute and without
// symbolic links. No output folder may have such a path or replace a folder above one.
type Store interface {
	// Lock takes the locks of these workspaces (in byte order, no repeats) and
	// opens a session. If another bulk run holds one, it waits for it, having
	// called LockOptions.Wait once with a description of the holder; with NoWait
	// the error is ErrLocked instead.
	Lock(ctx context.Context, workspaces []string, opts LockOptions) (Session, error)
	// Peek opens a session that takes no lock and can only look: its Start,
	// Load, Loaded and Finish fail.
	Peek(ctx context.Context) (Session, error)
	// Runs lists all runs, by ascending ID.
	Runs(ctx context.Context) ([]Run, error)
	// Scan visits all links, as they are at one moment, in ascending (workspace,
	// code) order of their bytes. The link's slices are valid only during the
	// call; the error of visit ends the scan and is returned.
	Scan(ctx context.Context, visit func(*Stored) error) error
	// Undo deletes the links that the run created, that nobody has changed since
	// (updated_at is still created_at, and that the run's AsOf) and that nothing refers
	// to, in transactions of bounded size, while no bulk run is at work. It then calls
	// kept for each link that stays, in the order of Scan, and marks the run Undone.
	// Where a reference would not keep its link, but go with it or be left dangling,
	// Undo fails before it deletes anything. If it is cut off after that, the run is
	// Loading, and Undo can be called again. An ID that is not in the table runs is a
	// fatal error.
	Undo(ctx context.Context, run int32, opts LockOptions, kept func(Kept) error) (Undoing, error)
	// Stats tells how the last load went, for timings.json: names, and values
	// that JSON has, which only people read.
	Stats() map[string]any
	// Close releases the store. The sessions must be closed before, and nothing else
	// may be called after it; a second Close does nothing.
	Close() error
}

// Stored is a link as the store has it.
type Stored struct {
	Link
	Run     int32
	Created time.Time // UTC, whole microseconds; zero: what is stored is no time
}

// Undoing tells what an Undo did, even one that was cut off.
type Undoing struct {
	Run     Run   // as it is now
	Deleted int64 // links taken back
	Kept    int64 // links that stay
}

// Kept is a link that was not taken back: it was changed after the run, or something
// in the database refers to it.
type Kept struct {
	Workspace, Code string
	Updated         time.Time // zero: what is stored is no time
}

// LockOptions say what to do about a lock that somebody else holds.
type LockOptions struct {
	NoWait bool
	Wait   func(holder string) // may be nil
}

// A Session is used by one run. Lookups may be called by several goroutines at
// once; the other methods by one at a time.
type Session interface {
	// Populated reports which of these workspaces may have links; the others
	// need no lookup.
	Populated(ctx context.Context, workspaces []string) ([]bool, error)

	// Lookup visits, in any order, the links of each probe's workspace that have
	// its key or its code: none, one, or two (its URL has another code, which
	// somebody else's URL has). Probes come in ascending (workspace, code) order,
	// in which the keys are nearly ascending too; several may share a code. The
	// visitor is called by one goroutine at a time; its error ends the lookup and
	// is returned. What an earlier Load committed is found. A link that matches
	// by key but has another canonical URL is a fatal error: the store is damaged.
	Lookup(ctx context.Context, probes []Probe, visit func(Found) error) error

	// Unfinished returns the runs that are not finished, by ascending ID.
	Unfinished(ctx context.Context) ([]Run, error)
	// Start begins a run, or goes on with one that Unfinished returned (ID not
	// zero). A new run gets the highest ID + 1; where there is no run, the highest run
	// of a link counts. The row is committed before the first link or together with all of
	// them. A run that goes on keeps its fingerprint, AsOf and Started; a new one with a
	// zero Started gets the time.
	Start(ctx context.Context, run Run) (Run, error)
	// Load adds links, which come in chunks in ascending (workspace, code)
	// order but for a few strays, each chunk valid until the next is asked for. Once
	// the context is over or the load has failed, at most one more is asked for.
	// A link whose code or key is already there makes it fail with ErrConflict, after it
	// has added so many of the others that a run gets through even beside a writer who
	// takes something before each Load. A run that is over is ErrConflict too, here and
	// in Start, and so are locks that were lost meanwhile, here and in Loaded: an undo
	// may have come between. What was committed before a failure stays, and bears the
	// run's ID. The error of a chunk ends the load and is returned. After a failure the
	// same run can Load again, without another Start.
	Load(ctx context.Context, run Run, chunks iter.Seq2[[]Link, error]) error
	// Loaded commits the state Loaded with the counts and the digest of the manifest,
	// by which a rerun recognises the files of a run that was killed before Finish.
	// It fails if the run was undone.
	Loaded(ctx context.Context, run Run) error
	// Finish commits the state Finished of a run that is Loaded, with the digest of
	// the manifest; a zero Finished becomes the time.
	Finish(ctx context.Context, run Run) error
	// Close rolls back what is not committed and gives the locks back. A second
	// Close does nothing, and every other call from then on fails.
	Close() error
}

// Classes of errors. An error of a store that wraps none of them is fatal.
var (
	// ErrConflict: another writer owns a code or a URL now, or took one back; look again
	// and settle again.
	ErrConflict = errors.New("another writer took a code or a URL")
	// ErrRetryable: the store could not be reached, or asks to try again.
	ErrRetryable = errors.New("store is unavailable")
	// ErrGaveUp is wrapped beside ErrRetryable by a store that has tried again by
	// itself for as long as it was told to.
	ErrGaveUp = errors.New("gave up")
	// ErrLocked: another bulk run holds a workspace and LockOptions.NoWait was set.
	ErrLocked = errors.New("another bulk run is at work")
	// ErrMissing: there is no database yet, or no tables in it.
	ErrMissing = errors.New("no run has stored anything there")
	// ErrNotOurs: the database or a table in it was made by something else or
	// by a newer version.
	ErrNotOurs = errors.New("not a database of this version of bulk")
)
