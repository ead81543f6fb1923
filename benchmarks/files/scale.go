package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/linkforge/bulk/benchmarks/harness"
)

const (
	// The time a row, less that of writing the bytes, may grow so much from any
	// size to any larger one.
	growthLimit = 1.3
	// The peak memory may be so much of the bound.
	overshoot = 1.15

	largeRounds = 2 // at most, of what takes minutes; of 3e7 rows twice as many
)

// scale measures how the time a row grows with the rows, from a pipe and within
// 1 GiB.
func (b *bench) scale(ctx context.Context) error {
	sizes := []int64{100_000, 1_000_000, 10_000_000}
	section := harness.Section{
		Title: "Rows from 100k to 10M within 1 GiB",
		Note: "`generate | bulk run - --memory 1GiB`, no store. After each run dd writes as many zeros to the disk as the run wrote to its folder; " +
			"the aim is the growth of the time a row less that of dd, from any size to any larger one.",
	}
	var groups []harness.Group
	for _, rows := range sizes {
		groups = append(groups, b.sized(rows))
	}
	samples, err := b.Section(ctx, section, b.Count, groups...)
	if err != nil {
		return err
	}
	if b.Large {
		large := int64(100_000_000)
		sizes = append(sizes, large)
		more, err := b.Section(ctx, harness.Section{Title: "100M rows within 1 GiB", Note: "Continues the section above."}, min(b.Count, largeRounds), b.sized(large))
		if err != nil {
			return err
		}
		samples = append(samples, more...)
	}
	b.growth(samples, sizes)
	return nil
}

// growth adds the aims of scale.
func (b *bench) growth(samples []harness.Sample, sizes []int64) {
	var net []float64
	none := math.Inf(-1)
	growth := none
	var text string
	for _, rows := range sizes {
		n := harness.MedianOf(samples, bulkOf(rows), harness.Sample.Total) - harness.MedianOf(samples, ddOf(rows), harness.Sample.Total)
		n *= 1e9 / float64(rows)
		text += fmt.Sprintf("%5s rows: %6.0f ns/row more than dd\n", size(rows), n)
		for _, smaller := range net {
			if smaller > 0 {
				growth = max(growth, n/smaller)
			}
		}
		net = append(net, n)
		b.Aim(harness.Aim{Name: bulkOf(rows) + ", peak RSS", Unit: "MiB", Limit: overshoot * 1024,
			Value: harness.MedianOf(samples, bulkOf(rows), rss)})
	}
	if growth > none {
		b.Aim(harness.Aim{Name: "growth of the time a row less dd's", Unit: "×", Limit: growthLimit, Value: growth})
	}
	b.Result.Sections[len(b.Result.Sections)-1].Text = strings.TrimRight(text, "\n")
}

// rss is the peak of the memory in MiB.
func rss(s harness.Sample) float64 { return float64(s.RSS) / (1 << 20) }

func bulkOf(rows int64) string { return "bulk, " + size(rows) + " rows" }
func ddOf(rows int64) string   { return "dd, for " + size(rows) + " rows" }

// sized is a run over so many rows, and dd writing as many bytes.
func (b *bench) sized(rows int64) harness.Group {
	run := b.dryRun(b.Bulk, bulkOf(rows), rows, "-", "--memory", "1GiB", "--tmp", b.Work, "--no-carry")
	inner := run.Command
	run.Command = func() harness.Command {
		c := inner()
		c.Feed = []string{b.Path("generate"), "-rows", strconv.FormatInt(rows, 10), "-rejects", "0"}
		return c
	}
	out, zeros := b.Path(bulkOf(rows)+".bulk"), b.Path("zeros")
	var bytes int64
	done := run.Done
	run.Done = func(ctx context.Context, s *harness.Sample) error {
		err := done(ctx, s)
		bytes = s.Bytes
		return err
	}
	dd := harness.Step{
		Name: ddOf(rows), Rows: rows, Prepare: harness.Remove(out, zeros),
		Command: func() harness.Command {
			return harness.Command{Dir: b.Work, Args: []string{"dd", "if=/dev/zero", "of=" + zeros, "bs=1M",
				"count=" + strconv.FormatInt(bytes, 10), "iflag=count_bytes", "conv=fsync", "status=none"}}
		},
		Done: func(_ context.Context, s *harness.Sample) error {
			s.Bytes, s.FsyncInside = bytes, true
			return os.Remove(zeros)
		},
	}
	return harness.Group{run, dd}
}

// memory measures ten times the rows in little memory and in much.
func (b *bench) memory(ctx context.Context) error {
	if !b.Large {
		fmt.Fprintln(b.Out, "\nlittle memory against much: only with BENCH_LARGE=1")
		return nil
	}
	rows := 10 * b.Rows
	if err := b.Generate(ctx, "large.csv", "-rows", strconv.FormatInt(rows, 10), "-rejects", "0"); err != nil {
		return err
	}
	defer os.Remove(b.Path("large.csv"))
	const little, much = "512MiB", "16GiB"
	run := func(memory string) harness.Group {
		return harness.Group{b.dryRun(b.Bulk, memory, rows, "large.csv", "--memory", memory, "--tmp", b.Work)}
	}
	samples, err := b.Section(ctx, harness.Section{
		Title: fmt.Sprintf("%s rows within %s and within %s", size(rows), little, much), Note: "CSV to CSV, no store; the mappings are compared.", Reference: much,
	}, min(b.Count, 2*largeRounds), run(much), run(little))
	if err == nil {
		err = sameMapping(samples, little, much)
	}
	if err != nil {
		return err
	}
	b.Aim(harness.Aim{Name: little + " / " + much, Unit: "×", Limit: 1.15, Value: harness.Ratio(samples, little, much, harness.Sample.Total)},
		harness.Aim{Name: little + ", peak RSS", Unit: "MiB", Limit: 600, Value: harness.MedianOf(samples, little, rss)})
	return nil
}

// alphagov measures real old URLs, if the data set lies beside the checkout.
func (b *bench) alphagov(ctx context.Context) error {
	const name = "alphagov_mappings.csv.gz"
	set := filepath.Join(b.Root, "..", "shared", "data", name)
	_, err := os.Stat(set)
	if os.IsNotExist(err) {
		fmt.Fprintf(b.Out, "\n%s is not beside the checkout: skipped\n", name)
		return nil
	}
	if err == nil {
		err = os.Symlink(set, b.Path(name))
	}
	if err != nil {
		return err
	}
	accept := func(s harness.Step) harness.Group {
		inner := s.Command
		s.Command = func() harness.Command { c := inner(); c.Accept = rejected; return c }
		return harness.Group{s}
	}
	_, err = b.Section(ctx, harness.Section{Title: name + " by old_url", Note: "Real URLs, compressed with gzip; some are rejected."}, b.Count,
		accept(b.dryRun(b.Bulk, "bulk, no store", 0, name, "--url-column", "old_url")),
		accept(b.stored(b.Bulk, "bulk, new SQLite file", 0, name, "--url-column", "old_url")))
	return err
}

// rejected is the exit code of a run that rejected rows.
const rejected = 3
