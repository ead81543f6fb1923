package source

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The columns of a rejects file around those of the input.
const (
	rejectsHead = "source,row,byte_offset,reason,detail"
	rejectsTail = "raw"
	rejectsLead = 5 // columns before the input's
)

// otherColumns ends the detail of a line that cannot be split, if the columns of the
// rejects are not those of its input: to split it once it is mended would put its fields
// under the names of others.
const otherColumns = "; its file has other columns than the rejects: fill in the cells"

// A restorer turns the rejects of an earlier run back into the input that they came
// from. A row that could be split then, or whose cells somebody has filled in since, is
// in its cells. Of any other there is the raw line, which is split again: there is a
// splitter for each delimiter that it may have. (The rejects themselves are split with
// NUL bytes allowed, since cells and raw may have them.)
type restorer []*splitter

// openRejects settles the columns if the text is a rejects file.
func (in *Input) openRejects(w *window, start int) (bool, error) {
	delim := rejectsDelimiter(w.buf[w.pos+start:])
	if delim == 0 {
		return false, nil
	}
	s := in.rejectsSplitter(delim)
	header, end, err := rejectsHeader(s, w, start)
	if header == nil {
		return false, err
	}
	in.Format = "rejects"
	in.Dialect = &Dialect{Delimiter: string([]byte{delim}), Quote: `"`, Header: true, Encoding: w.encoding, BOM: start > 0}
	if in.opts.Delimiter != 0 {
		in.Dialect.RawDelimiter = in.candidates()
	}
	if in.opts.Quote != '"' {
		in.Dialect.RawQuote = string([]byte{in.opts.Quote})
	}
	in.nameColumns(restored(header))
	in.openLines(end, func() *lines {
		var r restorer
		for _, delim := range []byte(in.candidates()) {
			r = append(r, newSplitter(delim, in.opts.Quote, in.opts.MaxField, true))
		}
		return &lines{splitter: in.rejectsSplitter(delim), ncols: len(header), restore: r}
	})
	if err := in.settleColumns(); err != nil {
		return false, err
	}
	return true, in.checkSight(s, w, end, len(header))
}

// rejectsHeader returns the cells of the record at start and where it ends, or nil if
// that is not the header of a rejects file.
func rejectsHeader(s *splitter, w *window, start int) (header []string, end int, err error) {
	end, fault, err := s.first(w, start)
	if err != nil {
		return nil, 0, err
	}
	header = texts(s.fields)
	if fault != nil || len(header) < rejectsLead+2 || s.count > s.keep || header[len(header)-1] != rejectsTail ||
		strings.Join(header[:rejectsLead], ",") != rejectsHead {
		return nil, 0, nil
	}
	return header, end, nil
}

// checkSight is oneURL of the rows from p on that the window holds, of ncols cells each,
// up to the first that has other ones.
func (in *Input) checkSight(s *splitter, w *window, p, ncols int) error {
	buf := w.buf[w.pos:]
	for n := int64(1); p < len(buf); n++ {
		next, fault := s.record(buf, p, w.eof())
		if fault != nil || next == more || s.count != ncols {
			return nil
		}
		if err := in.oneURL(n, s.fields[rejectsLead:ncols-1]); err != nil {
			return err
		}
		p = next
	}
	return nil
}

// oneURL checks that of the cells that may hold the URL of a row at most one is filled.
// So it is in rejects of several inputs, each with another URL column. It need not be in
// those of an input where --url-column chose between two, and then it must choose again.
func (in *Input) oneURL(record int64, cells [][]byte) error {
	found := -1
	for _, i := range in.URLs {
		if len(cells[i]) == 0 {
			continue
		}
		if found >= 0 && !in.opts.FirstURL {
			return &UsageError{in.Name, fmt.Sprintf("record %d: both %q and %q may hold the URL: keep one of the two cells and empty the other, "+
				"or choose the column with --url-column NAME or N", record, in.Columns[found], in.Columns[i])}
		}
		found = i
	}
	return nil
}

// rejectsDelimiter returns what follows the name of the first column, if that is
// the one of a rejects file; or 0. A spreadsheet may have saved the file in
// another dialect than it was written in.
func rejectsDelimiter(text []byte) byte {
	name, _, _ := strings.Cut(rejectsHead, ",")
	for _, first := range []string{name, `"` + name + `"`} {
		rest, ok := bytes.CutPrefix(text, []byte(first))
		if ok && len(rest) > 0 && strings.IndexByte(delimiters, rest[0]) >= 0 {
			return rest[0]
		}
	}
	return 0
}

// rejectsSplitter has room for what stands before the cells of an input, and
// for quotes that the input did not need.
func (in *Input) rejectsSplitter(delim byte) *splitter {
	s := newSplitter(delim, '"', max(in.opts.MaxField, 4096), false)
	s.maxRecord *= 3
	s.keep += rejectsLead + 1
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

// append adds what a row of the rejects file stands for, unless it has two URLs.
func (r restorer) append(b *batcher, offset int64, fields [][]byte) error {
	last := len(fields) - 1
	cells, raw := fields[rejectsLead:last], fields[last]
	mended := slices.ContainsFunc(cells, func(cell []byte) bool { return len(cell) > 0 })
	if len(raw) > 0 && !mended {
		f := fault{Reason(fields[3]), string(fields[4])}
		n := len(cells)
		if cells = nil; f.reason != FieldTooLong { // of such a line, raw may be a part
			var either string
			f.reason = MalformedRow
			cells, either = r.resplit(raw, n, f.detail)
			f.detail = cmp.Or(either, f.detail)
		}
		if cells == nil {
			b.bad(offset, &f, raw)
			return nil
		}
	}
	if err := b.in.oneURL(b.base+b.n+1, cells); err != nil {
		return err
	}
	b.append(offset, cells)
	return nil
}

// resplit splits a raw line into n cells by the delimiter that makes so many of it. If
// two do, with different cells, either says so. If any finds the fault that the line was
// rejected for, the line was not mended, and there are no cells: what another delimiter
// makes of it would be something else.
func (r restorer) resplit(raw []byte, n int, detail string) (cells [][]byte, either string) {
	if strings.HasSuffix(detail, otherColumns) {
		return nil, ""
	}
	var by byte
	for _, s := range r {
		s.moved()
		next, f := s.record(raw, 0, true)
		switch {
		case f == nil && s.count != n:
			f = s.ragged(n)
		case f != nil || next < len(raw):
		case cells == nil:
			cells, by = s.fields, s.delim
		case !slices.EqualFunc(cells, s.fields, bytes.Equal):
			either = fmt.Sprintf("both %q and %q split the line: choose with --delimiter, or fill in the cells", by, s.delim)
		}
		if f != nil && f.detail == detail {
			return nil, ""
		}
	}
	if either != "" {
		return nil, either
	}
	return cells, ""
}
