package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/sink"
	"github.com/parquet-go/parquet-go"
)

// Neither workers nor batches nor blocks nor the size of arenas show in any output.
// (So few rows do not spill: TestSpilledDuplicates.)
func TestSameBytes(t *testing.T) {
	lengths := []int{1, 2, 24}
	if testing.Short() {
		lengths = []int{2}
	}
	for _, length := range lengths {
		t.Run(fmt.Sprintf("length=%d", length), func(t *testing.T) {
			inputs := map[string]string{"a.csv": csvFile(rows(1, 900)), "b.csv": "link,extra,team\n" + strings.Join(rows(2, 300), "\n")}
			var want map[string]string
			var links []string
			for _, workers := range []int{1, 2, 8} {
				for i, batch := range []int{1, 7, 65536, 100} {
					cfg := base(length)
					cfg.Workers, cfg.Source.BatchRows, cfg.Source.Block = workers, batch, []int{1, 100, 1 << 20, 4096}[i]
					if i == 3 {
						cfg.SpillAt(1)
					}
					dir := t.TempDir()
					cfg.Store, cfg.Status = openStore(t, dir), new(pipeline.Status)
					got, result := job(t, cfg, inputs)
					if s := cfg.Status; s.Read.Load() != result.Counts.Read || s.Bytes.Load() != s.TotalBytes.Load() {
						t.Errorf("%d rows of %d and %d bytes of %d are known as read", s.Read.Load(), result.Counts.Read, s.Bytes.Load(), s.TotalBytes.Load())
					}
					if want == nil {
						want, links = got, dump(t, dir)
					}
					sameReports(t, got, want, reports...)
					if now := dump(t, dir); !slices.Equal(now, links) {
						t.Fatal("the store differs")
					}
				}
			}
			if length == 1 && !strings.Contains(want["rejects.csv"], "code_space_exhausted") {
				t.Error("no URL ran out of codes")
			}
			if length == 2 && strings.Count(want["collisions.csv"], "\n") < 10 {
				t.Error("nothing collided")
			}
		})
	}
}

// Many rows of few URLs, and of one, on disk: URLs and slots that no bucket can
// hold give the same as in memory, and so do rows of as many URLs.
func TestSpilledDuplicates(t *testing.T) {
	all := []int{1, 2, 10, 12}
	lengths := map[int][]int{1: all, 3: all, 40: all, 6000: {2, 12}} // by the number of URLs, of which many take a second
	if testing.Short() {
		lengths = map[int][]int{1: {2}, 40: {2}}
	}
	for urls, lengths := range lengths {
		for _, length := range lengths {
			t.Run(fmt.Sprintf("urls=%d/length=%d", urls, length), func(t *testing.T) {
				var list []string
				for i := range 6000 {
					note := strings.Repeat(strconv.Itoa(i%11), 1+2000*urls/6000) // so that of many, too, some fill a chunk
					list = append(list, fmt.Sprintf("http://example.com/%d?b&a#%d,,%s", i%urls, i%7, note))
				}
				inputs := map[string]string{"a.csv": csvFile(list)}
				cfg, dir := base(length), t.TempDir()
				cfg.Workers, cfg.MaxRetries = 2, 1
				cfg.Store = openStore(t, dir)
				calls := 0
				cfg.DiskBound = func() { calls++ }
				want, _ := job(t, cfg, inputs)
				links := dump(t, dir)
				dir = t.TempDir()
				cfg.Store = openStore(t, dir)
				cfg.SpillAt(1)
				inMemory := calls
				got, _ := job(t, cfg, inputs)
				if onDisk := calls - inMemory; inMemory != 1 || onDisk != 2 {
					t.Errorf("DiskBound was called %d times in memory, %d times on disk", inMemory, onDisk)
				}
				sameReports(t, got, want, reports...)
				if !slices.Equal(dump(t, dir), links) {
					t.Fatal("the store differs")
				}
				again, _ := job(t, cfg, inputs)
				mapping := strings.ReplaceAll(want["mapping.csv"], ",created,", ",existing,")
				if again["mapping.csv"] != mapping {
					t.Fatalf("again: %s", firstDifference(again["mapping.csv"], mapping))
				}
			})
		}
	}
}

