package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/survey"
	"github.com/linkforge/bulk/pipeline/topk"
)

// How many rows tables have at most.
const (
	mostHosts      = 20
	mostParameters = 20
	mostValues     = 10
	mostBins       = 24
	mostListed     = 100
)

// sections make the sections in their order. A section without parts is left out.
var sections = []func(*Report, map[place][]Fact) section{
	rejectsSection, mergedSection, codesSection, endsSection, campaignsSection, domainsSection, hostsSection, urlsSection,
	spaceSection, timeSection, filesSection, optionsSection, verdictSection, runSection,
}

// add adds a part that there is.
func (s *section) add(p part) {
	if p.Facts != nil || p.Bars != nil || p.Chart != nil || p.Table != nil {
		s.Parts = append(s.Parts, p)
	}
}

// rejectsSection has the rejects by reason, each with an example.
func rejectsSection(r *Report, facts map[place][]Fact) section {
	s := section{ID: "rejects", Title: "Rejected rows"}
	b := &bars{Caption: "Rejected rows by reason", Head: "reason", Unit: "rows", Class: "rejected", More: true, Shares: true}
	var values []float64
	var others []Fact
	rejected := int64(0)
	if f := factOf(r.Facts, "counts", "rejected"); f != nil {
		rejected = f.Number
	}
	for _, f := range facts[placeRejects] {
		if f.In != "reasons" {
			others = append(others, f)
			continue
		}
		name := f.Name
		if name == "" {
			name = show(f.Key)
		}
		n := f.Number
		row := barRow{Name: name, Count: number(n), Share: share(n, rejected), Code: true}
		if f.Example != "" {
			row.More = append(row.More, strings.TrimPrefix(f.Place+": ", ": ")+f.Example)
		}
		if f.Note != "" {
			row.More = append(row.More, sentence(f.Note))
		}
		b.Rows, values = append(b.Rows, row), append(values, float64(n))
	}
	scale(b.Rows, values)
	if len(b.Rows) > 0 {
		s.add(part{Bars: b})
	}
	s.add(part{Facts: others})
	return s
}

// mergedSection says which URLs were rewritten, and which of them share a link.
func mergedSection(_ *Report, facts map[place][]Fact) section {
	s := section{ID: "merged", Title: "Rewritten and merged URLs", Lead: "URLs are compared in canonical form, which only tells which of them are one link."}
	for _, f := range facts[placeMerged] {
		if f.IsNumber() && f.Number == 0 {
			continue
		}
		by := f.By
		f.By = nil
		s.add(part{Facts: []Fact{f}})
		if len(by) > 0 {
			s.add(part{Bars: countBars("Rows by what is different", "change", "rows", by, f.Number)})
		}
	}
	return s
}

// countBars are bars of counts.
func countBars(caption, head, unit string, by []Count, whole int64) *bars {
	b := &bars{Caption: caption, Head: head, Unit: unit, Shares: whole > 0}
	var values []float64
	for _, c := range by {
		b.Rows = append(b.Rows, barRow{Name: c.Name, Count: number(c.Count), Share: share(c.Count, whole)})
		values = append(values, float64(c.Count))
	}
	scale(b.Rows, values)
	return b
}

// codesSection says what became of old codes, and what else there is to say of codes and links.
func codesSection(r *Report, facts map[place][]Fact) section {
	s := section{ID: "codes", Title: "Codes"}
	list := facts[placeCodes]
	if v := r.Survey; v != nil && v.Kept > 0 {
		list = append(slices.Clone(list), Fact{Name: "rows that kept their old code", Number: v.Kept})
	}
	s.add(part{Facts: list})
	return s
}

