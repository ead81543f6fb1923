package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// A column of a table for people.
type column struct {
	title  string
	number bool // to the right
	text   bool // may be cut
	drop   int  // on a narrow terminal, the highest is left out first; 0: never
	cells  []string
}

// least is the width that a column needs at least, if its cells need so much.
func (c *column) least(wide int) int {
	if c.text {
		return min(wide, max(8, len(c.title)))
	}
	return wide
}

// writeTable writes the columns to a terminal of so many characters. If there is no room for
// all, columns are left out, and texts lose their beginnings, since paths differ at the end.
// If there still is none, the terminal wraps the lines.
func writeTable(w io.Writer, width int, table []column) error {
	wide := make([]int, len(table)) // of each column
	all, least := -2, -2            // of the table
	for i, c := range table {
		wide[i] = utf8.RuneCountInString(c.title)
		for j, cell := range c.cells {
			c.cells[j] = visible(strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(cell))
			wide[i] = max(wide[i], utf8.RuneCountInString(c.cells[j]))
		}
		all, least = all+wide[i]+2, least+c.least(wide[i])+2
	}
	for least > width {
		last := 0
		for i, c := range table {
			if c.drop > table[last].drop {
				last = i
			}
		}
		if table[last].drop == 0 {
			break
		}
		all, least = all-wide[last]-2, least-table[last].least(wide[last])-2
		table, wide = slices.Delete(table, last, last+1), slices.Delete(wide, last, last+1)
	}
	for ; all > max(width, least); all-- {
		widest := -1
		for i, c := range table {
			if c.least(wide[i]) < wide[i] && (widest < 0 || wide[i] > wide[widest]) {
				widest = i
			}
		}
		wide[widest]--
	}
	var b strings.Builder
	for row := -1; row < len(table[0].cells); row++ {
		line := ""
		for i, c := range table {
			cell := c.title
			if row >= 0 {
				cell = c.cells[row]
			}
			if runes := []rune(cell); len(runes) > wide[i] {
				cell = "…" + string(runes[len(runes)-wide[i]+1:])
			}
			if c.number {
				line += fmt.Sprintf("%*s  ", wide[i], cell)
			} else {
				line += fmt.Sprintf("%-*s  ", wide[i], cell)
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
