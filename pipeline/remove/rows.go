// Package remove finds the links that the rows of a list name, has the store mark them as deleted,
// and says what became of each row. A row names all links of its URL, or the link that has its code.
// If it has both, it names the link of the code, which must be one of the URL.
//
// [Read] makes a record of each row that has a URL or a code, and sorts these: URLs before codes, and
// equal ones together. [Rows.Mark] hands them to the store in this order, and files what became of
// each row by its place. [Rows.WriteAccepted] and [Rows.WriteRejects] write that in the order of the
// inputs.
//
// What does not fit in memory goes to spill files. Beside the sorts there is one chunk of rows, with
// the codes of its links.
package remove

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/profile"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/sink"
)

// Config says how rows are read.
type Config struct {
	Profile   canon.Profile  // of the workspace
	Fold      bool           // the workspace folds case: codes are put in lower case
	Workspace string         // of all rows
	Sorter    extsort.Config // of each sort, of which there are four; all but the order
	Store     sink.RulesStore

	// Progress, for another goroutine: bytes of the inputs as they lie, records, rejects among
	// them; records that Count or Mark has seen.
	Bytes, Read, Rejected, Seen *atomic.Int64
}

// Rows are what the inputs hold.
type Rows struct {
	*intake.Inputs
	cfg      Config
	records  *extsort.Sorter // see record.go
	codes    bool            // some records have codes
	reasons  map[string]int64
	rejects  *extsort.Sorter // by place; Mark adds some
	accepted *extsort.Sorter // by place; of Mark
}

// Read reads all inputs, which were opened with source.Options.ByCode. The caller closes the rows,
// which it gets with an error, too.
func Read(ctx context.Context, in *intake.Inputs, cfg Config) (*Rows, error) {
	r := &Rows{
		Inputs: in, cfg: cfg, reasons: map[string]int64{}, records: newTextSorter(cfg.Sorter),
		rejects: extsort.NewByKey(cfg.Sorter), accepted: extsort.NewByKey(cfg.Sorter),
	}
	w := &reader{Rows: r, exact: map[string]bool{}, out: r.records.NewWriter(), bad: rejecter{r.reasons, r.rejects.NewWriter(), nil}}
	for i, in := range in.List {
		before := cfg.Bytes.Load()
		w.in, w.number, w.workspace = in, i, slices.IndexFunc(in.Header(), isWorkspace)
		if err := in.Read(ctx, 1, func(_ int, b *source.Batch) error {
			now, _ := in.Progress()
			cfg.Bytes.Store(before + now)
			cfg.Read.Add(b.Record.NumRows() + int64(len(b.Errors)))
			if err := w.look(ctx, b); err != nil {
				return err
			}
			w.file(b)
			return cmp.Or(w.out.Err(), w.bad.to.Err())
		}); err != nil {
			return r, err
		}
	}
	return r, r.records.Finish(ctx)
}

// Close closes the sorts, but not the inputs.
func (r *Rows) Close() error {
	return errors.Join(r.records.Close(), r.rejects.Close(), r.accepted.Close())
}

// isWorkspace reports whether a column is called as that of the workspace is in files of bulk.
func isWorkspace(name string) bool { return profile.Fold(name) == "workspaceid" }

// A reader files the rows of an input.
type reader struct {
	*Rows
	in        *intake.Input
	number    int // of the input
	workspace int // its column of workspaces; -1: none
	out       *extsort.Writer
	bad       rejecter

	cells source.Cells    // of the batch in hand
	exact map[string]bool // codes of the batch that have a link as they are, of those that may be meant without what is around them

	// Of the row in hand.
	found     []columns.Code
	folded    []byte // the code in hand in lower case
	group     uint32
	text, url []byte
	rec       []byte
}

// look finds out which codes have a link just as they are, of those with white space around them or,
// in a list of short URLs, a slash at the end.
func (r *reader) look(ctx context.Context, b *source.Batch) error {
	r.cells.Of(b)
	clear(r.exact)
	if r.in.Code < 0 {
		return nil
	}
	var codes []string
	for i := range b.Rows {
		if code := r.codeOf(i); legacy.Possible(code) && len(r.bare(code)) < len(code) {
			codes = append(codes, string(code))
		}
	}
	if codes == nil {
		return nil
	}
	return r.cfg.Store.Resolve(ctx, r.cfg.Workspace, codes, func(l *sink.Resolved) error {
		r.exact[codes[l.Index]] = true
		return nil
	})
}

// codeOf returns the code of row i, as the workspace has it, until it is called again; empty: it has none.
func (r *reader) codeOf(i int) []byte {
	if r.found = r.in.Codes(r.found[:0], r.cells, i); len(r.found) == 0 {
		return nil
	}
	if r.cfg.Fold {
		r.folded = legacy.Fold(r.folded[:0], r.found[0].Text)
		return r.folded
	}
	return r.found[0].Text
}

