package pipeline_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/terms"
	"github.com/linkforge/bulk/pipeline/verify"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/postgres"
)

// A ruleVector is a line of testdata/rules.jsonl: operations one after the other.
type ruleVector struct {
	Name       string
	Workspace  string
	CodeLength int `json:"code_length"`
	MaxRetries int `json:"max_retries"`
	Ops        []ruleOp
}

type ruleOp struct {
	Op           string
	AsOf         time.Time `json:"as_of"`
	Identity     string
	OnDrift      string `json:"on_drift"`
	Revive       string
	TemporaryTTL int64 `json:"temporary_ttl"` // seconds, as all
	Defaults     struct {
		ruleRow
		ExpiresIn int64 `json:"expires_in"`
	}
	Source       string
	Rows         []ruleRow
	Items, Codes []string
	Owner        string
	Grace        int64
	ShortCode    string `json:"short_code"`
	Uses         int64
	Status       string
	Expect       json.RawMessage
}

type ruleRow struct {
	URL       string
	ExpiresAt string `json:"expires_at"`
	MaxUses   int64  `json:"max_uses"`
	LinkType  string `json:"link_type"`
	OwnerID   string `json:"owner_id"`
	Ref       string
}

// cells are those of the parameters, as package rules orders them.
func (r *ruleRow) cells() []string {
	limit := ""
	if r.MaxUses > 0 {
		limit = strconv.FormatInt(r.MaxUses, 10)
	}
	return []string{r.ExpiresAt, limit, r.LinkType, r.OwnerID, r.Ref}
}

// A ruleState is what an operation answers, and the store after it.
type ruleState struct {
	Rows  []ruleResult
	Store []ruleLink
}

type ruleResult struct {
	Outcome, Reason, Change string
	ShortCode               string `json:"short_code"`
}

type ruleLink struct {
	ShortCode string    `json:"short_code"`
	URLKey    string    `json:"url_key"`
	Original  string    `json:"original_url"`
	ExpiresAt time.Time `json:"expires_at"`
	MaxUses   int64     `json:"max_uses"`
	Uses      int64     `json:"access_count"`
	LinkType  string    `json:"link_type"`
	OwnerID   string    `json:"owner_id"`
	Ref       string
	Status    string
	Since     time.Time
}

func ruleVectors(t *testing.T) (list []ruleVector) {
	f, err := os.Open("../testdata/rules.jsonl")
	must(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v ruleVector
		must(t, json.Unmarshal(lines.Bytes(), &v))
		list = append(list, v)
	}
	must(t, lines.Err())
	return list
}

// A ruleWorld is a store on which the operations of vectors are done.
type ruleWorld struct {
	t     *testing.T
	v     *ruleVector
	store sink.Store
	exec  func(sql string, args ...any)

	mix   bool // rows are shuffled, unless their order counts
	check int  // how deep each run is verified; 0: it is not
	swept bool // links are gone
	cfg   pipeline.Config
	runs  int
}

// newRuleWorld returns a new SQLite store.
func newRuleWorld(t *testing.T, v *ruleVector) *ruleWorld {
	dir := t.TempDir()
	w := &ruleWorld{t: t, v: v, store: openStore(t, dir)}
	db, err := sql.Open("sqlite", filepath.Join(dir, "links.db"))
	must(t, err)
	t.Cleanup(func() { db.Close() })
	w.exec = func(sql string, args ...any) {
		_, err := db.Exec(sql, args...)
		must(t, err)
	}
	return w
}

// The vectors hold on both stores, and in both ways: as they are; with shuffled rows, three workers,
// everything on disk and a mapping in the order of the input. Each is run in one way on each store.
func TestRulesVectors(t *testing.T) {
	vectors := ruleVectors(t)
	if len(vectors) != 130 {
		t.Fatal(len(vectors))
	}
	if testing.Short() {
		vectors = vectors[:20]
	}
	t.Run("sqlite", func(t *testing.T) {
		for i := range vectors {
			w := newRuleWorld(t, &vectors[i])
			w.mix, w.check = i%2 == 0, 3
			w.run()
		}
	})
	t.Run("postgres", func(t *testing.T) {
		ctx, dsn := context.Background(), server.Database(t)
		store, err := postgres.Open(ctx, dsn, postgres.Options{})
		must(t, err)
		defer store.Close()
		_, err = store.Init(ctx)
		must(t, err)
		conn, err := pgx.Connect(ctx, dsn)
		must(t, err)
		defer conn.Close(ctx)
		for i := range vectors {
			w := &ruleWorld{t: t, v: &vectors[i], store: store, mix: i%2 == 1, check: 1}
			w.exec = func(sql string, args ...any) {
				_, err := conn.Exec(ctx, sql, args...)
				must(t, err)
			}
			w.exec("TRUNCATE links, links_runs, links_workspaces")
			w.run()
		}
	})
}

