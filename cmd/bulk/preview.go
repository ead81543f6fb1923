package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/account"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/profile"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func previewCommand(ui *ui) *cobra.Command {
	var o runOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "preview INPUT… --workspace ID",
		Short: "Show what bulk run would do, without doing it",
		Long: `preview reads all rows and looks them up in the store, as bulk run does with the
same inputs and flags. It prints one screen: the columns of the inputs, the
first rows with the codes that they would get, and how many links, aliases,
conflicts and rejects there would be, with an example of each. It stores nothing
and writes no file. (bulk run --dry-run writes the reports.) Flags of bulk run
that are about its output are accepted, and mean nothing here.

` + legacyHelp + `

` + migrationHelp + `

` + rulesHelp + `

` + campaignHelp + `

--json prints one object. inputs, counts, links_created, reasons,
merged_differs, legacy, rules, campaign and migration are as in manifest.json,
but migration has all kinds of --hygiene that columns and flags tell. These are
more:
  inputs      each has mapping (columns that are used), carried (the others) and
              learned (from where its profile is known)
  urls        number of different URLs of the accepted rows (of different
              links, with --identity params or row); alternatives has that
              number with --keep-fragment and with --strip-params
  links       kept, generated and aliases: the parts of links_created
  rows        the first rows, with columns of the mapping and the rejects
  examples    such a row of each: kept, generated, alias, existing, duplicate,
              conflict, without_code, and of each change
  rejected    such a row of each reason
  links_unchanged     links that keep what they have although rows say something
                      else, by change
  dates_without_time  rows whose expiry is a date: it is 00:00 UTC of that day
  no_ends             rows whose expiry or use limit is a word for none
  blank_rows          rows that are skipped, since their cells are all empty
  sets                combinations of each set of a campaign
  kinds_none, kinds_not_looked_for  kinds of --hygiene that no link has, and
                      those that no column or flag tells
  store, new_store, workspaces, new_workspaces
  exit_code   of the run; refused says why it would store nothing
  command     of the run

The exit code is that of the run: 3 if rows would be rejected, 4 if no links
would be stored.`,
		Example: `  bulk preview old.csv --workspace demo --legacy keep
  bulk preview old.csv -w demo --legacy keep --map 'code=path(old),url=new'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.take(ui, cmd, args); err != nil {
				return err
			}
			return preview(cmd.Context(), ui, &o, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	writing := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.flags(cmd, writing)
	writing.VisitAll(func(f *pflag.Flag) { f.Hidden = true }) // so that the command of a run fits
	cmd.Flags().AddFlagSet(writing)
	return cmd
}

// preview runs bulk preview; its options are resolved.
func preview(ctx context.Context, ui *ui, o *runOptions, asJSON bool) error {
	end, err := o.open(ctx, ui)
	if err != nil {
		return err
	}
	p, err := pipeline.Preview(ctx, o.Config)
	if err = errors.Join(err, end()); err != nil {
		return err
	}
	switch {
	case p.Refused != nil:
		err = wouldRefuse{p.Refused}
	default:
		err = o.ending(p.Counts.Rejected, nil)
	}
	f := forecast{PreviewResult: p, o: o, code: exitCode(err), command: runInstead(ui.args)}
	print := f.print
	if asJSON {
		print = f.printJSON
	}
	if failed := print(ui.stdout); failed != nil {
		return failed
	}
	return err
}

// wouldRefuse is the error of a preview of a run that would store nothing.
type wouldRefuse struct{ *pipeline.TooManyRejectsError }

func (e wouldRefuse) Error() string { return "the run would store no links: " + e.Why() }
func (e wouldRefuse) Unwrap() error { return e.TooManyRejectsError }

var plainArgument = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./…-]+$`)

// runInstead returns the command of a run in place of a preview with these arguments.
func runInstead(args []string) string {
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "--json" || strings.HasPrefix(arg, "--json=") })
	if i := slices.Index(args, "preview"); i >= 0 {
		args[i] = "run"
	}
	return shellCommand(args)
}

