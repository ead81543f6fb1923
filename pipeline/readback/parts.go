package readback

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/terms"
)

// Of returns the path of the mapping of a run whose manifest lies in dir, and how to read it with OpenMapping;
// "": the run has none.
func Of(dir string, m *manifest.Manifest, told *terms.Terms) (path string, opts Options) {
	files, parts := m.Reports()
	name := files.Mapping()
	if name == "" {
		return "", opts
	}
	opts = Options{ExcelSafe: told.ExcelSafe, Columns: report.ColumnsOf(told, m.Numbers != nil, m.Rules != nil)}
	if parts != nil {
		opts.FS = Parts(dir, name, parts)
	}
	return filepath.Join(dir, name), opts
}

// Parts returns a file system in which the parts of a mapping in CSV, each with its header, are one file of
// this name in dir, where they lie under their names of a manifest. Whoever reads it reads them one after the
// other.
func Parts(dir, name string, parts []string) fsys.FS {
	paths := make([]string, len(parts))
	for i, part := range parts {
		paths[i] = filepath.Join(dir, filepath.FromSlash(part))
	}
	return joinedFS{fsys.OS{}, filepath.Join(dir, name), paths}
}

// joinedFS is a file system with a file that is several.
type joinedFS struct {
	fsys.FS
	path  string
	parts []string
}

// Stat tells of the first part.
func (j joinedFS) Stat(path string) (fs.FileInfo, error)  { return j.FS.Stat(j.real(path)) }
func (j joinedFS) Lstat(path string) (fs.FileInfo, error) { return j.FS.Lstat(j.real(path)) }

func (j joinedFS) real(path string) string {
	if filepath.Clean(path) == filepath.Clean(j.path) {
		return j.parts[0]
	}
	return path
}

func (j joinedFS) Open(path string) (fsys.File, error) {
	if j.real(path) == path {
		return j.FS.Open(path)
	}
	header, err := j.header()
	if err != nil {
		return nil, err
	}
	first, err := j.FS.Open(j.parts[0])
	if err != nil {
		return nil, err
	}
	return &joinedFile{File: first, fs: j.FS, at: first, header: header, rest: j.parts[1:]}, nil
}

// header returns the header of the first part.
func (j joinedFS) header() (header []byte, err error) {
	f, err := j.FS.Open(j.parts[0])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for quoted := false; ; {
		line, err := r.ReadBytes('\n')
		header = append(header, line...)
		if quoted = quoted != (bytes.Count(line, []byte(`"`))%2 == 1); !quoted || err == io.EOF || len(header) > mostField {
			return header, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// A joinedFile is read part by part. All but reading is done to the first one.
type joinedFile struct {
	fsys.File
	fs     fsys.FS
	at     fsys.File // that is being read
	header []byte
	rest   []string
}

func (j *joinedFile) Read(p []byte) (int, error) {
	for {
		n, err := j.at.Read(p)
		if n > 0 || err != io.EOF || len(j.rest) == 0 {
			return n, err
		}
		if err := j.next(); err != nil {
			return 0, err
		}
	}
}

// next goes to the next part, behind its header.
func (j *joinedFile) next() error {
	name := j.rest[0]
	f, err := j.fs.Open(name)
	if err != nil {
		return err
	}
	if j.at != j.File {
		_ = j.at.Close() // it was only read
	}
	j.at, j.rest = f, j.rest[1:]
	header := make([]byte, len(j.header))
	if _, err := io.ReadFull(f, header); err != nil || !bytes.Equal(header, j.header) {
		return fmt.Errorf("%s does not begin with the header of the first part", name)
	}
	return nil
}

// ReadAt is not there: a CSV is read in order.
func (j *joinedFile) ReadAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }

func (j *joinedFile) Close() error {
	err := j.File.Close()
	if j.at != j.File {
		err = errors.Join(err, j.at.Close())
	}
	return err
}