func (w *ruleWorld) run() {
	for i := range w.v.Ops {
		op := &w.v.Ops[i]
		at := fmt.Sprintf("%s, operation %d", w.v.Name, i)
		var want ruleState
		if op.Op != "resolve" {
			must(w.t, json.Unmarshal(op.Expect, &want))
		}
		switch op.Op {
		case "run":
			got, want := w.doRun(op), want.Rows
			if w.mix { // of equal rows any may be the first
				got, want = op.sorted(got), op.sorted(want)
			}
			for n := range got {
				if got[n] != want[n] {
					w.t.Errorf("%s, row %d: %+v, want %+v", at, n+1, got[n], want[n])
				}
			}
		case "delete":
			w.doDelete(op)
		case "sweep":
			_, err := w.store.Sweep(context.Background(), sink.SweepOptions{AsOf: op.AsOf, Grace: time.Duration(op.Grace) * time.Second}, nil)
			must(w.t, err)
			w.swept = true
		case "service":
			w.exec("UPDATE links SET access_count = coalesce(access_count, 0) + $1 WHERE short_code = $2", op.Uses, op.ShortCode)
			if op.Status != "" {
				w.exec("UPDATE links SET status = $1, marked_at = NULL WHERE short_code = $2", op.Status, op.ShortCode)
			}
		case "resolve":
			continue // package sinktest
		default:
			w.t.Fatal(op.Op)
		}
		if got := w.links(); len(got)+len(want.Store) > 0 && !reflect.DeepEqual(got, want.Store) {
			w.t.Fatalf("%s: the store has\n%+v\nwant\n%+v", at, got, want.Store)
		}
	}
}

// sorted sorts results by their rows, and those of equal rows among themselves.
func (o *ruleOp) sorted(results []ruleResult) (sorted []ruleResult) {
	var texts []string
	for i, r := range results {
		texts = append(texts, fmt.Sprintf("%+v %+v\x00%d", o.Rows[i], r, i))
	}
	slices.Sort(texts)
	for _, text := range texts {
		i, _ := strconv.Atoi(text[strings.LastIndexByte(text, 0)+1:])
		sorted = append(sorted, results[i])
	}
	return sorted
}

// flags are those of a run.
func (o *ruleOp) flags(t *testing.T) (*rules.Flags, rules.OnDrift) {
	identity, err := rules.ParseIdentity(o.Identity)
	must(t, err)
	onDrift, err := rules.ParseOnDrift(o.OnDrift)
	must(t, err)
	flags := &rules.Flags{Identity: identity, TemporaryTTL: time.Duration(o.TemporaryTTL) * time.Second, ExpiresIn: time.Duration(o.Defaults.ExpiresIn) * time.Second,
		Limit: o.Defaults.MaxUses, Owner: []byte(o.Defaults.OwnerID)}
	if text := o.Defaults.LinkType; text != "" {
		flags.Type, _ = rules.ParseType([]byte(text))
	}
	if text := o.Defaults.ExpiresAt; text != "" {
		flags.Expiry, _ = rules.ParseExpiry([]byte(text))
	}
	return flags, onDrift
}

