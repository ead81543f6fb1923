package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/linkforge/bulk/pipeline/account"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/sink"
	"github.com/spf13/cobra"
)

func runsCommand(ui *ui) *cobra.Command {
	var o storeOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List the runs of a store, or abandon unfinished ones",
		Long: `The oldest run comes first. On a terminal the list is a table, without the
columns that do not fit; elsewhere it is CSV. Counts are blank until all links
are stored. The number of links (links_created) is there if a run created other
links than its created rows, such as aliases, and the number of links that were
changed (links_changed) if a run changed links of other runs. The numbers that
runs took from the counter (numbers) are there if a run did. The states of a run
are:
  loading    links are being stored
  loaded     all links are stored, the reports are not yet in place
  finished   done
  undone     its links were deleted by bulk undo
  abandoned  somebody gave up the unfinished run; its links stay`,
		Example: `  bulk runs --db sqlite:links.db
  bulk runs abandon 3 --db sqlite:links.db`,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args:              usageArgs(cobra.NoArgs, "runs takes flags only, or abandon"),
		RunE:              func(cmd *cobra.Command, _ []string) error { return listRuns(cmd.Context(), ui, &o, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON lines instead of a table or CSV")
	o.flags(cmd)
	group(cmd.Flags(), "Store flags")
	cmd.AddCommand(abandonCommand(ui))
	return cmd
}

func listRuns(ctx context.Context, ui *ui, o *storeOptions, asJSON bool) (err error) {
	store, err := o.open(ctx, ui.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	runs, err := store.Runs(ctx)
	if err != nil && !(errors.Is(err, sink.ErrMissing) && o.unnamed) {
		return err
	}
	if asJSON {
		return jsonRuns(ui.stdout, runs)
	}
	if to, ok := ui.stdout.(*shown); ok { // a terminal
		return writeTable(to, terminalWidth(to.Writer), tableOfRuns(runs))
	}
	return csvRuns(ui.stdout, runs)
}

func csvRuns(out io.Writer, runs []sink.Run) error {
	w := csv.NewWriter(out)
	header := []string{"run_id", "state", "as_of", "started", "finished", "read", "created", "existing", "duplicate", "rejected",
		"manifest_sha256", "fingerprint", "inputs", "workspaces", "out"}
	more := moreCounts(runs)
	for _, c := range more {
		header = append(header, c.name)
	}
	numbered := slices.ContainsFunc(runs, hasNumbers)
	if numbered {
		header = append(header, "numbers")
	}
	w.Write(header)
	for _, r := range runs {
		line := []string{strconv.Itoa(int(r.ID)), string(r.State), stamp(r.AsOf), stamp(r.Started), stamp(r.Finished)}
		for _, n := range []int64{r.Counts.Read, r.Counts.Created, r.Counts.Existing, r.Counts.Duplicate, r.Counts.Rejected} {
			line = append(line, counted(r, strconv.FormatInt(n, 10)))
		}
		line = append(line, r.ManifestSHA256, r.Fingerprint, jsonList(r.Inputs), jsonList(r.Workspaces), r.Out)
		for _, c := range more {
			line = append(line, counted(r, strconv.FormatInt(c.of(r), 10)))
		}
		if numbered {
			line = append(line, ranges(r.Numbers))
		}
		w.Write(line)
	}
	w.Flush()
	return w.Error()
}

// A linkCount is a number of links that is shown if some run has it.
type linkCount struct {
	name, title string
	has         func(r sink.Run) bool
	of          func(r sink.Run) int64
}

var linkCounts = []linkCount{
	{"links_created", "LINKS", func(r sink.Run) bool { return r.LinksCreated != 0 }, func(r sink.Run) int64 { return cmp.Or(r.LinksCreated, r.Counts.Created) }},
	{"links_changed", "CHANGED", func(r sink.Run) bool { return r.LinksChanged != 0 }, func(r sink.Run) int64 { return r.LinksChanged }},
}

// moreCounts are the counts of links that some of the runs have.
func moreCounts(runs []sink.Run) (more []linkCount) {
	for _, c := range linkCounts {
		if slices.ContainsFunc(runs, c.has) {
			more = append(more, c)
		}
	}
	return more
}

// hasNumbers reports whether a run took numbers from the counter.
func hasNumbers(r sink.Run) bool { return len(r.Numbers) > 0 }

// ranges writes the numbers of a run, such as "1-10 21-30".
func ranges(numbers []sink.Range) string {
	list := make([]manifest.Range, len(numbers))
	for i, r := range numbers {
		list[i] = manifest.Range(r)
	}
	return account.Ranges(list)
}

// jsonList is a JSON array for a cell of CSV; blank if nothing is known.
func jsonList(names []string) string {
	if names == nil {
		return ""
	}
	var b strings.Builder
	_ = newJSON(&b).Encode(names)
	return strings.TrimSpace(b.String())
}

func jsonRuns(out io.Writer, runs []sink.Run) error {
	j := newJSON(out)
	more := moreCounts(runs)
	for _, r := range runs {
		known := func(n int64) *int64 {
			if r.ManifestSHA256 == "" {
				return nil
			}
			return &n
		}
		c := r.Counts
		links := map[string]*int64{}
		for _, c := range more {
			links[c.name] = known(c.of(r))
		}
		if err := j.Encode(struct {
			ID             int32      `json:"run_id"`
			State          sink.State `json:"state"`
			AsOf           string     `json:"as_of"`
			Started        string     `json:"started"`
			Finished       string     `json:"finished"`
			Read           *int64     `json:"read"`
			Created        *int64     `json:"created"`
			Existing       *int64     `json:"existing"`
			Duplicate      *int64     `json:"duplicate"`
			Rejected       *int64     `json:"rejected"`
			ManifestSHA256 string     `json:"manifest_sha256"`
			Fingerprint    string     `json:"fingerprint"`
			Inputs         []string   `json:"inputs"`
			Workspaces     []string   `json:"workspaces"`
			Out            string     `json:"out"`
			LinksCreated   *int64     `json:"links_created,omitempty"`
			LinksChanged   *int64     `json:"links_changed,omitempty"`

			Numbers []sink.Range `json:"numbers,omitempty"`
		}{r.ID, r.State, stamp(r.AsOf), stamp(r.Started), stamp(r.Finished), known(c.Read), known(c.Created), known(c.Existing), known(c.Duplicate), known(c.Rejected),
			r.ManifestSHA256, r.Fingerprint, r.Inputs, r.Workspaces, r.Out, links["links_created"], links["links_changed"], r.Numbers}); err != nil {
			return err
		}
	}
	return nil
}

func tableOfRuns(runs []sink.Run) []column {
	table := []column{
		{title: "RUN", number: true}, {title: "STARTED", drop: 3}, {title: "STATE"},
		{title: "WORKSPACES", text: true, drop: 2}, {title: "INPUTS", text: true}, {title: "OUTPUT DIRECTORY", text: true, drop: 9},
		{title: "READ", number: true, drop: 6}, {title: "CREATED", number: true}, {title: "EXISTING", number: true, drop: 7},
		{title: "DUPLICATE", number: true, drop: 8}, {title: "REJECTED", number: true, drop: 1},
	}
	more := moreCounts(runs)
	for _, c := range more {
		table = append(table, column{title: c.title, number: true, drop: 4})
	}
	numbered := slices.ContainsFunc(runs, hasNumbers)
	if numbered {
		table = append(table, column{title: "NUMBERS", text: true, drop: 5})
	}
	for _, r := range runs {
		c := r.Counts
		cells := []string{
			strconv.Itoa(int(r.ID)), minute(r.Started), string(r.State),
			brief(r.Workspaces), brief(r.Inputs), r.Out,
			counted(r, thousands(c.Read)), counted(r, thousands(c.Created)), counted(r, thousands(c.Existing)),
			counted(r, thousands(c.Duplicate)), counted(r, thousands(c.Rejected)),
		}
		for _, c := range more {
			cells = append(cells, counted(r, thousands(c.of(r))))
		}
		if numbered {
			cells = append(cells, ranges(r.Numbers))
		}
		for i, cell := range cells {
			table[i].cells = append(table[i].cells, cell)
		}
	}
	return table
}

// counted is a count of a run; blank if the run did not get so far that the store knows it.
func counted(r sink.Run, n string) string {
	if r.ManifestSHA256 == "" {
		return ""
	}
	return n
}

// brief is the first of some names, and how many more there are. The last name of a long list
// says how many it leaves out.
func brief(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	more, rest := int64(len(names)-1), int64(0)
	if _, err := fmt.Sscanf(names[more], "and %d more", &rest); err == nil {
		more += rest - 1
	}
	return names[0] + " + " + thousands(more) + " more"
}

// minute writes a time for people, by their clock; blank if it is zero.
func minute(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04")
}

// stamp writes a time for CSV; blank if it is zero.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}

func abandonCommand(ui *ui) *cobra.Command {
	var o storeOptions
	var lock sink.LockOptions
	var olderThan string
	var yes bool
	cmd := &cobra.Command{
		Use:   "abandon RUN_ID… | --older-than TIME",
		Short: "Give up unfinished runs",
		Long: `A run that was killed stays unfinished until its command runs again. abandon
gives it up: its links stay, no run warns of it, and its command starts anew.
To delete its links, use bulk undo.

With --older-than, abandon lists the runs and asks first. Where standard input or
standard error is no terminal it needs --yes.`,
		Example: `  bulk runs abandon 3 --db sqlite:links.db
  bulk runs abandon --older-than 7d --db sqlite:links.db --yes`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			old := cmd.Flags().Changed("older-than")
			if old == (len(args) > 0) {
				return usage(errors.New("give either RUN_IDs or --older-than; bulk runs lists the runs"))
			}
			var ids []int32
			for _, arg := range args {
				id, err := runID(arg)
				if err != nil {
					return err
				}
				ids = append(ids, id)
			}
			a := abandoning{ids: ids, yes: yes, stdin: cmd.InOrStdin()}
			if old {
				var err error
				if a.age, err = parseAge(olderThan); err != nil {
					return usage(fmt.Errorf("--older-than: %w", err))
				}
			}
			return abandon(cmd.Context(), ui, &o, lock, &a)
		},
	}
	cmd.Flags().StringVar(&olderThan, "older-than", "", "give up unfinished runs that started this `TIME` ago or before, such as 7d or 12h")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "with --older-than: do not ask")
	o.flags(cmd)
	cmd.Flags().BoolVar(&lock.NoWait, "no-wait", false, "fail, instead of waiting, if another run is at work")
	group(cmd.Flags(), "Store flags")
	return cmd
}

// parseAge reads a number of days, such as 7d, or a duration of Go.
func parseAge(text string) (time.Duration, error) {
	age, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		age = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || age < 0 {
		return 0, fmt.Errorf("%q is not a time such as 7d or 12h", text)
	}
	return age, nil
}

// runID reads the number of a run.
func runID(arg string) (int32, error) {
	id, err := strconv.ParseInt(arg, 10, 32)
	if err != nil || id < 1 {
		return 0, usage(fmt.Errorf("%q is not the number of a run; bulk runs lists them", arg))
	}
	return int32(id), nil
}

// An abandoning says which runs to abandon: those with these IDs; if there are none, the unfinished
// runs that are older than age.
type abandoning struct {
	ids   []int32
	age   time.Duration
	yes   bool
	stdin io.Reader
}

func abandon(ctx context.Context, ui *ui, o *storeOptions, lock sink.LockOptions, a *abandoning) (err error) {
	store, err := o.open(ctx, ui.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	ids := a.ids
	if ids == nil {
		if ids, err = a.old(ctx, ui, store); err != nil || ids == nil {
			return err
		}
	}
	lock.Wait = func(holder string) { ui.log.Info("waiting for another run", "holder", holder) }
	runs, err := store.Abandon(ctx, ids, lock)
	for _, r := range runs {
		ui.tell(slog.LevelInfo, fmt.Sprintf("run %d abandoned: its links stay, its command starts anew", r.ID), "run abandoned", "run", r.ID)
	}
	return err
}

// old returns the runs that are old enough, if they shall be abandoned.
func (a *abandoning) old(ctx context.Context, ui *ui, store sink.Store) (ids []int32, err error) {
	runs, err := store.Runs(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range runs {
		if r.State.Unfinished() && !r.Started.IsZero() && time.Since(r.Started) >= a.age {
			ids = append(ids, r.ID)
			names = append(names, fmt.Sprintf("%d (started %s)", r.ID, minute(r.Started)))
		}
	}
	would := fmt.Sprintf("abandon would give up %s: %s", count(int64(len(ids)), "run"), strings.Join(names, ", "))
	switch {
	case !a.yes && !ui.asks(a.stdin):
		return nil, needsYes(strings.TrimSuffix(would, ": "))
	case ids == nil:
		ui.tell(slog.LevelInfo, "no unfinished run is that old", "no unfinished run is that old", "older_than", a.age)
	case !a.yes:
		ui.print("bulk: " + would)
		yes, err := ui.ask(ctx, a.stdin, fmt.Sprintf("Give up %s?", count(int64(len(ids)), "run")))
		if err != nil || !yes {
			ui.tell(slog.LevelInfo, "no run was given up", "no run was given up")
			return nil, err
		}
	}
	return ids, nil
}
