package survey_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/survey"
	"github.com/linkforge/bulk/pipeline/topk"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// input has rows with all that a survey counts.
func input() string {
	var b strings.Builder
	b.WriteString("url,code,expires_at,max_uses,owner_id,team\n")
	for i := range 3000 {
		query := []string{"", "?a=1", "?utm_source=mail&b=2&a=%26", "?=x&utm_source=web&&utm_id", "?a#utm_source=no"}[i%5]
		code, expires := "", ""
		if i%3 == 0 {
			code = fmt.Sprint("old", i)
		}
		if i%4 == 0 {
			expires = fmt.Sprintf("2031-%02d-01", i%12+1)
		}
		fmt.Fprintf(&b, "https://h%d.example:8%d/p/%d%s,%s,%s,%d,%s,t%d\n", i%40, i%3, i%700, query, code, expires, i%3, []string{"", "ann", "=bob"}[i%3], i%2)
	}
	b.WriteString("ftp://rejected.example/,,,,,\n")
	return b.String()
}

// run makes a dry run of the input, and returns what its directory tells.
func run(t *testing.T, cfg pipeline.Config) (string, *manifest.Manifest, *survey.Survey) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte(input()), 0o666))
	cfg.Inputs, cfg.Out, cfg.DryRun, cfg.AsOf = []string{filepath.Join(dir, "in.csv")}, filepath.Join(dir, "out"), true, time.Unix(1.8e9, 0)
	cfg.Source.URLColumn, cfg.Workspace = "url", "w"
	_, err := pipeline.Run(context.Background(), cfg)
	must(t, err)
	m, _, err := manifest.ReadDir(cfg.Out + ".dry")
	must(t, err)
	s, err := survey.Read(context.Background(), cfg.Out+".dry", m)
	must(t, err)
	return cfg.Out + ".dry", m, s
}

// counted is all that counters have, by name; empty texts are left out.
func counted(counters map[string]*topk.Counter) map[string]int64 {
	all := map[string]int64{}
	for name, c := range counters {
		for _, e := range c.Top(topk.Most) {
			all[name+" "+e.Text] = e.Count
		}
	}
	return all
}

// A survey has what the rows of the mapping have, as encoding/csv and net/url read them, in each format.
func TestSurveyIsTheMapping(t *testing.T) {
	for name, change := range map[string]func(*pipeline.Config){
		"plain":   func(*pipeline.Config) {},
		"formula": func(cfg *pipeline.Config) { cfg.ExcelSafe = true },
		"rules":   func(cfg *pipeline.Config) { cfg.Rules, cfg.Legacy = new(rules.Flags), "keep" },
		"counter": func(cfg *pipeline.Config) { cfg.Scheme.Name, cfg.ReportOrder = "counter-base62", report.InputOrder },
		"campaign": func(cfg *pipeline.Config) {
			cfg.Campaign, _ = campaign.Parse([]string{"utm_source=x,y,{team}"}, "", nil, campaign.DefaultMost)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var cfg pipeline.Config
			change(&cfg)
			dir, m, s := run(t, cfg)
			want := model(t, filepath.Join(dir, "mapping.csv"), cfg.Campaign != nil)
			counters := map[string]*topk.Counter{"workspace": &s.Workspaces, "host": &s.Hosts, "parameter": &s.Parameters, "month": &s.Ends.Months, "uses": &s.Ends.Uses, "owner": &s.Ends.Owners}
			for i := range s.Values {
				counters["value "+s.Values[i].Name] = &s.Values[i].Counter
			}
			got := counted(counters)
			for n, count := range s.URLs {
				if count > 0 {
					got[fmt.Sprint("url ", n)] = count
				}
			}
			got["alias"], got["links"] = s.Aliases, s.Ends.Links
			if !reflect.DeepEqual(got, want) {
				for key := range want {
					if got[key] != want[key] {
						t.Errorf("%s: %d, want %d", key, got[key], want[key])
					}
					delete(got, key)
				}
				t.Errorf("more: %v", got)
			}
			for _, format := range []report.Format{report.Parquet, report.Arrow} {
				cfg.ReportFormat = format
				if _, _, other := run(t, cfg); !reflect.DeepEqual(tops(other), tops(s)) {
					t.Errorf("%s: %+v\nwant %+v", format, tops(other), tops(s))
				}
			}
			m.Counts.Created++
			if _, err := survey.Read(context.Background(), dir, m); err == nil || !strings.Contains(err.Error(), "rows that are created, and the manifest says") {
				t.Errorf("other counts: %v", err)
			}
		})
	}
}

// tops is a survey without what counters have of their own.
func tops(s *survey.Survey) []any {
	all := []any{s.Rows, s.URLs, s.Codes, s.Aliases, s.Kept, s.Ends.Links}
	for _, c := range []*topk.Counter{&s.Workspaces, &s.Hosts, &s.Parameters, &s.Hashed, &s.Ends.Months, &s.Ends.Uses, &s.Ends.Types, &s.Ends.Owners} {
		all = append(all, c.Top(topk.Most))
	}
	for i := range s.Values {
		all = append(all, s.Values[i].Top(topk.Most))
	}
	return all
}

// model counts the rows of a mapping in CSV in the plainest way.
func model(t *testing.T, path string, expanded bool) map[string]int64 {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	must(t, err)
	all := map[string]int64{"alias": 0, "links": 0}
	for _, cells := range rows[1:] {
		row := map[string]string{}
		for i, cell := range cells {
			if _, there := row[rows[0][i]]; !there {
				row[rows[0][i]] = cell
			}
		}
		u, err := url.Parse(row["canonical_url"])
		must(t, err)
		all["workspace "+row["workspace_id"]]++
		all["host "+u.Host]++
		all[fmt.Sprint("url ", len(row["original_url"]))]++
		for _, pair := range strings.Split(u.RawQuery, "&") {
			name, value, _ := strings.Cut(pair, "=")
			if name == "" {
				continue
			}
			all["parameter "+name]++
			if !expanded && (name == "utm_source" || name == "utm_id") {
				all["value "+name+" "+value]++
			}
		}
		if expanded {
			all["value utm_source "+row["utm_source"]]++
		}
		if row["kind"] == "alias" {
			all["alias"]++
		} else if row["outcome"] != "duplicate" {
			all["links"]++
			if row["kind"] != "" { // of the run with rules
				for key, cell := range map[string]string{"month": row["expires_at"], "uses": row["max_uses"], "owner": row["owner_id"]} {
					if key == "month" && cell != "" {
						cell = cell[:7]
					}
					if cell != "" {
						all[key+" "+cell]++
					}
				}
			}
		}
	}
	return all
}
