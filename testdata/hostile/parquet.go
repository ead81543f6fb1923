package main

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// parquets are files of one column, optional where it needs levels, with one row
// group of two rows.
func parquets() map[string][]byte {
	values := plain("http://example.com/a", "http://example.com/b")
	honest := dataPage(2, format.Plain, values)
	snappy := slices.Concat(binary.AppendUvarint(nil, uint64(len(values))), []byte{60 << 2, byte(len(values) - 1)}, values)
	lie := func(change func(h *format.PageHeader)) page {
		p := dataPage(2, format.Plain, values)
		change(&p.PageHeader)
		return p
	}
	whole := file{pages: []page{honest}}.bytes()
	return map[string][]byte{
		"page-inflated.parquet": file{codec: format.Snappy, pages: []page{{body: snappy, PageHeader: lie(func(h *format.PageHeader) {
			h.UncompressedPageSize, h.CompressedPageSize = 1<<31-1, int32(len(snappy))
		}).PageHeader}}}.bytes(),
		"page-longer.parquet": file{codec: format.Snappy, pages: []page{{body: slices.Concat(binary.AppendUvarint(nil, 1<<31), snappy),
			PageHeader: lie(func(h *format.PageHeader) { h.CompressedPageSize = int32(len(snappy) + 5) }).PageHeader}}}.bytes(),
		"page-compressed.parquet": file{pages: []page{lie(func(h *format.PageHeader) { h.CompressedPageSize = 1<<31 - 1 })}}.bytes(),
		"page-negative.parquet":   file{pages: []page{lie(func(h *format.PageHeader) { h.CompressedPageSize = -5 })}}.bytes(),
		"page-values.parquet":     file{pages: []page{lie(func(h *format.PageHeader) { h.DataPageHeader.V.NumValues = 1<<31 - 1 })}}.bytes(),
		"page-more.parquet":       file{pages: []page{lie(func(h *format.PageHeader) { h.DataPageHeader.V.NumValues = 3 })}}.bytes(),
		"page-header.parquet":     file{pages: []page{{raw: []byte{0x15, 0, 0x15, 0, 0x15, 0, 0x5c, 0x18, 0xff, 0xff, 0xff, 0xff, 0x07}}}}.bytes(),
		"page-few.parquet":        file{pages: []page{honest}, change: func(m *format.FileMetaData) { m.RowGroups[0].NumRows, m.NumRows = 1000, 1000 }}.bytes(),
		"page-lz4.parquet":        file{codec: format.Lz4Raw, pages: []page{dataPage(2, format.Plain, bytes.Repeat([]byte{0xff}, 100))}}.bytes(),
		"page-string.parquet":     file{pages: []page{dataPage(2, format.Plain, []byte("\xff\xff\xff\x7fa\x01\x00\x00\x00b"))}}.bytes(),
		"levels-run.parquet":      file{optional: true, pages: []page{dataPage(2, format.Plain, slices.Concat([]byte{6, 0, 0, 0}, run(1<<31-1, 0), values))}}.bytes(),
		"levels-long.parquet":     file{optional: true, pages: []page{dataPage(2, format.Plain, slices.Concat([]byte{0xff, 0xff, 0xff, 0xff}, values))}}.bytes(),
		"index-run.parquet":       file{pages: []page{dictPage(2, values), dataPage(2, format.RLEDictionary, slices.Concat([]byte{8}, run(1<<31-1, 0)))}}.bytes(),
		"index-packed.parquet":    file{pages: []page{dictPage(2, values), dataPage(2, format.RLEDictionary, slices.Concat([]byte{32}, binary.AppendUvarint(nil, 1<<32-1)))}}.bytes(),
		"index-range.parquet":     file{pages: []page{dictPage(2, values), dataPage(2, format.RLEDictionary, slices.Concat([]byte{8}, run(2, 7)))}}.bytes(),
		"index-missing.parquet":   file{pages: []page{dataPage(2, format.RLEDictionary, slices.Concat([]byte{8}, run(2, 0)))}}.bytes(),
		"dictionary.parquet":      file{pages: []page{dictPage(1<<31-1, values), dataPage(2, format.RLEDictionary, slices.Concat([]byte{8}, run(2, 0)))}}.bytes(),
		"delta-lengths.parquet":   file{pages: []page{dataPage(2, format.DeltaLengthByteArray, deltas(1<<31-1, 0))}}.bytes(),
		"delta-count.parquet":     file{pages: []page{dataPage(2, format.DeltaLengthByteArray, append(binary.AppendUvarint([]byte{0x80, 1, 4}, 1<<40), 0))}}.bytes(),
		"delta-prefix.parquet":    file{pages: []page{dataPage(2, format.DeltaByteArray, slices.Concat(deltas(1<<30, 0), deltas(1<<30, 0)))}}.bytes(),
		"chunk-outside.parquet":   file{pages: []page{honest}, change: func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.DataPageOffset = 1 << 40 }}.bytes(),
		"chunk-codec.parquet":     file{pages: []page{honest}, change: func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.Codec = 77 }}.bytes(),
		"schema-children.parquet": file{pages: []page{honest}, change: func(m *format.FileMetaData) { m.Schema[0].NumChildren = thrift.New[int32](1<<31 - 1) }}.bytes(),
		"schema-deep.parquet": file{pages: []page{honest}, change: func(m *format.FileMetaData) {
			group := m.Schema[0]
			m.Schema = append(slices.Repeat([]format.SchemaElement{group}, 10000), m.Schema[1])
		}}.bytes(),
		"decimal.parquet": file{codec: format.Zstd, pages: []page{letters(1 << 20)}, change: func(m *format.FileMetaData) {
			m.Schema[1].ConvertedType, m.Schema[1].Scale, m.Schema[1].Precision = thrift.New(deprecated.Decimal), thrift.New[int32](0), thrift.New[int32](9)
			m.RowGroups[0].NumRows, m.NumRows, m.RowGroups[0].Columns[0].MetaData.NumValues = 1, 1, 1
		}}.bytes(),
		"schema-names.parquet": file{pages: []page{honest}, change: func(m *format.FileMetaData) {
			group, leaf, often := m.Schema[0], m.Schema[1], int32(1100)
			group.Name, group.NumChildren, group.RepetitionType = strings.Repeat("u", 16<<10), thrift.New(often), thrift.New(format.Required)
			m.Schema = append([]format.SchemaElement{m.Schema[0], group}, slices.Repeat([]format.SchemaElement{leaf}, int(often))...)
			m.RowGroups = nil
		}}.bytes(),
		"schema-width.parquet": file{pages: []page{honest}, change: func(m *format.FileMetaData) {
			m.Schema[1].Type, m.Schema[1].TypeLength = thrift.New(format.FixedLenByteArray), thrift.New[int32](-8)
		}}.bytes(),
		"groups.parquet":        file{pages: []page{honest}, change: func(m *format.FileMetaData) { m.RowGroups[0].Columns = nil }}.bytes(),
		"footer-list.parquet":   footed([]byte{0x15, 2, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07}),
		"footer-deep.parquet":   footed(bytes.Repeat([]byte{0x1c}, 5000)),
		"footer-length.parquet": slices.Concat(whole[:len(whole)-8], []byte("\xff\xff\xff\xffPAR1")),
		"cut.parquet":           whole[:len(whole)-20],
	}
}

