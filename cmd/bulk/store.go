package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/postgres"
	"github.com/linkforge/bulk/sink/sqlite"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// storeOptions are the flags that name a store.
type storeOptions struct {
	db       string
	unnamed  bool // db is the default; if it does not exist, bulk runs prints an empty list
	postgres postgres.Options
}

// flags defines --db, the last of the common flags, and the first of the store flags; the
// caller closes that group.
func (o *storeOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	o.postgres.Name = "bulk " + cmd.Name()
	f.StringVar(&o.db, "db", "", "`STORE` of the links: sqlite:FILE or postgres://… (default: BULK_DB, else sqlite:bulk.db)")
	group(f, "Common flags")
	f.StringVar(&o.postgres.Schema, "schema", "", "schema `NAME` (default: first of the search path)")
	f.StringVar(&o.postgres.Table, "table", "", "table `NAME` in PostgreSQL (default: links)")
	f.DurationVar(&o.postgres.RetryFor, "retry-for", 2*time.Minute, "`TIME` to wait for the database")
}

// unasked refuses flags about the store without --db, for verbs that use a store only then.
func unasked(flags *pflag.FlagSet) (err error) {
	for _, name := range []string{"schema", "table", "retry-for"} {
		if flags.Changed(name) && !flags.Changed("db") {
			err = errors.Join(err, fmt.Errorf("--%s needs --db: it is about a store", name))
		}
	}
	return err
}

// isPostgres reports whether db is the address of a server.
func isPostgres(db string) bool {
	return strings.HasPrefix(db, "postgres://") || strings.HasPrefix(db, "postgresql://")
}

// resolve fills in the default and checks the form.
func (o *storeOptions) resolve() error {
	if o.db == "" {
		o.db, o.unnamed = "sqlite:bulk.db", true
	}
	if o.postgres.RetryFor == 0 {
		o.postgres.RetryFor = -1
	}
	if isPostgres(o.db) {
		return o.postgres.Validate()
	}
	if !strings.ContainsAny(o.db, ":=@ ") { // a file name rather than an address with a password
		return fmt.Errorf("--db: for an SQLite file write sqlite:%s", o.db)
	}
	switch file, ok := strings.CutPrefix(o.db, "sqlite:"); {
	case !ok:
		return fmt.Errorf("--db: %q is neither sqlite:FILE nor postgres://…", postgres.Redact(o.db))
	case file == ":memory:":
		return fmt.Errorf("--db: %s would be lost; to store nothing use --dry-run", o.db)
	case file == "":
		return fmt.Errorf("--db: %s has no file name", o.db)
	}
	if o.postgres.Schema != "" || o.postgres.Table != "" {
		return errors.New("--schema and --table are for PostgreSQL")
	}
	return nil
}

// name is what people may see of the store after resolve: no password.
func (o *storeOptions) name() string {
	return hideAddresses(o.db, []string{o.db})
}

// open opens the store. The caller closes it.
func (o *storeOptions) open(ctx context.Context, log *slog.Logger) (sink.Store, error) {
	if err := o.resolve(); err != nil {
		return nil, usage(err)
	}
	if isPostgres(o.db) {
		o.postgres.Logger = log
		return postgres.Open(ctx, o.db, o.postgres)
	}
	return sqlite.Open(ctx, strings.TrimPrefix(o.db, "sqlite:"))
}

// knows returns an error if the store has no such workspace: no link, run or setting. "" is all.
func knows(ctx context.Context, store sink.Store, workspace string) error {
	if workspace == "" {
		return nil
	}
	session, err := store.Peek(ctx)
	if err != nil {
		return err
	}
	return errors.Join(checkWorkspace(ctx, store, session, workspace), session.Close())
}

// checkWorkspace is knows for a session of the store.
func checkWorkspace(ctx context.Context, store sink.Store, session sink.Session, workspace string) error {
	has, err := session.Populated(ctx, []string{workspace})
	if err != nil || has[0] {
		return err
	}
	there, err := settledWorkspaces(ctx, session)
	if err != nil || there[workspace] {
		return err
	}
	runs, err := store.Runs(ctx)
	for _, r := range runs {
		for _, w := range r.Workspaces {
			if _, err := fmt.Sscanf(w, "and %d more", new(int64)); err != nil { // see sink.Run
				there[w] = true
			}
		}
	}
	if err != nil || there[workspace] {
		return err
	}
	// This reads all links. It is what one waits for who has misspelled a name.
	err = store.Summary(ctx, "", func(g sink.Group) error {
		there[g.Workspace] = true
		return nil
	})
	return cmp.Or(err, noSuchWorkspace(workspace, slices.Sorted(maps.Keys(there))))
}

// settledWorkspaces are those that have a setting.
func settledWorkspaces(ctx context.Context, session sink.Session) (map[string]bool, error) {
	profiles, err := session.Profiles(ctx, nil)
	schemes, err2 := session.Schemes(ctx, nil)
	rules, err3 := session.Rules(ctx, nil)
	there := map[string]bool{}
	for _, set := range []iter.Seq[string]{maps.Keys(profiles), maps.Keys(schemes), maps.Keys(rules)} {
		for w := range set {
			there[w] = true
		}
	}
	return there, cmp.Or(err, err2, err3)
}

// noSuchWorkspace names a few of those that are there.
func noSuchWorkspace(workspace string, there []string) error {
	const most = 5
	list := make([]string, 0, most)
	for _, w := range there[:min(most, len(there))] {
		list = append(list, printable(w))
	}
	text := cmp.Or(strings.Join(list, ", "), "none")
	if more := len(there) - most; more > 0 {
		text += fmt.Sprintf(" and %s more", thousands(int64(more)))
	}
	return usage(fmt.Errorf("no such workspace: %s; there are: %s", printable(workspace), text))
}
