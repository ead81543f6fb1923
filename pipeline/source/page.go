package source

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/linkforge/bulk/pipeline/profile"
)

// A Page is what the document of a program says of whether it is all that the program has.
type Page struct {
	Records    int64 // that it has
	Total      int64 // that there are, of all pages; -1: it does not say so
	More, Last bool  // it says that there are further pages, or that there are none
	Unread     bool  // what stands beside its array is too much to be looked at
}

// Page returns what the input says of it; nil: it is no document of a program.
func (in *Input) Page() *Page { return in.page }

// readPage reads what stands beside the array of a document that has so many records.
func (in *Input) readPage(t *jsonText) {
	in.page = &Page{Records: t.records, Total: -1}
	object := map[string]json.RawMessage{}
	if t.tooMuch || json.Unmarshal(append(append(in.beside, ']'), t.tail...), &object) != nil {
		in.page.Unread = true
	}
	outer, _, _ := strings.Cut(in.Known.Document, ".")
	in.page.read(object, profile.Fold(outer))
	in.beside = nil
}

// read takes what the members of an object say, and those of the objects in it that tell of pages: the
// usual ones, and the one that has the array.
func (p *Page) read(object map[string]json.RawMessage, outer string) {
	var current, pages int64
	for name, value := range object {
		text := scalar(value)
		switch name = profile.Fold(name); name {
		case "listcomplete":
			p.Last, p.More = p.Last || profile.IsTrue(text), p.More || profile.IsFalse(text)
		case "truncated", "istruncated", "hasmore", "hasnext", "hasnextpage":
			p.More, p.Last = p.More || profile.IsTrue(text), p.Last || profile.IsFalse(text)
		case "next", "nextpage", "nextcursor", "nextpagetoken":
			more := profile.IsSet(text)
			p.More, p.Last = p.More || more, p.Last || !more
		case "total", "totalitems", "totalcount":
			p.Total = max(p.Total, number(text))
		case "currentpage":
			current = number(text)
		case "pagescount", "totalpages":
			pages = number(text)
		case "pagination", "paging", "pageinfo", "meta", outer:
			var inner map[string]json.RawMessage
			if json.Unmarshal(value, &inner) == nil {
				p.read(inner, "")
			}
		}
	}
	if current > 0 && pages > 0 {
		p.More, p.Last = p.More || current < pages, p.Last || current >= pages
	}
}

// scalar returns a string without its quotes, and any other value as it is written.
func scalar(value json.RawMessage) []byte {
	var text string
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &text) == nil {
		return []byte(text)
	}
	return value
}

// number returns a count, however it is written; -1: it is none.
func number(text []byte) int64 {
	n, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(n >= 0) {
		return -1
	}
	return int64(min(n, math.MaxInt32<<20))
}
