package rules_test

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/rules"
)

// A sequence is a line of testdata/rules.jsonl.
type sequence struct {
	Name       string
	Workspace  string
	CodeLength int `json:"code_length"`
	MaxRetries int `json:"max_retries"`
	Ops        []operation
}

type operation struct {
	Op           string
	AsOf         string `json:"as_of"`
	Identity     string
	OnDrift      string `json:"on_drift"`
	Revive       string
	TemporaryTTL int64 `json:"temporary_ttl"`
	Defaults     struct {
		row
		ExpiresIn int64 `json:"expires_in"`
	}
	Source string
	Rows   []row

	Items []string
	Owner string

	Codes []string
	Grace int64

	ShortCode string `json:"short_code"`
	Uses      int64
	Status    string

	Expect json.RawMessage
}

// expected are the results of all operations but resolve.
type expected struct {
	Rows            []result
	Marked, Deleted []string
	Store           []struct {
		row
		ShortCode string `json:"short_code"`
		URLKey    string `json:"url_key"`
		HashInput string `json:"hash_input"`
		Original  string `json:"original_url"`
		Uses      int64  `json:"access_count"`
		Status    string
		Since     string
	}
}

func sequences(t testing.TB) (list []sequence) {
	f, err := os.Open("../../testdata/rules.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s sequence
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	if lines.Err() != nil || len(list) != 130 {
		t.Fatalf("%d sequences, %v", len(list), lines.Err())
	}
	return list
}

func unix(t testing.TB, text string) int64 {
	t.Helper()
	e, ok := rules.ParseExpiry([]byte(text))
	if !ok {
		t.Fatalf("%q is not a time", text)
	}
	return e.Seconds
}

// TestVectors runs the sequences on a store in memory, one row at a time.
func TestVectors(t *testing.T) {
	results := 0
	for _, s := range sequences(t) {
		t.Run(s.Name, func(t *testing.T) {
			scheme, err := codegen.New(s.CodeLength)
			if err != nil {
				t.Fatal(err)
			}
			w := &world{workspace: s.Workspace, scheme: scheme, maxRetries: s.MaxRetries, links: map[string]*stored{}}
			for i := range s.Ops {
				results += s.Ops[i].check(t, w, i)
			}
		})
	}
	if results != 3692 {
		t.Errorf("%d results", results)
	}
}

// check does operation i, compares, and returns the number of results: each row, each answer, each
// list of codes, the store.
func (o *operation) check(t *testing.T, w *world, i int) int {
	var want expected
	var at int64
	if o.AsOf != "" {
		at = unix(t, o.AsOf)
	}
	if o.Op == "resolve" {
		return o.checkResolve(t, w, i, at)
	}
	if err := json.Unmarshal(o.Expect, &want); err != nil {
		t.Fatal(err)
	}
	var rows []result
	lists := 0
	switch o.Op {
	case "run":
		w.runs++
		rows = w.run(o.job(t, at), w.runs, nil)
	case "delete":
		rows = w.erase(o.Items, o.Owner, at)
	case "sweep":
		lists = 2
		marked, deleted := w.sweep(at, o.Grace)
		if !slices.Equal(marked, want.Marked) || !slices.Equal(deleted, want.Deleted) {
			t.Errorf("operation %d: marked %q and deleted %q, want %q and %q", i, marked, deleted, want.Marked, want.Deleted)
		}
	case "service":
		l := w.links[o.ShortCode]
		if l.Uses += o.Uses; o.Status != "" {
			l.Status, l.Marked = rules.StatusOf(o.Status), false
		}
	default:
		t.Fatalf("operation %d is %s", i, o.Op)
	}
	if !reflect.DeepEqual(rows, want.Rows) {
		for n := range rows {
			if !reflect.DeepEqual(rows[n], want.Rows[n]) {
				t.Errorf("operation %d, row %d: %+v, want %+v", i, n, rows[n], want.Rows[n])
			}
		}
	}
	o.checkStore(t, w, i, &want)
	return len(rows) + lists + 1
}

func (o *operation) job(t *testing.T, at int64) *job {
	identity, err1 := rules.ParseIdentity(o.Identity)
	onDrift, err2 := rules.ParseOnDrift(o.OnDrift)
	revive, err3 := rules.ParseRevivals(cmp.Or(o.Revive, "ended"))
	j := job{source: o.Source, rows: o.Rows, Terms: rules.Terms{AsOf: at, OnDrift: onDrift, Revive: revive}}
	d := &o.Defaults
	cells := d.cells()
	p, _, ok := new(rules.Flags).Parse(&cells)
	if err := errors.Join(err1, err2, err3); err != nil || !ok {
		t.Fatal(err)
	}
	j.flags = rules.Flags{Identity: identity,
		ExpiresIn: time.Duration(d.ExpiresIn) * time.Second, TemporaryTTL: time.Duration(o.TemporaryTTL) * time.Second,
		Limit: p.Limit, Type: p.Type, Owner: p.Owner,
	}
	if d.ExpiresAt != "" {
		j.flags.Expiry = p.Expiry
	}
	if err := j.flags.Check(); err != nil {
		t.Fatal(err)
	}
	for i := range j.rows {
		j.rows[i].number = i + 1
	}
	return &j
}

func (o *operation) checkResolve(t *testing.T, w *world, i int, at int64) int {
	var want []struct {
		Status   int
		Location string
	}
	if err := json.Unmarshal(o.Expect, &want); err != nil {
		t.Fatal(err)
	}
	for n, code := range o.Codes {
		got := w.resolve(code, at)
		if got != want[n].Status || got == rules.Found && w.links[code].original != want[n].Location {
			t.Errorf("operation %d, %s: %d, want %+v", i, code, got, want[n])
		}
	}
	return len(o.Codes)
}

func (o *operation) checkStore(t *testing.T, w *world, i int, want *expected) {
	links := map[string]*stored{}
	for _, l := range want.Store {
		key := codegen.Sum([]byte(l.HashInput)).Key()
		if hex.EncodeToString(key[:]) != l.URLKey {
			t.Errorf("operation %d: the key of %s is %x", i, l.HashInput, key)
		}
		cells := l.cells()
		p, bad, ok := (&rules.Flags{Identity: rules.ByRow}).Parse(&cells)
		if !ok {
			t.Fatal(bad)
		}
		if l.ExpiresAt == "" {
			p.Expiry = rules.Expiry{}
		}
		s := &stored{code: l.ShortCode, input: l.HashInput, original: l.Original, Link: rules.Link{
			Expiry: p.Expiry, Limit: p.Limit, Uses: l.Uses, Type: p.Type, Owner: p.Owner, Ref: p.Ref,
			Status: rules.StatusOf(l.Status), Marked: l.Since != "",
		}}
		if s.Marked {
			s.Mark = unix(t, l.Since)
		}
		links[l.ShortCode] = s
	}
	got, expect := w.show(), (&world{links: links}).show()
	for n := range max(len(got), len(expect)) {
		if n >= len(got) || n >= len(expect) || got[n] != expect[n] {
			t.Fatalf("operation %d: from link %d on the store has\n%q\nwant\n%q", i, n, got[min(n, len(got)):], expect[min(n, len(expect)):])
		}
	}
}
