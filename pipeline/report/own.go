package report

import (
	"encoding/binary"
	"strconv"

	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/terms"
)

// Columns say which columns of its own a mapping has beside those that all have.
type Columns struct {
	Numbers bool        // of the numbers that codes were made from
	Legacy  legacy.Mode // of legacy codes; Off: none
	Rules   bool        // of link rules
	Parts   bool        // of what is hashed of identities beside workspace and URL; only with Rules
	Ref     bool        // of the references of identities; only with Rules

	Campaign []string // the parameters of a campaign, in order; nil: it is none
	Resolved bool     // of URLs as the input has them; a campaign has it, too
}

// ColumnsOf returns those of the mapping of a run. Whether its codes are made from numbers, and whether
// its rows were held against the rules of links, is told by others than its terms.
func ColumnsOf(t *terms.Terms, numbers, ruled bool) Columns {
	by := t.Identity()
	c := Columns{Numbers: numbers, Legacy: t.Mode(), Rules: ruled, Parts: by != rules.ByURL, Ref: by == rules.ByRow}
	c.Resolved = t.Base != nil
	if t.Campaign != nil {
		c.Campaign = t.Campaign.Names()
	}
	return c
}

// A Column is one of the mapping's own. Of those that not all mappings have, just one of the
// functions is set: it returns where a row has the cell. What writes, reads or digests a mapping
// walks over the table and asks which one that is. The plain columns have none: they are written
// and read by hand, for speed.
type Column struct {
	Name string
	has  func(Columns) bool // whether a mapping has it; nil: each has
	cellType
	nullable bool

	Text   func(*Row) *[]byte // nil: null
	Number func(*Row) *int64  // 0: null
	Salt   func(*Row) *int    // -1: null
	Flag   func(*Row) *bool   // told by the second of words, else by the first
	Change func(*Row) *rules.Change

	Free  bool // Text may be anything: CSV may have to quote it, and to defuse it for spreadsheets
	words [2]string
}

// A cellType is how columnar formats have the cells of a column.
type cellType uint8

const (
	textCells    cellType = iota // in UTF-8
	fewTexts                     // the same, but the cells repeat
	byteCells                    // bytes of the input
	numberCells                  // 64 bits
	saltCells                    // 32 bits
	outcomeCells                 // the names of outcomes
)

func (t cellType) isText() bool { return t == textCells || t == fewTexts || t == outcomeCells }

// The plain columns, by their place in the table and in each mapping.
const (
	sourceColumn = iota
	rowColumn
	workspaceColumn
	originalColumn
	canonicalColumn
	codeColumn
	shortURLColumn
	outcomeColumn
	saltColumn
	plainColumns // how many these are
)

// partsName is the column of what is hashed of identities beside workspace and URL.
const partsName = "parts"

// ownColumns is the table of the mapping's own columns, in their order.
var ownColumns = [...]Column{
	sourceColumn:    {Name: "source", cellType: fewTexts},
	rowColumn:       {Name: "row", cellType: numberCells},
	workspaceColumn: {Name: "workspace_id", cellType: fewTexts},
	originalColumn:  {Name: "original_url", cellType: byteCells, nullable: true},
	canonicalColumn: {Name: "canonical_url"},
	codeColumn:      {Name: "short_code"},
	shortURLColumn:  {Name: "short_url", nullable: true},
	outcomeColumn:   {Name: "outcome", cellType: outcomeCells},
	saltColumn:      {Name: "salt", cellType: saltCells, nullable: true},

	{Name: "number", has: func(o Columns) bool { return o.Numbers }, cellType: numberCells, nullable: true, Number: func(r *Row) *int64 { return &r.Number }},

	{Name: "kind", has: keeps, cellType: fewTexts, Flag: func(r *Row) *bool { return &r.Alias }, words: [2]string{legacy.KindLink, legacy.KindAlias}},
	{Name: "legacy_code", has: func(o Columns) bool { return o.Legacy != legacy.Off }, nullable: true, Free: true, Text: func(r *Row) *[]byte { return &r.Legacy }},
	{Name: "link_code", has: keeps, nullable: true, Free: true, Text: func(r *Row) *[]byte { return &r.LinkCode }},
	{Name: "link_salt", has: keeps, cellType: saltCells, nullable: true, Salt: func(r *Row) *int { return &r.LinkSalt }},

	{Name: partsName, has: func(o Columns) bool { return o.Rules && o.Parts }, nullable: true, Free: true, Text: func(r *Row) *[]byte { return &r.Rules.Parts }},
	{Name: "expires_at", has: ruled, nullable: true, Text: ruleCell(rules.ExpiresAt)},
	{Name: "max_uses", has: ruled, nullable: true, Text: ruleCell(rules.MaxUses)},
	{Name: "link_type", has: ruled, nullable: true, Text: ruleCell(rules.LinkType)},
	{Name: "owner_id", has: ruled, nullable: true, Free: true, Text: ruleCell(rules.OwnerID)},
	{Name: "ref", has: func(o Columns) bool { return o.Rules && o.Ref }, nullable: true, Free: true, Text: ruleCell(rules.Ref)},
	{Name: "change", has: ruled, nullable: true, Change: func(r *Row) *rules.Change { return &r.Rules.Change }},

	{Name: "variant", has: expanded, cellType: numberCells, nullable: true, Number: func(r *Row) *int64 { return &r.Variant }},
	{Name: "input_url", has: func(o Columns) bool { return o.Resolved || expanded(o) }, cellType: byteCells, nullable: true, Free: true, Text: func(r *Row) *[]byte { return &r.InputURL }},
}

