package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A delete looks for each URL and code by an index, also before the first ANALYZE.
func TestDeletePlan(t *testing.T) {
	dsn := server.Database(t)
	prepare(t, dsn, generated(0, 100_000))
	s := openStore(t, dsn, Options{})
	var plan []string
	noError(t, s.with(t.Context(), "explain", func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "PREPARE find (text, uuid[], text[]) AS "+s.names.candidatesSQL()); err != nil {
			return err
		}
		rows, _ := conn.Query(ctx, "EXPLAIN EXECUTE find('demo', '{}', '{}')")
		var err error
		plan, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	}))
	text := strings.Join(plan, "\n")
	for _, condition := range []string{"Index Cond: (url_key = ANY ($2))", "Index Cond: (base_key = ANY ($2))", "Index Cond: ((workspace_id = $1) AND (short_code = ANY ($3)))"} {
		if !strings.Contains(text, condition) {
			t.Errorf("no %s in\n%s", condition, text)
		}
	}
}
