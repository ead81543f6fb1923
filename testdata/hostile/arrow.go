package main

import (
	"bytes"
	"encoding/binary"
	"log"
	"os"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"
)

// The record batch of every Arrow file: sizes that stand nowhere else.
const (
	rows     = 77
	cell     = 1009 / rows // bytes
	dataSize = rows * cell
)

// arrows are files, and streams (.arrows), of which one number was changed.
func arrows() map[string][]byte {
	file, stream, packed := ipcOf(true), ipcOf(false), ipcOf(true, ipc.WithZstd())
	body := int64(4*(rows+1) + (dataSize+7)/8*8) // of the batch: offsets and data
	footer := len(file) - 10 - int(binary.LittleEndian.Uint32(file[len(file)-10:]))
	inFooter := func(old, now int64) []byte {
		return append(bytes.Clone(file[:footer]), replaced(file[footer:], 1, old, now)...)
	}
	offsets := bytes.Index(file, binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 10*cell), 11*cell))
	offset := func(now uint32) []byte {
		data := bytes.Clone(file)
		binary.LittleEndian.PutUint32(data[offsets:], now)
		return data
	}
	blocks := bytes.Clone(file) // a block ends with the length of the body; before the first is their number
	binary.LittleEndian.PutUint32(blocks[footer+bytes.Index(file[footer:], binary.LittleEndian.AppendUint64(nil, uint64(body)))-20:], 1<<30)
	metadata := bytes.Clone(stream)
	binary.LittleEndian.PutUint32(metadata[4:], 1<<31-8)
	return map[string][]byte{
		"offset-past.arrow":       offset(1 << 30),
		"offset-back.arrow":       offset(3),
		"offset-negative.arrow":   offset(1<<32 - 5),
		"buffer-past.arrow":       replaced(file, 1, dataSize, 1<<30),
		"buffer-negative.arrow":   replaced(file, 1, dataSize, -8),
		"values-many.arrow":       replaced(file, 2, rows, 1<<40),
		"values-negative.arrow":   replaced(file, 2, rows, -1),
		"rows-many.arrow":         replaced(file, 1, rows, 1<<62),
		"buffer-inflated.arrow":   replaced(packed, 1, dataSize, 1<<31-1),
		"block-outside.arrow":     inFooter(body, 1<<40),
		"block-negative.arrow":    inFooter(body, -64),
		"footer-length.arrow":     append(file[:len(file)-10:len(file)-10], "\xff\xff\xff\x0fARROW1"...),
		"footer-list.arrow":       blocks,
		"cut.arrow":               file[:len(file)-100],
		"body-long.arrows":        replaced(stream, 1, body, 1<<30),
		"body-longer.arrows":      replaced(stream, 1, body, 1<<40),
		"body-negative.arrows":    replaced(stream, 1, body, -64),
		"metadata-long.arrows":    metadata,
		"metadata-missing.arrows": append(stream[:4:4], "\xff\xff\xff\x0f"...),
		"cut.arrows":              stream[:len(stream)-200],
		"names.arrows":            shared(timestamp, 8<<10, 0, 0),
		"pairs.arrows":            shared(timestamp, 1, 8<<10, 0),
		"zones.arrows":            shared(timestamp, 1, 0, 8<<10),
		"unions.arrows":           shared(union, 1, 0, 2<<10),
	}
}

// ipcOf makes a file or stream of one batch of one column, url.
func ipcOf(file bool, opts ...ipc.Option) []byte {
	b := array.NewStringBuilder(memory.NewGoAllocator())
	for i := range rows {
		b.Append("http://a.b/" + string(rune('a'+i%26)) + strings.Repeat("x", cell-12))
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "url", Type: arrow.BinaryTypes.String}}, nil)
	rec := array.NewRecord(schema, []arrow.Array{b.NewArray()}, rows)
	f, err := os.CreateTemp("", "hostile")
	must(err)
	defer os.Remove(f.Name())
	opts = append(opts, ipc.WithSchema(schema))
	if file {
		w, err := ipc.NewFileWriter(f, opts...)
		must(err)
		must(w.Write(rec))
		must(w.Close())
	} else {
		w := ipc.NewWriter(f, opts...)
		must(w.Write(rec))
		must(w.Close())
	}
	must(f.Close())
	data, err := os.ReadFile(f.Name())
	must(err)
	if len(data) == 0 {
		log.Fatal("nothing was written")
	}
	return data
}

const timestamp, union = 10, 14 // type codes of a field

// shared makes a stream of no batch whose schema has one field very often, of which
// the name, the metadata, or the zone or list of types are long.
func shared(code byte, name, pair, typed int) []byte {
	const often = 2100
	b := flatbuffers.NewBuilder(0)
	texts := []flatbuffers.UOffsetT{}
	for _, n := range []int{name, pair, typed} {
		texts = append(texts, b.CreateString(strings.Repeat("u", n)))
	}
	table := func(slots int, put func()) flatbuffers.UOffsetT {
		b.StartObject(slots)
		put()
		return b.EndObject()
	}
	vector := func(n int, of flatbuffers.UOffsetT) flatbuffers.UOffsetT {
		b.StartVector(4, n, 4)
		for range n {
			b.PrependUOffsetT(of)
		}
		return b.EndVector(n)
	}
	typ := table(2, func() { b.PrependUOffsetTSlot(1, texts[2], 0) })
	none, pairs := vector(0, 0), vector(1, table(2, func() { b.PrependUOffsetTSlot(0, texts[0], 0); b.PrependUOffsetTSlot(1, texts[1], 0) }))
	fields := vector(often, table(7, func() {
		b.PrependUOffsetTSlot(0, texts[0], 0)
		b.PrependByteSlot(2, code, 0)
		b.PrependUOffsetTSlot(3, typ, 0)
		b.PrependUOffsetTSlot(5, none, 0)
		b.PrependUOffsetTSlot(6, pairs, 0)
	}))
	schema := table(4, func() { b.PrependUOffsetTSlot(1, fields, 0) })
	b.Finish(table(5, func() {
		b.PrependInt16Slot(0, 4, 0)
		b.PrependByteSlot(1, 1, 0)
		b.PrependUOffsetTSlot(2, schema, 0)
	}))
	meta := b.FinishedBytes()
	meta = append(meta, make([]byte, -len(meta)&7)...)
	return append(binary.LittleEndian.AppendUint32([]byte{255, 255, 255, 255}, uint32(len(meta))), meta...)
}
