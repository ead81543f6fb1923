package pipeline_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/diff"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// Two runs with link rules are compared by the identities of links, and by their parameters.
func TestRulesDiff(t *testing.T) {
	t.Chdir(t.TempDir())
	const u = "https://example.com/"
	run := func(out, rows string, change func(*pipeline.Config)) {
		t.Helper()
		write(t, "in.csv", "url,expires_at,max_uses,link_type,owner_id,ref\n"+rows)
		cfg := pipeline.Config{Workspace: "ws", Rules: new(rules.Flags), Inputs: []string{"in.csv"}, Out: out, AsOf: asOf}
		if change(&cfg); cfg.Store == nil {
			cfg.Store = openStore(t, t.TempDir())
		}
		_, err := pipeline.Run(context.Background(), cfg)
		must(t, err)
	}
	in := func(store sink.Store, identity rules.Identity, days int) func(*pipeline.Config) {
		return func(c *pipeline.Config) {
			c.Store, c.Rules.Identity, c.AsOf = store, identity, asOf.AddDate(0, 0, days)
		}
	}
	expire := func(identity rules.Identity, days int, in time.Duration) func(*pipeline.Config) {
		return func(c *pipeline.Config) {
			c.Rules.Identity, c.Rules.ExpiresIn, c.AsOf = identity, in, asOf.AddDate(0, 0, days)
		}
	}
	const day = 24 * time.Hour
	rows := u + "a,2099-12-31,5,,ann,r\n" + u + "a,2099-12-31,9,,ann,s\n" + u + "b,,,temporary,,\n" + u + "c,,,,bob,\n"
	days := func(n int) string { return asOf.AddDate(0, 0, n).Format(time.RFC3339) }
	short := u + "a,,,,,\n" + u + "a," + days(30) + ",,,,\n" + u + "b,,,,,\n"
	for _, identity := range []rules.Identity{rules.ByURL, rules.ByParams, rules.ByRow} {
		store := openStore(t, t.TempDir())
		run(identity.String(), rows, in(store, identity, 0))
		run(identity.String()+" again", rows, in(store, identity, 0))
		run(identity.String()+" alone", rows, in(nil, identity, 1))
		run(identity.String()+" 30d", short, expire(identity, 0, 30*day))
		run(identity.String()+" 30d later", short, expire(identity, 1, 30*day))
		run(identity.String()+" 31d later", short, expire(identity, 1, 31*day))
	}
	run("plain", u+"b,,,temporary,,\n"+u+"c,,,,bob,\n", func(c *pipeline.Config) { c.Rules = nil })
	run("without", u+"b,,,,,\n"+u+"c,,,,bob,\n", in(nil, rules.ByURL, 0))
	run("flags", rows, func(c *pipeline.Config) { c.Rules = &rules.Flags{Limit: 7, Type: rules.Permanent, Owner: []byte("+5")} })
	run("others", u+"a,2099-12-31,5,,ann,r\n"+u+"b,2099-01-01,,temporary,eve,\n"+u+"d,,,,,\n", in(nil, rules.ByURL, 0))
	store := openStore(t, t.TempDir())
	run("first", u+"a,,5,,,\n", in(store, rules.ByURL, 0))
	run("keep", u+"a,,6,,,\n", in(store, rules.ByURL, 0))
	run("update", u+"a,,6,,,\n", func(c *pipeline.Config) { c.Store, c.OnDrift = store, rules.Update })
	run("same", u+"a,,6,,,\n", func(c *pipeline.Config) { c.Store, c.OnDrift = store, rules.Update })
	store = openStore(t, t.TempDir())
	for _, r := range [][2]string{{"5 first", "57"}, {"only", "7"}, {"7 first", "57"}} { // both limits want one code, C
		rows := ""
		for _, limit := range r[1] {
			rows += fmt.Sprintf("%sa,,%c,,,\n", u, limit)
		}
		run(r[0], rows, func(c *pipeline.Config) {
			if c.CodeLength, c.Rules.Identity = 1, rules.ByParams; r[0] != "5 first" {
				c.Store = store
			}
		})
	}
	code := func(url, parts string) string { return codeAt(u+url, "ws"+parts, 0, 10) }
	const end = "|e=2099-12-31T00:00:00Z"
	existing := func(n int) []string { return slices.Repeat([]string{"outcome outcome created -> existing"}, n) }
	for _, c := range []struct {
		a, b string
		want []string
	}{
		{"url", "url alone", nil},
		{"params", "params alone", nil},
		{"row", "row alone", nil},
		{"url", "url again", existing(3)},
		{"params", "params again", existing(4)},
		{"row", "row again", existing(4)},
		{"url 30d", "url 30d later", nil},
		{"params 30d", "params 30d later", nil},
		{"row 30d", "row 30d later", nil},
		{"url 30d later", "url 31d later", []string{"manifest expires_in 720h0m0s -> 744h0m0s", "parameter expires_at " + days(31) + " -> " + days(32)}},
		{"params 30d later", "params 31d later", []string{"manifest expires_in 720h0m0s -> 744h0m0s",
			"added short_code  -> " + code("a", "|e=+2678400"), "added short_code  -> " + code("b", "|e=+2678400"), "removed short_code " + code("a", "|e=+2592000") + " -> ", "removed short_code " + code("b", "|e=+2592000") + " -> ",
			"row_remapped identity e=+2592000 -> e=+2678400", "row_remapped identity e=+2592000 -> e=+2678400"}},
		{"plain", "without", []string{"manifest identity  -> url", "manifest on_drift  -> keep", "manifest revive  -> ended", "manifest rules  -> true", "manifest temporary_ttl  -> 8h0m0s"}},
		{"url", "flags", []string{"manifest link_type  -> PERMANENT", "manifest max_uses  -> 7", "manifest owner  -> +5",
			"parameter link_type  -> PERMANENT", "parameter link_type  -> PERMANENT", "parameter max_uses  -> 7", "parameter max_uses  -> 7", "parameter owner_id  -> +5"}},
		{"url", "params", []string{"added short_code  -> " + code("b", "|e=+28800"), "added short_code  -> " + code("a", end+"|m=5"), "added short_code  -> " + code("a", end+"|m=9"), "manifest identity url -> params",
			"removed short_code " + code("a", "") + " -> ", "removed short_code " + code("b", "") + " -> ",
			"row_remapped identity  -> e=+28800", "row_remapped identity  -> " + end[1:] + "|m=5", "row_remapped identity  -> " + end[1:] + "|m=9"}},
		{"params", "row", []string{"added short_code  -> " + code("a", "|r=r"), "added short_code  -> " + code("a", "|r=s"), "added short_code  -> " + code("b", "|r=in.csv:3"), "added short_code  -> " + code("c", "|r=in.csv:4"), "manifest identity params -> row",
			"removed short_code " + code("b", "|e=+28800") + " -> ", "removed short_code " + code("a", end+"|m=5") + " -> ", "removed short_code " + code("a", end+"|m=9") + " -> ", "removed short_code " + code("c", "") + " -> ",
			"row_remapped identity  -> r=in.csv:4", "row_remapped identity e=+28800 -> r=in.csv:3", "row_remapped identity " + end[1:] + "|m=5 -> r=r", "row_remapped identity " + end[1:] + "|m=9 -> r=s"}},
		{"url", "others", []string{"added short_code  -> " + code("d", ""), "parameter expires_at " + asOf.Add(8*time.Hour).Format(time.RFC3339) + " -> 2099-01-01T00:00:00Z",
			"parameter max_uses 9 -> 5", "parameter owner_id  -> eve", "removed short_code " + code("c", "") + " -> ", "row_removed rows 2 -> 1"}},
		{"5 first", "7 first", []string{"moved identity m=5 -> m=7", "outcome outcome created -> existing", "remapped short_code C -> U", "remapped short_code U -> s"}},
		{"first", "keep", []string{"outcome change  -> drifted", "outcome outcome created -> existing"}}, // the link keeps its limit
		{"keep", "update", []string{"manifest on_drift keep -> update", "outcome change drifted -> updated", "parameter max_uses 5 -> 6"}},
		{"update", "same", []string{"outcome change updated -> "}},
		{"first/mapping.csv", "keep", existing(1)},
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
