package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/sink"
)

// version1 is what bulk created before version 2, with two links, their finished run, and a run
// that was killed.
const version1 = `CREATE TABLE links (workspace_id text COLLATE "C" NOT NULL, short_code text COLLATE "C" NOT NULL, url_key uuid NOT NULL,
	canonical_url text NOT NULL, original_url text, run_id integer NOT NULL,
	created_at timestamp with time zone NOT NULL, updated_at timestamp with time zone NOT NULL);
ALTER TABLE links ADD CONSTRAINT links_pkey PRIMARY KEY (workspace_id, short_code);
ALTER TABLE links ADD CONSTRAINT links_url_key_key UNIQUE (url_key);
CREATE TABLE links_runs (run_id integer NOT NULL, fingerprint text NOT NULL, state text NOT NULL, as_of timestamp with time zone NOT NULL,
	rows_read bigint NOT NULL, rows_created bigint NOT NULL, rows_existing bigint NOT NULL, rows_duplicate bigint NOT NULL,
	rows_rejected bigint NOT NULL, manifest_sha256 text NOT NULL, started timestamp with time zone NOT NULL,
	finished timestamp with time zone, CONSTRAINT links_runs_pkey PRIMARY KEY (run_id));
CREATE TABLE links_ledger (run_id integer NOT NULL, session bigint NOT NULL, batch bigint NOT NULL,
	CONSTRAINT links_ledger_pkey PRIMARY KEY (run_id, session, batch));
COMMENT ON TABLE links IS 'bulk links, version 1';
INSERT INTO links SELECT 'old', c, gen_random_uuid(), 'http://example.com/' || c, NULL, 1, '2025-01-02', '2025-01-02' FROM unnest('{a,b}'::text[]) c;
INSERT INTO links_runs VALUES (1, 'f', 'finished', '2025-01-02', 2, 2, 0, 0, 0, '00', '2025-01-02', '2025-01-02'),
	(2, 'g', 'loading', '2025-01-02', 0, 0, 0, 0, 0, '', '2025-01-02', NULL)`

