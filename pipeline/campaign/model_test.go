package campaign_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/campaign"
	"pgregory.net/rapid"
)

// A model is a plan with sets in YAML's flow style, expanded in the slowest way: every combination
// becomes a URL, and equal URLs are dropped.
type model struct {
	parameters map[string][]string
	sets       map[string][]map[string][]string
	use        string
	lower      bool
}

func (m *model) file() string {
	quote := func(s string) string { return `"` + s + `"` }
	entry := func(e map[string][]string) string {
		var parts []string
		for name, values := range e {
			var list []string
			for _, v := range values {
				list = append(list, quote(v))
			}
			parts = append(parts, name+": ["+strings.Join(list, ", ")+"]")
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	text := fmt.Sprintf("lower: %v\n", m.lower)
	if len(m.parameters) > 0 {
		text += "parameters: " + entry(m.parameters) + "\n"
	}
	if len(m.sets) == 0 {
		return text
	}
	var sets []string
	for name, entries := range m.sets {
		var list []string
		for _, e := range entries {
			list = append(list, entry(e))
		}
		sets = append(sets, name+": ["+strings.Join(list, ", ")+"]")
	}
	text += "sets: {" + strings.Join(sets, ", ") + "}\n"
	if m.use != "" {
		text += "use: " + quote(m.use) + "\n"
	}
	return text
}

// combinations returns those of an entry, the last name varying fastest.
func combinations(e map[string][]string) []map[string]string {
	all := []map[string]string{{}}
	for _, name := range slices.Sorted(maps.Keys(e)) {
		var next []map[string]string
		for _, c := range all {
			for _, v := range e[name] {
				with := maps.Clone(c)
				with[name] = v
				next = append(next, with)
			}
		}
		all = next
	}
	return all
}

// expand returns lines of number and URL, or the parameter that is wrong.
func (m *model) expand(url string, cells map[string]string) (lines []string, bad string) {
	put := func(s string) (string, bool) {
		empty := false
		for column, cell := range cells {
			empty = empty || cell == "" && strings.Contains(s, "{"+column+"}")
			s = strings.ReplaceAll(s, "{"+column+"}", cell)
		}
		if m.lower {
			s = strings.ToLower(s)
		}
		return s, empty
	}
	seen := map[string]bool{}
	number := 0
	each := func(own map[string]string, used bool) {
		for _, common := range combinations(m.parameters) {
			number++
			all := maps.Clone(common)
			maps.Copy(all, own)
			var pieces []string
			for _, name := range slices.Sorted(maps.Keys(all)) {
				value, empty := put(all[name])
				switch {
				case !used:
				case empty && (all[name][0] != '{' || strings.Count(all[name], "{") > 1 || !strings.HasSuffix(all[name], "}")):
					if bad == "" {
						bad = name
					}
				case !empty:
					pieces = append(pieces, name+"="+value)
				}
			}
			made := url
			if len(pieces) > 0 {
				made += "?" + strings.Join(pieces, "&")
			}
			if used && !seen[made] {
				seen[made] = true
				lines = append(lines, fmt.Sprint(number, " ", made))
			}
		}
	}
	if len(m.sets) == 0 {
		each(nil, true)
		return lines, bad
	}
	use := cells[strings.Trim(m.use, "{}")]
	for _, name := range slices.Sorted(maps.Keys(m.sets)) {
		for _, e := range m.sets[name] {
			for _, own := range combinations(e) {
				each(own, m.use == "" || slices.Contains(strings.Split(use, ","), name))
			}
		}
	}
	return lines, bad
}

// drawModel draws a small plan, in which values are often equal.
func drawModel(t *rapid.T) *model {
	values := rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "X", "{a}", "{b}", "{a}{b}", "x{a}"}), 1, 3)
	entry := func(names ...string) map[string][]string {
		return rapid.MapOfN(rapid.SampledFrom(names), values, 1, len(names)).Draw(t, "entry")
	}
	m := &model{lower: rapid.Bool().Draw(t, "lower")}
	if rapid.Bool().Draw(t, "parameters") {
		m.parameters = entry("b", "d")
	}
	if m.parameters == nil || rapid.Bool().Draw(t, "sets") {
		m.sets = map[string][]map[string][]string{}
		for _, name := range []string{"s", "t", "u"}[:rapid.IntRange(1, 3).Draw(t, "count")] {
			for range rapid.IntRange(1, 2).Draw(t, "entries") {
				m.sets[name] = append(m.sets[name], entry("a", "c", "e"))
			}
		}
		if rapid.Bool().Draw(t, "use") {
			m.use = "{u}"
		}
	}
	return m
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		p, err := campaign.Parse(nil, "c.yaml", []byte(m.file()), campaign.MaxMost)
		if err != nil {
			t.Fatal(err)
		}
		row := p.NewRow()
		names := []string{"u", "b", "a"}
		columns, err := p.Bind(names)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			used := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"s", "t", "u"}[:max(1, len(m.sets))]), min(1, len(m.sets)), -1, rapid.ID).Draw(t, "used")
			cell := rapid.SampledFrom([]string{"x", "Y", "z", ""})
			cells := map[string]string{"a": cell.Draw(t, "a"), "b": cell.Draw(t, "b"), "u": strings.Join(used, ",")}
			want, bad := m.expand("https://h.example/p", cells)
			f := row.Make(columns, []byte("https://h.example/p"), func(c int) []byte { return []byte(cells[names[c]]) })
			if bad != "" || f != nil {
				if f == nil || f.Parameter != bad {
					t.Fatalf("%s\nfault %v, want %q", m.file(), f, bad)
				}
				continue
			}
			checkWalk(t, m, p, row, want)
		}
	})
}