// Of two URLs that share a code, and whose rows are too long for one piece of the
// mapping, each is the link once and has one code and salt in all rows, also where a piece
// begins in the middle of one, and where the store has one of them already.
func TestRowsOfSeveralPieces(t *testing.T) {
	url, same := "http://example.com/0", ""
	for i := 1; same == ""; i++ {
		if u := fmt.Sprintf("http://example.com/%d", i); codeAt(u, "ws", 0, 1) == codeAt(url, "ws", 0, 1) {
			same = u
		}
	}
	urls := []string{url, same}
	var list []string
	for i := range 60 {
		list = append(list, fmt.Sprintf("%s,,%d %s", urls[i%2], i, strings.Repeat("x", 100_000)))
	}
	inputs := map[string]string{"a.csv": csvFile(list)}
	for stored := range len(urls) + 1 {
		cfg := base(1)
		cfg.Store = openStore(t, t.TempDir())
		if stored < len(urls) {
			job(t, cfg, map[string]string{"a.csv": csvFile([]string{urls[stored] + ",,"})})
		}
		want, result := job(t, cfg, inputs)
		if c := result.Counts; c.Created+c.Existing != 2 || c.Duplicate != 58 {
			t.Errorf("%+v", c)
		}
		codes := map[string][]string{}
		for _, r := range records(t, want["mapping.csv"]) {
			outcome, i := "duplicate", slices.Index(urls, r["original_url"])
			if strings.HasPrefix(r["note"], strconv.Itoa(i)+" ") {
				outcome = "created"
				if i == stored {
					outcome = "existing"
				}
			}
			if r["outcome"] != outcome {
				t.Errorf("row %s of %s is %s, want %s", r["row"], r["original_url"], r["outcome"], outcome)
			}
			if code := []string{r["short_code"], r["salt"]}; codes[urls[i]] == nil {
				codes[urls[i]] = code
			} else if !slices.Equal(codes[urls[i]], code) {
				t.Errorf("row %s of %s has code and salt %q, one before %q", r["row"], urls[i], code, codes[urls[i]])
			}
		}
		if stored < len(urls) {
			continue
		}
		cfg.Store = openStore(t, t.TempDir())
		cfg.SpillAt(1)
		got, _ := job(t, cfg, inputs)
		sameReports(t, got, want, reports...)
	}
}

// The limit is of all inputs together, in their order.
func TestLimit(t *testing.T) {
	for limit := range int64(8) {
		cfg := base(10)
		cfg.Source.WorkspaceColumn, cfg.Limit = "", limit
		reports, result := job(t, cfg, map[string]string{"a.csv": csvFile(rows(1, 3)), "b.csv": "url\n", "c.csv": csvFile(rows(2, 2)), "d.csv": csvFile(rows(3, 2))})
		want := limit
		if limit == 0 {
			want = 7
		}
		if result.Counts.Read != want {
			t.Errorf("limit %d: %+v\n%s", limit, result.Counts, reports["manifest.json"])
		}
		left := want
		for i, n := range []int64{3, 0, 2, 2} {
			if got := readManifest(t).Inputs[i].Records; got != min(n, left) {
				t.Errorf("limit %d: %d records of input %d", limit, got, i)
			}
			left -= min(n, left)
		}
	}
}

// More contested URLs than memory end the run before anything is stored.
func TestTooContested(t *testing.T) {
	t.Chdir(t.TempDir())
	var list []string
	for i := range 200_000 {
		list = append(list, fmt.Sprintf("http://example.com/%d", i))
	}
	write(t, "urls.txt", strings.Join(list, "\n"))
	dir := t.TempDir()
	cfg := pipeline.Config{Inputs: []string{"urls.txt"}, Out: "out", Workspace: "ws", CodeLength: 2, Workers: 1, Memory: 168 << 20, Store: openStore(t, dir)}
	_, err := pipeline.Run(context.Background(), cfg)
	if err == nil || !strings.Contains(err.Error(), "Config.CodeLength") || !strings.Contains(err.Error(), "Config.Memory") {
		t.Fatalf("error %v", err)
	}
	if got := dump(t, dir); len(got) > 0 {
		t.Errorf("%d links are stored", len(got))
	}
	clean(t)
}

