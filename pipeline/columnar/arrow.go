package columnar

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"
)

const (
	mostFields  = 1 << 20 // of a schema, with those inside of others
	mostNesting = 64      // of fields in fields
	mostBuffer  = math.MaxInt32
	mostRows    = math.MaxInt32 // of a record batch
)

// A slot is the place of a member in a table of the format: 4 for the first, 6
// for the second (Schema.fbs, Message.fbs and File.fbs of Apache Arrow).
const (
	footerSchema, footerDictionaries, footerBatches      = 6, 8, 10
	messageType, messageHeader, messageBody              = 6, 8, 10
	batchLength, batchNodes, batchBuffers, batchVariadic = 4, 6, 8, 12
	dictionaryBatch                                      = 6
	schemaFields, schemaCustom                           = 6, 8
	fieldName, fieldTypeCode, fieldType                  = 4, 8, 10
	fieldChildren, fieldCustom                           = 14, 16
	unionTypes, timestampZone                            = 6, 6
	pairKey, pairValue                                   = 4, 6
)

// The header of a message is one of these.
const (
	headerSchema     = 1
	headerDictionary = 2
	headerBatch      = 3
)

const timestamp, union = 10, 14 // type codes of a field

// An ArrowReader reads the record batches of an IPC file or stream. It panics on some
// damage (see [Damage]).
type ArrowReader struct {
	schema *arrow.Schema
	file   *ipc.FileReader // nil: it is a stream
	stream *ipc.Reader
	alloc  *allocator
}

// Schema returns the schema.
func (r *ArrowReader) Schema() *arrow.Schema { return r.schema }

// Len returns how many batches a file has; 0: it is a stream.
func (r *ArrowReader) Len() int {
	if r.file == nil {
		return 0
	}
	return r.file.NumRecords()
}

// OpenArrow opens the IPC file in r, of size bytes. It panics on some damage (see
// [Damage]).
func OpenArrow(r io.ReaderAt, size int64) (*ArrowReader, error) {
	if err := checkArrowFile(r, size); err != nil {
		return nil, err
	}
	alloc := &allocator{Allocator: memory.NewGoAllocator()}
	f, err := ipc.NewFileReader(io.NewSectionReader(r, 0, size), ipc.WithAllocator(alloc))
	if err != nil {
		return nil, err
	}
	return &ArrowReader{schema: f.Schema(), file: f, alloc: alloc}, nil
}

// OpenArrowStream opens a stream, each message of which has passed [CheckArrowMessage].
func OpenArrowStream(r ipc.MessageReader) (*ArrowReader, error) {
	alloc := &allocator{Allocator: memory.NewGoAllocator()}
	s, err := ipc.NewReaderFromMessageReader(r, ipc.WithAllocator(alloc))
	if err != nil {
		return nil, err
	}
	return &ArrowReader{schema: s.Schema(), stream: s, alloc: alloc}, nil
}

// Read returns batch n of a file, or the next one of a stream, valid until the one after, or io.EOF.
func (r *ArrowReader) Read(n int) (arrow.Record, error) {
	r.alloc.taken = 0
	switch {
	case r.file == nil:
		return r.stream.Read()
	case n >= r.file.NumRecords():
		return nil, io.EOF
	}
	return r.file.Record(n)
}

// checkArrowFile checks the footer of an IPC file, and the metadata of every dictionary
// and record batch. The footer must list all of them.
func checkArrowFile(r io.ReaderAt, size int64) error {
	meta, err := footer(r, size, "ARROW1")
	if err != nil {
		return err
	}
	t := root(meta)
	if err := checkSchema(t, footerSchema); err != nil {
		return err
	}
	end := size - int64(len(meta)) - int64(4+len("ARROW1"))
	var blocks []block
	for _, list := range []struct {
		slot flatbuffers.VOffsetT
		what string
	}{{footerDictionaries, "dictionary"}, {footerBatches, "record batch"}} {
		for i, at := range elements(t, list.slot, 24) {
			offset, n, body := t.GetInt64(at), t.GetInt32(at+8), t.GetInt64(at+16)
			if err := checkBlock(r, end, offset, n, body); err != nil {
				return fmt.Errorf("%s %d: %w", list.what, i+1, err)
			}
			blocks = append(blocks, block{offset, offset + int64(n) + body})
		}
	}
	return checkListed(r, end, blocks)
}

// A block is where a message of a file lies.
type block struct{ start, end int64 }

// checkListed checks that the footer lists each message of the file once, in whatever order:
// the rows of one that it leaves out, or lists twice, would be lost or doubled in silence. The
// schema, which most writers put first, is in no list.
func checkListed(r io.ReaderAt, end int64, blocks []block) error {
	slices.SortFunc(blocks, func(a, b block) int { return cmp.Compare(a.start, b.start) })
	at := int64(8) // behind the magic word
	for i, b := range append(blocks, block{end, end}) {
		if i == 0 {
			var err error
			if at, err = afterSchema(r, b.start, at); err != nil {
				return err
			}
		}
		n, err := messageAt(r, b.start, at)
		switch {
		case err != nil:
			return err
		case b.start < at:
			return fmt.Errorf("its footer lists twice what begins at byte %d", b.start)
		case n > 0:
			return fmt.Errorf("its footer does not list what follows byte %d", at)
		}
		at = b.end
	}
	return nil
}

