package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/sink/sqlite"
)

// A run that cannot start as it was asked for ends before it does anything.
func TestRefused(t *testing.T) {
	for want, change := range map[string]func(*pipeline.Config){
		"no input":                                           func(cfg *pipeline.Config) { cfg.Inputs = nil },
		"delimiter and quote must be two":                    func(cfg *pipeline.Config) { cfg.Source.Delimiter = '"' },
		"the field limit must be":                            func(cfg *pipeline.Config) { cfg.Source.MaxField = -1 },
		"UniqueNames of the source":                          func(cfg *pipeline.Config) { cfg.Source.UniqueNames = true },
		"no output directory":                                func(cfg *pipeline.Config) { cfg.Out = "" },
		`Config.ReportFormat: unknown report format "xml"`:   func(cfg *pipeline.Config) { cfg.ReportFormat = "xml" },
		`Config.ReportOrder: unknown report order "random"`:  func(cfg *pipeline.Config) { cfg.ReportOrder = "random" },
		"Config.Workers -1 is negative":                      func(cfg *pipeline.Config) { cfg.Workers = -1 },
		"Config.MaxRetries 1048577 is not ":                  func(cfg *pipeline.Config) { cfg.MaxRetries = 1<<20 + 1 },
		"Config.AsOf 10000-01-01":                            func(cfg *pipeline.Config) { cfg.AsOf = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		`Config.BaseURL: base URL "https://:8080" is not of`: func(cfg *pipeline.Config) { cfg.BaseURL = "https://:8080" },
		"Config.CodeLength: code length 25":                  func(cfg *pipeline.Config) { cfg.CodeLength = 25 },
		"Config.Profile.MaxLength: maximal length ":          func(cfg *pipeline.Config) { cfg.Profile.MaxLength = -1 },
		`Config.Workspace: workspace contains '|': "a|b"`:    func(cfg *pipeline.Config) { cfg.Workspace = "a|b" },
	} {
		dir := t.TempDir()
		cfg := base(10)
		cfg.Inputs, cfg.Out, cfg.Store = []string{filepath.Join(dir, "links.csv")}, filepath.Join(dir, "out"), openStore(t, dir)
		write(t, cfg.Inputs[0], csvFile(rows(1, 10)))
		change(&cfg)
		_, err := pipeline.Run(context.Background(), cfg)
		var usage *pipeline.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "links.csv") {
			t.Errorf("%v, want %s", err, want)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s: %v was left, %v", want, entries, err)
		}
	}
}

