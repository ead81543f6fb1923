package postgres

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/linkforge/bulk/sink"
)

// classify adds the operation that failed, the class of the error and advice. An error that
// was classified before stays as it is. If the context is over, its cause is the error.
func classify(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		if cause := context.Cause(ctx); !errors.Is(err, cause) {
			return fmt.Errorf("%s: %w", op, cause)
		}
		return err
	}
	if _, done := errors.AsType[*classified](err); done {
		return err
	}
	err = fmt.Errorf("%s: %w", op, err)
	if hint := advice(err); hint != "" {
		err = fmt.Errorf("%w; %s", err, hint)
	}
	return &classified{class: class(err), err: err}
}

// classified is the result of classify. Its class may be nil.
type classified struct{ class, err error }

func (e *classified) Error() string { return e.err.Error() }

func (e *classified) Unwrap() []error {
	if e.class == nil {
		return []error{e.err}
	}
	return []error{e.class, e.err}
}

// A dialError writes the driver's error, which has a line for each attempt, in one line.
type dialError struct{ error }

func (e dialError) Error() string {
	return strings.NewReplacer(":\n\t", ": ", "\n\t", "; ").Replace(e.error.Error())
}

func (e dialError) Unwrap() error { return e.error }

// class of an error: sink.ErrConflict, sink.ErrRetryable and so on; nil if a retry would
// fail again.
func class(err error) error {
	for _, c := range []error{sink.ErrConflict, sink.ErrRetryable, sink.ErrLocked, sink.ErrNotOurs} {
		if errors.Is(err, c) {
			return c
		}
	}
	if code := state(err); code != "" {
		return classOfState(code)
	}
	if unreachable(err) {
		return sink.ErrRetryable
	}
	return nil
}

// state is the SQLSTATE of an error, or "".
func state(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

func classOfState(code string) error {
	switch {
	case code == "23505": // unique_violation
		return sink.ErrConflict
	case code == "40001", code == "40P01", // serialization_failure, deadlock_detected
		code == "57P01", code == "57P02", code == "57P03", // shutdown, crash, cannot_connect_now
		code == "53300", code == "55P03", // too_many_connections, lock_not_available
		strings.HasPrefix(code, "08"): // connection_exception
		return sink.ErrRetryable
	}
	return nil
}

// unreachable reports whether the connection was lost, or could not be made: to one of
// several hosts, or to a server of the kind that the address asks for. A host name that is
// not found may be that of a server that is about to start.
func unreachable(err error) bool {
	for _, e := range []error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed,
		pgconn.ErrStandbyConnection, pgconn.ErrPrimaryConnection, pgconn.ErrReadOnlyConnection, pgconn.ErrReadWriteConnection, // during a failover
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE,
		syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ETIMEDOUT,
		syscall.ENOENT, syscall.EAGAIN, // the Unix socket of a server that starts, or is busy
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout() || pgconn.Timeout(err)
}

// advice says what to do about an error. It may be "".
func advice(err error) string {
	hints := map[string]string{ // by SQLSTATE
		"28P01": "check user and password (in the address, in PGPASSWORD or in a password file)",
		"28000": "check the user, and what the server's pg_hba.conf asks for: TLS (sslmode), or a client certificate (sslcert, sslkey)",
		"3D000": "create the database first, or choose another one",
		"42501": "to look, the role needs USAGE on the schema and SELECT on the tables; to load, also INSERT, UPDATE and DELETE on the tables;" +
			" to create the tables, CREATE on the schema (or on the database, if the schema does not exist); a DBA can create them with the SQL of `bulk init --print`",
		"25006": "connect to the primary, not to a standby, and with a role that has default_transaction_read_only off",
		"53100": "make room on the server's disk and run again; the transaction was rolled back",
		"53200": "the server has no memory left, or no room for locks (max_locks_per_transaction); run again when it has less to do",
		"53300": "the server or the role has no connection left; raise the limit: a run needs up to 17 connections, or 3 with --workers 1",
		"53400": "ask a superuser to raise temp_file_limit for the role or the database: the server sorts the links in temporary files to create the constraints",
		"57014": "somebody cancelled the statement; run again",
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Routine == "check_enable_rls" { // the SQLSTATE is the same for any missing privilege
		return "the role needs BYPASSRLS, or to own the tables without FORCE ROW LEVEL SECURITY"
	}
	if hint := hints[state(err)]; hint != "" {
		return hint
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "set sslrootcert to the file with the CA of the server's certificate"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "use the host name of the certificate, or sslmode=verify-ca, which does not compare the names"
	}
	return ""
}
