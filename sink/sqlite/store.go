package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/linkforge/bulk/sink"
	"golang.org/x/sys/unix"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	pageSize    = 8192            // a load needs a sixth less processor time than with 4096; 16384 is no better
	writerCache = 16 << 20        // of pages, each of which needs twice its size: the library allocates powers of two
	readerCache = 512 << 10       // the same; with 4 MiB no Lookup is faster: neighbouring probes need the same pages, except a leaf
	busyTimeout = 5 * time.Second // for another writer of the database
)

// A Store is an SQLite file, or the place for one. It is a sink.Store.
type Store struct {
	path   string        // absolute, symbolic links resolved, so that all agree on the lock file
	busy   time.Duration // busyTimeout; less in tests
	txRows int           // transactionRows; fewer in tests
	txTime time.Duration // transactionTime; more or less in tests

	mu    sync.Mutex
	stats map[string]any
}

var _ sink.Store = (*Store)(nil)

// Open checks that the path is a database of bulk, an empty file, or a new name in a
// directory that exists. It creates nothing. Lock checks whether the file may be written. The
// error wraps sink.ErrNotOurs if the file is another database.
func Open(ctx context.Context, path string) (*Store, error) {
	path, err := Resolve(path)
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, busy: busyTimeout, txRows: transactionRows, txTime: transactionTime, stats: map[string]any{}}
	if err := s.look(ctx, func(*conn) error { return nil }); err != nil && !errors.Is(err, sink.ErrMissing) && !errors.Is(err, sink.ErrOldTables) {
		return nil, err
	}
	return s, nil
}

// Resolve makes the path of a database absolute, without symbolic links. The database need
// not exist.
func Resolve(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return "", fmt.Errorf("%s is a directory, not a database", path)
	case err == nil && !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file", path)
	case err == nil && info.Sys().(*syscall.Stat_t).Nlink > 1: // lock and WAL go by the name
		return "", fmt.Errorf("%s has other names, too (hard links); to write to it by one name would damage it for the others", path)
	case err == nil:
		return physical(path)
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	folder, name := filepath.Split(path)
	if folder, err = physical(folder + "."); err != nil {
		return "", fmt.Errorf("the directory of the database %s: %w", path, err)
	}
	path = filepath.Join(folder, name)
	if to, err := os.Readlink(path); err == nil { // the link exists, the database does not
		if !filepath.IsAbs(to) {
			to = folder + "/" + to
		}
		return Resolve(to)
	}
	return path, nil
}

// physical makes the path of an existing file or directory absolute, without symbolic links,
// also without those that led to the working directory.
func physical(path string) (string, error) {
	if !filepath.IsAbs(path) {
		dir, err := os.Getwd()
		if err != nil {
			return "", err
		}
		path = dir + "/" + path // not joined: .. would remove a symbolic link rather than the directory that it leads to
	}
	return filepath.EvalSymlinks(path)
}

// The files of the locks of runs and of sweeps.
const (
	lockSuffix  = ".lock"
	sweepSuffix = ".sweep"
)

// Files returns the absolute paths, without symbolic links, of the file and of the files that
// may appear beside it.
func (s *Store) Files() []string {
	return []string{s.path, s.path + lockSuffix, s.path + sweepSuffix, s.path + "-wal", s.path + "-shm", s.path + "-journal"}
}

// existing opens a connection that only looks. If there is no database yet, the error is
// sink.ErrMissing; if Lock can upgrade it, sink.ErrOldTables. The caller closes the connection.
func (s *Store) existing(ctx context.Context) (*conn, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // not wrapped: a missing file of a report is another error
		return nil, fmt.Errorf("%s: no such file: %w", s.path, sink.ErrMissing)
	case err != nil:
		return nil, err
	case info.Size() == 0:
		return nil, fmt.Errorf("%s: the file is empty: %w", s.path, sink.ErrMissing)
	}
	c, err := s.dialReader(info)
	if err != nil {
		return nil, err
	}
	err = c.during(ctx, func() error {
		switch made, err := c.glance(); {
		case err != nil:
			return err
		case made == 0:
			return fmt.Errorf("%s: the database is empty: %w", c.path, sink.ErrMissing)
		case made < version:
			return fmt.Errorf("%s: %w: the next bulk run without Config.DryRun upgrades them", c.path, sink.ErrOldTables)
		}
		return c.exec("set up", fmt.Sprintf("PRAGMA query_only = 1; PRAGMA cache_size = %d", -readerCache>>10))
	})
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// look calls f with a connection that only looks.
func (s *Store) look(ctx context.Context, f func(*conn) error) error {
	c, err := s.existing(ctx)
	if err != nil {
		return err
	}
	err = c.during(ctx, func() error { return f(c) })
	if closing := c.close(); closing != nil {
		err = errors.Join(err, closing)
	}
	return err
}

