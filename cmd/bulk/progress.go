package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/sink"
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
	return sync.OnceFunc(func() {
		close(quit)
		done.Wait()
		u.setBar(nil)
	})
}

// An outage is a store that does not answer; the zero one is none.
type outage struct {
	problem      string
	since, until time.Time
}

// outages returns what shows outages: the progress line, or else the log.
func (u *ui) outages() sink.Outage {
	if u.lines || u.quiet {
		return sink.LogOutage(u.log)
	}
	return func(problem string, until time.Time) {
		u.mu.Lock()
		was := u.down
		u.down = outage{problem, was.since, until}
		switch {
		case until.IsZero():
			u.down = outage{}
		case was.since.IsZero():
			u.down.since = time.Now()
		}
		u.mu.Unlock()
		if until.IsZero() && !was.since.IsZero() {
			u.log.Info("the database answers again", "after", time.Since(was.since))
		}
	}
}

// outageLine returns what the progress line shows of an outage in so many columns; "": there
// is none.
func (u *ui) outageLine(width int) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.down.since.IsZero() {
		return ""
	}
	left := fmt.Sprintf(": trying for %s more", max(0, time.Until(u.down.until)).Round(time.Second))
	problem := []rune(visible(u.down.problem))
	return string(problem[:min(len(problem), max(0, width-len(left)))]) + left
}

// logProgress logs how far a run is, once a minute.
func (u *ui) logProgress(status *pipeline.Status, stage pipeline.Stage) {
	attrs := []any{"stage", stage.String(), "read", status.Read.Load()}
	if total, at := progress(status, stage); total > 0 {
		attrs = append(attrs, "percent", 100*at/total)
	}
	u.log.Info("progress", attrs...)
}

// stageDown stands for an outage, which is shown in place of the stage.
const stageDown = pipeline.Stage(-1)

// bars returns a function that begins a new progress line for each stage, and moves it.
func (u *ui) bars(status *pipeline.Status) func() {
	stage := pipeline.Stage(-2)
	return func() {
		now, width := status.Stage(), terminalWidth(u.stderr)
		title := u.outageLine(width - 5) // a spinner and spaces
		if title == "" {
			title = now.String()
		} else {
			now = stageDown
		}
		if now == stage {
			u.moveBar(status, stage, title)
		} else { // the first rate is known at the next call
			stage = now
			u.setBar(newBar(u.stderr, status, stage, title, width < 50))
		}
	}
}

// moveBar draws the progress line and leaves the cursor at its beginning. With the cursor at
// its end, the ^C that a terminal shows would wrap, and only the second line be cleared.
func (u *ui) moveBar(status *pipeline.Status, stage pipeline.Stage, title string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if stage == stageDown { // the title changes with the time
		u.bar.Describe(title)
	}
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
	case pipeline.StageOrder, pipeline.StageWrite, pipeline.StageCount, pipeline.StageDelete:
		return rows, s.Written.Load()
	}
	return -1, 0
}

// terminalWidth returns the width of a terminal, or 80 if it is not known.
func terminalWidth(w io.Writer) int {
	if file, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// newBar returns a progress line. On a narrow terminal it has no room for a rate: the line
// would wrap, and not be cleared as a whole.
func newBar(w io.Writer, s *pipeline.Status, stage pipeline.Stage, title string, narrow bool) *progressbar.ProgressBar {
	total, _ := progress(s, stage)
	if total == 0 {
		total = -1
	}
	opts := []progressbar.Option{
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(title),
		progressbar.OptionFullWidth(), progressbar.OptionThrottle(100 * time.Millisecond),
		progressbar.OptionSetSpinnerChangeInterval(0), // or it would draw by itself, also when it was replaced
	}
	switch {
	case narrow && total > 0:
	case stage == stageDown:
		opts = append(opts, progressbar.OptionSetElapsedTime(false))
	case stage == pipeline.StageRead:
		opts = append(opts, progressbar.OptionShowBytes(true))
	case total > 0:
		opts = append(opts, progressbar.OptionShowIts(), progressbar.OptionSetItsString("rows"))
	}
	bar := progressbar.NewOptions64(total, opts...)
	bar.StartWithoutRender()
	return bar
}
