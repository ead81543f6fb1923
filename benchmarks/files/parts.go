package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/linkforge/bulk/benchmarks/gen"
	"github.com/linkforge/bulk/benchmarks/harness"
)

// aimSeconds is the aim for 3 million rows from CSV to CSV, in seconds.
const aimSeconds = 1.1

const csvNote = "Rows of about 80 bytes, 10 %% duplicates, 10 %% dirty, to a mapping in the order of the codes; no store; %d workers or threads. " +
	"bulk includes all digests. DuckDB: `%s`, by way of Node.js, whose start is in its time. naive: net/url, math/big, maps, encoding/csv in one goroutine; " +
	"its mapping must be that of bulk. dd copies bulk's mapping; diff compares it with the copy."

// csv measures CSV to a sorted mapping as CSV, and the checks of the run.
func (b *bench) csv(ctx context.Context) error {
	if err := b.Generate(ctx, "list.csv", b.Rows); err != nil {
		return err
	}
	const naive = "naive Go"
	peer := b.peer(naive, "naive.csv", b.Path("naive"), "list.csv", "demo", "naive.csv")
	written := peer.Done
	peer.Done = func(ctx context.Context, s *harness.Sample) error {
		return errors.Join(written(ctx, s), s.Sum("naive.csv"))
	}
	sql := "COPY (SELECT url, sha256(url || '|demo') AS code FROM read_csv('list.csv', header = true, columns = {'url': 'VARCHAR'}) ORDER BY code) TO 'duck.csv' (FORMAT csv, HEADER)"
	runs := b.Both(func(program, suffix string) harness.Group {
		return harness.Group{b.dryRun(program, "bulk"+suffix, "list.csv")}
	})
	checks := b.Both(func(program, suffix string) harness.Group {
		out := dryOut("bulk" + suffix)
		return harness.Group{
			b.reader(program, "verify"+suffix, "verify", out),
			b.reader(program, "verify --inputs"+suffix, "verify", out, "--inputs", "list.csv"),
			b.reader(program, "diff"+suffix, "diff", out+"/mapping.csv", "copy.csv"),
		}
	})
	samples, err := b.Section(ctx, harness.Section{
		Title: fmt.Sprintf("CSV to sorted mapping, %d rows", b.Rows), Note: fmt.Sprintf(csvNote, workers, sql), Reference: "bulk",
	}, slices.Concat(runs, []harness.Group{b.dd("csv")}, checks, b.sql("duck.csv", sql), []harness.Group{{peer}})...)
	if err == nil {
		err = sameMapping(samples, "bulk", naive)
	}
	if err != nil {
		return err
	}
	b.Aim(harness.Aim{Name: "bulk, per 3 M rows", Unit: "s", Limit: aimSeconds, Value: harness.MedianOf(samples, "bulk", harness.Sample.Work) * 3e6 / float64(b.Rows)},
		harness.Aim{Name: "bulk / DuckDB", Unit: "×", Limit: aimSeconds / 3.2, Value: harness.Ratio(samples, "bulk", "DuckDB", harness.Sample.Work)},
		harness.Aim{Name: "verify / bulk", Unit: "×", Limit: 1, Value: harness.Ratio(samples, "verify", "bulk", harness.Sample.Total)})
	return nil
}

// sameMapping fails if the mappings of two steps differ.
func sameMapping(samples []harness.Sample, a, b string) error {
	if harness.Of(samples, a)[0].Digest != harness.Of(samples, b)[0].Digest {
		return fmt.Errorf("%s and %s wrote different mappings", a, b)
	}
	return nil
}

// parquet measures Parquet to a sorted mapping as Parquet.
func (b *bench) parquet(ctx context.Context) error {
	if err := b.Generate(ctx, "list.parquet", b.Rows, "-format", "parquet"); err != nil {
		return err
	}
	runs := b.Both(func(program, suffix string) harness.Group {
		return harness.Group{b.dryRun(program, "bulk"+suffix, "list.parquet", "--report-format", "parquet")}
	})
	sql := "COPY (SELECT url, sha256(url || '|demo') AS code FROM read_parquet('list.parquet') ORDER BY code) TO 'duck.parquet' (FORMAT parquet)"
	samples, err := b.Section(ctx, harness.Section{
		Title:     fmt.Sprintf("Parquet to sorted mapping in Parquet, %d rows", b.Rows),
		Note:      "The same rows. bulk's mapping has nine columns, DuckDB's two.",
		Reference: "bulk",
	}, slices.Concat(runs, b.sql("duck.parquet", sql))...)
	if err == nil {
		b.Aim(harness.Aim{Name: "bulk / DuckDB", Unit: "×", Limit: 1, Value: harness.Ratio(samples, "bulk", "DuckDB", harness.Sample.Work)})
	}
	return err
}

