package pipeline

import (
	"errors"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/sink"
)

// timings collects how long the stages took.
type timings struct {
	workers int
	stages  []manifest.Stage
	busy    atomic.Int64 // nanoseconds of the stage in hand
}

// time does a stage and notes how long it took; the stage itself may note rows and
// bytes.
func (t *timings) time(name string, stage func(s *manifest.Stage) error) error {
	t.busy.Store(0)
	s, start := manifest.Stage{Name: name}, time.Now()
	err := stage(&s)
	s.Seconds = time.Since(start).Seconds()
	if s.Busy = time.Duration(t.busy.Load()).Seconds(); s.Busy > 0 {
		s.Waiting = max(0, float64(t.workers)*s.Seconds-s.Busy)
	}
	t.stages = append(t.stages, s)
	return err
}

// waited notes a wait for the store since then, as one stage with the wait before it.
func (t *timings) waited(since time.Time) {
	const name = "wait"
	if n := len(t.stages); n == 0 || t.stages[n-1].Name != name {
		t.stages = append(t.stages, manifest.Stage{Name: name})
	}
	t.stages[len(t.stages)-1].Seconds += time.Since(since).Seconds()
}

// worked notes that a worker was busy since then, and idled that it was not, of a time
// that it has worked. Safe for concurrent use.
func (t *timings) worked(since time.Time) { t.busy.Add(int64(time.Since(since))) }
func (t *timings) idled(since time.Time)  { t.busy.Add(-int64(time.Since(since))) }

// closeSorter closes a sorter that the run needs no more, and notes what went through it.
func (r *run) closeSorter(s *extsort.Sorter) error {
	r.sorted, r.spilled = r.sorted+s.Size(), r.spilled+s.Spilled()
	return s.Close()
}

// writeTimings writes all that may differ between two equal runs.
func (r *run) writeTimings(row sink.Run) error {
	now := time.Now()
	t := &manifest.Timings{
		RunID: row.ID, Fingerprint: row.Fingerprint, Store: r.cfg.StoreName,
		Started: r.started, Finished: now, Seconds: now.Sub(r.started).Seconds(),
		Workers: r.cfg.Workers, Memory: r.cfg.Memory, PeakMemory: peakMemory(),
		Sorted: r.records.Size() + r.rejects.Size() + r.sorted, Spilled: r.records.Spilled() + r.rejects.Spilled() + r.spilled,
		GC: collected(), Stages: append(r.timings.stages, r.finished(now)...),
	}
	if r.cfg.Store != nil {
		t.Details = r.cfg.Store.Stats()
	}
	file, err := r.folder.Create(manifest.TimingsName)
	if err != nil {
		return err
	}
	return errors.Join(manifest.WriteTimings(file, t), file.Close())
}

// wrote notes how much the stage before wrote, once its files are closed.
func (t *timings) wrote(files ...*outdir.File) {
	for _, file := range files {
		t.stages[len(t.stages)-1].Bytes += file.Size()
	}
}

// finished returns the last stages, which writing the timings is a part of.
func (r *run) finished(now time.Time) []manifest.Stage {
	finish, fsync := manifest.Stage{Name: "finish", Seconds: now.Sub(r.finishing).Seconds()}, manifest.Stage{Name: "fsync"}
	for _, file := range r.folder.Files() {
		finish.Bytes += file.Size()
		fsync.Seconds += file.SyncTime().Seconds()
	}
	return []manifest.Stage{finish, fsync}
}

// collected returns what the garbage collector has done so far.
func collected() manifest.GC {
	samples := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(samples)
	return manifest.GC{Cycles: samples[0].Value.Uint64(), CPUSeconds: samples[1].Value.Float64(), Allocated: samples[2].Value.Uint64()}
}
