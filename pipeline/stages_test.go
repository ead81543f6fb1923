package pipeline_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/fsys/fsystest"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/parquet-go/parquet-go"
)

type inputRow struct {
	URL  string `parquet:"url"`
	Team string `parquet:"team"`
	Note string `parquet:"note"`
}

// inputRows are n rows with duplicates and what is refused.
func inputRows(n int) []inputRow {
	list := make([]inputRow, n)
	for i := range list {
		list[i] = inputRow{fmt.Sprintf(spellings[i%len(spellings)], i%2), []string{"red", "blue", "a|b"}[i*31%97%3], fmt.Sprint(i)}
	}
	return list
}

func asCSV(t *testing.T, list []inputRow) []byte {
	var b bytes.Buffer
	b.WriteString("url,team,note\n")
	for _, r := range list {
		fmt.Fprintf(&b, "%s,%s,%s\n", r.URL, r.Team, r.Note)
	}
	return b.Bytes()
}

func asParquet(t *testing.T, list []inputRow) []byte {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[inputRow](&b, parquet.MaxRowsPerRowGroup(int64(len(list)/2)))
	_, err := w.Write(list)
	must(t, errors.Join(err, w.Close()))
	return b.Bytes()
}

func asArrow(t *testing.T, list []inputRow) []byte {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "url", Type: arrow.BinaryTypes.Binary}, {Name: "team", Type: arrow.BinaryTypes.Binary}, {Name: "note", Type: arrow.BinaryTypes.Binary},
	}, nil)
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	for _, half := range [][]inputRow{list[:len(list)/2], list[len(list)/2:]} {
		b := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
		for _, r := range half {
			for i, cell := range []string{r.URL, r.Team, r.Note} {
				b.Field(i).(*array.BinaryBuilder).AppendString(cell)
			}
		}
		must(t, w.Write(b.NewRecord()))
	}
	must(t, w.Close())
	return out.Bytes()
}

func asGzip(of func(*testing.T, []inputRow) []byte) func(*testing.T, []inputRow) []byte {
	return func(t *testing.T, list []inputRow) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write(of(t, list))
		w.Close()
		return b.Bytes()
	}
}

// scenes are runs that meet every stage: each kind of input, read in order or at
// random, in memory or spilled, and each order of the mapping.
var scenes = []struct {
	name  string
	data  func(*testing.T, []inputRow) []byte
	spill bool
	order report.Order
}{
	{"a.csv.gz", asGzip(asCSV), true, report.SortOrder},
	{"a.parquet", asParquet, false, report.InputOrder},
	{"a.parquet.gz", asGzip(asParquet), false, report.SortOrder},
	{"a.arrow", asArrow, true, report.InputOrder},
}

