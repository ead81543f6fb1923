package pipeline

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
)

// A sample is a report.Mapping that counts links and keeps a few rows, rather than write them. It
// is also a block of one.
type sample struct {
	campaign *campaign.Plan // nil: a row is one link
	keeps    bool           // legacy codes are kept
	both     bool           // and each link has a generated code
	fold     bool           // and those that differ only in case are one
	first    []PreviewRow   // the first rows in the order of the input, in this order, at most FirstRows; of a campaign as of trim
	examples [ExampleCount]*PreviewRow

	kept, generated, aliases int64 // as of PreviewResult
}

func (s *sample) Block() report.Block {
	return &sample{campaign: s.campaign, keeps: s.keeps, both: s.both, fold: s.fold}
}

func (s *sample) Write(block report.Block) error {
	b := block.(*sample)
	s.kept, s.generated, s.aliases = s.kept+b.kept, s.generated+b.generated, s.aliases+b.aliases
	for i := range b.first {
		s.addFirst(&b.first[i])
	}
	for i, row := range b.examples {
		if row != nil && (s.examples[i] == nil || compareRows(row, s.examples[i]) < 0) {
			s.examples[i] = row
		}
	}
	return nil
}

func (s *sample) Close() error { return nil }
func (s *sample) Abandon()     {}

func (s *sample) Append(r *report.Row) {
	if most := s.most(); len(s.first) < most || comparePlace(r, &s.first[most-1]) < 0 {
		s.addFirst(s.row(r))
	}
	switch created := r.Outcome == outcome.Created; {
	case created && r.Alias:
		s.aliases++
		s.example(ExampleAlias, r)
	case created && !r.Generated:
		s.kept++
		s.example(ExampleKept, r)
	case r.Outcome == outcome.Existing:
		s.example(ExampleExisting, r)
	case r.Outcome == outcome.Duplicate:
		s.example(ExampleDuplicate, r)
	}
	if r.Generated {
		s.generated++
		s.example(ExampleGenerated, r)
	}
	if change := r.Rules.Change; change != rules.NoChange {
		s.example(ExampleChange+int(change), r)
	}
	if r.Legacy == nil {
		s.example(ExampleWithoutCode, r)
	} else if s.keeps && !legacy.Same(r.Legacy, r.Code, s.fold) { // it belongs to another URL
		s.example(ExampleConflict, r)
	}
}

// example keeps a row as an example, unless an earlier one is.
func (s *sample) example(number int, r *report.Row) {
	if have := s.examples[number]; have == nil || comparePlace(r, have) < 0 {
		s.examples[number] = s.row(r)
	}
}

// addFirst adds a row to the first ones, if it is one of them.
func (s *sample) addFirst(row *PreviewRow) {
	i, _ := slices.BinarySearchFunc(s.first, row, func(a PreviewRow, b *PreviewRow) int { return compareRows(&a, b) })
	s.first = slices.Insert(s.first, i, *row)
	s.trim()
}

// most is how many of the first rows there are at most.
func (s *sample) most() int {
	if s.campaign != nil {
		return FirstExpanded * FirstVariants
	}
	return FirstRows
}

// trim leaves the first rows; of a campaign, the first variants of the first rows of the input.
func (s *sample) trim() {
	if s.campaign == nil {
		s.first = s.first[:min(len(s.first), FirstRows)]
		return
	}
	kept, rows, variants := s.first[:0], 0, 0
	for i, row := range s.first {
		if i == 0 || row.Source != kept[len(kept)-1].Source || row.Row != kept[len(kept)-1].Row {
			rows, variants = rows+1, 0
		}
		if rows > FirstExpanded {
			break
		}
		if variants++; variants <= FirstVariants {
			kept = append(kept, row)
		}
	}
	s.first = kept
}

// row copies a row.
func (s *sample) row(r *report.Row) *PreviewRow {
	row := &PreviewRow{
		Source: manifest.Text(r.Source), Row: r.Row, Workspace: manifest.Text(r.Workspace), URL: manifest.Text(r.Original),
		LegacyCode: manifest.Text(r.Legacy), Code: manifest.Text(r.Code), Outcome: r.Outcome.String(), Change: r.Rules.Change.String(), canonical: string(r.Canonical), parts: bytes.Clone(r.Rules.Parts),
	}
	if s.campaign != nil {
		row.Variant = r.Variant
		for n, name := range s.campaign.Names() {
			if r.Values[n] != nil {
				row.Values = append(row.Values, Value{name, manifest.Text(r.Values[n]), s.campaign.IsConstant(r.Variant, n)})
			}
		}
	}
	if s.keeps {
		row.Kind = r.Kind()
	}
	if s.both {
		row.LinkCode = manifest.Text(r.LinkCode)
	}
	return row
}

// comparePlace orders rows as in the input; several that one of the input became, by their codes.
func comparePlace(a *report.Row, b *PreviewRow) int {
	return cmp.Or(strings.Compare(a.Source, string(b.Source)), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Variant, b.Variant), strings.Compare(string(a.Legacy), string(b.LegacyCode)))
}

func compareRows(a, b *PreviewRow) int {
	return cmp.Or(strings.Compare(string(a.Source), string(b.Source)), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Variant, b.Variant), strings.Compare(string(a.LegacyCode), string(b.LegacyCode)))
}
