package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/rules"
)

// screenWidth is the width of a preview, unless a terminal is narrower.
const screenWidth = 100

// A screen is a preview for people.
type screen struct {
	*forecast
	bytes.Buffer
	width  int // of lists
	most   int // characters of a line: on a terminal width, elsewhere nothing is cut
	labels int // width of the labels of counts
	digits int // of the counts
}

// print writes the preview as a screen.
func (f *forecast) print(w io.Writer) error {
	s := &screen{forecast: f, width: screenWidth, most: math.MaxInt, labels: 31, digits: len(thousands(max(f.Counts.Read, f.LinksCreated)))}
	if to, ok := w.(*shown); ok {
		s.width = min(s.width, terminalWidth(to.Writer))
		s.most = s.width
	}
	s.inputs()
	s.rows()
	s.counts()
	s.end()
	_, err := w.Write(s.Bytes())
	return err
}

// line writes a line.
func (s *screen) line(format string, args ...any) {
	s.WriteString(strings.TrimRight(shorten(fmt.Sprintf(format, args...), s.most), " ") + "\n")
}

// wrap writes a list on as many lines as it needs.
func (s *screen) wrap(list string) {
	line := "  "
	for i, item := range strings.SplitAfter(list, ", ") {
		if i > 0 && len([]rune(line+strings.TrimRight(item, " "))) > s.width {
			s.line("%s", line)
			line = "    "
		}
		line += item
	}
	s.line("%s", line)
}

// shorten makes a text one line of at most so many characters.
func shorten(text string, most int) string {
	text = visible(strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(text))
	if runes := []rune(text); len(runes) > most {
		return string(runes[:max(most-1, 0)]) + "…"
	}
	return text
}

