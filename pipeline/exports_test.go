package pipeline_test

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/postgres"
	"github.com/linkforge/bulk/sink/sqlite"
)

// anyCode is a pattern for the codes of all exports.
const anyCode = `\S{1,300}`

// keepAll takes links for what they are, whatever the store cannot keep.
var keepAll = func() (p hygiene.Policy) {
	for kind := range p {
		p[kind] = hygiene.Keep
	}
	return p
}()

// keeping is a run in the workspace demo that keeps legacy codes of any shape, of all links.
func keeping(mode legacy.Mode, store sink.Store) pipeline.Config {
	pattern, err := legacy.ParsePattern(anyCode)
	if err != nil {
		panic(err)
	}
	return pipeline.Config{Workspace: "demo", Legacy: mode, CodePattern: anyCode, Codes: legacy.Rules{Pattern: pattern}, Store: store, Hygiene: &keepAll}
}

// inPostgres opens a store, which it returns with a function that empties it: that is faster than
// another database.
func inPostgres(t *testing.T) (store *postgres.Store, empty func()) {
	t.Helper()
	ctx := context.Background()
	dsn := server.Database(t)
	store, err := postgres.Open(ctx, dsn, postgres.Options{})
	must(t, err)
	_, err = store.Init(ctx)
	must(t, err)
	conn, err := pgx.Connect(ctx, dsn)
	must(t, err)
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(ctx), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return store, func() {
		_, err := conn.Exec(ctx, "TRUNCATE links, links_runs, links_ledger, links_workspaces")
		must(t, err)
	}
}

// exported returns all columns of all links of a store, a line each, but some.
func exported(t *testing.T, store sink.Store, but ...string) (lines []string) {
	t.Helper()
	var names []string
	err := store.Export(context.Background(), "", func(columns []string) error { names = columns; return nil }, func(row [][]byte) error {
		var line string
		for i, cell := range row {
			if cell != nil && !slices.Contains(but, names[i]) {
				line += fmt.Sprintf("%s=%q ", names[i], cell)
			}
		}
		lines = append(lines, line)
		return nil
	})
	must(t, err)
	return lines
}

// An export is a fixture, and the codes that each of its rows has.
type export struct {
	name, content string
	urls          []string
	codes         [][]string
}

func exportFixtures(t *testing.T) (list []export) {
	t.Helper()
	files, err := filepath.Glob("../testdata/exports/*.expected.csv")
	must(t, err)
	for _, file := range files {
		base := strings.TrimSuffix(file, ".expected.csv")
		found, err := filepath.Glob(base + ".*")
		must(t, err)
		if found = slices.DeleteFunc(found, func(name string) bool { return name == file }); len(found) != 1 {
			t.Fatalf("%s is for %q", file, found)
		}
		e := export{name: filepath.Base(found[0]), content: read(t, found[0])}
		for _, r := range records(t, read(t, file)) {
			e.urls, e.codes = append(e.urls, r["url"]), append(e.codes, strings.Fields(r["codes"]))
		}
		list = append(list, e)
	}
	if len(list) < 29 {
		t.Fatalf("%d fixtures", len(list))
	}
	return list
}

// reasonsOfRejects is the closed list of why a row of a fixture may be rejected.
var reasonsOfRejects = []string{legacy.BadCode, outcome.CodeTaken, string(canon.BadHost), string(canon.ControlCharacter)}

// account checks that each row of the export has one outcome for each of its codes, or one if it has
// none, and that each code which is not rejected is its URL's in the store.
func (e *export) account(t *testing.T, files map[string]string, counts sink.Counts, store sink.Store) {
	t.Helper()
	stored := map[string]string{}
	must(t, store.Scan(context.Background(), func(l *sink.Stored) error {
		stored[string(l.Workspace)+" "+string(l.Code)] = string(l.Canonical)
		return nil
	}))
	got := make([][]string, len(e.urls)) // codes of the outcomes
	n := sink.Counts{Read: counts.Read}
	for _, r := range records(t, files["mapping.csv"]) {
		row, _ := strconv.Atoi(r["row"])
		got[row-1] = append(got[row-1], r["legacy_code"])
		canonical, err := canon.Profile{MaxLength: canon.MaxLength}.Append(nil, []byte(e.urls[row-1]))
		if err != nil || r["canonical_url"] != string(canonical) || r["legacy_code"] != "" && r["short_code"] != r["legacy_code"] ||
			stored[r["workspace_id"]+" "+r["short_code"]] != string(canonical) {
			t.Errorf("row %d: %q is stored for %q: %v", row, r["short_code"], stored[r["workspace_id"]+" "+r["short_code"]], r)
		}
		switch r["outcome"] {
		case "created":
			n.Created++
		case "existing":
			n.Existing++
		case "duplicate":
			n.Duplicate++
		}
	}
	for _, r := range records(t, files["rejects.csv"]) {
		row, _ := strconv.Atoi(r["row"])
		code := ""
		if rest, ok := strings.CutPrefix(r["detail"], "the code "); ok {
			quoted, err := strconv.QuotedPrefix(rest)
			must(t, err)
			code, _ = strconv.Unquote(quoted)
		} else if len(e.codes[row-1]) == 1 {
			code = e.codes[row-1][0]
		}
		if got[row-1] = append(got[row-1], code); !slices.Contains(reasonsOfRejects, r["reason"]) {
			t.Errorf("row %d is rejected as %s", row, r["reason"])
		}
		n.Rejected++
	}
	read := int64(0)
	for i, codes := range got {
		want := e.codes[i]
		if len(want) == 0 {
			want = []string{""}
		}
		if want = slices.Sorted(slices.Values(want)); !slices.Equal(slices.Sorted(slices.Values(codes)), want) {
			t.Errorf("row %d has outcomes of %q, want %q", i+1, codes, want)
		}
		read += int64(len(want))
	}
	if n != counts || n.Read != n.Created+n.Existing+n.Duplicate+n.Rejected || n.Read != read {
		t.Errorf("%+v, written %+v, %d rows", counts, n, read)
	}
}

