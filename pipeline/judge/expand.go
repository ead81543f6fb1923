package judge

import (
	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline/outcome"
)

// Expand says why a row of a campaign is rejected, as a whole; "": it is not, and [Judge.Variant] returns
// its variants one after the other.
func (j *Judge) Expand(c *Columns, r *Row) (reason, detail string) {
	r.Placed = false
	if r.Variants == nil {
		r.Variants = j.Campaign.NewRow()
	}
	if reason, detail = j.Cells(c, r); reason != "" {
		return reason, detail
	}
	r.cells = r.Found
	switch {
	case len(r.Original) == 0:
		return outcome.MissingURL, outcome.MissingURLDetail
	case len(canon.Trim(r.Original)) == 0:
		return string(canon.Empty), canon.Detail(r.Original, canon.Empty)
	}
	j.resolve(r)
	if f := r.Variants.Make(c.Campaign, r.Original, r.Cell); f != nil {
		return outcome.BadCampaign, f.Detail
	}
	if reason, detail = j.allCanonical(r); reason != "" {
		return reason, detail
	}
	if reason, detail = j.rest(c, r); reason != "" || j.Hygiene == nil {
		return reason, detail
	}
	for r.Variants.Next() {
		r.Canonical = r.Canonical[:0]
		if reason, detail = j.variant(r); reason != "" {
			return reason, detail
		}
	}
	r.Canonical = r.Canonical[:0]
	r.Variants.Rewind()
	return "", ""
}

// allCanonical says whether some variant has no canonical form. Two URLs tell (campaign.Row.AppendExtremes);
// only if one of them has none, the variants are asked for the first.
func (j *Judge) allCanonical(r *Row) (reason, detail string) {
	longest, bare, hasBare := r.Variants.AppendExtremes(r.tried[0][:0], r.tried[1][:0])
	r.tried = [2][]byte{longest, bare}
	_, err := j.Profile.Append(r.form[:0], longest)
	if err == nil && hasBare {
		_, err = j.Profile.Append(r.form[:0], bare)
	}
	if err == nil {
		return "", ""
	}
	for r.Variants.Next() {
		r.url = r.Variants.AppendURL(r.url[:0])
		if r.form, err = j.Profile.Append(r.form[:0], r.url); err != nil {
			reason := err.(canon.Reason)
			return string(reason), canon.Detail(r.url, reason)
		}
	}
	r.Variants.Rewind()
	return "", ""
}

// Variant makes the next variant of a row that Expand did not reject the row in hand: its original URL,
// its canonical form and what they show. False: there is none.
func (j *Judge) Variant(r *Row) bool {
	if !r.Variants.Next() {
		return false
	}
	j.variant(r)
	return true
}

// VariantOf is Variant for the one of a number, which is not before the one in hand.
func (j *Judge) VariantOf(r *Row, number int64) bool {
	for r.Variants.Next() {
		if r.Variants.Number() == number {
			j.variant(r)
			return true
		}
	}
	return false
}

// variant makes the variant that is in hand, and says whether its URL rejects it.
func (j *Judge) variant(r *Row) (reason, detail string) {
	r.url = r.Variants.AppendURL(r.url[:0])
	r.Original, r.Changes, r.Found = r.url, 0, r.cells
	start := len(r.Canonical)
	r.Canonical, _ = j.Profile.AppendChanged(r.Canonical, r.Original, &r.Changes) // Expand has met the error
	return j.URL(r, r.Canonical[start:])
}