// doRun runs the rows, and returns what becomes of each.
func (w *ruleWorld) doRun(op *ruleOp) []ruleResult {
	t := w.t
	cfg := w.cfg
	cfg.Workspace, cfg.Store, cfg.AsOf, cfg.CodeLength, cfg.MaxRetries = w.v.Workspace, w.store, op.AsOf, w.v.CodeLength, w.v.MaxRetries
	cfg.Rules, cfg.OnDrift = op.flags(t)
	cfg.Revive, _ = rules.ParseRevivals(cmp.Or(op.Revive, "ended"))
	order := make([]int, len(op.Rows))
	for i := range order {
		order[i] = i
	}
	if w.mix {
		cfg.Workers, cfg.ReportOrder = 3, "input"
		cfg.SpillAt(1)
		if cfg.Rules.Identity != rules.ByRow {
			rand.New(rand.NewPCG(uint64(len(w.v.Name)), uint64(w.runs))).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
	}
	w.runs++
	if cfg.MaxRetries == 0 {
		cfg.MaxRetries = pipeline.NoRetries
	}
	var in strings.Builder
	lines := csv.NewWriter(&in)
	must(t, lines.Write([]string{"url", "expires_at", "max_uses", "link_type", "owner_id", "ref"}))
	for _, i := range order {
		must(t, lines.Write(append([]string{op.Rows[i].URL}, op.Rows[i].cells()...)))
	}
	lines.Flush()
	files, result := job(t, cfg, map[string]string{op.Source: in.String()})
	verifies(t, w.v.Name, result, verify.Config{Inputs: []string{op.Source}, Store: cfg.Store}, w.check, w.swept)
	got := make([]ruleResult, len(op.Rows))
	of := func(r map[string]string) *ruleResult {
		row, err := strconv.Atoi(r["row"])
		must(t, err)
		return &got[order[row-1]]
	}
	for _, r := range records(t, files["mapping.csv"]) {
		*of(r) = ruleResult{Outcome: r["outcome"], Change: r["change"], ShortCode: r["short_code"]}
	}
	for _, r := range records(t, files["rejects.csv"]) {
		*of(r) = ruleResult{Outcome: "rejected", Reason: r["reason"]}
	}
	return got
}

// verifies checks a run that was just done: with its inputs and its store; if it is checked 3 times, by
// its files alone and with its inputs, too. Nothing is wrong, and nothing has changed since. Links that
// were swept may have had codes that others could not have.
func verifies(t *testing.T, name string, result *pipeline.Result, cfg verify.Config, times int, swept bool) {
	t.Helper()
	if cfg.Store != nil && result.RunID != 0 {
		showsLinks(t, result, cfg.Store)
	}
	for _, depth := range []verify.Config{cfg, {Inputs: cfg.Inputs}, {}}[:times] {
		depth.Dir, depth.Memory = result.Out, 8<<20
		v, err := verify.Run(context.Background(), depth)
		must(t, err)
		if v.Failed() > 0 || v.Since != (verify.Since{}) || depth.Store != nil && len(v.Unexplained) > 0 && !swept {
			for _, f := range append(v.Findings, v.Unexplained...) {
				t.Errorf("%s: inputs %t, store %t: %+v", name, depth.Inputs != nil, depth.Store != nil, f)
			}
			t.Fatalf("%s: %+v\n%s%s", name, v.Since, show(), read(t, cfg.Inputs[0]))
		}
	}
}

// showsLinks checks that the mapping of a run that was just done, and is no dry run, shows what its links
// have in the store.
func showsLinks(t *testing.T, result *pipeline.Result, store sink.Store) {
	t.Helper()
	m, _, err := manifest.ReadDir(result.Out)
	must(t, err)
	if m.Rules == nil || len(m.Files) < 3 {
		return
	}
	type link struct{ expires, limit, kind, owner string }
	stored := map[[2]string]link{}
	must(t, store.ScanRules(context.Background(), func(l *sink.Stored) error {
		has := link{kind: string(l.Rules.Type), owner: string(l.Rules.Owner)}
		if !l.Rules.Expires.IsZero() {
			has.expires = l.Rules.Expires.UTC().Truncate(time.Second).Format(time.RFC3339)
		}
		if l.Rules.MaxUses != 0 {
			has.limit = strconv.FormatInt(max(l.Rules.MaxUses, 0), 10)
		}
		stored[[2]string{string(l.Workspace), string(l.Code)}] = has
		return nil
	}))
	told, problems := terms.Parse(m)
	if problems != nil {
		t.Fatal(problems)
	}
	in, err := readback.OpenMapping(context.Background(), filepath.Join(result.Out, m.Files[0].Name), readback.Options{ExcelSafe: m.Options["excel_safe"] == true,
		Columns: report.ColumnsOf(told, m.Numbers != nil, true)})
	must(t, err)
	defer in.Close()
	for r, err := range in.Rows() {
		must(t, err)
		c := &r.Rules.Cells
		got := link{string(c[rules.ExpiresAt]), string(c[rules.MaxUses]), string(c[rules.LinkType]), string(c[rules.OwnerID])}
		if want, ok := stored[[2]string{string(r.Workspace), string(r.Code)}]; !ok || got != want {
			t.Errorf("row %d, %s, shows %+v, the store has %+v, %t", r.Row.Row, r.Code, got, want, ok)
		}
	}
}

func (w *ruleWorld) doDelete(op *ruleOp) {
	var items []sink.Deletion
	for _, text := range op.Items {
		canonical, _, _ := strings.Cut(text, "#")
		if !strings.Contains(text, "://") {
			items = append(items, sink.Deletion{Code: text})
		} else {
			items = append(items, sink.Deletion{Base: codegen.Sum([]byte(canonical + "|" + w.v.Workspace)).Key(), Canonical: canonical})
		}
	}
	must(w.t, w.store.Delete(context.Background(), sink.DeleteOptions{Workspace: w.v.Workspace, Owner: op.Owner, AsOf: op.AsOf},
		func(yield func([]sink.Deletion, error) bool) { yield(items, nil) }, func(sink.Named) error { return nil }))
}

// links returns what the store has.
func (w *ruleWorld) links() (list []ruleLink) {
	must(w.t, w.store.ScanRules(context.Background(), func(l *sink.Stored) error {
		r := l.Rules
		got := ruleLink{ShortCode: string(l.Code), URLKey: fmt.Sprintf("%x", l.Key), Original: cmp.Or(string(l.Original), string(l.Canonical)),
			ExpiresAt: r.Expires, MaxUses: r.MaxUses, Uses: r.Uses, LinkType: string(r.Type), OwnerID: string(r.Owner), Ref: string(r.Ref), Status: r.Status, Since: r.Marked}
		list = append(list, got)
		return nil
	}))
	return list
}

// The rows of a link may fill many buckets, and the one that speaks may be in a later one: what comes
// of that on disk is what comes of it in memory.
func TestRulesSpannedBuckets(t *testing.T) {
	row := func(i int, owner, expires string) string {
		return fmt.Sprintf("http://example.com/%s,%s,%s,%s\n", strings.Repeat("#", i%2), owner, expires, strings.Repeat("x", 900+i%7))
	}
	for name, lastOwner := range map[string]string{"another owner": "mia", "the same": "ann"} {
		for _, onDrift := range []rules.OnDrift{rules.Keep, rules.Update, rules.Reject} {
			var results []map[string]string
			var links [][]string
			for _, spill := range []bool{false, true} {
				dir := t.TempDir()
				cfg := pipeline.Config{Workspace: "ws", Store: openStore(t, dir), Rules: new(rules.Flags), OnDrift: onDrift, AsOf: asOf}
				if spill {
					cfg.Workers = 3
					cfg.SpillAt(1)
				}
				text := "url,owner_id,expires_at,note\n"
				for i := range 200 {
					text += row(i, "ann", "2025-01-01") // over
				}
				text += row(0, lastOwner, "2027-01-01") + row(1, "zoe", "2027-01-01")
				made, _ := job(t, cfg, map[string]string{"a.csv": text})
				cfg.AsOf = asOf.AddDate(2, 0, 0)
				text = "url,owner_id,expires_at,note\n"
				for i := range 200 {
					text += row(i, []string{"ann", "bob"}[i%2], "2027-01-01")
				}
				text += row(0, lastOwner, "2030-01-01") + row(1, "zoe", "2030-01-01")
				changed, _ := job(t, cfg, map[string]string{"a.csv": text})
				for report, text := range made {
					changed["first "+report] = text
				}
				results = append(results, changed)
				links = append(links, []string{fmt.Sprintf("%+v", (&ruleWorld{t: t, store: cfg.Store}).links())})
			}
			t.Run(fmt.Sprint(name, "/", onDrift), func(t *testing.T) {
				sameReports(t, results[1], results[0], slices.Collect(maps.Keys(results[0]))...)
				if !slices.Equal(links[0], links[1]) {
					t.Errorf("%s\n%s", links[0], links[1])
				}
				if !strings.Contains(results[0]["mapping.csv"], ",revived,") || !strings.Contains(links[0][0], lastOwner) {
					t.Errorf("%s: %.3000s", links[0], results[0]["mapping.csv"])
				}
			})
		}
	}
}

// Where legacy codes are kept, each row speaks for the link or alias whose code it has. What codes
// rows have does not depend on their parameters: a run without link rules on a copy of the store
// tells.
func TestRulesOfKeptCodes(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 31))
		mode := []legacy.Mode{legacy.Keep, legacy.Both}[rnd.IntN(2)]
		dir := t.TempDir()
		at := asOf
		for night := range 3 {
			var rows []keptRuleRow
			for range 1 + rnd.IntN(14) {
				pick := func(texts ...string) string { return texts[rnd.IntN(len(texts))] }
				rows = append(rows, keptRuleRow{
					url: pick("http://a.example/1", "http://A.example/1", "http://a.example/2"), code: pick("", "", "x-", "y-", "z-"),
					expires: pick("", "", "2026-01-03", "2026-01-05", "2025-01-01"), limit: pick("", "", "5"), kind: pick("", "", "TEMPORARY", "PERMANENT"), owner: pick("", "", "u1", "u2"),
				})
			}
			onDrift := []rules.OnDrift{rules.Keep, rules.Update, rules.Reject}[rnd.IntN(3)]
			cfg := pipeline.Config{Workspace: "ws", Legacy: mode, OnConflict: []legacy.Conflict{legacy.Reject, legacy.Generate}[rnd.IntN(2)], CodeLength: 10, AsOf: at}
			cfg.Scheme.Fold = seed%2 == 0
			if seed%3 == 0 { // keyed codes, of which that of the first URL is blocked
				cfg.Scheme = keyed
				m, _, err := keyed.Make(10)
				must(t, err)
				cfg.Scheme.Words = blocklist([]string{identity{url: "http://a.example/1"}.code(m, "ws", 0)[2:7]})
			}
			if seed%3 == 1 {
				cfg.CodeLength, cfg.Scheme = 0, pipeline.Scheme{Name: codegen.NamePermuted, Secret: keyed.Secret}
			}
			what := fmt.Sprintf("seed %d, night %d", seed, night)
			testKeptRules(t, what, dir, cfg, onDrift, rows, rnd.IntN(2) == 0)
			if t.Failed() {
				return
			}
			at = at.Add([]time.Duration{time.Hour, 24 * time.Hour, 48 * time.Hour}[rnd.IntN(3)])
		}
	}
}

