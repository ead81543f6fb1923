package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// An arrowReader yields the record batches of an IPC file or stream. A batch is
// valid until the next, which is io.EOF after the last.
type arrowReader struct {
	schema *arrow.Schema
	next   func() (arrow.Record, error)
}

// openArrow settles the columns by the schema: one for each field, those of a
// struct by its path with dots.
func (in *Input) openArrow(file bool) error {
	in.Format = "arrow"
	var r *arrowReader
	open := func() error {
		return in.safely("the schema", func() (err error) {
			if file {
				r, err = in.arrowFile()
			} else {
				r, err = in.arrowStream()
			}
			return err
		})
	}
	if err := open(); err != nil {
		return err
	}
	var fields []field
	for i, f := range r.schema.Fields() {
		fields = in.addFields(fields, f, "", []int{i})
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	in.Columns = unique(names)
	in.read = func(rd *reading) error {
		if in.info != nil { // the file was closed
			if err := open(); err != nil {
				return &inputError{0, err}
			}
		}
		return rd.readTables(1, in.recordBatches(r, fields))
	}
	return in.settleColumns()
}

// arrowFile reads batches by the footer (a dictionary may stand after them).
func (in *Input) arrowFile() (*arrowReader, error) {
	at, err := in.random()
	if err != nil {
		return nil, err
	}
	if err := verifyFooter(at, "ARROW1", verifyArrowFooter); err != nil {
		return nil, err
	}
	r, err := ipc.NewFileReader(io.NewSectionReader(at, 0, at.size), ipc.WithAllocator(guard{memory.NewGoAllocator()}))
	if err != nil {
		return nil, err
	}
	return &arrowReader{r.Schema(), r.Read}, nil
}

func (in *Input) arrowStream() (*arrowReader, error) {
	alloc := ipc.WithAllocator(guard{memory.NewGoAllocator()})
	r, err := ipc.NewReaderFromMessageReader(&messages{ipc.NewMessageReader(in.src, alloc), in.src}, alloc)
	if err != nil {
		return nil, err
	}
	return &arrowReader{r.Schema(), r.Read}, nil
}

// messages tells a stream that was cut off inside a message from one that has
// ended, which may be without a mark: the library takes every EOF for the end.
type messages struct {
	ipc.MessageReader
	w *window
}

func (m *messages) Message() (*ipc.Message, error) {
	if err := m.verify(); err != nil {
		return nil, err
	}
	msg, err := m.MessageReader.Message()
	if err != io.EOF && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return msg, err
}

// verify looks at the message ahead, at io.EOF if there is none. It starts with
// 4 bytes of ones and the length of its metadata, or a length of 0 at the end.
func (m *messages) verify() error {
	if err := m.w.look(8); err != nil {
		return err
	}
	ahead := m.w.buf[m.w.pos:]
	if len(ahead) == 0 {
		return io.EOF
	}
	if len(ahead) >= 4 && binary.LittleEndian.Uint32(ahead) == 0 {
		return nil
	}
	if len(ahead) < 8 {
		return io.ErrUnexpectedEOF
	}
	n := int(binary.LittleEndian.Uint32(ahead[4:]))
	if binary.LittleEndian.Uint32(ahead) != 0xffffffff || n > mostMetadata {
		return errors.New("it is no Arrow message")
	}
	if n == 0 {
		return nil
	}
	if err := m.w.look(8 + n); err != nil {
		return err
	}
	if ahead = m.w.buf[m.w.pos:]; len(ahead) < 8+n {
		return io.ErrUnexpectedEOF
	}
	return verifyArrowMessage(ahead[8 : 8+n])
}

// A guard refuses to allocate what only a damaged length can ask for.
type guard struct{ memory.Allocator }

const mostBuffer = 1<<31 - 1

func (g guard) Allocate(n int) []byte { return g.Allocator.Allocate(plausible(n)) }

func (g guard) Reallocate(n int, b []byte) []byte { return g.Allocator.Reallocate(plausible(n), b) }

func plausible(n int) int {
	if n < 0 || n > mostBuffer {
		panic(fmt.Sprintf("a buffer of %d bytes", n))
	}
	return n
}

// A field is a column of an Arrow input: the leaf at path in the schema.
type field struct {
	name string
	path []int
}

// addFields adds f, or the leaves of a struct. Lists, maps and unions have no
// one value a row and are left out.
func (in *Input) addFields(fields []field, f arrow.Field, prefix string, path []int) []field {
	name := prefix + f.Name
	switch t := f.Type.(type) {
	case *arrow.StructType:
		for i, child := range t.Fields() {
			fields = in.addFields(fields, child, name+".", append(path[:len(path):len(path)], i))
		}
		return fields
	case arrow.ListLikeType, arrow.UnionType:
		in.skipped = append(in.skipped, name)
		return fields
	}
	return append(fields, field{name, path})
}

// recordBatches opens one record batch after the other.
func (in *Input) recordBatches(r *arrowReader, fields []field) func() (*table, error) {
	n := 0
	return func() (*table, error) {
		n++
		t := &table{name: fmt.Sprintf("record batch %d", n), close: func() {}}
		err := in.safely(t.name, func() error {
			rec, err := r.next()
			if err != nil {
				return err
			}
			t.rows = rec.NumRows()
			t.cols, err = in.arrowColumns(rec, fields)
			return err
		})
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
		cols[i] = arrowCells(parts)
	}
	return cols, nil
}

// arrowCells yields the values of the last array, which lies in the others.
func arrowCells(parts []arrow.Array) cells {
	value := arrowValue(parts[len(parts)-1])
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
