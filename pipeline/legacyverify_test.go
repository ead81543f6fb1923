package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/verify"
	"pgregory.net/rapid"
)

// verified checks the run that check made, by its files, its inputs and its store, and says what
// verify found. An alias whose link was not there before the run is found rightly.
func (c *legacyCase) verified(t *testing.T, cfg pipeline.Config) (wrong []string) {
	t.Helper()
	dir := "out"
	if _, err := os.Stat(dir); err != nil {
		dir = "out.failed"
	}
	orphans := int64(0)
	links := map[string]bool{}
	after := storedLinks(t, cfg.Store, c.Workspace)
	for _, l := range after {
		links[l.Canonical] = links[l.Canonical] || l.Kind == "link"
	}
	for _, l := range after {
		if !links[l.Canonical] {
			orphans++
		}
	}
	for _, depth := range []verify.Config{{}, {Inputs: []string{"in.csv"}}, {Store: cfg.Store, Inputs: []string{"in.csv"}}} {
		depth.Dir, depth.Memory = dir, 8<<20
		v, err := verify.Run(context.Background(), depth)
		if errors.Is(err, os.ErrNotExist) {
			return wrong
		}
		must(t, err)
		n := int64(0)
		for _, f := range v.Findings {
			if f.Kind == verify.StoreAlias {
				n++
			} else {
				wrong = append(wrong, fmt.Sprintf("inputs %t, store %t: %+v", depth.Inputs != nil, depth.Store != nil, f))
			}
		}
		swept := c.Identity != "" && n == 0 // where links have rules that may be
		if depth.Store != nil && n != orphans && !swept || depth.Store == nil && n > 0 {
			wrong = append(wrong, fmt.Sprintf("%d orphans, want %d", n, orphans))
		}
		if int64(len(c.Rows)) != v.Rows+v.Rejects && dir == "out" {
			wrong = append(wrong, fmt.Sprintf("%d rows and %d rejects, want %d", v.Rows, v.Rejects, len(c.Rows)))
		}
	}
	return wrong
}

// A run of any mode is found to be what it says.
func TestLegacyVerifies(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawLegacy(rt)
		c.Expect.Rows, c.Expect.Store = c.model()
		c.Expect.Fails = c.Expect.Rows == nil
		cfg := c.config(openStore(t, t.TempDir()))
		if rapid.Bool().Draw(rt, "spill") {
			cfg.SpillAt(1)
		}
		cfg.NoCarry = rapid.IntRange(0, 3).Draw(rt, "carry") == 0
		c.plant(t, cfg)
		pad := rapid.SampledFrom([]int{0, 0, 3000}).Draw(rt, "pad")
		t.Chdir(t.TempDir())
		for _, order := range []report.Order{report.SortOrder, report.InputOrder} { // the second finds all links
			cfg.ReportOrder = order
			if wrong := c.run(t, cfg, pad); wrong != nil {
				rt.Fatalf("%s\n%+v\n%s", order, c, strings.Join(wrong, "\n"))
			}
			if wrong := c.verified(t, cfg); wrong != nil {
				rt.Fatalf("%s\n%+v\n%s\n%s", order, c, strings.Join(wrong, "\n"), show())
			}
		}
	})
}

// run runs the case in the working folder.
func (c *legacyCase) run(t *testing.T, cfg pipeline.Config, pad int) (wrong []string) {
	write(t, "in.csv", c.csv(pad))
	cfg.Inputs, cfg.Out, cfg.AsOf, cfg.Overwrite = []string{"in.csv"}, "out", asOf, true
	_, err := pipeline.Run(context.Background(), cfg)
	if _, ok := errors.AsType[*pipeline.TooManyRejectsError](err); err != nil && !ok {
		wrong = append(wrong, err.Error())
	}
	return wrong
}

// show returns the reports.
func show() string {
	var b strings.Builder
	for _, name := range []string{"mapping.csv", "rejects.csv", "collisions.csv", "manifest.json"} {
		text, _ := os.ReadFile("out/" + name)
		b.Write(text)
	}
	return b.String()
}

// The vectors are found to be what they say.
func TestLegacyVectorsVerify(t *testing.T) {
	for i, c := range legacyCases(t) {
		cfg := c.config(openStore(t, t.TempDir()))
		c.plant(t, cfg)
		c.check(t, cfg, 0)
		if wrong := c.verified(t, cfg); wrong != nil {
			t.Errorf("case %d (%s %s fold %t): %s", i, c.Legacy, c.OnConflict, c.FoldCase, strings.Join(wrong, "\n"))
		}
	}
}
