package extsort

import (
	"context"
	"iter"
)

// A Cursor goes over all records of a sorter in order, for one goroutine:
//
//	c := s.Cursor(ctx, 1)
//	defer c.Close()
//	for c.Next() {
//		use(c.Group(), c.Key(), c.Record())
//	}
//	return c.Err()
//
// It holds one bucket, and those that it loads ahead. A sorter may have any number of
// cursors, one after the other.
type Cursor struct {
	s       *Sorter
	ctx     context.Context
	ahead   int
	begun   int           // how many buckets are loaded or being loaded, or were
	loading []chan loaded // one for each of these that was not used yet, in order
	bucket  *Bucket       // of the record in hand; nil: there is none
	i       int           // of the record in the bucket
	err     error
}

// loaded is the result of Load.
type loaded struct {
	bucket *Bucket
	err    error
}

// Cursor returns a cursor before the first record. While one bucket is in use, up to
// ahead of those that follow are loaded. The cursor must be closed.
func (s *Sorter) Cursor(ctx context.Context, ahead int) *Cursor {
	return &Cursor{s: s, ctx: ctx, ahead: ahead}
}

// Next moves to the next record, and reports whether there is one. It returns false
// at the end, and also after an error: see Err.
func (c *Cursor) Next() bool {
	for c.i++; c.bucket == nil || c.i >= c.bucket.Len(); c.i = 0 {
		if c.release(); c.err == nil {
			c.bucket, c.err = c.load()
		}
		if c.bucket == nil {
			return false
		}
	}
	if c.i%touchAhead == 0 {
		c.bucket.Touch(c.i+touchAhead, c.i+2*touchAhead)
	}
	return true
}

// touchAhead is the number of records whose memory is asked for at once.
const touchAhead = 16

// Group returns the group of the record in hand.
func (c *Cursor) Group() uint32 { return c.bucket.Group(c.i) }

// Key returns the key of the record in hand.
func (c *Cursor) Key() uint64 { return c.bucket.Key(c.i) }

// Record returns the content of the record in hand. The sorter owns it. It and the
// contents of the records before it are valid until Next is called while Last is true.
func (c *Cursor) Record() []byte { return c.bucket.Record(c.i) }

// Last reports whether the record in hand is the last one of its bucket. It is false
// before the first call of Next and after the last one.
func (c *Cursor) Last() bool { return c.bucket != nil && c.i == c.bucket.Len()-1 }

// Err returns why Next found no record: nil at the end, otherwise the error of the
// spill file or the cause of the end of the context.
func (c *Cursor) Err() error { return c.err }

// Close releases the buckets of the cursor.
func (c *Cursor) Close() {
	c.release()
	for _, l := range c.loading {
		if l := <-l; l.err == nil {
			l.bucket.Release()
		}
	}
	c.loading = nil
}

func (c *Cursor) release() {
	if c.bucket != nil {
		c.bucket.Release()
		c.bucket = nil
	}
}

// load returns the next bucket, or nil after the last one, and begins to load those
// that follow.
func (c *Cursor) load() (*Bucket, error) {
	if c.begun == c.s.Buckets() && len(c.loading) == 0 {
		return nil, nil
	}
	if c.ctx.Err() != nil {
		return nil, context.Cause(c.ctx)
	}
	for end := c.begun - len(c.loading) + 1 + c.ahead; c.begun < min(end, c.s.Buckets()); c.begun++ {
		number, done := c.begun, make(chan loaded, 1)
		c.loading = append(c.loading, done)
		go func() {
			b, err := c.s.Load(number)
			done <- loaded{b, err}
		}()
	}
	l := <-c.loading[0]
	c.loading = c.loading[1:]
	return l.bucket, l.err
}

// InOrder visits all buckets in order. While one is visited, up to ahead of those that
// follow are loaded. The visitor must release the bucket, at any time. The visits end
// with the first error: that of the visitor, that of the spill file, or the cause of
// the end of the context.
func (s *Sorter) InOrder(ctx context.Context, ahead int, visit func(i int, b *Bucket) error) error {
	c := s.Cursor(ctx, ahead)
	defer c.Close()
	for i := 0; ; i++ {
		b, err := c.load()
		if err == nil && b != nil {
			err = visit(i, b)
		}
		if b == nil || err != nil {
			return err
		}
	}
}

// A Finder loads buckets in any order, one at a time, for one goroutine. It must be closed.
type Finder struct {
	s      *Sorter
	number int
	bucket *Bucket // nil: none is loaded
}

// Finder returns a finder.
func (s *Sorter) Finder() *Finder { return &Finder{s: s} }

// Load returns bucket i, valid until another is loaded.
func (f *Finder) Load(ctx context.Context, i int) (*Bucket, error) {
	if f.bucket != nil && f.number == i {
		return f.bucket, nil
	}
	f.Close()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	b, err := f.s.Load(i)
	if err == nil {
		f.number, f.bucket = i, b
	}
	return b, err
}

// Find visits the records of a group and key in order, until visit returns false.
func (f *Finder) Find(ctx context.Context, group uint32, key uint64, visit func(rec []byte) (more bool)) error {
	first := f.s.Locate(group, key)
	for i := first; i < f.s.Buckets() && (i == first || f.s.Joined(i)); i++ {
		b, err := f.Load(ctx, i)
		if err != nil {
			return err
		}
		j := b.Search(group, key)
		for ; j < b.Len() && b.Group(j) == group && b.Key(j) == key; j++ {
			if !visit(b.Record(j)) {
				return nil
			}
		}
		if j < b.Len() {
			return nil
		}
	}
	return nil
}

// Close releases the bucket.
func (f *Finder) Close() {
	if f.bucket != nil {
		f.bucket.Release()
		f.bucket = nil
	}
}

// Chunks yields all records in order, decoded, in chunks of at most so many, each valid until the next
// one: what a value refers to may lie in its record. A value is number n of its chunk.
func Chunks[T any](ctx context.Context, s *Sorter, most int, decode func(at *Cursor, n int) T) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		var chunk []T
		at := s.Cursor(ctx, 2)
		defer at.Close()
		for at.Next() {
			if chunk = append(chunk, decode(at, len(chunk))); at.Last() || len(chunk) == most {
				if !yield(chunk, nil) {
					return
				}
				chunk = chunk[:0]
			}
		}
		if at.Err() != nil {
			yield(nil, at.Err())
		}
	}
}
