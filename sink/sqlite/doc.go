// Package sqlite is the store in an SQLite file: for a first run that needs no
// server, and for link sets that live on one machine.
//
//	CREATE TABLE links (
//	  workspace_id TEXT NOT NULL, short_code TEXT NOT NULL, url_key BLOB NOT NULL,
//	  canonical_url TEXT NOT NULL, original_url TEXT, run_id INTEGER NOT NULL,
//	  created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
//	  PRIMARY KEY (workspace_id, short_code)) STRICT, WITHOUT ROWID
//	CREATE UNIQUE INDEX links_url_key ON links (url_key)
//
// Times are UTC with microseconds in the form of SQLite's own CURRENT_TIMESTAMP,
// "2025-03-04 05:06:07.890123", so that they compare with what an online
// service stores by default. Texts compare by their bytes.
//
// # The file
//
// The first Lock creates it; Open, Peek and Runs do not. Its application_id is
// "bulk" in ASCII and its user_version that of the schema: a file with other
// tables, another id or a newer version is refused with sink.ErrNotOurs. It is
// in WAL mode, so that readers never wait for a load, with synchronous=FULL:
// what is committed survives a loss of power. Beside it lie FILE-wal and FILE-shm while
// somebody has it open, or was killed over it, and FILE.lock for good. VACUUM INTO and
// the .backup of SQLite's shell copy it at any time; as files, it and FILE-wal may be
// copied only when nobody has it open, since what moves from one to the other between
// the two copies is missing, and the copy damaged. While nobody has it open, those who
// may not write to it or to the folder can look, too, and leave nothing.
// Nothing is committed to a file that was moved, replaced or removed meanwhile.
// A process must not open and close the file by other means while a Store has it
// open: closing a descriptor gives back the POSIX locks of the whole process.
//
// # Locks
//
// SQLite has one writer at a time, so bulk runs exclude each other for the whole
// database, whatever their workspaces: by flock on FILE.lock, which ends with
// the process. The file says who holds it. Other writers may commit between our
// transactions; one that holds the database longer than the busy timeout makes
// a call fail with sink.ErrRetryable. That wait does not watch the context.
//
// # Loading
//
// Rows come in by statements of 100 rows, and transactions of 100,000 or of a
// quarter of a second, for which other writers wait, into the table and its index at
// once: with one workspace the keys ascend like the codes, both b-trees grow at
// their ends, and a kill loses little. With several workspaces the keys go up and
// down, and every transaction writes most of the index again. So they last two
// seconds there, and a first load (the table is empty) of several is one transaction
// that drops the index and makes it again after the last row, which takes a third of
// the time. It needs the disk twice, once for the WAL, and the folder for temporary
// files for the sort.
//
// A link whose code or key another writer has taken is passed over alone: its
// neighbours stay, so that a run gets through however often that happens. (What a BEFORE
// INSERT trigger of somebody did for it stays, too.)
//
// # Memory
//
// A session takes 1 MiB for each Lookup that runs at the same time, until a Load
// begins, which takes 32 MiB.
//
// # Below the driver
//
// The package calls modernc.org/sqlite/lib, the library below the driver for
// database/sql: binding and reading values there allocates nothing, where the
// driver allocates 7 times a row and a load takes 1.6 times as long. All of that
// is in conn.go and stmt.go.
package sqlite
