package verify_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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

var (
	secret = codegen.NewSecret([]byte("correct horse battery staple"))
	other  = codegen.NewSecret([]byte("another secret, as long as that"))
)

// shortWords are in every fifth code of 7 characters, or so.
var shortWords = func() *codegen.Blocklist {
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "%c%c%c\n", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26)
	}
	return must(codegen.ParseBlocklist([]byte(b.String())))
}()

// manyWords are in nearly every code of 4 characters, so that links have salts and some URLs have no
// code.
var manyWords = func() *codegen.Blocklist {
	var b strings.Builder
	for i := range 26 * 26 * 26 {
		fmt.Fprintf(&b, "%c%c%c\n", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26)
	}
	return must(codegen.ParseBlocklist([]byte(b.String())))
}()

func keyed(length int, words *codegen.Blocklist) pipeline.Config {
	cfg := base(length)
	cfg.Scheme = pipeline.Scheme{Name: codegen.NameKeyed, Secret: secret, Words: words}
	return cfg
}

// secrets are ways to check a run: with secret and list, or without either.
func secrets(words *codegen.Blocklist) map[string]verify.Config {
	all := map[string]verify.Config{"all": {Secret: secret, Words: words}, "no secret": {Words: words}}
	if words != nil {
		all["no words"], all["neither"] = verify.Config{Secret: secret}, verify.Config{}
	}
	return all
}

// A run of keyed-base62, with or without a blocklist, is found to be what it says, with secret and
// list and without.
func TestVerifySchemesClean(t *testing.T) {
	for _, words := range []*codegen.Blocklist{nil, shortWords, manyWords} {
		for i, order := range []report.Order{report.SortOrder, report.InputOrder} {
			for j, length := range []int{4, 7, 16} {
				if words == manyWords && length > 4 { // hardly a code would be left
					continue
				}
				cfg := keyed(length, words)
				cfg.Store, cfg.ReportOrder = openStore(t, t.TempDir()), order
				cfg.ReportFormat = []report.Format{report.CSV, report.Parquet, report.Arrow}[(i+j)%3]
				job(t, cfg, map[string]string{"a.csv": table(5, 200, "url,team,note")})
				job(t, cfg, twoInputs())
				m := readManifest(t)
				if words == manyWords && length == 4 && (m.Files[1].Rows == 0 || m.Reasons["code_space_exhausted"] == 0) {
					t.Fatalf("nothing is contested: %+v", m)
				}
				for name, with := range secrets(words) {
					t.Run(fmt.Sprintf("%s/%s/length=%d/words=%t", name, order, length, words != nil), func(t *testing.T) {
						clean(t, with)
						with.Inputs, with.Store = []string{"?.csv"}, cfg.Store
						clean(t, with)
					})
				}
			}
		}
	}
}

// A blocklist is checked with sha256-base58, too.
func TestVerifyBlocklistClean(t *testing.T) {
	for length, words := range map[int]*codegen.Blocklist{3: manyWords, 4: manyWords, 10: shortWords, 24: shortWords} {
		for _, retries := range []int{2, 0} {
			cfg := base(length)
			cfg.Store, cfg.MaxRetries, cfg.Scheme.Words = openStore(t, t.TempDir()), retries, words
			job(t, cfg, map[string]string{"a.csv": table(5, 200, "url,team,note")})
			job(t, cfg, twoInputs())
			for _, with := range []verify.Config{{Words: words}, {}} {
				with.Store = cfg.Store
				clean(t, with)
			}
			cfg.Scheme.Words = nil // words may change: links keep their codes
			job(t, cfg, twoInputs())
			noProblem(t, verify.Config{Store: cfg.Store})
			cfg.Scheme.Words = shortWords
			job(t, cfg, map[string]string{"a.csv": table(6, 600, "url,team,note")})
			noProblem(t, verify.Config{Store: cfg.Store, Words: shortWords})
			noProblem(t, verify.Config{Store: cfg.Store})
		}
	}
}

// noProblem checks that nothing is wrong. Who had the earlier codes of links may be open: the words of
// an earlier run.
func noProblem(t *testing.T, cfg verify.Config) {
	t.Helper()
	if v := verified(t, cfg); v.Failed() > 0 {
		t.Errorf("found %v", v.Findings[:min(len(v.Findings), 8)])
	}
}

