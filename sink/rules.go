package sink

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// Rules are what a link has beyond its URL: how long it lives, whose it is, what became of it.
// The zero value is that of a link of a plain run, whose columns are NULL.
type Rules struct {
	Expires time.Time // the first moment when the link is over; UTC, whole microseconds; zero: none, or the stored value is not a finite time
	MaxUses int64     // how often the link may be used; 0: without limit; -1: the stored value is 0
	Uses    int64     // as a redirect service counts them

	// nil or blank: none. The slices belong to the caller that made the Rules.
	Type, Owner, Ref []byte

	Status     string    // Active, Expired, Deleted, or another one that a service has set; "": the same as Active
	Marked     time.Time // AsOf of the sweep or delete that set the Status; zero: somebody else set it
	ChangedRun int32     // the last run that changed the link when it existed already; 0: none
	Change     string    // how that run changed it, such as "updated"
}

// Statuses of links.
const (
	Active  = "ACTIVE"
	Expired = "EXPIRED" // marked by a sweep
	Deleted = "DELETED" // marked by a delete
)

// UsedUp reports whether the uses have reached the limit.
func (r *Rules) UsedUp() bool { return r.MaxUses != 0 && r.Uses >= r.MaxUses }

// Live reports whether a link is live at a time. A link without Rules (nil) always is.
func (r *Rules) Live(at time.Time) bool {
	return r == nil || (r.Status == "" || r.Status == Active) && (r.Expires.IsZero() || r.Expires.After(at)) && !r.UsedUp()
}

// Limit is the MaxUses of a stored value.
func Limit(stored int64, null bool) int64 {
	if stored == 0 && !null {
		return -1
	}
	return stored
}

// Answers of a redirect service to a code, as statuses of HTTP.
const (
	AnswerURL  = 302 // with the original URL; of links with a redirect code, that
	AnswerNone = 404 // also if there is no link
	AnswerGone = 410
)

// Answer is what a redirect service answers to a request for the link.
func (r *Rules) Answer(at time.Time) int {
	switch {
	case r != nil && r.Status == Deleted:
		return AnswerNone
	case r.Live(at):
		return AnswerURL
	default:
		return AnswerGone
	}
}

// Word is string(b). It allocates nothing for the values of Status and Change that bulk writes.
func Word(b []byte) string {
	for _, word := range []string{Active, Expired, Deleted, "updated", "revived", "claimed"} {
		if string(b) == word {
			return word
		}
	}
	return string(b)
}

// A Change gives new rules to a link that exists. The byte slices belong to the caller that made
// the Change.
type Change struct {
	Workspace, Code []byte

	// Was are the rules that a Lookup found. The link changes only if it still has the same
	// Expires, MaxUses, Type, Owner and Status, and is used up if it was. So a service may
	// count uses meanwhile.
	Was Rules
	// Now are the new Expires, MaxUses, Type, Owner, Status and Change. The mark is removed. The
	// ChangedRun becomes the run, and updated_at its AsOf. The uses become 0 if they have
	// reached the new MaxUses.
	Now Rules
	// Revive: the uses become 0 in any case, and the link gets this Original (nil: the same as
	// its canonical URL).
	Revive   bool
	Original []byte
}

// Fits reports whether a link is as it was when the Change was made.
func (c *Change) Fits(r *Rules) bool {
	return c.Was.same(r) && c.Was.UsedUp() == r.UsedUp()
}

// Done reports whether a link is as this Change of this run has left it.
func (c *Change) Done(r *Rules, run int32) bool {
	return c.Now.same(r) && r.Marked.IsZero() && r.ChangedRun == run && r.Change == c.Now.Change
}

func (r *Rules) same(o *Rules) bool {
	return r.Expires.Equal(o.Expires) && r.MaxUses == o.MaxUses && bytes.Equal(r.Type, o.Type) && bytes.Equal(r.Owner, o.Owner) && r.Status == o.Status
}

