package pipeline_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/verify"
	"github.com/linkforge/bulk/sink"
)

// counters are the schemes that count.
func counters() map[string]pipeline.Scheme {
	return map[string]pipeline.Scheme{
		codegen.NameCounter:  {Name: codegen.NameCounter, Secret: keyed.Secret, Multiplier: 1315423911},
		codegen.NamePermuted: {Name: codegen.NamePermuted, Secret: keyed.Secret},
	}
}

// counted is the configuration of the tests of counters, with a secret of its own store.
func counted(t *testing.T, s pipeline.Scheme, dir string) (pipeline.Config, codegen.Counter) {
	t.Helper()
	_, counter, err := s.Make(0)
	must(t, err)
	cfg := base(0)
	cfg.Scheme, cfg.Store = s, openStore(t, dir)
	return cfg, counter
}

// numbersOf checks the numbers of a mapping: that codes are made from them, and that they ascend with
// (workspace, canonical URL, more columns). It returns the numbers of created rows by canonical URL.
func numbersOf(t *testing.T, mapping string, counter codegen.Counter, more ...string) map[string]int64 {
	t.Helper()
	numbers := map[string]int64{}
	list := slices.DeleteFunc(records(t, mapping), func(r map[string]string) bool { return r["outcome"] != "created" || r["number"] == "" })
	slices.SortStableFunc(list, func(a, b map[string]string) int {
		c := cmp.Or(cmp.Compare(a["workspace_id"], b["workspace_id"]), cmp.Compare(a["canonical_url"], b["canonical_url"]))
		for _, column := range more {
			c = cmp.Or(c, cmp.Compare(a[column], b[column]))
		}
		return c
	})
	last := int64(0)
	for _, r := range list {
		n, err := strconv.ParseInt(r["number"], 10, 64)
		must(t, err)
		if code := string(counter.AppendCode(nil, uint64(n))); n <= last || r["salt"] != "" || code != cmp.Or(r["link_code"], r["short_code"]) {
			t.Errorf("number %d after %d, code %s: %v", n, last, code, r)
		}
		last = n
		numbers[r["workspace_id"]+" "+r["canonical_url"]+" "+r["expires_at"]] = n
	}
	return numbers
}

func nextNumber(t *testing.T, store sink.Store) int64 {
	t.Helper()
	s, err := store.Peek(context.Background())
	must(t, err)
	n, err := s.NextNumber(context.Background())
	must(t, errors.Join(err, s.Close()))
	return n
}

// The numbers follow the order of the URLs, whatever the order of the rows, the workers and the
// memory. A second run has no new URL, a third one goes on counting.
func TestCounter(t *testing.T) {
	for name, scheme := range counters() {
		t.Run(name, func(t *testing.T) {
			list := rows(3, 2500)
			var first []string
			var mapping map[string]string
			for i, vary := range []func(*pipeline.Config){
				func(*pipeline.Config) {},
				func(c *pipeline.Config) { c.Workers = 1; c.SpillAt(16 << 10) },
				func(c *pipeline.Config) { c.Workers = 5; c.ReportOrder = report.InputOrder; c.SpillAt(16 << 10) },
			} {
				dir := t.TempDir()
				cfg, counter := counted(t, scheme, dir)
				vary(&cfg)
				got, result := job(t, cfg, map[string]string{"a.csv": csvFile(list)})
				numbers := numbersOf(t, got["mapping.csv"], counter)
				if n := result.Counts.Created; int64(len(numbers)) != n || n < 500 || nextNumber(t, cfg.Store) != n+1 || slices.Max(slices.Collect(maps.Values(numbers))) != n {
					t.Fatalf("%d numbers for %d links, next %d", len(numbers), n, nextNumber(t, cfg.Store))
				}
				if !slices.ContainsFunc(result.Timings.Stages, func(s manifest.Stage) bool { return s.Name == "number" && s.Rows == result.Counts.Created }) {
					t.Errorf("stages %v", result.Timings.Stages)
				}
				if i == 0 {
					first, mapping = dump(t, dir), got
				} else if !slices.Equal(dump(t, dir), first) {
					t.Fatalf("variant %d: another store", i)
				}
				if cfg.ReportOrder != report.InputOrder {
					sameReports(t, got, mapping, "mapping.csv", "rejects.csv", "collisions.csv")
				}
				verifies(t, "run", result, verify.Config{Inputs: []string{"a.csv"}, Store: cfg.Store, Secret: scheme.Secret}, 3, false)
				again, result := job(t, cfg, map[string]string{"a.csv": csvFile(list), "empty.csv": "url,team\n"})
				if result.Counts.Created != 0 || nextNumber(t, cfg.Store) != int64(len(numbers))+1 || strings.Contains(again["manifest.json"], `"first"`) {
					t.Fatalf("%+v, next %d", result.Counts, nextNumber(t, cfg.Store))
				}
				more, _ := job(t, cfg, map[string]string{"b.csv": csvFile(append(slices.Clone(list), "http://a.example/,,", "http://zz.example/,,"))})
				if got := slices.Sorted(maps.Values(numbersOf(t, more["mapping.csv"], counter))); len(got) != 2 || got[0] != int64(len(numbers))+1 {
					t.Fatalf("numbers %v after %d", got, len(numbers))
				}
			}
			// Rows are shuffled: the numbers of rows differ, and nothing else.
			rnd := rand.New(rand.NewPCG(1, 2))
			rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			dir := t.TempDir()
			cfg, _ := counted(t, scheme, dir)
			got, _ := job(t, cfg, map[string]string{"a.csv": csvFile(list)})
			if !slices.Equal(without(t, got["mapping.csv"], "row"), without(t, mapping["mapping.csv"], "row")) || !slices.Equal(dump(t, dir), first) {
				t.Error("shuffled rows have another result")
			}
		})
	}
}

