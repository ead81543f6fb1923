package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// The stream of COPY … (FORMAT binary): a header, then of each row the number
// of its columns and of each column its length and its bytes, all big endian,
// then a trailer. Encoded by hand a row costs the client 0.01 µs, and 0.1 with
// the sending, where pgx.CopyFrom with row values costs 0.5.
const (
	copyHeader  = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"
	copyTrailer = "\xff\xff"
)

// postgresEpoch is where timestamps count from, in microseconds of Unix time.
var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// An encoder appends links of one run as rows of a stream. newEncoder makes one, and
// setDefaults one that sends less.
type encoder struct {
	columns   []string // those that are sent
	workspace []byte   // of all links, if that is not sent
	tail      []byte   // run_id, created_at and updated_at, the same in every row; nothing if they are not sent
}

// newEncoder makes an encoder that sends all columns.
func newEncoder(run sink.Run) *encoder {
	var tail []byte
	tail = binary.BigEndian.AppendUint32(tail, 4)
	tail = binary.BigEndian.AppendUint32(tail, uint32(run.ID))
	for range 2 {
		tail = binary.BigEndian.AppendUint32(tail, 8)
		tail = binary.BigEndian.AppendUint64(tail, uint64(run.AsOf.UnixMicro()-postgresEpoch))
	}
	return &encoder{columns: linksColumns, tail: tail}
}

// copyInto is the statement that reads a stream of rows with these columns.
func copyInto(table string, columns []string, options string) string {
	return "COPY " + table + " (" + strings.Join(columns, ", ") + ") FROM STDIN (FORMAT binary" + options + ")"
}

// append adds a link to dst. The error is that of a link that is not of the session.
func (e *encoder) append(dst []byte, l *sink.Link) ([]byte, error) {
	dst = append(dst, 0, byte(len(e.columns)))
	if e.workspace == nil {
		dst = appendBytes(dst, l.Workspace)
	} else if !bytes.Equal(l.Workspace, e.workspace) {
		return dst, fmt.Errorf("a link of workspace %q in a session on %q", l.Workspace, e.workspace)
	}
	dst = appendBytes(dst, l.Code)
	dst = appendBytes(dst, l.Key[:])
	dst = appendBytes(dst, l.Canonical)
	if l.Original == nil {
		dst = append(dst, 0xff, 0xff, 0xff, 0xff)
	} else {
		dst = appendBytes(dst, l.Original)
	}
	return append(dst, e.tail...), nil
}

// appendBytes adds the length of b and b, as COPY and arrays have them.
func appendBytes(dst, b []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(b)))
	return append(dst, b...)
}

// A batch is a piece of a stream without header and trailer: whole rows.
type batch struct {
	seq  int64
	rows int64
	data []byte
}

// encode fills buffers from free with the links and sends each on once it holds
// size bytes, or all the rest. The context ends it. It closes out when all are
// sent, so that who reads out to its end has all.
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
		if ctx.Err() != nil { // few links do not fill the buffer for long
			return context.Cause(ctx)
		}
		for i := range chunk {
			if b.rows == 0 {
				select {
				case b.data = <-free:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				if b.data = b.data[:0]; cap(b.data) == 0 {
					b.data = make([]byte, 0, size+size/16) // the row that fills it rarely makes it grow
				}
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

// buffers are n free buffers, which encode makes when it first needs them.
func buffers(n int) chan []byte {
	free := make(chan []byte, n)
	for range n {
		free <- nil
	}
	return free
}

// A stream reads a whole stream of COPY: header, what next returns batch by
// batch until it is io.EOF, trailer. It fills the buffer of each Read but the
// last. The driver may still read in another goroutine when its CopyFrom has
// returned; after close, no piece is touched any more.
type stream struct {
	mu    sync.Mutex
	next  func() (batch, error)
	rows  int64 // of the pieces so far
	piece []byte
	err   error // what Read returns once piece is used up
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

// advance makes the next piece the current one.
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

// copyFrom sends the batches that next returns until io.EOF. That the table took
// fewer rows is an error.
func copyFrom(ctx context.Context, conn *pgx.Conn, sql string, next func() (batch, error)) error {
	in := newStream(next)
	tag, err := conn.PgConn().CopyFrom(ctx, in, sql)
	in.close()
	if err == nil && tag.RowsAffected() != in.rows {
		err = fmt.Errorf("the table took %d of %d rows: a trigger or a rule keeps the others out", tag.RowsAffected(), in.rows)
	}
	return err
}
