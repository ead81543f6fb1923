package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/linkforge/bulk/sink"
)

// sweepPage is the number of links that one transaction of a sweep marks and deletes.
const sweepPage = 10_000

// What is to do with a link.
type todo int

const (
	nothing  todo = iota
	toMark        // it is dead
	toAge         // somebody else marked it
	toDelete      // its mark is old enough
)

// A sweeping is one call of Sweep.
type sweeping struct {
	opts sink.SweepOptions
	cut  time.Time // marks that are not after it are old enough
	out  sink.Sweeping

	read, mark, delete *stmt
	marked, deleted    []sink.Swept // in the open transaction
	flagged            string       // the last workspace of which it has said that it has rules
}

// A due link has something to do.
type due struct{ workspace, code, canonical string }

// Sweep implements sink.Store. It reads the table in its order, without a transaction that others
// wait for, and collects links that have something to do: a page. In a transaction it asks for
// each of them again.
func (s *Store) Sweep(ctx context.Context, opts sink.SweepOptions, visit func(sink.Swept) error) (out sink.Sweeping, err error) {
	if err := s.look(ctx, func(*conn) error { return nil }); err != nil { // Lock would create the file
		return out, err
	}
	f, err := s.lockSweep(ctx)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := &sweeping{opts: opts, cut: opts.AsOf.Add(-opts.Grace)}
	began := time.Now()
	locked, err := s.Lock(ctx, nil, sink.LockOptions{NoWait: true})
	if held, ok := errors.AsType[*heldError](err); ok {
		err = s.look(ctx, func(c *conn) error { return w.busy(ctx, c, held.holder) })
	} else if err == nil {
		defer func() { err = errors.Join(err, locked.Close()) }()
		err = locked.(*session).write(ctx, func(c *conn) error { return w.all(ctx, c, visit) })
	}
	if err == nil && opts.AtLeast > 0 {
		_, err = fmt.Fprintf(f, lastSweep, began.UTC().Format(time.RFC3339Nano), began.Add(opts.AtLeast).UTC().Format(time.RFC3339Nano))
	}
	return w.out, err
}

// A sweep that lets no other begin says so in its lock file, in the second line, when it has ended
// well.
const lastSweep = "a sweep began at %s and lets no other begin before %s\n"

// lockSweep takes the lock of a sweep.
func (s *Store) lockSweep(ctx context.Context) (*os.File, error) {
	f, err := lockFile(ctx, s.path+sweepSuffix, sink.LockOptions{NoWait: true})
	if held, ok := errors.AsType[*heldError](err); ok {
		return nil, fmt.Errorf("%s: %w: %s", held.path, sink.ErrSweeping, held.holder)
	}
	if err != nil {
		return nil, err
	}
	_, last, _ := strings.Cut(holder(f), "\n")
	var began, until string
	_, _ = fmt.Sscanf(last, lastSweep, &began, &until) // blank if it does not say so
	if time.Now().Before(anyTime(until)) {
		return nil, errors.Join(fmt.Errorf("%s: %w", s.path, sink.SweepsNext(anyTime(began), anyTime(until))), f.Close())
	}
	return f, sign(f)
}

// todo is what is to do with a link.
func (w *sweeping) todo(r *sink.Rules) todo {
	isMarked := r.Status == sink.Expired || r.Status == sink.Deleted
	switch {
	case (r.Status == "" || r.Status == sink.Active) && !r.Live(w.opts.AsOf):
		return toMark
	case isMarked && r.Marked.IsZero():
		return toAge
	case isMarked && !r.Marked.After(w.cut):
		return toDelete
	}
	return nothing
}

// errPage ends the query of a page.
var errPage = errors.New("the page is full")

