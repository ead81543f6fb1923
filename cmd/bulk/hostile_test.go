package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/linkforge/bulk/pipeline/manifest"
)

// raced says that the race detector is on, whose memory is its own.
var raced bool

// mostMemory bounds what a command may take, in bytes: far above the --memory of
// these tests, and below what their inputs stand for.
const mostMemory = 400 << 20

// A child is the command as another process.
type child struct {
	*exec.Cmd
	out bytes.Buffer // what it printed
}

func newChild(t *testing.T, dir string, args ...string) *child {
	t.Helper()
	c := &child{Cmd: process(t, args...)}
	c.Dir, c.Stdout, c.Stderr = dir, &c.out, &c.out
	c.Env = append(c.Env, "TMPDIR="+dir)
	// The kernel's peak of a process begins with that of who started it, so with no
	// more than this one has now, without what earlier tests left behind. (Some stays for
	// good: cobra keeps each command of this process. Far below the bound it is no harm, and
	// to look for it before each child costs more than the child does.)
	var memory runtime.MemStats
	if runtime.ReadMemStats(&memory); memory.HeapSys-memory.HeapReleased > mostMemory*5/8 {
		debug.FreeOSMemory()
	}
	os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	return c
}

// ends waits for the child, which must exit with a code, print something, and
// have kept within its memory.
func (c *child) ends(t *testing.T, code int, message string) {
	t.Helper()
	var exit *exec.ExitError
	if err := c.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := c.ProcessState.ExitCode(); got != code || !strings.Contains(c.out.String(), message) {
		t.Errorf("exit code %d, want %d, and in what it printed %q:\n%.2000s", got, code, message, c.out.String())
	}
	usage := c.ProcessState.SysUsage().(*syscall.Rusage)
	if most := usage.Maxrss << 10; runtime.GOOS == "linux" && !raced && most > mostMemory {
		t.Errorf("it took %d MiB", most>>20)
	}
}

func does(t *testing.T, dir string, code int, message string, args ...string) string {
	t.Helper()
	c := newChild(t, dir, args...)
	must(t, c.Start())
	c.ends(t, code, message)
	return c.out.String()
}

var bounded = []string{"--workspace", "w", "--out", "out", "--db", "sqlite:links.db", "--memory", "320MiB", "--workers", "1"}

func runArgs(inputs ...string) []string { return slices.Concat([]string{"run"}, inputs, bounded) }

// leaves checks the names in a folder, without those of the store.
func leaves(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "links.db") {
			names = append(names, e.Name())
		}
	}
	if !slices.Equal(names, want) {
		t.Errorf("it left %q, want %q", names, want)
	}
}

