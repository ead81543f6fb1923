package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A Step is one thing to measure.
type Step struct {
	Name    string
	Rows    int64
	Prepare func(context.Context) error          // before the clock starts; may be nil
	Command Command                              // measured
	Done    func(context.Context, *Sample) error // after the clock has stopped: sizes, checks; may be nil
}

// A Group is a list of steps that follow one another in every round.
type Group []Step

// A Sample is one measurement of a step.
type Sample struct {
	Step  string `json:"step"`
	Round int64  `json:"round"`
	Rows  int64  `json:"rows"`
	Usage
	// Fsync is how many seconds the files took to reach the disk. FsyncInside says that
	// Seconds contains this time. Fsync is 0 if it is contained but not known.
	Fsync       float64            `json:"fsync_seconds"`
	FsyncInside bool               `json:"fsync_inside"`
	Bytes       int64              `json:"bytes"`            // written
	Stages      map[string]float64 `json:"stages,omitempty"` // what the program reports
	Digest      string             `json:"digest,omitempty"` // SHA-256 of the output; must be the same in all rounds
}

// Total is the time until the output is on the disk, in seconds.
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

// MiB is the peak of the resident memory in MiB.
func (s Sample) MiB() float64 { return float64(s.RSS) / (1 << 20) }

func (s Sample) cpu() float64 { return s.CPU }

// rounds measures the groups. It is an error if the output of a step is not the same in
// all rounds.
func (b *Bench) rounds(ctx context.Context, groups []Group) ([]Sample, error) {
	var samples []Sample
	digests := map[string]string{}
	for round := range b.Count {
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
				return nil, fmt.Errorf("%s, round %d: the output has SHA-256 %s, and had %s before", step.Name, round+1, sample.Digest, was)
			}
			digests[step.Name] = sample.Digest
			samples = append(samples, sample)
			fmt.Printf("%2d/%d  %-50s %8.3f s  cpu %8.3f s  rss %7.1f MiB  fsync %6.3f s  %8.1f MB\n",
				sample.Round, b.Count, sample.Step, sample.Seconds, sample.CPU, sample.MiB(), sample.Fsync, float64(sample.Bytes)/1e6)
		}
	}
	return samples, nil
}

// measure measures a step. Before the clock starts, files written earlier are on the disk
// and the memory is warm: a virtual machine gives memory that was free for a while back to
// its host, and to get it again costs more than most of what is measured here (5 µs a page
// were seen, or 1 s for 700 MB of output), which the first step after a pause would pay.
func (b *Bench) measure(ctx context.Context, step Step, round int64) (_ Sample, err error) {
	sample := Sample{Step: step.Name, Round: round, Rows: step.Rows}
	if step.Prepare != nil {
		if err := step.Prepare(ctx); err != nil {
			return sample, err
		}
	}
	unix.Sync()
	if b.Warm > 0 { // dd fills a buffer of this size
		if _, err := Output(ctx, "dd", "if=/dev/zero", "of=/dev/null", fmt.Sprintf("bs=%d", b.Warm), "count=1"); err != nil {
			return sample, err
		}
	}
	if sample.Usage, err = step.Command.Run(ctx); err != nil || step.Done == nil {
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
	err = f.Sync()
	s.Fsync, s.Bytes = time.Since(start).Seconds(), info.Size()
	return err
}
