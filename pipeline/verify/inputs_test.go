package verify_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/pipeline/verify"
)

// What the files alone cannot tell, the inputs do: carried cells, offsets, the
// details and raw lines of rows that were not split.
func TestVerifyAgainstInputs(t *testing.T) {
	tampered(t, report.CSV, report.SortOrder, 1)
	inputs := verify.Config{Inputs: []string{"a.csv", "b.csv"}}
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
		"raw":      {"rejects.csv", rejects, ",ragged\n", ",ragged\n", ",raggedy\n", "raw"},
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
		v := verified(t, inputs)
		if len(v.Findings) != 1 || v.Findings[0].Kind != verify.InputDiffers || string(v.Findings[0].Column) != c.column {
			t.Errorf("%s: %+v", name, v.Findings)
		}
		if v, err := verify.Run(t.Context(), verify.Config{Dir: "out", Inputs: inputs.Inputs, Version: "next"}); err != nil || (v.Failed() == 0) != (name == "detail") {
			t.Errorf("%s, by another version: %v, %+v", name, err, v)
		}
		put(t, c.file, c.list)
	}
	data := must(os.ReadFile("a.csv"))
	os.WriteFile("a.csv", []byte(strings.Replace(string(data), "example.org/1", "example.org/2", 1)), 0o666)
	if v := verified(t, inputs); fmt.Sprint(kinds(v)) != "[input input_sum]" {
		t.Errorf("found %v", v.Findings)
	}
	var usage *columns.UsageError
	for _, list := range [][]string{{"a.csv"}, {"a.csv", "b.csv", "out/mapping.csv"}} {
		_, err := verify.Run(context.Background(), verify.Config{Dir: "out", Inputs: list})
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
	job(t, cfg, map[string]string{"a.csv": "url,team\nftp://a/,red\nhttp://x/,red\n", "b.csv": "note,link\nx,ftp://b/\ny,ftp://c/\n"})
	text := strings.Join(lines(t, "rejects.csv"), "")
	job(t, cfg, map[string]string{"rejects.csv": strings.NewReplacer("ftp://a/", "http://a/", "ftp://b/", "http://b/").Replace(text)})
	clean(t, verify.Config{Inputs: []string{"rejects.csv"}})
	const row = "a,1,0,r,,ftp://a/,,\n"
	cfg.Source.FirstURL = true
	for _, before := range []int{1, 20_000} { // or it is far from the start
		job(t, cfg, map[string]string{"rejects.csv": "source,row,byte_offset,reason,detail,url,link,raw\n" + strings.Repeat(row, before) + "a,2,9,r,,http://a/,http://b/,\n"})
		clean(t, verify.Config{Inputs: []string{"rejects.csv"}})
	}
}

// An input without a record has no columns beside others, and is read as it was.
func TestVerifyEmptyInput(t *testing.T) {
	cfg := base(10)
	job(t, cfg, map[string]string{"a.csv": "", "b.csv": "url,team\nftp://a/,red\nhttp://b/,red\nhttp://c/,x,y\n"})
	clean(t, verify.Config{Inputs: []string{"a.csv", "b.csv"}})
	cfg.AllowEmpty = true
	job(t, cfg, map[string]string{"a.csv": "", "b.csv": ""})
	if v := verified(t, verify.Config{Inputs: []string{"a.csv", "b.csv"}}); len(v.Findings) > 0 {
		t.Errorf("found %v", v.Findings)
	}
}

// A row that the input has as a reject is no link, nor is a link a reject.
func TestVerifyLinkOfAReject(t *testing.T) {
	for was, is := range map[string]string{"http://a/": "ftp://ab/", "ftp://ab/": "http://a/"} {
		job(t, pipeline.Config{Workspace: "demo", Version: "test"}, map[string]string{"a.txt": "http://x/\nftp://x/\n" + was + "\n"})
		clean(t, verify.Config{Inputs: []string{"a.txt"}})
		os.WriteFile("a.txt", []byte("http://x/\nftp://x/\n"+is+"\n"), 0o666)
		found := verified(t, verify.Config{Inputs: []string{"a.txt"}}).Findings
		if !slices.ContainsFunc(found, func(f verify.Finding) bool {
			return f.Kind == verify.InputDiffers && f.Row == 3 && (was != "http://a/" || f.Expected == "a reject" && f.Found == "a link")
		}) {
			t.Errorf("%s made %s: found %+v", was, is, found)
		}
	}
}