// shuffled returns the export with its rows in another order, or "" if its lines are not its rows.
func (e *export) shuffled() string {
	head, rest, _ := strings.Cut(e.content, "\n")
	lines := strings.SplitAfter(strings.TrimSuffix(rest, "\n"), "\n")
	if all, err := csv.NewReader(strings.NewReader(e.content)).ReadAll(); err != nil || len(all) != len(lines)+1 {
		return ""
	}
	if last := len(lines) - 1; !strings.HasSuffix(lines[last], "\n") {
		lines[last] += "\n"
	}
	before := slices.Clone(lines)
	rnd := rand.New(rand.NewPCG(uint64(len(e.content)), 1))
	for slices.Equal(lines, before) {
		rnd.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	}
	return head + "\n" + strings.Join(lines, "")
}

// Each export of another shortener: every row has an outcome, and every code is in the store byte
// for byte. The same again changes nothing, and the order of the rows does not matter.
func TestExports(t *testing.T) {
	other, empty := inPostgres(t)
	shuffled := 0
	for _, e := range exportFixtures(t) {
		for name, fresh := range map[string]func() sink.Store{
			"sqlite": func() sink.Store { return openStore(t, t.TempDir()) }, "postgres": func() sink.Store { empty(); return other },
		} {
			t.Run(e.name+"/"+name, func(t *testing.T) {
				modes := []legacy.Mode{legacy.Keep}
				if name == "sqlite" {
					modes = append(modes, legacy.Both)
				}
				for _, mode := range modes {
					if e.run(t, mode, fresh) {
						shuffled++
					}
				}
			})
		}
	}
	if shuffled < 40 {
		t.Errorf("%d runs were repeated with the rows shuffled", shuffled)
	}
}

func (e *export) run(t *testing.T, mode legacy.Mode, fresh func() sink.Store) (shuffled bool) {
	t.Helper()
	cfg := keeping(mode, fresh())
	first, result := job(t, cfg, map[string]string{e.name: e.content})
	e.account(t, first, result.Counts, cfg.Store)
	links := exported(t, cfg.Store)
	if n := int64(len(links)); n != result.LinksCreated {
		t.Errorf("%d links are stored, %d were created", n, result.LinksCreated)
	}
	again, repeated := job(t, cfg, map[string]string{e.name: e.content})
	e.account(t, again, repeated.Counts, cfg.Store)
	sameLines(t, exported(t, cfg.Store), links)
	if c, was := repeated.Counts, result.Counts; c.Created != 0 || c.Existing != was.Created || c.Duplicate != was.Duplicate || c.Rejected != was.Rejected || repeated.LinksCreated != 0 {
		t.Errorf("again: %+v, was %+v", c, was)
	}
	if got, want := again["mapping.csv"], strings.ReplaceAll(first["mapping.csv"], ",created,", ",existing,"); got != want {
		t.Errorf("again: %s, was %s", firstDifference(got, want), firstDifference(want, got))
	}
	if _, isFile := cfg.Store.(*sqlite.Store); isFile && mode == legacy.Keep {
		e.back(t, cfg.Store)
	}
	other := e.shuffled()
	if other == "" {
		return false
	}
	cfg.Store = fresh()
	files, _ := job(t, cfg, map[string]string{e.name: other})
	sameLines(t, exported(t, cfg.Store), links)
	sameLines(t, without(t, files["mapping.csv"], "row"), without(t, first["mapping.csv"], "row"))
	return true
}

// back checks that what bulk exports of the links gives the same links again, in another store.
func (e *export) back(t *testing.T, store sink.Store) {
	t.Helper()
	of := []string{"run_id", "created_at", "updated_at", "access_count", "status"} // the last two only if links have rules
	cfg := keeping(legacy.Keep, openStore(t, t.TempDir()))
	cfg.Workspace = ""
	_, result := job(t, cfg, map[string]string{"links.csv": exportTo(t, store, report.NewCSVExport)})
	sameLines(t, exported(t, cfg.Store, of...), exported(t, store, of...))
	if in := readManifest(t).Inputs[0]; in.Profile != "bulk" || result.Counts.Rejected > 0 {
		t.Errorf("profile %s, %+v", in.Profile, result.Counts)
	}
}

func sameLines(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		a, b := strings.Join(got, "\n"), strings.Join(want, "\n")
		t.Errorf("%d lines, want %d: %s, want %s", len(got), len(want), firstDifference(a, b), firstDifference(b, a))
	}
}
