package pipeline_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/verify"
	"github.com/linkforge/bulk/sink"
	"pgregory.net/rapid"
)

// everyKind is an export with a link of every kind that the store cannot keep as it was.
const everyKind = "every.csv"

// moving is a run of everyKind.
func moving(t *testing.T, store sink.Store, policy string) (pipeline.Config, map[string]string) {
	t.Helper()
	p, err := hygiene.ParsePolicy(policy)
	must(t, err)
	cfg := keeping(legacy.Keep, store)
	cfg.Hygiene, cfg.ShortDomains, cfg.Profile.AssumeScheme = &p, map[string]bool{"go.example": true, "on.example": true}, canon.HTTPS
	cfg.Source.Map = map[string]string{"regex": "regexp", "targets": "geo", "title": "title"}
	return cfg, map[string]string{everyKind: read(t, "../testdata/migration/"+everyKind)}
}

// outcomes lists the codes of the rows that were accepted, and the reasons of those that were not.
func outcomes(t *testing.T, files map[string]string) string {
	t.Helper()
	rows := map[string]string{}
	for _, r := range records(t, files["mapping.csv"]) {
		rows[r["id"]] = r["legacy_code"]
	}
	for _, r := range records(t, files["rejects.csv"]) {
		rows[r["id"]] = r["key"] + ":" + r["reason"]
	}
	var list []string
	for id := range len(rows) {
		list = append(list, rows[fmt.Sprint(id+1)])
	}
	return strings.Join(list, " ")
}

// A link that the store cannot keep as it was is kept, told of or rejected, as the policy has it,
// on both stores. No reject reaches the store. A preview counts what the run does, and verify
// agrees.
func TestEveryKind(t *testing.T) {
	other, empty := inPostgres(t)
	const reject = "chain=reject,expired=reject,targeted=reject,secret=reject,suspect=reject,private=reject"
	for _, tt := range []struct{ policy, want, warned string }{
		{"pattern=reject", "abc closed:protected old:inactive bad:inactive ^a(.*)$:pattern loop:loop chain over geo reset mail abc:code_taken bare ftp:unsupported_scheme both:protected twice joined local",
			"chain 1 expired 2 private 1 secret 3 suspect 1 targeted 1"},
		{reject, "abc closed:protected old:inactive bad:inactive ^a(.*)$:pattern loop:loop chain:chain over:expired geo:targeted reset:secret mail:secret abc:code_taken bare ftp:unsupported_scheme both:protected twice:expired joined:suspect local:private",
			""},
		{"protected=keep,inactive=warn,pattern=keep,loop=warn,expired=keep,secret=keep,targeted=keep,chain=keep,suspect=keep,private=keep",
			"abc closed old bad ^a(.*)$ loop chain over geo reset mail abc:code_taken bare ftp:unsupported_scheme both twice joined local",
			"inactive 3 loop 1"},
	} {
		for name, fresh := range map[string]func() sink.Store{
			"sqlite": func() sink.Store { return openStore(t, t.TempDir()) }, "postgres": func() sink.Store { empty(); return other },
		} {
			t.Run(name+" "+tt.policy, func(t *testing.T) {
				cfg, inputs := moving(t, fresh(), tt.policy)
				files, result := job(t, cfg, inputs)
				if got := outcomes(t, files); got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
				var warned []string
				for _, kind := range slices.Sorted(maps.Keys(result.Migration.Hygiene)) {
					h := result.Migration.Hygiene[kind]
					if rejected := h.Decision == "reject"; rejected != (h.Example == nil) || rejected != (h.Rows == result.Reasons[kind]) {
						t.Errorf("%s: %+v, %d rejects", kind, h, result.Reasons[kind])
					} else if !rejected {
						warned = append(warned, fmt.Sprint(kind, " ", h.Rows))
					}
				}
				if got := strings.Join(warned, " "); got != tt.warned {
					t.Errorf("%s, want %s", got, tt.warned)
				}
				accepted := 0
				for _, word := range strings.Fields(tt.want) {
					if !strings.Contains(word, ":") {
						accepted++
					}
				}
				if links := exported(t, cfg.Store); len(links) != accepted {
					t.Errorf("%d links, want %d", len(links), accepted)
				}
				if secret := strings.Contains(files["manifest.json"], "s3cr3t"); secret {
					t.Error("the manifest has a secret")
				}
				agrees(t, cfg.Store)

				cfg.Inputs, cfg.AsOf, cfg.Store = []string{everyKind}, asOf, fresh()
				p, err := pipeline.Preview(context.Background(), cfg)
				must(t, err)
				if p.Counts != result.Counts || !maps.Equal(p.Reasons, result.Reasons) || fmt.Sprint(p.Migration.Domains) != fmt.Sprint(result.Migration.Domains) {
					t.Errorf("preview %+v %v, run %+v %v", p.Counts, p.Reasons, result.Counts, result.Reasons)
				}
				for kind, h := range result.Migration.Hygiene {
					if got := p.Migration.Hygiene[kind]; got.Rows != h.Rows || got.Decision != h.Decision {
						t.Errorf("%s: preview %+v, run %+v", kind, got, h)
					}
				}
			})
		}
	}
}

