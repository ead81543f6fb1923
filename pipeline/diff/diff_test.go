package diff

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/linkforge/bulk/internal/quick"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { os.Exit(quick.Main(m)) }

// differences returns what Runs finds, in byte order.
func differences(t testing.TB, cfg Config) []string {
	t.Helper()
	var got []string
	if err := Runs(context.Background(), cfg, func(d *Difference) error {
		got = append(got, fmt.Sprintf("%+v", *d))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	return got
}

// What Runs finds is what maps find, in every pair of formats, in any order of
// the rows, in memory or spilled.
func TestDiffMappings(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		var paths [2]string
		fakes := [2]*fake{drawMapping(rt, "a"), drawMapping(rt, "b")}
		for i, f := range fakes {
			format := rapid.SampledFrom(formats).Draw(rt, "format")
			paths[i] = filepath.Join(dir, fmt.Sprint(i))
			f.writeMapping(t, paths[i], format, false, uint64(i))
		}
		cfg := Config{A: paths[0], B: paths[1], spillAt: rapid.SampledFrom([]int64{0, 1}).Draw(rt, "spill")}
		if got, want := differences(t, cfg), expected(fakes[0], fakes[1], false); !slices.Equal(got, want) {
			rt.Fatalf("got  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
		}
	})
}

// The same for runs over the same input, which may have another name, with
// defused formulas or without.
func TestDiffRuns(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		names := [2]string{"-in", rapid.SampledFrom([]string{"-in", "'-in", "other"}).Draw(rt, "name")}
		var paths [2]string
		var fakes [2]*fake
		for i, name := range names {
			f := drawMapping(rt, name)
			f.inputs = []manifest.Input{{Name: manifest.Text(name), SHA256: "same"}}
			fakes[i], paths[i] = f, filepath.Join(dir, fmt.Sprint(i))
			if err := os.RemoveAll(paths[i]); err != nil {
				t.Fatal(err)
			}
			f.writeRun(t, paths[i], rapid.SampledFrom(formats).Draw(rt, "format"), rapid.Bool().Draw(rt, "safe"), uint64(i))
		}
		want := append(expected(fakes[0], fakes[1], true), expectedRejects(fakes[0], fakes[1])...)
		slices.Sort(want)
		if got := differences(t, Config{A: paths[0], B: paths[1], Workers: 3}); !slices.Equal(got, want) {
			rt.Fatalf("got  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
		}
	})
}

// bigMapping has n links, and a duplicate of every tenth.
func bigMapping(n int) *fake {
	f := &fake{profile: "p"}
	for i := range n {
		url := fmt.Appendf(nil, "http://example.com/some/path/of/usual/length/%d?a=1&b=2", i)
		r := report.Row{Source: "in.csv", Row: int64(2*i + 1), Workspace: []byte("demo"), Original: url, Canonical: url,
			Code: fmt.Appendf(nil, "%010d", uint32(i)*2654435761), Outcome: outcome.Created}
		f.rows = append(f.rows, r)
		if i%10 == 0 {
			r.Row++
			r.Outcome = outcome.Duplicate
			f.rows = append(f.rows, r)
		}
	}
	return f
}

