package page

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"

	"github.com/linkforge/bulk/pipeline/account"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/manifest"
)

// A view is what the template shows. All of its texts are fit for a page; the template escapes them for HTML.
type view struct {
	Name     string // of the output directory
	Kind     string // what is special about the run; "": nothing
	When     string
	Headline string // what happened, in a sentence
	Lead     string // how it ended, if that is not the headline; "": it is
	Books    *books
	Look     []Fact
	More     int // facts that are left out of Look
	Verdict  *verdict
	Rejects  string // where they are, and what to do about them; "": there are none
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
		Name: show(r.Name), When: moment(r.Manifest.AsOf), Tool: show(r.Manifest.Version),
		Books: newBooks(r), CSS: template.CSS(css),
		Policy: "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
	}
	v.Headline, v.Lead = headline(r)
	v.Kind = kind(r)
	facts := sorted(r.Facts)
	for _, f := range r.Facts {
		if f.Look && !f.Hidden {
			v.Look = append(v.Look, f.shown())
		}
	}
	if more := len(v.Look) - mostLook; more > 1 {
		v.Look, v.More = v.Look[:mostLook], more
	}
	if f := factOf(facts[placeRejects], "", "rejects_file"); f != nil {
		v.Rejects = f.Text
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

// mostLook is how many facts are shown that need a person. The sections have all.
const mostLook = 6

// headline says what happened, and how it ended: the first fact that people are told.
func headline(r *Report) (text, lead string) {
	for _, f := range r.Facts {
		if !f.Hidden && f.Text != "" {
			lead = sentence(f.shown().Text)
			break
		}
	}
	created, read := factOf(r.Facts, "counts", "created"), factOf(r.Facts, "counts", "read")
	if r.Deletion || created == nil || read == nil || !hasMapping(r) {
		return lead, ""
	}
	links := created.Number
	if f := factOf(r.Facts, "", "links_created"); f != nil {
		links = f.Number
	}
	verb := "was "
	if links != 1 {
		verb = "were "
	}
	if dryRun(r) {
		verb = "would be "
	}
	text = fmt.Sprintf("%s %screated from %s", account.Counted(links, "link"), verb, account.Counted(read.Number, "row"))
	if f := factOf(r.Facts, "counts", "rejected"); f != nil && f.Number > 0 {
		text += ", " + number(f.Number) + " rejected"
	}
	return sentence(text), lead
}

// dryRun reports whether nothing was stored because nothing was to be.
func dryRun(r *Report) bool { return manifest.Option[bool](r.Manifest.Options, "dry_run") }

// hasMapping reports whether the run has a mapping, perhaps in parts.
func hasMapping(r *Report) bool {
	files, _ := r.Manifest.Reports()
	return files.Mapping() != ""
}

// kind says what is special about a run.
func kind(r *Report) string {
	var list []string
	if dryRun(r) {
		list = append(list, "dry run")
	}
	if r.Deletion {
		list = append(list, "delete")
	} else if !hasMapping(r) {
		list = append(list, "refused")
	}
	return strings.Join(list, ", ")
}

// shown is a fact whose texts are fit for a page.
func (f Fact) shown() Fact {
	if f.Text = hygiene.VisibleLine(f.Text); !f.Copy { // that has no secrets, and must not be cut
		f.Text = show(f.Text)
	}
	f.Name, f.Example, f.Place, f.Note, f.Said = show(f.Name), show(f.Example), show(f.Place), show(f.Note), show(f.Said)
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