// agrees verifies the run in the working directory with its inputs and the store.
func agrees(t *testing.T, store sink.Store) {
	t.Helper()
	var inputs []string
	for _, in := range readManifest(t).Inputs {
		inputs = append(inputs, string(in.Name))
	}
	got, err := verify.Run(context.Background(), verify.Config{Dir: "out", Inputs: inputs, Store: store})
	must(t, err)
	for _, f := range got.Findings {
		t.Errorf("verify: %+v", f)
	}
}

// Attributes and creation times are the same whatever the order of the rows, the workers and the
// memory, in both orders of the mapping and on both stores. What is stored already stays as it is.
func TestAlong(t *testing.T) {
	other, empty := inPostgres(t)
	const head = "slug,url,title,tags,created_at,clicks,mood\n"
	lines := []string{
		"a,http://a/,\"One, \"\"two\"\"\",x|y|x,2020-02-03T04:05:06.123456+01:00,7,glad\n",
		"a,http://a/#b,other,,1580000000,8,\n", // of the two the first in the order of the URLs as given counts
		"b,http://a/,alias,,2020-02-03,,\n",
		"c,http://c/,,,,,\n",
		"d,http://d/,  ,,never,1e3,sad\n",
		"e,http://e/,\xffé\u2028,[],1970-01-01,000012,\n",
	}
	of := []string{"run_id"}
	var want []string
	for i, order := range []report.Order{report.SortOrder, report.InputOrder, report.SortOrder, report.InputOrder} {
		slices.Reverse(lines)
		cfg := keeping(legacy.Keep, openStore(t, t.TempDir()))
		if i > 1 {
			empty()
			cfg.Store = other
		}
		cfg.Attrs, cfg.KeepCreated, cfg.Workers, cfg.ReportOrder = "profile,mood", true, 1+i%2, order
		cfg.Source.Map = map[string]string{"title": "title", "tags": "tags", "created_at": "created_at", "clicks": "clicks"}
		_, result := job(t, cfg, map[string]string{"in.csv": head + strings.Join(lines, "")})
		got := exported(t, cfg.Store, of...)
		if want == nil {
			want = got
			for i, part := range []string{
				`title="One, \"two\"" created_at=`, `title="alias"`, `short_code="c" kind="link" canonical_url="http://c/" url_key="`, `attrs_created_at="never"`, `title="%FFé\u2028"`} {
				if !strings.Contains(got[i], part) {
					t.Errorf("%s: %s", part, got[i])
				}
			}
			for i, created := range []string{"2020-02-03T03:05:06.123456Z", "2020-02-03T00:00:00.000000Z", "2026-01-02T03:04:05.000006Z", "2026-01-02T03:04:05.000006Z", "1970-01-01T00:00:00.000000Z"} {
				if !strings.Contains(got[i], ` created_at="`+created) {
					t.Errorf("%s: %s", created, got[i])
				}
			}
		}
		sameLines(t, got, want)
		if n := result.Migration.NoTime; n == nil || n.Rows != 1 || n.Text != "never" {
			t.Errorf("%+v", n)
		}
		agrees(t, cfg.Store)
		job(t, cfg, map[string]string{"in.csv": strings.ReplaceAll(head+strings.Join(lines, ""), "One", "New")})
		sameLines(t, exported(t, cfg.Store, of...), want)
	}
}

