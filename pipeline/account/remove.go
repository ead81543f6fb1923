package account

import (
	"strings"
	"time"

	"github.com/linkforge/bulk/pipeline/manifest"
)

// A Delete is what a delete did; of a dry run, what it would do.
type Delete struct {
	Out, ManifestSHA256     string
	DryRun                  bool
	Links                   int64
	Counts                  manifest.DeletionCounts
	Reasons                 map[string]int64
	BlankRows               int64 // records that are no rows
	Store, Workspace, Owner string
	Took                    time.Duration
	Until                   time.Time // no sweep with its default grace removes the links before
	Grace                   string    // the default grace of a sweep
	RejectsFile             string
	Advice                  map[string]string  // by reason
	Rejected                map[string]Example // the first reject of each reason; nil: the rejects tell
	ExitCode                int
}

// OfDeletion returns what the files of a finished delete tell of it: a manifest with its digest.
func OfDeletion(out string, m *manifest.Deletion, sha256 string) *Delete {
	d := &Delete{Out: out, ManifestSHA256: sha256, Links: m.LinksDeleted, Counts: m.Counts, Reasons: m.Reasons, BlankRows: m.Inputs.BlankRows()}
	d.DryRun = manifest.Option[bool](m.Options, "dry_run")
	d.Workspace, d.Owner = string(manifest.Option[manifest.Text](m.Options, "workspace")), string(manifest.Option[manifest.Text](m.Options, "owner"))
	return d
}

// Account returns the facts of the delete.
func (d *Delete) Account() *Account {
	a := &Account{Title: "delete finished"}
	links := Fact{Key: "links_deleted", Log: "links", Noun: "link", Value: d.Links, Zero: true, Words: "{} of workspace {workspace} deleted, in {seconds}"}
	if d.Owner != "" {
		links.Words = "{} of owner {owner} in workspace {workspace} deleted, in {seconds}"
	}
	if d.Took == 0 { // not known
		links.Words = strings.TrimSuffix(links.Words, ", in {seconds}")
	}
	if d.DryRun {
		links.Words = strings.Replace(links.Words, " deleted", " would be deleted", 1)
	}
	until := Fact{Key: "holds_until", Value: d.Until.UTC()}
	if !d.DryRun && d.Links > 0 {
		until.Words = "the deletion holds until bulk sweep removes the links: with its default --grace (" + d.Grace + ") not before {} UTC"
	}
	c := d.Counts
	a.add(Fact{Key: "out", Value: d.Out}, Fact{Key: "dry_run", Value: d.DryRun}, links, Fact{Key: "seconds", Log: "-", Value: d.Took},
		Fact{In: "counts", Key: "read", Noun: "row", Value: c.Read, Zero: true, Words: "{}: {existing} existing, {duplicate} duplicate, {rejected} rejected"},
		Fact{In: "counts", Key: "existing", Value: c.Existing}, Fact{In: "counts", Key: "duplicate", Value: c.Duplicate}, Fact{In: "counts", Key: "rejected", Value: c.Rejected},
		Fact{In: "-", Key: "nothing_deleted", Log: "-", Value: d.DryRun, Words: "this was a dry run: no links were deleted"},
		Fact{Key: "store", Value: d.Store}, Fact{Key: "workspace", Value: d.Workspace}, Fact{Key: "owner", Value: d.Owner},
		until,
		Fact{Key: "manifest_sha256", Value: d.ManifestSHA256, Words: "wrote {out}, manifest sha256 {}"},
		Fact{Key: "exit_code", Log: "-", Value: ID(d.ExitCode)}, Fact{Key: "reasons", Log: "-", Full: Empty{}})
	for _, p := range parts(d.Reasons) {
		f := reason(p, 0, d.Advice[p.Name])
		if e, ok := d.Rejected[p.Name]; ok {
			e.In = "rejected"
			f.Example = &e
		}
		a.add(f)
	}
	for _, f := range blankRows(d.BlankRows) {
		f.Words = "{} skipped: all cells are empty"
		a.add(f)
	}
	if c.Rejected > 0 {
		a.add(Fact{Key: "rejects_file", Log: "-", Value: d.RejectsFile, Words: "rejected rows are in {}"})
	}
	return a
}

// A Sweep is what a sweep did.
type Sweep struct {
	AsOf                        time.Time
	Marked, Deleted, Kept, Busy int64
	Skipped                     []string // workspaces: the busy ones
	Other                       string   // which other sweep is at work; "": none
	Failed                      bool     // it did a part, and then failed
}

