package main

import (
	"bufio"
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
		Long: `explain shows each rule that changes the URL, the canonical form, the text that
is hashed and its SHA-256. The first 16 bytes of that are a number, shown in
decimal and in Base58 (digits). The code is the first 10 characters of the
number in Base58 (--code-length), with 1s in front if it has fewer.

A URL has a first-choice code (salt 0). If that is taken it gets the next one
that is free (salt 1, 2 and so on). With --db explain also shows which URL has
each of these codes, and what a run would do now.

A URL may be - for standard input, with one URL on each line. A URL that a run
would reject is shown with the reason (exit code 3). Text that is not printable
is shown in quotes, with escapes.`,
		Example: `  bulk explain -w demo 'HTTP://Example.com:80/api/users?name=john&id=123'
  bulk explain -w demo --from urls.txt --json --db sqlite:bulk.db`,
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
	f.StringVarP(&o.Workspace, "workspace", "w", "", "workspace `ID` of the URLs (required)")
	f.StringVar(&o.from, "from", "", "also explain the URLs in this `FILE`, one on each line; - is standard input")
	f.BoolVar(&o.json, "json", false, "print one JSON object for each URL")
	o.store.flags(cmd)
	f.Lookup("db").Usage = "also ask this `STORE`: sqlite:FILE or postgres://…"
	group(f, "Store flags")
	f.IntSliceVar(&o.salts, "salt", []int{0}, "show the code of salt `N`; several as 0,1,2")
	f.IntVar(&o.length, "code-length", codegen.DefaultLength, "codes have `N` characters, 1 to 24")
	f.IntVar(&o.MaxRetries, "max-retries", codegen.DefaultRetries, "with --db: how many alternative codes (`N`) to look up")
	f.BoolVar(&o.Profile.KeepUserinfo, "keep-userinfo", false, "keep user:password@ in URLs instead of rejecting them (profile linkforge-1+userinfo)")
	f.IntVar(&o.Profile.MaxLength, "max-url-length", canon.MaxLength, "reject URLs whose canonical form has more than `N` bytes")
	group(f, "Link flags")
	return cmd
}

// resolve checks the options.
func (o *explainOptions) resolve(urls []string) (err error) {
	if len(urls) == 0 && o.from == "" {
		return errors.New("no URL: give one, or a file with --from")
	}
	if o.Workspace == "" {
		return errors.New("no workspace: give one with --workspace")
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
	if err := o.resolve(urls); err != nil {
		return false, usage(err)
	}
	// It changes nothing, so an interrupt may end it at once, also while it waits for input.
	stop := context.AfterFunc(ctx, func() { os.Exit(ui.end(context.Cause(ctx))) })
	defer func() {
		if !stop() {
			select {} // the process is about to end
		}
	}()
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
	err = o.each(urls, func(url []byte) error {
		e := explain.URL(&o.Rules, url, o.salts)
		if session != nil && e.Reason == "" {
			var err error
			if e.Store, err = explain.Ask(ctx, &o.Rules, session, e.Canonical); err != nil {
				return err
			}
		}
		count++
		rejected = rejected || e.Reason != "" || e.Store != nil && e.Store.Code == ""
		return o.print(w, e, count == 1)
	})
	return rejected, err
}

// each calls f with each URL of the arguments and of --from. That file is opened first, so
// that nothing is printed if it cannot be opened, which is wrong usage.
func (o *explainOptions) each(urls []string, f func(url []byte) error) error {
	from := o.stdin
	if o.from != "" && o.from != "-" {
		file, err := os.Open(o.from)
		if err != nil {
			return usage(fmt.Errorf("--from: %w", err))
		}
		defer file.Close()
		from = file
	}
	for _, url := range urls {
		var err error
		if url == "-" {
			err = eachLine("-", o.stdin, f)
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
	return eachLine(o.from, from, f)
}

// eachLine calls f with each line that is not empty.
func eachLine(name string, r io.Reader, f func(line []byte) error) error {
	if name == "-" {
		name = "standard input"
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	n := 1
	for ; lines.Scan(); n++ {
		if len(lines.Bytes()) > 0 {
			if err := f(lines.Bytes()); err != nil {
				return err
			}
		}
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = errors.New("it is longer than 1 MiB")
	}
	if err != nil {
		return fmt.Errorf("%s: line %d: %w", name, n, err)
	}
	return nil
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

// printable returns s unchanged if all of it is visible, otherwise quoted as in Go.
func printable(s string) string {
	plain := utf8.ValidString(s) && strings.TrimSpace(s) == s && !strings.HasPrefix(s, `"`) &&
		strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
	if plain {
		return s
	}
	return strconv.Quote(s)
}
