package pipeline_test

import (
	"context"
	"database/sql"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/verify"
	"github.com/linkforge/bulk/sink"
	"pgregory.net/rapid"
)

// A ruleJob is a run with rules, or one without.
type ruleJob struct {
	header []string
	rows   [][]string
	cfg    pipeline.Config
}

// drawRuleJob makes a run of a few URLs. Expiries are near the as_of, and at times just what others
// are reckoned to be.
func drawRuleJob(t *rapid.T, asOf time.Time) (j ruleJob) {
	pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	often := func(name string, of ...string) string { return pick(name, append(of, "", "")...) }
	day := func(n int) string { return asOf.AddDate(0, 0, n).Format(time.RFC3339) }
	for range rapid.IntRange(1, 12).Draw(t, "rows") {
		j.rows = append(j.rows, []string{
			"https://example.com/" + pick("url", "a", "a#x", "b", "c", "../d") + pick("slash", "", "/"),
			often("expires", day(-1), day(1), day(2), day(2)[:10], "tomorrow"), often("uses", "1", "2", "99"),
			often("type", "PERMANENT", "permanent", "TEMPORARY"), often("owner", "ann", "bob", "eve"), often("ref", "r|1", "r2"), often("note", "x"),
		})
	}
	j.header = []string{"url", "expires_at", "max_uses", "link_type", "owner_id", "ref", "note"}
	c := &j.cfg
	c.Workspace, c.AsOf, c.Version, c.BaseURL = "ws", asOf, "test", "https://sho.rt"
	c.CodeLength, c.MaxRetries = rapid.SampledFrom([]int{1, 1, 10}).Draw(t, "length"), rapid.IntRange(1, 3).Draw(t, "retries")
	c.ReportOrder, c.ReportFormat = report.Order(pick("order", "sort", "input")), report.Format(pick("format", "csv", "csv", "parquet", "arrow"))
	c.NoCarry, c.ExcelSafe = rapid.Bool().Draw(t, "no carry"), rapid.Bool().Draw(t, "excel-safe")
	if rapid.Bool().Draw(t, "spill") {
		c.SpillAt(1)
	}
	if rapid.Bool().Draw(t, "limited") {
		c.Limit = 5
	}
	if rapid.IntRange(0, 3).Draw(t, "workspaces") == 0 {
		c.Source.WorkspaceColumn = "note"
	}
	c.DryRun = rapid.IntRange(0, 5).Draw(t, "dry") == 0
	if rapid.IntRange(0, 3).Draw(t, "plain") == 0 {
		return j
	}
	if rapid.Bool().Draw(t, "mapped") {
		j.header[1], j.header[4] = "Until", "Who Has It"
		c.Source.Map = map[string]string{"expires_at": "2", "owner_id": "who_has_it"}
	}
	c.Rules = &rules.Flags{Owner: []byte(often("its owner", "bob"))}
	c.Rules.Identity, _ = rules.ParseIdentity(pick("identity", "url", "params", "row"))
	c.OnDrift, _ = rules.ParseOnDrift(pick("on drift", "keep", "update", "reject"))
	c.Rules.Type, _ = rules.ParseType([]byte(often("its type", "TEMPORARY")))
	if rapid.Bool().Draw(t, "limits") {
		c.Rules.Limit = 2
	}
	switch rapid.IntRange(0, 3).Draw(t, "expiry") {
	case 0:
		c.Rules.ExpiresIn = 48 * time.Hour
	case 1:
		c.Rules.Expiry, _ = rules.ParseExpiry([]byte(day(1)))
	}
	return j
}

func (j *ruleJob) csv() string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write(j.header)
	w.WriteAll(j.rows)
	return b.String()
}

// A run with rules, or one in a workspace that has links with rules, is found to be what it says. It
// still is after its links were changed, deleted and swept.
func TestRulesVerify(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		store := openStore(t, dir)
		db, err := sql.Open("sqlite", filepath.Join(dir, "links.db"))
		must(t, err)
		defer db.Close()
		var dirs []string
		at, swept := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), false
		for range rapid.IntRange(1, 5).Draw(rt, "runs") {
			j := drawRuleJob(rt, at)
			j.cfg.Store, j.cfg.DryRun = store, j.cfg.DryRun && len(dirs) > 0
			result := run(t, j.cfg, map[string]string{"in.csv": j.csv()})
			verifies(t, "run", result, verify.Config{Inputs: []string{"in.csv"}, Store: store}, 3, swept)
			here, err := os.Getwd()
			must(t, err)
			if result.Out == "out" {
				dirs = append(dirs, filepath.Join(here, "out"))
			}
			at = at.Add(time.Duration(rapid.IntRange(0, 36).Draw(rt, "hours")) * time.Hour)
			switch rapid.IntRange(0, 4).Draw(rt, "then") {
			case 0:
				_, err := store.Sweep(context.Background(), sink.SweepOptions{AsOf: at, Grace: time.Duration(rapid.IntRange(0, 1).Draw(rt, "grace")) * time.Hour}, nil)
				must(t, err)
				swept = true
			case 1:
				url := "https://example.com/a"
				item := sink.Deletion{Base: codegen.Sum([]byte(url + "|ws")).Key(), Canonical: url}
				must(t, store.Delete(context.Background(), sink.DeleteOptions{Workspace: "ws", AsOf: at}, func(yield func([]sink.Deletion, error) bool) { yield([]sink.Deletion{item}, nil) }, func(sink.Named) error { return nil }))
			case 2:
				_, err := db.Exec("UPDATE links SET access_count = coalesce(access_count, 0) + 1")
				must(t, err)
			}
			for _, dir := range dirs {
				v, err := verify.Run(context.Background(), verify.Config{Dir: dir, Store: store, Version: "test"})
				must(t, err)
				for _, f := range v.Findings {
					rt.Errorf("%s, later: %+v", dir, f)
				}
			}
		}
		if rt.Failed() {
			fmt.Println(strings.Join(dirs, "\n"))
		}
	})
}
