package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	flatbuffers "github.com/google/flatbuffers/go"
)

// The decoders of Parquet and Arrow allocate as many elements as a list in the
// metadata claims to have, and a process that is refused such memory dies: there
// is no error to return. So the lists are measured first, against the bytes that
// they lie in.

// mostMetadata bounds the metadata of a Parquet or Arrow input.
const mostMetadata = 256 << 20

var errLength = errors.New("a length in its metadata is larger than the metadata")

// verifyFooter applies check to the metadata at the end of a Parquet or Arrow
// file, which is followed by its length in 4 bytes and a magic word.
func verifyFooter(r random, magic string, check func([]byte) error) error {
	tail := make([]byte, 4+len(magic))
	if r.size < int64(len(tail)+len(magic)) {
		return errors.New("the file is too short to be whole")
	}
	if _, err := r.ReadAt(tail, r.size-int64(len(tail))); err != nil {
		return err
	}
	if string(tail[4:]) != magic {
		return fmt.Errorf("the file does not end with %s: it is not whole", magic)
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if n > r.size-int64(len(tail)) || n > mostMetadata {
		return fmt.Errorf("metadata of %d bytes in a file of %d", n, r.size)
	}
	meta := make([]byte, n)
	if _, err := r.ReadAt(meta, r.size-int64(len(tail))-n); err != nil && err != io.EOF {
		return err
	}
	return check(meta)
}

// verifyArrowFooter checks the schema in the footer of an Arrow file.
func verifyArrowFooter(meta []byte) error {
	t := flatbuffers.Table{Bytes: meta, Pos: flatbuffers.GetUOffsetT(meta)}
	return errors.Join(verifySchema(t, 6), listFits(t, 8), listFits(t, 10), listFits(t, 12))
}

// verifyArrowMessage checks the schema in a message, if it has one. A slot is
// the place of a member in a table: 4 for the first, 6 for the second.
func verifyArrowMessage(meta []byte) error {
	t := flatbuffers.Table{Bytes: meta, Pos: flatbuffers.GetUOffsetT(meta)}
	const schema = 1
	if t.GetByteSlot(6, 0) != schema {
		return listFits(t, 12)
	}
	return errors.Join(verifySchema(t, 8), listFits(t, 12))
}

// verifySchema checks the schema in a slot of t: its fields and theirs.
func verifySchema(t flatbuffers.Table, slot flatbuffers.VOffsetT) error {
	schema, ok := member(t, slot)
	if !ok {
		return nil
	}
	fields := 0
	return errors.Join(verifyFields(schema, 6, &fields), listFits(schema, 8), listFits(schema, 10))
}

func verifyFields(t flatbuffers.Table, slot flatbuffers.VOffsetT, seen *int) error {
	if err := listFits(t, slot); err != nil || t.Offset(slot) == 0 {
		return err
	}
	at := flatbuffers.UOffsetT(t.Offset(slot))
	for i := range t.VectorLen(at) {
		if *seen++; *seen > maxColumns {
			return fmt.Errorf("the schema has more than %d fields", maxColumns)
		}
		field := flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(t.Vector(at) + flatbuffers.UOffsetT(4*i))}
		err := errors.Join(verifyFields(field, 14, seen), listFits(field, 16))
		if typ, ok := member(field, 10); ok && err == nil && field.GetByteSlot(8, 0) == 14 {
			err = listFits(typ, 6) // the codes of a union
		}
		if err != nil {
			return err
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

// listFits checks the vector in a slot of t, whose elements take 4 bytes or
// more.
func listFits(t flatbuffers.Table, slot flatbuffers.VOffsetT) error {
	if at := t.Offset(slot); at != 0 && t.VectorLen(flatbuffers.UOffsetT(at)) > len(t.Bytes)/4 {
		return errLength
	}
	return nil
}

// thrift walks over values in the compact protocol of Apache Thrift.
type thrift struct{ rest []byte }

// verifyThrift checks a struct: the metadata of a Parquet file.
func verifyThrift(meta []byte) error {
	return (&thrift{meta}).skip(12, 0)
}

// skip moves past a value of a type as the compact protocol numbers them.
func (t *thrift) skip(typ byte, depth int) error {
	switch {
	case depth > 100:
		return errors.New("its metadata are nested too deeply")
	case typ <= 2: // a Boolean in its field's type
		return nil
	case typ == 3:
		return t.drop(1)
	case typ <= 6:
		_, err := t.number()
		return err
	case typ == 7:
		return t.drop(8)
	case typ == 8:
		n, err := t.number()
		return errors.Join(err, t.drop(n))
	case typ <= 11:
		return t.list(typ == 11, depth)
	case typ == 12:
		return t.fields(depth)
	}
	return fmt.Errorf("type %d in its metadata", typ)
}

// fields moves past a struct.
func (t *thrift) fields(depth int) error {
	for {
		head, err := t.byte()
		if err != nil || head == 0 {
			return err
		}
		if head>>4 == 0 {
			if _, err := t.number(); err != nil { // the field's number
				return err
			}
		}
		if err := t.skip(head&15, depth+1); err != nil {
			return err
		}
	}
}

// list moves past a list, a set or a map, whose elements take a byte or more.
func (t *thrift) list(pairs bool, depth int) error {
	head, err := byte(0xf0), error(nil)
	if !pairs {
		head, err = t.byte()
	}
	n := uint64(head >> 4)
	if n == 15 && err == nil {
		n, err = t.number()
	}
	if pairs && n > 0 && err == nil {
		head, err = t.byte()
	}
	if err != nil {
		return err
	}
	if n > uint64(len(t.rest)) {
		return errLength
	}
	for range n {
		if pairs {
			err = t.element(head>>4, depth)
		}
		if err = errors.Join(err, t.element(head&15, depth)); err != nil {
			return err
		}
	}
	return nil
}

// element moves past an element of a list, where a Boolean has a byte.
func (t *thrift) element(typ byte, depth int) error {
	if typ <= 2 {
		return t.drop(1)
	}
	return t.skip(typ, depth+1)
}

func (t *thrift) byte() (byte, error) {
	if len(t.rest) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	b := t.rest[0]
	t.rest = t.rest[1:]
	return b, nil
}

func (t *thrift) number() (uint64, error) {
	v, n := binary.Uvarint(t.rest)
	if n <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	t.rest = t.rest[n:]
	return v, nil
}

func (t *thrift) drop(n uint64) error {
	if n > uint64(len(t.rest)) {
		return errLength
	}
	t.rest = t.rest[n:]
	return nil
}