// An input that has become one that the run could not have read so is a finding,
// beside which all others are made.
func TestVerifyOtherInputs(t *testing.T) {
	tampered(t, report.CSV, report.SortOrder, 1)
	inputs := verify.Config{Inputs: []string{"a.csv", "b.csv"}}
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
		v := verified(t, inputs)
		if fmt.Sprint(kinds(v)) != "[columns input]" || len(v.Findings) != 2 || v.Findings[0].File != "a.csv" || v.Findings[1].File != "b.csv" {
			t.Errorf("%s: found %+v", name, v.Findings)
		}
	}
	os.WriteFile("a.csv", nil, 0o666)
	if v := verified(t, inputs); fmt.Sprint(kinds(v)) != "[columns]" || len(v.Findings) != 2 {
		t.Errorf("both: found %+v", v.Findings)
	}
	inputs.Dir, inputs.Source.MaxField = "out", -1
	var usage *columns.UsageError
	if _, err := verify.Run(context.Background(), inputs); !errors.As(err, &usage) {
		t.Errorf("a wrong option: %v", err)
	}
	inputs.Source.MaxField = 0
	os.Remove("b.csv")
	if _, err := verify.Run(context.Background(), inputs); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// What the manifest says of an input is compared with it.
func TestVerifyManifestInputs(t *testing.T) {
	job(t, base(10), twoInputs())
	inputs, good := verify.Config{Inputs: []string{"a.csv", "b.csv"}}, must(os.ReadFile("out/manifest.json"))
	clean(t, inputs)
	for column, change := range map[string]func(in *manifest.Input){
		"":            func(in *manifest.Input) { in.SHA256 = strings.Repeat("0", 64) },
		"size":        func(in *manifest.Input) { in.Size++ },
		"compression": func(in *manifest.Input) { in.Compression = "gzip" },
		"dialect":     func(in *manifest.Input) { in.Dialect.BOM = true },
	} {
		os.WriteFile("out/manifest.json", good, 0o666)
		m := readManifest(t)
		change(&m.Inputs[1])
		writeManifest(t, m)
		v := verified(t, inputs)
		if len(v.Findings) != 1 || v.Findings[0].Kind != verify.InputSum || string(v.Findings[0].Column) != column || v.Findings[0].File != "b.csv" {
			t.Errorf("%q: found %+v", column, v.Findings)
		}
	}
}

