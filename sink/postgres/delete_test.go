package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A delete looks for each URL and code by an index, and who resolves codes for each code, also before
// the first ANALYZE.
func TestPlansBeforeAnalyze(t *testing.T) {
	t.Parallel()
	n := newNames("", Options{}.withDefaults().Table)
	for _, c := range []struct {
		links               int
		params, sql, values string
		conditions          []string
	}{
		{100_000, "text, uuid[], text[]", n.candidatesSQL(), "'demo', '{}', '{}'", []string{
			"Index Cond: (url_key = ANY ($2))", "Index Cond: (base_key = ANY ($2))", "Index Cond: ((workspace_id = $1) AND (short_code = ANY ($3)))"}},
		{2_000, "text, text[]", n.resolveSQL(), "'demo', '{}'", []string{"Index Cond: ((workspace_id = $1) AND (short_code = u.c))"}},
	} {
		dsn := server.Database(t)
		prepare(t, dsn, generated(0, c.links))
		plan := planned(t, openStore(t, dsn, Options{}), c.params, c.sql, c.values)
		for _, condition := range c.conditions {
			if !strings.Contains(plan, condition) {
				t.Errorf("no %s in\n%s", condition, plan)
			}
		}
	}
}

// planned is the plan of a prepared statement.
func planned(t *testing.T, s *Store, params, sql, values string) string {
	t.Helper()
	var plan []string
	noError(t, s.with(t.Context(), "explain", func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "PREPARE plan ("+params+") AS "+sql); err != nil {
			return err
		}
		rows, _ := conn.Query(ctx, "EXPLAIN EXECUTE plan("+values+")")
		var err error
		plan, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	}))
	return strings.Join(plan, "\n")
}