// Planted differences in a large mapping are found, and nothing else, spilled or
// not, with one URL in many rows, and one whose link is not its first row.
func TestDiffPlanted(t *testing.T) {
	dir := t.TempDir()
	n := 60_000
	if testing.Short() {
		n = 20_000
	}
	a, b := bigMapping(n), bigMapping(n)
	for i := range n {
		r := b.rows[0]
		r.Row, r.Outcome = int64(200_000+i), outcome.Duplicate
		b.rows = append(b.rows, r)
	}
	b.rows[2].Code, b.rows[3].Code = b.rows[3].Code, b.rows[2].Code
	b.rows[5].Outcome = outcome.Existing
	a.rows[11].Outcome, a.rows[12].Outcome = outcome.Duplicate, outcome.Created
	b.rows[11].Outcome, b.rows[12].Outcome = outcome.Duplicate, outcome.Existing
	a.rows, b.rows = slices.Delete(a.rows, 50, 51), slices.Delete(b.rows, 40, 41)
	a.writeMapping(t, filepath.Join(dir, "a"), report.Arrow, false, 1)
	b.writeMapping(t, filepath.Join(dir, "b"), report.Parquet, false, 2)
	want := expected(a, b, false)
	if len(want) != 9 {
		t.Fatalf("planted %d", len(want))
	}
	for _, spillAt := range []int64{0, 1 << 20} {
		if got := differences(t, Config{A: filepath.Join(dir, "a"), B: filepath.Join(dir, "b"), spillAt: spillAt, TempDir: dir}); !slices.Equal(got, want) {
			t.Errorf("spill at %d: got %d differences: %.3000s", spillAt, len(got), strings.Join(got, "\n"))
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}

// Without the same inputs, rejects are matched by content, whatever the order of
// the columns, and counted.
func TestDiffRejectsByContent(t *testing.T) {
	dir := t.TempDir()
	cells := func(texts ...string) (c [][]byte) {
		for _, text := range texts {
			c = append(c, []byte(text))
		}
		return c
	}
	a := &fake{profile: "p", columns: []string{"url", "note"}, rejects: []outcome.Reject{
		{Source: "a", Row: 1, Reason: "empty", Cells: cells("", "n")}, {Source: "a", Row: 2, Reason: "empty", Cells: cells("", "n")},
		{Source: "a", Row: 3, Reason: "bad_host", Cells: cells("u", "")}, {Source: "a", Row: 4, Reason: "malformed_row", Cells: cells("", ""), Raw: []byte("r")}}}
	b := &fake{profile: "p2", columns: []string{"note", "url"}, rejects: []outcome.Reject{
		{Source: "b", Row: 9, Reason: "empty", Cells: cells("n", "")},
		{Source: "b", Row: 8, Reason: "bad_port", Cells: cells("", "u")}, {Source: "b", Row: 7, Reason: "malformed_row", Cells: cells("", ""), Raw: []byte("r")}}}
	a.writeRun(t, filepath.Join(dir, "a"), report.CSV, false, 1)
	b.writeRun(t, filepath.Join(dir, "b"), report.CSV, false, 1)
	want := []string{
		fmt.Sprintf("%+v", Difference{Change: ManifestChanged, Field: "profile", A: "p", B: "p2"}),
		fmt.Sprintf("%+v", Difference{Change: RejectChanged, Source: "a", Row: 1, Field: "reason", A: "empty"}),
		fmt.Sprintf("%+v", Difference{Change: RejectChanged, Source: "a", Row: 3, Field: "reason", A: "bad_host", B: "bad_port"}),
	}
	slices.Sort(want)
	if got := differences(t, Config{A: filepath.Join(dir, "a"), B: filepath.Join(dir, "b")}); !slices.Equal(got, want) {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
}

// Where the digests agree, mappings and rejects are not read row by row, though each file must
// be there and have its digest. A file that was changed is named, with its side, and is read.
func TestDiffDigests(t *testing.T) {
	dir := t.TempDir()
	write := func(name, mapping, content string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o777); err != nil {
			t.Fatal(err)
		}
		sum := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
		text := fmt.Sprintf(`{"profile":"p","files":[{"name":%q,"sha256":%q,"row_digest":"d"},{"name":"collisions.csv","sha256":%q},{"name":"rejects.csv","sha256":%[3]q}]}`,
			mapping, sum(mapping), sum(""))
		for name, text := range map[string]string{manifest.Name: text, mapping: content, "collisions.csv": "", "rejects.csv": ""} {
			if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	a := write("a", "mapping.csv", "mapping.csv")
	for _, same := range []string{"mapping.csv", "mapping.arrow"} {
		if got := differences(t, Config{A: a, B: write(same, same, same)}); got != nil {
			t.Errorf("%s: %s", same, got)
		}
	}
	for _, c := range []struct {
		mapping string
		want    Difference
	}{
		{"mapping.csv", Difference{Change: FileChanged, Field: "mapping.csv", A: Unchanged, B: Changed}},
		{"mapping.parquet", Difference{Change: FileChanged, Field: "mapping.parquet", B: Changed}},
	} {
		var got []Difference
		err := Runs(t.Context(), Config{A: a, B: write("other "+c.mapping, c.mapping, "changed")}, func(d *Difference) error {
			got = append(got, *d)
			return nil
		})
		var damage *readback.DamageError
		if !slices.Equal(got, []Difference{c.want}) || !errors.As(err, &damage) || !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %+v, %v", c.mapping, got, err)
		}
	}
	b := write("b", "mapping.csv", "mapping.csv")
	os.WriteFile(filepath.Join(b, "collisions.csv"), []byte("more"), 0o666)
	want := fmt.Sprintf("%+v", Difference{Change: FileChanged, Field: "collisions.csv", A: Changed, B: Unchanged})
	if got := differences(t, Config{A: b, B: a}); !slices.Equal(got, []string{want}) {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, lost := range []string{"mapping.csv", "collisions.csv", "rejects.csv"} {
		b := write("b", "mapping.csv", "mapping.csv")
		os.Remove(filepath.Join(b, lost))
		if err := Runs(context.Background(), Config{A: a, B: b}, nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), lost) {
			t.Errorf("without %s: %v", lost, err)
		}
		os.Mkdir(filepath.Join(b, lost), 0o777)
		var usage *columns.UsageError
		if err := Runs(context.Background(), Config{A: a, B: b}, nil); !errors.As(err, &usage) {
			t.Errorf("a folder as %s: %v", lost, err)
		}
		os.Remove(filepath.Join(b, lost))
	}
}

func TestDiffErrors(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	bigMapping(100).writeMapping(t, a, report.CSV, false, 1)
	bigMapping(99).writeMapping(t, b, report.CSV, false, 1)
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stop)
	if err := Runs(ctx, Config{A: a, B: b}, nil); !errors.Is(err, stop) {
		t.Errorf("cancelled: %v", err)
	}
	text, _ := os.ReadFile(b)
	os.WriteFile(b, []byte(strings.Replace(string(text), ",created,", ",made,", 1)), 0o666)
	var cell *readback.CellError
	if err := Runs(context.Background(), Config{A: a, B: b}, nil); !errors.As(err, &cell) {
		t.Errorf("a wrong cell: %v", err)
	}
	if err := Runs(context.Background(), Config{A: a, B: dir}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder without manifest: %v", err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(fifo, os.O_RDWR, 0) // or its reader would wait
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var usage *columns.UsageError
	if err := Runs(context.Background(), Config{A: a, B: fifo}, nil); !errors.As(err, &usage) {
		t.Errorf("a FIFO: %v", err)
	}
	if err := os.Rename(fifo, filepath.Join(dir, manifest.Name)); err != nil {
		t.Fatal(err)
	}
	if err := Runs(context.Background(), Config{A: a, B: dir}, nil); !errors.Is(err, manifest.ErrNotOurs) {
		t.Errorf("a FIFO as manifest: %v", err)
	}
	if err := Runs(context.Background(), Config{A: a, B: b, spillAt: 1, TempDir: filepath.Join(dir, "none")}, nil); err == nil {
		t.Error("no folder to spill to")
	}
}

// The first error of emit, wherever it comes, is that of Runs, which tells nothing more.
func TestDiffEmitFails(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{A: filepath.Join(dir, "a"), B: filepath.Join(dir, "b")}
	a, b := bigMapping(12), bigMapping(12)
	b.profile = "q"
	for i := range b.rows {
		b.rows[i].Code, b.rows[i].Outcome = a.rows[(i+2)%len(a.rows)].Code, outcome.Existing
	}
	b.rows = slices.Delete(b.rows, 5, 6)
	for i, f := range []*fake{a, b} {
		f.inputs = []manifest.Input{{SHA256: "same"}}
		f.rejects = []outcome.Reject{{Row: 100, Reason: fmt.Sprint(i)}, {Row: int64(101 + i)}}
		f.writeRun(t, filepath.Join(dir, string("ab"[i])), report.CSV, false, 1)
	}
	kinds := map[Change]bool{}
	stop := errors.New("stop")
	for n := 1; ; n++ {
		calls := 0
		err := Runs(context.Background(), cfg, func(d *Difference) error {
			kinds[d.Change] = true
			if calls++; calls >= n {
				return stop
			}
			return nil
		})
		if err == nil && calls < n {
			break
		}
		if !errors.Is(err, stop) || calls != n {
			t.Fatalf("emit fails at call %d: %d calls, %v", n, calls, err)
		}
	}
	if len(kinds) != 6 {
		t.Errorf("differences are but %v", kinds)
	}
}

func BenchmarkDiff(b *testing.B) {
	const links = 500_000
	dir := b.TempDir()
	f := bigMapping(links)
	for _, format := range formats {
		x, y := filepath.Join(dir, "x."+string(format)), filepath.Join(dir, "y."+string(format))
		f.writeMapping(b, x, format, false, 1)
		f.writeMapping(b, y, format, false, 2)
		for _, memory := range []int64{0, LeastMemory} {
			b.Run(fmt.Sprintf("rows=%d/format=%s/memory=%dMiB", 2*len(f.rows), format, memory>>20), func(b *testing.B) {
				for b.Loop() {
					if err := Runs(context.Background(), Config{A: x, B: y, Memory: memory}, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(2*len(f.rows))*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// Runs read the same if each of their inputs has the digest of the other's, be it of
// the file or, with a limit, of the records.
func TestSameInputs(t *testing.T) {
	of := func(inputs ...manifest.Input) *manifest.Manifest { return &manifest.Manifest{Inputs: inputs} }
	a, b, some, others := manifest.Input{SHA256: "a"}, manifest.Input{SHA256: "b"}, manifest.Input{RecordsSHA256: "a"}, manifest.Input{RecordsSHA256: "b"}
	for _, tt := range []struct {
		a, b *manifest.Manifest
		want bool
	}{
		{of(a), of(a), true}, {of(a, b), of(a, b), true}, {of(some), of(some), true},
		{of(a), of(b), false}, {of(a, b), of(b, a), false}, {of(a, b), of(a), false}, {of(some), of(others), false}, {of(some), of(a), false},
		{of(manifest.Input{}), of(manifest.Input{}), false}, {of(), of(), false}, {of(a), nil, false}, {nil, of(a), false},
	} {
		if got := sameInputs(tt.a, tt.b); got != tt.want {
			t.Errorf("%+v and %+v: %t", tt.a, tt.b, got)
		}
	}
}
