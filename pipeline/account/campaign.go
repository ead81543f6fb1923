package account

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
