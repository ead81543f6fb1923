package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/sink"
	"github.com/spf13/cobra"
)

// exportOptions are the flags of export.
type exportOptions struct {
	store     storeOptions
	workspace string
	format    string
	file      string // "-": stdout
	overwrite bool   // the file
}

func exportCommand(ui *ui) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the links of a store as CSV or Parquet",
		Long: `export writes one row for each link, by workspace, then code (in byte order).
The columns are those of the table. A column without a value in any row is left
out, except kind, which is link or alias (a further code of the same URL). What
went along with migrated links has a column each: title, tags, clicks,
attrs_created_at (their creation time elsewhere) and so on, in place of attrs.

An export is an input of bulk run, to move links to another store: --legacy keep
keeps their codes, and --rules their expiry, use limit, type and owner. Their
uses, marks and statuses do not come back.

original_url is the URL as it was given; it is empty if that is canonical_url.
Times are in UTC. In CSV, an empty cell is also what has no value; in Parquet
all columns are text.

All rows are from one moment, even if a run is at work. A file is complete or
not there: it gets its name at the end. A file of that name is replaced only
with --overwrite. Beside it, FILE.manifest.json tells what bulk stage plan
--links needs: how the codes were made, and the number and digest of the links.`,
		Example: `  bulk export --db sqlite:links.db -o links.csv
  bulk export --workspace demo --format parquet -o demo.parquet --overwrite`,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args:              usageArgs(cobra.NoArgs, "export takes flags only"),
		RunE:              func(cmd *cobra.Command, _ []string) error { return export(cmd.Context(), ui, &o) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.workspace, "workspace", "w", "", "only the links of the workspace `ID` (default: all)")
	f.StringVar(&o.format, "format", "csv", "`FORMAT` to write: csv or parquet")
	f.StringVarP(&o.file, "output", "o", "-", "`FILE` to write; - is standard output")
	f.BoolVar(&o.overwrite, "overwrite", false, "replace the file of --output if it is there")
	o.store.flags(cmd)
	group(f, "Store flags")
	offer(cmd, "format", "csv", "parquet")
	return cmd
}

func export(ctx context.Context, ui *ui, o *exportOptions) (err error) {
	create := map[string]func(io.Writer, []string) report.Export{"csv": report.NewCSVExport, "parquet": report.NewParquetExport}[o.format]
	_, terminal := ui.stdout.(*shown)
	switch {
	case create == nil:
		return usage(fmt.Errorf("--format %q: it must be csv or parquet", o.format))
	case o.format == "parquet" && o.file == "-" && terminal:
		return usage(errors.New("a terminal cannot show Parquet: give a file with --output"))
	}
	store, err := o.store.open(ctx, ui.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := knows(ctx, store, o.workspace); err != nil {
		return err
	}
	told := &manifest.Links{Version: toolVersion()}
	write := func(w io.Writer) error {
		return pipeline.ExportLinks(ctx, store, o.workspace, told, func(columns []string) report.Export { return create(w, columns) })
	}
	beside := manifest.LinksNameOf(o.file)
	if o.file != "-" {
		for _, file := range []string{o.file, beside} {
			if err := mayWrite(store, "output", file, o.overwrite); err != nil {
				return err
			}
		}
	}
	if err := ui.writeTo(store, "output", o.file, o.overwrite, write); err != nil {
		return err
	}
	links := told.Rows
	if o.file != "-" {
		if err := replaceFile(beside, func(w io.Writer) error { return manifest.WriteLinks(w, told) }); err != nil {
			return err
		}
	}
	say := count(links, "link") + " exported"
	if o.workspace != "" {
		say += " from workspace " + o.workspace
	}
	if o.file != "-" {
		say += " to " + o.file
	}
	ui.tell(slog.LevelInfo, say, "links exported", "links", links, "workspace", o.workspace, "file", o.file)
	for _, w := range told.Workspaces { // since a run that has their links as its input does not know
		if w.Fold {
			ui.log.Warn("the workspace folds case: a run that takes its links elsewhere needs --fold-case", "workspace", string(w.Workspace))
		}
	}
	return nil
}

// writeTo writes the file that a flag names, which gets its name at the end. One that is there is
// replaced or, without overwrite, refused. -: standard output.
func (u *ui) writeTo(store sink.Store, flag, file string, overwrite bool, write func(io.Writer) error) error {
	if file == "-" {
		signal.Ignore(syscall.SIGPIPE) // a reader that ends early, such as head, shall be a write error
		return write(u.stdout)
	}
	if err := mayWrite(store, flag, file, overwrite); err != nil {
		return err
	}
	return replaceFile(file, write)
}

// mayWrite refuses a file that writeTo must not replace.
func mayWrite(store sink.Store, flag, file string, overwrite bool) error {
	if err := checkFile(store, file); err != nil {
		return usage(fmt.Errorf("--%s %s: %w", flag, file, err))
	}
	if _, err := os.Lstat(file); err == nil && !overwrite {
		return usage(fmt.Errorf("--%s %s: the file is there; replace it with --overwrite", flag, file))
	}
	return nil
}

// checkFile refuses a file that is not a regular one, such as a device, or that belongs to the
// store.
func checkFile(store sink.Store, file string) error {
	info, err := os.Lstat(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && !info.Mode().IsRegular() {
		return errors.New("it is not a regular file; for standard output give -")
	}
	dir, err := realPath(filepath.Dir(file))
	if err != nil {
		return err
	}
	if s, ok := store.(interface{ Files() []string }); ok && slices.Contains(s.Files(), filepath.Join(dir, filepath.Base(file))) {
		return errors.New("that is a file of the store")
	}
	return nil
}

// replaceFile writes a file under another name beside it, which it renames at the end. Errors
// have the name of the file.
func replaceFile(file string, write func(io.Writer) error) (err error) {
	defer func() {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			e.Path = file
		}
	}()
	f, err := createBeside(file)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// createBeside creates a file that gets the name of another one later. A process that was killed
// may have left one.
func createBeside(file string) (*os.File, error) {
	name := filepath.Join(filepath.Dir(file), fmt.Sprintf(".%s.%d.tmp", filepath.Base(file), os.Getpid()))
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}
