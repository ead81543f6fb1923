package source

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/linkforge/bulk/pipeline/columns"
)

// The columns of a rejects file around those of the input.
const (
	rejectsHead = "source,row,byte_offset,reason,detail"
	rejectsTail = "raw"
	rejectsLead = 5 // columns before the input's
)

// fillCells ends the detail of a raw line that is not split again, even after a correction.
const fillCells = ": fill in the cells"

// otherColumns ends the detail of a line that cannot be split if the rejects have other columns
// than its input: its fields, split after a correction, would get the names of other columns.
const otherColumns = "; its file has other columns than the rejects" + fillCells

// A restorer turns the rejects of an earlier run back into their input. A row that could be split,
// or whose cells were filled in since, is in its cells. Any other has a raw line, which is split
// again: the restorer has a splitter for each delimiter that the line may have. (NUL bytes are
// allowed in the rejects, since cells and raw may have them.)
type restorer []*splitter

// openRejects opens a rejects file. It returns false if the text is not one.
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
	in.SetNames(restored(header))
	in.openLines(end, func() *lines {
		var r restorer
		for _, delim := range []byte(in.candidates()) {
			r = append(r, newSplitter(delim, in.opts.Quote, in.opts.MaxField, true))
		}
		return &lines{splitter: in.rejectsSplitter(delim), ncols: len(header), restore: r}
	})
	if err := in.Settle(); err != nil {
		return false, err
	}
	return true, in.checkSight(s, w, end, len(header))
}

// rejectsHeader returns the cells of the record at start and where it ends, or nil if it is not
// the header of a rejects file.
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

// checkSight calls oneURL for the rows from p on in the window, up to the first that does not have
// ncols cells.
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

// oneURL checks that at most one cell that may be the URL of a row is filled, or the code by which it
// is known. In rejects of several inputs with different URL columns that is so. In rejects of an input
// for which --url-column chose one of two columns it may not be so: then --url-column is needed again.
func (in *Input) oneURL(record int64, cells [][]byte) error {
	if in.Code >= 0 && in.opts.ByCode {
		return cmp.Or(in.oneOf(in.URLs, record, cells, "code", "Options.CodeColumn"), in.oneOf(in.Beside, record, cells, "URL", "Options.URLColumn"))
	}
	return in.oneOf(in.URLs, record, cells, "URL", "Options.URLColumn")
}

// oneOf checks that at most one cell among these columns is filled.
func (in *Input) oneOf(among []int, record int64, cells [][]byte, what, option string) error {
	found := -1
	for _, i := range among {
		if len(cells[i]) == 0 {
			continue
		}
		if found >= 0 && !in.opts.FirstURL {
			return &columns.UsageError{Input: in.Name, Msg: fmt.Sprintf("record %d: both %q and %q may be the %s: empty one of the two cells, "+
				"or use %s NAME, or its number", record, in.Columns[found], in.Columns[i], what, option)}
		}
		found = i
	}
	return nil
}

// rejectsDelimiter returns the delimiter after the name of the first column, or 0 if the name is
// not that of a rejects file. A spreadsheet may have saved the file in another dialect.
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

// hasRejectsHead reports whether a text begins with the first names of a rejects file.
func hasRejectsHead(text []byte) bool {
	delim := rejectsDelimiter(text)
	if delim == 0 {
		return false
	}
	head := make([]byte, 0, 2*len(rejectsHead))
	for c := range bytes.SplitSeq(text[:min(len(text), 3*len(rejectsHead))], []byte{delim}) {
		head = append(append(head, bytes.Trim(c, `"`)...), ',')
	}
	return bytes.HasPrefix(head, []byte(rejectsHead+","))
}

// rejectsSplitter returns a splitter with room for the columns before those of the input, and for
// quotes that the input did not need.
func (in *Input) rejectsSplitter(delim byte) *splitter {
	s := newSplitter(delim, '"', max(in.opts.MaxField, 4096), false)
	s.maxRecord *= 3
	s.keep += rejectsLead + 1
	return s
}

// restored returns the input's names: in_NAME becomes NAME if a column of the rejects file, or an
// earlier column with its new name, has that name. Names of the input are unique, so no other
// column can have it.
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