// fullSession is that of a store in which somebody else has every code.
type fullSession struct{ sink.Session }

func (fullSession) Populated(_ context.Context, workspaces []string) ([]bool, error) {
	return slices.Repeat([]bool{true}, len(workspaces)), nil
}

func (fullSession) Lookup(_ context.Context, probes []sink.Probe, visit func(sink.Found) error) error {
	for i, p := range probes {
		if err := visit(sink.Found{Probe: i, Code: p.Code, Canonical: []byte("http://somebody.example/")}); err != nil {
			return err
		}
	}
	return nil
}

// So do few URLs that ask for very many codes.
func TestTooManyCodesAskedFor(t *testing.T) {
	cfg := base(10)
	cfg.Store = sessions{openStore(t, t.TempDir()), func(s sink.Session) sink.Session { return fullSession{s} }}
	cfg.Memory, cfg.Workers, cfg.MaxRetries = 168<<20, 1, 300
	for urls, want := range map[int]string{100: "", 2000: "use a larger Config.CodeLength or more Config.Memory"} {
		t.Chdir(t.TempDir())
		write(t, "a.csv", csvFile(rows(1, urls)))
		cfg.Inputs, cfg.Out = []string{"a.csv"}, "out"
		result, err := pipeline.Run(context.Background(), cfg)
		var refused *pipeline.TooManyRejectsError
		if want == "" && (!errors.As(err, &refused) || result.Counts.Created > 0) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d URLs: %+v, %v", urls, result, err)
		}
	}
}

// brokenSession answers for fewer workspaces or for more probes than it was asked for.
type brokenSession struct {
	sink.Session
	populated []bool
	probe     int
}

func (b brokenSession) Populated(context.Context, []string) ([]bool, error) { return b.populated, nil }

func (b brokenSession) Lookup(_ context.Context, probes []sink.Probe, visit func(sink.Found) error) error {
	return visit(sink.Found{Probe: b.probe, Code: probes[0].Code})
}

