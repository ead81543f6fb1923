package pipeline_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/sqlite"
	"pgregory.net/rapid"
)

// joinParts makes what stands for a canonical URL in a legacyCase whose identities have parts.
func joinParts(url, parts string) string {
	return string(rules.AppendKey(nil, []byte(url), []byte(parts)))
}

// cutParts is its inverse.
func cutParts(key string) (url, parts string) {
	a, b := rules.CutKey([]byte(key))
	return string(a), string(b)
}

func urlOf(key string) string {
	url, _ := cutParts(key)
	return url
}

// cellsOfParts returns the cells of a row of an identity: expires_at, max_uses, ref.
func cellsOfParts(key string) []string {
	cells := make([]string, 3)
	_, parts := cutParts(key)
	for part := range strings.SplitSeq(parts, "|") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "e":
			cells[0] = value
		case "m":
			cells[1] = value
		case "r":
			cells[2] = value
		}
	}
	return cells
}

// rulesOfParts are the rules of a new link whose identity has these parts, and nothing else.
func rulesOfParts(parts string) *sink.Rules {
	r := new(sink.Rules)
	cells := cellsOfParts(joinParts("", parts))
	if cells[0] != "" {
		r.Expires, _ = time.Parse(time.RFC3339, cells[0])
	}
	r.MaxUses, _ = strconv.ParseInt(cells[1], 10, 64)
	if cells[2] != "" {
		r.Ref = []byte(cells[2])
	}
	return r
}

// withParts returns the canonical URL of a link of the store, with the parts of its identity: those that
// make its key.
func withParts(l *sink.Stored) string {
	p := new(rules.Params)
	if r := l.Rules; r != nil {
		if p.Limit, p.Ref = r.MaxUses, r.Ref; !r.Expires.IsZero() {
			p.Expiry = rules.Expiry{When: rules.At, Seconds: r.Expires.Unix()}
		}
	}
	for _, by := range []rules.Identity{rules.ByURL, rules.ByParams, rules.ByRow} {
		parts := by.AppendParts(nil, p)
		key := codegen.Sum(codegen.AppendIdentity(nil, l.Canonical, l.Workspace, parts, 0)).Key()
		if l.Alias {
			key = codegen.Sum(codegen.AppendAlias(nil, l.Canonical, l.Workspace, parts, l.Code)).Key()
		}
		if key == l.Key {
			return joinParts(string(l.Canonical), string(parts))
		}
	}
	return string(l.Canonical) + " with unknown parts"
}

// legacyPartsCases are the lines of testdata/legacy-parts.jsonl.
func legacyPartsCases(t *testing.T) (cases []legacyCase) {
	f, err := os.Open("../testdata/legacy-parts.jsonl")
	must(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c legacyCase
		must(t, json.Unmarshal(lines.Bytes(), &c))
		var also struct {
			Store, Rows []struct {
				Parts   string
				Expires string `json:"expires_at"`
				Limit   int64  `json:"max_uses"`
			}
			Expect struct{ Store []struct{ Parts string } }
		}
		must(t, json.Unmarshal(lines.Bytes(), &also))
		for i := range c.Store {
			c.Store[i].Canonical = joinParts(c.Store[i].Canonical, also.Store[i].Parts)
		}
		for i := range c.Expect.Store {
			c.Expect.Store[i].Canonical = joinParts(c.Expect.Store[i].Canonical, also.Expect.Store[i].Parts)
		}
		for i := range c.Rows {
			p := rules.Params{Limit: also.Rows[i].Limit}
			if at, err := time.Parse(time.RFC3339, also.Rows[i].Expires); err == nil {
				p.Expiry = rules.Expiry{When: rules.At, Seconds: at.Unix()}
			}
			c.Rows[i].Canonical = joinParts(c.Rows[i].Canonical, string(rules.ByParams.AppendParts(nil, &p)))
		}
		cases = append(cases, c)
	}
	if lines.Err() != nil || len(cases) != 60 {
		t.Fatal(lines.Err(), len(cases))
	}
	return cases
}

// The model agrees with the vectors of kept codes with parts, which somebody else computed.
func TestLegacyPartsModel(t *testing.T) {
	for i, c := range legacyPartsCases(t) {
		checkModel(t, i, &c)
	}
}

// These vectors, through a whole run on either store.
func TestLegacyPartsVectors(t *testing.T) {
	other, empty := inPostgres(t)
	for i, c := range legacyPartsCases(t) {
		for name, store := range map[string]sink.Store{"sqlite": openStore(t, t.TempDir()), "postgres": other} {
			empty()
			cfg := c.config(store)
			c.plant(t, cfg)
			wrong := c.check(t, cfg, 0)
			if name == "sqlite" {
				wrong = slices.Concat(wrong, c.again(t, cfg), c.verified(t, cfg))
			}
			for _, wrong := range wrong {
				t.Errorf("case %d, %s: %s", i, name, wrong)
			}
		}
	}
}

