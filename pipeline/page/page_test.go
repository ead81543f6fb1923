package page

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/internal/quick"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/survey"
	"golang.org/x/net/html"
)

func TestMain(m *testing.M) { os.Exit(quick.Main(m)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// report is one of a run that has everything. Each text from anywhere is what text makes of a name.
func report(text func(name string) string) *Report {
	m := &manifest.Manifest{Version: text("version"), Profile: "linkforge-1", UnicodeVersion: "15", Scheme: manifest.Scheme{Name: "sha256-base58", CodeLength: 5, MaxRetries: 10},
		Options: manifest.Options{"base_url": manifest.Text(text("base")), "dry_run": false, "limit": int64(7), text("option"): manifest.Text(text("value"))},
		AsOf:    time.Unix(1.8e9, 0), Counts: manifest.Counts{Read: 20, Created: 12, Existing: 3, Duplicate: 4, Rejected: 1},
		Inputs: manifest.Inputs{{Name: manifest.Text(text("input")), Format: text("format"), Compression: text("compression"), Records: 20, Size: 1 << 20, SHA256: text("sum")}},
		Files:  manifest.Files{{Name: "mapping.csv", Rows: 19, SHA256: text("sum")}, {Name: text("file"), Rows: 1}}}
	count := func(key string, n int64) Fact { return Fact{Key: key, In: "counts", Name: key, Number: n} }
	r := &Report{Name: text("directory"), Manifest: m, Problem: true,
		Timings: &manifest.Timings{Seconds: 2, Workers: 2, Memory: 1 << 30, PeakMemory: 1 << 28, Stages: []manifest.Stage{{Name: "read", Seconds: 1, Rows: 20, Bytes: 99}, {Name: text("stage"), Seconds: 0.5}}},
		Facts: []Fact{{Key: "run", Text: text("ended"), Said: "x"}, count("read", 20), count("created", 12), count("existing", 3), count("duplicate", 4), count("rejected", 1),
			{Key: text("reason"), In: "reasons", Name: text("reason"), Number: 1, Example: text("example"), Place: text("place"), Note: text("note"), Look: true, Said: text("said")},
			{Key: "merged_differs", Name: text("merged"), Number: 2, By: []Count{{text("kind"), 1}, {"b", 1}}},
			{Key: "twins", In: "legacy", Name: text("twins"), Text: text("text"), Depth: 1}, {Key: "unheard", Text: text("unheard")},
			{Key: "command", Name: "next", Text: "bulk verify " + text("command"), Copy: true}, {Key: "rejects_file", Text: text("rejects")}},
		Verdict: []Fact{{Key: "verdict", Text: text("verdict")}},
		Survey:  &survey.Survey{Rows: [outcome.Count]int64{12, 3, 4}, URLs: survey.Lengths{20: 18, 200: 1}, Codes: survey.Lengths{5: 11, 7: 1}, Kept: 2},
	}
	s := r.Survey
	s.Values = []survey.Values{{Name: text("parameter")}, {Name: "utm_source"}}
	for i := range 19 {
		s.Hosts.Add([]byte(text("host")))
		s.Parameters.Add([]byte(text("name")))
		s.Workspaces.Add([]byte(text(fmt.Sprint("workspace ", i%2))))
		s.Hashed.Add([]byte(text("workspace")))
		s.Values[0].Add([]byte(text("one")))
		s.Values[1].Add([]byte(text("two")))
		s.Ends.Links++
		s.Ends.Months.Add(fmt.Appendf(nil, "2031-%02d", i%12+1))
		s.Ends.Uses.Add([]byte("5"))
		s.Ends.Owners.Add([]byte(text("owner")))
		s.Ends.Types.Add([]byte(text("type")))
	}
	return r
}

// written is the page of a report.
func written(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	must(t, Write(&b, r))
	return b.String()
}

// shape is what a page is without its texts: elements and attributes, and the values of those that no text
// reaches.
func shape(t *testing.T, page string) (list []string) {
	t.Helper()
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		kind := z.Next()
		token := z.Token()
		switch kind {
		case html.ErrorToken:
			return list
		case html.TextToken:
			continue
		}
		line := fmt.Sprint(kind, " ", token.Data)
		for _, a := range token.Attr {
			if a.Key == "data-head" {
				a.Val = ""
			}
			line += " " + a.Key + "=" + a.Val
		}
		list = append(list, line)
	}
}

// hostile are texts that a page must not obey, and URLs that other tests have.
func hostile(t *testing.T) []string {
	t.Helper()
	list := []string{`<script>alert(1)</script>`, `"><img src=http://leak.example/x onerror=alert(1)>`, `'><svg/onload=alert(1)>`, "</style><style>body{display:none}", "</title><h1>x",
		"{{.}}{{template \"facts\"}}", "&lt;b&gt;&#x3c;b&#x3e;", "javascript:alert(1)", "--><!-- ", "]]>", "\x00\x01\x1b[2J\x7f", "\u202egnp.exe\u2066\u200f", "\xff\xfe\xc0", "\u0085\u009b2J", "a\r\nb\tc",
		"{display:none}", "<bdi></bdi></td></table>", "\ufeff", "</script><base href=//leak.example>", strings.Repeat("<", 5000), strings.Repeat("\u202e", 4000), "e\u0301" + strings.Repeat("\u0300", 900)}
	f, err := os.Open("../../testdata/canonical.jsonl")
	must(t, err)
	defer f.Close()
	var urls []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var vector map[string]any
		must(t, json.Unmarshal(lines.Bytes(), &vector))
		if text, ok := vector["input"].(string); ok {
			urls = append(urls, text)
		}
	}
	if len(urls) < 200 {
		t.Fatalf("%d URLs", len(urls))
	}
	for some := range slices.Chunk(urls, 8) { // for speed
		list = append(list, strings.Join(some, " "))
	}
	return list
}

