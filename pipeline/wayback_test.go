package pipeline_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/sink"
)

// exportTo writes the links of a store as bulk export does.
func exportTo(t *testing.T, store sink.Store, create func(io.Writer, []string) report.Export) string {
	t.Helper()
	var b bytes.Buffer
	var to report.Export
	must(t, store.Export(context.Background(), "", func(columns []string) error { to = create(&b, columns); return nil },
		func(row [][]byte) error { return to.Append(row) }))
	must(t, to.Close())
	return b.String()
}

// fillStore gives a store links of all kinds: with kept and generated codes, some with a salt,
// aliases, twins, links that are not their URLs' smallest code, original URLs of any bytes, and
// several workspaces.
func fillStore(t *testing.T, store sink.Store) {
	t.Helper()
	team := source.Options{Choice: columns.Choice{WorkspaceColumn: "team", Map: map[string]string{"kind": "kind"}}}
	cfg := keeping(legacy.Keep, store)
	cfg.Source = team
	job(t, cfg, map[string]string{"kept.csv": "url,slug,team,kind\n" +
		"http://Example.com/1,b,,\nhttp://example.com/1,a,,\nhttp://example.com:80/1,c,,\n" + // a is the link
		"http://example.com/2,m,,link\nhttp://example.com/2/,l,,alias\nhttp://example.com/2,n,,alias\n" + // m is
		"http://example.com/3,Twin,,\nhttp://example.com/4,twin,,\nhttp://example.com/4,TWIN,,\n" +
		"http://example.com/1,b,red,\nhttp://example.com/5,b2,red,\nhttp://example.com/1,\xc3\xbc/1 2,blue,\n" +
		"\" HTTP://example.com/six%zz?q=\"\"\\|\xff;,' \",six,,\nhttp://example.com/7#here,,,\nhttp://example.com/6,=1+1,,\n"})
	cfg = pipeline.Config{Workspace: "demo", Store: store, CodeLength: 2}
	var urls strings.Builder
	for i := range 300 {
		fmt.Fprintf(&urls, "http://EXAMPLE.com/generated/%d\n", i)
	}
	_, result := job(t, cfg, map[string]string{"plain.txt": urls.String()})
	collisions := len(records(t, read(t, "out/collisions.csv")))
	cfg = keeping(legacy.Both, store)
	cfg.Source = team
	job(t, cfg, map[string]string{"both.csv": "url,slug,team,kind\nhttp://example.com/8,0,,\nhttp://example.com/8,zz,,\nhttp://example.com/9,0,red,\nhttp://example.com/1,d,red,\n"})
	if collisions < 5 || result.Counts.Created != 300 {
		t.Fatalf("%d collisions, %+v", collisions, result.Counts)
	}
}

// What is exported and read again into an empty store, of either kind, gives the same links: which
// code is a link's and which an alias, and the URLs as they were given.
func TestWayBack(t *testing.T) {
	other, empty := inPostgres(t)
	fresh := map[string]func() sink.Store{
		"sqlite": func() sink.Store { return openStore(t, t.TempDir()) }, "postgres": func() sink.Store { empty(); return other },
	}
	from := openStore(t, t.TempDir())
	fillStore(t, from)
	of := []string{"run_id", "created_at", "updated_at"}
	want := exported(t, from, of...)
	for _, way := range []struct {
		to, format string
		create     func(io.Writer, []string) report.Export
		order      report.Order
	}{
		{"postgres", "csv", report.NewCSVExport, report.SortOrder}, {"sqlite", "parquet", report.NewParquetExport, report.InputOrder},
		{"postgres", "parquet", report.NewParquetExport, report.SortOrder}, {"sqlite", "csv", report.NewCSVExport, report.SortOrder},
	} {
		t.Run(way.to+" "+way.format, func(t *testing.T) {
			file := exportTo(t, from, way.create)
			cfg := keeping(legacy.Keep, fresh[way.to]())
			cfg.Workspace, cfg.ReportOrder = "", way.order
			cfg.CodePattern, cfg.Codes.Pattern = `.+`, nil
			cfg.Codes.Pattern, _ = legacy.ParsePattern(cfg.CodePattern)
			files, result := job(t, cfg, map[string]string{"links." + way.format: file})
			sameLines(t, exported(t, cfg.Store, of...), want)
			n := int64(len(want))
			if c := result.Counts; c != (sink.Counts{Read: n, Created: n}) || result.LinksCreated != n {
				t.Errorf("%+v, %d links created: %s", c, result.LinksCreated, files["rejects.csv"])
			}
			var urls []string
			in := readManifest(t).Inputs[0]
			for _, name := range in.URLColumns {
				urls = append(urls, string(name))
			}
			if in.Profile != "bulk" || !slices.Equal(urls, []string{"original_url", "canonical_url"}) || string(*in.CodeColumn) != "short_code" ||
				string(*in.KindColumn) != "kind" || string(*in.WorkspaceColumn) != "workspace_id" {
				t.Errorf("%+v", in)
			}
			from = cfg.Store
		})
	}
}

// So do links with rules, by their own codes or by generated ones: what they have comes back, except
// their uses, which are clicks then. An expiry that was reckoned comes back as a time, so it would make
// another identity.
func TestWayBackOfRules(t *testing.T) {
	other, empty := inPostgres(t)
	of := []string{"run_id", "created_at", "updated_at", "clicks"}
	for _, identity := range []rules.Identity{rules.ByURL, rules.ByParams, rules.ByRow} {
		from := openStore(t, t.TempDir())
		cfg := pipeline.Config{Workspace: "demo", Store: from, Rules: &rules.Flags{Identity: identity}, AsOf: asOf}
		rows := "HTTP://example.com/1#x,2099-12-31T23:59:59.9Z,5,,ann,a\nhttp://example.com/2,2099-01-01,,TEMPORARY,,\n" +
			"http://example.com/3,,,PERMANENT,\" b,ob\",c|d\nhttp://example.com/4,2020-01-01,,,,\nhttp://example.com/5,,,,,\n"
		modes := []legacy.Mode{legacy.Off, legacy.Keep}
		if identity == rules.ByURL {
			rows += "http://example.com/6,,,TEMPORARY,,\n"
		} else {
			rows += "http://example.com/5,2099-01-01,,,,f\n"
		}
		job(t, cfg, map[string]string{"rules.csv": "url,expires_at,max_uses,link_type,owner_id,ref\n" + rows})
		want := exported(t, from, of...)
		for _, mode := range modes {
			for format, create := range map[string]func(io.Writer, []string) report.Export{"csv": report.NewCSVExport, "parquet": report.NewParquetExport} {
				for name, to := range map[string]sink.Store{"sqlite": openStore(t, t.TempDir()), "postgres": other} {
					empty()
					cfg := pipeline.Config{Store: to, Rules: cfg.Rules, Legacy: mode, AsOf: asOf.AddDate(0, 0, 1)}
					cfg.Source.Profile = "bulk"
					_, result := job(t, cfg, map[string]string{"links." + format: exportTo(t, from, create)})
					sameLines(t, exported(t, to, of...), want)
					if result.Counts != (sink.Counts{Read: 6, Created: 6}) {
						t.Errorf("%s, %q, %s, %s: %+v", identity, mode, format, name, result.Counts)
					}
				}
			}
		}
	}
}
