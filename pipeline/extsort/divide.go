package extsort

import (
	"bytes"
	"context"
	"math/rand/v2"
)

// divide distributes a bucket on disk that is too large to load over smaller ones, as
// often as necessary. It divides by key, and by content where too many records have the
// same key. Only single records and those of equal content are not divided.
func (s *Sorter) divide(ctx context.Context, b *Bucket, byContent bool) error {
	n := int(2*b.size/s.loadable()) + 2
	bounds, err := s.sampleBounds(ctx, b, n, byContent)
	if err != nil {
		return err
	}
	split := newSplitters(bounds)
	w := &Writer{s: s, split: split, parts: make([]stretch, len(bounds)+1)}
	if err := b.scan(ctx, w.add); err != nil {
		return err
	}
	parts, err := s.collect([]*Writer{w}, split)
	if err != nil {
		return err
	}
	if parts[0].count == 0 {
		// The lowest bound is that of the least record. If it has no content, the bucket
		// would not be Joined to the one before it, but may have to be.
		parts, bounds = parts[1:], bounds[1:]
	}
	for i := range bounds {
		bounds[i].content = bytes.Clone(bounds[i].content[:0])
	}
	for i := range parts {
		if i > 0 {
			s.bounds = append(s.bounds, bounds[i-1])
		}
		stuck := parts[i].count == b.count
		if parts[i].size <= s.loadable() || stuck && byContent {
			s.buckets = append(s.buckets, parts[i])
		} else if err := s.divide(ctx, &parts[i], stuck); err != nil {
			return err
		}
	}
	return nil
}

// sampleBounds reads a bucket on disk and returns bounds for n parts: by group
// and key where those divide it well, by content otherwise.
func (s *Sorter) sampleBounds(ctx context.Context, b *Bucket, n int, byContent bool) ([]bound, error) {
	if !byContent {
		keys, err := b.sample(ctx, 256*n, false)
		if bounds := s.quantiles(keys, n); err != nil || len(bounds) >= n/2 {
			return bounds, err
		}
	}
	most := s.loadable() / max(b.size/int64(b.count), 1) // contents are copied
	contents, err := b.sample(ctx, min(256*n, max(int(most), 16)), true)
	return s.quantiles(contents, n), err
}

// sample returns at most n records of a bucket on disk, each with the same
// probability.
func (b *Bucket) sample(ctx context.Context, n int, contents bool) (sample []bound, err error) {
	rnd := rand.New(rand.NewPCG(uint64(b.count), 0))
	seen := 0
	err = b.scan(ctx, func(h header, content []byte) {
		at := seen
		if seen++; at < n {
			sample = append(sample, bound{})
		} else if at = rnd.IntN(seen); at >= n {
			return
		}
		sample[at] = bound{group: h.group, key: h.key}
		if contents {
			sample[at].content = bytes.Clone(content)
		}
	})
	return sample, err
}
