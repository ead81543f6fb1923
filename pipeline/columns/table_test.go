package columns

import (
	"fmt"
	"testing"
)

// TestUniqueNamesWork checks that a header with one name over and over costs a
// few allocations a column.
func TestUniqueNamesWork(t *testing.T) {
	const most = 1 << 12
	cells := make([]string, most)
	for i := range cells {
		cells[i] = "x"
	}
	n := testing.AllocsPerRun(1, func() {
		var table Table
		if table.SetNames(cells); table.Columns[most-1] != fmt.Sprint("x_", most) {
			t.Fatalf("the last is %q", table.Columns[most-1])
		}
	})
	if n > 16*most {
		t.Errorf("%.0f allocations for %d columns", n, most)
	}
}
