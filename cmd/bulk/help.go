package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// exitCodes is the help topic of that name. README has the same table.
const exitCodes = `  0    done
  1    failed
  2    wrong usage, an input or output directory that cannot be used, or tables
       of an older version; nothing was done
  3    done, but some rows were rejected
  4    more rejects than --max-rejects allows, no row was accepted, or rows
       claim the codes of others and --on-conflict is fail; usually no links
       were stored (if some were, the message says so)
  5    verify or diff found a difference
  6    the database did not answer, or another run is in the way; run it again
  130  interrupted (SIGINT, SIGTERM, SIGHUP); run it again
  134  crashed (SIGABRT); run it again
  137  killed (SIGKILL, also if memory ran out); run it again`

// group puts the flags that belong to no group yet into one.
func group(f *pflag.FlagSet, title string) {
	f.SortFlags = false
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Annotations["group"] == nil {
			flag.Annotations = map[string][]string{"group": {title}}
		}
	})
}

// notShown is the group of flags that help leaves out: the command refuses them.
const notShown = "not shown"

// plain is a flag that pflag shows as --dry-run, rather than --dry-run[=true|false].
type plain struct{ pflag.Value }

// help writes the help of a command to its output: examples first, flags by group.
func help(cmd *cobra.Command, _ []string) {
	w := cmd.OutOrStdout()
	section := func(title, text string) {
		if text = strings.Trim(text, "\n"); text != "" {
			fmt.Fprintf(w, "\n%s%s\n", title, text)
		}
	}
	fmt.Fprintf(w, "%s.\n", cmd.Short)
	section("Examples:\n", cmd.Example)
	var use []string
	if cmd.Runnable() && cmd.HasParent() {
		use = append(use, cmd.UseLine())
	}
	if cmd.HasSubCommands() {
		use = append(use, cmd.CommandPath()+" COMMAND")
	}
	section("Usage:\n  ", strings.Join(use, "\n  "))
	section("", cmd.Long)
	if cmd.IsAdditionalHelpTopicCommand() {
		return
	}
	commands, topics := "", ""
	for _, c := range cmd.Commands() {
		line := fmt.Sprintf("  %-*s  %s\n", c.NamePadding(), c.Name(), c.Short)
		if c.IsAdditionalHelpTopicCommand() {
			topics += line
		} else {
			commands += line
		}
	}
	section("Commands:\n", commands)
	section("Topics of bulk help:\n", topics)
	var titles []string
	groups := map[string]*pflag.FlagSet{}
	add := func(flag *pflag.Flag) {
		title := "General flags"
		if named := flag.Annotations["group"]; named != nil {
			title = named[0]
		}
		if groups[title] == nil {
			titles, groups[title] = append(titles, title), &pflag.FlagSet{}
		}
		shown := *flag
		if flag.Value.Type() == "bool" {
			shown.Value = plain{flag.Value}
		}
		groups[title].AddFlag(&shown)
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	for _, title := range slices.DeleteFunc(titles, func(title string) bool { return title == notShown }) {
		section(title+":\n", groups[title].FlagUsagesWrapped(80))
	}
	if cmd.HasParent() {
		section("", "Exit codes: see bulk help exit-codes.")
	} else {
		section("", "bulk COMMAND --help shows the examples and flags of a command.")
	}
}
