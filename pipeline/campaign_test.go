package pipeline_test

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/campaign/campaigntest"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/pipeline/verify"
)

// campaignConfig returns the configuration of a case.
func campaignConfig(c *campaigntest.Case) (cfg pipeline.Config, err error) {
	most, name := int64(campaign.DefaultMost), ""
	if c.MaxExpand != nil {
		most = *c.MaxExpand
	}
	text, given := c.Text()
	if given {
		name = "c.yaml"
	}
	cfg.Workspace, cfg.Source.URLColumn, cfg.Source.Header, cfg.Source.Delimiter = cmp.Or(c.Workspace, "w"), "url", source.HeaderYes, ','
	if cfg.Profile.StripParams, err = canon.ParseStripParams(strings.Join(c.StripParams, ",")); err != nil {
		return cfg, err
	}
	cfg.Campaign, err = campaign.Parse(c.Flags, name, text, most)
	return cfg, err
}

// Every case of the law, through a run: also that its files verify, with the inputs and without.
func TestCampaignCases(t *testing.T) {
	for n, c := range campaigntest.Cases(t, "campaign/testdata/expand.jsonl") {
		t.Run(c.Name, func(t *testing.T) {
			cfg, err := campaignConfig(&c)
			if err != nil {
				if !c.Expect.Usage {
					t.Fatal(err)
				}
				return
			}
			t.Chdir(t.TempDir())
			cfg.Out, cfg.AllowEmpty, cfg.AsOf = "out", true, asOf
			for i, text := range c.Inputs(n%3 == 0) {
				cfg.Inputs = append(cfg.Inputs, fmt.Sprintf("%d.csv", i))
				write(t, cfg.Inputs[i], text)
			}
			if n%2 == 1 {
				cfg.ReportOrder = report.InputOrder
			}
			result, err := pipeline.Run(context.Background(), cfg)
			if all, ok := errors.AsType[*pipeline.TooManyRejectsError](err); ok && all.First != "" {
				err = nil
			}
			var bad *pipeline.UsageError
			var badColumn *columns.UsageError
			if c.Expect.Usage {
				if !errors.As(err, &bad) && !errors.As(err, &badColumn) {
					t.Fatal(err)
				}
				return
			}
			must(t, err)
			checkCase(t, &c, cfg, result)
		})
	}
}

// checkCase compares what a run has written with the case.
func checkCase(t *testing.T, c *campaigntest.Case, cfg pipeline.Config, result *pipeline.Result) {
	m, _, err := manifest.ReadDir(result.Out)
	must(t, err)
	e := &c.Expect
	if got := m.Options["expand"]; got != manifest.Text(e.Options) && got != e.Options {
		t.Errorf("options.expand %v, want %s", got, e.Options)
	}
	rejected := 0
	for _, row := range e.Rows {
		if row.Reject != "" {
			rejected++
		}
	}
	if want := (manifest.Campaign{Combinations: e.Combinations, Expanded: int64(len(c.Rows) - rejected), Tagged: e.Tagged}); *m.Campaign != want {
		t.Errorf("campaign %+v, want %+v", *m.Campaign, want)
	}
	if want := (manifest.Counts{Read: e.Counts.Read, Created: e.Counts.Created, Duplicate: e.Counts.Duplicate, Rejected: e.Counts.Rejected}); m.Counts != want || m.Inputs[0].Records != e.Counts.Records {
		t.Errorf("counts %+v of %d records, want %+v", m.Counts, m.Inputs[0].Records, want)
	}
	checkRejects(t, c, result.Out)
	if len(m.Files) > 1 {
		checkMapping(t, c, cfg.Campaign)
	}
	for _, inputs := range [][]string{nil, cfg.Inputs} {
		found, err := verify.Run(context.Background(), verify.Config{Dir: result.Out, Inputs: inputs})
		must(t, err)
		for _, f := range append(found.Findings, found.Unexplained...) {
			t.Errorf("verify of %d inputs: %+v", len(inputs), f)
		}
	}
}