// page returns the next links that have something to do, at most n. The condition passes over
// most others: a time that is due begins, in whatever form, with a date of at most the next day.
func (w *sweeping) page(ctx context.Context, c *conn, workspace, code string, n int) (page []due, err error) {
	later := stamp(w.opts.AsOf.Add(48 * time.Hour))
	if len(later) > len(timeForm) { // after the year 9999
		later = ":" // which is after all digits
	}
	where, args := "", []any{workspace, code, later}
	if w.opts.Workspace != "" { // without the code, each page would be read from the beginning of the workspace
		where, args = " AND workspace_id = ?4 AND short_code > ?2", append(args, w.opts.Workspace)
	}
	var r sink.Rules
	rows := 0
	err = c.query("look for links to sweep", "SELECT workspace_id, short_code, canonical_url, "+rulesColumns+` FROM links
		WHERE (workspace_id, short_code) > (?1, ?2) AND (expires_at < ?3 OR ifnull(access_count, 0) >= max_uses OR status IN ('EXPIRED', 'DELETED'))`+where+`
		ORDER BY workspace_id, short_code`, args, func(q *stmt) error {
		if rows++; rows%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if q.rules(&r, 3); w.todo(&r) == nothing {
			return nil
		}
		if page = append(page, due{q.string(0), q.string(1), q.string(2)}); len(page) == n {
			return errPage
		}
		return nil
	})
	if err == errPage {
		err = nil
	}
	return page, err
}

// busy names the workspaces that have something to do, all of which are locked.
func (w *sweeping) busy(ctx context.Context, c *conn, holder string) error {
	workspace, code := w.opts.Workspace, ""
	for {
		page, err := w.page(ctx, c, workspace, code, 1)
		if err != nil || len(page) == 0 {
			return err
		}
		w.out.Busy++
		if w.opts.Busy != nil {
			w.opts.Busy(page[0].workspace, holder)
		}
		workspace = page[0].workspace + "\x01" // no text is between the two
	}
}

// all does all pages.
func (w *sweeping) all(ctx context.Context, c *conn, visit func(sink.Swept) error) error {
	if err := c.referred(); err != nil {
		return err
	}
	q, err := c.prepareAll("sweep links", "SELECT "+rulesColumns+" FROM links WHERE workspace_id = ? AND short_code = ?",
		"UPDATE links SET status = ?3, marked_at = ?4 WHERE workspace_id = ?1 AND short_code = ?2", "DELETE FROM links WHERE workspace_id = ? AND short_code = ?")
	defer q.finalize()
	if err != nil {
		return err
	}
	w.read, w.mark, w.delete = q[0], q[1], q[2]
	workspace, code := w.opts.Workspace, ""
	for {
		page, err := w.page(ctx, c, workspace, code, sweepPage)
		if err != nil || len(page) == 0 {
			return err
		}
		workspace, code = page[len(page)-1].workspace, page[len(page)-1].code
		w.marked, w.deleted = w.marked[:0], w.deleted[:0]
		if err := c.transact("sweep links", func() error {
			for _, l := range page {
				if err := w.link(c, l); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		w.out.Marked += int64(len(w.marked))
		w.out.Deleted += int64(len(w.deleted))
		for _, l := range slices.Concat(w.marked, w.deleted) {
			if visit == nil {
				break
			}
			if err := visit(l); err != nil {
				return err
			}
		}
	}
}

// link does what is to do with a link.
func (w *sweeping) link(c *conn, l due) error {
	of := func(q *stmt) *stmt {
		q.bindText(1, []byte(l.workspace))
		q.bindText(2, []byte(l.code))
		return q
	}
	there, err := of(w.read).step()
	if err != nil || !there {
		return err
	}
	var r sink.Rules
	w.read.rules(&r, 0)
	status := r.Status
	w.read.reset()
	do := w.todo(&r)
	if do == toMark {
		status = sink.Expired
		w.marked = append(w.marked, sink.Swept{Workspace: l.workspace, Code: l.code, Canonical: l.canonical, Status: status})
	}
	if do == toMark || do == toAge {
		of(w.mark).bindText(3, []byte(status))
		w.mark.bindText(4, []byte(stamp(w.opts.AsOf)))
		if _, err := w.mark.step(); err != nil {
			return err
		}
		if w.flagged != l.workspace {
			if err := c.setRules(l.workspace); err != nil {
				return err
			}
			w.flagged = l.workspace
		}
	}
	if do == nothing || do != toDelete && w.opts.Grace > 0 {
		return nil
	}
	w.deleted = append(w.deleted, sink.Swept{Workspace: l.workspace, Code: l.code, Canonical: l.canonical, Status: status, Deleted: true})
	_, err = of(w.delete).step()
	return err
}
