package report

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/linkforge/bulk/pipeline/fsys"
)

// The mark says whose a partial folder is: the manifest of its run as far as it
// is known, first without what only reading the inputs tells, then with it.
// Outside of the partial folder there is none.
const markName = "run.json"

const lastPrefix = "last-"

// lastName is the name that the mark gets just before the files become the output. It has
// the inode number of their folder: if that folder is gone, or another one lies in its
// place (the old output, for which it was exchanged), the files did become the output,
// and the run that was killed then left nothing to finish here.
func lastName(files fs.FileInfo) string {
	return fmt.Sprintf("%s%d.json", lastPrefix, files.Sys().(*syscall.Stat_t).Ino)
}

// An owner is an unfinished run that a folder belongs to.
type owner struct {
	manifest *Manifest
	output   bool // the manifest is that of the output: whether its as_of was asked for is not known
}

// readMark reads the mark of a killed run, if there is one.
func (f *Folder) readMark() error {
	m, err := f.readManifest(filepath.Join(f.partial, markName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("it %w whose %s cannot be read (--new-run starts over): %w", ErrUnfinished, markName, err)
	}
	f.marked = true
	f.owners = append(f.owners, owner{manifest: m})
	return nil
}

// lookLast looks for a mark that has its last name. If the files became the output, the
// partial folder is nobody's any more and this run's to remove; otherwise the mark gets its
// first name back.
func (f *Folder) lookLast() error {
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
func (f *Folder) ownedByOutput() error {
	m, err := f.readManifest(filepath.Join(f.target, ManifestName))
	if err == nil {
		f.owners = append(f.owners, owner{m, true})
	}
	return err
}

func (f *Folder) readManifest(path string) (*Manifest, error) {
	data, err := ManifestFile(f.fs, path)
	if err != nil {
		return nil, fsys.Cause(err)
	}
	return ReadManifest(data)
}

// Own makes the folder that of a run. It is called twice, with the manifest as far as it
// is known: before the inputs are read, and then with their digests. Both times as_of is
// there only if it was asked for. If the folder belongs to an unfinished run of something
// else, it is left as it is; the error is ErrUnfinished and names what differs.
func (f *Folder) Own(m *Manifest) error {
	for _, o := range f.owners {
		then := *o.manifest
		if o.output {
			then.AsOf = m.AsOf
		}
		if d := difference(&then, m); d != "" {
			return Unfinished(f.out, d)
		}
	}
	if read := len(m.Inputs) > 0 && m.Inputs[0].digest() != ""; !read && f.marked {
		return f.named(f.clear())
	}
	f.mine = true
	if err := f.mark(m); err != nil {
		return f.named(fmt.Errorf("write %s: %w", markName, fsys.Cause(err)))
	}
	return nil
}

// Unfinished is the error of an output folder that belongs to an unfinished run
// which differs.
func Unfinished(out, difference string) error {
	return fmt.Errorf("output folder %s: it %w; %s; give the same again to finish that run, or --new-run to start over",
		out, ErrUnfinished, difference)
}

// mark writes the mark, in one step.
func (f *Folder) mark(m *Manifest) (err error) {
	name := filepath.Join(f.partial, markName)
	h, err := f.fs.Create(name + ".new")
	if err != nil {
		return err
	}
	err = WriteManifest(h, m)
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

// difference names the first thing in which a run differs from an earlier one,
// with both values; "": none. What is not known of one of them does not count.
func difference(then, now *Manifest) string {
	type field struct {
		name      string
		then, now any
	}
	fields := []field{
		{"version", then.Version, now.Version},
		{"profile", then.Profile, now.Profile},
		{"unicode_version", then.UnicodeVersion, now.UnicodeVersion},
		{"scheme", then.Scheme.Name, now.Scheme.Name},
		{"code_length", then.Scheme.CodeLength, now.Scheme.CodeLength},
		{"max_retries", then.Scheme.MaxRetries, now.Scheme.MaxRetries},
	}
	names := Options{}
	maps.Copy(names, then.Options)
	maps.Copy(names, now.Options)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fields = append(fields, field{"option " + name, then.Options[name], now.Options[name]})
	}
	for _, f := range fields {
		if a, b := plain(f.then), plain(f.now); a != b {
			return fmt.Sprintf("%s: %s then, %s now", f.name, a, b)
		}
	}
	if !then.AsOf.Equal(now.AsOf) {
		return fmt.Sprintf("as_of: %s then, %s now", asked(then.AsOf), asked(now.AsOf))
	}
	return inputDifference(then.Inputs, now.Inputs)
}

// plain writes a value as the manifest does.
func plain(v any) string {
	if s, ok := v.(string); ok {
		v = Text(s)
	}
	b, err := marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(b))
}

// asked writes an as_of that may not have been asked for.
func asked(t time.Time) string {
	if t.IsZero() {
		return "not given"
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// inputDifference names the first input that differs. Both lists are in the
// order of the names.
func inputDifference(then, now []Input) string {
	byName := map[Text]*Input{}
	for i := range then {
		byName[then[i].Name] = &then[i]
	}
	for i := range now {
		in := &now[i]
		before := byName[in.Name]
		if before == nil {
			return fmt.Sprintf("input %s: not there then", in.Name)
		}
		if what := before.differs(in); what != "" {
			return fmt.Sprintf("input %s: other %s", in.Name, what)
		}
		delete(byName, in.Name)
	}
	for _, in := range then {
		if byName[in.Name] != nil {
			return fmt.Sprintf("input %s: not there now", in.Name)
		}
	}
	return ""
}

// differs says in what an input differs from what it was then; "": in nothing
// that is known of both.
func (in *Input) differs(now *Input) string {
	switch {
	case in.Format != now.Format:
		return "format"
	case in.Compression != now.Compression:
		return "compression"
	case plain(in.Dialect) != plain(now.Dialect):
		return "dialect"
	case !slices.Equal(in.Columns, now.Columns):
		return "columns"
	case !slices.Equal(in.URLColumns, now.URLColumns), plain(in.WorkspaceColumn) != plain(now.WorkspaceColumn):
		return "columns of URL or workspace"
	case in.Size != now.Size && in.Size != 0 && now.Size != 0,
		in.digest() != now.digest() && in.digest() != "" && now.digest() != "":
		return "content"
	}
	return ""
}

// digest is that of what was read; "": not known.
func (in *Input) digest() string { return cmp.Or(in.SHA256, in.RecordsSHA256) }
