package postgres

import (
	"context"
	"encoding/binary"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// Scan implements sink.Store with one query in the order of the primary key. It does not
// retry the query, since it may have called the visitor.
func (s *Store) Scan(ctx context.Context, visit func(*sink.Stored) error) error {
	return s.scan(ctx, "", [][]byte{}, false, visit)
}

// ScanRules implements sink.Store.
func (s *Store) ScanRules(ctx context.Context, visit func(*sink.Stored) error) error {
	return s.scan(ctx, "", [][]byte{}, true, visit)
}

// Find implements sink.Store.
func (s *Store) Find(ctx context.Context, workspace, code string, visit func(*sink.Stored) error) error {
	return s.scan(ctx, "WHERE workspace_id = $1 AND short_code = $2", [][]byte{[]byte(workspace), []byte(code)}, true, visit)
}

// OfURL implements sink.Store.
func (s *Store) OfURL(ctx context.Context, workspace string, base sink.Key, visit func(*sink.Stored) error) error {
	return s.scan(ctx, ofURL, [][]byte{base[:], []byte(workspace)}, true, visit)
}

// The workspace is an expression, so that no index has it: before the first ANALYZE the planner would
// read all links of the workspace.
const ofURL = "WHERE (url_key = $1 OR base_key = $1) AND workspace_id || '' = $2"

// looking returns a connection, after it has checked the tables. The caller releases it.
func (s *Store) looking(ctx context.Context, op string) (conn *pgx.Conn, err error) {
	err = s.retry(ctx, op, func(ctx context.Context) (err error) {
		if conn, err = s.acquire(ctx); err != nil {
			return err
		}
		if err = s.check(ctx, conn); err != nil {
			s.release(conn)
		}
		return err
	})
	return conn, err
}

func (s *Store) scan(ctx context.Context, where string, params [][]byte, rules bool, visit func(*sink.Stored) error) error {
	conn, err := s.looking(ctx, "list the links")
	if err != nil {
		return err
	}
	defer s.release(conn)
	var link sink.Stored
	var ofLink sink.Rules
	var stop error
	columns := "kind, base_key, attrs"
	if rules {
		columns += ", " + rulesColumns
	}
	var attrs []byte
	err = query(ctx, conn, `SELECT workspace_id, short_code, url_key, canonical_url, original_url, run_id, created_at, `+columns+`
		FROM `+s.names.links+` `+where+` ORDER BY workspace_id, short_code`, params, func(row [][]byte) error {
		link = sink.Stored{
			Link: sink.Link{Workspace: row[0], Code: row[1], Key: sink.Key(row[2]), Canonical: row[3], Original: row[4]},
			Run:  int32(binary.BigEndian.Uint32(row[5])),
		}
		link.Created, _ = timestamp(row[6])
		link.Alias = isAlias(row[7])
		copy(link.Base[:], row[8])
		if row[9] != nil {
			attrs = sink.AppendJSON(attrs[:0], row[9][1:])
			link.Attrs = attrs
		}
		if rules {
			readRules(&ofLink, row[10:])
			link.Rules = &ofLink
		}
		stop = visit(&link)
		return stop
	})
	if stop != nil {
		return stop
	}
	return classify(ctx, "list the links", err)
}