// A number is skipped if its code is kept, in this run or in the store, or contains a word.
func TestCounterSkips(t *testing.T) {
	for name, scheme := range counters() {
		for _, mode := range []legacy.Mode{legacy.Keep, legacy.Both} {
			t.Run(name+"/"+string(mode), func(t *testing.T) {
				_, counter, err := scheme.Make(0)
				must(t, err)
				code := func(n uint64) string { return string(counter.AppendCode(nil, n)) }
				words, err := codegen.ParseBlocklist([]byte(code(5)[:4]))
				must(t, err)
				scheme.Words = words
				cfg, _ := counted(t, scheme, t.TempDir())
				cfg.Legacy, cfg.Source.WorkspaceColumn = mode, ""
				job(t, cfg, map[string]string{"a.csv": "url,code\nhttp://z.example/kept," + code(3) + "\n"})
				next := nextNumber(t, cfg.Store)
				var b strings.Builder
				b.WriteString("url,code\nhttp://y.example/kept," + code(4) + "\n")
				for i := range 20 {
					fmt.Fprintf(&b, "http://x.example/%02d,\n", i)
				}
				got, result := job(t, cfg, map[string]string{"b.csv": b.String()})
				for _, with := range []verify.Config{{Secret: scheme.Secret, Words: words}, {}} {
					with.Inputs, with.Store = []string{"b.csv"}, cfg.Store
					verifies(t, "run", result, with, 3, false)
				}
				numbers := numbersOf(t, got["mapping.csv"], counter)
				used := slices.Sorted(maps.Values(numbers))
				var want []int64
				for n := max(next, 1); len(want) < len(used); n++ {
					if n != 3 && n != 4 && n != 5 {
						want = append(want, n)
					}
				}
				m := readManifest(t)
				if !slices.Equal(used, want) || len(used) < 20 || m.Numbers.Skipped != 3 || result.Counts.Rejected > 0 {
					t.Errorf("numbers %v, want %v; %+v", used, want, m.Numbers)
				}
				for _, r := range records(t, got["mapping.csv"]) {
					if r["canonical_url"] == "http://y.example/kept" && r["short_code"] != code(4) {
						t.Errorf("the code is not kept: %v", r)
					}
				}
			})
		}
	}
}

