package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/linkforge/bulk/pipeline/topk"
)

// books are what became of the rows.
type books struct {
	Text  string // all of it in a sentence
	Read  string
	Parts []bookPart
}

// A bookPart is the rows of an outcome.
type bookPart struct {
	Class, Name, Count, Share, Means string
	From, Width                      float64 // of the bar, of 1,000
}

// outcomes are what rows can become.
var outcomes = [...]struct{ key, means string }{
	{"created", "a new link"},
	{"existing", "the store had the link"},
	{"duplicate", "another row has the same link"},
	{"rejected", "no link"},
}

// newBooks returns the books of a run or delete.
func newBooks(r *Report) *books {
	read := int64(0)
	if f := factOf(r.Facts, "counts", "read"); f != nil {
		read = f.Number
	}
	b := &books{Read: number(read)}
	const gap, least = 4.0, 6.0 // of what is not nothing
	var counts []int64
	for _, o := range outcomes {
		f := factOf(r.Facts, "counts", o.key)
		if f == nil {
			continue
		}
		name := o.key
		if f.Name != "" {
			name = show(f.Name)
		}
		means := o.means
		if r.Deletion && o.key == "existing" {
			means = "its links are deleted"
		}
		b.Parts = append(b.Parts, bookPart{Class: o.key, Name: name, Count: number(f.Number), Share: share(f.Number, read), Means: means})
		counts = append(counts, f.Number)
	}
	var said []string
	widths := stack(counts, 1000, gap, least)
	at := 0.0
	for i := range b.Parts {
		p := &b.Parts[i]
		p.From, p.Width = at, widths[i]
		if counts[i] > 0 {
			at += widths[i] + gap
		}
		said = append(said, p.Count+" "+p.Name)
	}
	b.Text = fmt.Sprintf("Of %s rows: %s.", b.Read, strings.Join(said, ", "))
	return b
}

// factOf returns a fact; nil: there is none.
func factOf(facts []Fact, in, key string) *Fact {
	if i := slices.IndexFunc(facts, func(f Fact) bool { return f.In == in && f.Key == key }); i >= 0 {
		return &facts[i]
	}
	return nil
}

// stack divides a width among counts, with gaps between those that are not 0, which have at least so much.
func stack(counts []int64, width, gap, least float64) []float64 {
	total, some := int64(0), 0
	for _, n := range counts {
		if total += n; n > 0 {
			some++
		}
	}
	widths := make([]float64, len(counts))
	room := width - gap*float64(max(some-1, 0)) - least*float64(some)
	for i, n := range counts {
		if n > 0 {
			widths[i] = least + room*float64(n)/float64(total)
		}
	}
	return widths
}

// bars are a table whose numbers are also bars.
type bars struct {
	Caption    string
	Head, Unit string // of the names and the numbers
	Class      string // of what the bars count; "": of nothing special
	Rows       []barRow
	Foot       string // what else there is to know; "": nothing
	More       bool   // rows have a column More
	Shares     bool
}

// A barRow is a row of bars.
type barRow struct {
	Name, Count, Share string
	Width              float64 // of the bar, of 100
	More               []string
	Code               bool // the name is from an input
}

// scale gives the bars their widths, the longest the whole of it.
func scale(rows []barRow, values []float64) {
	most := slices.Max(append(values, 0))
	for i := range rows {
		if most > 0 && values[i] > 0 {
			rows[i].Width = max(100*values[i]/most, 0.5)
		}
	}
}

// barsOf shows the most frequent texts of a counter, with their shares of a whole; nil: it has none. The
// function name makes a text fit for a page.
func barsOf(caption, head, unit string, c *topk.Counter, whole int64, most int, name func(string) string) *bars {
	different, exact := c.Different()
	if different == 0 {
		return nil
	}
	b := &bars{Caption: caption, Head: head, Unit: unit, Shares: true}
	var values []float64
	for _, e := range c.Top(most) {
		row := barRow{Name: name(e.Text), Count: number(e.Count), Share: share(e.Count, whole), Code: true}
		if e.Cut && !strings.HasSuffix(row.Name, "…") {
			row.Name += "…"
		}
		if row.Name == "" {
			row.Name, row.Code = "(empty)", false
		}
		if !exact {
			row.Count = "at least " + row.Count
		}
		b.Rows, values = append(b.Rows, row), append(values, float64(e.Count))
	}
	scale(b.Rows, values)
	switch {
	case !exact:
		b.Foot = fmt.Sprintf("There are more than %s different ones. So each count is a lower bound, which misses at most %s.", number(topk.Most), number(c.Missed()))
	case different > most:
		b.Foot = fmt.Sprintf("These are the first %d of %s different ones.", most, number(int64(different)))
	}
	return b
}

