package pipeline_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/sink"
	"pgregory.net/rapid"
)

// Whatever the scheme, the words, the store, the order of the rows, the workers and the memory, a run
// does what handling the identities one at a time does. The same run again finds all of it, and so does
// one with other words.
func TestSchemeLikeOneAtATime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c, store := rapid.Permutation(slices.Concat(schemeKinds, longKinds)).Draw(rt, "kind")[0].draw(rt), openStore(t, t.TempDir())
		c.plant(t, c.config(store))
		pad := rapid.SampledFrom([]int{0, 0, 3000}).Draw(rt, "pad")
		other := [][]string{c.words[:len(c.words)/2], nil}[rapid.IntRange(0, 1).Draw(rt, "other words")]
		for _, words := range [][]string{c.words, c.words, other} {
			c.words = words
			cfg := c.config(store)
			cfg.Workers = rapid.IntRange(1, 3).Draw(rt, "workers")
			cfg.ReportOrder = rapid.SampledFrom([]report.Order{report.SortOrder, report.InputOrder}).Draw(rt, "order")
			if rapid.Bool().Draw(rt, "spill") {
				cfg.SpillAt(1)
			}
			want, wrong := c.check(t, cfg, pad)
			if wrong != nil {
				rt.Fatalf("%s, length %d by %s, retries %d, words %q, store %v, rows %v:\n%s", c.scheme.Name, c.length, c.schemeKind.identity,
					c.retries, c.words, c.store, c.rows, strings.Join(wrong, "\n"))
			}
			c.store = want.store
		}
	})
}

// The cases that are drawn are contests: in each space of codes identities lose their first code to others
// before them, begin with a later salt, and get none.
func TestSchemeCasesAreContests(t *testing.T) {
	for _, k := range schemeKinds {
		var sum schemeResult
		for seed := range 40 {
			c := rapid.Custom(k.draw).Example(seed)
			r := c.model()
			sum.evicted, sum.begun, sum.exhausted = sum.evicted+r.evicted, sum.begun+r.begun, sum.exhausted+r.exhausted
		}
		if sum.evicted < 10 || sum.begun < 10 && k.length >= 3 || sum.exhausted < 10 {
			t.Errorf("%q, length %d by %s: %d evicted, %d begin later, %d exhausted", k.scheme.Name, k.length, k.identity, sum.evicted, sum.begun, sum.exhausted)
		}
	}
}

// crowded is a run of a whole crowd in two workspaces, over a store that has codes which it wants, with
// words that a part of the crowd has in its codes.
func (k *schemeKind) crowded() schemeCase {
	c := schemeCase{schemeKind: k, retries: 1}
	m := k.maker()
	for i, code := range slices.Compact(slices.Sorted(slices.Values(pushing(m, k.crowd())))) {
		if i%5 > 0 {
			c.store = append(c.store, schemeLink{"demo", code, identity{url: fmt.Sprintf("http://example.com/old/%d", i)}})
		}
	}
	for i, who := range k.crowd() {
		if i%9 == 0 {
			c.words = append(c.words, who.code(m, "demo", i/9%2)[:3])
		}
		for n := range 1 + i%3 {
			c.rows = append(c.rows, schemeRow{[]string{"demo", "demo", "red"}[n], who})
		}
	}
	return c
}