// Nor do two inputs have one name where a mapping has text.
func TestInputsOfOneName(t *testing.T) {
	for format, refused := range map[report.Format]bool{report.CSV: false, report.Parquet: true, report.Arrow: true} {
		t.Chdir(t.TempDir())
		cfg := pipeline.Config{Workspace: "demo", Out: "out", ReportFormat: format, Inputs: []string{"a\xff.txt", "a%FF.txt"}}
		for _, name := range cfg.Inputs {
			write(t, name, "http://example.com/"+url.PathEscape(name)+"\n")
		}
		_, err := pipeline.Run(context.Background(), cfg)
		if errors.As(err, new(*pipeline.UsageError)) != refused || !refused && err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// Inputs that have more columns together than can be read back are refused.
func TestTooManyColumns(t *testing.T) {
	t.Chdir(t.TempDir())
	cfg := pipeline.Config{Workspace: "demo", Out: "out", Inputs: []string{"a.csv", "b.csv"}}
	for _, name := range cfg.Inputs {
		header := "url"
		for n := range columns.MaxColumns / 2 {
			header += fmt.Sprintf(",%s %d", name, n)
		}
		write(t, name, header+"\n")
	}
	_, err := pipeline.Run(context.Background(), cfg)
	if !errors.As(err, new(*columns.UsageError)) || !strings.Contains(err.Error(), "with it the inputs have 16385 columns in all, more than 16384") {
		t.Error(err)
	}
}

// A base URL that is refused is not shown if it may have a password.
func TestBaseURLPassword(t *testing.T) {
	for _, base := range []string{"https://me:secret@sho.rt", "https://me:secret@sho.rt:port", "https:/me:secret@sho.rt", "me:secret@sho.rt", "https://sho.rt/@me?secret", "https://me:secret%40sho.rt", "https://me%3Asecret%40sho.rt"} {
		_, err := pipeline.Run(t.Context(), pipeline.Config{Inputs: []string{"a.csv"}, Out: "out", Workspace: "ws", BaseURL: base})
		if err == nil || !strings.Contains(err.Error(), "base URL") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", base, err)
		}
	}
}

// An input that lies deep in the output directory is refused, however it is named.
func TestInputInTheOutput(t *testing.T) {
	out := t.TempDir()
	deep := filepath.Join(out, "a", "b")
	must(t, os.MkdirAll(deep, 0o777))
	t.Chdir(deep)
	write(t, "links.csv", csvFile(rows(1, 10)))
	cfg := base(10)
	cfg.Inputs, cfg.Out = []string{"links.csv"}, out
	_, err := pipeline.Run(context.Background(), cfg)
	var usage *columns.UsageError
	if !errors.As(err, &usage) || !strings.Contains(err.Error(), "links.csv: lies in the output directory") {
		t.Errorf("%v", err)
	}
}

// Nor may the output take the name of the store, or of a file beside it, before these are
// there.
func TestOutputNamedAsTheStore(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, errors.Join(os.WriteFile("links.csv", []byte(csvFile(rows(1, 10))), 0o666), os.Symlink(".", "here")))
	cfg := base(10)
	cfg.Inputs, cfg.Store = []string{"links.csv"}, openStore(t, ".")
	file := filepath.Base(cfg.Store.(*sqlite.Store).Files()[0])
	for _, out := range []string{file, file + "/", "here/" + file, file + ".lock", file + "-wal", file + "-shm", file + "-journal"} {
		cfg.Out = out
		var usage *pipeline.UsageError
		if _, err := pipeline.Run(t.Context(), cfg); !errors.As(err, &usage) || !strings.Contains(err.Error(), "a file of the store") {
			t.Errorf("%s: %v", out, err)
		}
	}
}

// Where a symbolic link led to the working directory, .. is where the system has it.
func TestWorkingFolderBehindALink(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	must(t, errors.Join(os.Mkdir(filepath.Join(dir, "work"), 0o777), os.Symlink(filepath.Join(dir, "work"), link)))
	t.Chdir(link)
	write(t, "links.csv", csvFile(rows(1, 10)))
	cfg := base(10)
	cfg.Inputs, cfg.Out, cfg.Store = []string{"links.csv"}, "../out", openStore(t, "..")
	if _, err := pipeline.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"../out/manifest.json", filepath.Join("..", filepath.Base(cfg.Store.(*sqlite.Store).Files()[0]))} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	must(t, os.Symlink(t.TempDir(), "elsewhere"))
	cfg.Inputs, cfg.Overwrite = []string{"../out/mapping.csv"}, true
	for _, cfg.Out = range []string{"../out", "elsewhere/../../out"} {
		if _, err := pipeline.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "lies in the output directory") {
			t.Errorf("an input in the output: %v", err)
		}
	}
}

// An output directory that may not be replaced is refused before an input is opened, which
// may be a pipe that nobody writes.
func TestOutputIsRefusedFirst(t *testing.T) {
	cfg := base(10)
	cfg.NoWait = true
	job(t, cfg, map[string]string{"a.csv": csvFile(rows(1, 10))})
	must(t, errors.Join(syscall.Mkfifo("fifo", 0o666), os.Mkdir("other", 0o777), os.WriteFile("other/notes.txt", nil, 0o666)))
	opened := errors.New("the pipe was opened")
	refused := func(out string, want error) {
		t.Helper()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(opened) // which ends the wait for a writer
		cfg.Inputs, cfg.Out = []string{"fifo"}, out
		if _, err := pipeline.Run(ctx, cfg); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", out, err, want)
		}
	}
	refused("out", outdir.ErrExists)
	refused("other", manifest.ErrNotOurs)
	refused("new", opened)
	f, err := outdir.Claim("out", outdir.ClaimOptions{Overwrite: true})
	must(t, err)
	refused("out", outdir.ErrBusy)
	must(t, f.Abandon())
	refused("out", outdir.ErrExists)
}
