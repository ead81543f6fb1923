package report

import (
	"bytes"
	"io"
	"strconv"
	"sync"
	"unsafe"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/shorturl"
)

// csvMapping formats rows in its blocks, by any number of goroutines, and hands
// each block to the writer in one piece.
type csvMapping struct {
	csvCells
	w      io.Writer
	base   *shorturl.Base
	fixed  []byte    // what all short URLs begin with; nil: they differ, or need quotes
	added  []*Column // beside the plain ones
	header []byte    // until it is written
	blocks sync.Pool
}

func newCSVMapping(w io.Writer, opts MappingOptions) *csvMapping {
	m := &csvMapping{csvCells: csvCells{opts.ExcelSafe}, w: w, base: shorturl.NewBase(opts.BaseURL), added: opts.Added()}
	if m.base != nil && m.bare(m.base.Fixed()) {
		m.fixed = m.base.Fixed()
	}
	m.header = m.appendHeader(nil, append(opts.Names(), opts.Carried...))
	m.blocks.New = func() any { return &csvBlock{m: m} }
	return m
}

func (m *csvMapping) Block() Block { return m.blocks.Get().(*csvBlock) }

func (m *csvMapping) Write(b Block) error {
	if err := m.writeHeader(); err != nil {
		return err
	}
	block := b.(*csvBlock)
	_, err := m.w.Write(block.buf)
	block.buf = block.buf[:0]
	m.blocks.Put(block)
	return err
}

func (m *csvMapping) Close() error { return m.writeHeader() }

func (m *csvMapping) Abandon() {}

func (m *csvMapping) writeHeader() error {
	if m.header == nil {
		return nil
	}
	_, err := m.w.Write(m.header)
	m.header = nil
	return err
}

type csvBlock struct {
	m   *csvMapping
	buf []byte
}

func (b *csvBlock) Append(r *Row) {
	m, buf := b.m, b.buf
	buf = append(m.append(buf, bytesOf(r.Source)), ',')
	buf = append(strconv.AppendInt(buf, r.Row, 10), ',')
	buf = append(m.append(buf, r.Workspace), ',')
	original := len(buf)
	buf = append(m.append(buf, r.Original), ',')
	if bytes.Equal(r.Original, r.Canonical) { // the usual case: no second look
		buf = append(buf, buf[original:]...)
	} else {
		buf = append(m.append(buf, r.Canonical), ',')
	}
	buf = append(m.append(buf, r.Code), ',')
	if m.base != nil {
		buf = m.appendShortURL(buf, r)
	}
	buf = append(buf, ',')
	buf = append(buf, r.Outcome.String()...)
	buf = append(buf, ',')
	if r.Salt >= 0 {
		buf = strconv.AppendInt(buf, int64(r.Salt), 10)
	}
	for _, c := range m.added {
		if buf = append(buf, ','); c.Free {
			buf = m.append(buf, c.text(r))
		} else {
			buf = c.AppendText(buf, r)
		}
	}
	for _, cell := range r.Carried {
		buf = m.append(append(buf, ','), cell)
	}
	b.buf = append(buf, '\n')
}

func (m *csvMapping) appendShortURL(dst []byte, r *Row) []byte {
	if m.fixed != nil && codegen.IsPath(r.Code) && !needsQuotes(r.Code) {
		return append(append(dst, m.fixed...), r.Code...)
	}
	return m.append(dst, m.base.Append(nil, r.Workspace, r.Domain, r.Code))
}

// bytesOf returns the bytes of a string, which nobody may change.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
