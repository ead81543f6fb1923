package settle

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/assign"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/sink"
	"golang.org/x/sync/errgroup"
)

// A Counter makes the codes of new URLs from numbers. Two URLs never want one code then, so there
// is no contest.
type Counter struct {
	Codes []codegen.Counter  // equal ones, as many as goroutines make codes
	Words *codegen.Blocklist // that no code contains; nil: none
	Have  []sink.Range       // numbers of the run, from an earlier attempt of it
	URLs  extsort.Config     // of the sort of new URLs; all but the order
	Sorts extsort.Config     // of the sort of codes; all but the order
}

// Numbers are those that a run has.
type Numbers struct {
	Ranges  []sink.Range // in the order in which it got them
	Skipped int64        // of these, the ones that no link has: their codes are taken or blocked
}

// counting is what a settlement has of a counter.
type counting struct {
	*settling
	keying
	urls    *extsort.Sorter // new URLs, in the order in which they get numbers, and those that got theirs in an earlier attempt
	codes   *extsort.Sorter // of links, by the bucket and the first record of their URL
	used    []uint64        // a bit for each number of Counter.Have: a link of an earlier attempt has it
	uses    int64           // the bits that are set
	had     int64           // of urls, those that got their number in an earlier attempt
	numbers Numbers
}

func (s *settling) newCounting() (*counting, error) {
	sample, err := s.sampleURLs()
	if err != nil {
		return nil, err
	}
	c := &counting{settling: s, keying: newKeying(sample)}
	cfg := s.cfg.Counter.URLs
	cfg.CompareGroups, cfg.Compare = s.names.Compare, packed.CompareFirst
	c.urls = extsort.New(cfg)
	cfg = s.cfg.Counter.Sorts
	cfg.CompareGroups, cfg.Compare = func(_, _ uint32) int { return 0 }, packed.CompareFirst
	c.codes = extsort.New(cfg)
	c.used = make([]uint64, (total(s.cfg.Counter.Have)+63)/64)
	return c, nil
}

func (c *counting) close() (err error) {
	if c.urls != nil {
		err = c.urls.Close()
	}
	return errors.Join(err, c.codes.Close())
}

func total(ranges []sink.Range) (n int64) {
	for _, r := range ranges {
		n += r.Last - r.First + 1
	}
	return n
}

// A keying makes keys for sorting texts that begin alike, as URLs do. It has a sample of the texts
// in their order. Between two neighbours of it, texts begin with what both begin with, and differ
// in the bytes that follow.
type keying struct {
	sample [][]byte
	alike  []int // bytes that are the same in a text of the sample and the one before
}

// mostSampled is the number of texts of a sample. There must be less than 2^16.
const mostSampled = 1 << 13

// newKeying takes a sample.
func newKeying(sample [][]byte) keying {
	slices.SortFunc(sample, bytes.Compare)
	k := keying{sample, make([]int, len(sample)+1)}
	for i := 1; i < len(sample); i++ {
		a, b := sample[i-1], sample[i]
		for n := &k.alike[i]; *n < min(len(a), len(b)) && a[*n] == b[*n]; {
			*n++
		}
	}
	return k
}

// key returns a number that orders texts as bytes.Compare does, as far as it tells, and the rest of
// the text, which orders those of one number.
func (k *keying) key(text []byte) (key uint64, rest []byte) {
	// The number of sampled texts that are not above this one.
	i, _ := slices.BinarySearchFunc(k.sample, text, func(s, t []byte) int {
		if bytes.Compare(s, t) > 0 {
			return 1
		}
		return -1
	})
	rest = text[k.alike[i]:]
	return uint64(i)<<48 | packed.TextKey(rest)>>16, rest
}

// sampleURLs takes a sample of the URLs: their order is that of a hash, so those of the first buckets
// will do.
func (s *settling) sampleURLs() (sample [][]byte, err error) {
	for n := 0; n < s.records.Buckets() && len(sample) < mostSampled; n++ {
		b, err := s.records.Load(n)
		if err != nil {
			return nil, err
		}
		for i := 0; i < b.Len() && len(sample) < mostSampled; i++ {
			sample = append(sample, identity(b.Record(i)))
		}
		b.Release()
	}
	return sample, nil
}

// count files the URL of a record, whose number is to be found.
func (v *visit) count(at origin, group uint32, rec []byte) {
	v.countURL(at, group, v.s.urlOf(rec))
}

// countURL files a new URL, with the parts of its identity. It has its first record there.
func (v *visit) countURL(at origin, group uint32, url []byte) { v.fileURL(at, group, url, 0) }

