package pipeline_test

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/postgres"
)

// A linkStore is a store whose links a test sets and changes.
type linkStore struct {
	sink.Store
	t       *testing.T
	execute func(sql string) error
}

// onStores runs a test on an empty store of each kind.
func onStores(t *testing.T, test func(t *testing.T, s linkStore)) {
	t.Run("sqlite", func(t *testing.T) {
		dir := t.TempDir()
		s := linkStore{openStore(t, dir), t, func(statement string) error {
			db, err := sql.Open("sqlite", filepath.Join(dir, "links.db"))
			if err == nil {
				defer db.Close()
				_, err = db.Exec(statement)
			}
			return err
		}}
		s.load("w", nil)
		test(t, s)
	})
	t.Run("postgres", func(t *testing.T) {
		dsn := server.Database(t)
		store, err := postgres.Open(t.Context(), dsn, postgres.Options{})
		must(t, err)
		defer store.Close()
		conn, err := pgx.Connect(t.Context(), dsn)
		must(t, err)
		defer conn.Close(context.Background())
		_, err = conn.Exec(t.Context(), "SET TimeZone = 'UTC'")
		must(t, err)
		s := linkStore{store, t, func(statement string) error {
			_, err := conn.Exec(context.Background(), statement)
			return err
		}}
		s.load("w", nil)
		test(t, s)
	})
}

// load loads links in place of those that are there.
func (s linkStore) load(workspace string, links []sink.Link) {
	s.t.Helper()
	ctx := s.t.Context()
	session, err := s.Lock(ctx, []string{workspace}, sink.LockOptions{})
	must(s.t, err)
	must(s.t, s.execute("DELETE FROM links WHERE true"))
	slices.SortFunc(links, func(a, b sink.Link) int { return cmp.Compare(string(a.Code), string(b.Code)) })
	said := sink.Run{Fingerprint: "test", AsOf: asOf, Rules: true, Parts: true, Aliases: true}
	run, err := session.Start(ctx, said)
	must(s.t, err)
	must(s.t, session.Load(ctx, run, func(yield func([]sink.Link, error) bool) { yield(links, nil) }))
	must(s.t, session.Abandon(ctx, []int32{run.ID}))
	must(s.t, session.Close())
}

// marks returns the status of each link, its mark and its owner, by code.
func (s linkStore) marks() map[string]string {
	s.t.Helper()
	marks := map[string]string{}
	must(s.t, s.ScanRules(s.t.Context(), func(l *sink.Stored) error {
		r := cmp.Or(l.Rules, new(sink.Rules))
		marks[string(l.Code)] = cmp.Or(r.Status, sink.Active) + " " + mark(r.Marked) + " " + string(r.Owner)
		return nil
	}))
	return marks
}