// A RulesSession is what a Session does for links with rules.
type RulesSession interface {
	// Rules returns which workspaces may have links with rules: of these workspaces, or of all
	// if the list is nil.
	Rules(ctx context.Context, workspaces []string) (map[string]bool, error)
	// Gone reports of URLs, by their url_key alone, which have links and aliases that are all
	// deleted: their status is another one than Active, Expired or none. Several goroutines may call
	// it at the same time, also with Lookup.
	Gone(ctx context.Context, bases []Key) ([]bool, error)
	// SetRules commits that workspaces that the session has locked may have links with rules. A
	// run calls it before it loads the first one, or changes a link.
	SetRules(ctx context.Context, workspaces []string) error
	// Change changes links of workspaces that the session has locked. They come in chunks, in
	// ascending order of (workspace, code), with each link once. Each chunk is valid until the
	// next one is asked for. An error in place of a chunk ends the call and is returned.
	//
	// It commits in transactions of bounded size. If a link is not as the Change says, Change
	// changes the others and returns ErrConflict. A link that this run has already changed in
	// the same way stays as it is, and is no conflict: the same changes can be passed again.
	// ErrConflict also means that the run is over, and, as ErrLost, that the locks were lost for
	// a while.
	Change(ctx context.Context, run Run, changes iter.Seq2[[]Change, error]) error
}

// A RulesStore is what a Store does for links with rules.
type RulesStore interface {
	// ScanRules is Scan, with the Rules of the links.
	ScanRules(ctx context.Context, visit func(*Stored) error) error
	// Resolve visits the links that have these codes in the workspace, in any order. A code
	// without a link is not visited. A Resolved is valid only during the call. An error of
	// visit ends the call and is returned.
	Resolve(ctx context.Context, workspace string, codes []string, visit func(*Resolved) error) error
	// Summary counts the links of a workspace, or of all if that is "". It visits a Group for
	// each workspace, type, status and day of expiry that links have, in ascending order of
	// these, as they are at one moment. An error of visit ends the call and is returned.
	Summary(ctx context.Context, workspace string, visit func(Group) error) error
	// Delete marks links of a workspace as Deleted. What to delete comes in chunks, in any
	// order. Each chunk is valid until the next one is asked for. Before that, Delete visits the
	// links of each of its items, by item and code, after it has committed their marks. There may
	// be none. An error in place of a chunk, or of visit, ends the call and is returned.
	//
	// Delete holds the lock of the workspace, and commits in transactions of bounded size. It
	// says, as SetRules does, that the workspace may have links with rules. It does not change
	// updated_at. If two items name one link, the first one marks it.
	Delete(ctx context.Context, opts DeleteOptions, items iter.Seq2[[]Deletion, error], visit func(Named) error) error
	// Sweep marks dead links that are Active as Expired, and deletes those that were marked
	// Expired or Deleted at least opts.Grace ago. A link whose mark has no age gets one: the
	// AsOf. Sweep visits what it has marked and what it has deleted, after it has committed
	// it. It does not change updated_at. An error of visit ends the sweep and is returned; a
	// nil visit is not called.
	//
	// One sweep works at a time. It commits in transactions of bounded size, and each statement
	// repeats its condition, so no link that a service changes meanwhile is touched wrongly.
	// While Sweep is at work in a workspace it has the lock of the workspace, and says, as
	// SetRules does, that it may have links with rules. It passes over a workspace that a run
	// has locked, over links that somebody has locked for longer than a moment, and over links
	// that a row elsewhere in the database refers to. If the database would delete or change
	// such rows together with the links, Sweep fails before it begins. (In SQLite it fails if
	// any table has a foreign key to the links.)
	//
	// The error wraps ErrSweeping if another sweep is at work, or one that ended well lets no
	// other begin yet.
	Sweep(ctx context.Context, opts SweepOptions, visit func(Swept) error) (Sweeping, error)
}

// Resolved is a link that has a code.
type Resolved struct {
	Index    int    // of the code in the slice that was passed to Resolve
	URL      []byte // the original URL
	Rules    Rules
	Redirect int // the answer of a link that works: its redirect code, or AnswerURL
}

