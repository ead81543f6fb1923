//go:build linux || darwin

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/linkforge/bulk/benchmarks/harness"
)

// few is how many rows step (7) adds.
const few = 10_000

// settling is what a process of the server may take to end after its client.
const settling = 100 * time.Millisecond

// Names of the steps.
const (
	inputOrder = `(1) \copy, input order, indexed table`
	codeOrder  = `(2) \copy, code order, indexed table`
	floor      = `(3) floor: one transaction, COPY binary FREEZE`
	floorPsql  = `(3) the same by \copy`
	first      = "(4) bulk run, empty database"
	second     = "(5) bulk run, as many new rows again"
	secondCopy = `(5) \copy, code order, as many new rows again`
	again      = "(6) bulk run, all existing"
	little     = "(7) bulk run, 10,000 new rows"
	withLoader = "pgloader, input order, indexed table"
)

// groups lists the steps of a round.
func (b *bench) groups() (groups []harness.Group) {
	rows := b.Rows
	bulk := func(program, suffix string) []harness.Group {
		return []harness.Group{
			{b.bulk(program, first+suffix, "first.csv", rows, rows, b.empty)},
			{
				b.bulk(program, second+suffix, "second.csv", rows, 2*rows, b.fromBase),
				b.bulk(program, again+suffix, "second.csv", rows, 2*rows, b.vacuum),
				b.bulk(program, little+suffix, "few.csv", few, 2*rows+few, nil),
			},
		}
	}
	all := append([]harness.Group{
		{b.copy(inputOrder, "first.input.txt", rows, b.indexed)},
		{b.copy(codeOrder, "first.code.txt", rows, b.indexed)},
		{b.floor(floor, "COPY links FROM '"+b.Path("first.code.bin")+"' (FORMAT binary, FREEZE);\n")},
		{b.floor(floorPsql, `\copy links from '`+b.Path("first.code.bin")+`' (format binary, freeze)`+"\n")},
	}, bulk(b.Bulk, "")...)
	all = append(all, harness.Group{b.copy(secondCopy, "second.code.txt", 2*rows, b.fromBase)})
	if b.Old != "" {
		all = append(all, bulk(b.Old, " (old)")...)
	}
	if path, err := exec.LookPath("pgloader"); err == nil {
		all = append(all, harness.Group{b.loader(path)})
	} else {
		fmt.Fprintln(b.Out, "pgloader is not installed: not measured")
	}
	for _, g := range all {
		if b.Has(strings.Trim(g[0].Name[:3], "()")) || strings.HasPrefix(g[0].Name, "pgloader") && b.Has("pgloader") {
			groups = append(groups, g)
		}
	}
	return groups
}

// step completes a step: the checkpoint before it, the processor time of the
// server, and that the table holds in the end what it should.
func (b *bench) step(name string, rows, total int64, prepare func(context.Context) error, command harness.Command, done func(*harness.Sample) error) harness.Step {
	var before float64
	return harness.Step{
		Name: name, Rows: rows,
		Prepare: func(ctx context.Context) error {
			if prepare != nil {
				if err := prepare(ctx); err != nil {
					return err
				}
			}
			err := b.server.ExecContext(ctx, "postgres", "CHECKPOINT")
			time.Sleep(settling)
			before = b.serverCPU()
			return err
		},
		Command: func() harness.Command { return command },
		Done: func(ctx context.Context, s *harness.Sample) error {
			s.FsyncInside = true
			if done != nil {
				if err := done(s); err != nil {
					return err
				}
			}
			if s.Stages == nil {
				s.Stages = map[string]float64{}
			}
			time.Sleep(settling)
			s.Stages["server_cpu_seconds"] = b.serverCPU() - before
			if s.Round > 1 {
				return nil
			}
			return b.check(ctx, total)
		},
	}
}

// copy is psql loading a file of finished rows.
func (b *bench) copy(name, file string, total int64, prepare func(context.Context) error) harness.Step {
	command := harness.Command{Args: b.psql(database, "-c", `\copy links from '`+b.Path(file)+`'`)}
	return b.step(name, b.Rows, total, prepare, command, nil)
}

// floor is the least that loading can take: a new table, no index until the end. The
// line that loads comes with its end.
func (b *bench) floor(name, load string) harness.Step {
	script := b.Path("floor.sql")
	prepare := func(ctx context.Context) error {
		if err := b.empty(ctx); err != nil {
			return err
		}
		return os.WriteFile(script, []byte("BEGIN;\nSET LOCAL maintenance_work_mem = '512MB';\nSET LOCAL max_parallel_maintenance_workers = 4;\n"+
			table+load+constraints+"COMMIT;\n"), 0o644)
	}
	return b.step(name, b.Rows, b.Rows, prepare, harness.Command{Args: b.psql(database, "-f", script)}, nil)
}

// bulk is a run of a bulk over a list.
func (b *bench) bulk(program, name, list string, rows, total int64, prepare func(context.Context) error) harness.Step {
	out := b.Path("out.bulk")
	args := []string{program, "run", list, "--workspace", "demo", "--db", b.url(database), "--out", out, "--as-of", harness.AsOf, "--log-format", "text"}
	return b.step(name, rows, total, func(ctx context.Context) error {
		if err := harness.Remove(out)(ctx); err != nil || prepare == nil {
			return err
		}
		return prepare(ctx)
	}, harness.Command{Args: args, Dir: b.Work}, func(s *harness.Sample) error { return s.BulkOutput(out) })
}

// loader is pgloader loading the rows in the order of the input.
func (b *bench) loader(path string) harness.Step {
	script := b.Path("pgloader.load")
	prepare := func(ctx context.Context) error {
		if err := b.indexed(ctx); err != nil {
			return err
		}
		return os.WriteFile(script, fmt.Appendf(nil, `LOAD COPY FROM '%s'
  INTO postgresql://postgres@unix:%s:%d/%s
  TARGET TABLE public.links
  WITH delimiter '\t', null '\N';
`, b.Path("first.input.txt"), b.server.Socket(), b.server.Port(), database), 0o644)
	}
	args := []string{path, "--quiet", "--on-error-stop", "--root-dir", b.Path("pgloader"), script}
	return b.step(withLoader, b.Rows, b.Rows, prepare, harness.Command{Args: args, Dir: b.Work}, nil)
}

// aims compares the steps that were measured with what they should take.
func (b *bench) aims(samples []harness.Sample) {
	ratio := func(step, reference string, limit float64) {
		if v := harness.Ratio(samples, step, reference, harness.Sample.Total); v == v {
			b.Aim(harness.Aim{Name: step + " / " + reference, Unit: "×", Value: v, Limit: limit})
		}
	}
	ratio(first, floor, 1.3)
	ratio(first, inputOrder, 0.2)
	ratio(second, secondCopy, 1.3)
	ratio(again, floor, 4/3.8)
	if v := harness.MedianOf(samples, little, harness.Sample.Total); v == v {
		b.Aim(harness.Aim{Name: little, Unit: "s", Value: v, Limit: 1})
	}
}
