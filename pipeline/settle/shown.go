package settle

import (
	"context"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/rules"
)

// newShown returns a sorter of what the mapping shows of links, where that is not what the row says:
// by the bucket and the number of the record. The content is the cells up to the reference, each as
// of packed.AppendCell.
func newShown(cfg extsort.Config) *extsort.Sorter {
	cfg.CompareGroups, cfg.Compare = func(_, _ uint32) int { return 0 }, packed.CompareFirst
	return extsort.New(cfg)
}

// show files what the mapping shows with a record: what its link has after the run. What the row
// says itself needs no entry.
func (j *judging) show(at origin, l *rules.Link, p *rules.Params) {
	if l.Shows(p, j.AsOf) {
		return
	}
	cells, buf := l.Cells(j.buf)
	start := len(buf)
	for _, cell := range cells[:rules.Ref] {
		buf = packed.AppendCell(buf, cell)
	}
	copy(j.shown.Reserve(0, at.place(), len(buf)-start), buf[start:])
	j.buf = buf
}

// CutShown returns the cells of an entry, to which they refer.
func CutShown(entry []byte) (cells rules.Cells) {
	for c := range cells[:rules.Ref] {
		var cell []byte
		if cell, entry = packed.CutCell(entry); len(cell) > 0 {
			cells[c] = cell
		}
	}
	return cells
}

// Shown are the entries of a bucket.
type Shown struct {
	ends  []uint32 // by record, of its entry in texts; empty: there is none
	texts []byte
}

// Of returns the entry of a record; nil: its link has what the row says.
func (s *Shown) Of(i int) []byte {
	if s == nil || i >= len(s.ends) {
		return nil
	}
	from := uint32(0)
	if i > 0 {
		from = s.ends[i-1]
	}
	if to := s.ends[i]; from < to {
		return s.texts[from:to:to]
	}
	return nil
}

// A ShownReader reads the entries, bucket by bucket. It must be closed.
type ShownReader struct {
	at   *extsort.Cursor
	more bool
}

// Shown returns a reader of the entries of all buckets; nil: there are none.
func (s *Settlement) Shown(ctx context.Context) *ShownReader {
	if s.shown == nil || s.shown.Len() == 0 {
		return nil
	}
	r := &ShownReader{at: s.shown.Cursor(ctx, 1)}
	r.more = r.at.Next()
	return r
}

// Close gives up what the reader holds.
func (r *ShownReader) Close() { r.at.Close() }

// Next returns the entries of the next bucket, nil if it has none, and the error of reading them.
// Buckets are asked for one after another, from the first on.
func (r *ShownReader) Next(bucket int) (s *Shown, _ error) {
	for ; r.more && r.at.Key()>>40 == uint64(bucket); r.more = r.at.Next() {
		if s == nil {
			s = new(Shown)
		}
		for i := int(r.at.Key() & (1<<40 - 1)); len(s.ends) < i; {
			s.ends = append(s.ends, uint32(len(s.texts)))
		}
		s.texts = append(s.texts, r.at.Record()...)
		s.ends = append(s.ends, uint32(len(s.texts)))
	}
	return s, r.at.Err()
}
