package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/estimate"
	"github.com/spf13/cobra"
)

func estimateCommand(ui *ui) *cobra.Command {
	var load estimate.Load
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "estimate --links N",
		Short: "Estimate how many links will collide before any is made",
		Long: `The estimate is for N new links, each with a URL of its own, in one workspace.

A link collides if its first code is taken; it then tries its next code.
  exhausted        all codes of the link are taken: a run would reject it
  effective codes  so many equally likely codes would collide as often: some
                   codes are less likely, as their first character is rarer`,
		Example: `  bulk estimate --links 10000000
  bulk estimate --links 100000 --existing 2000000 --code-length 6 --json`,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args:              usageArgs(cobra.NoArgs, "estimate takes flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("links") {
				return usage(errors.New("--links is missing: how many links will be made?"))
			}
			return runEstimate(ui.stdout, load, asJSON)
		},
	}
	f := cmd.Flags()
	f.Int64Var(&load.Links, "links", 0, "`N` new links (required)")
	f.Int64Var(&load.Existing, "existing", 0, "the workspace already has `N` links")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	group(f, "Common flags")
	f.IntVar(&load.CodeLength, "code-length", codegen.DefaultLength, "codes have `N` characters, 1 to 24")
	f.IntVar(&load.MaxRetries, "max-retries", codegen.DefaultRetries, "when a code is taken, try up to `N` other codes")
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
	_, err = fmt.Fprintf(w, `links                 %d
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
`, load.Links, load.Existing, load.CodeLength, load.MaxRetries, e.Codes, e.EffectiveCodes,
		e.Colliding, chance(e.AnyCollision), e.Exhausted, chance(e.AnyExhausted), chance(e.NextCollides))
	return err
}

// chance writes a probability, as a percentage too unless that is tiny.
func chance(p float64) string {
	if p < 1e-4 {
		return fmt.Sprintf("%.4g", p)
	}
	return fmt.Sprintf("%.4g (%.4g%%)", p, 100*p)
}
