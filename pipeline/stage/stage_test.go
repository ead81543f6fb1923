package stage_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/stage"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/sqlite"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"
)

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t rapid.TB, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	must(t, err)
	return data
}

// A set is inputs and what is done with them.
type set struct {
	cfg  pipeline.Config
	rows int64 // of a shard

	empty bool // do adds shards without rows

	links []string   // exports
	store sink.Store // that has them; nil: there is none

	planned *stage.Job // by do
}

// given returns a secret for any scheme.
func given(secret codegen.Secret) func(string) (codegen.Secret, error) {
	return func(string) (codegen.Secret, error) { return secret, nil }
}

// open opens the plan of a set.
func (s *set) open(t rapid.TB) *stage.Job {
	t.Helper()
	j, err := stage.Open(s.cfg.Out, stage.Options{Version: s.cfg.Version, Secret: given(s.cfg.Scheme.Secret), Workers: 2})
	must(t, err)
	return j
}

// do does all tasks but Commit, each as the given function has it.
func (s *set) do(t rapid.TB, each func(stage string, n int, task func(j *stage.Job) error)) {
	t.Helper()
	ctx := context.Background()
	plan, err := pipeline.PlanStages(ctx, s.cfg, s.links, s.rows)
	must(t, err)
	s.planned = plan
	if s.empty {
		addEmptyShards(t, s.cfg.Out)
		plan = s.open(t)
	}
	for n := range plan.MapTasks() {
		each("map", n, func(j *stage.Job) error { return j.Map(ctx, n) })
	}
	for n := range plan.Shards() {
		each("reduce", n, func(j *stage.Job) error { return j.Reduce(ctx, n) })
	}
	each("settle", 0, func(j *stage.Job) error { return j.Settle(ctx) })
	tasks := strings.Fields(string(read(t, plan.TasksOf("apply"))))
	for i := 4; i < len(tasks); i += 5 { // bulk stage apply OUT N
		var n int
		_, err := fmt.Sscan(tasks[i], &n)
		must(t, err)
		each("apply", n, func(j *stage.Job) error { return j.Apply(ctx, n) })
	}
}

// addEmptyShards adds a shard without rows to a plan before each but the first one: rows of a URL may be on
// both sides of it.
func addEmptyShards(t rapid.TB, out string) {
	t.Helper()
	name := filepath.Join(out, "stage", "plan.json")
	var plan stage.Plan
	must(t, json.Unmarshal(read(t, out, "stage", "plan.json"), &plan))
	var borders []stage.Border
	for _, b := range plan.Borders {
		borders = append(borders, b, b)
	}
	plan.Borders = borders
	data, err := json.Marshal(&plan)
	must(t, errors.Join(err, os.WriteFile(name, data, 0o666)))
}

// compare compares the output of the stages with that of a run.
func (s *set) compare(t rapid.TB, run string) {
	t.Helper()
	out := s.cfg.Out
	m, _, err := manifest.ReadDir(out)
	must(t, err)
	want, _, err := manifest.ReadDir(run)
	must(t, err)
	var mapping []byte
	for i, f := range m.Files {
		if !strings.HasPrefix(f.Name, "mapping/") {
			continue
		}
		part := read(t, out, f.Name)
		header := bytes.IndexByte(part, '\n') + 1
		if i > 0 {
			part = part[header:]
		}
		mapping = append(mapping, part...)
		sum, err := manifest.FileSHA256(context.Background(), filepath.Join(out, f.Name))
		must(t, err)
		if sum != f.SHA256 {
			t.Errorf("%s has another digest than the manifest says", f.Name)
		}
	}
	for name, got := range map[string][]byte{"mapping.csv": mapping, "rejects.csv": read(t, out, "rejects.csv"), "collisions.csv": read(t, out, "collisions.csv")} {
		if want := read(t, run, name); !bytes.Equal(got, want) {
			t.Errorf("%s of %d bytes is not that of the run, of %d bytes:\n%s", name, len(got), len(want), difference(got, want))
		}
	}
	if m.RowDigest != want.Files[0].RowDigest {
		t.Errorf("row digest %s, want %s", m.RowDigest, want.Files[0].RowDigest)
	}
	sameButFiles(t, m, want)
}

