package main

import (
	"bufio"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/sqlite"
)

// A run is killed while the server works on a statement of it that takes long. A
// rerun says whom it waits for, and goes on with the run once the server has
// noticed that nobody listens any more.
func TestWaitsForAKilledRun(t *testing.T) {
	server.Need(t)
	t.Chdir(t.TempDir())
	write(t, ".", "links.txt", "http://example.com/a\nhttp://example.com/b\n")
	dsn := postgresURL(server.Database(t))
	u, _ := url.Parse(dsn)
	name := u.Query().Get("dbname")
	if err := server.ExecContext(t.Context(), name, "SET client_connection_check_interval = '2s'"); err != nil {
		t.Skip(err) // so that this server does not notice
	}
	command(t, exitDone, "init", "--db", dsn)
	server.Exec(t, name, `CREATE TABLE slow AS SELECT 1;
		CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
			IF EXISTS (SELECT FROM slow) THEN PERFORM pg_sleep(3600); END IF;
		END $$;
		CREATE EVENT TRIGGER slow ON ddl_command_start WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION slow()`)
	run := func(out string) (*exec.Cmd, *bufio.Reader) {
		cmd := process(t, "run", "links.txt", "--workspace", "demo", "--db", dsn, "--out", out)
		said, err := cmd.StderrPipe()
		must(t, err)
		must(t, cmd.Start())
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
		return cmd, bufio.NewReader(said)
	}
	first, _ := run("first")
	const asleep = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"
	for deadline := time.Now().Add(time.Minute); number(t, dsn, asleep) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the first run does not get to its long statement")
		}
	}
	server.Exec(t, name, "DELETE FROM slow")

	second, said := run("second")
	defer time.AfterFunc(2*time.Minute, func() { second.Process.Kill() }).Stop()
	_, begins := said.ReadString('\n')
	line, err := said.ReadString('\n')
	if err = errors.Join(begins, err); err != nil || !strings.Contains(line, "waiting for another run") || !strings.Contains(line, `bulk run\" (backend `) {
		t.Fatalf("%q, %v", line, err)
	}
	first.Process.Kill()
	line, err = said.ReadString('\n')
	for err == nil && !strings.Contains(line, "run finished") {
		line, err = said.ReadString('\n')
	}
	if !strings.Contains(line, "run=1 resumed=true") || !strings.Contains(line, "created=2") {
		t.Errorf("%q, %v", line, err)
	}
	if err := second.Wait(); err != nil {
		t.Error(err)
	}
}

// The second signal kills a command that the first one cannot end: it waits for somebody
// to read what it has to say of it.
func TestSecondSignalKills(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, syscall.Mkfifo(fifo, 0o600))
	var stderr [2]int
	must(t, syscall.Pipe(stderr[:]))
	defer syscall.Close(stderr[0])
	full := os.NewFile(uintptr(stderr[1]), "full")
	defer full.Close()
	must(t, syscall.SetNonblock(stderr[1], true))
	var err error
	for page := make([]byte, 4096); err == nil; {
		_, err = syscall.Write(stderr[1], page)
	}
	if !errors.Is(err, syscall.EAGAIN) {
		t.Fatal(err)
	}
	cmd := process(t, "explain", "--workspace", "w", "--from", fifo)
	cmd.Stderr = full
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill()
	late := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var w *os.File // there when the command reads, and so heeds signals
	defer func() { w.Close() }()
	for {
		select {
		case <-tick.C:
			if w == nil {
				w, _ = os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			} else {
				cmd.Process.Signal(os.Interrupt)
			}
			continue
		case <-late:
			t.Error("it does not end")
		case err := <-ended:
			if status := cmd.ProcessState.Sys().(syscall.WaitStatus); w == nil || status.Signal() != syscall.SIGINT {
				t.Error(err)
			}
		}
		return
	}
}

// What another run keeps it from is told by the exit code as a store that is out of reach,
// and so is another writer who takes codes without end.
func TestNoWait(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, ".", "links.csv", "url\nhttp://a.example/\n")
	store, err := sqlite.Open(t.Context(), "links.db")
	must(t, err)
	held, err := store.Lock(t.Context(), []string{"w"}, sink.LockOptions{})
	must(t, err)
	command(t, exitStore, "run", "links.csv", "--workspace", "w", "--db", "sqlite:links.db", "--no-wait")
	command(t, exitStore, "undo", "1", "--yes", "--db", "sqlite:links.db", "--no-wait")
	must(t, held.Close())
	writing, err := outdir.Claim("links.bulk", outdir.ClaimOptions{})
	must(t, err)
	command(t, exitStore, "run", "links.csv", "--workspace", "w", "--db", "sqlite:links.db")
	must(t, writing.Abandon())
	command(t, exitDone, "run", "links.csv", "--workspace", "w", "--db", "sqlite:links.db", "--no-wait")
	if code := exitCode(fmt.Errorf("load: %w", sink.ErrConflict)); code != exitStore {
		t.Errorf("conflicts: exit code %d", code)
	}
}
