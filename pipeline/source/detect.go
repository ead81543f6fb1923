package source

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/linkforge/bulk/pipeline/columns"
)

// delimiters are those that are detected, the more likely ones first.
const delimiters = ",;\t|"

const utf8BOM = "\xef\xbb\xbf"

// openText finds format, dialect and columns of a text.
func (in *Input) openText(w *window) error {
	bom := bytes.HasPrefix(w.buf[w.pos:], []byte(utf8BOM))
	start := 0
	if bom {
		start = len(utf8BOM)
	}
	if in.opts.Encoding != "" && !in.decoded && !hasRejectsHead(w.buf[w.pos+start:]) {
		return &columns.UsageError{Input: in.Name, Msg: "begins with the byte order mark of " + w.encoding + ", so Options.Encoding " + in.opts.Encoding + " cannot be right: leave it out"}
	}
	if in.opts.MayBe(beacon) && isBeacon(w.buf[w.pos+start:]) {
		return in.openBeacon(w, start)
	}
	if strings.EqualFold(filepath.Ext(trimCompression(cmp.Or(in.opts.KnownAs, in.Name))), ".txt") { // one URL a line
		in.Format = "text"
		in.openLines(start, func() *lines {
			return &lines{splitter: newLineSplitter(in.opts.MaxField), ncols: 1}
		})
		return in.SettleText()
	}
	if ok, err := in.openRejects(w, start); ok || err != nil {
		return err
	}
	if delim, length := separator(w.buf[w.pos+start:], in.opts.Quote); length > 0 {
		start += length
		in.opts.Delimiter = cmp.Or(in.opts.Delimiter, delim)
	}
	s, err := in.sample(w, start)
	if err != nil {
		return err
	}
	in.Format = "csv"
	in.Dialect = &Dialect{
		Delimiter: string([]byte{s.delim}), Quote: string([]byte{in.opts.Quote}),
		Encoding: w.encoding, BOM: bom,
	}
	header, err := in.settleHeader(s)
	if err != nil {
		return err
	}
	batch := in.Known != nil && in.Known.Batch && s.delim == '\t'
	if batch {
		in.Dialect.Quote = ""
	}
	in.openLines(start+header, func() *lines {
		l := &lines{splitter: newSplitter(s.delim, in.opts.Quote, in.opts.MaxField, true), ncols: len(in.Columns), escapes: batch}
		if batch {
			l.quote.off = true
		}
		return l
	})
	return nil
}

