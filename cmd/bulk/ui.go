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
	"github.com/linkforge/bulk/pipeline/manifest"
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
	switch {
	case !u.lines:
		u.print("bulk: " + strings.ReplaceAll(strings.TrimSpace(text+"\n"+hint), "\n", "\nbulk: "))
	case hint == "":
		u.log.Error(text)
	default:
		u.log.Error(text, "hint", hint)
	}
}

// summary reports how a run went that ended with err.
func (u *ui) summary(o *runOptions, r *pipeline.Result, err error) {
	if r.ManifestSHA256 == "" {
		return
	}
	tooMany, refused := errors.AsType[*pipeline.TooManyRejectsError](err)
	loaded := !o.DryRun && !refused
	stored := loaded || refused && tooMany.Stored > 0
	if u.lines {
		u.logSummary(r, o.DryRun, stored)
	} else {
		u.printSummary(r, o.DryRun, loaded, stored)
	}
	if r.Counts.Read == 0 {
		u.log.Warn("the inputs have no rows")
	}
}

// logSummary writes log lines: one for the run, and one for each reason of its rejects.
func (u *ui) logSummary(r *pipeline.Result, dry, stored bool) {
	c := r.Counts
	u.log.Info("run ended", "out", r.Out, "run", r.RunID, "resumed", r.Resumed, "dry_run", dry, "stored", stored,
		"read", c.Read, "created", c.Created, "existing", c.Existing, "duplicate", c.Duplicate, "rejected", c.Rejected,
		"manifest_sha256", r.ManifestSHA256)
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		u.log.Warn("rows were rejected", "reason", reason, "rows", r.Reasons[reason])
	}
}

// printSummary writes the same for people.
func (u *ui) printSummary(r *pipeline.Result, dry, loaded, stored bool) {
	say := func(format string, args ...any) { u.print("bulk: " + fmt.Sprintf(format, args...)) }
	run, created := "", "created"
	switch {
	case r.Resumed && r.RunID != 0:
		run = fmt.Sprintf("run %d, resumed: ", r.RunID)
	case r.RunID != 0:
		run = fmt.Sprintf("run %d: ", r.RunID)
	}
	if !loaded {
		created = "would be created"
	}
	c := r.Counts
	say("%s%s: %d %s, %d existing, %d duplicate, %d rejected", run, rows(c.Read), c.Created, created, c.Existing, c.Duplicate, c.Rejected)
	switch {
	case dry:
		say("a dry run: nothing was stored")
	case !stored:
		say("nothing was stored")
	}
	say("wrote %s, manifest sha256 %s", r.Out, r.ManifestSHA256)
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		say("%s rejected: %s", rows(r.Reasons[reason]), reason)
	}
	if c.Rejected > 0 {
		say("rejects are in %s", filepath.Join(r.Out, manifest.RejectsName))
	}
}

func rows(n int64) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}
