package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/linkforge/bulk/sink"
	"github.com/spf13/cobra"
)

// statsOptions are the flags of stats.
type statsOptions struct {
	store     storeOptions
	workspace string
	json      bool
}

func statsCommand(ui *ui) *cobra.Command {
	var o statsOptions
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count links by workspace, type, status and day of expiry",
		Long: `The first table counts the links of each workspace by type and status. A blank
type means that the link has none; a link without a status is ACTIVE. REDIRECTS
and MEAN MS are there if a redirect service counts its redirects (access_count)
and measures their time (avg_redirect_ms, in milliseconds): how often the links
were used, and how long a redirect took on average.

The second table is there if links expire. It counts the ACTIVE links by the day
on which they expire (UTC): the next 14 days that have any, and those before and
after. Links before today have expired; the next bulk sweep marks them.

--json prints a line for each workspace, type, status and day. A link without
one of them has "" there. mean_redirect_ms is the mean of timed_redirects; it is
null if there are none.`,
		Example: `  bulk stats --db sqlite:links.db
  bulk stats --workspace demo --json --db postgres://me@host/links`,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args:              usageArgs(cobra.NoArgs, "stats takes flags only"),
		RunE:              func(cmd *cobra.Command, _ []string) error { return stats(cmd.Context(), ui, &o) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.workspace, "workspace", "w", "", "only the links of the workspace `ID` (default: all)")
	f.BoolVar(&o.json, "json", false, "print JSON lines instead of tables")
	o.store.flags(cmd)
	group(f, "Store flags")
	return cmd
}

func stats(ctx context.Context, ui *ui, o *statsOptions) (err error) {
	store, err := o.store.open(ctx, ui.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := knows(ctx, store, o.workspace); err != nil {
		return err
	}
	w := bufio.NewWriter(ui.stdout)
	if o.json {
		err = store.Summary(ctx, o.workspace, func(g sink.Group) error { return printGroup(w, &g) })
		return errors.Join(err, w.Flush())
	}
	c := newCensus()
	if err := store.Summary(ctx, o.workspace, c.add); err != nil {
		return err
	}
	width := math.MaxInt
	if to, ok := ui.stdout.(*shown); ok { // a terminal
		width = terminalWidth(to.Writer)
	}
	c.print(w, width, time.Now().UTC().Truncate(24*time.Hour)) // Flush has the error
	return w.Flush()
}

func printGroup(w io.Writer, g *sink.Group) error {
	expires := ""
	if !g.Expires.IsZero() {
		expires = g.Expires.Format(time.DateOnly)
	}
	var mean *float64
	if g.Latency.N > 0 {
		mean = &g.Latency.Value
	}
	return newJSON(w).Encode(struct {
		Workspace string   `json:"workspace"`
		Type      string   `json:"type"`
		Status    string   `json:"status"`
		Expires   string   `json:"expires_on"`
		Links     int64    `json:"links"`
		Redirects int64    `json:"redirects"`
		Timed     int64    `json:"timed_redirects"`
		Mean      *float64 `json:"mean_redirect_ms"`
	}{g.Workspace, g.Type, g.Status, expires, g.Links, g.Uses, g.Latency.N, mean})
}

// A census is what the tables show.
type census struct {
	groups map[[3]string]*sink.Group // by workspace, type and status
	total  sink.Group
	days   map[time.Time]int64 // ACTIVE links by day of expiry; zero: they have none
}

func newCensus() *census {
	return &census{groups: map[[3]string]*sink.Group{}, days: map[time.Time]int64{}}
}

// add adds a group.
func (c *census) add(g sink.Group) error {
	g.Status = cmp.Or(g.Status, sink.Active)
	if g.Status == sink.Active {
		c.days[g.Expires] += g.Links
	}
	key := [3]string{g.Workspace, g.Type, g.Status}
	if c.groups[key] == nil {
		c.groups[key] = new(sink.Group)
	}
	for _, sum := range []*sink.Group{c.groups[key], &c.total} {
		sum.Links += g.Links
		sum.Uses += g.Uses
		sum.Latency.Merge(g.Latency)
	}
	return nil
}

// print writes the tables.
func (c *census) print(w io.Writer, width int, today time.Time) {
	writeTable(w, width, c.tableOfGroups())
	if expiries := c.tableOfDays(today); expiries != nil {
		fmt.Fprintln(w)
		writeTable(w, width, expiries)
	}
}

func (c *census) tableOfGroups() []column {
	table := []column{{title: "WORKSPACE", text: true}, {title: "TYPE", text: true}, {title: "STATUS", text: true}, {title: "LINKS", number: true},
		{title: "REDIRECTS", number: true, drop: 1}, {title: "MEAN MS", number: true, drop: 2}}
	row := func(of [3]string, g *sink.Group) {
		mean := ""
		if g.Latency.N > 0 {
			mean = fmt.Sprintf("%.1f", g.Latency.Value)
		}
		for i, cell := range append(of[:], thousands(g.Links), thousands(g.Uses), mean) {
			table[i].cells = append(table[i].cells, cell)
		}
	}
	for _, of := range slices.SortedFunc(maps.Keys(c.groups), func(a, b [3]string) int { return slices.Compare(a[:], b[:]) }) {
		row(of, c.groups[of])
	}
	if len(c.groups) != 1 {
		row([3]string{"total"}, &c.total)
	}
	if c.total.Uses == 0 {
		table = table[:4]
	}
	return table
}

// mostDays is how many days have a line of their own.
const mostDays = 14

// tableOfDays is nil if no link that is ACTIVE expires.
func (c *census) tableOfDays(today time.Time) []column {
	table := []column{{title: "EXPIRES (UTC)"}, {title: "ACTIVE LINKS", number: true}}
	row := func(when string, links int64) {
		if links > 0 {
			table[0].cells, table[1].cells = append(table[0].cells, when), append(table[1].cells, thousands(links))
		}
	}
	days := slices.SortedFunc(maps.Keys(c.days), time.Time.Compare)
	days = slices.DeleteFunc(days, time.Time.IsZero)
	if len(days) == 0 {
		return nil
	}
	sum := func(days []time.Time) (links int64) {
		for _, day := range days {
			links += c.days[day]
		}
		return links
	}
	first, _ := slices.BinarySearchFunc(days, today, time.Time.Compare)
	last := min(first+mostDays, len(days))
	row("before "+today.Format(time.DateOnly), sum(days[:first]))
	for _, day := range days[first:last] {
		row(day.Format(time.DateOnly), c.days[day])
	}
	if last < len(days) {
		row("after "+days[last-1].Format(time.DateOnly), sum(days[last:]))
	}
	row("never", c.days[time.Time{}])
	return table
}
