package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/linkforge/bulk/sink/postgres"
	"github.com/spf13/cobra"
)

func initCommand(ui *ui) *cobra.Command {
	var o storeOptions
	var print bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Create the tables in PostgreSQL, or print their SQL",
		Long: `Create the tables in PostgreSQL, or check that those which are there fit. A run
does so by itself; this is for a role that may create them once, and for a DBA
who wants to read the SQL first.

A role that looks needs USAGE on the schema and SELECT on the tables; one that loads
also INSERT, UPDATE and DELETE; one that makes the tables CREATE on the schema, or on the
database if there is no such schema. Who owns them and has all of that loads the empty
table fastest.

` + exitCodes,
		Example: `  bulk init --db postgres://me@host/links
  bulk init --print --schema shortener`,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args:              usageArgs(cobra.NoArgs, "init takes flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !print || o.db != "" {
				if err := o.settle(); err != nil {
					return usage(err)
				}
				if !isPostgres(o.db) {
					return usage(errors.New("init is for PostgreSQL; a run creates an SQLite file"))
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
	o.flags(cmd)
	cmd.Flag("db").Usage = "store: postgres://… (default: BULK_DB)"
	cmd.Flags().BoolVar(&print, "print", false, "print the SQL and connect to nothing")
	return cmd
}

func initStore(ctx context.Context, ui *ui, o *storeOptions) (err error) {
	store, err := o.open(ctx, ui.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := store.(*postgres.Store).Init(ctx); err != nil {
		return err
	}
	ui.log.Info("the tables are there", "db", o.name())
	return nil
}
