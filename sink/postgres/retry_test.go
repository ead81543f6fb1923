package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/linkforge/bulk/sink"
)

// What the server answers in the middle of a load is tried again, after pauses
// that grow, or is fatal at once.
func TestAnswersOfTheServer(t *testing.T) {
	t.Parallel()
	links := generated(0, 100)
	for state, again := range map[string]bool{
		"40001": true, "40P01": true, "57P01": true, "57P02": true, "57P03": true,
		"08000": true, "08006": true, "53300": true, "55P03": true,
		"53100": false, "53200": false, "57014": false, "42501": false, "P0001": false,
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			dsn := server.Database(t)
			var pauses []time.Duration
			s := openStore(t, dsn, Options{RetryFor: time.Minute, Logger: paused(&pauses)})
			initialize(t, s)
			script(t, dsn, `CREATE SEQUENCE answers;
				CREATE FUNCTION answer() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					IF nextval('answers') <= 3 THEN RAISE 'not now' USING ERRCODE = '`+state+`'; END IF;
					RETURN NULL;
				END $$;
				CREATE TRIGGER answer BEFORE INSERT ON links EXECUTE FUNCTION answer()`)
			session, run := started(t, s, "demo", sink.LockOptions{})
			err := session.Load(context.Background(), run, pieces(links))
			most, n := []time.Duration(nil), 0
			if again {
				most, n = []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}, len(links)
			}
			if (err == nil) != again || !slices.EqualFunc(pauses, most, func(p, m time.Duration) bool { return m/2 <= p && p < m }) {
				t.Errorf("error %v after pauses of %v", err, pauses)
			}
			if got := value[int](t, dsn, "SELECT count(*) FROM links"); got != n {
				t.Errorf("%d links, want %d", got, n)
			}
		})
	}
}

// A listener is a slog.Handler that calls itself.
type listener func(slog.Record)

func (l listener) Enabled(context.Context, slog.Level) bool      { return true }
func (l listener) Handle(_ context.Context, r slog.Record) error { l(r); return nil }
func (l listener) WithAttrs([]slog.Attr) slog.Handler            { return l }
func (l listener) WithGroup(string) slog.Handler                 { return l }

// paused is a logger that collects the pauses between tries.
func paused(pauses *[]time.Duration) *slog.Logger {
	return slog.New(listener(func(r slog.Record) {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "in" {
				*pauses = append(*pauses, a.Value.Duration())
			}
			return true
		})
	}))
}

// The default of RetryFor is as documented.
func TestRetryForByDefault(t *testing.T) {
	for set, want := range map[time.Duration]time.Duration{0: 2 * time.Minute, -1: -1, 1: 1} {
		if got := (Options{RetryFor: set}).withDefaults().RetryFor; got != want {
			t.Errorf("%v stands for %v, want %v", set, got, want)
		}
	}
}

// A server that stays away makes a step give up after RetryFor, retryably.
func TestGivesUp(t *testing.T) {
	dsn := spare.Database(t)
	s := openStore(t, dsn, Options{RetryFor: 300 * time.Millisecond})
	session := locked(t, s, "demo", sink.LockOptions{})
	noError(t, spare.Stop())
	t.Cleanup(func() { noError(t, spare.Restart()) })
	begun := time.Now()
	_, err := session.Start(context.Background(), sink.Run{Fingerprint: "f", AsOf: asOf})
	if !errors.Is(err, sink.ErrRetryable) || !errors.Is(err, sink.ErrGaveUp) || !strings.Contains(err.Error(), "gave up after") {
		t.Errorf("error %v, want a retryable one that says how long it tried", err)
	}
	if took := time.Since(begun); took < 300*time.Millisecond {
		t.Errorf("gave up early, after %s", took)
	}
}

