package pipeline

import (
	"errors"
	"time"

	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/sink"
)

// timings collects how long the stages took.
type timings struct{ stages []report.Stage }

// time does a stage and notes how long it took.
func (t *timings) time(name string, stage func() error) error {
	start := time.Now()
	err := stage()
	t.stages = append(t.stages, report.Stage{Name: name, Seconds: time.Since(start).Seconds()})
	return err
}

// writeTimings writes all that may differ between two equal runs.
func (r *run) writeTimings(row sink.Run) error {
	now := time.Now()
	t := &report.Timings{
		RunID: row.ID, Fingerprint: row.Fingerprint, Store: r.cfg.StoreName,
		Started: r.started, Finished: now, Seconds: now.Sub(r.started).Seconds(),
		Workers: r.cfg.Workers, Stages: r.timings.stages,
	}
	if r.cfg.Store != nil {
		t.Details = r.cfg.Store.Stats()
	}
	file, err := r.createReport(report.TimingsName)
	if err != nil {
		return err
	}
	return errors.Join(report.WriteTimings(file, t), file.Close())
}
