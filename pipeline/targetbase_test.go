package pipeline_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
)

// targets are destinations; those in the first line are resolved.
var targets = []string{
	"/new/%d", "/new/%d#top", "/a/../new/%d?x=1", "?q=%d", "#p%d", "./%d", "../x/%d", " /new/%d", "/new/%d?utm_source=x",
	"https://shop.example/new/%d", "//cdn.example/%d", "new/%d", "\\new\\%d", "https://bob@shop.example/%d", "/\\x/%d", "https://shop.example/dir/%d", "",
}

// byHand resolves a destination with the standard library.
func byHand(t *testing.T, base, target string) string {
	s := strings.TrimSpace(target)
	if !strings.HasPrefix(s, "?") && !strings.HasPrefix(s, "#") && !strings.HasPrefix(s, "./") && !strings.HasPrefix(s, "../") &&
		(!strings.HasPrefix(s, "/") || strings.HasPrefix(s, "//") || strings.HasPrefix(s, "/\\")) {
		return target
	}
	u, err := url.Parse(base)
	must(t, err)
	u, err = u.Parse(s)
	must(t, err)
	return u.String()
}

// lacking returns the rows of a report without columns, in their order; what is left of a row is one text.
func lacking(t *testing.T, text string, columns ...string) (rows []string) {
	for _, r := range records(t, text) {
		for _, name := range columns {
			delete(r, name)
		}
		rows = append(rows, fmt.Sprint(slices.Sorted(maps.Keys(r)), r))
	}
	return rows
}

// With a base the run is the plain run over the resolved list: mapping, rejects, collisions and store, with
// legacy codes, link rules and campaigns; only cells of URLs are those of the input.
func TestTargetBase(t *testing.T) {
	const base = "https://shop.example/dir/page"
	plan, err := campaign.Parse([]string{"utm_source=mail,web"}, "", nil, campaign.DefaultMost)
	must(t, err)
	for n := range 14 {
		rnd := rand.New(rand.NewPCG(uint64(n), 45))
		cfg := keeping([]legacy.Mode{legacy.Off, legacy.Keep, legacy.Both, legacy.Map}[n%4], nil)
		cfg.Workers, cfg.CodeLength, cfg.MaxRetries = 1+rnd.IntN(3), 1, 1+rnd.IntN(3)
		if rnd.IntN(2) == 0 {
			cfg.ReportOrder = report.InputOrder
		}
		if !cfg.Legacy.Keeps() {
			cfg.CodePattern, cfg.Codes = "", legacy.Rules{}
		}
		if cfg.Legacy == legacy.Off && n%8 == 0 {
			cfg.Campaign = plan
		}
		if cfg.Legacy == legacy.Off || rnd.IntN(2) == 0 {
			cfg.Rules = &rules.Flags{}
			if cfg.Legacy == legacy.Off {
				cfg.Rules.Identity = rules.Identity(rnd.IntN(3))
			}
		}
		with, plain := "slug,url,note,expires_at\n", "slug,url,note,expires_at\n"
		for range 120 {
			target := targets[rnd.IntN(len(targets))]
			if strings.Contains(target, "%d") {
				target = fmt.Sprintf(target, rnd.IntN(40))
			}
			rest := fmt.Sprintf("%d,%s", rnd.IntN(3), []string{"", "2030-01-01", "soon"}[rnd.IntN(3)])
			code := fmt.Sprintf("c%d", rnd.IntN(150))
			with += code + "," + target + "," + rest + "\n"
			plain += code + "," + byHand(t, base, target) + "," + rest + "\n"
		}
		got, want := map[string]string{}, map[string]string{}
		for _, side := range []struct {
			text string
			to   map[string]string
		}{{with, got}, {plain, want}} {
			cfg := cfg
			cfg.Store = openStore(t, t.TempDir())
			if side.text == with {
				cfg.TargetBase, err = canon.ParseBase(base)
				must(t, err)
			}
			files, result := job(t, cfg, map[string]string{"list.csv": side.text})
			maps.Copy(side.to, files)
			side.to["counts"] = fmt.Sprint(result.Counts, result.Reasons, result.Migration, result.Rules, result.Campaign)
			side.to["links"] = strings.Join(exported(t, cfg.Store, "created_at", "updated_at"), "\n")
			agrees(t, cfg.Store)
			if side.text == with && (cfg.Rules == nil || cfg.Rules.Identity != rules.ByRow) { // whose rows have other codes then
				again(t, cfg, files, result)
			}
		}
		for _, file := range []struct {
			name string
			out  []string
		}{{"mapping.csv", []string{"input_url"}}, {"rejects.csv", []string{"url", "byte_offset"}}, {"collisions.csv", nil}} {
			if g, w := lacking(t, got[file.name], file.out...), lacking(t, want[file.name], file.out...); !slices.Equal(g, w) {
				t.Fatalf("%d: %s: %s", n, file.name, firstDifference(strings.Join(g, "\n"), strings.Join(w, "\n")))
			}
		}
		if got["counts"] != want["counts"] || got["links"] != want["links"] {
			t.Fatalf("%d: %s\n%s\n%s", n, got["counts"], want["counts"], firstDifference(got["links"], want["links"]))
		}
		for _, r := range records(t, got["mapping.csv"]) {
			if r["input_url"] == "" || cfg.Campaign == nil && byHand(t, base, r["input_url"]) != r["original_url"] {
				t.Errorf("%s of %s", r["original_url"], r["input_url"])
			}
		}
	}
}

// again feeds the rejects of a run back: the same rows are rejected, and nothing else happens. (A row of a
// campaign has a reject for each of its variants.)
func again(t *testing.T, cfg pipeline.Config, files map[string]string, first *pipeline.Result) {
	files, result := job(t, cfg, map[string]string{"rejects.csv": files["rejects.csv"]})
	if result.Counts.Created > 0 || result.Counts.Rejected != first.Counts.Rejected && cfg.Campaign == nil {
		t.Errorf("rejects fed back: %+v, before %+v\n%s", result.Counts, first.Counts, files["rejects.csv"])
	}
}
