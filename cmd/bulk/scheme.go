package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// schemeText has the flags of a scheme as they were given.
type schemeText struct {
	name, keyFile, blocklist string
	named                    func() bool // the name was given
	start, multiplier        int64
}

// Usages of flags whose defaults are those of the scheme.
const (
	codeLengthUsage = "`N` characters (default: 10; others: 7 or 8)"
	retriesUsage    = "try `N` other codes (default: 10; keyed: 4)"
)

// flags defines the flags of a scheme.
func (t *schemeText) flags(cmd *cobra.Command, f *pflag.FlagSet) {
	t.secretFlags(f)
	offerSchemes(cmd)
	f.Int64Var(&t.start, "counter-start", 0, "move the counter to number `N`, if it is behind")
	t.multiplierFlag(f)
	t.blocklistFlag(f)
}

// secretFlags defines the flags that name a scheme and its secret.
func (t *schemeText) secretFlags(f *pflag.FlagSet) {
	t.nameFlag(f)
	t.keyFlag(f)
}

// keyFlag defines the flag that names the file of the secret.
func (t *schemeText) keyFlag(f *pflag.FlagSet) {
	f.StringVar(&t.keyFile, "scheme-key-file", "", "`FILE` of the secret (default: BULK_SCHEME_KEY)")
}

func (t *schemeText) nameFlag(f *pflag.FlagSet) {
	f.StringVar(&t.name, "scheme", codegen.Name, "`NAME` of a scheme")
	t.named = func() bool { return f.Changed("scheme") }
}

// offerSchemes completes the names of schemes.
func offerSchemes(cmd *cobra.Command) {
	var names []string
	for _, s := range codegen.Specs() {
		names = append(names, s.Name)
	}
	offer(cmd, "scheme", names...)
}

func (t *schemeText) multiplierFlag(f *pflag.FlagSet) {
	f.Int64Var(&t.multiplier, "counter-multiplier", 0, "of counter-base62: `N` times (default: 1)")
}

func (t *schemeText) blocklistFlag(f *pflag.FlagSet) {
	f.StringVar(&t.blocklist, "blocklist", "", "`FILE` of words that no generated code contains")
}

// parse reads them, and the secret.
func (t *schemeText) parse(s *pipeline.Scheme) (err error) {
	s.Name, s.CounterStart, s.Multiplier = t.name, t.start, t.multiplier
	if !t.named() { // it depends on whether the workspace folds case
		s.Name = ""
	}
	var problems flagErrors
	s.Secret, err = t.secret()
	problems.check("scheme-key-file", err)
	s.Words, err = t.words()
	problems.check("blocklist", err)
	return errors.Join(problems...)
}

// words reads the words of --blocklist; nil: there is none.
func (t *schemeText) words() (*codegen.Blocklist, error) {
	if t.blocklist == "" {
		return nil, nil
	}
	text, err := os.ReadFile(t.blocklist)
	if err != nil {
		return nil, err
	}
	words, err := codegen.ParseBlocklist(text)
	if err != nil {
		err = fmt.Errorf("%s: %w", t.blocklist, err)
	}
	return words, err
}

// secret reads the secret of the scheme; none if it takes none.
func (t *schemeText) secret() (codegen.Secret, error) {
	return pipeline.ReadSecret(t.name, t.keyFile)
}

// warn tells what a user should think about twice.
func (t *schemeText) warn(ui *ui, length int) {
	keyed := t.name == codegen.NameKeyed || t.name == codegen.NameKeyedBase32
	if keyed && 0 < length && length < 6 {
		ui.log.Warn("codes of "+t.name+" with fewer than 6 characters are easy to guess", "code_length", length)
	}
}
