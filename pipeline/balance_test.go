package pipeline

import (
	"testing"

	"github.com/linkforge/bulk/sink"
)

// Books balance if they say what was read and written, and only then.
func TestBalance(t *testing.T) {
	r := &run{inputs: new(inputs)} // that read nothing
	out := &written{rows: [3]int64{1, 2, 3}}
	for _, test := range []struct {
		settled sink.Counts
		out     *written
		rejects int64
		ok      bool
	}{
		{sink.Counts{}, new(written), 0, true},
		{sink.Counts{Created: 1}, new(written), 0, false},
		{sink.Counts{Read: 1}, new(written), 0, false},
		{sink.Counts{Rejected: 1}, new(written), 0, false},
		{sink.Counts{Created: 1, Existing: 2, Duplicate: 3, Rejected: 4}, out, 4, false}, // none of which was read
	} {
		if err := r.balance(test.settled, test.out, test.rejects); (err == nil) != test.ok {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
