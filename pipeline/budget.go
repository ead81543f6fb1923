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
//	records  12/16 of the rest, while reading for the chunks that are not spilled,
//	         afterwards for the buckets that are loaded
//	placed   half of that of records, if the mapping is in the order of the input
type budget struct {
	records, rejects, contested, placed int64

	loads int // buckets that are loaded at once
}

const (
	fixedMemory  = 48 << 20
	workerMemory = 24 << 20
	groupMemory  = 160 << 20
	leastRecords = 32 << 20
)

// overhead is the memory that is not for records and rejects.
func (c *Config) overhead() int64 {
	n := int64(fixedMemory + max(c.Workers, 1)*workerMemory)
	if c.ReportFormat == report.Parquet || c.ReportFormat == report.Arrow {
		n += groupMemory
	}
	return n
}

// LeastMemory returns the smallest Memory, in bytes, that the run can keep; with Workers 0
// that with one. Each worker needs a chunk of every range.
func (c *Config) LeastMemory() int64 {
	least := int64(max(c.Workers, 1)+1) * leastRecords
	if c.ReportOrder == report.InputOrder {
		least *= 2
	}
	return c.overhead() + least
}

func (c *Config) budget() budget {
	b := budget{loads: 2*c.Workers + 4}
	if c.Memory > 0 {
		rest := c.Memory - c.overhead()
		b.rejects = rest / 16
		b.contested = 3 * rest / 16
		b.records = rest - b.rejects - b.contested
	}
	if c.ReportOrder == report.InputOrder {
		b.placed = b.records / 2
		b.records -= b.placed
	}
	if c.spillAt > 0 {
		b.records, b.rejects, b.placed = c.spillAt, c.spillAt, c.spillAt
	}
	return b
}
