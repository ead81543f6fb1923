package audit_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/audit"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/sink"
	_ "modernc.org/sqlite"
)

// A link changed in the store, in any column, is found; so is one that is gone,
// and the loss of an owner is told apart.
func TestVerifyStore(t *testing.T) {
	cfg, dir := base(2), t.TempDir()
	cfg.Store = openStore(t, dir)
	job(t, cfg, map[string]string{"a.csv": table(5, 1500, "url,team,note")})
	clean(t, audit.VerifyConfig{Store: cfg.Store})
	places := []int{0, 77, 300}
	if testing.Short() {
		places = []int{77}
	}
	for change, want := range map[string]audit.Kind{
		"UPDATE links SET workspace_id = 'x' || workspace_id WHERE %s":        audit.StoreMissing,
		"UPDATE links SET short_code = '??' WHERE %s":                         audit.StoreMissing,
		"UPDATE links SET short_code = short_code || '1' WHERE %s":            audit.StoreCode,
		"UPDATE links SET url_key = randomblob(16) WHERE %s":                  audit.StoreKey,
		"UPDATE links SET canonical_url = canonical_url || 'x' WHERE %s":      audit.StoreDiffers,
		"UPDATE links SET canonical_url = canonical_url || '#' WHERE %s":      audit.StoreCanonical,
		"UPDATE links SET original_url = 'http://example.com/' WHERE %s":      audit.StoreCanonical,
		"UPDATE links SET original_url = canonical_url || '#' WHERE %s":       audit.StoreDiffers,
		"UPDATE links SET run_id = 2 WHERE %s":                                audit.StoreDiffers,
		"UPDATE links SET created_at = '2000-01-01 00:00:00.000000' WHERE %s": audit.StoreDiffers,
		"DELETE FROM links WHERE %s":                                          audit.StoreMissing,
		"INSERT INTO links SELECT workspace_id, short_code || 'x', randomblob(16), canonical_url, original_url, run_id, created_at, updated_at FROM links WHERE %s": audit.StoreExtra,
		// Of the run by its number, not by its time.
		"INSERT INTO links SELECT workspace_id, short_code || 'x', randomblob(16), canonical_url, original_url, run_id, '2000-01-01 00:00:00.000000', updated_at FROM links WHERE %s": audit.StoreExtra,
		"UPDATE runs SET manifest_sha256 = 'x'": audit.ManifestSum,
		"UPDATE runs SET created = created + 1": audit.BadCount,
	} {
		for _, at := range places {
			where := fmt.Sprintf("(workspace_id, short_code) = (SELECT workspace_id, short_code FROM links ORDER BY 1, 2 LIMIT 1 OFFSET %d)", at)
			restore := alter(t, dir, strings.Replace(change, "%s", where, 1))
			v := verify(t, audit.VerifyConfig{Store: cfg.Store})
			if v.Kinds[want] == 0 {
				t.Errorf("%s: found %v, want %s", change, kinds(v), want)
			}
			restore()
		}
	}
	clean(t, audit.VerifyConfig{Store: cfg.Store})
	restore := alter(t, dir, `DELETE FROM links WHERE canonical_url IN (SELECT canonical_url FROM links ORDER BY 1 LIMIT 60)`)
	defer restore()
	if v := verify(t, audit.VerifyConfig{Store: cfg.Store}); len(v.Unexplained) == 0 || v.Kinds[audit.Unexplained] != 0 {
		t.Errorf("found %v, unexplained %v", kinds(v), v.Unexplained)
	}
}

// A link that the run made, by the store, and that its mapping says was there before, is
// found in the row of the mapping too.
func TestVerifyStoreOutcome(t *testing.T) {
	cfg, dir := base(10), t.TempDir()
	cfg.Store = openStore(t, dir)
	job(t, cfg, map[string]string{"a.csv": table(5, 30, "url,team,note")})
	mapping := lines(t, "mapping.csv")
	row := slices.IndexFunc(mapping, func(line string) bool { return strings.Contains(line, ",created,") })
	mapping[row] = strings.Replace(mapping[row], ",created,", ",existing,", 1)
	m := readManifest(t)
	m.Counts.Created, m.Counts.Existing = m.Counts.Created-1, 1
	writeManifest(t, m)
	put(t, "mapping.csv", mapping)
	alter(t, dir, fmt.Sprintf("UPDATE runs SET created = created - 1, existing = 1, manifest_sha256 = '%s'", digestOf(t, "out/manifest.json")))
	f := verify(t, audit.VerifyConfig{Store: cfg.Store}).Findings
	if len(f) != 2 || f[0].Kind != audit.StoreDiffers || f[0].Row != int64(row) || f[0].Column != "outcome" || f[1].Kind != audit.StoreExtra {
		t.Errorf("found %+v", f)
	}
}