// mapping says which columns of an input are used, such as: url ← target, code ← slug.
func mapping(in *pipeline.Input) string {
	var used []string
	seen := map[profile.Role]bool{}
	for _, c := range in.Mapped {
		if !seen[c.Role] && !c.Role.Personal() {
			used = append(used, string(c.Role)+" ← "+columnsOf(in.Mapped, c.Role))
		}
		seen[c.Role] = true
	}
	return strings.Join(used, ", ")
}

// program says which program wrote an input, as far as is known.
func program(in *pipeline.Input) string {
	if in.Profile == "" {
		return "no known profile"
	}
	return profile.Named(in.Profile).Product + " (profile " + in.Profile + ")"
}

// mostInputs is how many inputs are shown.
const mostInputs = 5

// opened tells what the inputs of a run with legacy codes are, before it reads them.
func (u *ui) opened(inputs []pipeline.Input) {
	u.noteInputs(len(inputs), func(i int) {
		in := &inputs[i]
		u.note(fmt.Sprintf("%s: %s: %s", in.Name, program(in), mapping(in)), "input", "name", in.Name, "profile", in.Profile, "columns", mapping(in))
	})
}

// notUsed tells what inputs say and the run does not use, before it reads them.
func (u *ui) notUsed(inputs []pipeline.Input) {
	var unused, like []*pipeline.Input
	for i := range inputs {
		if inputs[i].Like != nil {
			like = append(like, &inputs[i])
		} else if len(inputs[i].Unused) > 0 {
			unused = append(unused, &inputs[i])
		}
	}
	u.noteInputs(len(like), func(i int) {
		in := like[i]
		u.note(fmt.Sprintf("%s: looks like an export of %s: its codes are not kept. Add --legacy keep, or --profile none", in.Name, in.Like.Product),
			"codes are not kept", "input", in.Name, "looks_like", in.Like.Name, "add", "--legacy keep, or --profile none")
	})
	u.noteInputs(len(unused), func(i int) {
		in := unused[i]
		flags := inFlags(strings.Join(in.Unused, ", "))
		u.note(fmt.Sprintf("%s: columns that are not used: %s", in.Name, flags), "columns are not used", "input", in.Name, "add", flags)
	})
}

// openedParams tells which columns of the inputs are taken for parameters of links though they are not
// called so, before the rows are read.
func (u *ui) openedParams(inputs []pipeline.Input) {
	inputs = slices.DeleteFunc(slices.Clone(inputs), func(in pipeline.Input) bool {
		return !slices.ContainsFunc(in.Mapped, func(c profile.Column) bool { return profile.ParamOf(c.Name) == c.Role && c.Name != string(c.Role) })
	})
	u.noteInputs(len(inputs), func(i int) {
		in := &inputs[i]
		u.note(fmt.Sprintf("%s: %s", in.Name, mapping(in)), "input", "name", in.Name, "columns", mapping(in))
	})
}

// noteInputs calls note for the first of n inputs, and tells how many more there are.
func (u *ui) noteInputs(n int, note func(i int)) {
	for i := range min(n, mostInputs) {
		note(i)
	}
	if more := n - mostInputs; more > 0 {
		u.note("and "+count(int64(more), "more input"), "there are more inputs", "inputs", more)
	}
}

// A forecast is a preview to be printed.
type forecast struct {
	*pipeline.PreviewResult
	o       *runOptions
	code    int // with which the run would exit
	command string
}

// exampleName is the name of an example in JSON.
func exampleName(number int) string {
	if number >= pipeline.ExampleChange {
		return rules.Change(number - pipeline.ExampleChange).String()
	}
	return [...]string{"kept", "generated", "alias", "existing", "duplicate", "conflict", "without_code"}[number]
}

