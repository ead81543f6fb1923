// Package rules says what a link is beyond its URL: how long it lives, how often it may be used
// and whose it is. It decides what becomes of a row whose link exists, and which links are
// marked, deleted and answered. testdata/rules.jsonl has worked cases.
//
// # Parameters
//
// A row may have an expiry, a use limit, a type (PERMANENT or TEMPORARY), an owner and a
// reference. [Flags] reads them from cells; flags of the run stand in for empty cells. A row
// without an expiry gets one if the run has --expires-in, or if the row is TEMPORARY. It is
// reckoned: it counts from the as_of of the run, which may not be known yet.
//
// # Terms
//
//   - A link is live at a time if its status is ACTIVE or null, its expiry is after that time or it
//     has none, and its limit is above its uses or it has none. Any other link is dead.
//   - A row is over if its expiry is not after as_of.
//   - A row is foreign to a link if both have owners, and these differ.
//   - A row differs from a link if they do not have the same limit; if they do not have the same
//     expiry (a reckoned one of the row equals every expiry of the link); if one of them is
//     TEMPORARY and the other is not; or if the row has an owner and the link does not have this
//     one.
//   - To write a row gives its expiry, limit and type to the link, also if the row has none of
//     them, and its owner if it has one. If this leaves the link used up, its uses become 0.
//
// # The table
//
// One row speaks for each identity. The first line that fits holds ([Terms.Speak]):
//
//	link                  row                   what is done            outcome   change
//	--------------------  --------------------  ----------------------  --------  -------
//	none                  any, also if over     new link: row written,  created
//	                                            its original URL and
//	                                            reference, ACTIVE
//	deleted, and not      any                   nothing                 all rows rejected
//	--revive all                                                        as link_deleted
//	dead, --revive none   not over              nothing                 all rows rejected
//	                                                                    as link_ended
//	dead                  not over              row written, its        existing  revived
//	                                            original URL, ACTIVE,
//	                                            no mark, uses 0
//	live, TEMPORARY,      PERMANENT, with an    row written             existing  claimed
//	without an owner      owner
//	any                   does not differ       nothing                 existing
//	any                   differs, and          nothing                 rejected as drifted
//	                      --on-drift reject
//	live, without an      differs, and          row written             existing  updated
//	owner or with the     --on-drift update
//	row's
//	any                   differs               nothing                 existing  drifted
//
// A row without a type counts as PERMANENT where it is compared, but it claims nothing. A row
// without an owner never changes a live link that has one.
//
// Deleted is a link whose status is not ACTIVE, EXPIRED or null. Unless --revive is all, rows that
// would make a further link or alias of a URL are rejected as link_deleted, too, if all links and
// aliases of the URL in the workspace are deleted.
//
// # The rows of an identity
//
//  1. Codes are given out by canonical URL, then by the parts of the identity
//     (codegen/README.md). [AppendKey] has this order.
//  2. Rows are ordered by owner, none last; expiry: none, then the latest first, then reckoned;
//     limit: none, then the highest first; type: PERMANENT, none, TEMPORARY; then original URL,
//     carried cells (empty first, the reference is one of them), source, row. [Compare] has this
//     order as far as it is that of parameters.
//  3. Of the rows that are not foreign to the link as the store has it, the first speaks that is
//     not over; the first of them if all are over. [Judge] finds it.
//  4. The other rows are held against the link as it then is ([Terms.Hold]). A foreign row is a
//     duplicate with the change other_owner, or rejected as other_owner if the link is dead. A
//     row that differs is a duplicate with the change drifted, or with --on-drift reject
//     rejected as drifted. The rest are duplicates. If no row was accepted as speaker, the first
//     accepted row is existing instead of duplicate, and keeps its change; this is a foreign row
//     only if there is no other.
//  5. The three identities have these rules in common. A reference is stored, and part of the
//     identity, only by row. An alias is a link of its own.
//  6. A run that is repeated leaves store and results as they are, but created becomes existing,
//     and the changes updated, claimed and revived become blank. A run that was cut off reports
//     the changes of its earlier attempt as its own ([Stored]).
//
// # The end of a link
//
// A delete marks links as DELETED ([Deletion]). A sweep first marks links that died as EXPIRED
// ([Link.Expire]), then deletes those whose mark is old enough ([Link.Due]). A link keeps its code
// until then. [Resolve] says how a redirect service answers.
//
// Times are whole seconds, in Unix time. The package knows no files, stores or goroutines.
package rules