// An original URL that the store has with its bytes escaped may be longer than any
// input. Then its canonical form must at least be one.
func TestVerifyStoreLongOriginal(t *testing.T) {
	cfg, dir := base(10), t.TempDir()
	cfg.Store = openStore(t, dir)
	job(t, cfg, map[string]string{"a.csv": "url,team,note\nhttps://example.com/#" + strings.Repeat("\xff", 22_000) + ",x,\nftp://a/,x,\n"})
	clean(t, audit.VerifyConfig{Store: cfg.Store})
	alter(t, dir, "UPDATE links SET canonical_url = 'https://EXAMPLE.com/'")
	if v := verify(t, audit.VerifyConfig{Store: cfg.Store}); v.Kinds[audit.StoreCanonical] != 1 {
		t.Errorf("found %v", v.Findings)
	}
}

// What the store says of runs is compared with manifest and links; a run whose
// state cannot be decided is no fault.
func TestVerifyStoreRuns(t *testing.T) {
	cfg, dir := base(2), t.TempDir()
	cfg.Store = openStore(t, dir)
	job(t, cfg, map[string]string{"a.csv": table(5, 30, "url,team,note")})
	job(t, cfg, map[string]string{"a.csv": table(5, 60, "url,team,note")})
	const late = "'2026-01-03 00:00:00.000000'"
	for change, c := range map[string]struct {
		want        string
		unexplained int
	}{
		"UPDATE runs SET as_of = " + late + " WHERE run_id = 2":       {"[store_run]", 0},
		"UPDATE runs SET state = 'loading'":                           {"[store_run]", 0},
		"UPDATE runs SET state = 'loaded'":                            {"[]", 0}, // killed then
		"UPDATE runs SET state = 'undone'":                            {"[]", 1}, // all links may be referred to
		"UPDATE links SET created_at = " + late + " WHERE run_id = 1": {"[store_run]", 0},
		"UPDATE links SET updated_at = " + late:                       {"[]", 0}, // an online service may
	} {
		restore := alter(t, dir, change)
		v := verify(t, audit.VerifyConfig{Store: cfg.Store})
		if fmt.Sprint(kinds(v)) != c.want || len(v.Unexplained) != c.unexplained {
			t.Errorf("%s: found %v, unexplained %v", change, kinds(v), v.Unexplained)
		}
		restore()
	}
	for _, change := range []string{"UPDATE runs SET as_of = 'now' WHERE run_id = 2", "UPDATE links SET created_at = 'now' WHERE run_id = 1", "UPDATE links SET created_at = 'now' WHERE run_id = 2"} {
		restore := alter(t, dir, change)
		if f := verify(t, audit.VerifyConfig{Store: cfg.Store}).Findings; len(f) == 0 || f[0].Found != "no time" {
			t.Errorf("%s: found %+v", change, f)
		}
		restore()
	}
	refuse(t, cfg, "url,team,note\nftp://a/,x,\nftp://b/,x,\n")
	alter(t, dir, fmt.Sprintf("UPDATE runs SET manifest_sha256 = '%s' WHERE run_id = 1", digestOf(t, "out/manifest.json")))
	if v := verify(t, audit.VerifyConfig{Store: cfg.Store}); fmt.Sprint(kinds(v)) != "[store_run]" {
		t.Errorf("a refused run that the store has: found %v", v.Findings)
	}
}

// Of a dry run only the links that were there before must be in the store, and the
// result says that it was one.
func TestVerifyDryRun(t *testing.T) {
	cfg, dir := base(2), t.TempDir()
	cfg.Store = openStore(t, dir)
	inputs := twoInputs()
	job(t, cfg, map[string]string{"a.csv": inputs["a.csv"]})
	cfg.DryRun = true
	job(t, cfg, inputs)
	if c := readManifest(t).Counts; c.Created == 0 || c.Existing == 0 {
		t.Fatalf("%+v", c)
	}
	clean(t, audit.VerifyConfig{Store: cfg.Store})
	if v := verify(t, audit.VerifyConfig{Store: cfg.Store}); !v.DryRun {
		t.Error("nothing says that it was a dry run")
	}
	alter(t, dir, "DELETE FROM links WHERE short_code = (SELECT min(short_code) FROM links)")
	if v := verify(t, audit.VerifyConfig{Store: cfg.Store}); v.Kinds[audit.StoreMissing] != 1 {
		t.Errorf("found %+v", v.Findings)
	}
}

