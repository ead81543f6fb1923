//go:build linux || darwin

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/linkforge/bulk/benchmarks/gen"
	"github.com/linkforge/bulk/benchmarks/harness"
)

const (
	few = 10_000     // rows that the last run adds
	out = "out.bulk" // output directory of all runs

	rulesList  = "rules.csv"  // the first list, with an expiry and an owner in each row
	legacyList = "legacy.csv" // rows with codes of their own, of which 5 % repeat a URL
	keyFile    = "scheme.key" // the secret of the schemes

	pagesList    = "pages.csv"    // URLs of a campaign
	variantsList = "variants.csv" // what it makes of them
)

// Names of the steps.
const (
	inputOrder = `\copy, input order, indexed table`
	floor      = "floor: one transaction, COPY binary FREEZE"
	first      = "bulk run, empty database"
	kept       = "bulk run --legacy keep, empty database"
	firstSmall = "bulk run, empty database, 512 MiB"
	keptSmall  = "bulk run --legacy keep, empty database, 512 MiB"
	plain      = "bulk run, the list of --rules, empty database"
	plainAgain = "bulk run, the list of --rules, all existing in the database of one run"
	ruled      = "bulk run --rules, empty database"
	ruledAgain = "bulk run --rules, all existing in the database of one run"
	firstAgain = "bulk run, all existing in the database of one run"
	second     = "bulk run, as many new rows again"
	secondCopy = `\copy, code order, as many new rows again`
	again      = "bulk run, all existing"
	little     = "bulk run, 10,000 new rows"
	variants   = "bulk run, the variants of --expand, empty database"
	expanded   = "bulk run --expand, empty database"
	withLoader = "pgloader, input order, indexed table"
)

// schemes are those that are compared with the default, with how many times as long they may take.
var schemes = []struct {
	name  string
	limit float64
}{{"keyed-base62", 1.2}, {"counter-base62", 1.6}, {"counter-permuted", 1.6}}

// ofScheme is the name of the step of a scheme; small: with little memory.
func ofScheme(name string, small bool) string {
	step := "bulk run --scheme " + name + ", empty database"
	if small {
		step += ", 512 MiB"
	}
	return step
}

// groups returns the groups of steps of the parts to measure.
func (b *bench) groups() (groups []harness.Group) {
	rows := b.Rows
	if b.Has("copy") {
		groups = append(groups, harness.Group{b.copy(inputOrder, "first.input.txt", rows, b.indexed)})
	}
	if b.Has("floor") {
		groups = append(groups, harness.Group{b.floor()})
	}
	if b.Has("first") || b.Has("legacy") || b.Has("rules") || b.Has("schemes") {
		groups = append(groups, b.Both(func(program, suffix string) harness.Group {
			group := harness.Group{b.bulk(program, first+suffix, "first.csv", rows, rows, b.empty)}
			if b.Has("rules") {
				group = append(group, b.bulk(program, firstAgain+suffix, "first.csv", rows, rows, b.vacuum, "--new-run"))
			}
			return group
		})...)
	}
	if b.Has("rules") {
		groups = append(groups, harness.Group{
			b.bulk(b.Bulk, plain, rulesList, rows, rows, b.empty),
			b.bulk(b.Bulk, plainAgain, rulesList, rows, rows, b.vacuum, "--new-run"),
			b.bulk(b.Bulk, ruled, rulesList, rows, rows, b.empty, "--rules"),
			b.bulk(b.Bulk, ruledAgain, rulesList, rows, rows, b.vacuum, "--rules", "--new-run"),
		})
	}
	small := []string{"--memory", "512MiB"}
	if b.Has("schemes") {
		var group harness.Group
		if !b.Has("legacy") {
			group = append(group, b.bulk(b.Bulk, firstSmall, "first.csv", rows, rows, b.empty, small...))
		}
		for _, s := range schemes {
			flags := []string{"--scheme", s.name, "--scheme-key-file", keyFile}
			group = append(group, b.bulk(b.Bulk, ofScheme(s.name, false), "first.csv", rows, rows, b.empty, flags...),
				b.bulk(b.Bulk, ofScheme(s.name, true), "first.csv", rows, rows, b.empty, append(flags, small...)...))
		}
		groups = append(groups, group)
	}
	if b.Has("legacy") {
		keep := []string{"--legacy", "keep"}
		groups = append(groups, harness.Group{
			b.bulk(b.Bulk, kept, legacyList, rows, rows, b.empty, keep...),
			b.bulk(b.Bulk, firstSmall, "first.csv", rows, rows, b.empty, small...),
			b.bulk(b.Bulk, keptSmall, legacyList, rows, rows, b.empty, append(small, keep...)...),
		})
	}
	if b.Has("campaign") {
		links := rows / gen.Variants * gen.Variants
		var flags []string
		for _, p := range gen.Parameters {
			flags = append(flags, "--expand", p)
		}
		groups = append(groups, harness.Group{
			b.bulk(b.Bulk, variants, variantsList, links, links, b.empty),
			b.bulk(b.Bulk, expanded, pagesList, links, links, b.empty, flags...),
			b.bulk(b.Bulk, variants+", 512 MiB", variantsList, links, links, b.empty, small...),
			b.bulk(b.Bulk, expanded+", 512 MiB", pagesList, links, links, b.empty, append(slices.Clone(small), flags...)...),
		})
	}
	if b.Has("more") {
		groups = append(groups, b.Both(func(program, suffix string) harness.Group {
			return harness.Group{
				b.bulk(program, second+suffix, "second.csv", rows, 2*rows, b.fromBase),
				b.bulk(program, again+suffix, "second.csv", rows, 2*rows, b.vacuum),
				b.bulk(program, little+suffix, "few.csv", few, 2*rows+few, nil),
			}
		})...)
		groups = append(groups, harness.Group{b.copy(secondCopy, "second.code.txt", 2*rows, b.fromBase)})
	}
	if b.Has("pgloader") {
		if path, err := exec.LookPath("pgloader"); err == nil {
			groups = append(groups, harness.Group{b.loader(path)})
		} else {
			fmt.Println("pgloader is not measured:", err)
		}
	}
	return groups
}