// sameButFiles compares what manifests say of all but their files.
func sameButFiles(t rapid.TB, got, want *manifest.Manifest) {
	t.Helper()
	var texts [2]bytes.Buffer
	for i, m := range []*manifest.Manifest{got, want} {
		rest := *m
		rest.Files, rest.RowDigest, rest.Options = nil, "", maps.Clone(m.Options)
		delete(rest.Options, "dry_run")
		must(t, manifest.Write(&texts[i], &rest))
	}
	if got, want := texts[0].String(), texts[1].String(); got != want {
		t.Errorf("manifest: %s", difference([]byte(got), []byte(want)))
	}
}

// difference shows the first line that differs.
func difference(got, want []byte) string {
	g, w := bytes.SplitAfter(got, []byte("\n")), bytes.SplitAfter(want, []byte("\n"))
	for i := range g {
		if i >= len(w) || !bytes.Equal(g[i], w[i]) {
			return fmt.Sprintf("line %d: %q, want %q", i+1, g[i:min(i+1, len(g))], w[min(i, len(w)):min(i+1, len(w))])
		}
	}
	return "lines are missing at the end"
}

// tempDir returns a new directory.
func tempDir(t rapid.TB) string {
	dir, err := os.MkdirTemp("", "bulk-stage-*")
	must(t, err)
	t.(interface{ Cleanup(func()) }).Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

var secret = codegen.NewSecret([]byte("a secret of sixteen bytes"))

// small plans a set of one small input.
func small(t *testing.T) *set {
	dir := t.TempDir()
	name := filepath.Join(dir, "in.csv")
	var b strings.Builder
	b.WriteString("url\n")
	for n := range 100 {
		fmt.Fprintf(&b, "https://e.example/%d\n", n)
	}
	must(t, os.WriteFile(name, []byte(b.String()), 0o666))
	s := &set{rows: 30}
	s.cfg.Inputs, s.cfg.Workspace, s.cfg.Version, s.cfg.Out = []string{name}, "demo", "test", filepath.Join(dir, "out")
	_, err := pipeline.PlanStages(context.Background(), s.cfg, nil, s.rows)
	must(t, err)
	return s
}

// draw returns a random set: few URLs many times, so that rows of one URL and URLs of one code meet at
// the borders of shards.
func draw(t *rapid.T, dir string) set {
	seed := rapid.Uint64().Draw(t, "seed")
	rnd := rand.New(rand.NewPCG(seed, 1))
	inputs, workspaces := rapid.IntRange(1, 3).Draw(t, "inputs"), rapid.SampledFrom([]string{"", "a", "abc"}).Draw(t, "workspaces")
	rows, urls := rapid.SampledFrom([]int{0, 1, 30, 60, 200}).Draw(t, "rows"), rapid.SampledFrom([]int{1, 5, 300, 0, 0, 0}).Draw(t, "urls")
	hot := rapid.SampledFrom([]int{0, 0, 2, 10}).Draw(t, "hot")
	s := set{rows: int64(rapid.SampledFrom([]int{3, 20, 100}).Draw(t, "shard"))}
	s.rows = max(s.rows, int64(inputs*rows/40)) // many shards take long, and show nothing else
	s.empty = rapid.Bool().Draw(t, "empty shards")
	s.cfg.CodeLength = rapid.SampledFrom([]int{3, 3, 10, 12}).Draw(t, "length")
	s.cfg.Scheme.Name = rapid.SampledFrom([]string{"sha256-base58", "sha256-base32", "keyed-base62", "keyed-base32"}).Draw(t, "scheme")
	if strings.HasPrefix(s.cfg.Scheme.Name, "keyed") {
		s.cfg.Scheme.Secret = secret
		s.cfg.CodeLength = max(s.cfg.CodeLength, 4)
	}
	text := false
	few := rivals(t, &s.cfg, cmp.Or(workspaces, "demo")[:1])
	for i := range inputs {
		format := rapid.SampledFrom([]string{"csv", "csv", "txt", "parquet", "arrow", "arrows"}).Draw(t, "format")
		var b strings.Builder
		b.WriteString("note,url,team\n")
		if format == "txt" {
			b.Reset()
		}
		text = text || format == "txt"
		for range rows {
			n := 0
			if urls > 0 {
				n = rnd.IntN(urls)
			} else {
				n = few[rnd.IntN(len(few))]
			}
			if hot > 0 && rnd.IntN(hot) == 0 {
				n = 0
			}
			u := fmt.Sprintf("https://e.example/%d", n)
			switch of := rnd.IntN(12); {
			case rows == 1 && of < 6: // of all rows, the run is refused
				u = "ftp://x"
			case of == 0:
				u = strings.ToUpper(u[:19]) + u[19:]
			case of == 1:
				u += "#top"
			case of == 2:
				u = "ftp://x"
			}
			team := ""
			if workspaces != "" {
				team = workspaces[rnd.IntN(len(workspaces)):][:1]
			}
			switch {
			case format == "txt":
				fmt.Fprintln(&b, u)
			case format == "csv" && rnd.IntN(50) == 0:
				fmt.Fprintln(&b, "\"broken", u)
			default:
				fmt.Fprintf(&b, "n%d,%s,%s\n", rnd.IntN(3), u, team)
			}
		}
		name := filepath.Join(dir, fmt.Sprintf("in-%d.%s", i, format))
		writeInput(t, name, b.String())
		s.cfg.Inputs = append(s.cfg.Inputs, name)
	}
	s.cfg.Workspace = "demo"
	if workspaces != "" && !text {
		s.cfg.Source.WorkspaceColumn = "team"
	}
	s.cfg.MaxRetries = rapid.SampledFrom([]int{0, 1, 2, pipeline.NoRetries}).Draw(t, "retries")
	s.cfg.NoCarry, s.cfg.ExcelSafe = rapid.Bool().Draw(t, "no carry"), rapid.Bool().Draw(t, "excel safe")
	s.cfg.AllowEmpty, s.cfg.Version, s.cfg.Workers, s.cfg.Out = true, "test", 2, filepath.Join(dir, "out")
	return s
}

// writeInput writes a CSV of three columns in the format of a name: Parquet in row groups, Arrow in record
// batches of ten rows.
func writeInput(t rapid.TB, name, csv string) {
	t.Helper()
	type row struct {
		Note string  `parquet:"note"`
		URL  string  `parquet:"url"`
		Team *string `parquet:"team,optional"`
	}
	var rows []row
	for line := range strings.Lines(csv) {
		if c := strings.Split(strings.TrimSuffix(line, "\n"), ","); len(c) == 3 && c[1] != "url" {
			r := row{c[0], c[1], &c[2]}
			if c[2] == "" {
				r.Team = nil
			}
			rows = append(rows, r)
		}
	}
	f, err := os.Create(name)
	must(t, err)
	switch format := filepath.Ext(name); format {
	case ".parquet":
		must(t, parquet.Write(f, rows, parquet.MaxRowsPerRowGroup(10)))
	case ".arrow", ".arrows":
		field := func(name string) arrow.Field {
			return arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true}
		}
		schema := arrow.NewSchema([]arrow.Field{field("note"), field("url"), field("team")}, nil)
		var w interface {
			Write(arrow.Record) error
			Close() error
		} = ipc.NewWriter(f, ipc.WithSchema(schema))
		if format == ".arrow" {
			w, err = ipc.NewFileWriter(f, ipc.WithSchema(schema))
			must(t, err)
		}
		build := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		column := func(i int) *array.StringBuilder { return build.Field(i).(*array.StringBuilder) }
		for part := range slices.Chunk(rows, 10) {
			for _, r := range part {
				column(0).Append(r.Note)
				column(1).Append(r.URL)
				if r.Team == nil {
					column(2).AppendNull()
				} else {
					column(2).Append(*r.Team)
				}
			}
			must(t, w.Write(build.NewRecord()))
		}
		must(t, w.Close())
	default:
		_, err = f.WriteString(csv)
		must(t, err)
	}
	must(t, f.Close())
}

