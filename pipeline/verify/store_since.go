package verify

import (
	"fmt"
	"slices"

	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// Since counts links of the mapping that are in the store no more as the run left them, which is
// no problem. Only workspaces that have links with link rules have any.
type Since struct {
	Gone    int64 `json:"gone"`    // links that are not there: they may have been swept
	Changed int64 `json:"changed"` // links that a later run has changed: what it may have changed is not compared
	Marked  int64 `json:"marked"`  // links that the run has created, and that are marked as expired or deleted
	Lives   int64 `json:"lives"`   // rows that were rejected because their links were dead, and whose links are not
}

func (s *Since) add(o *Since) {
	s.Gone, s.Changed, s.Marked, s.Lives = s.Gone+o.Gone, s.Changed+o.Changed, s.Marked+o.Marked, s.Lives+o.Lives
}

// see counts a link that has the ID of the run; 0: the store does not have the run, and the link is
// of another program.
func (s *Since) see(l *sink.Stored, run int32) {
	if l.Rules == nil || run == 0 {
		return
	}
	if changedSince(l, run) {
		s.Changed++
	}
	if status := l.Rules.Status; status != "" && status != sink.Active {
		s.Marked++
	}
}

// changedSince reports whether a run after this one has changed a link; 0: the store does not have
// this one.
func changedSince(l *sink.Stored, run int32) bool {
	return run != 0 && l.Rules != nil && l.Rules.ChangedRun > run
}

// rulesOf returns the rules of a link; none if they were not asked for.
func rulesOf(l *sink.Stored) (r sink.Rules) {
	if l.Rules != nil {
		r = *l.Rules
	}
	return r
}

// changeable are the columns that a change of a link may write, as compareBeyond names them.
var changeable = []string{"original_url", "expires_at", "max_uses", "link_type", "owner_id"}

// maySweep reports whether links of the workspace in hand may have been swept since the run.
func (c *storeMatcher) maySweep() bool { return c.runs.ruled[c.wanted.group] && !c.runs.undone }

// isAnother reports whether a link has the code of a claim that was given to it after the run: the
// link of the claim has been swept.
func (c *storeMatcher) isAnother(w *claim, l *sink.Stored) bool {
	if !c.maySweep() || c.isBefore(l) {
		return false
	}
	return w.created || string(w.canonical) != string(l.Canonical) || c.runs.ours != 0 && l.Run > c.runs.ours
}

// compareChange compares a link that existed before the run with what the run did to it.
func (c *storeMatcher) compareChange(here spot, w *claim, l *sink.Stored) {
	if changedSince(l, c.runs.ours) {
		c.since.Changed++
	}
	if !c.run.ruling.ruled || w.flags&bare != 0 { // which row speaks for it, the mapping does not tell
		return
	}
	ours, change, r := c.runs.ours, w.change(), rulesOf(l)
	writes := change == rules.Updated || change == rules.Claimed || change == rules.Revived
	changed := ours != 0 && r.ChangedRun == ours
	known := ours != 0 && !changedSince(l, ours)
	switch {
	case known && writes && (!changed || r.Change != change.String()):
		here.wrong(StoreDiffers, "change", fmt.Sprint(change, " by run ", ours), fmt.Sprint(r.Change, " by run ", r.ChangedRun))
	case changed && !writes:
		here.wrong(StoreDiffers, "change", fmt.Sprint("no change by run ", ours), r.Change)
	}
	compareBeyond(here, w.owner, c.run.hasAs(nil, l), func(column string, _ []byte) bool {
		switch column {
		case "url_key":
			return true
		case "original_url":
			return known && change == rules.Revived
		}
		return known && slices.Contains(changeable, column)
	})
}

// partsOf returns the parts of the identity of a link, if it tells them. With --identity params it
// does not: its expiry may have been reckoned, or changed.
func partsOf(l *sink.Stored) (parts []byte, known bool) {
	switch {
	case l.Alias || l.Base == sink.Key{}:
		return nil, true
	case len(rulesOf(l).Ref) > 0:
		return rules.ByRow.AppendParts(nil, &rules.Params{Ref: l.Rules.Ref}), true
	}
	return nil, false
}
