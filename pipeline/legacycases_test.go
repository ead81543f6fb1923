package pipeline_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/pipeline/report"
)

// A URL whose rows fill more than one bucket, and that is followed by others of its slot, has the
// smallest of its codes if none can be generated.
func TestLegacySpannedBuckets(t *testing.T) {
	codeOf := func(i int) string { return codeAt(fmt.Sprintf("http://example.com/%d", i), "ws", 0, 1) }
	sameSlot := []int{0}
	for i := 1; len(sameSlot) < 3; i++ {
		if codeOf(i) == codeOf(0) {
			sameSlot = append(sameSlot, i)
		}
	}
	var urls []string
	for _, i := range sameSlot {
		urls = append(urls, fmt.Sprintf("http://example.com/%d", i))
	}
	slices.Sort(urls)
	c := legacyCase{Workspace: "ws", Legacy: "both", OnConflict: "reject", CodeLength: 1, Store: []legacyLink{
		{codeAt(urls[0], "ws", 0, 1), urls[2], "link"}, {"there", urls[0], "alias"}, {"theirs", urls[1], "link"},
	}}
	for n, from := range []legacyRow{{Canonical: urls[0], Code: "there"}, {Canonical: urls[0], Code: "us"}, {Canonical: urls[1], Code: "theirs"}} {
		c.Rows = append(c.Rows, slices.Repeat([]legacyRow{from}, []int{200, 2, 200}[n])...)
	}
	c.Expect.Rows, c.Expect.Store = c.model()
	cfg := c.config(openStore(t, t.TempDir()))
	cfg.SpillAt(1)
	c.plant(t, cfg)
	for _, wrong := range append(c.check(t, cfg, 900), c.again(t, cfg)...) {
		t.Error(wrong)
	}
}

// A URL of which the store has an alias alone, and for which no code can be generated, has no link.
func TestLegacyAliasWithoutLink(t *testing.T) {
	const u, stranger = "http://example.com/1", "http://stranger.example/"
	c := legacyCase{Workspace: "ws", Legacy: "both", OnConflict: "reject", CodeLength: 5,
		Store: []legacyLink{{codeAt(u, "ws", 0, 5), stranger, "link"}, {"B", u, "alias"}},
		Rows:  []legacyRow{{Canonical: u, Code: "B"}, {Canonical: u}, {Canonical: stranger}},
	}
	c.Expect.Rows, c.Expect.Store = c.model()
	cfg := c.config(openStore(t, t.TempDir()))
	c.plant(t, cfg)
	for _, wrong := range append(c.check(t, cfg, 0), c.again(t, cfg)...) {
		t.Error(wrong)
	}
}

// A finished run whose store has lost a generated link, which no row has as its code, is not taken
// for one that has all there is.
func TestLegacyLostLink(t *testing.T) {
	dir := t.TempDir()
	cfg := keeping(legacy.Both, openStore(t, dir))
	job(t, cfg, map[string]string{"a.csv": "url,slug\nhttp://example.com/1,one\n"})
	db, err := sql.Open("sqlite", filepath.Join(dir, "links.db"))
	must(t, err)
	_, err = db.Exec("DELETE FROM links WHERE short_code <> 'one'")
	must(t, errors.Join(err, db.Close()))
	cfg.Inputs, cfg.Out, cfg.AsOf = []string{"a.csv"}, "out", asOf
	if result, err := pipeline.Run(t.Context(), cfg); !errors.Is(err, outdir.ErrExists) {
		t.Errorf("repeated %t: %v", result.Repeated, err)
	}
	cfg.Overwrite = true
	result, err := pipeline.Run(t.Context(), cfg)
	must(t, err)
	if links := exported(t, cfg.Store); len(links) != 2 || result.LinksCreated != 1 || result.Counts.Existing != 1 {
		t.Errorf("%d links created, %q", result.LinksCreated, links)
	}
}

// Rows that one row of the input became are written in one order, whatever the workers, the memory
// and the order of the mapping.
func TestLegacyVariants(t *testing.T) {
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, `{"id": "b.example/k%d", "custom_bitlinks": ["https://b.example/%d", "https://b.example/s%d", "https://b.example/a b"], "long_url": "http://example.com/%d"}`+"\n",
			i, i*7919%4000, i%50, i%1000)
	}
	inputs := map[string]string{"a.jsonl": b.String()}
	for _, order := range []report.Order{report.SortOrder, report.InputOrder} {
		var want map[string]string
		for _, workers := range []int{1, 3} {
			cfg := keeping(legacy.Keep, openStore(t, t.TempDir()))
			cfg.Workers, cfg.ReportOrder = workers, order
			if workers > 1 {
				cfg.SpillAt(1 << 15)
			}
			files, result := job(t, cfg, inputs)
			if want == nil {
				want = files
			}
			sameReports(t, files, want, reports...)
			if m := readManifest(t); m.Counts.Read != 12000 || m.Inputs[0].Records != 3000 || result.Counts.Rejected < 3000 {
				t.Errorf("%+v of %d records", m.Counts, m.Inputs[0].Records)
			}
		}
	}
}

// Rows that lead elsewhere than their link or alias are counted, and no others: each is compared
// with the first row of its code, however many buckets lie between.
func TestLegacyMergedDiffers(t *testing.T) {
	for _, pad := range []int{0, 3000} {
		var b strings.Builder
		b.WriteString("url,slug,more\n")
		for _, r := range []string{"0,b", // has it
			"1#lost,b", "1#a,k", "1#a,k", "1#a,k", "1#b,x", "1#b,x", "1#c,x", // the last leads elsewhere
			"1#a,", "1#b,", "1#a,", // so does the second
			"2#c,", "2#c,", "2#d,", // and the last
		} {
			for range []int{1, 30}[pad/3000] {
				fmt.Fprintf(&b, "http://example.com/%s,%s\n", r, strings.Repeat("x", pad))
			}
		}
		cfg := keeping(legacy.Keep, openStore(t, t.TempDir()))
		if pad > 0 {
			cfg.SpillAt(1)
		}
		job(t, cfg, map[string]string{"a.csv": b.String()})
		m := readManifest(t).MergedDiffers
		if want := int64([]int{3, 90}[pad/3000]); m == nil || m.Rows != want || m.By["fragment"] != want ||
			string(m.Example[0].URL) != "http://example.com/1#b" || string(m.Example[1].URL) != "http://example.com/1#c" {
			t.Errorf("%d bytes more: %+v", pad, m)
		}
	}
}