func expanded(o Columns) bool { return o.Campaign != nil }

// parameters returns the columns of the parameters of a campaign. A name that is taken gets in_, as that
// of a carried column does.
func (o Columns) parameters(taken []*Column) (columns []*Column) {
	var names []string
	for _, c := range taken {
		names = append(names, c.Name)
	}
	for n, name := range CarriedNames(names, o.Campaign) {
		columns = append(columns, &Column{Name: name, nullable: true, Free: true, Text: func(r *Row) *[]byte { return r.value(n) }})
	}
	return columns
}

func keeps(o Columns) bool { return o.Legacy.Keeps() }
func ruled(o Columns) bool { return o.Rules }

func ruleCell(c rules.Column) func(*Row) *[]byte {
	return func(r *Row) *[]byte { return &r.Rules.Cells[c] }
}

// carriedColumn is what all carried columns are, but for their names.
var carriedColumn = Column{cellType: byteCells, nullable: true}

// All returns the table of columns, those that not all mappings have. Nobody may change it.
func All() []Column { return ownColumns[plainColumns:] }

// Added returns the columns that the mapping has beside the plain ones, which come before them.
func (o Columns) Added() (added []*Column) {
	for i := range All() {
		if c := &All()[i]; c.has(o) {
			added = append(added, c)
		}
	}
	if o.Campaign == nil {
		return added
	}
	return append(added, o.parameters(append(plain(), added...))...)
}

func plain() (columns []*Column) {
	for i := range ownColumns[:plainColumns] {
		columns = append(columns, &ownColumns[i])
	}
	return columns
}

// Names returns the names of the mapping's own columns; the carried ones follow.
func (o Columns) Names() []string {
	var names []string
	for _, c := range o.own() {
		names = append(names, c.Name)
	}
	return names
}

// own returns the mapping's own columns by number.
func (o Columns) own() []*Column { return append(plain(), o.Added()...) }

// columns returns all columns by number.
func (o *MappingOptions) columns() []*Column {
	columns := o.own()
	for range o.Carried {
		columns = append(columns, &carriedColumn)
	}
	return columns
}

// text returns the cell of a column of texts; nil: null.
func (c *Column) text(r *Row) []byte {
	switch {
	case c.Text != nil:
		return *c.Text(r)
	case c.Flag != nil:
		return bytesOf(c.word(*c.Flag(r)))
	case *c.Change(r) == rules.NoChange:
		return nil
	}
	return bytesOf(c.Change(r).String())
}

// AppendText appends the cell of a row as CSV has it, before it is quoted.
func (c *Column) AppendText(dst []byte, r *Row) []byte {
	number := int64(-1)
	switch {
	case c.Number != nil:
		if number = *c.Number(r); number == 0 {
			return dst
		}
	case c.Salt != nil:
		number = int64(*c.Salt(r))
	default:
		return append(dst, c.text(r)...)
	}
	if number < 0 {
		return dst
	}
	return strconv.AppendInt(dst, number, 10)
}

func (c *Column) word(flag bool) string {
	if flag {
		return c.words[1]
	}
	return c.words[0]
}

// SetWord sets a cell that one of a few words tells, of Flag or Change, and reports whether a run
// writes this one. If not, the cell is as if it had none.
func (c *Column) SetWord(r *Row, word []byte) bool {
	if c.Flag != nil {
		flag := string(word) == c.words[1]
		*c.Flag(r) = flag
		return string(word) == c.word(flag)
	}
	change, err := rules.ParseChange(string(word))
	*c.Change(r) = change
	return err == nil
}

// Append appends the cell of a row as RowDigest encodes it.
func (c *Column) Append(dst []byte, r *Row) []byte {
	switch {
	case c.Number != nil:
		return binary.AppendUvarint(dst, uint64(*c.Number(r)))
	case c.Salt != nil:
		return binary.AppendUvarint(dst, uint64(*c.Salt(r)+1))
	case c.Flag != nil:
		var flag byte
		if *c.Flag(r) {
			flag = 1
		}
		return append(dst, flag)
	}
	return appendDigested(dst, c.text(r))
}

// Cut reads the cell that Append has put at the beginning of data, into the row, which then lies in
// data, and returns what follows. Empty text becomes null.
func (c *Column) Cut(data []byte, r *Row) []byte {
	if c.Flag != nil {
		*c.Flag(r) = data[0] == 1
		return data[1:]
	}
	number, n := binary.Uvarint(data)
	data = data[n:]
	switch {
	case c.Number != nil:
		*c.Number(r) = int64(number)
		return data
	case c.Salt != nil:
		*c.Salt(r) = int(number) - 1
		return data
	case c.Change != nil:
		c.SetWord(r, data[:number])
	case number == 0:
		*c.Text(r) = nil
	default:
		*c.Text(r) = data[:number:number]
	}
	return data[number:]
}
