package stage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/report"
)

// A Run is what came of all tasks.
type Run struct {
	Manifest  *manifest.Manifest
	Digest    string          // of manifest.json
	Out       string          // the directory that has it
	First     *outcome.Reject // without its cells; nil: there are no rejects
	Rewritten int64           // accepted rows whose URL is not as its canonical form
	Refused   bool            // the rejects, or the number of rows, forbid the run: only they and the manifest were written

	// Why that may be.
	Limit    manifest.MaxRejects
	Expected int64 // rows; 0: any number
}

// tasks are the accepted attempts of all tasks.
type tasks struct {
	maps    []mapped
	parts   []part
	applied map[int]applied
}

// rewritten adds up what the tasks of map tell.
func (t *tasks) rewritten() (n int64) {
	for i := range t.maps {
		n += t.maps[i].Rewritten
	}
	return n
}

// ErrNoRows: the inputs have no rows, and nothing said that this is right.
var ErrNoRows = errors.New("the inputs have no rows; if that is right, plan the run with Config.AllowEmpty")

// Commit publishes what the tasks did: rejects, collisions, and last the manifest, which lists the parts of
// the mapping. If the run may not be, it writes rejects and manifest to a directory of their own.
func (j *Job) Commit(ctx context.Context) (*Run, error) {
	done, err := j.tasks()
	if err != nil {
		return nil, err
	}
	rejects, err := j.rejects(ctx, done)
	if err != nil {
		return nil, err
	}
	defer rejects.Close() // it is only read
	m, err := j.describe(done)
	if err != nil {
		return nil, err
	}
	if m.Counts.Read == 0 && !j.plan.Reading.AllowEmpty && !j.inputs.Rejects() {
		return nil, ErrNoRows
	}
	if before := j.published(m, done.parts); before != nil {
		before.Rewritten = done.rewritten()
		before.First, err = j.writeRejects(ctx, io.Discard, rejects)
		return before, err
	}
	run := &Run{Manifest: m, Out: j.out, Rewritten: done.rewritten(), Limit: j.terms.MaxRejects, Expected: j.terms.ExpectRows}
	c := m.Counts
	if c.Rejected == c.Read && c.Read > 0 || run.Limit.Exceeded(c) || run.Expected > 0 && run.Expected != c.Read {
		return run, j.refuse(ctx, run, rejects)
	}
	collisions, err := j.writeCollisions(done)
	if err != nil {
		return nil, err
	}
	var listed File
	if listed, err = j.writeFile(manifest.RejectsName, func(w io.Writer) (err error) {
		run.First, err = j.writeRejects(ctx, w, rejects)
		return err
	}); err != nil {
		return nil, err
	}
	m.Files = append(m.Files, collisions, sumOf(listed, c.Rejected))
	w, err := j.writeFile(manifest.Name, func(to io.Writer) error { return manifest.Write(to, m) })
	run.Digest = w.SHA256
	return run, err
}

// published returns the run if it was committed before, from attempts that wrote the same, and its parts are
// there: so the manifest stays, whatever attempts are finished since. Nil: it was not.
func (j *Job) published(m *manifest.Manifest, parts []part) *Run {
	before, sum, err := manifest.ReadDir(j.out)
	if err != nil || before.RowDigest != m.RowDigest || before.Counts != m.Counts || !before.AsOf.Equal(m.AsOf) {
		return nil
	}
	n := 0
	for _, f := range before.Files {
		info, err := os.Stat(j.path(f.Name))
		if err != nil {
			return nil
		}
		if manifest.IsPart(f.Name) {
			if n == len(parts) || info.Size() != parts[n].File.Size || f.SHA256 != parts[n].File.SHA256 {
				return nil
			}
			n++
		}
	}
	return &Run{Manifest: before, Digest: sum, Out: j.out, Limit: j.terms.MaxRejects, Expected: j.terms.ExpectRows}
}

func sumOf(f File, rows int64) manifest.FileSum {
	return manifest.FileSum{Name: f.Name, Rows: rows, SHA256: f.SHA256}
}

// tasks collects the accepted attempts.
func (j *Job) tasks() (*tasks, error) {
	maps, err := accepted[mapped](j, "map", upTo(j.inputTasks()))
	if err != nil {
		return nil, err
	}
	reduced, err := accepted[reduced](j, "reduce", upTo(j.Shards()))
	if err != nil {
		return nil, err
	}
	amended, err := j.Amended()
	if err != nil {
		return nil, err
	}
	done := &tasks{maps: inOrder(maps)}
	if done.applied, err = accepted[applied](j, "apply", amended); err != nil {
		return nil, err
	}
	for n, r := range inOrder(reduced) {
		p := r.Part
		if a, ok := done.applied[n]; ok {
			p = a.Part
		}
		done.parts = append(done.parts, p)
	}
	return done, nil
}

// rejects returns all rejects by place. The caller closes it.
func (j *Job) rejects(ctx context.Context, done *tasks) (s *extsort.Sorter, err error) {
	s = extsort.NewByKey(j.sorter(recordMemory))
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	w := s.NewWriter()
	for _, m := range done.maps {
		if err := j.loadRejects(m.Rejects, w); err != nil {
			return s, err
		}
	}
	for _, a := range inOrder(done.applied) {
		if err := j.loadRejects(a.Rejects, w); err != nil {
			return s, err
		}
	}
	return s, s.Finish(ctx)
}

