package postgres

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/postgres/pgtest"
	"golang.org/x/sync/errgroup"
)

// benchRows is how many links stand for "a load"; the figures in the comments
// and in benchmarks/results are for 3000000.
var benchRows = flag.Int("rows", 100_000, "links of a benchmark's load")

// generated makes the links from to to of one workspace, of about 80 bytes, in
// code order.
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

// pieces hands out links 4,096 at a time.
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

// fresh empties the database and settles what it still has to write.
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

// lookup asks for the links as the pipeline does, and returns how many there are.
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

// measure runs f after prepare, which is not timed, and reports rows a second.
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

func BenchmarkStore(tb *testing.B) {
	b := newBench(tb)
	n := *benchRows
	first, second := generated(0, n), generated(n, 2*n)
	file, other := filepath.Join(b.TempDir(), "first.bin"), filepath.Join(b.TempDir(), "second.bin")
	writeBinary(b, file, first)
	writeBinary(b, other, second)
	nothing := func() {}

	one := func() { b.fresh(); b.load(first); execute(b, b.dsn, "CHECKPOINT") }
	b.measure("into=empty/way=floor", n, b.fresh, func() { b.floor(file) })
	b.measure("into=empty/way=store", n, b.fresh, func() { b.load(first) })
	b.measure("into=same/way=copy", n, one, func() { b.copy(connect(b, b.dsn), other, "") })
	b.measure("into=same/way=store", n, one, func() { b.load(second) })
	few := generated(2*n, 2*n+n/300)
	b.measure(fmt.Sprintf("into=%d/way=store", 2*n), len(few), func() {}, func() {
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

// writeBinary writes a file for COPY.
func writeBinary(b *bench, path string, links []sink.Link) {
	f, err := os.Create(path)
	noError(b, err)
	defer f.Close()
	e := newEncoder(sink.Run{ID: 1, AsOf: time.Now()})
	var data []byte
	for i := range links {
		data, _ = e.append(data, &links[i])
	}
	first := true
	_, err = io.Copy(f, newStream(func() (batch, error) {
		if !first {
			return batch{}, io.EOF
		}
		first = false
		return batch{data: data}, nil
	}))
	noError(b, err)
}

// floor is the first load by SQL alone.
func (b *bench) floor(file string) {
	n := newNames("", "links")
	conn := connect(b, b.dsn)
	noError(b, execAll(context.Background(), conn, "BEGIN", "SET LOCAL maintenance_work_mem = '512MB'",
		"SET LOCAL max_parallel_maintenance_workers = 4", n.create()[0]))
	b.copy(conn, file, ", FREEZE", append(n.constraints(), "COMMIT")...)
}

// copy sends a file as it is over one connection, executes what follows, and
// closes the connection.
func (b *bench) copy(conn *pgx.Conn, file, options string, then ...string) {
	defer conn.Close(context.Background())
	data, err := os.Open(file)
	noError(b, err)
	defer data.Close()
	_, err = conn.PgConn().CopyFrom(context.Background(), data, copyInto("links", linksColumns, options))
	if err == nil {
		err = execAll(context.Background(), conn, then...)
	}
	noError(b, err)
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