// account returns the facts of the preview.
func (f *forecast) account() *account.Account {
	p := account.Preview{
		Run: account.Run{
			Manifest: manifest.Manifest{Counts: manifest.Counts(f.Counts), LinksCreated: &f.LinksCreated, Reasons: f.Reasons, MergedDiffers: f.MergedDiffers,
				Legacy: f.Legacy, Rules: f.Rules, Migration: f.Migration, Campaign: f.Campaign},
			Terms: f.o.terms(), Told: f.Told, BlankRows: f.BlankRows, Store: f.o.StoreName, NewStore: f.o.newStore,
			Rejected: map[string]account.Example{}, ExitCode: f.code, Command: f.command,
		},
		Kept: f.Kept, Generated: f.Generated, Aliases: f.Aliases, Examples: map[string]account.Example{}, Seen: f.Seen, Policy: f.o.Policy(), URLs: f.URLs,
		Links: f.o.Config.Rules != nil && f.o.Config.Rules.Identity != rules.ByURL,
	}
	for _, a := range f.Alternatives {
		p.Alternatives = append(p.Alternatives, account.Alternative(a))
	}
	if t := f.Tagged; t != nil {
		p.Tagged = &account.Example{Source: string(t.Source), Row: t.Row, Text: string(t.Text)}
	}
	if plan := f.o.Config.Campaign; plan != nil {
		for _, set := range plan.Sets() {
			p.Sets = append(p.Sets, account.Part{Name: set.Name, Count: set.Combinations})
		}
	}
	for i, row := range f.Examples {
		if row != nil && (f.Legacy != nil || i != pipeline.ExampleWithoutCode) {
			p.Examples[exampleName(i)] = exampleOf(i, row)
		}
	}
	for reason, row := range f.Rejected {
		p.Rejected[reason] = account.Example{Source: string(row.Source), Row: row.Row, Text: hygiene.Redact(row.Detail), URL: redacted(row.URL), Full: row}
	}
	if f.Refused != nil {
		p.Refused, p.Conflicting = inFlags(f.Refused.Why()), f.Refused.Conflicts > 0
	}
	return p.Account()
}

// exampleOf returns an example of a preview.
func exampleOf(number int, row *pipeline.PreviewRow) account.Example {
	e := account.Example{Source: string(row.Source), Row: row.Row, URL: redacted(row.URL), Full: row}
	switch number {
	case pipeline.ExampleConflict:
		const most = 24                                            // the owner is to be seen, too
		owner := row.Detail[strings.LastIndex(row.Detail, " ")+1:] // a canonical URL has no spaces
		e.Text = shorten(redacted(row.LegacyCode), most) + " belongs to " + hygiene.Redact(owner)
	case pipeline.ExampleWithoutCode:
		e.Text = e.URL
	case pipeline.ExampleGenerated:
		e.Text = redacted(cmp.Or(row.LinkCode, row.Code)) + " → " + e.URL
	default:
		e.Text = redacted(row.Code) + " → " + e.URL
	}
	return e
}

// printJSON writes the preview as an object: the inputs, the first rows, and the account.
func (f *forecast) printJSON(w io.Writer) error {
	type input struct {
		manifest.Input
		Mapping []roleColumn      `json:"mapping"`
		Learned []profile.Learned `json:"learned,omitempty"`
		Carried []string          `json:"carried"`
	}
	inputs := make([]input, len(f.Inputs))
	for i, in := range f.Inputs {
		inputs[i] = input{in.Input, roleColumns(in.Mapped), in.Learned, some(in.Carried)}
	}
	a := f.account()
	a.Facts = append([]account.Fact{{Key: "inputs", Full: inputs}, {Key: "rows", Full: some(f.First)}}, a.Facts...)
	return printFacts(w, a)
}

// some makes an empty list of nil, which would be null in JSON.
func some[T any](list []T) []T { return append([]T{}, list...) }
