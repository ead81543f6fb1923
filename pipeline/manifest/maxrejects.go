package manifest

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxRejects is the most rejected rows that a run may have. The zero value is no
// limit.
type MaxRejects struct {
	text    string
	rows    int64
	percent float64 // of the rows read, if share
	share   bool
}

// ParseMaxRejects reads "N" (rows) or "P%" (of the rows read).
func ParseMaxRejects(s string) (m MaxRejects, err error) {
	m.text = s
	var number string
	if number, m.share = strings.CutSuffix(s, "%"); m.share {
		m.percent, err = strconv.ParseFloat(number, 64)
	} else {
		m.rows, err = strconv.ParseInt(s, 10, 64)
	}
	if err != nil || m.rows < 0 || !(m.percent >= 0 && m.percent <= 100) {
		return MaxRejects{}, fmt.Errorf("%q is not a number of rows or a percentage from 0%% to 100%%", s)
	}
	return m, nil
}

// String returns the limit as it was written; "": none.
func (m MaxRejects) String() string { return m.text }

// Exceeded reports whether a run with these books has more rejects than that.
func (m MaxRejects) Exceeded(c Counts) bool {
	switch {
	case m.text == "":
		return false
	case m.share: // most percentages are not exact: of one that is met the product may be the next number below
		return float64(c.Rejected)*100 > math.Nextafter(m.percent*float64(c.Read), math.Inf(1))
	}
	return c.Rejected > m.rows
}
