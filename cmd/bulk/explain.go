package main

import (
	"bufio"
	"cmp"
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
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/rules"
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

	scheme  schemeText
	given   pipeline.Scheme // by these flags
	named   bool            // --scheme is one of them
	salted  bool            // --salt is given
	retried bool            // --max-retries is given
	numbers []int64
	json    bool
	stdin   io.Reader

	identity identityText
	link     rulesText // the parameters of each URL
	ref      string
	asOf     string

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
number in Base58 (--code-length). 1 is added in front of short numbers.

A URL has a first-choice code (salt 0). If that is taken it gets the next one
that is free (salt 1, 2 and so on). With --db explain also shows which URLs have
the codes up to the one that the URL has or would get, what a run would do now,
and the aliases of the URL.

Code schemes: with --db the scheme of the workspace is that of the store, with
its code length and multiplier; otherwise --scheme and the flags beside it say
which it is. explain needs the secret, too, and never shows it, only its
fingerprint. With keyed-base62 the code is a remainder of an HMAC-SHA-256. With
sha256-base32 and keyed-base32 each character is the next five bits of the hash.
With a counter a URL has no code of its own: explain shows the code of each
--number, the number of a CODE, and with --db the link of the URL, and the
number and the code that a new URL would get now. Two codes of counter-base62
show the whole sequence, with a multiplier three. With --blocklist a code that
contains a word is shown as blocked, and the next one follows.

Link rules: links can expire, and have a use limit, a type and an owner. The
flags of link rules give them to the URL, as bulk run gives them to a row that
has none. With --identity params the expiry and the use limit are hashed with
the URL, with row its --ref, and a URL can have several links. With --db explain
shows all of them, what each has, and whether it is live now, or at --as-of.

For a CODE, explain shows the link that has it in the store (--db): the URL as
it was given, the canonical URL, when it was created and by which run, which run
changed it last, and whether it is an alias (a further code of a URL, kept by
bulk run --legacy). If no link has the code, the exit code is 1. An argument is
a CODE if the store has a link with this code, or if it has no dot, slash or
colon. Otherwise it is a URL.

A URL may be - for standard input, with one URL on each line. A URL that a run
would reject is shown with the reason (exit code 3). Text that is not printable
is shown in quotes, with escapes.`,
		Example: `  bulk explain -w demo 'HTTP://Example.com:80/api/users?name=john&id=123'
  bulk explain -w demo --from urls.txt --json --db sqlite:bulk.db
  bulk explain -w demo --db sqlite:bulk.db HzMEjeWL2e
  bulk explain -w demo --identity params --max-uses 5 http://example.com/a
  bulk explain -w demo --db sqlite:bulk.db --scheme-key-file key http://a.b/
  bulk explain --scheme counter-base62 --scheme-key-file key --number 12345`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := unasked(cmd.Flags()); err != nil {
				return usage(err)
			}
			changed := cmd.Flags().Changed
			o.ask, o.stdin = changed("db"), cmd.InOrStdin()
			o.named, o.salted, o.retried = changed("scheme"), changed("salt"), changed("max-retries")
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
	f.IntVar(&o.length, "code-length", 0, codeLengthUsage)
	f.IntVar(&o.MaxRetries, "max-retries", 0, "with --db: how many alternative codes (`N`) to look up (default: 10, or 4 with a keyed --scheme)")
	o.identity.flags(f, &o.Profile)
	group(f, "Link flags")
	o.scheme.secretFlags(f)
	f.Lookup("scheme").Usage += "; with --db it is that of the workspace"
	offerSchemes(cmd)
	o.scheme.multiplierFlag(f)
	f.Int64SliceVar(&o.numbers, "number", nil, "show the code of number `N` of a counter; several as 1,2,3")
	f.Lookup("number").DefValue = "" // the help would show []
	o.scheme.blocklistFlag(f)
	group(f, "Scheme flags")
	o.link.rowFlags(cmd, f)
	f.StringVar(&o.ref, "ref", "", "`TEXT` of the column ref, with --identity row; if the cell is empty, INPUT:ROW such as links.csv:17")
	f.StringVar(&o.asOf, "as-of", "", "`TIME` at which links are live, or not: RFC 3339 or a date (default: now)")
	group(f, "Link rule flags")
	return cmd
}

// resolve checks the options.
func (o *explainOptions) resolve(args []string) (err error) {
	if len(args) == 0 && o.from == "" && len(o.numbers) == 0 {
		return errors.New("no URL: give one, or a file with --from")
	}
	if err := o.scheme.parse(&o.given); err != nil {
		return err
	}
	if !o.ask {
		if err := o.settleScheme(); err != nil {
			return err
		}
	}
	if i := slices.IndexFunc(args, o.isCode); i >= 0 && !o.ask && (o.Counter == nil || explain.NumberOf(&o.Rules, args[i]) == nil) {
		return fmt.Errorf("%s looks like a code: name its store with --db (as a URL it would be rejected: %s)", args[i], canon.MissingScheme)
	}
	if o.Workspace == "" && (o.ask || len(args) > 0 || o.from != "") {
		return errors.New("no workspace: give one with --workspace")
	}
	for _, salt := range o.salts {
		if salt < 0 {
			return fmt.Errorf("--salt: %d is negative", salt)
		}
	}
	for _, number := range o.numbers {
		if number < 1 {
			return fmt.Errorf("--number: %d is below 1", number)
		}
	}
	if err := errors.Join(o.identity.parse(&o.Profile), o.resolveRules()); err != nil {
		return err
	}
	if o.Workspace == "" { // there are numbers only
		return nil
	}
	return o.valid()
}

// valid checks the rules; what the scheme is may not be known yet.
func (o *explainOptions) valid() error {
	r := o.Rules
	if r.Counter == nil && r.Scheme == (codegen.Scheme{}) {
		r.Scheme, _ = codegen.New(codegen.DefaultLength)
	}
	return r.Validate()
}

// settleScheme fills in how codes are made, by the flags.
func (o *explainOptions) settleScheme() error {
	maker, counter, err := o.given.Make(o.length)
	if err != nil {
		return err
	}
	o.Scheme, o.Counter, o.Of = maker.Scheme, counter, o.given.Stored(o.length)
	return o.settleRest()
}

// settleRest fills in what follows from the scheme, and refuses flags that do not go with it.
func (o *explainOptions) settleRest() error {
	spec, err := codegen.SpecOf(o.Of.Name)
	o.Words = o.given.Words
	if !o.retried {
		o.MaxRetries = spec.Retries
	}
	switch {
	case err != nil:
		return err
	case spec.Counts && o.salted:
		return fmt.Errorf("--salt: scheme %s has no salts", spec.Name)
	case !spec.Counts && len(o.numbers) > 0:
		return fmt.Errorf("--number: scheme %s has no counter", spec.Name)
	}
	return nil
}

// askScheme fills in how codes are made, by the flags and the store. It refuses flags with which a
// run would be refused.
func (o *explainOptions) askScheme(ctx context.Context) error {
	set, err := o.session.Schemes(ctx, []string{o.Workspace})
	if err != nil {
		return err
	}
	stored, known := set[o.Workspace]
	if known && !o.named {
		o.scheme.name = stored.Name
	}
	if o.given.Fold = known && stored.Fold && o.scheme.name == stored.Name; known && o.scheme.name == stored.Name {
		o.length = cmp.Or(o.length, stored.CodeLength)
		o.scheme.multiplier = cmp.Or(o.scheme.multiplier, stored.Multiplier)
	}
	o.given.Name, o.given.Multiplier = o.scheme.name, o.scheme.multiplier
	if o.scheme.keyFile == "" { // otherwise it was read, which may work only once
		if o.given.Secret, err = o.scheme.secret(); err != nil {
			return usage(err)
		}
	}
	if o.scheme.name == stored.Name && stored.Fingerprint != "" && o.given.Secret.Fingerprint() == "" {
		if len(o.numbers) > 0 {
			return usage(fmt.Errorf("--number: the secret (fingerprint %s) is missing: give it with --scheme-key-file or %s", stored.Fingerprint, pipeline.SecretVariable))
		}
		o.Of = o.given.Stored(o.length)
		o.Of.Fingerprint = stored.Fingerprint
		err = o.settleRest()
	} else {
		err = o.settleScheme()
	}
	if err != nil {
		return usage(err)
	}
	_, err = pipeline.CheckScheme(ctx, o.session, []string{o.Workspace}, o.Of)
	return err
}

// resolveRules turns the flags of link rules into the parameters of a URL.
func (o *explainOptions) resolveRules() error {
	asOf, err := parseTime(o.asOf)
	if err != nil {
		return fmt.Errorf("--as-of: %w", err)
	}
	if asOf.IsZero() {
		asOf = time.Now()
	}
	var c pipeline.Config
	if err := o.link.parse(&c); err != nil {
		return err
	}
	flags := cmp.Or(c.Rules, new(rules.Flags))
	o.Ruled, o.Identity, o.Terms = c.Rules != nil, flags.Identity, rules.Terms{AsOf: asOf.Unix(), OnDrift: c.OnDrift, Revive: c.Revive}
	if o.ref != "" && o.Identity != rules.ByRow {
		return errors.New("--ref goes with --identity row only")
	}
	if err := flags.Check(); err != nil {
		return err
	}
	cells := rules.Cells{rules.Ref: []byte(o.ref)}
	params, bad, ok := flags.Parse(&cells)
	if !ok {
		return errors.New(bad.Detail("--"+bad.String(), cells[bad]))
	}
	o.Params = params
	return nil
}

// isCode reports whether an argument can be a code that bulk computes. It is no URL then: it
// has no scheme.
func (o *explainOptions) isCode(arg string) bool {
	spec, _ := codegen.SpecOf(o.scheme.name)
	return arg != "" && len(arg) <= codegen.MaxLength && strings.Trim(arg, spec.Alphabet) == ""
}

// mayBeCode reports whether an argument can be a code that was kept: it begins with no scheme.
// Such an argument may be a URL without one.
func mayBeCode(arg string) bool {
	return legacy.Possible([]byte(arg)) && !strings.Contains(arg, "://")
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
		if err = o.askScheme(ctx); err != nil {
			return err
		}
	}
	w := bufio.NewWriter(ui.stdout)
	first, rejected := true, false
	var missing []string
	print := func(answer any) error {
		if !first && !o.json {
			w.WriteByte('\n')
		}
		first = false
		return o.print(w, answer)
	}
	for _, number := range o.numbers {
		err = errors.Join(err, print(explain.Number(&o.Rules, uint64(number))))
	}
	if err != nil {
		return err
	}
	err = eachText(args, o.from, o.stdin, func(text []byte, argument bool) error {
		answer, err := o.explain(ctx, text, argument)
		if err != nil {
			return err
		}
		switch a := answer.(type) {
		case *explain.Explanation:
			rejected = rejected || a.Reason != "" || a.Store != nil && !a.Store.Accepted()
		case *explain.Link:
			if !a.Found {
				missing = append(missing, a.Code)
			}
		}
		return print(answer)
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

// explain returns an *explain.Link for a code, or without a store an *explain.Counting, and an
// *explain.Explanation for a URL. Only an argument can be a code: the lines of a file are URLs.
func (o *explainOptions) explain(ctx context.Context, text []byte, argument bool) (any, error) {
	if argument && !o.ask && o.isCode(string(text)) {
		return explain.NumberOf(&o.Rules, string(text)), nil
	}
	if argument && o.ask && mayBeCode(string(text)) {
		link, err := explain.Code(ctx, &o.Rules, o.opened, o.session, asKept(string(text), o.Of.Fold))
		if err != nil || link.Found || o.isCode(string(text)) || !strings.ContainsAny(string(text), ".:/") { // no URL without a scheme either
			if err == nil && !link.Found {
				err = checkWorkspace(ctx, o.opened, o.session, o.Workspace)
			}
			return link, err
		}
	}
	if o.Identity == rules.ByRow && o.ref == "" {
		return nil, usage(errors.New("--identity row: give the ref of the URL with --ref"))
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
	e.Store.Links, e.Store.Aliases, err = explain.Others(ctx, &o.Rules, o.opened, e.Canonical)
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
		by := "salt"
		if o.Counter != nil {
			by = "number"
		}
		printLink(line, a, by)
	case *explain.Counting:
		printScheme(line, &a.SchemeFacts)
		printCounting(line, a)
	}
	return nil // Flush has the error
}

// printLink shows a link, whose code is made by a salt or a number.
func printLink(line func(name, format string, args ...any), l *explain.Link, by string) {
	line("code", "%s", l.Code)
	defer printMade(line, l)
	if !l.Found {
		line("link", "none in workspace %s", printable(l.Workspace))
		return
	}
	line("original", "%s", printable(l.Original))
	line("canonical", "%s", printable(l.Canonical))
	line("created", "%s", printCreated(l))
	if kind := kindOf(l, by); kind != "" {
		line("kind", "%s", kind)
	}
	for _, fact := range lifeOf(l.Life) {
		line(fact[0], "%s", fact[1])
	}
}

// kindOf says what kind of link a code has, whose code is made by a salt or a number; "": there is nothing
// to say.
func kindOf(l *explain.Link, by string) string {
	kind := map[string]string{"": "", rules.ByRow.String(): "link; its URL and ref are hashed (--identity row)",
		rules.ByParams.String(): "link; its URL, expiry and use limit are hashed (--identity params)"}[l.Identity]
	switch {
	case l.Alias && l.Identity != "":
		kind = "alias" + strings.TrimPrefix(kind, "link")
		if l.LinkCode != "" {
			kind += "; the link is " + printable(l.LinkCode)
		}
	case l.Alias && l.LinkCode == "":
		kind = "alias of this URL, which has no link"
	case l.Alias:
		kind = "alias; the link of this URL is " + printable(l.LinkCode)
	case l.Kept && l.Identity != "":
		kind += "; no " + by + " gives its code: it was kept"
	case l.Kept:
		kind = "link; no " + by + " gives its code: it was kept, or another program made it"
	}
	return kind
}

// printMade says how the code of a link is made, where that does not follow from its URL.
func printMade(line func(name, format string, args ...any), l *explain.Link) {
	if l.Note != "" {
		line("note", "%s", l.Note)
	}
	if l.Counting != nil {
		printScheme(line, &l.Counting.SchemeFacts)
		printCounting(line, l.Counting)
	}
}

// printScheme names a scheme other than sha256-base58.
func printScheme(line func(name, format string, args ...any), s *explain.SchemeFacts) {
	text := s.Scheme
	if text == codegen.Name {
		return
	}
	if s.Multiplier > 1 {
		text += fmt.Sprintf(", multiplier %d", s.Multiplier)
	}
	if spec, _ := codegen.SpecOf(s.Scheme); spec.Secret {
		text += ", secret " + cmp.Or(s.Fingerprint, "none")
	}
	if s.Scheme == codegen.NameCounter {
		text += map[bool]string{false: "; two codes show the sequence", true: "; three codes show the sequence"}[s.Multiplier > 1]
	}
	line("code scheme", "%s", text)
}

// printCounting shows the steps from a number to its code.
func printCounting(line func(name, format string, args ...any), c *explain.Counting) {
	line("number", "%d", c.Number)
	if c.Offset != nil {
		line("times multiplier", "%s", c.Product)
		line("offset", "%d", *c.Offset)
		line("sum modulo 62^7", "%d", c.Value)
	} else {
		line("modulo 62^7", "%d", *c.Remainder)
		line("permuted", "%d", c.Value)
	}
	line("code", "%s", c.Code+printBlocked(c.Blocked))
}

// printBlocked says that a code is blocked, if it contains a word.
func printBlocked(word string) string {
	if word == "" {
		return ""
	}
	return " (blocked: it contains " + printable(word) + ")"
}

// lifeOf says what a link has beyond its URL: names and values.
func lifeOf(l *explain.Life) (facts [][2]string) {
	if l == nil {
		return nil
	}
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, [2]string{name, printable(value)})
		}
	}
	if l.Expires != nil {
		add("expires", l.Expires.Format(time.RFC3339Nano))
	}
	if l.MaxUses != nil {
		add("uses", fmt.Sprintf("%d of %d", l.Uses, *l.MaxUses))
	} else if l.Uses > 0 {
		add("uses", strconv.FormatInt(l.Uses, 10))
	}
	add("type", l.Type)
	add("owner", l.Owner)
	add("ref", l.Ref)
	if l.Marked != nil {
		add("status", l.Status+" since "+l.Marked.Format(time.RFC3339Nano))
	} else {
		add("status", l.Status)
	}
	if l.ChangedRun > 0 {
		add("changed", fmt.Sprintf("by run %d: %s", l.ChangedRun, l.Change))
	}
	switch {
	case l.Live:
		add("live", "yes")
	case l.Status != "" && l.Status != sink.Active:
		add("live", "no")
	case l.MaxUses != nil && l.Uses >= *l.MaxUses:
		add("live", "no: it is used up")
	default:
		add("live", "no: it has expired")
	}
	return facts
}

// printOther says in one line what is known of another link of a URL.
func printOther(l *explain.Link) string {
	text := printable(l.Code) + " created " + printCreated(l)
	for _, fact := range lifeOf(l.Life) {
		text += ", " + fact[0] + " " + fact[1]
	}
	return text
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
	printScheme(line, &e.SchemeFacts)
	if e.Note != "" {
		line("note", "%s", e.Note)
	}
	for _, c := range e.Codings {
		if len(e.Codings) > 1 {
			line("salt", "%d", c.Salt)
		}
		line("hash input", "%s", printable(c.HashInput))
		if c.Code == "" { // the secret is not known
			continue
		}
		for _, step := range [][2]string{{"hmac", c.HMAC}, {"sha256", c.SHA256}, {"integer", c.Integer},
			{fmt.Sprintf("modulo 62^%d", len(c.Code)), c.Remainder}, {"digits", c.Digits}} {
			if step[1] != "" {
				line(step[0], "%s", step[1])
			}
		}
		line("code", "%s", c.Code+printBlocked(c.Blocked))
	}
	if e.Store == nil {
		return
	}
	for _, owner := range e.Store.Owners {
		line(fmt.Sprintf("owner at salt %d", owner.Salt), "%s %s", owner.Code, printOwner(&owner.Holder, e.Canonical))
	}
	for _, turn := range e.Store.Next {
		text := strconv.FormatInt(turn.Number, 10)
		if turn.Code != "" {
			text += " " + turn.Code + " " + printOwner(&turn.Holder, e.Canonical)
		}
		line("next number", "%s", text)
	}
	line("a run would", "%s", printOutcome(e))
	for _, fact := range lifeOf(e.Store.Life) {
		line(fact[0], "%s", fact[1])
	}
	for i := range e.Store.Links {
		line("other link", "%s", printOther(&e.Store.Links[i]))
	}
	for i := range e.Store.Aliases {
		line("alias", "%s", printOther(&e.Store.Aliases[i]))
	}
}

func printOwner(o *explain.Holder, canonical string) string {
	switch {
	case o.Owner == "" && o.Blocked != "":
		return "blocked: it contains " + printable(o.Blocked)
	case o.Owner == "":
		return "nobody"
	case o.Other:
		return "another link of this URL"
	case o.Owner == canonical && o.Alias:
		return "an alias of this URL"
	case o.Owner == canonical:
		return "this URL"
	case o.Alias:
		return printable(o.Owner) + " (alias)"
	}
	return printable(o.Owner)
}

func printOutcome(e *explain.Explanation) string {
	s := e.Store
	made := " (no salt gives it: kept, or changed since)"
	switch {
	case s.Salt != nil:
		made = fmt.Sprintf(" (salt %d)", *s.Salt)
	case s.Number != nil:
		made = fmt.Sprintf(" (number %d)", *s.Number)
	case len(s.Next) > 0 && len(s.Next[0].Code) > 0:
		made = " (no number gives it: kept, or changed since)"
	case e.Note != "": // the secret is not known
		made = ""
	}
	link := s.Code + made
	if s.RunID != nil {
		link += fmt.Sprintf(", made by run %d", *s.RunID)
	}
	differs := ""
	if s.Differs != "" {
		differs = " (it differs in " + s.Differs + ")"
	}
	switch {
	case s.Outcome == outcome.Created.String() && s.Code == "": // the secret is not known, or many codes are taken
		return "create it"
	case s.Number != nil && s.Outcome == outcome.Created.String():
		return "create it as " + link + ", if no other new URL comes first"
	case s.Outcome == outcome.Created.String():
		return "create it as " + link
	case s.Code == "":
		return "reject it: " + s.Outcome
	case !s.Accepted():
		return "reject it: " + s.Outcome + differs + "; the link is " + link
	case s.Change != "":
		return "find it as " + link + "; change: " + s.Change + differs
	}
	return "find it as " + link
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
