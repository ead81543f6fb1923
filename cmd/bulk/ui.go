package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// The rules of the terminal: data goes to stdout, everything else to stderr. On
// a terminal there is a progress line, and messages begin with "bulk: ", without
// capitals or a full stop; a hint follows an error on a line of its own. Where
// stderr is no terminal, or --log-format says so, every message is a log line. Nothing
// that a terminal would obey gets to it as it is, data neither.

// ui is what the user sees.
type ui struct {
	stdout io.Writer
	stderr io.Writer
	named  []string // arguments and BULK_DB: an error shows none of their passwords
	format string   // of log lines; "": by the terminal
	lines  bool     // log lines rather than messages
	log    *slog.Logger
	every  time.Duration // between log lines of a long run
	mu     sync.Mutex    // guards stderr against the progress line
	bar    *progressbar.ProgressBar
}

func newUI(stdout, stderr io.Writer) *ui {
	u := &ui{stdout: stdout, stderr: stderr, every: time.Minute}
	u.lines = !isTerminal(stderr)
	if isTerminal(stdout) {
		u.stdout = &shown{Writer: stdout}
	}
	u.log = slog.New(&messages{ui: u})
	return u
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// logAs chooses how messages look: "" (by the terminal), "text" or "json".
func (u *ui) logAs(format string) error {
	u.lines = u.lines || format == "text" || format == "json"
	if format == "json" {
		w := u.stderr
		if isTerminal(w) { // JSON leaves it more to obey than quoted text does
			w = &shown{Writer: w}
		}
		u.log = slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: durationAsText}))
	} else if u.lines {
		u.log = slog.New(slog.NewTextHandler(u.stderr, nil))
	}
	if format != "" && format != "text" && format != "json" {
		return fmt.Errorf("--log-format: %q is not text or json", format)
	}
	return nil
}

// durationAsText writes durations to JSON as everywhere else, with their unit.
func durationAsText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.String())
	}
	return a
}

// messages is the slog.Handler of the terminal.
type messages struct {
	ui    *ui
	attrs []slog.Attr
}

func (m *messages) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (m *messages) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "bulk: %s", r.Message)
	write := func(a slog.Attr) bool {
		fmt.Fprintf(&b, ", %s %s", a.Key, readable(a.Value))
		return true
	}
	for _, a := range m.attrs {
		write(a)
	}
	r.Attrs(write)
	m.ui.print(b.String())
	return nil
}

// readable writes a value for people: a duration to three digits, or seconds, and a time to
// the second.
func readable(v slog.Value) string {
	switch v.Kind() {
	case slog.KindDuration:
		unit := time.Nanosecond
		for unit < time.Second && v.Duration() >= 1000*unit {
			unit *= 10
		}
		return v.Duration().Round(unit).String()
	case slog.KindTime:
		return v.Time().UTC().Format(time.RFC3339)
	}
	return v.String()
}

func (m *messages) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &messages{m.ui, append(slices.Clone(m.attrs), attrs...)}
}

func (m *messages) WithGroup(string) slog.Handler { return m }

// print writes lines above the progress line, as a terminal may have them.
func (u *ui) print(lines string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bar != nil {
		u.bar.Clear()
	}
	fmt.Fprintln(u.stderr, visible(lines))
}

// visible writes what a terminal would obey, as names of files and cells may have it, in
// escapes: control characters, but for tabs and ends of lines, those that turn the order
// of the text around, and bytes that are not UTF-8, which to some are control characters.
func visible(text string) string {
	var b strings.Builder
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1 || r < ' ' && r != '\n' && r != '\t':
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r >= 0x7f && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[i : i+size])
		}
	}
	return b.String()
}

// shown is a terminal to which data is written: lines, of which it gets what is visible.
// Elsewhere data stays as it is.
type shown struct {
	io.Writer
	rest []byte // of a character whose end is still to come
}

func (w *shown) Write(p []byte) (int, error) {
	text := append(w.rest, p...)
	whole := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if end := text[len(text)-back:]; utf8.RuneStart(end[0]) && !utf8.FullRune(end) {
			whole -= back
			break
		}
	}
	if _, err := io.WriteString(w.Writer, visible(string(text[:whole]))); err != nil {
		return 0, err
	}
	w.rest = bytes.Clone(text[whole:])
	return len(p), nil
}

// newJSON writes lines of JSON that show & < > as they are.
func newJSON(w io.Writer) *json.Encoder {
	j := json.NewEncoder(w)
	j.SetEscapeHTML(false)
	return j
}