// inputs describes the inputs.
func (s *screen) inputs() {
	for i := range s.Inputs {
		in := &s.Inputs[i]
		if i == mostInputs {
			s.line("and %s", count(int64(len(s.Inputs)-i), "more input"))
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
		s.line("%s: %s, %s", in.Name, form(in), count(in.Records, "row"))
		parts := slices.DeleteFunc([]string{from, mapping(in), along, carried}, func(part string) bool { return part == "" })
		if len(s.Inputs) > 2 { // there is no room for a line each
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
func (s *screen) rows() {
	table := []column{{title: "INPUT", text: true}, {title: "ROW", number: true}, {title: "URL", text: true}, {title: "OLD CODE", text: true}, {title: "CODE", text: true}, {title: "OUTCOME"}}
	for i := range s.First {
		row := &s.First[i]
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
		for i, cell := range []string{string(row.Source), thousands(row.Row), redacted(row.URL), redacted(row.LegacyCode), redacted(row.Code), what} {
			table[i].cells = append(table[i].cells, cell)
		}
	}
	if s.Legacy == nil {
		table = slices.Delete(table, 3, 4)
	}
	if len(s.Inputs) == 1 {
		table = table[1:]
	}
	if len(s.First) > 0 {
		writeTable(s, s.most, table) // into memory
		s.WriteString("\n")
	}
}

// count writes a count with its example; "": none.
func (s *screen) count(label string, n int64, example string) {
	s.line("%-*s  %*s  %s", s.labels, label, s.digits, thousands(n), example)
}

// part is count for a part of the count before, which is left out if it is none.
func (s *screen) part(label string, n int64, example string) {
	if n > 0 {
		s.count("  "+label, n, example)
	}
}

// mostReasons is how many reasons of rejects are shown.
const mostReasons = 6

// counts writes all counts.
func (s *screen) counts() {
	keeps := s.o.Legacy.Keeps()
	s.count("rows", s.Counts.Read, "")
	if keeps {
		s.count("links to create", s.Kept+s.Generated, "")
		s.part("with their old codes", s.Kept, s.link(pipeline.ExampleKept))
		s.part("with generated codes", s.Generated, s.link(pipeline.ExampleGenerated))
		s.count("aliases to create", s.Aliases, s.link(pipeline.ExampleAlias))
	} else {
		s.count("links to create", s.LinksCreated, s.link(pipeline.ExampleGenerated))
	}
	s.count("rows that the store has already", s.Counts.Existing, s.link(pipeline.ExampleExisting))
	s.count("rows merged into another", s.Counts.Duplicate, s.link(pipeline.ExampleDuplicate))
	if m := s.MergedDiffers; m != nil {
		row := &m.Example[1]
		s.part("whose URL may lead elsewhere", m.Rows, fmt.Sprintf("%s%s; %s", s.place(row.Source, row.Row), redacted(row.URL), ways(m.By)))
	}
	if s.Rules != nil {
		s.changes()
	}
	if s.Dates > 0 {
		s.count("rows with a date without a time", s.Dates, dateEnds)
	}
	if keeps {
		s.count("conflicts over codes", s.Legacy.Conflicts, s.conflict())
	}
	s.count("rejected rows", s.Counts.Rejected, "")
	reasons := slices.SortedFunc(maps.Keys(s.Reasons), func(a, b string) int { return cmp.Or(cmp.Compare(s.Reasons[b], s.Reasons[a]), cmp.Compare(a, b)) })
	for i, reason := range reasons {
		if i == mostReasons && len(reasons) > mostReasons+1 {
			s.line("  and %d more reasons", len(reasons)-i)
			break
		}
		r := s.Rejected[reason]
		s.part(reason, s.Reasons[reason], s.place(r.Source, r.Row)+hygiene.Redact(r.Detail))
	}
	if s.Legacy != nil {
		s.legacy()
	}
	if s.Migration != nil {
		s.migration()
	}
	urls := "different URLs"
	if f := s.o.Config.Rules; f != nil && f.Identity != rules.ByURL {
		urls = "different links"
	}
	s.count(urls, s.URLs, "")
	for _, a := range s.Alternatives {
		flag, value, ok := strings.Cut(a.Option, " ")
		text := difference(a.URLs - s.URLs)
		if ok {
			text += " (" + strings.Trim(value, "'") + ")"
		}
		s.count("  with "+flag, a.URLs, text)
	}
	s.WriteString("\n")
}

// changes writes what the rows would do to links that exist, or why nothing.
func (s *screen) changes() {
	for _, c := range []struct {
		change rules.Change
		label  string
	}{
		{rules.Updated, "links to update"}, {rules.Revived, "links to revive"}, {rules.Claimed, "links to claim"},
		{rules.Drifted, "rows that differ from the link"}, {rules.OtherOwner, "rows of another owner"},
	} {
		if n := s.Rules.Changes[c.change.String()]; n > 0 {
			s.count(c.label, n, s.link(pipeline.ExampleChange+int(c.change)))
		}
	}
	for _, r := range reasonsToStay {
		if n := s.Stays[r.name]; n > 0 {
			s.part("links that stay as they are", n, r.wayOut(s.o.OnDrift == rules.Update))
		}
	}
}

// difference says how a number is to another one.
func difference(n int64) string {
	switch {
	case n > 0:
		return thousands(n) + " more"
	case n < 0:
		return thousands(-n) + " fewer"
	}
	return "no difference"
}

// migration writes what the links were beyond code and URL.
func (s *screen) migration() {
	if d := s.Migration.Domains; d != nil {
		how := map[legacy.Domains]string{legacy.DomainsKeep: "a workspace each", legacy.DomainsMerge: "one workspace", legacy.DomainsOff: "one workspace, unless --domains keep"}[s.o.Domains]
		s.count("domains", d.Count, domains(d)+" ("+how+")")
	}
	var none, unseen []string
	for kind := range hygiene.Kind(hygiene.KindCount) {
		h, example := s.Migration.Hygiene[kind.String()], ""
		if r := s.Rejected[kind.String()]; h.Example != nil {
			example = s.place(h.Example.Source, h.Example.Row) + string(h.Example.URL)
		} else if r != nil {
			example = s.place(r.Source, r.Row) + redacted(r.URL)
		}
		if h.Rows > 0 {
			s.count(fmt.Sprintf("%s links (%s)", kind, h.Decision), h.Rows, example)
		} else if s.Seen.Has(kind) {
			none = append(none, kind.String())
		} else {
			unseen = append(unseen, kind.String())
		}
	}
	if len(none) > 0 {
		s.line("no links of the kind %s", strings.Join(none, ", "))
	}
	if len(unseen) > 0 {
		s.line("not looked for (no column or flag): %s", strings.Join(unseen, ", "))
	}
	if n := s.Migration.NoTime; n != nil {
		s.count("creation times not read", n.Rows, s.place(n.Source, n.Row)+string(n.Text))
	}
	if n := s.Migration.NoExpiry; n != nil {
		s.count("expiries not read", n.Rows, s.place(n.Source, n.Row)+string(n.Text))
	}
}

// legacy writes what else there is to know of legacy codes.
func (s *screen) legacy() {
	l := s.Legacy
	if t := l.CaseTwins; t != nil {
		s.count("codes that differ only in case", t.Groups, twins(t))
	}
	if d := l.Damaged; d != nil {
		s.count("codes damaged by a spreadsheet", d.Rows, s.place(d.Example.Source, d.Example.Row)+string(d.Example.Code))
	}
	example := ""
	if row := s.Examples[pipeline.ExampleWithoutCode]; row != nil {
		example = s.place(row.Source, row.Row) + redacted(row.URL)
	}
	s.count("rows without an old code", l.WithoutCode, example)
	if l.WithoutCode == s.Counts.Read && l.WithoutCode > 0 {
		s.line(noCodes)
	}
}

// twins lists the codes of the first group.
func twins(t *manifest.CaseTwins) string {
	var codes []string
	for _, code := range t.Examples[0] {
		codes = append(codes, string(code))
	}
	return strings.Join(codes, ", ")
}

// place says where a row is.
func (s *screen) place(source manifest.Text, row int64) string {
	if len(s.Inputs) == 1 {
		return fmt.Sprintf("row %s: ", thousands(row))
	}
	return fmt.Sprintf("%s, row %s: ", source, thousands(row))
}

// link shows an example by its code and URL; "": there is none.
func (s *screen) link(number int) string {
	row := s.Examples[number]
	if row == nil {
		return ""
	}
	code := row.Code
	if number == pipeline.ExampleGenerated {
		code = cmp.Or(row.LinkCode, code)
	}
	return fmt.Sprintf("%s%s → %s", s.place(row.Source, row.Row), redacted(code), redacted(row.URL))
}

// conflict shows a conflict and who wins.
func (s *screen) conflict() string {
	row := s.Examples[pipeline.ExampleConflict]
	if row == nil {
		return ""
	}
	owner := row.Detail[strings.LastIndex(row.Detail, " ")+1:] // a canonical URL has no spaces
	most := 24                                                 // the owner is to be seen, too
	if s.most > s.width {
		most = s.most
	}
	return fmt.Sprintf("%s%s belongs to %s", s.place(row.Source, row.Row), shorten(redacted(row.LegacyCode), most), hygiene.Redact(owner))
}

// end says which store it is about and how the run would end.
func (s *screen) end() {
	store := s.o.StoreName
	if s.o.newStore {
		store += ", which the run would create"
	}
	s.line("store: %s", store)
	if len(s.Workspaces) > 0 {
		noun, fresh := "workspaces", "all have links already"
		if len(s.Workspaces) == 1 {
			noun, fresh = "workspace", "has links already"
		}
		switch {
		case len(s.Fresh) == len(s.Workspaces):
			fresh = "no links yet"
		case len(s.Fresh) > 0:
			fresh = "no links yet: " + short(s.Fresh)
		}
		s.line("%s: %s (%s)", noun, short(s.Workspaces), fresh)
	}
	fmt.Fprintf(s, "\nNothing was written. bulk run would end with exit code %d: %s\n  %s\n", s.code, visible(s.ending()), visible(s.command))
}

// ending says how the run would end.
func (s *screen) ending() string {
	switch {
	case s.Refused != nil && s.Refused.Conflicts > 0:
		return "no links stored.\n" + s.Refused.Why() + "\n(with --on-conflict generate these rows get generated codes)"
	case s.Refused != nil:
		return "no links stored.\n" + s.Refused.Why()
	case s.Counts.Rejected > 0:
		return fmt.Sprintf("done, with %s rejected.", count(s.Counts.Rejected, "row"))
	}
	return "done."
}

// texts returns the names of columns.
func texts(columns manifest.Columns) (names []string) {
	for _, name := range columns {
		names = append(names, string(name))
	}
	return names
}
