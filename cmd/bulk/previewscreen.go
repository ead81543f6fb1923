package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/manifest"
)

// screenWidth is the width of a preview, unless a terminal is narrower.
const screenWidth = 100

// print writes the preview as a screen: the inputs, the first rows, and the account.
func (f *forecast) print(w io.Writer) error {
	s := &screen{width: screenWidth, most: math.MaxInt, sources: len(f.Inputs)}
	if to, ok := w.(*shown); ok {
		s.width = min(s.width, terminalWidth(to.Writer))
		s.most = s.width
	}
	f.inputs(s)
	f.rows(s)
	s.account(f.account(), 0)
	_, err := w.Write(s.Bytes())
	return err
}

// inputs describes the inputs.
func (f *forecast) inputs(s *screen) {
	for i := range f.Inputs {
		in := &f.Inputs[i]
		if i == mostInputs {
			s.line("and " + count(int64(len(f.Inputs)-i), "more input"))
			break
		}
		from, along, carried := "", "", ""
		if in.Profile != "" {
			from = program(in) + ", " + learned(in.Learned)
		}
		if len(in.Attrs) > 0 {
			along = "stored with links: " + strings.Join(slices.Sorted(maps.Keys(in.Attrs)), ", ")
		}
		if len(in.LeftOut) > 0 {
			along = strings.TrimPrefix(along+"; left out (personal data): "+strings.Join(texts(in.LeftOut), ", "), "; ")
		}
		if len(in.Carried) > 0 {
			carried = "only in the mapping: " + strings.Join(in.Carried, ", ")
		}
		s.line(fmt.Sprintf("%s: %s, %s", in.Name, form(in), count(in.Records-in.BlankRows, "row")))
		parts := slices.DeleteFunc([]string{from, mapping(in), along, carried}, func(part string) bool { return part == "" })
		if len(f.Inputs) > 2 { // there is no room for a line each
			parts = []string{strings.Join(parts, "; ")}
		}
		for _, part := range parts {
			s.wrap(part)
		}
	}
	s.WriteString("\n")
}

// form says how an input is written.
func form(in *pipeline.Input) string {
	text := map[string]string{"csv": "CSV", "text": "text", "json": "JSON", "beacon": "BEACON", "parquet": "Parquet", "arrow": "Arrow", "rejects": "rejects of a run"}[in.Format]
	if d := in.Dialect; d != nil {
		text += fmt.Sprintf(" (delimiter %q", d.Delimiter)
		if d.Quote != `"` {
			text += fmt.Sprintf(", quote %q", d.Quote)
		}
		if !d.Header {
			text += ", no header"
		}
		text += ", " + d.Encoding + ")"
	}
	if in.Compression != "" {
		text += ", " + in.Compression
	}
	return text
}

// rows lists the first rows.
func (f *forecast) rows(s *screen) {
	table := []column{{title: "INPUT", text: true, drop: 3}, {title: "ROW", number: true}, {title: "VARIANT", text: true}, {title: "URL", text: true}, {title: "OLD CODE", text: true, drop: 2}, {title: "CODE", text: true, drop: 1},
		{title: "OUTCOME", text: true}}
	for i := range f.First {
		row := &f.First[i]
		what := row.Outcome
		switch {
		case row.Reason != "":
			what += ": " + row.Reason
		case row.Kind != "":
			what += ", " + row.Kind
		}
		if row.Change != "" {
			what += ", " + row.Change
		}
		for i, cell := range []string{string(row.Source), thousands(row.Row), variant(row), redacted(row.URL), redacted(row.LegacyCode), redacted(row.Code), what} {
			table[i].cells = append(table[i].cells, cell)
		}
	}
	if f.Legacy == nil {
		table = slices.Delete(table, 4, 5)
	}
	if f.Campaign == nil {
		table = slices.Delete(table, 2, 3)
	}
	if len(f.Inputs) == 1 {
		table = table[1:]
	}
	if len(f.First) > 0 {
		writeTable(s, s.most, table) // into memory
		s.WriteString("\n")
	}
}

// variant is the number of a variant and its values; what all rows have stands in quotes.
func variant(row *pipeline.PreviewRow) string {
	if row.Variant == 0 {
		return ""
	}
	text := thousands(row.Variant)
	for _, v := range row.Values {
		value := string(v.Value)
		if v.Constant {
			value = "'" + value + "'"
		}
		text += " " + v.Name + "=" + value
	}
	return text
}

// texts returns the names of columns.
func texts(columns manifest.Columns) (names []string) {
	for _, name := range columns {
		names = append(names, string(name))
	}
	return names
}