// dialReader opens the file, whose state is info, only to look. If this user may not write
// the file, SQLite must not create files beside it, because the owner could not use them. If
// there is no WAL or journal, the file is then read as one that does not change; close
// checks that.
func (s *Store) dialReader(info fs.FileInfo) (*conn, error) {
	if unix.Access(s.path, unix.W_OK) == nil && unix.Access(filepath.Dir(s.path), unix.W_OK) == nil {
		// A connection that cannot write would leave FILE-wal and FILE-shm behind.
		return dial(s.path, sqlite3.SQLITE_OPEN_READWRITE, s.busy)
	}
	how, still := "readonly_shm=1", fs.FileInfo(nil)
	if blank(s.path+"-wal") && blank(s.path+"-journal") {
		how, still = "immutable=1", info
	}
	name := url.URL{Scheme: "file", Path: s.path, RawQuery: how}
	c, err := dial(name.String(), sqlite3.SQLITE_OPEN_READONLY|sqlite3.SQLITE_OPEN_URI, s.busy)
	if err == nil {
		c.path, c.still = s.path, still
	}
	return c, err
}

// blank reports whether a file does not exist or is empty.
func blank(path string) bool {
	info, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}

// Peek implements sink.Store.
func (s *Store) Peek(ctx context.Context) (sink.Session, error) {
	c, err := s.existing(ctx)
	if err != nil {
		return nil, err
	}
	return &session{store: s, c: c}, nil
}

// Lock implements sink.Store. It upgrades an older schema. One lock covers the whole database.
func (s *Store) Lock(ctx context.Context, workspaces []string, opts sink.LockOptions) (sink.Session, error) {
	f, err := lock(ctx, s.path+lockSuffix, opts)
	if err != nil {
		return nil, err
	}
	c, err := s.writer(ctx)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &session{store: s, c: c, lock: f, workspaces: workspaces}, nil
}

// lockExisting is Lock if there is a database: Lock would create the file.
func (s *Store) lockExisting(ctx context.Context, workspaces []string, opts sink.LockOptions) (*session, error) {
	if err := s.look(ctx, func(*conn) error { return nil }); err != nil {
		return nil, err
	}
	locked, err := s.Lock(ctx, workspaces, opts)
	if err != nil {
		return nil, err
	}
	return locked.(*session), nil
}

// writer opens the connection that writes, and creates a missing database. It does not open a
// file that may not be written: SQLite would read it, and leave a FILE-wal and FILE-shm that
// the owner of the file may not write.
func (s *Store) writer(ctx context.Context) (*conn, error) {
	if err := unix.Access(s.path, unix.W_OK); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no permission to write the file: %w", s.path, err)
	}
	c, err := dial(s.path, sqlite3.SQLITE_OPEN_READWRITE|sqlite3.SQLITE_OPEN_CREATE, s.busy)
	if err != nil {
		return nil, err
	}
	err = c.during(ctx, func() error {
		// After a large load, SQLite cuts the WAL to the limit.
		err := c.exec("set up", fmt.Sprintf("PRAGMA synchronous = FULL; PRAGMA journal_size_limit = %d; PRAGMA cache_size = %d",
			64<<20, -writerCache>>10))
		if err != nil {
			return err
		}
		return c.create()
	})
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// Runs implements sink.Store.
func (s *Store) Runs(ctx context.Context) (runs []sink.Run, err error) {
	err = s.look(ctx, func(c *conn) (err error) { runs, err = c.runs(""); return err })
	return runs, err
}

// Stats implements sink.Store: rows and transactions of the last Load, whether it created
// the index at the end, and the seconds that it took.
func (s *Store) Stats() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.stats)
}

// Close implements sink.Store. The connections belong to the sessions.
func (s *Store) Close() error { return nil }
