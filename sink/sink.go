// Package sink is the contract between the pipeline and a store of links. Its
// subpackages implement the contract, and only they import database drivers. Package
// sinktest holds the conformance suite that every store passes.
//
// A run works with a store through a [Session]. The session holds the locks of the run's
// workspaces from before the first lookup until the run is finished, so two bulk runs
// never work on one workspace at the same time. Other writers, such as an online
// service, may add links at any time. If one takes a code or a URL that the run is about
// to store, Load reports a conflict, and the caller looks again.
package sink

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

// A Key is the url_key of a link: the first 16 bytes of
// SHA-256(canonical|workspace). Where two keys are equal, the canonical URLs are
// compared, too.
type Key = [16]byte

// A Link is a row of the table links as a run loads it. The byte slices belong to the
// caller that made the Link.
type Link struct {
	Workspace []byte
	Code      []byte
	Key       Key
	Canonical []byte
	Original  []byte // nil: the same as Canonical

	// Alias: the link is a further code of a URL. Its Key is that of URL and code: the first
	// 16 bytes of SHA-256(canonical|workspace|c=CODE), with the parts of the identity before |c=. So no
	// Probe has it.
	Alias bool
	// Base is the url_key of the URL alone, where Key is that of more: of an alias, or of a link
	// whose identity has parts. Zero: that is Key.
	Base Key

	// Attrs is what a migrated link was: a JSON object in the form of [AppendJSON], without
	// U+0000, which PostgreSQL refuses. nil: NULL.
	Attrs []byte
	// Created is the created_at of a migrated link; UTC, whole microseconds. Zero: the AsOf of
	// the run.
	Created time.Time

	// Rules of the link. Load stores Expires, MaxUses, Type, Owner and Ref; the link is Active
	// and has no uses. nil: none.
	Rules *Rules
}

// A Probe asks whether a URL has a link, and which link owns the code that the URL would
// get. The byte slices belong to the caller that made the Probe.
type Probe struct {
	Workspace []byte
	Code      []byte // nil, in all probes of a Lookup or in none: ask only for the link of the URL
	Key       Key    // zero if Canonical is nil
	Canonical []byte // nil: ask only for the owner of the code
	WantRun   bool   // ask for the run of the link, too

	// Position is where the code is among all codes, as a part of 2^64; 0: the first 8 bytes of the
	// Key tell. It says how near the codes of probes are, and need not be exact.
	Position uint64

	// WantRules: ask for the rules of the link, too. Without WantRun they may lack Ref, Marked,
	// ChangedRun and Change. If one probe of a Lookup does, all do. It must be set if links of the
	// URL may have parts: otherwise one that has the code may be taken for the link of the probe.
	WantRules bool
	// Parts: Key is not that of the URL alone, or the Key of a link that has the code is wanted. It
	// counts only with WantRules.
	Parts bool
}

// A Found is a link that answers a Probe. Its byte slices are valid only during the call
// of the visitor.
type Found struct {
	Probe     int    // index of the probe in the slice that was passed to Lookup
	Same      bool   // the link is the one of the probe's own URL, and no alias
	Alias     bool   // the link is an alias, perhaps of the probe's own URL
	Code      []byte // differs from the probe's code only if Same
	Canonical []byte // of the link; may be nil if Same
	Key       Key    // of the link; may be zero unless all probes have WantRules and Parts
	Run       int32  // the run that created the link; may be 0 if the probe does not want it
	Rules     *Rules // of the link, valid as long as the slices; nil if no probe wants them
}

// State of a run.
type State string

const (
	Loading  State = "loading"  // links are being stored; committed before the first link, or together with all of them
	Loaded   State = "loaded"   // all links are stored, the output directory is not yet in place
	Finished State = "finished" // the output directory is in place
	Undone   State = "undone"   // the links of the run were deleted; the run is over, as a finished one is

	// Abandoned: somebody gave up an unfinished run. It is over: its links stay, and no run
	// resumes it or warns of it.
	Abandoned State = "abandoned"
)

// Unfinished reports whether a run in this state may still continue.
func (s State) Unfinished() bool { return s == Loading || s == Loaded }

// Counts are the numbers of rows of a run: Read = Created + Existing + Duplicate + Rejected.
type Counts struct {
	Read, Created, Existing, Duplicate, Rejected int64
}

