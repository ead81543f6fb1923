package verify

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/maphash"
	"time"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// A wantWriter files the links that the store must have, for one goroutine.
type wantWriter struct {
	run     *run
	groups  *grouper
	to      *extsort.Writer
	sums    linkSummer
	created uint64 // sum of links as the run created them
	beyond  []byte
}

// newWantWriter returns a writer to a sort; nil if there is none.
func newWantWriter(run *run, groups *grouper, seed maphash.Seed, wanted *extsort.Sorter) *wantWriter {
	if wanted == nil {
		return nil
	}
	return &wantWriter{run: run, groups: groups, to: wanted.NewWriter(), sums: linkSummer{seed: seed}}
}

// add notes that the store must have a link of the mapping. One that the run created is only added up.
func (w *wantWriter) add(r *link) {
	if r.Outcome == outcome.Created {
		w.beyond = w.run.storedAs(w.beyond[:0], r)
		w.created += w.sums.sum(r.Workspace, r.Code, r.Canonical, w.beyond, r.Alias)
		return
	}
	w.file(r)
}

// file files a link of the mapping that the store must have.
func (w *wantWriter) file(r *link) {
	w.beyond = w.run.storedAs(w.beyond[:0], r)
	w.fileAs(r, 0, w.beyond)
}

// fileAs does so for a link of which storedAs says this.
func (w *wantWriter) fileAs(r *link, flags claimFlags, beyond []byte) {
	c := holding(r, flags)
	c.owner = beyond
	file(w.to, w.groups.id(r.Workspace), c)
}

// A linkSummer makes digests of links, for one goroutine. Each call of Run has a new key for them.
type linkSummer struct {
	seed maphash.Seed
	buf  []byte
}

// sum returns the sum of a link as the run created it; beyond is of storedAs or hasAs.
func (s *linkSummer) sum(workspace, code, canonical, beyond []byte, alias bool) uint64 {
	s.buf = s.buf[:0]
	if alias {
		s.buf = append(s.buf, 0)
	}
	for _, cell := range [...][]byte{workspace, code, canonical, beyond} {
		s.buf = packed.AppendCell(s.buf, cell)
	}
	return maphash.Bytes(s.seed, s.buf)
}

// storedAs appends what the store must have of the link of this row after the run. What is no parameter
// counts only if the run has created or revived it.
func (r *run) storedAs(dst []byte, l *link) []byte {
	var attributes []byte
	created := r.manifest.AsOf
	if r.tellsAlong() && l.source >= 0 && r.codes.inputs[l.source] != nil {
		a := r.migration.along[l.source]
		attributes = a.AppendAttrs(nil, l.Carried)
		if at := a.Created(l.Carried); r.terms.Beyond.KeepCreated && !at.IsZero() {
			created = at
		}
	}
	dst = appendBeyond(dst, r.originalOf(l), attributes, created)
	if !r.ruling.ruled {
		return dst
	}
	return appendParams(dst, l.key(), &l.Rules.Cells)
}

// key returns the url_key of the link of a row, or of its alias.
func (l *link) key() sink.Key {
	if l.Alias {
		return codegen.Sum(codegen.AppendAlias(nil, l.Canonical, l.Workspace, l.parts, l.Code)).Key()
	}
	return l.hash.Key()
}

// hasAs appends what the store has of a link, as far as the mapping tells what it must have.
func (r *run) hasAs(dst []byte, l *sink.Stored) []byte {
	attributes, created := l.Attrs, l.Created
	if !r.tellsAlong() {
		if attributes = nil; r.terms.Beyond != nil && r.terms.Beyond.KeepCreated {
			created = r.manifest.AsOf
		}
	}
	dst = appendBeyond(dst, l.Original, attributes, created)
	if !r.ruling.ruled {
		return dst
	}
	cells := storedCells(rulesOf(l))
	return appendParams(dst, l.Key, &cells)
}

// tellsAlong reports whether the mapping tells what goes along with links.
func (r *run) tellsAlong() bool { return r.terms.Beyond != nil && r.terms.Carry }

// appendBeyond appends what the store has of a link beside URL and code:
//
//	creation time in microseconds of Unix time, 8 bytes
//	| original and attributes, each as of packed.AppendNullable
//	| what appendParams appends, if the run tells it
func appendBeyond(dst, original, attributes []byte, created time.Time) []byte {
	if len(attributes) == 0 {
		attributes = nil
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(created.UnixMicro()))
	return packed.AppendNullable(packed.AppendNullable(dst, original), attributes)
}

// beyondColumns are the columns of appendBeyond and appendParams after the first.
var beyondColumns = []string{"original_url", "attrs", "url_key", "expires_at", "max_uses", "link_type", "owner_id", "ref"}

// compareBeyond makes findings of what differs between the two, in columns that count.
func compareBeyond(here spot, want, got []byte, counts func(column string, want []byte) bool) {
	if a, b := want[:8], got[:8]; counts("created_at", a) && !bytes.Equal(a, b) {
		here.wrong(StoreDiffers, "created_at", microTime(a), microTime(b))
	}
	want, got = want[8:], got[8:]
	for i := 0; len(want) > 0; i++ {
		var a, b []byte
		a, want = packed.CutNullable(want)
		b, got = packed.CutNullable(got)
		if column := beyondColumns[i]; counts(column, a) && !bytes.Equal(a, b) {
			if column == "url_key" {
				a, b = hex.AppendEncode(nil, a), hex.AppendEncode(nil, b)
			}
			here.wrong(StoreDiffers, column, string(a), string(b))
		}
	}
}

func microTime(micro []byte) string {
	return timeText(time.UnixMicro(int64(binary.BigEndian.Uint64(micro))).UTC())
}

// originalOf returns the original URL as the store has it; nil: none, since it is the canonical one.
func (r *run) originalOf(l *link) []byte {
	text := r.terms.URLs.Complete(l.Original)
	if bytes.Equal(text, l.Canonical) {
		return nil
	}
	return canon.EscapeInvalid(text)
}

// appendParams appends what the store has of a link whose run was held against links: its url_key,
// and the cells of its parameters, each as of packed.AppendNullable.
func appendParams(dst []byte, key sink.Key, cells *rules.Cells) []byte {
	dst = packed.AppendNullable(dst, key[:])
	for _, cell := range cells {
		if len(cell) == 0 {
			cell = nil
		}
		dst = packed.AppendNullable(dst, cell)
	}
	return dst
}

// storedCells returns the cells of the parameters of a link, as the mapping shows them.
func storedCells(r sink.Rules) (cells rules.Cells) {
	l := rules.Link{Limit: r.MaxUses, Type: rules.TypeOf(string(r.Type)), Owner: r.Owner}
	if !r.Expires.IsZero() {
		l.Expiry = rules.Expiry{When: rules.At, Seconds: r.Expires.Unix()}
	}
	cells, _ = l.Cells(nil)
	cells[rules.Ref] = r.Ref
	return cells
}
