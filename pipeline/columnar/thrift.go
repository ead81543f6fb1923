package columnar

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
)

const (
	// mostStructs bounds the structs in lists of the metadata of a Parquet file: a
	// byte of the file can stand for one, which takes half a kilobyte of memory.
	mostStructs   = 1 << 21
	thriftNesting = 100
)

// A walker moves past values of the compact protocol of Apache Thrift. The library's
// decoder uses the same reader, but makes room for a list before it has read it.
type walker struct {
	thrift.BytesReader
	size    int // bytes there are
	structs int // in lists
}

// checkThrift checks the struct that b begins with and returns its length.
func checkThrift(b []byte) (int, error) {
	w := &walker{BytesReader: new(thrift.CompactProtocol).NewReaderFromBytes(b), size: len(b)}
	err := w.skip(thrift.STRUCT, 0)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errLength
	}
	return w.BytesRead(), err
}

// skip moves past a value, which lies so deep in others.
func (w *walker) skip(typ thrift.Type, depth int) (err error) {
	if depth > thriftNesting {
		return errors.New("its metadata are nested too deeply")
	}
	switch typ {
	case thrift.TRUE, thrift.FALSE: // in a list; as a field it has no byte
		_, err = w.ReadBool()
	case thrift.I8:
		_, err = w.ReadInt8()
	case thrift.I16, thrift.I32, thrift.I64:
		_, err = w.ReadInt64()
	case thrift.DOUBLE:
		_, err = w.ReadFloat64()
	case thrift.BINARY:
		_, err = w.ReadBytes()
	case thrift.LIST, thrift.SET:
		var l thrift.List
		if l, err = w.ReadList(); err == nil {
			err = w.elements(int(l.Size), depth, l.Type)
		}
	case thrift.MAP:
		var m thrift.Map
		if m, err = w.ReadMap(); err == nil {
			err = w.elements(int(m.Size), depth, m.Key, m.Value)
		}
	case thrift.STRUCT:
		for f := (thrift.Field{Type: thrift.TRUE}); err == nil && f.Type != thrift.STOP; {
			if f, err = w.ReadField(); err == nil && f.Type > thrift.FALSE {
				err = w.skip(f.Type, depth+1)
			}
		}
	default:
		err = fmt.Errorf("type %d in its metadata", typ)
	}
	return err
}

// elements moves past n elements, or pairs, each of which takes a byte or more.
func (w *walker) elements(n, depth int, types ...thrift.Type) error {
	if n > w.size-w.BytesRead() {
		return errLength
	}
	for range n {
		for _, typ := range types {
			if typ == thrift.STRUCT {
				w.structs++
			}
			if w.structs > mostStructs {
				return fmt.Errorf("its metadata describe more than %d things", mostStructs)
			}
			if err := w.skip(typ, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
