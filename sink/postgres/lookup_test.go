package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
	"golang.org/x/sync/errgroup"
)

// However many lookups there are, maxIdle of them have a connection at a time;
// one that is cancelled while it waits for its turn says why.
func TestLookupsTakeTurns(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dsn := server.Database(t)
	links := generated(0, 1)
	prepare(t, dsn, links)
	s := openStore(t, dsn, Options{RetryFor: -1})
	session := locked(t, s, "demo", sink.LockOptions{})
	look := func(ctx context.Context, visit func(sink.Found) error) error {
		l := &links[0]
		return session.Lookup(ctx, []sink.Probe{{Workspace: l.Workspace, Code: l.Code, Key: l.Key, Canonical: l.Canonical}}, visit)
	}
	in, out := make(chan struct{}), make(chan struct{})
	var g errgroup.Group
	for range maxIdle {
		g.Go(func() error {
			return look(ctx, func(sink.Found) error { in <- struct{}{}; <-out; return nil })
		})
	}
	for range maxIdle {
		<-in
	}
	cause := errors.New("enough")
	over, cancel := context.WithCancelCause(ctx)
	waiting := make(chan error)
	go func() {
		waiting <- look(over, func(sink.Found) error { return errors.New("one too many") })
	}()
	time.AfterFunc(100*time.Millisecond, func() { cancel(cause) }) // by then it would have looked
	if err := <-waiting; !errors.Is(err, cause) {
		t.Errorf("while all have one: %v", err)
	}
	close(out)
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	found := 0
	if err := look(ctx, func(sink.Found) error { found++; return nil }); err != nil || found != 1 {
		t.Errorf("afterwards: found %d, %v", found, err)
	}
}