// atEveryCall runs each scene with a hook at the n-th call, of the file system
// or of the store, for every n (-short: each seventh) until a run is through without
// one; after each it checks that nothing is left, and that the next run leaves what
// an undisturbed one does.
func atEveryCall(t *testing.T, test func(t *testing.T, cfg pipeline.Config, c *countdown) error) {
	step := int64(1)
	if testing.Short() {
		step = 7
	}
	for _, scene := range scenes {
		t.Run(fmt.Sprintf("%s/spill=%v", scene.name, scene.spill), func(t *testing.T) {
			cfg := base(1)
			cfg.ReportOrder = scene.order
			cfg.SpillAt(1 << 20)
			if scene.spill {
				cfg.SpillAt(1)
			}
			filled := t.TempDir()
			cfg.Store = openStore(t, filled)
			job(t, cfg, map[string]string{"before.csv": string(asCSV(t, inputRows(30)))})
			must(t, cfg.Store.Close())
			cfg, want, links := faultJobOn(t, scene.name, scene.data(t, inputRows(450)), cfg, filled)
			cfg.TempDir = t.TempDir()
			goroutines := runtime.NumGoroutine()
			seen := map[string]int{}
			for n := int64(1); ; n += step {
				var opened atomic.Int64
				dir := copyStore(t, filled)
				c := newCountdown(n, nil)
				store := openStore(t, dir)
				cfg := cfg
				cfg.Store = &faultyStore{Store: store, countdown: c}
				cfg.UseFS(fsystest.FS{Before: c.call, Opened: &opened})
				err := test(t, cfg, c)
				operation, hit := c.operation.Load().(string)
				waitForGoroutines(t, goroutines)
				if n := opened.Load(); n != 0 {
					t.Errorf("%s at call %d: %d files are open", operation, n, n)
				}
				if left, lerr := os.ReadDir(cfg.TempDir); lerr != nil || len(left) > 0 {
					t.Errorf("%s at call %d: temporary files %v, %v", operation, n, left, lerr)
				}
				if operation != "removeall" && operation != "remove" && operation != "readdir" {
					clean(t)
				}
				seen[operation]++
				if err != nil {
					if _, staterr := os.Stat("out"); staterr == nil && len(dump(t, dir)) != len(links) {
						t.Fatalf("%s at call %d: the output is there but not the links", operation, n)
					}
					c.left.Store(0)
					_, err = pipeline.Run(context.Background(), cfg)
					if finished := operation == "close" && errors.Is(err, outdir.ErrExists); err != nil && !finished {
						t.Fatalf("%s at call %d, again: %v", operation, n, err)
					}
				}
				checkRun(t, dir, want, links)
				if err := store.Close(); err != nil {
					t.Error(err)
				}
				if !hit {
					t.Logf("%d calls: %v", n-1, seen)
					return
				}
			}
		})
	}
}

// What a run keeps beside the memory is in the directory that it was given, and nowhere else.
func TestTempDir(t *testing.T) {
	for _, scene := range scenes {
		cfg := base(10)
		cfg.ReportOrder, cfg.TempDir, cfg.DryRun = scene.order, t.TempDir(), true
		cfg.SpillAt(1)
		t.Chdir(t.TempDir())
		write(t, scene.name, string(scene.data(t, inputRows(450))))
		cfg.Inputs, cfg.Out = []string{scene.name}, "out"
		system := os.Getenv("TMPDIR")
		t.Setenv("TMPDIR", "nowhere")
		if _, err := pipeline.Run(context.Background(), cfg); err != nil {
			t.Errorf("%s: %v", scene.name, err)
		}
		t.Setenv("TMPDIR", system)
	}
}

// harmless are the operations whose failure need not fail a run: they give back
// what was only read, or read ahead what is read again.
var harmless = map[string]bool{"close": true, "fstat": true, "read": true}

// Whatever call of the file system or of the store fails, the run says so and
// leaves no part of an output, and no file beside it; then the next run leaves
// what an undisturbed one does.
func TestFaults(t *testing.T) {
	atEveryCall(t, func(t *testing.T, cfg pipeline.Config, c *countdown) error {
		c.hit = func() error { return syscall.EIO }
		clear := regexp.MustCompile(`output directory out|out/\w+\.\w+:|` + cfg.Inputs[0] + `|spill file|temporary file|^input/output error$`) // that of the store
		_, err := pipeline.Run(context.Background(), cfg)
		switch operation, hit := c.operation.Load().(string); {
		case err == nil && hit && !harmless[operation]:
			t.Errorf("%s failed, and the run did not", operation)
		case err != nil && !(errors.Is(err, syscall.EIO) && clear.MatchString(err.Error())):
			t.Errorf("%s failed: %v", operation, err)
		}
		return err
	})
}

// A run that cannot remove what it was writing does not keep the output from the next,
// of the same process.
func TestNothingCanBeRemoved(t *testing.T) {
	cfg, want, links := faultJob(t)
	store := t.TempDir()
	cfg.Store = openStore(t, store)
	faulty := cfg
	faulty.UseFS(fsystest.FS{Before: func(operation string) error {
		if operation == "remove" {
			return syscall.EIO
		}
		return nil
	}})
	if _, err := pipeline.Run(t.Context(), faulty); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if _, err := pipeline.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	checkRun(t, store, want, links)
}