// A number that one workspace had to skip is not given to a later one, also if the run ends in between: each
// URL gets the number that it would have had.
func TestCounterSkipsAgain(t *testing.T) {
	for name, scheme := range counters() {
		_, counter, err := scheme.Make(0)
		must(t, err)
		first := string(counter.AppendCode(nil, 1)) // kept in workspace a
		var b strings.Builder
		b.WriteString("url,workspace\nhttp://x.example/0,a\n")
		for i := range 7 {
			fmt.Fprintf(&b, "http://x.example/%d,b\n", i)
		}
		var want string
		for parts := range int64(5) { // after none the run is not disturbed
			cfg, _ := counted(t, scheme, t.TempDir())
			kept := cfg
			kept.Legacy, kept.Workspace, kept.Source.WorkspaceColumn = legacy.Keep, "a", ""
			job(t, kept, map[string]string{"kept.csv": "url,code\nhttp://z.example/kept," + first + "\n"})
			cfg.Workspace, cfg.Source.WorkspaceColumn = "", "workspace"
			t.Chdir(t.TempDir())
			write(t, "in.csv", b.String())
			cfg.Inputs, cfg.Out, cfg.AsOf = []string{"in.csv"}, "out", asOf
			if parts > 0 {
				ending := cfg
				ending.Store = endedAfter(cfg.Store, parts)
				if _, err := pipeline.Run(t.Context(), ending); !errors.Is(err, errEnded) && parts < 4 {
					t.Fatalf("%s, after %d parts: %v", name, parts, err)
				}
			}
			if _, err := os.Stat("out"); err != nil {
				_, err := pipeline.Run(t.Context(), cfg)
				must(t, err)
			}
			if got := read(t, "out/mapping.csv"); want == "" {
				want = got
			} else if got != want {
				t.Errorf("%s, after %d parts:\n%s\nwant\n%s", name, parts, got, want)
			}
		}
	}
}

// The counter goes on where that of another system stood, at any time, and never goes back.
func TestCounterStart(t *testing.T) {
	s := pipeline.Scheme{Name: codegen.NameCounter, Secret: codegen.NewSecret([]byte("my_secret")), CounterStart: 12345}
	cfg, _ := counted(t, s, t.TempDir())
	after := func(name string, start int64, row string, want manifest.Counter, next int64) {
		t.Helper()
		cfg.Scheme.CounterStart = start
		if _, result := job(t, cfg, map[string]string{name: "url,team\n" + row + ",\n"}); result.Counter != want || nextNumber(t, cfg.Store) != next {
			t.Errorf("%s: %+v, next %d", name, result.Counter, nextNumber(t, cfg.Store))
		}
	}
	dry := cfg
	dry.DryRun = true
	if result := run(t, dry, map[string]string{"a.csv": "url,team\nhttp://a.example/,\n"}); result.Counter != (manifest.Counter{Start: 12345, Was: 1, Moved: true}) {
		t.Errorf("a dry run: %+v", result.Counter)
	}
	after("a.csv", 12345, "http://a.example/", manifest.Counter{Last: 12345, Start: 12345, Was: 1, Moved: true}, 12346)
	if r := records(t, read(t, "out/mapping.csv"))[0]; r["short_code"] != "Gh71WPT" || r["number"] != "12345" {
		t.Errorf("%v", r)
	}
	after("b.csv", 12345, "http://b.example/", manifest.Counter{Last: 12346, Start: 12345, Was: 12346}, 12347)
	after("c.csv", 12347, "http://c.example/", manifest.Counter{Last: 12347, Start: 12347, Was: 12347}, 12348)
	after("d.csv", 20000, "http://a.example/", manifest.Counter{Last: 19999, Start: 20000, Was: 12348, Moved: true}, 20000) // no number is made
	after("e.csv", 0, "http://e.example/", manifest.Counter{Last: 20000}, 20001)

	// A run that is finished moves the counter; one that is refused does not.
	cfg.Inputs, cfg.Out, cfg.AsOf, cfg.Scheme.CounterStart = []string{"e.csv"}, "out", asOf, 30000
	result, err := pipeline.Run(context.Background(), cfg)
	if must(t, err); !result.Repeated || !result.Counter.Moved || nextNumber(t, cfg.Store) != 30000 {
		t.Errorf("repeated %t: %+v, next %d", result.Repeated, result.Counter, nextNumber(t, cfg.Store))
	}
	cfg.Out, cfg.Scheme.CounterStart = "refused", 40000
	write(t, "f.csv", "url,team\nftp://f.example/,\n")
	cfg.Inputs = []string{"f.csv"}
	if _, err := pipeline.Run(context.Background(), cfg); err == nil || nextNumber(t, cfg.Store) != 30000 {
		t.Errorf("%v, next %d", err, nextNumber(t, cfg.Store))
	}
}

// After 62^7 numbers the codes begin again.
func TestCounterWraps(t *testing.T) {
	cfg, counter := counted(t, pipeline.Scheme{Name: codegen.NameCounter, CounterStart: codegen.CounterSpace - 1}, t.TempDir())
	got, _ := job(t, cfg, map[string]string{"a.csv": "url,team\nhttp://a.example/1,\nhttp://a.example/2,\nhttp://a.example/3,\n"})
	if numbers := numbersOf(t, got["mapping.csv"], counter); numbers["demo http://a.example/3 "] != codegen.CounterSpace+1 {
		t.Errorf("%v", numbers)
	}
}

