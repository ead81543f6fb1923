package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline/account"
)

// A screen is an account for people, of one screen: counts are a table, all else is sentences.
type screen struct {
	bytes.Buffer
	width   int  // of lists
	most    int  // columns of a line: on a terminal width, elsewhere nothing is cut
	sources int  // number of inputs: if it is 1, places do not name it
	wraps   bool // a note that has no room beside its count is not cut, but stands below it
}

// mostReasons is how many reasons of rejects are shown.
const mostReasons = 6

// columns of a screen that the counts of an account need.
type countColumns struct{ indent, labels, digits int }

// account writes the facts of an account from one on, after so many spaces.
func (s *screen) account(a *account.Account, indent int) {
	mentioned := a.Mentioned()
	c := s.measure(a, indent)
	written, reasons := false, reasonsIn(a)
	for i := range a.Facts {
		f := &a.Facts[i]
		if f.In == reasonsOf && len(reasons) > mostReasons+1 && slices.Index(reasons, f.Key) >= mostReasons {
			if f.Key == reasons[mostReasons] {
				s.line(fmt.Sprintf("%*sand %d more reasons", indent+2*f.Depth, "", len(reasons)-mostReasons))
			}
			continue
		}
		n, counts := f.Value.(int64)
		if counts = counts && f.Name != ""; !f.Told() || mentioned[f.Key] && !counts {
			continue
		}
		if f.Begins && written {
			s.WriteString("\n")
		}
		written = true
		switch {
		case counts:
			s.count(&c, f, thousands(n))
		case f.Exact:
			s.exact(a, f, indent)
		default:
			s.text(sentence(a, f), indent)
		}
	}
}

// reasonsIn returns the reasons of rejects.
func reasonsIn(a *account.Account) (keys []string) {
	for i := range a.Facts {
		if f := &a.Facts[i]; f.In == reasonsOf {
			keys = append(keys, f.Key)
		}
	}
	return keys
}

// measure returns the columns of the counts. On a narrow terminal labels are cut.
func (s *screen) measure(a *account.Account, indent int) countColumns {
	c := countColumns{indent: indent}
	for i := range a.Facts {
		f := &a.Facts[i]
		if n, ok := f.Value.(int64); ok && f.Name != "" && f.Told() {
			c.labels, c.digits = max(c.labels, 2*f.Depth+cells(f.Name)), max(c.digits, len(thousands(n)))
		}
	}
	c.labels = max(min(c.labels, s.most-indent-2-c.digits), 0)
	return c
}

// leastNote is how many columns a note must have beside its count. If there are fewer, it has a line
// of its own.
const leastNote = 24

// count writes a count with its label and what else is to be said of it.
func (s *screen) count(c *countColumns, f *account.Fact, number string) {
	label := shorten(strings.Repeat("  ", f.Depth)+f.Name, c.labels)
	note := s.note(f)
	row := strings.Repeat(" ", c.indent) + label + strings.Repeat(" ", c.labels-cells(label)) + fmt.Sprintf("  %*s", c.digits, number)
	at := cells(row) + 2
	room := s.most - at
	switch {
	case room >= leastNote && (!s.wraps || cells(note) <= room):
		s.line(row + "  " + note)
	case room >= leastNote && len(broken(note, room)) <= mostNote:
		lines := broken(note, room)
		s.line(row + "  " + lines[0])
		s.lines(lines[1:], at)
	default:
		s.line(row)
		s.lines(broken(note, s.most-c.indent-2*f.Depth-4), c.indent+2*f.Depth+4)
	}
}

// mostNote is how many lines a note may have. The rest is cut.
const mostNote = 2

// lines writes the first lines of a text, each after so many spaces. They have what does not fit.
func (s *screen) lines(lines []string, indent int) {
	if len(lines) > mostNote {
		lines = append(lines[:mostNote-1:mostNote-1], strings.Join(lines[mostNote-1:], " "))
	}
	for _, line := range lines {
		s.line(strings.Repeat(" ", indent) + line)
	}
}

// broken breaks a text into lines of at most so many columns, between words; a longer word has a line of
// its own.
func broken(text string, room int) (lines []string) {
	rest, width := oneLine(text), 0
	for start, end := 0, 0; ; end++ { // the line in hand is before end
		word, _, more := strings.Cut(rest[end:], " ")
		switch n := cells(word); {
		case end == 0:
			width = n
		case width+1+n <= room:
			width += 1 + n
		default:
			lines = append(lines, rest[start:end-1])
			start, width = end, n
		}
		if end += len(word); !more {
			return append(lines, rest[start:])
		}
	}
}

// note returns the example of a fact, its parts and its note, as one text.
func (s *screen) note(f *account.Fact) string {
	var list []string
	if e := f.Example; e != nil {
		list = append(list, s.place(e)+e.Text)
	}
	switch {
	case len(f.By) > 0 && f.Note != "":
		list = append(list, partsText(f.By)+" ("+f.Note+")")
	case len(f.By) > 0:
		list = append(list, partsText(f.By))
	case f.Note != "":
		list = append(list, f.Note)
	}
	return strings.Join(list, "; ")
}

// place says where the row of an example is.
func (s *screen) place(e *account.Example) string {
	switch {
	case e.Row == 0:
		return ""
	case s.sources == 1:
		return fmt.Sprintf("row %s: ", thousands(e.Row))
	}
	return fmt.Sprintf("%s, row %s: ", e.Source, thousands(e.Row))
}

// exact writes a text that is to be copied: it is not cut, and on a line of its own if it does not fit
// beside its name.
func (s *screen) exact(a *account.Account, f *account.Fact, indent int) {
	text := claim(a, f)
	if f.Words == "" && indent+cells(text) > s.most {
		text = f.Name + ":\n" + strings.Repeat(" ", indent) + strings.TrimPrefix(text, f.Name+": ")
	}
	s.WriteString(strings.Repeat(" ", indent) + visible(text) + "\n")
}

// text writes a sentence, on as many lines as it needs.
func (s *screen) text(text string, indent int) {
	for part := range strings.SplitSeq(text, "\n") {
		for i, line := range broken(part, s.most-indent-2) {
			if i > 0 {
				line = "  " + line
			}
			s.line(strings.Repeat(" ", indent) + line)
		}
	}
}

// line writes a line.
func (s *screen) line(text string) {
	s.WriteString(strings.TrimRight(shorten(text, s.most), " ") + "\n")
}

// wrap writes a list on as many lines as it needs.
func (s *screen) wrap(list string) {
	line := "  "
	for i, item := range strings.SplitAfter(list, ", ") {
		if i > 0 && cells(line+strings.TrimRight(item, " ")) > s.width {
			s.line(line)
			line = "    "
		}
		line += item
	}
	s.line(line)
}

// shorten makes a text one line of at most so many columns.
func shorten(text string, most int) string {
	text = oneLine(text)
	if cells(text) <= most {
		return text
	}
	return firstCells(text, most-1) + "…"
}
