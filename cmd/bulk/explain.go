package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/explain"
	"github.com/linkforge/bulk/pipeline/legacy"
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

	identity identityText

	opened  sink.Store   // nil: not asked
	session sink.Session // of that store
}

func explainCommand(ui *ui) *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain URL|CODE… --workspace ID",
		Short: "Show how a URL gets its code, or which URL a code leads to",
		Long: `explain shows each rule that changes the URL, the canonical form, the text that
is hashed and its SHA-256. The first 16 bytes of that are a number, shown in
decimal and in Base58 (digits). The code is the first 10 characters of the
number in Base58 (--code-length), with 1s in front if it has fewer.

A URL has a first-choice code (salt 0). If that is taken it gets the next one
that is free (salt 1, 2 and so on). With --db explain also shows which URLs have
the codes up to the one that the URL has or would get, what a run would do now,
and the aliases of the URL.

For a CODE, explain shows the link that has it in the store (--db): the URL as
it was given, the canonical URL, when it was created and by which run, and
whether it is an alias (a further code of a URL, kept by bulk run --legacy). If
no link has the code, the exit code is 1. An argument is a CODE if the store has
a link with this code, or if it has no dot, slash or colon. Otherwise it is a
URL.

A URL may be - for standard input, with one URL on each line. A URL that a run
would reject is shown with the reason (exit code 3). Text that is not printable
is shown in quotes, with escapes.`,
		Example: `  bulk explain -w demo 'HTTP://Example.com:80/api/users?name=john&id=123'
  bulk explain -w demo --from urls.txt --json --db sqlite:bulk.db
  bulk explain -w demo --db sqlite:bulk.db HzMEjeWL2e`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := unasked(cmd.Flags()); err != nil {
				return usage(err)
			}
			o.ask, o.stdin = cmd.Flags().Changed("db"), cmd.InOrStdin()
			return runExplain(cmd.Context(), ui, &o, args)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Workspace, "workspace", "w", "", "workspace `ID` of the URLs or codes (required)")
	f.StringVar(&o.from, "from", "", "also explain the URLs in this `FILE`, one on each line; - is standard input")
	f.BoolVar(&o.json, "json", false, "print one JSON object for each URL or code")
	o.store.flags(cmd)
	f.Lookup("db").Usage = "also ask this `STORE`: sqlite:FILE or postgres://…"
	group(f, "Store flags")
	f.IntSliceVar(&o.salts, "salt", []int{0}, "show the code of salt `N`; several as 0,1,2")
	f.IntVar(&o.length, "code-length", codegen.DefaultLength, "codes have `N` characters, 1 to 24")
	f.IntVar(&o.MaxRetries, "max-retries", codegen.DefaultRetries, "with --db: how many alternative codes (`N`) to look up")
	o.identity.flags(f, &o.Profile)
	group(f, "Link flags")
	return cmd
}

// resolve checks the options.
func (o *explainOptions) resolve(args []string) (err error) {
	if len(args) == 0 && o.from == "" {
		return errors.New("no URL: give one, or a file with --from")
	}
	if i := slices.IndexFunc(args, isCode); i >= 0 && !o.ask {
		return fmt.Errorf("%s looks like a code: name its store with --db (as a URL it would be rejected: %s)", args[i], canon.MissingScheme)
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
	if err := o.identity.parse(&o.Profile); err != nil {
		return err
	}
	return o.Validate()
}

// isCode reports whether an argument can be a code that bulk computes. It is no URL then: it
// has no scheme.
func isCode(arg string) bool {
	return arg != "" && len(arg) <= codegen.MaxLength && strings.Trim(arg, codegen.Alphabet) == ""
}

// mayBeCode reports whether an argument can be a code that was kept: it begins with no scheme.
// Such an argument may be a URL without one.
func mayBeCode(arg string) bool {
	return arg != "" && len(arg) <= legacy.MaxCode && utf8.ValidString(arg) && !legacy.HasControl([]byte(arg)) && !strings.Contains(arg, "://")
}

// runExplain writes a block of lines for each URL or code, with an empty line between, or
// one line of JSON. The error is errRejected if a run would reject one of the URLs.
func runExplain(ctx context.Context, ui *ui, o *explainOptions, args []string) (err error) {
	if err := o.resolve(args); err != nil {
		return usage(err)
	}
	defer ui.endAtOnce(ctx)()
	if o.ask {
		if o.opened, err = o.store.open(ctx, ui.log); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.opened.Close()) }()
		if o.session, err = o.opened.Peek(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.session.Close()) }()
	}
	w := bufio.NewWriter(ui.stdout)
	first, rejected := true, false
	var missing []string
	err = eachText(args, o.from, o.stdin, func(text []byte, argument bool) error {
		answer, err := o.explain(ctx, text, argument)
		if err != nil {
			return err
		}
		switch a := answer.(type) {
		case *explain.Explanation:
			rejected = rejected || a.Reason != "" || a.Store != nil && a.Store.Code == ""
		case *explain.Link:
			if !a.Found {
				missing = append(missing, a.Code)
			}
		}
		if !first && !o.json {
			w.WriteByte('\n')
		}
		first = false
		return o.print(w, answer)
	})
	err = errors.Join(w.Flush(), err)
	switch {
	case err != nil:
		return err
	case len(missing) > 0:
		return fmt.Errorf("no link of workspace %q has the code %s", o.Workspace, strings.Join(missing, ", "))
	case rejected:
		return errRejected
	}
	return nil
}

