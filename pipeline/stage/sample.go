package stage

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline/estimate"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/source"
)

// Of each input some stretches are sampled, which lie evenly in it, but so few that the whole sample has
// about sampleBytes. The borders come from it; they are no more than that good. Of Parquet and Arrow it is
// the beginnings of row groups and record batches, of an input that is compressed or in UTF-16 its own.
const (
	sampleBytes   = 8 << 20
	sampleStretch = 32 << 10
	sampleRows    = 10_000 // of a beginning: so many that what is read ahead of them counts for little
	sampledRow    = 100    // bytes of an input that count as a row of its sample
	mostSampled   = 1000   // inputs
	shardBytes    = 32 << 20
)

// sample returns borders between shards of about so many rows.
func (j *Job) sample(ctx context.Context, rows int64) ([]Border, error) {
	inputs := j.run.Inputs
	step := len(inputs)/mostSampled + 1
	var list []Border
	var all sampled
	for n := 0; n < len(inputs); n += step {
		few, s, err := j.sampleInput(ctx, n, sampleBytes/int64((len(inputs)+step-1)/step))
		if err != nil {
			return nil, err
		}
		list = append(list, few...)
		all.rows, all.bytes = all.rows+s.rows*float64(step), all.bytes+s.bytes*float64(step)
	}
	there := 0.0
	for i := range j.plan.Links {
		there += float64(j.plan.Links[i].Told.Rows)
	}
	shards := max(int((all.rows+there)/float64(rows)), int(all.bytes/shardBytes)) + 1
	j.contested = j.reckon(list, all.rows)
	slices.SortFunc(list, func(a, b Border) int { return a.compare(&j.coder.Order, b.Workspace, b.Key, b.Record) })
	var borders []Border
	for i := 1; i < shards && len(list) > 0; i++ {
		borders = append(borders, list[i*len(list)/shards])
	}
	return slices.CompactFunc(borders, func(a, b Border) bool { return a.compare(&j.coder.Order, b.Workspace, b.Key, b.Record) == 0 }), nil
}

// reckon returns about how many URLs will want a code that another one wants, if each row of a sample stands
// for a URL of its own, and so many rows are like these.
func (j *Job) reckon(list []Border, rows float64) (contested float64) {
	load := map[string]*estimate.Load{}
	at := func(workspace string) *estimate.Load {
		if load[workspace] == nil {
			load[workspace] = &estimate.Load{Scheme: j.run.Scheme.Name, CodeLength: j.run.Scheme.CodeLength}
		}
		return load[workspace]
	}
	for i := range list {
		at(string(list[i].Workspace)).Links++
	}
	for i := range j.plan.Links {
		for _, w := range j.plan.Links[i].Told.Workspaces {
			at(string(w.Workspace)).Existing = w.Links
		}
	}
	for _, l := range load {
		l.Links = int64(float64(l.Links) * rows / float64(max(len(list), 1)))
		f, err := estimate.Collisions(*l)
		if err != nil { // there are more links than codes
			f.NextCollides = 1
		}
		contested += float64(l.Links) * f.NextCollides
	}
	return contested
}

// sampled is how many rows an input seems to have, and how many bytes their records.
type sampled struct{ rows, bytes float64 }

// sampleInput returns positions of rows of an input.
func (j *Job) sampleInput(ctx context.Context, n int, most int64) (list []Border, all sampled, err error) {
	m := &j.run.Inputs[n]
	info, err := os.Stat(string(m.Name))
	if err != nil {
		return nil, all, err
	}
	size, path, limit, opts := info.Size(), string(m.Name), int64(0), j.plan.Reading.options()
	times := func(rows *intake.Rows) float64 {
		read, _ := rows.List[n].Progress()
		return float64(size) / float64(max(read, 1))
	}
	var of pieces
	switch {
	case m.Compression != "" || m.Dialect != nil && m.Dialect.Encoding != "utf-8":
		limit, opts.Block = sampleRows, 16<<10
	case m.Format == "parquet" || m.Format == "arrow":
		opts.Sample = int(most / sampledRow)
		times = func(rows *intake.Rows) float64 {
			return float64(rows.List[n].Extent()) / float64(max(rows.RowsRead(), 1))
		}
	default:
		path, of, err = j.excerpt(m, size, most)
		if path != "" {
			defer func() { err = errors.Join(err, os.Remove(path)) }()
		}
		if err != nil {
			return nil, all, err
		}
		opts = excerptOptions(opts, m)
		times = func(*intake.Rows) float64 { return of.share(size) }
	}
	rows, err := j.read(ctx, n, path, limit, opts)
	if err != nil {
		return nil, all, err
	}
	defer func() { err = errors.Join(err, rows.Inputs.Close(), rows.Close()) }()
	list, all = borders(ctx, rows, times(rows), of)
	if limit > 0 { // a share of them suffices
		step, kept := int(int64(len(list))*sampledRow/max(most, 1))+1, list[:0]
		for i := 0; i < len(list); i += step {
			kept = append(kept, list[i])
		}
		list = kept
	}
	return list, all, nil
}