// Of the idle connections over a network that swallows packets one is asked, and only for
// as long as the caller wants to know.
func TestIdleConnectionsWithoutAnswer(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	prepare(t, dsn, generated(0, 1))
	p := newProxy(t, fmt.Sprintf("127.0.0.1:%d", server.Port()), 0, false)
	t.Cleanup(p.close)
	s := openStore(t, server.TCP(value[string](t, dsn, "SELECT current_database()"), p.port()), Options{})
	session, err := s.Peek(context.Background())
	noError(t, err)
	defer session.Close()
	for range 3 {
		conn, err := s.connect(context.Background())
		noError(t, err)
		s.release(conn)
	}
	for i := range s.idle {
		s.idle[i].since = time.Time{}
	}
	p.swallow.Store(true)
	because := errors.New("because")
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		for end := time.Now().Add(time.Minute); p.swallowed.Load() == 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		cancel(because)
	}()
	if _, err := session.Populated(ctx, []string{"demo"}); !errors.Is(err, because) {
		t.Errorf("error %v", err)
	}
	if n := p.swallowed.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// Who has waited for a lock for longer than RetryFor tries again all the same
// when the connection is lost.
func TestWaitingIsNotFailing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	dsn := server.Database(t)
	const retryFor = 50 * time.Millisecond
	holder, waiter := openStore(t, dsn, Options{}), openStore(t, dsn, Options{RetryFor: retryFor})
	held, err := holder.Lock(ctx, []string{"demo"}, sink.LockOptions{})
	noError(t, err)
	cut := 0
	waits := func(string) {
		if cut++; cut > 2 {
			held.Close()
			return
		}
		go func() {
			time.Sleep(2 * retryFor)
			if err := eventually(dsn, "SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_locks WHERE NOT granted AND "+advisory); err != nil {
				cancel(err)
			}
		}()
	}
	session, err := waiter.Lock(ctx, []string{"demo"}, sink.LockOptions{Wait: waits})
	noError(t, err)
	session.Close()
	if cut != 3 {
		t.Errorf("waited %d times", cut)
	}
}

// Tries that last longer than RetryFor, and fail each time, come to an end, and no
// pause is longer.
func TestGivesUpLongTries(t *testing.T) {
	_, unconnected := pgconn.Connect(context.Background(), "host=/nonexistent")
	for _, c := range []struct {
		name string
		err  error
		want int
	}{
		{"at_work", &pgconn.PgError{Code: "57P01"}, maxBegun + 1},
		{"no_connection", unconnected, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var pauses []time.Duration
			s := &Store{config: &pgx.ConnConfig{}, opts: Options{RetryFor: 1, Logger: paused(&pauses)}.withDefaults(), stats: map[string]any{}}
			tries := 0
			err := s.retry(context.Background(), "try", func(context.Context) error {
				tries++
				time.Sleep(time.Microsecond)
				return c.err
			})
			if !errors.Is(err, sink.ErrGaveUp) || tries != c.want {
				t.Errorf("%d tries, %v", tries, err)
			}
			if slices.ContainsFunc(pauses, func(p time.Duration) bool { return p > 1 }) {
				t.Errorf("pauses of %v", pauses)
			}
		})
	}
}

// The server answers again once no call fails any more.
func TestOutageOfSeveralCalls(t *testing.T) {
	t.Parallel()
	told := ""
	s := &Store{config: &pgx.ConnConfig{}, stats: map[string]any{}, opts: Options{Outage: func(problem string, until time.Time) {
		if until.IsZero() {
			problem = "over"
		}
		told += problem + "\n"
	}}.withDefaults()}
	s.config.Host = "db"
	failsOnce := func(err error, then func() error) error {
		tries := 0
		return s.retry(context.Background(), "try", func(context.Context) error {
			if tries++; tries == 1 {
				return err
			}
			return then()
		})
	}
	noError(t, failsOnce(io.ErrUnexpectedEOF, func() error {
		defer func() { told += "first\n" }()
		return failsOnce(&pgconn.PgError{Code: "57P01", Message: "shutting down"}, func() error { return nil })
	}))
	if want := "PostgreSQL at db failed (the connection was lost)\nPostgreSQL at db failed (shutting down)\nfirst\nover\n"; told != want {
		t.Errorf("told:\n%swant:\n%s", told, want)
	}
}
