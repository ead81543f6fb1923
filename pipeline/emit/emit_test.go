package emit

import (
	"context"
	"errors"
	"testing"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/sink"
)

// A store that is being loaded when the rest cannot be read learns of it: it does not
// take the links so far for all.
func TestLoadIsBrokenOff(t *testing.T) {
	cause := errors.New("disk on fire")
	for _, end := range []error{nil, cause} {
		ctx, cancel := context.WithCancelCause(t.Context())
		loads := make(chan *piece, 1)
		loads <- &piece{bucket: &sharedBucket{Bucket: new(extsort.Bucket)}, chunk: &chunk{links: make([]sink.Link, 3)}}
		if err := ended(loads, end); err != end {
			t.Errorf("ended with %v, not %v", err, end)
		}
		var got error
		n := 0
		for links, err := range new(emitter).chunks(ctx, loads) {
			n, got = n+len(links), err
			if end != nil {
				select {
				case <-loads:
					t.Error("the links have an end")
				default:
				}
				cancel(end) // as the group does when it has the error
			}
		}
		if n != 3 || got != end {
			t.Errorf("%d links, and then %v, where %v ended them", n, got, end)
		}
		cancel(nil)
	}
}