// What is exported and read again into an empty store, of either kind, has its attributes and times.
func TestAlongWayBack(t *testing.T) {
	other, empty := inPostgres(t)
	for _, name := range []string{"shlink-web.csv", "shlink.csv", "yourls.csv", "yourls-batch.tsv", "gogovmy.csv", "kutt.json", "sink.json", "bitly-api.json"} {
		t.Run(name, func(t *testing.T) {
			cfg := keeping(legacy.Keep, openStore(t, t.TempDir()))
			_, err := pipeline.Preview(context.Background(), cfg)
			cfg.KeepCreated = name != "shlink.csv" // which has none
			inputs := map[string]string{name: read(t, "../testdata/exports/"+name)}
			job(t, cfg, inputs)
			agrees(t, cfg.Store)
			of := []string{"run_id", "updated_at"}
			want := exported(t, cfg.Store, of...)
			if all := strings.Join(want, "\n"); strings.Contains(all, "192.0.2.") || !strings.Contains(all, " title=") && !strings.Contains(all, " clicks=") && !strings.Contains(all, " tags=") {
				t.Errorf("%v: %s", err, all)
			}
			file := exportTo(t, cfg.Store, report.NewCSVExport)
			empty()
			for _, store := range []sink.Store{other, openStore(t, t.TempDir())} {
				cfg.Store, cfg.KeepCreated, cfg.Workspace = store, true, ""
				job(t, cfg, map[string]string{"links.csv": file})
				sameLines(t, exported(t, cfg.Store, of...), want)
				agrees(t, cfg.Store)
			}
		})
	}
}

