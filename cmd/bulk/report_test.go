package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/manifest"
)

// If a run is interrupted while it writes its page, nothing is left of the page, and the exit code says that
// the same command finishes the job. Any other failure is none of usage: the run is done.
func TestPageInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, ".", "a.csv", "url\nhttps://a.example/\n")
	if code, _, said := inProcess(t, strings.Fields("run a.csv -w w --out out --db sqlite:links.db")...); code != exitDone {
		t.Fatalf("exit code %d: %s", code, said)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errInterrupted)
	u := newUI(io.Discard, io.Discard)
	o := &runOptions{html: true}
	r := &pipeline.Result{Out: "out", ManifestSHA256: "x", Repeated: true}
	if err := u.writePage(ctx, o, r, nil); exitCode(err) != exitInterrupted {
		t.Errorf("interrupted: %v", err)
	}
	must(t, os.Mkdir(filepath.Join("out", manifest.PageName), 0o777))
	if err := u.writePage(context.Background(), o, r, nil); exitCode(err) != exitFailed || !strings.Contains(err.Error(), "the run ended, but its page was not written") {
		t.Errorf("something else is there: %v", err)
	}
	entries, err := os.ReadDir("out")
	must(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".tmp") {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// If another run replaces the directory while a page is made, the page does not come into the new one.
func TestPageOfReplacedDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.Mkdir("out", 0o777))
	err := replaceFile(filepath.Join("out", manifest.PageName), func(io.Writer) error {
		return errors.Join(os.Rename("out", "before"), os.Mkdir("out", 0o777))
	})
	if entries, _ := os.ReadDir("out"); err == nil || len(entries) > 0 {
		t.Errorf("%v, %v", err, entries)
	}
}
