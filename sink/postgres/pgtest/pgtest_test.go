//go:build linux || darwin

package pgtest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var server = New(Options{})

func TestMain(m *testing.M) {
	if os.Getenv("PGTEST_ORPHAN") != "" {
		orphan()
	}
	os.Exit(server.Main(m))
}

func TestStopAndRestartKeepData(t *testing.T) {
	t.Setenv("PGHOST", "203.0.113.1") // nobody's: using it would hang
	t.Setenv("PGPORT", "1")
	dir := reachable(t)
	s := New(Options{Tmp: dir, Settings: []string{"max_connections=7"}})
	s.Need(t)
	t.Cleanup(func() { s.Close() })
	s.Exec(t, "postgres", "CREATE TABLE kept (n int)")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.ExecContext(context.Background(), "postgres", "SELECT 1"); err == nil {
		t.Fatal("a stopped server answers")
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	s.Exec(t, "postgres", "INSERT INTO kept VALUES (1)")
	folder := s.Socket()
	if filepath.Dir(folder) != dir {
		t.Errorf("the server is in %s, not in %s", folder, dir)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("folder is still there: %v", err)
	}
}

func TestDatabasesAreFresh(t *testing.T) {
	for range 2 {
		t.Run("", func(t *testing.T) {
			server.Database(t)
			server.Exec(t, "test"+strconv.Itoa(server.last), "CREATE TABLE mine (n int)")
		})
	}
}

// The tests do not see the variables of the user that runs them.
func TestVariablesOfLibpq(t *testing.T) {
	t.Parallel()
	server.Need(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestDatabasesAreFresh$")
	cmd.Env = append(os.Environ(), "PGSERVICE=nobody's", "PGOPTIONS=-c search_path=nowhere")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}

// orphan starts a server, tells where, and waits to be killed.
func orphan() {
	s := New(Options{})
	if err := s.Start(); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(s.Socket())
	time.Sleep(time.Hour) // without cgo a select of nothing would be a deadlock
}

func TestServerDiesWithItsParent(t *testing.T) {
	t.Parallel()
	server.Need(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PGTEST_ORPHAN=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	folder := strings.TrimSpace(line)
	socket := filepath.Join(folder, ".s.PGSQL.5432")
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	cmd.Process.Kill()
	cmd.Wait()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(folder); os.IsNotExist(err) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the server of a killed process lives on")
		}
	}
	if _, err := net.Dial("unix", socket); err == nil {
		t.Fatal("the folder is gone, the server is not")
	}
}

// The name of the server's directory is part of addresses and settings.
func TestPlaceNeedsNoQuotes(t *testing.T) {
	for name, want := range map[string]string{"/var/tmp": "/var/tmp", "/a b": "/tmp", "/it's": "/tmp", `/a\b`: "/tmp", "/a,b": "/tmp"} {
		t.Setenv("TMPDIR", name)
		if got, err := place(Options{Durable: true}, nil); got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
		if got, err := place(Options{Tmp: name}, nil); (err == nil) != (name == want) || err == nil && got != want {
			t.Errorf("%s, as it was asked for: %s, %v", name, got, err)
		}
	}
}

// A server that could not be started, or is too old, leaves no files.
func TestFailedStartLeavesNothing(t *testing.T) {
	server.Need(t)
	old := reachable(t)
	for program, script := range map[string]string{
		"initdb": `mkdir "$2" && echo 14 >"$2/PG_VERSION"`, "pg_ctl": "", "postgres": "",
	} {
		if err := os.WriteFile(filepath.Join(old, program), []byte("#!/bin/sh\n"+script), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{os.Getenv("PATH"): "nonsense", old + ":" + os.Getenv("PATH"): "need PostgreSQL 15 or newer, " + old + " has 14"} {
		t.Setenv("PATH", path)
		dir := reachable(t)
		s := New(Options{Tmp: dir, Settings: []string{"nonsense=1"}})
		if err := s.Start(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v", left, err)
		}
	}
}

// reachable creates a directory that other users may read.
func reachable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