// Answer is what a redirect service answers to a request for the link.
func (r *Resolved) Answer(at time.Time) int {
	if answer := r.Rules.Answer(at); answer != AnswerURL {
		return answer
	}
	return r.Redirect
}

// RedirectOf returns the answer of a link that works and has these attributes, or only their redirect code.
func RedirectOf(attrs []byte) int {
	var has struct {
		Code json.Number `json:"redirect_code"`
	}
	if len(attrs) > 0 && attrs[0] != '{' {
		has.Code = json.Number(attrs)
	} else if !bytes.Contains(attrs, []byte("redirect_code")) || json.Unmarshal(attrs, &has) != nil {
		return AnswerURL
	}
	switch code, _ := has.Code.Int64(); code {
	case 301, 302, 307, 308:
		return int(code)
	}
	return AnswerURL
}

// InOrder returns the indexes of texts in the order of the texts. Links with codes that are
// neighbours mostly lie on the same pages of a store.
func InOrder(texts []string) []int {
	order := make([]int, len(texts))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(texts[a], texts[b]) })
	return order
}

// A Group is a group of links of a Summary.
type Group struct {
	Workspace, Type, Status string    // Type and Status are blank if the links have none
	Expires                 time.Time // the first moment of the day in UTC; zero: the links have no expiry

	Links   int64
	Uses    int64 // of all these links
	Latency Mean  // avg_redirect_ms of the links that have been used and have it, in milliseconds, weighted by their uses
}

// DeleteOptions say what Delete does.
type DeleteOptions struct {
	Workspace string
	Owner     string    // if it is not blank, only links of this owner are marked
	AsOf      time.Time // when the links are marked; UTC, whole microseconds
	// DryRun: take no lock and change nothing. A link that would be marked is visited as one that
	// was, perhaps for two items that name it.
	DryRun bool
	Lock   LockOptions
}

// A Deletion names links to delete: the one that has a code, or all links of a URL.
type Deletion struct {
	Code      string
	Base      Key    // url_key of the URL alone; counts only if Code is blank
	Canonical string // of the URL; with a Code, a link of another URL is not meant ("": of any)
}

// A Candidate is a link that Delete may mark.
type Candidate struct {
	Code          string
	Base          Key // url_key of its URL alone
	Canonical     string
	Owner, Status string // blank: none
}

// A Named link is one that an item of Delete names. Its Status is the one from before.
type Named struct {
	Item int // index of the item among those of all chunks
	Candidate
	Others   bool // it has no owner, or another one than DeleteOptions.Owner, and stays as it is
	OtherURL bool // it has the code of the item, but not its Canonical, and stays as it is
	Marked   bool // by this call and for this item; otherwise it was Deleted before, or it is one of Others or OtherURL
}

// SweepOptions say what Sweep does.
type SweepOptions struct {
	Workspace string        // "": all
	AsOf      time.Time     // UTC, whole microseconds
	Grace     time.Duration // how old a mark must be for the link to be deleted
	AtLeast   time.Duration // if the sweep ends well, no other begins before this time has passed since its beginning
	// Busy is called for each workspace that is passed over because a run has locked it, with a
	// description of that run. It may be nil.
	Busy func(workspace, holder string)
}

// Swept is a link that Sweep has marked as Expired, or deleted.
type Swept struct {
	Workspace, Code, Canonical string
	Status                     string // Expired or Deleted
	Deleted                    bool   // the link is gone
}

// Sweeping is the result of Sweep, also if it was interrupted.
type Sweeping struct {
	Marked, Deleted int64 // links
	Kept            int64 // links that were due and stay: something refers to them, or somebody has locked them
	Busy            int64 // workspaces
}

// SweepsNext is the ErrSweeping of a store in which a sweep that has ended lets no other begin yet.
func SweepsNext(began, until time.Time) error {
	return fmt.Errorf("%w or ended not long ago: it began at %s, and no other may begin before %s", ErrSweeping, began.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339))
}
