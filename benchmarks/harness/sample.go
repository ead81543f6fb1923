package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Step is one thing to measure.
type Step struct {
	Name    string
	Rows    int64                                // 0: Done finds out
	Prepare func(context.Context) error          // before the clock starts; may be nil
	Command func() Command                       // measured
	Done    func(context.Context, *Sample) error // after the clock has stopped: sizes, checks; may be nil
}

// A Group is steps that follow one another in every round.
type Group []Step

// A Sample is a step measured once.
type Sample struct {
	Step  string `json:"step"`
	Round int    `json:"round"`
	Rows  int64  `json:"rows"`
	Usage
	// Fsync is how long the files took to reach the disk, in seconds, and
	// FsyncInside tells that Seconds contain it. Where it is inside but nobody
	// said how long it took, Fsync is 0.
	Fsync       float64            `json:"fsync_seconds"`
	FsyncInside bool               `json:"fsync_inside"`
	Bytes       int64              `json:"bytes"`            // written
	Stages      map[string]float64 `json:"stages,omitempty"` // what the program says of itself
	Digest      string             `json:"digest,omitempty"` // SHA-256 of the output; must be the same in all rounds
}

// Total is the time with the output on the disk, in seconds.
func (s Sample) Total() float64 {
	if s.FsyncInside {
		return s.Seconds
	}
	return s.Seconds + s.Fsync
}

// Work is the time without waiting for the disk, in seconds.
func (s Sample) Work() float64 {
	if s.FsyncInside {
		return s.Seconds - s.Fsync
	}
	return s.Seconds
}

// rounds measures groups so many times. A step whose output is not the same in all
// rounds is an error.
func (b *Bench) rounds(ctx context.Context, count int, groups []Group) ([]Sample, error) {
	var samples []Sample
	digests := map[string]string{}
	for round := range count {
		order := slices.Clone(groups)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, step := range slices.Concat(order...) {
			sample, err := b.measure(ctx, step, round+1)
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", step.Name, round+1, err)
			}
			if was, ok := digests[step.Name]; ok && was != sample.Digest {
				return nil, fmt.Errorf("%s, round %d: other output than before: %s, not %s", step.Name, round+1, sample.Digest, was)
			}
			digests[step.Name] = sample.Digest
			samples = append(samples, sample)
			fmt.Fprintf(b.Out, "%2d/%d  %-50s %8.3f s  cpu %8.3f s  rss %7.1f MiB  fsync %6.3f s  %8.1f MB\n",
				sample.Round, count, sample.Step, sample.Seconds, sample.CPU, float64(sample.RSS)/(1<<20), sample.Fsync, float64(sample.Bytes)/1e6)
		}
	}
	return samples, nil
}

// measure does a step. What earlier ones wrote is on the disk before the clock
// starts, and the memory is warm.
func (b *Bench) measure(ctx context.Context, step Step, round int) (_ Sample, err error) {
	sample := Sample{Step: step.Name, Round: round, Rows: step.Rows}
	if step.Prepare != nil {
		if err := step.Prepare(ctx); err != nil {
			return sample, err
		}
	}
	unix.Sync()
	if b.Warm > 0 {
		if _, err := Output(ctx, "", b.Path("warm"), strconv.FormatInt(b.Warm, 10)); err != nil {
			return sample, err
		}
	}
	if sample.Usage, err = step.Command().Run(ctx); err != nil || step.Done == nil {
		return sample, err
	}
	return sample, step.Done(ctx, &sample)
}

// Sum notes the digest of a file that the step wrote.
func (s *Sample) Sum(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	s.Digest = hex.EncodeToString(h.Sum(nil))
	return err
}

// Written notes the size of a file that the step wrote, waits until it is on the
// disk, and notes how long that took.
func (s *Sample) Written(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := syscall.Fsync(int(f.Fd())); err != nil {
		return err
	}
	s.Fsync += time.Since(start).Seconds()
	s.Bytes += info.Size()
	return nil
}
