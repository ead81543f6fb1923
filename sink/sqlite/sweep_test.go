package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

// sweepsIn names the variable that makes the test binary sweep until it is killed.
const sweepsIn = "BULK_SQLITE_TEST_SWEEPS"

// sweepForever says so when it has swept a link, and goes no further.
func sweepForever(path string) {
	store, err := Open(context.Background(), path)
	if err == nil {
		_, err = store.Sweep(context.Background(), atOnce, func(sink.Swept) error {
			fmt.Println("sweeping")
			_, err := io.Copy(io.Discard, os.Stdin)
			return err
		})
	}
	panic(err)
}

// atOnce are the options of a sweep that marks and deletes at once.
var atOnce = sink.SweepOptions{AsOf: asOf}

// A process is killed in the middle of a sweep: its locks go with it, and the next sweep does the
// rest.
func TestSweepKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	filled(t, path, makeLinks("w", 0, 2*sweepPage+10))
	execAll("UPDATE links SET expires_at = '2000-01-01 00:00:00'")(t, path)
	cmd, lines := started(t, sweepsIn+"="+path)
	if !lines.Scan() {
		t.Fatal("the process does not sweep")
	}
	store := open(t, path)
	_, err := store.Sweep(context.Background(), atOnce, nil)
	if !errors.Is(err, sink.ErrSweeping) || !strings.Contains(err.Error(), fmt.Sprint("process ", cmd.Process.Pid)) {
		t.Errorf("error %v", err)
	}
	noError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	swept, err := store.Sweep(context.Background(), atOnce, nil)
	if err != nil || swept.Deleted != sweepPage+10 {
		t.Errorf("%+v, %v", swept, err)
	}
	if n := len(dump(t, path)); n != 0 {
		t.Errorf("%d links stay", n)
	}
}

// Times that others wrote, in whatever form, are read as the law says.
func TestSweepFormsOfTimes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	filled(t, path, makeLinks("w", 0, 1))
	store := open(t, path)
	for text, dead := range map[string]bool{
		"2025-01-02 03:04:05": true, "2025-01-02 03:04:06": false, "2025-01-02 03:04:05.000000": true, "2025-01-02 03:04:05.000001": false,
		"2025-01-02T03:04:05Z": true, "2025-01-02T03:04:06Z": false, "2025-01-02T17:04:05+14:00": true, "2025-01-02T17:04:06+14:00": false,
		"2025-01-01T15:04:05-12:00": true, "2025-01-01T15:04:06-12:00": false, "soon": false, "": false, "1735787045": false,
	} {
		plain(t, path, func(db *sql.DB) {
			_, err := db.Exec("UPDATE links SET status = NULL, marked_at = NULL, expires_at = ?", text)
			noError(t, err)
		})
		out, err := store.Sweep(context.Background(), sink.SweepOptions{AsOf: time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC), Grace: time.Hour}, nil)
		if err != nil || out.Marked != map[bool]int64{true: 1}[dead] {
			t.Errorf("%q: %+v, %v", text, out, err)
		}
	}
}

// A file with the name of the lock of a sweep that is something else is not changed, and links that a
// table refers to are not swept.
func TestSweepRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	filled(t, path, makeLinks("w", 0, 10))
	execAll("UPDATE links SET expires_at = '2000-01-01 00:00:00'")(t, path)
	store := open(t, path)
	noError(t, os.WriteFile(path+sweepSuffix, []byte("broom"), 0o666))
	if _, err := store.Sweep(context.Background(), atOnce, nil); err == nil || !strings.Contains(err.Error(), "is not the lock file") {
		t.Errorf("error %v", err)
	}
	if is, err := os.ReadFile(path + sweepSuffix); err != nil || string(is) != "broom" {
		t.Errorf("%q, %v", is, err)
	}
	noError(t, os.Remove(path+sweepSuffix))
	execAll("CREATE TABLE clicks (w TEXT, c TEXT, FOREIGN KEY (w, c) REFERENCES links)")(t, path)
	if _, err := store.Sweep(context.Background(), atOnce, nil); err == nil || !strings.Contains(err.Error(), "table clicks has a foreign key") {
		t.Errorf("error %v", err)
	}
	if n := len(dump(t, path)); n != 10 {
		t.Errorf("%d links stay", n)
	}
}
