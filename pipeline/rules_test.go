package pipeline_test

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"fmt"
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
	"github.com/linkforge/bulk/pipeline/rules"
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
	TemporaryTTL int64  `json:"temporary_ttl"` // seconds, as all
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

	mix  bool // rows are shuffled, unless their order counts
	cfg  pipeline.Config
	runs int
}

// The vectors hold on both stores: as they are; with shuffled rows, three workers, everything on disk
// and a mapping in the order of the input.
func TestRulesVectors(t *testing.T) {
	vectors := ruleVectors(t)
	if len(vectors) != 86 {
		t.Fatal(len(vectors))
	}
	t.Run("sqlite", func(t *testing.T) {
		for i := range vectors {
			for _, mix := range []bool{false, true} {
				dir := t.TempDir()
				w := &ruleWorld{t: t, v: &vectors[i], store: openStore(t, dir), mix: mix}
				db, err := sql.Open("sqlite", filepath.Join(dir, "links.db"))
				must(t, err)
				t.Cleanup(func() { db.Close() })
				w.exec = func(sql string, args ...any) {
					_, err := db.Exec(sql, args...)
					must(t, err)
				}
				w.run()
			}
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
			for _, mix := range []bool{false, true} {
				w := &ruleWorld{t: t, v: &vectors[i], store: store, mix: mix}
				w.exec = func(sql string, args ...any) {
					_, err := conn.Exec(ctx, sql, args...)
					must(t, err)
				}
				w.exec("TRUNCATE links, links_runs, links_workspaces")
				w.run()
			}
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

// doRun runs the rows, and returns what becomes of each.
func (w *ruleWorld) doRun(op *ruleOp) []ruleResult {
	t := w.t
	identity, err := rules.ParseIdentity(op.Identity)
	must(t, err)
	flags := &rules.Flags{Identity: identity, TemporaryTTL: time.Duration(op.TemporaryTTL) * time.Second, ExpiresIn: time.Duration(op.Defaults.ExpiresIn) * time.Second,
		Limit: op.Defaults.MaxUses, Owner: []byte(op.Defaults.OwnerID)}
	if text := op.Defaults.LinkType; text != "" {
		flags.Type, _ = rules.ParseType([]byte(text))
	}
	if text := op.Defaults.ExpiresAt; text != "" {
		flags.Expiry, _ = rules.ParseExpiry([]byte(text))
	}
	cfg := w.cfg
	cfg.Workspace, cfg.Store, cfg.Rules, cfg.AsOf, cfg.CodeLength, cfg.MaxRetries = w.v.Workspace, w.store, flags, op.AsOf, w.v.CodeLength, w.v.MaxRetries
	cfg.OnDrift, err = rules.ParseOnDrift(op.OnDrift)
	must(t, err)
	order := make([]int, len(op.Rows))
	for i := range order {
		order[i] = i
	}
	if w.mix {
		cfg.Workers, cfg.ReportOrder = 3, "input"
		cfg.SpillAt(1)
		if identity != rules.ByRow {
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
		r := op.Rows[i]
		limit := ""
		if r.MaxUses > 0 {
			limit = strconv.FormatInt(r.MaxUses, 10)
		}
		must(t, lines.Write([]string{r.URL, r.ExpiresAt, limit, r.LinkType, r.OwnerID, r.Ref}))
	}
	lines.Flush()
	files, _ := job(t, cfg, map[string]string{op.Source: in.String()})
	got := make([]ruleResult, len(op.Rows))
	for name, result := range map[string]func(cell func(string) string) ruleResult{
		"mapping.csv": func(cell func(string) string) ruleResult {
			return ruleResult{Outcome: cell("outcome"), Change: cell("change"), ShortCode: cell("short_code")}
		},
		"rejects.csv": func(cell func(string) string) ruleResult {
			return ruleResult{Outcome: "rejected", Reason: cell("reason")}
		},
	} {
		for _, cell := range table(t, files[name]) {
			row, err := strconv.Atoi(cell("row"))
			must(t, err)
			got[order[row-1]] = result(cell)
		}
	}
	return got
}

// table returns, for each row of a CSV, its cells by name.
func table(t *testing.T, text string) (rows []func(column string) string) {
	if text == "" {
		return nil
	}
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	must(t, err)
	for _, line := range lines[1:] {
		rows = append(rows, func(column string) string { return line[slices.Index(lines[0], column)] })
	}
	return rows
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
