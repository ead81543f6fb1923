package pipeline_test

import (
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/sqlite"
	_ "modernc.org/sqlite"
)

var asOf = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)

// reports are what must be the same between equal runs.
var reports = []string{"mapping.csv", "rejects.csv", "collisions.csv", "manifest.json"}

// openStore opens the SQLite store in a directory.
func openStore(t *testing.T, dir string) sink.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), filepath.Join(dir, "links.db"))
	must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// job runs a configuration on inputs that are written to a new directory, which is
// the working directory while it runs, so that the names of the inputs are equal
// between runs. It returns the reports by name; all rows may be rejects.
func job(t *testing.T, cfg pipeline.Config, inputs map[string]string) (map[string]string, *pipeline.Result) {
	t.Helper()
	result := run(t, cfg, inputs)
	if result.Out != "out" {
		return map[string]string{"rejects.csv": read(t, filepath.Join(result.Out, "rejects.csv"))}, result
	}
	return readReports(t), result
}

// run is job for a mapping of any format.
func run(t *testing.T, cfg pipeline.Config, inputs map[string]string) *pipeline.Result {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range inputs {
		write(t, name, content)
		cfg.Inputs = append(cfg.Inputs, name)
	}
	cfg.Out, cfg.AllowEmpty = "out", true
	if cfg.AsOf.IsZero() {
		cfg.AsOf = asOf
	}
	result, err := pipeline.Run(context.Background(), cfg)
	if all, ok := errors.AsType[*pipeline.TooManyRejectsError](err); ok && all.First != "" {
		err = nil
	}
	must(t, err)
	return result
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o666))
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

func readReports(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range reports {
		files[name] = read(t, filepath.Join("out", name))
	}
	return files
}

func sameReports(t *testing.T, got, want map[string]string, names ...string) {
	t.Helper()
	for _, name := range names {
		if got[name] != want[name] {
			t.Fatalf("%s differs:\n%s\n--- from\n%s", name, firstDifference(got[name], want[name]), firstDifference(want[name], got[name]))
		}
	}
}

// firstDifference returns the first line of a that is not that of b.
func firstDifference(a, b string) string {
	linesA, linesB := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i, line := range linesA {
		if i >= len(linesB) || line != linesB[i] {
			return fmt.Sprintf("line %d: %s", i+1, line)
		}
	}
	return "(nothing more)"
}

// spellings of one URL and of what is refused; %d is a number.
var spellings = []string{
	"http://example.com/p/%d?a=1&b=2", "HTTP://Example.com:80/p//%d/?b=2&a=1#x", " http://example.com/./p/%d?b=2&a=1",
	"http://example.com/p/%d?b=2&a=1", "https://example.org/%d", "https://EXAMPLE.org/q/../%d", "ftp://example.com/%d",
	"http://example.com:99999/%d", "http://bücher.example/%d", "https://example.org/caf\xe9/%d",
}

// rows makes n rows "url,team,note" with duplicates, bad rows and blank cells.
func rows(seed uint64, n int) []string {
	rnd := rand.New(rand.NewPCG(seed, 7))
	list := make([]string, n)
	for i := range list {
		url := fmt.Sprintf(spellings[rnd.IntN(len(spellings))], rnd.IntN(n/3+1))
		team := []string{"red", "blue", "", "grün", "a|b"}[min(rnd.IntN(30), 4*rnd.IntN(20)%5)]
		note := []string{"", "x", `"two` + "\n" + `lines"`, `"say ""hi"""`}[rnd.IntN(4)]
		list[i] = url + "," + team + "," + note
		switch rnd.IntN(100) {
		case 0:
			list[i] = "ragged"
		case 1:
			list[i] = "," + team + ","
		case 2:
			list[i] = `bare"quote,x,y`
		}
	}
	return list
}

func csvFile(rows []string) string { return "url,team,note\n" + strings.Join(rows, "\n") + "\n" }

// base is the configuration of the tests of equality.
func base(codeLength int) pipeline.Config {
	return pipeline.Config{
		Workspace: "demo", Source: source.Options{Choice: columns.Choice{WorkspaceColumn: "team"}}, CodeLength: codeLength,
		BaseURL: "https://sho.rt", Version: "test",
	}
}

// without returns the records of a CSV without some columns.
func without(t *testing.T, text string, columns ...string) []string {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	must(t, err)
	var lines []string
	for _, record := range records {
		var kept []string
		for i, cell := range record {
			if !slices.Contains(columns, records[0][i]) {
				kept = append(kept, fmt.Sprintf("%q", cell))
			}
		}
		lines = append(lines, strings.Join(kept, ","))
	}
	return lines
}

// records returns the records of a CSV by column name.
func records(t *testing.T, text string) []map[string]string {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	must(t, err)
	if len(lines) == 0 {
		return nil
	}
	var list []map[string]string
	for _, line := range lines[1:] {
		r := map[string]string{}
		for i, cell := range line {
			r[lines[0][i]] = cell
		}
		list = append(list, r)
	}
	return list
}

// dump returns the links of the store in a directory, a line each. No session may
// be open.
func dump(t *testing.T, dir string) []string {
	t.Helper()
	path := filepath.Join(dir, "links.db")
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	db, err := sql.Open("sqlite", path)
	must(t, err)
	defer db.Close()
	rows, err := db.Query(`SELECT workspace_id || '|' || short_code || '|' || hex(url_key) || '|' || canonical_url || '|' ||
		coalesce(original_url, '(same)') || '|' || run_id || '|' || created_at || '|' || updated_at
		FROM links ORDER BY workspace_id, short_code`)
	must(t, err)
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var line string
		must(t, rows.Scan(&line))
		lines = append(lines, line)
	}
	must(t, rows.Err())
	return lines
}

func readManifest(t *testing.T) *manifest.Manifest {
	t.Helper()
	m, err := manifest.Read([]byte(read(t, "out/manifest.json")))
	must(t, err)
	return m
}
