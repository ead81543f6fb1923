package remove

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// Marked says what became of the rows. They are counted as far as it is known.
type Marked struct {
	Links   int64 // that were marked; of a dry run: that would be
	Deleted int64 // rows that marked a link
	Rows    [outcome.Count]int64
	Reasons map[string]int64 // rejects by reason
}

// Rejected returns the number of rejects.
func (m *Marked) Rejected() (n int64) {
	for _, rows := range m.Reasons {
		n += rows
	}
	return n
}

// Count says what Mark would do, and changes nothing.
func (r *Rows) Count(ctx context.Context, store sink.RulesStore, opts sink.DeleteOptions) (Marked, error) {
	opts.DryRun = true
	return r.newMarker(ctx, &opts).mark(ctx, store, opts)
}

// Mark marks the links that the rows name. It is called once. The result is valid, as far as it
// got, also with an error.
func (r *Rows) Mark(ctx context.Context, store sink.RulesStore, opts sink.DeleteOptions) (Marked, error) {
	m := r.newMarker(ctx, &opts)
	m.good, m.bad.to = r.accepted.NewWriter(), r.rejects.NewWriter()
	marked, err := m.mark(ctx, store, opts)
	return marked, cmp.Or(err, errors.Join(r.accepted.Finish(ctx), r.rejects.Finish(ctx)))
}

// A chunk of rows ends with the row with which it has so many rows, or so many bytes.
const (
	chunkRows  = 1_000
	chunkBytes = 1 << 20
)

// A marker decides about the rows in the order of the sort.
type marker struct {
	rows  *Rows
	owner []byte // of DeleteOptions
	Marked
	good  *extsort.Writer // nil: rows are not filed
	bad   rejecter
	buf   []byte
	cells [][]byte

	at    *extsort.Cursor
	chunk []chunkRow
	items []*item // of the chunk
	asked int     // items of earlier chunks
	last  *item   // of the row before

	urls  namedCodes
	named string // the last code that a row with a code has named
}

// An item is what neighbouring rows name that have an equal URL, or code with URL. Rows of one code may
// be several items.
type item struct {
	group         uint32
	text, url     []byte
	first, later  rules.Deletion // of its first row, and of each other
	canonical     []byte         // of the link
	marked, found []byte         // codes of links of the owner
}

type chunkRow struct {
	row
	of    *item
	first bool // row of the item
}

func (r *Rows) newMarker(ctx context.Context, opts *sink.DeleteOptions) *marker {
	reasons, urls := maps.Clone(r.reasons), newTextSorter(r.cfg.Sorter)
	return &marker{rows: r, owner: []byte(opts.Owner), Marked: Marked{Reasons: reasons}, bad: rejecter{reasons: reasons},
		at: r.records.Cursor(ctx, 1), urls: namedCodes{ctx: ctx, sorter: urls, to: urls.NewWriter()}}
}

func (m *marker) mark(ctx context.Context, store sink.RulesStore, opts sink.DeleteOptions) (Marked, error) {
	err := store.Delete(ctx, opts, m.chunks, m.visit)
	m.at.Close()
	return m.Marked, errors.Join(err, m.urls.close())
}

// chunks yields what the rows name. The rows of a chunk are filed before the next one is read.
func (m *marker) chunks(yield func([]sink.Deletion, error) bool) {
	for m.fill() {
		if !yield(m.deletions(), nil) {
			return
		}
		if err := m.file(); err != nil {
			yield(nil, err)
			return
		}
	}
	if err := m.at.Err(); err != nil {
		yield(nil, err)
	}
}

// fill reads a chunk, and reports whether there is one.
func (m *marker) fill() bool {
	m.asked += len(m.items)
	m.chunk, m.items = m.chunk[:0], m.items[:0]
	for size := 0; len(m.chunk) < chunkRows && size < chunkBytes && m.at.Next(); {
		rec := bytes.Clone(m.at.Record())
		size += len(rec)
		r, group := decode(rec), m.at.Group()
		first := m.last == nil || m.last.group != group || !bytes.Equal(m.last.text, r.text) || !bytes.Equal(m.last.url, r.url)
		if first {
			d := rules.Deletion{Owner: m.owner}
			m.last = &item{group: group, text: r.text, url: r.url, first: d, later: d}
			if group == byURL {
				m.last.canonical = r.text
			}
			m.items = append(m.items, m.last)
		}
		m.chunk = append(m.chunk, chunkRow{r, m.last, first})
	}
	return len(m.chunk) > 0
}

// deletions returns the items for the store.
func (m *marker) deletions() []sink.Deletion {
	list := make([]sink.Deletion, len(m.items))
	for i, it := range m.items {
		if list[i] = (sink.Deletion{Code: string(it.text), Canonical: string(it.url)}); it.group == byURL {
			list[i] = sink.Deletion{Base: urlKey(it.text, m.rows.cfg.Workspace), Canonical: string(it.text)}
		}
	}
	return list
}

