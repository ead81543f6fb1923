package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/sink"
)

// storeRuns are the runs of the store.
type storeRuns struct {
	byID     map[int32]sink.Run
	ours     int32                    // the run that left the manifest; 0: the store has none
	undone   bool                     // ours was undone
	unknown  bool                     // it has none although the run stored links
	profiles map[string]canon.Profile // by workspace, as lenient makes them
	schemes  map[string]sink.Scheme   // that were set, by workspace
	ruled    map[string]bool          // workspaces that may have links with link rules: they may be swept
}

// findRun returns the runs of the store, and finds the one that left this manifest. That
// there is none is a finding.
func (c *storeCheck) findRun(ctx context.Context) (*storeRuns, error) {
	runs, err := c.store.Runs(ctx)
	if err != nil {
		return nil, err
	}
	known := &storeRuns{byID: make(map[int32]sink.Run, len(runs))}
	if err := c.askWorkspaces(ctx, known); err != nil {
		return nil, err
	}
	at := -1
	for i, run := range runs {
		known.byID[run.ID] = run
		// A run that was undone and made again has the same manifest twice.
		if run.ManifestSHA256 == c.digest && (at < 0 || runs[at].State == sink.Undone) {
			at = i
		}
	}
	switch stored := c.run.stores(); {
	case at >= 0 && stored:
		if known.ours = runs[at].ID; known.ours < 1 {
			c.wrongRun(StoreRun, known.ours, "run_id", "1 or more", fmt.Sprint(known.ours))
		}
		known.undone = runs[at].State == sink.Undone
		c.checkRun(&runs[at])
	case at >= 0:
		c.wrongRun(StoreRun, runs[at].ID, "manifest_sha256", "not that of a run that stored nothing", c.digest)
	case stored:
		known.unknown = true
		c.findings.wrong(ManifestSum, "", "the digest of a run of the store, which does not know this run", c.digest)
	}
	return known, nil
}

// askWorkspaces finds out which workspaces of the store have links with link rules, and which have
// another profile than the default one. It notes each profile as lenient makes it.
func (c *storeCheck) askWorkspaces(ctx context.Context, known *storeRuns) error {
	session, err := c.store.Peek(ctx)
	if err != nil {
		return err
	}
	names, err := session.Profiles(ctx, nil)
	if err == nil {
		known.ruled, err = session.Rules(ctx, nil)
	}
	if err == nil {
		known.schemes, err = session.Schemes(ctx, nil)
	}
	if err := errors.Join(err, session.Close()); err != nil {
		return err
	}
	known.profiles = map[string]canon.Profile{}
	for workspace, name := range names {
		p, err := canon.ParseProfile(name)
		if err != nil {
			return fmt.Errorf("the profile of workspace %q: %w", workspace, err)
		}
		if p != (canon.Profile{}) {
			known.profiles[workspace] = lenient(p)
		}
	}
	return nil
}

// scan visits all links of the store, with their rules if any may have some, or should.
func (c *storeCheck) scan(ctx context.Context, runs *storeRuns, visit func(*sink.Stored) error) error {
	if len(runs.ruled) > 0 || c.run.ruling.ruled {
		return c.store.ScanRules(ctx, visit)
	}
	return c.store.Scan(ctx, visit)
}

// checkRun compares the run of the store with the manifest. Its state is loaded if it was
// killed after its files were in place.
func (c *storeCheck) checkRun(run *sink.Run) {
	if run.State == sink.Loading {
		c.wrongRun(StoreRun, run.ID, "state", "loaded, finished or undone", string(run.State))
	}
	if want := c.run.manifest.AsOf; !run.AsOf.Equal(want) {
		c.wrongRun(StoreRun, run.ID, "as_of", want.String(), timeText(run.AsOf))
	}
	if manifest.Counts(run.Counts) != c.run.manifest.Counts {
		c.wrongRun(BadCount, run.ID, "counts", countsText(c.run.manifest.Counts), countsText(manifest.Counts(run.Counts)))
	}
	links := int64(0) // as many as Created
	if c.run.codes.mode.Keeps() {
		links = c.run.links()
	}
	if run.LinksCreated != links {
		c.wrongRun(BadCount, run.ID, "counts", fmt.Sprint("links created ", links), fmt.Sprint("links created ", run.LinksCreated))
	}
	if want, got := numbersText(c.run.manifest.Numbers), rangesText(run.Numbers); want != got {
		c.wrongRun(StoreRun, run.ID, "numbers", want, got)
	}
	if changed := c.run.manifest.Rules.Changed(); run.LinksChanged != changed {
		c.wrongRun(BadCount, run.ID, "counts", fmt.Sprint("links changed ", changed), fmt.Sprint("links changed ", run.LinksChanged))
	}
}

// numbersText lists the numbers that a run took.
func numbersText(n *manifest.Numbers) string {
	var ranges []sink.Range
	if n != nil {
		for _, g := range n.Ranges {
			ranges = append(ranges, sink.Range(g))
		}
	}
	return rangesText(ranges)
}

func rangesText(ranges []sink.Range) string {
	var list []string
	for _, g := range ranges {
		list = append(list, fmt.Sprint(g.First, " to ", g.Last))
	}
	return strings.Join(list, ", ")
}

// timeText writes a time of the store; zero: the store has something that is no time.
func timeText(t time.Time) string {
	if t.IsZero() {
		return "no time"
	}
	return t.String()
}

// wrongRun makes a finding of a column of a run of the store.
func (c *storeCheck) wrongRun(kind Kind, id int32, column, expected, found string) {
	c.findings.fault(storeName, int64(id)).wrong(kind, column, expected, found)
}

// isBefore reports whether a link was surely in the store when the run was made. It was, if
// it is a link of this run, or of a run with a lower ID that was finished by then. (A run
// that was interrupted, or whose undo was, may have added links later.) If the store does not
// have the run of the link, or this run, only the time of the link tells.
func (c *storeMatcher) isBefore(l *sink.Stored) bool {
	asOf, timed := c.run.manifest.AsOf, !l.Created.IsZero()
	other, known := c.runs.byID[l.Run]
	finished := func(end time.Time) bool {
		over := other.State == sink.Finished || other.State == sink.Undone
		return over && !other.Finished.IsZero() && !other.Finished.After(end)
	}
	run, ours := c.runs.byID[c.runs.ours]
	switch {
	case c.run.terms.DryRun:
		return timed && l.Created.Before(asOf) && (!known || finished(asOf))
	case !ours:
		return timed && !l.Created.After(asOf)
	case l.Run == c.runs.ours:
		return true
	case !known:
		return timed && !l.Created.After(asOf) && !l.Created.After(run.Started)
	case run.Finished.IsZero(): // killed after its files were in place
		return l.Run < c.runs.ours && finished(run.Started)
	}
	return l.Run < c.runs.ours && finished(run.Finished)
}

func countsText(c manifest.Counts) string {
	return fmt.Sprintf("read %d, created %d, existing %d, duplicate %d, rejected %d", c.Read, c.Created, c.Existing, c.Duplicate, c.Rejected)
}
