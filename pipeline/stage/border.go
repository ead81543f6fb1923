package stage

import (
	"bytes"
	"cmp"
	"sort"

	"github.com/linkforge/bulk/pipeline/record"
)

// A Border is the least position in the order of the records that belongs to the shard after it. A shard
// may so begin anywhere: in a workspace, a code, or among the rows of one URL.
type Border struct {
	Workspace []byte `json:"workspace"`
	Key       uint64 `json:"key"` // of the sort
	Record    []byte `json:"record"`
}

// compare compares a border with a position.
func (b *Border) compare(order *record.Order, workspace []byte, key uint64, rec []byte) int {
	if c := b.compareKey(workspace, key); c != 0 {
		return c
	}
	return order.Compare(b.Record, rec)
}

func (b *Border) compareKey(workspace []byte, key uint64) int {
	return cmp.Or(bytes.Compare(b.Workspace, workspace), cmp.Compare(b.Key, key))
}

// span returns the shards, from first to last, that may have records of a workspace and a key.
func (j *Job) span(workspace []byte, key uint64) (first, last int) {
	borders := j.plan.Borders
	first = sort.Search(len(borders), func(i int) bool { return borders[i].compareKey(workspace, key) >= 0 })
	last = sort.Search(len(borders), func(i int) bool { return borders[i].compareKey(workspace, key) > 0 })
	return first, last
}
