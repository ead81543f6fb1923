package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/linkforge/bulk/sink"
)

// A reader is a connection for one Lookup at a time.
type reader struct {
	c             *conn
	byCode, byKey *stmt
}

// reader takes a free reader, or opens one.
func (s *session) reader(ctx context.Context) (*reader, error) {
	if s.c == nil {
		return nil, errClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.readers); n > 0 {
		r := s.readers[n-1]
		s.readers = s.readers[:n-1]
		return r, nil
	}
	c, err := s.store.existing(ctx)
	if err != nil {
		return nil, err
	}
	r := &reader{c: c}
	if err := r.prepare(); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *reader) prepare() (err error) {
	r.byCode, err = r.c.prepare("look up codes", "SELECT url_key, canonical_url, run_id FROM links WHERE workspace_id = ? AND short_code = ?")
	if err == nil {
		r.byKey, err = r.c.prepare("look up keys", "SELECT workspace_id, short_code, canonical_url, run_id FROM links WHERE url_key = ?")
	}
	return err
}

func (r *reader) finalize() {
	for _, q := range []*stmt{r.byCode, r.byKey} {
		if q != nil {
			q.finalize()
		}
	}
}

func (r *reader) close() error {
	r.finalize()
	return r.c.close()
}

// Lookup implements sink.Session. It asks for each probe by its code, and then
// by its key, unless the code led to it: at most two descents of a b-tree, over pages
// that the probe before has left in the cache. Among 3 million links this takes 1.2 µs
// of processor time where the link is there, and 1.6 µs where it is not.
func (s *session) Lookup(ctx context.Context, probes []sink.Probe, visit func(sink.Found) error) error {
	if err := context.Cause(ctx); err != nil || len(probes) == 0 {
		return err
	}
	r, err := s.reader(ctx)
	if err != nil {
		return err
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.readers = append(s.readers, r)
	}()
	return r.c.during(ctx, func() error {
		if err := r.c.exec("look up", "BEGIN"); err != nil {
			return err
		}
		return errors.Join(r.lookup(ctx, probes, visit), r.c.rollback())
	})
}

// lookup answers the probes in a transaction, so that each need not lock.
func (r *reader) lookup(ctx context.Context, probes []sink.Probe, visit func(sink.Found) error) error {
	for i := range probes {
		if i%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		same, err := r.code(i, &probes[i], visit)
		if err == nil && !same && probes[i].Canonical != nil {
			err = r.key(i, &probes[i], visit)
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// code visits the owner of the probe's code, and reports whether it is the link
// of the probe's URL.
func (r *reader) code(i int, p *sink.Probe, visit func(sink.Found) error) (same bool, err error) {
	q := r.byCode
	q.bindText(1, p.Workspace)
	q.bindText(2, p.Code)
	if more, err := q.step(); err != nil || !more {
		return false, err
	}
	defer q.reset()
	canonical := q.bytes(1)
	if p.Canonical != nil && bytes.Equal(q.bytes(0), p.Key[:]) {
		if same = bytes.Equal(canonical, p.Canonical); !same {
			return false, r.damaged(p, p.Workspace, p.Code, canonical)
		}
	}
	return same, visit(sink.Found{Probe: i, Same: same, Code: p.Code, Canonical: canonical, Run: runOf(q, 2)})
}

// key visits the link of the probe's URL.
func (r *reader) key(i int, p *sink.Probe, visit func(sink.Found) error) error {
	q := r.byKey
	q.bindBlob(1, p.Key[:])
	if more, err := q.step(); err != nil || !more {
		return err
	}
	defer q.reset()
	workspace, code, canonical := q.bytes(0), q.bytes(1), q.bytes(2)
	if !bytes.Equal(workspace, p.Workspace) || !bytes.Equal(canonical, p.Canonical) {
		return r.damaged(p, workspace, code, canonical)
	}
	return visit(sink.Found{Probe: i, Same: true, Code: code, Canonical: canonical, Run: runOf(q, 3)})
}

// damaged is the error of a link that has the key of another URL.
func (r *reader) damaged(p *sink.Probe, workspace, code, canonical []byte) error {
	return fmt.Errorf("%s: damaged: link %q in workspace %q has the url_key %x of %q in workspace %q, but is for %q",
		r.c.path, code, workspace, p.Key, p.Canonical, p.Workspace, canonical)
}
