package campaign_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/campaign/campaigntest"
	"pgregory.net/rapid"
)

// drawModel draws a small plan, in which values are often equal.
func drawModel(t *rapid.T) *campaigntest.Model {
	values := rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "X", "{a}", "{b}", "{a}{b}", "x{a}"}), 1, 3)
	entry := func(names ...string) map[string][]string {
		return rapid.MapOfN(rapid.SampledFrom(names), values, 1, len(names)).Draw(t, "entry")
	}
	m := &campaigntest.Model{Lower: rapid.Bool().Draw(t, "lower")}
	if rapid.Bool().Draw(t, "parameters") {
		m.Parameters = entry("b", "d")
	}
	if m.Parameters == nil || rapid.Bool().Draw(t, "sets") {
		m.Sets = map[string][]map[string][]string{}
		for _, name := range []string{"s", "t", "u"}[:rapid.IntRange(1, 3).Draw(t, "count")] {
			for range rapid.IntRange(1, 2).Draw(t, "entries") {
				m.Sets[name] = append(m.Sets[name], entry("a", "c", "e"))
			}
		}
		if rapid.Bool().Draw(t, "use") {
			m.Use = "{u}"
		}
	}
	return m
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		p, err := campaign.Parse(nil, "c.yaml", []byte(m.File()), campaign.MaxMost)
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
			used := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"s", "t", "u"}[:max(1, len(m.Sets))]), min(1, len(m.Sets)), -1, rapid.ID).Draw(t, "used")
			cell := rapid.SampledFrom([]string{"x", "Y", "z", ""})
			cells := map[string]string{"a": cell.Draw(t, "a"), "b": cell.Draw(t, "b"), "u": strings.Join(used, ",")}
			whole := rapid.SampledFrom([]string{"https://h.example/p", "https://h.example/p&a=9", "https://h.example/?x=1&y&c=2", "https://h.example/?e=1#?a=5&d=1"}).Draw(t, "url")
			want, bad := m.Expand(whole, cells)
			f := row.Make(columns, []byte(whole), func(c int) []byte { return []byte(cells[names[c]]) })
			if bad != "" || f != nil {
				if f == nil || f.Parameter != bad {
					t.Fatalf("%s\nfault %v, want %q", m.File(), f, bad)
				}
				continue
			}
			checkWalk(t, m, p, row, whole, want)
		}
	})
}

// checkWalk compares the variants of a row with those of the model, twice.
func checkWalk(t *rapid.T, m *campaigntest.Model, p *campaign.Plan, row *campaign.Row, whole string, want []campaigntest.Variant) {
	longest, bare, hasBare := row.AppendExtremes(nil, nil)
	for range 2 {
		var got []campaigntest.Variant
		sawBare := false
		for row.Next() {
			url := row.AppendURL(nil)
			got = append(got, campaigntest.Variant{Variant: row.Number(), URL: string(url), Values: map[string]string{}})
			if len(url) > len(longest) {
				t.Fatalf("%s is longer than %s", url, longest)
			}
			sawBare = sawBare || bytes.Equal(url, bare)
			values, _ := p.Values(nil, nil, row.Number(), url)
			if !bytes.Equal(p.NewRow().URLOf([]byte(whole), values), url) || p.CheckVariant(row.Number(), values) != "" {
				t.Fatalf("%s does not check", url)
			}
			for i, value := range values {
				if value != nil {
					got[len(got)-1].Values[p.Names()[i]] = string(value)
				}
			}
		}
		expected := campaigntest.Row{Variants: want}
		if what := expected.Difference(got); what != "" || sawBare != hasBare {
			t.Fatalf("%s\n%s; bare %v", m.File(), what, hasBare)
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