// Neither workers nor memory nor the order of the rows show in any output, in spaces of keyed codes and
// with words that are blocked. The same run again finds all that it made, and so does one without the words.
func TestSchemeSameBytes(t *testing.T) {
	for _, k := range []*schemeKind{schemeKinds[2], schemeKinds[4], schemeKinds[6]} {
		t.Run(fmt.Sprintf("%q by %s", k.scheme.Name, k.identity), func(t *testing.T) {
			c := k.crowded()
			inputs := map[string]string{"a.csv": c.csv(100), "b.csv": csvFile(rows(2, 300))}
			others := map[string]string{"a.csv": shuffled(c.csv(100)), "b.csv": inputs["b.csv"]}
			start := func() (pipeline.Config, string) {
				dir := t.TempDir()
				cfg := c.config(openStore(t, dir))
				c.plant(t, cfg)
				return cfg, dir
			}
			cfg, dir := start()
			cfg.Workers = 1
			planted, dry := dump(t, dir), cfg
			dry.DryRun = true
			looked := map[string]string{}
			out := run(t, dry, inputs).Out
			for _, name := range []string{"mapping.csv", "rejects.csv", "collisions.csv"} {
				looked[name] = read(t, filepath.Join(out, name))
			}
			if now := dump(t, dir); !slices.Equal(now, planted) {
				t.Error("a dry run changes the store")
			}
			want, _ := job(t, cfg, inputs)
			sameReports(t, looked, want, "mapping.csv", "rejects.csv", "collisions.csv")
			links := dump(t, dir)
			for _, text := range []string{",blocklist:", ",http://example.com/old/", ",http://example.com/1", "red,"} {
				if k.identity == "url" && !strings.Contains(want["collisions.csv"], text) {
					t.Errorf("no collision with %q", text)
				}
			}
			for _, variant := range []struct {
				workers int
				spill   int64
				order   report.Order
				inputs  map[string]string
			}{{3, 1, report.SortOrder, inputs}, {2, 0, report.InputOrder, inputs}, {3, 1, report.InputOrder, inputs}, {2, 1, report.SortOrder, others}} {
				cfg, dir := start()
				cfg.Workers, cfg.ReportOrder = variant.workers, variant.order
				cfg.SpillAt(variant.spill)
				got, _ := job(t, cfg, variant.inputs)
				if now := dump(t, dir); !slices.Equal(now, links) {
					t.Fatalf("%+v: the store differs", variant)
				}
				if variant.order == report.SortOrder && variant.inputs["a.csv"] == inputs["a.csv"] {
					sameReports(t, got, want, reports...)
					continue
				}
				sameReports(t, got, want, "collisions.csv")
				for _, name := range []string{"mapping.csv", "rejects.csv"} {
					if !slices.Equal(unplaced(t, got[name]), unplaced(t, want[name])) {
						t.Errorf("%+v: %s has other rows", variant, name)
					}
				}
			}
			existing := strings.ReplaceAll(want["mapping.csv"], ",created,", ",existing,")
			again, _ := job(t, cfg, inputs)
			want["mapping.csv"] = existing
			sameReports(t, again, want, "mapping.csv", "rejects.csv", "collisions.csv")
			if now := dump(t, dir); !slices.Equal(now, links) {
				t.Fatal("again: the store differs")
			}
			cfg.Scheme.Words = nil
			unblocked, _ := job(t, cfg, inputs)
			old, now := codesByRow(t, existing), codesByRow(t, unblocked["mapping.csv"])
			for row, code := range old {
				if now[row] != code {
					t.Fatalf("without the words row %s has %s, not %s", row, now[row], code)
				}
			}
			if strings.Contains(unblocked["collisions.csv"], "blocklist:") || len(now) <= len(old) {
				t.Errorf("%d rows have codes without the words, %d with them", len(now), len(old))
			}
		})
	}
}

// shuffled returns a CSV with its rows in another order.
func shuffled(text string) string {
	lines := strings.SplitAfter(text, "\n")
	body := lines[1 : len(lines)-1]
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(body), func(i, j int) { body[i], body[j] = body[j], body[i] })
	return strings.Join(lines, "")
}

// unplaced returns the rows of a report, wherever they stood and in whatever order.
func unplaced(t *testing.T, text string) []string {
	lines := without(t, text, "source", "row", "byte_offset")
	slices.Sort(lines)
	return lines
}

// codesByRow returns the codes of a mapping.
func codesByRow(t *testing.T, mapping string) map[string]string {
	codes := map[string]string{}
	for _, r := range records(t, mapping) {
		codes[r["source"]+" "+r["row"]] = r["short_code"]
	}
	return codes
}

