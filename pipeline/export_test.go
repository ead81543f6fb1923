package pipeline

// SpillAt makes a run spill records past so many bytes, far below what Memory
// could ask for.
func (c *Config) SpillAt(bytes int64) { c.spillAt = bytes }
