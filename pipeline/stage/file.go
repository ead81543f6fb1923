package stage

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A file is one that an attempt writes.
type file struct {
	f    *os.File
	buf  *bufio.Writer
	sum  hash.Hash // nil: nobody wants the digest
	size int64
}

// create creates a file, and its directory. The file must not exist.
func create(path string) (*file, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	buf := buffers.Get().(*bufio.Writer)
	buf.Reset(f)
	return &file{f: f, buf: buf}, nil
}

// buffers are those of files that are closed: to clear a new one takes longer than to write a small file.
var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 256<<10) }}

func (f *file) Write(p []byte) (int, error) {
	f.size += int64(len(p))
	if f.sum != nil {
		f.sum.Write(p)
	}
	return f.buf.Write(p)
}

// close makes sure that the file is on the disk. Nothing may be written later.
func (f *file) close() error {
	err := f.buf.Flush()
	f.buf.Reset(nil)
	buffers.Put(f.buf)
	f.buf = nil
	if err == nil {
		err = f.f.Sync()
	}
	return errors.Join(err, f.f.Close())
}

// An attempt is one of a task, which names the files that it writes.
type attempt struct {
	j     *Job
	stage string
	n     int
	name  string
	files []string // that it has created
}

func (j *Job) begin(stage string, n int) *attempt {
	return &attempt{j: j, stage: stage, n: n, name: j.attempt()}
}

// ended removes the files of an attempt that failed.
func (a *attempt) ended(err error) {
	if err != nil {
		for _, name := range a.files {
			_ = os.Remove(a.j.path(name)) // what stays is litter
		}
	}
}

// path returns a path in the output directory, with slashes.
func (a *attempt) path(dir, ext string) string {
	return fmt.Sprintf("%s/%05d-%s%s", dir, a.n, a.name, ext)
}

// create creates a file of the attempt, beside its report.
func (a *attempt) create(ext string) (*file, string, error) { return a.createIn(work+"/"+a.stage, ext) }

func (a *attempt) createIn(dir, ext string) (*file, string, error) {
	name := a.path(dir, ext)
	f, err := a.createAs(name)
	return f, name, err
}

func (a *attempt) createAs(name string) (*file, error) {
	a.files = append(a.files, name)
	return create(a.j.path(name))
}

// report tells that the attempt is finished, and what it did. It returns the name of the report.
func (a *attempt) report(v any) (name string, err error) {
	name = a.path(work+"/"+a.stage, reportExt)
	return name, writeJSON(a.j.path(name), v)
}

const reportExt = ".json"

// path returns the path of a file in the output directory.
func (j *Job) path(name string) string { return filepath.Join(j.out, filepath.FromSlash(name)) }

// written closes a file that was written.
func (f *file) written(name string, err error) (File, error) {
	if err != nil {
		_ = f.f.Close()
		return f.so(name), err
	}
	err = f.close()
	return f.so(name), err
}

// named returns those of the files that there are.
func named(files ...File) []File {
	return slices.DeleteFunc(files, func(f File) bool { return f.Name == "" })
}

// so returns what a report has of the file.
func (f *file) so(name string) File {
	w := File{Name: name, Size: f.size}
	if f.sum != nil {
		w.SHA256 = hex.EncodeToString(f.sum.Sum(nil))
	}
	return w
}

// digested has the file be digested.
func (f *file) digested() *file {
	f.sum = sha256.New()
	return f
}

// A reported is what an attempt told.
type reported interface {
	files() []File
	digest() string // of the content: the same for all attempts of a task
}

// accepted returns, for each task of a stage, what a finished attempt told: of these tasks all must have
// one. If an engine said which attempts count (AcceptList), it is one of these; but what all tell is the same.
func accepted[T reported](j *Job, stage string, tasks []int) (map[int]T, error) {
	return acceptedWith(j, stage, tasks, T.files)
}

// acceptedWith is accepted for who needs only these files of an attempt.
func acceptedWith[T reported](j *Job, stage string, tasks []int, needs func(T) []File) (map[int]T, error) {
	entries, err := os.ReadDir(j.path(work + "/" + stage))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	attempts := map[int][]string{}
	for _, entry := range entries { // in the order of their names
		number, rest, _ := strings.Cut(entry.Name(), "-")
		if n, err := strconv.Atoi(number); err == nil && strings.HasPrefix(rest, j.id+"-") && strings.HasSuffix(rest, reportExt) {
			attempts[n] = append(attempts[n], entry.Name())
		}
	}
	first, found := map[int]T{}, map[int]T{}
	var missing []int
	for _, n := range tasks {
		for _, name := range attempts[n] {
			told, err := readReport[T](j, work+"/"+stage+"/"+name)
			if err != nil && !errors.Is(err, errDamaged) {
				return nil, err
			}
			if err != nil || !j.complete(needs(told)) {
				continue
			}
			if before, ok := first[n]; !ok {
				first[n] = told
			} else if before.digest() != told.digest() {
				return nil, fmt.Errorf("two attempts of the task %s %d differ: an input has changed meanwhile, or a machine is broken. To go on, %s", stage, n, anew)
			}
			if _, ok := found[n]; !ok && j.counts(stage, work+"/"+stage+"/"+name) {
				found[n] = told
			}
		}
		if _, ok := found[n]; !ok {
			missing = append(missing, n)
		}
	}
	if len(missing) > 0 {
		return nil, errMissing(stage, missing)
	}
	return found, nil
}

// errMissing tells of tasks that have no finished attempt: all, or ten of them.
func errMissing(stage string, tasks []int) error {
	list, more := "", ""
	for i, n := range tasks {
		if i == 10 {
			more = fmt.Sprintf(" and %d more", len(tasks)-i)
			break
		}
		list += ", " + strconv.Itoa(n)
	}
	return fmt.Errorf("no attempt of the task %s %s%s is finished and has all its files: do it again", stage, list[2:], more)
}

func readReport[T any](j *Job, name string) (told T, err error) {
	data, err := os.ReadFile(j.path(name))
	if err == nil && json.Unmarshal(data, &told) != nil {
		err = fmt.Errorf("%s: %w", j.path(name), errDamaged)
	}
	return told, err
}

// unusable says what to do about a file of an attempt that does not have what was written.
func (j *Job) unusable(f File, err error) error {
	if errors.Is(err, errDamaged) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%s: %w; remove it, and do the task again that wrote it", j.path(f.Name), err)
	}
	return err
}

// complete reports whether all files are as long as they were written.
func (j *Job) complete(files []File) bool {
	return !slices.ContainsFunc(files, func(f File) bool {
		info, err := os.Stat(j.path(f.Name))
		return err != nil || info.Size() != f.Size
	})
}

// upTo returns the numbers from 0 to below n.
func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// inOrder returns the values by ascending number.
func inOrder[T any](of map[int]T) []T {
	var list []T
	for _, n := range slices.Sorted(maps.Keys(of)) {
		list = append(list, of[n])
	}
	return list
}