// describe makes the manifest, with the parts of the mapping. The error is of books that do not balance.
func (j *Job) describe(done *tasks) (*manifest.Manifest, error) {
	m := *j.run
	var err error
	if m.Inputs, err = j.whole(done.maps); err != nil {
		return nil, err
	}
	m.Reasons = map[string]int64{}
	for _, t := range done.maps {
		addReasons(m.Reasons, t.Reasons)
	}
	for _, t := range done.applied {
		addReasons(m.Reasons, t.Reasons)
	}
	var digests []string
	for _, p := range done.parts {
		rows := p.Rows[outcome.Created] + p.Rows[outcome.Existing] + p.Rows[outcome.Duplicate]
		sum := sumOf(p.File, rows)
		sum.RowDigest = p.Digest
		m.Files, digests = append(m.Files, sum), append(digests, p.Digest)
		m.Counts.Created += p.Rows[outcome.Created]
		m.Counts.Existing += p.Rows[outcome.Existing]
		m.Counts.Duplicate += p.Rows[outcome.Duplicate]
		m.MergedDiffers = merge(m.MergedDiffers, p.Merged)
	}
	for _, n := range m.Reasons {
		m.Counts.Rejected += n
	}
	c := &m.Counts
	if c.Read = m.Inputs.Rows(); c.Read != c.Created+c.Existing+c.Duplicate+c.Rejected {
		return nil, fmt.Errorf("the books do not balance: %+v", *c)
	}
	m.RowDigest, err = report.SumDigests(digests)
	return &m, err
}

func addReasons(to, reasons map[string]int64) {
	for reason, n := range reasons {
		to[reason] += n
	}
}

// merge adds what a later shard tells.
func merge(to, of *manifest.MergedDiffers) *manifest.MergedDiffers {
	if to == nil || of == nil {
		if of == nil {
			return to
		}
		return of
	}
	all := manifest.MergedDiffers{Rows: to.Rows + of.Rows, By: map[string]int64{}, Example: to.Example}
	addReasons(all.By, to.By)
	addReasons(all.By, of.By)
	return &all
}

// writeFile writes a file of the output whole.
func (j *Job) writeFile(name string, write func(io.Writer) error) (w File, err error) {
	err = writeWhole(filepath.Join(j.out, name), func(to io.Writer) error {
		f := to.(*file).digested()
		if err := write(f); err != nil {
			return err
		}
		w = f.so(name)
		return nil
	})
	return w, err
}

// writeRejects writes rejects.csv, and returns the first reject.
func (j *Job) writeRejects(ctx context.Context, to io.Writer, rejects *extsort.Sorter) (first *outcome.Reject, err error) {
	w := report.NewRejects(to, j.inputs.Names)
	at := rejects.Cursor(ctx, 1)
	defer at.Close()
	for at.Next() {
		place, rej := record.DecodeReject(at.Key(), at.Record())
		rej.Source = string(j.run.Inputs[place.Source].Name)
		if first == nil {
			first = &outcome.Reject{Source: rej.Source, Row: rej.Row, Reason: rej.Reason, Detail: rej.Detail}
		}
		if err := w.Append(rej); err != nil {
			return first, err
		}
	}
	return first, errors.Join(at.Err(), w.Close())
}

// writeCollisions puts the collisions of all shards together.
func (j *Job) writeCollisions(done *tasks) (manifest.FileSum, error) {
	rows := int64(0)
	w, err := j.writeFile(manifest.CollisionsName, func(to io.Writer) error {
		if err := report.NewCollisions(to, false, false).Close(); err != nil { // the header
			return err
		}
		for _, a := range inOrder(done.applied) {
			rows += a.Part.Lower
			if err := j.copyBody(to, a.Collisions); err != nil {
				return err
			}
		}
		return nil
	})
	return sumOf(w, rows), err
}

// copyBody copies a CSV without its header.
func (j *Job) copyBody(to io.Writer, f File) error {
	h, err := os.Open(j.path(f.Name))
	if err != nil {
		return err
	}
	defer h.Close()
	r := bufio.NewReader(h)
	if _, err = r.ReadSlice('\n'); err == nil {
		_, err = io.Copy(to, r)
	}
	if err != nil {
		err = j.unusable(f, err)
	}
	return err
}

// refuse writes rejects and manifest of a run that may not be.
func (j *Job) refuse(ctx context.Context, run *Run, rejects *extsort.Sorter) (err error) {
	dir, err := outdir.Claim(outdir.FailedOf(j.out), outdir.ClaimOptions{Overwrite: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Abandon()) }()
	list, err := dir.Create(manifest.RejectsName)
	if err != nil {
		return err
	}
	if run.First, err = j.writeRejects(ctx, list, rejects); err != nil {
		return err
	}
	if err := list.Close(); err != nil {
		return err
	}
	m := run.Manifest
	m.RowDigest, m.Files = "", manifest.Files{{Name: list.Name(), Rows: m.Counts.Rejected, SHA256: list.SHA256()}}
	file, err := dir.Create(manifest.Name)
	if err != nil {
		return err
	}
	if err := errors.Join(manifest.Write(file, m), file.Close()); err != nil {
		return err
	}
	run.Refused, run.Digest = true, file.SHA256()
	run.Out = dir.Name()
	return dir.Commit()
}