// A run that was undone is told apart, also where its like was made again.
func TestVerifyUndone(t *testing.T) {
	cfg := base(2)
	cfg.Store = openStore(t, t.TempDir())
	r := job(t, cfg, twoInputs())
	if _, err := cfg.Store.Undo(context.Background(), r.RunID, sink.LockOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	if v := verify(t, audit.VerifyConfig{Store: cfg.Store}); !v.Undone || v.Kinds[audit.StoreMissing] == 0 {
		t.Errorf("undone: %v, found %v", v.Undone, kinds(v))
	}
	job(t, cfg, twoInputs())
	clean(t, audit.VerifyConfig{Store: cfg.Store})
	if v := verify(t, audit.VerifyConfig{Store: cfg.Store}); v.Undone {
		t.Error("the run that was made again is undone")
	}
}

// alter executes a statement on the store beside it; the function that it
// returns takes it back.
func alter(t *testing.T, dir, statement string) func() {
	t.Helper()
	path := filepath.Join(dir, "links.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exec := func(statements ...string) {
		t.Helper()
		for _, s := range statements {
			if _, err := db.Exec(s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
	exec("DROP TABLE IF EXISTS kept_links", "CREATE TABLE kept_links AS SELECT * FROM links",
		"DROP TABLE IF EXISTS kept_runs", "CREATE TABLE kept_runs AS SELECT * FROM runs", statement)
	return func() {
		t.Helper()
		var err error
		if db, err = sql.Open("sqlite", path); err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		exec("DELETE FROM links", "INSERT INTO links SELECT * FROM kept_links", "DELETE FROM runs", "INSERT INTO runs SELECT * FROM kept_runs",
			"DROP TABLE kept_links", "DROP TABLE kept_runs")
	}
}

// An owner of a lower code that only the store has is compared with what
// collisions.csv says of it; so are the owners of all codes of an exhausted URL.
func TestVerifyStoreOwners(t *testing.T) {
	cfg, dir := pipeline.Config{Workspace: "demo", CodeLength: 1, MaxRetries: 2}, t.TempDir()
	cfg.Store = openStore(t, dir)
	list := func(from, to int) map[string]string {
		var urls strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&urls, "http://example.com/%d\n", i)
		}
		return map[string]string{"a.txt": urls.String()}
	}
	job(t, cfg, list(0, 30))
	job(t, cfg, list(30, 100))
	clean(t, audit.VerifyConfig{Store: cfg.Store})
	good, scheme := lines(t, "collisions.csv"), must(codegen.New(1))
	forged := 0
	for i, line := range good[1:] {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), ",")
		var owner int
		if fmt.Sscanf(cells[4], "http://example.com/%d", &owner); owner >= 30 {
			continue
		}
		for n := 200; ; n++ { // another URL that could have the code
			cells[4] = fmt.Sprintf("http://example.com/%d", n)
			if string(scheme.AppendCode(nil, codegen.Sum(codegen.AppendInput(nil, []byte(cells[4]), []byte("demo"), 0)))) == cells[3] {
				break
			}
		}
		bad := slices.Clone(good)
		bad[i+1] = strings.Join(cells, ",") + "\n"
		put(t, "collisions.csv", bad)
		if v := verify(t, audit.VerifyConfig{Store: cfg.Store}); v.Kinds[audit.BadOwner] != 1 || v.Findings[0].Row != int64(i+1) {
			t.Errorf("line %d: found %+v", i+1, v.Findings)
		}
		if forged++; forged == 3 {
			break
		}
	}
	put(t, "collisions.csv", good)
	if forged == 0 || readManifest(t).Reasons["code_space_exhausted"] == 0 {
		t.Fatalf("nothing to forge: %d lines, %v", forged, readManifest(t).Reasons)
	}
	defer alter(t, dir, "DELETE FROM links WHERE run_id = 1")()
	lost := map[string]int{}
	for _, f := range verify(t, audit.VerifyConfig{Store: cfg.Store}).Unexplained {
		lost[string(f.File)]++
	}
	if lost["collisions.csv"] == 0 || lost["rejects.csv"] == 0 {
		t.Errorf("unexplained %v", lost)
	}
}

