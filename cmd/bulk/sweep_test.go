package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

// A sweep skips a workspace in which a run is at work, and does nothing beside another sweep. It
// says so, and that is no failure.
func TestSweepBesideOthers(t *testing.T) {
	for kind, name := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "links.db") },
		"postgres": func(t *testing.T) string { return postgresURL(server.Database(t)) },
	} {
		t.Run(kind, func(t *testing.T) {
			dir, o := t.TempDir(), storeOptions{db: name(t)}
			write(t, dir, "links.csv", "ws,url\ndemo,http://a.example/\ndemo,http://b.example/\nother,http://a.example/\n")
			command(t, exitDone, "run", filepath.Join(dir, "links.csv"), "--workspace-column", "ws", "--db", o.db, "--out", filepath.Join(dir, "out"))
			_, err := statement(o.db, "UPDATE links SET expires_at = '2026-02-01 00:00:00'")
			must(t, err)
			store, err := o.open(t.Context(), slog.New(slog.DiscardHandler))
			must(t, err)
			defer store.Close()
			expect := func(stdout, stderr string) {
				t.Helper()
				var out, said strings.Builder
				code := bulk([]string{"sweep", "--db", o.db, "--json"}, nil, &out, &said)
				if code != exitDone || !regexp.MustCompile(stdout).MatchString(out.String()) || !regexp.MustCompile(stderr).MatchString(said.String()) {
					t.Errorf("exit code %d: %s%s", code, &out, &said)
				}
			}
			session, err := store.Lock(t.Context(), []string{"demo"}, sink.LockOptions{})
			must(t, err)
			skipped := map[string]string{"sqlite": `"marked":0,.*:\["demo","other"\]}`, "postgres": `"marked":1,.*:\["demo"\]}`}[kind]
			expect(skipped, `level=WARN msg="workspace skipped, because a run is at work there" workspace=demo holder="`)
			must(t, session.Close())
			_, err = store.Sweep(t.Context(), sink.SweepOptions{AsOf: time.Now(), Workspace: "demo"}, func(sink.Swept) error {
				expect(`"marked":0,.*"other_sweep":".*another sweep is at work: `, `level=INFO msg="another sweep is at work" sweep="`)
				return nil
			})
			must(t, err)
		})
	}
}

// cutOff is a store whose sweep fails after it has marked some links.
type cutOff struct {
	sink.Store
	after int
}

func (c *cutOff) Sweep(_ context.Context, _ sink.SweepOptions, visit func(sink.Swept) error) (out sink.Sweeping, err error) {
	for range c.after {
		if err := visit(sink.Swept{Workspace: "w", Code: "c", Canonical: "http://a.example/", Status: sink.Expired}); err != nil {
			return out, err
		}
		out.Marked++
	}
	return out, sink.ErrRetryable
}

// The report of a sweep that fails has all that it has done. If that is nothing, an older report
// stays. A report that cannot be written ends the sweep.
func TestSweepFails(t *testing.T) {
	u := newUI(full{}, nil)
	o := sweepOptions{report: filepath.Join(t.TempDir(), "report.csv")}
	for after, want := range []string{"", "w,c,http://a.example/,EXPIRED,marked\n"} {
		must(t, os.WriteFile(o.report, []byte("older\n"), 0o666))
		if want == "" {
			want = "older\n"
		} else {
			want = "workspace_id,short_code,canonical_url,status,action\n" + want
		}
		swept, err := o.sweep(t.Context(), u, &cutOff{after: after})
		if got := string(read(t, o.report)); !errors.Is(err, sink.ErrRetryable) || swept.Marked != int64(after) || got != want {
			t.Errorf("%v, %v; the report: %s", swept, err, got)
		}
	}
	o.report = "-"
	if swept, err := o.sweep(t.Context(), u, &cutOff{after: 1000}); exitCode(err) != exitFailed || swept.Marked == 1000 {
		t.Errorf("%v, %v", swept, err)
	}
}
