package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/beam"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/stage"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/sqlite"
)

// asProgram has the test program be bulk-beam: the one that is tested, and a worker of an engine.
const asProgram = "BULK_BEAM_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	must(t, err)
	return data
}

// bulkBeamOn runs bulk-beam on the engine that is tested: that of the job server BEAM_JOB_SERVER, or prism.
func bulkBeamOn(t *testing.T, env string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	if endpoint := os.Getenv("BEAM_JOB_SERVER"); endpoint != "" {
		args = append(args, "--endpoint="+endpoint, "--parallelism=2")
	}
	if env == "PROCESS" {
		self, err := os.Executable()
		must(t, err)
		config, err := json.Marshal(map[string]any{"command": self, "env": map[string]string{asProgram: "1"}})
		must(t, err)
		args = append(args, "--environment_config="+string(config))
	}
	return bulkBeamWith(t, nil, append(args, "--environment_type="+env)...)
}

func bulkBeamWith(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(append(os.Environ(), asProgram+"=1"), env...), &out, &errs
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// A set is inputs, and links that exist.
type set struct {
	cfg   pipeline.Config
	links []string
	store sink.Store // that has the links; nil: there are none
}

// makeSet makes a set of so many rows in files. One of the three workspaces has only a hundred rows.
func makeSet(t *testing.T, files, rows int) *set {
	s := &set{}
	dir := t.TempDir()
	for f := range files {
		var b bytes.Buffer
		b.WriteString("note,url,team\n")
		for n := f; n < rows; n += files {
			url, team := fmt.Sprintf("https://shop.example/%d?ref=mail", n), []string{"red", "blue"}[n/files%2]
			switch {
			case n > rows-100:
				team = "green"
			case n%20 == 7 && n > 2*files: // a duplicate
				url = fmt.Sprintf("HTTPS://Shop.example/%d?ref=mail#top", n-2*files)
			case n%1000 == 9:
				url = fmt.Sprintf("ftp://shop.example/%d", n)
			}
			fmt.Fprintf(&b, "note %d,%s,%s\n", n, url, team)
		}
		s.cfg.Inputs = append(s.cfg.Inputs, write(t, filepath.Join(dir, fmt.Sprintf("in-%03d.csv", f)), b.Bytes()))
	}
	s.cfg.Source.WorkspaceColumn, s.cfg.Version, s.cfg.Workers, s.cfg.Out = "team", beam.Version(), 2, filepath.Join(dir, "out")
	return s
}

func write(t *testing.T, path string, data []byte) string {
	t.Helper()
	must(t, os.WriteFile(path, data, 0o666))
	return path
}

// withLinks stores links of some URLs of the set, and of others, and exports them.
func (s *set) withLinks(t *testing.T, links int) {
	ctx, dir := context.Background(), t.TempDir()
	store, err := sqlite.Open(ctx, filepath.Join(dir, "links.db"))
	must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	var b bytes.Buffer
	b.WriteString("url,team\n")
	for n := range links {
		fmt.Fprintf(&b, "https://shop.example/%d?ref=mail,%s\n", n*7, []string{"red", "blue", "green"}[n%3])
	}
	cfg := s.cfg
	cfg.Inputs, cfg.Out, cfg.Store = []string{write(t, filepath.Join(dir, "old.csv"), b.Bytes())}, filepath.Join(dir, "old"), store
	_, err = pipeline.Run(ctx, cfg)
	must(t, err)
	s.store = store
	for _, workspace := range []string{"red", "blue", "green"} {
		var told manifest.Links
		var list, about bytes.Buffer
		must(t, pipeline.ExportLinks(ctx, store, workspace, &told, func(columns []string) report.Export { return report.NewCSVExport(&list, columns) }))
		must(t, manifest.WriteLinks(&about, &told))
		name := write(t, filepath.Join(dir, "links-"+workspace+".csv"), list.Bytes())
		write(t, manifest.LinksNameOf(name), about.Bytes())
		s.links = append(s.links, name)
	}
}

// plan plans the set.
func (s *set) plan(t *testing.T, rows int64) *stage.Job {
	t.Helper()
	job, err := pipeline.PlanStages(context.Background(), s.cfg, s.links, rows)
	must(t, err)
	return job
}

// compare compares the output with that of a run.
func (s *set) compare(t *testing.T, job *stage.Job) {
	t.Helper()
	cfg := s.cfg
	cfg.Out, cfg.AsOf, cfg.Store, cfg.DryRun = s.cfg.Out+"-run", job.AsOf(), s.store, s.store != nil
	result, err := pipeline.Run(context.Background(), cfg)
	must(t, err)
	got, _, err := manifest.ReadDir(s.cfg.Out)
	must(t, err)
	want, _, err := manifest.ReadDir(result.Out)
	must(t, err)
	var mapping []byte
	parts := 0
	for _, f := range got.Files {
		if !strings.HasPrefix(f.Name, "mapping/") {
			continue
		}
		part := read(t, s.cfg.Out, f.Name)
		if parts++; parts > 1 {
			part = part[bytes.IndexByte(part, '\n')+1:]
		}
		mapping = append(mapping, part...)
	}
	same(t, "the parts", mapping, read(t, result.Out, "mapping.csv"))
	same(t, "rejects.csv", read(t, s.cfg.Out, "rejects.csv"), read(t, result.Out, "rejects.csv"))
	same(t, "collisions.csv", read(t, s.cfg.Out, "collisions.csv"), read(t, result.Out, "collisions.csv"))
	if got.RowDigest != want.Files[0].RowDigest {
		t.Errorf("row digest %s, want %s", got.RowDigest, want.Files[0].RowDigest)
	}
	same(t, "the manifest", described(t, got), described(t, want))
	t.Logf("%d parts of %d rows and %d rejects are the bytes of the run; %+v", parts, want.Files[0].Rows, want.Counts.Rejected, want.Counts)
}

// described returns what a manifest says of all but its files, and that nothing is stored.
func described(t *testing.T, m *manifest.Manifest) []byte {
	t.Helper()
	rest := *m
	rest.Files, rest.RowDigest, rest.Options = nil, "", maps.Clone(m.Options)
	delete(rest.Options, "dry_run")
	var b bytes.Buffer
	must(t, manifest.Write(&b, &rest))
	return b.Bytes()
}

func same(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes are not the %d of the run", what, len(got), len(want))
	}
}

