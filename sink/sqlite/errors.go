package sqlite

import (
	"fmt"

	"github.com/linkforge/bulk/sink"
	sqlite3 "modernc.org/sqlite/lib"
)

// An Error is SQLite's error of a call. It wraps sink.ErrRetryable or sink.ErrConflict if
// its code is of that class.
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

// Unwrap returns the class of the error, or nil. Only a load meets a unique constraint.
func (e *Error) Unwrap() error {
	switch e.Code {
	case sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE:
		return sink.ErrConflict
	}
	switch e.Code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return sink.ErrRetryable
	}
	return nil
}

const copyIt = "; only to look, copy the database and its -wal file to a directory of your own while no program has it open"

// advice says what to do about the error. It may be "".
func (e *Error) advice() string {
	if e.Code == sqlite3.SQLITE_IOERR_GETTEMPPATH {
		return "there is no directory for SQLite's temporary files; set TMPDIR to one"
	}
	switch e.Code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "another program has locked the database; run again when it has ended"
	case sqlite3.SQLITE_FULL:
		return "make room in the directory of the database and in the one for temporary files, then run again"
	case sqlite3.SQLITE_CORRUPT:
		return "restore the file from a backup, or check it with PRAGMA integrity_check"
	case sqlite3.SQLITE_NOTADB:
		return "choose another file"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return "make the file and its directory writable" + copyIt
	case sqlite3.SQLITE_CANTOPEN:
		return "check that the directory exists, and that it and the file may be read and written" + copyIt
	case sqlite3.SQLITE_IOERR:
		return "check the disk and its free space"
	}
	return ""
}