// Account returns the facts of the sweep.
func (s *Sweep) Account() *Account {
	a := &Account{Title: "swept"}
	if s.Failed {
		a = &Account{Title: "swept in part, run it again", Level: Warning}
	}
	marked := Fact{Key: "marked", Noun: "link", Value: s.Marked, Zero: true, Words: a.Title + ": {} marked as expired, {deleted} deleted"}
	if s.Kept > 0 {
		marked.Words += ", {kept} kept: in use elsewhere in the database"
	}
	a.add(Fact{Key: "as_of", Value: s.AsOf}, marked, Fact{Key: "deleted", Value: s.Deleted}, Fact{Key: "kept", Value: s.Kept},
		Fact{In: "-", Key: "busy", Log: "skipped_workspaces", Value: s.Busy}, Fact{Key: "skipped_workspaces", Log: "-", Value: some(s.Skipped)})
	if s.Other != "" {
		a.add(Fact{Key: "other_sweep", Log: "-", Value: s.Other})
	}
	return a
}

// OtherSweep returns the account of a sweep that did nothing, since another one is at work.
func OtherSweep(other string) *Account {
	return &Account{Title: "another sweep is at work", Facts: []Fact{{Key: "other_sweep", Log: "sweep", Value: other, Words: "{}"}}}
}

// An Undo is what an undo of a run did.
type Undo struct {
	Run                    int32
	Deleted, Kept, Changed int64 // links; Changed are those of other runs, which stay as they are
	Before                 bool  // the run was undone before
	Failed                 bool  // it did a part, and then failed
}

// Account returns the facts of the undo.
func (u *Undo) Account() *Account {
	run := Fact{Key: "run", Value: ID(u.Run), Words: "run {} undone: {deleted} deleted, {kept} kept"}
	deleted, kept := Fact{Key: "deleted", Noun: "link", Value: u.Deleted}, Fact{Key: "kept", Value: u.Kept}
	changed := Fact{Key: "changed", Noun: "link", Value: u.Changed, Words: "the run changed {} of other runs: they stay as they are"}
	switch {
	case u.Failed:
		run.Words = "run {} undone in part: {deleted} deleted, {kept} kept; undo it again"
		return &Account{Title: "run undone in part: undo it again", Level: Warning, Facts: []Fact{run, deleted, kept}}
	case u.Before && u.Deleted == 0:
		run.Words, kept.Noun = "run {} was undone before; nothing was left to delete, {kept} kept", "link"
		return &Account{Title: "the run was undone before; nothing was left to delete", Facts: []Fact{run, kept, changed}}
	}
	return &Account{Title: "run undone", Facts: []Fact{run, deleted, kept, changed}}
}

// An UndoPreview is a run, and what an undo of it would do.
type UndoPreview struct {
	Run                             int32
	State                           string
	Started                         time.Time
	Workspaces, Inputs              []string
	Out                             string
	Deleted, Kept, Changed, Orphans int64
	Later                           []string // runs that used links, perhaps of this one
	Existing                        int64    // links that these used
}

// Account returns the facts of the preview.
func (u *UndoPreview) Account() *Account {
	deleted := Fact{Key: "deleted", Value: u.Deleted, Zero: true, Words: "links to delete: {}"}
	if u.Kept > 0 {
		deleted.Words += "; {kept} would stay: somebody changed them, or something refers to them"
	}
	return &Account{Title: "undo would delete links", Facts: []Fact{
		{Key: "run", Value: ID(u.Run), Words: "run {} is {state}; it started at {started}"},
		{Key: "state", Value: u.State}, {Key: "started", Value: u.Started.Local()},
		{Key: "workspaces", Name: "workspaces", Value: Names(u.Workspaces)}, {Key: "inputs", Name: "inputs", Value: Names(u.Inputs)}, {Key: "out", Name: "output directory", Value: u.Out},
		deleted, {Key: "kept", Noun: "link", Value: u.Kept}, u.later(), {Key: "existing", Noun: "existing link", Value: u.Existing},
		{Key: "orphaned_aliases", Value: u.Orphans, Words: "aliases of other runs that would be left without their link: {}"},
		{Key: "changed", Value: u.Changed, Words: "links of other runs that stay as this run changed them: {}"},
	}}
}

// later tells of runs that may have used links of the run.
func (u *UndoPreview) later() Fact {
	return Fact{Key: "later_runs", Value: strings.Join(u.Later, ", "), Words: "later runs that used {existing}, perhaps of these: {}"}
}

// LaterRuns returns the account of runs that used so many links, some of which may be deleted now.
func LaterRuns(runs []string, existing int64) *Account {
	noun, its := "run", "its"
	if len(runs) > 1 {
		noun, its = "runs", "their"
	}
	return &Account{Title: "later runs used existing links: some may be deleted now; run the inputs again to create them", Level: Warning, Facts: []Fact{
		{Key: "runs", Value: strings.Join(runs, ","), Words: "warning: " + noun + " {} used {existing}. Some may be deleted now. Run " + its + " inputs again to create them"},
		{Key: "existing", Noun: "existing link", Value: existing},
	}}
}