// fileURL files a URL. Behind says how many numbers of the run are behind once it has its own; 0: it has
// none yet.
func (v *visit) fileURL(at origin, group uint32, url []byte, behind int64) {
	key, rest := v.s.made.counting.key(url)
	v.buf = packed.AppendCell(v.buf[:0], rest)
	for _, n := range [...]uint64{uint64(at.bucket), uint64(at.first), uint64(behind)} {
		v.buf = binary.AppendUvarint(v.buf, n)
	}
	copy(v.urls.Reserve(group, key, len(v.buf)), v.buf)
}

// haveCode files the code of a link that the store has of a URL. If this run made it, its number is
// used.
func (v *visit) haveCode(at origin, group uint32, url, code []byte, ours bool) {
	number, index := int64(0), int64(0)
	if ours {
		if number, index = v.s.made.counting.use(code); number > 0 {
			v.fileURL(at, group, url, index+1)
		}
	}
	v.buf = fileCode(v.codeOf, at, number, code, v.buf)
}

// place is the key of a URL in the sort of codes.
func (o origin) place() uint64 { return uint64(o.bucket)<<40 | uint64(o.first) }

func fileCode(w *extsort.Writer, at origin, number int64, code, buf []byte) []byte {
	buf = append(binary.AppendUvarint(buf[:0], uint64(number)), code...)
	copy(w.Reserve(0, at.place(), len(buf)), buf)
	return buf
}

// use notes that a link of an earlier attempt has the code, and returns its number, and how many of the
// run are before that; 0: it was not made from one of the run.
func (c *counting) use(code []byte) (number, index int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok := c.cfg.Counter.Codes[0].Number(code)
	if !ok {
		return 0, 0
	}
	for _, r := range c.cfg.Counter.Have {
		// The first number of the range, or after it, whose code this is.
		ahead := (int64(value) - r.First%codegen.CounterSpace + codegen.CounterSpace) % codegen.CounterSpace
		if ahead <= r.Last-r.First {
			if i := index + ahead; c.used[i/64]>>(i%64)&1 == 0 {
				c.used[i/64] |= 1 << (i % 64)
				c.uses++
			}
			c.had++
			return r.First + ahead, index + ahead
		}
		index += r.Last - r.First + 1
	}
	return 0, 0
}

// Number gives each new URL a number, in ascending order of (workspace, canonical URL, parts of the
// identity). Reserve returns the numbers of the run once it has n of them, in the order in which it
// got them, and Number how many URLs got one. The session must still be open.
func (s *Settlement) Number(ctx context.Context, reserve func(ctx context.Context, n int64) ([]sink.Range, error)) (given int64, err error) {
	c := s.counting
	if err := c.urls.Finish(ctx); err != nil {
		return 0, err
	}
	n := &numbering{counting: c, reserve: reserve, left: c.urls.Len() - c.had, ranges: c.cfg.Counter.Have, free: sync.Pool{New: func() any { return new(batch) }}}
	for _, counter := range c.cfg.Counter.Codes {
		n.workers = append(n.workers, numberer{Counter: counter, to: c.codes.NewWriter()})
	}
	if err := n.all(ctx); err != nil {
		return 0, err
	}
	if err := c.urls.Close(); err != nil { // they take memory
		return 0, err
	}
	c.urls = nil
	c.numbers = Numbers{n.ranges, total(n.ranges) - n.given - c.uses}
	return n.given, c.codes.Finish(ctx)
}

// Numbers returns the numbers of the run; nil: the scheme has no counter.
func (s *Settlement) Numbers() *Numbers {
	if s.counting == nil {
		return nil
	}
	return &s.counting.numbers
}

// A numbering gives numbers to URLs.
type numbering struct {
	*counting
	reserve func(ctx context.Context, n int64) ([]sink.Range, error)
	ranges  []sink.Range
	workers []numberer
	free    sync.Pool  // *batch, whose URLs have their numbers
	list    []numbered // of take
	left    int64      // URLs without a number
	given   int64      // numbers that URLs got
	skipped int64      // numbers whose codes cannot be had
	at      int        // the range in hand
	within  int64      // numbers of that which are behind
	index   int64      // numbers of all ranges which are behind
	vain    int64      // numbers that were skipped since a URL got one
}

// A numberer makes and files codes, for one goroutine.
type numberer struct {
	codegen.Counter
	to     *extsort.Writer
	values []uint64 // of the numbers in hand
	codes  []byte   // of these
	buf    []byte
}

// A numbered code may be free.
type numbered struct {
	number  int64
	index   int64 // of the numbers of the run
	code    []byte
	blocked bool   // it contains a word
	url     origin // that has it
}

