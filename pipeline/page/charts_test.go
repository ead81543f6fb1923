package page

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/account"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/survey"
)

// The columns of a chart have all that it counts, are few, and lie within the drawing.
func checkChart(t *testing.T, c *chart, total int64) {
	t.Helper()
	var sum int64
	for _, col := range c.Columns {
		var n int64
		fmt.Sscan(strings.ReplaceAll(col.Count, ",", ""), &n)
		if sum += n; (n > 0) != (col.Height > 0) || col.Y < chartTop-0.01 || col.Y+col.Height > chartBottom+0.01 || col.X < chartLeft || col.X+col.Width > chartRight {
			t.Errorf("%+v", col)
		}
	}
	if sum != total || len(c.Columns) > mostBins+1 || len(c.Labels) > mostLabels+1 || len(c.Labels) == 0 {
		t.Errorf("%s: %d of %d in %d columns with %d labels", c.Title, sum, total, len(c.Columns), len(c.Labels))
	}
}

// Whatever the lengths are, a chart has them all.
func TestLengths(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		l := survey.Lengths{}
		var total int64
		for range 1 + r.IntN(40) {
			n, count := r.IntN(1+r.IntN(8200)), int64(1+r.IntN(1+r.IntN(1e6)))
			for len(l) <= n {
				l = append(l, 0)
			}
			l[n] += count
			total += count
		}
		checkChart(t, lengths("x", "x", "bytes", "rows", l), total)
	}
	checkChart(t, lengths("x", "x", "bytes", "rows", survey.Lengths{5}), 5)
}

// Expiries are drawn by month or, if they are far apart, by year; a mapping may come from anybody.
func TestMonths(t *testing.T) {
	for _, c := range []struct {
		months string
		unit   string
		want   int
	}{
		{"2027-01", "month", 1}, {"2027-11 2028-02 2028-02", "month", 4}, {"2020-01 2029-12", "year", 10}, {"1900-01 2000-01 2300-05 9999-12", "year", 4},
		{"abcd-ef zzzz-zz 2027-99 ----", "year", 4}, {"2027-12 2028-01 2027-00", "month", 14},
	} {
		var e survey.Ends
		for _, m := range strings.Fields(c.months) {
			e.Months.Add([]byte(m + "   ")[:7])
			e.Links++
		}
		chart := months(&e)
		checkChart(t, chart, e.Links)
		if chart.Head != c.unit || len(chart.Columns) > c.want {
			t.Errorf("%s: %d columns of a %s", c.months, len(chart.Columns), chart.Head)
		}
	}
}

// The parts of a bar have the room that there is, and what is not nothing can be seen.
func TestStack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for range 1000 {
		counts := make([]int64, 4)
		for i := range counts {
			counts[i] = r.Int64N(1+r.Int64N(1e12)) * r.Int64N(2)
		}
		at, some := 0.0, false
		for i, w := range stack(counts, 1000, 4, 6) {
			if (counts[i] > 0) != (w >= 6) {
				t.Errorf("%v: %v", counts, w)
			}
			if counts[i] > 0 {
				at, some = at+w+4, true
			}
		}
		if some && (at-4 < 999.9 || at-4 > 1000.1) {
			t.Errorf("%v: %v", counts, at-4)
		}
	}
	for range 1000 {
		n := r.Int64N(1 + r.Int64N(1e15))
		if top := roundUp(n); top < n || top%2 != 0 || n > 8 && top > 2*n {
			t.Errorf("%d: %d", n, top)
		}
	}
}

func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"0 %": percent(0), "100 %": percent(1), "< 0.1 %": percent(1e-5), "> 99.9 %": percent(0.99999), "1.3 %": percent(0.0131), "98.6 %": percent(0.986), "–": share(0, 0),
		"1 in 840,000": odds(1.1905e-6), "under 1 in a billion": odds(1e-12), "50.0 %": odds(0.5), "under 0.01": large(1e-9), "12.50": large(12.5), "4.3 × 10¹⁷": large(4.3e17), "1,234,567": large(1234567),
		"1 byte": size(1), "1,023 bytes": size(1023), "1.5 KiB": size(1536), "12 GiB": size(12 << 30), "0.250 s": seconds(0.25), "3.2 s": seconds(3.2), "1m30s": seconds(90), "under 0.001 s": seconds(0),
		"Done.": sentence("done"), "Ok?": sentence("ok?"), "2.4 k": short(2400), "20 M": short(20e6), "7": short(7),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Of a counter the page says how many numbers are left, of hashes how many links will need another code.
func TestSpace(t *testing.T) {
	r := &Report{Manifest: &manifest.Manifest{Scheme: manifest.Scheme{Name: "counter-base62", CodeLength: 7}, Numbers: &manifest.Numbers{Ranges: []manifest.Range{{First: 1, Last: 5000}}}}, Survey: new(survey.Survey)}
	s := spaceSection(r, nil)
	if got := s.Parts[0].Table.Rows[1]; got[1].Text != "50,000" || got[3].Text != account.Number(3521614606208-50000) {
		t.Errorf("%+v", got)
	}
	r.Manifest.Scheme = manifest.Scheme{Name: "sha256-base58", CodeLength: 3, MaxRetries: 10}
	for range 1000 {
		r.Survey.Hashed.Add([]byte("w"))
	}
	rows := spaceSection(r, nil).Parts[0].Table.Rows
	if len(rows) < 2 || rows[0][1].Text != "1,000" || rows[1][1].Text != "10,000" || rows[0][4].Text != "99.1 %" {
		t.Errorf("%+v", rows)
	}
	if r.Deletion = true; spaceSection(r, nil).Parts != nil {
		t.Error("a delete makes no codes")
	}
}
