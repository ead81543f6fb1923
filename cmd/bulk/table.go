package main

import (
	"io"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// A column of a table for people.
type column struct {
	title  string
	number bool // to the right
	text   bool // may be cut
	drop   int  // on a narrow terminal, the highest is left out first; 0: never
	cells  []string
}

// What a text keeps if it is cut, in columns of the terminal: where columns of the table can be left
// out, and where none can.
const (
	readableText = 8
	leastText    = 4
)

// least is the width that a column needs at least, if its cells need so much.
func (c *column) least(wide, text int) int {
	if c.text {
		return min(wide, max(text, len(c.title)))
	}
	return wide
}

// writeTable writes the columns to a terminal of so many characters. If there is no room for
// all, columns are left out, and texts lose their beginnings, since paths differ at the end.
// If there still is none, the terminal wraps the lines.
func writeTable(w io.Writer, width int, table []column) error {
	table, wide := fit(width, table)
	var b strings.Builder
	for row := -1; row < len(table[0].cells); row++ {
		line := ""
		for i, c := range table {
			cell := c.title
			if row >= 0 {
				cell = c.cells[row]
			}
			if cells(cell) > wide[i] {
				cell = "…" + lastCells(cell, wide[i]-1)
			}
			if blank := strings.Repeat(" ", wide[i]-cells(cell)); c.number {
				line += blank + cell + "  "
			} else {
				line += cell + blank + "  "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// fit returns the columns that have room in so many characters, and how wide they are.
func fit(width int, table []column) ([]column, []int) {
	wide := make([]int, len(table))
	for i, c := range table {
		wide[i] = cells(c.title)
		for j, cell := range c.cells {
			c.cells[j] = oneLine(cell)
			wide[i] = max(wide[i], cells(c.cells[j]))
		}
	}
	text := readableText
	for least(table, wide, text) > width {
		last := 0
		for i, c := range table {
			if c.drop > table[last].drop {
				last = i
			}
		}
		if table[last].drop == 0 {
			text = leastText
			break
		}
		table, wide = slices.Delete(table, last, last+1), slices.Delete(wide, last, last+1)
	}
	for {
		all, widest := -2, -1
		for i, c := range table {
			all += wide[i] + 2
			if c.least(wide[i], text) < wide[i] && (widest < 0 || wide[i] > wide[widest]) {
				widest = i
			}
		}
		if all <= width || widest < 0 {
			return table, wide
		}
		wide[widest]--
	}
}

// least returns how wide a table is at least.
func least(table []column, wide []int, text int) int {
	all := -2
	for i, c := range table {
		all += c.least(wide[i], text) + 2
	}
	return all
}

// cellsOf returns how many columns of a terminal a character takes.
func cellsOf(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case width.LookupRune(r).Kind() == width.EastAsianWide, width.LookupRune(r).Kind() == width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cells returns how many columns of a terminal a text takes.
func cells(text string) (n int) {
	for _, r := range text {
		n += cellsOf(r)
	}
	return n
}

// firstCells returns the beginning of a text that takes at most so many columns.
func firstCells(text string, most int) string {
	for i, r := range text {
		if most -= cellsOf(r); most < 0 {
			return text[:i]
		}
	}
	return text
}

// lastCells returns the end of a text that takes at most so many columns.
func lastCells(text string, most int) string {
	runes := []rune(text)
	for i := len(runes) - 1; i >= 0; i-- {
		if most -= cellsOf(runes[i]); most < 0 {
			return string(runes[i+1:])
		}
	}
	return text
}