// Whatever the rows, the store, the identities, the workers and the memory, a run that keeps codes of
// identities with parts does what handling the rows one at a time does. The same run again changes
// nothing, and verify finds it right. (-rapid.checks 3000 tries as many cases.)
func TestLegacyPartsLikeOneAtATime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { checkLegacyParts(t, rt, openStore(t, t.TempDir())) })
}

// So it is in PostgreSQL.
func TestLegacyPartsInPostgres(t *testing.T) {
	store, empty := inPostgres(t)
	n := 0
	most := 15 // or as many as are asked for
	if f := flag.Lookup("rapid.checks"); f.Value.String() != f.DefValue {
		most, _ = strconv.Atoi(f.Value.String())
	}
	rapid.Check(t, func(rt *rapid.T) {
		if n++; n <= most {
			empty()
			checkLegacyParts(t, rt, store)
		}
	})
}

func checkLegacyParts(t *testing.T, rt *rapid.T, store sink.Store) {
	c := drawLegacyParts(rt)
	if _, isFile := store.(*sqlite.Store); !isFile { // which is asked for codes in the order of their bytes
		c.FoldCase = false
	}
	c.Expect.Rows, c.Expect.Store = c.model()
	c.Expect.Fails = c.Expect.Rows == nil
	cfg := c.config(store)
	cfg.Workers = rapid.IntRange(1, 3).Draw(rt, "workers")
	cfg.ReportOrder = rapid.SampledFrom([]report.Order{report.SortOrder, report.InputOrder}).Draw(rt, "order")
	if rapid.Bool().Draw(rt, "spill") {
		cfg.SpillAt(1)
	}
	c.plant(t, cfg)
	pad := rapid.SampledFrom([]int{0, 0, 3000}).Draw(rt, "pad")
	wrong := c.check(t, cfg, pad)
	wrong = slices.Concat(wrong, c.again(t, cfg), c.verified(t, cfg))
	if wrong != nil {
		rt.Fatalf("%+v\n%s\n%s", c, strings.Join(wrong, "\n"), show())
	}
}

// drawLegacyParts draws a case in a small world of identities with parts.
func drawLegacyParts(t *rapid.T) (c legacyCase) {
	c.Identity = rapid.SampledFrom([]string{"params", "params", "row"}).Draw(t, "identity")
	parts := []string{"", "", "|m=1", "|m=2", "|e=2030-01-01T00:00:00Z", "|e=2030-01-01T00:00:00Z|m=2", "|e=2031-01-01T00:00:00Z"}
	if c.Identity == "row" {
		parts = []string{"|r=a", "|r=b", "|r=ü"}
	}
	c.CodeLength = rapid.IntRange(1, 2).Draw(t, "length")
	c.draw(t, rapid.Custom(func(t *rapid.T) string {
		url := fmt.Sprintf("https://example.com/%d", rapid.IntRange(0, rapid.SampledFrom([]int{2, 12}).Draw(t, "spread")).Draw(t, "url"))
		return joinParts(url, rapid.SampledFrom(parts).Draw(t, "parts"))
	}))
	return c
}

// What is exported of kept codes with parts, and read again into another store, gives the same links and
// aliases.
func TestWayBackOfParts(t *testing.T) {
	of := []string{"run_id", "created_at", "updated_at", "clicks"}
	for _, identity := range []rules.Identity{rules.ByParams, rules.ByRow} {
		for _, mode := range []legacy.Mode{legacy.Keep, legacy.Both} {
			from := openStore(t, t.TempDir())
			cfg := keeping(mode, from)
			cfg.Rules = &rules.Flags{Identity: identity}
			_, first := job(t, cfg, map[string]string{"a.csv": "url,code,expires_at,max_uses,ref\n" +
				"http://a.example/,a1,,,r\nhttp://a.example/,a2,,,r\nhttp://a.example/,b1,2099-01-01,,s\nhttp://A.example/,b2,2099-01-01,,s\n" +
				"http://a.example/,c1,2099-01-01,5,t|1\nhttp://a.example/,,,7,u\nhttp://b.example/,B,,,v\n"})
			back := keeping(legacy.Keep, openStore(t, t.TempDir()))
			back.Workspace, back.Rules = "", cfg.Rules
			_, result := job(t, back, map[string]string{"links.csv": exportTo(t, from, report.NewCSVExport)})
			sameLines(t, exported(t, back.Store, of...), exported(t, from, of...))
			if n := first.LinksCreated; result.Counts.Created != n || n != map[legacy.Mode]int64{legacy.Keep: 7, legacy.Both: 11}[mode] {
				t.Errorf("%s, %s: %d links, %+v back", identity, mode, n, result.Counts)
			}
		}
	}
}