// Whatever the texts are, the page has the same elements and attributes, and nothing in it changes the
// direction of text or controls a device.
func TestHostileTexts(t *testing.T) {
	want := shape(t, written(t, report(func(name string) string { return name })))
	for _, text := range hostile(t) {
		page := written(t, report(func(name string) string { return name + text }))
		if got := shape(t, page); !reflect.DeepEqual(got, want) {
			for i := range want {
				if i >= len(got) || got[i] != want[i] {
					t.Errorf("%q: %q, want %q", text, got[min(i, len(got)-1)], want[i])
					break
				}
			}
		}
		if i := strings.IndexFunc(page, func(r rune) bool {
			return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f
		}); i >= 0 {
			t.Errorf("%q: the page has %q", text, page[max(i-40, 0):i+4])
		}
		if len(page) >= MaxSize {
			t.Errorf("%q: %d bytes", text, len(page))
		}
	}
	if page := written(t, report(func(name string) string { return name + "\u202e\x1b" })); strings.Count(page, `\u202e\x1b`) < 30 {
		t.Error("what is not shown is not told")
	}
}

// Secrets are left out, wherever they come from.
func TestSecrets(t *testing.T) {
	for _, secret := range []string{"https://ann:hunter2@a.example/", "https://a.example/?token=hunter2", "postgres://me:hunter2@db/links?password=hunter2"} {
		page := written(t, report(func(string) string { return secret }))
		// The command is for copying: whoever makes it leaves its secrets out.
		if n := strings.Count(page, "hunter2"); n > strings.Count(secret, "hunter2") || !strings.Contains(page, "…") {
			t.Errorf("%s: %d times", secret, n)
		}
	}
	r := report(func(name string) string { return name })
	r.Survey.Values = append(r.Survey.Values, survey.Values{Name: "token"})
	r.Survey.Values[2].Add([]byte("hunter2"))
	if strings.Contains(written(t, r), "hunter2") {
		t.Error("a parameter that is a secret is shown")
	}
}