// A Run is a row of the table runs.
type Run struct {
	ID             int32
	Fingerprint    string // of the inputs and of every option that can change a result
	State          State
	AsOf           time.Time // updated_at of the run's links, and created_at unless KeepCreated; UTC, whole microseconds
	Counts         Counts    // zero until Loaded
	LinksCreated   int64     // links that the run stored, aliases included, where that is not Counts.Created; 0: as Created
	LinksChanged   int64     // links of other runs that the run updated, revived or claimed
	ManifestSHA256 string    // of manifest.json, in hexadecimal; "" until Loaded
	Started        time.Time // by the clock
	Finished       time.Time // by the clock; zero until Finished

	// For people, to recognise a run. They are empty if the tables were of version 1 when the
	// run began. A list has at most 100 names; if there are more, its last entry says how many.
	// A store replaces bytes that are not UTF-8 by U+FFFD.
	Inputs     []string // names of the inputs as given, sorted
	Workspaces []string // in byte order
	Out        string   // absolute path of the output directory

	// Aliases: Load may bring aliases, and keys in any order. The caller says so to Start,
	// whose result has it, too, and to Load. It is not stored. Without it, Load fails at an
	// alias.
	Aliases bool
	// Attrs: Load may bring links with Attrs. The caller says so as with Aliases.
	Attrs bool
	// KeepCreated: Load may bring links with Created. The caller says so as with Aliases, but it
	// is stored when the run begins: in such a run, the created_at of a link need not be the AsOf.
	KeepCreated bool
	// Rules: Load may bring links with Rules, and each link that it brings is Active and has no
	// uses. The caller says so as with Aliases.
	Rules bool
	// Parts: Load may bring links with a Base that are no aliases. The caller says so as with
	// Aliases.
	Parts bool

	// Numbers that Reserve has given to the run, in the order in which it got them. They stay when
	// it is undone.
	Numbers []Range
}

// CheckOpen returns nil if the run can continue. The error wraps ErrConflict if another
// process has finished, undone or abandoned the run. A run without a valid AsOf, because somebody
// changed the table, cannot continue either.
func (r *Run) CheckOpen() error {
	switch {
	case !r.State.Unfinished():
		return fmt.Errorf("%w, or ended run %d, which is %s", ErrConflict, r.ID, r.State)
	case r.AsOf.IsZero():
		return fmt.Errorf("run %d cannot continue, because its as_of is not a valid time; start a new run with Config.NewRun", r.ID)
	}
	return nil
}

// Unannounced is the error of Load for a link that is or has what the run has not said that its
// links may be or have: an alias, Base, Attrs, Created, Rules. It is nil for any other link.
func (r *Run) Unannounced(l *Link) error {
	switch {
	case l.Alias && !r.Aliases, l.Base != Key{} && !l.Alias && !r.Parts, l.Attrs != nil && !r.Attrs, !l.Created.IsZero() && !r.KeepCreated, l.Rules != nil && !r.Rules:
		return fmt.Errorf("link %q in workspace %q is an alias, or has parts, attrs, a created_at of its own or rules, and the run has not said that any link does", l.Code, l.Workspace)
	}
	return nil
}

// SetOwn gives a run what the caller of Start says of its links and no store keeps.
func (r *Run) SetOwn(said Run) {
	r.Aliases, r.Attrs, r.Rules, r.Parts = said.Aliases, said.Attrs, said.Rules, said.Parts
}

// Abandoning returns those of the runs that have one of these IDs, in the order of the IDs,
// as Abandon leaves them. It fails if there is no run with an ID, or if the run is Finished
// or Undone.
func Abandoning(runs []Run, ids []int32) ([]Run, error) {
	var out []Run
	var errs []error
	for _, id := range ids {
		i := slices.IndexFunc(runs, func(r Run) bool { return r.ID == id })
		switch {
		case i < 0:
			errs = append(errs, fmt.Errorf("there is no run %d in the store", id))
		case !runs[i].State.Unfinished() && runs[i].State != Abandoned:
			errs = append(errs, fmt.Errorf("run %d is %s, and only an unfinished run can be abandoned", id, runs[i].State))
		default:
			run := runs[i]
			run.State = Abandoned
			out = append(out, run)
		}
	}
	return out, errors.Join(errs...)
}

