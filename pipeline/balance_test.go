package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/pipeline/settle"
	"github.com/linkforge/bulk/sink"
)

// Books balance if they say what was read and written, and only then.
func TestBalance(t *testing.T) {
	for _, test := range []struct {
		settled sink.Counts
		written [3]int64
		rejects int64
		ok      bool
	}{
		{sink.Counts{}, [3]int64{}, 0, true},
		{sink.Counts{Created: 1}, [3]int64{}, 0, false},
		{sink.Counts{Read: 1}, [3]int64{}, 0, false},
		{sink.Counts{Rejected: 1}, [3]int64{}, 0, false},
		{sink.Counts{Created: 1, Existing: 2, Duplicate: 3, Rejected: 4}, [3]int64{1, 2, 3}, 4, false}, // none of which was read
	} {
		if err := balance(0, test.settled, test.written, test.rejects); (err == nil) != test.ok {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// Nor does a run with too many rejects get its name unless it has written all of them.
func TestBalanceOfRejects(t *testing.T) {
	for _, counted := range []int64{0, 1} {
		out := filepath.Join(t.TempDir(), "out")
		cfg, err := Config{Inputs: []string{"a.csv"}, Out: out, Workspace: "ws"}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		inputs := new(intake.Inputs) // there are none
		j := &job{cfg: &cfg}
		if err := j.read(t.Context(), inputs); err != nil {
			t.Fatal(err)
		}
		if j.out.dir, err = outdir.Claim(out, outdir.ClaimOptions{}); err != nil {
			t.Fatal(err)
		}
		var tooMany *TooManyRejectsError
		err = j.refuse(t.Context(), sink.Run{Counts: sink.Counts{Rejected: counted}}, new(settle.Settlement))
		_, staterr := os.Stat(out)
		if named := staterr == nil; named != (counted == 0) || errors.As(err, &tooMany) != named || !named && !strings.Contains(err.Error(), "do not balance") {
			t.Errorf("%d rejects: %v, %v", counted, err, staterr)
		}
		if err := errors.Join(j.out.dir.Abandon(), j.rows.Close()); err != nil {
			t.Error(err)
		}
	}
}