// The result in PostgreSQL is that in SQLite, byte for byte, and that of the model.
func TestSchemesInPostgres(t *testing.T) {
	store, empty := inPostgres(t)
	kinds := schemeKinds[2:]
	if testing.Short() {
		kinds = kinds[2:3]
	}
	for _, k := range kinds {
		c := k.crowded()
		var want map[string]string
		for _, store := range []sink.Store{openStore(t, t.TempDir()), store} {
			cfg := c.config(store)
			c.plant(t, cfg)
			_, wrong := c.check(t, cfg, 0)
			for _, wrong := range wrong {
				t.Error(wrong)
			}
			if want == nil {
				want = readReports(t)
			}
			sameReports(t, readReports(t), want, reports...)
		}
		empty()
	}
}

// Whatever call of the store fails for a while, a run that sets the scheme of its workspaces leaves what an
// undisturbed one would have left.
func TestSchemeStoreFaults(t *testing.T) {
	c := schemeKinds[4].crowded()
	c.rows = c.rows[:60]
	dir := t.TempDir()
	cfg := c.config(openStore(t, dir))
	want, _ := job(t, cfg, map[string]string{"a.csv": c.csv(0)})
	links, schemes := dump(t, dir), schemesOf(t, cfg.Store)
	cfg.Inputs, cfg.Out, cfg.AsOf = []string{"a.csv"}, "out", asOf
	must(t, os.RemoveAll("out"))
	for n, hit := int64(1), true; hit; n++ {
		hit = false
		dir := t.TempDir()
		store := openStore(t, dir)
		cfg.Store = &faultyStore{Store: store, countdown: newCountdown(n, func() error { hit = true; return sink.ErrRetryable })}
		if _, err := pipeline.Run(t.Context(), cfg); err != nil {
			t.Fatalf("call %d: %v", n, err)
		}
		checkRun(t, dir, want, links)
		if got := schemesOf(t, store); !maps.Equal(got, schemes) || len(got) != 2 {
			t.Fatalf("call %d: schemes %+v, want %+v", n, got, schemes)
		}
	}
}

// A case by hand: a code that is blocked, one that a link has, one that a URL before it takes, and in the
// end one that is free. With the first two alone there is none.
func TestSchemeCollisions(t *testing.T) {
	const url = "http://example.com/page"
	k := kindOf(keyed, 7, "url", 0)
	code := func(salt int) string { return identity{url: url}.code(k.maker(), "demo", salt) }
	c := schemeCase{schemeKind: k, retries: 2, words: []string{code(0)[2:5], "unused"}, rows: []schemeRow{{"demo", identity{url: url}}}}
	c.store = []schemeLink{{"demo", code(1), identity{url: "http://example.com/old"}}}
	cfg := c.config(openStore(t, t.TempDir()))
	c.plant(t, cfg)
	cfg.MaxRetries = 1
	shorten := func() map[string]string {
		files, _ := job(t, cfg, map[string]string{"a.csv": "url,team\n" + url + ",demo\n"})
		return files
	}
	if got := shorten()["rejects.csv"]; !strings.Contains(got, ",code_space_exhausted,all 2 codes of this URL have other owners or contain a word of --blocklist,") {
		t.Error(got)
	}
	cfg.MaxRetries = 2
	for _, outcome := range []string{"created", "existing"} {
		files := shorten()
		if r := records(t, files["mapping.csv"]); len(r) != 1 || r[0]["short_code"] != code(2) || r[0]["salt"] != "2" || r[0]["outcome"] != outcome {
			t.Error(r)
		}
		want := "workspace_id,canonical_url,salt,code,owner\ndemo," + url + ",0," + code(0) + ",blocklist:" + foldedCode(code(0)[2:5]) +
			"\ndemo," + url + ",1," + code(1) + ",http://example.com/old\n"
		if files["collisions.csv"] != want {
			t.Errorf("%s, want %s", files["collisions.csv"], want)
		}
	}
	described := manifest.Scheme{Name: codegen.NameKeyed, CodeLength: 7, MaxRetries: 2, Fingerprint: "30416db80da3dc10",
		Blocklist: cfg.Scheme.Words.SHA256()}
	if got := readManifest(t).Scheme; got != described {
		t.Errorf("%+v, want %+v", got, described)
	}
}

