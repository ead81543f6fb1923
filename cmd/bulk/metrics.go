package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outdir"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
)

// metrics are what --metrics-file tells of a run, for the textfile collector of
// Prometheus: gauges with the label name, which tells jobs apart.
type metrics struct {
	file    string // "": write nothing
	name    string
	began   time.Time
	success float64          // when a run last succeeded, in Unix time; 0: none is known
	status  *pipeline.Status // nil: the run did not begin
	result  *pipeline.Result // nil: likewise
}

const (
	metricExit    = "bulk_run_exit_code"
	metricSuccess = "bulk_run_success_timestamp_seconds"
)

// openMetrics reads the time of the last success from the file of an earlier run, if there
// is one, and checks that a new one can be written.
func openMetrics(file string) (*metrics, error) {
	base := filepath.Base(file)
	m := &metrics{file: file, name: strings.ToValidUTF8(strings.TrimSuffix(base, filepath.Ext(base)), "?"), began: time.Now()}
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("--metrics-file: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("--metrics-file %s: it is not a regular file", file)
	case info.Size() > 0:
		if m.success, err = lastSuccess(file); err != nil {
			return nil, fmt.Errorf("--metrics-file %s: it has no metrics of bulk and would be lost: give another name", file)
		}
	}
	f, err := createBeside(file)
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // without the name of the file that is there for a moment
	}
	if err != nil {
		return nil, fmt.Errorf("--metrics-file %s: create a file in its directory: %w", file, err)
	}
	return m, nil
}

// openMetrics opens those of bulk run with --metrics-file. A dry run only checks it.
func (u *ui) openMetrics(cmd *cobra.Command) error {
	f := cmd.Flag("metrics-file")
	if cmd.Name() != "run" || f.Value.String() == "" {
		return nil
	}
	m, err := openMetrics(f.Value.String())
	if cmd.Flag("dry-run").Value.String() == "false" {
		u.metrics = m
	}
	return errors.Join(err, m.apart(cmd.Flag("out").Value.String()))
}

// lastSuccess returns the time of the last success that a file has; 0: none.
func lastSuccess(file string) (float64, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(f)
	if err == nil && families[metricExit] == nil {
		err = errors.New("no metrics of bulk")
	}
	if err != nil || families[metricSuccess] == nil {
		return 0, err
	}
	return families[metricSuccess].Metric[0].GetGauge().GetValue(), nil
}

// apart refuses a file in a directory that the run may replace, and writes none then.
func (m *metrics) apart(out string) error {
	if m == nil || m.file == "" || out == "" {
		return nil
	}
	parent, err := realPath(filepath.Dir(m.file))
	if err != nil {
		return fmt.Errorf("--metrics-file: %w", err)
	}
	for _, dir := range []string{out, outdir.FailedOf(out), outdir.DryOf(out)} {
		real, err := realPath(dir)
		if err != nil {
			continue // it is not there, so no file lies in it
		}
		if within, err := filepath.Rel(real, parent); err == nil && filepath.IsLocal(within) {
			file := m.file
			m.file = ""
			return fmt.Errorf("--metrics-file %s lies in the output directory %s, which a run replaces", file, dir)
		}
	}
	return nil
}

// realPath is the absolute path of a file that exists, without symbolic links.
func realPath(name string) (string, error) {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(name)
}

// write replaces the file by the metrics of a run that ends with an exit code.
func (m *metrics) write(code int) error {
	if m == nil || m.file == "" {
		return nil
	}
	var text bytes.Buffer
	m.print(&text, code, time.Now())
	return replaceFile(m.file, func(w io.Writer) error { _, err := w.Write(text.Bytes()); return err })
}

// print writes the metrics. What is not known is left out.
func (m *metrics) print(w io.Writer, code int, now time.Time) {
	gauge := func(name, help, label string, values map[string]float64) {
		family := &dto.MetricFamily{Name: &name, Help: &help, Type: dto.MetricType_GAUGE.Enum()}
		for _, value := range slices.Sorted(maps.Keys(values)) {
			labels := []*dto.LabelPair{{Name: new("name"), Value: &m.name}}
			if label != "" {
				labels = append(labels, &dto.LabelPair{Name: &label, Value: &value})
			}
			family.Metric = append(family.Metric, &dto.Metric{Label: labels, Gauge: &dto.Gauge{Value: new(values[value])}})
		}
		if len(values) > 0 {
			expfmt.MetricFamilyToText(w, family) // into memory
		}
	}
	one := func(name, help string, value float64) { gauge(name, help, "", map[string]float64{"": value}) }
	succeeded := code == exitDone || code == exitRejected
	end := float64(now.UnixMilli()) / 1000
	if succeeded {
		m.success = end
	}
	one(metricExit, "Exit code of the last run (bulk help exit-codes): 0 and 3 are success.", float64(code))
	one("bulk_run_end_timestamp_seconds", "When the last run ended, in Unix time.", end)
	if m.success > 0 {
		one(metricSuccess, "When a run last ended with success, in Unix time.", m.success)
	}
	one("bulk_run_duration_seconds", "How long the last run took.", now.Sub(m.began).Seconds())
	if m.status == nil {
		return
	}
	one("bulk_run_read_bytes", "Bytes of input files that the last run read, compressed as they are.", float64(m.status.Bytes.Load()))
	one("bulk_run_read_rows", "Rows that the last run read.", float64(m.status.Read.Load()))
	if r := m.result; r != nil {
		m.printResult(r, succeeded, one, gauge)
	}
}

// printResult writes what only the result of a run tells. The outcomes of one without
// success are left out: it did not store what it counted.
func (m *metrics) printResult(r *pipeline.Result, succeeded bool, one func(name, help string, value float64), gauge func(name, help, label string, values map[string]float64)) {
	repeated := 0.0
	if r.Repeated { // its counts are those of the run that did the work
		repeated = 1
		none := &pipeline.Result{Timings: r.Timings}
		if r.Legacy != nil {
			none.Legacy = new(manifest.Legacy)
		}
		r = none
	}
	one("bulk_run_repeated", "1 if the last run had nothing to do, because the same run was finished before; otherwise 0.", repeated)
	if succeeded {
		c := r.Counts
		gauge("bulk_run_rows", "Rows of the last run, which succeeded, by outcome.", "outcome", map[string]float64{
			"created": float64(c.Created), "existing": float64(c.Existing), "duplicate": float64(c.Duplicate), "rejected": float64(c.Rejected),
		})
		if l := r.Legacy; l != nil {
			one("bulk_run_links_created", "Links and aliases that the last run, which succeeded, created.", float64(r.LinksCreated))
			one("bulk_run_alias_rows", "Rows of the last run, which succeeded, whose code is an alias.", float64(l.Aliases))
			one("bulk_run_conflict_rows", "Rows of the last run, which succeeded, that claimed the code of another URL.", float64(l.Conflicts))
		}
	}
	reasons := map[string]float64{}
	for reason, n := range r.Reasons {
		reasons[reason] = float64(n)
	}
	gauge("bulk_run_rejected_rows", "Rows that the last run rejected, by reason.", "reason", reasons)
	if r.Timings == nil {
		return
	}
	stages := map[string]float64{}
	for _, s := range r.Timings.Stages {
		stages[s.Name] += s.Seconds
	}
	gauge("bulk_run_stage_seconds", "How long the stages of the last run took; fsync is a part of finish.", "stage", stages)
	if r.Timings.PeakMemory > 0 {
		one("bulk_run_peak_memory_bytes", "The most memory that the last run used.", float64(r.Timings.PeakMemory))
	}
}
