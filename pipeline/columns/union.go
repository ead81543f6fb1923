package columns

import "slices"

// A Union is the columns that several inputs have together, by name, in the order in which
// they are first met. All inputs are added before it is used.
type Union struct {
	Names   []string // of all columns
	Carried []string // of those that in some input are carried (Table.IsCarried)

	carried map[string]int // numbers in Carried; -1: not carried
}

// Add adds the columns of an input; isCarried tells of each, by its number, whether it is carried.
func (u *Union) Add(names []string, isCarried func(c int) bool) {
	if u.carried == nil {
		u.carried = map[string]int{}
	}
	for c, name := range names {
		n, known := u.carried[name]
		if !known {
			n = -1
			u.Names = append(u.Names, name)
		}
		if n < 0 && isCarried(c) {
			n = len(u.Carried)
			u.Carried = append(u.Carried, name)
		}
		u.carried[name] = n
	}
}

// A Layout says where the columns of a union lie in an input.
type Layout struct {
	Carried []int // for each carried column of the union, its column in the input; -1: none
	Short   []int // for each column of the union, its column in the input; -1: none, or it is left out

	cells []int // for each column of the union: its number in Carried, or one of the constants below
}

const (
	noCell      = -1
	urlCell     = -2
	workspaceOf = -3
)

// Find finds the columns of the union in an input.
func (u *Union) Find(t *Table) (l Layout) {
	at := make(map[string]int, len(t.Columns))
	for c, name := range t.Columns {
		at[name] = c
	}
	l.Carried, l.cells = make([]int, len(u.Carried)), make([]int, len(u.Names))
	for i, name := range u.Carried {
		c, ok := at[name]
		if !ok || !t.IsCarried(c) {
			c = -1
		}
		l.Carried[i] = c
	}
	l.Short = make([]int, len(u.Names))
	for i, name := range u.Names {
		c, ok := at[name]
		if l.Short[i] = c; !ok || slices.Contains(t.LeftOut, c) {
			l.Short[i] = -1
		}
		switch {
		case !ok:
			l.cells[i] = noCell
		case c == t.URLs[0]:
			l.cells[i] = urlCell
		case c == t.Workspace:
			l.cells[i] = workspaceOf
		case !t.IsCarried(c):
			l.cells[i] = noCell
		default:
			l.cells[i] = u.carried[name]
		}
	}
	return l
}

// Append appends the cells that a row has in all columns of the union. The carried ones are
// asked for by their number in Union.Carried.
func (l *Layout) Append(cells [][]byte, url, workspace []byte, carried func(n int) []byte) [][]byte {
	for _, from := range l.cells {
		var cell []byte
		switch from {
		case noCell:
		case urlCell:
			cell = url
		case workspaceOf:
			cell = workspace
		default:
			cell = carried(from)
		}
		cells = append(cells, cell)
	}
	return cells
}

// AppendShort appends the cells of a row that has only the first ones, in all columns of the union.
func (l *Layout) AppendShort(dst, cells [][]byte) [][]byte {
	for _, c := range l.Short {
		var cell []byte
		if c >= 0 && c < len(cells) {
			cell = cells[c]
		}
		dst = append(dst, cell)
	}
	return dst
}

// HasRole reports whether a run uses column c in another way than to copy it.
func (t *Table) HasRole(c int) bool {
	for _, columns := range t.Roles {
		if slices.Contains(columns, c) {
			return true
		}
	}
	for _, column := range t.Params {
		if column == c {
			return true
		}
	}
	return t.IsKey(c) || t.IsCode(c) || c == t.Kind || slices.Contains(t.Beside, c)
}

// IsKey reports whether the URL or the workspace is taken from a column.
func (t *Table) IsKey(c int) bool { return c == t.Workspace || slices.Contains(t.URLs, c) }

// IsCarried reports whether the cells of a column are carried: they are no keys, and are not left out.
func (t *Table) IsCarried(c int) bool { return !t.IsKey(c) && !slices.Contains(t.LeftOut, c) }
