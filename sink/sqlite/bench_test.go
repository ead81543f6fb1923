package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/sink"
	"golang.org/x/sys/unix"
)

const benchRows = 1_000_000

// benchLinks returns rows/n links of each of n workspaces, as the pipeline makes them:
// canonical URLs of about 80 bytes and codes of ten characters, in code order.
func benchLinks(n, from, rows int) (out []sink.Link) {
	scheme, err := codegen.New(codegen.DefaultLength)
	if err != nil {
		panic(err)
	}
	for w := range n {
		part := makeLinks(fmt.Sprintf("ws_%05d", w), from, from+rows/n)
		for i := range part {
			part[i].Code = scheme.AppendCode(nil, codegen.FromKey(part[i].Key))
		}
		sortLinks(part)
		out = append(out, part...)
	}
	return inOrder(out)
}

// inOrder copies the bytes of the links one after the other, as the sort leaves them.
func inOrder(links []sink.Link) []sink.Link {
	size := 0
	for _, l := range links {
		size += len(l.Workspace) + len(l.Code) + len(l.Canonical)
	}
	mem := make([]byte, 0, size)
	keep := func(b []byte) []byte {
		mem = append(mem, b...)
		return mem[len(mem)-len(b) : len(mem) : len(mem)]
	}
	for i := range links {
		l := &links[i]
		l.Workspace, l.Code, l.Canonical = keep(l.Workspace), keep(l.Code), keep(l.Canonical)
	}
	return links
}

// perRow runs prepare, which is not timed, and f, b.N times. It reports rates, processor
// time and allocations per row. Compare the processor time if other programs run on the
// machine.
func perRow(b *testing.B, rows int, what string, prepare, f func()) {
	var mallocs uint64
	var cpu time.Duration
	for range b.N {
		b.StopTimer()
		prepare()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := processorTime(b)
		b.StartTimer()
		f()
		b.StopTimer()
		cpu += processorTime(b) - start
		runtime.ReadMemStats(&after)
		mallocs += after.Mallocs - before.Mallocs
	}
	total := float64(b.N) * float64(rows)
	b.ReportMetric(float64(cpu.Nanoseconds())/total, "cpu-ns/"+what)
	b.ReportMetric(total/b.Elapsed().Seconds(), what+"s/s")
	b.ReportMetric(float64(mallocs)/total, "allocs/"+what)
	b.ReportMetric(0, "ns/op")
}

func processorTime(b *testing.B) time.Duration {
	var u unix.Rusage
	noError(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func workspacesOf(links []sink.Link) (out []string) {
	for i, l := range links {
		if i == 0 || string(links[i-1].Workspace) != string(l.Workspace) {
			out = append(out, string(l.Workspace))
		}
	}
	return out
}

// BenchmarkLoad measures from the lock to the finished run and the closed file.
func BenchmarkLoad(b *testing.B) {
	for _, c := range []struct{ existing, workspaces int }{{0, 1}, {0, 100}, {benchRows, 1}, {benchRows, 100}} {
		b.Run(fmt.Sprintf("rows=1M/existing=%dM/workspaces=%d", c.existing/benchRows, c.workspaces), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "x.db")
			links := benchLinks(c.workspaces, 0, benchRows)
			old := benchLinks(c.workspaces, benchRows, c.existing)
			workspaces := workspacesOf(links)
			load := func(links []sink.Link) {
				store := open(b, path)
				inSession(b, store, func(s *session, run sink.Run) {
					noError(b, s.Load(context.Background(), run, oneChunk(links)))
					noError(b, s.Loaded(context.Background(), run))
					noError(b, s.Finish(context.Background(), run))
				}, workspaces...)
			}
			prepare := func() {
				if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
					b.Fatal(err)
				}
				if len(old) > 0 {
					load(old)
				}
			}
			b.ResetTimer()
			perRow(b, len(links), "row", prepare, func() { load(links) })
		})
	}
}

