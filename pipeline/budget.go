package pipeline

import "github.com/linkforge/bulk/pipeline/report"

// budget divides Config.Memory, in bytes; all of it is zero where there is no
// bound. With w workers,
//
//	fixed    48 MiB          program, blocks of the reader and of spills, writer and cache of the store
//	workers  w · 24 MiB      batches and formatted pieces under way
//	groups   160 MiB         row groups or batches under way: one is gathered, one encoded
//	rejects  1/16 of the rest
//	contest  3/16 of the rest: URLs that have to share a code
//	changes  1/64 of the rest, from contest; with link rules 1/16, from records: half of it links
//	         that exist and are to change, half of it what links have, other than their rows say
//	records  12/16 of the rest, while reading for the chunks that are not spilled,
//	         afterwards for the buckets that are loaded
//	numbers  with a counter, instead of contest: half of it new URLs, half of it codes; and a
//	         quarter of that of records is for links on their way to the store
//	kept     half of that of records, if legacy codes are kept: half of it claims, a quarter
//	         verdicts on them, a quarter links on their way to the store
//	others   a quarter of that of records, if a preview counts the URLs of other profiles
//	placed   half of that of records, if the mapping is in the order of the input
type budget struct {
	records, rejects, contested, placed int64
	claims, verdicts, links, others     int64
	changes, shown, urls, codes         int64

	loads int // buckets that are loaded at once
}

func (c *Config) budget() budget {
	b := budget{loads: 2*c.Workers + 4}
	if c.Memory > 0 {
		rest := c.Memory - c.overhead()
		b.rejects = rest / 16
		b.contested = 3 * rest / 16
		b.records = rest - b.rejects - b.contested
		if b.changes = rest / 64; c.Rules == nil {
			b.contested -= b.changes
		} else {
			b.changes = rest / 16
			b.records -= b.changes
		}
		b.changes, b.shown = b.changes-b.changes/2, b.changes/2
	}
	if c.Legacy.Keeps() {
		kept := b.records / 2
		b.records, b.claims, b.verdicts, b.links = b.records-kept, kept/2, kept/4, kept/4
	}
	if c.Scheme.counts() {
		b.urls, b.codes, b.contested = b.contested/2, b.contested/2, b.contested%2
		if b.links == 0 {
			b.links = b.records / 4
			b.records -= b.links
		}
	}
	if c.counts {
		b.others = b.records / 4
		b.records -= b.others
	}
	if c.ReportOrder == report.InputOrder {
		b.placed = b.records / 2
		b.records -= b.placed
	}
	if c.spillAt > 0 {
		b.records, b.rejects, b.placed = c.spillAt, c.spillAt, c.spillAt
		b.claims, b.verdicts, b.links, b.others, b.changes, b.shown = c.spillAt, c.spillAt, c.spillAt, c.spillAt, c.spillAt, c.spillAt
		b.urls, b.codes = c.spillAt, c.spillAt
	}
	return b
}
