package claim

import (
	"bytes"
	"cmp"
	"context"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/sink"
)

// A Reader reads verdicts beside the records, for one goroutine. It must be closed.
type Reader struct {
	s       *Settled
	buckets *extsort.Finder
	bucket  *extsort.Bucket // in hand; nil: none yet
	number  int             // of it
	i       int             // the next verdict in it

	group uint32 // of list
	key   uint64
	list  []Verdict
}

// Reader returns a reader.
func (s *Settled) Reader() *Reader {
	return &Reader{s: s, buckets: s.verdicts.Finder(), number: -1}
}

// Close releases what the reader holds.
func (r *Reader) Close() { r.buckets.Close() }

// At returns the verdicts on claims of the URLs that have this group and key in the sort, by
// URL and code, valid until the next call. Calls come in the order of the sort; the first may
// be anywhere.
func (r *Reader) At(ctx context.Context, group uint32, key uint64) ([]Verdict, error) {
	if r.s.verdicts.Len() == 0 || r.number >= 0 && r.group == group && r.key == key {
		return r.list, nil
	}
	if r.number < 0 {
		if err := r.load(ctx, r.s.verdicts.Locate(group, key)); err != nil {
			return nil, err
		}
		if r.bucket != nil {
			r.i = r.bucket.Search(group, key)
		}
	}
	r.group, r.key, r.list = group, key, r.list[:0]
	for {
		for ; r.bucket != nil && r.i < r.bucket.Len(); r.i++ {
			c := cmp.Or(r.s.cfg.Names.Compare(r.bucket.Group(r.i), group), cmp.Compare(r.bucket.Key(r.i), key))
			if c > 0 {
				return r.list, nil
			}
			if c == 0 {
				r.list = append(r.list, decodeVerdict(r.bucket.Record(r.i)))
			}
		}
		if r.bucket == nil {
			return r.list, nil
		}
		for i := range r.list { // its bucket goes
			v := &r.list[i]
			v.Code, v.Text = bytes.Clone(v.Code), bytes.Clone(v.Text)
		}
		if err := r.load(ctx, r.number+1); err != nil {
			return nil, err
		}
	}
}

// load goes to a bucket, or to the end.
func (r *Reader) load(ctx context.Context, number int) (err error) {
	r.number, r.i, r.bucket = number, 0, nil
	if number < r.s.verdicts.Buckets() {
		r.bucket, err = r.buckets.Load(ctx, number)
	}
	return err
}

// Owner returns the canonical URL that has a code which a URL has lost, whose group and key in
// the sort are given, as for At.
func (r *Reader) Owner(ctx context.Context, group uint32, key uint64, url sink.Key, code []byte) ([]byte, error) {
	list, err := r.At(ctx, group, key)
	for i := range list {
		if v := &list[i]; v.State == Lost && v.URL == url && bytes.Equal(v.Code, code) {
			return v.Text, nil
		}
	}
	return nil, err
}
