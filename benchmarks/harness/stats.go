package harness

import (
	"math"
	"slices"
)

// Of returns the samples of a step, in the order of the rounds.
func Of(samples []Sample, step string) (out []Sample) {
	for _, s := range samples {
		if s.Step == step {
			out = append(out, s)
		}
	}
	return out
}

// Values takes a number from each sample.
func Values(samples []Sample, value func(Sample) float64) (out []float64) {
	for _, s := range samples {
		out = append(out, value(s))
	}
	return out
}

// Median is the middle one of the values, or the mean of the two in the middle; it is NaN
// if there are none.
func Median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	if n == 0 {
		return math.NaN()
	}
	return (v[(n-1)/2] + v[n/2]) / 2
}

// MedianOf is the median of a number of a step's samples.
func MedianOf(samples []Sample, step string, value func(Sample) float64) float64 {
	return Median(Values(Of(samples, step), value))
}

// Ratio is the median over the rounds of a number of one step divided by the same number
// of another step in the same round; it is NaN if one of them was not measured.
func Ratio(samples []Sample, step, reference string, value func(Sample) float64) float64 {
	refs := map[int64]float64{}
	for _, s := range Of(samples, reference) {
		refs[s.Round] = value(s)
	}
	var ratios []float64
	for _, s := range Of(samples, step) {
		if r, ok := refs[s.Round]; ok {
			ratios = append(ratios, value(s)/r)
		}
	}
	return Median(ratios)
}
