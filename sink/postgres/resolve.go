package postgres

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// resolvePage is the number of codes that one statement looks up.
const resolvePage = 50_000

// Resolve implements sink.Store. It looks the codes up in their order. It passes over codes that
// are no text to PostgreSQL, which no link can have. It does not retry, since it may have called
// the visitor.
func (s *Store) Resolve(ctx context.Context, workspace string, codes []string, visit func(*sink.Resolved) error) error {
	conn, err := s.looking(ctx, "look up codes")
	if err != nil {
		return err
	}
	defer s.release(conn)
	var r sink.Resolved
	sql := s.names.resolveSQL()
	order := slices.DeleteFunc(sink.InOrder(codes), func(i int) bool { return !utf8.ValidString(codes[i]) || strings.Contains(codes[i], "\x00") })
	for page := range slices.Chunk(order, resolvePage) {
		var list array
		for _, i := range page {
			list.add([]byte(codes[i]))
		}
		var stop error
		err := query(ctx, conn, sql, [][]byte{[]byte(workspace), list.encode(textOID)}, func(row [][]byte) error {
			r.Index, r.URL, r.Redirect = page[binary.BigEndian.Uint64(row[0])-1], row[1], sink.RedirectOf(row[2])
			readRules(&r.Rules, row[3:])
			stop = visit(&r)
			return stop
		})
		if stop != nil {
			return stop
		}
		if err != nil {
			return classify(ctx, "look up codes", err)
		}
	}
	return nil
}

// resolveSQL looks for codes of a workspace, one after another: before the first ANALYZE the planner
// of a join would compare each code with all links of the workspace.
func (n names) resolveSQL() string {
	return "SELECT n, coalesce(original_url, canonical_url), attrs ->> 'redirect_code', " + rulesColumns + " FROM unnest($2::text[]) WITH ORDINALITY u(c, n)" +
		" CROSS JOIN LATERAL (SELECT * FROM " + n.links + " WHERE workspace_id = $1 AND short_code = c LIMIT 1) l"
}

// Summary implements sink.Store. It reads the table as it lies. A mean that is below 0 ms or not
// below 10^12 ms does not count.
func (s *Store) Summary(ctx context.Context, workspace string, visit func(sink.Group) error) error {
	conn, err := s.looking(ctx, "count the links")
	if err != nil {
		return err
	}
	defer s.release(conn)
	const columns = `nullif(link_type, '') COLLATE "C" AS type, nullif(status, '') COLLATE "C" AS state, CASE WHEN isfinite(expires_at) THEN expires_at::date END AS day,
		nullif(greatest(access_count, 0), 0) AS uses, CASE WHEN avg_redirect_ms >= 0 AND avg_redirect_ms < 1e12 THEN avg_redirect_ms END AS ms`
	where, args := "", []any{}
	if workspace != "" {
		where, args = " WHERE workspace_id = $1", append(args, workspace)
	}
	var stop error
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := execAll(ctx, conn, "SET LOCAL enable_seqscan = on"); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, `SELECT workspace_id, type, state, day, count(*), coalesce(sum(uses), 0)::bigint, coalesce(sum(uses) FILTER (WHERE ms >= 0), 0)::bigint,
				coalesce(sum(uses * ms) / sum(uses) FILTER (WHERE ms >= 0), 0)
			FROM (SELECT workspace_id, `+columns+" FROM "+s.names.links+where+`) l
			GROUP BY workspace_id, type, state, day ORDER BY workspace_id, type NULLS FIRST, state NULLS FIRST, day NULLS FIRST`, args...) // rows have its error
		var g sink.Group
		var linkType, status *string
		var day *time.Time
		_, err := pgx.ForEachRow(rows, []any{&g.Workspace, &linkType, &status, &day, &g.Links, &g.Uses, &g.Latency.N, &g.Latency.Value}, func() error {
			g.Type, g.Status, g.Expires = orZero(linkType), orZero(status), orZero(day).UTC()
			stop = visit(g)
			return stop
		})
		return err
	})
	if stop != nil {
		return stop
	}
	return classify(ctx, "count the links", err)
}

func orZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
