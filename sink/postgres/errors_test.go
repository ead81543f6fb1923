package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/linkforge/bulk/sink"
)

func TestClassify(t *testing.T) {
	sql := func(code string) error { return fmt.Errorf("outer: %w", &pgconn.PgError{Code: code, Message: "m"}) }
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"unique_violation", sql("23505"), sink.ErrConflict},
		{"serialization_failure", sql("40001"), sink.ErrRetryable},
		{"deadlock_detected", sql("40P01"), sink.ErrRetryable},
		{"admin_shutdown", sql("57P01"), sink.ErrRetryable},
		{"crash_shutdown", sql("57P02"), sink.ErrRetryable},
		{"cannot_connect_now", sql("57P03"), sink.ErrRetryable},
		{"connection_exception", sql("08000"), sink.ErrRetryable},
		{"connection_failure", sql("08006"), sink.ErrRetryable},
		{"too_many_connections", sql("53300"), sink.ErrRetryable},
		{"lock_not_available", sql("55P03"), sink.ErrRetryable},
		{"disk_full", sql("53100"), nil},
		{"out_of_memory", sql("53200"), nil},
		{"query_canceled", sql("57014"), nil},
		{"database_dropped", sql("57P04"), nil},
		{"invalid_password", sql("28P01"), nil},
		{"no_such_database", sql("3D000"), nil},
		{"insufficient_privilege", sql("42501"), nil},
		{"read_only", sql("25006"), nil},
		{"undefined_table", sql("42P01"), nil},
		{"not_null_violation", sql("23502"), nil},
		{"refused", dial(syscall.ECONNREFUSED), sink.ErrRetryable},
		{"reset", dial(syscall.ECONNRESET), sink.ErrRetryable},
		{"pipe", dial(syscall.EPIPE), sink.ErrRetryable},
		{"no_route", dial(syscall.EHOSTUNREACH), sink.ErrRetryable},
		{"eof", fmt.Errorf("read: %w", io.ErrUnexpectedEOF), sink.ErrRetryable},
		{"closed", pgconn.ErrConnClosed, sink.ErrRetryable},
		{"no_such_host", &net.DNSError{IsNotFound: true}, sink.ErrRetryable},
		{"name_server_fails", &net.DNSError{}, sink.ErrRetryable},
		{"one_host_of_two", errors.Join(&net.DNSError{IsNotFound: true}, dial(syscall.ECONNREFUSED)), sink.ErrRetryable},
		{"name_server_busy", &net.DNSError{IsTemporary: true}, sink.ErrRetryable},
		{"locked", fmt.Errorf("%w: x", sink.ErrLocked), sink.ErrLocked},
		{"not_ours", fmt.Errorf("%w: x", sink.ErrNotOurs), sink.ErrNotOurs},
		{"anything", errors.New("text that says connection refused"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := classify(context.Background(), "outer op", classify(context.Background(), "op", c.err))
			for _, class := range []error{sink.ErrConflict, sink.ErrRetryable, sink.ErrLocked, sink.ErrNotOurs} {
				if errors.Is(err, class) != (class == c.want) {
					t.Errorf("%v: errors.Is(%v) = %v", err, class, errors.Is(err, class))
				}
			}
			if !errors.Is(err, c.err) {
				t.Error("the cause is lost")
			}
		})
	}
}

func TestClassifyPrefersTheCauseOfTheContext(t *testing.T) {
	because := errors.New("because")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(because)
	err := classify(ctx, "op", &pgconn.PgError{Code: "57014"})
	if !errors.Is(err, because) || errors.Is(err, sink.ErrRetryable) {
		t.Error(err)
	}
}

// Whoever raises a limit as the error says has enough for a run: one connection with the
// locks, and those of the lookups.
func TestAdviceOnConnections(t *testing.T) {
	if got, want := advice(&pgconn.PgError{Code: "53300"}), fmt.Sprintf("up to %d connections, ", maxIdle+1); !strings.Contains(got, want) {
		t.Errorf("%q does not say %q", got, want)
	}
}

// The attempts at a connection are in one line.
func TestDialErrorIsOneLine(t *testing.T) {
	for dsn, attempts := range map[string]int{
		"postgres://me@127.0.0.1:1/db?sslmode=disable":           1,
		"postgres://me@127.0.0.1:1,127.0.0.2:1/db?sslmode=allow": 4, // with TLS and without
	} {
		_, err := Open(context.Background(), dsn, Options{RetryFor: -1})
		if !errors.Is(err, sink.ErrRetryable) || strings.ContainsAny(err.Error(), "\n\t") || strings.Count(err.Error(), "refused") != attempts {
			t.Errorf("%s: error %q", dsn, err)
		}
	}
}
