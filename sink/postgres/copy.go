package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// The stream of COPY … (FORMAT binary), see "File Formats" on PostgreSQL's page of COPY: a
// header; for each row the number of its columns, and for each column its length and its
// bytes, big endian; a trailer. To encode a row by hand takes 0.01 µs, and 0.1 µs with
// sending; pgx.CopyFrom with row values takes 0.5 µs.
const (
	copyHeader  = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"
	copyTrailer = "\xff\xff"
)

// postgresEpoch is the zero of timestamps, in microseconds of Unix time.
var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// An encoder appends links of one run as rows of a stream. That of newEncoder sends all
// columns; that of setDefaults sends fewer.
type encoder struct {
	run       sink.Run
	own       bool     // the run may have links with more than others have
	columns   []string // to send
	dropped   bool     // the index on base_key, by dropBase
	workspace []byte   // of all links, if it is not sent; else nil
	tail      []byte   // those of run_id, created_at, updated_at and activeColumns that are sent; created_at is the AsOf
	created   int      // where the value of created_at is in the tail
}

// newEncoder makes an encoder that sends all columns.
func newEncoder(run sink.Run) *encoder {
	var tail []byte
	tail = binary.BigEndian.AppendUint32(tail, 4)
	tail = binary.BigEndian.AppendUint32(tail, uint32(run.ID))
	tail = appendTime(tail, run.AsOf)
	created := len(tail) - 8
	tail = appendTime(tail, run.AsOf)
	if run.Rules {
		tail = appendBytes(appendInt(tail, 0), []byte(sink.Active))
	}
	return (&encoder{run: run, columns: constant(run), tail: tail, created: created}).withOwn()
}

// appendTime adds a timestamp and its length.
func appendTime(dst []byte, t time.Time) []byte { return appendInt(dst, timestampOf(t)) }

func timestampOf(t time.Time) int64 { return t.UnixMicro() - postgresEpoch }

// appendInt adds a bigint and its length.
func appendInt(dst []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, 0, 0, 0, 8), uint64(n))
}

// withOwn adds the columns that only some links have, if links of the run may have them.
func (e *encoder) withOwn() *encoder {
	e.own, e.columns = hasOwn(e.run), slices.Concat(e.columns, ownColumns(e.run))
	return e
}

// copyInto is the COPY statement for rows with these columns.
func copyInto(table string, columns []string, options string) string {
	return "COPY " + table + " (" + strings.Join(columns, ", ") + ") FROM STDIN (FORMAT binary" + options + ")"
}

// append adds a link to dst. It fails if the workspace is not sent and the link has another
// one, and if the link has something else that is not sent.
func (e *encoder) append(dst []byte, l *sink.Link) ([]byte, error) {
	dst = append(dst, 0, byte(len(e.columns)))
	if e.workspace == nil {
		dst = appendBytes(dst, l.Workspace)
	} else if !bytes.Equal(l.Workspace, e.workspace) {
		return dst, fmt.Errorf("a link is in workspace %q, and the session has locked %q", l.Workspace, e.workspace)
	}
	dst = appendBytes(dst, l.Code)
	dst = appendBytes(dst, l.Key[:])
	dst = appendBytes(dst, l.Canonical)
	if l.Original == nil {
		dst = append(dst, null...)
	} else {
		dst = appendBytes(dst, l.Original)
	}
	dst = append(dst, e.tail...)
	if err := e.run.Unannounced(l); err != nil || !e.own {
		return dst, err
	}
	return e.appendOwn(dst, l), nil
}

// appendOwn adds what only some links have.
func (e *encoder) appendOwn(dst []byte, l *sink.Link) []byte {
	if !l.Created.IsZero() {
		binary.BigEndian.PutUint64(dst[len(dst)-len(e.tail)+e.created:], uint64(timestampOf(l.Created)))
	}
	switch {
	case l.Alias:
		dst = append(dst, 0, 0, 0, 5, 'a', 'l', 'i', 'a', 's')
	case e.run.Aliases:
		dst = append(dst, null...)
	}
	switch {
	case l.Alias, l.Base != sink.Key{}:
		dst = appendBytes(dst, l.Base[:])
	case e.run.Aliases || e.run.Parts:
		dst = append(dst, null...)
	}
	switch {
	case l.Attrs != nil:
		dst = binary.BigEndian.AppendUint32(dst, uint32(1+len(l.Attrs)))
		dst = append(append(dst, jsonbVersion), l.Attrs...)
	case e.run.Attrs:
		dst = append(dst, null...)
	}
	switch {
	case l.Rules != nil:
		dst = appendRules(dst, l.Rules)
	case e.run.Rules:
		dst = append(dst, null+null+null+null+null...)
	}
	return dst
}

