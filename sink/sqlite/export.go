package sqlite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/linkforge/bulk/sink"
)

// Export implements sink.Store. It reads the table twice.
func (s *Store) Export(ctx context.Context, workspace string, begin func(columns []string) error, visit func(row [][]byte) error) error {
	return s.look(ctx, func(c *conn) error {
		if err := c.exec("export links", "BEGIN"); err != nil {
			return err
		}
		return errors.Join(c.export(ctx, workspace, begin, visit), c.rollback())
	})
}

// export reads the links in the transaction that its caller has begun.
func (c *conn) export(ctx context.Context, workspace string, begin func(columns []string) error, visit func(row [][]byte) error) error {
	where, args := "", []any(nil)
	if workspace != "" {
		where, args = " WHERE workspace_id = ?", []any{workspace}
	}
	columns, err := c.filled(where, args)
	if err == nil {
		err = begin(columns.Names())
	}
	if err != nil {
		return err
	}
	var cells sink.Cells
	rows := 0
	return c.query("export links", "SELECT "+columns.Select()+" FROM links"+where+" ORDER BY workspace_id, short_code", args, func(q *stmt) error {
		if rows++; rows%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		cells.Reset()
		for i := range columns {
			if err := q.cell(&cells, i, &columns[i]); err != nil {
				return err
			}
		}
		return visit(cells.Row)
	})
}

// filled returns the columns that have a value in one of the rows, or cannot be NULL.
func (c *conn) filled(where string, args []any) (columns sink.Columns, err error) {
	all := sink.AllColumns()
	err = c.query("look for columns with values", "SELECT "+all.SelectCounts()+" FROM links"+where, args, func(q *stmt) error {
		for i, column := range all {
			if q.int(i) > 0 {
				columns = append(columns, column)
			}
		}
		return nil
	})
	if err == nil {
		columns, err = columns.Split(func() ([]string, bool, error) { return c.members(where, args) })
	}
	return columns, err
}

// members returns the names of the members of attrs, at most sink.MaxMembers + 1, and whether
// there are attrs that are no object. It does not ask json_each, which takes as long, but reads
// some texts in another way than sink.Cells does.
func (c *conn) members(where string, args []any) (members []string, others bool, err error) {
	names := map[string]bool{}
	err = c.query("look for members of attrs", "SELECT attrs FROM links"+where, args, func(q *stmt) error {
		if attrs := q.bytes(0); attrs != nil && !sink.Members(attrs, names) {
			others = true
		}
		return nil
	})
	return slices.Collect(maps.Keys(names)), others, err
}

// cell adds a value of the row to the cells.
func (s *stmt) cell(to *sink.Cells, i int, column *sink.Column) error {
	text := s.bytes(i)
	switch {
	case column.Form == sink.JSON:
		to.JSON(text, column)
	case text == nil:
		to.Null()
	case column.Form == sink.UUID && len(text) != len(sink.Key{}):
		return fmt.Errorf("%s: %s of a link has %d bytes, not 16", s.c.path, column.Name, len(text))
	case column.Form == sink.UUID:
		to.UUID(sink.Key(text))
	case column.Form == sink.Float:
		to.Float(s.float(i))
	case column.Form == sink.Time:
		if at := anyTime(string(text)); !at.IsZero() {
			to.Time(at)
			break
		}
		to.Text(text) // no time: what somebody wrote
	default: // a text, or an integer, which SQLite has made a text
		to.Text(text)
	}
	return nil
}