// bare is a code without what may be around it.
func (r *reader) bare(code []byte) []byte {
	switch {
	case !r.in.CutsPaths():
		return bytes.TrimSpace(code)
	case len(r.found) > 0 && r.found[0].Slash:
		return bytes.TrimSuffix(code, []byte("/"))
	}
	return code // a blank that was escaped is part of it
}

func (r *reader) file(b *source.Batch) {
	for i := range b.Rows {
		at := record.Place{Source: r.number, Row: b.Rows[i], Offset: b.Offsets[i]}
		carried := func(n int) []byte { return r.cells.Cell(r.in.Layout.Carried[n], i) }
		input := r.cells.URL(r.in.URLs, i)
		if reason, detail := r.settle(i, input); reason != "" {
			r.reject(at, &outcome.Reject{Reason: reason, Detail: detail, Cells: r.in.Layout.Append(nil, input, nil, carried)})
			continue
		}
		key := packed.TextKey(r.text)
		if r.group == byURL {
			whole := urlKey(r.text, r.cfg.Workspace)
			key = binary.BigEndian.Uint64(whole[:])
		}
		r.codes = r.codes || r.group == byCode
		r.rec = appendRecord(r.rec[:0], r.text, at, r.url, input)
		for n := range r.Carried {
			r.rec = packed.AppendNullable(r.rec, carried(n))
		}
		copy(r.out.Reserve(r.group, key, len(r.rec)), r.rec)
	}
	for i := range b.Errors {
		e := &b.Errors[i]
		r.reject(record.Place{Source: r.number, Row: e.Row, Offset: e.Offset}, r.in.Unsplit(e))
	}
}

func (r *reader) reject(at record.Place, reject *outcome.Reject) {
	r.cfg.Rejected.Add(1)
	r.bad.file(at, reject)
}

// settle sets text to the canonical URL or the code of row i, with its group, and url to the canonical
// URL beside the code, or says why the row is rejected.
func (r *reader) settle(i int, input []byte) (reason, detail string) {
	// In this workspace the URL or code may be that of another link.
	if w := r.cells.Cell(r.workspace, i); len(w) > 0 && string(w) != r.cfg.Workspace {
		return outcome.BadWorkspace, fmt.Sprintf("the row is of another workspace: %.64q", w)
	}
	r.group, r.url = byURL, r.url[:0]
	if r.in.Code < 0 {
		r.text, reason, detail = r.canonical(r.text[:0], input)
		return reason, detail
	}
	url := bytes.TrimSpace(r.cells.URL(r.in.Beside, i))
	switch {
	case len(bytes.TrimSpace(input)) > 0:
	case len(r.in.Beside) == 0:
		return outcome.MissingCode, outcome.MissingCodeDetail
	case len(url) == 0:
		return outcome.MissingCode, "there is neither a code nor a URL"
	default:
		r.text, reason, detail = r.canonical(r.text[:0], url)
		return reason, detail
	}
	code := r.codeOf(i)
	if !r.exact[string(code)] {
		code = r.bare(code)
	}
	if r.group = byCode; len(code) == 0 {
		return outcome.MissingCode, outcome.MissingCodeDetail
	}
	if r.text = append(r.text[:0], code...); !legacy.Possible(r.text) {
		return outcome.BadCode, outcome.BadCodeDetail(r.text, "")
	}
	if len(url) > 0 {
		r.url, reason, detail = r.canonical(r.url, url)
	}
	return reason, detail
}

// canonical appends the canonical form of a URL, or says why the row is rejected.
func (r *reader) canonical(dst, url []byte) (_ []byte, reason, detail string) {
	if len(url) == 0 {
		return dst, outcome.MissingURL, outcome.MissingURLDetail
	}
	dst, err := r.cfg.Profile.Append(dst, url)
	if err != nil {
		reason := err.(canon.Reason)
		return dst, string(reason), canon.Detail(url, reason)
	}
	return dst, "", ""
}

// urlKey is the url_key of a URL alone.
func urlKey(canonical []byte, workspace string) [16]byte {
	return codegen.Sum(codegen.AppendInput(nil, canonical, []byte(workspace), 0)).Key()
}

// A rejecter counts rejects, and files them by place.
type rejecter struct {
	reasons map[string]int64
	to      *extsort.Writer // nil: they are not filed
	buf     []byte
}

func (r *rejecter) file(at record.Place, reject *outcome.Reject) {
	r.reasons[reject.Reason]++
	if r.to != nil {
		r.buf = record.AppendReject(r.buf[:0], at, reject)
		copy(r.to.Reserve(0, at.Key(), len(r.buf)), r.buf)
	}
}
