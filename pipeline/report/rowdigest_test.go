package report

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/linkforge/bulk/pipeline/outcome"
	"pgregory.net/rapid"
)

func digestOf(rows []Row) string {
	var d RowDigest
	for i := range rows {
		d.Add(&rows[i])
	}
	return d.Sum()
}

func digestRows(n int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		url := fmt.Appendf(nil, "http://example.com/some/path/of/usual/length/%d?a=1&b=2", i)
		rows[i] = Row{Source: "links.csv", Row: int64(i), Workspace: []byte("demo"), Original: url, Canonical: url,
			Code: []byte("AoD2hgfdaE"), Carried: [][]byte{[]byte("a"), nil}}
	}
	return rows
}

// The digest does not change, since manifests hold it.
func TestRowDigestValue(t *testing.T) {
	if got := digestOf(nil); got != "00000000000000000000000000000000" {
		t.Errorf("no rows: %s", got)
	}
	if got := digestOf(digestRows(3)); got != "21dba70f87e9f242f9e1d0aeba98f076" {
		t.Errorf("three rows: %s", got)
	}
}

// Order, the split into merged digests and the format do not show; anything else
// in a row does, and so does how often a row comes.
func TestRowDigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.SliceOfN(rapid.SampledFrom([]byte("a\x00\x01é,")), 0, 3)
		row := rapid.Custom(func(t *rapid.T) Row {
			return Row{Source: rapid.SampledFrom([]string{"a", "b", "\xff", "%FF", ""}).Draw(t, "source"), Row: rapid.Int64Range(0, 300).Draw(t, "row"),
				Workspace: cell.Draw(t, "workspace"), Original: cell.Draw(t, "original"), Canonical: cell.Draw(t, "canonical"), Code: cell.Draw(t, "code"),
				Outcome: outcome.Outcome(rapid.IntRange(0, 2).Draw(t, "outcome")), Salt: rapid.IntRange(-1, 2).Draw(t, "salt"), Carried: [][]byte{cell.Draw(t, "carried")}}
		})
		rows := rapid.SliceOfN(row, 1, 9).Draw(t, "rows")
		want := digestOf(rows)
		mixed := shuffled(rows, rapid.Uint64().Draw(t, "seed"))
		cut := rapid.IntRange(0, len(rows)).Draw(t, "cut")
		var a, b RowDigest
		for i := range mixed {
			if i < cut {
				a.Add(&mixed[i])
			} else {
				b.Add(&mixed[i])
			}
		}
		if a.Merge(&b); a.Sum() != want {
			t.Fatalf("%s, want %s", a.Sum(), want)
		}
		at := rapid.IntRange(0, len(rows)-1).Draw(t, "at")
		changed := append([]Row{}, rows...)
		changed[at] = row.Draw(t, "other")
		if same := describe(rows[at]) == describe(changed[at]); same != (digestOf(changed) == want) {
			t.Fatalf("%+v and %+v", rows[at], changed[at])
		}
		if digestOf(append(rows, rows[at], rows[at])) == want {
			t.Fatal("a row that comes twice does not count")
		}
	})
}

// describe writes what of a row counts.
func describe(r Row) string {
	return fmt.Sprintf("%q %d %q %q %q %q %d %d %q", validUTF8(r.Source), r.Row, r.Workspace, r.Original, r.Canonical, r.Code, r.Outcome, r.Salt, r.Carried)
}

func shuffled(rows []Row, seed uint64) []Row {
	out := append([]Row{}, rows...)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func BenchmarkRowDigest(b *testing.B) {
	for _, dirty := range []bool{false, true} {
		rows := digestRows(1 << 12)
		for i := range rows {
			if dirty {
				rows[i].Carried = append(rows[i].Carried, bytes.Repeat([]byte("x"), 200))
			}
		}
		b.Run(fmt.Sprintf("carried=%v", dirty), func(b *testing.B) {
			b.ReportAllocs()
			var d RowDigest
			for i := 0; b.Loop(); i++ {
				d.Add(&rows[i%len(rows)])
			}
		})
	}
}
