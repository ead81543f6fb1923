// Package page writes the page of a finished run for people: one file of HTML with its own style and
// charts, without scripts, which loads nothing. It shows the facts of package account, what package survey
// counted, and what the manifest and the timings of the run say.
//
// It is pure: it reads no files, and knows neither flags nor commands. Facts come in words ([Fact]), as the
// caller tells them elsewhere, and each is shown, also one that this package does not know: its place in
// the account says in which section ([placeOf]).
//
// What comes from inputs is shown without secrets, in one line, cut if it is long, with control characters
// and those that change the direction of text as escapes ([show]). So a page is below [MaxSize].
package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/survey"
)

// MaxSize is what no page reaches, in bytes.
const MaxSize = 1 << 20

// A Report is what a page shows.
type Report struct {
	Name  string // of the output directory
	Facts []Fact // of the run, or of a delete; the first says how it ended

	Manifest *manifest.Manifest // of a delete, what it has of one
	Deletion bool               // it is of a delete, which has no codes of its own
	Timings  *manifest.Timings  // nil: not known
	Survey   *survey.Survey     // nil: there is no mapping, or it is of a delete
	Verdict  []Fact             // of a check of the run; nil: there was none
	Problem  bool               // the check has found problems
}

// A Fact is one of package account in words, as a terminal shows them.
type Fact struct {
	Key, In string // of the fact in its account
	Name    string // what it is called; "": Text says it all
	Text    string // its value, or a sentence; "": Number is it
	Number  int64  // its value if Text is ""; of other facts, the number that they are about
	By      []Count
	Example string // "": none
	Place   string // of the example, such as: links.csv, row 7
	Note    string
	Depth   int
	Look    bool   // somebody should look at it
	Said    string // name and value, or Text, as a sentence without example and note
	Copy    bool   // Text is for copying
	Hidden  bool   // people are not told; others may need its number
}

// A Count is a number under a name.
type Count struct {
	Name  string
	Count int64
}

//go:embed page.html
var pageText string

//go:embed page.css
var css string

// Write writes the page.
func Write(w io.Writer, r *Report) error {
	t, err := template.New("page").Funcs(functions).Parse(pageText)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, newView(r)); err != nil {
		return fmt.Errorf("make the page: %w", err)
	}
	if out.Len() >= MaxSize {
		return fmt.Errorf("make the page: it would have %d bytes", out.Len())
	}
	_, err = io.WriteString(w, hygiene.Visible(out.String())) // all but texts is visible anyway
	return err
}
