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
// Numbers are little-endian.
type exchange struct {
	*file
	shards    int
	index     []byte
	sum       *xxh3.Hasher
	offset    int64 // of the stretch
	workspace []byte
	buf       []byte
}

const indexEntry = 24

func newExchange(f *file, shards int) *exchange {
	return &exchange{file: f, shards: shards, sum: xxh3.New()}
}

// shard is the number of the shard whose stretch is being written.
func (x *exchange) shard() int { return len(x.index) / indexEntry }

// next ends the stretch.
func (x *exchange) next() {
	x.index = binary.LittleEndian.AppendUint64(x.index, uint64(x.offset))
	x.index = binary.LittleEndian.AppendUint64(x.index, uint64(x.size-x.offset))
	x.index = binary.LittleEndian.AppendUint64(x.index, x.sum.Sum64())
	x.sum.Reset()
	x.offset, x.workspace = x.size, nil
}

// add adds a record to the stretch.
func (x *exchange) add(workspace []byte, key uint64, rec []byte) error {
	x.buf = x.buf[:0]
	if x.workspace == nil || string(workspace) != string(x.workspace) {
		x.workspace = append(x.workspace[:0], workspace...)
		x.buf = append(binary.AppendUvarint(append(x.buf, 0), uint64(len(workspace))), workspace...)
	}
	x.buf = binary.AppendUvarint(x.buf, uint64(len(rec))+1)
	x.buf = append(binary.LittleEndian.AppendUint64(x.buf, key), rec...)
	_, _ = x.sum.Write(x.buf) // it does not fail
	_, err := x.Write(x.buf)
	return err
}

// finish ends the last stretches, and returns the digest of the content.
func (x *exchange) finish() (digest string, err error) {
	for x.shard() < x.shards {
		x.next()
	}
	_, err = x.Write(x.index)
	return fmt.Sprintf("%016x", xxh3.Hash(x.index)), err
}

// readStretch visits the records of a shard in an exchange file. They are valid during the call.
func (j *Job) readStretch(f File, shard int, workspace func(name []byte), visit func(key uint64, rec []byte)) error {
	data, err := j.stretch(f, shard)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
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
	return nil
}

func (j *Job) stretch(f File, shard int) ([]byte, error) {
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
		return nil, fmt.Errorf("it is damaged: %w", io.ErrUnexpectedEOF)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(h, int64(offset), int64(size)), data); err != nil {
		return nil, err
	}
	if xxh3.Hash(data) != binary.LittleEndian.Uint64(entry[16:]) {
		return nil, fmt.Errorf("it is damaged: shard %d has another digest than was written", shard)
	}
	return data, nil
}

// A rejectFile has rejects in the order of their places, as of record.AppendReject:
//
//	key 8 | length uvarint | reject
type rejectFile struct {
	*file
	sum *xxh3.Hasher
	buf []byte
}

func (r *rejectFile) add(key uint64, rec []byte) error {
	r.buf = binary.AppendUvarint(binary.LittleEndian.AppendUint64(r.buf[:0], key), uint64(len(rec)))
	r.buf = append(r.buf, rec...)
	_, _ = r.sum.Write(r.buf)
	_, err := r.Write(r.buf)
	return err
}