// A Store is an open database. Lock creates missing tables (and the file of an SQLite
// database); before that, each other method but Stats and Close returns ErrMissing and creates
// nothing. Of tables of an older version, these methods return ErrOldTables, and so does Lock in
// PostgreSQL; in SQLite, Lock upgrades them.
//
// A Store is safe for concurrent use. When a context is over, each call with it fails with
// its cause (context.Cause); a Session can be used again after such a failure.
//
// A Store that is a file also has a method Files() []string. It returns the absolute
// paths, without symbolic links, of the file and of the files that may appear beside it.
// The output directory must not be, or contain, one of these files.
type Store interface {
	// Lock takes the locks of these workspaces, which are in byte order without
	// repeats, and opens a session. If another bulk run holds one of them, Lock calls
	// LockOptions.Wait once with a description of that run, and waits. With NoWait it
	// returns ErrLocked instead.
	Lock(ctx context.Context, workspaces []string, opts LockOptions) (Session, error)
	// Peek opens a session that takes no lock and can only look: its Start, Load, Change,
	// Loaded, Finish, Abandon, SetProfile, SetRules, SetScheme and Reserve fail.
	Peek(ctx context.Context) (Session, error)
	// Runs lists all runs, by ascending ID.
	Runs(ctx context.Context) ([]Run, error)
	// Scan visits all links as they are at one moment, in ascending order of the bytes
	// of workspace and code. The slices of a link are valid only during the call. An
	// error of visit ends the scan and is returned.
	Scan(ctx context.Context, visit func(*Stored) error) error
	// Find visits the link that has the code in the workspace, if there is one, as ScanRules
	// does.
	Find(ctx context.Context, workspace, code string, visit func(*Stored) error) error
	// OfURL visits all links of a URL in a workspace, whose url_key is given, as ScanRules does: also
	// its aliases, and links with parts.
	OfURL(ctx context.Context, workspace string, base Key, visit func(*Stored) error) error
	// Export visits the links of a workspace, or all if that is "", as they are at one moment,
	// in the order of Scan. Before the first link it calls begin with the names of the columns,
	// in the order of [AllColumns]: those that have a value in at least one of these links, or
	// cannot be NULL. The kind is link or alias, and always there. A row has a text for each
	// column, in its Form; nil for NULL. A row is valid only during the call. An error of begin
	// or visit ends the export and is returned.
	//
	// In place of attrs there is a column for each member that one of these links has, in byte
	// order of the names. It is called like the member, or attrs_NAME if AllColumns has that
	// name. A string is the text itself, any other value is in the form of AppendJSON, and null
	// is NULL. The column attrs stays before them if a link has attrs that are no JSON object, and
	// has only those. It stays alone, with all attrs, if there are more than MaxMembers names, or
	// a name is blank or has U+0000.
	Export(ctx context.Context, workspace string, begin func(columns []string) error, visit func(row [][]byte) error) error
	// Abandon marks unfinished runs as Abandoned and returns them. It waits until no bulk run
	// is at work. Runs that are Abandoned already are returned, too. If there is no such run,
	// or one is Finished or Undone, Abandon changes nothing; that error wraps no class.
	Abandon(ctx context.Context, runs []int32, opts LockOptions) ([]Run, error)
	// PreviewUndo says what Undo would do, and fails as it would. It takes no lock and
	// changes nothing. It reads all links.
	PreviewUndo(ctx context.Context, run int32) (Undoing, error)
	// Undo deletes the links of a run. It waits until no bulk run is at work, deletes in
	// transactions of bounded size, calls kept for each link of the run that stays, and for
	// each link of another run that this run changed, in the order of Scan, and marks the run
	// as Undone.
	//
	// A link stays if somebody changed it (its updated_at is not the AsOf of the run, or another
	// run changed it), or if a row elsewhere in the database refers to it. (A mark is no change.)
	// Undo does not take back how the run changed links of other runs. If the database would
	// delete or change rows together with the links that they refer to, or would leave them
	// without their link, Undo fails before it deletes anything.
	//
	// If Undo is interrupted after its first deletion, the run is Loading (or Abandoned, if it
	// was), and Undo can be called again. The error for a run that does not exist wraps no class.
	Undo(ctx context.Context, run int32, opts LockOptions, kept func(Kept) error) (Undoing, error)
	// Stats describes the last load, for people who read timings.json: names, and
	// values that JSON can hold.
	Stats() map[string]any
	RulesStore
	// Close releases the store. The sessions must be closed before, and only Close may
	// be called after it: a second Close does nothing.
	Close() error
}

// Stored is a link as the store has it. Created is always its created_at; zero: the stored value
// is not a time. Attrs that another program wrote may be any JSON, or in SQLite any text. Rules
// are nil if they were not asked for; they are valid only during the call of the visitor.
type Stored struct {
	Link
	Run int32
}

// Undoing is the result of Undo, also if it was interrupted.
type Undoing struct {
	Run     Run   // after the Undo
	Was     State // before the Undo
	Deleted int64 // links
	Kept    int64 // links of the run that stay
	Changed int64 // links of other runs that stay as the run changed them, if no later run has changed them again
	Orphans int64 // of PreviewUndo: aliases of other runs, whose links are among these
}

// Kept is a link that Undo did not delete, because somebody changed it after the run, or
// something in the database refers to it, or it is not of the run.
type Kept struct {
	Workspace, Code string
	Updated         time.Time // zero: the stored value is not a time
	Change          string    // how the run changed a link of another run; blank for a link of the run
}

// LockOptions say what to do if another run holds a lock.
type LockOptions struct {
	NoWait bool
	Wait   func(holder string) // may be nil
}

