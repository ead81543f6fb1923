package sink

import (
	"fmt"
	"iter"
	"slices"
)

// A page of a Delete has so many items. They may name more links, of which so many are marked
// together.
const (
	deletePage = 1_000
	markPage   = 10_000
)

// Pages does what all stores do in Delete. The function find returns the links that some items
// name, in any order and perhaps twice. The function mark marks the links that have these codes,
// which ascend, in a transaction, and returns the codes of those that it has marked.
func (o *DeleteOptions) Pages(items iter.Seq2[[]Deletion, error], find func([]Deletion) ([]Candidate, error), mark func(codes []string) ([]string, error), visit func(Named) error) error {
	first := 0
	for chunk, err := range items {
		if err != nil {
			return err
		}
		for page := range slices.Chunk(chunk, deletePage) {
			found, err := find(page)
			if err != nil {
				return err
			}
			p := deletion{DeleteOptions: o, links: map[string]*Candidate{}, ofURL: map[Key][]string{}, marked: map[string]bool{}}
			if err := p.do(page, found, mark); err != nil {
				return err
			}
			if err := p.visit(page, first, visit); err != nil {
				return err
			}
			first += len(page)
		}
	}
	return nil
}

// A deletion is a page of a Delete.
type deletion struct {
	*DeleteOptions
	links  map[string]*Candidate // by code
	ofURL  map[Key][]string      // their codes, ascending
	marked map[string]bool       // codes of links that were marked and not visited
}

// named are the codes of the links that an item names.
func (p *deletion) named(item *Deletion) []string {
	if item.Code != "" {
		return []string{item.Code}
	}
	return p.ofURL[item.Base]
}

// elsewhere reports whether a link that has the code of the item is not that of its URL.
func (d *Deletion) elsewhere(l *Candidate) bool {
	return d.Code != "" && d.Canonical != "" && d.Canonical != l.Canonical
}

func (p *deletion) others(l *Candidate) bool { return p.Owner != "" && l.Owner != p.Owner }

// do marks the links that the items name.
func (p *deletion) do(items []Deletion, found []Candidate, mark func([]string) ([]string, error)) error {
	for i := range found {
		l := &found[i]
		if p.links[l.Code] == nil {
			p.links[l.Code], p.ofURL[l.Base] = l, append(p.ofURL[l.Base], l.Code)
		}
	}
	var codes []string
	for i := range items {
		named := p.named(&items[i])
		slices.Sort(named)
		for _, code := range named {
			l := p.links[code]
			switch {
			case l == nil:
			case items[i].Code == "" && l.Canonical != items[i].Canonical:
				return fmt.Errorf("the store is damaged: the link %q in workspace %q has the url_key or base_key of %q, but its canonical URL is %q",
					code, p.Workspace, items[i].Canonical, l.Canonical)
			case !p.others(l) && !items[i].elsewhere(l) && l.Status != Deleted:
				codes = append(codes, code)
			}
		}
	}
	slices.Sort(codes)
	for part := range slices.Chunk(slices.Compact(codes), markPage) {
		if !p.DryRun {
			var err error
			if part, err = mark(part); err != nil {
				return err
			}
		}
		for _, code := range part {
			p.marked[code] = true
		}
	}
	return nil
}

// visit visits the links of the items, the first of which has this index.
func (p *deletion) visit(items []Deletion, first int, visit func(Named) error) error {
	for i := range items {
		for _, code := range p.named(&items[i]) {
			l := p.links[code]
			if l == nil {
				continue
			}
			elsewhere := items[i].elsewhere(l)
			if err := visit(Named{Item: first + i, Candidate: *l, Others: p.others(l), OtherURL: elsewhere, Marked: p.marked[code] && !elsewhere}); err != nil {
				return err
			}
			if !elsewhere {
				delete(p.marked, code)
			}
		}
	}
	return nil
}