// hostile lists the files of testdata/hostile. Those that end with 1 or 2 are
// refused as a whole; of the others, so many rows are rejected.
var hostile = map[string]struct {
	code     int
	message  string
	rejected int
}{
	"bomb-line.csv.gz":  {3, "reason=field_too_long", 1},
	"bomb-line.csv.zst": {3, "reason=field_too_long", 1},
	"bomb-rows.csv.zst": {0, "read=2 created=2", 0},
	"field.csv.zst":     {3, "reason=field_too_long", 1},
	"quote.csv.zst":     {3, "reason=field_too_long", 1},
	"zero.csv":          {3, "reason=malformed_row", 1},
	"rejects.csv":       {4, "reason=malformed_row", 1},
	"utf16.csv":         {4, "reason=missing_scheme", 1},
	"columns.csv.zst":   {2, "cannot tell the columns: no record in the first", 0},
	"window.csv.zst":    {1, "window size exceeded", 0},
	"cut.csv.gz":        {1, "its gzip ends too early, or something follows it", 0},
	"cut.csv.zst":       {1, "its zstd ends too early, or something follows it", 0},
	"line-more.csv.gz":  {1, "its gzip ends too early, or something follows it", 0},
	"text-more.csv.gz":  {1, "something follows its gzip: gzip: invalid header", 0},
	"text-more.csv.zst": {1, "something follows its zstd: invalid input: magic number mismatch", 0},
	"checksum.csv.gz":   {1, "gzip: invalid checksum", 0},

	"page-inflated.parquet":   {1, `row group 1: column \"url\": page 1: it has 51 bytes and 2147483647 when decompressed, more than 268435456`, 0},
	"page-longer.parquet":     {1, `page 1: it cannot be decompressed: it is longer than it says`, 0},
	"page-compressed.parquet": {1, `page 1: it has 2147483647 bytes, where its column chunk has 48 left`, 0},
	"page-negative.parquet":   {1, `page 1: it has -5 bytes, where its column chunk has 48 left`, 0},
	"page-values.parquet":     {1, `page 1: it has 2147483647 values, where 0 to 67108864 may be`, 0},
	"page-more.parquet":       {1, `page 1: its values: 2 values and 0 bytes more, where there should be 3 values`, 0},
	"page-header.parquet":     {1, `page 1: its header: its metadata are cut off, or a length in them is wrong`, 0},
	"page-few.parquet":        {1, `after record 2: row group 1: column \"url\": it ends before its row group does`, 0},
	"page-lz4.parquet":        {1, `page 1: it cannot be decompressed: lz4: `, 0},
	"page-string.parquet":     {1, `page 1: its values: one of 2147483647 bytes, of which there are 6`, 0},
	"levels-run.parquet":      {1, `page 1: its definition levels: a run of 2147483647 values, where there should be 2`, 0},
	"levels-long.parquet":     {1, `page 1: its definition levels: 4294967295 bytes, of which there are 48`, 0},
	"index-run.parquet":       {1, `page 2: its values: a run of 2147483647 values, where there should be 2`, 0},
	"index-packed.parquet":    {1, `page 2: its values: a run of 2147483647 values, where there should be 2`, 0},
	"index-range.parquet":     {1, `row group 1: it is damaged: column \"url\": an index or offset points outside of its values`, 0},
	"index-missing.parquet":   {1, `page 1: its values: there is no dictionary before them`, 0},
	"dictionary.parquet":      {1, `page 1: it has 2147483647 values, where 0 to 67108864 may be`, 0},
	"delta-lengths.parquet":   {1, `page 1: its values: 4294967294 bytes, of which there are 0`, 0},
	"delta-count.parquet":     {1, `page 1: its values: 1099511627776 integers in a page of 2 values`, 0},
	"delta-prefix.parquet":    {1, `page 1: its values: 4294967296 bytes, more than 268435456`, 0},
	"chunk-outside.parquet":   {1, `row group 1: column 1: 69 bytes from byte 1099511627776 on, in a file of 159`, 0},
	"chunk-codec.parquet":     {1, `row group 1: column 1: CompressionCodec(?) is not supported`, 0},
	"schema-children.parquet": {1, `its schema has 2 columns in all, and says that column \"links\", 0 deep, has 2147483647`, 0},
	"schema-deep.parquet":     {1, `its schema has 10001 columns in all, and says that column \"links\", 100 deep, has 1`, 0},
	"schema-names.parquet":    {1, `the names of its columns, each with those that it lies in, take over 16777216 bytes`, 0},
	"schema-width.parquet":    {1, `values of -8 bytes in column \"url\"`, 0},
	"decimal.parquet":         {1, `row group 1: it is damaged: column \"url\": a decimal of 8388607 bits`, 0},
	"groups.parquet":          {1, `row group 1 has 2 rows in 0 columns, where there should be 1`, 0},
	"footer-list.parquet":     {1, `its metadata are cut off, or a length in them is wrong`, 0},
	"footer-deep.parquet":     {1, `its metadata are nested too deeply`, 0},
	"footer-length.parquet":   {1, `metadata of 4294967295 bytes in a file of 154`, 0},
	"cut.parquet":             {1, `the file does not end with PAR1: it is not whole`, 0},

	"offset-past.arrow":       {1, `after record 9: record batch 1: it is damaged: column \"url\": an index or offset points outside of its values`, 0},
	"offset-back.arrow":       {1, `after record 9: record batch 1: it is damaged: column \"url\": an index or offset points outside of its values`, 0},
	"offset-negative.arrow":   {1, `after record 9: record batch 1: it is damaged: column \"url\": an index or offset points outside of its values`, 0},
	"buffer-past.arrow":       {1, `record batch 1: a buffer of 1073741824 bytes from byte 312 on, in a body of 1320`, 0},
	"buffer-negative.arrow":   {1, `record batch 1: a buffer of -8 bytes from byte 312 on, in a body of 1320`, 0},
	"values-many.arrow":       {1, `record batch 1: an array of 1099511627776 values`, 0},
	"values-negative.arrow":   {1, `record batch 1: an array of -1 values`, 0},
	"rows-many.arrow":         {1, `record batch 1: a batch of 4611686018427387904 rows`, 0},
	"buffer-inflated.arrow":   {1, `record batch 1: it is damaged: a buffer of 2147483648 bytes`, 0},
	"block-outside.arrow":     {1, `record batch 1: 160 bytes of metadata and 1099511627776 after them, from byte 128 on, in a file of`, 0},
	"block-negative.arrow":    {1, `record batch 1: 160 bytes of metadata and -64 after them, from byte 128 on, in a file of`, 0},
	"footer-length.arrow":     {1, `metadata of 268435455 bytes in a file of`, 0},
	"footer-list.arrow":       {1, `its metadata are cut off, or a length in them is wrong`, 0},
	"cut.arrow":               {1, `the file does not end with ARROW1: it is not whole`, 0},
	"body-long.arrows":        {1, `record batch 1: it ends too early: it is not whole`, 0},
	"body-longer.arrows":      {1, `record batch 1: a message with a body of 1099511627776 bytes`, 0},
	"body-negative.arrows":    {1, `record batch 1: a message with a body of -64 bytes`, 0},
	"metadata-long.arrows":    {1, `it is no Arrow message`, 0},
	"metadata-missing.arrows": {1, `it ends too early: it is not whole`, 0},
	"names.arrows":            {1, `the names and metadata of its columns, some of which share theirs, take over 16777216 bytes more than its description`, 0},
	"pairs.arrows":            {1, `the names and metadata of its columns, some of which share theirs, take over 16777216 bytes more than its description`, 0},
	"unions.arrows":           {1, `the names and metadata of its columns, some of which share theirs, take over 16777216 bytes more than its description`, 0},
	"zones.arrows":            {1, `the names and metadata of its columns, some of which share theirs, take over 16777216 bytes more than its description`, 0},
	"cut.arrows":              {1, `record batch 1: it ends too early: it is not whole`, 0},
}

