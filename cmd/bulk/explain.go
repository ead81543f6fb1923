package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/explain"
	"github.com/linkforge/bulk/sink"
	"github.com/spf13/cobra"
)

type explainOptions struct {
	explain.Rules
	store  storeOptions
	ask    bool // the store
	length int
	salts  []int
	from   string
	json   bool
	stdin  io.Reader
}

func explainCommand(ui *ui) *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain URL… --workspace ID",
		Short: "Show step by step how a URL gets its code",
		Long: `Show step by step how a URL gets its code: each rule that changes it, the
canonical form, what is hashed, the hash, the first 16 bytes of it as an integer,
its Base58 digits and the code: the first of them, padded with 1 on the left
where there are fewer. With --db also who owns the code of each salt, and what a
run would do now. A URL may be - for standard input, with one on each line. One
that a run would reject is shown with the reason (exit code 3). What is not
printable UTF-8 is shown in quotes, with escapes.

` + exitCodes,
		Example: `  bulk explain --workspace 42 'HTTP://Example.com:80/api/users?name=john&id=123'
  bulk explain --workspace 42 --from urls.txt --json --db sqlite:bulk.db`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := unasked(cmd.Flags()); err != nil {
				return usage(err)
			}
			o.ask, o.stdin = cmd.Flags().Changed("db"), cmd.InOrStdin()
			rejected, err := runExplain(cmd.Context(), ui, &o, args)
			if err == nil && rejected {
				err = errRejected
			}
			return err
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Workspace, "workspace", "", "workspace of the URLs (required)")
	f.StringVar(&o.from, "from", "", "also explain the URLs of this file, one on each line; - is standard input")
	f.BoolVar(&o.json, "json", false, "print one JSON object for each URL")
	f.IntSliceVar(&o.salts, "salt", []int{0}, "salt of the code; several as 0,1,2")
	f.IntVar(&o.length, "code-length", codegen.DefaultLength, "characters of a code, 1 to 24")
	f.IntVar(&o.MaxRetries, "max-retries", codegen.DefaultRetries, "highest salt of which --db shows the owner")
	f.BoolVar(&o.Profile.KeepUserinfo, "keep-userinfo", false, "keep user:password@ instead of rejecting it (profile linkforge-1+userinfo)")
	f.IntVar(&o.Profile.MaxLength, "max-url-length", canon.MaxLength, "longest canonical URL in bytes")
	o.store.flags(cmd)
	f.Lookup("db").Usage = "ask this store too: sqlite:FILE or postgres://…"
	return cmd
}

// settle checks the options.
func (o *explainOptions) settle(urls []string) (err error) {
	if len(urls) == 0 && o.from == "" {
		return errors.New("no URL, and no --from")
	}
	if o.Workspace == "" {
		return errors.New("no workspace: name one with --workspace")
	}
	if o.Scheme, err = codegen.New(o.length); err != nil {
		return fmt.Errorf("--code-length: %w", err)
	}
	for _, salt := range o.salts {
		if salt < 0 {
			return fmt.Errorf("--salt: %d is negative", salt)
		}
	}
	return o.Validate()
}

// runExplain writes a block of lines for each URL, with an empty line between, or
// one line of JSON. It reports whether a run would reject one of them.
func runExplain(ctx context.Context, ui *ui, o *explainOptions, urls []string) (rejected bool, err error) {
	if err := o.settle(urls); err != nil {
		return false, usage(err)
	}
	var session sink.Session
	if o.ask {
		var store sink.Store
		if store, err = o.store.open(ctx, ui.log); err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		if session, err = store.Peek(ctx); err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, session.Close()) }()
	}
	w := bufio.NewWriter(ui.stdout)
	defer func() { err = errors.Join(w.Flush(), err) }()
	count := 0
	err = o.each(ctx, urls, func(url []byte) error {
		e, err := o.explain(ctx, session, url)
		if err != nil {
			return err
		}
		count++
		rejected = rejected || e.Reason != "" || e.Store != nil && e.Store.Code == ""
		return o.print(w, e, count == 1)
	})
	return rejected, err
}

// explain explains one URL, with what the store has of it unless session is nil.
func (o *explainOptions) explain(ctx context.Context, session sink.Session, url []byte) (_ *explain.Explanation, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	e := explain.URL(&o.Rules, url, o.salts)
	if session != nil && e.Reason == "" {
		e.Store, err = explain.Ask(ctx, &o.Rules, session, e.Canonical)
	}
	return e, err
}