// A run of very many inputs, options and values has a page of bounded size, which says what it left out.
func TestSize(t *testing.T) {
	long := strings.Repeat("€", 9000)
	r := report(func(name string) string { return name + long })
	for i := range 15_000 {
		r.Survey.Hosts.Add(fmt.Append(nil, "h", i))
	}
	for i := range 500 {
		r.Manifest.Inputs = append(r.Manifest.Inputs, manifest.Input{Name: manifest.Text(fmt.Sprint(i, long))})
		r.Manifest.Options[fmt.Sprint(i, long)] = manifest.Text(long)
		r.Timings.Stages = append(r.Timings.Stages, manifest.Stage{Name: fmt.Sprint(i, long), Seconds: 1})
		r.Survey.Values = append(r.Survey.Values, survey.Values{Name: fmt.Sprint(i)})
		r.Survey.Values[len(r.Survey.Values)-1].Add([]byte(long))
	}
	r.Facts[len(r.Facts)-2].Text = "bulk verify x" // which others bound
	page := written(t, r)
	for _, want := range []string{"There are 401 more inputs", "at least ", "There are more than 10,000 different ones"} {
		if !strings.Contains(page, want) {
			t.Errorf("it does not say: %s", want)
		}
	}
}

// A screen reader can read the page: charts have texts, tables have heads, links lead somewhere, and no
// name is given twice.
func TestAccessible(t *testing.T) {
	page := written(t, report(func(name string) string { return name }))
	root, err := html.Parse(strings.NewReader(page))
	must(t, err)
	ids := map[string]int{}
	var charts, tables, hidden, level int
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if id := attr(n, "id"); id != "" {
			ids[id]++
		}
		switch n.Data {
		case "script", "iframe", "object", "form":
			t.Errorf("it has a %s", n.Data)
		case "h1", "h2", "h3":
			if now := int(n.Data[1] - '0'); now > level+1 {
				t.Errorf("an h%d follows an h%d", now, level)
			} else {
				level = now
			}
		case "svg":
			if attr(n.Parent, "aria-hidden") == "true" { // the table says it
				hidden++
				continue
			}
			charts++
			for _, id := range strings.Fields(attr(n, "aria-labelledby")) {
				ids["need "+id]++
			}
			if attr(n, "role") != "img" || attr(n, "aria-labelledby") == "" {
				t.Error("a chart has no text")
			}
		case "table":
			tables++
			if !slices.ContainsFunc(slices.Collect(n.Descendants()), func(c *html.Node) bool { return c.Data == "th" }) {
				t.Error("a table has no heads")
			}
		case "a":
			if to, ok := strings.CutPrefix(attr(n, "href"), "#"); ok {
				ids["need "+to]++
			} else {
				t.Errorf("a link leads to %s", attr(n, "href"))
			}
		}
	}
	for id, n := range ids {
		if name, ok := strings.CutPrefix(id, "need "); ok && ids[name] == 0 {
			t.Errorf("there is no #%s", name)
		} else if !ok && n > 1 {
			t.Errorf("#%s is there %d times", id, n)
		}
	}
	if charts != 4 || tables < 15 || hidden < 10 {
		t.Errorf("%d charts, %d tables, %d bars", charts, tables, hidden)
	}
	if !strings.Contains(page, `content="default-src &#39;none&#39;; img-src data:; style-src &#39;sha256-`) {
		t.Error("the page may load something")
	}
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// A fact of which this package knows nothing has a place.
func TestUnknownFact(t *testing.T) {
	r := report(func(name string) string { return name })
	r.Facts = append(r.Facts, Fact{Key: "echoes", In: "legacy", Name: "rows heard twice", Number: 1234, By: []Count{{"loud", 1000}}, Note: "listen again"},
		Fact{Key: "quiet", In: "nowhere", Text: "nothing was heard"}, Fact{Key: "hidden", Text: "invisible", Hidden: true})
	page := written(t, r)
	for _, want := range []string{"rows heard twice</dt><dd class=\"number\"><bdi>1,234", "loud 1,000", "Listen again.", "Nothing was heard."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %s", want)
		}
	}
	if strings.Contains(page, "invisible") {
		t.Error("it shows what people are not told")
	}
}
