package main

import (
	"slices"
	"testing"

	"github.com/linkforge/bulk/benchmarks/harness"
)

// Sizes are compared with those that took longer than dd. Where there is none, growth is
// no aim: nothing is met.
func TestGrowth(t *testing.T) {
	sizes := []int64{1000, 2000, 4000}
	for _, c := range []struct {
		dd   [3]float64 // seconds; those of bulk are 1, 2 and 8
		want []float64
	}{
		{[3]float64{0, 0, 0}, []float64{2}},
		{[3]float64{0.5, 1, 0}, []float64{4}},
		{[3]float64{2, 1, 4}, []float64{2}},
		{[3]float64{2, 3, 0}, nil},
	} {
		b := &bench{Bench: &harness.Bench{Result: harness.Result{Sections: make([]harness.Section, 1)}}}
		var samples []harness.Sample
		for i, seconds := range []float64{1, 2, 8} {
			samples = append(samples, harness.Sample{Step: bulkOf(sizes[i]), Usage: harness.Usage{Seconds: seconds}},
				harness.Sample{Step: ddOf(sizes[i]), Usage: harness.Usage{Seconds: c.dd[i]}})
		}
		b.growth(samples, sizes)
		var got []float64
		for _, aim := range b.Result.Sections[0].Aims {
			if aim.Unit == "×" {
				got = append(got, aim.Value)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("dd %v: growth %v, want %v", c.dd, got, c.want)
		}
	}
}