// Inputs that lie elsewhere now are told by the ends of their paths, where these tell,
// and the last one may have any name.
func TestVerifyMovedInputs(t *testing.T) {
	const text = "http://example.com/\nftp://x\n"
	t.Chdir(t.TempDir())
	for _, dir := range []string{"a", "b", "c", "d"} {
		os.Mkdir(dir, 0o777)
		os.WriteFile(dir+"/x.txt", []byte(text+"http://"+dir+"/"), 0o666)
	}
	os.WriteFile("y.txt", []byte(text), 0o666)
	cfg := pipeline.Config{Workspace: "demo", Inputs: []string{"a/x.txt", "b/x.txt", "y.txt"}, Out: "out"}
	must(pipeline.Run(context.Background(), cfg))
	os.Mkdir("moved", 0o777)
	for old, now := range map[string]string{"b": "moved/b", "y.txt": "moved/y.txt"} {
		if err := os.Rename(old, now); err != nil {
			t.Fatal(err)
		}
	}
	clean(t, verify.Config{Inputs: []string{"a/x.txt", "moved/b/x.txt", "moved/y.txt"}})
	if err := os.Rename("a", "moved/a"); err != nil {
		t.Fatal(err)
	}
	os.WriteFile("moved/last.csv", []byte(text), 0o666)
	os.WriteFile("moved/b.csv", []byte(text+"http://b/"), 0o666)
	for _, list := range [][]string{
		{"moved/a/x.txt", "moved/b/x.txt", "moved/y.txt"},
		{"moved/a/x.txt", "./moved//b/x.txt", "moved/last.csv"},
		{"moved/a/x.txt", "moved/b.csv", "moved/y.txt"},
	} {
		clean(t, verify.Config{Inputs: list})
	}
	for name, list := range map[string][]string{ // other content
		"renamed":   {"moved/a/x.txt", "moved/b/x.txt", "moved/b.csv"},
		"elsewhere": {"moved/a/x.txt", "c/x.txt", "moved/y.txt"},
	} {
		if v := verified(t, verify.Config{Inputs: list}); v.Kinds[verify.InputSum] == 0 {
			t.Errorf("%s: found %+v", name, v.Findings)
		}
	}
	for want, list := range map[string][]string{
		"c/x.txt: is not the only x.txt: give all of them by the paths that the run had": {"c/x.txt", "d/x.txt", "moved/y.txt"},
		"d/x.txt: is not the only x.txt: give all of them by the paths that the run had": {"d/x.txt", "moved/y.txt"},
		"b/x.txt: is an input of the run, but was not given with Config.Inputs":          {"moved/a/x.txt", "moved/b.csv", "moved/last.csv"},
		"a/x.txt: is an input of the run, but was not given with Config.Inputs":          {"moved/b/x.txt", "moved/y.txt"},
		"c/x.txt: is not an input of the run":                                            {"moved/a/x.txt", "moved/b/x.txt", "moved/y.txt", "c/x.txt"},
	} {
		var usage *columns.UsageError
		if _, err := verify.Run(context.Background(), verify.Config{Dir: "out", Inputs: list}); !errors.As(err, &usage) || err.Error() != want {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// The file in which a stream was saved is read as the stream was, whatever its name.
func TestVerifySavedInputs(t *testing.T) {
	t.Chdir(t.TempDir())
	const text = "http://example.com/\nftp://x\n"
	os.WriteFile("saved.txt", []byte(text), 0o666)
	cfg := pipeline.Config{Workspace: "demo", Inputs: []string{"-"}, Out: "out", Source: source.Options{Stdin: strings.NewReader(text)}}
	must(pipeline.Run(context.Background(), cfg))
	clean(t, verify.Config{Inputs: []string{"saved.txt"}})
	cfg.Inputs, cfg.Out = []string{"saved.txt"}, "next"
	must(pipeline.Run(context.Background(), cfg))
	v, err := verify.Run(context.Background(), verify.Config{Dir: "next", Inputs: []string{"-"}, Source: source.Options{Stdin: strings.NewReader(text)}})
	if err != nil || v.Failed() > 0 {
		t.Errorf("%v, %+v", err, v)
	}
}

// Inputs of any format, with nulls and with the rejects of an earlier run, replay.
func TestVerifyFormats(t *testing.T) {
	for _, format := range []report.Format{report.CSV, report.Parquet, report.Arrow} {
		cfg := base(1)
		cfg.ReportFormat, cfg.Source.WorkspaceColumn = report.Parquet, ""
		job(t, cfg, map[string]string{"a.csv": table(3, 300, "url,team,note"), "b.txt": "http://example.com/\n\nftp://x\n"})
		next := pipeline.Config{Workspace: "demo", CodeLength: 1, ReportFormat: format, Inputs: []string{"out/mapping.parquet"},
			Out: "next", Source: source.Options{Choice: columns.Choice{URLColumn: "original_url", WorkspaceColumn: "note"}}}
		must(pipeline.Run(context.Background(), next))
		again := pipeline.Config{Workspace: "demo", CodeLength: 2, ReportFormat: format, Inputs: []string{"out/rejects.csv", "b.txt"}, Out: "again"}
		must(pipeline.Run(context.Background(), again))
		for _, run := range []pipeline.Config{next, again} {
			v, err := verify.Run(context.Background(), verify.Config{Dir: run.Out, Inputs: run.Inputs})
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
	os.Truncate("huge/manifest.json", manifest.MaxSize+1)
	for _, dir := range []string{".", "none", "file", "fifo", "huge"} {
		_, err := verify.Run(context.Background(), verify.Config{Dir: dir})
		if !errors.Is(err, manifest.ErrNotOurs) || !strings.Contains(err.Error(), filepath.Join(dir, "manifest.json")) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// Of inputs, too, what must lie on the disk goes to the folder that is named.
func TestVerifyTempDir(t *testing.T) {
	cfg := base(2)
	cfg.ReportFormat = report.Parquet
	job(t, cfg, twoInputs())
	data := must(os.ReadFile("out/mapping.parquet"))
	opts := source.Options{Choice: columns.Choice{URLColumn: "original_url"}, Stdin: bytes.NewReader(data)}
	next := pipeline.Config{Workspace: "demo", Inputs: []string{"-"}, Out: "next", Source: opts}
	must(pipeline.Run(context.Background(), next))
	opts.Stdin = bytes.NewReader(data)
	_, err := verify.Run(context.Background(), verify.Config{Dir: "next", Inputs: next.Inputs, Source: opts, TempDir: "none"})
	if err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("a folder that does not exist: %v", err)
	}
}

// That the disk does not take what is sorted is an error.
func TestVerifySpillFails(t *testing.T) {
	job(t, pipeline.Config{Workspace: "demo", ReportOrder: report.InputOrder, DryRun: true}, map[string]string{"a.txt": strings.Repeat("http://a/#"+strings.Repeat("x", 1<<15)+"\n", 3)})
	_, err := verify.Run(t.Context(), verify.Config{Dir: "out", Memory: 1, TempDir: "none"})
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
	must(pipeline.Run(context.Background(), cfg))
	against := func(text string) verify.Config {
		return verify.Config{Inputs: []string{"-"}, Source: source.Options{Stdin: strings.NewReader(text)}}
	}
	clean(t, against(text))
	other := strings.Replace(text, "example.org/1", "example.org/2", 1)
	if v := verified(t, against(other)); fmt.Sprint(kinds(v)) != "[input input_sum]" || len(v.Findings) != 2 || v.Findings[1].Row == 0 {
		t.Errorf("found %+v", v.Findings)
	}
	mapping := lines(t, "mapping.csv")
	put(t, "mapping.csv", mapping[:len(mapping)-1])
	if v := verified(t, against(text)); v.Kinds[verify.InputDiffers] != 1 || v.Kinds[verify.RowMissing] != 1 {
		t.Errorf("found %+v", v.Findings)
	}
}