func BenchmarkLookup(b *testing.B) {
	const rows = 3 * benchRows
	path := filepath.Join(b.TempDir(), "x.db")
	links := benchLinks(1, 0, rows)
	store := open(b, path)
	inSession(b, store, func(s *session, run sink.Run) {
		noError(b, s.Load(context.Background(), run, oneChunk(links)))
	}, workspacesOf(links)...)
	for name, probed := range map[string][]sink.Link{"all": links, "none": benchLinks(1, rows, rows), "all_sparse": every(links, 100), "none_sparse": benchLinks(1, rows, rows/100)} {
		b.Run("rows=3M/existing="+name, func(b *testing.B) {
			probes := make([]sink.Probe, len(probed))
			for i, l := range probed {
				probes[i] = sink.Probe{Workspace: l.Workspace, Code: l.Code, Key: l.Key, Canonical: l.Canonical}
			}
			s, err := store.Peek(context.Background())
			noError(b, err)
			defer s.Close()
			perRow(b, len(probes), "probe", func() {}, func() {
				for part := range slices.Chunk(probes, 65536) {
					noError(b, s.Lookup(context.Background(), part, func(sink.Found) error { return nil }))
				}
			})
		})
	}
}

// every returns every n-th link.
func every(links []sink.Link, n int) (out []sink.Link) {
	for i := 0; i < len(links); i += n {
		out = append(out, links[i])
	}
	return out
}

// BenchmarkRules measures what links with rules take: a load, a lookup of all of them, to resolve
// 100,000 codes, and sweeps of the third that is due.
func BenchmarkRules(b *testing.B) {
	ctx, path := context.Background(), filepath.Join(b.TempDir(), "x.db")
	links := benchLinks(1, 0, benchRows)
	for i := range links {
		links[i].Rules = &sink.Rules{Owner: fmt.Append(nil, "user-", i%1000), Expires: asOf.Add(time.Hour)}
		if i%3 == 0 {
			links[i].Rules.Expires = asOf
		}
	}
	store := open(b, path)
	load := func() {
		inSession(b, store, func(s *session, run sink.Run) {
			run.Rules = true
			noError(b, s.Load(ctx, run, oneChunk(links)))
		}, workspacesOf(links)...)
	}
	fresh := func() {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			b.Fatal(err)
		}
	}
	nothing := func() {}
	measure := func(name string, rows int, prepare, f func()) {
		b.Run("rows=1M/"+name, func(b *testing.B) { perRow(b, rows, "link", prepare, f) })
	}
	measure("load", len(links), fresh, load)
	workspace, codes, probes := string(links[0].Workspace), make([]string, 100_000), make([]sink.Probe, len(links))
	for i := range codes {
		codes[i] = string(links[i*7919%len(links)].Code)
	}
	for i, l := range links {
		probes[i] = sink.Probe{Workspace: l.Workspace, Code: l.Code, Key: l.Key, Canonical: l.Canonical, WantRules: true}
	}
	measure("lookup", len(links), nothing, func() {
		s, err := store.Peek(ctx)
		noError(b, err)
		defer s.Close()
		for part := range slices.Chunk(probes, 65536) {
			noError(b, s.Lookup(ctx, part, func(sink.Found) error { return nil }))
		}
	})
	measure("resolve", len(codes), nothing, func() { noError(b, store.Resolve(ctx, workspace, codes, func(*sink.Resolved) error { return nil })) })
	sweep := func(after time.Duration) func() {
		return func() {
			_, err := store.Sweep(ctx, sink.SweepOptions{AsOf: asOf.Add(after), Grace: time.Minute}, nil)
			noError(b, err)
		}
	}
	measure("sweep=mark", len(links)/3, func() { fresh(); load() }, sweep(0))
	measure("sweep=nothing", len(links), nothing, sweep(0))
	measure("sweep=delete", len(links)/3, func() { fresh(); load(); sweep(0)() }, sweep(time.Minute))
}