// schemesOf returns all schemes that the store has.
func schemesOf(t *testing.T, store sink.Store) map[string]sink.Scheme {
	t.Helper()
	session, err := store.Peek(t.Context())
	if errors.Is(err, sink.ErrMissing) { // nothing has made the tables
		return nil
	}
	must(t, err)
	defer session.Close()
	set, err := session.Schemes(t.Context(), nil)
	must(t, err)
	return set
}

// otherSecret is keyed-base62 with another secret.
var otherSecret = pipeline.Scheme{Name: codegen.NameKeyed, Secret: codegen.NewSecret([]byte("incorrect horse battery staple"))}

// A workspace has links of one scheme only: the first of them sets it, and any other is refused before
// anything is stored, as a run, a dry run and a preview. A workspace of which the store knows nothing is
// sha256-base58.
func TestSchemeOfWorkspace(t *testing.T) {
	inputs := map[string]string{"a.csv": "url\nhttp://a.example/\n"}
	inBothStores(t, func(t *testing.T, store sink.Store) {
		dry := pipeline.Config{Workspace: "k", Store: store, Scheme: keyed, DryRun: true}
		t.Chdir(t.TempDir())
		write(t, "a.csv", inputs["a.csv"])
		dry.Inputs, dry.Out = []string{"a.csv"}, "out"
		_, err := pipeline.Run(t.Context(), dry)
		must(t, err)
		if got := schemesOf(t, store); len(got) > 0 {
			t.Errorf("a dry run has set %+v", got)
		}
		run(t, pipeline.Config{Workspace: "k", Store: store, Scheme: keyed}, map[string]string{"a.csv": "url\nnone\n"})
		if got := schemesOf(t, store); len(got) > 0 {
			t.Errorf("a run without a link has set %+v", got)
		}

		longer := pipeline.Config{Workspace: "l", Store: store, Scheme: keyed, CodeLength: 8}
		for _, cfg := range []pipeline.Config{{Workspace: "plain", Store: store}, {Workspace: "k", Store: store, Scheme: keyed}, longer,
			{Workspace: "o", Store: store, Scheme: otherSecret}} {
			if result := run(t, cfg, inputs); result.Counts.Created != 1 {
				t.Errorf("%+v", result.Counts)
			}
		}
		want := map[string]sink.Scheme{
			"k": {Name: codegen.NameKeyed, CodeLength: 7, Fingerprint: keyed.Secret.Fingerprint()},
			"l": {Name: codegen.NameKeyed, CodeLength: 8, Fingerprint: keyed.Secret.Fingerprint()},
			"o": {Name: codegen.NameKeyed, CodeLength: 7, Fingerprint: otherSecret.Secret.Fingerprint()},
		}
		sameSchemes := func() {
			t.Helper()
			got := schemesOf(t, store)
			delete(got, "c")
			if len(got) != len(want) || got["k"] != want["k"] || got["l"] != want["l"] || got["o"] != want["o"] {
				t.Errorf("schemes %+v, want %+v", got, want)
			}
		}
		sameSchemes()
		// A secret belongs to one scheme, also where its workspace has no links yet.
		salt := pipeline.Scheme{Name: codegen.NameCounter, Secret: codegen.NewSecret([]byte("the salt of a counter"))}
		session, err := store.Lock(t.Context(), []string{"c"}, sink.LockOptions{})
		must(t, err)
		must(t, session.SetScheme(t.Context(), []string{"c"}, salt.Stored(7)))
		must(t, session.Close())

		before, runs := linksOf(t, store), runsOf(t, store)
		for _, c := range []struct {
			workspace string
			scheme    pipeline.Scheme
			length    int
			want      []string
		}{
			{"plain", keyed, 0, []string{`workspace "plain"`, "links of scheme sha256-base58,", "those of scheme keyed-base62:"}},
			{"k", pipeline.Scheme{}, 0, []string{`workspace "k"`, "links of scheme keyed-base62,", "those of scheme sha256-base58:"}},
			{"k", pipeline.Scheme{}, 7, []string{`workspace "k"`, "links of scheme keyed-base62,", "those of scheme sha256-base58:"}},
			{"k", keyed, 8, []string{"code length 7", "code length 8"}},
			{"l", keyed, 0, []string{"code length 8", "code length 7"}},
			{"k", otherSecret, 0, []string{"secret 30416db80da3dc10", "secret " + otherSecret.Secret.Fingerprint()}},
			{"new", pipeline.Scheme{Name: codegen.NameKeyed, Secret: salt.Secret}, 0, []string{codegen.NameCounter, codegen.NameKeyed, salt.Secret.Fingerprint()}},
		} {
			cfg := pipeline.Config{Workspace: c.workspace, Store: store, Scheme: c.scheme, CodeLength: c.length, Inputs: []string{"a.csv"}, Out: "other"}
			_, err := pipeline.Run(t.Context(), cfg)
			_, previewErr := pipeline.Preview(t.Context(), cfg)
			cfg.DryRun = true
			_, dryErr := pipeline.Run(t.Context(), cfg)
			for _, err := range []error{err, previewErr, dryErr} {
				if _, ok := errors.AsType[*pipeline.UsageError](err); !ok {
					t.Errorf("%+v: %v", c, err)
					continue
				}
				for _, text := range c.want {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("%q does not say %q", err, text)
					}
				}
			}
		}
		// One workspace of several is enough.
		cfg := pipeline.Config{Workspace: "new", Store: store, Scheme: keyed, Inputs: []string{"b.csv"}, Out: "b"}
		cfg.Source.WorkspaceColumn = "team"
		write(t, "b.csv", "url,team\nhttp://a.example/1,\nhttp://a.example/1,plain\n")
		if _, err := pipeline.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), `workspace "plain"`) {
			t.Error(err)
		}
		if got := linksOf(t, store); !slices.Equal(got, before) || runsOf(t, store) != runs {
			t.Errorf("refused runs changed the store: links %q, before %q", got, before)
		}
		sameSchemes()
	})
}

