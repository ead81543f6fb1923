package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/campaign/campaigntest"
	"github.com/linkforge/bulk/pipeline/manifest"
)

// Every case of the law of campaigns, through bulk run (one that stores nothing) and bulk preview.
func TestCampaignCases(t *testing.T) {
	for _, ours := range []string{"BULK_TEST_POSTGRES", "BULK_TEST_CHROMIUM"} {
		t.Setenv(ours, "") // or each command would look for flags of like names
	}
	for n, c := range campaigntest.Cases(t, filepath.Join(filepath.Dir(expandPage), "testdata/expand.jsonl")) {
		t.Run(c.Name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			args := caseArguments(t, &c, n%3 == 0)
			code, out, said := inProcess(t, append([]string{"preview", "--json"}, args...)...)
			if c.Expect.Usage {
				isUsage(t, &c, code, said)
				code, _, said = inProcess(t, append([]string{"run", "--out", "out"}, args...)...)
				isUsage(t, &c, code, said)
				if made, _ := filepath.Glob("*.db"); len(made) > 0 {
					t.Error("the store was made")
				}
				return
			}
			checkPreview(t, &c, code, out, said)
			order := []string{"sort", "input"}[n%2]
			if code, _, said = inProcess(t, append([]string{"run", "--out", "out", "--dry-run", "--report-order", order}, args...)...); code != caseExit(&c) {
				t.Fatalf("exit code %d: %s", code, said)
			}
			var warned []string
			for _, m := range regexp.MustCompile(`the parameter (\S+) is one letter off`).FindAllStringSubmatch(said, -1) {
				warned = append(warned, m[1])
			}
			if !slices.Equal(warned, c.Expect.Warned) {
				t.Errorf("warned of %q, want %q", warned, c.Expect.Warned)
			}
			checkDryRun(t, &c, "out.dry")
		})
	}
}

// caseArguments writes the inputs of a case and returns the arguments that it gives a verb.
func caseArguments(t *testing.T, c *campaigntest.Case, asJSON bool) (args []string) {
	t.Helper()
	for i, text := range c.Inputs(asJSON) {
		args = append(args, fmt.Sprintf("%d.csv", i))
		write(t, "", args[i], text)
	}
	args = append(args, "--workspace", cmp.Or(c.Workspace, "w"), "--url-column", "url", "--header", "yes", "--delimiter", ",", "--allow-empty", "--no-carry",
		"--db", "sqlite:links.db", "--log-format", "json", "--as-of", "2026-01-02", "--workers", "1", "--memory", "200MiB")
	for _, flag := range c.Flags {
		args = append(args, "--expand", flag)
	}
	if text, given := c.Text(); given {
		write(t, "", "c.yaml", string(text))
		args = append(args, "--expand-file", "c.yaml")
	}
	if c.MaxExpand != nil {
		args = append(args, "--max-expand", strconv.FormatInt(*c.MaxExpand, 10))
	}
	if len(c.StripParams) > 0 {
		args = append(args, "--strip-params", strings.Join(c.StripParams, ","))
	}
	return args
}

// inProcess runs the command without a process of its own. What a run sets for its process does not stay:
// each would add threads, and the garbage of all would have to fit into the memory of the last.
func inProcess(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var out, said bytes.Buffer
	code = bulk(args, strings.NewReader(""), &out, &said)
	return code, out.String(), said.String()
}

// isUsage checks that a verb was refused as wrong usage, with the message of the case, before anything was done.
func isUsage(t *testing.T, c *campaigntest.Case, code int, said string) {
	t.Helper()
	if code != exitUsage {
		t.Fatalf("exit code %d: %s", code, said)
	}
	var messages string
	for line := range strings.Lines(said) {
		var record struct{ Msg string }
		must(t, json.Unmarshal([]byte(line), &record))
		messages += record.Msg + "\n"
	}
	for _, words := range c.Expect.Says {
		if !strings.Contains(messages, words) {
			t.Errorf("%q is not in %s", words, messages)
		}
	}
	if made, _ := filepath.Glob("out*"); len(made) > 0 {
		t.Errorf("there is %q", made)
	}
}

// caseExit returns the exit code of a run of a case.
func caseExit(c *campaigntest.Case) int {
	switch e := c.Expect.Counts; {
	case e.Rejected == 0:
		return exitDone
	case e.Rejected == e.Read:
		return exitTooMany
	}
	return exitRejected
}

// checkPreview compares what a preview printed with the case.
func checkPreview(t *testing.T, c *campaigntest.Case, code int, out, said string) {
	t.Helper()
	var p struct {
		Counts   manifest.Counts
		Campaign manifest.Campaign
		Rows     []struct {
			Row, Variant int64
			Code         string `json:"short_code"`
		}
	}
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatalf("exit code %d, %v: %s", code, err, said)
	}
	if code != caseExit(c) || p.Counts != caseCounts(c) || p.Campaign != caseCampaign(c) {
		t.Errorf("exit code %d, counts %+v, campaign %+v", code, p.Counts, p.Campaign)
	}
	for _, got := range p.Rows {
		want := c.Expect.Rows[got.Row-1].Variants
		i := slices.IndexFunc(want, func(v campaigntest.Variant) bool { return v.Variant == got.Variant })
		if got.Variant > 0 && want != nil && (i < 0 || got.Code != want[i].Code) {
			t.Errorf("it shows variant %d of row %d with the code %s", got.Variant, got.Row, got.Code)
		}
	}
}

