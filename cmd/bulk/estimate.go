package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/estimate"
	"github.com/spf13/cobra"
)

func estimateCommand(ui *ui) *cobra.Command {
	var load estimate.Load
	var scheme schemeText
	var asJSON, fold bool
	cmd := &cobra.Command{
		Use:   "estimate --links N",
		Short: "Estimate how many links will collide before any is made",
		Long: `The estimate is for N new links, each with a URL of its own, in one workspace.

A link collides if its first code is taken; it then tries its next code.
  exhausted        all codes of the link are taken: a run would reject it
  effective codes  so many equally likely codes would collide as often: some
                   codes are less likely, as their first character is rarer

Codes of a counter (--scheme counter-base62 or counter-permuted) never collide,
until all 62^7 numbers are used and codes come again. --existing is then the
last number that the store has given out.
  numbers used     by the new links, with those that are skipped
  numbers left     after that, until codes come again
  wraps after      so many links from now on, codes come again
  exhausted        links that find all codes taken

With --blocklist no new code contains a word of that file.
  blocked share    so much of all codes contain a word
  blocked          so many codes, or numbers, are skipped because of a word`,
		Example: `  bulk estimate --links 10000000
  bulk estimate --links 100000 --existing 2000000 --code-length 6 --json
  bulk estimate --links 3000000 --scheme keyed-base62 --blocklist words.txt`,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args:              usageArgs(cobra.NoArgs, "estimate takes flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("links") {
				return usage(errors.New("--links is missing: how many links will be made?"))
			}
			if fold && !scheme.named() {
				scheme.name = codegen.NameBase32
			}
			spec, err := codegen.SpecOf(scheme.name)
			if err != nil {
				return usage(fmt.Errorf("--scheme: %w", err))
			}
			if fold && spec.Alphabet != codegen.Base32Alphabet {
				return usage(fmt.Errorf("--fold-case goes with scheme %s or %s, not %s", codegen.NameBase32, codegen.NameKeyedBase32, spec.Name))
			}
			if load.Scheme, load.CodeLength = spec.Name, cmp.Or(load.CodeLength, spec.Length); !cmd.Flags().Changed("max-retries") || spec.Counts {
				load.MaxRetries = spec.Retries
			}
			if load.Words, err = scheme.words(); err != nil {
				return usage(fmt.Errorf("--blocklist: %w", err))
			}
			if spec.Counts {
				return runNumbers(ui.stdout, load, asJSON)
			}
			return runEstimate(ui.stdout, load, asJSON)
		},
	}
	f := cmd.Flags()
	f.Int64Var(&load.Links, "links", 0, "`N` new links (required)")
	f.Int64Var(&load.Existing, "existing", 0, "the workspace already has `N` links")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	group(f, "Common flags")
	scheme.nameFlag(f)
	f.BoolVar(&fold, "fold-case", false, "the workspace folds case: its codes are in lower case")
	offerSchemes(cmd)
	f.IntVar(&load.CodeLength, "code-length", 0, codeLengthUsage)
	f.IntVar(&load.MaxRetries, "max-retries", 0, retriesUsage)
	scheme.blocklistFlag(f)
	group(f, "Link flags")
	return cmd
}

// runEstimate writes a line for each figure, or one JSON object.
func runEstimate(w io.Writer, load estimate.Load, asJSON bool) error {
	e, err := estimate.Collisions(load)
	if err != nil {
		return usage(err)
	}
	if asJSON {
		return newJSON(w).Encode(struct {
			estimate.Load
			estimate.Figures
		}{load, e})
	}
	_, err = fmt.Fprintf(w, `scheme                %s
links                 %d
existing              %d
code length           %d
max retries           %d
codes                 %.4g
effective codes       %.4g
expected colliding    %.4g
chance of collision   %s
expected exhausted    %.4g
chance of exhausted   %s
next link collides    %s
`, load.Scheme, load.Links, load.Existing, load.CodeLength, load.MaxRetries, e.Codes, e.EffectiveCodes,
		e.Colliding, chance(e.AnyCollision), e.Exhausted, chance(e.AnyExhausted), chance(e.NextCollides))
	return errors.Join(err, writeBlocking(w, &load, e.Blocking))
}

// runNumbers is runEstimate for a scheme that has a counter.
func runNumbers(w io.Writer, load estimate.Load, asJSON bool) error {
	e, err := estimate.Numbers(load)
	if err != nil {
		return usage(err)
	}
	if asJSON {
		return newJSON(w).Encode(struct {
			estimate.Load
			estimate.Counting
		}{load, e})
	}
	wraps := fmt.Sprintf("%.0f links", e.WrapsAfter)
	if e.WrapsAfter < float64(load.Links) {
		wraps += ", before the last of these"
	}
	_, err = fmt.Fprintf(w, `scheme                %s
links                 %d
existing              %d
code length           %d
codes                 %.0f
numbers used          %.0f
numbers left          %.0f
wraps after           %s
expected exhausted    %.0f
`, load.Scheme, load.Links, load.Existing, load.CodeLength, e.Codes, e.Numbers, e.Left, wraps, e.Exhausted)
	return errors.Join(err, writeBlocking(w, &load, e.Blocking))
}

// writeBlocking writes what a blocklist does, if there is one.
func writeBlocking(w io.Writer, load *estimate.Load, b estimate.Blocking) error {
	if load.Words == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, "blocked share         %s\nexpected blocked      %.4g\n", chance(b.BlockedShare), b.Blocked)
	return err
}

// chance writes a probability, as a percentage too unless that is tiny.
func chance(p float64) string {
	if p < 1e-4 {
		return fmt.Sprintf("%.4g", p)
	}
	return fmt.Sprintf("%.4g (%.4g%%)", p, 100*p)
}
