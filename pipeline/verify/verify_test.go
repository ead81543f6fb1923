package verify_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/internal/quick"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/pipeline/verify"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/sqlite"
)

func TestMain(m *testing.M) { os.Exit(quick.Main(m)) }

func openStore(t testing.TB, dir string) sink.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), filepath.Join(dir, "links.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// create makes an empty database.
func create(t testing.TB, store sink.Store) {
	t.Helper()
	s, err := store.Lock(context.Background(), nil, sink.LockOptions{})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// spellings of URLs, some of one and some that are refused; %d is a number.
var spellings = []string{
	"http://example.com/p/%d?a=1&b=2", "HTTP://Example.com:80/p//%d/?b=2&a=1#x", " http://example.com/./p/%d?b=2&a=1",
	"https://example.org/%d", "https://EXAMPLE.org/q/../%d", "ftp://example.com/%d", "http://me:pw@example.com/%d",
	"http://example.com:99999/%d", "http://bücher.example/%d", "https://example.org/caf\xe9/%d", "\thttp://example.net/%d",
}

// table makes a CSV of n rows with duplicates, bad rows and blank cells.
func table(seed uint64, n int, header string) string {
	rnd := rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	b.WriteString(header + "\n")
	for range n {
		url := fmt.Sprintf(spellings[rnd.IntN(len(spellings))], rnd.IntN(n/3+1))
		team := []string{"red", "blue", "", "grün", "a|b", "-x", "=y"}[min(rnd.IntN(40), rnd.IntN(7))]
		note := []string{"", "x", `"two` + "\n" + `lines"`, `"say ""hi"""`, "=1+1", "'=1+1"}[rnd.IntN(6)]
		switch line := url + "," + team + "," + note; rnd.IntN(60) {
		case 0:
			b.WriteString("ragged\n")
		case 1:
			b.WriteString("," + team + ",\n")
		case 2:
			b.WriteString("bare\"quote,x,y\n")
		default:
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// job is a run in a folder of its own, which is the working folder.
func job(t testing.TB, cfg pipeline.Config, inputs map[string]string) *pipeline.Result {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range inputs {
		if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		cfg.Inputs = append(cfg.Inputs, name)
	}
	cfg.Out = "out"
	cfg.AsOf = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	result, err := pipeline.Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	asOut(t, result.Out)
	return result
}

// asOut names the output directory of a dry run, or of one that failed, as that of any other.
func asOut(t testing.TB, dir string) {
	t.Helper()
	if dir == "out" {
		return
	}
	if err := os.Rename(dir, "out"); err != nil {
		t.Fatal(err)
	}
}

func base(codeLength int) pipeline.Config {
	return pipeline.Config{
		Workspace: "demo", Source: source.Options{Choice: columns.Choice{WorkspaceColumn: "team"}}, CodeLength: codeLength,
		BaseURL: "https://sho.rt", Version: "test",
	}
}

func twoInputs() map[string]string {
	return map[string]string{"a.csv": table(1, 700, "url,team,note"), "b.csv": table(2, 300, "link,team,extra")}
}

func verified(t testing.TB, cfg verify.Config) *verify.Result {
	t.Helper()
	cfg.Dir, cfg.Version, cfg.Memory = "out", "test", cmp.Or(cfg.Memory, 8<<20)
	v, err := verify.Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func clean(t *testing.T, cfg verify.Config) {
	t.Helper()
	v := verified(t, cfg)
	for _, f := range v.Findings[:min(len(v.Findings), 8)] {
		t.Errorf("%+v", f)
	}
	for _, f := range v.Unexplained {
		t.Errorf("%+v", f)
	}
	if v.Rows == 0 || v.Rejects == 0 {
		t.Errorf("%d rows, %d rejects", v.Rows, v.Rejects)
	}
}

// Of columns of one name the one that the run took is taken.
func TestVerifyColumnsOfOneName(t *testing.T) {
	for name, choice := range map[string]columns.Choice{
		"first":  {URLColumn: "1", WorkspaceColumn: "2"},
		"second": {URLColumn: "url_2", WorkspaceColumn: "team_2"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := base(10)
			cfg.Source.Choice, cfg.DryRun = choice, true
			job(t, cfg, map[string]string{"a.csv": "url,team,url,team,URL\n" +
				"http://a/,x,http://b/,y,http://c/\nftp://a/,x,ftp://b/,y,ftp://c/\n"})
			clean(t, verify.Config{Inputs: []string{"a.csv"}})
		})
	}
}

// A run is found to be what it says, whatever its options.
func TestVerifyClean(t *testing.T) {
	options := map[string]func(*pipeline.Config){
		"plain":         func(*pipeline.Config) {},
		"excel-safe":    func(c *pipeline.Config) { c.ExcelSafe = true },
		"keep-userinfo": func(c *pipeline.Config) { c.Profile.KeepUserinfo = true },
		"keep-fragment": func(c *pipeline.Config) { c.Profile.KeepFragment = true },
		"strip-params":  func(c *pipeline.Config) { c.Profile.StripParams, _ = canon.ParseStripParams("a,UTM_*") },
		"all of them": func(c *pipeline.Config) {
			c.Profile, _ = canon.ParseProfile("linkforge-1+fragment+strip(b,utm_*)+userinfo")
		},
		"max-length":   func(c *pipeline.Config) { c.Profile.MaxLength = 28 },
		"no-carry":     func(c *pipeline.Config) { c.NoCarry = true },
		"input order":  func(c *pipeline.Config) { c.ReportOrder = report.InputOrder },
		"input, excel": func(c *pipeline.Config) { c.ReportOrder, c.ExcelSafe = report.InputOrder, true },
		"limit":        func(c *pipeline.Config) { c.Limit = 811 },
		"dry-run":      func(c *pipeline.Config) { c.DryRun = true; create(t, c.Store) },
		"no base URL":  func(c *pipeline.Config) { c.BaseURL = "" },
		"no retries":   func(c *pipeline.Config) { c.MaxRetries = pipeline.NoRetries },
		"few retries":  func(c *pipeline.Config) { c.MaxRetries = 2 },
	}
	lengths := []int{1, 2, 10, 3, 12, 24}
	for n, name := range slices.Sorted(maps.Keys(options)) {
		option := options[name]
		for i, format := range []report.Format{report.CSV, report.Parquet, report.Arrow} {
			for j, length := range lengths {
				if name != "plain" && (n+i)%3 != j || testing.Short() && length != 2 { // each option with each length, and with each format
					continue
				}
				t.Run(fmt.Sprintf("%s/format=%s/length=%d", name, format, length), func(t *testing.T) {
					cfg := base(length)
					cfg.ReportFormat, cfg.Store = format, openStore(t, t.TempDir())
					option(&cfg)
					result := job(t, cfg, twoInputs())
					clean(t, verify.Config{ManifestSHA256: result.ManifestSHA256})
					clean(t, verify.Config{Inputs: []string{"?.csv"}, Store: cfg.Store})
				})
			}
		}
	}
}

// Links of earlier runs, also of other lengths, are no finding.
func TestVerifyExisting(t *testing.T) {
	cfg := base(0)
	cfg.Store = openStore(t, t.TempDir())
	for i, length := range []int{2, 1, 10, 3} {
		cfg.CodeLength = length
		inputs := map[string]string{"a.csv": table(uint64(i), 500, "url,team,note"), "b.csv": table(9, 100, "url,team,note")}
		job(t, cfg, inputs)
		clean(t, verify.Config{})
		job(t, cfg, inputs)
		clean(t, verify.Config{Memory: 1 << 16, Workers: 3, Inputs: []string{"b.csv", "a.csv"}, Store: cfg.Store})
	}
}

// refuse is a run of a.csv, and other inputs like it, that allows one reject, and has more.
func refuse(t *testing.T, cfg pipeline.Config, text string, others ...string) {
	t.Helper()
	cfg.MaxRejects, _ = manifest.ParseMaxRejects("1")
	cfg.Inputs, cfg.Out = append([]string{"a.csv"}, others...), "out"
	t.Chdir(t.TempDir())
	for _, name := range cfg.Inputs {
		os.WriteFile(name, []byte(text), 0o666)
	}
	var refused *pipeline.TooManyRejectsError
	if _, err := pipeline.Run(context.Background(), cfg); !errors.As(err, &refused) {
		t.Fatalf("not refused: %v", err)
	}
	asOut(t, "out.failed")
}

// A run that refused its input has rejects alone.
func TestVerifyTooManyRejects(t *testing.T) {
	for _, length := range []int{1, 10} {
		refuse(t, base(length), table(1, 300, "url,team,note"))
		if v := verified(t, verify.Config{Inputs: []string{"a.csv"}}); v.Failed() > 0 || v.Rejects < 2 || !v.NoMapping {
			t.Errorf("%+v", v)
		}
		if m := readManifest(t); length == 1 && m.Reasons["code_space_exhausted"] == 0 {
			t.Errorf("no URL is exhausted: %v", m.Reasons)
		}
	}
	for i, inputs := range [][]string{{"a.csv"}, {"a.csv", "b.csv"}} { // the limit ends before the second
		cfg := base(10)
		cfg.Limit = 300
		refuse(t, cfg, table(1, 300, "url,team,note"), inputs[1:]...)
		m := readManifest(t)
		m.Inputs[i].Records++
		m.Counts.Read++
		m.Counts.Created++
		writeManifest(t, m)
		if f := verified(t, verify.Config{Inputs: inputs}).Findings; len(f) != 1 || f[0].Kind != verify.InputSum || f[0].Column != "records" || string(f[0].File) != inputs[i] {
			t.Errorf("a record that %s has not: found %+v", inputs[i], f)
		}
	}
	refuse(t, base(10), table(1, 300, "url,team,note"))
	good := *readManifest(t)
	for name, change := range map[string]func(c *manifest.Counts){
		"read":    func(c *manifest.Counts) { c.Read++ },
		"created": func(c *manifest.Counts) { c.Created++ },
		"all":     func(c *manifest.Counts) { c.Read++; c.Created++ },
	} {
		m := good
		change(&m.Counts)
		writeManifest(t, &m)
		if v := verified(t, verify.Config{}); fmt.Sprint(kinds(v)) != "[count]" {
			t.Errorf("%s: found %v", name, v.Findings)
		}
	}
	writeManifest(t, &good)
	rejects := lines(t, "rejects.csv")
	put(t, "rejects.csv", rejects[:len(rejects)-1])
	if v := verified(t, verify.Config{Inputs: []string{"a.csv"}}); v.Kinds[verify.InputDiffers] != 1 {
		t.Errorf("a reject removed: %v", v.Findings)
	}
}

// fixDigests makes the manifest say what the files are.
func fixDigests(t *testing.T) {
	t.Helper()
	m := readManifest(t)
	for i, f := range m.Files {
		m.Files[i].RowDigest = "" // as an older version would have left it
		m.Files[i].SHA256 = digestOf(t, filepath.Join("out", f.Name))
	}
	writeManifest(t, m)
}

func readManifest(t *testing.T) *manifest.Manifest {
	t.Helper()
	data := must(os.ReadFile("out/manifest.json"))
	m := new(manifest.Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		t.Fatal(err)
	}
	return m
}

func writeManifest(t *testing.T, m *manifest.Manifest) {
	t.Helper()
	var b strings.Builder
	if err := manifest.Write(&b, m); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("out/manifest.json", []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

func kinds(v *verify.Result) []verify.Kind {
	return slices.Sorted(maps.Keys(v.Kinds))
}

func digestOf(t *testing.T, path string) string {
	t.Helper()
	data := must(os.ReadFile(path))
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// What was not compared is said, whatever the reason.
func TestVerifyParts(t *testing.T) {
	cfg := base(10)
	cfg.Store = openStore(t, t.TempDir())
	result := job(t, cfg, twoInputs())
	inputs := []string{"?.csv"}
	parts := func(cfg verify.Config) string {
		t.Helper()
		v := verified(t, cfg)
		if slices.Contains(v.NotCompared, verify.Inputs) != (v.Inputs == 0) {
			t.Errorf("%d inputs, not compared %s", v.Inputs, v.NotCompared)
		}
		return fmt.Sprint(v.NotCompared)
	}
	expect := func(what string, cfg verify.Config, want string) {
		t.Helper()
		if got := parts(cfg); got != want {
			t.Errorf("%s: not compared %s, want %s", what, got, want)
		}
	}
	all := verify.Config{Inputs: inputs, Store: cfg.Store}
	expect("the files", verify.Config{}, "[inputs store manifest_sha256]")
	expect("with the digest", verify.Config{ManifestSHA256: result.ManifestSHA256}, "[inputs store]")
	expect("all", all, "[]")
	os.Remove("out/rejects.csv")
	expect("a report is lost", all, "[inputs]")

	cfg.Limit, cfg.Version = 811, "older"
	job(t, cfg, twoInputs())
	expect("a limit, another version", all, "[reject_details beyond_limit]")
	cfg.Limit, cfg.DryRun = 0, true
	job(t, cfg, map[string]string{"a.csv": "url,team\nhttp://a/,x\n"})
	expect("a dry run", all, "[links_in_store manifest_sha256]")
	refuse(t, base(10), "url,team\nftp://a/,x\nftp://b/,x\n")
	expect("too many rejects", all, "[links manifest_sha256]")
	text, _ := os.ReadFile("out/manifest.json")
	os.WriteFile("out/manifest.json", []byte(strings.Replace(string(text), "sha256-base58", "other", 1)), 0o666)
	expect("an unknown scheme", all, "[files links inputs store manifest_sha256]")
}