func checkRejects(t *testing.T, c *campaigntest.Case, out string) {
	got := map[string]string{}
	for _, r := range records(t, read(t, out+"/rejects.csv")) {
		got[r["row"]] = r["reason"]
		if p := c.Expect.Rows[number(t, r["row"])-1].Parameter; p != "" && !strings.HasPrefix(r["detail"], p+": ") {
			t.Errorf("the detail %q does not begin with %s", r["detail"], p)
		}
	}
	want := map[string]string{}
	for n, row := range c.Expect.Rows {
		if row.Reject != "" {
			want[strconv.Itoa(n+1)] = row.Reject
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("rejects %v, want %v", got, want)
	}
}

func number(t *testing.T, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	must(t, err)
	return n
}

func checkMapping(t *testing.T, c *campaigntest.Case, p *campaign.Plan) {
	rows := map[int64][]campaigntest.Variant{}
	own := report.Columns{Campaign: p.Names()}
	added := own.Added()
	for _, r := range records(t, read(t, "out/mapping.csv")) {
		v := campaigntest.Variant{Variant: number(t, r["variant"]), URL: r["original_url"], Canonical: r["canonical_url"], Code: r["short_code"], Values: map[string]string{}}
		for i, name := range p.Names() {
			if value := r[added[i+2].Name]; value != "" {
				v.Values[name] = value
			}
		}
		rows[number(t, r["row"])] = append(rows[number(t, r["row"])], v)
	}
	for n, want := range c.Expect.Rows {
		got := rows[int64(n+1)]
		slices.SortFunc(got, func(a, b campaigntest.Variant) int { return int(a.Variant - b.Variant) })
		if what := want.Difference(got); what != "" {
			t.Errorf("row %d: %s", n+1, what)
		}
	}
}

// Links and mapping are the same whatever the workers and the memory; with the rows in another order the
// links are; and so are they if the variants are run as a plain list.
func TestCampaignIsPlainRunOfVariants(t *testing.T) {
	const file = "parameters: {c: ['{note}', x], t: ['{team}-{note}', fixed]}\n" +
		"sets: {a: [{m: [p, '{team}']}, {m: q}], b: {m: ['{note}', q], n: '{team}'}}\nuse: '{use}'\nlower: true\n"
	plan, err := campaign.Parse(nil, "c.yaml", []byte(file), campaign.DefaultMost)
	must(t, err)
	var lines []string
	for i := range 400 {
		lines = append(lines, fmt.Sprintf("https://example.com/%d?x=1&C=old#%d,T%d,%s,%s", i%90, i%7, i%3, []string{"x", "Y", "", "q"}[i%4], []string{"a", "b", `"a,b"`, "z"}[i%11%4]))
	}
	head := "url,team,note,use\n"
	config := func(store bool) pipeline.Config {
		cfg := base(2)
		cfg.Campaign, cfg.Source.URLColumn, cfg.Source.WorkspaceColumn = plan, "url", ""
		if store {
			cfg.Store = openStore(t, t.TempDir())
		}
		return cfg
	}
	links := func(mapping string) map[string]string {
		codes := map[string]string{}
		for _, r := range records(t, mapping) {
			codes[r["canonical_url"]] = r["short_code"]
		}
		return codes
	}
	for _, order := range []report.Order{report.SortOrder, report.InputOrder} {
		first := config(true)
		first.Workers, first.ReportOrder = 1, order
		want, result := job(t, first, map[string]string{"a.csv": head + strings.Join(lines, "\n") + "\n"})
		if result.Counts.Created == 0 || result.Counts.Duplicate == 0 || result.Counts.Rejected == 0 {
			t.Fatalf("%+v", result.Counts)
		}
		second := config(false)
		second.Workers, second.ReportOrder = 3, order
		second.SpillAt(1 << 14)
		got, _ := job(t, second, map[string]string{"a.csv": head + strings.Join(lines, "\n") + "\n"})
		sameReports(t, got, want, reports...)

		slices.Reverse(lines)
		got, _ = job(t, config(false), map[string]string{"a.csv": head + strings.Join(lines, "\n") + "\n"})
		slices.Reverse(lines)
		if !maps.Equal(links(got["mapping.csv"]), links(want["mapping.csv"])) {
			t.Error("the order of the rows changes links")
		}
		var list strings.Builder
		w := csv.NewWriter(&list)
		must(t, w.Write([]string{"url"}))
		for _, r := range records(t, want["mapping.csv"]) {
			must(t, w.Write([]string{r["original_url"]}))
		}
		w.Flush()
		plain := base(2)
		plain.Source.WorkspaceColumn = ""
		got, _ = job(t, plain, map[string]string{"a.csv": list.String()})
		if !maps.Equal(links(got["mapping.csv"]), links(want["mapping.csv"])) {
			t.Error("a plain run over the variants has other links")
		}
	}
}