// Each domain is a workspace, or all are one and their codes collide.
func TestDomains(t *testing.T) {
	const text = "code,url,domain\nx,http://a/,S.test\nx,http://b/,t.test\ny,http://a/,\nz,http://a/,https://s.test/\n"
	for _, tt := range []struct {
		domains   legacy.Domains
		workspace string
		want      string // workspaces and codes, then short URLs
		reasons   string
	}{
		{legacy.DomainsKeep, "w", "w/y w/s.test/x w/s.test/z w/t.test/x", "map[]"},
		{legacy.DomainsKeep, "", "s.test/x s.test/z t.test/x", "map[bad_workspace:1]"},
		{legacy.DomainsMerge, "w", "w/x w/y w/z", "map[code_taken:1]"},
		{legacy.DomainsOff, "w", "w/x w/y w/z", "map[code_taken:1]"},
	} {
		cfg := keeping(legacy.Keep, openStore(t, t.TempDir()))
		cfg.Domains, cfg.Workspace, cfg.BaseURL = tt.domains, tt.workspace, "https://sho.rt/{workspace}"
		cfg.Source.Map = map[string]string{"domain": "domain"}
		files, result := job(t, cfg, map[string]string{"in.csv": text})
		var got []string
		for _, r := range records(t, files["mapping.csv"]) {
			at := r["workspace_id"] + "/" + r["short_code"]
			if got = append(got, at); r["short_url"] != "https://sho.rt/"+at {
				t.Errorf("%s: %s", at, r["short_url"])
			}
		}
		slices.Sort(got)
		want := strings.Fields(tt.want)
		slices.Sort(want)
		if !slices.Equal(got, want) || fmt.Sprint(result.Reasons) != tt.reasons {
			t.Errorf("%+v: %q, %v", tt, got, result.Reasons)
		}
		if d := result.Migration.Domains; tt.workspace != "" && (d.Count != 2 || d.Rows["s.test"] != 2 || d.Rows[""] != 1) {
			t.Errorf("%+v", d)
		}
		agrees(t, cfg.Store)
	}
	cfg := keeping(legacy.Keep, nil)
	cfg.Domains = legacy.DomainsKeep
	_, result := job(t, cfg, map[string]string{"bitly.json": `[{"id":"bit.example/a","long_url":"http://a/","custom_bitlinks":["https://own.example/a","bit.example/b"]}]`})
	if c := result.Counts; c.Created != 3 || fmt.Sprint(result.Workspaces) != "[demo/bit.example demo/own.example]" {
		t.Errorf("%+v %q", c, result.Workspaces)
	}
	agrees(t, nil)
	for _, cfg := range []pipeline.Config{
		{Workspace: "w", Legacy: legacy.Keep, Domains: legacy.DomainsKeep}, {Workspace: "w", Legacy: legacy.Keep, KeepCreated: true}, {Workspace: "w", Attrs: "nothing"}, {Workspace: "w", Attrs: "url"},
	} {
		t.Chdir(t.TempDir())
		write(t, "in.csv", "code,url\nx,http://a/\n")
		cfg.Inputs, cfg.Out = []string{"in.csv"}, "out"
		if _, err := pipeline.Run(context.Background(), cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
}

// A run that is resumed judges links by the time when it began, and so does one that is finished.
func TestResumedExpiry(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, "in.csv", "alias,url,domain,tags,created_at,expires_at\na,http://a/,,,,2024-07-01\nb,http://b/,,,,\n")
	p, err := hygiene.ParsePolicy("expired=reject")
	must(t, err)
	cfg := keeping(legacy.Keep, openStore(t, dir))
	cfg.Inputs, cfg.Out, cfg.Hygiene = []string{"in.csv"}, "out", &p
	interrupt(t, cfg, "chunk")
	db, err := sql.Open("sqlite", filepath.Join(dir, "links.db"))
	must(t, err)
	_, err = db.Exec("UPDATE runs SET as_of = '2024-06-01T00:00:00.000000Z'")
	must(t, errors.Join(err, db.Close()))
	for _, repeated := range []bool{false, true} {
		result, err := pipeline.Run(context.Background(), cfg)
		must(t, err)
		if c := result.Counts; c != (sink.Counts{Read: 2, Created: 2}) || result.Resumed == repeated || result.Repeated != repeated || len(result.Reasons) > 0 || result.AsOf.Year() != 2024 {
			t.Errorf("%+v", result)
		}
	}
	agrees(t, cfg.Store)
}

// What a trial and a review found: without legacy codes a profile is known, too; a link without a row
// of its own, of a run with Both, has what its first row says; a row whose only attribute is an empty
// list has none; times and expiries that cannot be read are told; rejects of several programs are not
// taken for plain links.
func TestMigrationTrials(t *testing.T) {
	other, empty := inPostgres(t)
	for name, fresh := range map[string]func() sink.Store{
		"sqlite": func() sink.Store { return openStore(t, t.TempDir()) }, "postgres": func() sink.Store { empty(); return other },
	} {
		for _, tt := range []struct {
			what, file, text string
			change           func(*pipeline.Config)
			created          int64
			told             string // reasons, kinds that were found, no_time, no_expiry
		}{
			{"a plain run", "p.csv", "alias,url,domain,tags,created_at,expires_at\na,http://a/,,x,,\nb,http://b/,,,,2020-01-01T00:00:00\nc,http://c/,,,,31/12/2020\n",
				func(c *pipeline.Config) {
					p := hygiene.Defaults()
					c.Legacy, c.Codes.Pattern, c.Hygiene, p[hygiene.Expired] = legacy.Off, nil, &p, hygiene.Reject
				}, 2, "map[expired:1] map[expired:{reject 1 <nil>}] 0 1"},
			{"both", "b.csv", "keyword,url,title,timestamp,ip,clicks\nk,http://a/,T,2014-03-01 10:11:12,,\nl,http://a/,U,never,,7\n",
				func(c *pipeline.Config) { c.Legacy, c.KeepCreated = legacy.Both, true }, 2, "map[] map[] 1 0"},
			{"no tags", "t.json", `[{"url":"http://a/","slug":"a","tags":[]}]`, func(c *pipeline.Config) { c.Source.Map = map[string]string{"tags": "tags"} }, 1, "map[] map[] 0 0"},
			{"a late reject", "l.csv", "keyword,url,title\na,http://x/,t\na,http://y/?token=1,t\n", func(c *pipeline.Config) { c.Hygiene = nil },
				1, "map[code_taken:1] map[secret:{warn 1 0x] 0 0"},
			{"other workers", "w.csv", "code,url,Name\na,http://a/,One\n", func(c *pipeline.Config) {
				c.Source.Map, c.Attrs = map[string]string{"title": "Name", "tags": "Name"}, "Name"
			}, 1, "map[] map[] 0 0"},
		} {
			t.Run(name+" "+tt.what, func(t *testing.T) {
				cfg := keeping(legacy.Keep, fresh())
				tt.change(&cfg)
				_, result := job(t, cfg, map[string]string{tt.file: tt.text})
				var noTime, noExpiry int64
				if n := result.Migration.NoTime; n != nil {
					noTime = n.Rows
				}
				if n := result.Migration.NoExpiry; n != nil {
					noExpiry = n.Rows
				}
				got := regexp.MustCompile("0x[0-9a-f]+}").ReplaceAllString(fmt.Sprint(result.Reasons, " ", result.Migration.Hygiene, " ", noTime, " ", noExpiry), "0x")
				if got != tt.told || result.Counts.Created != tt.created {
					t.Errorf("%s, %+v", got, result.Counts)
				}
				agrees(t, cfg.Store)
			})
		}
	}
	cfg := keeping(legacy.Keep, nil)
	cfg.Hygiene = nil
	files, _ := job(t, cfg, map[string]string{
		"a.csv": "long_url,custom_bitlink,title,archived,tags,created_at\nhttp://a/,go.example/x,T,TRUE,,\n", "b.csv": "keyword,url,title\nk,http://b/,U\n"})
	write(t, "rejects.csv", files["rejects.csv"])
	cfg.Inputs, cfg.Out = []string{"rejects.csv"}, "again"
	if _, err := pipeline.Run(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), "has the columns of several programs") {
		t.Errorf("rejects of two programs: %v", err)
	}
}