// explain returns an *explain.Link for a code, and an *explain.Explanation for a URL. Only an
// argument can be a code: the lines of a file are URLs.
func (o *explainOptions) explain(ctx context.Context, text []byte, argument bool) (any, error) {
	if argument && o.ask && mayBeCode(string(text)) {
		link, err := explain.Code(ctx, &o.Rules, o.opened, o.session, string(text))
		if err != nil || link.Found || isCode(string(text)) || !strings.ContainsAny(string(text), ".:/") { // no URL without a scheme either
			return link, err
		}
	}
	e := explain.URL(&o.Rules, text, o.salts)
	if !o.ask || e.Reason != "" {
		return e, nil
	}
	if _, err := pipeline.CheckProfile(ctx, o.session, []string{o.Workspace}, o.Profile); err != nil {
		return e, err
	}
	var err error
	if e.Store, err = explain.Ask(ctx, &o.Rules, o.session, e.Canonical); err != nil {
		return e, err
	}
	e.Store.Aliases, err = explain.Aliases(ctx, &o.Rules, o.opened, e.Canonical)
	return e, err
}

// endAtOnce makes an interrupt end the command at once, also while it waits for input, until the
// result is called. It is for commands that change nothing.
func (u *ui) endAtOnce(ctx context.Context) func() {
	stop := context.AfterFunc(ctx, func() { os.Exit(u.end(context.Cause(ctx))) })
	return func() {
		if !stop() {
			select {} // the process is about to end
		}
	}
}

// eachText calls f with each argument, and with each line of standard input for the argument -.
// Then it calls f with each line of the file of --from, if there is one. That file is opened
// first, so that nothing is printed if it cannot be opened, which is wrong usage.
func eachText(args []string, from string, stdin io.Reader, f func(text []byte, argument bool) error) error {
	lines := stdin
	if from != "" && from != "-" {
		file, err := os.Open(from)
		if err != nil {
			return usage(fmt.Errorf("--from: %w", err))
		}
		defer file.Close()
		lines = file
	}
	line := func(text []byte) error { return f(text, false) }
	for _, arg := range args {
		var err error
		if arg == "-" {
			err = eachLine("-", stdin, line)
		} else {
			err = f([]byte(arg), true)
		}
		if err != nil {
			return err
		}
	}
	if from == "" {
		return nil
	}
	return eachLine(from, lines, line)
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

func (o *explainOptions) print(w *bufio.Writer, answer any) error {
	if o.json {
		return newJSON(w).Encode(answer)
	}
	width := 18
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-*s "+format+"\n", append([]any{width, name}, args...)...)
	}
	switch a := answer.(type) {
	case *explain.Explanation:
		for _, s := range a.Steps {
			width = max(width, len(s.Rule))
		}
		printExplanation(line, a)
	case *explain.Link:
		printLink(line, a)
	}
	return nil // Flush has the error
}

func printLink(line func(name, format string, args ...any), l *explain.Link) {
	line("code", "%s", l.Code)
	if !l.Found {
		line("link", "none in workspace %s", printable(l.Workspace))
		return
	}
	line("original", "%s", printable(l.Original))
	line("canonical", "%s", printable(l.Canonical))
	line("created", "%s", printCreated(l))
	switch {
	case l.Alias && l.LinkCode == "":
		line("kind", "alias of this URL, which has no link")
	case l.Alias:
		line("kind", "alias; the link of this URL is %s", printable(l.LinkCode))
	case l.Kept:
		line("kind", "link; no salt gives its code: it was kept, or another program made it")
	}
}

// printCreated says when a link was created, and by which run.
func printCreated(l *explain.Link) string {
	created, by := "at an unknown time", "another program"
	if l.Created != nil {
		created = l.Created.Format(time.RFC3339Nano)
	}
	if l.RunID != nil {
		by = fmt.Sprintf("run %d", *l.RunID)
	}
	return created + " by " + by
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
		line(fmt.Sprintf("owner at salt %d", owner.Salt), "%s %s", owner.Code, printOwner(&owner, e.Canonical))
	}
	line("a run would", "%s", printOutcome(e.Store))
	for i := range e.Store.Aliases {
		a := &e.Store.Aliases[i]
		line("alias", "%s created %s", printable(a.Code), printCreated(a))
	}
}

func printOwner(o *explain.Owner, canonical string) string {
	switch {
	case o.Owner == "":
		return "nobody"
	case o.Owner == canonical && o.Alias:
		return "an alias of this URL"
	case o.Owner == canonical:
		return "this URL"
	case o.Alias:
		return printable(o.Owner) + " (alias)"
	}
	return printable(o.Owner)
}

func printOutcome(s *explain.Standing) string {
	salt := "no salt gives it: kept, or changed since"
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
