package stage

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/shorturl"
	"github.com/linkforge/bulk/pipeline/source"
)

// mapped is what an attempt of Map tells.
type mapped struct {
	Input     manifest.Input   `json:"input"`           // of a part the first one has the digest
	Stamp     string           `json:"stamp,omitempty"` // of the file, if it is a part of one
	Reasons   map[string]int64 `json:"reasons"`         // rejects by reason
	Rewritten int64            `json:"rewritten"`
	Rows      File             `json:"rows"` // see exchange; without a name: an engine has them
	Rejects   File             `json:"rejects"`
	Digest    string           `json:"digest"`
	Sum       uint64           `json:"sum"` // of all records, as of recordSum
}

func (m mapped) files() []File  { return named(m.Rows, m.Rejects) }
func (m mapped) digest() string { return m.Input.SHA256 + m.Stamp + m.Digest + m.Rejects.SHA256 }

// Map reads an input, or an export of links, which is known by its number: the inputs come first.
func (j *Job) Map(ctx context.Context, n int) error {
	_, err := j.MapTo(ctx, n, nil)
	return err
}

// MapTo does the same for an engine that has the exchange: rows and links go there. It returns the name of
// the report.
func (j *Job) MapTo(ctx context.Context, n int, emit Emit) (reported string, err error) {
	if err := checkTask("map", n, j.MapTasks()); err != nil {
		return "", err
	}
	if inputs := j.inputTasks(); n >= inputs {
		return j.mapLinks(ctx, n-inputs, emit)
	}
	file, part := partOf(j.plan.Reading.Parts, n)
	input, opts := string(j.run.Inputs[file].Name), j.plan.Reading.options()
	opts.RowGroups = part
	rows, err := j.read(ctx, file, input, 0, opts)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, rows.List[file].Close(), rows.Close()) }()
	if err := shorturl.NewBase(j.terms.BaseURL).CheckWorkspaces(rows.Workspaces.Sorted()); err != nil {
		return "", fmt.Errorf("Config.BaseURL %s: %w", j.terms.BaseURL, err)
	}
	a, told := j.begin("map", n), mapped{Reasons: rows.Reasons, Rewritten: rows.Rewritten}
	if part.To > 0 {
		told.Stamp = rows.List[file].Stamp()
	}
	defer func() { a.ended(err) }()
	x, err := a.exchange(".rows", ofRows, emit)
	if err != nil {
		return "", err
	}
	if told.Rows, told.Digest, err = x.finish(j.writeShards(ctx, x, rows)); err != nil {
		return "", err
	}
	told.Sum = x.total
	if told.Rejects, err = a.writeRejects(ctx, rows.Rejects); err != nil {
		return "", err
	}
	told.Input = rows.Manifest()[file]
	return a.report(told)
}

// read reads input n from a path: all of it, or the first records.
func (j *Job) read(ctx context.Context, n int, path string, limit int64, opts source.Options) (*intake.Rows, error) {
	described := *j.inputs
	in := &described
	in.List = slices.Clone(in.List)
	opts.TempDir = j.opts.TempDir
	if err := in.OpenOne(ctx, n, path, opts); err != nil {
		return nil, err
	}
	rows, err := intake.Read(ctx, in, intake.Config{
		Judge: j.terms.Judge(j.run.AsOf), Codes: j.coder.Order.Maker, Retries: j.coder.MaxRetries,
		Workspace: []byte(j.terms.Workspace), Limit: limit, Workers: j.opts.Workers,
		Records: j.sorter(recordMemory), Rejects: j.sorter(rejectMemory), Claims: extsort.Config{},
		Room:  func(int64) error { return nil },
		Bytes: new(atomic.Int64), Read: new(atomic.Int64), Rejected: new(atomic.Int64),
	})
	if err != nil {
		return nil, errors.Join(err, in.List[n].Close(), rows.Close())
	}
	return rows, nil
}

// sorter returns the configuration of a sorter, all but its order.
func (j *Job) sorter(memory int64) extsort.Config {
	return extsort.Config{Memory: memory, Loads: j.opts.Workers + 3, TempDir: j.opts.TempDir}
}

// writeShards writes the records to the stretches of their shards.
func (j *Job) writeShards(ctx context.Context, x *exchange, rows *intake.Rows) error {
	borders, at := j.plan.Borders, rows.Records.Cursor(ctx, 1)
	defer at.Close()
	for at.Next() {
		workspace, key, rec := rows.Workspaces.Name(at.Group()), at.Key(), at.Record()
		for s := x.shard(); s < len(borders) && borders[s].compare(&rows.Order, workspace, key, rec) <= 0; s++ {
			if err := x.next(); err != nil {
				return err
			}
		}
		if err := x.add(workspace, key, rec); err != nil {
			return err
		}
	}
	return at.Err()
}

// writeRejects writes rejects.
func (a *attempt) writeRejects(ctx context.Context, rejects *extsort.Sorter) (File, error) {
	f, name, err := a.create(".rejects")
	if err != nil {
		return File{}, err
	}
	r := &rejectFile{file: f.digested()}
	at := rejects.Cursor(ctx, 1)
	defer at.Close()
	for err == nil && at.Next() {
		err = r.add(at.Key(), at.Record())
	}
	return f.written(name, errors.Join(err, at.Err()))
}

// loadRejects puts the rejects of a file into a sorter.
func (j *Job) loadRejects(f File, to *extsort.Writer) error {
	h, err := os.Open(j.path(f.Name))
	if err != nil {
		return err
	}
	defer h.Close()
	r := bufio.NewReaderSize(h, 256<<10)
	var key [8]byte
	for {
		if _, err := io.ReadFull(r, key[:]); err == io.EOF {
			return to.Err()
		} else if err != nil {
			return j.unusable(f, err)
		}
		length, err := binary.ReadUvarint(r)
		if err == nil {
			_, err = io.ReadFull(r, to.Reserve(0, binary.LittleEndian.Uint64(key[:]), int(length)))
		}
		if err != nil {
			return j.unusable(f, err)
		}
	}
}