// An engine writes what a run writes: codes of three characters, which many URLs contest, three workspaces,
// rejects, and links that exist.
func TestSameAsRun(t *testing.T) {
	s := makeSet(t, 16, 200_000)
	s.cfg.CodeLength = 3
	s.withLinks(t, 5_000)
	job := s.plan(t, 10_000)
	if code, out, errs := bulkBeamOn(t, "LOOPBACK", "--out", s.cfg.Out); code != exitRejected {
		t.Fatalf("exit code %d\n%s\n%s", code, out, errs)
	}
	s.compare(t, job)
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "bulk-beam-*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

const secret = "a secret of sixteen bytes"

// Workers that are processes of their own read the secret of a scheme by themselves: it is in no file.
func TestProcesses(t *testing.T) {
	s := makeSet(t, 4, 20_000)
	s.cfg.Scheme.Name, s.cfg.Scheme.Secret, s.cfg.CodeLength = "keyed-base62", codegen.NewSecret([]byte(secret)), 4
	job := s.plan(t, 3_000)
	key := write(t, filepath.Join(t.TempDir(), "key"), []byte(secret+"\n"))
	if code, out, errs := bulkBeamOn(t, "PROCESS", "--out", s.cfg.Out, "--scheme-key-file", key, "--verbose"); code != exitRejected || strings.Contains(out+errs, secret) {
		t.Fatalf("exit code %d\n%s\n%s", code, out, errs)
	}
	s.compare(t, job)
	must(t, filepath.Walk(s.cfg.Out, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() && bytes.Contains(read(t, path), []byte(secret)) {
			t.Errorf("%s has the secret", path)
		}
		return err
	}))
}

// Names of the plan are meant in the working directory, also of workers that have another one.
func TestRelativeNames(t *testing.T) {
	s := makeSet(t, 2, 400)
	dir := filepath.Dir(s.cfg.Out)
	t.Chdir(dir)
	s.cfg.Inputs, s.cfg.Out = []string{"in-000.csv", "in-001.csv"}, "out"
	job := s.plan(t, 100)
	if code, out, errs := bulkBeamOn(t, "PROCESS", "--out", "out", "--tmp", "."); code != exitRejected {
		t.Fatalf("exit code %d\n%s\n%s", code, out, errs)
	}
	s.compare(t, job)
}

