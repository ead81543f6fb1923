//go:build !linux

package pipeline

// peakMemory returns 0: the system does not tell.
func peakMemory() int64 { return 0 }
