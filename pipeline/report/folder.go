package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Why a folder could not be claimed. The errors that wrap them name the folder.
var (
	ErrBusy    = errors.New("another run is writing it")
	ErrExists  = errors.New("holds a finished run")
	ErrNotOurs = errors.New("not the output of a run")
)

// A Folder is the output of one run. It is written under another name beside
// its own, .NAME.partial, and takes its name whole: whoever looks finds the old
// output, or none, or the new one.
//
// The lock on the partial folder dies with the process, so what a killed run
// left is known and removed by the next.
type Folder struct {
	fs        fileSystem
	out       string // as the user named it, for messages
	target    string // the same, absolute
	partial   string
	overwrite bool

	// held is the locked folder that lies under the name partial; nil when
	// nothing of ours is there any more.
	held handle

	mu    sync.Mutex
	files []*File
}

// Claim locks the output folder out for this run. Its parent must exist; out
// itself must not, or be empty, or, with overwrite, hold a finished run and
// nothing else. An output that another process is writing is ErrBusy, a
// finished run without overwrite ErrExists, anything else, which is never
// touched, ErrNotOurs.
func Claim(out string, overwrite bool) (*Folder, error) {
	return claim(osFS{}, out, overwrite)
}

func claim(fsys fileSystem, out string, overwrite bool) (*Folder, error) {
	target, err := filepath.Abs(out)
	if err != nil {
		return nil, fmt.Errorf("output folder %s: %w", out, err)
	}
	dir, name := filepath.Split(target)
	f := &Folder{fs: fsys, out: filepath.Clean(out), target: target, overwrite: overwrite,
		partial: filepath.Join(dir, "."+name+".partial")}
	if f.held, err = f.lock(); err == nil {
		err = f.prepare()
	}
	if err != nil {
		return nil, f.named(errors.Join(err, f.abandon()))
	}
	return f, nil
}

// named says which folder an error is about.
func (f *Folder) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("output folder %s: %w", f.out, err)
}

// lock makes the partial folder, or takes that of a killed run, and locks it.
func (f *Folder) lock() (handle, error) {
	for {
		mkdir := f.fs.Mkdir(f.partial)
		if mkdir != nil && !errors.Is(mkdir, fs.ErrExist) {
			return nil, mkdir
		}
		h, err := f.openLocked(f.partial, false)
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			return nil, fmt.Errorf("%w (%s is locked)", ErrBusy, filepath.Base(f.partial))
		case errors.Is(err, fs.ErrNotExist):
			continue // its owner has just finished
		case err != nil && mkdir == nil:
			err = errors.Join(err, f.fs.Remove(f.partial))
		}
		return h, err
	}
}

// prepare checks what lies under the final name and removes what a killed run
// left under the partial one.
func (f *Folder) prepare() error {
	finished, err := f.inspect()
	if err != nil {
		return err
	}
	if err := f.clear(); err != nil {
		return fmt.Errorf("remove what a killed run left: %w", err)
	}
	if finished {
		return f.tryExchange()
	}
	return nil
}

