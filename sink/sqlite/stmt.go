package sqlite

import (
	"fmt"

	"github.com/linkforge/bulk/sink"
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// A stmt is a prepared statement. Parameters count from 1, columns from 0.
//
// Bound bytes are copied into memory of the library that the statement owns. It stays where
// it is until reset, so SQLite need not copy the bytes again.
type stmt struct {
	c    *conn
	op   string // for errors
	p    uintptr
	mem  []byte    // holds the bound bytes; the last of mems
	mems []uintptr // all its blocks of memory, for finalize
}

func (c *conn) prepare(op, statement string) (*stmt, error) {
	text, out := cstring(statement), libc.Xcalloc(c.tls, 1, ptrSize)
	defer libc.Xfree(c.tls, text)
	defer libc.Xfree(c.tls, out)
	if rc := sqlite3.Xsqlite3_prepare_v2(c.tls, c.db, text, -1, out, 0); rc != sqlite3.SQLITE_OK {
		return nil, c.fail(op, rc)
	}
	return &stmt{c: c, op: op, p: deref(out)}, nil
}

// statements are prepared together.
type statements []*stmt

// prepareAll prepares statements. The caller finalizes them, even after an error.
func (c *conn) prepareAll(op string, texts ...string) (out statements, err error) {
	for _, text := range texts {
		s, err := c.prepare(op, text)
		if err != nil {
			return out, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (l statements) finalize() {
	for _, s := range l {
		s.finalize()
	}
}

// all binds all parameters and visits the rows. The statement can be run again after that, unless
// there is an error.
func (s *stmt) all(args []any, visit func(*stmt) error) error {
	for i, a := range args {
		s.bind(i+1, a)
	}
	for {
		if more, err := s.step(); err != nil || !more {
			return err
		}
		if err := visit(s); err != nil {
			return err
		}
	}
}

// finalize frees the statement. Its error would be the one of the last step.
func (s *stmt) finalize() {
	sqlite3.Xsqlite3_finalize(s.c.tls, s.p)
	for _, p := range s.mems {
		libc.Xfree(s.c.tls, p)
	}
}

// step goes to the next row and reports whether there is one. After the last row, and after
// an error, the statement is reset.
func (s *stmt) step() (bool, error) {
	rc := sqlite3.Xsqlite3_step(s.c.tls, s.p)
	if rc == sqlite3.SQLITE_ROW {
		return true, nil
	}
	var err error
	if rc != sqlite3.SQLITE_DONE {
		err = s.c.fail(s.op, rc)
	}
	s.reset()
	return false, err
}

// reset makes the statement ready to run again. All parameters must be bound again.
func (s *stmt) reset() {
	sqlite3.Xsqlite3_reset(s.c.tls, s.p)
	s.mem = s.mem[:0]
}

// bind binds a value of one of these types.
func (s *stmt) bind(i int, v any) {
	switch v := v.(type) {
	case int32:
		s.bindInt(i, int64(v))
	case int64:
		s.bindInt(i, v)
	case string:
		s.bindText(i, []byte(v))
	case []byte:
		s.bindText(i, v)
	case sink.Key:
		s.bindBlob(i, v[:])
	default:
		panic(fmt.Sprintf("cannot bind %T", v))
	}
}

// bindText binds a text; nil is NULL. No bind can fail: the parameters exist,
// and their lengths are far below SQLite's limit of a billion bytes.
func (s *stmt) bindText(i int, text []byte) {
	if text == nil {
		sqlite3.Xsqlite3_bind_null(s.c.tls, s.p, int32(i))
		return
	}
	sqlite3.Xsqlite3_bind_text(s.c.tls, s.p, int32(i), s.keep(text), int32(len(text)), sqlite3.SQLITE_STATIC)
}

func (s *stmt) bindBlob(i int, blob []byte) {
	sqlite3.Xsqlite3_bind_blob(s.c.tls, s.p, int32(i), s.keep(blob), int32(len(blob)), sqlite3.SQLITE_STATIC)
}

func (s *stmt) bindInt(i int, n int64) { sqlite3.Xsqlite3_bind_int64(s.c.tls, s.p, int32(i), n) }

// keep copies b into the statement's memory and returns the address. A full block stays until
// finalize, since parameters point into it.
func (s *stmt) keep(b []byte) uintptr {
	at := len(s.mem)
	if at+len(b) > cap(s.mem) || cap(s.mem) == 0 {
		at = 0
		size := max(1024, 2*cap(s.mem), len(b))
		p := libc.Xmalloc(s.c.tls, libc.Tsize_t(size))
		if p == 0 {
			panic(fmt.Sprintf("no memory for %d bytes", size))
		}
		s.mems = append(s.mems, p)
		s.mem = view(p, size)[:0]
	}
	s.mem = append(s.mem, b...)
	return s.mems[len(s.mems)-1] + uintptr(at)
}

// int is an integer of the row.
func (s *stmt) int(column int) int64 {
	return sqlite3.Xsqlite3_column_int64(s.c.tls, s.p, int32(column))
}

// null reports whether a column of the row is NULL.
func (s *stmt) null(column int) bool {
	return sqlite3.Xsqlite3_column_type(s.c.tls, s.p, int32(column)) == sqlite3.SQLITE_NULL
}

// float is a number of the row.
func (s *stmt) float(column int) float64 {
	return sqlite3.Xsqlite3_column_double(s.c.tls, s.p, int32(column))
}

// bytes is a text or blob of the row, valid until the next step or reset; nil
// for NULL.
func (s *stmt) bytes(column int) []byte {
	p := sqlite3.Xsqlite3_column_blob(s.c.tls, s.p, int32(column))
	if p == 0 && !s.null(column) {
		return []byte{} // there is no address of no bytes
	}
	return view(p, int(sqlite3.Xsqlite3_column_bytes(s.c.tls, s.p, int32(column))))
}

func (s *stmt) string(column int) string { return string(s.bytes(column)) }
