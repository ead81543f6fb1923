package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/sink"
	"github.com/spf13/cobra"
)

// resolveOptions are the flags of resolve.
type resolveOptions struct {
	store     storeOptions
	workspace string
	asOf      string
	from      string // "": no file; "-": stdin
	json      bool
	stdin     io.Reader
}

func resolveCommand(ui *ui) *cobra.Command {
	var o resolveOptions
	cmd := &cobra.Command{
		Use:   "resolve CODE… --workspace ID",
		Short: "Show what a redirect service answers to codes",
		Long: `resolve prints a line for each code, in the order of the codes: the code, the
answer and the URL, with tabs between them. The answers are:
  302  the link works; the URL is the one that it leads to. A link with a
       redirect code (bulk help migration) has that: 301, 302, 307 or 308
  410  the link has ended: its expiry has passed, it was used as often as it may
       be, or its status is another one than ACTIVE, such as EXPIRED
  404  no link has the code, or its status is DELETED
Text that is not printable is shown in quotes, with escapes.

A CODE may be - for standard input, with one code on each line. The exit code is
0 whatever the answers are.`,
		Example: `  bulk resolve -w demo --db sqlite:links.db HzMEjeWL2e
  bulk resolve -w demo --from codes.txt --json --db postgres://me@host/links`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.stdin = cmd.InOrStdin()
			return resolve(cmd.Context(), ui, &o, args)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.workspace, "workspace", "w", "", "workspace `ID` of the codes (required)")
	f.StringVar(&o.from, "from", "", "also resolve the codes in this `FILE`, one on each line; - is standard input")
	f.StringVar(&o.asOf, "as-of", "", "answer as at this `TIME`: RFC 3339 or a date (default: now)")
	f.BoolVar(&o.json, "json", false, "print one JSON object for each code")
	o.store.flags(cmd)
	group(f, "Store flags")
	return cmd
}

// An answer is what a redirect service says to a code.
type answer struct {
	Code   manifest.Text `json:"code"`
	Status int           `json:"status"`
	URL    manifest.Text `json:"url,omitempty"` // of a link that works
}

// resolvePage is the number of codes that are looked up together, and whose answers are in memory.
const resolvePage = 100_000

func resolve(ctx context.Context, ui *ui, o *resolveOptions, args []string) (err error) {
	at, err := parseAsOf(o.asOf)
	switch {
	case err != nil:
		return usage(fmt.Errorf("--as-of: %w", err))
	case len(args) == 0 && o.from == "":
		return usage(errors.New("no code: give one, or a file with --from"))
	case o.workspace == "":
		return usage(errors.New("no workspace: give one with --workspace"))
	}
	defer ui.endAtOnce(ctx)()
	store, err := o.store.open(ctx, ui.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := knows(ctx, store, o.workspace); err != nil {
		return err
	}
	folds, err := pipeline.Folds(ctx, store, o.workspace)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(ui.stdout)
	var codes []string
	page := func() error {
		answers, err := resolveCodes(ctx, store, o.workspace, folds, at, codes)
		if err != nil {
			return err
		}
		codes = codes[:0]
		return printAnswers(w, answers, o.json)
	}
	err = eachText(args, o.from, o.stdin, func(text []byte, _ bool) error {
		codes = append(codes, string(text))
		if len(codes) < resolvePage {
			return nil
		}
		return page()
	})
	if err == nil {
		err = page()
	}
	return errors.Join(err, w.Flush())
}

// parseAsOf reads the time of --as-of, as stores have times; "": now.
func parseAsOf(text string) (time.Time, error) {
	t, err := parseTime(text)
	if t.IsZero() {
		t = time.Now()
	}
	if t = t.UTC(); err == nil && (t.Year() < 1 || t.Year() > 9999) {
		err = fmt.Errorf("%q is out of range", text)
	}
	return t.Truncate(time.Microsecond), err
}

// resolveCodes returns the answers to codes in their order.
func resolveCodes(ctx context.Context, store sink.Store, workspace string, folds bool, at time.Time, codes []string) ([]answer, error) {
	answers, kept := make([]answer, len(codes)), make([]string, len(codes))
	for i, code := range codes {
		answers[i] = answer{Code: manifest.Text(code), Status: sink.AnswerNone}
		kept[i] = asKept(code, folds)
	}
	err := store.Resolve(ctx, workspace, kept, func(r *sink.Resolved) error {
		a := &answers[r.Index]
		if a.Status = r.Answer(at); r.Rules.Answer(at) == sink.AnswerURL {
			a.URL = manifest.Text(r.URL)
		}
		return nil
	})
	return answers, err
}

// asKept returns a code as a workspace has it, which folds case or not.
func asKept(code string, folds bool) string {
	if !folds {
		return code
	}
	return string(legacy.Fold(nil, []byte(code)))
}

func printAnswers(w *bufio.Writer, answers []answer, asJSON bool) error {
	j := newJSON(w)
	for _, a := range answers {
		if asJSON {
			if err := j.Encode(a); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "%s\t%d", printable(string(a.Code)), a.Status)
		if a.URL != "" {
			w.WriteString("\t" + printable(string(a.URL)))
		}
		w.WriteByte('\n')
	}
	return nil // Flush has the error
}