// Runs that keep legacy codes, and runs with link rules, whose identities have parts.
func TestVerifySchemesWithModes(t *testing.T) {
	change := func(c *pipeline.Config) {
		c.CodeLength, c.MaxRetries = 7, 4
		c.Scheme = pipeline.Scheme{Name: codegen.NameKeyed, Secret: secret, Words: shortWords}
	}
	// The helpers verify their runs without a secret; here they are verified once more with it.
	for _, mode := range []legacy.Mode{legacy.Map, legacy.Keep, legacy.Both} {
		store, _ := legacyRun(t, mode, change)
		for _, with := range secrets(shortWords) {
			with.Store = store
			clean(t, with)
		}
	}
	for _, identity := range []rules.Identity{rules.ByURL, rules.ByParams, rules.ByRow} {
		for _, carry := range []bool{true, false} {
			store, _ := rulesRun(t, func(c *pipeline.Config) {
				change(c)
				c.NoCarry, c.Rules.Identity = !carry, identity
			})
			for _, with := range secrets(shortWords) {
				with.Store = store
				clean(t, with)
			}
		}
	}
}

// A secret or a list that is not that of the run is wrong usage, and both are named.
func TestVerifyWrongSecret(t *testing.T) {
	refused := func(with verify.Config, wants ...string) {
		t.Helper()
		with.Dir = "out"
		_, err := verify.Run(context.Background(), with)
		if _, ok := errors.AsType[*verify.UsageError](err); !ok {
			t.Fatalf("not refused: %v", err)
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: it does not say %s", err, want)
			}
		}
	}
	job(t, keyed(7, shortWords), map[string]string{"a.csv": table(5, 20, "url,team,note")})
	refused(verify.Config{Secret: other, Words: shortWords}, secret.Fingerprint(), other.Fingerprint())
	refused(verify.Config{Secret: secret, Words: manyWords}, shortWords.SHA256(), manyWords.SHA256())
	refused(verify.Config{Secret: other, Words: manyWords}, "Config.Secret", "Config.Words")
	job(t, base(7), map[string]string{"a.csv": table(5, 20, "url,team,note")})
	refused(verify.Config{Secret: secret}, "sha256-base58 has no secret")
	refused(verify.Config{Words: shortWords}, "the run had no list")
}

// What had to be believed is said.
func TestVerifySchemeParts(t *testing.T) {
	job(t, keyed(7, shortWords), map[string]string{"a.csv": table(5, 20, "url,team,note")})
	for want, with := range map[string]verify.Config{
		"[]":                 {Secret: secret, Words: shortWords},
		"[secret]":           {Words: shortWords},
		"[blocklist]":        {Secret: secret},
		"[secret blocklist]": {},
	} {
		v := verified(t, with)
		got := slices.DeleteFunc(v.NotCompared, func(p verify.Part) bool { return p != verify.Secret && p != verify.Words })
		if fmt.Sprint(got) != want || v.Failed() > 0 {
			t.Errorf("not compared %s, want %s; %v", got, want, v.Findings)
		}
	}
}

// What the manifest says of the scheme must be what a run writes.
func TestVerifySchemeManifest(t *testing.T) {
	job(t, keyed(7, shortWords), map[string]string{"a.csv": table(5, 20, "url,team,note")})
	for field, change := range map[string]func(m *manifest.Manifest){
		"scheme.name":             func(m *manifest.Manifest) { m.Scheme.Name = "other" },
		"scheme.code_length":      func(m *manifest.Manifest) { m.Scheme.CodeLength = 3 },
		"scheme.fingerprint":      func(m *manifest.Manifest) { m.Scheme.Fingerprint = "" },
		"scheme.multiplier":       func(m *manifest.Manifest) { m.Scheme.Multiplier = 3 },
		"scheme.blocklist_sha256": func(m *manifest.Manifest) { m.Scheme.Blocklist = "x" },
		"scheme.max_retries":      func(m *manifest.Manifest) { m.Scheme.MaxRetries = -1 },
		"numbers":                 func(m *manifest.Manifest) { m.Numbers = new(manifest.Numbers) },
	} {
		good, m := readManifest(t), readManifest(t)
		change(m)
		writeManifest(t, m)
		v := verified(t, verify.Config{})
		if !slices.ContainsFunc(v.Findings, func(f verify.Finding) bool { return string(f.Column) == field }) {
			t.Errorf("%s: found %v", field, v.Findings)
		}
		writeManifest(t, good)
	}
}

// codeAt is the code of keyed-base62 with 7 characters that a URL has at a salt.
func codeAt(url string, salt int) string {
	scheme := must(codegen.NewKeyed(secret, 7))
	return string(scheme.AppendCode(nil, scheme.Sum(codegen.AppendInput(nil, []byte(url), []byte("demo"), salt))))
}

