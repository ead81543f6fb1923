package account

import (
	"strings"

	"github.com/linkforge/bulk/pipeline/manifest"
)

// A Diff is what a comparison of two runs or mappings found.
type Diff struct {
	Found   map[string]int64 // differences by their kind, as package diff names them
	Differs bool             // any of them counts
	A, B    Side
}

// A Side is one of the two.
type Side struct {
	Path   string
	SHA256 string           // of the manifest, or of a mapping alone
	Counts *manifest.Counts // nil: it is a mapping alone
	Full   any              // in JSON
}

// differences are the kinds of differences, in the order in which people are told.
var differences = []struct{ key, noun, what string }{
	{"file", "file", "changed after the run"}, {"manifest", "setting", "changed"},
	{"added", "link", "added"}, {"removed", "link", "removed"}, {"remapped", "link", "with another code"}, {"moved", "code", "moved"},
	{"row_added", "link", "with more rows"}, {"row_removed", "link", "with fewer rows"}, {"row_remapped", "row", "with another link"}, {"kind", "code", "of another kind"},
	{"parameter", "parameter", "changed"}, {"reject", "reject", "changed"}, {"outcome", "outcome", "changed"},
}

// Account returns the facts of the comparison.
func (d *Diff) Account() *Account {
	a := &Account{Title: "there are no differences"}
	verdict := Fact{Key: "verdict", Log: "-", Value: "same", Words: "no differences"}
	facts := []Fact{{Key: "differences", Log: "-", Full: d.Found}}
	var said []string
	for _, c := range differences {
		if n := d.Found[c.key]; n > 0 {
			facts = append(facts, Fact{In: "-", Key: c.key, Noun: c.noun, Value: n})
			said = append(said, "{"+c.key+"} "+c.what)
		}
	}
	switch {
	case d.Differs:
		a.Title = "there are differences"
		verdict.Value, verdict.Words = "different", "differences: "+strings.Join(said, ", ")
	case len(said) > 0:
		a.Title = "there are no differences except in outcomes"
		verdict.Words += "; " + said[0] + " (--outcomes lists them)"
	}
	a.add(verdict)
	a.add(facts...)
	a.add(d.A.facts("a", "A")...)
	a.add(d.B.facts("b", "B")...)
	return a
}

// facts describe a side.
func (s *Side) facts(key, name string) []Fact {
	side := Fact{Key: key, Log: "-", Full: s.Full, Words: name + ": {" + key + "_path}, mapping sha256 {" + key + "_sha256}"}
	list := []Fact{{In: "-", Key: key + "_path", Log: "-", Value: s.Path}, {In: "-", Key: key + "_sha256", Value: s.SHA256}}
	if c := s.Counts; c != nil {
		side.Words = name + ": {" + key + "_path}, {" + key + "_read}: {" + key + "_rows}, manifest sha256 {" + key + "_sha256}"
		list = append(list, Fact{In: "-", Key: key + "_counts", By: []Part{{"read", c.Read}, {"created", c.Created}, {"existing", c.Existing}, {"duplicate", c.Duplicate}, {"rejected", c.Rejected}}},
			Fact{In: "-", Key: key + "_read", Log: "-", Noun: "row", Value: c.Read},
			Fact{In: "-", Key: key + "_rows", Log: "-", Value: Number(c.Created) + " created, " + Number(c.Existing) + " existing, " + Number(c.Duplicate) + " duplicate, " + Number(c.Rejected) + " rejected"})
	}
	return append([]Fact{side}, list...)
}