// separator returns the delimiter that a line sep=; before the header of a CSV tells spreadsheets, and
// the length of that line; 0: there is none.
func separator(text []byte, quote byte) (delim byte, length int) {
	line, _, ended := bytes.Cut(text, []byte("\n"))
	if length = len(line) + 1; !ended {
		return 0, 0
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	if n := len(line); n > 1 && line[0] == quote && line[n-1] == quote {
		line = line[1 : n-1]
	}
	if len(line) != len("sep=;") || !bytes.EqualFold(line[:4], []byte("sep=")) || line[4] == quote || unusable(line[4]) {
		return 0, 0
	}
	return line[4], length
}

// trimCompression returns a name without the extensions of compressed files.
func trimCompression(name string) string {
	for _, ext := range []string{".gz", ".zst", ".zstd"} {
		if at := len(name) - len(ext); at >= 0 && strings.EqualFold(name[at:], ext) {
			name = name[:at]
		}
	}
	return name
}

// settleHeader decides whether the first record is a header, and returns the length of the
// header.
func (in *Input) settleHeader(s *sample) (length int, err error) {
	yes := in.opts.Header == HeaderYes
	if yes && s.end == 0 {
		if s.fault == nil {
			return 0, &columns.UsageError{Input: in.Name, Msg: "there is no header"}
		}
		return 0, &columns.UsageError{Input: in.Name, Msg: "the first line is no header: " + s.fault.detail}
	}
	in.Dialect.Header = yes || in.opts.Header == HeaderAuto && s.end > 0 && s.named
	cells := make([]string, max(len(s.first), 1))
	if in.Dialect.Header {
		length = s.end
		copy(cells, s.first)
	}
	if i := slices.IndexFunc(cells, func(cell string) bool { return in.decoded && !utf8.ValidString(cell) }); i >= 0 {
		return 0, &columns.UsageError{Input: in.Name, Msg: fmt.Sprintf("the header has %s: it is in another encoding", in.lacks([]byte(cells[i])))}
	}
	in.SetNames(cells)
	in.NoHeader, in.SaidNoHeader = !in.Dialect.Header, in.opts.Header == HeaderNo
	in.First = s.first
	if s.end == 0 && s.fault != nil {
		in.Before = s.fault.detail
	}
	if in.Dialect.Header && strings.Contains(","+strings.Join(cells, ",")+",", ","+rejectsHead+",") {
		return 0, in.Usage("a rejects file must begin with " + rejectsHead + " and end with " + rejectsTail + ": " +
			"put its columns back in order, or rename these")
	}
	if in.Dialect.Header && slices.ContainsFunc(cells, hasLoneCR) { // rows may be in it
		return 0, in.Usage("the header has a CR without an LF, which does not end a line: convert the line endings to LF")
	}
	if s.first == nil { // no record can be split: any column will do
		in.URLs, in.Blank = []int{0}, s.fault == nil
		return length, nil
	}
	return length, in.Settle()
}

// hasLoneCR says whether a cell has a CR without an LF, except at its end: there it may be from a
// line ending that was converted twice.
func hasLoneCR(cell string) bool {
	cell = strings.TrimRight(cell, "\r")
	return strings.Count(cell, "\r") > strings.Count(cell, "\r\n")
}

// A sample is what the first records are if they are split by delim.
type sample struct {
	delim   byte
	first   []string // the first record that can be split, with at most columns.MaxColumns fields
	width   int      // number of its fields
	end     int      // where it ends, if it is the first record of all; 0: it is not, or there is none
	records int      // that are not blank
	blanks  int
	fault   *fault // the first one
	same    int    // records with as many fields as first
	urls    int    // cells that start with a URL
	named   bool   // first is a header (see IsHeader)

	late      int // number of the first later record that is a header, if no URL stands before it; 0: none
	lateWidth int // number of its fields
	lateSame  int // records after it with as many fields
}

// sample looks at the first records and chooses the delimiter, unless it is given. The best
// delimiter makes the first record a header (see IsHeader). Without a header, it is the one by
// which most records have as many fields as the first: two or more, in more than half of the
// records. Of two such delimiters the one with more cells that start with a URL is better. If
// two are left, and there is no header, it is an error.
//
// If no delimiter qualifies there is one column, and the delimiter is the tab, which no URL has.
// So a list of URLs in which only some have commas has one column; if each has the same number
// of commas, they separate columns. It is an error if a header stands further down, after lines
// without URLs, and most records after it have its columns: whole rows would be stored as URLs.
func (in *Input) sample(w *window, start int) (*sample, error) {
	for most := peekBytes; ; most *= 2 {
		if err := w.look(most); err != nil {
			return nil, err
		}
		buf := w.buf[w.pos:]
		eof := w.eof() && len(buf) <= most
		buf = buf[:min(len(buf), most)] // however much there is
		var tries []*sample
		pending := false // a first record has not ended
		for _, delim := range []byte(in.candidates()) {
			s := in.try(delim, buf, start, eof)
			tries = append(tries, s)
			pending = pending || s.records == 0 && !eof
		}
		if pending && most <= in.opts.MaxField+peekBytes {
			continue
		}
		best, equal := likeliest(tries)
		if best == nil {
			if i := slices.IndexFunc(tries, (*sample).lateHeader); i >= 0 {
				return nil, in.lateHeader(tries[i])
			}
			best = in.try('\t', buf, start, eof)
			if i := slices.IndexFunc(tries, func(s *sample) bool { return s.records == 0 && s.blanks > 0 }); i >= 0 {
				best = tries[i]
			}
		}
		if best.first == nil && !eof {
			why := "the first one is longer"
			if best.fault != nil {
				why = best.fault.detail
			}
			return nil, in.untold("no record in the first %d bytes can be split (%s)", len(buf), why)
		}
		if in.opts.Header != HeaderNo && best.titled() {
			return nil, in.lateHeader(best)
		}
		if equal != nil && !best.named {
			return nil, in.untold("both %q and %q split the records: choose one with Options.Delimiter", best.delim, equal.delim)
		}
		return best, in.checkWidth(best.width)
	}
}

// lateHeader says that a title or a comment stands before the header.
func (in *Input) lateHeader(s *sample) error {
	advice := "delete what stands before the header"
	if s.lateWidth > 1 && s.width == 1 {
		advice += ", or use Options.Delimiter tab if each line is one URL"
	}
	return in.untold("record %d is a header, but not the first record: %s", s.late, advice)
}

func (in *Input) untold(format string, args ...any) error {
	return &columns.UsageError{Input: in.Name, Msg: "cannot tell the columns: " + fmt.Sprintf(format, args...)}
}

// likeliest returns the best sample, or nil if none qualifies, and another one that is as good.
// A single sample always qualifies.
func likeliest(tries []*sample) (best, equal *sample) {
	if len(tries) == 1 {
		return tries[0], nil
	}
	for _, s := range tries {
		switch {
		case s.better(best):
			best, equal = s, nil
		case s.better(nil) && !best.better(s):
			equal = s
		}
	}
	return best, equal
}

// lateHeader says whether a header stands further down and most records after it have its
// columns.
func (s *sample) lateHeader() bool { return 2*s.lateSame > s.records+s.blanks-s.late }

// titled says whether something that is no URL stands before a header and most records after it have
// its columns.
func (s *sample) titled() bool { return s.late > 0 && s.lateSame > 0 && s.lateHeader() }

// candidates returns the delimiters that the input may have.
func (in *Input) candidates() string {
	if in.opts.Delimiter != 0 {
		return string([]byte{in.opts.Delimiter})
	}
	return strings.ReplaceAll(delimiters, string([]byte{in.opts.Quote}), "")
}

// better says whether the delimiter of s is more likely than that of t.
func (s *sample) better(t *sample) bool {
	switch {
	case s.width < 2 || !s.named && 2*s.same <= s.records:
		return false
	case t == nil:
		return true
	case s.named != t.named:
		return s.named
	case s.same*t.records != t.same*s.records:
		return s.same*t.records > t.same*s.records
	}
	return s.urls > t.urls
}

// try splits the sample by a delimiter.
func (in *Input) try(delim byte, buf []byte, p int, eof bool) *sample {
	s := &sample{delim: delim}
	sp := newSplitter(delim, in.opts.Quote, in.opts.MaxField, true)
	for start := p; p < len(buf); {
		if buf[p] == '\n' || buf[p] == '\r' && p+1 < len(buf) && buf[p+1] == '\n' {
			p++ // a CR before it makes an empty line too
			continue
		}
		next, f := sp.record(buf, p, eof)
		if next == more {
			break
		}
		if f == nil && sp.isBlankRecord(buf[p:next], columns.MaxColumns) {
			s.blanks++
			p = next
			continue
		}
		s.records++
		if f != nil {
			if s.fault == nil {
				s.fault = f
			}
			p = min(sp.lf.from(buf, p)+1, len(buf))
			continue
		}
		if s.first == nil {
			if s.records == 1 {
				s.end = next - start
			}
			s.first, s.width = texts(sp.fields), sp.count
			if s.named = in.opts.IsHeader(s.first); s.named && s.records > 1 { // those before cannot be split
				s.named, s.late, s.lateWidth = false, s.records+s.blanks, sp.count
				s.same, p = 1, next
				continue
			}
		}
		switch {
		case s.late > 0 && sp.count == s.lateWidth:
			s.lateSame++
		case s.late == 0 && s.records > 1 && s.urls == 0 && !s.named && in.opts.IsHeader(texts(sp.fields)):
			s.late, s.lateWidth = s.records+s.blanks, sp.count
		}
		if sp.count == s.width {
			s.same++
		}
		for _, cell := range sp.fields {
			if columns.HasURL(cell) {
				s.urls++
			}
		}
		p = next
	}
	return s
}

func texts(cells [][]byte) []string {
	s := make([]string, len(cells))
	for i, cell := range cells {
		s[i] = string(cell)
	}
	return s
}
