package pipeline_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/diff"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/legacy"
)

// Two runs are compared by the codes of each URL, and their kinds.
func TestLegacyDiff(t *testing.T) {
	t.Chdir(t.TempDir())
	const u = "https://example.com/"
	run := func(out string, mode legacy.Mode, rows string, change func(*pipeline.Config)) {
		t.Helper()
		write(t, "in.csv", "url,code,kind\n"+rows)
		cfg := pipeline.Config{Workspace: "ws", Store: openStore(t, t.TempDir()), CodeLength: 2, Legacy: mode, Inputs: []string{"in.csv"}, Out: out, AsOf: asOf}
		cfg.Source.Map = map[string]string{"kind": "kind"}
		if change != nil {
			change(&cfg)
		}
		_, err := pipeline.Run(context.Background(), cfg)
		must(t, err)
	}
	rows := u + "a,aa,\n" + u + "a,ab,\n" + u + "b,bb,\n" + u + "c,,\n"
	run("keep", legacy.Keep, rows, nil)
	run("again", legacy.Keep, rows, nil)
	run("both", legacy.Both, rows, nil)
	run("longer", legacy.Both, rows, func(c *pipeline.Config) { c.CodeLength = 3 })
	run("off", legacy.Off, rows, func(c *pipeline.Config) { c.Source.Map = nil })
	run("profile", legacy.Keep, rows, func(c *pipeline.Config) { c.Source.Profile = "none" })
	run("marked", legacy.Keep, u+"a,aa,\n"+u+"a,ab,link\n"+u+"b,bx,\n"+u+"c,,\n", nil)
	run("generate", legacy.Keep, rows+u+"d,aa,\n", func(c *pipeline.Config) { c.OnConflict = legacy.Generate })
	code := func(url string, length int) string { return codeAt(u+url, "ws", 0, length) }
	longer := func(url string) string { return code(url, 2) + " -> " + code(url, 3) }
	for _, c := range []struct {
		a, b string
		want []string
	}{
		{"keep", "again", nil},
		{"keep", "off", []string{"manifest attrs profile -> ", "manifest hygiene " + hygiene.Defaults().String() + " -> ", "manifest legacy keep -> ", "outcome outcome created -> duplicate", "remapped short_code aa -> " + code("a", 2), "remapped short_code bb -> " + code("b", 2)}},
		{"keep", "profile", []string{"manifest input_profile  -> none"}},
		{"keep", "both", []string{"kind kind link -> alias", "kind kind link -> alias", "kind link_code aa -> " + code("a", 2), "kind link_code aa -> " + code("a", 2), "kind link_code bb -> " + code("b", 2),
			"kind link_salt  -> 0", "kind link_salt  -> 0", "kind link_salt  -> 0", "manifest legacy keep -> both"}},
		{"keep", "marked", []string{"added short_code  -> bx", "kind kind alias -> link", "kind kind link -> alias", "kind link_code aa -> ab", "kind link_code aa -> ab", "removed short_code bb -> "}},
		{"keep", "generate", []string{"added short_code  -> " + code("d", 2), "manifest on_conflict reject -> generate"}},
		{"both", "longer", []string{"kind link_code " + longer("b"), "kind link_code " + longer("a"), "kind link_code " + longer("a"), "manifest code_length 2 -> 3", "remapped short_code " + longer("c")}},
	} {
		var got []string
		must(t, diff.Runs(context.Background(), diff.Config{A: c.a, B: c.b}, func(d *diff.Difference) error {
			got = append(got, fmt.Sprintf("%s %s %s -> %s", d.Change, d.Field, d.A, d.B))
			return nil
		}))
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, %s: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}
