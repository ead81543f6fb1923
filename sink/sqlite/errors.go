package sqlite

import (
	"fmt"
	"strings"

	"github.com/linkforge/bulk/sink"
	sqlite3 "modernc.org/sqlite/lib"
)

// An Error is what SQLite says about a call that failed. It wraps
// sink.ErrRetryable or sink.ErrConflict where its code is of that class.
type Error struct {
	Op, Path string
	Code     int // extended result code of SQLite
	Message  string
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s: %s (SQLite code %d)", e.Path, e.Op, e.Message, e.Code)
	if advice := e.advice(); advice != "" {
		s += ": " + advice
	}
	return s
}

// Unwrap tells the class. Only the loading of links meets a unique constraint; one
// that somebody added, a trigger or a foreign key is not a conflict.
func (e *Error) Unwrap() error {
	if e.unique() && e.ours() {
		return sink.ErrConflict
	}
	switch e.Code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return sink.ErrRetryable
	}
	return nil
}

func (e *Error) unique() bool {
	return e.Code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY || e.Code == sqlite3.SQLITE_CONSTRAINT_UNIQUE
}

// ours tells whether the unique constraint that SQLite names by its columns is of bulk.
func (e *Error) ours() bool {
	return strings.HasSuffix(e.Message, ": links.workspace_id, links.short_code") || strings.HasSuffix(e.Message, ": links.url_key")
}

const copyIt = "; to look only, copy the database, with its -wal file, to a folder of your own while nobody has it open"

// advice says what to do about it.
func (e *Error) advice() string {
	if e.unique() && !e.ours() {
		return "a unique index that is not of bulk refuses a link; drop it"
	}
	if e.Code == sqlite3.SQLITE_IOERR_GETTEMPPATH {
		return "there is no folder for SQLite's temporary files: set TMPDIR to one"
	}
	switch e.Code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "another program holds the database; run again when it has ended"
	case sqlite3.SQLITE_FULL:
		return "make room in the folder of the database and in that for temporary files, then run again"
	case sqlite3.SQLITE_CORRUPT:
		return "restore the file from a backup, or look at it with PRAGMA integrity_check"
	case sqlite3.SQLITE_NOTADB:
		return "choose another"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return "allow writing to the file and its folder" + copyIt
	case sqlite3.SQLITE_CANTOPEN:
		return "check that the folder exists and that it and the file may be read and written" + copyIt
	case sqlite3.SQLITE_IOERR:
		return "check the disk and its free space"
	}
	return ""
}
