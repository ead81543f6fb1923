package pipeline

import (
	"runtime/metrics"
	"time"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outdir"
)

// A meter collects how long the stages took, and how much was sorted.
type meter struct {
	started   time.Time
	stages    []manifest.Stage
	finishing time.Time // when the last stage began
	sorted    int64     // bytes that went through sorters which are closed by now
	spilled   int64     // those of them that went to disk
}

// time does a stage and notes how long it took; the stage itself may note rows and bytes.
func (m *meter) time(name string, stage func(s *manifest.Stage) error) error {
	s, start := manifest.Stage{Name: name}, time.Now()
	err := stage(&s)
	s.Seconds = time.Since(start).Seconds()
	m.stages = append(m.stages, s)
	return err
}

// waited notes a wait for the store since then, as one stage with the wait before it.
func (m *meter) waited(since time.Time) {
	const name = "wait"
	if n := len(m.stages); n == 0 || m.stages[n-1].Name != name {
		m.stages = append(m.stages, manifest.Stage{Name: name})
	}
	m.stages[len(m.stages)-1].Seconds += time.Since(since).Seconds()
}

// wrote notes how much the stage before wrote, once its files are closed.
func (m *meter) wrote(files ...*outdir.File) {
	for _, file := range files {
		m.stages[len(m.stages)-1].Bytes += file.Size()
	}
}

// close closes a sorter that is no longer needed, and notes what went through it.
func (m *meter) close(s *extsort.Sorter) error {
	m.sorted, m.spilled = m.sorted+s.Size(), m.spilled+s.Spilled()
	return s.Close()
}

// finished returns the last stages, which writing the timings is a part of.
func (m *meter) finished(now time.Time, files []*outdir.File) []manifest.Stage {
	finish, fsync := manifest.Stage{Name: "finish", Seconds: now.Sub(m.finishing).Seconds()}, manifest.Stage{Name: "fsync"}
	for _, file := range files {
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
