// Package campaigntest reads the cases of the law of campaigns, testdata/expand.jsonl of package campaign,
// for the tests of that package, of the library and of the command.
package campaigntest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// A Case is a line of the file. What is absent is not given.
type Case struct {
	Name         string
	Flags        []string // of --expand
	File         *string
	FileBase64   []byte `json:"file_base64"`
	FilePadding  int    `json:"file_padding"` // bytes of a comment at the end of the file
	Columns      []string
	OtherColumns []string `json:"other_columns"` // of a second input without rows
	Rows         [][]any
	Workspace    string
	StripParams  []string `json:"strip_params"`
	MaxExpand    *int64   `json:"max_expand"`
	Expect       struct {
		Usage        bool
		Says         []string // what the message must contain
		Options      string   `json:"options_expand"`
		Combinations int64
		Warned       []string
		Counts       struct{ Records, Read, Created, Duplicate, Rejected int64 }
		Tagged       int64
		Rows         []Row
	}
}

// A Row is what becomes of a row of the input.
type Row struct {
	Reject, Parameter string
	Variants          []Variant
	Count             int // of many variants, which SHA256 tells; First and Last are the ends of them
	First, Last       *Variant
	SHA256            string
}

// A Variant is one of a row.
type Variant struct {
	Variant   int64
	URL       string
	URLBase64 []byte `json:"url_base64"` // in place of URL
	Canonical string
	Code      string `json:"short_code"`
	Values    map[string]string
}

// Cases returns all cases of a file.
func Cases(t testing.TB, file string) (list []Case) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var c Case
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		for i := range c.Expect.Rows {
			c.Expect.Rows[i].decode()
		}
		list = append(list, c)
	}
	if len(list) != 249 {
		t.Fatalf("%d cases", len(list))
	}
	return list
}

// decode puts URLs that are no text of JSON where the others are.
func (r *Row) decode() {
	for _, v := range append([]*Variant{r.First, r.Last}, pointers(r.Variants)...) {
		if v != nil && v.URLBase64 != nil {
			v.URL, v.URLBase64 = string(v.URLBase64), nil
		}
	}
}

func pointers(list []Variant) (to []*Variant) {
	for i := range list {
		to = append(to, &list[i])
	}
	return to
}

// Text returns the text of the file of --expand-file; false: there is none.
func (c *Case) Text() ([]byte, bool) {
	text := slices.Clone(c.FileBase64)
	if c.File != nil {
		text = []byte(*c.File)
	}
	if c.FilePadding > 0 {
		text = append(append(append(text, '#'), bytes.Repeat([]byte("x"), c.FilePadding)...), '\n')
	}
	return text, c.File != nil || c.FileBase64 != nil
}

// Cells returns the cells of a row; nil is null.
func (c *Case) Cells(row int) (cells [][]byte) {
	for _, cell := range c.Rows[row] {
		switch cell := cell.(type) {
		case string:
			cells = append(cells, []byte(cell))
		case nil:
			cells = append(cells, nil)
		case map[string]any:
			b, _ := base64.StdEncoding.DecodeString(cell["base64"].(string))
			cells = append(cells, b)
		}
	}
	return cells
}

// Inputs returns the texts of the inputs of a case: CSV, or JSON where CSV cannot have a cell; if json, also where
// JSON can. Each row has one more cell, or some would be blank, which are no rows.
func (c *Case) Inputs(json bool) (list []string) {
	utf8 := true
	for n, row := range c.Rows {
		for i, cell := range c.Cells(n) {
			_, binary := row[i].(map[string]any)
			utf8, json = utf8 && !binary, json || bytes.IndexByte(cell, 0) >= 0
		}
	}
	if json && utf8 && len(c.Rows) > 0 {
		list = []string{c.json()}
	} else {
		list = []string{c.csv(c.Columns)}
	}
	if c.OtherColumns != nil {
		other := Case{Columns: c.OtherColumns}
		list = append(list, other.csv(c.OtherColumns))
	}
	return list
}

func (c *Case) csv(columns []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(append(slices.Clone(columns), "more")) // a strings.Builder takes everything
	for n := range c.Rows {
		var cells []string
		for _, cell := range c.Cells(n) {
			cells = append(cells, string(cell))
		}
		_ = w.Write(append(cells, "x"))
	}
	w.Flush()
	return b.String()
}

func (c *Case) json() string {
	var b strings.Builder
	for _, row := range c.Rows {
		for i, name := range c.Columns {
			key, _ := json.Marshal(name) // both come from JSON
			cell, _ := json.Marshal(row[i])
			fmt.Fprintf(&b, "%c%s:%s", "{,"[min(i, 1)], key, cell)
		}
		b.WriteString(`,"more":"x"}` + "\n")
	}
	return b.String()
}

// Difference says how variants, in the order of their numbers, differ from those of a row; "": they do not.
func (r *Row) Difference(got []Variant) string {
	if r.Count > 0 {
		sum := sha256.New()
		for _, v := range got {
			fmt.Fprintf(sum, "%d %s %s\n", v.Variant, v.Canonical, v.Code)
		}
		if is := fmt.Sprintf("%x", sum.Sum(nil)); len(got) != r.Count || is != r.SHA256 {
			return fmt.Sprintf("%d variants with %s, want %d with %s", len(got), is, r.Count, r.SHA256)
		}
		ends := Row{Variants: []Variant{*r.First, *r.Last}}
		return ends.Difference([]Variant{got[0], got[len(got)-1]})
	}
	if r.Reject != "" && got != nil || !slices.EqualFunc(got, r.Variants, equal) {
		return fmt.Sprintf("%+v, want %s %+v", got, r.Reject, r.Variants)
	}
	return ""
}

func equal(a, b Variant) bool {
	return a.Variant == b.Variant && a.URL == b.URL && a.Canonical == b.Canonical && a.Code == b.Code && maps.Equal(a.Values, b.Values)
}
