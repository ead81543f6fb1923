package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/linkforge/bulk/sink/postgres"
	"github.com/spf13/cobra"
)

func initCommand(ui *ui) *cobra.Command {
	var o storeOptions
	var print bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Create or upgrade the tables in PostgreSQL, or print their SQL",
		Long: `init creates the tables, or checks that existing ones fit. A run creates missing
tables, too. init is for a role that may do so once, and for a DBA who wants to
read the SQL first (--print).

init upgrades tables that an older version of bulk made. It changes no row, and
other programs can work meanwhile. Every other command refuses older tables.

A role needs these rights:
  to look               USAGE on the schema, SELECT on the tables
  to store and undo     also INSERT, UPDATE and DELETE on the tables
  to create the tables  CREATE on the schema (or on the database, if the schema
                        does not exist)
  to upgrade them       to own them, and CREATE on the schema
The first load is fastest if the role has all of these and owns the tables.`,
		Example: `  bulk init --db postgres://me@host/links
  bulk init --print --schema shortener`,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args:              usageArgs(cobra.NoArgs, "init takes flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !print || o.db != "" {
				if err := o.resolve(); err != nil {
					return usage(err)
				}
				if !isPostgres(o.db) {
					return usage(errors.New("init is for PostgreSQL: give --db postgres://…; a run creates an SQLite file by itself"))
				}
			}
			if print {
				sql, err := postgres.SQL(o.postgres)
				if err != nil {
					return usage(err)
				}
				_, err = fmt.Fprint(ui.stdout, sql)
				return err
			}
			return initStore(cmd.Context(), ui, &o)
		},
	}
	cmd.Flags().BoolVar(&print, "print", false, "print the SQL, and connect to nothing")
	o.flags(cmd)
	cmd.Flag("db").Usage = "`STORE`: postgres://… (default: BULK_DB)"
	group(cmd.Flags(), "Store flags")
	return cmd
}

func initStore(ctx context.Context, ui *ui, o *storeOptions) (err error) {
	store, err := o.open(ctx, ui.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	did, err := store.(*postgres.Store).Init(ctx)
	if err == nil && did == nil {
		did = []string{"the tables exist and fit"}
	}
	for _, what := range did {
		ui.tell(slog.LevelInfo, what+": "+o.name(), what, "db", o.name())
	}
	return err
}
