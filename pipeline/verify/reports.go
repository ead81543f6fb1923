package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
	"golang.org/x/sync/errgroup"
)

// reports are the files of the run, in an output directory. Once the checks have begun they are safe
// for concurrent use.
type reports struct {
	findings *findings
	run      *run
	dir      string
	unread   []string    // files of the manifest that cannot be read
	broken   atomic.Bool // a file is missing or could not be read to the end
}

// newReports compares the output directory with the manifest.
func newReports(dir string, run *run, found *findings) (s *reports, err error) {
	s = &reports{findings: found, run: run, dir: dir}
	s.unread, err = checkDir(dir, run.manifest.Files, found)
	s.broken.Store(len(s.unread) > 0)
	return s, err
}

// openReport opens a report; nil if it cannot be read, which is a finding. The first time
// cells that a spreadsheet would run are findings, too.
func openReport[R any](ctx context.Context, s *reports, name string, first bool, open func(context.Context, string, readback.Options) (*R, error)) (*R, error) {
	if slices.Contains(s.unread, name) || name == s.run.mapping && slices.ContainsFunc(s.unread, manifest.IsPart) {
		return nil, nil
	}
	path := filepath.Join(s.dir, name)
	opts := readback.Options{FS: s.run.filesOf(s.dir, name), ExcelSafe: s.run.terms.ExcelSafe, Columns: s.run.codes.own}
	if first {
		opts.Unsafe = func(row int64, column, cell string) {
			s.findings.fault(name, row).wrong(BadFormula, column, string(report.Defuse([]byte(cell))), cell)
		}
	}
	r, err := open(ctx, path, opts)
	if err != nil {
		_, err = s.damaged(name, err)
		return nil, err
	}
	return r, nil
}

// filesOf returns the file system that has a report; nil: that of the system.
func (r *run) filesOf(dir, name string) fsys.FS {
	if name != r.mapping || len(r.parts) == 0 {
		return nil
	}
	return readback.Parts(dir, name, r.parts)
}

// damaged makes a finding of an error that means a damaged report, and returns any other
// error. Again says that only a cell is damaged and reading can continue; otherwise broken
// is set.
func (s *reports) damaged(name string, err error) (again bool, _ error) {
	if cell, ok := errors.AsType[*readback.CellError](err); ok {
		s.findings.fault(name, cell.Row).wrong(Damaged, cell.Column, "", cell.Found)
		return true, nil
	}
	s.broken.Store(true)
	if damage, ok := errors.AsType[*readback.DamageError](err); ok {
		s.findings.fault(name, damage.Row).wrong(Damaged, "", "", damage.Err.Error())
		return false, nil
	}
	return false, fmt.Errorf("verify %s: %w", s.dir, err)
}

// isCell reports whether an error of a report that is read again is a damaged cell: that
// is a finding already, and its row is skipped.
func isCell(err error) bool {
	_, ok := err.(*readback.CellError)
	return ok
}

// eachLink visits the rows of the mapping again, in its order; of a run without one, none.
func (s *reports) eachLink(ctx context.Context, visit func(l *link)) error {
	if s.run.mapping == "" {
		return nil
	}
	m, err := openReport(ctx, s, s.run.mapping, false, readback.OpenMapping)
	if m == nil || err != nil {
		return err
	}
	defer m.Close()
	rows, l := newDeriver(s.run, m.Text), new(link)
	for r, err := range m.Rows() {
		switch {
		case isCell(err):
		case err != nil:
			return err
		default:
			l.MappingRow = *r
			rows.derive(l)
			visit(l)
		}
	}
	return nil
}

// eof returns err; nil if it is io.EOF.
func eof(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// inBlocks lets workers visit blocks. One goroutine runs read, which fills them: it is given
// the first block, and send takes a full block and returns an empty one. There are two blocks
// for each worker.
func inBlocks[B any](ctx context.Context, workers int, read func(block *B, send func(*B) (*B, error)) error, visit func(worker int, block *B)) error {
	g, ctx := errgroup.WithContext(ctx)
	queue, free := make(chan *B, workers), make(chan *B, 2*workers)
	for range cap(free) {
		free <- new(B)
	}
	g.Go(func() error {
		defer close(queue)
		return read(<-free, func(block *B) (*B, error) {
			select {
			case queue <- block:
				return <-free, context.Cause(ctx) // one will be: the workers go on until the queue is closed
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		})
	})
	for worker := range workers {
		g.Go(func() error {
			for block := range queue {
				visit(worker, block)
				free <- block
			}
			return nil
		})
	}
	return g.Wait()
}

// checkDir compares an output directory with the list of its files in the manifest, and
// returns those that cannot be read. Links to files are followed.
func checkDir(dir string, files []manifest.FileSum, found *findings) (unread []string, err error) {
	known := map[string]bool{}
	for _, file := range files {
		if known[file.Name] = true; manifest.IsPart(file.Name) {
			known[manifest.PartsDir], known[manifest.StageDir] = true, true
		}
		info, err := os.Stat(filepath.Join(dir, file.Name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			found.fault(file.Name, 0).wrong(FileMissing, "", "", "")
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			found.fault(file.Name, 0).wrong(Damaged, "", "a file", info.Mode().Type().String())
		default:
			continue
		}
		unread = append(unread, file.Name)
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !known[e.Name()] && !manifest.IsBeside(e.Name()) {
			found.doubt(e.Name(), 0).wrong(FileUnlisted, "", "a file that the manifest lists", "")
		}
	}
	return unread, err
}

// checkDigests compares the files with their digests in the manifest.
func (s *reports) checkDigests(ctx context.Context) error {
	for _, file := range s.run.manifest.Files {
		if slices.Contains(s.unread, file.Name) {
			continue
		}
		switch sum, err := manifest.FileSHA256(ctx, filepath.Join(s.dir, file.Name)); {
		case err != nil:
			return err
		case sum != file.SHA256:
			s.findings.fault(file.Name, 0).wrong(FileSum, "", file.SHA256, sum)
		}
	}
	return nil
}
