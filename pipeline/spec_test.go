package pipeline_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/sink"
)

// shorten runs URLs, one a line of a text file, and returns the mapping and the
// reasons of the rejects by URL.
func shorten(t *testing.T, cfg pipeline.Config, urls ...string) (mapping []map[string]string, reasons map[string]string) {
	t.Helper()
	files, _ := job(t, cfg, map[string]string{"urls.txt": strings.Join(urls, "\n")})
	reasons = map[string]string{}
	for _, r := range records(t, files["rejects.csv"]) {
		reasons[r["url"]] = r["reason"]
	}
	return records(t, files["mapping.csv"]), reasons
}

// distinct returns the different values of a column.
func distinct(mapping []map[string]string, column string) []string {
	var values []string
	for _, r := range mapping {
		values = append(values, r[column])
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// The cases of the specification that the project began with.
func TestSpecification(t *testing.T) {
	store := func(t *testing.T) (pipeline.Config, string) {
		dir := t.TempDir()
		return pipeline.Config{Workspace: "ws", Store: openStore(t, dir)}, dir
	}
	one := func(name string, urls ...string) {
		t.Run(name, func(t *testing.T) {
			cfg, dir := store(t)
			mapping, _ := shorten(t, cfg, urls...)
			if len(mapping) != len(urls) || len(distinct(mapping, "short_code")) != 1 || len(dump(t, dir)) != 1 {
				t.Errorf("mapping %v, store %v", mapping, dump(t, dir))
			}
		})
	}
	one("one code for all spellings", "http://example.com/page", "HTTP://EXAMPLE.COM/page", "http://example.com:80/page",
		"http://example.com/page/", "http://example.com//page", " http://example.com/./page ", "http://example.com/p%61ge")
	one("fragments are ignored", "http://example.com/page#a", "http://example.com/page#b", "http://example.com/page")
	one("order of parameters is ignored", "http://example.com/?b=2&a=1", "http://example.com/?a=1&b=2")
	one("spaces are encoded", "http://example.com/a b", "http://example.com/a%20b")
	one("a query of 2,000 characters", "http://example.com/?q="+strings.Repeat("x", 2000))
	one("a hundred calls, one row", slices.Repeat([]string{"http://example.com/page"}, 100)...)

	t.Run("workspaces are isolated", func(t *testing.T) {
		cfg, dir := store(t)
		a, _ := shorten(t, cfg, "http://example.com/")
		cfg.Workspace = "other"
		b, _ := shorten(t, cfg, "http://example.com/")
		if a[0]["short_code"] == b[0]["short_code"] || b[0]["outcome"] != "created" || len(dump(t, dir)) != 2 {
			t.Errorf("%v, %v", a, b)
		}
	})
	for url, reason := range map[string]string{"ftp://example.com/": "unsupported_scheme",
		"http://": "empty_host", "example.com": "missing_scheme", "http:example.com": "missing_authority"} {
		t.Run("refused: "+url, func(t *testing.T) {
			cfg, dir := store(t)
			mapping, reasons := shorten(t, cfg, url)
			if reasons[url] != reason || len(mapping) != 0 || len(dump(t, dir)) != 0 {
				t.Errorf("mapping %v, rejects %v", mapping, reasons)
			}
		})
	}
	t.Run("a forced collision goes to salt 1", func(t *testing.T) {
		cfg, dir := store(t)
		occupy(t, cfg, "http://example.com/", 1)
		mapping, _ := shorten(t, cfg, "http://example.com/")
		if len(mapping) != 1 || mapping[0]["salt"] != "1" || mapping[0]["short_code"] != codeAt("http://example.com/", "ws", 1, 10) || len(dump(t, dir)) != 2 {
			t.Errorf("mapping %v", mapping)
		}
	})
	t.Run("eleven collisions fail the row", func(t *testing.T) {
		cfg, dir := store(t)
		occupy(t, cfg, "http://example.com/", 11)
		before := dump(t, dir)
		mapping, reasons := shorten(t, cfg, "http://example.com/")
		if len(mapping) != 0 || reasons["http://example.com/"] != outcome.CodeSpaceExhausted || !slices.Equal(dump(t, dir), before) {
			t.Errorf("mapping %v, rejects %v", mapping, reasons)
		}
	})
}

func codeAt(canonical, workspace string, salt, length int) string {
	scheme, err := codegen.New(length)
	if err != nil {
		panic(err)
	}
	return string(scheme.AppendCode(nil, codegen.Sum(codegen.AppendInput(nil, []byte(canonical), []byte(workspace), salt))))
}

// occupy gives the first n codes of a URL to strangers.
func occupy(t *testing.T, cfg pipeline.Config, url string, n int) {
	t.Helper()
	var links []sink.Link
	for salt := range n {
		links = append(links, link(cfg.Workspace, fmt.Sprintf("http://stranger.example/%d", salt), codeAt(url, cfg.Workspace, salt, 10)))
	}
	plant(t, cfg, links)
}

func link(workspace, canonical, code string) sink.Link {
	input := codegen.AppendInput(nil, []byte(canonical), []byte(workspace), 0)
	return sink.Link{Workspace: []byte(workspace), Code: []byte(code), Key: codegen.Sum(input).Key(), Canonical: []byte(canonical)}
}

// plant stores links as an earlier run would have.
func plant(t *testing.T, cfg pipeline.Config, links []sink.Link) {
	t.Helper()
	slices.SortFunc(links, func(a, b sink.Link) int { return slices.Compare(a.Code, b.Code) })
	ctx := context.Background()
	session, err := cfg.Store.Lock(ctx, []string{cfg.Workspace}, sink.LockOptions{})
	must(t, err)
	defer session.Close()
	if cfg.Scheme.Name != "" || cfg.Scheme.Fold {
		must(t, session.SetScheme(ctx, []string{cfg.Workspace}, cfg.Scheme.Stored(cfg.CodeLength)))
	}
	ruled := slices.ContainsFunc(links, func(l sink.Link) bool { return l.Rules != nil })
	if ruled {
		for i := range links {
			links[i].Rules = cmp.Or(links[i].Rules, new(sink.Rules))
		}
		must(t, session.SetRules(ctx, []string{cfg.Workspace}))
	}
	run, err := session.Start(ctx, sink.Run{Fingerprint: "planted", AsOf: asOf, Started: asOf, Aliases: true, Rules: ruled, Parts: ruled})
	must(t, err)
	var chunks iter.Seq2[[]sink.Link, error] = func(yield func([]sink.Link, error) bool) { yield(links, nil) }
	for _, step := range []func() error{
		func() error { return session.Load(ctx, run, chunks) },
		func() error { return session.Loaded(ctx, run) },
		func() error { return session.Finish(ctx, run) },
	} {
		must(t, step())
	}
}

// A hundred runs at once over one URL leave one row and agree.
func TestConcurrentRuns(t *testing.T) {
	dir := t.TempDir()
	input := filepath.Join(dir, "urls.txt")
	write(t, input, "http://example.com/\n")
	var wg sync.WaitGroup
	codes, created := make([]string, 100), make([]int64, 100)
	for i := range codes {
		wg.Go(func() {
			cfg := pipeline.Config{Inputs: []string{input}, Workspace: "ws", Workers: 1,
				Store: openStore(t, dir), Out: filepath.Join(dir, strconv.Itoa(i))}
			result, err := pipeline.Run(context.Background(), cfg)
			if err != nil {
				t.Error(err)
				return
			}
			created[i] = result.Counts.Created
			data, err := os.ReadFile(filepath.Join(cfg.Out, "mapping.csv"))
			if err != nil {
				t.Error(err)
				return
			}
			codes[i] = records(t, string(data))[0]["short_code"]
		})
	}
	wg.Wait()
	sum := int64(0)
	for _, n := range created {
		sum += n
	}
	if sum != 1 || len(slices.Compact(codes)) != 1 || len(dump(t, dir)) != 1 {
		t.Errorf("%d links created, codes %v, store %v", sum, slices.Compact(codes), dump(t, dir))
	}
}

// The worked cases of the assignment, through the whole pipeline and a store.
func TestAssignmentVectors(t *testing.T) {
	file, err := os.Open("../testdata/assign.jsonl")
	must(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v struct {
			Workspace  string
			CodeLength int `json:"code_length"`
			MaxRetries int `json:"max_retries"`
			Existing   []struct{ Code, Canonical string }
			URLs       []string
			Expect     []struct {
				Canonical, Code, Outcome, Reason string
				Salt                             *int
			}
		}
		must(t, json.Unmarshal(lines.Bytes(), &v))
		t.Run(v.Workspace, func(t *testing.T) {
			cfg := pipeline.Config{Workspace: v.Workspace, CodeLength: v.CodeLength, MaxRetries: v.MaxRetries, Store: openStore(t, t.TempDir())}
			if v.MaxRetries == 0 {
				cfg.MaxRetries = pipeline.NoRetries
			}
			var links []sink.Link
			for _, e := range v.Existing {
				links = append(links, link(v.Workspace, e.Canonical, e.Code))
			}
			if len(links) > 0 {
				plant(t, cfg, links)
			}
			mapping, reasons := shorten(t, cfg, v.URLs...)
			got := map[string]string{}
			for _, r := range mapping {
				if r["outcome"] != "duplicate" {
					got[r["canonical_url"]] = r["outcome"] + " " + r["short_code"] + " " + r["salt"]
				}
			}
			for url, reason := range reasons {
				got[url] = "rejected " + reason
			}
			for _, e := range v.Expect {
				want := e.Outcome + " " + e.Code + " "
				if e.Salt != nil {
					want += strconv.Itoa(*e.Salt)
				}
				if e.Outcome == "rejected" {
					want = "rejected " + e.Reason
				}
				if got[e.Canonical] != want {
					t.Errorf("%s: %s, want %s", e.Canonical, got[e.Canonical], want)
				}
			}
			if len(got) != len(v.Expect) {
				t.Errorf("%d outcomes, want %d", len(got), len(v.Expect))
			}
		})
	}
	must(t, lines.Err())
}