// endsSection says when links end.
func endsSection(r *Report, facts map[place][]Fact) section {
	s := section{ID: "ends", Title: "Links that end"}
	s.add(part{Facts: facts[placeEnds]})
	if r.Survey == nil {
		return s
	}
	e := &r.Survey.Ends
	if n := e.Months.Total(); n > 0 {
		s.add(part{Chart: months(e)})
	}
	for _, c := range []struct {
		caption, head string
		counter       *topk.Counter
	}{{"Use limits of links", "most uses", &e.Uses}, {"Types of links", "type", &e.Types}, {"Owners of links", "owner", &e.Owners}} {
		s.add(part{Bars: barsOf(c.caption, c.head, "links", c.counter, c.counter.Total(), mostValues, showName), Beside: true})
	}
	return s
}

// months draws when links expire: by month, or if these are many by year.
func months(e *survey.Ends) *chart {
	list := e.Months.Top(topk.Most)
	by := map[string]int64{}
	for _, m := range list {
		by[m.Text] = m.Count
	}
	unit := "month"
	bins := between(by, nextMonth)
	if len(bins) > mostBins {
		unit = "year"
		years := map[string]int64{}
		for month, n := range by {
			years[month[:4]] += n
		}
		if bins = between(years, nextYear); len(bins) > mostBins {
			bins = bins[:0]
			for _, year := range slices.Sorted(maps.Keys(years)) {
				bins = append(bins, bin{name: year, count: years[year]})
			}
			bins = lastTogether(bins)
		}
	}
	text := fmt.Sprintf("%s of %s links expire, the first in %s, the last in %s.", number(e.Months.Total()), number(e.Links), bins[0].name, bins[len(bins)-1].name)
	return newChart("months", "Links that expire, by "+unit, unit, "links", text, bins)
}

// lastTogether makes one bin of all that are too many.
func lastTogether(bins []bin) []bin {
	if len(bins) <= mostBins {
		return bins
	}
	last := bin{name: "later"}
	for _, b := range bins[mostBins-1:] {
		last.count += b.count
	}
	return append(bins[:mostBins-1:mostBins-1], last)
}

// campaignsSection has the values of the parameters of campaigns.
func campaignsSection(r *Report, facts map[place][]Fact) section {
	s := section{ID: "campaigns", Title: "Campaigns"}
	s.add(part{Facts: facts[placeCampaigns]})
	if r.Survey == nil {
		return s
	}
	for i := range r.Survey.Values {
		v := &r.Survey.Values[i]
		b := barsOf("Values of "+show(v.Name), show(v.Name), "rows", &v.Counter, v.Total(), mostValues, func(value string) string {
			if r.Manifest.Campaign == nil { // it is a part of a URL
				value = decoded(value)
			}
			return cut(showValue(v.Name, value), mostName)
		})
		s.add(part{Bars: b, Beside: true})
	}
	return s
}

// domainsSection has the short domains, and the workspaces.
func domainsSection(r *Report, facts map[place][]Fact) section {
	s := section{ID: "domains", Title: "Domains and workspaces"}
	s.add(part{Facts: facts[placeDomains]})
	if m := r.Manifest.Migration; m != nil && m.Domains != nil && len(m.Domains.Rows) > 1 {
		s.add(part{Bars: domainBars(m.Domains)})
	}
	if r.Survey != nil {
		if n, _ := r.Survey.Workspaces.Different(); n > 1 {
			s.add(part{Bars: barsOf("Rows by workspace", "workspace", "rows", &r.Survey.Workspaces, r.Survey.Workspaces.Total(), mostHosts, showName)})
		}
	}
	return s
}

// domainBars are the rows by short domain.
func domainBars(d *manifest.Domains) *bars {
	var list []Count
	var all int64
	for name, n := range d.Rows {
		if name = show(name); name == "" {
			name = "(none)"
		}
		list = append(list, Count{name, n})
		all += n
	}
	slices.SortFunc(list, func(a, b Count) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name)) })
	b := countBars("Rows by short domain", "domain", "rows", list[:min(len(list), mostHosts)], all)
	if n := d.Count; n > mostHosts {
		b.Foot = fmt.Sprintf("These are the first %d of %s domains.", mostHosts, number(n))
	}
	return b
}

