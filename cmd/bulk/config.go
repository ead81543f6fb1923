package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/sink/postgres"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// settings are the flags that are not on the command line: their values come from variables
// BULK_* or from the file of --config.
type settings struct {
	file    string            // "": none
	origins map[string]string // of values by flag: a variable, or a place such as nightly.yaml:4
	inputs  []string          // of bulk run and bulk preview, in the file
}

// A setting is a key of a file.
type setting struct {
	key    string
	values []string
	list   bool // rather than one value
	line   int
}

// notSettings are flags that a file cannot have.
var notSettings = []string{"help", "version", "config"}

var unquoted = regexp.MustCompile(`(?m)[-:,[]\s*\*`)

// readConfig returns the settings of a YAML file in its order. A value is the text that is
// there, so that it reads like that of a flag.
func readConfig(name string) (list []setting, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	var document, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	err = decoder.Decode(&document)
	if err == io.EOF { // comments only
		return nil, nil
	}
	if err == nil {
		if err = decoder.Decode(&more); err == nil {
			err = errors.New("it has a second document")
		} else if err == io.EOF {
			err = nil
		}
	}
	if err != nil {
		hint := ""
		if unquoted.Match(text) {
			hint = "; a value that begins with * needs quotes, such as '*.csv'"
		}
		return nil, fmt.Errorf("%s: %s%s", name, strings.TrimPrefix(err.Error(), "yaml: "), hint)
	}
	top := document.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: want a key and a value on each line, such as workspace: demo", name, top.Line)
	}
	for i := 0; i < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		s := setting{key: key.Value, line: key.Line, list: value.Kind == yaml.SequenceNode}
		if slices.ContainsFunc(list, func(other setting) bool { return other.key == s.key }) {
			err = errors.Join(err, fmt.Errorf("%s:%d: the key %q is there twice", name, s.line, s.key))
			continue
		}
		values := []*yaml.Node{value}
		if s.list {
			values = value.Content
		}
		if slices.ContainsFunc(values, func(v *yaml.Node) bool { return v.Kind != yaml.ScalarNode }) {
			err = errors.Join(err, fmt.Errorf("%s:%d: %s: want a value or a list of values", name, s.line, s.key))
			continue
		}
		for _, v := range values {
			if v.Tag == "!!null" {
				v.Value = ""
			}
			s.values = append(s.values, v.Value)
		}
		list = append(list, s)
	}
	return list, err
}

// variable is the name of the variable of a flag.
func variable(flag string) string {
	return "BULK_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// settable reports whether a flag may have a value from elsewhere than the command line.
// verify and explain look at a store only if the command line names it, and init connects
// to one only if it shall not just print.
func settable(cmd *cobra.Command, f *pflag.Flag) bool {
	switch f.Name {
	case "help", "version":
		return false
	}
	if f.Hidden {
		return false
	}
	switch f.Name {
	case "db", "schema", "table", "retry-for":
		asked := cmd.Flag("db").Changed || cmd.Name() != "verify" && cmd.Name() != "explain"
		return asked && !(cmd.Name() == "init" && f.Name == "db" && cmd.Flag("print").Changed)
	}
	return true
}

// settle gives the flags of a command that are not on the command line the values of
// variables, or else those of the file.
func (u *ui) settle(cmd *cobra.Command) error {
	var problems []error
	flags, s := cmd.Flags(), &u.settings
	s.origins = map[string]string{}
	set := func(f *pflag.Flag, origin string, values ...string) {
		s.origins[f.Name] = origin
		u.named = append(u.named, values...)
		for _, value := range values {
			if err := flags.Set(f.Name, value); err != nil {
				problems = append(problems, flagError(cmd, err))
			}
		}
	}
	// Which flags may be set depends on the command line alone.
	open := map[string]*pflag.Flag{}
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed && settable(cmd, f) {
			open[f.Name] = f
		}
	})
	flags.VisitAll(func(f *pflag.Flag) {
		if value := os.Getenv(variable(f.Name)); value != "" && open[f.Name] != nil {
			set(f, variable(f.Name), value)
			delete(open, f.Name)
		}
	})
	s.file = flags.Lookup("config").Value.String()
	if s.file == "" {
		return errors.Join(problems...)
	}
	list, err := readConfig(s.file)
	problems = append(problems, err)
	keys := knownKeys(cmd.Root())
	for _, k := range list {
		f := open[k.key]
		switch {
		case !slices.Contains(keys, k.key):
			problems = append(problems, fmt.Errorf("%s:%d: unknown key %q; %s", s.file, k.line, k.key, nearest(k.key, keys)))
		case k.key == "inputs" && takesInputs(cmd):
			s.inputs, s.origins["inputs"] = k.values, fmt.Sprintf("%s:%d", s.file, k.line)
			u.named = append(u.named, k.values...)
		case f == nil: // of another command, or set by the command line or a variable
		case k.list && !isList(f):
			problems = append(problems, fmt.Errorf("%s:%d: %s: want one value, not a list", s.file, k.line, k.key))
		default:
			set(f, fmt.Sprintf("%s:%d", s.file, k.line), k.values...)
		}
	}
	return errors.Join(problems...)
}

