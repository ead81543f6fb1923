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
	r.byCode, err = r.c.prepare("look up codes", "SELECT url_key, canonical_url, run_id, "+r.c.since2("kind IS 'alias'")+" FROM links WHERE workspace_id = ? AND short_code = ?")
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

// Lookup implements sink.Session. It looks up each probe by its code, and then by its key
// unless the code has led to its URL. That is at most two descents of a b-tree, mostly over
// pages that are in the cache from the probe before. Among 3 million links it takes 1.2 µs of
// processor time if the link exists, and 1.6 µs if it does not.
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

// lookup answers the probes. The caller has begun a transaction, so that not every probe locks.
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

// code visits the link with the probe's code, and reports whether it is the link of the
// probe's URL.
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
	return same, visit(sink.Found{Probe: i, Same: same, Alias: q.int(3) != 0, Code: p.Code, Canonical: canonical, Run: int32(q.int(2))})
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
	return visit(sink.Found{Probe: i, Same: true, Code: code, Canonical: canonical, Run: int32(q.int(3))})
}

// damaged is the error for a link that has the key of another URL.
func (r *reader) damaged(p *sink.Probe, workspace, code, canonical []byte) error {
	return fmt.Errorf("%s: the store is damaged: link %q in workspace %q has the url_key %x of %q in workspace %q, but its canonical URL is %q",
		r.c.path, code, workspace, p.Key, p.Canonical, p.Workspace, canonical)
}
