package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/linkforge/bulk/benchmarks/harness"
)

// aimSeconds is the aim for 3 million rows from CSV to CSV, in seconds.
const aimSeconds = 1.1

const csvNote = "%d rows of about 80 bytes, 10 %% duplicates, 10 %% dirty, to a mapping in the order of the codes; no store; %d workers or threads. " +
	"bulk includes all digests. DuckDB: `%s`, by way of Node.js, whose start is in its time. naive: net/url, math/big, maps, encoding/csv in one goroutine; it writes the same mapping, which is checked. dd copies bulk's mapping."

// csv measures CSV to a sorted mapping as CSV.
func (b *bench) csv(ctx context.Context) error {
	if err := b.list(ctx, "list.csv", "csv"); err != nil {
		return err
	}
	step := func(program, name string) harness.Step { return b.dryRun(program, name, b.Rows, "list.csv") }
	groups := append([]harness.Group{{step(b.Bulk, "bulk")}}, b.old(step)...)
	sql := "COPY (SELECT url, sha256(url || '|demo') AS code FROM read_csv('list.csv', header = true, columns = {'url': 'VARCHAR'}) ORDER BY code) TO 'duck.csv' (FORMAT csv, HEADER)"
	if b.duck != nil {
		groups = append(groups, b.peer("DuckDB", "duck.csv", b.duck.Args(workers, sql)...))
	}
	const naive = "naive Go"
	mapping := b.peer(naive, "naive.csv", b.Path("naive"), "list.csv", "demo", "naive.csv")
	written := mapping[0].Done
	mapping[0].Done = func(ctx context.Context, s *harness.Sample) error {
		return errors.Join(written(ctx, s), s.Sum(b.Path("naive.csv")))
	}
	groups = append(groups, mapping, b.floor("bulk", "csv"))
	samples, err := b.Section(ctx, harness.Section{
		Title: fmt.Sprintf("CSV to sorted mapping, %s rows", size(b.Rows)), Note: fmt.Sprintf(csvNote, b.Rows, workers, sql), Reference: "bulk",
	}, b.Count, groups...)
	if err == nil {
		err = sameMapping(samples, "bulk", naive)
	}
	if err != nil {
		return err
	}
	b.Aim(harness.Aim{Name: "bulk, per 3 M rows", Unit: "s", Limit: aimSeconds,
		Value: harness.MedianOf(samples, "bulk", harness.Sample.Work) * 3e6 / float64(b.Rows)})
	if b.duck != nil {
		b.Aim(harness.Aim{Name: "bulk / DuckDB", Unit: "×", Limit: aimSeconds / 3.2, Value: harness.Ratio(samples, "bulk", "DuckDB", harness.Sample.Work)})
	}
	return nil
}

// sameMapping fails if the first mappings of two steps differ.
func sameMapping(samples []harness.Sample, a, b string) error {
	if harness.Of(samples, a)[0].Digest != harness.Of(samples, b)[0].Digest {
		return fmt.Errorf("%s and %s wrote different mappings", a, b)
	}
	return nil
}

// parquet measures Parquet to a sorted mapping as Parquet.
func (b *bench) parquet(ctx context.Context) error {
	if err := b.list(ctx, "list.parquet", "parquet"); err != nil {
		return err
	}
	step := func(program, name string) harness.Step {
		return b.dryRun(program, name, b.Rows, "list.parquet", "--report-format", "parquet")
	}
	groups := append([]harness.Group{{step(b.Bulk, "bulk")}}, b.old(step)...)
	if b.duck != nil {
		sql := "COPY (SELECT url, sha256(url || '|demo') AS code FROM read_parquet('list.parquet') ORDER BY code) TO 'duck.parquet' (FORMAT parquet)"
		groups = append(groups, b.peer("DuckDB", "duck.parquet", b.duck.Args(workers, sql)...))
	}
	samples, err := b.Section(ctx, harness.Section{
		Title:     fmt.Sprintf("Parquet to sorted mapping in Parquet, %s rows", size(b.Rows)),
		Note:      "The same rows. The columns of bulk's mapping are nine, DuckDB's two.",
		Reference: "bulk",
	}, b.Count, append(groups, b.floor("bulk", "parquet"))...)
	if err == nil && b.duck != nil {
		b.Aim(harness.Aim{Name: "bulk / DuckDB", Unit: "×", Limit: 1, Value: harness.Ratio(samples, "bulk", "DuckDB", harness.Sample.Work)})
	}
	return err
}

// floor copies the mapping that a step of that name left.
func (b *bench) floor(name, format string) harness.Group {
	in := "if=" + b.Path(name+".bulk/mapping."+format)
	return b.peer("dd of the same bytes", "copy", "dd", in, "of=copy", "bs=1M", "status=none")
}

// size writes a number of rows as 3M, 300k or 12345.
func size(rows int64) string {
	switch {
	case rows%1_000_000 == 0:
		return fmt.Sprintf("%dM", rows/1_000_000)
	case rows%1000 == 0:
		return fmt.Sprintf("%dk", rows/1000)
	}
	return fmt.Sprint(rows)
}
