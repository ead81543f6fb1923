package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/linkforge/bulk/sink"
)

// The header of the file says that bulk made it, and the version of the schema.
const (
	applicationID = 0x62756c6b // "bulk"
	version       = 3
	oldest        = 1 // version that Lock upgrades
)

const createIndex = `CREATE UNIQUE INDEX links_url_key ON links (url_key)`

// newColumns of links, since version 2, are NULL unless a feature of bulk, or the service that
// owned a link before, sets them. They have no constraints, which each insert would check.
var newColumns = []string{
	"kind TEXT",     // NULL: a link; else "alias"
	"base_key BLOB", // url_key of the URL alone; NULL: that is url_key
	"attrs TEXT",    // JSON: what a migrated link was, such as its title and tags
	"expires_at TEXT",
	"max_uses INTEGER",
	"access_count INTEGER",
	"avg_redirect_ms REAL",
	"link_type TEXT",
	"owner_id TEXT",
	"ref TEXT",
	"status TEXT",
	"marked_at TEXT",
	"changed_run INTEGER", // the run that changed an existing link
	"change TEXT",         // and how
}

// createRest creates what there is since version 2 beside the columns of links: runs of any state, the
// settings of workspaces (no row: linkforge-1, sha256-base58, no rules), the next number of
// a counter (one row, or none before the first), and the index for all links of a URL.
const createRest = `
CREATE TABLE runs (
  run_id          INTEGER PRIMARY KEY,
  fingerprint     TEXT    NOT NULL,
  state           TEXT    NOT NULL,
  as_of           TEXT    NOT NULL, -- updated_at of its links, and created_at unless keep_created
  read            INTEGER NOT NULL DEFAULT 0,
  created         INTEGER NOT NULL DEFAULT 0,
  existing        INTEGER NOT NULL DEFAULT 0,
  duplicate       INTEGER NOT NULL DEFAULT 0,
  rejected        INTEGER NOT NULL DEFAULT 0,
  manifest_sha256 TEXT    NOT NULL DEFAULT '',
  started_at      TEXT    NOT NULL,
  finished_at     TEXT,
  inputs          TEXT,             -- JSON: their names
  workspaces      TEXT,             -- JSON: their names
  out             TEXT,             -- output directory
  numbers         TEXT              -- JSON: links_created, if that is not created; links_changed; keep_created, if true; ranges of the counter: [{first, last}, …]
) STRICT;
CREATE TABLE workspaces (
  workspace_id    TEXT    PRIMARY KEY,
  profile         TEXT,
  scheme          TEXT,
  code_length     INTEGER,
  multiplier      INTEGER,
  fingerprint     TEXT,
  rules           INTEGER,
  fold            INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE counter (next INTEGER NOT NULL) STRICT;
CREATE INDEX links_base_key ON links (base_key) WHERE base_key IS NOT NULL;
`

var createSchema = `
CREATE TABLE links (
  workspace_id  TEXT    NOT NULL,
  short_code    TEXT    NOT NULL,
  url_key       BLOB    NOT NULL, -- first 16 bytes of SHA-256(canonical|workspace)
  canonical_url TEXT    NOT NULL,
  original_url  TEXT,             -- NULL: the same as canonical_url
  run_id        INTEGER NOT NULL,
  created_at    TEXT    NOT NULL, -- UTC, microseconds
  updated_at    TEXT    NOT NULL,
  ` + strings.Join(newColumns, ", ") + `,
  PRIMARY KEY (workspace_id, short_code)
) STRICT, WITHOUT ROWID;
` + createIndex + ";" + createRest

// upgradeSchema makes this version of version 1, whose runs may have no state of version 2 and
// are therefore created anew.
var upgradeSchema = "ALTER TABLE links ADD COLUMN " + strings.Join(newColumns, "; ALTER TABLE links ADD COLUMN ") +
	"; CREATE TEMP TABLE old AS SELECT * FROM runs; DROP TABLE runs;" + createRest + `
INSERT INTO runs (run_id, fingerprint, state, as_of, read, created, existing, duplicate, rejected, manifest_sha256,
  started_at, finished_at) SELECT * FROM temp.old;
DROP TABLE temp.old;
`

// upgradeSettings makes this version of version 2.
const upgradeSettings = "ALTER TABLE workspaces ADD COLUMN fold INTEGER;"

// inspect returns the version of our schema in the database; 0 means that it is empty. For
// anything else the error is sink.ErrNotOurs.
func (c *conn) inspect() (made int64, err error) {
	id, err := c.number("read application_id", "PRAGMA application_id")
	if err != nil {
		return 0, err
	}
	v, err := c.number("read user_version", "PRAGMA user_version")
	if err != nil {
		return 0, err
	}
	var names []string
	err = c.query("read schema", "SELECT name FROM sqlite_schema ORDER BY name", nil, func(s *stmt) error {
		names = append(names, s.string(0))
		return nil
	})
	switch {
	case err != nil:
		return 0, err
	case id == 0 && v == 0 && len(names) == 0:
		return 0, nil
	case id == 0 && v == 0 && slices.Contains(names, "links_url_key"):
		v = oldest
		if slices.Contains(names, "links_base_key") {
			if v, err = c.number("read schema", "SELECT 2 + count(*) FROM pragma_table_info('workspaces') WHERE name = 'fold'"); err != nil {
				return 0, err
			}
		}
		return 0, fmt.Errorf("%s: application_id is 0: %w; if it was restored from an SQL dump, which loses that number, run"+
			" PRAGMA application_id = %d; PRAGMA user_version = %d", c.path, sink.ErrNotOurs, applicationID, v)
	case id != applicationID:
		return 0, fmt.Errorf("%s: application_id is %d: %w", c.path, id, sink.ErrNotOurs)
	case v < oldest || v > version:
		return 0, fmt.Errorf("%s: its schema is version %d, and this program knows version %d: %w", c.path, v, version, sink.ErrNotOurs)
	}
	for _, name := range []string{"links", "links_url_key", "runs"} {
		if !slices.Contains(names, name) {
			return 0, fmt.Errorf("%s: %s is missing: %w", c.path, name, sink.ErrNotOurs)
		}
	}
	return v, nil
}

// glance is inspect in a transaction, since another process may be creating the schema.
func (c *conn) glance() (made int64, err error) {
	if err := c.exec("read schema", "BEGIN"); err != nil {
		return 0, err
	}
	made, err = c.inspect()
	return made, errors.Join(err, c.rollback())
}

// create creates our schema in an empty database, and sets its page size and WAL mode. It
// upgrades an older schema. The caller holds the lock of the bulk runs.
func (c *conn) create() error {
	if _, err := c.inspect(); err != nil { // before anything is changed
		return err
	}
	if err := c.exec("set page size", fmt.Sprintf("PRAGMA page_size = %d", pageSize)); err != nil {
		return err
	}
	var mode string
	err := c.query("set WAL mode", "PRAGMA journal_mode = WAL", nil, func(s *stmt) error { mode = s.string(0); return nil })
	if err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("%s: its file system does not support WAL mode (the mode is %q); choose a local directory", c.path, mode)
	}
	return c.transact("create schema", func() error {
		made, err := c.inspect()
		if err != nil || made == version {
			return err
		}
		op, statements := "create schema", createSchema
		if made > 0 {
			op, statements = fmt.Sprint("upgrade the tables to version ", version), upgradeSchema
		}
		if made == 2 {
			statements = upgradeSettings
		}
		return c.exec(op, fmt.Sprintf("%s PRAGMA application_id = %d; PRAGMA user_version = %d", statements, applicationID, version))
	})
}