// each calls f with each URL of the arguments and of --from, which is opened first: that it
// cannot be is wrong usage, of which nothing is printed.
func (o *explainOptions) each(ctx context.Context, urls []string, f func(url []byte) error) error {
	name, from := "standard input", o.stdin
	if o.from != "" && o.from != "-" {
		file, err := openWith(ctx, o.from)
		if err != nil {
			return err
		}
		defer file.Close()
		name, from = o.from, file
	}
	for _, url := range urls {
		var err error
		if url == "-" {
			err = eachLine(ctx, "standard input", o.stdin, f)
		} else {
			err = f([]byte(url))
		}
		if err != nil {
			return err
		}
	}
	if o.from == "" {
		return nil
	}
	return eachLine(ctx, name, from, f)
}

// openWith opens the file of --from. Of a FIFO that waits for a writer, which does not hold
// up an interrupt.
func openWith(ctx context.Context, name string) (*os.File, error) {
	var file *os.File
	var err error
	opened := make(chan struct{})
	go func() {
		file, err = os.Open(name)
		close(opened)
	}()
	select {
	case <-opened:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, usage(fmt.Errorf("--from: %w", err))
	}
	return file, nil
}

// eachLine calls f with each line that is not empty. Reading does not hold up an interrupt.
func eachLine(ctx context.Context, name string, r io.Reader, f func(line []byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines, ended := make(chan []byte), make(chan error, 1)
	go func() {
		defer close(lines)
		defer close(ended)
		scanner := bufio.NewScanner(r)
		scanner.Buffer(nil, 1<<20)
		n := 1
		for ; scanner.Scan(); n++ {
			select {
			case lines <- bytes.Clone(scanner.Bytes()):
			case <-ctx.Done():
				return
			}
		}
		err := scanner.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = errors.New("is longer than 1 MiB")
		}
		if err != nil {
			ended <- fmt.Errorf("%s: line %d: %w", name, n, err)
		}
	}()
	for {
		select {
		case line, more := <-lines:
			if !more {
				return cmp.Or(<-ended, context.Cause(ctx))
			}
			if len(line) == 0 {
				continue
			}
			if err := f(line); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (o *explainOptions) print(w *bufio.Writer, e *explain.Explanation, first bool) error {
	if o.json {
		return newJSON(w).Encode(e)
	}
	if !first {
		w.WriteByte('\n')
	}
	width := 18
	for _, s := range e.Steps {
		width = max(width, len(s.Rule))
	}
	printExplanation(func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-*s "+format+"\n", append([]any{width, name}, args...)...)
	}, e)
	return nil // Flush has the error
}

func printExplanation(line func(name, format string, args ...any), e *explain.Explanation) {
	line("input", "%s", printable(string(e.Input)))
	if e.Reason != "" {
		line("rejected", "%s: %s", e.Reason, e.Detail)
		return
	}
	for _, s := range e.Steps {
		line(s.Rule, "%s", printable(string(s.URL)))
	}
	line("canonical", "%s", e.Canonical)
	line("profile", "%s", e.Profile)
	for _, c := range e.Codings {
		if len(e.Codings) > 1 {
			line("salt", "%d", c.Salt)
		}
		line("hash input", "%s", printable(c.HashInput))
		line("sha256", "%s", c.SHA256)
		line("integer", "%s", c.Integer)
		line("digits", "%s", c.Digits)
		line("code", "%s", c.Code)
	}
	if e.Store == nil {
		return
	}
	for _, owner := range e.Store.Owners {
		line(fmt.Sprintf("owner at salt %d", owner.Salt), "%s %s", owner.Code, printOwner(owner.Owner, e.Canonical))
	}
	line("a run would", "%s", printOutcome(e.Store))
}

func printOwner(owner, canonical string) string {
	switch owner {
	case "":
		return "nobody"
	case canonical:
		return "this URL"
	}
	return printable(owner)
}

func printOutcome(s *explain.Standing) string {
	salt := "no salt gives it"
	if s.Salt != nil {
		salt = fmt.Sprintf("salt %d", *s.Salt)
	}
	switch {
	case s.Code == "":
		return "reject it: " + s.Outcome
	case s.RunID != nil:
		return fmt.Sprintf("find it as %s (%s), made by run %d", s.Code, salt, *s.RunID)
	}
	return fmt.Sprintf("create it as %s (%s)", s.Code, salt)
}

// printable returns s as it is if that shows all of it, and otherwise quoted as
// in Go.
func printable(s string) string {
	plain := utf8.ValidString(s) && strings.TrimSpace(s) == s && !strings.HasPrefix(s, `"`) &&
		strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
	if plain {
		return s
	}
	return strconv.Quote(s)
}
