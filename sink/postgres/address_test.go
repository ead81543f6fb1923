package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
	"golang.org/x/sys/unix"
)

// What the address does not say comes from libpq's variables, its service file
// and its password file.
func TestAddressFromTheEnvironment(t *testing.T) {
	dsn := server.Database(t)
	name := value[string](t, dsn, "SELECT current_database()")
	asLocked := as(t, dsn, "locked", "GRANT ALL ON SCHEMA public TO locked")
	file := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		noError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	service := file("services", fmt.Sprintf("[mine]\nhost=%s\nport=%d\ndbname=%s\nuser=locked\nsslmode=disable\n",
		server.Socket(), server.Port(), name))
	passwords := file("pgpass", fmt.Sprintf("*:*:%s:locked:right\n", name))
	all := map[string]string{"PGHOST": server.Socket(), "PGPORT": strconv.Itoa(server.Port()), "PGDATABASE": name,
		"PGUSER": "locked", "PGSSLMODE": "disable"}
	with := func(more ...string) map[string]string {
		out := maps.Clone(all)
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	for _, c := range []struct {
		name, dsn string
		env       map[string]string
	}{
		{"variables", "", with("PGPASSWORD", "right")},
		{"variables_url", "postgres://", with("PGPASSWORD", "right")},
		{"password_file", "", with("PGPASSFILE", passwords)},
		{"service", "service=mine password=right", map[string]string{"PGSERVICEFILE": service}},
		{"service_variable", "postgres:///?passfile=" + url.PathEscape(passwords), map[string]string{"PGSERVICEFILE": service, "PGSERVICE": "mine"}},
		{"address_wins", asLocked, with("PGPASSWORD", "right", "PGHOST", "203.0.113.1", "PGUSER", "x")},
	} {
		t.Run(c.name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			s := openStore(t, c.dsn, Options{RetryFor: -1})
			if _, err := s.Init(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("tls_is_asked_for", func(t *testing.T) {
		_, err := Open(context.Background(), strings.Replace(server.TCP(name, server.Port()), "sslmode=disable", "sslmode=require", 1), Options{RetryFor: -1})
		if err == nil || !strings.Contains(err.Error(), "TLS") {
			t.Errorf("error %v", err)
		}
	})
}

// A server that takes connections and never answers is given up and tried again: at
// its time, if the address has one.
func TestServerThatNeverAnswers(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]time.Duration{
		"host=h": connectTimeout, "host=h connect_timeout=0": connectTimeout, "host=h connect_timeout=70": 70 * time.Second,
	} {
		if config, err := parse(dsn); err != nil || config.ConnectTimeout != want {
			t.Errorf("%s: %v, %v", dsn, config.ConnectTimeout, err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	defer l.Close()
	dsn := server.TCP("links", l.Addr().(*net.TCPAddr).Port) + " connect_timeout=1"
	if _, err := Open(context.Background(), dsn, Options{RetryFor: -1}); !errors.Is(err, sink.ErrRetryable) {
		t.Errorf("error %v, want a retryable one", err)
	}
}

// Parameters for libpq itself are not sent to the server.
func TestParametersOfLibpq(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	openStore(t, dsn+" keepalives=1 keepalives_idle=30 keepalives_interval=10 keepalives_count=3 gssencmode=prefer gsslib=gssapi"+
		" gssdelegation=0 load_balance_hosts=random sslcompression=0", Options{RetryFor: -1})
	if _, err := Open(context.Background(), dsn+" gssencmode=require", Options{RetryFor: -1}); err == nil || !strings.Contains(err.Error(), "gssencmode") {
		t.Errorf("what cannot be had: %v", err)
	}
}

// The connections have a name in pg_stat_activity: that of the address, if it has one.
func TestApplicationName(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	for want, c := range map[string]struct{ params, name string }{
		"bulk run": {}, "bulk sweep": {"", "bulk sweep"},
		"nightly": {" application_name=nightly fallback_application_name=psql", ""}, "weekly": {" fallback_application_name=weekly", "bulk sweep"},
	} {
		s := openStore(t, dsn+c.params, Options{Name: c.name})
		session := locked(t, s, "demo", sink.LockOptions{})
		if n := value[int](t, dsn, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1"+
			" AND pid <> pg_backend_pid()", want); n == 0 {
			t.Errorf("no %q", want)
		}
		session.Close()
	}
}

// More of a COPY is under way to a local server than by default.
func TestSendBuffer(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	s := openStore(t, dsn, Options{RetryFor: -1})
	ours, err := s.dial(context.Background())
	noError(t, err)
	defer ours.Close(context.Background())
	size := func(conn *pgx.Conn) (n int) {
		raw, err := conn.PgConn().Conn().(*net.UnixConn).SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) { n, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF) })
		}
		noError(t, err)
		return n
	}
	if ours, usual := size(ours), size(connect(t, dsn)); usual >= sendBuffer {
		t.Skipf("net.core.wmem_default gives %d bytes", usual)
	} else if ours <= usual {
		t.Errorf("send buffer of %d bytes, usual are %d", ours, usual)
	}
}

// That a client cannot be reached any more the server notices within two minutes.
func TestKeepalives(t *testing.T) {
	t.Parallel()
	database := value[string](t, server.Database(t), "SELECT current_database()")
	s := openStore(t, server.TCP(database, server.Port()), Options{RetryFor: -1})
	conn, err := s.acquire(context.Background())
	noError(t, err)
	defer s.release(conn)
	var idle, interval, count int
	err = conn.QueryRow(context.Background(), `SELECT current_setting('tcp_keepalives_idle')::int,
		current_setting('tcp_keepalives_interval')::int, current_setting('tcp_keepalives_count')::int`).Scan(&idle, &interval, &count)
	if total := idle + interval*count; err != nil || idle == 0 || interval == 0 || count == 0 || total > 120 {
		t.Errorf("a client is lost after %d + %d × %d s, %v", idle, interval, count, err)
	}
}
