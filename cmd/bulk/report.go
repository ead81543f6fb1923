package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/linkforge/bulk/pipeline/account"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/page"
	"github.com/spf13/cobra"
)

// reportOptions are the flags of report. Those of verify count with --verify.
type reportOptions struct {
	check             verifyOptions
	file              string // "": in the directory
	overwrite, verify bool
}

func reportCommand(ui *ui) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Write a page about a run for people",
		Long: `report reads DIR, the output directory of a run or a delete, and writes the page
DIR/report.html: one file, which a browser opens without a network. It shows
what happened, what needs a person and what to do next. Below are the rejects by
reason, URLs that were merged, codes, ends of links, values of campaigns, hosts,
lengths, parameters, the code space, times, files with their digests, and
options. It works for dry runs (DIR.dry) and refused runs (DIR.failed), too.

An earlier page is replaced. The page is not a part of the run: the manifest
does not list it, verify ignores it, and the next run into DIR removes it.
bulk run --html writes the page at the end of the run.

Values, hosts and parameters are counted exactly if there are up to 10,000
different ones. If there are more, the counts are lower bounds, and the page
says so. Passwords and other secrets in URLs are left out, as on a terminal.

--verify also checks the run as bulk verify does, and the page shows the
verdict; if there are problems, the exit code is 5. --inputs, --db and flags
about the scheme are those of bulk verify, and need --verify.`,
		Example: `  bulk report links.bulk
  bulk report links.bulk --verify --inputs links.csv --db sqlite:bulk.db
  bulk report /srv/links.bulk -o links.html`,
		Args: usageArgs(cobra.ExactArgs(1), "give DIR, the output directory of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.check.Dir = args[0]
			if err := o.resolve(ui, cmd); err != nil {
				return usage(err)
			}
			return runReport(cmd.Context(), ui, &o, cmd.Flags().Changed("db"))
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.file, "output", "o", "", "`FILE` to write (default: DIR/report.html); - is standard output")
	f.BoolVar(&o.overwrite, "overwrite", false, "replace the file of --output if it is there")
	f.BoolVar(&o.verify, "verify", false, "also check the run, and show the verdict")
	group(f, "Common flags")
	o.check.inputsFlag(f)
	o.check.scheme.keyFlag(f)
	f.StringVar(&o.check.scheme.blocklist, "blocklist", "", "the `FILE` of words that no generated code contains, as the run had it")
	group(f, "Verify flags")
	o.check.store.flags(cmd)
	db := f.Lookup("db")
	db.Usage, db.Annotations = "also check this `STORE`: sqlite:FILE or postgres://…", nil
	group(f, "Verify flags")
	return cmd
}

// resolve checks the flags, and reads what verify needs. Without --verify, flags about the check are wrong
// on the command line; variables and settings are for several commands.
func (o *reportOptions) resolve(ui *ui, cmd *cobra.Command) error {
	f := cmd.Flags()
	if !o.verify {
		var err error
		for _, name := range []string{"inputs", "scheme-key-file", "blocklist", "db", "schema", "table", "retry-for"} {
			if f.Changed(name) && ui.settings.origins[name] == "" {
				err = errors.Join(err, fmt.Errorf("--%s needs --verify: it is about the check", name))
			}
		}
		return err
	}
	o.check.format, o.check.memory = "csv", "256MiB"
	o.check.Source.Stdin = cmd.InOrStdin()
	return errors.Join(unasked(f), o.check.resolve(), o.check.readScheme())
}

// pageMemory is what the heap may have while a page is made, in bytes.
const pageMemory = 120 << 20

// runReport runs bulk report; its options are resolved.
func runReport(ctx context.Context, ui *ui, o *reportOptions, withStore bool) error {
	p := &pageMaker{dir: filepath.Clean(o.check.Dir)}
	if err := p.look(); err != nil {
		return err
	}
	problems := false
	if o.verify {
		v, a, err := o.check.check(ctx, ui, withStore)
		if err != nil {
			return err
		}
		p.verdict, problems = a, v.Failed() > 0
	}
	debug.SetMemoryLimit(pageMemory)
	write := func(w io.Writer) error { return p.write(ctx, w) }
	var err error
	file := o.file
	if file == "" {
		file, err = p.writeBeside(ctx)
	} else if filepath.Base(file) != manifest.PageName && sameDir(filepath.Dir(file), p.dir) {
		err = usage(fmt.Errorf("--output %s: a page in DIR is named %s", file, manifest.PageName))
	} else {
		err = ui.writeTo(nil, "output", file, o.overwrite, write)
	}
	if err != nil {
		return err
	}
	if p.verdict != nil {
		ui.report(p.verdict)
	}
	if file != "-" {
		ui.wrotePage(file)
	}
	if problems {
		return errDiffers
	}
	return nil
}

// wrotePage tells where the page of a run is.
func (u *ui) wrotePage(file string) {
	u.tell(slog.LevelInfo, "wrote the page "+file, "page written", "file", file)
}

// sameDir reports whether two paths lead to one directory.
func sameDir(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// A pageMaker makes the page of an output directory.
type pageMaker struct {
	dir     string
	told    *account.Account // what the process that did it tells; nil: what the directory tells
	verdict *account.Account // of a check; nil: there was none
}

// look returns an error if the directory is not the output of a run or delete.
func (p *pageMaker) look() error {
	_, _, err := p.manifest()
	return err
}

// manifest reads the manifest of the directory.
func (p *pageMaker) manifest() (m *manifest.Manifest, data []byte, err error) {
	path := filepath.Join(p.dir, manifest.Name)
	data, err = manifest.ReadFile(nil, path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil, fmt.Errorf("%s: %w: %w", p.dir, manifest.ErrNotOurs, err)
	}
	if err != nil {
		return nil, nil, err
	}
	if m, err = manifest.Read(data); err != nil {
		err = fmt.Errorf("%s: %w: %w", path, manifest.ErrNotOurs, err)
	}
	return m, data, err
}

// writeBeside writes the page into the directory, and returns its path. The file is made before anything
// is read: if another run replaces the directory meanwhile, the file is not in the new one, and gets no name.
func (p *pageMaker) writeBeside(ctx context.Context) (string, error) {
	path := filepath.Join(p.dir, manifest.PageName)
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return path, usage(fmt.Errorf("%s: it is not a regular file; give another with --output", path))
	}
	err := replaceFile(path, func(w io.Writer) error { return p.write(ctx, w) })
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		err = usage(fmt.Errorf("%w; give another file with --output", err))
	}
	return path, err
}

// write makes the page.
func (p *pageMaker) write(ctx context.Context, w io.Writer) error {
	r, err := p.report(ctx)
	if err != nil {
		return err
	}
	return page.Write(w, r)
}