// Every file of the corpus is met with a message that names it, in a bounded
// memory. Where it is refused nothing is written and nothing stored; where rows
// are rejected the others are not lost.
func TestHostile(t *testing.T) {
	folder, err := filepath.Abs("../../testdata/hostile")
	must(t, err)
	entries, err := os.ReadDir(folder)
	must(t, err)
	seen, refused := 0, t.TempDir()
	for _, e := range entries {
		name, path := e.Name(), filepath.Join(folder, e.Name())
		if filepath.Ext(name) == ".go" {
			continue
		}
		seen++
		t.Run(name, func(t *testing.T) {
			want, ok := hostile[name]
			if !ok {
				t.Fatal("nobody says what it must be met with")
			}
			if raced && strings.HasPrefix(name, "bomb-") {
				t.Skip("takes minutes to inflate, for a bound that is not looked at under race")
			}
			if want.code == exitDone || want.code == exitRejected || want.code == exitTooMany {
				dir, out := t.TempDir(), "out"
				if want.code == exitTooMany { // since there is nothing but rejects
					out = "out.failed"
				}
				does(t, dir, want.code, want.message, runArgs(path)...)
				leaves(t, dir, out)
				does(t, dir, exitDone, count(int64(want.rejected), "reject")+" checked against files, inputs and store; no problems",
					"verify", out, "--db", "sqlite:links.db", "--inputs", path)
				return
			}
			if out := does(t, refused, want.code, want.message, runArgs(path)...); !strings.Contains(out, path) {
				t.Errorf("the message does not name the file:\n%s", out)
			}
			leaves(t, refused)
		})
	}
	if seen != len(hostile) {
		t.Errorf("%d files, and %d are expected", seen, len(hostile))
	}
	write(t, refused, "good.csv", goodCSV)
	does(t, refused, exitDone, "read=1 created=1", runArgs("good.csv")...)
	if runs := does(t, refused, exitDone, "\n1,finished,", "runs", "--db", "sqlite:links.db"); strings.Count(runs, "\n") != 2 {
		t.Errorf("runs of the store:\n%s", runs)
	}
}