// rivals returns numbers of URLs that want codes of each other, as far as codes are short.
func rivals(t rapid.TB, cfg *pipeline.Config, workspace string) []int {
	t.Helper()
	of := fmt.Sprint(cfg.Scheme.Name, cfg.CodeLength, workspace)
	if _, ok := rivalsOf[of]; !ok {
		rivalsOf[of] = findRivals(t, cfg, workspace)
	}
	return rivalsOf[of]
}

var rivalsOf = map[string][]int{} // by scheme, length of codes and workspace

func findRivals(t rapid.TB, cfg *pipeline.Config, workspace string) []int {
	if workspace == "d" {
		workspace = "demo"
	}
	maker, _, err := cfg.Scheme.Make(cfg.CodeLength)
	must(t, err)
	codeOf := func(n, salt int) string {
		u := fmt.Appendf(nil, "https://e.example/%d", n)
		input := codegen.AppendInput(nil, u, []byte(workspace), salt)
		h := codegen.Sum(input)
		if salt == 0 {
			h, _ = maker.First(h, u, []byte(workspace), nil, 0)
		} else {
			h = maker.Sum(input)
		}
		return string(maker.AppendCode(nil, h))
	}
	first := map[string]int{}
	var few, losers []int
	for n := range 6000 {
		code := codeOf(n, 0)
		if other, ok := first[code]; !ok {
			first[code] = n
		} else if losers = append(losers, n); len(few) < 12 {
			few = append(few, other, n)
		}
	}
	for _, n := range losers { // which turn a URL away that nobody contested
		if third, ok := first[codeOf(n, 1)]; ok && len(few) < 20 {
			few = append(few, first[codeOf(n, 0)], n, third, third)
		}
	}
	return append(few, 0)
}

