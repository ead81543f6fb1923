package page

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"
)

// A view is what the template shows. All of its texts are fit for a page; the template escapes them for HTML.
type view struct {
	Name     string // of the output directory
	Kind     string // what is special about the run; "": nothing
	When     string
	Headline string
	Books    *books
	Look     []Fact
	Verdict  *verdict
	Next     *Fact
	Sections []section
	Tool     string

	CSS    template.CSS
	Policy string // that allows nothing but this style
}

// A verdict is that of a check.
type verdict struct {
	Text    string
	Problem bool
}

// A section is a part of the page with a title of its own.
type section struct {
	ID, Title string
	Lead      string // what it is about, for people; "": its title says it
	Parts     []part
}

// A part of a section has one of these.
type part struct {
	Title  string // "": it has none
	Facts  []Fact
	Bars   *bars
	Chart  *chart
	Table  *table
	Beside bool // on a wide screen it stands beside another
}

// newView returns what the page of a report shows.
func newView(r *Report) *view {
	sum := sha256.Sum256([]byte(css))
	v := &view{
		Name: show(r.Name), When: moment(r.Manifest.AsOf), Headline: sentence(headline(r)), Tool: show(r.Manifest.Version),
		Books: newBooks(r), CSS: template.CSS(css),
		Policy: "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
	}
	v.Kind = kind(r)
	facts := sorted(r.Facts)
	for _, f := range r.Facts {
		if f.Look && !f.Hidden {
			v.Look = append(v.Look, f.shown())
		}
	}
	for i := range facts[placeNext] {
		v.Next = &facts[placeNext][i]
	}
	if len(r.Verdict) > 0 {
		v.Verdict = &verdict{sentence(r.Verdict[0].shown().Text), r.Problem}
	}
	for _, make := range sections {
		if s := make(r, facts); len(s.Parts) > 0 {
			v.Sections = append(v.Sections, s)
		}
	}
	return v
}

// headline is the first fact.
func headline(r *Report) string {
	for _, f := range r.Facts {
		if !f.Hidden && f.Text != "" {
			return f.shown().Text
		}
	}
	return "there is nothing to tell"
}

// kind says what is special about a run.
func kind(r *Report) string {
	dry := r.Manifest.Options["dry_run"] == true
	var list []string
	if dry {
		list = append(list, "dry run")
	}
	if r.Deletion {
		list = append(list, "delete")
	} else if r.Manifest.Files.Mapping() == "" {
		list = append(list, "refused")
	}
	return strings.Join(list, ", ")
}

// shown is a fact whose texts are fit for a page.
func (f Fact) shown() Fact {
	if !f.Copy { // that must stay as it is, and has no secrets
		f.Text = show(f.Text)
	}
	f.Name, f.Example, f.Place, f.Note = show(f.Name), show(f.Example), show(f.Place), show(f.Note)
	by := make([]Count, len(f.By))
	for i, c := range f.By {
		by[i] = Count{show(c.Name), c.Count}
	}
	f.By = by
	return f
}

// Value is what the fact has beside its name.
func (f Fact) Value() string {
	if f.Text != "" {
		return f.Text
	}
	return number(f.Number)
}

// IsNumber reports whether the value is a number.
func (f Fact) IsNumber() bool { return f.Text == "" }

// Parts lists the counts of the fact.
func (f Fact) Parts() string {
	var list []string
	for _, c := range f.By {
		list = append(list, c.Name+" "+number(c.Count))
	}
	return strings.Join(list, ", ")
}

var functions = template.FuncMap{
	"number":   number,
	"sentence": sentence,
	"bar":      func(width float64) string { return fmt.Sprintf("%.2f", width) },
}
