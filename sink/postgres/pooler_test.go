package postgres

import (
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// pooler is a pooler in transaction mode with a single connection to the
// server: each client's simple query goes over whichever is free. It returns
// its port.
func pooler(t *testing.T, dsn string) int {
	t.Helper()
	upstream := connect(t, dsn).PgConn()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	var one sync.Mutex
	var wait sync.WaitGroup
	wait.Go(func() {
		for pid := uint32(1 << 30); ; pid++ {
			client, err := l.Accept()
			if err != nil {
				return
			}
			wait.Go(func() {
				defer client.Close()
				pool(client, pid, func(sql string) ([]*pgconn.Result, error) {
					one.Lock()
					defer one.Unlock()
					return upstream.Exec(t.Context(), sql).ReadAll()
				})
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wait.Wait()
	})
	return l.Addr().(*net.TCPAddr).Port
}

// pool speaks the server's side of the protocol with one client.
func pool(client net.Conn, pid uint32, exec func(string) ([]*pgconn.Result, error)) {
	back := pgproto3.NewBackend(client, client)
	if _, err := back.ReceiveStartupMessage(); err != nil {
		return
	}
	back.Send(&pgproto3.AuthenticationOk{})
	for name, value := range map[string]string{"server_encoding": "UTF8", "client_encoding": "UTF8", "server_version": "15.1",
		"standard_conforming_strings": "on"} {
		back.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	back.Send(&pgproto3.BackendKeyData{ProcessID: pid, SecretKey: []byte{1, 2, 3, 4}})
	for {
		back.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if back.Flush() != nil {
			return
		}
		message, err := back.Receive()
		query, ok := message.(*pgproto3.Query)
		if err != nil || !ok {
			return
		}
		results, err := exec(query.String)
		if err != nil {
			return
		}
		for _, r := range results {
			back.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("v"), DataTypeOID: textOID}}})
			for _, row := range r.Rows {
				back.Send(&pgproto3.DataRow{Values: row})
			}
			back.Send(&pgproto3.CommandComplete{CommandTag: []byte(r.CommandTag.String())})
		}
	}
}

func TestPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	err := attempt(server.TCP("postgres", pooler(t, dsn)))
	if err == nil || !strings.Contains(err.Error(), "pooler in transaction mode") {
		t.Errorf("error %v", err)
	}
}