// The files of a run that somebody spoilt are findings of verify, and no reason
// to die.
func TestHostileReports(t *testing.T) {
	folder, err := filepath.Abs("../../testdata/hostile")
	must(t, err)
	manifest := func(change func(text string) string) func(t *testing.T, out string) {
		return func(t *testing.T, out string) {
			data := string(read(t, out, "manifest.json"))
			changed := change(data)
			if changed == data {
				t.Fatal("nothing was changed")
			}
			write(t, out, "manifest.json", changed)
		}
	}
	replace := func(old, now string) func(*testing.T, string) {
		return manifest(func(text string) string { return strings.Replace(text, old, now, 1) })
	}
	file := func(name, with string) func(*testing.T, string) {
		return func(t *testing.T, out string) { write(t, out, name, string(read(t, folder, with))) }
	}
	text := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, out string) { write(t, out, name, text) }
	}
	const head = "source,row,workspace_id,original_url,canonical_url,short_code,short_url,outcome,salt\n"
	for _, tt := range []struct {
		name, format string
		spoil        func(t *testing.T, out string)
		code         int
		message      string
	}{
		{"page", "parquet", file("mapping.parquet", "page-inflated.parquet"), exitDiffers, "damaged,mapping.parquet"},
		{"footer", "parquet", file("mapping.parquet", "footer-list.parquet"), exitDiffers, "its metadata are cut off, or a length in them is wrong"},
		{"schema", "parquet", file("mapping.parquet", "schema-children.parquet"), exitDiffers, "0 deep, has 2147483647"},
		{"cut", "parquet", file("mapping.parquet", "cut.parquet"), exitDiffers, "it is not whole"},
		{"block", "arrow", file("mapping.arrow", "block-outside.arrow"), exitDiffers, "1099511627776 after them"},
		{"buffer", "arrow", file("mapping.arrow", "buffer-negative.arrow"), exitDiffers, "a buffer of -8 bytes"},
		{"footer", "arrow", file("mapping.arrow", "footer-list.arrow"), exitDiffers, "its metadata are cut off, or a length in them is wrong"},
		{"cut", "arrow", file("mapping.arrow", "cut.arrow"), exitDiffers, "it is not whole"},
		{"row", "csv", text("mapping.csv", head+"good.csv,99999999999999999999,w,a,a,a,,created,0\n"), exitDiffers, "damaged,mapping.csv,1,row"},
		{"salt", "csv", text("mapping.csv", head+"good.csv,1,w,a,a,a,,created,2147483648\n"), exitDiffers, "damaged,mapping.csv,1,salt"},
		{"quote", "csv", text("mapping.csv", head+"\""+strings.Repeat("a", 1<<20)), exitDiffers, "the quote of field 1 is never closed"},
		{"rejects", "csv", text("rejects.csv", "source,row,byte_offset,reason,detail,url,raw\ngood.csv,-1,,x,,,\n"), exitDiffers, "damaged,rejects.csv,1,row"},
		{"collisions", "csv", text("collisions.csv", "workspace_id,canonical_url,salt,code,owner\nw,a,99999999999,a,\n"), exitDiffers, "collisions.csv"},
		{"another format", "csv", file("mapping.csv", "page-values.parquet"), exitDiffers, "mapping.csv"},
		{"records", "csv", replace(`"records": 2`, `"records": 9223372036854775807`), exitDiffers, "manifest,manifest.json,,inputs[0].records"},
		{"negative", "csv", replace(`"records": 2`, `"records": -2`), exitDiffers, "manifest,manifest.json,,inputs[0].records"},
		{"most records", "csv", replace(`"records": 2`, `"records": 8796093022208`), exitDiffers, "8,796,093,022,207 problems"},
		{"too large", "csv", replace(`"records": 2`, `"records": 1e400`), exitFailed, "inputs.records cannot be a JSON number 1e400"},
		{"retries", "csv", replace(`"max_retries": 10`, `"max_retries": 2147483647`), exitDiffers, "scheme.max_retries"},
		{"length", "csv", replace(`"code_length": 10`, `"code_length": -1`), exitDiffers, "scheme.code_length"},
		{"elsewhere", "csv", replace(`"name": "mapping.csv"`, `"name": "../good.csv"`), exitDiffers, "manifest,manifest.json,,files"},
		{"nested", "csv", text("manifest.json", strings.Repeat(`{"inputs":[`, 100_000)), exitFailed, "exceeded max depth"},
		{"null", "csv", text("manifest.json", "null"), exitFailed, "it names no profile"},
		{"binary", "csv", file("manifest.json", "page-values.parquet"), exitFailed, "read manifest: invalid character"},
	} {
		t.Run(tt.format+"/"+tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "good.csv", "url\nhttp://example.com/\nnonsense\n")
			does(t, dir, exitRejected, "created=1", append(runArgs("good.csv"), "--report-format", tt.format)...)
			must(t, os.CopyFS(filepath.Join(dir, "other"), os.DirFS(filepath.Join(dir, "out"))))
			tt.spoil(t, filepath.Join(dir, "out"))
			does(t, dir, tt.code, tt.message, "verify", "out")
			if name := "mapping." + tt.format; !same(t, dir, name) {
				does(t, dir, exitFailed, "out/"+name, "diff", "out/"+name, "other/"+name)
			}
		})
	}
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(data)
	w.Close()
	return b.Bytes()
}