// Rejects of URLs without a code that find no room on disk are told of once.
func TestLateRejectsFail(t *testing.T) {
	t.Chdir(t.TempDir())
	var list []string
	for i := range 200 { // of which most find no code
		list = append(list, fmt.Sprintf("http://example.com/%d,,%s", i, strings.Repeat("x", 100_000)))
	}
	write(t, "a.csv", csvFile(list))
	cfg := base(1)
	cfg.Inputs, cfg.Out, cfg.Status = []string{"a.csv"}, "out", new(pipeline.Status)
	cfg.SpillAt(1)
	cfg.UseFS(fsystest.FS{Before: func(operation string) error {
		if operation == "temp" && cfg.Status.Stage() == pipeline.StageFinish {
			return syscall.EIO
		}
		return nil
	}})
	if _, err := pipeline.Run(t.Context(), cfg); err == nil || strings.Count(err.Error(), "make the spill file") != 1 {
		t.Errorf("error %v", err)
	}
}

// heeding are the calls of the store that come when a run is over if it heeds that
// it is cancelled: each of them is given its context.
var heeding = []string{"populated", "lookup", "unfinished", "start", "chunk", "loaded", "finish"}

// A run that is cancelled at any call, of the file system or of the store, ends
// with the cause, all its goroutines and no file; it may come to its end first only
// where it does not ask the store any more.
func TestCancel(t *testing.T) {
	cause := errors.New("enough")
	atEveryCall(t, func(t *testing.T, cfg pipeline.Config, c *countdown) error {
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		c.hit = func() error { cancel(cause); return nil }
		_, err := pipeline.Run(ctx, cfg)
		switch operation, _ := c.operation.Load().(string); {
		case err == nil && slices.Contains(heeding, operation):
			t.Errorf("cancelled at %s, and the run went on to its end", operation)
		case err != nil && !errors.Is(err, cause):
			t.Errorf("cancelled at %s: %v", operation, err)
		}
		return err
	})
}

// So it is while rows are settled of which no store is asked.
func TestCancelSettling(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cfg, _, _ := faultJobOn(t, "a.csv", asCSV(t, inputRows(5000)), base(10), t.TempDir())
	cfg.Store, cfg.Status, cfg.Workers = nil, new(pipeline.Status), 1
	cfg.SpillAt(1)
	cfg.UseFS(fsystest.FS{Before: func(operation string) error {
		if operation == "readat" && cfg.Status.Stage() == pipeline.StageSettle {
			cancel(cause)
		}
		return nil
	}})
	_, err := pipeline.Run(ctx, cfg)
	if settled := cfg.Status.Settled.Load(); !errors.Is(err, cause) || settled > 500 {
		t.Errorf("%d rows are settled, and then %v", settled, err)
	}
}

// Once a run is cancelled, it does not read what is left on disk: not where rows are
// divided, settled, written or rejected.
func TestCancelIsHeeded(t *testing.T) {
	t.Chdir(t.TempDir())
	var list []string
	for i := range 6000 {
		url := []string{"http://example.com/%d", "ftp://example.com/%d"}[i%2]
		list = append(list, fmt.Sprintf(url+",,%s", i/2%900, strings.Repeat("x", 1000)))
	}
	write(t, "a.csv", csvFile(list))
	cfg := base(1)
	cfg.Inputs, cfg.Out, cfg.Workers, cfg.MaxRetries = []string{"a.csv"}, "out", 1, 1
	cfg.SpillAt(1)
	reads := func(cancelAt int64) int64 {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		cause := errors.New("enough")
		c := newCountdown(cancelAt, func() error { cancel(cause); return nil })
		cfg.UseFS(fsystest.FS{Before: func(operation string) error {
			if operation == "readat" {
				return c.call(operation)
			}
			return nil
		}})
		if _, err := pipeline.Run(ctx, cfg); cancelAt > 0 && !errors.Is(err, cause) {
			t.Errorf("cancelled at read %d: %v", cancelAt, err)
		}
		return -c.left.Load()
	}
	all := reads(0)
	must(t, os.RemoveAll("out"))
	for n := int64(1); n < all; n += all / 8 {
		if after := reads(n); after > 100 {
			t.Errorf("cancelled at read %d of %d: %d more", n, all, after)
		}
	}
}