type keptRuleRow struct{ url, code, expires, limit, kind, owner string }

func keptRuleTable(rows []keptRuleRow, note string) map[string]string {
	text := "url,code,expires_at,max_uses,link_type,owner_id,note\n"
	for _, r := range rows {
		text += strings.Join([]string{r.url, r.code, r.expires, r.limit, r.kind, r.owner, note}, ",") + "\n"
	}
	return map[string]string{"in.csv": text}
}

func testKeptRules(t *testing.T, what, dir string, cfg pipeline.Config, onDrift rules.OnDrift, rows []keptRuleRow, spill bool) {
	copyDir := t.TempDir()
	for _, name := range []string{"links.db", "links.db-wal"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			must(t, os.WriteFile(filepath.Join(copyDir, name), data, 0o666))
		}
	}
	before := keptRuleLinks(t, dir)
	note := ""
	if spill { // the rows of a URL fill several buckets
		note = strings.Repeat("x", 5000)
	}
	plain := cfg
	plain.Store = openStore(t, copyDir)
	files, _ := job(t, plain, keptRuleTable(rows, note))
	codes := map[int]string{} // of rows that are not rejected
	links := map[int]string{} // of the links of their URLs
	for _, r := range records(t, files["mapping.csv"]) {
		n, _ := strconv.Atoi(r["row"])
		codes[n] = r["short_code"]
		if cfg.Legacy == legacy.Both {
			links[n] = r["link_code"]
		}
	}

	cfg.Rules, cfg.OnDrift, cfg.Store = &rules.Flags{}, onDrift, openStore(t, dir)
	if spill {
		cfg.Workers, cfg.ReportOrder = 3, "input"
		cfg.SpillAt(1)
	}
	files, result := job(t, cfg, keptRuleTable(rows, note))
	verifies(t, what, result, verify.Config{Inputs: []string{"in.csv"}, Store: cfg.Store, Secret: cfg.Scheme.Secret, Words: cfg.Scheme.Words}, 1, false)
	got := map[int]string{}
	for _, r := range records(t, files["mapping.csv"]) {
		n, _ := strconv.Atoi(r["row"])
		got[n] = r["outcome"] + " " + r["change"]
		if r["short_code"] != codes[n] {
			t.Errorf("%s, row %d: code %s, want %s", what, n, r["short_code"], codes[n])
		}
	}
	for _, r := range records(t, files["rejects.csv"]) {
		n, _ := strconv.Atoi(r["row"])
		if got[n] = "rejected " + r["reason"]; codes[n] == "" {
			delete(got, n)
		}
	}
	want, after := keptRuleModel(cfg, before, codes, links, rows)
	if records(t, files["mapping.csv"]) == nil { // all rows are rejected
		after = before
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s, %s: %v, want %v\n%s", what, cfg.Legacy, got, want, keptRuleTable(rows, "")["in.csv"])
	}
	if stored := keptRuleLinks(t, dir); !reflect.DeepEqual(stored, after) {
		t.Errorf("%s, %s: the store has\n%+v, want\n%+v\n%s", what, cfg.Legacy, stored, after, keptRuleTable(rows, "")["in.csv"])
	}
}