// verify finds what somebody has changed of what the manifest and the store tell.
func TestMigrationTampered(t *testing.T) {
	for _, tt := range []struct {
		mode           legacy.Mode
		column, change string
	}{
		{legacy.Keep, "attrs", `UPDATE links SET attrs = '{"title":"other"}' WHERE short_code = 'abc'`},
		{legacy.Keep, "created_at", "UPDATE links SET created_at = '2020-01-01T00:00:00.000000Z' WHERE short_code = 'abc'"},
		{legacy.Both, "attrs", `UPDATE links SET attrs = '{"title":"other"}' WHERE base_key IS NULL`}, // no row shows these links
		{legacy.Both, "created_at", "UPDATE links SET created_at = '2020-01-01T00:00:00.000000Z' WHERE base_key IS NULL"},
		{legacy.Keep, "migration.hygiene.secret", ""}, {legacy.Keep, "migration.domains", ""},
	} {
		t.Run(string(tt.mode)+" "+tt.column, func(t *testing.T) {
			dir := t.TempDir()
			cfg, inputs := moving(t, openStore(t, dir), "")
			cfg.Legacy, cfg.KeepCreated = tt.mode, true
			cfg.NoRules = tt.mode == legacy.Both // of links that no row shows and that may end, only the parameters are compared
			job(t, cfg, inputs)
			vc := verify.Config{Dir: "out", Inputs: []string{everyKind}}
			if tt.change != "" {
				db, err := sql.Open("sqlite", filepath.Join(dir, "links.db"))
				must(t, err)
				_, err = db.Exec(tt.change)
				must(t, errors.Join(err, db.Close()))
				vc.Store = cfg.Store
			} else {
				text := read(t, "out/manifest.json")
				write(t, "out/manifest.json", strings.NewReplacer(`"secret": {`, `"chain": {`, `"chain": {`, `"secret": {`, `"go.example": `, `"un.example": `).Replace(text))
			}
			got, err := verify.Run(context.Background(), vc)
			must(t, err)
			if !slices.ContainsFunc(got.Findings, func(f verify.Finding) bool { return string(f.Column) == tt.column }) {
				t.Errorf("%+v", got.Findings)
			}
		})
	}
}