// hostsSection has the hosts that the links lead to.
func hostsSection(r *Report, _ map[place][]Fact) section {
	s := section{ID: "hosts", Title: "Hosts", Lead: "Where the links lead to: hosts of the canonical URLs."}
	if r.Survey != nil {
		s.add(part{Bars: barsOf("Rows by host", "host", "rows", &r.Survey.Hosts, r.Survey.Hosts.Total(), mostHosts, showName)})
	}
	return s
}

// urlsSection has the lengths of URLs and codes, and the parameters.
func urlsSection(r *Report, _ map[place][]Fact) section {
	s := section{ID: "urls", Title: "URLs and parameters"}
	if r.Survey == nil || r.Survey.URLs.Total() == 0 {
		return s
	}
	s.add(part{Chart: lengths("url-lengths", "Length of the URLs in bytes", "bytes", "rows", r.Survey.URLs), Beside: true})
	if c := r.Survey.Codes; len(c) > 0 && c[len(c)-1] == c.Total() {
		s.Lead = fmt.Sprintf("All new codes have %d characters.", len(c)-1)
	} else if len(c) > 0 {
		s.add(part{Chart: lengths("code-lengths", "Length of the new codes in characters", "characters", "links", r.Survey.Codes), Beside: true})
	}
	s.add(part{Bars: barsOf("Parameters in canonical URLs, and their share of the rows", "parameter", "times", &r.Survey.Parameters, r.Survey.Hosts.Total(), mostParameters, func(name string) string { return showName(decoded(name)) })})
	return s
}

// lengths draws lengths.
func lengths(id, title, of, unit string, l survey.Lengths) *chart {
	first, last := 0, len(l)-1
	for first < last && l[first] == 0 {
		first++
	}
	text := fmt.Sprintf("Half have at most %d %s, 95 %% at most %d; the longest has %d.", l.Quantile(0.5), of, l.Quantile(0.95), last)
	if first == last {
		text = fmt.Sprintf("All have %d %s.", first, of)
	}
	return newChart(id, title, of, unit, text, lengthBins(l, first, last))
}

// lengthBins returns the lengths from first to last in bins. The rarest long ones are in one bin.
func lengthBins(l survey.Lengths, first, last int) (bins []bin) {
	end := max(l.Quantile(0.995), first) // of what has bins of its own
	if last-end < mostBins/4 {
		end = last
	}
	width := 1
	for _, w := range []int{1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000} {
		if width = w; end/w-first/w < mostBins {
			break
		}
	}
	count := func(from, to int) (n int64) {
		for at := from; at < min(to, len(l)); at++ {
			n += l[at]
		}
		return n
	}
	at := first / width * width
	for ; at <= end; at += width {
		b := bin{name: fmt.Sprint(at), below: fmt.Sprint(at), count: count(at, at+width)}
		if width > 1 {
			b.name = fmt.Sprintf("%d–%d", at, at+width-1)
		}
		bins = append(bins, b)
	}
	if over := count(at, len(l)); over > 0 {
		bins = append(bins, bin{fmt.Sprintf("%d and more", at), fmt.Sprintf("%d…", at), over})
	}
	return bins
}

// runSection has all that has no other place.
func runSection(_ *Report, facts map[place][]Fact) section {
	s := section{ID: "run", Title: "Other facts"}
	s.add(part{Facts: facts[placeRun]})
	return s
}

// verdictSection has the verdict of a check.
func verdictSection(r *Report, _ map[place][]Fact) section {
	s := section{ID: "verdict", Title: "The verdict of the check"}
	var list []Fact
	for _, f := range r.Verdict {
		if !f.Hidden {
			list = append(list, f.shown())
		}
	}
	s.add(part{Facts: list})
	return s
}
