// Package outdir is the output directory of a run: it is claimed before the inputs are read,
// written under another name, and renamed whole at the end ([Dir]). So it holds the old
// output, or none, or the new one, at any moment.
package outdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/manifest"
	"golang.org/x/sys/unix"
)

// Why a directory could not be claimed. The errors that wrap them name the directory.
var (
	ErrBusy   = errors.New("another run is writing it")
	ErrExists = errors.New("holds a finished run")
)

const filesName = "files" // of the directory inside the partial one

// A Dir is the output of one run. As long as the run is at work it is written beside its
// name:
//
//	.NAME.partial/         locked by the process
//	.NAME.partial/files/   becomes NAME
//
// The lock dies with the process, so what a killed run left can be told from a run at work.
// The next claim, of whatever run, deletes it: every run writes its files anew.
type Dir struct {
	fs        fsys.FS
	out       string // as the user named it, for messages
	target    string // the same, absolute
	partial   string
	inner     string // that becomes target
	overwrite bool

	around    fsys.File // the directory that target lies in
	held      fsys.File // the locked partial directory; nil once it is renamed or removed
	mine      bool      // nothing of another run is in it: this run may remove it
	made      bool      // inner is there, made by this claim
	discarded bool      // files of a killed run were there
	files     []*File
}

// ClaimOptions say how a directory is claimed.
type ClaimOptions struct {
	FS        fsys.FS // nil: that of the system
	Overwrite bool    // a finished run may be replaced
}

// Claim locks the output directory out for this run. Its parent must exist. Where out
// itself exists it must be empty, or hold a finished run that may be replaced and
// nothing else. The error is ErrBusy if another process is writing it, ErrExists for a
// finished run that may not be replaced, and ErrNotOurs for anything else, which is
// never touched.
func Claim(out string, opts ClaimOptions) (*Dir, error) {
	f, err := unclaimed(out, opts)
	if err != nil {
		return nil, err
	}
	if f.held, err = f.lock(); err != nil {
		return nil, f.named(errors.Join(err, f.around.Close()))
	}
	if err := f.prepare(); err != nil {
		return nil, errors.Join(f.named(err), f.Abandon())
	}
	return f, nil
}

// Look returns the ErrBusy, ErrExists or ErrNotOurs that Claim would, as far as that shows
// without a partial directory of its own. It changes nothing.
func Look(out string, opts ClaimOptions) error {
	f, err := unclaimed(out, opts)
	if err != nil {
		return err
	}
	if _, err = f.inspect(); err != nil {
		switch h, locked := f.openLocked(); {
		case errors.Is(locked, ErrBusy): // what was seen may change yet
			err = locked
		case locked == nil:
			err = errors.Join(err, h.Close())
		}
	}
	return f.named(errors.Join(err, f.around.Close()))
}

// unclaimed returns the directory before it is locked, with the directory around it open.
func unclaimed(out string, opts ClaimOptions) (*Dir, error) {
	target, err := fsys.Abs(out)
	if err != nil {
		return nil, fmt.Errorf("output directory %s: %w", out, err)
	}
	partial := PartialOf(target)
	f := &Dir{fs: fsys.Or(opts.FS), out: filepath.Clean(out), target: target, overwrite: opts.Overwrite,
		partial: partial, inner: filepath.Join(partial, filesName)}
	if f.around, err = f.fs.Open(filepath.Dir(target)); err != nil { // for the sync at the end
		return nil, f.named(fmt.Errorf("its parent directory: %w", err))
	}
	return f, nil
}

// PartialOf names the directory where an output is written.
func PartialOf(out string) string {
	dir, name := filepath.Split(filepath.Clean(out))
	return filepath.Join(dir, "."+name+".partial")
}

// FailedOf names the output directory of a run with the output directory out that may store
// no links, such as one with too many rejects.
func FailedOf(out string) string { return named(out) + ".failed" }

// DryOf names the output directory of a dry run.
func DryOf(out string) string { return named(out) + ".dry" }