// keptRuleLinks returns the links of a store by code.
func keptRuleLinks(t *testing.T, dir string) map[string]rules.Link {
	links := map[string]rules.Link{}
	s := openStore(t, dir)
	if err := s.ScanRules(context.Background(), func(l *sink.Stored) error {
		r := l.Rules
		link := rules.Link{Limit: r.MaxUses, Uses: r.Uses, Type: rules.TypeOf(string(r.Type)), Owner: bytes.Clone(r.Owner), Status: rules.StatusOf(r.Status)}
		if !r.Expires.IsZero() {
			link.Expiry = rules.Expiry{When: rules.At, Seconds: r.Expires.Unix()}
		}
		links[string(l.Code)] = link
		return nil
	}); !errors.Is(err, sink.ErrMissing) {
		must(t, err)
	}
	return links
}

// keptRuleModel holds the rows of each code against its link.
func keptRuleModel(cfg pipeline.Config, before map[string]rules.Link, codes, links map[int]string, rows []keptRuleRow) (want map[int]string, after map[string]rules.Link) {
	want, after = map[int]string{}, maps.Clone(before)
	type row struct {
		n int
		p rules.Params
	}
	groups := map[string][]row{}
	bare := map[string][]row{}
	for i, r := range rows {
		if codes[i+1] == "" {
			continue
		}
		p, _, _ := cfg.Rules.Parse(&rules.Cells{[]byte(r.expires), []byte(r.limit), []byte(r.kind), []byte(r.owner)})
		groups[codes[i+1]] = append(groups[codes[i+1]], row{i + 1, p})
		if link := links[i+1]; link != "" {
			bare[link] = append(bare[link], row{i + 1, p})
		}
	}
	judge := rules.Judge{Terms: rules.Terms{AsOf: cfg.AsOf.Unix(), OnDrift: cfg.OnDrift}}
	speak := func(code string, list []row, shown bool) {
		slices.SortFunc(list, func(a, b row) int {
			x, y := rows[a.n-1], rows[b.n-1]
			return cmp.Or(rules.Compare(&a.p, &b.p), strings.Compare(x.url, y.url), strings.Compare(x.code, y.code), cmp.Compare(a.n, b.n))
		})
		var stored *rules.Stored
		if l, ok := before[code]; ok {
			stored = &rules.Stored{Link: l}
		}
		judge.Begin(stored)
		for i := 0; i < len(list) && judge.See(&list[i].p); i++ {
		}
		v := judge.Verdict()
		after[code] = v.Link
		for i := range list {
			if !shown {
				break
			}
			r := v.Row(judge.Terms, i, &list[i].p)
			if want[list[i].n] = r.Outcome.String() + " " + r.Change.String(); r.Reason != rules.Accepted {
				want[list[i].n] = "rejected " + r.Reason.String()
			}
		}
	}
	for code, list := range groups {
		speak(code, list, true)
	}
	for code, list := range bare {
		if groups[code] == nil {
			speak(code, list, false)
		}
	}
	return want, after
}