// excerptOptions returns the options with which an excerpt of an input is read.
func excerptOptions(opts source.Options, m *manifest.Input) source.Options {
	opts.KnownAs = string(m.Name)
	if d := m.Dialect; d != nil {
		opts.Delimiter, opts.Quote, opts.Header = d.Delimiter[0], d.Quote[0], source.HeaderNo
		if d.Header {
			opts.Header, opts.UniqueNames = source.HeaderYes, true
			opts.URLColumn = string(m.URLColumns[0])
			if m.WorkspaceColumn != nil {
				opts.WorkspaceColumn = string(*m.WorkspaceColumn)
			}
		}
	}
	return opts
}

// A piece is a stretch of an input in its excerpt.
type piece struct{ at, from, size int64 } // offset in the excerpt and in the input

type pieces []piece

// share returns how many times as large as its pieces an input is.
func (p pieces) share(size int64) float64 {
	total := int64(0)
	for _, piece := range p {
		total += piece.size
	}
	return float64(size) / float64(max(total, 1))
}

// from returns about where a byte of the excerpt lies in the input.
func (p pieces) from(offset int64) int64 {
	i, ok := slices.BinarySearchFunc(p, offset, func(p piece, offset int64) int { return int(min(max(p.at-offset, -1), 1)) })
	if !ok && i > 0 {
		i--
	}
	return p[i].from + max(offset-p[i].at, 0)
}

// excerpt copies some stretches of whole lines of an input to a temporary file.
func (j *Job) excerpt(m *manifest.Input, size, most int64) (path string, list pieces, err error) {
	in, err := os.Open(string(m.Name))
	if err != nil {
		return "", nil, err
	}
	defer in.Close()
	f, err := os.CreateTemp(j.opts.TempDir, ".bulk-*"+filepath.Ext(string(m.Name)))
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	at, header := int64(0), m.Dialect != nil && m.Dialect.Header
	if header {
		n, err := f.WriteString(headerOf(m))
		if err != nil {
			return f.Name(), nil, err
		}
		at = int64(n)
	}
	count := min(max(most/sampleStretch, 1), size/sampleStretch+1)
	buf := make([]byte, min(sampleStretch, size))
	for i := range count {
		from := (size - int64(len(buf))) * i / max(count-1, 1)
		n, err := in.ReadAt(buf, from)
		if err != nil && err != io.EOF {
			return f.Name(), nil, err
		}
		lines, skipped := wholeLines(buf[:n], from == 0 && !header, from+int64(n) >= size)
		if _, err := f.Write(lines); err != nil {
			return f.Name(), nil, err
		}
		list = append(list, piece{at, from + int64(skipped), int64(len(lines))})
		at += int64(len(lines))
	}
	return f.Name(), list, nil
}

// wholeLines returns the whole lines of a stretch, and how many bytes come before them. The first line is
// whole if nothing, or no header, comes before it.
func wholeLines(stretch []byte, first, last bool) (lines []byte, skipped int) {
	if skipped = bytes.IndexByte(stretch, '\n') + 1; first {
		skipped = 0
	}
	lines = stretch[skipped:]
	if !last {
		return lines[:bytes.LastIndexByte(lines, '\n')+1], skipped
	}
	if len(lines) > 0 && lines[len(lines)-1] != '\n' {
		lines = append(slices.Clone(lines), '\n')
	}
	return lines, skipped
}

// headerOf returns the header of a CSV.
func headerOf(m *manifest.Input) string {
	q := m.Dialect.Quote
	var names []string
	for _, name := range m.Columns {
		names = append(names, q+strings.ReplaceAll(string(name), q, q+q)+q)
	}
	return strings.Join(names, m.Dialect.Delimiter) + "\n"
}

// borders returns the positions of all rows that were read, each at the place that it seems to have in the
// input, and how much the whole input seems to have, which is so many times as large.
func borders(ctx context.Context, rows *intake.Rows, times float64, from pieces) (list []Border, all sampled) {
	total := float64(max(rows.RowsRead(), 1))
	at := rows.Records.Cursor(ctx, 0)
	defer at.Close()
	for at.Next() {
		rec := at.Record()
		p := record.Decode(rec).Place
		all.bytes += float64(len(rec)) * times
		if len(from) > 0 {
			read := from[len(from)-1].at + from[len(from)-1].size
			p.Row = int64(float64(from.from(p.Offset)) / float64(read) * total)
		}
		list = append(list, Border{rows.Workspaces.Name(at.Group()), at.Key(), record.MoveTo(nil, rec, p)})
	}
	all.rows = total * times
	return list, all
}
