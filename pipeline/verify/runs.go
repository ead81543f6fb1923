package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/sink"
)

// storeRuns are the runs of the store.
type storeRuns struct {
	byID map[int32]sink.Run
	ours int32 // the run that left the manifest; 0: the store has none
}

// findRun returns the runs of the store, and finds the one that left this manifest. That
// there is none is a finding.
func (v *verifier) findRun(ctx context.Context) (*storeRuns, error) {
	runs, err := v.cfg.Store.Runs(ctx)
	if err != nil {
		return nil, err
	}
	known := &storeRuns{byID: make(map[int32]sink.Run, len(runs))}
	at := -1
	for i, run := range runs {
		known.byID[run.ID] = run
		// A run that was undone and then made again has left the same manifest twice.
		if run.ManifestSHA256 == v.result.ManifestSHA256 && (at < 0 || runs[at].State == sink.Undone) {
			at = i
		}
	}
	switch stored := v.run.mapping != "" && !v.run.dryRun; {
	case at >= 0 && stored:
		if known.ours = runs[at].ID; known.ours < 1 {
			v.wrongRun(StoreRun, known.ours, "run_id", "1 or more", fmt.Sprint(known.ours))
		}
		v.checkRun(&runs[at])
	case at >= 0:
		v.wrongRun(StoreRun, runs[at].ID, "manifest_sha256", "not that of a run that stored nothing", v.result.ManifestSHA256)
	case stored:
		v.wrong(ManifestSum, "", "the digest of a run of the store", v.result.ManifestSHA256)
	}
	return known, nil
}

// checkRun compares the run of the store with the manifest. It is loaded only if it
// was killed when its files had their names.
func (v *verifier) checkRun(run *sink.Run) {
	v.result.Undone = run.State == sink.Undone
	if run.State == sink.Loading {
		v.wrongRun(StoreRun, run.ID, "state", "loaded, finished or undone", string(run.State))
	}
	if want := v.run.manifest.AsOf; !run.AsOf.Equal(want) {
		v.wrongRun(StoreRun, run.ID, "as_of", want.String(), timeText(run.AsOf))
	}
	if manifest.Counts(run.Counts) != v.run.manifest.Counts {
		v.wrongRun(BadCount, run.ID, "counts", countsText(v.run.manifest.Counts), countsText(manifest.Counts(run.Counts)))
	}
}

// timeText is a time of the store in a finding; there it may be one that cannot be told.
func timeText(t time.Time) string {
	if t.IsZero() {
		return "no time"
	}
	return t.String()
}

// wrongRun makes a finding of a column of a run of the store.
func (v *verifier) wrongRun(kind Kind, id int32, column, expected, found string) {
	v.fault(storeName, int64(id)).wrong(kind, column, expected, found)
}

// isBefore reports whether a link is known to have been in the store when the run was
// made. It was if it is the run's own, or that of a run with a lower ID that had finished
// when this one did: one that was interrupted, be it while it was undone, may have gone
// on later. If the store does not know the link's run, or does not have this one, only
// the link's time can tell.
func (c *storeChecker) isBefore(l *sink.Stored) bool {
	asOf, timed := c.run.manifest.AsOf, !l.Created.IsZero()
	other, known := c.runs.byID[l.Run]
	finished := func(end time.Time) bool {
		over := other.State == sink.Finished || other.State == sink.Undone
		return over && !other.Finished.IsZero() && !other.Finished.After(end)
	}
	run, ours := c.runs.byID[c.runs.ours]
	switch {
	case c.run.dryRun:
		return timed && l.Created.Before(asOf) && (!known || finished(asOf))
	case !ours:
		return timed && !l.Created.After(asOf)
	case l.Run == c.runs.ours:
		return true
	case !known:
		return timed && !l.Created.After(asOf) && !l.Created.After(run.Started)
	case run.Finished.IsZero(): // killed when its files had their names
		return l.Run < c.runs.ours && finished(run.Started)
	}
	return l.Run < c.runs.ours && finished(run.Finished)
}

func countsText(c manifest.Counts) string {
	return fmt.Sprintf("read %d, created %d, existing %d, duplicate %d, rejected %d", c.Read, c.Created, c.Existing, c.Duplicate, c.Rejected)
}
