package main

import (
	"io"
	"strings"
	"testing"
)

// A line that is too long for a URL is named, and told what is wrong with it.
func TestExplainLongLine(t *testing.T) {
	var stderr strings.Builder
	stdin := strings.NewReader("http://a.example/\n\n" + strings.Repeat("x", 1<<20+1))
	code := bulk([]string{"explain", "--workspace", "w", "-"}, stdin, io.Discard, &stderr)
	if code != exitFailed || !strings.Contains(stderr.String(), `msg="standard input: line 3: it is longer than 1 MiB"`) {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}
