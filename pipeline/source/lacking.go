package source

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/linkforge/bulk/pipeline/charset"
)

// A text that is decoded (Options.Encoding) has bytes that are not UTF-8 where it has some that the
// encoding lacks (charset.NewReader). Its records with such bytes are malformed. They are not split
// again if they are fed back, since what is lost must be written anew.

// lacks says what the encoding of the input lacks of a text; "": nothing.
func (in *Input) lacks(text []byte) string {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r != utf8.RuneError || n > 1:
			text = text[n:]
		case charset.IsWide(in.opts.Encoding):
			return "half of a character of " + in.opts.Encoding
		default:
			return fmt.Sprintf("the byte %02X, which %s lacks", text[0], in.opts.Encoding)
		}
	}
	return ""
}

// lacking is the fault of a record of which the encoding lacks something; nil: there is none.
func (l *lines) lacking(in *Input, record []byte) *fault {
	if !in.decoded || utf8.Valid(record) {
		return nil
	}
	for i, cell := range l.fields {
		if what := in.lacks(cell); what != "" {
			return malformed("field %d has %s%s", i+1, what, fillCells)
		}
	}
	return malformed("it has %s%s", in.lacks(record), fillCells)
}

// mark returns a raw line with U+FFFD in place of what the encoding of the input lacks.
func (in *Input) mark(f *fault, raw []byte) (*fault, []byte) {
	if !in.decoded || utf8.Valid(raw) {
		return f, raw
	}
	marked := bytes.ToValidUTF8(raw, []byte(string(utf8.RuneError)))
	if bytes.HasSuffix([]byte(f.detail), []byte(fillCells)) {
		return f, marked
	}
	return &fault{f.reason, fmt.Sprintf("%s; the line has %s%s", f.detail, in.lacks(raw), fillCells)}, marked
}

// characters returns the beginning of a text that is decoded without a part of a character at its end.
func (in *Input) characters(cut []byte) []byte {
	for back := 1; in.decoded && back < utf8.UTFMax && back <= len(cut); back++ {
		if end := cut[len(cut)-back:]; utf8.RuneStart(end[0]) {
			if !utf8.FullRune(end) {
				return cut[:len(cut)-back]
			}
			break
		}
	}
	return cut
}

// inspect notes whether the rows of a batch have bytes that are not UTF-8.
func (b *batcher) inspect() {
	for i := range b.cols {
		c := &b.cols[i]
		for n := b.skipped; n+1 < len(c.ends); n++ {
			if !utf8.Valid(c.data[c.ends[n]:c.ends[n+1]]) {
				b.in.strange.Store(true)
				return
			}
		}
	}
}
