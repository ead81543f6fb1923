package main

import (
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/spf13/pflag"
)

// The help of each command fits in 80 columns.
func TestHelpWidth(t *testing.T) {
	for _, c := range append(rootCommand(newUI(io.Discard, io.Discard)).Commands(), rootCommand(newUI(io.Discard, io.Discard))) {
		var out strings.Builder
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		if code := bulk(args, nil, &out, io.Discard); code != exitDone {
			t.Errorf("%s: exit code %d", args, code)
		}
		for line := range strings.Lines(out.String()) {
			if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > 80 {
				t.Errorf("%s: %s", args, line)
			}
		}
	}
}

// The help of run is two screens: every flag has one line, the common ones come first, and
// what needs more words is said by topics.
func TestRunHelp(t *testing.T) {
	var out strings.Builder
	if code := bulk([]string{"run", "--help"}, nil, &out, io.Discard); code != exitDone {
		t.Fatal(code)
	}
	help := out.String()
	if n := strings.Count(help, "\n"); n > 150 {
		t.Errorf("%d lines", n)
	}
	_, flags, _ := strings.Cut(help, "Common flags:\n")
	for line := range strings.Lines(flags) {
		if strings.HasPrefix(line, "       ") {
			t.Errorf("a flag has a second line: %s", line)
		}
	}
	runCommand(newUI(io.Discard, io.Discard)).Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && !regexp.MustCompile(`(?m)^  (  |-\w,)  ?--`+f.Name+`( |$)`).MatchString(flags) {
			t.Errorf("--%s has no line", f.Name)
		}
	})
	for _, topic := range topics() {
		if name := topic.Name(); name != "exit-codes" && !strings.Contains(help, "bulk help "+name+".") {
			t.Errorf("the topic %s is not named", name)
		}
	}
}

// A topic has lines of 80 columns, and names no flag that run does not have.
func TestTopics(t *testing.T) {
	run := runCommand(newUI(io.Discard, io.Discard))
	for _, topic := range topics() {
		var out strings.Builder
		if code := bulk([]string{"help", topic.Name()}, nil, &out, io.Discard); code != exitDone {
			t.Fatal(code)
		}
		for line := range strings.Lines(out.String()) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("%s: %s", topic.Name(), line)
			}
		}
		for _, m := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(out.String(), -1) {
			if run.Flags().Lookup(m[1]) == nil {
				t.Errorf("%s names --%s", topic.Name(), m[1])
			}
		}
	}
	if roles := strings.Join(columns.MapRoles(), " "); roles != strings.Join(rolesOf(legacyTopic), " ") {
		t.Errorf("bulk help legacy has not the columns of --map: %s", roles)
	}
	if !strings.Contains(legacyTopic, legacy.DefaultPattern) {
		t.Error("bulk help legacy has not the default of --code-pattern")
	}
}

// rolesOf returns what --map takes, as the topic lists it.
func rolesOf(topic string) []string {
	_, list, _ := strings.Cut(topic, "A LIST may have ")
	list, _, _ = strings.Cut(list, ".")
	return strings.Fields(strings.NewReplacer(",", " ", " and ", " ").Replace(strings.Join(strings.Fields(list), " ")))
}