// openLocked opens and locks a folder. Whoever held the lock may have renamed
// or removed the folder meanwhile: then the error is fs.ErrNotExist.
func (f *Folder) openLocked(path string, wait bool) (_ handle, err error) {
	h, err := f.fs.OpenDir(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if err := h.Lock(wait); err != nil {
		return nil, fmt.Errorf("lock %s: %w", filepath.Base(path), err)
	}
	locked, err := h.Stat()
	if err != nil {
		return nil, err
	}
	named, err := f.fs.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !os.SameFile(locked, named) {
		return nil, fs.ErrNotExist
	}
	return h, nil
}

// clear removes what the partial folder holds, but not the folder, whose lock
// keeps others away.
func (f *Folder) clear() error {
	entries, err := f.fs.ReadDir(f.partial)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := f.fs.RemoveAll(filepath.Join(f.partial, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// tryExchange finds out before the work whether the file system can exchange
// two folders.
func (f *Folder) tryExchange() error {
	a, b := filepath.Join(f.partial, "a"), filepath.Join(f.partial, "b")
	for _, dir := range []string{a, b} {
		if err := f.fs.Mkdir(dir); err != nil {
			return err
		}
	}
	if err := f.fs.Exchange(a, b); err != nil {
		return fmt.Errorf("cannot overwrite it, for lack of a way to exchange two folders here; name another folder: %w", err)
	}
	return f.clear()
}

// Create returns a new file of the folder, which comes into being with its
// first byte. Safe for concurrent use.
func (f *Folder) Create(name string) (*File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.ContainsFunc(f.files, func(o *File) bool { return o.name == name }) {
		return nil, fmt.Errorf("create %s: %w", filepath.Join(f.out, name), fs.ErrExist)
	}
	file := newFile(f, name)
	f.files = append(f.files, file)
	return file, nil
}

// Discard removes a file that Create returned, if there is one of this name, so
// that it can be written once more. Nobody may be writing it.
func (f *Folder) Discard(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.files, func(o *File) bool { return o.name == name })
	if i < 0 {
		return nil
	}
	file := f.files[i]
	f.files = slices.Delete(f.files, i, i+1)
	if err := errors.Join(file.discard(), f.fs.RemoveAll(filepath.Join(f.partial, name))); err != nil {
		return fmt.Errorf("remove %s: %w", file.path, cause(err))
	}
	return nil
}

// Commit gives the folder its name, once all files are closed. After an error
// either nothing has changed under that name or, where only the folder around
// it could not be synced or the old output not be removed, all of it. Abandon
// cleans up in both cases.
func (f *Folder) Commit() error {
	for _, file := range f.files {
		if err := file.settled(); err != nil {
			return err
		}
	}
	return f.named(f.commit())
}

func (f *Folder) commit() error {
	if f.held == nil {
		return fs.ErrClosed
	}
	if err := f.held.Sync(); err != nil {
		return fmt.Errorf("sync it: %w", cause(err))
	}
	finished, err := f.inspect() // again: hours may have passed
	if err != nil {
		return err
	}
	if finished {
		return f.exchange()
	}
	if err := f.fs.Rename(f.partial, f.target); err != nil {
		return fmt.Errorf("rename %s to it: %w", filepath.Base(f.partial), err)
	}
	lock := f.held
	f.held = nil
	return errors.Join(f.syncParent(), lock.Close())
}

// exchange puts the folder in the place of a finished run, and removes that.
// Its lock, taken before it lies under the partial name, keeps others from
// claiming that name until it is gone.
func (f *Folder) exchange() error {
	old, err := f.openLocked(f.target, true)
	if err != nil {
		return fmt.Errorf("overwrite it: %w", err)
	}
	if err := f.fs.Exchange(f.partial, f.target); err != nil {
		return errors.Join(fmt.Errorf("overwrite it: %w", err), old.Close())
	}
	lock := f.held
	f.held = old
	return errors.Join(f.syncParent(), lock.Close(), f.abandon())
}

func (f *Folder) syncParent() error {
	parent, err := f.fs.OpenDir(filepath.Dir(f.target))
	if err == nil {
		err = errors.Join(parent.Sync(), parent.Close())
	}
	if err != nil {
		return fmt.Errorf("sync the folder around it: %w", err)
	}
	return nil
}

// Abandon removes the partial folder and everything in it. It does nothing
// after Commit, and may be called again, also to try once more after an error.
// Nobody may be writing a file.
func (f *Folder) Abandon() error { return f.named(f.abandon()) }

func (f *Folder) abandon() error {
	if f.held == nil {
		return nil
	}
	var errs []error
	for _, file := range f.files {
		errs = append(errs, file.discard())
	}
	if err := f.fs.RemoveAll(f.partial); err != nil {
		return errors.Join(append(errs, fmt.Errorf("remove %s: %w", filepath.Base(f.partial), cause(err)))...)
	}
	errs = append(errs, f.held.Close())
	f.held = nil
	return errors.Join(errs...)
}