// runOnce does the same with Run; false: it may store nothing.
func (s *set) runOnce(t rapid.TB, job *stage.Job) (dir string, ok bool) {
	t.Helper()
	cfg := s.cfg
	cfg.Out = s.cfg.Out + "-run"
	cfg.AsOf, cfg.Store = job.AsOf(), s.store
	cfg.DryRun = s.store != nil
	result, err := pipeline.Run(context.Background(), cfg)
	if errors.As(err, new(*pipeline.TooManyRejectsError)) {
		return result.Out, false
	}
	must(t, err)
	return result.Out, true
}

var drawnURL = regexp.MustCompile(`https://e\.example/\d+`)

// withLinks gives a set a store that has links of some of its URLs, of others, and aliases, and exports
// of these.
func (s *set) withLinks(t *rapid.T, dir string) {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(dir, "links.db"))
	must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "links"), 3))
	var b strings.Builder
	b.WriteString("url,team,code\n")
	for _, input := range s.cfg.Inputs {
		for line := range strings.Lines(string(read(t, input))) {
			if u := drawnURL.FindString(line); u != "" && rnd.IntN(3) == 0 {
				team := ""
				if s.cfg.Source.WorkspaceColumn != "" {
					team = string("abcx"[rnd.IntN(4)])
				}
				fmt.Fprintf(&b, "%s,%s,\n", u, team)
				if rnd.IntN(4) == 0 {
					fmt.Fprintf(&b, "%s/more,%s,\n", u, team)
				}
				if rnd.IntN(4) == 0 {
					fmt.Fprintf(&b, "%s,%s,old-%d\n", u, team, rnd.IntN(1000))
				}
			}
		}
	}
	cfg := s.cfg
	cfg.Inputs, cfg.Out, cfg.Store, cfg.Legacy = []string{filepath.Join(dir, "old.csv")}, filepath.Join(dir, "old"), store, rapid.SampledFrom([]legacy.Mode{legacy.Off, legacy.Keep, legacy.Both}).Draw(t, "old codes")
	must(t, os.WriteFile(cfg.Inputs[0], []byte(b.String()), 0o666))
	if cfg.Legacy != legacy.Off {
		cfg.Source.CodeColumn = "code"
	}
	if s.cfg.Source.WorkspaceColumn == "" {
		cfg.NoCarry = true
	}
	_, err = pipeline.Run(ctx, cfg)
	if errors.As(err, new(*pipeline.TooManyRejectsError)) || b.Len() < 20 {
		return
	}
	must(t, err)
	s.store = store
	for _, w := range []string{"demo", "a", "b", "c", "x"} {
		s.export(t, store, w, filepath.Join(dir, "links-"+w+rapid.SampledFrom([]string{".csv", ".parquet"}).Draw(t, "format")))
	}
}

