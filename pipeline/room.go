package pipeline

import (
	"cmp"
	"fmt"
	"os"
)

// roomStep is how much is spilled between two looks at the room that is left.
const roomStep = 1 << 20

// checkRoom ends a run whose rows will clearly not fit into the folder that they
// spill to, rather than let it meet the full disk hours later. Once a row is on
// disk all have to go there: those that are held are certain, those still to be
// read are taken for half of what the others let expect, so that an input whose
// rows get shorter is no false alarm, and for nothing where nobody knows how much
// is still to come.
func (r *run) checkRoom() error {
	spilled := r.records.Spilled() + r.rejects.Spilled()
	next := r.nextRoom.Load()
	if spilled <= next || !r.nextRoom.CompareAndSwap(next, spilled+roomStep) {
		return nil
	}
	slack := int64(r.cfg.Workers) * leastRecords // arenas and chunks that are not full
	need := max(0, r.records.Held()-slack)
	total, read := r.cfg.Status.TotalBytes.Load(), r.cfg.Status.Bytes.Load()
	if r.cfg.Limit == 0 && 0 < read && read < total {
		need += int64(float64(spilled+need) * float64(total-read) / float64(read) / 2)
	}
	return r.needRoom(need)
}

// needRoom returns an error if the folder of what is spilled has not so many bytes
// left. Where the system does not tell, it has.
func (r *run) needRoom(need int64) error {
	dir := cmp.Or(r.cfg.TempDir, os.TempDir())
	free, err := r.cfg.freeRoom(dir)
	if err != nil || need <= free {
		return nil
	}
	return fmt.Errorf("%s is too small for the rows that do not fit in memory: they need at least %d MiB more, and %d MiB are free; name another folder with --tmp, or allow more --memory",
		dir, (need+1<<20-1)>>20, free>>20)
}
