package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// Export implements sink.Store. It reads the table twice, in one snapshot: first as it lies,
// then in the order of the primary key. It does not retry, since it may have called the
// visitor.
func (s *Store) Export(ctx context.Context, workspace string, begin func(columns []string) error, visit func(row [][]byte) error) error {
	conn, err := s.looking(ctx, "export the links")
	if err != nil {
		return err
	}
	defer s.release(conn)
	where, params := "", [][]byte{}
	if workspace != "" {
		where, params = " WHERE workspace_id = $1", [][]byte{[]byte(workspace)}
	}
	var stop error // of begin or visit
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(pgx.Tx) error {
		columns, err := s.filled(ctx, conn, where, params)
		if err != nil {
			return err
		}
		if stop = begin(columns.Names()); stop != nil {
			return stop
		}
		var cells sink.Cells
		return query(ctx, conn, "SELECT "+columns.Select()+" FROM "+s.names.links+where+" ORDER BY workspace_id, short_code", params, func(row [][]byte) error {
			cells.Reset()
			for i, value := range row {
				cell(&cells, value, &columns[i])
			}
			stop = visit(cells.Row)
			return stop
		})
	})
	if stop != nil {
		return stop
	}
	return classify(ctx, "export the links", err)
}

// filled returns the columns that have a value in one of the rows, or cannot be NULL.
func (s *Store) filled(ctx context.Context, conn *pgx.Conn, where string, params [][]byte) (columns sink.Columns, err error) {
	all := sink.AllColumns()
	if err := execAll(ctx, conn, "SET LOCAL enable_seqscan = on"); err != nil {
		return nil, err
	}
	err = query(ctx, conn, "SELECT "+all.SelectCounts()+" FROM "+s.names.links+where, params, func(row [][]byte) error {
		for i, column := range all {
			if binary.BigEndian.Uint64(row[i]) > 0 {
				columns = append(columns, column)
			}
		}
		return nil
	})
	if err == nil {
		columns, err = columns.Split(func() (names []string, others bool, err error) {
			return s.members(ctx, conn, where, params)
		})
	}
	if err == nil {
		err = execAll(ctx, conn, "SET LOCAL enable_seqscan = off")
	}
	return columns, err
}

// members returns the names of the members of attrs, at most sink.MaxMembers + 1, and whether
// there are attrs that are no object.
func (s *Store) members(ctx context.Context, conn *pgx.Conn, where string, params [][]byte) (names []string, others bool, err error) {
	err = query(ctx, conn, "SELECT count(*) FILTER (WHERE jsonb_typeof(attrs) <> 'object') FROM "+s.names.links+where, params, func(row [][]byte) error {
		others = binary.BigEndian.Uint64(row[0]) > 0
		return nil
	})
	if err == nil {
		err = query(ctx, conn, fmt.Sprintf("SELECT DISTINCT jsonb_object_keys(CASE jsonb_typeof(attrs) WHEN 'object' THEN attrs END) FROM %s%s LIMIT %d",
			s.names.links, where, sink.MaxMembers+1), params, func(row [][]byte) error {
			names = append(names, string(row[0]))
			return nil
		})
	}
	return names, others, err
}

// cell adds a value in binary format to the cells.
func cell(to *sink.Cells, value []byte, column *sink.Column) {
	switch form := column.Form; {
	case form == sink.JSON && value != nil:
		to.JSON(value[1:], column) // after the version of the format
	case form == sink.JSON:
		to.JSON(nil, column)
	case value == nil:
		to.Null()
	case form == sink.UUID:
		to.UUID(sink.Key(value))
	case form == sink.Integer && len(value) == 4:
		to.Integer(int64(int32(binary.BigEndian.Uint32(value))))
	case form == sink.Integer:
		to.Integer(int64(binary.BigEndian.Uint64(value)))
	case form == sink.Float:
		to.Float(math.Float64frombits(binary.BigEndian.Uint64(value)))
	case form == sink.Time:
		at, infinite := timestamp(value)
		if infinite != "" {
			to.Text([]byte(infinite))
		} else {
			to.Time(at)
		}
	default:
		to.Text(value)
	}
}

// timestamp reads a time in binary format. A time that is none is infinite: infinity, or a time
// later than a time.Time from UnixMicro can be, or -infinity.
func timestamp(value []byte) (at time.Time, infinite string) {
	switch micro := int64(binary.BigEndian.Uint64(value)); {
	case micro == math.MinInt64:
		return at, "-infinity"
	case micro > math.MaxInt64-postgresEpoch:
		return at, "infinity"
	default:
		return time.UnixMicro(micro + postgresEpoch).UTC(), ""
	}
}