// contestedRun is a run in which a finds its first code taken by k, which is there, the first code of b
// is blocked, as both of e are, and c gets its first one.
func contestedRun(t *testing.T, change func(*pipeline.Config)) (store sink.Store, dir string, words *codegen.Blocklist) {
	t.Helper()
	dir = t.TempDir()
	list := codeAt(x+"b", 0)[:4] + "\n" + codeAt(x+"e", 0)[3:] + "\n" + codeAt(x+"e", 1)[:5]
	cfg := keyed(7, must(codegen.ParseBlocklist([]byte(list))))
	cfg.Store, cfg.MaxRetries, cfg.Source.WorkspaceColumn = openStore(t, dir), 1, ""
	if change != nil {
		change(&cfg)
	}
	first := cfg
	first.Legacy = legacy.Keep
	job(t, first, map[string]string{"a.csv": "url,code\n" + x + "k," + codeAt(x+"a", 0) + "\nftp://x,\n"})
	var urls []string
	for _, letter := range "abcek" {
		urls = append(urls, x+string(letter))
	}
	job(t, cfg, map[string]string{"a.csv": "url\n" + strings.Join(urls, "\n") + "\nftp://x\n"})
	if m := readManifest(t); m.Counts.Created != 3 || m.Counts.Existing != 1 || m.Reasons["code_space_exhausted"] != 1 || m.Files[1].Rows != 2 {
		t.Fatalf("another run: %+v", m)
	}
	return cfg.Store, dir, cfg.Scheme.Words
}

// What is changed in a report of a run of keyed-base62 with a blocklist is found, and named, although
// the digests are made to fit: also without the secret and the list, but for what only they can tell.
func TestVerifySchemeTampered(t *testing.T) {
	row := func(name string) map[string]string { return map[string]string{"canonical_url": x + name} }
	blocked := "blocklist:" + must(codegen.ParseBlocklist([]byte(codeAt(x+"b", 0)[:4]))).Match([]byte(codeAt(x+"b", 0)))
	const collisionsFile = manifest.CollisionsName
	always := []tampering{
		{mappingFile, row("c"), "short_code", codeAt(x+"a", 1), verify.CodeShared},
		{mappingFile, row("c"), "short_code", "zzzzzz", verify.BadCode},
		{mappingFile, row("c"), "short_code", "zzzzzz-", verify.BadCode},
		{mappingFile, row("c"), "salt", "2", verify.BadSalt},
		{mappingFile, row("c"), "salt", "", verify.BadSalt},
		{mappingFile, row("c"), "outcome", "duplicate", verify.BadOutcome},
		{mappingFile, row("a"), "salt", "11", verify.BadSalt},
		{collisionsFile, row("a"), "salt", "1", verify.Uncollided},
		{collisionsFile, row("a"), "canonical_url", x + "c", verify.BadCollision},
		{collisionsFile, row("a"), "owner", x + "k/", verify.BadOwner},
		{collisionsFile, row("a"), "owner", x + "c", verify.BadOwner},
		{collisionsFile, row("a"), "owner", blocked, verify.BadOwner},
		{collisionsFile, row("b"), "owner", "blocklist:xyz", verify.BadOwner},
		{collisionsFile, row("b"), "owner", "blocklist:", verify.BadOwner},
		{rejectsFile, map[string]string{"url": x + "e"}, "reason", "code_taken", verify.BadReason},
		{rejectsFile, map[string]string{"url": x + "e"}, "detail", "all 2 codes of this URL have other owners", verify.BadDetail},
		{rejectsFile, map[string]string{"url": x + "e"}, "url", x + "c", verify.BadReason},
	}
	withSecret := []tampering{
		{mappingFile, row("c"), "short_code", "zzzzzzz", verify.BadCode},
		{mappingFile, row("c"), "salt", "1", verify.BadSalt},
		{mappingFile, row("a"), "salt", "0", verify.BadSalt},
		{mappingFile, row("a"), "short_code", codeAt(x+"a", 0), verify.BadSalt},
		{mappingFile, row("k"), "salt", "0", verify.BadCode},
		{collisionsFile, row("a"), "code", "zzzzzzz", verify.BadCode},
	}
	withWords := []tampering{
		{mappingFile, row("c"), "short_code", codeAt(x+"b", 0), verify.Blocked},
		{collisionsFile, row("b"), "owner", "", verify.BadOwner},
		{collisionsFile, row("b"), "owner", x + "k", verify.BadOwner},
		{collisionsFile, row("b"), "owner", blocked[:len(blocked)-1], verify.BadOwner},
	}
	inOrders(t, func(t *testing.T, order report.Order) {
		store, _, words := contestedRun(t, func(c *pipeline.Config) { c.ReportOrder, c.BaseURL = order, "" })
		for name, with := range secrets(words) {
			list := always
			if with.Secret.Fingerprint() != "" {
				list = append(slices.Clone(list), withSecret...)
			}
			if with.Words != nil {
				list = append(slices.Clone(list), withWords...)
			}
			areFoundWith(t, with, name, list)
		}
		// What must be believed is no problem.
		good := lines(t, mappingFile)
		(&tampering{file: mappingFile, where: row("c"), column: "short_code", to: "zzzzzzz"}).apply(t)
		noProblem(t, verify.Config{})
		if v := verified(t, verify.Config{Store: store}); v.Kinds[verify.StoreMissing] == 0 {
			t.Errorf("a code that the store does not have: found %v", v.Findings)
		}
		put(t, mappingFile, good)
	})
}