// A worker that fails says why, and nothing is published.
func TestWorkerFails(t *testing.T) {
	for _, env := range []string{"LOOPBACK", "PROCESS"} {
		s := makeSet(t, 4, 400)
		s.plan(t, 100)
		must(t, os.Remove(s.cfg.Inputs[2]))
		code, out, errs := bulkBeamOn(t, env, "--out", s.cfg.Out)
		if want := "bulk-beam: a worker failed: the task map 2: " + s.cfg.Inputs[2] + ": no such file or directory\n"; code != exitFailed || strings.Contains(out, "read=") || errs != want && !strings.HasSuffix(errs, "\n"+want) {
			t.Errorf("%s: exit code %d, %s%s want %s", env, code, out, errs, want)
		}
		if _, err := os.Stat(filepath.Join(s.cfg.Out, "manifest.json")); err == nil {
			t.Error("the run was committed")
		}
	}
}

// A worker of another secret, or of none, does nothing.
func TestOtherSecret(t *testing.T) {
	s := makeSet(t, 1, 100)
	s.cfg.Scheme.Name, s.cfg.Scheme.Secret = "keyed-base62", codegen.NewSecret([]byte(secret))
	s.plan(t, 100)
	for env, want := range map[string]string{"": "has a secret, and this process has none", pipeline.SecretVariable + "=another secret of many bytes": "the secret of the scheme is not that of the plan"} {
		if code, _, errs := bulkBeamWith(t, []string{env}, "--out", s.cfg.Out); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("exit code %d, %s", code, errs)
		}
	}
}

// What cannot work is refused before anything begins.
func TestUsage(t *testing.T) {
	s := makeSet(t, 1, 100)
	s.plan(t, 100)
	s.cfg.Version = "another"
	s.cfg.Out += "-other"
	s.plan(t, 100)
	for _, test := range []struct{ args, why string }{
		{"", "--out is missing"},
		{"--out x", "there is no plan of bulk stage"},
		{"--out " + s.cfg.Out, "each task needs the version of the plan"},
		{"--out x in.csv", `"in.csv" is no flag`},
		{"--out x --endpoint localhost:1", "--environment_type is missing"},
		{"--out x --endpoint localhost:1 --environment_type PROCESS --environment_config BULK_SCHEME_KEY", "the engine shows it to its users"},
		{"--out x --environment_type CLOUD", "--environment_type CLOUD: it must be"},
		{"--out x --async", "--async cannot be used"},
		{"--out x --workers 0", "--workers 0: it must be 1 or more"},
		{"--legacy", "flag provided but not defined: -legacy"},
	} {
		code, out, errs := bulkBeamWith(t, nil, strings.Fields(test.args)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, test.why) {
			t.Errorf("%s: exit code %d, %s%s want %s", test.args, code, out, errs, test.why)
		}
	}
	if code, out, _ := bulkBeamWith(t, nil, "--help"); code != 0 || out != help {
		t.Errorf("--help: exit code %d, %s", code, out)
	}
}

// Of SIGQUIT it dies as it would of a panic: by a signal, not with an exit code that says what was done, and
// without a dump of its memory.
func TestDiesBySignal(t *testing.T) {
	s := makeSet(t, 1, 100)
	s.cfg.Scheme.Name, s.cfg.Scheme.Secret = "keyed-base62", codegen.NewSecret([]byte(secret))
	s.plan(t, 100)
	dir := t.TempDir()
	key := filepath.Join(dir, "key") // for which it waits
	must(t, syscall.Mkfifo(key, 0o600))
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--out", s.cfg.Out, "--scheme-key-file", key)
	cmd.Env, cmd.Stderr = append(os.Environ(), asProgram+"=1", "TMPDIR="+dir), &errs // it leaves files behind
	must(t, cmd.Start())
	reads, ended := make(chan error), make(chan error)
	go func() {
		f, err := os.OpenFile(key, os.O_WRONLY, 0)
		reads <- err
		<-ended
		f.Close()
	}()
	select {
	case err := <-reads:
		must(t, err)
	case <-time.After(time.Minute):
		t.Error("it does not read the secret")
	}
	must(t, cmd.Process.Signal(syscall.SIGQUIT))
	_ = cmd.Wait() // the state tells
	close(ended)
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGABRT || status.CoreDump() || !strings.Contains(errs.String(), "goroutine ") {
		t.Errorf("%v: %s", cmd.ProcessState, &errs)
	}
}

// A program that no engine started is no worker.
func TestBoot(t *testing.T) {
	for _, args := range [][]string{{"bulk-beam"}, {"bulk-beam", "--out", "x"}, {"bulk-beam", "--worker=true", "--id=1"}} {
		if got, err := boot(args); err != nil || strings.Join(got, " ") != strings.Join(args, " ") {
			t.Errorf("%q, %v", got, err)
		}
	}
}
