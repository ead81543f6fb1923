package stage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"

	"github.com/linkforge/bulk/pipeline/packed"
)

// A file of holders tells, in the order of workspaces and codes, which URL has which code. So that an ask
// for one code reads a few KB, its end is an index of every marksEvery'th:
//
//	entries | index as JSON (marks)
//	entry: number of the workspace uvarint | key 8, little-endian | code and canonical URL as of packed.AppendCell
type holders struct {
	*file
	index marks
	count int
	buf   []byte
}

const marksEvery = 64

// marks are the index of holders.
type marks struct {
	Workspaces [][]byte `json:"workspaces"` // by number
	Marks      []mark   `json:"marks"`
}

// A mark is where an entry lies.
type mark struct {
	Workspace int    `json:"w"`
	Key       uint64 `json:"k"`
	Offset    int64  `json:"o"`
}

// A table is a file of holders.
type table struct {
	File  File  `json:"file"`
	Index int64 `json:"index"` // its offset
}

func (h *holders) add(workspace []byte, key uint64, code, canonical []byte) error {
	w := len(h.index.Workspaces) - 1
	if w < 0 || !bytes.Equal(workspace, h.index.Workspaces[w]) {
		h.index.Workspaces = append(h.index.Workspaces, workspace)
		w++
	}
	if h.count%marksEvery == 0 {
		h.index.Marks = append(h.index.Marks, mark{w, key, h.size})
	}
	h.count++
	h.buf = binary.LittleEndian.AppendUint64(binary.AppendUvarint(h.buf[:0], uint64(w)), key)
	h.buf = packed.AppendCell(packed.AppendCell(h.buf, code), canonical)
	_, err := h.Write(h.buf)
	return err
}

func (h *holders) finish(name string, err error) (t table, _ error) {
	t.Index = h.size
	if err == nil {
		err = json.NewEncoder(h).Encode(&h.index)
	}
	t.File, err = h.written(name, err)
	return t, err
}

// A lookup asks files of holders, of which it keeps one open.
type lookup struct {
	j     *Job
	name  string
	f     *os.File
	index marks
}

func (l *lookup) close() {
	if l.f != nil {
		_ = l.f.Close() // it was only read
	}
	*l = lookup{j: l.j}
}

func (l *lookup) open(t *table) (err error) {
	if l.name == t.File.Name {
		return nil
	}
	l.close()
	if l.f, err = os.Open(l.j.path(t.File.Name)); err != nil {
		return err
	}
	l.name = t.File.Name
	data := make([]byte, t.File.Size-t.Index)
	if _, err = l.f.ReadAt(data, t.Index); err == nil {
		err = json.Unmarshal(data, &l.index)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", t.File.Name, err)
	}
	return err
}

// find returns the URL that has a code; nil: none has.
func (l *lookup) find(t *table, workspace []byte, key uint64, code string) (canonical []byte, err error) {
	if err := l.open(t); err != nil {
		return nil, err
	}
	compare := func(w int, k uint64) int {
		return cmp.Or(bytes.Compare(l.index.Workspaces[w], workspace), cmp.Compare(k, key))
	}
	marks := l.index.Marks
	i := sort.Search(len(marks), func(i int) bool { return compare(marks[i].Workspace, marks[i].Key) >= 0 })
	for i = max(i-1, 0); i < len(marks) && compare(marks[i].Workspace, marks[i].Key) <= 0; i++ {
		end := t.Index
		if i+1 < len(marks) {
			end = marks[i+1].Offset
		}
		data := make([]byte, end-marks[i].Offset)
		if _, err := l.f.ReadAt(data, marks[i].Offset); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: %w", t.File.Name, err)
		}
		for len(data) > 0 {
			w, n := binary.Uvarint(data)
			k := binary.LittleEndian.Uint64(data[n:])
			var has, url []byte
			has, data = packed.CutCell(data[n+8:])
			if url, data = packed.CutCell(data); compare(int(w), k) == 0 && string(has) == code {
				return bytes.Clone(url), nil
			}
		}
	}
	return nil, nil
}