// The help of a preview names all that it prints as JSON.
func TestPreviewHelpNamesKeys(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "", "a.csv", "url,code,expires_at\nhttps://example.com/,a,never\nhttps://example.com/#x,b,2030-01-01\n,,\nftp://a/,c,\n")
	write(t, "", "c.yaml", "sets: {s: {a: b}}")
	help, named := previewCommand(newUI(nil, nil)).Long, map[string]bool{}
	for _, args := range [][]string{{"--expand-file", "c.yaml", "--max-rejects", "0"}, {"--legacy", "keep", "--hygiene", "ends=warn"}, {"--identity", "url"}} {
		_, out, said := inProcess(t, append([]string{"preview", "a.csv", "-w", "w", "--json", "--db", "sqlite:links.db"}, args...)...)
		var p map[string]json.RawMessage
		if err := json.Unmarshal([]byte(out), &p); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		for key := range p {
			named[key] = true
			if !regexp.MustCompile(`\b` + key + `\b`).MatchString(help) {
				t.Errorf("the help does not name %s", key)
			}
		}
	}
	for _, key := range []string{"campaign", "sets", "blank_rows", "no_ends", "dates_without_time", "kinds_none", "refused"} {
		if !named[key] {
			t.Errorf("no preview has %s", key)
		}
	}
}

func caseCounts(c *campaigntest.Case) manifest.Counts {
	e := c.Expect.Counts
	return manifest.Counts{Read: e.Read, Created: e.Created, Duplicate: e.Duplicate, Rejected: e.Rejected}
}

func caseCampaign(c *campaigntest.Case) manifest.Campaign {
	m := manifest.Campaign{Combinations: c.Expect.Combinations, Tagged: c.Expect.Tagged}
	for _, row := range c.Expect.Rows {
		if row.Reject == "" {
			m.Expanded++
		}
	}
	return m
}

// checkDryRun compares the files of a dry run with the case.
func checkDryRun(t *testing.T, c *campaigntest.Case, dir string) {
	t.Helper()
	m, _, err := manifest.ReadDir(dir)
	must(t, err)
	if expand, _ := json.Marshal(m.Options["expand"]); m.Counts != caseCounts(c) || *m.Campaign != caseCampaign(c) || m.Inputs[0].Records != c.Expect.Counts.Records ||
		!sameText(expand, c.Expect.Options) {
		t.Errorf("counts %+v, campaign %+v, options.expand %s", m.Counts, *m.Campaign, expand)
	}
	rows := map[int64][]campaigntest.Variant{}
	if _, err := os.Stat(filepath.Join(dir, "mapping.csv")); err == nil {
		rows = variantsOf(t, filepath.Join(dir, "mapping.csv"))
	}
	rejects := map[int64][]string{}
	for _, r := range tableOf(t, filepath.Join(dir, manifest.RejectsName)) {
		row, _ := strconv.ParseInt(r[1], 10, 64)
		rejects[row] = append(rejects[row], r[3], r[4])
	}
	for n, want := range c.Expect.Rows {
		row := int64(n + 1)
		if what := want.Difference(rows[row]); what != "" {
			t.Errorf("row %d: %s", row, what)
		}
		if r := rejects[row]; want.Reject != "" && (len(r) != 2 || r[0] != want.Reject || want.Parameter != "" && !strings.HasPrefix(r[1], want.Parameter+": ")) {
			t.Errorf("row %d: rejected as %q, want %s of %s", row, r, want.Reject, want.Parameter)
		}
	}
}

// sameText reports whether JSON is a text, also one that is no UTF-8.
func sameText(got []byte, want string) bool {
	var m struct{ Text manifest.Text }
	return json.Unmarshal([]byte(`{"Text":`+string(got)+`}`), &m) == nil && string(m.Text) == want
}

// tableOf returns the records of a CSV file after its first.
func tableOf(t *testing.T, name string) [][]string {
	t.Helper()
	list, err := csv.NewReader(bytes.NewReader(read(t, name))).ReadAll()
	must(t, err)
	return list[1:]
}

// variantsOf reads a mapping without carried columns.
func variantsOf(t *testing.T, name string) map[int64][]campaigntest.Variant {
	t.Helper()
	header, err := csv.NewReader(bytes.NewReader(read(t, name))).Read()
	must(t, err)
	at := slices.Index(header, "variant")
	rows := map[int64][]campaigntest.Variant{}
	for _, r := range tableOf(t, name) {
		row, _ := strconv.ParseInt(r[1], 10, 64)
		number, _ := strconv.ParseInt(r[at], 10, 64)
		v := campaigntest.Variant{Variant: number, URL: r[3], Canonical: r[4], Code: r[5], Values: map[string]string{}}
		for i, value := range r[at+2:] {
			if value != "" {
				v.Values[strings.TrimPrefix(header[at+2+i], "in_")] = value
			}
		}
		rows[row] = append(rows[row], v)
	}
	for _, list := range rows {
		slices.SortFunc(list, func(a, b campaigntest.Variant) int { return cmp.Compare(a.Variant, b.Variant) })
	}
	return rows
}
