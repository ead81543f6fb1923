package emit

import (
	"bytes"
	"cmp"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/record"
)

// merging counts, for one formatter, rows whose URL may lead elsewhere than that of their link.
type merging struct {
	rows    int64
	changes canon.ChangeCounts

	bucket, at int // where the first of them is in the sort
	example    [2]manifest.Spelling
}

// first returns the first record of a URL of the bucket, whose index is given; -1: it is in
// an earlier bucket.
func (b *sharedBucket) first(i int) *record.Record {
	if i < 0 {
		return b.origin
	}
	r := record.Decode(b.Record(i))
	return &r
}

// add compares record i of the bucket of a piece with the first record of its URL.
func (m *merging) add(profile canon.Profile, p *piece, i int, first *record.Record, rows *intake.Rows, r *record.Record) {
	if bytes.Equal(first.Original, r.Original) {
		return
	}
	changes := profile.Elsewhere(r.Original, first.Original)
	if changes == 0 {
		return
	}
	if m.rows++; m.rows == 1 {
		m.bucket, m.at = p.bucket.number, i
		for n, r := range []*record.Record{first, r} {
			m.example[n] = manifest.Spelling{Source: manifest.Text(rows.List[r.Place.Source].Name), Row: r.Place.Row, URL: manifest.Text(r.Original)}
		}
	}
	m.changes.Add(changes)
}

// merged sums up what the formatters counted; nil: nothing.
func merged(formatters []*formatter) *manifest.MergedDiffers {
	var all merging
	for _, f := range formatters {
		m := &f.merged
		if m.rows > 0 && (all.rows == 0 || cmp.Or(cmp.Compare(m.bucket, all.bucket), cmp.Compare(m.at, all.at)) < 0) {
			all.bucket, all.at, all.example = m.bucket, m.at, m.example
		}
		all.rows += m.rows
		all.changes.Merge(&m.changes)
	}
	if all.rows == 0 {
		return nil
	}
	return &manifest.MergedDiffers{Rows: all.rows, By: all.changes.ByName(), Example: all.example}
}