// unknownVariables warns of variables that look like those of flags and are of none: most likely their
// names are misspelled.
func (u *ui) unknownVariables(root *cobra.Command) {
	known := []string{variable("config"), pipeline.SecretVariable}
	for _, key := range knownKeys(root) {
		if key != "inputs" {
			known = append(known, variable(key))
		}
	}
	environ := os.Environ()
	slices.Sort(environ)
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value != "" && strings.HasPrefix(name, variable("")) && !slices.Contains(known, name) {
			u.log.Warn("no flag of any command has this variable: it does nothing", "variable", name, "nearest", strings.Join(alike(name, known, math.MaxInt), " or "))
		}
	}
}

// takesInputs reports whether a command has inputs that a file may name.
func takesInputs(cmd *cobra.Command) bool { return cmd.Name() == "run" || cmd.Name() == "preview" }

// isList reports whether a flag takes several values.
func isList(f *pflag.Flag) bool {
	_, list := f.Value.(pflag.SliceValue)
	return list
}

// knownKeys returns the keys that a file may have: the flags of all commands, and inputs.
func knownKeys(root *cobra.Command) []string {
	keys := []string{"inputs"}
	var add func(*cobra.Command)
	add = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !slices.Contains(notSettings, f.Name) {
				keys = append(keys, f.Name)
			}
		})
		for _, sub := range c.Commands() {
			add(sub)
		}
	}
	add(root)
	return keys
}

// nearest says which keys are spelled like one that is not known.
func nearest(key string, keys []string) string {
	if found := alike(key, keys, 2); len(found) > 0 {
		return "did you mean " + strings.Join(found, " or ") + "?"
	}
	return "keys are names of flags; see bulk config --help"
}

// alike returns the names that are spelled most like one, with at most so many changes of letters, of
// which two are as good as none.
func alike(name string, names []string, most int) (found []string) {
	like := &cobra.Command{} // cobra knows how to compare
	for _, k := range slices.Compact(slices.Sorted(slices.Values(names))) {
		like.AddCommand(&cobra.Command{Use: k, Run: func(*cobra.Command, []string) {}})
	}
	for like.SuggestionsMinimumDistance = 2; len(found) == 0 && like.SuggestionsMinimumDistance <= min(most, len(name)); like.SuggestionsMinimumDistance++ {
		found = like.SuggestionsFor(name)
	}
	return found
}

var flagName = regexp.MustCompile(`--[a-z][a-z0-9-]*`)

