package verify

import (
	"fmt"

	"github.com/linkforge/bulk/pipeline/manifest"
)

// verifyCounts compares the manifest with the rows of a file: their number, and those
// of each outcome that is counted.
func (v *verifier) verifyCounts(file string, rows int64, outcomes map[string]int64) {
	for _, f := range v.run.manifest.Files {
		if f.Name == file && f.Rows != rows {
			v.wrong(BadCount, "files."+file+".rows", rows, f.Rows)
		}
	}
	c := v.run.manifest.Counts
	for name, listed := range map[string]int64{"created": c.Created, "existing": c.Existing, "duplicate": c.Duplicate, "rejected": c.Rejected} {
		if n, ok := outcomes[name]; ok && n != listed {
			v.wrong(BadCount, "counts."+name, n, listed)
		}
	}
}

// books account for the rows of each input.
type books struct {
	seen     []*rowSet // that a report has
	rejected []*rowSet // of seen, those in rejects.csv; empty if inputs are not replayed
	repeated []*rowSet // of seen, those that reports have more than once
}

func newBooks(inputs []manifest.Input) (b books) {
	for _, in := range inputs {
		b.seen = append(b.seen, newRowSet(in.Records))
		b.rejected = append(b.rejected, newRowSet(in.Records))
		b.repeated = append(b.repeated, newRowSet(in.Records))
	}
	return b
}

// account accounts for a row of an input, which the row in hand names, and reports
// whether there is such a row. A row that is accounted for twice is a finding of the
// input and not of the report: which of the two is met second depends on the workers.
func (w *checker) account(name string, source int, row int64) bool {
	switch {
	case source < 0:
		w.found(BadSource, "source", "an input of the manifest", name)
	case row < 1 || row > w.books.seen[source].records:
		w.found(BadSource, "row", fmt.Sprint("1 to ", w.books.seen[source].records), fmt.Sprint(row))
	default:
		if !w.books.seen[source].add(row) {
			w.books.repeated[source].add(row)
			w.fault(string(w.run.manifest.Inputs[source].Name), row).wrong(RowRepeated, "", "", "")
		}
		return true
	}
	return false
}

// verifyComplete checks that the books balance and that every row of the inputs is
// accounted for.
func (v *verifier) verifyComplete() {
	var read int64
	for i, in := range v.run.manifest.Inputs {
		read += in.Records
		if v.broken.Load() || v.run.mapping == "" {
			continue
		}
		listed := 0
		missing := v.books.seen[i].missing(func(row int64) bool {
			v.fault(string(in.Name), row).wrong(RowMissing, "", "", "")
			listed++
			return listed < v.cfg.MaxFindings
		})
		v.faults.count(RowMissing, missing-int64(listed))
	}
	c := v.run.manifest.Counts
	if c.Read != read {
		v.wrong(BadCount, "counts.read", read, c.Read)
	}
	if sum := c.Created + c.Existing + c.Duplicate + c.Rejected; c.Read != sum {
		v.wrong(BadCount, "counts", sum, c.Read)
	}
}
