package extsort

import "math/rand/v2"

// divide distributes a bucket on disk that is too large to load over smaller
// ones, as often as necessary. Where keys do not tell its records apart, their
// contents do; only a single record stays as large as it is.
func (s *Sorter) divide(b *Bucket, byContent bool) error {
	n := int(2*b.bytes/s.loadable()) + 2
	bounds, err := s.sampleBounds(b, n, byContent)
	if err != nil {
		return err
	}
	split := newSplitters(bounds)
	w := &Writer{s: s, split: split, parts: make([]stretch, len(bounds)+1)}
	err = b.scan(func(chunk []byte) {
		each(chunk, func(h header, content []byte) { w.add(h, content) })
	})
	if err != nil {
		return err
	}
	parts, err := s.collect([]*Writer{w}, split)
	if err != nil {
		return err
	}
	for i := range parts {
		if i > 0 {
			s.bounds = append(s.bounds, bounds[i-1])
		}
		stuck := parts[i].count == b.count
		if parts[i].bytes <= s.loadable() || stuck && byContent {
			s.buckets = append(s.buckets, parts[i])
		} else if err := s.divide(&parts[i], stuck); err != nil {
			return err
		}
	}
	return nil
}

// sampleBounds reads a bucket on disk and returns bounds for n parts: by group
// and key where those divide it well, by content otherwise.
func (s *Sorter) sampleBounds(b *Bucket, n int, byContent bool) ([]bound, error) {
	var sample []bound
	rnd := rand.New(rand.NewPCG(uint64(b.count), 0))
	seen, size := 0, 256*n
	err := b.scan(func(chunk []byte) {
		each(chunk, func(h header, content []byte) {
			seen++
			at := len(sample)
			if at == size { // keep each record with the same probability
				if at = rnd.IntN(seen); at >= size {
					return
				}
			} else {
				sample = append(sample, bound{})
			}
			sample[at] = bound{h.group, h.key, append([]byte{}, content...)}
		})
	})
	if err != nil {
		return nil, err
	}
	keys := make([]bound, len(sample))
	for i := range sample {
		keys[i] = bound{group: sample[i].group, key: sample[i].key}
	}
	if bounds := s.quantiles(keys, n); len(bounds) >= n/2 && !byContent {
		return bounds, nil
	}
	return s.quantiles(sample, n), nil
}
