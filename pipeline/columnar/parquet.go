package columnar

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	mostDepth   = 100       // of groups in groups in a schema
	chunkBuffer = 128 << 10 // bytes of a column chunk that are read at a time
)

// OpenParquet opens the Parquet file in r, of size bytes, without its page index and Bloom
// filters.
//
// The decoder sees another file, without compression. A column chunk of it is made while it is
// read, page by page, and each page is checked. So one goroutine must read the pages of a
// chunk, once and in order; several goroutines may read different chunks at the same time. The
// pages of a column with several values a row cannot be read. The metadata of the result have
// no sizes, codecs and statistics. OpenParquet and reading panic on some damage (see [Damage]).
func OpenParquet(r io.ReaderAt, size int64) (*parquet.File, error) {
	raw, err := footer(r, size, "PAR1")
	if err != nil {
		return nil, err
	}
	if n, err := checkThrift(raw); err != nil {
		return nil, err
	} else if n < len(raw) {
		return nil, errors.New("it is signed, or something follows its metadata")
	}
	var meta format.FileMetaData
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), raw, &meta); err != nil {
		return nil, err
	}
	leaves, err := checkTree(meta.Schema)
	if err != nil {
		return nil, err
	}
	columns := len(leaves)
	if err := checkGroups(&meta, columns); err != nil {
		return nil, err
	}
	for _, e := range leaves {
		if e.ConvertedType.V == deprecated.Decimal { // a missing scale is 0, but to the decoder it is no decimal then
			e.Scale.Valid, e.Precision.Valid = true, true
		}
	}
	p := &inflated{r: r, size: size}
	if err := p.rewrite(&meta, columns); err != nil {
		return nil, err
	}
	if p.footer, err = appendFooter(&meta); err != nil {
		return nil, err
	}
	f, err := parquet.OpenFile(p, p.begin()+int64(len(p.footer)), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(chunkBuffer))
	if err != nil {
		return nil, err
	}
	p.levels(f.Root())
	for i := range p.chunks {
		c, e := &p.chunks[i], leaves[i%columns]
		switch _, null := e.LogicalType.Value.(*format.NullType); {
		case c.leaf.repeated: // it is not read
		case c.codec != format.Uncompressed && codecs[c.codec] == nil:
			return nil, fmt.Errorf("row group %d: column %d: %s is not supported", i/columns+1, i%columns+1, c.codec)
		case null: // it may have no values
		case c.leaf.kind != parquet.Kind(e.Type.V), c.leaf.kind == parquet.FixedLenByteArray && c.leaf.width != int(e.TypeLength.V):
			// The decoder goes by the annotation, and takes a type that it does not know for Null.
			return nil, fmt.Errorf("column %d: its type, %s, is unknown or not one of its annotation", i%columns+1, e.Type.V)
		}
	}
	return f, nil
}

// checkTree checks that the elements of a schema are a tree, and returns its leaves.
func checkTree(schema []format.SchemaElement) (leaves []*format.SchemaElement, _ error) {
	type group struct {
		left int32 // columns in it that are still to come
		path int   // bytes of its name, after those of what it lies in
	}
	open, names := make([]group, 0, mostDepth), 0
	for i := range schema {
		e, path := &schema[i], 0
		if len(open) > 0 {
			path = open[len(open)-1].path + len(e.Name) + len(".")
		}
		if e.TypeLength.V < 0 || e.TypeLength.V > mostPage {
			return nil, fmt.Errorf("values of %d bytes in column %q", e.TypeLength.V, e.Name)
		}
		if r := e.RepetitionType.V; r < format.Required || r > format.Repeated {
			return nil, fmt.Errorf("column %q is neither required nor optional nor repeated", e.Name)
		}
		if i > 0 && len(open) == 0 {
			return nil, errors.New("its schema has more than one root")
		}
		if n := e.NumChildren; e.Type.Valid {
			leaves = append(leaves, e)
			if names += path; names > mostNames {
				return nil, fmt.Errorf("the names of its columns, each with those that it lies in, take over %d bytes", mostNames)
			}
		} else if n.Valid && n.V != 0 {
			if n.V < 0 || int(n.V) > len(schema) || len(open) == mostDepth {
				return nil, fmt.Errorf("its schema has %d columns in all, and says that column %q, %d deep, has %d", len(schema), e.Name, len(open), n.V)
			}
			open = append(open, group{n.V, path})
			continue
		}
		for len(open) > 0 {
			last := len(open) - 1
			if open[last].left--; open[last].left > 0 {
				break
			}
			open = open[:last]
		}
	}
	if len(open) > 0 || len(schema) == 0 {
		return nil, errors.New("its schema is cut off")
	}
	return leaves, nil
}

