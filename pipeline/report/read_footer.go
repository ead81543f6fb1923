package report

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	flatbuffers "github.com/google/flatbuffers/go"
)

// The decoder of an Arrow footer allocates as many elements as a list in it
// claims to have, and a process that is refused such memory dies. So the lists
// of a mapping's footer are measured first, against the bytes that they lie in.

var errLists = errors.New("a list in its footer is larger than the footer")

// checkFooter checks the footer of an Arrow file: its batches, and a schema whose
// fields have no fields of their own. The file ends with the footer, its length
// in 4 bytes, and 6 bytes of a magic word.
func checkFooter(f *os.File) (err error) {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	const tail = 10
	if info.Size() < 2*tail {
		return errors.New("it is too short to have a footer")
	}
	end := make([]byte, tail)
	if _, err := f.ReadAt(end, info.Size()-tail); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(end))
	if n > info.Size()-tail {
		return fmt.Errorf("a footer of %d bytes in a file of %d", n, info.Size())
	}
	footer := make([]byte, n)
	if _, err := f.ReadAt(footer, info.Size()-tail-n); err != nil {
		return err
	}
	t := flatbuffers.Table{Bytes: footer, Pos: flatbuffers.GetUOffsetT(footer)}
	schema, ok := member(t, 6)
	if !ok || !fits(t, 8) || !fits(t, 10) || !fits(t, 12) || !fits(schema, 6) || !fits(schema, 8) || !fits(schema, 10) {
		return errLists
	}
	fields := flatbuffers.UOffsetT(schema.Offset(6))
	for i := range schema.VectorLen(fields) {
		field := flatbuffers.Table{Bytes: footer, Pos: schema.Indirect(schema.Vector(fields) + flatbuffers.UOffsetT(4*i))}
		if !fits(field, 14) || !fits(field, 16) {
			return errLists
		}
	}
	return nil
}

// member returns the table in a slot of t.
func member(t flatbuffers.Table, slot flatbuffers.VOffsetT) (flatbuffers.Table, bool) {
	at := t.Offset(slot)
	if at == 0 {
		return t, false
	}
	return flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(t.Pos + flatbuffers.UOffsetT(at))}, true
}

// fits reports whether the list in a slot of t, if there is one, lies within the
// bytes of t. Its elements take 4 bytes or more.
func fits(t flatbuffers.Table, slot flatbuffers.VOffsetT) bool {
	at := t.Offset(slot)
	return at == 0 || t.VectorLen(flatbuffers.UOffsetT(at)) <= len(t.Bytes)/4
}