// sqlite measures a load into a new SQLite file, and its check.
func (b *bench) sqlite(ctx context.Context) error {
	if err := b.Generate(ctx, "list.csv", b.Rows); err != nil {
		return err
	}
	samples, err := b.Section(ctx, harness.Section{
		Title:     fmt.Sprintf("CSV into a new SQLite file, %d rows", b.Rows),
		Note:      "Mapping and links, both constraints in place at the end. The output includes the database. verify reads all links of the store.",
		Reference: "bulk",
	}, b.Both(func(program, suffix string) harness.Group {
		name := "bulk" + suffix
		db := name + ".db"
		run := b.run(program, name, "list.csv", "--db", "sqlite:"+db)
		prepare, done := run.Prepare, run.Done
		run.Prepare = func(ctx context.Context) error {
			files, err := filepath.Glob(db + "*") // also its journal and lock
			return errors.Join(err, harness.Remove(files...)(ctx), prepare(ctx))
		}
		run.Done = func(ctx context.Context, s *harness.Sample) error {
			info, err := os.Stat(db)
			if err != nil {
				return err
			}
			s.Bytes = info.Size()
			return done(ctx, s)
		}
		return harness.Group{run, b.reader(program, "verify --db"+suffix, "verify", name+".bulk", "--db", "sqlite:"+db)}
	})...)
	if err == nil {
		b.Aim(harness.Aim{Name: "verify --db / bulk", Unit: "×", Limit: 1, Value: harness.Ratio(samples, "verify --db", "bulk", harness.Sample.Total)})
	}
	return err
}

// memory measures a run in little memory and in much.
func (b *bench) memory(ctx context.Context) error {
	if err := b.Generate(ctx, "list.csv", b.Rows); err != nil {
		return err
	}
	const little, much = "512MiB", "16GiB"
	within := func(memory string) []harness.Group {
		return b.Both(func(program, suffix string) harness.Group {
			return harness.Group{b.dryRun(program, memory+suffix, "list.csv", "--memory", memory, "--tmp", ".")}
		})
	}
	samples, err := b.Section(ctx, harness.Section{
		Title: fmt.Sprintf("%d rows within %s and within %s", b.Rows, little, much), Note: "CSV to CSV, no store; the mappings must be equal.", Reference: much,
	}, append(within(much), within(little)...)...)
	if err == nil {
		err = sameMapping(samples, little, much)
	}
	if err == nil {
		b.Aim(harness.Aim{Name: little + " / " + much, Unit: "×", Limit: 1.15, Value: harness.Ratio(samples, little, much, harness.Sample.Total)},
			harness.Aim{Name: little + ", peak RSS", Unit: "MiB", Limit: 600, Value: harness.MedianOf(samples, little, harness.Sample.MiB)})
	}
	return err
}

// campaign measures a campaign beside a plain run over its variants, in little memory and in much.
func (b *bench) campaign(ctx context.Context) error {
	urls := b.Rows / gen.Variants
	if err := errors.Join(b.Generate(ctx, "pages.csv", urls, "-duplicates", "0"), b.Generate(ctx, "variants.csv", urls, "-duplicates", "0", "-expanded")); err != nil {
		return err
	}
	var flags []string
	for _, p := range gen.Parameters {
		flags = append(flags, "--expand", p)
	}
	const plain, expanded, little = "plain run of the variants", "campaign", ", 512MiB"
	small := []string{"--memory", "512MiB", "--tmp", "."}
	samples, err := b.Section(ctx, harness.Section{
		Title: fmt.Sprintf("Campaign: %d URLs × %d variants", urls, gen.Variants),
		Note:  "CSV to CSV, no store. The plain run reads the URLs of the variants. The mapping of the campaign has six columns more.", Reference: plain,
	}, b.Both(func(program, suffix string) harness.Group {
		return harness.Group{
			b.dryRun(program, plain+suffix, "variants.csv"),
			b.dryRun(program, expanded+suffix, "pages.csv", flags...),
			b.dryRun(program, plain+little+suffix, "variants.csv", small...),
			b.dryRun(program, expanded+little+suffix, "pages.csv", slices.Concat(small, flags)...),
		}
	})...)
	if err == nil {
		b.Aim(harness.Aim{Name: expanded + " / " + plain, Unit: "×", Limit: 1.3, Value: harness.Ratio(samples, expanded, plain, harness.Sample.Total)},
			harness.Aim{Name: expanded + " / " + plain + little, Unit: "×", Limit: 1.3, Value: harness.Ratio(samples, expanded+little, plain+little, harness.Sample.Total)})
	}
	return err
}

// pipe measures a run whose input comes from a pipe.
func (b *bench) pipe(ctx context.Context) error {
	samples, err := b.Section(ctx, harness.Section{
		Title: fmt.Sprintf("%d rows from a pipe within 1 GiB", b.Rows), Note: "`generate | bulk run - --memory 1GiB`, no store.",
	}, b.Both(func(program, suffix string) harness.Group {
		step := b.dryRun(program, "bulk"+suffix, "-", "--memory", "1GiB", "--tmp", ".")
		step.Command.Feed = b.Generator(b.Rows)
		return harness.Group{step}
	})...)
	if err == nil {
		b.Aim(harness.Aim{Name: "bulk, peak RSS", Unit: "MiB", Limit: 1.15 * 1024, Value: harness.MedianOf(samples, "bulk", harness.Sample.MiB)})
	}
	return err
}