// appendRules adds the rules that a new link has.
func appendRules(dst []byte, r *sink.Rules) []byte {
	if r.Expires.IsZero() {
		dst = append(dst, null...)
	} else {
		dst = appendTime(dst, r.Expires)
	}
	if r.MaxUses == 0 {
		dst = append(dst, null...)
	} else {
		dst = appendInt(dst, r.MaxUses)
	}
	for _, text := range [][]byte{r.Type, r.Owner, r.Ref} {
		if len(text) == 0 {
			dst = append(dst, null...)
		} else {
			dst = appendBytes(dst, text)
		}
	}
	return dst
}

const (
	null         = "\xff\xff\xff\xff" // in place of the length of a value
	jsonbVersion = 1                  // of the binary format: a byte before the text
)

// appendBytes adds the length of b and then b, as COPY and arrays need them.
func appendBytes(dst, b []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(b)))
	return append(dst, b...)
}

// A batch is a piece of a stream: whole rows, without header and trailer.
type batch struct {
	seq  int64
	rows int64
	data []byte
}

// encode fills buffers from free with links, and sends each to out when it holds size bytes;
// the last one may hold less. It closes out only when it has sent all links. If the context
// is over, it returns its cause.
func encode(ctx context.Context, e *encoder, chunks iter.Seq2[[]sink.Link, error], size int, free <-chan []byte, out chan<- batch) error {
	var b batch
	send := func() error {
		select {
		case out <- b:
			b = batch{seq: b.seq + 1}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for chunk, err := range chunks {
		if err != nil {
			return err
		}
		if ctx.Err() != nil { // few links may not fill a buffer
			return context.Cause(ctx)
		}
		for i := range chunk {
			if b.rows == 0 {
				select {
				case b.data = <-free:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				b.data = b.data[:0]
			}
			if n := len(b.data); cap(b.data) < size && n >= cap(b.data)/2 {
				b.data = append(make([]byte, 0, grown(n, size)), b.data...)
			}
			if b.data, err = e.append(b.data, &chunk[i]); err != nil {
				return err
			}
			b.rows++
			if len(b.data) >= size {
				if err := send(); err != nil {
					return err
				}
			}
		}
	}
	if b.rows > 0 {
		if err := send(); err != nil {
			return err
		}
	}
	close(out)
	return nil
}

// grown is the capacity of a buffer that has n bytes so far. A few links need no buffer for many: to
// clear it would take longer than the load.
func grown(n, size int) int {
	if n == 0 {
		return min(size, 64<<10)
	}
	return size + size/16 // so that its last row rarely makes it grow
}

// buffers returns n free buffers. Each is nil until encode needs it.
func buffers(n int) chan []byte {
	free := make(chan []byte, n)
	for range n {
		free <- nil
	}
	return free
}

// A stream reads as a whole stream of COPY: the header, the batches that next returns until
// io.EOF, the trailer. Each Read but the last fills its buffer. The driver may still read in
// another goroutine after its CopyFrom has returned: after close, no batch is read.
type stream struct {
	mu    sync.Mutex
	next  func() (batch, error)
	rows  int64 // of the pieces so far
	piece []byte
	err   error // of Read, after the end of piece
}

func newStream(next func() (batch, error)) *stream {
	return &stream{next: next, piece: []byte(copyHeader)}
}

func (s *stream) Read(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n < len(p) {
		if len(s.piece) == 0 {
			if s.err != nil {
				return n, s.err
			}
			s.advance()
			continue
		}
		m := copy(p[n:], s.piece)
		s.piece = s.piece[m:]
		n += m
	}
	return n, nil
}

// advance goes to the next piece.
func (s *stream) advance() {
	var b batch
	b, s.err = s.next()
	s.piece, s.rows = b.data, s.rows+b.rows
	if s.err == io.EOF {
		s.piece = []byte(copyTrailer)
	}
}

func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.piece, s.err = nil, errors.New("the stream is closed")
}

// copyFrom sends the batches that next returns until io.EOF. It fails if the table took
// fewer rows.
func copyFrom(ctx context.Context, conn *pgx.Conn, sql string, next func() (batch, error)) error {
	in := newStream(next)
	tag, err := conn.PgConn().CopyFrom(ctx, in, sql)
	in.close()
	if err == nil && tag.RowsAffected() != in.rows {
		err = fmt.Errorf("the table took %d of %d rows: a trigger or a rule keeps the others out", tag.RowsAffected(), in.rows)
	}
	return err
}
