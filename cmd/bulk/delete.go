package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/account"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/spf13/cobra"
)

// deleteOptions are the flags of delete: a DeleteConfig, and flags that are no field of it or become
// one in resolve.
type deleteOptions struct {
	pipeline.DeleteConfig
	store              storeOptions
	yes, json          bool
	csv                csvText
	asOf, assumeScheme string
}

func deleteCommand(ui *ui) *cobra.Command {
	var o deleteOptions
	cmd := &cobra.Command{
		Use:   "delete INPUT… --workspace ID",
		Short: "Delete the links that a list names",
		Long: `An INPUT is a file as bulk run takes it, with a column of URLs or of codes. A
URL names all links of the workspace that have it, in any spelling, and their
aliases. A code names the one link or alias that has it. If a list has both
columns, a row names the link of its code, and its URL must be that of the link;
if the code is blank, the URL counts. With --url-column none only codes count,
with --code-column none only URLs. A message says which columns are used.

White space around a code does not count, and in a list of short URLs
(path(COLUMN)) a slash at the end does not, unless a link has just this code.

Deleted links stay in the store with the status DELETED, so that a redirect
service answers 404. Their codes stay taken until bulk sweep removes the links.
Until then a run rejects rows of such a URL (link_deleted), unless it has
--revive all. A sweep removes the links and forgets the deletion when its
--grace has passed, by default 24 hours; a message says when that is
(holds_until).

The output directory gets mapping.csv, rejects.csv and manifest.json. Each row
is in mapping.csv or in rejects.csv:
  existing   The row names links. If it deleted some of them, its change is
             deleted and short_codes has their codes, with spaces between them.
             If all were deleted before, its change is blank.
  duplicate  Other rows name all links of the row. The first row of a URL or
             code counts, and a row with a URL before one with a code.
  rejected   not_found: no link has the URL or code.
             other_owner: no link of the row has the --owner.
             other_url: the link of the code has another URL than the row.
             missing_code: the row has no code.
             bad_workspace: the row has a column workspace_id with another
             workspace.
             All other reasons are those of bulk run.
rejects.csv can be an INPUT again.

On a terminal, delete says how many links it would delete, and asks first.
Where standard input or standard error is no terminal it needs --yes. If delete
is interrupted, run it again: it deletes the rest.`,
		Example: `  bulk delete gone.csv --workspace demo --dry-run
  bulk delete gone.csv --workspace demo --owner anna --db sqlite:links.db --yes
  bulk delete short.txt -w demo --code-column 'path(1)'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Inputs, o.Source.Stdin = args, cmd.InOrStdin()
			if err := o.resolve(); err != nil {
				return usage(err)
			}
			return deleteLinks(cmd.Context(), ui, &o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Workspace, "workspace", "w", "", "workspace `ID` of all rows (required)")
	f.StringVar(&o.Source.URLColumn, "url-column", "", "`COLUMN` that has the URLs, by name or number; none: only codes count (default: found by its usual names)")
	f.StringVar(&o.Source.CodeColumn, "code-column", "", "`COLUMN` that has the codes, by name or number; path(COLUMN) takes codes from short URLs; none: only URLs count (default: found by its usual names)")
	f.StringVar(&o.Owner, "owner", "", "delete only links that have this `OWNER`")
	f.StringVarP(&o.Out, "out", "o", "", "`DIR` for the output (default: named after the first input: links.csv gives ./links.deleted)")
	f.BoolVar(&o.Overwrite, "overwrite", false, "replace the output of an earlier delete in the output directory")
	f.BoolVar(&o.DryRun, "dry-run", false, "delete nothing; write the reports to DIR.dry")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&o.json, "json", false, "when the delete ends, print what it did as one JSON object")
	o.store.flags(cmd)
	f.BoolVar(&o.NoWait, "no-wait", false, "fail, instead of waiting, if a run is using the workspace, the SQLite file or the output directory")
	group(f, "Store flags")
	o.csv.flags(cmd, &o.Source)
	f.StringVar(&o.assumeScheme, "assume-scheme", "", "add `http|https` to URLs without a scheme, such as example.com/a or //example.com/a; without this they are rejected")
	group(f, "Input flags")
	f.StringVar(&o.asOf, "as-of", "", "`TIME` of the deletion to record: RFC 3339 or a date (default: now)")
	group(f, "Link flags")
	offer(cmd, "assume-scheme", "https", "http")
	return cmd
}

// resolve turns the flags that are text into configuration.
func (o *deleteOptions) resolve() (err error) {
	if len(o.Inputs) == 0 {
		return errors.New("give at least one INPUT")
	}
	problems := flagErrors{o.csv.parse(&o.Source)}
	o.AsOf, err = parseTime(o.asOf)
	problems.check("as-of", err)
	o.AssumeScheme, err = canon.ParseAssumedScheme(o.assumeScheme)
	problems.check("assume-scheme", err)
	if o.Out == "" {
		o.Out, err = defaultOut(o.Inputs[0])
		o.Out = strings.TrimSuffix(o.Out, ".bulk") + ".deleted"
		problems = append(problems, err)
	}
	return errors.Join(append(problems, o.store.resolve(), o.Validate())...)
}

// deleteLinks runs bulk delete; its options are resolved.
func deleteLinks(ctx context.Context, ui *ui, o *deleteOptions) (err error) {
	signal.Ignore(syscall.SIGPIPE) // a delete continues although nobody reads its log any more
	began := time.Now()
	o.store.postgres.Outage = ui.outages()
	store, err := o.store.open(ctx, ui.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := knows(ctx, store, o.Workspace); err != nil {
		return err
	}
	o.Store, o.Version, o.Logger, o.Opened, o.Status = store, toolVersion(), ui.log, ui.openedLists, new(pipeline.Status)
	stop := ui.watch(o.Status)
	defer func() { stop() }()
	if stdin := o.Source.Stdin; !o.yes {
		o.Confirm = func(would *pipeline.DeleteResult) (bool, error) {
			stop()
			defer func() { stop, began = ui.watch(o.Status), time.Now() }()
			return ui.confirmDelete(ctx, stdin, o, would)
		}
	}
	r, err := pipeline.Delete(ctx, o.DeleteConfig)
	stop()
	if err == nil && r.Counts.Rejected > 0 {
		err = errRejected
	}
	switch {
	case r.ManifestSHA256 != "":
		err = cmp.Or(ui.deleted(o, r, o.account(r, time.Since(began), err)), err)
	case r.Declined && err == nil:
		ui.tell(slog.LevelInfo, "nothing was deleted", "nothing was deleted", "workspace", o.Workspace)
	case r.Links > 0 && !o.DryRun:
		ui.tell(slog.LevelWarn, count(r.Links, "link")+" deleted before this error; there is no report of them", "links were deleted before an error; there is no report of them",
			"links", r.Links, "workspace", o.Workspace)
	}
	return err
}

// deleted tells how a delete went. It returns an error if that cannot be written to stdout.
func (u *ui) deleted(o *deleteOptions, r *pipeline.DeleteResult, a *account.Account) error {
	u.report(a)
	if r.Counts.Read == 0 {
		u.log.Warn("the inputs have no rows")
	}
	if o.json {
		return printFacts(u.stdout, a)
	}
	return nil
}

// openedLists tells what the inputs of a delete are, before it reads them.
func (u *ui) openedLists(inputs []pipeline.DeleteInput) {
	u.noteInputs(len(inputs), func(i int) {
		in := inputs[i]
		switch {
		case in.Codes == "":
			u.note(fmt.Sprintf("%s: URLs in the column %s", in.Name, in.URLs), "input", "name", in.Name, "has", "URLs", "column", in.URLs)
		case in.URLs == "":
			u.note(fmt.Sprintf("%s: codes in the column %s", in.Name, in.Codes), "input", "name", in.Name, "has", "codes", "column", in.Codes)
		default:
			u.note(fmt.Sprintf("%s: codes in the column %s, their URLs in the column %s", in.Name, in.Codes, in.URLs),
				"input", "name", in.Name, "has", "codes with URLs", "column", in.Codes, "url_column", in.URLs)
		}
	})
}

// confirmDelete says what a delete would do, and asks whether it shall.
func (u *ui) confirmDelete(ctx context.Context, stdin io.Reader, o *deleteOptions, would *pipeline.DeleteResult) (bool, error) {
	say := fmt.Sprintf("%s: %s to delete in workspace %s of %s", count(would.Counts.Read, "row"), count(would.Links, "link"), o.Workspace, o.store.name())
	if len(would.Reasons) > 0 {
		say += fmt.Sprintf("; %s to reject (%s)", count(would.Counts.Rejected, "row"), ways(would.Reasons))
	}
	if !u.asks(stdin) {
		return false, needsYes("delete would delete links: " + say)
	}
	u.print("bulk: " + say)
	if would.Links == 0 {
		return true, nil
	}
	return u.ask(ctx, stdin, fmt.Sprintf("Delete %s?", count(would.Links, "link")))
}

// deleteAdvice says, by reason, what could accept rejects of a delete.
var deleteAdvice = map[string]string{string(canon.MissingScheme): "--code-column says which column has codes, --assume-scheme completes URLs"}

// account returns the facts of a delete that ended with err.
func (o *deleteOptions) account(r *pipeline.DeleteResult, lasted time.Duration, err error) *account.Account {
	grace, _ := parseAge(defaultGrace) // a constant
	a := account.Delete{Out: r.Out, ManifestSHA256: r.ManifestSHA256, DryRun: o.DryRun, Links: r.Links, Counts: r.Counts, Reasons: r.Reasons, BlankRows: r.BlankRows,
		Store: o.store.name(), Workspace: o.Workspace, Owner: o.Owner, Took: lasted, Until: r.AsOf.Add(grace), Grace: defaultGrace,
		RejectsFile: filepath.Join(r.Out, manifest.RejectsName), ExitCode: exitCode(err)}
	a.Advice = deleteAdvice
	return a.Account()
}
