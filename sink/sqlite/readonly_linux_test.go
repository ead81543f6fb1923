package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
	"golang.org/x/sys/unix"
)

// asAuditor calls f as a user who may read the directory of a database but not write to it.
// f must not end the test.
func asAuditor(t *testing.T, path string, f func()) { asOther(t, path, 0o555, f) }

// asOther calls f as a user with these rights to the directory of a database.
// It is one of publicDir.
func asOther(t *testing.T, path string, rights os.FileMode, f func()) {
	dir := filepath.Dir(path)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	noError(t, err)
	for _, name := range files { // may be read, whatever the umask
		info, err := os.Stat(name)
		noError(t, err)
		noError(t, os.Chmod(name, info.Mode()|0o444))
	}
	noError(t, os.Chmod(filepath.Dir(dir), 0o755))
	noError(t, os.Chmod(dir, rights))
	defer os.Chmod(dir, 0o755)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if os.Geteuid() == 0 { // who may write everywhere: this thread, which ends here, is nobody's
			runtime.LockOSThread()
			const nobody = 65534
			if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); e != 0 {
				t.Errorf("root may not become uid %d: %v", nobody, e)
				return
			}
		}
		f()
	}()
	<-done
}

// publicDir is a new directory that asOther can open for other users.
func publicDir(t *testing.T) string {
	if os.Geteuid() == 0 {
		t.Setenv("TMPDIR", "/tmp") // root's own may be for root alone
		t.Setenv("GOTMPDIR", "")
	}
	return t.TempDir()
}

// A user who may not write to the directory can look, and leaves no files.
func TestReadOnlyFolder(t *testing.T) {
	path := filepath.Join(publicDir(t), "a?b#c%25.db")
	filled(t, path, makeLinks("w", 0, 10))
	asAuditor(t, path, func() {
		ctx := context.Background()
		s, err := Open(ctx, path)
		if err != nil {
			t.Error(err)
			return
		}
		if runs, err := s.Runs(ctx); err != nil || len(runs) != 1 {
			t.Errorf("runs %+v, %v", runs, err)
		}
		links := 0
		if err := s.Scan(ctx, func(*sink.Stored) error { links++; return nil }); err != nil || links != 10 {
			t.Errorf("%d links, %v", links, err)
		}
		if _, err := s.Lock(ctx, nil, sink.LockOptions{}); err == nil {
			t.Error("a session that writes was opened")
		}
		if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 2 {
			t.Errorf("files %v, %v", entries, err)
		}
	})
}

// A user who may write to the directory, but not to the file, leaves no files that would stop
// the owner from writing.
func TestReadOnlyFile(t *testing.T) {
	path := filepath.Join(publicDir(t), "x.db")
	filled(t, path, makeLinks("w", 0, 10))
	noError(t, os.Chmod(path, 0o444))
	noError(t, os.Chmod(path+".lock", 0o666))
	asOther(t, path, 0o777, func() {
		s, err := Open(context.Background(), path)
		if err != nil {
			t.Error(err)
			return
		}
		if runs, err := s.Runs(context.Background()); err != nil || len(runs) != 1 {
			t.Errorf("runs %+v, %v", runs, err)
		}
		if _, err := s.Lock(context.Background(), nil, sink.LockOptions{}); err == nil || !strings.Contains(err.Error(), "no permission to write the file") {
			t.Errorf("lock: %v", err)
		}
		if _, err := s.Undo(context.Background(), 1, sink.LockOptions{}, nil); err == nil || !strings.Contains(err.Error(), "no permission to write the file") {
			t.Errorf("undo: %v", err)
		}
		if left, err := filepath.Glob(path + "-*"); err != nil || len(left) > 0 {
			t.Errorf("files %v, %v", left, err)
		}
	})
}

// What is not in the file alone cannot be read there. The error says what to do,
// and that helps.
func TestReadOnlyFolderWithWAL(t *testing.T) {
	from, path := filepath.Join(publicDir(t), "x.db"), filepath.Join(publicDir(t), "x.db")
	copied := func(from, to string) {
		for _, suffix := range []string{"", "-wal"} {
			b, err := os.ReadFile(from + suffix)
			noError(t, err)
			noError(t, os.WriteFile(to+suffix, b, 0o644))
		}
	}
	inSession(t, open(t, from), func(s *session, run sink.Run) { copied(from, path) }, "w")
	asAuditor(t, path, func() {
		if _, err := Open(context.Background(), path); err == nil || !strings.Contains(err.Error(), "only to look, copy the database and its -wal file to a directory of your own while no program has it open") {
			t.Errorf("error %v", err)
		}
	})
	own := filepath.Join(t.TempDir(), "x.db")
	copied(path, own)
	runs, err := open(t, own).Runs(context.Background())
	if err != nil || len(runs) != 1 {
		t.Errorf("runs %+v, %v", runs, err)
	}
}

// A file that somebody wrote to while it was read was perhaps read half, and what failed
// may have failed over that.
func TestReadOnlyFolderChanges(t *testing.T) {
	path := filepath.Join(publicDir(t), "x.db")
	filled(t, path, makeLinks("w", 0, 10))
	asAuditor(t, path, func() {
		s, err := Open(context.Background(), path)
		if err != nil {
			t.Error(err)
			return
		}
		for i, failed := range []error{nil, errors.New("no host in it")} {
			err = s.Scan(context.Background(), func(*sink.Stored) error {
				written := make(chan error)
				go func() { written <- os.Chtimes(path, time.Time{}, time.Now().Add(time.Duration(i+1)*time.Hour)) }()
				return errors.Join(<-written, failed)
			})
			if !errors.Is(err, sink.ErrRetryable) || !strings.Contains(err.Error(), "another program wrote to the file") || failed != nil && !errors.Is(err, failed) {
				t.Errorf("error %v", err)
			}
		}
	})
}
