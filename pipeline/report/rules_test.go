package report

import (
	"slices"
	"testing"

	"github.com/linkforge/bulk/pipeline/legacy"
)

// Parts of identities have a column after those of legacy codes, in each format, and are proved.
func TestParts(t *testing.T) {
	columns := Columns{Legacy: legacy.Map, Rules: true, Parts: true}
	names := columns.Names()
	if i := slices.Index(names, "parts"); i < 1 || names[i-1] != "legacy_code" || names[i+1] != "expires_at" {
		t.Error(names)
	}
	rows := []Row{{Source: "a", Row: 1, Rules: Rules{Parts: []byte("|e=+60|m=5")}}, {Source: "a", Row: 2}}
	for _, f := range []Format{CSV, Parquet, Arrow} {
		names, got := readMapping(t, f, mapping(t, f, MappingOptions{Columns: columns}, rows, 2))
		at := slices.Index(names, "parts")
		if got[0][at] != "|e=+60|m=5" || got[1][at] != map[Format]string{Parquet: "NULL", Arrow: "NULL"}[f] {
			t.Errorf("%s: %q", f, got)
		}
	}
	digest := func(c Columns) string {
		d := RowDigest{Columns: c}
		for i := range rows {
			d.Add(&rows[i])
		}
		return d.Sum()
	}
	with, without := digest(columns), digest(Columns{Legacy: legacy.Map, Rules: true})
	rows[0].Rules.Parts = []byte("|e=+60|m=6")
	if digest(columns) == with || digest(Columns{Legacy: legacy.Map, Rules: true}) != without {
		t.Error("the digest does not have the parts, or has them without a column")
	}
}
