package intake

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
)

// Others counts the URLs that the accepted rows are, and would be under other profiles. Each accepted
// row is filed once for each of them: the group is the number of the profile, the key the beginning of
// the hash of URL and workspace, and the content the url_key. The profile of the run comes last.
type Others struct {
	Profiles []canon.Profile
	Sorter   extsort.Config // all but the order
}

func (o *Others) newSorter() *extsort.Sorter {
	o.Sorter.CompareGroups = cmp.Compare[uint32]
	o.Sorter.Compare = bytes.Compare
	return extsort.New(o.Sorter)
}

// fileOthers files a row that has this hash under the profile of the run. A URL that another profile
// refuses is none.
func (w *worker) fileOthers(original, workspace []byte, h codegen.Hash) {
	for n := range w.cfg.Others.Profiles {
		var err error
		if w.other, err = w.cfg.Others.Profiles[n].Append(w.other[:0], original); err != nil {
			continue
		}
		w.fileOther(n, w.hasher.SumIdentity(w.other, workspace, w.params.Parts, 0))
	}
	w.fileOther(len(w.cfg.Others.Profiles), h)
}

func (w *worker) fileOther(n int, h codegen.Hash) {
	key := h.Key()
	copy(w.others.Reserve(uint32(n), binary.BigEndian.Uint64(key[:]), len(key)), key[:])
}

// CountOthers returns how many different URLs there are, and how many there would be under each
// profile of Config.Others.
func (r *Rows) CountOthers(ctx context.Context) (urls int64, others []int64, err error) {
	counts := make([]int64, r.profiles+1)
	at := r.others.Cursor(ctx, 0)
	defer at.Close()
	var last []byte
	group := uint32(0)
	for at.Next() {
		if last == nil || at.Group() != group || !bytes.Equal(at.Record(), last) {
			counts[at.Group()]++
			group, last = at.Group(), append(last[:0], at.Record()...)
		}
	}
	return counts[r.profiles], counts[:r.profiles], at.Err()
}
