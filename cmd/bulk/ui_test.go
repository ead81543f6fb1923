package main

import "testing"

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n\ttext, ä": "plain\n\ttext, ä",
		"\x1b]0;title\a":   `\x1b]0;title\x07`,
		"a\rb\x7f\u009b":   `a\x0db\x7f\x9b`,
		"\x00\xff":         "\\x00\ufffd",
	} {
		if got := visible(text); got != want {
			t.Errorf("visible(%q) = %q, want %q", text, got, want)
		}
	}
}
