package pipeline_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/pipeline/verify"
)

// A campaignCase is a line of campaign/testdata/expand.jsonl.
type campaignCase struct {
	Name         string
	Flags        []string
	File         *string
	FileBase64   []byte `json:"file_base64"`
	FilePadding  int    `json:"file_padding"`
	Columns      []string
	OtherColumns []string `json:"other_columns"`
	Rows         [][]any
	Workspace    string
	StripParams  []string `json:"strip_params"`
	MaxExpand    *int64   `json:"max_expand"`
	Expect       struct {
		Usage        bool
		Options      string `json:"options_expand"`
		Combinations int64
		Counts       struct{ Records, Read, Created, Duplicate, Rejected int64 }
		Tagged       int64
		Rows         []struct {
			Reject, Parameter string
			Variants          []campaignVariant
			Count             int
			SHA256            string
		}
	}
}

type campaignVariant struct {
	Variant   int64
	URL       string
	URLBase64 []byte `json:"url_base64"`
	Canonical string
	Code      string `json:"short_code"`
	Values    map[string]string
}

func campaignCases(t *testing.T) (cases []campaignCase) {
	data, err := os.ReadFile("campaign/testdata/expand.jsonl")
	must(t, err)
	for line := range bytes.Lines(data) {
		var c campaignCase
		must(t, json.Unmarshal(line, &c))
		cases = append(cases, c)
	}
	return cases
}

// csvOf returns the rows of a case, and their columns. Each has one more cell, or some would be blank, which
// are no rows.
func csvOf(t *testing.T, names []string, rows [][]any) string {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	must(t, w.Write(append(slices.Clone(names), "more")))
	for _, row := range rows {
		var cells []string
		for _, cell := range row {
			switch c := cell.(type) {
			case string:
				cells = append(cells, c)
			case nil:
				cells = append(cells, "")
			case map[string]any:
				b, err := base64.StdEncoding.DecodeString(c["base64"].(string))
				must(t, err)
				cells = append(cells, string(b))
			}
		}
		must(t, w.Write(append(cells, "x")))
	}
	w.Flush()
	return b.String()
}

// isJSON reports whether the input of a case is JSON: where CSV cannot have a cell, and sometimes.
func (c *campaignCase) isJSON(n int) bool {
	yes := n%3 == 0 && len(c.Rows) > 0
	for _, row := range c.Rows {
		for _, cell := range row {
			switch cell := cell.(type) {
			case string:
				yes = yes || strings.Contains(cell, "\x00")
			case map[string]any: // JSON has UTF-8 only
				return false
			}
		}
	}
	return yes
}

// json returns the rows of a case as an object a line.
func (c *campaignCase) json(t *testing.T) string {
	var b strings.Builder
	for _, row := range c.Rows {
		for i, name := range c.Columns {
			key, err := json.Marshal(name)
			must(t, err)
			cell, err := json.Marshal(row[i])
			must(t, err)
			fmt.Fprintf(&b, "%c%s:%s", "{,"[min(i, 1)], key, cell)
		}
		b.WriteString(`,"more":"x"}` + "\n")
	}
	return b.String()
}

// config returns the configuration of a case.
func (c *campaignCase) config() (cfg pipeline.Config, err error) {
	most, name, text := int64(campaign.DefaultMost), "", c.FileBase64
	if c.MaxExpand != nil {
		most = *c.MaxExpand
	}
	if c.File != nil {
		name, text = "c.yaml", []byte(*c.File)
	}
	if c.FileBase64 != nil {
		name = "c.yaml"
	}
	if c.FilePadding > 0 {
		text = append(append(append(text, '#'), bytes.Repeat([]byte("x"), c.FilePadding)...), '\n')
	}
	cfg.Workspace, cfg.Source.URLColumn, cfg.Source.Header, cfg.Source.Delimiter = c.Workspace, "url", source.HeaderYes, ','
	if cfg.Workspace == "" {
		cfg.Workspace = "w"
	}
	if cfg.Profile.StripParams, err = canon.ParseStripParams(strings.Join(c.StripParams, ",")); err != nil {
		return cfg, err
	}
	cfg.Campaign, err = campaign.Parse(c.Flags, name, text, most)
	return cfg, err
}

// Every case of the law, through a run: also that its files verify, with the inputs and without.
func TestCampaignCases(t *testing.T) {
	for n, c := range campaignCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			cfg, err := c.config()
			if err != nil {
				if !c.Expect.Usage {
					t.Fatal(err)
				}
				return
			}
			t.Chdir(t.TempDir())
			input := csvOf(t, c.Columns, c.Rows)
			if c.isJSON(n) {
				input = c.json(t)
			}
			write(t, "a.csv", input)
			cfg.Inputs, cfg.Out, cfg.AllowEmpty, cfg.AsOf = []string{"a.csv"}, "out", true, asOf
			if c.OtherColumns != nil {
				write(t, "b.csv", csvOf(t, c.OtherColumns, nil))
				cfg.Inputs = append(cfg.Inputs, "b.csv")
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
			c.check(t, cfg, result)
		})
	}
}

// check compares what a run has written with the case.
func (c *campaignCase) check(t *testing.T, cfg pipeline.Config, result *pipeline.Result) {
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
	c.checkRejects(t, result.Out)
	if len(m.Files) > 1 {
		c.checkMapping(t, cfg.Campaign)
	}
	for _, inputs := range [][]string{nil, cfg.Inputs} {
		found, err := verify.Run(context.Background(), verify.Config{Dir: result.Out, Inputs: inputs})
		must(t, err)
		for _, f := range append(found.Findings, found.Unexplained...) {
			t.Errorf("verify of %d inputs: %+v", len(inputs), f)
		}
	}
}

func (c *campaignCase) checkRejects(t *testing.T, out string) {
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

func (c *campaignCase) checkMapping(t *testing.T, p *campaign.Plan) {
	rows := map[int64][]campaignVariant{}
	own := report.Columns{Campaign: p.Names()}
	added := own.Added()
	for _, r := range records(t, read(t, "out/mapping.csv")) {
		v := campaignVariant{Variant: number(t, r["variant"]), URL: r["original_url"], Canonical: r["canonical_url"], Code: r["short_code"], Values: map[string]string{}}
		for i, name := range p.Names() {
			if value := r[added[i+2].Name]; value != "" {
				v.Values[name] = value
			}
		}
		rows[number(t, r["row"])] = append(rows[number(t, r["row"])], v)
	}
	for n, want := range c.Expect.Rows {
		got := rows[int64(n+1)]
		slices.SortFunc(got, func(a, b campaignVariant) int { return int(a.Variant - b.Variant) })
		if want.Count > 0 {
			sum := sha256.New()
			for _, x := range got {
				fmt.Fprintf(sum, "%d %s %s\n", x.Variant, x.Canonical, x.Code)
			}
			if fmt.Sprintf("%x", sum.Sum(nil)) != want.SHA256 {
				t.Errorf("row %d: other variants", n+1)
			}
			continue
		}
		if !slices.EqualFunc(got, want.Variants, func(a, b campaignVariant) bool {
			if b.URLBase64 != nil {
				b.URL = string(b.URLBase64)
			}
			return a.Variant == b.Variant && a.URL == b.URL && a.Canonical == b.Canonical && a.Code == b.Code && maps.Equal(a.Values, b.Values)
		}) {
			t.Errorf("row %d: %+v, want %+v", n+1, got, want.Variants)
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