// append adds the record of the input that a row of the rejects file is for. A row with two URLs
// is an error.
func (r restorer) append(b *batcher, offset int64, fields [][]byte) error {
	last := len(fields) - 1
	cells, raw := fields[rejectsLead:last], fields[last]
	mended := slices.ContainsFunc(cells, isFilled)
	if count := r.short(b.in, raw, cells, string(fields[4])); mended && count > 0 {
		others := strings.HasSuffix(string(fields[4]), otherColumns)
		if others || !b.in.opts.PadRows || count < b.in.least {
			f := short(b.in, count)
			if others {
				f.detail = string(fields[4])
			}
			b.bad(offset, f, raw, cells)
			return nil
		}
	}
	if len(raw) > 0 && !mended {
		f := fault{Reason(fields[3]), string(fields[4])}
		n := len(cells)
		if cells = nil; f.reason != FieldTooLong { // of such a line raw may have only a part
			var either string
			f.reason = MalformedRow
			cells, either = r.resplit(raw, n, f.detail)
			f.detail = cmp.Or(either, f.detail)
		}
		if cells == nil {
			b.bad(offset, &f, raw, nil)
			return nil
		}
	}
	if areBlank(cells) {
		b.blank(offset)
		return nil
	}
	if err := b.in.oneURL(b.base+b.n+1, cells); err != nil {
		return err
	}
	b.append(offset, cells)
	return nil
}

// short returns how many fields a raw line has, if they are too few and the cells of its row are still
// just these; 0: it is not so. Where the rejects have other columns than the input of the line, its
// fields may be in any order.
func (r restorer) short(in *Input, raw []byte, cells [][]byte, detail string) int {
	if len(raw) == 0 {
		return 0
	}
	for _, s := range r {
		s.moved()
		next, f := s.record(raw, 0, true)
		if f != nil || next < len(raw) {
			continue
		}
		if strings.HasSuffix(detail, otherColumns) {
			if wasShort(detail) && sameFilled(cells, s.fields) {
				return s.count
			}
			continue
		}
		if s.count < len(cells) && !slices.ContainsFunc(cells[s.count:], isFilled) && !slices.ContainsFunc(in.firstColumns(s.count), func(c int) bool {
			return !bytes.Equal(cells[c], s.fields[c])
		}) {
			return s.count
		}
	}
	return 0
}

// wasShort reports whether a line had too few fields, by the detail of its reject.
func wasShort(detail string) bool {
	had, rest, _ := strings.Cut(detail, " ")
	_, rest, _ = strings.Cut(rest, " where there should be ")
	want, _, _ := strings.Cut(rest, ";")
	n, err := strconv.Atoi(had)
	m, bad := strconv.Atoi(want)
	return err == nil && bad == nil && n < m
}

// firstColumns returns the first n columns, but not those that are left out.
func (in *Input) firstColumns(n int) (list []int) {
	for c := range n {
		if !slices.Contains(in.LeftOut, c) {
			list = append(list, c)
		}
	}
	return list
}

func isFilled(cell []byte) bool { return len(cell) > 0 }

// sameFilled reports whether two rows have the same cells that are not empty, in any order.
func sameFilled(a, b [][]byte) bool {
	filled := func(cells [][]byte) [][]byte {
		cells = slices.DeleteFunc(slices.Clone(cells), func(cell []byte) bool { return !isFilled(cell) })
		slices.SortFunc(cells, bytes.Compare)
		return cells
	}
	return slices.EqualFunc(filled(a), filled(b), bytes.Equal)
}

// resplit splits a raw line into n cells, by the delimiter by which it has so many. If two
// delimiters do, with different cells, either says so. If the line has the fault that it was
// rejected for by any delimiter, it was not corrected, and resplit returns no cells.
func (r restorer) resplit(raw []byte, n int, detail string) (cells [][]byte, either string) {
	if strings.HasSuffix(detail, fillCells) {
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
		if f != nil && f.detail == strings.TrimSuffix(detail, padRows) {
			return nil, ""
		}
	}
	if either != "" {
		return nil, either
	}
	return cells, ""
}