// afterSchema returns where the metadata end that begin at an offset, if they are before end. Polars 2
// writes the schema without its length: the next message ends it then.
func afterSchema(r io.ReaderAt, end, offset int64) (int64, error) {
	const shortest = 32 // of a schema
	n, err := messageAt(r, end, offset)
	if err != nil || n == 0 || n >= shortest || end-offset > MostMetadata {
		return offset + n, err
	}
	b, err := readAt(r, int(end-offset), offset)
	if err != nil {
		return 0, err
	}
	for at := 0; at+8 <= len(b); at += 8 {
		if binary.LittleEndian.Uint32(b[at:]) == math.MaxUint32 {
			return offset + int64(at), nil
		}
	}
	return end, nil
}

// messageAt returns how long the metadata of a message at an offset are, before end; 0 if
// there are only zeros, or a mark of the end.
func messageAt(r io.ReaderAt, end, offset int64) (int64, error) {
	if offset = (offset + 7) &^ 7; offset > end-8 {
		return 0, nil
	}
	b, err := readAt(r, 8, offset)
	if err != nil {
		return 0, err
	}
	n, prefix := binary.LittleEndian.Uint32(b), int64(4)
	if n == math.MaxUint32 {
		n, prefix = binary.LittleEndian.Uint32(b[4:]), 8
	}
	if n == 0 {
		return 0, nil
	}
	return prefix + int64(n), nil
}

// checkBlock checks a message of a file: its metadata with a prefix of 8 bytes
// (4 before version 0.15 of Arrow), and its body. All of it lies before end.
func checkBlock(r io.ReaderAt, end, offset int64, n int32, body int64) error {
	if offset < 0 || n < 8 || body < 0 || offset > end-int64(n) || body > end-int64(n)-offset {
		return fmt.Errorf("%d bytes of metadata and %d after them, from byte %d on, in a file of %d", n, body, offset, end)
	}
	if n > MostMetadata {
		return fmt.Errorf("%d bytes of metadata", n)
	}
	meta, err := readAt(r, int(n), offset)
	if err != nil {
		return err
	}
	prefix := 4
	switch binary.LittleEndian.Uint32(meta) {
	case 0:
		return errors.New("it is no Arrow message")
	case math.MaxUint32:
		prefix = 8
	}
	return checkMessage(meta[prefix:], body)
}

// CheckArrowMessage checks the metadata of a message of a stream. It returns how many
// bytes of body the message says it has; the stream may have fewer. It panics on some
// damage (see [Damage]).
func CheckArrowMessage(meta []byte) (body int64, err error) {
	t := root(meta)
	body = t.GetInt64Slot(messageBody, 0)
	return body, checkMessage(meta, body)
}

func checkMessage(meta []byte, body int64) error {
	if body < 0 || body > mostBuffer {
		return fmt.Errorf("a message with a body of %d bytes, where 0 to %d may be", body, mostBuffer)
	}
	switch t := root(meta); t.GetByteSlot(messageType, 0) {
	case headerSchema:
		return checkSchema(t, messageHeader)
	case headerDictionary:
		if dict, ok := member(t, messageHeader); ok {
			return checkBatch(dict, dictionaryBatch, body)
		}
	case headerBatch:
		return checkBatch(t, messageHeader, body)
	}
	return nil
}

// checkBatch checks the record batch in a slot of t against its body.
func checkBatch(t flatbuffers.Table, slot flatbuffers.VOffsetT, body int64) error {
	batch, ok := member(t, slot)
	if !ok {
		return errors.New("a batch without a description")
	}
	if rows := batch.GetInt64Slot(batchLength, 0); rows < 0 || rows > mostRows {
		return fmt.Errorf("a batch of %d rows", rows)
	}
	for _, node := range elements(batch, batchNodes, 16) {
		if values := batch.GetInt64(node); values < 0 || values > mostRows {
			return fmt.Errorf("an array of %d values", values)
		}
	}
	for _, buffer := range elements(batch, batchBuffers, 16) {
		offset, size := batch.GetInt64(buffer), batch.GetInt64(buffer+8)
		if size != 0 && (offset < 0 || size < 0 || offset > body || size > body-offset) {
			return fmt.Errorf("a buffer of %d bytes from byte %d on, in a body of %d", size, offset, body)
		}
	}
	buffers := int64(length(batch, batchBuffers))
	for _, variadic := range elements(batch, batchVariadic, 8) {
		if n := batch.GetInt64(variadic); n < 0 || n > buffers {
			return fmt.Errorf("an array of %d buffers, where there are %d", n, buffers)
		}
	}
	return nil
}

