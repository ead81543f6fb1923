package sinktest

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/sink"
)

// database is a Database with the test that uses it. Its stores must be closed before the
// test returns, so leaked goroutines can be counted.
type database struct {
	*Database
	t *testing.T
}

// asOf has microseconds, which a store with coarser times would lose.
var asOf = time.Date(2025, 3, 4, 5, 6, 7, 890123000, time.UTC)

// with opens a store and a session on the workspaces, and closes both after f.
func (db *database) with(f func(s sink.Session), workspaces ...string) {
	db.t.Helper()
	store := db.Open(db.t)
	defer closed(db.t, store)
	s, err := store.Lock(context.Background(), workspaces, sink.LockOptions{})
	noError(db.t, err)
	defer closed(db.t, s)
	f(s)
}

// peek opens a store and a session that can only look.
func (db *database) peek(f func(s sink.Session)) {
	db.t.Helper()
	store := db.Open(db.t)
	defer closed(db.t, store)
	s, err := store.Peek(context.Background())
	noError(db.t, err)
	defer closed(db.t, s)
	f(s)
}

// runs lists the runs with a store of its own.
func (db *database) runs() []sink.Run {
	db.t.Helper()
	store := db.Open(db.t)
	defer closed(db.t, store)
	runs, err := store.Runs(context.Background())
	noError(db.t, err)
	return runs
}

// load stores the links with a run, and finishes it.
func (db *database) load(links []sink.Link, workspaces ...string) (run sink.Run) {
	db.t.Helper()
	db.with(func(s sink.Session) {
		run = start(db.t, s, "load")
		noError(db.t, s.Load(context.Background(), run, chunks(links, 4096)))
		complete(db.t, s, run)
	}, workspaces...)
	return run
}

// loadBefore loads the links, if there are any, before the test begins, and returns their rows.
func (db *database) loadBefore(links []sink.Link) []Row {
	db.t.Helper()
	if links == nil {
		return nil
	}
	return rows(links, db.load(links, "w").ID)
}

// expect compares the links in the database with these rows.
func (db *database) expect(want ...[]Row) {
	db.t.Helper()
	got, all := db.Dump(db.t), slices.Concat(want...)
	slices.SortFunc(all, byCode)
	if !slices.IsSortedFunc(got, byCode) {
		db.t.Error("the database does not sort workspaces and codes by their bytes")
	}
	if len(got) != len(all) {
		db.t.Fatalf("%d links in the database, want %d", len(got), len(all))
	}
	for i := range got {
		if got[i] != all[i] {
			db.t.Fatalf("link %d:\n got %+v\nwant %+v", i, got[i], all[i])
		}
	}
}

func byCode(a, b Row) int {
	return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Code, b.Code))
}

// start begins a new run.
func start(t *testing.T, s sink.Session, fingerprint string) sink.Run {
	t.Helper()
	run, err := s.Start(context.Background(), sink.Run{Fingerprint: fingerprint, AsOf: asOf})
	noError(t, err)
	return run
}

// complete finishes a run after its last Load.
func complete(t *testing.T, s sink.Session, run sink.Run) {
	t.Helper()
	noError(t, s.Loaded(context.Background(), run))
	run.ManifestSHA256 = "00ff"
	noError(t, s.Finish(context.Background(), run))
}

// link makes the link of a canonical URL with its first-choice code.
func link(workspace, canonical string) sink.Link {
	h := codegen.Sum(codegen.AppendInput(nil, []byte(canonical), []byte(workspace), 0))
	scheme, err := codegen.New(codegen.DefaultLength)
	if err != nil {
		panic(err)
	}
	return sink.Link{
		Workspace: []byte(workspace), Code: scheme.AppendCode(nil, h),
		Key: h.Key(), Canonical: []byte(canonical),
	}
}

// coded is link with another code.
func coded(workspace, canonical, code string) sink.Link {
	l := link(workspace, canonical)
	l.Code = []byte(code)
	return l
}

// alias makes an alias of a canonical URL.
func alias(workspace, canonical, code string) sink.Link {
	l := coded(workspace, canonical, code)
	l.Alias, l.Base = true, l.Key
	l.Key = codegen.Sum(codegen.AppendInput(nil, []byte(canonical), []byte(workspace+"|c="+code), 0)).Key()
	return l
}

// links makes the links with the numbers from to to-1 of a workspace, in the order of a load.
func links(workspace string, from, to int) []sink.Link {
	out := make([]sink.Link, 0, to-from)
	for i := from; i < to; i++ {
		out = append(out, link(workspace, fmt.Sprintf("https://www.example.com/catalogue/item/%07d?ref=mail&utm_source=news", i)))
	}
	return sorted(out)
}

// some links fill several buffers of a first load into an empty database. A later load has larger
// ones, which tests of the stores fill.
func some(before []sink.Link) []sink.Link {
	if before == nil {
		return links("w", 0, few(20_000))
	}
	return links("w", 0, 5_000)
}

// few is n, or a fifth of it with -short.
func few(n int) int {
	if testing.Short() {
		n /= 5
	}
	return n
}

func sorted(ls ...[]sink.Link) []sink.Link {
	all := slices.Concat(ls...)
	slices.SortFunc(all, func(a, b sink.Link) int {
		return cmp.Or(bytes.Compare(a.Workspace, b.Workspace), bytes.Compare(a.Code, b.Code))
	})
	return all
}