// named returns a path whose last element is the name of a directory, neither "." nor "..".
func named(out string) string {
	out = filepath.Clean(out)
	if base := filepath.Base(out); base == "." || base == ".." {
		if abs, err := fsys.Abs(out); err == nil {
			return abs
		}
	}
	return out
}

// named says which directory an error is about.
func (f *Dir) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("output directory %s: %w", f.out, err)
}

// lock makes the partial directory, or takes that of a killed run, and locks it.
func (f *Dir) lock() (fsys.File, error) {
	for {
		mkdir := f.fs.Mkdir(f.partial)
		if mkdir != nil && !errors.Is(mkdir, fs.ErrExist) {
			return nil, mkdir
		}
		h, err := f.openLocked()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // its owner has just finished
		case err != nil && mkdir == nil && !errors.Is(err, ErrBusy):
			err = errors.Join(err, f.fs.Remove(f.partial))
		}
		f.mine = mkdir == nil
		return h, err
	}
}

// openLocked opens and locks the partial directory. Whoever held the lock may have
// removed the directory meanwhile: then the error is fs.ErrNotExist.
func (f *Dir) openLocked() (_ fsys.File, err error) {
	h, err := f.fs.OpenDir(f.partial)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if err := h.Lock(); errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("%w (%s is locked)", ErrBusy, filepath.Base(f.partial))
	} else if err != nil {
		return nil, fmt.Errorf("lock %s: %w", filepath.Base(f.partial), err)
	}
	locked, err := h.Stat()
	if err != nil {
		return nil, err
	}
	named, err := f.fs.Lstat(f.partial)
	if err != nil {
		return nil, err
	}
	if !os.SameFile(locked, named) {
		return nil, fs.ErrNotExist
	}
	return h, nil
}

// prepare deletes what a killed run left, and checks what lies under the final name.
func (f *Dir) prepare() error {
	if err := f.owned(); err != nil {
		return err
	}
	if err := f.clear(); err != nil {
		return err
	}
	finished, err := f.inspect()
	if err == nil && finished {
		err = f.tryExchange()
	}
	return err
}

// clear deletes what a killed run left. The partial directory itself stays: its lock keeps
// other runs away.
func (f *Dir) clear() error {
	entries, err := f.entries()
	for _, e := range entries {
		f.discarded = f.discarded || e.Name() == filesName
		if err == nil {
			err = f.held.RemoveAll(e.Name())
		}
	}
	if err != nil {
		return fmt.Errorf("delete what a killed run left: %w", err)
	}
	f.mine = true
	return nil
}

// Name is the directory as it was named.
func (f *Dir) Name() string { return f.out }

// Discarded reports whether the claim deleted files of a run that was killed.
func (f *Dir) Discarded() bool { return f.discarded }

// tryExchange finds out before the work whether the file system can exchange
// two directories, and whether the one that is there may be moved.
func (f *Dir) tryExchange() error {
	if err := f.fs.Writable(f.target); err != nil {
		return fmt.Errorf("cannot overwrite it: %w", err)
	}
	for _, name := range []string{"a", "b"} {
		if err := f.held.RemoveAll(name); err != nil {
			return err
		}
		if err := f.fs.Mkdir(filepath.Join(f.partial, name)); err != nil {
			return err
		}
	}
	err := f.fs.Exchange(filepath.Join(f.partial, "a"), filepath.Join(f.partial, "b"))
	if err != nil {
		err = fmt.Errorf("cannot overwrite it, since two directories cannot be exchanged here; give another directory: %w", err)
	}
	return errors.Join(err, f.held.RemoveAll("a"), f.held.RemoveAll("b"))
}

