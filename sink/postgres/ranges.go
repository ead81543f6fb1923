package postgres

import (
	"bytes"
	"cmp"
	"encoding/binary"
)

// codeRanges makes the parameters of codesInRanges: workspaces, lowest and highest codes,
// ascending. A probe continues the range of the one before if the workspace is the same
// and the key is near, or the code is the same, or it has no URL and such probes are dense.
// Few keys are smaller than the one before (hashes with fewer digits, kept codes). They say nothing about the distance: each starts a range,
// which the next ordinary key continues.
func (l *lookup) codeRanges() [][]byte {
	var workspaces, low, high array
	var last uint64 // highest key in the workspace so far
	for i := range l.probes {
		p := &l.probes[i]
		key := cmp.Or(p.Position, binary.BigEndian.Uint64(p.Key[:]))
		together := i > 0 && bytes.Equal(p.Workspace, l.probes[i-1].Workspace) &&
			(p.Canonical != nil && key >= last && key-last <= l.near || p.Canonical == nil && l.dense || bytes.Equal(p.Code, l.probes[i-1].Code))
		if !together {
			if i > 0 {
				high.add(l.probes[i-1].Code)
				if !bytes.Equal(p.Workspace, l.probes[i-1].Workspace) {
					last = 0
				}
			}
			workspaces.add(p.Workspace)
			low.add(p.Code)
		}
		last = max(last, key)
	}
	high.add(l.probes[len(l.probes)-1].Code)
	return [][]byte{workspaces.encode(textOID), low.encode(textOID), high.encode(textOID)}
}

// keyRanges makes the parameters of keysInRanges for the probes with the indexes in order,
// or returns nil if there are none.
func (l *lookup) keyRanges(order []int) [][]byte {
	if len(order) == 0 {
		return nil
	}
	var low, high array
	for n, i := range order {
		key := l.probes[i].Key[:]
		if n == 0 {
			low.add(key)
			continue
		}
		last := l.probes[order[n-1]].Key[:]
		if binary.BigEndian.Uint64(key)-binary.BigEndian.Uint64(last) > l.near {
			high.add(last)
			low.add(key)
		}
	}
	high.add(l.probes[order[len(order)-1]].Key[:])
	return [][]byte{low.encode(uuidOID), high.encode(uuidOID)}
}

// Element types of arrays, from pg_type.
const (
	boolOID        = 16
	int8OID        = 20
	textOID        = 25
	tidOID         = 27
	timestamptzOID = 1184
	uuidOID        = 2950
)

// An array collects the elements of an array parameter. None is NULL.
type array struct {
	n    uint32
	data []byte
}

func (a *array) add(element []byte) {
	a.n++
	a.data = appendBytes(a.data, element)
}

// encode returns the array in binary format: the number of dimensions, whether there are
// NULLs, the type, the size and first index of the one dimension, the elements.
func (a *array) encode(oid uint32) []byte {
	out := make([]byte, 0, 20+len(a.data))
	for _, word := range []uint32{1, 0, oid, a.n, 1} {
		out = binary.BigEndian.AppendUint32(out, word)
	}
	return append(out, a.data...)
}