// fail reports the error that ends the command, and what to do, if there is a hint.
func (u *ui) fail(err error, hint string) {
	text := hideAddresses(err.Error(), u.named)
	if _, message := u.log.Handler().(*messages); message {
		u.print("bulk: " + strings.ReplaceAll(strings.TrimSpace(text+"\n"+hint), "\n", "\nbulk: "))
	} else if hint == "" {
		u.log.Error(text)
	} else {
		u.log.Error(text, "hint", hint)
	}
}

// summary reports how a run went that ended with err.
func (u *ui) summary(o *runOptions, r *pipeline.Result, err error) {
	if r.ManifestSHA256 == "" {
		return
	}
	c := r.Counts
	var tooMany *pipeline.TooManyRejectsError
	whole := !o.DryRun && !errors.As(err, &tooMany)
	stored := whole || tooMany != nil && tooMany.Stored > 0
	if u.lines {
		u.log.Info("run ended", "out", r.Out, "run", r.RunID, "resumed", r.Resumed, "dry_run", o.DryRun, "stored", stored,
			"read", c.Read, "created", c.Created, "existing", c.Existing, "duplicate", c.Duplicate, "rejected", c.Rejected,
			"manifest_sha256", r.ManifestSHA256)
	} else {
		run, created := "", "created"
		switch {
		case r.Resumed && r.RunID != 0:
			run = fmt.Sprintf("run %d, resumed: ", r.RunID)
		case r.RunID != 0:
			run = fmt.Sprintf("run %d: ", r.RunID)
		}
		if !whole {
			created = "would be created"
		}
		u.print(fmt.Sprintf("bulk: %s%s: %d %s, %d existing, %d duplicate, %d rejected",
			run, rows(c.Read), c.Created, created, c.Existing, c.Duplicate, c.Rejected))
		switch {
		case o.DryRun:
			u.print("bulk: a dry run: nothing was stored")
		case !stored:
			u.print("bulk: nothing was stored")
		}
		u.print(fmt.Sprintf("bulk: wrote %s, manifest sha256 %s", r.Out, r.ManifestSHA256))
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		if u.lines {
			u.log.Warn("rows were rejected", "reason", reason, "rows", r.Reasons[reason])
		} else {
			u.print(fmt.Sprintf("bulk: %s rejected: %s", rows(r.Reasons[reason]), reason))
		}
	}
	if c.Rejected > 0 && !u.lines {
		u.print("bulk: rejects are in " + filepath.Join(r.Out, report.RejectsName))
	}
	if c.Read == 0 {
		u.log.Warn("the inputs have no rows")
	}
}

func rows(n int64) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}

// A watch draws the progress line, or logs at times how far a run is, until it is stopped.
type watch struct {
	ui   *ui
	quit chan struct{}
	done sync.WaitGroup
}

func (u *ui) watch(status *pipeline.Status) *watch {
	w := &watch{ui: u, quit: make(chan struct{})}
	if u.lines {
		w.done.Go(func() { w.tell(status) })
	} else {
		w.done.Go(func() { w.draw(status) })
	}
	return w
}

func (w *watch) stop() {
	close(w.quit)
	w.done.Wait()
}

// tell is for who looks at the log of a run of many minutes.
func (w *watch) tell(status *pipeline.Status) {
	tick := time.NewTicker(w.ui.every)
	defer tick.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-tick.C:
			w.ui.logProgress(status, status.Stage())
		}
	}
}

func (u *ui) logProgress(status *pipeline.Status, stage pipeline.Stage) {
	attrs := []any{"stage", stage.String(), "read", status.Read.Load()}
	if total, at := progress(status, stage); total > 0 {
		attrs = append(attrs, "percent", 100*at/total)
	}
	u.log.Info("progress", attrs...)
}

func (w *watch) draw(status *pipeline.Status) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	stage := pipeline.Stage(-1)
	for {
		select {
		case <-w.quit:
			w.ui.setBar(nil)
			return
		case <-tick.C:
		}
		if now := status.Stage(); now != stage {
			stage = now
			w.ui.setBar(newBar(w.ui.stderr, status, stage, narrow(w.ui.stderr)))
			continue // nothing has a rate yet
		}
		w.ui.moveBar(status, stage)
	}
}

// moveBar draws the progress line and leaves the cursor at its beginning: at its end, the ^C
// that a terminal shows would go on in the next line, and that alone be cleared.
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

// progress returns how far a stage is, and of how much; -1: unknown.
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

// narrow says whether a terminal has no room for a rate: the line would go on in the
// next one, where it is not cleared.
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