// A Session is used by one run. Several goroutines may call Lookup at the same time; the
// other methods are called by one goroutine at a time.
type Session interface {
	// Populated reports which of these workspaces may have links. The others need no
	// Lookup.
	Populated(ctx context.Context, workspaces []string) ([]bool, error)

	// Profiles returns the names of the profiles that were set, by workspace: of these
	// workspaces, or of all if the list is nil. Links of any other workspace have the
	// profile linkforge-1.
	Profiles(ctx context.Context, workspaces []string) (map[string]string, error)
	// SetProfile commits the profile of workspaces that the session has locked and that have
	// no links.
	SetProfile(ctx context.Context, workspaces []string, profile string) error
	RulesSession
	SchemeSession
	CounterSession

	// Lookup visits, in any order, the links in each probe's workspace that have the
	// key or the code of the probe. There may be none, one, or two: the link of the URL
	// under another code, and the link of another URL under the probe's code.
	//
	// Probes come in ascending order of (workspace, code). A lookup is fastest if the keys
	// nearly ascend, too. Codes may have any length. Several probes may have the same code. One goroutine at a time calls
	// the visitor; an error of the visitor ends the lookup and is returned. Links of an
	// earlier Load are found. A link that has the key of a probe but another canonical URL
	// is an error that wraps no class: the store is damaged.
	Lookup(ctx context.Context, probes []Probe, visit func(Found) error) error

	// Unfinished returns the runs that are Loading or Loaded, by ascending ID.
	Unfinished(ctx context.Context) ([]Run, error)
	// Start begins a run whose ID is 0, or continues one that Unfinished returned.
	//
	// A new run gets the highest ID + 1; if there are no runs, the highest run of a link
	// counts. Its row is committed before the first link, or together with all links. If its
	// Started is zero it becomes the current time. A run that continues keeps its
	// fingerprint, AsOf, Started, Inputs, Workspaces, Out, KeepCreated and Numbers.
	Start(ctx context.Context, run Run) (Run, error)
	// Load adds links. They come in chunks, in ascending order of (workspace, code) with
	// a few exceptions. Each chunk is valid until the next one is asked for. An error in
	// place of a chunk ends the load and is returned.
	//
	// After a failure, or when the context is over, at most one more chunk is read. Links
	// that were committed stay, with the ID of the run, and the same run can Load again
	// without another Start.
	//
	// If a code or URL is already taken, Load adds the other links that it can and returns
	// ErrConflict: each retry makes progress, even if another writer takes something
	// before every Load. ErrConflict also means, here and in Start, that the run is over,
	// and, here and in Loaded, as ErrLost, that the locks were lost for a while.
	Load(ctx context.Context, run Run, chunks iter.Seq2[[]Link, error]) error
	// Loaded commits the state Loaded with the counts, LinksCreated, LinksChanged and the digest of the
	// manifest. By that digest a later run recognises the files of a run that was killed before
	// Finish. It fails if the run was undone or abandoned.
	Loaded(ctx context.Context, run Run) error
	// Finish commits the state Finished of a run that is Loaded, with the digest of the
	// manifest. If Finished is zero it becomes the current time.
	Finish(ctx context.Context, run Run) error
	// Abandon marks those of these runs as Abandoned that are Loading or Loaded, all at once.
	// The session holds the locks of their workspaces.
	Abandon(ctx context.Context, runs []int32) error
	// Close rolls back what is not committed and releases the locks. Only Close may be
	// called after it: a second Close does nothing.
	Close() error
}

// Classes of errors. An error that wraps none of them does not pass by itself: a retry
// would fail again.
var (
	// ErrConflict: another writer took a code or a URL, or an undo deleted links. Look up
	// the links again, and give codes again.
	ErrConflict = errors.New("another writer took a code or a URL")
	// ErrLost is an ErrConflict: the connection with the locks was lost for a while, and an
	// undo may have deleted links meanwhile.
	ErrLost error = lost{}
	// ErrRetryable: the store did not answer, or asks for another try.
	ErrRetryable = errors.New("the database is not available")
	// ErrGaveUp is wrapped together with ErrRetryable by a store that has already tried
	// again for as long as it was told to.
	ErrGaveUp = errors.New("gave up")
	// ErrLocked: another bulk run holds a workspace, and LockOptions.NoWait was set.
	ErrLocked = errors.New("another bulk run is at work")
	// ErrSweeping: another sweep is at work, or lets no other begin yet.
	ErrSweeping = errors.New("another sweep is at work")
	// ErrMissing: there is no database yet, or it has no tables.
	ErrMissing = errors.New("no run has stored anything there")
	// ErrOldTables: an older version of bulk made the tables, and nothing has upgraded them.
	ErrOldTables = errors.New("its tables are of an older version")
	// ErrNotOurs: another program, or a newer version of bulk, made the database or a
	// table in it.
	ErrNotOurs = errors.New("not a database of this version of bulk")
)

type lost struct{}

func (lost) Error() string { return "the connection with the locks was lost" }
func (lost) Unwrap() error { return ErrConflict }