// Create returns a new file of the directory, which appears there with its first byte. A
// file that Create returned for the same name before is discarded. The name has no
// separator.
func (f *Dir) Create(name string) (*File, error) {
	if !filepath.IsLocal(name) || filepath.Base(name) != name || name == "." {
		return nil, f.named(fmt.Errorf("%q cannot be the name of a file in it", name))
	}
	if err := f.Discard(name); err != nil {
		return nil, err
	}
	if !f.made {
		if err := f.fs.Mkdir(f.inner); err != nil {
			return nil, f.named(fmt.Errorf("make %s: %w", filesName, fsys.Cause(err)))
		}
		f.made = true
	}
	file := newFile(f, name)
	f.files = append(f.files, file)
	return file, nil
}

// Files returns what Create returned, without what was discarded.
func (f *Dir) Files() []*File { return f.files }

// Discard removes a file that Create returned, if there is one of this name. Nobody may
// be writing it.
func (f *Dir) Discard(name string) error {
	i := slices.IndexFunc(f.files, func(o *File) bool { return o.name == name })
	if i < 0 {
		return nil
	}
	file := f.files[i]
	f.files = slices.Delete(f.files, i, i+1)
	if err := errors.Join(file.discard(), f.held.RemoveAll(filepath.Join(filesName, name))); err != nil {
		return fmt.Errorf("remove %s: %w", file.path, fsys.Cause(err))
	}
	return nil
}

// Commit gives the directory its name, once all files are closed. After an error
// either nothing has changed under that name or, where only the directory around
// it could not be synced or what is left beside it not be removed, all of it.
// Abandon cleans up in both cases.
func (f *Dir) Commit() error {
	for _, file := range f.files {
		if err := file.settled(); err != nil {
			return err
		}
	}
	return f.named(f.commit())
}

func (f *Dir) commit() error {
	if f.held == nil {
		return fs.ErrClosed
	}
	if err := f.syncInner(); err != nil {
		return fmt.Errorf("sync it: %w", fsys.Cause(err))
	}
	finished, err := f.inspect() // again: hours may have passed
	if errors.Is(err, manifest.ErrNotOurs) || errors.Is(err, ErrExists) {
		// %v: these say that nothing was done, and by now links may be stored.
		err = fmt.Errorf("something was put there during the run: %v; move it away and run again", err)
	}
	if err != nil {
		return err
	}
	if finished {
		if err := f.fs.Exchange(f.inner, f.target); err != nil {
			return fmt.Errorf("overwrite it: %w; move it away and run again", err)
		}
	} else if err := f.fs.Rename(f.inner, f.target); err != nil {
		return fmt.Errorf("rename %s to it: %w", filepath.Base(f.partial), err)
	}
	if err := f.around.Sync(); err != nil {
		return fmt.Errorf("sync its parent directory: %w", err)
	}
	if err := f.remove(); err != nil {
		return err // under the lock, Abandon tries once more
	}
	return f.unlock()
}

// syncInner brings the names of the files to the disk.
func (f *Dir) syncInner() error {
	h, err := f.fs.OpenDir(f.inner)
	if err != nil {
		return err
	}
	return errors.Join(h.Sync(), h.Close())
}

// Abandon removes the partial directory and everything in it, and gives up the lock. After
// an error it has given it up too, and the next claim removes what is left. It does nothing after Commit, and may be called again.
// Nobody may be writing a file.
func (f *Dir) Abandon() error {
	if f.held == nil {
		return nil
	}
	return f.named(errors.Join(f.remove(), f.unlock()))
}

// remove removes the partial directory, if it is this run's.
func (f *Dir) remove() error {
	var errs []error
	for _, file := range f.files {
		errs = append(errs, file.discard())
	}
	if f.mine {
		entries, err := f.fs.ReadDir(f.partial)
		for _, e := range entries {
			if err == nil {
				err = f.held.RemoveAll(e.Name())
			}
		}
		if err == nil {
			err = f.fs.Remove(f.partial)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove %s: %w", filepath.Base(f.partial), fsys.Cause(err)))
		}
	}
	return errors.Join(errs...)
}

// unlock closes what the directory holds.
func (f *Dir) unlock() error {
	held := f.held
	f.held = nil
	return errors.Join(held.Close(), f.around.Close())
}
