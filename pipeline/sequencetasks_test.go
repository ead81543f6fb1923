package pipeline_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/sink"
	"pgregory.net/rapid"
)

// stageable reports whether a turn can be done in tasks: bulk stage refuses all others.
func (s *sequence) stageable(t *turn) bool {
	_, counter, err := s.world.scheme.Make(s.world.length)
	must(s.t, err)
	return t.mode == legacy.Off && !t.ruled && t.campaign == nil && !s.parts && s.world.words == nil && !s.world.scheme.Fold && counter == nil
}

// perform does a run: as one, or in tasks whose mapping is then loaded. Once the tasks are done it loads
// that mapping again.
func (s *sequence) perform(t *turn, cfg pipeline.Config) (*pipeline.Result, error) {
	ctx := context.Background()
	if !t.tasks || cfg.DryRun {
		return pipeline.Run(ctx, cfg)
	}
	result := &pipeline.Result{Out: cfg.Out}
	if m, _, err := manifest.ReadDir(cfg.Out); err == nil {
		result.Counts, result.Reasons = sink.Counts(m.Counts), m.Reasons
	} else if run, err := s.stages(cfg); err != nil {
		if run != nil {
			result.Counts, result.Reasons = sink.Counts(run.Counts), run.Reasons
		}
		return result, err
	} else {
		result.Counts, result.Reasons = sink.Counts(run.Counts), run.Reasons
	}
	done, err := pipeline.Load(ctx, pipeline.LoadConfig{Dir: cfg.Out, Store: cfg.Store, Workers: cfg.Workers})
	result.RunID, result.Resumed, result.Repeated, result.LinksCreated = done.RunID, done.Resumed, done.Repeated, result.Counts.Created
	return result, err
}

// stages does all tasks of a run.
func (s *sequence) stages(cfg pipeline.Config) (*manifest.Manifest, error) {
	ctx := context.Background()
	var links []string
	for _, workspace := range []string{"demo", "red"} {
		if name := s.exportTo(workspace); name != "" {
			links = append(links, name)
		}
	}
	cfg.Store, cfg.ReportOrder = nil, report.SortOrder
	job, err := pipeline.PlanStages(ctx, cfg, links, int64(rapid.SampledFrom([]int{3, 100}).Draw(s.rt, "shard")))
	if err != nil {
		s.fail("plan: %v", err)
	}
	must(s.t, err)
	for n := range job.MapTasks() {
		must(s.t, job.Map(ctx, n))
	}
	for n := range job.Shards() {
		must(s.t, job.Reduce(ctx, n))
	}
	must(s.t, job.Settle(ctx))
	amended, err := job.Amended()
	must(s.t, err)
	for _, n := range amended {
		must(s.t, job.Apply(ctx, n))
	}
	run, err := pipeline.CommitStages(ctx, job)
	if run == nil {
		return nil, err
	}
	return run.Manifest, err
}

// exportTo exports the links of a workspace that has rows of the turn; "": there are none, or they are not of use.
func (s *sequence) exportTo(workspace string) string {
	name := "links-" + workspace + ".csv"
	f, err := os.Create(name)
	must(s.t, err)
	var told manifest.Links
	must(s.t, errors.Join(pipeline.ExportLinks(context.Background(), s.store, workspace, &told, func(columns []string) report.Export { return report.NewCSVExport(f, columns) }), f.Close()))
	if told.Rows == 0 || told.Workspaces[0].Rules {
		return ""
	}
	f, err = os.Create(manifest.LinksNameOf(name))
	must(s.t, err)
	must(s.t, errors.Join(manifest.WriteLinks(f, &told), f.Close()))
	return name
}

// mapping returns the mapping in a directory, put together if it is in parts.
func (s *sequence) mapping(dir string) string {
	m, _, err := manifest.ReadDir(dir)
	must(s.t, err)
	_, parts := m.Reports()
	if parts == nil {
		return read(s.t, filepath.Join(dir, "mapping.csv"))
	}
	var all strings.Builder
	for i, part := range parts {
		text := read(s.t, filepath.Join(dir, part))
		if i > 0 {
			_, text, _ = strings.Cut(text, "\n")
		}
		all.WriteString(text)
	}
	return all.String()
}
