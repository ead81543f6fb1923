package outdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/manifest"
)

// foreign are outputs that are not ours, each with a word of the refusal.
func foreign() map[string]func(out string) error {
	write := func(path, content string) error {
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(content), 0o666))
	}
	const listed = `{"profile": "linkforge-1", "files": [{"name": "mapping.csv"}, {"name": "d"}, {"name": "contract.docx"}]}`
	return map[string]func(string) error{
		"it is a file": func(out string) error { return write(out, "x") },
		"it is a symbolic link; give": func(out string) error {
			return errors.Join(os.Mkdir(out+".real", 0o777), os.Symlink(out+".real", out))
		},
		"it is a symbolic link": func(out string) error { return os.Symlink("nowhere", out) },
		"no manifest.json":      func(out string) error { return write(out+"/notes.txt", "x") },
		"manifest.json: not a regular file": func(out string) error {
			return errors.Join(os.Mkdir(out, 0o777), syscall.Mkfifo(out+"/manifest.json", 0o666))
		},
		"of at most 1073741824 bytes": func(out string) error {
			return errors.Join(write(out+"/manifest.json", listed), os.Truncate(out+"/manifest.json", manifest.MaxSize+1))
		},
		"no profile":        func(out string) error { return write(out+"/manifest.json", `{"name": "a web application"}`) },
		"invalid character": func(out string) error { return write(out+"/manifest.json", "no json") },
		"also holds notes.txt": func(out string) error {
			return errors.Join(write(out+"/manifest.json", listed), write(out+"/notes.txt", "x"))
		},
		"also holds contract.docx": func(out string) error {
			return errors.Join(write(out+"/manifest.json", listed), write(out+"/contract.docx", "x"))
		},
		"also holds d": func(out string) error {
			return errors.Join(write(out+"/manifest.json", listed), write(out+"/d/x", "x"))
		},
		"also holds mapping.csv": func(out string) error {
			return errors.Join(write(out+"/manifest.json", listed), os.Symlink("elsewhere", out+"/mapping.csv"))
		},
		".out.partial, in which it is written, also holds notes.txt": func(out string) error {
			return write(PartialOf(out)+"/notes.txt", "x")
		},
	}
}

func TestDirRefusesWhatIsNotOurs(t *testing.T) {
	for want, make := range foreign() {
		for _, overwrite := range []bool{false, true} {
			out := filepath.Join(t.TempDir(), "out")
			if err := make(out); err != nil {
				t.Fatal(err)
			}
			before := tree(t, filepath.Dir(out))
			_, err := Claim(out, ClaimOptions{Overwrite: overwrite})
			if !errors.Is(err, manifest.ErrNotOurs) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), out) {
				t.Errorf("%s: got %v", want, err)
			}
			if after := tree(t, filepath.Dir(out)); !slices.Equal(after, before) {
				t.Errorf("%s: there was %q, now %q", want, before, after)
			}
		}
	}
}

// A usersFS has directories and new files belong to some user.
type usersFS struct {
	fsys.OS
	folder, file uint32
}

type userFile struct {
	fsys.File
	user uint32
}

func (f usersFS) OpenDir(path string) (fsys.File, error) {
	h, err := f.OS.OpenDir(path)
	return userFile{h, f.folder}, err
}

func (f usersFS) Temp(dir string) (fsys.File, error) {
	h, err := f.OS.Temp(dir)
	return userFile{h, f.file}, err
}

func (f userFile) Stat() (fs.FileInfo, error) {
	info, err := f.File.Stat()
	if err == nil {
		info.Sys().(*syscall.Stat_t).Uid = f.user
	}
	return info, err
}

// A partial directory of another user is not ours, unless new files are that user's too.
func TestDirOfAnotherUser(t *testing.T) {
	me := uint32(os.Geteuid())
	for users, ours := range map[usersFS]bool{{folder: me, file: me + 1}: true, {folder: me + 1, file: me}: false, {folder: me + 1, file: me + 1}: true} {
		for _, leftover := range []bool{false, true} {
			out := filepath.Join(t.TempDir(), "out")
			if leftover {
				leaveBehind(t, out)
			}
			f, err := Claim(out, ClaimOptions{FS: users})
			if ours && err == nil {
				err = f.Abandon()
			}
			if ours != (err == nil) || !ours && (!errors.Is(err, manifest.ErrNotOurs) || !strings.Contains(err.Error(), "another user")) {
				t.Errorf("%+v: leftover %v: %v", users, leftover, err)
			}
			if names, _ := list(t, filepath.Dir(out)); (len(names) > 0) != (leftover && !ours) {
				t.Errorf("%+v: leftover %v: left %q", users, leftover, names)
			}
		}
	}
}

// In a sticky directory only root, its owner and that of the output may replace the output.
func TestStickyFolder(t *testing.T) {
	dir := t.TempDir()
	info, err := os.Stat(dir)
	me := uint32(os.Geteuid())
	for _, sticky := range []bool{false, true} {
		mode := fs.FileMode(0o777)
		if sticky {
			mode |= fs.ModeSticky
		}
		err = errors.Join(err, os.Chmod(dir, mode))
		parent, perr := os.Stat(dir)
		if err = errors.Join(err, perr); err != nil {
			t.Fatal(err)
		}
		for user, want := range map[uint32]bool{0: false, me: false, me + 1: sticky} {
			if got := stuck(user, parent, info); got != want {
				t.Errorf("sticky %v, user %d of %d: %v", sticky, user, me, got)
			}
		}
	}
}
