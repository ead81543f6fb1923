//go:build linux || darwin

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Disk is the name of the tablespace of a server with [Options.Disk].
const Disk = "disk"

// mounted mounts a file system of $1 bytes at $2 and runs the command $3…. It starts as root
// of a user namespace, and continues with another number for the same account, because the
// server refuses to run as root.
const mounted = `mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 && exec unshare --user --map-user=1000 --map-group=1000 -- "$@"`

// limited runs the command $1… with a limit of a little more than 2 MiB for each file.
// (The unit of ulimit -f is 512 or 1,024 bytes.)
const limited = `ulimit -f 4100 && exec "$@"`

// disk creates the directory of the tablespace. If this user may not mount a file system, a
// full disk is simulated by limiting the length of the server's files.
func (s *Server) disk() error {
	if s.opts.Disk == 0 {
		return nil
	}
	err := os.Mkdir(s.diskDir(), 0o700)
	if err == nil {
		err = s.give(s.diskDir())
	}
	s.mounts = err == nil && s.command("unshare", s.mount("test", "-w", s.diskDir())...).Run() == nil
	return err
}

func (s *Server) diskDir() string { return filepath.Join(s.dir, Disk) }

// mount returns the arguments for unshare to run a command with the disk mounted.
func (s *Server) mount(command ...string) []string {
	return append([]string{"--user", "--map-root-user", "--mount", "--", "/bin/sh", "-c", mounted, "sh",
		strconv.FormatInt(s.opts.Disk, 10), s.diskDir()}, command...)
}

// Fill creates tables in a database on the disk until only free bytes are left, and returns
// the SQLSTATE of the server's error for a full disk. If there is no file system for the
// disk, each file of more than 2 MiB gets that error.
func (s *Server) Fill(tb testing.TB, database string, free int64) (state string) {
	tb.Helper()
	if !s.mounts {
		s.again(tb, func() error { return s.start("/bin/sh", "-c", limited, "sh") })
		free = 0
	}
	const fill = "INSERT INTO %s SELECT repeat('x', 1000) FROM generate_series(1, %d)" // seven rows a page
	// A new database has free pages. This uses them.
	s.Exec(tb, database, "CHECKPOINT")
	for _, table := range []string{"reserve", "ballast"} {
		s.Exec(tb, database, "CREATE TABLE "+table+" (filler text) WITH (autovacuum_enabled = off)")
	}
	s.Exec(tb, database, fmt.Sprintf(fill, "reserve", free/8192*7))
	// The statement fails, and the space that it took is not free again.
	err := s.ExecContext(context.Background(), database, fmt.Sprintf(fill, "ballast", s.opts.Disk/8192*7))
	if state = sqlstate(err); state == "" {
		tb.Fatalf("the disk does not get full: %v", err)
	}
	s.Exec(tb, database, "DROP TABLE reserve")
	return state
}

func sqlstate(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// Empty undoes [Server.Fill].
func (s *Server) Empty(tb testing.TB, database string) {
	tb.Helper()
	if !s.mounts {
		s.again(tb, func() error { return s.start() })
	}
	s.Exec(tb, database, "DROP TABLE ballast")
}

// again stops the server in an orderly way, and then calls start.
func (s *Server) again(tb testing.TB, start func() error) {
	tb.Helper()
	if err := errors.Join(s.control("stop", "-m", "fast"), start()); err != nil {
		tb.Fatal(err)
	}
}