// checkWalk compares the variants of a row with those of the model, twice.
func checkWalk(t *rapid.T, m *model, p *campaign.Plan, row *campaign.Row, want []string) {
	longest, bare, hasBare := row.AppendExtremes(nil, nil)
	for range 2 {
		var got []string
		sawBare := false
		for row.Next() {
			url := row.AppendURL(nil)
			got = append(got, fmt.Sprint(row.Number(), " ", string(url)))
			if len(url) > len(longest) {
				t.Fatalf("%s is longer than %s", url, longest)
			}
			sawBare = sawBare || bytes.Equal(url, bare)
			values, _ := p.Values(nil, nil, url)
			if !bytes.Equal(p.NewRow().URLOf([]byte("https://h.example/p?"+p.Names()[0]+"=1"), values), url) || p.CheckVariant(row.Number(), values) != "" {
				t.Fatalf("%s does not check", url)
			}
		}
		if !slices.Equal(got, want) || sawBare != hasBare {
			t.Fatalf("%s\ngot  %q\nwant %q; bare %v", m.file(), got, want, hasBare)
		}
		row.Rewind()
	}
}

func TestNoAllocations(t *testing.T) {
	file := "parameters: {c: ['{a}', x, '{a}-{b}'], d: [p, q]}\nsets: {s: {e: ['{b}', y]}, t: {e: ['{a}', z]}}\nlower: true\nspaces: dash\nallow: {c: {pattern: '[a-z-]*'}}\n"
	p, err := campaign.Parse(nil, "c.yaml", []byte(file), 1000)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := p.Bind([]string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	row, cells := p.NewRow(), [][]byte{[]byte(" West Side"), []byte("é")}
	cells[1] = []byte("o")
	cell := func(c int) []byte { return cells[c] }
	whole := []byte("https://h.example/p?x=1&c=2#f")
	var url []byte
	variants := 0
	if n := testing.AllocsPerRun(100, func() {
		if f := row.Make(columns, whole, cell); f != nil {
			t.Fatal(f)
		}
		for variants = 0; row.Next(); variants++ {
			url = row.AppendURL(url[:0])
		}
	}); n != 0 || variants != 24 {
		t.Errorf("%v allocations for %d variants", n, variants)
	}
}

func TestPlanOfText(t *testing.T) {
	const good = `{"allow":{"a":{"pattern":"x?"}},"lower":false,"parameters":{"b":["1"]},"sets":{"s":[{"a":["x"]}]},"spaces":"keep","use":"s"}`
	if _, err := campaign.ParseText(good); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"lower":false,`, ``}, {`"keep"`, `"plus"`}, {`"spaces":"keep"`, `"spaces": "keep"`}, {`["1"]`, `[]`}, {`["1"]`, `[" 1"]`},
		{`[{"a":["x"]}]`, `[]`}, {`{"a":["x"]}`, `{}`}, {`"use":"s"`, `"use":"t"`}, {`x?`, `(`}, {`{"pattern":"x?"}`, `null`},
		{`"s":[`, `"s ":[`}, {`{"pattern":"x?"}`, `[]`}, {`"b":["1"]`, `"b":["1"],"b":["1"]`}, {`good`, ``},
	} {
		if s := strings.Replace(good, change[0], change[1], 1); s != good || change[0] == "good" {
			if change[0] == "good" {
				s = "good"
			}
			if _, err := campaign.ParseText(s); err == nil {
				t.Errorf("%s is taken for a plan", s)
			}
		}
	}
}

func TestMillion(t *testing.T) {
	list := strings.Repeat("x, ", 249_000) + "'{a}'"
	for _, file := range []string{"parameters: {a: [" + list + "]}\n", "sets: {s: [{a: [" + list + "]}, {a: ['{a}', b]}]}\n"} {
		p, err := campaign.Parse([]string{"b=1,2,3,4"}, "c.yaml", []byte(file), campaign.MaxMost)
		if err != nil {
			t.Fatal(err)
		}
		columns, _ := p.Bind([]string{"a"})
		row := p.NewRow()
		n := 0
		for row.Make(columns, []byte("https://h.example/"), func(int) []byte { return []byte("y") }); row.Next(); {
			n++
		}
		if n != 8 && n != 12 {
			t.Errorf("%d variants", n)
		}
	}
	p, err := campaign.Parse([]string{"a=" + strings.TrimSuffix(strings.Repeat("x,", 1000), ","), "b={c}" + strings.Repeat(",y", 999)}, "", nil, campaign.MaxMost)
	if err != nil || p.Combinations() != 1_000_000 {
		t.Fatal(err)
	}
}

func BenchmarkRow(b *testing.B) {
	p, err := campaign.Parse([]string{"utm_source=mail,social,search", "utm_medium=a,b,c,d,e", "utm_campaign=spring {c},x"}, "", nil, 100)
	if err != nil {
		b.Fatal(err)
	}
	columns, _ := p.Bind([]string{"c"})
	row := p.NewRow()
	url, cell := []byte("https://shop.example/some/path/of/a/page?item=1"), []byte("west")
	var out []byte
	n := 0
	for b.Loop() {
		row.Make(columns, url, func(int) []byte { return cell })
		for row.Next() {
			out = row.AppendURL(out[:0])
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/variant")
}
