package pipeline

import (
	"cmp"
	"fmt"
	"os"
)

// A room is the directory where rows are spilled.
type room struct {
	dir  string                                    // "": that of the system
	free func(dir string) (bytes int64, err error) // how many bytes it has left
}

// need returns an error if the directory has not so many bytes left. Where the system does
// not tell, it has.
func (r room) need(bytes int64) error {
	dir := cmp.Or(r.dir, os.TempDir())
	free, err := r.free(dir)
	if err != nil || bytes <= free {
		return nil
	}
	return fmt.Errorf("%s is too small for the rows that do not fit in memory: they need at least %d MiB more, and %d MiB are free; name another directory with Config.TempDir, or allow more Config.Memory",
		dir, (bytes+1<<20-1)>>20, free>>20)
}