func plain(values ...string) (b []byte) {
	for _, v := range values {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(v))), v...)
	}
	return b
}

// run is one of n times v, which takes a byte.
func run(n uint64, v byte) []byte { return append(binary.AppendUvarint(nil, n<<1), v) }

// deltas are two integers, delta encoded.
func deltas(first int64, delta int64) []byte {
	b := binary.AppendVarint([]byte{0x80, 1, 4, 2}, first)
	return append(binary.AppendVarint(b, delta), 0, 0, 0, 0)
}

// A page is header and body, or raw.
type page struct {
	format.PageHeader
	body, raw []byte
}

func dataPage(n int32, encoding format.Encoding, body []byte) page {
	return page{body: body, PageHeader: format.PageHeader{
		Type: format.DataPage, UncompressedPageSize: int32(len(body)), CompressedPageSize: int32(len(body)),
		DataPageHeader: thrift.New(format.DataPageHeader{NumValues: n, Encoding: encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE}),
	}}
}

// letters is a page of one value, of n letters, in a few bytes of zstd.
func letters(n int32) page {
	p := dataPage(1, format.Plain, zstded(string(binary.LittleEndian.AppendUint32(nil, uint32(n))), 'x', int(n), ""))
	p.UncompressedPageSize = 4 + n
	return p
}

func dictPage(n int32, body []byte) page {
	return page{body: body, PageHeader: format.PageHeader{
		Type: format.DictionaryPage, UncompressedPageSize: int32(len(body)), CompressedPageSize: int32(len(body)),
		DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: n}),
	}}
}

type file struct {
	codec    format.CompressionCodec
	optional bool
	pages    []page
	change   func(*format.FileMetaData)
}

func (f file) bytes() []byte {
	b := []byte("PAR1")
	for _, p := range f.pages {
		if p.raw == nil {
			header, err := thrift.Marshal(new(thrift.CompactProtocol), &p.PageHeader)
			must(err)
			p.raw = append(header, p.body...)
		}
		b = append(b, p.raw...)
	}
	repetition := format.Required
	if f.optional {
		repetition = format.Optional
	}
	size := int64(len(b) - 4)
	meta := &format.FileMetaData{Version: 1, NumRows: 2,
		Schema: []format.SchemaElement{
			{Name: "links", NumChildren: thrift.New[int32](1)},
			{Name: "url", Type: thrift.New(format.ByteArray), RepetitionType: thrift.New(repetition), ConvertedType: thrift.New(deprecated.UTF8)},
		},
		RowGroups: []format.RowGroup{{NumRows: 2, TotalByteSize: size, Columns: []format.ColumnChunk{{FileOffset: 4, MetaData: format.ColumnMetaData{
			Type: format.ByteArray, Encoding: []format.Encoding{format.Plain}, PathInSchema: []string{"url"}, Codec: f.codec,
			NumValues: 2, TotalUncompressedSize: size, TotalCompressedSize: size, DataPageOffset: 4,
		}}}}},
	}
	if f.change != nil {
		f.change(meta)
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	must(err)
	return append(b, footed(footer)[4:]...)
}

// footed is a file of nothing but a footer.
func footed(footer []byte) []byte {
	b := append([]byte("PAR1"), footer...)
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(footer))), "PAR1"...)
}
