package main

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/internal/quick"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/postgres/pgtest"
	"github.com/linkforge/bulk/sink/sqlite"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// server is the PostgreSQL server of these tests.
var server = pgtest.New(pgtest.Options{})

func TestMain(m *testing.M) {
	if os.Getenv(onFullDisk) != "" {
		os.Exit(fullDisk(os.Args[1:]))
	}
	testscript.Main(served{m}, map[string]func(){"bulk": main, "terminal": terminal})
}

// served runs the tests with the server, and without the settings of whoever runs them.
type served struct{ *testing.M }

func (s served) Run() int {
	for _, flag := range append(knownKeys(rootCommand(newUI(io.Discard, io.Discard))), "config") {
		os.Unsetenv(variable(flag))
	}
	quick.SetUp()
	return server.Main(s.M)
}

// A store that the environment names is not for the tests.
func TestStoreOfTheEnvironment(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "links.db")
	cmd := exec.Command(self, "-test.v", "-test.run", "^TestScripts$/^(interrupt|unfinished)$")
	// Of a folder of scripts of which only some run testscript leaves its own behind.
	cmd.Env = append(os.Environ(), "GOTMPDIR="+dir, "BULK_DB=sqlite:"+file)
	if output, err := cmd.CombinedOutput(); err != nil || strings.Count(string(output), "--- PASS: TestScripts/") != 2 {
		t.Errorf("%v: %s", err, output)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the store: %v", err)
	}
}

// TestScripts runs the command as users do. Beside the usual commands, scripts
// have "exits CODE COMMAND…", which runs a command that must end so, "interrupt
// SIGNAL COMMAND…", which sends it that after a while, "killed COMMAND…", which sends
// it SIGKILL when it has read its inputs, "halted COMMAND…" when it has stored its links,
// and "sql STATEMENT", which changes the
// store $DB behind its back.
func TestScripts(t *testing.T) {
	scripts(t, testscript.Params{Dir: "testdata/script"}, func(env *testscript.Env) error {
		if !strings.HasSuffix(env.WorkDir, "script-postgres") {
			return nil
		}
		u, err := url.Parse(postgresURL(server.Database(env.T().(testing.TB)))) // a skip is that script's
		if err != nil {
			return err
		}
		env.Setenv("POSTGRES", u.String())
		env.Setenv("PGHOST_TEST", u.Query().Get("host"))
		env.Setenv("PGDATABASE_TEST", u.Query().Get("dbname"))
		env.Setenv("POSTGRES_NO_DB", strings.Replace(u.String(), u.Query().Get("dbname"), "nosuchdatabase", 1))
		return nil
	})
}

// TestScriptsOfStores runs scripts over each kind of store, at $DB; with -short, each over one of them.
func TestScriptsOfStores(t *testing.T) {
	files, err := filepath.Glob("testdata/store/*.txtar")
	must(t, err)
	var of [2]testscript.Params // of SQLite, of PostgreSQL
	for i, file := range files {
		for store := range of {
			if !testing.Short() || i%2 == store {
				of[store].Files = append(of[store].Files, file)
			}
		}
	}
	t.Run("sqlite", func(t *testing.T) {
		scripts(t, of[0], func(env *testscript.Env) error {
			env.Setenv("DB", "sqlite:"+filepath.Join(env.WorkDir, "links.db"))
			env.Setenv("RUNS", "runs")
			env.Setenv("AT", "_at")
			return nil
		})
	})
	t.Run("postgres", func(t *testing.T) {
		server.Need(t)
		scripts(t, of[1], func(env *testscript.Env) error {
			env.Setenv("DB", postgresURL(server.Database(env.T().(testing.TB))))
			env.Setenv("RUNS", "links_runs")
			env.Setenv("AT", "")
			return nil
		})
	})
}