func same(t *testing.T, dir, name string) bool {
	return bytes.Equal(read(t, dir, "out", name), read(t, dir, "other", name))
}

// A FIFO that never ends is read as far as --limit says; without, the memory is
// bounded even where it is one line, and the run can be stopped.
func TestHostileFIFO(t *testing.T) {
	for name, tt := range map[string]struct {
		piece   string
		args    []string
		code    int
		message string
	}{
		"rows":     {strings.Repeat("http://example.com/a\n", 5000), []string{"--limit", "10000"}, exitDone, "read=10000 created=1 existing=0 duplicate=9999"},
		"one line": {strings.Repeat("a", 1<<17), nil, exitInterrupted, "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fifo := filepath.Join(dir, "links.csv")
			must(t, syscall.Mkfifo(fifo, 0o600))
			c := newChild(t, dir, append(runArgs("links.csv", "--header", "no"), tt.args...)...)
			must(t, c.Start())
			stop := func() { c.Process.Signal(syscall.SIGTERM) }
			go feed(fifo, tt.piece, stop)
			c.ends(t, tt.code, tt.message)
			want := []string{"links.csv"}
			if tt.code == exitDone {
				want = append(want, "out")
			}
			leaves(t, dir, want...)
		})
	}
}

// A run keeps within --memory whatever its report is, spills what is more, be it rows of
// one URL, and of cells that are long gathers no more than there is room for; SQLite, which
// has half of the links, takes its part.
func TestMemoryIsBounded(t *testing.T) {
	if raced || testing.Short() || runtime.GOOS != "linux" {
		t.Skip("its memory is not told, or takes long to fill")
	}
	for name, tt := range map[string]struct {
		format     string
		mebibytes  int64
		rows, urls int // rows of 9000 bytes
		stored     bool
	}{
		"csv": {"csv", 160, 20_000, 20_000, false}, "parquet": {"parquet", 320, 30_000, 30_000, false}, "arrow": {"arrow", 320, 30_000, 30_000, false},
		"sqlite": {"csv", 160, 20_000, 20_000, true}, "one URL": {"csv", 160, 20_000, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, syscall.Mkfifo(filepath.Join(dir, "links.csv"), 0o600))
			out := "out.dry"
			run := func(out, message string, args ...string) {
				go feedRows(filepath.Join(dir, "links.csv"), tt.rows, tt.urls, strings.Repeat("x", 8000))
				c := newChild(t, dir, append([]string{"run", "links.csv", "--workspace", "w", "--out", out,
					"--report-format", tt.format, "--memory", fmt.Sprint(tt.mebibytes, "MiB"), "--workers", "1"}, args...)...)
				c.Env = append(c.Env, "GOGC=off") // garbage is collected for the sake of --memory alone
				must(t, c.Start())
				c.ends(t, exitDone, message)
			}
			if tt.stored {
				half := fmt.Sprint(tt.rows / 2)
				run("before", "created="+half, "--limit", half)
				run("out", fmt.Sprint("read=", tt.rows)+" created="+half+" existing="+half)
				out = "out"
			} else {
				run("out", fmt.Sprintf("read=%d created=%d", tt.rows, tt.urls), "--dry-run")
			}
			var took manifest.Timings
			must(t, json.Unmarshal(read(t, dir, out, manifest.TimingsName), &took))
			if took.PeakMemory == 0 || took.PeakMemory > tt.mebibytes<<20 || took.Spilled < int64(tt.rows)*9000 {
				t.Errorf("it took %d MiB of %d, and spilled %d", took.PeakMemory>>20, tt.mebibytes, took.Spilled>>20)
			}
		})
	}
}

// feedRows writes n rows of so many URLs, in no order, with a note to a FIFO.
func feedRows(fifo string, n, urls int, note string) {
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	defer w.Flush()
	w.WriteString("url,note\n")
	for i := range n {
		fmt.Fprintf(w, "http://example.com/%d?%s,%s\n", i*7919%urls, note[:1000], note)
	}
}

// feed writes to a FIFO until nobody reads it, and calls stop after more than may be held.
func feed(fifo, piece string, stop func()) {
	w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer w.Close()
	io.WriteString(w, "http://example.com/a\n")
	for n := 0; ; n += len(piece) {
		if n >= 512<<20 {
			stop()
			stop = func() {}
		}
		if _, err := io.WriteString(w, piece); err != nil {
			return
		}
	}
}