// A store that breaks its contract is told so: a session that is none is not taken for
// the lack of a store, and what it answers wrongly ends the run, not the process.
func TestBrokenStore(t *testing.T) {
	for want, broken := range map[string]func(sink.Session) sink.Session{
		"no session, and no error":     func(s sink.Session) sink.Session { s.Close(); return nil },
		"of 1 workspaces it told of 0": func(s sink.Session) sink.Session { return brokenSession{s, nil, 0} },
		"a link for probe 2 of 2":      func(s sink.Session) sink.Session { return brokenSession{s, []bool{true}, 2} },
		"a link for probe -1 of 2":     func(s sink.Session) sink.Session { return brokenSession{s, []bool{true}, -1} },
	} {
		t.Chdir(t.TempDir())
		write(t, "a.txt", "http://example.com/1\nhttp://example.com/2\n")
		cfg := pipeline.Config{Inputs: []string{"a.txt"}, Out: "out", Workspace: "ws", Store: sessions{openStore(t, "."), broken}}
		_, err := pipeline.Run(t.Context(), cfg)
		if err == nil || !strings.Contains(err.Error(), "the store broke its contract: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Where codes are nearly used up, a link has very many lower codes, each of which many
// others have too: what a run holds does not grow with all of them.
func TestNearlyFull(t *testing.T) {
	const urls, mostALine = 58 * 58, 400
	var list []string
	for i := range urls {
		list = append(list, fmt.Sprintf("http://example.com/%d,,", i))
	}
	t.Chdir(t.TempDir())
	write(t, "urls.csv", csvFile(list))
	cfg := base(2)
	cfg.Inputs, cfg.Out, cfg.MaxRetries, cfg.Workers, cfg.DryRun = []string{"urls.csv"}, "out", 1000, 1, true
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := pipeline.Run(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	lines := uint64(strings.Count(read(t, "out.dry/collisions.csv"), "\n"))
	if n := (after.TotalAlloc - before.TotalAlloc) / lines; n > mostALine {
		t.Errorf("%d bytes for each of %d lower codes", n, lines)
	}
}

// The order of the input shows in nothing but row and byte_offset.
func TestAnyOrder(t *testing.T) {
	list := rows(3, 2000)
	for _, length := range []int{1, 2, 10} {
		t.Run(fmt.Sprintf("length=%d", length), func(t *testing.T) {
			var want map[string]string
			var links []string
			for order := range 4 {
				shuffled := slices.Clone(list)
				switch order {
				case 1:
					slices.Reverse(shuffled)
				case 2, 3:
					rand.New(rand.NewPCG(uint64(order), 1)).Shuffle(len(shuffled), func(i, j int) {
						shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
					})
				}
				cfg, dir := base(length), t.TempDir()
				cfg.Store = openStore(t, dir)
				got, _ := job(t, cfg, map[string]string{"a.csv": csvFile(shuffled)})
				got["mapping.csv"] = strings.Join(without(t, got["mapping.csv"], "source", "row"), "\n")
				rejects := without(t, got["rejects.csv"], "source", "row", "byte_offset")
				slices.Sort(rejects)
				got["rejects.csv"] = strings.Join(rejects, "\n")
				if want == nil {
					want, links = got, dump(t, dir)
				}
				sameReports(t, got, want, "mapping.csv", "rejects.csv", "collisions.csv")
				if now := dump(t, dir); !slices.Equal(now, links) {
					t.Fatal("the store differs")
				}
			}
		})
	}
}

// What was created is existing the next time; nothing else changes, nor does the mapping
// with fewer retries than the links were made with.
func TestAgain(t *testing.T) {
	inputs := map[string]string{"a.csv": csvFile(rows(4, 1500))}
	for _, length := range []int{1, 2, 10} {
		t.Run(fmt.Sprintf("length=%d", length), func(t *testing.T) {
			cfg, dir := base(length), t.TempDir()
			cfg.Store = openStore(t, dir)
			first, one := job(t, cfg, inputs)
			links := dump(t, dir)
			second, two := job(t, cfg, inputs)
			if two.Counts.Created != 0 || two.Counts.Existing != one.Counts.Created ||
				two.Counts.Duplicate != one.Counts.Duplicate || two.Counts.Rejected != one.Counts.Rejected {
				t.Errorf("first %+v, then %+v", one.Counts, two.Counts)
			}
			if got := strings.ReplaceAll(first["mapping.csv"], ",created,", ",existing,"); got != second["mapping.csv"] {
				t.Errorf("mapping: %s", firstDifference(second["mapping.csv"], got))
			}
			sameReports(t, second, first, "rejects.csv", "collisions.csv")
			cfg.MaxRetries = pipeline.NoRetries
			third, _ := job(t, cfg, inputs)
			sameReports(t, third, second, "mapping.csv")
			if !slices.Equal(dump(t, dir), links) {
				t.Error("the store has changed")
			}
		})
	}
}

// Growing a set in parts, with code spaces in which nearly everything collides,
// keeps every link that there is.
func TestLinksStay(t *testing.T) {
	cfg, dir := base(2), t.TempDir()
	cfg.Store = openStore(t, dir)
	list := rows(5, 1200)
	codes := map[string]string{}
	for part := range slices.Chunk(list, 300) {
		files, _ := job(t, cfg, map[string]string{"a.csv": csvFile(part)})
		for _, r := range records(t, files["mapping.csv"]) {
			key := r["workspace_id"] + "|" + r["canonical_url"]
			if code, ok := codes[key]; ok && code != r["short_code"] {
				t.Fatalf("%s had %s and now %s", key, code, r["short_code"])
			}
			codes[key] = r["short_code"]
		}
	}
	owners := map[string]string{}
	for key, code := range codes {
		slot := key[:strings.IndexByte(key, '|')+1] + code
		if other, ok := owners[slot]; ok {
			t.Fatalf("%s and %s share %s", key, other, code)
		}
		owners[slot] = key
	}
}

// Rejects hold all that the input had, and can be fed back in.
func TestRejectsAgain(t *testing.T) {
	cfg := base(1)
	first, one := job(t, cfg, map[string]string{"a.csv": csvFile(rows(6, 1000))})
	second, two := job(t, cfg, map[string]string{"rejects.csv": first["rejects.csv"]})
	exhausted := int64(0)
	for _, r := range records(t, first["rejects.csv"]) {
		if r["reason"] == outcome.CodeSpaceExhausted {
			exhausted++
		}
	}
	if exhausted == 0 || two.Counts.Read != one.Counts.Rejected || two.Counts.Rejected < one.Counts.Rejected-exhausted {
		t.Errorf("first %+v with %d exhausted, then %+v", one.Counts, exhausted, two.Counts)
	}
	strip := func(text string) []string {
		var lines []string
		for _, r := range records(t, text) {
			if r["reason"] != outcome.CodeSpaceExhausted {
				lines = append(lines, fmt.Sprint(r["reason"], r["detail"], r["url"], r["team"], r["note"], r["raw"]))
			}
		}
		return lines
	}
	if a, b := strip(first["rejects.csv"]), strip(second["rejects.csv"]); !slices.Equal(a, b) {
		t.Errorf("%d rejects that cannot be mended became %d", len(a), len(b))
	}
}

// So can a row whose workspace is as long as a cell may be: its detail is not.
func TestRejectOfALongWorkspace(t *testing.T) {
	cfg, team := base(10), strings.Repeat("\xff", 300_000)
	first, _ := job(t, cfg, map[string]string{"a.csv": csvFile([]string{"http://a/," + team + ",x"})})
	again, _ := job(t, cfg, map[string]string{"rejects.csv": first["rejects.csv"]})
	if r := records(t, again["rejects.csv"]); len(r) != 1 || r[0]["reason"] != outcome.BadWorkspace || r[0]["team"] != team || len(r[0]["detail"]) > 1000 {
		t.Errorf("%d rejects, %.1000q", len(r), again["rejects.csv"])
	}
}

// So can those of inputs that have their URLs in different columns, as often as wanted.
func TestRejectsOfOtherColumns(t *testing.T) {
	cfg := base(10)
	cfg.Source.WorkspaceColumn = ""
	first, _ := job(t, cfg, map[string]string{"a.csv": "url,team\nftp://a/,red\n", "b.csv": "note,link\nx,ftp://b/\n,http://c/\ny,\n"})
	text := first["rejects.csv"]
	want := [][]string{{"ftp://a/", "red", "", ""}, {"", "", "x", "ftp://b/"}, {"", "", "y", ""}}
	for range 3 {
		var got [][]string
		for _, r := range records(t, text) {
			got = append(got, []string{r["url"], r["team"], r["note"], r["link"]})
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("%q", got)
		}
		again, _ := job(t, cfg, map[string]string{"rejects.csv": text})
		text = again["rejects.csv"]
		want[1] = []string{"ftp://b/", "", "x", ""} // the run read it as the URL, of which it has one
	}
}

// An input without a record brings no column to the others, so that their lines can be
// mended in the rejects as without it. If there are only such, the rejects have a column
// to be fed back in with.
func TestEmptyInputAmongOthers(t *testing.T) {
	table := "url,team\nftp://a/,x\nhttp://a/,x,y\nhttp://b/,x\n"
	want, _ := job(t, base(10), map[string]string{"a.csv": table})
	for _, content := range []string{"", "\n\r\n", "\xef\xbb\xbf"} {
		got, _ := job(t, base(10), map[string]string{"_SUCCESS": content, "a.csv": table})
		sameReports(t, got, want, "mapping.csv", "rejects.csv")
		if empty := got["manifest.json"]; !strings.Contains(empty, `"columns": [],`) || !strings.Contains(empty, `"url_columns": []`) {
			t.Errorf("%q: %s", content, empty)
		}
	}
	cfg := base(10)
	cfg.Source.WorkspaceColumn = ""
	none, _ := job(t, cfg, map[string]string{"a.csv": "", "b.csv": "\n"})
	again, result := job(t, cfg, map[string]string{"rejects.csv": none["rejects.csv"]})
	if !strings.HasSuffix(none["rejects.csv"], ",column_1,raw\n") || again["rejects.csv"] != none["rejects.csv"] || result.Counts.Read != 0 {
		t.Errorf("%q became %q", none["rejects.csv"], again["rejects.csv"])
	}
}

func TestEmptyInput(t *testing.T) {
	for _, content := range []string{"", "url\n", "url,team\r\n", "\n\n"} {
		files, result := job(t, pipeline.Config{Workspace: "demo"}, map[string]string{"a.csv": content})
		if result.Counts != (sink.Counts{}) {
			t.Errorf("%q: %+v", content, result.Counts)
		}
		if got := records(t, files["mapping.csv"]); len(got) != 0 {
			t.Errorf("%q: %v", content, got)
		}
	}
}

func TestOriginalIsWhatTheInputHad(t *testing.T) {
	dir := t.TempDir()
	cfg := pipeline.Config{Workspace: "demo", Store: openStore(t, dir)}
	files, _ := job(t, cfg, map[string]string{"a.csv": "url\n http://example.com/caf\xe9#top \n"})
	if !strings.Contains(files["mapping.csv"], ", http://example.com/caf\xe9#top ,http://example.com/caf%E9,") {
		t.Errorf("mapping: %q", files["mapping.csv"])
	}
	if got := dump(t, dir); len(got) != 1 || !strings.Contains(got[0], "|http://example.com/caf%E9|http://example.com/caf%E9#top|") {
		t.Errorf("store: %q", got)
	}
}

// A column that no cell can hold is left out, and the log says so.
func TestListColumn(t *testing.T) {
	var file, log bytes.Buffer
	w := parquet.NewGenericWriter[struct {
		URL  string   `parquet:"url"`
		Tags []string `parquet:"tags"`
	}](&file)
	must(t, w.Close())
	cfg := pipeline.Config{Workspace: "demo", Logger: slog.New(slog.NewTextHandler(&log, nil))}
	files, _ := job(t, cfg, map[string]string{"a.parquet": file.String()})
	if strings.Contains(files["mapping.csv"], "tags") || !strings.Contains(log.String(), "input=a.parquet columns=1 first=tags") {
		t.Errorf("mapping: %s; log: %s", files["mapping.csv"], log.String())
	}
}

var update = flag.Bool("update", false, "write the golden file")

// The manifest has all that a run was given and what came of it.
func TestManifest(t *testing.T) {
	golden, err := filepath.Abs("testdata/manifest.json")
	must(t, err)
	cfg := base(10)
	got, _ := job(t, cfg, map[string]string{
		"a.csv":     "\ufeffurl;team;note\nHTTP://example.com/1;red;\"x;y\"\nhttp://example.com/1;;\nftp://example.com/;;\nragged\n",
		"b.parquet": read(t, "../testdata/source/duckdb-v1.parquet"),
	})
	// That of the tables comes with Go's version.
	text := strings.Replace(got["manifest.json"], `version": "`+canon.UnicodeVersion+`"`, `version": "15.0.0"`, 1)
	if *update {
		write(t, golden, text)
	}
	if want := read(t, golden); text != want {
		t.Errorf("%s: %s", golden, firstDifference(text, want))
	}
}

// askedSession counts what is looked up, by workspace.
type askedSession struct {
	sink.Session
	mu    sync.Mutex
	asked map[string]int
}

func (s *askedSession) Lookup(ctx context.Context, probes []sink.Probe, visit func(sink.Found) error) error {
	s.mu.Lock()
	for _, p := range probes {
		s.asked[string(p.Workspace)]++
	}
	s.mu.Unlock()
	return s.Session.Lookup(ctx, probes, visit)
}

// The store is not asked for a workspace that has no links, neither for URLs nor for the
// codes that these contest.
func TestLookupsOfAnEmptyWorkspace(t *testing.T) {
	asked := map[string]int{}
	cfg := base(1)
	cfg.Store = sessions{openStore(t, t.TempDir()), func(s sink.Session) sink.Session { return &askedSession{Session: s, asked: asked} }}
	job(t, cfg, map[string]string{"a.csv": "url,team\nhttp://example.com/1,demo\n"})
	var list strings.Builder
	for i := range 50 {
		fmt.Fprintf(&list, "http://example.com/%d,demo\nhttp://example.com/%d,red\n", i, i)
	}
	got, _ := job(t, cfg, map[string]string{"a.csv": "url,team\n" + list.String()})
	if !strings.Contains(got["collisions.csv"], "\nred,") || asked["demo"] <= 50 || len(asked) != 1 {
		t.Errorf("looked up: %v; collisions: %s", asked, got["collisions.csv"])
	}
}