// The store must have the scheme of the run, and codes that follow from their URLs.
func TestVerifySchemeStore(t *testing.T) {
	store, dir, words := contestedRun(t, nil)
	for _, with := range secrets(words) {
		with.Store, with.Inputs = store, []string{"a.csv"}
		clean(t, with)
	}
	for change, restore := range map[string]string{
		"fingerprint = '0011223344556677'": "fingerprint = '" + secret.Fingerprint() + "'",
		"code_length = 8":                  "code_length = 7",
		"scheme = 'counter-permuted'":      "scheme = 'keyed-base62'",
	} {
		alter(t, dir, "UPDATE workspaces SET "+change)
		for _, with := range secrets(words) {
			with.Store = store
			if v := verified(t, with); v.Kinds[verify.StoreScheme] != 1 {
				t.Errorf("%s: found %v", change, v.Findings)
			}
		}
		alter(t, dir, "UPDATE workspaces SET "+restore)
	}
	// So is a code of another URL there.
	alter(t, dir, "UPDATE links SET short_code = 'zzzzzzz' WHERE canonical_url = '"+x+"c'")
	if v := verified(t, verify.Config{Store: store, Secret: secret}); v.Kinds[verify.StoreCode] == 0 {
		t.Errorf("another code in the store: found %v", v.Findings)
	}
}

// Runs with any mode of legacy codes, of which nearly every generated code is blocked or taken, are
// found to be what they say.
func TestVerifySchemesRandom(t *testing.T) {
	for seed := range uint64(16) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		cfg, ways := keyed(4, manyWords), secrets(manyWords)
		if seed%2 == 0 {
			cfg, ways = base(2+int(seed%3)), map[string]verify.Config{"all": {Words: manyWords}, "no words": {}}
			cfg.Scheme.Words = manyWords
		}
		cfg.Source.WorkspaceColumn, cfg.Store = "", openStore(t, t.TempDir())
		cfg.ReportOrder = []report.Order{report.SortOrder, report.InputOrder}[rnd.IntN(2)]
		cfg.Legacy = []legacy.Mode{legacy.Keep, legacy.Both, legacy.Map}[rnd.IntN(3)]
		if cfg.Legacy.Keeps() {
			cfg.Scheme.Fold = cfg.Scheme.Name == "" && rnd.IntN(2) == 0
			cfg.OnConflict = []legacy.Conflict{legacy.Reject, legacy.Generate}[rnd.IntN(2)]
		}
		for range 2 {
			var b strings.Builder
			b.WriteString("url,code\nftp://x,\n")
			for range 300 {
				code := fmt.Sprintf("%c%c%c%c", "0123abAB"[rnd.IntN(8)], "xyXY"[rnd.IntN(4)], "12345"[rnd.IntN(5)], "ab"[rnd.IntN(2)])
				fmt.Fprintf(&b, "%s%d,%s\n", x, rnd.IntN(200), code[:rnd.IntN(2)*(2+rnd.IntN(3))])
			}
			job(t, cfg, map[string]string{"a.csv": b.String()})
		}
		for name, with := range ways {
			t.Run(fmt.Sprint(seed, " ", cfg.Legacy, " ", name), func(t *testing.T) {
				noProblem(t, with)
				with.Store, with.Inputs = cfg.Store, []string{"a.csv"}
				noProblem(t, with)
			})
		}
	}
}
