package diff

import (
	"bytes"
	"strconv"

	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
)

// expiry returns the expiry of a link as it is compared: one that the run gives to rows without any is
// + and its seconds, since two runs of one list reckon it from different times.
func (s *operand) expiry(r *report.Row) []byte {
	cells := &r.Rules.Cells
	if s.terms.Rules == nil {
		return cells[rules.ExpiresAt]
	}
	given, _, _ := s.terms.Rules.Parse(&rules.Cells{rules.LinkType: cells[rules.LinkType]})
	if given.Expiry.When != rules.Reckoned || given.Expiry.Reckon(s.manifest.AsOf.Unix()).String() != string(cells[rules.ExpiresAt]) {
		return cells[rules.ExpiresAt]
	}
	return given.Expiry.Append(nil)
}

// reckon returns an expiry as the mapping has it, of one that expiry returned.
func (s *operand) reckon(expiry []byte) []byte {
	if !bytes.HasPrefix(expiry, []byte("+")) {
		return expiry
	}
	seconds, _ := strconv.ParseInt(string(expiry), 10, 64)
	return rules.Expiry{When: rules.Reckoned, Seconds: seconds}.Reckon(s.manifest.AsOf.Unix()).Append(nil)
}