// rows are what the links look like in the database.
func rows(links []sink.Link, run int32) []Row {
	out := make([]Row, len(links))
	for i, l := range links {
		out[i] = Row{
			Workspace: string(l.Workspace), Code: string(l.Code), Key: l.Key, Canonical: string(l.Canonical),
			Original: sql.NullString{String: string(l.Original), Valid: l.Original != nil}, Run: run, Created: asOf,
			Alias: l.Alias, Base: l.Base, Attrs: string(l.Attrs),
		}
		if r := l.Rules; r != nil {
			out[i].Rules = Rules{Expires: r.Expires, MaxUses: r.MaxUses, Type: string(r.Type), Owner: string(r.Owner), Ref: string(r.Ref), Status: sink.Active}
		}
		if !l.Created.IsZero() {
			out[i].Created = l.Created
		}
	}
	return out
}

// chunks yields copies of the links, n at a time, and overwrites each chunk before the next
// one, as the contract allows.
func chunks(links []sink.Link, n int) iter.Seq2[[]sink.Link, error] {
	return func(yield func([]sink.Link, error) bool) {
		for part := range slices.Chunk(links, n) {
			part = slices.Clone(part)
			for i, l := range part {
				part[i].Workspace, part[i].Code = bytes.Clone(l.Workspace), bytes.Clone(l.Code)
				part[i].Canonical, part[i].Original = bytes.Clone(l.Canonical), bytes.Clone(l.Original)
				part[i].Attrs = bytes.Clone(l.Attrs)
				if l.Rules != nil {
					r := *l.Rules
					r.Type, r.Owner, r.Ref = bytes.Clone(r.Type), bytes.Clone(r.Owner), bytes.Clone(r.Ref)
					part[i].Rules = &r
				}
			}
			if !yield(part, nil) {
				return
			}
			for i, l := range part {
				r := cmp.Or(l.Rules, new(sink.Rules))
				for _, b := range [][]byte{l.Workspace, l.Code, l.Canonical, l.Original, l.Attrs, r.Type, r.Owner, r.Ref} {
					for j := range b {
						b[j] = '!'
					}
				}
				part[i] = sink.Link{}
			}
		}
	}
}

// pieces yields changes of links, or items of a delete, n at a time, and then an error. It clears each
// piece before the next one, as the contract allows.
func pieces[E any](all []E, n int, end error) iter.Seq2[[]E, error] {
	return func(yield func([]E, error) bool) {
		for part := range slices.Chunk(all, n) {
			part = slices.Clone(part)
			if !yield(part, nil) {
				return
			}
			clear(part)
		}
		if end != nil {
			yield(nil, end)
		}
	}
}

// followed is seq and then an error, or an empty chunk if that is nil.
func followed(seq iter.Seq2[[]sink.Link, error], end error) iter.Seq2[[]sink.Link, error] {
	return func(yield func([]sink.Link, error) bool) {
		for c, err := range seq {
			if !yield(c, err) {
				return
			}
		}
		yield(nil, end)
	}
}

// probe asks for the URL of a link and its code.
func probe(l sink.Link) sink.Probe {
	return sink.Probe{Workspace: l.Workspace, Code: l.Code, Key: l.Key, Canonical: l.Canonical, WantRun: true}
}

// probes asks for many links.
func probes(links []sink.Link) []sink.Probe {
	out := make([]sink.Probe, len(links))
	for i, l := range links {
		out[i] = probe(l)
	}
	return out
}

// A found is a sink.Found that outlives the visitor. Canonical is blank if Same.
type found struct {
	Probe           int
	Same            bool
	Code, Canonical string
	Run             int32
	Alias           bool
}

// look returns what a lookup visits, sorted by probe, the link of the URL first.
func look(t *testing.T, s sink.Session, probes ...sink.Probe) []found {
	t.Helper()
	var out []found
	noError(t, s.Lookup(context.Background(), probes, func(f sink.Found) error {
		canonical := string(f.Canonical)
		if f.Same {
			if f.Canonical != nil && !bytes.Equal(f.Canonical, probes[f.Probe].Canonical) {
				t.Errorf("probe %d: canonical %q", f.Probe, f.Canonical)
			}
			canonical = ""
		}
		out = append(out, found{f.Probe, f.Same, string(f.Code), canonical, f.Run, f.Alias})
		return nil
	}))
	slices.SortFunc(out, func(a, b found) int {
		if a.Probe == b.Probe && a.Same != b.Same {
			if a.Same {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Probe, b.Probe)
	})
	return out
}

// subset checks that all rows of the database are among these, and returns how
// many there are.
func (db *database) subset(of []Row) int {
	db.t.Helper()
	want := make(map[Row]bool, len(of))
	for _, r := range of {
		want[r] = true
	}
	got := db.Dump(db.t)
	for _, r := range got {
		if !want[r] {
			db.t.Fatalf("a link that should not be there: %+v", r)
		}
	}
	return len(got)
}

// closed closes c twice. The second time does nothing.
func closed(t *testing.T, c io.Closer) {
	t.Helper()
	noError(t, c.Close())
	noError(t, c.Close())
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantIs fails unless err is of that class, and of no other.
func wantIs(t *testing.T, err, class error) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Fatalf("error %v, want %v", err, class)
	}
	for _, other := range classes {
		if other != class && errors.Is(err, other) {
			t.Errorf("error %v is also of the class %v", err, other)
		}
	}
}

// wantFatal fails unless err is an error of no class.
func wantFatal(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, class := range classes {
		if errors.Is(err, class) {
			t.Errorf("error %v is of the class %v, want a fatal one", err, class)
		}
	}
}

var classes = []error{sink.ErrConflict, sink.ErrRetryable, sink.ErrLocked, sink.ErrSweeping, sink.ErrMissing, sink.ErrOldTables, sink.ErrNotOurs, sink.ErrSecretInUse}

func equal[E any](t *testing.T, got []E, want ...E) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b E) bool { return reflect.DeepEqual(a, b) }) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}
