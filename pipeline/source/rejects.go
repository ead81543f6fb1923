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

// A restorer makes of the rejects of an earlier run the input that they came
// from. A row that could be split then, or that somebody has split since, is in its
// cells; of another there is the raw line, which is split again. The lines underneath allow NUL bytes, since
// cells and raw may have them.
type restorer struct {
	again []*splitter // of raw lines: one for each delimiter that they may have
}

// openRejects settles the columns if the text is a rejects file.
func (in *Input) openRejects(w *window, start int) (bool, error) {
	buf := w.buf[w.pos:]
	if !bytes.HasPrefix(buf[start:], []byte(rejectsHead)) {
		return false, nil
	}
	s := in.rejectsSplitter()
	next, f := s.record(buf, start, w.eof())
	for f == nil && next == more && !w.eof() {
		if err := w.look(2 * (len(w.buf) - w.pos)); err != nil {
			return false, err
		}
		s.moved()
		buf = w.buf[w.pos:]
		next, f = s.record(buf, start, w.eof())
	}
	header := texts(s.fields)
	if f != nil || len(header) < rejectsLead+1 || s.count > maxColumns || header[len(header)-1] != rejectsTail ||
		strings.Join(header[:rejectsLead], ",") != rejectsHead {
		return false, nil
	}
	in.Format = "rejects"
	in.Dialect = &Dialect{Delimiter: ",", Quote: `"`, Header: true, Encoding: w.encoding, BOM: start > 0}
	in.nameColumns(restored(header))
	in.openLines(int64(next), func() *lines {
		r := &restorer{}
		for _, delim := range []byte(in.candidates()) {
			r.again = append(r.again, newSplitter(delim, in.opts.Quote, in.opts.MaxField, true))
		}
		return &lines{splitter: in.rejectsSplitter(), ncols: len(header), restore: r}
	})
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
// column of the rejects file or by the new name of an earlier column. A column
// that kept its name took it from none, since no two of the input have one.
func restored(header []string) []string {
	names := slices.Clone(header[rejectsLead : len(header)-1])
	taken := append(header[:rejectsLead:rejectsLead], rejectsTail)
	for i, name := range names {
		if bare, ok := strings.CutPrefix(name, "in_"); ok && slices.Contains(taken, bare) {
			names[i] = bare
			taken = append(taken, name)
		}
	}
	return names
}

// append adds what a row of the rejects file stands for.
func (r *restorer) append(b *batcher, offset int64, fields [][]byte) {
	last := len(fields) - 1
	cells, raw := fields[rejectsLead:last], fields[last]
	f := fault{Reason(fields[3]), string(fields[4])}
	mended := slices.ContainsFunc(cells, func(cell []byte) bool { return len(cell) > 0 })
	if len(raw) == 0 || mended {
		b.append(offset, cells)
		return
	}
	if f.reason != FieldTooLong { // of such a line, raw may be a part
		f.reason = MalformedRow
		if cells := r.resplit(raw, len(cells), f.detail); cells != nil {
			b.append(offset, cells)
			return
		}
	}
	b.bad(offset, &f, raw)
}

// resplit splits a raw line into n cells by the first delimiter that does it,
// unless one finds the fault that the line was rejected for: it is as it was
// then, and another delimiter would only make something else of it.
func (r *restorer) resplit(raw []byte, n int, detail string) (cells [][]byte) {
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
