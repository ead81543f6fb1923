// Package sqlite is the store in an SQLite file: for a first run without a server, and for
// sets of links that stay on one machine. It implements the contract of package sink.
//
//	CREATE TABLE links (
//	  workspace_id TEXT NOT NULL, short_code TEXT NOT NULL, url_key BLOB NOT NULL,
//	  canonical_url TEXT NOT NULL, original_url TEXT, run_id INTEGER NOT NULL,
//	  created_at TEXT NOT NULL, updated_at TEXT NOT NULL, …,
//	  PRIMARY KEY (workspace_id, short_code)) STRICT, WITHOUT ROWID
//	CREATE UNIQUE INDEX links_url_key ON links (url_key)
//
// The other columns, since version 2 of the schema, are NULL unless a feature uses them: see
// newColumns. Columns that another program adds stay NULL, too, or have their default.
//
// Times are UTC with microseconds, in the form of SQLite's CURRENT_TIMESTAMP:
// "2025-03-04 05:06:07.890123". So they compare with the times that an online service
// stores by default. Texts compare by their bytes.
//
// # The file
//
// The first Lock creates the file; Open, Peek and Runs do not. Its application_id is "bulk"
// in ASCII, and its user_version is that of the schema. A file with other tables, another
// application_id or a newer user_version is refused with sink.ErrNotOurs. Lock upgrades an
// older version, and everything else refuses it with sink.ErrOldTables. The file is in WAL
// mode, so readers never wait for a load, with synchronous=FULL, so a commit survives a loss
// of power.
//
// FILE-wal and FILE-shm are beside the file while a process has it open, and after such a
// process was killed. FILE.lock stays, and so does FILE.sweep after the first sweep. VACUUM INTO, and .backup in SQLite's shell, copy a
// database at any time. To copy FILE and FILE-wal as files is safe only while no process
// has the database open: otherwise the copy may be damaged, because data moves from
// FILE-wal to FILE between the two copies. While no process has it open, a user who may not
// write to it or to its directory can also look at it, and leaves no files there.
//
// If the file was moved, replaced or removed while it was open, nothing more is committed to
// it. While a Store has the file open, the process must not open and close it by other
// means: to close any descriptor releases the POSIX locks of the whole process.
//
// # Locks
//
// SQLite has one writer at a time. So bulk runs exclude each other for the whole database,
// whatever their workspaces, by flock on FILE.lock, which ends with the process. The text
// in that file says which process has the lock. A sweep holds both that lock and one on FILE.sweep,
// in which a sweep also says until when it lets no other begin. Other writers may commit between our
// transactions. If one of them holds the database for longer than the busy timeout (5
// seconds), a call fails with sink.ErrRetryable. That wait ignores the context.
//
// # Loading
//
// A statement inserts 100 rows. A transaction has up to 100,000 rows and takes up to a quarter
// of a second, for which other writers wait. With one workspace, the keys ascend like the
// codes: both b-trees grow at their ends, and if the process is killed, little is lost. With
// several workspaces, codes that were kept, or another scheme than sha256-base58, the keys go
// up and down, and each transaction writes most of the index again. So a transaction takes up
// to two seconds there, and a first load (the table is empty) is one transaction that drops
// the index and creates it again after the last row. That takes a third of the time. It needs
// the disk space twice, once for the WAL, and the directory for temporary files for the sort.
//
// A link is skipped if another writer has taken its code or its key; the others are
// stored. So a run gets through, however often that happens. (The effects that a BEFORE
// INSERT trigger of the user had for a skipped link stay, too.)
//
// # Memory
//
// A session needs 1 MiB for each Lookup that runs at the same time, and 32 MiB from its
// first Load on.
//
// # Below the driver
//
// The package calls modernc.org/sqlite/lib, the library below the driver for database/sql.
// There, to bind and to read values allocates nothing; the driver allocates 7 times a row,
// and a load takes 1.6 times as long. All calls are in conn.go and stmt.go.
package sqlite
