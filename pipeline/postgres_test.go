package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/internal/quick"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/postgres"
	"github.com/linkforge/bulk/sink/postgres/pgtest"
)

var server = pgtest.New(pgtest.Options{})

func TestMain(m *testing.M) {
	if point := os.Getenv(killAt); point != "" {
		if err := killedRun(point, os.Getenv(killDB)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	quick.SetUp()
	os.Exit(server.Main(m))
}

// An online service that hammers the workspace of a run takes codes that it
// wants, before and all the while, and URLs that it has once it loads them. In the end no constraint is
// violated, no link of the batch is missing, and each has a code that its salts
// explain.
func TestOnlineWriter(t *testing.T) {
	lengths := []int{3, 10}
	if testing.Short() {
		lengths = []int{3}
	}
	for _, length := range lengths {
		t.Run(fmt.Sprintf("length=%d", length), func(t *testing.T) { testOnlineWriter(t, length) })
	}
}

func testOnlineWriter(t *testing.T, length int) {
	ctx := context.Background()
	dsn := server.Database(t)
	store, err := postgres.Open(ctx, dsn, postgres.Options{})
	must(t, err)
	defer store.Close()
	_, err = store.Init(ctx)
	must(t, err)
	var urls []string
	for i := range 5_000 {
		urls = append(urls, fmt.Sprintf("http://example.com/%d", i))
	}
	loading, stop, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var taken atomic.Int64
	go func() {
		defer close(done)
		if err := hammer(ctx, dsn, urls, length, loading, stop, &taken); err != nil {
			t.Error(err)
		}
	}()
	reach := func(n int64) error {
		for ; taken.Load() < n; time.Sleep(time.Millisecond) {
			select {
			case <-done:
				return errors.New("the other writer ended")
			default:
			}
		}
		return nil
	}
	must(t, reach(takenBefore))
	meanwhile := sync.OnceValue(func() error { close(loading); return reach(takenBefore + takenURLs) })
	cfg := pipeline.Config{Workspace: "ws", CodeLength: length, Store: hooked(store, "chunk", meanwhile)}
	files, _ := job(t, cfg, map[string]string{"urls.txt": strings.Join(urls, "\n")})
	close(stop)
	<-done

	owners, links := map[string]string{}, map[string]string{}
	conn, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer conn.Close(ctx)
	rows, _ := conn.Query(ctx, "SELECT short_code, canonical_url FROM links")
	var code, url string
	if _, err := pgx.ForEachRow(rows, []any{&code, &url}, func() error { owners[code], links[url] = url, code; return nil }); err != nil {
		t.Fatal(err)
	}
	rejected := map[string]bool{}
	for _, r := range records(t, files["rejects.csv"]) {
		rejected[r["url"]] = true
	}
	lost := 0 // URLs, to the other writer
	for _, r := range records(t, files["mapping.csv"]) {
		url := r["canonical_url"]
		if links[url] != r["short_code"] {
			t.Fatalf("%s is stored as %q, and mapped to %q", url, links[url], r["short_code"])
		}
		salt, err := strconv.Atoi(r["salt"])
		if err != nil && r["outcome"] == "existing" {
			lost++
			continue // the other writer has its own codes
		}
		for s := range salt {
			if owner := owners[codeAt(url, "ws", s, length)]; owner == "" || owner == url {
				t.Fatalf("%s has salt %d, but code %s is %q's", url, salt, codeAt(url, "ws", s, length), owner)
			}
		}
		if got := codeAt(url, "ws", salt, length); got != r["short_code"] {
			t.Fatalf("%s has code %s at salt %d, not %s", url, got, salt, r["short_code"])
		}
	}
	if n := len(records(t, files["mapping.csv"])) + len(rejected); n != len(urls) {
		t.Fatalf("%d rows are accounted for", n)
	}
	var others int64
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM links WHERE run_id = 0").Scan(&others); err != nil || others != taken.Load() || lost != takenURLs {
		t.Errorf("of %d links of the other writer %d are there (%v), and %d of %d URLs are existing", taken.Load(), others, err, lost, takenURLs)
	}
}

// takenBefore and takenURLs are how many links another writer takes before a load, and
// then first of all at its beginning.
const takenBefore, takenURLs = 1000, 100

// hammer stores strangers under codes that the batch wants until it is stopped. So
// many come before the load; once that goes on, some URLs of the batch under codes of
// its own are the first, and then there are strangers again.
func hammer(ctx context.Context, dsn string, urls []string, length int, loading, stop chan struct{}, taken *atomic.Int64) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	rnd := rand.New(rand.NewPCG(1, uint64(length)))
	for i := 0; ; i++ {
		n := taken.Load()
		if n == takenBefore {
			select {
			case <-loading:
			case <-stop:
			}
		}
		select {
		case <-stop:
			return nil
		default:
		}
		url := urls[rnd.IntN(len(urls))]
		l := link("ws", fmt.Sprintf("http://stranger.example/%d", i), codeAt(url, "ws", 0, length))
		if n >= takenBefore && n < takenBefore+takenURLs {
			l = link("ws", url, fmt.Sprintf("~%d", i))
		}
		tag, err := conn.Exec(ctx, `INSERT INTO links (workspace_id, short_code, url_key, canonical_url, run_id, created_at, updated_at)
			VALUES ($1, $2, $3, $4, 0, now(), now()) ON CONFLICT DO NOTHING`, "ws", string(l.Code), l.Key, string(l.Canonical))
		if err != nil {
			return err
		}
		taken.Add(tag.RowsAffected())
	}
}

// The result in PostgreSQL is that in SQLite, byte for byte.
func TestStoresAgree(t *testing.T) {
	inPostgres, err := postgres.Open(t.Context(), server.Database(t), postgres.Options{})
	must(t, err)
	defer inPostgres.Close()
	inputs := map[string]string{"a.csv": csvFile(rows(9, 3000))}
	var want [2]map[string]string
	for i, store := range []sink.Store{openStore(t, t.TempDir()), inPostgres} {
		cfg := base(2)
		cfg.Store = store
		first, _ := job(t, cfg, inputs)
		second, _ := job(t, cfg, inputs)
		if i == 0 {
			want = [2]map[string]string{first, second}
		}
		sameReports(t, first, want[0], reports...)
		sameReports(t, second, want[1], reports...)
	}
}
