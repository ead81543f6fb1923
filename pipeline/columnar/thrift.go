package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// mostStructs bounds the structs in lists of the metadata of a Parquet file: a
// byte of the file can stand for one, which takes half a kilobyte of memory.
const mostStructs = 1 << 21

const (
	thriftStruct  = 12
	thriftNesting = 100
)

// A walker moves past values in the compact protocol of Apache Thrift.
type walker struct {
	rest    []byte
	structs int // in lists
}

// checkThrift checks the struct that b begins with and returns its length.
func checkThrift(b []byte) (int, error) {
	t := &walker{rest: b}
	err := t.skip(thriftStruct, 0)
	return len(b) - len(t.rest), err
}

// skip moves past a value of a type as the compact protocol numbers them.
func (t *walker) skip(typ byte, depth int) error {
	switch {
	case depth > thriftNesting:
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
		if err != nil {
			return err
		}
		return t.drop(n)
	case typ <= 11:
		return t.list(typ == 11, depth)
	case typ == thriftStruct:
		return t.fields(depth)
	}
	return fmt.Errorf("type %d in its metadata", typ)
}

// fields moves past a struct.
func (t *walker) fields(depth int) error {
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
func (t *walker) list(pairs bool, depth int) error {
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
	if head&15 == thriftStruct {
		if t.structs += int(n); t.structs > mostStructs {
			return fmt.Errorf("its metadata describe more than %d things", mostStructs)
		}
	}
	for range n {
		if pairs {
			err = t.element(head>>4, depth)
		}
		if err == nil {
			err = t.element(head&15, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// element moves past an element of a list, where a Boolean has a byte.
func (t *walker) element(typ byte, depth int) error {
	if typ <= 2 {
		return t.drop(1)
	}
	return t.skip(typ, depth+1)
}

func (t *walker) byte() (byte, error) {
	if len(t.rest) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	b := t.rest[0]
	t.rest = t.rest[1:]
	return b, nil
}

func (t *walker) number() (uint64, error) {
	v, n := binary.Uvarint(t.rest)
	if n <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	t.rest = t.rest[n:]
	return v, nil
}

func (t *walker) drop(n uint64) error {
	if n > uint64(len(t.rest)) {
		return errLength
	}
	t.rest = t.rest[n:]
	return nil
}