import "fmt"

// An Identity says what tells links of one URL apart.
type Identity uint8

// The identities.
const (
	ByURL    Identity = iota // nothing: a URL has one link, beside its aliases
	ByParams                 // expiry and use limit
	ByRow                    // the reference
)

var identities = [...]string{"url", "params", "row"}

func (i Identity) String() string { return identities[i] }

// ParseIdentity returns the identity of a name: url, params or row.
func ParseIdentity(name string) (Identity, error) { return parse[Identity](name, identities[:]) }

// OnDrift says what becomes of a link whose row differs.
type OnDrift uint8

// The ways.
const (
	Keep   OnDrift = iota // it stays
	Update                // the row is written
	Reject                // it stays, and the row is rejected
)

var ways = [...]string{"keep", "update", "reject"}

func (o OnDrift) String() string { return ways[o] }

// ParseOnDrift returns the way of a name: keep, update or reject.
func ParseOnDrift(name string) (OnDrift, error) { return parse[OnDrift](name, ways[:]) }

// Revivals say which dead links a row brings back to life.
type Revivals uint8

// The ways.
const (
	ReviveEnded Revivals = iota // those that nobody deleted
	ReviveAll                   // also those that somebody deleted
	ReviveNone                  // none
)

var revivals = [...]string{"ended", "all", "none"}

func (r Revivals) String() string { return revivals[r] }

// ParseRevivals returns the way of a name: ended, all or none.
func ParseRevivals(name string) (Revivals, error) { return parse[Revivals](name, revivals[:]) }

// A Change says what a row did to its link, or why it did nothing.
type Change uint8

// The changes.
const (
	NoChange    Change = iota
	Updated            // the row was written
	Claimed            // the link was temporary and without an owner, and the row was written
	Revived            // the link was dead, and the row was written
	Deleted            // the link was marked as DELETED
	Drifted            // the row differs from the link
	OtherOwner         // the link has another owner than the row
	ChangeCount = iota // of changes
)

var changes = [...]string{"", "updated", "claimed", "revived", "deleted", "drifted", "other_owner"}

// String returns the change as the mapping has it; "" for NoChange.
func (c Change) String() string { return changes[c] }

// ChangeCounts counts rows by change.
type ChangeCounts [ChangeCount]int64

// Merge adds other counts.
func (n *ChangeCounts) Merge(other *ChangeCounts) {
	for c := range n {
		n[c] += other[c]
	}
}

// ByName returns the counts that are not zero, by the name of the change.
func (n *ChangeCounts) ByName() map[string]int64 {
	named := map[string]int64{}
	for c, rows := range n {
		if rows > 0 && c != int(NoChange) {
			named[changes[c]] = rows
		}
	}
	return named
}

// ParseChange returns the change of a name; "" is NoChange.
func ParseChange(name string) (Change, error) { return parse[Change](name, changes[:]) }

// A Reason says why a row is rejected.
type Reason uint8

// The reasons.
const (
	Accepted    Reason = iota
	ForDrift           // the row differs from the link, and the run has --on-drift reject
	ForOwner           // the link is dead or to be deleted, and has another owner
	NotFound           // a row of a delete: there is no link
	ForURL             // a row of a delete: its code is that of another URL
	LinkDeleted        // the link, or each link of the URL, is deleted, and the run does not revive it
	LinkEnded          // the link is dead, and the run revives none
	ReasonCount = iota
)

var reasons = [...]string{"", "drifted", "other_owner", "not_found", "other_url", "link_deleted", "link_ended"}

// String returns the reason as the rejects have it; "" for Accepted.
func (r Reason) String() string { return reasons[r] }

// ParseReason returns the reason of a name.
func ParseReason(name string) (Reason, error) { return parse[Reason](name, reasons[:]) }

// IsRefusal reports whether a run rejects rows for this reason because of what their links are.
func IsRefusal(name string) bool {
	r, err := ParseReason(name)
	return err == nil && r != Accepted && r != NotFound && r != ForURL
}

// BadParameter is the reason of a row that has a parameter which cannot be read.
const BadParameter = "bad_parameter"

// parse returns the index of a name.
func parse[T ~uint8](name string, names []string) (T, error) {
	for i, n := range names {
		if n == name {
			return T(i), nil
		}
	}
	return 0, fmt.Errorf("%q is not one of %q", name, names)
}
