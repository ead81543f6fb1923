package postgres

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// rulesColumns are the columns of sink.Rules, for readRules; nowColumns are those that say what a link
// is now. NULL takes the server less time to send than 0 does.
const (
	nowColumns   = "expires_at, max_uses, nullif(access_count, 0), link_type, owner_id, status"
	rulesColumns = nowColumns + ", ref, marked_at, changed_run, change"
)

// readRules reads rulesColumns or nowColumns, which are the first columns of a row. The rules have
// slices of the row.
func readRules(r *sink.Rules, row [][]byte) {
	*r = sink.Rules{
		Expires: finite(row[0]), MaxUses: sink.Limit(bigint(row[1]), row[1] == nil), Uses: bigint(row[2]), Type: row[3], Owner: row[4],
		Status: sink.Word(row[5]),
	}
	if len(row) < 10 {
		return
	}
	r.Ref, r.Marked, r.Change = row[6], finite(row[7]), sink.Word(row[9])
	if row[8] != nil {
		r.ChangedRun = int32(binary.BigEndian.Uint32(row[8]))
	}
}

// finite is a time, or the zero time for NULL and a time that is none.
func finite(value []byte) (at time.Time) {
	if value != nil {
		at, _ = timestamp(value)
	}
	return at
}

// bigint is a number; 0 for NULL.
func bigint(value []byte) int64 {
	if value == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(value))
}

// The meaning of the columns of a link in SQL is that of sink.Rules.
const (
	isActive = "coalesce(status, '') IN ('', 'ACTIVE')"
	usedUp   = "coalesce(coalesce(access_count, 0) >= max_uses, false)"
	marked   = "status IN ('EXPIRED', 'DELETED')"
)

// dead is the condition that an active link is dead at a time, which is a parameter.
func dead(at string) string {
	return "(" + isActive + " AND (expires_at <= " + at + " AND expires_at > '-infinity' OR " + usedUp + "))"
}

// Rules implements sink.Session.
func (s *session) Rules(ctx context.Context, workspaces []string) (map[string]bool, error) {
	set, rules := map[string]bool{}, false
	err := s.settings(ctx, workspaces, []any{&rules}, func(workspace string) { set[workspace] = rules }, "rules")
	return set, err
}

// isDeleted is the condition that somebody deleted a link.
const isDeleted = "coalesce(status, '') NOT IN ('', 'ACTIVE', 'EXPIRED')"

// Gone implements sink.Session.
func (s *session) Gone(ctx context.Context, bases []sink.Key) ([]bool, error) {
	gone := make([]bool, len(bases))
	if len(bases) == 0 {
		return gone, nil
	}
	at := map[sink.Key][]int{} // several URLs with parts may be one URL
	var keys array
	for i := range bases {
		keys.add(bases[i][:])
		at[bases[i]] = append(at[bases[i]], i)
	}
	return gone, s.looking(ctx, "look for deleted links", func(conn *pgx.Conn) error {
		return query(ctx, conn, s.store.names.gone(), [][]byte{keys.encode(uuidOID)}, func(row [][]byte) error {
			for _, i := range at[sink.Key(row[0])] {
				gone[i] = true
			}
			return nil
		})
	})
}

// gone are the keys of URLs whose links and aliases are all deleted.
func (n names) gone() string {
	each := ", " + isDeleted + " AS deleted FROM " + n.links + " WHERE "
	return "SELECT k FROM (SELECT url_key AS k" + each + "url_key = ANY ($1::uuid[]) UNION ALL SELECT base_key" + each +
		"base_key IS NOT NULL AND base_key = ANY ($1::uuid[])) l GROUP BY k HAVING bool_and(deleted)"
}

// SetRules implements sink.Session.
func (s *session) SetRules(ctx context.Context, workspaces []string) error {
	return s.do(ctx, "say that the workspaces have rules", func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "INSERT INTO "+s.store.names.workspaces+` AS w (workspace_id, rules) SELECT unnest($1::text[]), true
			ON CONFLICT (workspace_id) DO UPDATE SET rules = true WHERE w.rules IS NOT true`, workspaces)
		return err
	})
}