// export exports the links of a workspace, if it has any.
func (s *set) export(t rapid.TB, store sink.Store, workspace, name string) {
	f, err := os.Create(name)
	must(t, err)
	var told manifest.Links
	must(t, pipeline.ExportLinks(context.Background(), store, workspace, &told, func(columns []string) report.Export {
		if strings.HasSuffix(name, ".csv") {
			return report.NewCSVExport(f, columns)
		}
		return report.NewParquetExport(f, columns)
	}))
	must(t, f.Close())
	if told.Rows == 0 {
		return
	}
	if strings.HasSuffix(name, ".parquet") {
		inGroups(t, name, max(10, int(told.Rows/5)))
	}
	d, err := os.Create(manifest.LinksNameOf(name))
	must(t, err)
	must(t, errors.Join(manifest.WriteLinks(d, &told), d.Close()))
	s.links = append(s.links, name)
}

// inGroups writes a Parquet file again, in row groups of so many rows.
func inGroups(t rapid.TB, name string, size int) {
	t.Helper()
	data := read(t, name)
	from, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	must(t, err)
	var b bytes.Buffer
	w := parquet.NewWriter(&b, from.Schema())
	rows := make([]parquet.Row, size)
	for _, group := range from.RowGroups() {
		r := group.Rows()
		for n := 1; n > 0; {
			n, _ = r.ReadRows(rows)
			_, err := w.WriteRows(rows[:n])
			must(t, errors.Join(err, w.Flush()))
		}
		must(t, r.Close())
	}
	must(t, errors.Join(w.Close(), os.WriteFile(name, b.Bytes(), 0o666)))
}

// Whatever the inputs, and the links that exist, the stages write what a run writes. (Without links, TestAttempts
// shows it.)
func TestSameAsRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir := tempDir(t)
		s := draw(t, dir)
		s.withLinks(t, dir)
		s.do(t, func(_ string, _ int, task func(j *stage.Job) error) { must(t, task(s.open(t))) })
		s.commitAndCompare(t)
	})
}

func (s *set) commitAndCompare(t rapid.TB) {
	t.Helper()
	job := s.open(t)
	_, err := pipeline.CommitStages(context.Background(), job)
	run, ok := s.runOnce(t, job)
	if refused, is := errors.AsType[*pipeline.TooManyRejectsError](err); is {
		if ok {
			t.Fatal("refused, unlike the run:", err)
		}
		if got, want := read(t, refused.Out, "rejects.csv"), read(t, run, "rejects.csv"); !bytes.Equal(got, want) {
			t.Error("rejects.csv:", difference(got, want))
		}
		return
	}
	must(t, err)
	if !ok {
		t.Fatal("the run was refused, and the stages were not")
	}
	s.compare(t, run)
}
