package source

import (
	"errors"
	"testing"
)

// What ends a worker ends the Read, be it no error that has a place in the input; the
// first in the input otherwise.
func TestShareReturnsErrors(t *testing.T) {
	odd, early, late := errors.New("odd"), &inputError{1, errors.New("early")}, &inputError{2, errors.New("late")}
	for _, tt := range []struct {
		of   []error // each worker
		want error
	}{{[]error{nil, nil}, nil}, {[]error{late, nil, early}, early}, {[]error{nil, odd}, odd}, {[]error{late, odd, early}, odd}} {
		r := &reading{in: &Input{src: &window{}}, ctx: t.Context(), workers: len(tt.of)}
		if err := r.share(func(b *batcher) error { return tt.of[b.worker] }); err != tt.want {
			t.Errorf("%v: got %v", tt.of, err)
		}
	}
}
