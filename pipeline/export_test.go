package pipeline

import "github.com/linkforge/bulk/pipeline/fsys"

// SpillAt makes a run spill records past so many bytes, far below what Memory
// could ask for.
func (c *Config) SpillAt(bytes int64) { c.spillAt = bytes }

// UseFS makes all files of a run but those of the store go through fs.
func (c *Config) UseFS(fs fsys.FS) { c.fs = fs }

// FreeRoom makes a run believe that a directory has so much room left.
func (c *Config) FreeRoom(free func(dir string) (int64, error)) { c.freeRoom = free }

// SpillAt makes each sort of a delete spill past so many bytes.
func (c *DeleteConfig) SpillAt(bytes int64) { c.sortMemory = bytes }
