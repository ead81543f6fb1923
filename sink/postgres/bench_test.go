package postgres

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/postgres/pgtest"
	"golang.org/x/sync/errgroup"
)

// benchRows is how many links a load has; the figures in comments of this package are for
// 3000000.
var benchRows = flag.Int("rows", 100_000, "links of a benchmark's load")

// generated makes the links with the numbers from to to-1 of one workspace, in code order.
// A URL has about 80 bytes.
func generated(from, to int) []sink.Link {
	scheme, err := codegen.New(codegen.DefaultLength)
	if err != nil {
		panic(err)
	}
	out := make([]sink.Link, to-from)
	var wg sync.WaitGroup
	step := (to-from)/runtime.GOMAXPROCS(0) + 1
	for begin := 0; begin < len(out); begin += step {
		wg.Go(func() {
			for i := begin; i < min(begin+step, len(out)); i++ {
				url := fmt.Appendf(nil, "https://www.example.com/catalogue/items/%09d?category=%d&ref=mail&page=%d", from+i, i%977, i%31)
				h := codegen.Sum(codegen.AppendInput(nil, url, []byte("demo"), 0))
				out[i] = sink.Link{Workspace: []byte("demo"), Code: scheme.AppendCode(nil, h), Key: h.Key(), Canonical: url}
			}
		})
	}
	wg.Wait()
	slices.SortFunc(out, byCode)
	return out
}

