package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/linkforge/bulk/pipeline/account"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// The rules of the terminal: data goes to stdout, everything else to stderr. On
// a terminal there is a progress line, and messages begin with "bulk: ", without
// capitals or a full stop; a hint follows an error on a line of its own. If
// stderr is no terminal, or --log-format is given, every message is a log line.
// Control characters reach a terminal as escapes only, also those in data.

// ui is what the user sees.
type ui struct {
	stdout   io.Writer
	stderr   io.Writer
	args     []string // of the command line
	named    []string // arguments, BULK_DB and settings: an error shows none of their passwords
	settings settings
	format   string        // of log lines; "": by the terminal
	lines    bool          // log lines rather than messages
	quiet    bool          // only errors, warnings and the result
	log      *slog.Logger  // what happens meanwhile
	result   *slog.Logger  // how it ended: shown with --quiet, too
	every    time.Duration // between log lines of a long run
	metrics  *metrics      // of the run; nil: none are to be written
	began    time.Time     // when the run began; zero: none did
	mu       sync.Mutex    // guards stderr against the progress line, and all below
	bar      *progressbar.ProgressBar
	down     outage
}

func newUI(stdout, stderr io.Writer) *ui {
	u := &ui{stdout: stdout, stderr: stderr, every: time.Minute}
	u.lines = !isTerminal(stderr)
	if isTerminal(stdout) {
		u.stdout = &shown{Writer: stdout}
	}
	u.logAs("")
	return u
}

// isTerminal reports whether a reader or writer is a terminal.
func isTerminal(rw any) bool {
	file, ok := rw.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// logAs chooses how messages look: "" (by the terminal), "text" or "json".
func (u *ui) logAs(format string) error {
	var h slog.Handler = &messages{ui: u}
	if u.lines = u.lines || format != ""; u.lines {
		h = slog.NewTextHandler(u.stderr, nil)
	}
	if format == "json" {
		w := u.stderr
		if isTerminal(w) { // JSON does not escape all control characters
			w = &shown{Writer: w}
		}
		h = slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: durationAsText})
	}
	h = flagged{h}
	u.result, u.log = slog.New(h), slog.New(h)
	if u.quiet {
		u.log = slog.New(warnings{h})
	}
	if format != "" && format != "text" && format != "json" {
		return fmt.Errorf("--log-format %q: it must be text or json", format)
	}
	return nil
}

// warnings is a handler that drops what is less than a warning.
type warnings struct{ slog.Handler }

func (warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// tell reports a result: to people in sentences, one on each line, to machines as a log line.
func (u *ui) tell(level slog.Level, sentences, message string, attrs ...any) {
	if u.lines {
		u.result.Log(context.Background(), level, message, attrs...)
	} else {
		u.print("bulk: " + strings.ReplaceAll(sentences, "\n", "\nbulk: "))
	}
}

// note is tell for what is not shown with --quiet.
func (u *ui) note(sentences, message string, attrs ...any) {
	if !u.quiet {
		u.tell(slog.LevelInfo, sentences, message, attrs...)
	}
}

// durationAsText makes durations in JSON texts with a unit, such as 50ms.
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
	var attrs []string
	write := func(a slog.Attr) bool {
		attrs = append(attrs, a.Key+": "+readable(a.Value))
		return true
	}
	for _, a := range m.attrs {
		write(a)
	}
	r.Attrs(write)
	text := "bulk: " + r.Message
	if len(attrs) > 0 {
		text += " (" + strings.Join(attrs, ", ") + ")"
	}
	m.ui.print(text)
	return nil
}

// readable formats a value for people: durations to three digits or to the second, times to
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

// print writes lines above the progress line, with control characters escaped.
func (u *ui) print(lines string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bar != nil {
		u.bar.Clear()
	}
	fmt.Fprintln(u.stderr, visible(lines))
}

// visible is a text without what a terminal would obey.
func visible(text string) string { return hygiene.Visible(text) }

// shown is a terminal to which data is written: it gets what visible makes of the text.
type shown struct {
	io.Writer
	rest []byte // the first bytes of a character that is not complete yet
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

// fail reports the error that ends the command, and a hint what to do; "": none.
func (u *ui) fail(err error, hint string) {
	text := hideAddresses(inFlags(err.Error()), u.named)
	if exitCode(err) == exitUsage {
		text = u.settings.sourced(text)
	}
	var attrs []any
	if hint != "" {
		attrs = []any{"hint", hint}
	}
	u.tell(slog.LevelError, strings.TrimSpace(text+"\n"+hint), text, attrs...)
}

// begin notes that a run begins. A log line says of what; people see it in their command.
func (u *ui) begin(o *runOptions) {
	u.began = time.Now()
	if u.lines {
		u.log.Info("run begins", "version", toolVersion(), "inputs", o.Inputs, "store", o.store.name(),
			"workspace", o.Workspace, "workspace_column", o.Source.WorkspaceColumn, "out", o.Out)
	}
}

// count writes a number with its noun for people: 1 row, 3,520 rows.
func count(n int64, noun string) string { return account.Counted(n, noun) }

// thousands writes a number for people: 3,520.
func thousands(n int64) string { return account.Number(n) }
