package rules

// What stores do to links beside runs, as the law has it: the model of the tests.

// Delete marks the link as DELETED at a time.
func (l *Link) Delete(at int64) {
	l.Status, l.Marked, l.Mark = StatusDeleted, true, at
}

// Expire is the first phase of a sweep at a time: a dead link of StatusActive is marked as
// EXPIRED, which it reports. A mark that somebody else set is as old as the first sweep that
// sees it.
func (l *Link) Expire(at int64) (marked bool) {
	switch marked = l.Status == StatusActive && !l.Live(at); {
	case marked:
		l.Status, l.Marked, l.Mark = StatusExpired, true, at
	case l.isMarked() && !l.Marked:
		l.Marked, l.Mark = true, at
	}
	return marked
}

// Due reports whether the second phase of a sweep at a time deletes the link: its mark is at least
// grace seconds old.
func (l *Link) Due(at, grace int64) bool { return l.isMarked() && l.Marked && at-l.Mark >= grace }

func (l *Link) isMarked() bool { return l.Status == StatusExpired || l.Status == StatusDeleted }

// Answers to a code, as statuses of HTTP.
const (
	Found  = 302 // with the original URL
	Absent = 404
	Gone   = 410
)

// Resolve returns the answer to the code of a link at a time; nil: there is no link.
func Resolve(l *Link, at int64) int {
	switch {
	case l == nil || l.Status == StatusDeleted:
		return Absent
	case l.Live(at):
		return Found
	}
	return Gone
}
