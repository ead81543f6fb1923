// Package survey counts what the rows of a mapping have: hosts, parameters, lengths, expiries and so on.
// [Read] reads the mapping of a run once, in bounded memory: what it holds does not grow with the rows,
// only with the texts that package topk keeps.
//
// One goroutine reads the rows and another counts them, in their order: so a survey depends on the
// mapping alone.
package survey

import (
	"bytes"
	"math"
	"unicode/utf8"

	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/topk"
)

// A Survey is what the rows of a mapping have.
type Survey struct {
	Rows [outcome.Count]int64 // by outcome

	Workspaces topk.Counter // rows
	Hosts      topk.Counter // rows, by host and port of the canonical URL
	Parameters topk.Counter // how often each name is in the query of a canonical URL
	Values     []Values     // of the parameters of campaigns, at most MostValues

	URLs  Lengths // of the original URLs, in bytes, of all rows
	Codes Lengths // of the codes of rows that created a link or alias, in characters

	Aliases int64        // rows whose code is an alias
	Kept    int64        // rows whose legacy code is their code
	Hashed  topk.Counter // links that this run created or found whose code follows from their URL, by workspace

	Ends Ends
}

// Values are those of a parameter of campaigns.
type Values struct {
	Name string
	topk.Counter
}

// Ends counts links that may end, each once: by rows that are no duplicate and no alias.
type Ends struct {
	Links  int64        // of all
	Months topk.Counter // in which links expire, such as 2026-07
	Uses   topk.Counter // use limits
	Types  topk.Counter
	Owners topk.Counter
}

// Lengths counts texts by their length.
type Lengths []int64

// add counts a text.
func (l *Lengths) add(n int) {
	for n >= len(*l) {
		*l = append(*l, 0)
	}
	(*l)[n]++
}

// Total returns how many texts there are.
func (l Lengths) Total() (n int64) {
	for _, count := range l {
		n += count
	}
	return n
}

// Quantile returns the length that a share of all texts do not exceed; 0: there are none.
func (l Lengths) Quantile(share float64) int {
	left := int64(math.Ceil(share * float64(l.Total())))
	for n, count := range l {
		if left -= count; left <= 0 && count > 0 {
			return n
		}
	}
	return max(len(l)-1, 0)
}

// utm are the parameters of campaigns that URLs have of their own, if the run has no campaign.
var utm = []string{"utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content", "utm_id"}

// MostValues is of how many parameters values are counted: of a campaign with more, the first ones.
const MostValues = 20

// newSurvey returns a survey of a run with the parameters of its campaign; nil: it has none.
func newSurvey(campaign []string) *Survey {
	s := new(Survey)
	names := campaign
	if names == nil {
		names = utm
	}
	for _, name := range names[:min(len(names), MostValues)] {
		s.Values = append(s.Values, Values{Name: name})
	}
	return s
}

// add counts a row.
func (s *Survey) add(r *readback.MappingRow, expanded bool) {
	s.Rows[r.Outcome]++
	s.Workspaces.Add(r.Workspace)
	s.url(r.Canonical, !expanded)
	original := r.Original
	if len(original) == 0 {
		original = r.Canonical
	}
	s.URLs.add(len(original))
	if expanded {
		for i := range s.Values {
			if i < len(r.Values) && r.Values[i] != nil {
				s.Values[i].Add(r.Values[i])
			}
		}
	}
	if r.Alias {
		s.Aliases++
	}
	if len(r.Legacy) > 0 && bytes.Equal(r.Legacy, r.Code) {
		s.Kept++
	}
	if r.Outcome == outcome.Created {
		s.Codes.add(utf8.RuneCount(r.Code))
	}
	if r.Outcome == outcome.Duplicate || r.Alias {
		return
	}
	if r.Salt >= 0 {
		s.Hashed.Add(r.Workspace)
	}
	s.Ends.add(&r.Rules.Cells)
}

// add counts a link.
func (e *Ends) add(cells *rules.Cells) {
	e.Links++
	if at := cells[rules.ExpiresAt]; len(at) >= len("2006-01") {
		e.Months.Add(at[:len("2006-01")])
	}
	addCell(&e.Uses, cells[rules.MaxUses])
	addCell(&e.Types, cells[rules.LinkType])
	addCell(&e.Owners, cells[rules.OwnerID])
}

// addCell counts a cell that is not empty.
func addCell(to *topk.Counter, cell []byte) {
	if len(cell) > 0 {
		to.Add(cell)
	}
}

// url counts what a canonical URL has.
func (s *Survey) url(canonical []byte, values bool) {
	_, rest, _ := bytes.Cut(canonical, []byte("://"))
	end := bytes.IndexByte(rest, '/')
	if end < 0 {
		end = len(rest)
	}
	authority := rest[:end]
	if at := bytes.LastIndexByte(authority, '@'); at >= 0 { // a name and a password
		authority = authority[at+1:]
	}
	s.Hosts.Add(authority)
	rest, _, _ = bytes.Cut(rest[end:], []byte("#"))
	_, query, _ := bytes.Cut(rest, []byte("?"))
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte("&"))
		name, value, _ := bytes.Cut(pair, []byte("="))
		if len(name) == 0 {
			continue
		}
		s.Parameters.Add(name)
		if values && bytes.HasPrefix(name, []byte("utm_")) {
			s.utm(name, value)
		}
	}
}

// utm counts the value of a parameter, if it is one of campaigns.
func (s *Survey) utm(name, value []byte) {
	for i := range s.Values {
		if s.Values[i].Name == string(name) {
			s.Values[i].Add(value)
		}
	}
}
