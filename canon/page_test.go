package canon

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// repeated is the notation "{3×a}" of the page.
var repeated = regexp.MustCompile(`\{(\d+)×(.)\}`)

// cell returns what a cell of the page's tables stands for.
func cell(t *testing.T, text string) string {
	t.Helper()
	text = strings.Trim(strings.TrimSpace(text), "`")
	if strings.HasPrefix(text, `"`) {
		unquoted, err := strconv.Unquote(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return unquoted
	}
	return repeated.ReplaceAllStringFunc(text, func(s string) string {
		m := repeated.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[1])
		return strings.Repeat(m[2], n)
	})
}

// TestPage runs every example of README.md.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	profiles := map[string]Profile{
		"| rule | input | gives |":                                           {},
		"| rule | input | gives, with user information kept |":               {KeepUserinfo: true},
		"| rule | input | gives, with fragments kept |":                      {KeepFragment: true},
		"| rule | input | gives, with https assumed |":                       {AssumeScheme: HTTPS},
		"| rule | input | gives, without the parameters `utm_*,gclid,x[]` |": {StripParams: mustStrip("utm_*,gclid,x[]")},
	}
	var table *Profile
	missing := slices.Clone(reasons)
	examples := 0
	for i, line := range strings.Split(string(page), "\n") {
		if p, ok := profiles[line]; ok {
			table = &p
			continue
		}
		cells := strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), "|")
		if len(cells) != 5 {
			table = nil
		}
		if table == nil || strings.HasPrefix(line, "|---") {
			continue
		}
		input := cell(t, strings.ReplaceAll(cells[2], "\x00", "|"))
		want := cell(t, cells[3])
		if got := formOrReason(*table, input); got != want {
			t.Errorf("README.md:%d: %.100q gives %.100q, not %.100q", i+1, input, got, want)
		}
		missing = slices.DeleteFunc(missing, func(r Reason) bool { return string(r) == want })
		examples++
	}
	if examples < 100 || len(missing) > 0 {
		t.Errorf("README.md: %d examples; none for %v", examples, missing)
	}
}

// TestDocExamples runs the examples of the package comment.
func TestDocExamples(t *testing.T) {
	source, err := os.ReadFile("canon.go")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile(`(?m)^//\t(http\S*|ftp\S*) +→ (\S+)$`).FindAllStringSubmatch(string(source), -1)
	for _, m := range examples {
		if got := formOrReason(Profile{}, m[1]); got != m[2] {
			t.Errorf("%s gives %s, not %s", m[1], got, m[2])
		}
	}
	if len(examples) < 5 {
		t.Errorf("%d examples in the package comment", len(examples))
	}
}
