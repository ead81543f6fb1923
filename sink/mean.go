package sink

// A Mean is a running mean by Welford's method, which does not add up large sums. The zero value
// is that of no values.
type Mean struct {
	N     int64   // values so far
	Value float64 // their mean; 0 if there are none
}

// Add adds a value.
func (m *Mean) Add(x float64) { m.Merge(Mean{1, x}) }

// Merge adds the values of another mean.
func (m *Mean) Merge(o Mean) {
	if m.N += o.N; o.N > 0 {
		m.Value += (o.Value - m.Value) * (float64(o.N) / float64(m.N))
	}
}
