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

// Disk is the tablespace that a server with [Options.Disk] has.
const Disk = "disk"

// mounted runs a command, $3 and what follows, where a file system of $1 bytes
// is mounted at $2. It begins as root of a user namespace and goes on under
// another number of the same account, because the server refuses to run as root.
const mounted = `mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 && exec unshare --user --map-user=1000 --map-group=1000 -- "$@"`

// limited runs a command, $1 and what follows, under which no file gets longer
// than 2 MiB and a piece of a page, of 512 or of 1,024 bytes.
const limited = `ulimit -f 4100 && exec "$@"`

// disk makes the folder of the tablespace. Whoever may not mount a file system
// has the server's files limited in length while the disk is full.
func (s *Server) disk() error {
	if s.opts.Disk == 0 {
		return nil
	}
	err := os.Mkdir(s.diskFolder(), 0o700)
	if err == nil {
		err = s.give(s.diskFolder())
	}
	s.mounts = err == nil && s.command("unshare", s.mount("test", "-w", s.diskFolder())...).Run() == nil
	return err
}

func (s *Server) diskFolder() string { return filepath.Join(s.folder, Disk) }

// mount are the arguments of unshare that run a command where the disk is mounted.
func (s *Server) mount(command ...string) []string {
	return append([]string{"--user", "--map-root-user", "--mount", "--", "/bin/sh", "-c", mounted, "sh",
		strconv.FormatInt(s.opts.Disk, 10), s.diskFolder()}, command...)
}

// Fill leaves that many bytes of the disk free, with tables in a database on
// it, and returns the SQLSTATE with which the server answers to who needs more.
// Without a file system of its own the disk is full for every file of 2 MiB.
func (s *Server) Fill(tb testing.TB, database string, free int64) (state string) {
	tb.Helper()
	if !s.mounts {
		s.again(tb, func() error { return s.start("/bin/sh", "-c", limited, "sh") })
		free = 0
	}
	const fill = "INSERT INTO %s SELECT repeat('x', 1000) FROM generate_series(1, %d)" // seven rows a page
	// A fresh database has holes, which this fills.
	s.Exec(tb, database, "CHECKPOINT")
	for _, table := range []string{"reserve", "ballast"} {
		s.Exec(tb, database, "CREATE TABLE "+table+" (filler text) WITH (autovacuum_enabled = off)")
	}
	s.Exec(tb, database, fmt.Sprintf(fill, "reserve", free/8192*7))
	// What a failed statement took stays taken.
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

// again stops the server in an orderly way and starts it otherwise.
func (s *Server) again(tb testing.TB, start func() error) {
	tb.Helper()
	if err := errors.Join(s.control("stop", "-m", "fast"), start()); err != nil {
		tb.Fatal(err)
	}
}
