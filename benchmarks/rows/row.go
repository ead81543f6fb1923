package main

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// runID is the run that all links are of.
const runID = 1

// A link is a row of the table.
type link struct {
	workspace, code, canonical string
	original                   *string // nil: same as canonical
	key                        [16]byte
}

// escape writes a value for the text format of COPY.
var escape = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)

// text is the row in the text format of COPY.
func (l *link) text(asOf time.Time) []byte {
	original := `\N`
	if l.original != nil {
		original = escape.Replace(*l.original)
	}
	stamp := asOf.UTC().Format("2006-01-02 15:04:05+00")
	return fmt.Appendf(nil, "%s\t%s\t%x\t%s\t%s\t%d\t%s\t%s\n", escape.Replace(l.workspace), l.code, l.key, escape.Replace(l.canonical), original, runID, stamp, stamp)
}

// An encoder writes rows in the binary format of COPY. Errors are those of the
// file, which tells them when it is closed.
type encoder struct {
	f   *file
	buf []byte
	end []byte // run_id, created_at and updated_at
}

// postgresEpoch is where timestamps count from.
var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func newEncoder(f *file, asOf time.Time) *encoder {
	f.WriteString("PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00")
	end := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 4}, runID)
	stamp := binary.BigEndian.AppendUint64([]byte{0, 0, 0, 8}, uint64(asOf.Sub(postgresEpoch).Microseconds()))
	return &encoder{f: f, end: append(append(end, stamp...), stamp...)}
}

func (e *encoder) row(l *link) {
	const columns = 8
	e.buf = append(e.buf[:0], 0, columns)
	for _, v := range []string{l.workspace, l.code, string(l.key[:]), l.canonical} {
		e.value(v)
	}
	if l.original == nil {
		e.buf = append(e.buf, 0xff, 0xff, 0xff, 0xff)
	} else {
		e.value(*l.original)
	}
	e.f.Write(append(e.buf, e.end...))
}

func (e *encoder) value(v string) {
	e.buf = append(binary.BigEndian.AppendUint32(e.buf, uint32(len(v))), v...)
}

func (e *encoder) trailer() { e.f.WriteString("\xff\xff") }
