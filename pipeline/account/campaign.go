package account

import "fmt"

// campaign tells of the variants of rows; nil: a row is one link. Rows whose own URL has a parameter of
// the campaign may have an example.
func (r *Run) campaign(tagged *Example) []Fact {
	c := r.Campaign
	if c == nil {
		return nil
	}
	return []Fact{
		{Key: "campaign", Log: "expanded", Name: "rows of the inputs with variants", Noun: "row", Value: c.Expanded, Full: c, Zero: true, Note: "of up to " + Counted(c.Combinations, "combination") + " each"},
		{In: "-", Key: "tagged", Name: "with such a parameter in their own URL", Noun: "row", Value: c.Tagged, Depth: 1, Note: "it is replaced", Example: tagged},
	}
}

// linksByValue tells how many links the values of each parameter have, those with the most.
func (r *Run) linksByValue() (list []Fact) {
	if r.LinksByValue == nil {
		return nil
	}
	list = append(list, Fact{Key: "links_by_value", Log: "-", Full: r.LinksByValue})
	for i := range r.LinksByValue {
		of := &r.LinksByValue[i]
		f := Fact{In: "-", Key: "links_by_" + of.Parameter, Name: "links by " + of.Parameter}
		for _, v := range of.Links {
			f.By = append(f.By, Part{redacted(v.Value), v.Links})
		}
		if told := int64(len(of.Links)); of.AtLeast {
			f.Note = fmt.Sprintf("these are %d of at least %s values", told, Number(of.Values))
		} else if told < of.Values {
			f.Note = fmt.Sprintf("these are the most of %s values", Number(of.Values))
		}
		list = append(list, f)
	}
	return list
}