// sourced says of each flag in a message, if it is not on the command line, where its value
// comes from: BULK_WORKERS or workers (nightly.yaml:4).
func (s *settings) sourced(message string) string {
	return flagName.ReplaceAllStringFunc(message, func(flag string) string {
		switch origin := s.origins[flag[2:]]; origin {
		case "":
			return flag
		case variable(flag[2:]):
			return origin
		default:
			return fmt.Sprintf("%s (%s)", flag[2:], origin)
		}
	})
}

func configCommand(ui *ui) *cobra.Command {
	return &cobra.Command{
		Use:   "config COMMAND [ARGUMENT…]",
		Short: "Show the settings of a command and where they come from",
		Long: `Each flag has a variable: BULK_MAX_REJECTS for --max-rejects. Flags can also be
in a YAML file, named by --config FILE or BULK_CONFIG. The command line wins
over variables, variables win over the file:

  inputs: ['in/*.csv']
  workspace: demo
  db: postgres://loader@db.example/links
  max-rejects: 1%

The keys are names of flags. Each command takes those that it has, so one file
can serve them all. inputs is a list of INPUTs of run and preview; arguments
replace it. Paths start at the working directory.

A variable BULK_… that no flag of any command has does nothing, and is a
warning.

verify and explain look at a store only if --db is on the command line.

config prints all settings as such a file, with the origin of each. Passwords
are hidden. It does not read inputs: bulk run --dry-run does.`,
		Example:            `  bulk config run --config nightly.yaml`,
		DisableFlagParsing: true, // the flags are those of COMMAND
		ValidArgsFunction:  cobra.NoFileCompletions,
		PersistentPreRunE:  func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
				return cmd.Help()
			}
			of, args, err := cmd.Root().Find(args)
			if err != nil || of == cmd || !of.HasParent() || !of.Runnable() {
				return usage(errors.New("give a COMMAND, such as bulk config run --config FILE"))
			}
			if err := of.ParseFlags(args); err != nil {
				return flagError(of, err)
			}
			if err := ui.prepare(of, of.Flags().Args()); err != nil {
				return err
			}
			return ui.printSettings(of)
		},
	}
}

var defaultOf = regexp.MustCompile(`\(default: .*\)`)

// printSettings writes the settings of a command as a YAML file.
func (u *ui) printSettings(cmd *cobra.Command) (err error) {
	print := func(name, text, origin string, values []string, list bool) {
		node := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, value := range values {
			if strings.Contains(value, "://") || name == "db" && !strings.HasPrefix(value, "sqlite:") {
				value = postgres.Redact(value)
			}
			n := &yaml.Node{Kind: yaml.ScalarNode, Value: value}
			if text == "string" || list {
				n.Tag = "!!str"
			}
			if strings.Contains(value, "\n") {
				n.Style = yaml.DoubleQuotedStyle
			}
			node.Content = append(node.Content, n)
		}
		if !list {
			node = node.Content[0]
		}
		line, e := yaml.Marshal(map[string]*yaml.Node{name: node})
		_, w := fmt.Fprintf(u.stdout, "%-40s # %s\n", strings.TrimSuffix(string(line), "\n"), origin)
		err = cmp.Or(err, e, w)
	}
	inputs, origin := cmd.Flags().Args(), "command line"
	if len(inputs) == 0 {
		inputs, origin = u.settings.inputs, u.settings.origins["inputs"]
	}
	if len(inputs) > 0 && takesInputs(cmd) {
		print("inputs", "string", origin, inputs, true)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || slices.Contains(notSettings, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		origin := cmp.Or(u.settings.origins[f.Name], "command line")
		if !f.Changed {
			origin = "default"
		}
		if text := f.Value.String(); text == "" || text == "[]" || text == "0" && !f.Changed {
			_, w := fmt.Fprintln(u.stdout, strings.TrimSpace("# "+f.Name+" is not set "+defaultOf.FindString(f.Usage)))
			err = cmp.Or(err, w)
			return
		}
		print(f.Name, f.Value.Type(), origin, values, isList(f))
	})
	return err
}
