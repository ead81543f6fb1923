package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/sinktest"
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

// A store of version 1 is refused until Init has upgraded it, which keeps its rows.
func TestVersion1(t *testing.T) {
	t.Parallel()
	ctx, dsn := context.Background(), server.Database(t)
	script(t, dsn, version1)
	s := openStore(t, dsn, Options{RetryFor: -1})
	before := dump(t, dsn, "links")
	sinktest.Refused(t, s, sink.ErrOldTables)
	if _, err := s.Lock(ctx, []string{"demo"}, sink.LockOptions{}); !errors.Is(err, sink.ErrOldTables) ||
		!strings.HasSuffix(err.Error(), `store "links" in schema "public": its tables are of an older version: run bulk init first`) {
		t.Errorf("a lock: %v", err)
	}
	reader := connect(t, dsn)
	noError(t, execAll(ctx, reader, "BEGIN", "SELECT FROM links"))
	if did, err := s.Init(ctx); !errors.Is(err, sink.ErrRetryable) || did != nil {
		t.Errorf("an upgrade waits for readers: %v, %v", did, err)
	}
	noError(t, execAll(ctx, reader, "COMMIT"))
	if did := initialize(t, s); !slices.Equal(did, []string{"upgraded table links to version 3", "created index links_base_key"}) {
		t.Errorf("did %q", did)
	}
	if got := dump(t, dsn, "links"); !slices.Equal(got, before) {
		t.Errorf("%+v, before %+v", got, before)
	}
	links := generated(0, 20)
	loadAll(t, s, links)
	_, err := s.Abandon(ctx, []int32{2}, sink.LockOptions{})
	noError(t, err)
	if out, err := s.Undo(ctx, 1, sink.LockOptions{}, nil); err != nil || out.Deleted != 2 {
		t.Errorf("%+v, %v", out, err)
	}
	runs, err := s.Runs(ctx)
	noError(t, err)
	var states []sink.State
	for _, r := range runs {
		states = append(states, r.State)
	}
	if want := []sink.State{sink.Undone, sink.Abandoned, sink.Finished}; !slices.Equal(states, want) {
		t.Errorf("runs are %q, want %q", states, want)
	}
	expect(t, dump(t, dsn, "links"), links)

	script(t, dsn, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'links_base_key'::regclass")
	for _, want := range [][]string{{"created index links_base_key"}, nil} {
		if did := initialize(t, s); !slices.Equal(did, want) {
			t.Errorf("did %q, want %q", did, want)
		}
	}
}

// One of version 2 gets what is new.
func TestVersion2(t *testing.T) {
	t.Parallel()
	ctx, dsn := context.Background(), server.Database(t)
	s := openStore(t, dsn, Options{RetryFor: -1})
	initialize(t, s)
	links := generated(0, 20)
	loadAll(t, s, links)
	script(t, dsn, "ALTER TABLE links_workspaces DROP COLUMN fold; COMMENT ON TABLE links IS 'bulk links, version 2'")
	s = openStore(t, dsn, Options{RetryFor: -1})
	sinktest.Refused(t, s, sink.ErrOldTables)
	if did := initialize(t, s); !slices.Equal(did, []string{"upgraded table links to version 3"}) {
		t.Errorf("did %q", did)
	}
	session, err := s.Lock(ctx, []string{"x"}, sink.LockOptions{})
	noError(t, err)
	noError(t, session.SetScheme(ctx, []string{"x"}, sink.Scheme{Name: "sha256-base32", Fold: true}))
	set, err := session.Schemes(ctx, nil)
	noError(t, errors.Join(err, session.Close()))
	if len(set) != 1 || !set["x"].Fold {
		t.Errorf("schemes %+v", set)
	}
	expect(t, dump(t, dsn, "links"), links)
}

// Only the owner can upgrade tables.
func TestUpgradeOfAnother(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	script(t, dsn, version1)
	s := openStore(t, as(t, dsn, "no_owner", "GRANT ALL ON ALL TABLES IN SCHEMA public TO no_owner"), Options{})
	_, err := s.Init(context.Background())
	if err == nil || !strings.Contains(err.Error(), "table links belongs to role postgres, and only its owner can change it") {
		t.Errorf("error %v", err)
	}
}
