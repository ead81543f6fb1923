package verify

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/source"
)

// parts are digests of the parts of a row. Each call of Run has a new key for them, so that
// nobody can forge two parts that agree.
type parts [5]uint64

// rowSums are the digests of a row on one side, run or input. An input does not tell whether
// a row became a link or a reject whose codes are all taken: then it has both.
type rowSums struct {
	filed    bool // the side has the row
	input    bool // the side is the input
	linked   bool // it is, or may be, a link
	link     parts
	rejected parts
	said     []byte // if only the inputs tell what rows say of their links, of the run as of heldCoder.said; of the input as of rules.Params.Append
}

// sums are how digests of the rows of both sides are made, and brought together.
type sums struct {
	run     *run
	seed    maphash.Seed
	details bool            // of rejects count: this version of the program wrote them
	rows    *extsort.Sorter // two records for each row of the inputs: the sums of the run and of the input; nil: sums are only added up
}

// A rowHasher sums rows for one goroutine.
type rowHasher struct {
	by     *sums
	writer *extsort.Writer // nil: rows are only added up
	total  uint64
	buf    []byte
}

func (s *sums) newHasher() *rowHasher { return &rowHasher{by: s, writer: writer(s.rows)} }

func (s *rowHasher) sum(cells ...[]byte) uint64 {
	s.buf = s.buf[:0]
	for _, cell := range cells {
		s.buf = packed.AppendNullable(s.buf, cell)
	}
	return maphash.Bytes(s.by.seed, s.buf)
}

// link sums a row of the mapping, which has these parts of its identity, and of a campaign the URL of the input. Its cells are as written
// returns them.
func (s *rowHasher) link(original, input, workspace []byte, carried [][]byte, code, identity []byte) parts {
	if !s.by.run.terms.Carry {
		carried = nil
	}
	return parts{s.sum(original, input), s.sum(workspace), s.sum(carried...), s.sum(code), maphash.Bytes(s.by.seed, identity)}
}

// reject sums a reject. Its detail counts only if the row could not be split and this version
// wrote it: rejectChecker checks the others.
func (s *rowHasher) reject(reason, detail string, offset int64, raw []byte, cells [][]byte) parts {
	if !unsplit(reason) || !s.by.details {
		detail = ""
	}
	if reason == outcome.CodeTaken || reason == outcome.CodeReserved || rules.IsRefusal(reason) { // rejectChecker checks what the input does not tell
		reason = outcome.CodeSpaceExhausted
	}
	s.buf = s.buf[:0]
	blank := true
	for _, cell := range cells {
		blank = blank && len(cell) == 0
		s.buf = packed.AppendCell(s.buf, cell)
	}
	if blank {
		s.buf = s.buf[:0]
	}
	all := maphash.Bytes(s.by.seed, s.buf)
	return parts{s.sum([]byte(reason), []byte(detail)), uint64(offset), maphash.Bytes(s.by.seed, raw), all, 0}
}

// unsplit reports whether a reason is that of a row without cells.
func unsplit(reason string) bool {
	return reason == string(source.MalformedRow) || reason == string(source.FieldTooLong)
}

// written returns a cell as the mapping gives it back: in CSV there is no null.
func (s *rowHasher) written(cell []byte) []byte {
	if cell == nil && s.by.run.mapping == report.CSV.FileName() {
		return []byte{}
	}
	return cell
}

// row files a row of the mapping. Said is as of rowSums.
func (s *rowHasher) row(l *link, said []byte) {
	s.file(l.source, l.Row.Row, s.by.run.keyOf(l), l.Workspace, rowSums{linked: true, link: s.link(l.Original, l.InputURL, l.Workspace, l.Carried, l.Legacy, l.parts), said: said})
}

// rejected files a reject of the run.
func (s *rowHasher) rejected(source int, r *outcome.Reject, code, workspace []byte) {
	s.file(source, r.Row, code, workspace, rowSums{rejected: s.reject(r.Reason, r.Detail, r.Offset, r.Raw, r.Cells)})
}

// file puts a row into the sort. Without a writer it adds up the parts of what the row is,
// link or reject.
// Rows that one row of the input became are told apart by their codes, and by their workspaces if
// each domain has one.
func (s *rowHasher) file(source int, row int64, code, workspace []byte, sum rowSums) {
	key := record.Place{Source: source + 1, Row: row}.Key()
	if s.writer == nil {
		all := sum.rejected
		if sum.linked {
			all = sum.link
		}
		s.buf = append(binary.LittleEndian.AppendUint64(s.buf[:0], key), byte(btoi(sum.linked)))
		for _, part := range all {
			s.buf = binary.LittleEndian.AppendUint64(s.buf, part)
		}
		s.total += maphash.Bytes(s.by.seed, s.buf)
		return
	}
	variant := uint64(0)
	if s.by.run.many(source) {
		if variant = s.sum(code); s.by.run.terms.Beyond.ByDomain() {
			variant += 3 * s.sum(workspace)
		}
	}
	rec := s.writer.Reserve(0, key, sumsSize+len(sum.said))
	copy(rec[sumsSize:], sum.said)
	binary.BigEndian.PutUint64(rec, variant)
	rec = rec[8:]
	rec[0], rec[1] = byte(btoi(sum.input)), byte(btoi(sum.linked))
	for i := range sum.link {
		binary.LittleEndian.PutUint64(rec[2+8*i:], sum.link[i])
		binary.LittleEndian.PutUint64(rec[2+8*(len(sum.link)+i):], sum.rejected[i])
	}
}

// sumsSize is the size of a record of sums, without what is said.
const sumsSize = 8 + 2 + 2*8*len(parts{})

func decodeSums(rec []byte) (variant uint64, s rowSums) {
	s.said = bytes.Clone(rec[sumsSize:])
	variant, rec = binary.BigEndian.Uint64(rec), rec[8:]
	s.filed, s.input, s.linked = true, rec[0] == 1, rec[1] == 1
	for i := range s.link {
		s.link[i] = binary.LittleEndian.Uint64(rec[2+8*i:])
		s.rejected[i] = binary.LittleEndian.Uint64(rec[2+8*(len(s.link)+i):])
	}
	return variant, s
}
