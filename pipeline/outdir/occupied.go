package outdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/manifest"
)

// inspect tells whether a finished run, and nothing else, lies where the output
// shall go. It is an error if anything else does, or if it does and may not be
// overwritten.
func (f *Dir) inspect() (finished bool, err error) {
	finished, err = f.occupied()
	if err == nil && finished && !f.overwrite {
		err = fmt.Errorf("it %w; give another with Config.Out, or replace it with Config.Overwrite", ErrExists)
	}
	return finished, err
}

func (f *Dir) occupied() (bool, error) {
	info, err := f.fs.Lstat(f.target)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fsys.Cause(err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return false, fmt.Errorf("%w: it is a symbolic link; give the directory that it leads to", manifest.ErrNotOurs)
	}
	if !info.IsDir() {
		return false, fmt.Errorf("%w: it is a file, and Config.Out needs a directory", manifest.ErrNotOurs)
	}
	parent, err := f.around.Stat()
	if err != nil {
		return false, err
	}
	if device(parent) != device(info) || fsys.IsMount(f.target) {
		return false, fmt.Errorf("%w: it is a mount point, which cannot be replaced; give a directory in it", manifest.ErrNotOurs)
	}
	if stuck(uint32(os.Geteuid()), parent, info) {
		return false, fmt.Errorf("%w that you may replace: it belongs to another user, and the directory around it is sticky; give another one", manifest.ErrNotOurs)
	}
	entries, err := f.fs.ReadDir(f.target)
	if err != nil || len(entries) == 0 {
		return false, fsys.Cause(err)
	}
	return true, f.ours(entries)
}

// ours checks that a directory holds a manifest and only regular files that it lists and
// that a run may have, so that overwriting destroys nothing that bulk did not write: a
// manifest may come from anybody. Litter does not count: a look at the directory leaves it.
func (f *Dir) ours(entries []fs.DirEntry) error {
	data, err := manifest.ReadFile(f.fs, filepath.Join(f.target, manifest.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: it has no %s", manifest.ErrNotOurs, manifest.Name)
	}
	if err != nil {
		return err
	}
	m, err := manifest.Read(data)
	if err != nil {
		return fmt.Errorf("%w: %w", manifest.ErrNotOurs, err)
	}
	var known []string
	for _, file := range m.Files {
		if manifest.IsReport(file.Name) {
			known = append(known, file.Name)
		}
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !slices.Contains(known, e.Name()) && !manifest.IsBeside(e.Name()) && !litter(e.Name()) {
			return fmt.Errorf("%w: it also holds %s, which no run wrote; move that away, or give another Config.Out", manifest.ErrNotOurs, e.Name())
		}
	}
	return nil
}

// litter reports whether a file has the name of a file that a desktop puts into a directory
// on display, or that a program puts beside a file while it is open.
func litter(name string) bool {
	switch name {
	case ".DS_Store", "Thumbs.db", "desktop.ini", ".directory":
		return true
	}
	return strings.HasPrefix(name, "._") || strings.HasPrefix(name, "~$") ||
		strings.HasPrefix(name, ".~lock.") && strings.HasSuffix(name, "#")
}

// owned checks that the partial directory belongs to this user: another user could change the
// output. Some file systems give all files to one user, so a new file tells which user that is.
func (f *Dir) owned() error {
	info, err := f.held.Stat()
	if err != nil || userOf(info) == uint32(os.Geteuid()) {
		return err
	}
	h, err := f.fs.Temp(filepath.Dir(f.partial))
	if err != nil {
		return err
	}
	made, err := h.Stat()
	if err = errors.Join(err, h.Close()); err != nil {
		return err
	}
	if userOf(made) != userOf(info) {
		return fmt.Errorf("%w: %s, in which it is written, belongs to another user: run as that user, or remove it", manifest.ErrNotOurs, filepath.Base(f.partial))
	}
	return nil
}

// entries returns what lies in the partial directory. If that includes anything that no run
// writes there, the error is ErrNotOurs.
func (f *Dir) entries() ([]fs.DirEntry, error) {
	entries, err := f.fs.ReadDir(f.partial)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if name := e.Name(); name != filesName && name != "a" && name != "b" {
			return nil, fmt.Errorf("%w: %s, in which it is written, also holds %s", manifest.ErrNotOurs, filepath.Base(f.partial), name)
		}
	}
	return entries, nil
}

// stuck reports whether a user may not rename what lies in a directory because the directory is
// sticky.
func stuck(user uint32, parent, info fs.FileInfo) bool {
	return parent.Mode()&fs.ModeSticky != 0 && user != 0 && user != userOf(parent) && user != userOf(info)
}

// userOf tells whom a file belongs to.
func userOf(info fs.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Uid }

// device tells on which file system a file lies.
func device(info fs.FileInfo) uint64 {
	return uint64(info.Sys().(*syscall.Stat_t).Dev)
}