func mark(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// linkOf is a link of a URL, with parts of its identity, or an alias if alias is set.
func linkOf(workspace, canonical, parts, code string, alias bool) sink.Link {
	key := func(parts string) sink.Key {
		return codegen.Sum(codegen.AppendIdentity(nil, []byte(canonical), []byte(workspace), []byte(parts), 0)).Key()
	}
	l := sink.Link{Workspace: []byte(workspace), Code: []byte(code), Canonical: []byte(canonical), Key: key(parts), Alias: alias}
	if parts != "" {
		l.Base = key("")
	}
	return l
}

// remove deletes what lists of URLs and of codes name, one a line (CODE or CODE,URL), with the file names urls.csv and
// codes.csv, and returns what became of each row by its place. There may be no output in the
// working directory.
func (s linkStore) remove(cfg pipeline.DeleteConfig, urls, codes []string) (map[string]string, *pipeline.DeleteResult, error) {
	s.t.Helper()
	s.t.Chdir(s.t.TempDir())
	for name, list := range map[string][]string{"url": urls, "code": codes} {
		if list != nil {
			header := name
			if strings.Contains(list[0], ",") {
				header += ",url"
			}
			write(s.t, name+"s.csv", header+",note\n"+strings.Join(list, ",x\n")+",x\n")
			cfg.Inputs = append(cfg.Inputs, name+"s.csv")
		}
	}
	cfg.Store, cfg.Out = s.Store, "out"
	cfg.Workspace = cmp.Or(cfg.Workspace, "w")
	if cfg.AsOf.IsZero() {
		cfg.AsOf = asOf
	}
	r, err := pipeline.Delete(s.t.Context(), cfg)
	if err != nil {
		return nil, r, err
	}
	rows := map[string]string{}
	for _, row := range records(s.t, read(s.t, filepath.Join(r.Out, "mapping.csv"))) {
		rows[row["source"]+":"+row["row"]] = strings.TrimSpace(row["outcome"] + " " + row["change"] + " " + row["short_codes"])
		if row["note"] != "x" || row["workspace_id"] != cfg.Workspace {
			s.t.Errorf("%v", row)
		}
	}
	for _, row := range records(s.t, read(s.t, filepath.Join(r.Out, "rejects.csv"))) {
		rows[row["source"]+":"+row["row"]] = row["reason"]
	}
	if len(rows) != len(urls)+len(codes) {
		s.t.Errorf("%d rows of %d", len(rows), len(urls)+len(codes))
	}
	return rows, r, nil
}

// The deletes of the vectors, each on what the operation before it has left.
func TestDeleteVectors(t *testing.T) {
	onStores(t, func(t *testing.T, s linkStore) {
		count := 0
		for _, v := range ruleVectors(t) {
			for i := range v.Ops {
				if v.Ops[i].Op == "delete" {
					count++
					v.checkDelete(s, i)
				}
			}
		}
		if count != 54 {
			t.Errorf("%d deletes", count)
		}
	})
}

// A vectorState is what an operation has left and, of a delete, what became of its rows.
type vectorState struct {
	Rows []struct {
		Outcome, Change, Reason string
		Codes                   []string
	}
	Store []struct {
		Code    string `json:"short_code"`
		Input   string `json:"hash_input"`
		Expires string `json:"expires_at"`
		Uses    int64  `json:"access_count"`
		Owner   string `json:"owner_id"`
		Status  string
		Since   time.Time
	}
}

func (v *ruleVector) state(t *testing.T, op int) (s vectorState) {
	t.Helper()
	must(t, json.Unmarshal(v.Ops[op].Expect, &s))
	return s
}

func (v *ruleVector) checkDelete(s linkStore, i int) {
	s.t.Helper()
	op := v.Ops[i]
	s.t.Logf("%s, operation %d", v.Name, i)
	var links []sink.Link
	n := i - 1
	for v.Ops[n].Op == "resolve" {
		n--
	}
	before := v.state(s.t, n)
	for _, l := range before.Store {
		canonical, parts, _ := strings.Cut(l.Input, "|")
		link := linkOf(v.Workspace, canonical, strings.TrimPrefix(parts, v.Workspace), l.Code, strings.Contains(parts, "|c="))
		link.Rules = &sink.Rules{Owner: []byte(l.Owner)}
		links = append(links, link)
	}
	s.load(v.Workspace, links)
	for _, l := range before.Store {
		if !l.Since.IsZero() {
			must(s.t, s.execute(fmt.Sprintf("UPDATE links SET status = '%s', marked_at = '%s' WHERE short_code = '%s'", l.Status, l.Since.Format("2006-01-02 15:04:05.000000"), l.Code)))
		}
	}
	var urls, codes, places []string
	for _, item := range op.Items {
		if strings.Contains(item, "://") {
			urls = append(urls, item)
			places = append(places, fmt.Sprint("urls.csv:", len(urls)))
		} else {
			codes = append(codes, item)
			places = append(places, fmt.Sprint("codes.csv:", len(codes)))
		}
	}
	cfg := pipeline.DeleteConfig{Workspace: v.Workspace, Owner: op.Owner, AsOf: op.AsOf}
	rows, _, err := s.remove(cfg, urls, codes)
	must(s.t, err)
	want := v.state(s.t, i)
	for n, place := range places {
		w, got := want.Rows[n], rows[place]
		if w.Change == "" { // the vectors have only codes that were marked
			got, _, _ = strings.Cut(got, " ")
		}
		if expect := strings.TrimSpace(strings.Join(append([]string{strings.TrimPrefix(w.Outcome, "rejected") + w.Reason, w.Change}, w.Codes...), " ")); got != expect {
			s.t.Errorf("%s: %q, want %q", op.Items[n], got, expect)
		}
	}
	marks := s.marks()
	for _, l := range want.Store {
		if w := cmp.Or(l.Status, sink.Active) + " " + mark(l.Since) + " " + l.Owner; marks[l.Code] != w {
			s.t.Errorf("link %s: %q, want %q", l.Code, marks[l.Code], w)
		}
	}
	if len(marks) != len(want.Store) {
		s.t.Errorf("%d links", len(marks))
	}
}

// deletable are links of some URLs: plain ones, with parts and aliases, of several owners, some of
// them deleted before.
func deletable(rnd *rand.Rand, urls int) (links []sink.Link, deleted []string) {
	for i := range urls {
		canonical := fmt.Sprintf("https://example.com/%d", i)
		for n := range rnd.IntN(4) {
			parts, code := "", fmt.Sprintf("%c%d", 'a'+n, i)
			switch {
			case n == 2:
				parts = "|c=" + code
			case n > 0:
				parts = fmt.Sprint("|m=", n)
			}
			l := linkOf("w", canonical, parts, code, n == 2)
			l.Rules = &sink.Rules{Owner: []byte([]string{"", "u1", "u2"}[rnd.IntN(3)])}
			if links = append(links, l); rnd.IntN(5) == 0 {
				deleted = append(deleted, code)
			}
		}
	}
	return links, deleted
}

// wanted is what the law says of the rows, one after the other, and how many links are deleted.
func wanted(links []sink.Link, deleted []string, owner string, urls, codes []string) (map[string]string, int64) {
	gone, named, rows := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, code := range deleted {
		gone[code] = true
	}
	marked := int64(0)
	decide := func(place, url string, of func(l *sink.Link) bool) {
		var found, marks []string
		others, fresh := false, false
		for i := range links {
			l, code := &links[i], string(links[i].Code)
			switch {
			case !of(l):
				continue
			case url != "" && string(l.Canonical) != url:
				rows[place] = "other_url"
				return
			case owner != "" && string(l.Rules.Owner) != owner:
				others = true
				continue
			}
			found = append(found, code)
			fresh = fresh || !named[code]
			if named[code] = true; !gone[code] {
				gone[code] = true
				marks = append(marks, code)
			}
		}
		marked += int64(len(marks))
		switch {
		case found == nil && others:
			rows[place] = "other_owner"
		case found == nil:
			rows[place] = "not_found"
		case !fresh:
			rows[place] = "duplicate"
		case marks != nil:
			rows[place] = "existing deleted " + strings.Join(marks, " ")
		default:
			rows[place] = "existing " + strings.Join(found, " ")
		}
	}
	canonical := strings.NewReplacer("HTTPS:", "https:", ":443", "", "#top", "")
	byURL := func(file string, i int, url string) {
		decide(fmt.Sprintf("%s.csv:%d", file, i+1), "", func(l *sink.Link) bool { return string(l.Canonical) == url })
	}
	for i, row := range codes {
		if code, url, _ := strings.Cut(row, ","); code == "" {
			byURL("codes", i, url)
		}
	}
	for i, url := range urls {
		byURL("urls", i, url)
	}
	for i, row := range codes {
		if code, url, _ := strings.Cut(row, ","); code != "" {
			decide(fmt.Sprintf("codes.csv:%d", i+1), canonical.Replace(url), func(l *sink.Link) bool { return string(l.Code) == code })
		}
	}
	return rows, marked
}

// Whatever the lists, the rows are what the law says, one after the other: with many rows of a URL,
// lists of several chunks, and sorts that spill. A second delete finds nothing to mark.
func TestDeleteLikeOneAtATime(t *testing.T) {
	onStores(t, func(t *testing.T, s linkStore) {
		for seed := range uint64(4) {
			rnd := rand.New(rand.NewPCG(seed, 31))
			links, deleted := deletable(rnd, 400)
			var urls, codes []string
			for range 2_500 {
				urls = append(urls, fmt.Sprintf("https://example.com/%d", min(rnd.IntN(450), 40+rnd.IntN(1_000))))
				n := rnd.IntN(450)
				code := fmt.Sprintf("%c%d", 'a'+rnd.IntN(3), n)
				if seed > 0 {
					code += []string{",", fmt.Sprintf(",https://example.com/%d", n), fmt.Sprintf(",HTTPS://example.com:443/%d#top", n), ",https://example.com/3"}[rnd.IntN(4)]
					if rnd.IntN(9) == 0 {
						code = fmt.Sprintf(",https://example.com/%d", n)
					}
				}
				codes = append(codes, code)
			}
			urls = append(urls, slices.Repeat([]string{"https://example.com/7"}, 2_100)...)
			if seed == 3 {
				urls = nil
			}
			s.load("w", slices.Clone(links))
			for _, code := range deleted {
				must(t, s.execute("UPDATE links SET status = 'DELETED' WHERE short_code = '"+code+"'"))
			}
			cfg := pipeline.DeleteConfig{Owner: []string{"", "u1"}[seed%2]}
			if seed > 1 {
				cfg.SpillAt(1)
			}
			want, marked := wanted(links, deleted, cfg.Owner, urls, codes)
			cfg.DryRun = true
			dry, r, err := s.remove(cfg, urls, codes)
			must(t, err)
			sameRows(t, dry, want)
			if cfg.DryRun = false; r.Links != marked || r.Out != "out.dry" {
				t.Errorf("dry: %+v, want %d links", r, marked)
			}
			asked := false
			cfg.Confirm = func(would *pipeline.DeleteResult) (bool, error) {
				asked = would.Links == marked && would.Counts == r.Counts
				return true, nil
			}
			got, r, err := s.remove(cfg, urls, codes)
			must(t, err)
			sameRows(t, got, want)
			var m manifest.Deletion
			must(t, json.Unmarshal([]byte(read(t, "out/manifest.json")), &m))
			if !asked || r.Links != marked || m.LinksDeleted != marked || m.Counts.Read != int64(len(want)) || m.Changes["deleted"] == 0 {
				t.Errorf("%+v, %+v, want %d links", r, m, marked)
			}
			for _, row := range want {
				if codes, ok := strings.CutPrefix(row, "existing deleted "); ok {
					deleted = append(deleted, strings.Fields(codes)...)
				}
			}
			again, _ := wanted(links, deleted, cfg.Owner, urls, codes)
			got, r, err = s.remove(cfg, urls, codes)
			must(t, err)
			if sameRows(t, got, again); r.Links != 0 {
				t.Errorf("%d links deleted twice", r.Links)
			}
		}
	})
}

func sameRows(t *testing.T, got, want map[string]string) {
	t.Helper()
	for place, w := range want {
		if g := strings.Join(strings.Fields(got[place]), " "); g != w {
			t.Fatalf("%s: %q, want %q", place, got[place], w)
		}
	}
}

// A cutStore ends the context of a delete when so many links were visited.
type cutStore struct {
	sink.Store
	left   int
	cancel context.CancelCauseFunc
}

var errCut = errors.New("cut")

func (c *cutStore) Delete(ctx context.Context, opts sink.DeleteOptions, items iter.Seq2[[]sink.Deletion, error], visit func(sink.Named) error) error {
	return c.Store.Delete(ctx, opts, items, func(n sink.Named) error {
		if c.left--; c.left == 0 {
			c.cancel(errCut)
		}
		return visit(n)
	})
}

// A delete that is interrupted leaves no output, and says how many links it has deleted. The same
// delete again deletes the rest.
func TestDeleteInterrupted(t *testing.T) {
	onStores(t, func(t *testing.T, s linkStore) {
		var links []sink.Link
		var codes []string
		for i := range 3_500 {
			code := fmt.Sprint("c", i)
			links, codes = append(links, linkOf("w", fmt.Sprint("https://example.com/", i), "", code, false)), append(codes, code)
		}
		s.load("w", links)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		t.Chdir(t.TempDir())
		write(t, "codes.csv", "code\n"+strings.Join(codes, "\n"))
		cfg := pipeline.DeleteConfig{Inputs: []string{"codes.csv"}, Workspace: "w", Out: "out", AsOf: asOf, Store: &cutStore{s.Store, 1_500, cancel}}
		first, err := pipeline.Delete(ctx, cfg)
		if !errors.Is(err, errCut) || first.Links == 0 || first.Links == int64(len(links)) || first.ManifestSHA256 != "" {
			t.Fatalf("%+v, %v", first, err)
		}
		if left, err := os.ReadDir("."); err != nil || len(left) != 1 {
			t.Errorf("%v, %v", left, err)
		}
		cfg.Store = s.Store
		second, err := pipeline.Delete(t.Context(), cfg)
		must(t, err)
		if first.Links+second.Links != int64(len(links)) || second.Counts.Existing != int64(len(links)) {
			t.Errorf("%+v after %+v", second, first)
		}
		for code, m := range s.marks() {
			if m != "DELETED "+mark(asOf)+" " {
				t.Errorf("%s: %s", code, m)
			}
		}
	})
}

// What cannot be deleted as it is asked for is refused before anything is done.
func TestDeleteRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	store := openStore(t, ".")
	write(t, "links.csv", "url\nhttp://example.com/\n")
	run := pipeline.Config{Inputs: []string{"links.csv"}, Workspace: "w", Store: store, Out: "run"}
	_, err := pipeline.Run(t.Context(), run)
	must(t, err)
	for want, change := range map[string]func(c *pipeline.DeleteConfig){
		"no workspace":                         func(c *pipeline.DeleteConfig) { c.Workspace = "" },
		"Config.Workspace: ":                   func(c *pipeline.DeleteConfig) { c.Workspace = "a|b" },
		"Config.Owner: owner_id: ":             func(c *pipeline.DeleteConfig) { c.Owner = "a\x00" },
		"a row names its links by one of them": func(c *pipeline.DeleteConfig) { c.Source.URLColumn, c.Source.CodeColumn = "none", "none" },
		`"url" has the codes`:                  func(c *pipeline.DeleteConfig) { c.Source.URLColumn, c.Source.CodeColumn = "url", "url" },
		"list(…) may have several":             func(c *pipeline.DeleteConfig) { c.Source.CodeColumn = "list(url)" },
		"out of range":                         func(c *pipeline.DeleteConfig) { c.AsOf = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"has the reports of a run":             func(c *pipeline.DeleteConfig) { c.Out, c.Overwrite = "run", true },
		"lies in the output directory":         func(c *pipeline.DeleteConfig) { c.Out = "." },
	} {
		cfg := pipeline.DeleteConfig{Inputs: []string{"links.csv"}, Workspace: "w", Store: store, Out: "out"}
		change(&cfg)
		_, err := pipeline.Delete(t.Context(), cfg)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	must(t, store.ScanRules(t.Context(), func(l *sink.Stored) error {
		if l.Rules != nil && l.Rules.Status == sink.Deleted {
			t.Errorf("%s is deleted", l.Code)
		}
		return nil
	}))
	if _, err := os.Stat("out"); !os.IsNotExist(err) {
		t.Error(err)
	}
}