// pieces yields links, 4,096 at a time.
func pieces(links []sink.Link) iter.Seq2[[]sink.Link, error] {
	return func(yield func([]sink.Link, error) bool) {
		for c := range slices.Chunk(links, 4096) {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// A bench is a durable server with a database of its own.
type bench struct {
	*testing.B
	server *pgtest.Server
	dsn    string
}

func newBench(b *testing.B) *bench {
	s := pgtest.New(pgtest.Options{Durable: true})
	s.Need(b)
	b.Cleanup(func() { s.Close() })
	return &bench{b, s, s.Database(b)}
}

// fresh empties the database and lets the server write to the disk what is pending.
func (b *bench) fresh() {
	execute(b, b.dsn, "DROP SCHEMA public CASCADE")
	execute(b, b.dsn, "CREATE SCHEMA public")
	execute(b, b.dsn, "CHECKPOINT")
}

// session opens a session on the workspace of the links.
func (b *bench) session() (*Store, sink.Session) {
	store := openStore(b, b.dsn, Options{})
	s, err := store.Lock(context.Background(), []string{"demo"}, sink.LockOptions{})
	noError(b, err)
	return store, s
}

// load stores the links with a run of their own.
func (b *bench) load(links []sink.Link) {
	store, s := b.session()
	defer store.Close()
	defer s.Close()
	run, err := s.Start(context.Background(), sink.Run{Fingerprint: "bench", AsOf: time.Now()})
	if err == nil {
		err = s.Load(context.Background(), run, pieces(links))
	}
	if err == nil {
		err = s.Loaded(context.Background(), run)
	}
	if err == nil {
		err = s.Finish(context.Background(), run)
	}
	noError(b, err)
}

// lookup looks the links up as the pipeline does, and returns how many the store has.
func (b *bench) lookup(links []sink.Link, callers, size int) int {
	store, s := b.session()
	defer store.Close()
	defer s.Close()
	probes := make([]sink.Probe, len(links))
	for i, l := range links {
		probes[i] = sink.Probe{Workspace: l.Workspace, Code: l.Code, Key: l.Key, Canonical: l.Canonical}
	}
	counts := make([]int, callers)
	var g errgroup.Group
	work := make(chan []sink.Probe)
	for n := range callers {
		g.Go(func() error {
			for part := range work {
				if err := s.Lookup(context.Background(), part, func(f sink.Found) error { counts[n]++; return nil }); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for part := range slices.Chunk(probes, size) {
		work <- part
	}
	close(work)
	noError(b, g.Wait())
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}

// measure runs prepare, which is not timed, and f, and reports rows a second.
func (b *bench) measure(name string, rows int, prepare, f func()) {
	b.Run(fmt.Sprintf("rows=%d/%s", rows, name), func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			prepare()
			b.StartTimer()
			f()
		}
		b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
}

// BenchmarkStore measures loads and lookups. make bench-postgres measures the same beside
// what psql takes.
func BenchmarkStore(tb *testing.B) {
	b := newBench(tb)
	n := *benchRows
	first, second := generated(0, n), generated(n, 2*n)
	nothing := func() {}

	one := func() { b.fresh(); b.load(first); execute(b, b.dsn, "CHECKPOINT") }
	b.measure("into=empty", n, b.fresh, func() { b.load(first) })
	b.measure("into=same", n, one, func() { b.load(second) })
	few := generated(2*n, 2*n+n/300)
	b.measure(fmt.Sprintf("into=%d", 2*n), len(few), func() {}, func() {
		if got := b.lookup(few, 2, len(few)/2); got != 0 {
			b.Fatal(got)
		}
		b.load(few)
	})
	one()
	for _, callers := range []int{1, 2} {
		b.measure(fmt.Sprintf("lookup=all/callers=%d", callers), n, nothing, func() {
			if got := b.lookup(first, callers, 12_000); got != n {
				b.Fatal(got)
			}
		})
		b.measure(fmt.Sprintf("lookup=none/callers=%d", callers), n, nothing, func() {
			if got := b.lookup(second, callers, 12_000); got != 0 {
				b.Fatal(got)
			}
		})
	}
}

// BenchmarkRules measures what links with rules take: a load beside a plain one, a lookup of all
// of them, to resolve 100,000 codes, to count all, sweeps of the third that is due, and to change
// the others.
func BenchmarkRules(tb *testing.B) {
	b := newBench(tb)
	ctx, n := context.Background(), *benchRows
	links, rules := generated(0, n), make([]sink.Rules, n)
	for i := range rules {
		rules[i] = sink.Rules{Expires: asOf.Add(2*time.Hour + time.Duration(i)*time.Second), Owner: fmt.Append(nil, "user-", i%1000)}
	}
	s := openStore(b, b.dsn, Options{})
	store := func() { noError(b, loadRules(ctx, s, links)) }
	nothing := func() {}
	b.measure("load=plain", n, b.fresh, func() { b.load(links) })
	for i := range links {
		links[i].Rules = &rules[i]
	}
	b.measure("load=rules", n, b.fresh, store)
	for _, wants := range []bool{false, true} {
		b.measure(fmt.Sprint("lookup=all/rules=", wants), n, nothing, func() {
			_, session := b.session()
			defer session.Close()
			for part := range slices.Chunk(links, 12_000) {
				probes := asking(part)
				for i := range probes {
					probes[i].WantRules = wants
				}
				noError(b, session.Lookup(ctx, probes, func(sink.Found) error { return nil }))
			}
		})
	}
	codes := make([]string, 100_000)
	for i := range codes {
		codes[i] = string(links[rand.IntN(n)].Code)
	}
	b.measure("resolve", len(codes), nothing, func() { noError(b, s.Resolve(ctx, "demo", codes, func(*sink.Resolved) error { return nil })) })
	b.measure("summary", n, nothing, func() { noError(b, s.Summary(ctx, "", func(sink.Group) error { return nil })) })
	var changes []sink.Change
	for i := range rules {
		if i%3 == 0 {
			rules[i].Expires = asOf
			continue
		}
		was := sink.Rules{Expires: rules[i].Expires, Owner: rules[i].Owner, Status: sink.Active}
		changes = append(changes, sink.Change{Workspace: links[i].Workspace, Code: links[i].Code, Was: was, Now: sink.Rules{Owner: []byte("u2"), Status: sink.Active, Change: "claimed"}})
	}
	b.fresh()
	store()
	execute(b, b.dsn, "VACUUM ANALYZE links")
	execute(b, b.dsn, "CHECKPOINT")
	b.sweeps(s, links)
	b.measure("change", len(changes), nothing, func() {
		_, session := b.session()
		defer session.Close()
		run, err := session.Start(ctx, sink.Run{Fingerprint: "bench", AsOf: asOf})
		noError(b, err)
		noError(b, session.Change(ctx, run, func(yield func([]sink.Change, error) bool) { yield(changes, nil) }))
	})
}

// sweeps measures a sweep that marks links, and one that deletes them, beside a service that counts
// uses: how long it waits at most, and the size of the table and its indexes after it.
func (b *bench) sweeps(s *Store, links []sink.Link) {
	service := connect(b, b.dsn)
	for i, what := range []string{"mark", "delete"} {
		b.Run(fmt.Sprintf("rows=%d/sweep=%s", len(links), what), func(b *testing.B) {
			ctx, stop := context.WithCancel(context.Background())
			var longest time.Duration
			var g errgroup.Group
			g.Go(func() error {
				for ctx.Err() == nil {
					begun := time.Now()
					if _, err := service.Exec(context.Background(), "UPDATE links SET access_count = access_count + 1 WHERE workspace_id = 'demo' AND short_code = $1", string(links[rand.IntN(len(links))].Code)); err != nil {
						return err
					}
					longest = max(longest, time.Since(begun))
					time.Sleep(time.Millisecond)
				}
				return nil
			})
			b.ResetTimer()
			out, err := s.Sweep(ctx, sink.SweepOptions{AsOf: asOf.Add(time.Duration(i) * time.Hour), Grace: time.Hour}, nil)
			b.StopTimer()
			stop()
			noError(b, err)
			noError(b, g.Wait())
			b.ReportMetric(float64(out.Marked+out.Deleted)/b.Elapsed().Seconds(), "links/s")
			b.ReportMetric(float64(out.Kept), "kept")
			b.ReportMetric(float64(longest.Milliseconds()), "longest-wait-ms")
			dsn := service.Config().ConnString()
			b.ReportMetric(value[float64](b, dsn, "SELECT pg_table_size('links') / 1e6"), "table-MB")
			b.ReportMetric(value[float64](b, dsn, "SELECT pg_indexes_size('links') / 1e6"), "indexes-MB")
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	links := generated(0, 4096)
	e := newEncoder(sink.Run{ID: 1, AsOf: time.Now()})
	dst := make([]byte, 0, 1<<20)
	for b.Loop() {
		dst = dst[:0]
		for i := range links {
			dst, _ = e.append(dst, &links[i])
		}
	}
	b.SetBytes(int64(len(dst)))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(links)), "ns/row")
}

func byCode(a, b sink.Link) int { return bytes.Compare(a.Code, b.Code) }