// checkSchema checks the schema in a slot of t: its fields and theirs.
func checkSchema(t flatbuffers.Table, slot flatbuffers.VOffsetT) error {
	schema, ok := member(t, slot)
	if !ok {
		return errors.New("there is no schema")
	}
	d := &description{left: mostNames + len(t.Bytes)}
	if err := d.metadata(schema, schemaCustom); err != nil {
		return err
	}
	return d.children(schema, schemaFields, 0, 0)
}

// A description counts what the decoder will hold of a schema. This may be far more than
// the bytes that describe it: several fields may share the bytes of a name or of metadata,
// and a field may even contain itself.
type description struct {
	fields int
	left   int // bytes that names, metadata, zones and unions may still take, of mostNames more than describe them
}

// children checks the fields in a slot of t. The names above them have path bytes.
func (d *description) children(t flatbuffers.Table, slot flatbuffers.VOffsetT, path, depth int) error {
	for _, at := range elements(t, slot, 4) {
		if depth > mostNesting {
			return fmt.Errorf("the schema has fields in fields, more than %d deep", mostNesting)
		}
		if d.fields++; d.fields > mostFields {
			return fmt.Errorf("the schema has more than %d fields", mostFields)
		}
		if err := d.field(table(t, at), path, depth); err != nil {
			return err
		}
	}
	return nil
}

// field checks a field. The names above it have path bytes.
func (d *description) field(field flatbuffers.Table, path, depth int) error {
	path += length(field, fieldName)
	err := d.take(path)
	if err == nil {
		err = d.metadata(field, fieldCustom)
	}
	if typ, ok := member(field, fieldType); ok && err == nil {
		switch field.GetByteSlot(fieldTypeCode, 0) {
		case union:
			err = d.take(4 * length(typ, unionTypes))
		case timestamp:
			err = d.take(length(typ, timestampZone))
		}
	}
	if err != nil {
		return err
	}
	return d.children(field, fieldChildren, path+len("."), depth+1)
}

// metadata checks the pairs of texts in a slot of t.
func (d *description) metadata(t flatbuffers.Table, slot flatbuffers.VOffsetT) error {
	for _, at := range elements(t, slot, 4) {
		pair := table(t, at)
		if err := d.take(16 + length(pair, pairKey) + length(pair, pairValue)); err != nil {
			return err
		}
	}
	return nil
}

func (d *description) take(n int) error {
	if d.left -= n; d.left < 0 {
		return fmt.Errorf("the names and metadata of its columns, some of which share theirs, take over %d bytes more than its description", mostNames)
	}
	return nil
}

func root(meta []byte) flatbuffers.Table {
	return flatbuffers.Table{Bytes: meta, Pos: flatbuffers.GetUOffsetT(meta)}
}

// member returns the table in a slot of t.
func member(t flatbuffers.Table, slot flatbuffers.VOffsetT) (flatbuffers.Table, bool) {
	at := t.Offset(slot)
	if at == 0 {
		return t, false
	}
	return table(t, t.Pos+flatbuffers.UOffsetT(at)), true
}

// table returns the table whose offset stands at a position of t's bytes.
func table(t flatbuffers.Table, at flatbuffers.UOffsetT) flatbuffers.Table {
	return flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(at)}
}

// elements yields the position in t's bytes of each element of the vector in a slot,
// which takes size bytes. It panics if there is no room for so many.
func elements(t flatbuffers.Table, slot flatbuffers.VOffsetT, size int) iter.Seq2[int, flatbuffers.UOffsetT] {
	return func(yield func(int, flatbuffers.UOffsetT) bool) {
		n := length(t, slot)
		if n > len(t.Bytes)/size {
			panic(errLength)
		}
		for i := range n {
			if !yield(i, t.Vector(flatbuffers.UOffsetT(t.Offset(slot)))+flatbuffers.UOffsetT(size*i)) {
				return
			}
		}
	}
}

// length returns how many elements, or bytes, the vector in a slot of t has.
func length(t flatbuffers.Table, slot flatbuffers.VOffsetT) int {
	at := t.Offset(slot)
	if at == 0 {
		return 0
	}
	return t.VectorLen(flatbuffers.UOffsetT(at))
}

// An allocator gives memory to the decoder of Arrow. It panics if a record batch would take
// more than MostBatch: how long a compressed buffer will be stands only in the buffer. One
// goroutine uses it.
type allocator struct {
	memory.Allocator
	taken int64 // since the last batch
}

// Allocate implements memory.Allocator.
func (a *allocator) Allocate(n int) []byte {
	a.take(n, 0)
	return a.Allocator.Allocate(n)
}

// Reallocate implements memory.Allocator.
func (a *allocator) Reallocate(n int, b []byte) []byte {
	a.take(n, len(b))
	return a.Allocator.Reallocate(n, b)
}

func (a *allocator) take(n, had int) {
	if n < 0 || n > mostBuffer {
		panic(fmt.Sprintf("a buffer of %d bytes", n))
	}
	if a.taken += int64(max(n-had, 0)); a.taken > MostBatch {
		panic(fmt.Sprintf("a record batch of more than %d bytes", int64(MostBatch)))
	}
}