// A chart has columns.
type chart struct {
	ID, Title, Text string // the text is all that there is to see
	Head, Unit      string // of the table behind it
	Columns         []column
	Lines           []gridLine
	Labels          []label
}

// A column of a chart. Its places are in units of the drawing.
type column struct {
	Name, Count         string
	X, Y, Width, Height float64
}

// A gridLine has a number.
type gridLine struct {
	Y    float64
	Text string
}

// A label stands below columns.
type label struct {
	X    float64
	Text string
}

// The drawing of a chart: 480 by 200, of which the columns have what is within these.
const (
	chartLeft, chartRight  = 56.0, 476.0
	chartTop, chartBottom  = 12.0, 170.0
	mostLabels, labelWidth = 8, 8.0 // a label has about so many units a character
)

// A bin is a number of a chart, before it is drawn.
type bin struct {
	name  string
	below string // what stands below its column; "": its name
	count int64
}

func (b *bin) mark() string { return cmp.Or(b.below, b.name) }

// newChart draws bins.
func newChart(id, title, head, unit, text string, bins []bin) *chart {
	c := &chart{ID: id, Title: title, Head: head, Unit: unit, Text: text}
	most := int64(1)
	for _, b := range bins {
		most = max(most, b.count)
	}
	top := roundUp(most)
	for _, n := range []int64{0, top / 2, top} {
		c.Lines = append(c.Lines, gridLine{chartBottom - (chartBottom-chartTop)*float64(n)/float64(top), short(n)})
	}
	width := (chartRight - chartLeft) / float64(len(bins))
	every, longest := 1, 1
	for _, b := range bins {
		longest = max(longest, utf8.RuneCountInString(b.mark()))
	}
	for float64(every)*width < float64(longest)*labelWidth+6 || len(bins)/every > mostLabels {
		every++
	}
	for i, b := range bins {
		height := (chartBottom - chartTop) * float64(b.count) / float64(top)
		if b.count > 0 {
			height = max(height, 1.5)
		}
		x := chartLeft + float64(i)*width
		c.Columns = append(c.Columns, column{b.name, number(b.count), x + width*0.08, chartBottom - height, width * 0.84, height})
		if i%every == 0 {
			c.Labels = append(c.Labels, label{x + width/2, b.mark()})
		}
	}
	return c
}

// roundUp returns a round even number that is not smaller.
func roundUp(n int64) int64 {
	if n <= 8 {
		return max(n+n%2, 2)
	}
	for unit := int64(1); ; unit *= 10 {
		for _, digits := range []int64{10, 12, 16, 20, 24, 30, 40, 50, 60, 80} {
			if digits*unit >= n {
				return digits * unit
			}
		}
	}
}

// short writes a number in few characters.
func short(n int64) string {
	for _, u := range []struct {
		unit int64
		name string
	}{{1e9, "bn"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= u.unit {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/float64(u.unit)), ".0") + " " + u.name
		}
	}
	return fmt.Sprint(n)
}

// A table has cells of text.
type table struct {
	Caption string
	Head    []cell
	Rows    [][]cell
	Foot    string
}

// A cell of a table.
type cell struct {
	Text   string
	Number bool   // right aligned
	Code   bool   // from an input, or a digest
	Wide   bool   // on a narrow screen it has a line of its own
	Name   bool   // the row is about it
	Head   string // of its column
}

func named(text string) cell  { return cell{Text: text, Name: true} }
func figure(text string) cell { return cell{Text: text, Number: true} }

// add adds a row.
func (t *table) add(row ...cell) {
	for i := range row {
		row[i].Head = t.Head[i].Text
	}
	t.Rows = append(t.Rows, row)
}

// Stacks reports whether on a narrow screen each row is a list of its cells.
func (t *table) Stacks() bool { return len(t.Head) > 2 }