// terminal runs a command of the shell on a terminal, and leaves what that has shown in the file "shown".
// The command reads the terminal if -stdin names a file of what is typed. (What testscript's ttyout knows
// is cut off if the command ends before it was read.)
func terminal() {
	args := os.Args[1:]
	typed := ""
	if args[0] == "-stdin" {
		typed, args = args[1], args[2:]
	}
	ctrl, tty, err := pty.Open()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command("sh", "-c", args[0])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr, cmd.ExtraFiles = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}, []*os.File{tty}
	if typed != "" {
		text, err := os.ReadFile(typed)
		if err != nil {
			panic(err)
		}
		cmd.Stdin = tty
		ctrl.Write(append(text, 4)) // the end of what is typed
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	tty.Close()
	shown, _ := io.ReadAll(ctrl) // fails when nobody has the terminal any more
	_ = cmd.Wait()               // the exit code tells
	if err := os.WriteFile("shown", shown, 0o600); err != nil {
		panic(err)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// scripts runs the scripts that of names.
func scripts(t *testing.T, of testscript.Params, setup func(*testscript.Env) error) {
	testdata, err := filepath.Abs("../../testdata")
	must(t, err)
	of.RequireExplicitExec = true
	of.UpdateScripts = os.Getenv("BULK_TEST_UPDATE") != ""
	of.Setup = func(env *testscript.Env) error {
		env.Setenv("GORACE", os.Getenv("GORACE"))
		env.Setenv("GOGC", cmp.Or(os.Getenv("GOGC"), "400")) // as quick.SetUp: half of what such a short process does is to start
		env.Setenv("TESTDATA", testdata)
		return setup(env)
	}
	of.Cmds = map[string]func(*testscript.TestScript, bool, []string){
		"exits":     exits,
		"interrupt": interrupt,
		"sql":       tamper,
		"killed":    killed,
		"halted":    halted,
	}
	testscript.Run(t, of)
}

// tamper executes a statement; an UPDATE must change something.
func tamper(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sql STATEMENT")
	}
	rows, err := statement(ts.Getenv("DB"), args[0])
	ts.Check(err)
	if rows == 0 && strings.HasPrefix(args[0], "UPDATE") {
		ts.Fatalf("%s: no row", args[0])
	}
}

// statement executes SQL in a store, and returns how many rows it changed.
func statement(store, text string) (rows int64, err error) {
	if file, ok := strings.CutPrefix(store, "sqlite:"); ok {
		db, err := sql.Open("sqlite", file)
		if err != nil {
			return 0, err
		}
		defer db.Close()
		result, err := db.Exec(text)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, store+"&TimeZone=UTC") // as SQLite has times
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	tag, err := conn.Exec(ctx, text)
	return tag.RowsAffected(), err
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// interrupt runs a command that reads a FIFO which never ends, and must leave
// with 130 when it is asked to stop, and say what to do. Of SIGQUIT it dies as it would
// of a panic, which is no exit code (-1), but leaves no dump of its memory.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	stop := map[string]os.Signal{"SIGINT": os.Interrupt, "SIGTERM": syscall.SIGTERM, "SIGQUIT": syscall.SIGQUIT}[args[0]]
	code, says := exitInterrupted, ` hint="run the same command again to finish the job"`
	if stop == syscall.SIGQUIT {
		code, says = -1, "goroutine "
		var core unix.Rlimit
		ts.Check(unix.Getrlimit(unix.RLIMIT_CORE, &core))
		core.Cur = core.Max // as far as a shell may allow
		ts.Check(unix.Setrlimit(unix.RLIMIT_CORE, &core))
	}
	fifo := ts.MkAbs("fifo")
	ts.Check(syscall.Mkfifo(fifo, 0o600))
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	var said strings.Builder
	cmd.Stderr = &said
	cmd.SysProcAttr = mortal()
	ts.Check(cmd.Start())
	defer cmd.Process.Kill()
	late := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer late.Stop()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	w, err := os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	for errors.Is(err, syscall.ENXIO) { // until the command reads
		select {
		case err := <-ended:
			ts.Fatalf("the command did not read: %v: %s", err, &said)
		case <-time.After(time.Millisecond):
			w, err = os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		}
	}
	ts.Check(err)
	defer w.Close()
	_, err = w.WriteString("url\nhttp://example.com/\n")
	ts.Check(err)
	ts.Check(cmd.Process.Signal(stop))
	err = <-ended
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code {
		ts.Fatalf("%v, want exit code %d", err, code)
	}
	if !strings.Contains(said.String(), says) {
		ts.Fatalf("it said: %s", &said)
	}
	if exit.Sys().(syscall.WaitStatus).CoreDump() {
		ts.Fatalf("it left a dump of its memory")
	}
}

// killed runs a command on workspace demo of bulk.db, whose lock is held, and
// kills it when it says that it waits.
func killed(ts *testscript.TestScript, neg bool, args []string) {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, ts.MkAbs("bulk.db"))
	ts.Check(err)
	defer store.Close()
	session, err := store.Lock(ctx, []string{"demo"}, sink.LockOptions{})
	ts.Check(err)
	defer session.Close()
	path, err := exec.LookPath(args[0])
	ts.Check(err)
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	cmd.SysProcAttr = mortal()
	ts.Check(cmd.Start())
	defer cmd.Process.Kill()
	late := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer late.Stop()
	waits := false
	var said []string
	for lines := bufio.NewScanner(stderr); !waits && lines.Scan(); {
		said = append(said, lines.Text())
		waits = strings.Contains(lines.Text(), `msg="waiting for another run" holder=`)
	}
	cmd.Process.Kill()
	if cmd.Wait(); !waits {
		ts.Fatalf("the command did not wait: %s", said)
	}
}

// halted runs a command on bulk.db, which hangs once its links are stored and its reports
// written into the partial directory of --out, and then kills it.
func halted(ts *testscript.TestScript, neg bool, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs("bulk.db"))
	ts.Check(err)
	defer db.Close()
	_, err = db.Exec(`CREATE TRIGGER halt BEFORE UPDATE ON runs BEGIN
		SELECT count(*) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n); END`)
	ts.Check(err)
	path, err := exec.LookPath(args[0])
	ts.Check(err)
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir, cmd.SysProcAttr = ts.MkAbs("."), mortal()
	ts.Check(cmd.Start())
	manifest := ts.MkAbs("." + args[slices.Index(args, "--out")+1] + ".partial/files/manifest.json")
	there := func() bool { _, err := os.Stat(manifest); return err == nil }
	for late := time.Now().Add(time.Minute); !there() && time.Now().Before(late); {
		time.Sleep(10 * time.Millisecond)
	}
	hangs := there()
	cmd.Process.Kill()
	if cmd.Wait(); !hangs {
		ts.Fatalf("the command has not come to its end")
	}
	_, err = db.Exec("DROP TRIGGER halt")
	ts.Check(err)
}
