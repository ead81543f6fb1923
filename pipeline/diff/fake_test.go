package diff

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/report"
	"pgregory.net/rapid"
)

// A fake is a run, or a mapping, as the tests make it up.
type fake struct {
	rows    []report.Row
	rejects []outcome.Reject
	columns []string
	inputs  []manifest.Input
	profile string
}

var formats = []report.Format{report.CSV, report.Parquet, report.Arrow}

// writeMapping writes the rows in a random order.
func (f *fake) writeMapping(t testing.TB, path string, format report.Format, excelSafe bool, seed uint64) {
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	m, err := report.NewMapping(file, format, report.MappingOptions{BaseURL: fmt.Sprintf("http://s%d.example/", seed), ExcelSafe: excelSafe})
	if err != nil {
		t.Fatal(err)
	}
	rows := slices.Clone(f.rows)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	for len(rows) > 0 {
		n := min(len(rows), 4096)
		b := m.Block()
		for i := range rows[:n] {
			b.Append(&rows[i])
		}
		rows = rows[n:]
		if err := m.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}

// writeRun writes an output folder.
func (f *fake) writeRun(t testing.TB, dir string, format report.Format, excelSafe bool, seed uint64) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	name := "mapping." + string(format)
	f.writeMapping(t, filepath.Join(dir, name), format, excelSafe, seed)
	rejects, err := os.Create(filepath.Join(dir, "rejects.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer rejects.Close()
	w := report.NewRejects(rejects, f.columns)
	for i := range f.rejects {
		w.Append(&f.rejects[i])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, manifest.Name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var counts manifest.Counts
	for _, r := range f.rows {
		if r.Outcome == outcome.Created {
			counts.Created++
		}
	}
	if err := manifest.Write(file, &manifest.Manifest{
		Profile: f.profile, Counts: counts, Inputs: f.inputs, Options: manifest.Options{"excel_safe": excelSafe, "report_format": string(format)},
		Files: []manifest.FileSum{sumOf(t, dir, name), sumOf(t, dir, "rejects.csv")},
	}); err != nil {
		t.Fatal(err)
	}
}

// sumOf returns what a manifest says of a file; the mapping may have another digest with the
// same rows.
func sumOf(t testing.TB, dir, name string) manifest.FileSum {
	sum, err := manifest.FileSHA256(t.Context(), filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return manifest.FileSum{Name: name, SHA256: sum}
}

// drawMapping makes up a mapping in which codes of a workspace are distinct. The
// rows are those of one input, up to a number; some rows are rejects.
func drawMapping(t *rapid.T, source string) *fake {
	f := &fake{columns: []string{"url", "note"}, profile: "p"}
	type link struct{ workspace, url string }
	codes := map[link]string{}
	for row := range rapid.Int64Range(0, 12).Draw(t, "rows") {
		if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
			f.rejects = append(f.rejects, outcome.Reject{Source: source, Row: row + 1, Reason: rapid.SampledFrom([]string{"empty", "bad_host"}).Draw(t, "reason"),
				Cells: [][]byte{[]byte(rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "cell")), nil}})
			continue
		}
		l := link{rapid.SampledFrom([]string{"w", "=w", "'=w", "é"}).Draw(t, "workspace"), rapid.SampledFrom([]string{"http://a/", "http://b/", "http://c/"}).Draw(t, "url")}
		as := outcome.Duplicate
		if codes[l] == "" {
			as = outcome.Outcome(rapid.IntRange(0, 1).Draw(t, "outcome"))
			code := rapid.SampledFrom([]string{"1", "2", "3", "-1", "'-1"}).Filter(func(code string) bool {
				for other, taken := range codes {
					if other.workspace == l.workspace && taken == code {
						return false
					}
				}
				return true
			}).Draw(t, "code")
			codes[l] = code
		}
		f.rows = append(f.rows, report.Row{Source: source, Row: row + 1, Workspace: []byte(l.workspace), Original: []byte(l.url + "/"),
			Canonical: []byte(l.url), Code: []byte(codes[l]), Outcome: as})
	}
	return f
}

// A table is a mapping by what must be unique in it.
type table struct {
	link, outcome map[[2]string]string // code and outcome, by workspace and URL
	slot          map[[2]string]string // URL, by workspace and code
	row           map[int64]report.Row
	rows          map[[2]string]int // number of them, by workspace and URL
}

func tableOf(f *fake) table {
	t := table{map[[2]string]string{}, map[[2]string]string{}, map[[2]string]string{}, map[int64]report.Row{}, map[[2]string]int{}}
	for _, r := range f.rows {
		w := string(r.Workspace)
		t.link[[2]string{w, string(r.Canonical)}] = string(r.Code)
		t.slot[[2]string{w, string(r.Code)}] = string(r.Canonical)
		if r.Outcome != outcome.Duplicate {
			t.outcome[[2]string{w, string(r.Canonical)}] = r.Outcome.String()
		}
		t.row[r.Row] = r
		t.rows[[2]string{w, string(r.Canonical)}]++
	}
	return t
}

// expected compares two mappings with maps; same: row by row.
func expected(a, b *fake, same bool) (want []string) {
	add := func(d Difference) { want = append(want, fmt.Sprintf("%+v", d)) }
	x, y := tableOf(a), tableOf(b)
	all := maps.Clone(x.link)
	maps.Copy(all, y.link)
	for k := range all {
		if n, m := x.rows[k], y.rows[k]; !same && n > 0 && m > 0 && n != m {
			change := RowAdded
			if m < n {
				change = RowRemoved
			}
			add(Difference{change, manifest.Text(k[0]), manifest.Text(k[1]), manifest.Text(y.link[k]), "", 0, "rows", manifest.Text(fmt.Sprint(n)), manifest.Text(fmt.Sprint(m))})
		}
		d := Difference{Workspace: manifest.Text(k[0]), Canonical: manifest.Text(k[1]), Field: "short_code", A: manifest.Text(x.link[k]), B: manifest.Text(y.link[k])}
		switch {
		case d.A == "":
			d.Change = Added
		case d.B == "":
			d.Change = Removed
		case d.A != d.B:
			d.Change = Remapped
		case !same && x.outcome[k] != y.outcome[k]:
			d = Difference{OutcomeChanged, d.Workspace, d.Canonical, d.A, "", 0, "outcome", manifest.Text(x.outcome[k]), manifest.Text(y.outcome[k])}
		default:
			continue
		}
		add(d)
	}
	for k, url := range x.slot {
		if other := y.slot[k]; other != "" && other != url {
			add(Difference{Change: Moved, Workspace: manifest.Text(k[0]), Code: manifest.Text(k[1]), Field: "canonical_url", A: manifest.Text(url), B: manifest.Text(other)})
		}
	}
	for n, r := range x.row {
		o, ok := y.row[n]
		if !same || !ok {
			continue
		}
		d := Difference{Change: RowRemapped, Workspace: manifest.Text(o.Workspace), Canonical: manifest.Text(o.Canonical), Source: manifest.Text(r.Source), Row: n}
		if string(o.Canonical) != string(r.Canonical) {
			d.Field, d.A, d.B = "canonical_url", manifest.Text(r.Canonical), manifest.Text(o.Canonical)
			add(d)
		} else if string(o.Workspace) != string(r.Workspace) {
			d.Field, d.A, d.B = "workspace_id", manifest.Text(r.Workspace), manifest.Text(o.Workspace)
			add(d)
		}
		if string(o.Workspace) == string(r.Workspace) && string(o.Canonical) == string(r.Canonical) && o.Outcome != r.Outcome {
			add(Difference{OutcomeChanged, manifest.Text(r.Workspace), manifest.Text(r.Canonical), manifest.Text(o.Code), manifest.Text(r.Source), n,
				"outcome", manifest.Text(r.Outcome.String()), manifest.Text(o.Outcome.String())})
		}
	}
	slices.Sort(want)
	return want
}

// expectedRejects compares the rejects of runs over the same inputs.
func expectedRejects(a, b *fake) (want []string) {
	reasons := func(f *fake) map[int64]string {
		m := map[int64]string{}
		for _, r := range f.rejects {
			m[r.Row] = r.Reason
		}
		return m
	}
	x, y := reasons(a), reasons(b)
	all := maps.Clone(x)
	maps.Copy(all, y)
	for row := range all {
		ra, rb := x[row], y[row]
		if ra == rb {
			continue
		}
		source := "-in"
		if ra == "" {
			ra, source = Accepted, b.rejects[0].Source
		} else if rb == "" {
			rb = Accepted
		}
		want = append(want, fmt.Sprintf("%+v", Difference{Change: RejectChanged, Source: manifest.Text(source), Row: row, Field: "reason", A: manifest.Text(ra), B: manifest.Text(rb)}))
	}
	return want
}