// A workspace without links, because all were undone or its first run died before them, takes the
// scheme of the next run.
func TestSchemeOfEmptyWorkspace(t *testing.T) {
	inputs := map[string]string{"a.csv": "url\nhttp://a.example/\n"}
	inBothStores(t, func(t *testing.T, store sink.Store) {
		broken := errors.New("broken")
		cfg := pipeline.Config{Workspace: "w", Store: hooked(store, "chunk", func() error { return broken }), Scheme: keyed}
		t.Chdir(t.TempDir())
		write(t, "a.csv", inputs["a.csv"])
		cfg.Inputs, cfg.Out = []string{"a.csv"}, "out"
		if _, err := pipeline.Run(t.Context(), cfg); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		for _, cfg := range []pipeline.Config{{Scheme: otherSecret}, {}, {Scheme: keyed, CodeLength: 8}} {
			cfg.Workspace, cfg.Store = "w", store
			result := run(t, cfg, inputs)
			if got := schemesOf(t, store)["w"]; got != cfg.Scheme.Stored(cfg.CodeLength) || result.Counts.Created != 1 {
				t.Errorf("%+v, %+v", got, result.Counts)
			}
			_, err := store.Undo(t.Context(), result.RunID, sink.LockOptions{}, func(sink.Kept) error { return nil })
			must(t, err)
		}
	})
}

