package source

import (
	"bytes"
	"slices"
	"strings"
)

// The columns of a rejects file around those of the input.
const (
	rejectsHead = "source,row,byte_offset,reason,detail"
	rejectsTail = "raw"
	rejectsLead = 5 // columns before the input's
)

// rejects reads the rejects of an earlier run as the input they came from. A
// row that could be split then is in its cells; of another there is the raw
// line, which is split again. The lines underneath allow NUL bytes, since cells
// and raw may have them.
type rejects struct {
	lines
	again []*splitter // of raw lines: one for each delimiter that they may have
}

// openRejects settles the columns if the text is a rejects file.
func (in *Input) openRejects(w *window, start int) (bool, error) {
	buf := w.buf[w.pos:]
	if !bytes.HasPrefix(buf[start:], []byte(rejectsHead)) {
		return false, nil
	}
	s := in.rejectsSplitter()
	next, f := s.record(buf, start, w.eof)
	for f == nil && next == more && !w.eof {
		if err := w.look(2 * (len(w.buf) - w.pos)); err != nil {
			return false, err
		}
		s.moved()
		buf = w.buf[w.pos:]
		next, f = s.record(buf, start, w.eof)
	}
	header := texts(s.fields)
	if f != nil || len(header) < rejectsLead+1 || s.count > maxColumns || header[len(header)-1] != rejectsTail ||
		strings.Join(header[:rejectsLead], ",") != rejectsHead {
		return false, nil
	}
	in.Format = "rejects"
	in.Dialect = &Dialect{Delimiter: ",", Quote: `"`, Header: true, Encoding: w.encoding, BOM: start > 0}
	in.Columns = unique(restored(header))
	r := &rejects{lines: lines{
		splitter: in.rejectsSplitter(), start: int64(next), ncols: len(header),
	}}
	r.keep = r.ncols
	for _, delim := range []byte(in.candidates()) {
		r.again = append(r.again, newSplitter(delim, in.opts.Quote, in.opts.MaxField, true))
	}
	in.read = func(b *batcher) error {
		r.w = in.src
		if err := r.w.skip(r.start); err != nil {
			return err
		}
		return r.read(b)
	}
	return true, in.settleColumns()
}

// rejectsSplitter has room for what stands before the cells of an input, and
// for quotes that the input did not need.
func (in *Input) rejectsSplitter() *splitter {
	s := newSplitter(',', '"', max(in.opts.MaxField, 4096), false)
	s.maxRecord *= 3
	return s
}

// restored returns the input's names: in_NAME is NAME if that was taken, by a
// column of the rejects file or by an earlier column of the input.
func restored(header []string) []string {
	names := slices.Clone(header[rejectsLead : len(header)-1])
	taken := append(header[:rejectsLead:rejectsLead], rejectsTail)
	for i, name := range names {
		if bare, ok := strings.CutPrefix(name, "in_"); ok && slices.Contains(taken, bare) {
			names[i] = bare
		}
		taken = append(taken, name)
	}
	return names
}

// read reads all rows into b.
func (r *rejects) read(b *batcher) error {
	r.moved()
	for {
		if b.full() {
			if err := b.flush(); err != nil {
				return err
			}
		}
		found, err := r.begin()
		switch {
		case err != nil:
			return err
		case b.limited():
			b.in.cut = found
			return nil
		case !found:
			return b.flush()
		}
		next, f, err := r.split()
		switch {
		case err != nil:
			return err
		case f != nil:
			if err := r.reject(b, f); err != nil {
				return err
			}
		default:
			r.restore(b)
			r.w.pos = next
		}
	}
}

// restore adds what the row of the rejects file in r.fields stands for.
func (r *rejects) restore(b *batcher) {
	last := len(r.fields) - 1
	cells, raw := r.fields[rejectsLead:last], r.fields[last]
	f := fault{Reason(r.fields[3]), string(r.fields[4])}
	if len(raw) == 0 {
		b.append(r.w.offset(), cells)
		return
	}
	if f.reason != FieldTooLong { // of such a line, raw may be a part
		f.reason = MalformedRow
		if cells := r.resplit(raw, len(cells), f.detail); cells != nil {
			b.append(r.w.offset(), cells)
			return
		}
	}
	b.bad(r.w.offset(), &f, bytes.Clone(raw))
}

// resplit splits a raw line into n cells by the first delimiter that does it,
// unless one finds the fault that the line was rejected for: it is as it was
// then, and another delimiter would only make something else of it.
func (r *rejects) resplit(raw []byte, n int, detail string) (cells [][]byte) {
	for _, s := range r.again {
		s.moved()
		next, f := s.record(raw, 0, true)
		switch {
		case f == nil && s.count != n:
			f = s.ragged(n)
		case f == nil && next == len(raw) && cells == nil:
			cells = s.fields
		}
		if f != nil && f.detail == detail {
			return nil
		}
	}
	return cells
}
