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
	"github.com/linkforge/bulk/pipeline/account"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink/postgres"
)

// summary tells how a run went that ended with err: on a terminal as a screen, elsewhere as log lines,
// and with --summary json on stdout. It returns an error if that cannot be written.
func (u *ui) summary(o *runOptions, r *pipeline.Result, err error) error {
	if r.ManifestSHA256 == "" {
		return nil
	}
	a := o.account(u, r, err).Account()
	u.tellRun(a, len(o.Inputs) == 1 && !strings.ContainsAny(o.Inputs[0], "*?["))
	refused := errors.As(err, new(*pipeline.TooManyRejectsError))
	if r.Counts.Read == 0 && !r.Repeated {
		u.log.Warn("the inputs have no rows")
	}
	if l := r.Legacy; l != nil && l.WithoutCode == r.Counts.Read && r.Counts.Read > 0 && u.lines {
		u.log.Warn(account.NoCodes)
	}
	failed := outdir.FailedOf(o.Out)
	if _, err := os.Lstat(failed); err == nil && !refused && !o.DryRun && !r.Repeated {
		u.tell(slog.LevelInfo, failed+" is left from an earlier run that could not store its links", "the files of an earlier run that could not store its links are still there", "out", failed)
	}
	if o.summary == "json" {
		return printFacts(u.stdout, a)
	}
	return nil
}

// tellRun tells how a run went: on a terminal as a screen, elsewhere as log lines.
func (u *ui) tellRun(a *account.Account, oneInput bool) {
	if u.lines {
		u.logAccount(a)
	} else {
		u.screen(a, oneInput)
	}
}

// screen tells an account on the terminal. The first fact is a message, the others stand below it.
func (u *ui) screen(a *account.Account, oneInput bool) {
	width := terminalWidth(u.stderr)
	s := &screen{width: width, most: width, sources: 2, wraps: true}
	if oneInput {
		s.sources = 1
	}
	rest := *a
	rest.Facts = slices.Clone(a.Facts)
	rest.Facts[0].Name, rest.Facts[0].Words = "", "" // which is told here
	s.account(&rest, 2)
	u.print("bulk: " + sentence(a, &a.Facts[0]) + "\n" + strings.TrimSuffix(s.String(), "\n"))
}

// account returns what is known of a run that ended with err.
func (o *runOptions) account(u *ui, r *pipeline.Result, err error) *account.Run {
	tooMany, refused := errors.AsType[*pipeline.TooManyRejectsError](err)
	stored := !o.DryRun && !refused || refused && tooMany.Stored > 0
	a := &account.Run{
		Manifest: manifest.Manifest{Counts: manifest.Counts(r.Counts), LinksCreated: &r.LinksCreated, Reasons: r.Reasons, MergedDiffers: r.MergedDiffers,
			Legacy: r.Legacy, Rules: r.Rules, Numbers: r.Numbers, Migration: r.Migration, Campaign: r.Campaign, Files: r.Files},
		Terms: o.terms(), Timings: r.Timings, ManifestSHA256: r.ManifestSHA256, Out: r.Out, ID: r.RunID, Store: o.StoreName, DryRun: o.DryRun, Stored: stored,
		Resumed: r.Resumed, Repeated: r.Repeated, NewStore: o.newStore && stored, Told: r.Told,
		BlankRows: r.BlankRows, Rejected: map[string]account.Example{},
		ShortURLs: o.BaseURL != "", Took: time.Since(u.began), ExitCode: exitCode(o.ending(r.Counts.Rejected, err)),
		RejectsFile: filepath.Join(r.Out, manifest.RejectsName), Amend: amend(refused || o.DryRun),
	}
	if refused {
		a.Refused = inFlags(tooMany.Why())
	}
	for reason, row := range r.Rejected {
		a.Rejected[reason] = exampleOfReject(row)
	}
	a.Command = o.next(u, r, refused)
	return a
}

// amend says what to do about rejects of a run that will run again, or not.
func amend(again bool) string {
	if again {
		return "correct the input"
	}
	return "copy that file, correct the copy, run the copy"
}

// ending returns the error with which a run or preview ends that ended with err and so many rejects.
func (o *runOptions) ending(rejected int64, err error) error {
	if err == nil && rejected > 0 && !o.rejectsOK {
		return errRejected
	}
	return err
}

// terms are what the options say about the rows.
func (o *runOptions) terms() account.Terms {
	t := account.Terms{Mode: o.Legacy, Domains: o.Domains, Update: o.OnDrift == rules.Update}
	if o.Config.Rules != nil && rules.IsDate([]byte(o.rules.expiresAt)) {
		t.ExpiresAt = o.rules.expiresAt
	}
	return t
}

// exampleOfReject returns a reject as an example, without secrets.
func exampleOfReject(row *pipeline.PreviewRow) account.Example {
	safe := *row
	safe.URL, safe.Detail = manifest.Text(redacted(row.URL)), hygiene.Redact(row.Detail)
	return account.Example{Source: string(row.Source), Row: row.Row, Text: cmp.Or(safe.Detail, string(safe.URL)), URL: string(safe.URL), Full: &safe}
}

// next returns the command that comes after a run: the check of it, or of a dry run and of one that
// was refused the run itself.
func (o *runOptions) next(u *ui, r *pipeline.Result, refused bool) string {
	if refused {
		return shellCommand(u.args)
	}
	if o.DryRun {
		return shellCommand(slices.DeleteFunc(slices.Clone(u.args), func(arg string) bool { return strings.HasPrefix(arg, "--dry-run") }))
	}
	inputs := slices.DeleteFunc(slices.Clone(o.Inputs), func(input string) bool { return input == "-" })
	return checkCommand(r.Out, inputs, o.StoreName, [][2]string{
		{"schema", o.store.postgres.Schema}, {"table", o.store.postgres.Table}, {"scheme-key-file", o.scheme.keyFile}, {"blocklist", o.scheme.blocklist}})
}

// checkCommand returns the command that checks a run, with those of the flags that have a value.
func checkCommand(out string, inputs []string, store string, flags [][2]string) string {
	args := []string{"verify", out}
	for _, input := range inputs {
		args = append(args, "--inputs", input)
	}
	args = append(args, "--db", store)
	for _, f := range flags {
		if f[1] != "" {
			args = append(args, "--"+f[0], f[1])
		}
	}
	return shellCommand(args)
}

// shellCommand returns the command of bulk with these arguments, for a shell. Passwords are hidden.
func shellCommand(args []string) string {
	words := []string{"bulk"}
	for _, arg := range args {
		if dsn := address(arg); dsn != "" {
			arg = strings.TrimSuffix(arg, dsn) + postgres.Redact(dsn)
		}
		if !plainArgument.MatchString(arg) {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// redacted is a text from the input as a terminal or a log may show it: without secrets.
func redacted(text manifest.Text) string { return hygiene.Redact(string(text)) }

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
