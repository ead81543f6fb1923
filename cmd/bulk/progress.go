package main

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/linkforge/bulk/pipeline"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// watch draws the progress line, or logs once a minute how far a run is, until stop is called.
func (u *ui) watch(status *pipeline.Status) (stop func()) {
	every, show := u.every, func() { u.logProgress(status, status.Stage()) }
	switch {
	case u.quiet:
		show = func() {}
	case !u.lines:
		every, show = 100*time.Millisecond, u.bars(status)
	}
	quit := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				show()
			}
		}
	})
	return func() {
		close(quit)
		done.Wait()
		u.setBar(nil)
	}
}

// logProgress logs how far a run is, once a minute.
func (u *ui) logProgress(status *pipeline.Status, stage pipeline.Stage) {
	attrs := []any{"stage", stage.String(), "read", status.Read.Load()}
	if total, at := progress(status, stage); total > 0 {
		attrs = append(attrs, "percent", 100*at/total)
	}
	u.log.Info("progress", attrs...)
}

// bars returns a function that begins a new progress line for each stage, and moves it.
func (u *ui) bars(status *pipeline.Status) func() {
	stage := pipeline.Stage(-1)
	return func() {
		if now := status.Stage(); now == stage {
			u.moveBar(status, stage)
		} else { // the first rate is known at the next call
			stage = now
			u.setBar(newBar(u.stderr, status, stage, narrow(u.stderr)))
		}
	}
}

// moveBar draws the progress line and leaves the cursor at its beginning. With the cursor at
// its end, the ^C that a terminal shows would wrap, and only the second line be cleared.
func (u *ui) moveBar(status *pipeline.Status, stage pipeline.Stage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, at := progress(status, stage)
	u.bar.Set64(at)
	u.bar.RenderBlank() // Set64 leaves a spinner as it is where nothing has moved
	io.WriteString(u.stderr, "\r")
}

func (u *ui) setBar(bar *progressbar.ProgressBar) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bar != nil {
		u.bar.Clear()
	}
	u.bar = bar
}

// progress returns how far a stage is, and the total; -1: unknown.
func progress(s *pipeline.Status, stage pipeline.Stage) (total, at int64) {
	rows := s.Read.Load() - s.Rejected.Load()
	switch stage {
	case pipeline.StageRead:
		return s.TotalBytes.Load(), s.Bytes.Load()
	case pipeline.StageSettle:
		return rows, s.Settled.Load()
	case pipeline.StageOrder, pipeline.StageWrite:
		return rows, s.Written.Load()
	}
	return -1, 0
}

// narrow reports whether a terminal has no room for a rate: the line would wrap, and not be
// cleared as a whole.
func narrow(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	return err == nil && width > 0 && width < 50 // 0: not known
}

func newBar(w io.Writer, s *pipeline.Status, stage pipeline.Stage, narrow bool) *progressbar.ProgressBar {
	total, _ := progress(s, stage)
	if total == 0 {
		total = -1
	}
	opts := []progressbar.Option{
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(stage.String()),
		progressbar.OptionFullWidth(), progressbar.OptionThrottle(100 * time.Millisecond),
		progressbar.OptionSetSpinnerChangeInterval(0), // or it would draw by itself, also when it was replaced
	}
	switch {
	case narrow && total > 0:
	case stage == pipeline.StageRead:
		opts = append(opts, progressbar.OptionShowBytes(true))
	case total > 0:
		opts = append(opts, progressbar.OptionShowIts(), progressbar.OptionSetItsString("rows"))
	}
	bar := progressbar.NewOptions64(total, opts...)
	bar.StartWithoutRender()
	return bar
}
