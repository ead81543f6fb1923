package report

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/linkforge/bulk/pipeline/outcome"
)

// benchRows makes rows as a run over a list of about 80 bytes a URL has them.
func benchRows(n int) []Row {
	random := rand.New(rand.NewPCG(1, 2))
	const digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	rows := make([]Row, n)
	for i := range rows {
		code := make([]byte, 10)
		for j := range code {
			code[j] = digits[random.IntN(len(digits))]
		}
		path := fmt.Sprintf("example-%d.com/blog/2024/%d/a-longer-title-of-a-post?id=%d&ref=newsletter",
			random.IntN(1000), random.IntN(12), random.IntN(1e9))
		original := "http://" + path
		if i%2 == 0 {
			original = "HTTP://" + path + "#top"
		}
		rows[i] = Row{Source: "links.csv", Row: int64(random.IntN(3e6)), Workspace: []byte("ws_abc123"),
			Original: []byte(original), Canonical: []byte("http://" + path), Code: code,
			Outcome: outcome.Outcome(random.IntN(10) / 8)}
	}
	return rows
}

func BenchmarkBlockAppend(b *testing.B) {
	rows := benchRows(1_000)
	for _, format := range []Format{CSV, Parquet, Arrow} {
		b.Run("format="+string(format), func(b *testing.B) {
			m := newMapping(b, io.Discard, format, MappingOptions{BaseURL: "https://sho.rt"})
			block := m.Block()
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				block.Append(&rows[n%len(rows)])
				if n++; n%4096 == 0 {
					if err := m.Write(block); err != nil {
						b.Fatal(err)
					}
					block = m.Block()
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func BenchmarkSHA256(b *testing.B) {
	p := make([]byte, 1<<20)
	b.SetBytes(int64(len(p)))
	h := sha256.New()
	for b.Loop() {
		h.Write(p)
	}
}

func BenchmarkMapping(b *testing.B) {
	rows := benchRows(1_000_000)
	for _, test := range []struct {
		format  Format
		workers int
	}{{CSV, 1}, {Parquet, 1}, {Parquet, 2}, {Arrow, 1}, {Arrow, 2}} {
		b.Run(fmt.Sprintf("rows=1M/format=%s/workers=%d", test.format, test.workers), func(b *testing.B) {
			b.ReportAllocs()
			start := cpuTime()
			var size counter
			for b.Loop() {
				size = counter{Writer: io.Discard}
				m := newMapping(b, &size, test.format, MappingOptions{BaseURL: "https://sho.rt", Workers: test.workers})
				for i := 0; i < len(rows); i += 5000 {
					block := m.Block()
					for j := range rows[i : i+5000] {
						block.Append(&rows[i+j])
					}
					if err := m.Write(block); err != nil {
						b.Fatal(err)
					}
				}
				if err := m.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*len(rows))/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(size.n)/float64(len(rows)), "bytes/row")
			b.ReportMetric(float64(cpuTime()-start)/float64(b.N*len(rows)), "cpu-ns/row")
		})
	}
}

// cpuTime is what this process has used, which other work on the machine
// changes less than the time that passes.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
