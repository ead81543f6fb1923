package main

import (
	"io"
	"strings"
	"testing"
	"unicode/utf8"
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
