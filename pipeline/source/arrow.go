package source

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/linkforge/bulk/pipeline/columnar"
)

// openArrow opens an IPC file, or else a stream. The schema gives the columns: one for each
// field. A field of a struct is named by its path, with dots.
func (in *Input) openArrow(file bool) error {
	in.Format = "arrow"
	var r *columnar.ArrowReader
	open := func() error {
		return in.safely(func() (err error) {
			if !file {
				r, err = columnar.OpenArrowStream(&messages{w: in.src})
				return err
			}
			at, err := in.random()
			if err == nil { // batches are read by the footer, as a dictionary may stand after them
				r, err = columnar.OpenArrow(at, at.size)
			}
			return err
		})
	}
	if err := open(); err != nil {
		return err
	}
	var fields []field
	for i, f := range r.Schema().Fields() {
		fields = in.addFields(fields, f, "", []int{i})
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	in.read = func(rd *reading) error {
		if in.info != nil { // the file was closed
			if err := open(); err != nil {
				return &ReadError{Err: err}
			}
		}
		return rd.readTables(1, in.recordBatches(r, fields))
	}
	return in.setColumns(names)
}

// messages reads the messages of a stream. The library's own reader would allocate as much
// memory as a message claims to need, and take any EOF for the end: a stream may end without
// a mark, but not inside a message.
type messages struct {
	w    *window
	body []byte // of the message; the library copies what it needs
}

// errCut is the error of a stream that ends inside a message.
var errCut = errors.New("it ends too early: it is not whole")

// Message returns the next message, or io.EOF. The message is valid until the next call. In the
// stream it starts with 4 bytes of ones and the length of its metadata, which is 0 at the end.
func (m *messages) Message() (*ipc.Message, error) {
	if err := m.w.look(8); err != nil {
		return nil, err
	}
	ahead := m.w.buf[m.w.pos:]
	if len(ahead) == 0 || len(ahead) >= 4 && binary.LittleEndian.Uint32(ahead) == 0 {
		return nil, m.end()
	}
	if len(ahead) < 8 {
		return nil, errCut
	}
	n := int64(binary.LittleEndian.Uint32(ahead[4:]))
	if binary.LittleEndian.Uint32(ahead) != 0xffffffff || n > columnar.MostMetadata {
		return nil, errors.New("it is no Arrow message")
	}
	m.w.pos += 8
	if n == 0 {
		return nil, m.end()
	}
	meta, err := m.take(nil, int(n))
	if err != nil {
		return nil, err
	}
	length, err := columnar.CheckArrowMessage(meta)
	if err != nil {
		return nil, err
	}
	if m.body, err = m.take(m.body[:0], int(length)); err != nil {
		return nil, err
	}
	return ipc.NewMessage(memory.NewBufferBytes(meta), memory.NewBufferBytes(m.body)), nil
}

// end returns io.EOF if nothing but zeros follows the end: a second stream would be lost.
func (m *messages) end() error {
	for {
		if err := m.w.look(1); err != nil {
			return err
		}
		rest := m.w.buf[m.w.pos:]
		if len(rest) == 0 {
			return io.EOF
		}
		if len(bytes.Trim(rest, "\x00")) > 0 {
			return errors.New("something follows the end of the stream, such as another one")
		}
		m.w.pos += len(rest)
	}
}

// take appends the next n bytes to b. It allocates memory while bytes come, not for all of n.
func (m *messages) take(b []byte, n int) ([]byte, error) {
	for n > 0 {
		step := min(n, max(16<<20, len(b)))
		b = slices.Grow(b, step)
		if _, err := io.ReadFull(m.w, b[len(b):len(b)+step]); err == io.EOF || err == io.ErrUnexpectedEOF {
			return b, errCut
		} else if err != nil {
			return b, err
		}
		b, n = b[:len(b)+step], n-step
	}
	return b, nil
}

// Retain and Release implement ipc.MessageReader. The memory of messages is Go's.
func (m *messages) Retain()  {}
func (m *messages) Release() {}

// A field is a column of an Arrow input: the leaf at path in the schema.
type field struct {
	name string
	path []int
	uuid bool // its values, of 16 bytes, are UUIDs
}

// addFields adds f, or the leaves of a struct. Lists, maps and unions have several values a
// row and are left out.
func (in *Input) addFields(fields []field, f arrow.Field, prefix string, path []int) []field {
	name := prefix + f.Name
	switch t := f.Type.(type) {
	case *arrow.StructType:
		for i, child := range t.Fields() {
			fields = in.addFields(fields, child, name+".", append(path[:len(path):len(path)], i))
		}
		return fields
	case arrow.ListLikeType, arrow.UnionType:
		in.Skipped = append(in.Skipped, name)
		return fields
	}
	return append(fields, field{name, path, isUUID(f)})
}

// isUUID says whether the metadata of a field name the extension for UUIDs. The library
// returns the values of an extension that is not registered as those of the type below.
func isUUID(f arrow.Field) bool {
	extension, _ := f.Metadata.GetValue(ipc.ExtensionTypeKeyName)
	t, ok := f.Type.(*arrow.FixedSizeBinaryType)
	return ok && t.ByteWidth == 16 && extension == "arrow.uuid"
}

// recordBatches opens one record batch after the other.
func (in *Input) recordBatches(r *columnar.ArrowReader, fields []field) func() (*table, error) {
	n, before := 0, int64(0)
	step, rows := in.sampling(r.Len())
	return func() (*table, error) {
		t := &table{name: fmt.Sprintf("record batch %d", n+1), ended: func() error { return nil }, close: func() {}}
		err := in.safely(func() error {
			rec, err := r.Read(n)
			if err != nil {
				return err
			}
			t.rows, t.first = rec.NumRows(), before
			before += int64(step) * t.rows // about, if there are batches between
			in.extent = before
			t.shorten(rows)
			t.cols, err = in.arrowColumns(rec, fields)
			return err
		})
		n += step
		if err == io.EOF {
			return nil, nil
		}
		return t, err
	}
}

func (in *Input) arrowColumns(rec arrow.Record, fields []field) ([]cells, error) {
	cols := make([]cells, len(fields))
	for i, f := range fields {
		parts := []arrow.Array{rec.Column(f.path[0])}
		for _, child := range f.path[1:] {
			parts = append(parts, parts[len(parts)-1].(*array.Struct).Field(child))
		}
		for _, part := range parts {
			if int64(part.Len()) != rec.NumRows() {
				return nil, fmt.Errorf("column %q has %d values for %d rows", f.name, part.Len(), rec.NumRows())
			}
		}
		if !in.unread(i) {
			cols[i] = arrowCells(parts, f.uuid, in.Names(i))
		}
	}
	return cols, nil
}

// arrowCells returns the values of the last array, a field of a struct that the arrays before
// it are. A null of any of them is a null. Numbers may be names.
func arrowCells(parts []arrow.Array, uuid, names bool) cells {
	last := parts[len(parts)-1]
	value := arrowValue(last)
	if names && isFraction(last.DataType()) {
		value = nameValue(value)
	}
	if ids, ok := last.(*array.FixedSizeBinary); ok && uuid {
		value = uuidValue(ids)
	}
	parts = slices.DeleteFunc(parts, func(part arrow.Array) bool { return part.NullN() == 0 })
	row := 0
	return func() ([]byte, bool, error) {
		i := row
		row++
		for _, part := range parts {
			if part.IsNull(i) {
				return nil, false, nil
			}
		}
		cell, ok := value(i)
		return cell, ok, nil
	}
}
