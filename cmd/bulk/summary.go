package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/pipeline/rules"
)

// summary reports how a run went that ended with err.
func (u *ui) summary(o *runOptions, r *pipeline.Result, err error) {
	if r.ManifestSHA256 == "" {
		return
	}
	if r.Repeated {
		u.tell(slog.LevelInfo, fmt.Sprintf("nothing to do: run %d is finished, and %s has its files", r.RunID, r.Out), "nothing to do: the run is finished",
			"run", r.RunID, "out", r.Out, "read", r.Counts.Read, "rejected", r.Counts.Rejected, "manifest_sha256", r.ManifestSHA256)
		u.rejects(r, false)
		return
	}
	tooMany, refused := errors.AsType[*pipeline.TooManyRejectsError](err)
	created, stored := "created", !o.DryRun && !refused
	if !stored {
		created = "would be created"
	}
	stored = stored || refused && tooMany.Stored > 0
	run := ""
	switch {
	case r.Resumed && r.RunID != 0:
		run = fmt.Sprintf("run %d, resumed: ", r.RunID)
	case r.RunID != 0:
		run = fmt.Sprintf("run %d: ", r.RunID)
	}
	c := r.Counts
	say := []string{fmt.Sprintf("%s%s: %s %s, %s existing, %s duplicate, %s rejected, in %s", run, count(c.Read, "row"), thousands(c.Created), created,
		thousands(c.Existing), thousands(c.Duplicate), thousands(c.Rejected), took(time.Since(u.began)))}
	if o.DryRun {
		say = append(say, "this was a dry run: no links were stored")
	}
	if len(r.Workspaces) > 0 {
		say = append(say, where(o.StoreName, o.newStore && stored, stored, r))
	}
	if r.Rewritten > 0 {
		say = append(say, fmt.Sprintf("rewrote the URLs of %s into canonical form (the links lead to the originals): %s", count(r.Rewritten, "row"), ways(r.Changes)))
	}
	if m := r.MergedDiffers; m != nil {
		a, b, verb := m.Example[0], m.Example[1], "share"
		if m.Rows == 1 {
			verb = "shares"
		}
		say = append(say, fmt.Sprintf("%s %s the link of a row of this run whose URL may lead elsewhere: %s", count(m.Rows, "row"), verb, ways(m.By)),
			fmt.Sprintf("for example %s (%s, row %d) shares the link that leads to %s (%s, row %d)", redacted(b.URL), b.Source, b.Row, redacted(a.URL), a.Source, a.Row))
	}
	if r.Legacy != nil {
		say = append(say, codes(o, r, created, refused)...)
	}
	say = append(say, migrationLines(o, r.Migration)...)
	say = append(say, rulesLines(o, r)...)
	if n := r.Numbers; n != nil && !refused {
		say = append(say, numbersLine(n, o.DryRun))
	}
	if o.BaseURL == "" && !refused {
		say = append(say, "short_url is blank: --base-url says what short URLs begin with")
	}
	say = append(say, fmt.Sprintf("wrote %s, manifest sha256 %s", r.Out, r.ManifestSHA256))
	attrs := []any{"out", r.Out, "run", r.RunID, "resumed", r.Resumed, "dry_run", o.DryRun, "stored", stored,
		"read", c.Read, "created", c.Created, "existing", c.Existing, "duplicate", c.Duplicate, "rejected", c.Rejected,
		"manifest_sha256", r.ManifestSHA256, "store", o.StoreName, "new_store", o.newStore && stored, "workspaces", short(r.Workspaces), "new_workspaces", short(r.Fresh),
		"rewritten", r.Rewritten, "rewritten_by", ways(r.Changes)}
	if m := r.MergedDiffers; m != nil {
		attrs = append(attrs, "merged_differs", m.Rows, "merged_differs_by", ways(m.By))
	}
	attrs = append(append(attrs, codeAttrs(r)...), migrationAttrs(r.Migration)...)
	if r.Rules != nil {
		attrs = append(attrs, "changes", ways(r.Rules.Changes))
	}
	if len(r.Stays) > 0 {
		attrs = append(attrs, "links_unchanged", ways(r.Stays))
	}
	if r.Dates > 0 {
		attrs = append(attrs, "dates_without_time", r.Dates)
	}
	if r.Numbers != nil {
		attrs = append(attrs, "numbers", rangesText(r.Numbers.Ranges), "numbers_skipped", r.Numbers.Skipped)
	}
	u.tell(slog.LevelInfo, strings.Join(say, "\n"), "run finished", attrs...)
	if l := r.Legacy; l != nil && l.WithoutCode == c.Read && c.Read > 0 && u.lines {
		u.log.Warn(noCodes)
	}
	u.rejects(r, refused || o.DryRun)
	if c.Read == 0 {
		u.log.Warn("the inputs have no rows")
	}
	failed := outdir.FailedOf(o.Out)
	if _, err := os.Lstat(failed); err == nil && !refused && !o.DryRun {
		u.tell(slog.LevelInfo, failed+" is left from an earlier run that could not store its links", "the files of an earlier run that could not store its links are still there", "out", failed)
	}
}

