package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// Schemes implements sink.Session.
func (s *session) Schemes(ctx context.Context, workspaces []string) (map[string]sink.Scheme, error) {
	set, scheme := map[string]sink.Scheme{}, sink.Scheme{}
	err := s.settings(ctx, workspaces, []any{&scheme.Name, &scheme.CodeLength, &scheme.Multiplier, &scheme.Fingerprint, &scheme.Fold},
		func(workspace string) { set[workspace] = scheme }, "scheme", "coalesce(code_length, 0)", "coalesce(multiplier, 0)", "coalesce(fingerprint, '')", "coalesce(fold, false)")
	return set, err
}

// Fingerprints implements sink.Session.
func (s *session) Fingerprints(ctx context.Context) (used map[string]string, err error) {
	err = s.store.with(ctx, "read the fingerprints of secrets", func(ctx context.Context, conn *pgx.Conn) error {
		used, err = s.store.names.fingerprints(ctx, conn)
		return err
	})
	return used, err
}

func (n names) fingerprints(ctx context.Context, conn *pgx.Conn) (map[string]string, error) {
	used, fingerprint, scheme := map[string]string{}, "", ""
	rows, _ := conn.Query(ctx, "SELECT DISTINCT fingerprint, scheme FROM "+n.workspaces+" WHERE fingerprint IS NOT NULL") // rows have its error
	_, err := pgx.ForEachRow(rows, []any{&fingerprint, &scheme}, func() error { used[fingerprint] = scheme; return nil })
	return used, err
}

// SetScheme implements sink.Session. As SetProfile does, it returns sink.ErrLost if the locks were
// lost since the session began.
func (s *session) SetScheme(ctx context.Context, workspaces []string, scheme sink.Scheme) error {
	return s.alone(ctx, "scheme", "set the scheme of the workspaces", func(ctx context.Context, tx pgx.Tx) error {
		if err := s.relocked(); err != nil {
			return err
		}
		used, err := s.store.names.fingerprints(ctx, tx.Conn())
		if err == nil {
			err = scheme.CheckSecret(used)
		}
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO "+s.store.names.workspaces+` (workspace_id, scheme, code_length, multiplier, fingerprint, fold)
			SELECT unnest($1::text[]), $2, nullif($3, 0), nullif($4::bigint, 0), nullif($5, ''), nullif($6, false) ON CONFLICT (workspace_id) DO UPDATE SET scheme = excluded.scheme,
			code_length = excluded.code_length, multiplier = excluded.multiplier, fingerprint = excluded.fingerprint, fold = excluded.fold`,
			workspaces, scheme.Name, scheme.CodeLength, scheme.Multiplier, scheme.Fingerprint, scheme.Fold)
		return err
	})
}

// alone calls f in a transaction, on the connection that holds the locks, while no other session
// does the same kind of thing.
func (s *session) alone(ctx context.Context, kind, op string, f func(context.Context, pgx.Tx) error) error {
	return s.do(ctx, op, func(ctx context.Context, conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", s.store.lockKey(kind, "")); err != nil {
				return err
			}
			return f(ctx, tx)
		})
	})
}
