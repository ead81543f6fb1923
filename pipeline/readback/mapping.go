package readback

import (
	"context"
	"iter"
	"math"
	"slices"
	"unicode/utf8"
	"unsafe"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/report"
)

// A MappingRow is a row of a mapping. Null is nil, but CSV has no null: there it is empty,
// unless it is a short URL, legacy code or code of a link.
type MappingRow struct {
	report.Row
	Number   int64  // in the mapping, from 1; Row.Number is that of the counter
	ShortURL []byte // nil: null, or blank in CSV
}

// A Mapping reads a mapping of any format.
type Mapping struct {
	Format  report.Format
	Carried []string // names of the carried columns
	*file
	row MappingRow
}

// OpenMapping opens a mapping, whose format shows in its first bytes. One that lacks the
// columns that opts name is damaged. The caller closes it.
func OpenMapping(ctx context.Context, path string, opts Options) (*Mapping, error) {
	own := opts.Names()
	f, err := open(ctx, path, "mapping", own, opts)
	if err != nil {
		return nil, err
	}
	f.added = opts.Added()
	if opts.LinksOnly {
		kind := slices.Index(own, "kind")
		f.in.Unread = make([]bool, len(f.columns))
		for c := range f.in.Unread {
			f.in.Unread[c] = c == 3 || c == 6 || c >= saltColumn && c != kind
		}
	}
	return &Mapping{Format: report.Format(f.in.Format), Carried: f.columns[len(own):], file: f}, nil
}

// Text returns how the mapping writes a name of an input or a column that may not be
// UTF-8.
func (m *Mapping) Text(name string) string {
	if m.Format == report.CSV {
		return name
	}
	return string(canon.EscapeInvalid([]byte(name)))
}

// Read fills a block with the next rows, at least one. The block belongs to the caller,
// who passes it again and again.
func (m *Mapping) Read(b *Block) error { return m.load(b) }

// Next returns the next row, valid until the one after.
func (m *Mapping) Next() (*MappingRow, error) {
	i, err := m.next()
	if err != nil {
		return nil, err
	}
	if faults := m.batch.Row(i, &m.row); len(faults) > 0 {
		return nil, faults[0]
	}
	return &m.row, nil
}

// Rows yields the rows that Next returns, until io.EOF or an error that ends the reading.
func (m *Mapping) Rows() iter.Seq2[*MappingRow, error] { return rowsOf(m.Next) }

// The columns of a mapping that are not text.
const (
	rowColumn     = 1
	outcomeColumn = 7
	saltColumn    = 8
)

// Row fills in row i, from 0, of a block of a mapping, and returns its cells that no run
// writes, of which r has meaningless values. What r has lies in the block and is valid
// until that is read into again.
func (b *Block) Row(i int, r *MappingRow) (faults []*CellError) {
	fault := func(c int) { faults = append(faults, b.fault(i, c)) }
	source := b.cell(i, 0)
	r.Number, r.Source = b.first+int64(i), unsafe.String(unsafe.SliceData(source), len(source))
	r.Workspace, r.Original, r.Canonical = b.cell(i, 2), b.cell(i, 3), b.cell(i, 4)
	r.Code, r.ShortURL = b.cell(i, 5), b.cell(i, 6)
	if source == nil || r.Workspace == nil || r.Canonical == nil || r.Code == nil {
		for _, c := range []int{0, 2, 4, 5} {
			if b.cell(i, c) == nil {
				fault(c)
			}
		}
	}
	if b.file.in.Format != string(report.CSV) && !utf8.Valid(source) { // see Text
		fault(0)
	}
	if len(r.ShortURL) == 0 {
		r.ShortURL = nil
	}
	var err error
	if r.Row.Row, err = b.number(i, rowColumn, 0); err != nil {
		fault(rowColumn)
	}
	r.Outcome = outcome.Created
	for result := b.cell(i, outcomeColumn); string(result) != r.Outcome.String(); r.Outcome++ {
		if r.Outcome == outcome.Duplicate {
			fault(outcomeColumn)
			r.Outcome = outcome.Created
			break
		}
	}
	r.Salt = b.salt(i, saltColumn, fault)
	added := b.file.added
	for c := range added {
		b.setAdded(i, saltColumn+1+c, added[c], &r.Row, fault)
	}
	r.Carried = r.Carried[:0]
	for c := saltColumn + 1 + len(added); c < len(b.columns); c++ {
		r.Carried = append(r.Carried, b.cell(i, c))
	}
	if b.file.opts.ExcelSafe {
		r.undefuse(added)
	}
	return faults
}

// salt reads a cell of a column of salts.
func (b *Block) salt(i, c int, fault func(c int)) int {
	salt, err := b.number(i, c, -1)
	if err != nil || salt > math.MaxInt32 {
		fault(c)
		return 0
	}
	return int(salt)
}

// counted reads a cell of the column number.
func (b *Block) counted(i, c int, fault func(c int)) int64 {
	number, err := b.number(i, c, -1)
	if err != nil || number == 0 { // none is blank
		fault(c)
	}
	return max(number, 0)
}

// filled returns a cell; nil if it is empty.
func (b *Block) filled(i, c int) []byte {
	if cell := b.cell(i, c); len(cell) > 0 {
		return cell
	}
	return nil
}

// setAdded fills in the cell of a column, of this number, that not all mappings have.
func (b *Block) setAdded(i, number int, c *report.Column, r *report.Row, fault func(c int)) {
	switch {
	case c.Text != nil:
		*c.Text(r) = b.filled(i, number)
	case c.Number != nil:
		*c.Number(r) = b.counted(i, number, fault)
	case c.Salt != nil:
		*c.Salt(r) = b.salt(i, number, fault)
	case !c.SetWord(r, b.cell(i, number)):
		fault(number)
	}
}

// undefuse undoes report.Defuse in the cells that may be anything.
func (r *MappingRow) undefuse(added []*report.Column) {
	r.Source = string(report.Undefuse([]byte(r.Source)))
	for _, to := range []*[]byte{&r.Workspace, &r.Original, &r.Canonical, &r.Code, &r.ShortURL} {
		*to = report.Undefuse(*to)
	}
	for _, c := range added {
		if c.Free {
			to := c.Text(&r.Row)
			*to = report.Undefuse(*to)
		}
	}
	for c, cell := range r.Carried {
		r.Carried[c] = report.Undefuse(cell)
	}
}
