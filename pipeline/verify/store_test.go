package verify_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/verify"
	"github.com/linkforge/bulk/sink"
	_ "modernc.org/sqlite"
)

// A link changed in the store, in any column, is found; so is one that is gone,
// and the loss of an owner is told apart.
func TestVerifyStore(t *testing.T) {
	cfg, dir := base(2), t.TempDir()
	cfg.Store = openStore(t, dir)
	job(t, cfg, map[string]string{"a.csv": table(5, 1500, "url,team,note")})
	clean(t, verify.Config{Store: cfg.Store})
	places := []int{0, 300}
	if testing.Short() {
		places = []int{300}
	}
	for change, want := range map[string]verify.Kind{
		"UPDATE links SET workspace_id = 'x' || workspace_id WHERE %s":        verify.StoreMissing,
		"UPDATE links SET short_code = '??' WHERE %s":                         verify.StoreMissing,
		"UPDATE links SET short_code = short_code || '1' WHERE %s":            verify.StoreCode,
		"UPDATE links SET url_key = randomblob(16) WHERE %s":                  verify.StoreKey,
		"UPDATE links SET canonical_url = canonical_url || 'x' WHERE %s":      verify.StoreDiffers,
		"UPDATE links SET canonical_url = canonical_url || '#' WHERE %s":      verify.StoreCanonical,
		"UPDATE links SET original_url = 'http://example.com/' WHERE %s":      verify.StoreCanonical,
		"UPDATE links SET original_url = canonical_url || '#' WHERE %s":       verify.StoreDiffers,
		"UPDATE links SET run_id = 2 WHERE %s":                                verify.StoreDiffers,
		"UPDATE links SET created_at = '2000-01-01 00:00:00.000000' WHERE %s": verify.StoreDiffers,
		"DELETE FROM links WHERE %s":                                          verify.StoreMissing,
		"INSERT INTO links (workspace_id, short_code, url_key, canonical_url, original_url, run_id, created_at, updated_at) SELECT workspace_id, short_code || 'x', randomblob(16), canonical_url, original_url, run_id, created_at, updated_at FROM links WHERE %s": verify.StoreExtra,
		// Of the run by its number, not by its time.
		"INSERT INTO links (workspace_id, short_code, url_key, canonical_url, original_url, run_id, created_at, updated_at) SELECT workspace_id, short_code || 'x', randomblob(16), canonical_url, original_url, run_id, '2000-01-01 00:00:00.000000', updated_at FROM links WHERE %s": verify.StoreExtra,
		"UPDATE runs SET manifest_sha256 = 'x'":            verify.ManifestSum,
		"UPDATE runs SET created = created + 1":            verify.BadCount,
		`UPDATE runs SET numbers = '{"links_changed": 2}'`: verify.BadCount,
	} {
		for _, at := range places {
			where := fmt.Sprintf("(workspace_id, short_code) = (SELECT workspace_id, short_code FROM links ORDER BY 1, 2 LIMIT 1 OFFSET %d)", at)
			restore := alter(t, dir, strings.Replace(change, "%s", where, 1))
			v := verified(t, verify.Config{Store: cfg.Store})
			if v.Kinds[want] == 0 {
				t.Errorf("%s: found %v, want %s", change, kinds(v), want)
			}
			restore()
		}
	}
	clean(t, verify.Config{Store: cfg.Store})
	restore := alter(t, dir, `DELETE FROM links WHERE canonical_url IN (SELECT canonical_url FROM links ORDER BY 1 LIMIT 60)`)
	defer restore()
	if v := verified(t, verify.Config{Store: cfg.Store}); len(v.Unexplained) == 0 || v.Kinds[verify.Unexplained] != 0 {
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
	f := verified(t, verify.Config{Store: cfg.Store}).Findings
	if len(f) != 2 || f[0].Kind != verify.StoreDiffers || f[0].Row != int64(row) || f[0].Column != "outcome" || f[1].Kind != verify.StoreExtra {
		t.Errorf("found %+v", f)
	}
}

// An original URL that the store has with its bytes escaped may be longer than any
// input. Then its canonical form must at least be one.
func TestVerifyStoreLongOriginal(t *testing.T) {
	cfg, dir := base(10), t.TempDir()
	cfg.Store = openStore(t, dir)
	job(t, cfg, map[string]string{"a.csv": "url,team,note\nhttps://example.com/#" + strings.Repeat("\xff", 22_000) + ",x,\nftp://a/,x,\n"})
	clean(t, verify.Config{Store: cfg.Store})
	alter(t, dir, "UPDATE links SET canonical_url = 'https://EXAMPLE.com/'")
	if v := verified(t, verify.Config{Store: cfg.Store}); v.Kinds[verify.StoreCanonical] != 1 {
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
		"UPDATE runs SET as_of = " + late + " WHERE run_id = 2":                                     {"[store_run]", 0},
		"UPDATE runs SET run_id = 0 WHERE run_id = 2; UPDATE links SET run_id = 0 WHERE run_id = 2": {"[store_run]", 0},
		"UPDATE runs SET state = 'loading'":                                                         {"[store_run]", 0},
		"UPDATE runs SET state = 'loaded'":                                                          {"[]", 0}, // killed then
		"UPDATE runs SET state = 'undone'":                                                          {"[]", 1}, // all links may be referred to
		"UPDATE links SET created_at = " + late + " WHERE run_id = 1":                               {"[store_run]", 0},
		"UPDATE links SET updated_at = " + late:                                                     {"[]", 0}, // an online service may
	} {
		restore := alter(t, dir, change)
		v := verified(t, verify.Config{Store: cfg.Store})
		if fmt.Sprint(kinds(v)) != c.want || len(v.Unexplained) != c.unexplained {
			t.Errorf("%s: found %v, unexplained %v", change, kinds(v), v.Unexplained)
		}
		restore()
	}
	for _, change := range []string{"UPDATE runs SET as_of = 'now' WHERE run_id = 2", "UPDATE links SET created_at = 'now' WHERE run_id = 1", "UPDATE links SET created_at = 'now' WHERE run_id = 2"} {
		restore := alter(t, dir, change)
		if f := verified(t, verify.Config{Store: cfg.Store}).Findings; len(f) == 0 || f[0].Found != "no time" {
			t.Errorf("%s: found %+v", change, f)
		}
		restore()
	}
	refuse(t, cfg, "url,team,note\nftp://a/,x,\nftp://b/,x,\n")
	alter(t, dir, fmt.Sprintf("UPDATE runs SET manifest_sha256 = '%s' WHERE run_id = 1", digestOf(t, "out/manifest.json")))
	if v := verified(t, verify.Config{Store: cfg.Store}); fmt.Sprint(kinds(v)) != "[store_run]" {
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
	clean(t, verify.Config{Store: cfg.Store})
	if v := verified(t, verify.Config{Store: cfg.Store}); !v.DryRun {
		t.Error("nothing says that it was a dry run")
	}
	alter(t, dir, "DELETE FROM links WHERE short_code = (SELECT min(short_code) FROM links)")
	if v := verified(t, verify.Config{Store: cfg.Store}); v.Kinds[verify.StoreMissing] != 1 {
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
	if v := verified(t, verify.Config{Store: cfg.Store}); !v.Undone || v.Kinds[verify.StoreMissing] == 0 {
		t.Errorf("undone: %v, found %v", v.Undone, kinds(v))
	}
	job(t, cfg, twoInputs())
	clean(t, verify.Config{Store: cfg.Store})
	if v := verified(t, verify.Config{Store: cfg.Store}); v.Undone {
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
	clean(t, verify.Config{Store: cfg.Store})
	good, scheme := lines(t, "collisions.csv"), must(codegen.New(1))
	forged := 0
	for i, line := range good[1:] {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), ",")
		var owner int
		if fmt.Sscanf(cells[4], "http://example.com/%d", &owner); owner >= 30 {
			continue
		}
		for form, store := range map[string]sink.Store{"http://example.com/%d": cfg.Store, "%d": nil} { // what is no URL, without the store, too
			for n := 200; ; n++ { // another that could have the code
				cells[4] = fmt.Sprintf(form, n)
				if string(scheme.AppendCode(nil, codegen.Sum(codegen.AppendInput(nil, []byte(cells[4]), []byte("demo"), 0)))) == cells[3] {
					break
				}
			}
			bad := slices.Clone(good)
			bad[i+1] = strings.Join(cells, ",") + "\n"
			put(t, "collisions.csv", bad)
			if v := verified(t, verify.Config{Store: store}); v.Kinds[verify.BadOwner] != 1 || v.Findings[0].Row != int64(i+1) {
				t.Errorf("line %d: %s: found %+v", i+1, cells[4], v.Findings)
			}
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
	for _, f := range verified(t, verify.Config{Store: cfg.Store}).Unexplained {
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
		v := must(verify.Run(context.Background(), verify.Config{Dir: dir, Store: store}))
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
	check("dry.dry", 1)
	check("third", 1)
	check("fourth", 0)
	alter(t, db, "UPDATE links SET run_id = 0, created_at = 'just now' WHERE run_id = 4")
	check("second", 1)
	check("dry.dry", 1)
	check("third", 1)
	// A run that was undone in part and goes on has links from before it finished, and others.
	alter(t, db, "UPDATE links SET run_id = 1, created_at = (SELECT as_of FROM runs WHERE run_id = 1) WHERE run_id = 0")
	for _, state := range []string{"loading", "loaded"} {
		alter(t, db, "UPDATE runs SET state = '"+state+"' WHERE run_id = 1")
		check("second", 1)
	}
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
	clean(t, verify.Config{Store: cfg.Store})
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
			clean(t, verify.Config{Store: cfg.Store})
			if v := verified(t, verify.Config{}); v.Failed() > 0 || len(v.Unexplained) != 1 {
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
	clean(t, verify.Config{Store: cfg.Store})
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
		if v := verified(t, verify.Config{Inputs: []string{"a.txt"}}); v.Failed() > 0 {
			t.Errorf("without the store: %+v", v.Findings)
		}
		alter(t, dir, fmt.Sprintf("UPDATE runs SET manifest_sha256 = '%s' WHERE run_id = 2", digestOf(t, "out/manifest.json")))
		v := verified(t, verify.Config{Store: cfg.Store})
		delete(v.Kinds, verify.BadCount) // of the run in the store
		if fmt.Sprint(kinds(v)) != c.want {
			t.Errorf("found %+v, want %s", v.Findings, c.want)
		}
	}
}