// Whoever has a lower code since a later run is no wrong owner, whatever time the
// runs have in common; nor is one of nobody's, whose time cannot be told.
func TestVerifyLaterOwners(t *testing.T) {
	db, urls := t.TempDir(), contested()
	store := openStore(t, db)
	t.Chdir(t.TempDir())
	cfg := pipeline.Config{Workspace: "demo", CodeLength: 1, Store: store, Inputs: []string{"a.txt"}, AsOf: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
	run := func(out, url string) *pipeline.Result {
		os.WriteFile("a.txt", []byte(url), 0o666)
		cfg.Out = out
		return must(pipeline.Run(context.Background(), cfg))
	}
	first := run("first", urls[0])
	run("second", urls[1])
	asOf := cfg.AsOf
	cfg.DryRun, cfg.AsOf = true, time.Time{}
	run("dry", urls[1])
	cfg.DryRun, cfg.AsOf = false, asOf
	must(store.Undo(context.Background(), first.RunID, sink.LockOptions{}, nil))
	run("third", urls[1])
	run("fourth", urls[2])
	check := func(dir string, owners int) {
		t.Helper()
		v := must(audit.Verify(context.Background(), audit.VerifyConfig{Dir: dir, Store: store}))
		n := 0
		for _, f := range v.Unexplained {
			if f.Column == "owner" {
				n++
			}
		}
		if v.Failed() > 0 || n != owners {
			t.Errorf("%s: %+v, %+v", dir, v.Findings, v.Unexplained)
		}
	}
	check("second", 1)
	check("dry", 1)
	check("third", 1)
	check("fourth", 0)
	alter(t, db, "UPDATE links SET run_id = 0, created_at = 'just now' WHERE run_id = 4")
	check("second", 1)
	check("dry", 1)
	check("third", 1)
}

// An owner that has its code by a salt that the run would not have tried is no wrong
// one: a run with more retries made it.
func TestVerifyOwnersOfMoreRetries(t *testing.T) {
	cfg := pipeline.Config{Workspace: "demo", CodeLength: 1, MaxRetries: 300, Store: openStore(t, t.TempDir())}
	var urls strings.Builder
	for i := range 36 {
		fmt.Fprintf(&urls, "http://example.com/%d\n", i)
	}
	job(t, cfg, map[string]string{"a.txt": urls.String() + "ftp://x\n"})
	clean(t, audit.VerifyConfig{Store: cfg.Store})
	taken, high := map[string]bool{}, ""
	for _, line := range lines(t, "mapping.csv")[1:] {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), ",")
		taken[cells[5]] = true
		if len(cells[8]) > 1 && cells[8] > "10" {
			high = cells[5]
		}
	}
	for i := 36; high != ""; i++ {
		url := fmt.Sprintf("http://example.com/%d", i)
		if code(url, 0) == high && !taken[code(url, 1)] {
			cfg.MaxRetries = 1
			job(t, cfg, map[string]string{"a.txt": url + "\nftp://x\n"})
			clean(t, audit.VerifyConfig{Store: cfg.Store})
			if v := verify(t, audit.VerifyConfig{}); v.Failed() > 0 || len(v.Unexplained) != 1 {
				t.Errorf("without the store: %+v, %+v", v.Findings, v.Unexplained)
			}
			return
		}
	}
	t.Fatal("no link has a high salt")
}

