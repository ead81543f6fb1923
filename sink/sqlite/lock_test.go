package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linkforge/bulk/sink"
)

// Through a symbolic link the lock is the same, also of one that was there before the
// file.
func TestSymlink(t *testing.T) {
	dir := t.TempDir()
	link, early := filepath.Join(dir, "link.db"), filepath.Join(dir, "early.db")
	noError(t, os.Mkdir(filepath.Join(dir, "to"), 0o777))
	noError(t, os.Symlink("to/x.db", link))
	noError(t, os.Symlink("link.db", early))
	store := open(t, early)
	if want := filepath.Join(dir, "to", "x.db"); store.Files()[0] != want {
		t.Errorf("path %s, want %s", store.Files()[0], want)
	}
	// After a symbolic link, .. is the parent of the directory that it leads to.
	noError(t, os.MkdirAll(filepath.Join(dir, "to", "deep"), 0o777))
	noError(t, os.Symlink("to/deep", filepath.Join(dir, "deep")))
	for _, name := range []string{"x.db", "new.db"} {
		if path, err := Resolve(dir + "/deep/../" + name); err != nil || path != filepath.Join(dir, "to", name) {
			t.Errorf("%s lies at %s, %v", name, path, err)
		}
	}
	inSession(t, store, func(*session, sink.Run) {
		_, err := open(t, link).Lock(context.Background(), []string{"w"}, sink.LockOptions{NoWait: true})
		if !errors.Is(err, sink.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
			t.Errorf("error %v", err)
		}
	}, "w")
}

// By another name the file would have another lock and another WAL.
func TestHardLink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	inSession(t, open(t, path), func(*session, sink.Run) {}, "w")
	noError(t, os.Link(path, path+"2"))
	for _, name := range []string{path, path + "2"} {
		if _, err := Open(context.Background(), name); err == nil || !strings.Contains(err.Error(), "hard links") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	noError(t, os.Remove(path+"2"))
	open(t, path)
}

// A user who may write the database may lock it.
func TestModeOfTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	inSession(t, open(t, path), func(*session, sink.Run) {}, "w")
	noError(t, os.Chmod(path, 0o660))
	inSession(t, open(t, path), func(*session, sink.Run) {}, "w")
	info, err := os.Stat(path + lockSuffix)
	noError(t, err)
	if info.Mode().Perm() != 0o660 {
		t.Errorf("mode %v", info.Mode())
	}
}

// A file that happens to have the name of the lock is not written to, but one that a run
// was killed over is.
func TestLockIsAnotherFile(t *testing.T) {
	for content, ours := range map[string]bool{
		"": true, "pro": true, "process ": true, "process 1 on here, since then\n": true,
		"url\nhttp://a.example/\n": false, "processes\n": false, "process " + strings.Repeat("x", 2000): false,
	} {
		path := filepath.Join(t.TempDir(), "x.db.lock")
		noError(t, os.WriteFile(path, []byte(content), 0o666))
		f, err := lock(context.Background(), path, sink.LockOptions{})
		if (err == nil) != ours {
			t.Errorf("%q: error %v", content, err)
		}
		if err == nil {
			noError(t, f.Close())
		} else if is, err := os.ReadFile(path); err != nil || string(is) != content {
			t.Errorf("%q is %q now, %v", content, is, err)
		}
		noError(t, os.Symlink(path, path+"2"))
		if _, err := lock(context.Background(), path+"2", sink.LockOptions{}); err == nil {
			t.Error("a link as lock file")
		}
	}
}

// A lock file that is removed while somebody waits for it is not the lock any more: a new
// one is, and if another has that by then, the wait goes on.
func TestLockFileRemoved(t *testing.T) {
	for _, taken := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "x.db.lock")
		holder, err := lock(context.Background(), path, sink.LockOptions{})
		noError(t, err)
		waited := 0
		next, err := lock(context.Background(), path, sink.LockOptions{Wait: func(string) {
			if waited++; waited == 1 {
				noError(t, os.Remove(path))
			}
			noError(t, holder.Close())
			if waited == 1 && taken {
				holder, err = lock(context.Background(), path, sink.LockOptions{NoWait: true})
				noError(t, err)
			}
		}})
		noError(t, err)
		defer next.Close()
		if waited == 2 != taken {
			t.Errorf("taken: %t, waited %d times", taken, waited)
		}
		if _, err := lock(context.Background(), path, sink.LockOptions{NoWait: true}); !errors.Is(err, sink.ErrLocked) {
			t.Errorf("taken: %t, and another has it too: %v", taken, err)
		}
	}
}