// A dry run shows the codes that a run would give out, and takes no number.
func TestCounterDryRun(t *testing.T) {
	for name, scheme := range counters() {
		t.Run(name, func(t *testing.T) {
			cfg, _ := counted(t, scheme, t.TempDir())
			job(t, cfg, map[string]string{"a.csv": "url,team\nhttp://a.example/1,\nhttp://a.example/2,\n"})
			input := map[string]string{"b.csv": csvFile(rows(5, 200))}
			dry := cfg
			dry.DryRun = true
			run(t, dry, input)
			shown := read(t, "out.dry/mapping.csv")
			if n := nextNumber(t, cfg.Store); n != 3 {
				t.Errorf("the next number is %d", n)
			}
			dry.Inputs = []string{"b.csv"}
			preview, err := pipeline.Preview(context.Background(), dry)
			must(t, err)
			got, result := job(t, cfg, input)
			if got["mapping.csv"] != shown || preview.Counts != result.Counts || len(preview.First[0].Code) != codegen.CounterLength {
				t.Errorf("%s, preview %+v", firstDifference(shown, got["mapping.csv"]), preview.First[0])
			}
		})
	}
}

// Numbers of identities with parts follow these, and their links have the rules of their rows.
func TestCounterRules(t *testing.T) {
	for _, identity := range []rules.Identity{rules.ByURL, rules.ByParams, rules.ByRow} {
		t.Run(identity.String(), func(t *testing.T) {
			dir := t.TempDir()
			cfg, counter := counted(t, counters()[codegen.NamePermuted], dir)
			cfg.Rules, cfg.Source.WorkspaceColumn = &rules.Flags{Identity: identity}, ""
			input := map[string]string{"a.csv": "url,expires_at,ref\nhttp://a.example/,2030-01-02,r1\nhttp://a.example/,2030-01-01,r2\nhttp://a.example/,,r0\nhttp://b.example/,2030-01-01,r3\n"}
			got, result := job(t, cfg, input)
			column := map[rules.Identity]string{rules.ByURL: "canonical_url", rules.ByParams: "expires_at", rules.ByRow: "ref"}[identity]
			if numbers := numbersOf(t, got["mapping.csv"], counter, column); int64(len(numbers)) != result.Counts.Created {
				t.Errorf("%v, %+v", numbers, result.Counts)
			}
			verifies(t, "run", result, verify.Config{Inputs: []string{"a.csv"}, Store: cfg.Store, Secret: keyed.Secret}, 3, false)
			again, result := job(t, cfg, map[string]string{"a.csv": input["a.csv"], "empty.csv": "url\n"})
			if result.Counts.Created != 0 || strings.Contains(again["mapping.csv"], "drifted") != (identity == rules.ByURL) {
				t.Errorf("%+v\n%s", result.Counts, again["mapping.csv"])
			}
			must(t, cfg.Store.ScanRules(context.Background(), func(l *sink.Stored) error {
				if (l.Base != sink.Key{}) != (identity == rules.ByRow || identity == rules.ByParams && !l.Rules.Expires.IsZero()) || (len(l.Rules.Ref) > 0) != (identity == rules.ByRow) {
					t.Errorf("%s: %+v", l.Code, l)
				}
				return nil
			}))
		})
	}
}

// A run that is killed anywhere and repeated gives each URL the number that it would have had, and
// no number is given out twice.
func TestKillCounter(t *testing.T) {
	points := soaked(t, len(kinds))
	for i, store := range killableStores {
		for j, of := range []string{codegen.NameCounter, codegen.NamePermuted + " " + string(legacy.Keep), codegen.NamePermuted + " " + string(legacy.Both)} {
			if killsElsewhere(i, j) {
				continue
			}
			t.Run(store.name+"/"+of, func(t *testing.T) {
				scheme, mode, _ := strings.Cut(of, " ")
				t.Setenv(killScheme, scheme+" abc,foo,lll,ooo,sex,tit")
				t.Setenv(killLegacy, mode)
				input, n := killInput, 3000
				if mode != "" {
					input, n = killLegacyInput, 2000
				}
				testKill(t, store, true, points, input, n)
			})
		}
	}
}