// A batch is neighbouring URLs of a workspace.
type batch struct {
	workspace uint32
	urls      []wanting
}

// A wanting is a URL that is to get a number. Those that are behind are not for it: an earlier attempt, which
// gave a later one to a URL before it, has skipped them.
type wanting struct {
	origin
	behind int64
}

// all gives numbers to all URLs, while the next ones are read.
func (n *numbering) all(ctx context.Context) error {
	batches := make(chan *batch, 1)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(batches)
		return n.read(ctx, func(b *batch) error {
			select {
			case batches <- b:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})
	g.Go(func() error {
		for b := range batches {
			if err := n.give(ctx, b.workspace, b.urls); err != nil {
				return err
			}
			n.free.Put(b)
		}
		return nil
	})
	return g.Wait()
}

// read reads the URLs in their order.
func (n *numbering) read(ctx context.Context, visit func(*batch) error) error {
	urls := n.urls.Cursor(ctx, len(n.cfg.Counter.Codes))
	defer urls.Close()
	b, behind := new(batch), int64(0)
	for urls.Next() {
		_, rest := packed.CutCell(urls.Record())
		var at [3]uint64 // as of fileURL
		for i := range at {
			size := 0
			at[i], size = binary.Uvarint(rest)
			rest = rest[size:]
		}
		if at[2] > 0 {
			behind = max(behind, int64(at[2]))
			continue
		}
		if len(b.urls) > 0 && urls.Group() != b.workspace || len(b.urls) == maxProbes {
			if err := visit(b); err != nil {
				return err
			}
			b = n.free.Get().(*batch)
			b.urls = b.urls[:0]
		}
		b.workspace, b.urls = urls.Group(), append(b.urls, wanting{origin{true, int(at[0]), int(at[1])}, behind})
	}
	if err := urls.Err(); err != nil {
		return err
	}
	return visit(b)
}

// give gives numbers to URLs of a workspace.
func (n *numbering) give(ctx context.Context, workspace uint32, urls []wanting) error {
	for len(urls) > 0 {
		numbers, err := n.take(ctx, len(urls))
		if err != nil {
			return err
		}
		taken, err := n.taken(ctx, workspace, numbers)
		if err != nil {
			return err
		}
		for i := range numbers {
			if numbers[i].index < urls[0].behind || numbers[i].blocked || taken != nil && taken[i] {
				if err := n.skip(); err != nil {
					return err
				}
				continue
			}
			numbers[i].url, urls = urls[0].origin, urls[1:]
			n.given, n.left, n.vain = n.given+1, n.left-1, 0
		}
		n.inParts(numbers, func(w *numberer, part []numbered) {
			for i := range part {
				if c := &part[i]; c.url.known {
					w.buf = fileCode(w.to, c.url, c.number, c.code, w.buf)
				}
			}
		})
	}
	return n.workers[0].to.Err() // it has those of the others
}

// inParts lets workers do a part of the numbers each.
func (n *numbering) inParts(numbers []numbered, do func(w *numberer, part []numbered)) {
	size := max((len(numbers)+len(n.workers)-1)/len(n.workers), 1<<8)
	var wg sync.WaitGroup
	for i := 0; len(numbers) > 0; i++ {
		part := numbers[:min(size, len(numbers))]
		numbers = numbers[len(part):]
		wg.Go(func() { do(&n.workers[i], part) })
	}
	wg.Wait()
}

// taken says which numbers have a code that a link of the workspace has, or a row of this run; nil:
// none has.
func (n *numbering) taken(ctx context.Context, workspace uint32, numbers []numbered) ([]bool, error) {
	if !n.populated[workspace] && n.made.claims == nil {
		return nil, nil
	}
	slots := make([]assign.Slot, len(numbers))
	for i := range numbers {
		slots[i] = assign.Slot{Workspace: workspace, Code: string(numbers[i].code)}
	}
	taken := make([]bool, len(numbers))
	return taken, n.Stored(ctx, slots, func(i int, _ []byte) { taken[i] = true })
}

// skip counts a number whose code cannot be had.
func (n *numbering) skip() error {
	n.skipped++
	if n.vain++; n.vain >= codegen.CounterSpace {
		return fmt.Errorf("code_space_exhausted: each of the %d codes of scheme %s is taken or blocked", int64(codegen.CounterSpace), n.cfg.Counter.Codes[0].Name())
	}
	return nil
}

// take returns the next so many numbers, and reserves more if the run has not enough. They are valid
// until it is called again.
func (n *numbering) take(ctx context.Context, count int) ([]numbered, error) {
	n.list = n.list[:0]
	for len(n.list) < count {
		for n.at < len(n.ranges) && n.within > n.ranges[n.at].Last-n.ranges[n.at].First {
			n.at, n.within = n.at+1, 0
		}
		if n.at == len(n.ranges) {
			if err := n.more(ctx); err != nil {
				return nil, err
			}
			continue
		}
		c := numbered{number: n.ranges[n.at].First + n.within, index: n.index}
		used := n.index/64 < int64(len(n.used)) && n.used[n.index/64]>>(n.index%64)&1 != 0
		n.within, n.index = n.within+1, n.index+1
		if used {
			continue
		}
		n.list = append(n.list, c)
	}
	const length = codegen.CounterLength
	words := n.cfg.Counter.Words
	n.inParts(n.list, func(w *numberer, part []numbered) {
		w.values = w.values[:0]
		for i := range part {
			w.values = append(w.values, uint64(part[i].number))
		}
		w.codes = w.AppendCode(slices.Grow(w.codes[:0], len(part)*length), w.values...)
		for i := range part {
			c := &part[i]
			c.code = w.codes[i*length : (i+1)*length]
			c.blocked = words != nil && words.Match(c.code) != ""
		}
	})
	return n.list, nil
}

// more reserves as many numbers as are wanted by now: for all URLs, and for each that was skipped.
func (n *numbering) more(ctx context.Context) error {
	ranges, err := n.reserve(ctx, n.left+n.given+n.uses+n.skipped)
	if err != nil {
		return err
	}
	// The last range may have grown. What is behind stays.
	if total(ranges) <= total(n.ranges) {
		return fmt.Errorf("%w: of %d numbers it reserved %d", ErrBroken, n.left+n.given+n.uses+n.skipped, total(ranges))
	}
	n.ranges, n.at, n.within = ranges, 0, n.index
	return nil
}

// Codes are those of the links of the URLs of a bucket. They must be released.
type Codes struct {
	list  []codeAt // by the first record of a URL
	texts []byte
	free  *sync.Pool // of the reader
}

// A codeAt says where a code is in Codes.texts, and what number this run made it from; 0: none.
type codeAt struct {
	number   int64
	from, to uint32
}

// Of returns the code of a URL, by its first record, and the number that this run made it from; 0:
// none. The text is nil if the URL has no code, or that of a row.
func (c *Codes) Of(first int) (text []byte, number int64) {
	at := c.list[first]
	if at.from == at.to {
		return nil, 0
	}
	return c.texts[at.from:at.to:at.to], at.number
}

// Release gives back the memory of the codes.
func (c *Codes) Release() { c.free.Put(c) }

func (c *Codes) set(first int, text []byte, number int64) {
	from := uint32(len(c.texts))
	c.texts = append(c.texts, text...)
	c.list[first] = codeAt{number, from, uint32(len(c.texts))}
}

// A CodeReader reads the codes of URLs, bucket by bucket. It must be closed.
type CodeReader struct {
	s      *Settlement
	at     *extsort.Cursor
	more   bool
	last   []byte // code of the last URL of the bucket before
	number int64  // of that
	free   sync.Pool
}

// Codes returns a reader of the codes of all URLs, once they have numbers; nil: the scheme has no
// counter.
func (s *Settlement) Codes(ctx context.Context) *CodeReader {
	if s.counting == nil {
		return nil
	}
	r := &CodeReader{s: s, at: s.counting.codes.Cursor(ctx, 1)}
	r.free.New = func() any { return &Codes{free: &r.free} }
	r.more = r.at.Next()
	return r
}

// Close gives up what the reader holds.
func (r *CodeReader) Close() { r.at.Close() }

// Next returns the codes of the URLs of the next bucket, which has records, and the error of reading
// them. Buckets are asked for one after another, from the first on.
func (r *CodeReader) Next(bucket *extsort.Bucket, number int, firstOfLast int) (*Codes, error) {
	codes := r.free.Get().(*Codes)
	codes.list, codes.texts = slices.Grow(codes.list[:0], bucket.Len())[:bucket.Len()], codes.texts[:0]
	clear(codes.list)
	if r.s.Continues(number) {
		codes.set(0, r.last, r.number)
	}
	for ; r.more && r.at.Key()>>40 == uint64(number); r.more = r.at.Next() {
		value, size := binary.Uvarint(r.at.Record())
		codes.set(int(r.at.Key()&(1<<40-1)), r.at.Record()[size:], int64(value))
	}
	last, value := codes.Of(firstOfLast)
	r.last, r.number = append(r.last[:0], last...), value
	return codes, r.at.Err()
}
