package sink

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A running mean of 10^6 values, and one of parts of them, is that of two passes.
func TestMean(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, 1_000_000)
	var sum float64
	for i := range values {
		values[i] = 1e9 + math.Abs(random.NormFloat64())*50 + float64(i%7)
		sum += values[i]
	}
	want := sum / float64(len(values))
	var rest float64
	for _, x := range values {
		rest += x - want
	}
	want += rest / float64(len(values))
	var all, merged Mean
	for i := 0; i < len(values); {
		var part Mean
		for n := random.IntN(1_000); n > 0 && i < len(values); n-- {
			all.Add(values[i])
			part.Add(values[i])
			i++
		}
		merged.Merge(part)
	}
	for _, m := range []Mean{all, merged} {
		if m.N != int64(len(values)) || math.Abs(m.Value-want) > want*1e-12 {
			t.Errorf("%d values with mean %.9f, want %.9f", m.N, m.Value, want)
		}
	}
	if m := (Mean{}); m != func() Mean { m.Merge(Mean{}); return m }() {
		t.Errorf("the mean of nothing: %+v", m)
	}
	m := Mean{3, 10}
	m.Merge(Mean{1, 20})
	if m != (Mean{4, 12.5}) {
		t.Errorf("weighted: %+v", m)
	}
}
