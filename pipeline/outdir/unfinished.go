package outdir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/manifest"
)

// The mark says which run a partial directory belongs to. It is the manifest of the run as
// far as it is known: what the run was given, and the digests of the inputs once they are
// read. The output has no mark.
const markName = "run.json"

const lastPrefix = "last-"

// lastName is the name that the mark gets just before the files become the output. It has
// the inode number of their directory. If that directory is gone, or another one lies in its
// place (the old output, for which it was exchanged), the files did become the output. The
// run that was killed then left nothing to finish here.
func lastName(files fs.FileInfo) string {
	return fmt.Sprintf("%s%d.json", lastPrefix, files.Sys().(*syscall.Stat_t).Ino)
}

// An owner is an unfinished run that a directory belongs to.
type owner struct {
	manifest *manifest.Manifest
	output   bool // the manifest is that of the output: whether its as_of was asked for is not known
}

// readMark reads the mark of a killed run, if there is one.
func (f *Dir) readMark() error {
	m, err := f.readManifest(filepath.Join(f.partial, markName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("it %w, whose %s cannot be read (--new-run starts over): %w", ErrUnfinished, markName, err)
	}
	f.marked = true
	f.owners = append(f.owners, owner{manifest: m})
	return nil
}

// lookLast looks for a mark that has its last name. If the files became the output, the
// partial directory belongs to no run any more, and this run may remove it. Otherwise the
// mark gets its first name back.
func (f *Dir) lookLast() error {
	entries, err := f.entries()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), lastPrefix) })
	if i < 0 {
		return nil
	}
	last := entries[i].Name()
	files, err := f.fs.Lstat(f.inner)
	if errors.Is(err, fs.ErrNotExist) || err == nil && last != lastName(files) {
		f.mine = true
		return nil
	}
	if err == nil {
		err = f.fs.Rename(filepath.Join(f.partial, last), filepath.Join(f.partial, markName))
	}
	return err
}

// ownedByOutput adds the run whose output lies under the final name to the owners.
func (f *Dir) ownedByOutput() error {
	m, err := f.readManifest(filepath.Join(f.target, manifest.Name))
	if err == nil {
		f.owners = append(f.owners, owner{m, true})
	}
	return err
}

func (f *Dir) readManifest(path string) (*manifest.Manifest, error) {
	data, err := manifest.ReadFile(f.fs, path)
	if err != nil {
		return nil, fsys.Cause(err)
	}
	return manifest.Read(data)
}

// Own makes the directory that of a run. It is called twice, with the manifest as far as it
// is known: before the inputs are read, and then with their digests. Both times as_of is
// there only if it was asked for. If the directory belongs to an unfinished run of something
// else, it is left as it is; the error is ErrUnfinished and names what differs.
func (f *Dir) Own(m *manifest.Manifest) error {
	for _, o := range f.owners {
		then := *o.manifest
		if o.output {
			then.AsOf = m.AsOf
		}
		if d := manifest.Difference(&then, m); d != "" {
			return Differs(f.out, d)
		}
	}
	if read := len(m.Inputs) > 0 && m.Inputs[0].Digest() != ""; !read && f.marked {
		return f.named(f.clear())
	}
	f.mine = true
	if err := f.mark(m); err != nil {
		return f.named(fmt.Errorf("write %s: %w", markName, fsys.Cause(err)))
	}
	return nil
}

// Differs is the error of an output directory that belongs to an unfinished run
// which differs.
func Differs(out, difference string) error {
	return fmt.Errorf("output directory %s: it %w, which differs in %s. Run its command again to finish it, or add --new-run to start over",
		out, ErrUnfinished, difference)
}

// mark writes the mark, in one step.
func (f *Dir) mark(m *manifest.Manifest) (err error) {
	name := filepath.Join(f.partial, markName)
	h, err := f.fs.Create(name + ".new")
	if err != nil {
		return err
	}
	err = manifest.Write(h, m)
	if err == nil {
		err = h.Sync()
	}
	if err = errors.Join(err, h.Close()); err != nil {
		return err
	}
	if err := f.fs.Rename(name+".new", name); err != nil {
		return err
	}
	f.marked = true
	return f.held.Sync()
}
