package campaign_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/campaign"
)

// Each example of a rule of the page gives what stands there.
func TestRulesByExample(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n### The rules by example\n")
	text, _, _ = strings.Cut(text, "\n#")
	rows := regexp.MustCompile(`(?m)^\| (.*?) \| (.*?) ?\| (.*?) ?\| (.*?) \|$`).FindAllStringSubmatch(text, -1)
	if len(rows) < 25 {
		t.Fatalf("%d examples", len(rows))
	}
	for _, row := range rows[1:] {
		plan, cells, want := quoted(row[2]), quoted(row[3]), quoted(row[4])
		got := exampleResult(t, plan, cells)
		switch {
		case strings.Contains(want[0], ": "):
			kind, words, _ := strings.Cut(want[0], ": ")
			if len(got) != 1 || !strings.HasPrefix(got[0], kind+": ") || !strings.Contains(got[0], words) {
				t.Errorf("%s: %q, want %q", row[1], got, want)
			}
		case !slices.Equal(got, want):
			t.Errorf("%s: %q, want %q", row[1], got, want)
		}
	}
}

var code = regexp.MustCompile("`([^`]*)`")

// quoted returns the texts between backquotes.
func quoted(text string) (list []string) {
	for _, m := range code.FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

// exampleResult says what comes of a row: why the plan is wrong usage, why the row is rejected, or its variants.
func exampleResult(t *testing.T, plan, cells []string) (list []string) {
	var flags []string
	var file []byte
	most := int64(campaign.DefaultMost)
	for _, part := range plan {
		if flag, ok := strings.CutPrefix(part, "--expand "); ok {
			flags = append(flags, strings.Trim(flag, "'"))
		} else if n, ok := strings.CutPrefix(part, "--max-expand "); ok {
			most, _ = strconv.ParseInt(n, 10, 64)
		} else {
			file = []byte(part)
		}
	}
	names, values := []string{"url"}, [][]byte{[]byte("https://a.b/")}
	for _, cell := range cells {
		name, value, _ := strings.Cut(cell, "=")
		text, err := strconv.Unquote(`"` + value + `"`)
		if err != nil {
			t.Fatal(err)
		}
		if name == "url" {
			values[0] = []byte(text)
			continue
		}
		names, values = append(names, name), append(values, []byte(text))
	}
	name := ""
	if file != nil {
		name = "c.yaml"
	}
	p, err := campaign.Parse(flags, name, file, most)
	if err != nil {
		return []string{"wrong usage: " + err.Error()}
	}
	columns, err := p.Bind(names)
	if err != nil {
		return []string{"wrong usage: " + err.Error()}
	}
	for _, m := range p.Misspelled() {
		list = append(list, "warned of "+m.Name)
	}
	row := p.NewRow()
	if f := row.Make(columns, values[0], func(c int) []byte { return values[c] }); f != nil {
		return append(list, "bad_campaign: "+f.Detail)
	}
	for row.Next() {
		list = append(list, fmt.Sprintf("%d %s", row.Number(), row.AppendURL(nil)))
	}
	return list
}
