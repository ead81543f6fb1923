package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// A transaction changes at most so many links, or links with about so many bytes. A service
// that wants to count a use of one of them waits for that time, about 0.2 s.
const (
	changePage  = 10_000
	changeBytes = 8 << 20
)

// Change implements sink.Session. All its transactions are on the connection that holds the
// locks.
func (s *session) Change(ctx context.Context, run sink.Run, changes iter.Seq2[[]sink.Change, error]) error {
	if err := s.do(ctx, "look for the run", func(ctx context.Context, conn *pgx.Conn) error {
		if err := s.relocked(); err != nil {
			return err
		}
		_, err := s.store.names.openRun(ctx, conn, run.ID)
		return err
	}); err != nil {
		return err
	}
	c := changing{session: s, run: run}
	for chunk, err := range changes {
		if err != nil {
			return err
		}
		for i := range chunk {
			if err := c.add(ctx, &chunk[i]); err != nil {
				return err
			}
		}
	}
	if err := c.commit(ctx); err != nil {
		return err
	}
	if c.missed > 0 {
		return fmt.Errorf("%w, or changed %d links", sink.ErrConflict, c.missed)
	}
	return nil
}

// changing is one call of Change. The parameters are arrays, with an element for each link of the
// next transaction. They have no NULLs: no expiry is infinity, no limit is 0, no text is blank.
type changing struct {
	*session
	run    sink.Run
	params [len(changeTypes)]array
	bytes  int
	missed int64 // links that were not as a Change says
}

// changeTypes are the types of the parameters of changedLinks.
var changeTypes = [...]uint32{textOID, textOID, timestamptzOID, int8OID, textOID, textOID, textOID, boolOID,
	timestamptzOID, int8OID, textOID, textOID, textOID, textOID, int8OID, textOID}

// changedLinks joins the links with what they were, what they shall be, and the mode: 1 is
// Revive with an original_url that is NULL, 2 is Revive with another one.
const changedLinks = `unnest($1::text[], $2::text[], $3::timestamptz[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::bool[],
	$9::timestamptz[], $10::bigint[], $11::text[], $12::text[], $13::text[], $14::text[], $15::bigint[], $16::text[])
	c(w, code, e0, m0, t0, o0, s0, used, e, m, t, o, s, how, mode, original)
	WHERE l.workspace_id = c.w AND l.short_code = c.code`

// asRules is the condition that a link has these rules.
func asRules(expires, limit, linkType, owner, status string) string {
	return " AND coalesce(CASE WHEN isfinite(expires_at) THEN expires_at END, 'infinity') = " + expires + " AND CASE max_uses WHEN 0 THEN -1 ELSE coalesce(max_uses, 0) END = " + limit +
		" AND coalesce(link_type, '') = " + linkType + " AND coalesce(owner_id, '') = " + owner + " AND coalesce(status, '') = " + status
}

// add adds a link to the transaction, and commits that if it is full.
func (c *changing) add(ctx context.Context, x *sink.Change) error {
	mode := int64(0)
	switch {
	case x.Revive && x.Original == nil:
		mode = 1
	case x.Revive:
		mode = 2
	}
	used := []byte{0}
	if x.Was.UsedUp() {
		used[0] = 1
	}
	for i, value := range [...][]byte{
		x.Workspace, x.Code, number(orInfinity(x.Was.Expires)), number(x.Was.MaxUses), x.Was.Type, x.Was.Owner, []byte(x.Was.Status), used,
		number(orInfinity(x.Now.Expires)), number(x.Now.MaxUses), x.Now.Type, x.Now.Owner, []byte(x.Now.Status), []byte(x.Now.Change), number(mode), x.Original,
	} {
		c.params[i].add(value)
		c.bytes += len(value)
	}
	if c.params[0].n < changePage && c.bytes < changeBytes {
		return nil
	}
	return c.commit(ctx)
}

// orInfinity is a time as PostgreSQL sends it; infinity for the zero time.
func orInfinity(t time.Time) int64 {
	if t.IsZero() {
		return math.MaxInt64
	}
	return timestampOf(t)
}

// commit changes the links. It asks for those that it has not changed: an earlier try, of which
// the answer was lost, or an earlier call may have done so.
func (c *changing) commit(ctx context.Context) error {
	n := int64(c.params[0].n)
	if n == 0 {
		return nil
	}
	var params [][]byte
	for i := range c.params {
		params = append(params, c.params[i].encode(changeTypes[i]))
		c.params[i] = array{data: c.params[i].data[:0]}
	}
	c.bytes = 0
	run := binary.BigEndian.AppendUint32(nil, uint32(c.run.ID))
	update := "WITH changed AS (UPDATE " + c.store.names.links + ` l SET expires_at = nullif(c.e, 'infinity'), max_uses = nullif(c.m, 0), link_type = nullif(c.t, ''),
		owner_id = nullif(c.o, ''), status = nullif(c.s, ''), marked_at = NULL, changed_run = $17, change = c.how, updated_at = $18,
		access_count = CASE WHEN c.mode > 0 OR c.m > 0 AND access_count >= c.m THEN 0 ELSE access_count END,
		original_url = CASE c.mode WHEN 0 THEN original_url WHEN 2 THEN c.original END
		FROM ` + changedLinks + asRules("c.e0", "c.m0", "c.t0", "c.o0", "c.s0") + " AND " + usedUp + " = c.used RETURNING 1) SELECT count(*) FROM changed"
	done := "SELECT count(*) FROM " + c.store.names.links + " l, " + changedLinks + asRules("c.e", "c.m", "c.t", "c.o", "c.s") +
		" AND marked_at IS NULL AND changed_run = $17 AND change = c.how"
	var count int64
	counted := func(row [][]byte) error { count = bigint(row[0]); return nil }
	err := c.do(ctx, "change links", func(ctx context.Context, conn *pgx.Conn) error {
		if err := c.relocked(); err != nil {
			return err
		}
		err := query(ctx, conn, update, append(params, run, number(timestampOf(c.run.AsOf))), counted)
		if err == nil && count < n {
			err = query(ctx, conn, done, append(params, run), counted)
		}
		return err
	})
	c.missed += n - count
	return err
}