// visit takes a link of an item.
func (m *marker) visit(n sink.Named) error {
	it := m.items[n.Item-m.asked]
	link := rules.Stored{Link: rules.Link{Owner: []byte(n.Owner), Status: rules.StatusDeleted}}
	if n.Marked {
		link.Status = rules.StatusActive
	}
	before := false // an earlier row has named the link
	if it.group == byCode {
		var err error
		if before, err = m.urls.has(n.Code); err != nil {
			return err
		}
		before = before || n.Code == m.named
		it.canonical = []byte(n.Canonical)
	}
	if n.OtherURL {
		it.first.Elsewhere()
		it.later.Elsewhere()
		return nil
	}
	it.later.Link(&link, true)
	if it.first.Link(&link, before) {
		m.Links++
		it.marked = appendCode(it.marked, n.Code)
	}
	if n.Others {
		return nil
	}
	it.found = appendCode(it.found, n.Code)
	switch {
	case it.group == byCode:
		m.named = n.Code
	case m.rows.codes:
		m.urls.add(n.Code)
	}
	return nil
}

// appendCode appends a code to a list: codes are separated by spaces, and a space or % in one is
// written %20 or %25.
func appendCode(list []byte, code string) []byte {
	if len(list) > 0 {
		list = append(list, ' ')
	}
	return append(list, escape.Replace(code)...)
}

var escape = strings.NewReplacer("%", "%25", " ", "%20")

// file files what became of the rows of the chunk.
func (m *marker) file() error {
	for i := range m.chunk {
		r := &m.chunk[i]
		result := r.of.later.Result()
		if r.first {
			result = r.of.first.Result()
		}
		if result.Reason != rules.Accepted {
			m.reject(r, result)
			continue
		}
		m.Rows[result.Outcome]++
		a := accepted{outcome: result.Outcome, change: result.Change, input: m.input(r), canonical: r.of.canonical, carried: r.carried}
		switch {
		case result.Change == rules.Deleted:
			m.Deleted++
			a.codes = r.of.marked
		case result.Outcome == outcome.Existing:
			a.codes = r.of.found
		}
		if m.good != nil {
			m.buf = a.append(m.buf[:0])
			copy(m.good.Reserve(0, r.at.Key(), len(m.buf)), m.buf)
		}
	}
	m.rows.cfg.Seen.Add(int64(len(m.chunk)))
	if m.good == nil {
		return nil
	}
	return cmp.Or(m.good.Err(), m.bad.to.Err())
}

// input is the cell that names the links of a row: if its code is blank, that of its URL.
func (m *marker) input(r *chunkRow) []byte {
	in := m.rows.List[r.at.Source]
	if r.of.group == byCode || in.Code < 0 {
		return r.input
	}
	m.cells = appendCarried(m.cells[:0], r.carried, len(m.rows.Carried))
	for _, c := range in.Beside {
		if cell := m.cells[slices.Index(in.Layout.Carried, c)]; len(cell) > 0 {
			return cell
		}
	}
	return nil
}

func (m *marker) reject(r *chunkRow, result rules.Result) {
	detail := result.Detail()
	if result.Reason == rules.ForURL {
		detail = outcome.OtherURLDetail(r.of.canonical)
	}
	m.cells = appendCarried(m.cells[:0], r.carried, len(m.rows.Carried))
	cells := m.rows.List[r.at.Source].Layout.Append(nil, r.input, nil, func(n int) []byte { return m.cells[n] })
	m.bad.file(r.at, &outcome.Reject{Reason: result.Reason.String(), Detail: detail, Cells: cells})
}

// namedCodes are codes of links that rows have named by their URLs. All are added before one is
// looked for.
type namedCodes struct {
	ctx    context.Context
	sorter *extsort.Sorter
	to     *extsort.Writer
	at     *extsort.Cursor // at the first code that is not before the last one that was looked for; nil: none was
	more   bool            // there is such a code
}

func (n *namedCodes) add(code string) {
	copy(n.to.Reserve(0, packed.TextKey([]byte(code)), len(code)), code)
}

// has reports whether a code was added. It is called with ascending codes.
func (n *namedCodes) has(code string) (bool, error) {
	if n.at == nil {
		if err := n.sorter.Finish(n.ctx); err != nil {
			return false, err
		}
		n.at = n.sorter.Cursor(n.ctx, 1)
		n.more = n.at.Next()
	}
	for n.more && string(n.at.Record()) < code {
		n.more = n.at.Next()
	}
	return n.more && string(n.at.Record()) == code, n.at.Err()
}

func (n *namedCodes) close() error {
	if n.at != nil {
		n.at.Close()
	}
	return n.sorter.Close()
}