// checkGroups checks that each row group has a chunk for each column, and that the row groups
// together have as many rows as the file. (Early writers of Rust left the latter at 0.)
func checkGroups(meta *format.FileMetaData, columns int) error {
	rows := int64(0)
	for i, group := range meta.RowGroups {
		if len(group.Columns) != columns || group.NumRows < 0 {
			return fmt.Errorf("row group %d has %d rows in %d columns, where there should be %d", i+1, group.NumRows, len(group.Columns), columns)
		}
		rows += group.NumRows
	}
	if rows != meta.NumRows && meta.NumRows != 0 {
		return fmt.Errorf("its row groups have %d rows, and all of it %d", rows, meta.NumRows)
	}
	return nil
}

// inflated is the file that the decoder sees: the magic word, then a range of
// addresses for each column chunk, then the footer.
type inflated struct {
	r      io.ReaderAt
	size   int64
	chunks []chunk
	footer []byte // to the end of the file
	inflaters
}

// chunkRange is the length of the range of a chunk, a power of two. Chunk i has
// the addresses from (i+1) × chunkRange on.
const chunkRange = 1 << 40

// A chunk is a column chunk of the file.
type chunk struct {
	start, end int64 // in the file
	codec      format.CompressionCodec
	leaf       *leaf
	pages      *pages // as far as they are read
}

// rewrite reads where the chunks lie from the metadata, and replaces it with where the decoder
// shall look for them.
func (p *inflated) rewrite(meta *format.FileMetaData, columns int) error {
	n := len(meta.RowGroups) * columns
	if n > mostStructs {
		return fmt.Errorf("it has %d column chunks", n)
	}
	leaves := make([]leaf, columns)
	p.chunks = make([]chunk, n)
	for g := range meta.RowGroups {
		group := &meta.RowGroups[g]
		group.SortingColumns, group.Ordinal = nil, 0
		for i := range group.Columns {
			c, at := &group.Columns[i], g*columns+i
			m := &c.MetaData
			if c.FilePath != "" {
				return fmt.Errorf("row group %d: column %d: its rows lie in other files, such as %q", g+1, i+1, c.FilePath)
			}
			start := m.DataPageOffset
			// A dictionary lies before the data, of which there may be none, at 0; any other offset means nothing.
			if d := m.DictionaryPageOffset; d >= int64(len("PAR1")) && (d < start || start == 0) {
				start = d
			}
			if start < 0 || start > p.size || m.TotalCompressedSize < 0 {
				return fmt.Errorf("row group %d: column %d: %d bytes from byte %d on, in a file of %d", g+1, i+1, m.TotalCompressedSize, start, p.size)
			}
			p.chunks[at] = chunk{start: start, end: start + min(m.TotalCompressedSize, p.size-start), codec: m.Codec, leaf: &leaves[i]}
			*c = format.ColumnChunk{MetaData: format.ColumnMetaData{
				Type: m.Type, Encoding: m.Encoding, PathInSchema: m.PathInSchema, Codec: format.Uncompressed,
				NumValues: m.NumValues, TotalUncompressedSize: chunkRange, TotalCompressedSize: chunkRange,
				DataPageOffset: int64(at+1) * chunkRange,
			}}
		}
	}
	meta.KeyValueMetadata, meta.EncryptionAlgorithm, meta.FooterSigningKeyMetadata = nil, format.EncryptionAlgorithm{}, nil
	return nil
}

func appendFooter(meta *format.FileMetaData) ([]byte, error) {
	b, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		return nil, err
	}
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(b))), "PAR1"...), nil
}

// levels fills in the leaves of all chunks as the decoder understands the schema.
func (p *inflated) levels(c *parquet.Column) {
	for _, child := range c.Columns() {
		p.levels(child)
	}
	if i := c.Index(); c.Leaf() && i >= 0 && i < len(p.chunks) {
		*p.chunks[i].leaf = leaf{kind: c.Type().Kind(), width: cmp.Or(widths[c.Type().Kind()], c.Type().Length()), repeated: c.MaxRepetitionLevel() > 0, defined: c.MaxDefinitionLevel()}
	}
}

func (p *inflated) begin() int64 { return int64(len(p.chunks)+1) * chunkRange }

// ReadAt implements io.ReaderAt for the decoder.
func (p *inflated) ReadAt(b []byte, at int64) (int, error) {
	switch i := at/chunkRange - 1; {
	case at >= p.begin():
		return bytes.NewReader(p.footer).ReadAt(b, at-p.begin())
	case i >= 0:
		return p.chunks[i].readAt(p, b, at%chunkRange)
	}
	return copy(b, "PAR1"), nil
}

// readAt reads what follows the last read, or the start. Unlike an io.ReaderAt it
// may read less than there is: no page is made before it is asked for.
func (c *chunk) readAt(p *inflated, b []byte, at int64) (int, error) {
	if at == 0 {
		if c.pages != nil {
			c.pages.release()
		}
		c.pages = newPages(p, c)
	}
	if c.pages == nil || c.pages.at != at {
		return 0, errors.New("its pages are read out of order")
	}
	n, err := c.pages.read(b)
	if c.pages.left == 0 && len(c.pages.header)+len(c.pages.page) == 0 {
		c.pages.file = nil // all is read
	}
	return n, err
}
