package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/linkforge/bulk/sink"
	"golang.org/x/sys/unix"
)

// lockPoll is the pause between two tries of a run that waits. A blocking flock could not be
// cancelled.
const lockPoll = 20 * time.Millisecond

// lock locks the lock file, and writes the name of this process into it. The file stays when
// the lock is released. If somebody removes the file, a run that waited for it waits for
// the new file, since the next run locks that one. A file that is not a lock file is not
// changed.
func lock(ctx context.Context, path string, opts sink.LockOptions) (*os.File, error) {
	f, err := lockFile(ctx, path, opts)
	if err == nil {
		err = sign(f)
	}
	return f, err
}

// lockFile locks a lock file, and changes nothing in it.
func lockFile(ctx context.Context, path string, opts sink.LockOptions) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o666)
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	if err := flock(ctx, f, opts); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	locked, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if named, err := os.Stat(path); err != nil || !os.SameFile(locked, named) {
		if err := f.Close(); err != nil {
			return nil, err
		}
		return lockFile(ctx, path, opts)
	}
	if err := isLock(f, locked.Size()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sign writes the name of this process into a lock file. If that fails, it closes the file.
func sign(f *os.File) error {
	if info, err := os.Stat(strings.TrimSuffix(f.Name(), filepath.Ext(f.Name()))); err == nil {
		// Like SQLite's own files, the lock file has the mode of the database: every user who
		// may write the database can lock it. For another user's file this fails, but that user
		// has done it.
		_ = f.Chmod(info.Mode().Perm() | 0o600)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	if err = f.Truncate(0); err == nil {
		_, err = fmt.Fprintf(f, lockBegins+"%d on %s, since %s\n", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339))
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("write the lock file: %w", err), f.Close())
	}
	return err
}

const (
	lockBegins = "process "
	maxLock    = 1024 // bytes of a lock file
)

// isLock refuses a file that no run wrote, as a whole or in part.
func isLock(f *os.File, size int64) error {
	head := make([]byte, min(size, int64(len(lockBegins))))
	if _, err := f.ReadAt(head, 0); err != nil {
		return fmt.Errorf("read the lock file: %w", err)
	}
	if size > maxLock || !strings.HasPrefix(lockBegins, string(head)) {
		return fmt.Errorf("%s exists, and is not the lock file of a run; move it away, or choose another database", f.Name())
	}
	return nil
}

// flock takes the lock, and waits for it unless the options say not to.
func flock(ctx context.Context, f *os.File, opts sink.LockOptions) error {
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		case opts.NoWait:
			return &heldError{f.Name(), holder(f)}
		case opts.Wait != nil:
			opts.Wait(holder(f))
			opts.Wait = nil // call it once
		}
		select {
		case <-ctx.Done():
		case <-time.After(lockPoll):
		}
	}
}

// holder reads which process has the lock. It may not have written its name yet.
func holder(f *os.File) string {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxLock))
	if s := strings.TrimSpace(string(b)); err == nil && s != "" {
		return s
	}
	return "a process that has just taken the lock"
}

// A heldError is a sink.ErrLocked.
type heldError struct{ path, holder string }

func (e *heldError) Error() string {
	return fmt.Sprintf("%s: %v: %s", e.path, sink.ErrLocked, e.holder)
}

func (e *heldError) Unwrap() error { return sink.ErrLocked }