// step completes a step with the checkpoint before it and, in the first round, the check
// that the table then holds total links of a list. prepare may be nil.
func (b *bench) step(name, list string, rows, total int64, prepare func(context.Context) error, args ...string) harness.Step {
	return harness.Step{
		Name: name, Rows: rows, Command: harness.Command{Args: args},
		Prepare: func(ctx context.Context) error {
			err := os.RemoveAll(out)
			if err == nil && prepare != nil {
				err = prepare(ctx)
			}
			return errors.Join(err, b.server.ExecContext(ctx, "postgres", "CHECKPOINT"))
		},
		Done: func(ctx context.Context, s *harness.Sample) error {
			s.FsyncInside = true
			if s.Round > 1 {
				return nil
			}
			return b.check(ctx, list, total)
		},
	}
}

// copy is psql loading a file of finished rows.
func (b *bench) copy(name, file string, total int64, prepare func(context.Context) error) harness.Step {
	return b.step(name, "", b.Rows, total, prepare, b.psql(database, "-c", `\copy links from '`+file+`'`)...)
}

// floor is the least that loading can take: a new table, and its indexes at the end.
func (b *bench) floor() harness.Step {
	prepare := func(ctx context.Context) error {
		if err := b.empty(ctx); err != nil {
			return err
		}
		return os.WriteFile("floor.sql", []byte(`BEGIN;
SET LOCAL maintenance_work_mem = '512MB';
SET LOCAL max_parallel_maintenance_workers = 4;
CREATE TABLE links (
  workspace_id text COLLATE "C" NOT NULL, short_code text COLLATE "C" NOT NULL, url_key uuid NOT NULL,
  canonical_url text NOT NULL, original_url text, run_id integer NOT NULL,
  created_at timestamptz NOT NULL, updated_at timestamptz NOT NULL);
COPY links FROM '`+b.Path("first.code.bin")+`' (FORMAT binary, FREEZE);
ALTER TABLE links ADD PRIMARY KEY (workspace_id, short_code);
ALTER TABLE links ADD UNIQUE (url_key);
COMMIT;
`), 0o644)
	}
	return b.step(floor, "", b.Rows, b.Rows, prepare, b.psql(database, "-f", "floor.sql")...)
}

// bulk is a run of a bulk over a list. prepare may be nil.
func (b *bench) bulk(program, name, list string, rows, total int64, prepare func(context.Context) error, flags ...string) harness.Step {
	same := "" // all other lists leave the same links, if as many
	switch list {
	case legacyList:
		same = list
	case pagesList, variantsList:
		same = variantsList
	}
	if i := slices.Index(flags, "--scheme"); i >= 0 {
		same = flags[i+1]
	}
	args := append([]string{program, "run", list, "--workspace", "demo", "--db", b.url(database), "--out", out, "--as-of", harness.AsOf}, flags...)
	step := b.step(name, same, rows, total, prepare, args...)
	done := step.Done
	step.Done = func(ctx context.Context, s *harness.Sample) error {
		return errors.Join(s.BulkOutput(out), done(ctx, s))
	}
	return step
}

// loader is pgloader loading the rows in the order of the input.
func (b *bench) loader(path string) harness.Step {
	prepare := func(ctx context.Context) error {
		if err := b.indexed(ctx); err != nil {
			return err
		}
		return os.WriteFile("pgloader.load", fmt.Appendf(nil, `LOAD COPY FROM '%s'
  INTO postgresql://postgres@unix:%s:%d/%s
  TARGET TABLE public.links
  WITH delimiter '\t', null '\N';
`, b.Path("first.input.txt"), b.server.Socket(), b.server.Port(), database), 0o644)
	}
	return b.step(withLoader, "", b.Rows, b.Rows, prepare, path, "--quiet", "--on-error-stop", "--root-dir", "pgloader", "pgloader.load")
}

// aims compares the steps that were measured with what they should take.
func (b *bench) aims(samples []harness.Sample) {
	ratio := func(step, reference string, limit float64) {
		b.Aim(harness.Aim{Name: step + " / " + reference, Unit: "×", Limit: limit, Value: harness.Ratio(samples, step, reference, harness.Sample.Total)})
	}
	ratio(first, floor, 1.3)
	ratio(first, inputOrder, 0.2)
	ratio(kept, first, 1.5)
	ratio(keptSmall, firstSmall, 1.5)
	ratio(ruled, plain, 1.3)
	ratio(ruledAgain, plainAgain, 1.3)
	ratio(ruled, first, 1.3)
	ratio(ruledAgain, firstAgain, 1.3)
	for _, s := range schemes {
		ratio(ofScheme(s.name, false), first, s.limit)
		ratio(ofScheme(s.name, true), firstSmall, s.limit)
	}
	ratio(expanded, variants, 1.3)
	ratio(expanded+", 512 MiB", variants+", 512 MiB", 1.3)
	ratio(second, secondCopy, 1.3)
	ratio(again, floor, 4/3.8)
	b.Aim(harness.Aim{Name: little, Unit: "s", Limit: 1, Value: harness.MedianOf(samples, little, harness.Sample.Total)})
}
