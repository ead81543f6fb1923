package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
	"unsafe"

	"github.com/linkforge/bulk/sink"
	"modernc.org/libc"
	_ "modernc.org/sqlite" // patches its library where a platform needs it
	sqlite3 "modernc.org/sqlite/lib"
)

// A conn is a connection to a database. One goroutine at a time may use it.
type conn struct {
	tls   *libc.TLS
	db    uintptr // sqlite3*
	path  string
	ctx   context.Context // of the current call, see during
	still fs.FileInfo     // of a file that must not change while it is open; nil: it may change
}

// dial opens a database file with the flags SQLITE_OPEN_….
func dial(path string, flags int32, busy time.Duration) (*conn, error) {
	c := &conn{tls: libc.NewTLS(), path: path, ctx: context.Background()}
	name, out := cstring(path), libc.Xcalloc(c.tls, 1, ptrSize)
	defer libc.Xfree(c.tls, name)
	defer libc.Xfree(c.tls, out)
	rc := sqlite3.Xsqlite3_open_v2(c.tls, name, out, flags|sqlite3.SQLITE_OPEN_NOMUTEX|sqlite3.SQLITE_OPEN_EXRESCODE, 0)
	c.db = deref(out)
	if rc != sqlite3.SQLITE_OK {
		return nil, errors.Join(c.fail("open", rc), c.close())
	}
	sqlite3.Xsqlite3_busy_timeout(c.tls, c.db, int32(busy.Milliseconds()))
	return c, nil
}

// close closes the connection. Its statements must be finalized.
func (c *conn) close() error {
	// If an interrupt came after the last statement, SQLite would not copy the WAL into the
	// file. Another statement ends the interrupt.
	_ = c.exec("close", "SELECT 1")
	var err error
	if rc := sqlite3.Xsqlite3_close(c.tls, c.db); rc != sqlite3.SQLITE_OK {
		err = c.fail("close", rc)
	}
	c.tls.Close()
	if c.still != nil {
		err = errors.Join(err, c.changed())
	}
	return err
}

// changed is an error if the file has changed since it was opened.
func (c *conn) changed() error {
	now, err := os.Stat(c.path)
	if err == nil && os.SameFile(now, c.still) && now.Size() == c.still.Size() && now.ModTime().Equal(c.still.ModTime()) {
		return nil
	}
	return errors.Join(err, fmt.Errorf("%s: another program wrote to the file while it was read; try again: %w", c.path, sink.ErrRetryable))
}

// during calls f. If ctx ends meanwhile, the statement that the connection runs is
// interrupted, and its error is the cause of ctx.
func (c *conn) during(ctx context.Context, f func() error) error {
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		tls := libc.NewTLS() // the one of the connection is in use
		defer tls.Close()
		sqlite3.Xsqlite3_interrupt(tls, c.db)
	})
	defer func() {
		c.ctx = context.Background()
		if !stop() {
			<-interrupted
		}
	}()
	c.ctx = ctx
	return f()
}

// exec runs statements without parameters, and ignores their results.
func (c *conn) exec(op, statements string) error {
	text := cstring(statements)
	defer libc.Xfree(c.tls, text)
	if rc := sqlite3.Xsqlite3_exec(c.tls, c.db, text, 0, 0, 0); rc != sqlite3.SQLITE_OK {
		return c.fail(op, rc)
	}
	return nil
}

// transact calls f in a transaction, and rolls it back if f or the commit fails.
func (c *conn) transact(op string, f func() error) error {
	if err := context.Cause(c.ctx); err != nil {
		return err
	}
	if err := c.exec(op, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = c.commit(op)
	}
	return errors.Join(err, c.rollback())
}

// commit commits, unless the file was moved.
func (c *conn) commit(op string) error {
	if err := c.moved(); err != nil {
		return err
	}
	return c.exec(op, "COMMIT")
}

// moved is an error if the file no longer has the name by which it was opened: nobody would
// find what is written to it.
func (c *conn) moved() error {
	out := libc.Xcalloc(c.tls, 1, ptrSize)
	defer libc.Xfree(c.tls, out)
	rc := sqlite3.Xsqlite3_file_control(c.tls, c.db, 0, sqlite3.SQLITE_FCNTL_HAS_MOVED, out)
	if rc != sqlite3.SQLITE_OK {
		return c.fail("look for the file", rc)
	}
	if *(*int32)(at(out)) != 0 {
		return fmt.Errorf("%s: the file was moved, replaced or removed while it was open; put it back, with its -wal file, and run again", c.path)
	}
	return nil
}

// rollback ends a transaction, if SQLite has not ended it after an error.
func (c *conn) rollback() error {
	if sqlite3.Xsqlite3_get_autocommit(c.tls, c.db) != 0 {
		return nil
	}
	return c.exec("roll back", "ROLLBACK")
}

// query visits the rows of one statement.
func (c *conn) query(op, statement string, args []any, visit func(*stmt) error) error {
	s, err := c.prepare(op, statement)
	if err != nil {
		return err
	}
	defer s.finalize()
	return s.all(args, visit)
}

// run runs one statement that has no results.
func (c *conn) run(op, statement string, args ...any) error {
	return c.query(op, statement, args, func(*stmt) error { return nil })
}

// number returns the only value of a query, an integer.
func (c *conn) number(op, statement string) (n int64, err error) {
	err = c.query(op, statement, nil, func(s *stmt) error { n = s.int(0); return nil })
	return n, err
}

// changes returns the number of rows that the last INSERT, UPDATE or DELETE changed.
func (c *conn) changes() int64 { return int64(sqlite3.Xsqlite3_changes(c.tls, c.db)) }

// fail makes the error of a result code. If the context is over, and the statement was
// interrupted or waited in vain, that is the cause of the context; otherwise an *Error.
func (c *conn) fail(op string, rc int32) error {
	if code := rc & 0xff; (code == sqlite3.SQLITE_INTERRUPT || code == sqlite3.SQLITE_BUSY) && c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	return &Error{Op: op, Path: c.path, Code: int(rc), Message: libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db))}
}

const ptrSize = libc.Tsize_t(unsafe.Sizeof(uintptr(0)))

// cstring copies s into memory of the library, which the caller frees.
func cstring(s string) uintptr {
	p, err := libc.CString(s)
	if err != nil {
		panic(fmt.Sprintf("no memory for %d bytes", len(s)))
	}
	return p
}

// deref reads a pointer from memory of the library.
func deref(p uintptr) uintptr { return *(*uintptr)(at(p)) }

// view is memory of the library as a slice.
func view(p uintptr, n int) []byte { return unsafe.Slice((*byte)(at(p)), n) }

// at makes a pointer of an address in memory of the library. The garbage collector does not
// move that memory.
func at(p uintptr) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(nil), p) }