// What does not go with a scheme is wrong usage, and the defaults are those of the scheme.
func TestSchemeUsage(t *testing.T) {
	secret := func(n int) codegen.Secret { return codegen.NewSecret(bytes.Repeat([]byte("x"), n)) }
	for _, c := range []struct {
		scheme pipeline.Scheme
		length int
		want   string // "": it goes
	}{
		{pipeline.Scheme{}, 0, ""},
		{pipeline.Scheme{Name: codegen.Name}, 24, ""},
		{pipeline.Scheme{Name: "base62"}, 0, `Config.Scheme.Name: there is no scheme "base62"; there are sha256-base58, keyed-base62, `},
		{pipeline.Scheme{Secret: secret(16)}, 0, "Config.Scheme.Secret: scheme sha256-base58 has no secret"},
		{pipeline.Scheme{Name: codegen.NameKeyed, Secret: secret(16)}, 0, ""},
		{pipeline.Scheme{Name: codegen.NameKeyed, Secret: secret(15)}, 0, "Config.Scheme.Secret: keyed-base62 needs a secret of at least 16 bytes, not 15;"},
		{pipeline.Scheme{Name: codegen.NameKeyed}, 0, "Config.Scheme.Secret: keyed-base62 needs a secret of at least 16 bytes, not 0;"},
		{keyed, 4, ""},
		{keyed, 16, ""},
		{keyed, 3, "Config.CodeLength: code length 3 is not within 4 to 16"},
		{keyed, 17, "Config.CodeLength: code length 17 is not within 4 to 16"},
		{pipeline.Scheme{Name: codegen.NameKeyed, Secret: secret(16), CounterStart: 1}, 0, "Config.Scheme.CounterStart: scheme keyed-base62 has no counter"},
		{pipeline.Scheme{Name: codegen.NameKeyed, Secret: secret(16), Multiplier: 1}, 0, "Config.Scheme.Multiplier goes with scheme counter-base62 only"},
	} {
		err := pipeline.Config{Inputs: []string{"a"}, Out: "out", Workspace: "ws", Scheme: c.scheme, CodeLength: c.length}.Validate()
		_, ok := errors.AsType[*pipeline.UsageError](err)
		if ok != (c.want != "") || ok && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s, length %d: %v, want %q", c.scheme.Name, c.length, err, c.want)
		}
	}
	run(t, pipeline.Config{Workspace: "ws", Scheme: keyed}, map[string]string{"a.csv": "url\nhttp://a.example/\n"})
	if s := readManifest(t).Scheme; s.CodeLength != 7 || s.MaxRetries != 4 || s.Blocklist != "" {
		t.Errorf("%+v", s)
	}
}

// The secret is in no file of the output, nor in the store, the log or an error.
func TestSecretStaysSecret(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	c := schemeKinds[4].crowded()
	cfg := c.config(openStore(t, dir))
	cfg.Logger, cfg.StoreName = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), "sqlite:links.db"
	c.plant(t, cfg)
	job(t, cfg, map[string]string{"a.csv": c.csv(0)})
	refused := cfg
	refused.CodeLength, refused.Inputs, refused.Out = 5, []string{"a.csv"}, "refused"
	_, err := pipeline.Run(t.Context(), refused)
	if err == nil {
		t.Error("a run of another length is not refused")
	}
	broken := cfg
	broken.Scheme.Name, broken.Inputs, broken.Out = codegen.Name, []string{"a.csv"}, "refused"
	_, usage := pipeline.Run(t.Context(), broken)
	if usage == nil {
		t.Error("a secret of a scheme that has none is not refused")
	}
	texts := map[string]string{"log": log.String(), "error": fmt.Sprintf("%+v %+v", err, usage), "configuration": fmt.Sprintf("%+v", cfg.Scheme)}
	fingerprint := 0
	for _, root := range []string{"out", dir} {
		must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			texts[path] = string(data)
			return err
		}))
	}
	for name, text := range texts {
		raw := []byte(secretText)
		for _, secret := range []string{secretText, "horse battery", hex.EncodeToString(raw), base64.StdEncoding.EncodeToString(raw)} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has the secret", name)
			}
		}
		fingerprint += strings.Count(text, keyed.Secret.Fingerprint())
	}
	if len(texts) < 8 || fingerprint == 0 {
		t.Errorf("%d texts have the fingerprint %d times", len(texts), fingerprint)
	}
}