// An owner that the store has, and had then, may not be left out; nor is a URL that
// had a link there exhausted.
func TestVerifyKnownOwners(t *testing.T) {
	dir, urls := t.TempDir(), contested()
	cfg := pipeline.Config{Workspace: "demo", CodeLength: 1, MaxRetries: 1, Store: openStore(t, dir)}
	job(t, cfg, map[string]string{"a.txt": urls[0] + "\n" + urls[1] + "\n"})
	job(t, cfg, map[string]string{"a.txt": urls[1] + "\nftp://x\n"})
	clean(t, audit.VerifyConfig{Store: cfg.Store})
	for _, c := range []struct {
		forge func()
		want  string
	}{
		{func() {
			put(t, "collisions.csv", []string{lines(t, "collisions.csv")[0], "demo," + urls[1] + ",0,7,\n"})
		}, "[owner]"},
		{func() {
			m := readManifest(t)
			m.Counts.Existing, m.Counts.Rejected, m.Reasons["code_space_exhausted"] = 0, 2, 1
			m.Files[0].Rows, m.Files[1].Rows, m.Files[2].Rows = 0, 0, 2
			writeManifest(t, m)
			put(t, "mapping.csv", lines(t, "mapping.csv")[:1])
			put(t, "collisions.csv", lines(t, "collisions.csv")[:1])
			rejects := lines(t, "rejects.csv")
			put(t, "rejects.csv", []string{rejects[0], "a.txt,1,0,code_space_exhausted,all 2 codes of this URL have other owners," + urls[1] + ",\n", rejects[1]})
		}, "[reason]"},
	} {
		c.forge()
		if v := verify(t, audit.VerifyConfig{Inputs: []string{"a.txt"}}); v.Failed() > 0 {
			t.Errorf("without the store: %+v", v.Findings)
		}
		alter(t, dir, fmt.Sprintf("UPDATE runs SET manifest_sha256 = '%s' WHERE run_id = 2", digestOf(t, "out/manifest.json")))
		v := verify(t, audit.VerifyConfig{Store: cfg.Store})
		delete(v.Kinds, audit.BadCount) // of the run in the store
		if fmt.Sprint(kinds(v)) != c.want {
			t.Errorf("found %+v, want %s", v.Findings, c.want)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// What the files alone cannot tell, the inputs do: carried cells, offsets, the
// details and raw lines of rows that were not split.
func TestVerifyAgainstInputs(t *testing.T) {
	tampered(t, report.CSV, report.SortOrder, 1)
	inputs := audit.VerifyConfig{Inputs: []string{"a.csv", "b.csv"}}
	clean(t, inputs)
	mapping, rejects := lines(t, "mapping.csv"), lines(t, "rejects.csv")
	row := func(list []string, has string) int {
		return slices.IndexFunc(list, func(line string) bool { return strings.Contains(line, has) && !strings.Contains(line, "\"two") })
	}
	for name, c := range map[string]struct {
		file     string
		list     []string
		has      string
		old, new string
		column   string
	}{
		"carried":  {"mapping.csv", mapping, ",x\n", ",x\n", ",y\n", "carried columns"},
		"original": {"mapping.csv", mapping, ", http://example.com/./p", ", http://example.com/./p", ",  http://example.com/./p", "original_url"},
		"offset":   {"rejects.csv", rejects, "b.csv,17,", ",17,62", ",17,63", "byte_offset"},
		"raw":      {"rejects.csv", rejects, ",ragged\n", ",ragged", ",rugged", "raw"},
		"detail":   {"rejects.csv", rejects, "malformed_row", "1 field", "2 field", "reason"},
		"cells":    {"rejects.csv", rejects, ",red,x,\n", ",red,x,", ",red,y,", "input columns"},
	} {
		i := row(c.list, c.has)
		if i < 0 || !strings.Contains(c.list[i], c.old) {
			t.Errorf("%s: no such row: %q", name, c.list[max(i, 0)])
			continue
		}
		bad := slices.Clone(c.list)
		bad[i] = strings.Replace(bad[i], c.old, c.new, 1)
		put(t, c.file, bad)
		v := verify(t, inputs)
		if len(v.Findings) != 1 || v.Findings[0].Kind != audit.InputDiffers || string(v.Findings[0].Column) != c.column {
			t.Errorf("%s: %+v", name, v.Findings)
		}
		if v, err := audit.Verify(t.Context(), audit.VerifyConfig{Dir: "out", Inputs: inputs.Inputs, Version: "next"}); err != nil || (v.Failed() == 0) != (name == "detail") {
			t.Errorf("%s, by another version: %v, %+v", name, err, v)
		}
		put(t, c.file, c.list)
	}
	data, err := os.ReadFile("a.csv")
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile("a.csv", []byte(strings.Replace(string(data), "example.org/1", "example.org/2", 1)), 0o666)
	if v := verify(t, inputs); fmt.Sprint(kinds(v)) != "[input input_sum]" {
		t.Errorf("found %v", v.Findings)
	}
	var usage *source.UsageError
	for _, list := range [][]string{{"a.csv"}, {"a.csv", "b.csv", "out/mapping.csv"}} {
		_, err := audit.Verify(context.Background(), audit.VerifyConfig{Dir: "out", Inputs: list})
		if !errors.As(err, &usage) {
			t.Errorf("%q: %v", list, err)
		}
	}
}

// Rejects whose URLs are in different columns are read as the run read them, also by an
// earlier version, which took the first of two.
func TestVerifyRejectsOfOtherColumns(t *testing.T) {
	cfg := base(10)
	cfg.Source.WorkspaceColumn = ""
	job(t, cfg, map[string]string{"a.csv": "url,team\nftp://a/,red\n", "b.csv": "note,link\nx,ftp://b/\ny,ftp://c/\n"})
	text := strings.Join(lines(t, "rejects.csv"), "")
	job(t, cfg, map[string]string{"rejects.csv": strings.NewReplacer("ftp://a/", "http://a/", "ftp://b/", "http://b/").Replace(text)})
	clean(t, audit.VerifyConfig{Inputs: []string{"rejects.csv"}})
	const row = "a,1,0,r,,ftp://a/,,\n"
	cfg.Source.FirstURL = true
	for _, before := range []int{1, 20_000} { // or it is far from the start
		job(t, cfg, map[string]string{"rejects.csv": "source,row,byte_offset,reason,detail,url,link,raw\n" + strings.Repeat(row, before) + "a,2,9,r,,http://a/,http://b/,\n"})
		clean(t, audit.VerifyConfig{Inputs: []string{"rejects.csv"}})
	}
}

// An input without a record has no columns beside others, and is read as it was.
func TestVerifyEmptyInput(t *testing.T) {
	cfg := base(10)
	job(t, cfg, map[string]string{"a.csv": "", "b.csv": "url,team\nftp://a/,red\nhttp://b/,red\nhttp://c/,x,y\n"})
	clean(t, audit.VerifyConfig{Inputs: []string{"a.csv", "b.csv"}})
	job(t, cfg, map[string]string{"a.csv": "", "b.csv": ""})
	if v := verify(t, audit.VerifyConfig{Inputs: []string{"a.csv", "b.csv"}}); len(v.Findings) > 0 {
		t.Errorf("found %v", v.Findings)
	}
}

// A row that the input has as a reject is no link, nor is a link a reject.
func TestVerifyLinkOfAReject(t *testing.T) {
	for was, is := range map[string]string{"http://a/": "ftp://ab/", "ftp://ab/": "http://a/"} {
		job(t, pipeline.Config{Workspace: "demo", Version: "test"}, map[string]string{"a.txt": "http://x/\nftp://x/\n" + was + "\n"})
		clean(t, audit.VerifyConfig{Inputs: []string{"a.txt"}})
		os.WriteFile("a.txt", []byte("http://x/\nftp://x/\n"+is+"\n"), 0o666)
		found := verify(t, audit.VerifyConfig{Inputs: []string{"a.txt"}}).Findings
		if !slices.ContainsFunc(found, func(f audit.Finding) bool {
			return f.Kind == audit.InputDiffers && f.Row == 3 && (was != "http://a/" || f.Expected == "a reject" && f.Found == "a link")
		}) {
			t.Errorf("%s made %s: found %+v", was, is, found)
		}
	}
}

// An input that has become one that the run could not have read so is a finding,
// beside which all others are made.
func TestVerifyOtherInputs(t *testing.T) {
	tampered(t, report.CSV, report.SortOrder, 1)
	inputs := audit.VerifyConfig{Inputs: []string{"a.csv", "b.csv"}}
	good := must(os.ReadFile("b.csv"))
	mapping := lines(t, "mapping.csv")
	i := slices.IndexFunc(mapping, func(line string) bool { return strings.HasPrefix(line, "a.csv,") && strings.HasSuffix(line, ",x\n") })
	mapping[i] = strings.TrimSuffix(mapping[i], "x\n") + "y\n"
	put(t, "mapping.csv", mapping)
	for name, text := range map[string]string{
		"renamed":   strings.Replace(string(good), "url,", "uri,", 1),
		"a column":  strings.Replace(string(good), ",note", ",notes", 1),
		"no header": string(good[bytes.IndexByte(good, '\n')+1:]),
		"empty":     "",
		"delimiter": strings.ReplaceAll(string(good), ",", ";"),
	} {
		os.WriteFile("b.csv", []byte(text), 0o666)
		v := verify(t, inputs)
		if fmt.Sprint(kinds(v)) != "[columns input]" || len(v.Findings) != 2 || v.Findings[0].File != "a.csv" || v.Findings[1].File != "b.csv" {
			t.Errorf("%s: found %+v", name, v.Findings)
		}
	}
	os.WriteFile("a.csv", nil, 0o666)
	if v := verify(t, inputs); fmt.Sprint(kinds(v)) != "[columns]" || len(v.Findings) != 2 {
		t.Errorf("both: found %+v", v.Findings)
	}
	inputs.Dir, inputs.Source.MaxField = "out", -1
	var usage *source.UsageError
	if _, err := audit.Verify(context.Background(), inputs); !errors.As(err, &usage) {
		t.Errorf("a wrong option: %v", err)
	}
	inputs.Source.MaxField = 0
	os.Remove("b.csv")
	if _, err := audit.Verify(context.Background(), inputs); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// What the manifest says of an input is compared with it.
func TestVerifyManifestInputs(t *testing.T) {
	job(t, base(10), twoInputs())
	inputs, good := audit.VerifyConfig{Inputs: []string{"a.csv", "b.csv"}}, must(os.ReadFile("out/manifest.json"))
	clean(t, inputs)
	for column, change := range map[string]func(in *report.Input){
		"":            func(in *report.Input) { in.SHA256 = strings.Repeat("0", 64) },
		"size":        func(in *report.Input) { in.Size++ },
		"compression": func(in *report.Input) { in.Compression = "gzip" },
		"dialect":     func(in *report.Input) { in.Dialect.BOM = true },
	} {
		os.WriteFile("out/manifest.json", good, 0o666)
		m := readManifest(t)
		change(&m.Inputs[1])
		writeManifest(t, m)
		v := verify(t, inputs)
		if len(v.Findings) != 1 || v.Findings[0].Kind != audit.InputSum || string(v.Findings[0].Column) != column || v.Findings[0].File != "b.csv" {
			t.Errorf("%q: found %+v", column, v.Findings)
		}
	}
}

// Inputs that lie elsewhere now are told by the last elements of their names, where
// that tells.
func TestVerifyMovedInputs(t *testing.T) {
	const text = "http://example.com/\nftp://x\n"
	t.Chdir(t.TempDir())
	for _, dir := range []string{"a", "b", "c"} {
		os.Mkdir(dir, 0o777)
		os.WriteFile(dir+"/x.txt", []byte(text+"http://"+dir+"/"), 0o666)
	}
	os.WriteFile("y.txt", []byte(text), 0o666)
	cfg := pipeline.Config{Workspace: "demo", Inputs: []string{"a/x.txt", "b/x.txt", "y.txt"}, Out: "out"}
	if _, err := pipeline.Run(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	os.Mkdir("moved", 0o777)
	for old, now := range map[string]string{"b": "moved/b", "y.txt": "moved/y.txt"} {
		if err := os.Rename(old, now); err != nil {
			t.Fatal(err)
		}
	}
	inputs := func(first ...string) audit.VerifyConfig {
		return audit.VerifyConfig{Inputs: append(first, "moved/b/x.txt", "moved/y.txt")}
	}
	clean(t, inputs("a/x.txt"))
	if err := os.Rename("a", "moved/a"); err != nil {
		t.Fatal(err)
	}
	for name, first := range map[string][]string{"two files": {"moved/a/x.txt"}, "three files": {"moved/a/x.txt", "c/x.txt"}, "one file": nil} {
		cfg := inputs(first...)
		cfg.Dir = "out"
		var usage *source.UsageError
		if _, err := audit.Verify(context.Background(), cfg); !errors.As(err, &usage) || !strings.HasSuffix(err.Error(), "/x.txt: is not the only x.txt; name all of these as the run did") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Inputs of any format, with nulls and with the rejects of an earlier run, replay.
func TestVerifyFormats(t *testing.T) {
	for _, format := range []report.Format{report.CSV, report.Parquet, report.Arrow} {
		cfg := base(1)
		cfg.ReportFormat, cfg.Source.WorkspaceColumn = report.Parquet, ""
		job(t, cfg, map[string]string{"a.csv": table(3, 300, "url,team,note"), "b.txt": "http://example.com/\n\nftp://x\n"})
		next := pipeline.Config{Workspace: "demo", CodeLength: 1, ReportFormat: format, Inputs: []string{"out/mapping.parquet"},
			Out: "next", Source: source.Options{URLColumn: "original_url", WorkspaceColumn: "note"}}
		if _, err := pipeline.Run(context.Background(), next); err != nil {
			t.Fatal(err)
		}
		again := pipeline.Config{Workspace: "demo", CodeLength: 2, ReportFormat: format, Inputs: []string{"out/rejects.csv", "b.txt"}, Out: "again"}
		if _, err := pipeline.Run(context.Background(), again); err != nil {
			t.Fatal(err)
		}
		for _, run := range []pipeline.Config{next, again} {
			v, err := audit.Verify(context.Background(), audit.VerifyConfig{Dir: run.Out, Inputs: run.Inputs})
			if err != nil || v.Failed() > 0 || v.Rejects == 0 {
				t.Errorf("%s, %s: %v, %+v", format, run.Out, err, v)
			}
		}
	}
}

// A folder that no run has left is told apart.
func TestVerifyNotOurs(t *testing.T) {
	t.Chdir(t.TempDir())
	os.WriteFile("file", nil, 0o666)
	os.Mkdir("fifo", 0o777)
	syscall.Mkfifo("fifo/manifest.json", 0o666)
	os.Mkdir("huge", 0o777)
	os.WriteFile("huge/manifest.json", nil, 0o666)
	os.Truncate("huge/manifest.json", report.MaxManifest+1)
	for _, dir := range []string{".", "none", "file", "fifo", "huge"} {
		_, err := audit.Verify(context.Background(), audit.VerifyConfig{Dir: dir})
		if !errors.Is(err, report.ErrNotOurs) || !strings.Contains(err.Error(), filepath.Join(dir, "manifest.json")) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if err := audit.Diff(context.Background(), audit.DiffConfig{A: "fifo", B: "fifo"}, nil); !errors.Is(err, report.ErrNotOurs) {
		t.Errorf("diff: %v", err)
	}
}

// Of inputs, too, what must lie on the disk goes to the folder that is named.
func TestVerifyTempDir(t *testing.T) {
	cfg := base(2)
	cfg.ReportFormat = report.Parquet
	job(t, cfg, twoInputs())
	data, err := os.ReadFile("out/mapping.parquet")
	if err != nil {
		t.Fatal(err)
	}
	opts := source.Options{Stdin: bytes.NewReader(data), URLColumn: "original_url"}
	next := pipeline.Config{Workspace: "demo", Inputs: []string{"-"}, Out: "next", Source: opts}
	if _, err := pipeline.Run(context.Background(), next); err != nil {
		t.Fatal(err)
	}
	opts.Stdin = bytes.NewReader(data)
	_, err = audit.Verify(context.Background(), audit.VerifyConfig{Dir: "next", Inputs: next.Inputs, Source: opts, TempDir: "none"})
	if err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("a folder that does not exist: %v", err)
	}
}

// That the disk does not take what is sorted is an error.
func TestVerifySpillFails(t *testing.T) {
	job(t, pipeline.Config{Workspace: "demo", ReportOrder: report.InputOrder, DryRun: true}, map[string]string{"a.txt": strings.Repeat("http://a/#"+strings.Repeat("x", 1<<15)+"\n", 3)})
	_, err := audit.Verify(t.Context(), audit.VerifyConfig{Dir: "out", Memory: 1, TempDir: "none"})
	if err == nil || !strings.Contains(err.Error(), "spill file in none") {
		t.Errorf("%v", err)
	}
}

// An input that can be read only once is compared like any other.
func TestVerifyAgainstStdin(t *testing.T) {
	t.Chdir(t.TempDir())
	text := table(1, 700, "url,team,note")
	cfg := base(2)
	cfg.Inputs, cfg.Out, cfg.Source.Stdin = []string{"-"}, "out", strings.NewReader(text)
	if _, err := pipeline.Run(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	against := func(text string) audit.VerifyConfig {
		return audit.VerifyConfig{Inputs: []string{"-"}, Source: source.Options{Stdin: strings.NewReader(text)}}
	}
	clean(t, against(text))
	other := strings.Replace(text, "example.org/1", "example.org/2", 1)
	if v := verify(t, against(other)); fmt.Sprint(kinds(v)) != "[input input_sum]" || len(v.Findings) != 2 || v.Findings[1].Row == 0 {
		t.Errorf("found %+v", v.Findings)
	}
	mapping := lines(t, "mapping.csv")
	put(t, "mapping.csv", mapping[:len(mapping)-1])
	if v := verify(t, against(text)); v.Kinds[audit.InputDiffers] != 1 || v.Kinds[audit.RowMissing] != 1 {
		t.Errorf("found %+v", v.Findings)
	}
}