// A store of version 1 is read, loaded, undone and abandoned as it is. Init upgrades it while a
// run is at work, and keeps its rows.
func TestVersion1(t *testing.T) {
	ctx, dsn := context.Background(), server.Database(t)
	script(t, dsn, version1)
	s := openStore(t, dsn, Options{RetryFor: -1})
	states := func(want ...sink.State) {
		t.Helper()
		runs, err := s.Runs(ctx)
		noError(t, err)
		for i, r := range runs {
			if r.State != want[i] || (r.Inputs != nil) != (i > 3) {
				t.Errorf("%+v", r)
			}
		}
	}
	first := sink.Run{Fingerprint: "f", AsOf: asOf, Inputs: []string{"a.csv"}, Workspaces: []string{"demo"}, Out: "/out"}
	links := generated(0, 20)
	states(sink.Finished, sink.Loading)
	loadAll(t, s, links[:10])
	_, err := s.Abandon(ctx, []int32{2}, sink.LockOptions{})
	noError(t, err)
	at := locked(t, s, "demo", sink.LockOptions{})
	newer := []sink.Run{{Aliases: true}, {Attrs: true}, {KeepCreated: true}, {Rules: true}, {Parts: true}}
	for _, run := range newer {
		run.Fingerprint, run.AsOf = first.Fingerprint, first.AsOf
		if _, err := at.Start(ctx, run); err == nil || !strings.Contains(err.Error(), "bulk init") {
			t.Errorf("%+v: %v", run, err)
		}
	}
	if _, err := at.Profiles(ctx, []string{"demo"}); !errors.Is(err, sink.ErrOldTables) || !strings.Contains(err.Error(), "bulk init") {
		t.Errorf("profiles: %v", err)
	}
	if err := at.SetProfile(ctx, []string{"demo"}, "linkforge-1"); !errors.Is(err, sink.ErrOldTables) {
		t.Errorf("a profile is set: %v", err)
	}
	_, rules := at.Rules(ctx, []string{"demo"})
	_, schemes := at.Schemes(ctx, []string{"demo"})
	_, fingerprints := at.Fingerprints(ctx)
	_, next := at.NextNumber(ctx)
	_, reserved := at.Reserve(ctx, sink.Run{ID: 2}, 1, 0)
	_, swept := s.Sweep(ctx, sink.SweepOptions{AsOf: asOf}, nil)
	noItems := func(func([]sink.Deletion, error) bool) {}
	for call, err := range map[string]error{
		"Rules": rules, "SetRules": at.SetRules(ctx, []string{"demo"}), "Change": at.Change(ctx, first, func(func([]sink.Change, error) bool) {}),
		"Schemes": schemes, "Fingerprints": fingerprints, "SetScheme": at.SetScheme(ctx, []string{"demo"}, sink.Scheme{Name: "keyed-base62"}), "NextNumber": next, "Reserve": reserved,
		"Sweep": swept, "Delete": s.Delete(ctx, sink.DeleteOptions{Workspace: "old"}, noItems, nil),
	} {
		if !errors.Is(err, sink.ErrOldTables) {
			t.Errorf("%s: %v", call, err)
		}
	}
	var groups []sink.Group
	noError(t, s.Summary(ctx, "old", func(g sink.Group) error { groups = append(groups, g); return nil }))
	if want := []sink.Group{{Workspace: "old", Links: 2}}; !slices.Equal(groups, want) {
		t.Errorf("summary %+v", groups)
	}
	noError(t, s.Resolve(ctx, "old", []string{"x", "b"}, func(r *sink.Resolved) error {
		if r.Index != 1 || string(r.URL) != "http://example.com/b" || r.Rules.Answer(asOf) != 302 {
			t.Errorf("resolved %+v", r)
		}
		return nil
	}))
	run, err := at.Start(ctx, first)
	noError(t, err)
	for _, with := range newer {
		with.ID, with.AsOf = run.ID, run.AsOf
		if err := at.Load(ctx, with, pieces(links[10:])); err == nil || !strings.Contains(err.Error(), "bulk init") {
			t.Errorf("a load of %+v: %v", with, err)
		}
	}
	old := sink.Probe{Workspace: []byte("old"), Code: []byte("a"), WantRun: true, WantRules: true}
	found := 0
	noError(t, at.Lookup(ctx, []sink.Probe{old}, func(f sink.Found) error {
		if found++; f.Same || f.Alias || f.Rules != nil || f.Run != 1 || string(f.Canonical) != "http://example.com/a" {
			t.Errorf("found %+v", f)
		}
		return nil
	}))
	if found != 1 {
		t.Errorf("%d links found by a code", found)
	}
	noError(t, at.Load(ctx, run, pieces(links[10:15])))
	scanned := 0
	scan := func(l *sink.Stored) error {
		if scanned++; l.Attrs != nil || l.Rules != nil || l.Created.IsZero() {
			t.Errorf("scanned %+v", l)
		}
		return nil
	}
	noError(t, s.ScanRules(ctx, scan))
	noError(t, s.OfURL(ctx, "demo", links[0].Key, scan))
	if scanned != 18 {
		t.Errorf("%d links scanned", scanned)
	}
	states(sink.Finished, sink.Abandoned, sink.Finished, sink.Loading)
	before := dump(t, dsn, "links")

	var kinds []string
	noError(t, s.Export(ctx, "old", func(columns []string) error { kinds = columns; return nil }, func(row [][]byte) error {
		kinds = append(kinds, string(row[1])+" "+string(row[2]))
		return nil
	}))
	if want := append(strings.Fields("workspace_id short_code kind canonical_url url_key run_id created_at updated_at"), "a link", "b link"); !slices.Equal(kinds, want) {
		t.Errorf("exported %q, want %q", kinds, want)
	}

	reader := connect(t, dsn)
	noError(t, execAll(ctx, reader, "BEGIN", "SELECT FROM links"))
	if did, err := s.Init(ctx); !errors.Is(err, sink.ErrRetryable) || did != nil {
		t.Errorf("an upgrade waits for readers: %v, %v", did, err)
	}
	noError(t, execAll(ctx, reader, "COMMIT"))
	if did := initialize(t, s); !slices.Equal(did, []string{"upgraded table links to version 2", "created index links_base_key"}) {
		t.Errorf("did %q", did)
	}
	if got := dump(t, dsn, "links"); !slices.Equal(got, before) {
		t.Errorf("%+v, before %+v", got, before)
	}
	noError(t, at.Load(ctx, run, pieces(links[15:])))
	noError(t, at.Loaded(ctx, run))
	noError(t, at.Finish(ctx, run))
	noError(t, at.Close())
	after := locked(t, s, "demo", sink.LockOptions{})
	if run, err = after.Start(ctx, first); err != nil || !slices.Equal(run.Inputs, first.Inputs) || run.Out != "/out" {
		t.Errorf("%+v, %v", run, err)
	}
	noError(t, after.SetProfile(ctx, []string{"demo"}, "linkforge-1"))
	if numbers, err := after.Reserve(ctx, run, 5, 0); err != nil || !slices.Equal(numbers, []sink.Range{{First: 1, Last: 5}}) {
		t.Errorf("numbers %v, %v", numbers, err)
	}
	noError(t, after.Close())
	states(sink.Finished, sink.Abandoned, sink.Finished, sink.Finished, sink.Loading)
	if out, err := s.Undo(ctx, 1, sink.LockOptions{}, nil); err != nil || out.Deleted != 2 {
		t.Errorf("%+v, %v", out, err)
	}
	expect(t, dump(t, dsn, "links"), links)

	script(t, dsn, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'links_base_key'::regclass")
	for _, want := range [][]string{{"created index links_base_key"}, nil} {
		if did := initialize(t, s); !slices.Equal(did, want) {
			t.Errorf("did %q, want %q", did, want)
		}
	}
}

// Only the owner can upgrade tables.
func TestUpgradeOfAnother(t *testing.T) {
	dsn := server.Database(t)
	script(t, dsn, version1)
	s := openStore(t, as(t, dsn, "no_owner", "GRANT ALL ON ALL TABLES IN SCHEMA public TO no_owner"), Options{})
	_, err := s.Init(context.Background())
	if err == nil || !strings.Contains(err.Error(), "table links belongs to role postgres, and only its owner can change it") {
		t.Errorf("error %v", err)
	}
	loadAll(t, s, generated(0, 10))
}