// codes says what became of legacy codes. A run that was refused has not counted the aliases.
func codes(o *runOptions, r *pipeline.Result, created string, refused bool) []string {
	l := r.Legacy
	text := count(l.WithoutCode, "row") + " without an old code"
	if o.Legacy.Keeps() {
		text += ", " + count(l.Conflicts, "conflict")
	}
	if o.Legacy.Keeps() && !refused {
		text = fmt.Sprintf("%s and aliases %s, %s whose code is an alias, %s", count(r.LinksCreated, "link"), created, count(l.Aliases, "row"), text)
	}
	say := []string{"legacy codes: " + text}
	if l.WithoutCode == r.Counts.Read && l.WithoutCode > 0 {
		say = append(say, noCodes)
	}
	if t := l.CaseTwins; t != nil {
		say = append(say, fmt.Sprintf("%s of codes that differ only in case, for example %s: --fold-case takes them for the same", count(t.Groups, "group"), twins(t)))
	}
	if d := l.Damaged; d != nil {
		say = append(say, fmt.Sprintf("%s damaged by a spreadsheet, perhaps, for example %s (%s, row %d): export the codes again as text",
			count(d.Rows, "code"), d.Example.Code, d.Example.Source, d.Example.Row))
	}
	return say
}

// noCodes is said if no row has a legacy code.
const noCodes = "no row has an old code: is it the right column (--code-column)?"

// codeAttrs is codes for a log line.
func codeAttrs(r *pipeline.Result) (attrs []any) {
	l := r.Legacy
	if l == nil {
		return nil
	}
	attrs = []any{"links_created", r.LinksCreated, "aliases", l.Aliases, "conflicts", l.Conflicts, "without_code", l.WithoutCode}
	if t := l.CaseTwins; t != nil {
		attrs = append(attrs, "case_twins", t.Groups, "case_twins_example", twins(t))
	}
	if d := l.Damaged; d != nil {
		attrs = append(attrs, "damaged", d.Rows, "damaged_example", string(d.Example.Code))
	}
	return attrs
}

// rejects reports how many rows were rejected, by reason, where they are, and what to correct:
// a copy of the rejects, or the input if the other rows are not stored either.
func (u *ui) rejects(r *pipeline.Result, whole bool) {
	file := filepath.Join(r.Out, manifest.RejectsName)
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		n := r.Reasons[reason]
		say, attrs := count(n, "row")+" rejected: "+reason, []any{"reason", reason, "rows", n, "file", file}
		if hint := advice(reason); hint != "" {
			say, attrs = say+"; "+hint, append(attrs, "hint", hint)
		}
		u.tell(slog.LevelWarn, say, "rows were rejected", attrs...)
	}
	if r.Counts.Rejected > 0 && !u.lines {
		do := "copy that file, correct the copy, run the copy"
		if whole {
			do = "correct the input"
		}
		u.print(fmt.Sprintf("bulk: rejected rows are in %s: %s", file, do))
	}
}

// advice says what flag could accept rows that were rejected because of what they were elsewhere;
// "": none.
func advice(reason string) string {
	switch reason {
	case outcome.BadCode:
		return "--code-pattern says which old codes are accepted"
	case rules.ForDrift.String():
		return "--on-drift keep or update accepts them"
	case rules.LinkDeleted.String():
		return "--revive all brings these links back"
	case rules.LinkEnded.String():
		return "--revive ended brings these links back"
	case outcome.CodeTaken:
		return "with --on-conflict generate they get generated codes"
	}
	if kind, err := hygiene.ParseKind(reason); err == nil {
		return fmt.Sprintf("--hygiene %s=warn accepts them", kind)
	}
	return ""
}

// where says which store and workspaces a run had, and which of them are new.
func where(store string, created, stored bool, r *pipeline.Result) string {
	text := "store " + store
	if created {
		text = "created the store " + store
	}
	noun, verb := "workspace ", " has no links yet"
	if stored {
		verb = " had no links before"
	}
	if len(r.Workspaces) > 1 {
		noun, verb = "workspaces ", strings.Replace(verb, "has", "have", 1)
	}
	if len(r.Fresh) == len(r.Workspaces) {
		return text + "; " + noun + short(r.Workspaces) + verb
	}
	text += ", " + noun + short(r.Workspaces)
	if len(r.Fresh) > 0 {
		text += "; no links before: " + short(r.Fresh)
	}
	return text
}

// short lists names, the first few if there are many.
func short(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %s more", strings.Join(names[:most], ", "), thousands(int64(len(names)-most)))
}

// ways lists counts by name, the highest first.
func ways(counts map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	for i, name := range names {
		names[i] = name + " " + thousands(counts[name])
	}
	return strings.Join(names, ", ")
}

// took writes how long something lasted, for people.
func took(d time.Duration) string {
	switch {
	case d < 100*time.Millisecond:
		return "under 0.1 s"
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