// A short URL may have the domain of its row, which is the default where the row has none. Each is checked
// against the row of the input, whatever the mapping looks like.
func TestShortURLOfDomain(t *testing.T) {
	const text = "code,url,domain\nx,http://a/,S.test\nx,http://b/,t.test:8080\ny,http://a/,\nz,http://a/,https://s.test/\n,http://c/,\n,http://d/,bücher.test\n"
	domains := map[string]string{"1": "s.test", "2": "t.test:8080", "3": "d.test", "4": "s.test", "5": "d.test", "6": "xn--bcher-kva.test"}
	rapid.Check(t, func(rt *rapid.T) {
		mode := rapid.SampledFrom([]legacy.Mode{legacy.Off, legacy.Keep, legacy.Both, legacy.Map}).Draw(rt, "mode")
		cfg := pipeline.Config{Store: openStore(t, t.TempDir()), Legacy: mode, OnConflict: legacy.Reject}
		cfg.Domains = rapid.SampledFrom([]legacy.Domains{legacy.DomainsOff, legacy.DomainsKeep, legacy.DomainsMerge}).Draw(rt, "domains")
		cfg.Workspace, cfg.BaseURL, cfg.DefaultDomain = "w", "https://{domain}/{workspace}", "d.test"
		if cfg.Domains == legacy.DomainsKeep && rapid.Bool().Draw(rt, "no workspace") {
			cfg.Workspace = ""
		}
		cfg.Source.Map = map[string]string{"domain": "domain"}
		cfg.ReportOrder = rapid.SampledFrom([]report.Order{report.SortOrder, report.InputOrder}).Draw(rt, "order")
		cfg.NoCarry = rapid.Bool().Draw(rt, "no carry")
		if mode == legacy.Off && rapid.Bool().Draw(rt, "campaign") {
			plan, err := campaign.Parse([]string{"utm_source=a,b"}, "", nil, 10)
			must(t, err)
			cfg.Campaign = plan
		}
		if rapid.Bool().Draw(rt, "spill") {
			cfg.SpillAt(1)
		}
		files, result := job(t, cfg, map[string]string{"in.csv": text})
		for _, r := range records(t, files["mapping.csv"]) {
			if want := "https://" + domains[r["row"]] + "/" + strings.ReplaceAll(r["workspace_id"], "ü", "%C3%BC") + "/" + r["short_code"]; r["short_url"] != want {
				t.Errorf("%+v: row %s: %s, want %s", cfg.Domains, r["row"], r["short_url"], want)
			}
			if at := r["workspace_id"]; cfg.Domains == legacy.DomainsKeep && r["row"] == "3" && at != strings.TrimPrefix(cfg.Workspace+"/d.test", "/") {
				t.Errorf("a row without a domain is in %s", at)
			}
		}
		if d := result.Migration.Domains; d.Rows[""] != 0 || d.Rows["d.test"] == 0 {
			t.Errorf("%+v", d)
		}
		agrees(t, cfg.Store)
	})
}
