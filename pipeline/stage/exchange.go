package stage

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/zeebo/xxh3"
)

// An exchange file has the records that a task of Map made, one stretch for each shard, and where these
// are:
//
//	stretch of shard 0 | stretch of shard 1 | … | index of shard 0 | index of shard 1 | …
//	index: offset 8 | bytes 8 | XXH3 of the stretch 8
//
// A stretch has the records in their order. Before the first record, and where the workspace changes, it
// has the workspace:
//
//	0 | length uvarint | workspace
//	length + 1 uvarint | key 8 | record
//
// Numbers are little-endian. The exchange of an engine gets the same stretches, in chunks.
type exchange struct {
	to        io.Writer // the file, or chunks
	name      string    // of the file
	shards    int
	index     []byte
	sum       *xxh3.Hasher
	size      int64
	offset    int64 // of the stretch
	workspace []byte
	buf       []byte
	of        byte
	total     uint64 // of all records, as of recordSum
}

// recordSum is what a record adds to the sum of all, which does not depend on their order: what Map sent must
// be what Reduce got.
func recordSum(of byte, workspace []byte, key uint64, rec []byte) uint64 {
	return xxh3.HashSeed(rec, xxh3.HashSeed(workspace, key+uint64(of)))
}

const indexEntry = 24

// exchange begins the exchange of a task of Map: of records, or of links. It writes a file, or chunks if
// there is an engine.
func (a *attempt) exchange(ext string, of byte, emit Emit) (*exchange, error) {
	x := &exchange{shards: a.j.Shards(), sum: xxh3.New(), of: of}
	if emit != nil {
		x.to = &chunks{emit: emit, of: of, all: a.n == 0}
		return x, nil
	}
	f, name, err := a.create(ext)
	x.to, x.name = f, name
	return x, err
}

// shard is the number of the shard whose stretch is being written.
func (x *exchange) shard() int { return len(x.index) / indexEntry }

// next ends the stretch.
func (x *exchange) next() error {
	x.index = binary.LittleEndian.AppendUint64(x.index, uint64(x.offset))
	x.index = binary.LittleEndian.AppendUint64(x.index, uint64(x.size-x.offset))
	x.index = binary.LittleEndian.AppendUint64(x.index, x.sum.Sum64())
	x.sum.Reset()
	x.offset, x.workspace = x.size, nil
	if c, ok := x.to.(*chunks); ok {
		return c.next()
	}
	return nil
}

// add adds a record to the stretch.
func (x *exchange) add(workspace []byte, key uint64, rec []byte) error {
	x.buf = x.buf[:0]
	if x.workspace == nil || string(workspace) != string(x.workspace) {
		x.workspace = append(x.workspace[:0], workspace...)
		x.buf = appendMark(x.buf, workspace)
	}
	x.buf = binary.AppendUvarint(x.buf, uint64(len(rec))+1)
	x.buf = append(binary.LittleEndian.AppendUint64(x.buf, key), rec...)
	_, _ = x.sum.Write(x.buf) // it does not fail
	x.size += int64(len(x.buf))
	x.total += recordSum(x.of, workspace, key, rec)
	_, err := x.to.Write(x.buf)
	return err
}

func appendMark(dst, workspace []byte) []byte {
	return append(binary.AppendUvarint(append(dst, 0), uint64(len(workspace))), workspace...)
}

// finish ends the last stretches, after an error if there was one. The file is none if there is an engine.
// The digest is that of the content, and has no part in how it is written.
func (x *exchange) finish(err error) (w File, digest string, _ error) {
	for err == nil && x.shard() < x.shards {
		err = x.next()
	}
	if f, ok := x.to.(*file); ok {
		if err == nil {
			_, err = f.Write(x.index)
		}
		w, err = f.written(x.name, err)
	}
	return w, fmt.Sprintf("%016x", xxh3.Hash(x.index)), err
}

// readStretch visits what a stretch, or a piece of it, has. It is valid during the call.
func readStretch(data []byte, workspace func(name []byte), visit func(key uint64, rec []byte)) {
	for len(data) > 0 {
		length, n := binary.Uvarint(data)
		if data = data[n:]; length == 0 {
			length, n = binary.Uvarint(data)
			workspace(data[n : n+int(length)])
			data = data[n+int(length):]
			continue
		}
		end := 8 + int(length) - 1
		visit(binary.LittleEndian.Uint64(data), data[8:end:end])
		data = data[end:]
	}
}

// stretch reads the stretch of a shard in an exchange file.
func (j *Job) stretch(f File, shard int) (data []byte, err error) {
	defer func() { err = j.unusable(f, err) }()
	h, err := os.Open(j.path(f.Name))
	if err != nil {
		return nil, err
	}
	defer h.Close()
	var entry [indexEntry]byte
	if _, err := h.ReadAt(entry[:], f.Size-int64(indexEntry*(j.Shards()-shard))); err != nil {
		return nil, err
	}
	offset, size := binary.LittleEndian.Uint64(entry[:]), binary.LittleEndian.Uint64(entry[8:])
	if offset+size < offset || offset+size > uint64(f.Size) {
		return nil, errDamaged
	}
	data = make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(h, int64(offset), int64(size)), data); err != nil {
		return nil, err
	}
	if xxh3.Hash(data) != binary.LittleEndian.Uint64(entry[16:]) {
		return nil, fmt.Errorf("%w: shard %d has another digest than was written", errDamaged, shard)
	}
	return data, nil
}

// A rejectFile has rejects in the order of their places, as of record.AppendReject:
//
//	key 8 | length uvarint | reject
type rejectFile struct {
	*file
	buf []byte
}

func (r *rejectFile) add(key uint64, rec []byte) error {
	r.buf = binary.AppendUvarint(binary.LittleEndian.AppendUint64(r.buf[:0], key), uint64(len(rec)))
	r.buf = append(r.buf, rec...)
	_, err := r.Write(r.buf)
	return err
}
