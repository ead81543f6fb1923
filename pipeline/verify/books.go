package verify

import (
	"fmt"
	"sync/atomic"

	"github.com/linkforge/bulk/pipeline/legacy"
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

// books note which rows of each input are in the reports.
type books struct {
	seen     []*rowSet      // that a report has
	rejected []*rowSet      // of seen, those in rejects.csv; empty if inputs are not read again
	repeated []*rowSet      // of seen, those that reports have more than once
	variants []atomic.Int64 // rows of an input in the reports, if one of it may have become several
}

func newBooks(inputs []manifest.Input) (b books) {
	b.variants = make([]atomic.Int64, len(inputs))
	for _, in := range inputs {
		b.seen = append(b.seen, newRowSet(in.Records))
		b.rejected = append(b.rejected, newRowSet(in.Records))
		b.repeated = append(b.repeated, newRowSet(in.Records))
	}
	return b
}

// account notes that a report has a row of an input, and reports whether the input has such
// a row. A row that reports have twice is a finding of the input, not of a report: it
// depends on the workers which of the two comes second.
func (w *checker) account(name string, source int, row int64) bool {
	switch {
	case source < 0:
		w.found(BadSource, "source", "an input of the manifest", name)
	case row < 1 || row > w.books.seen[source].records:
		w.found(BadSource, "row", fmt.Sprint("1 to ", w.books.seen[source].records), fmt.Sprint(row))
	default:
		if isNew := w.books.seen[source].add(row); w.run.many(source) {
			w.books.variants[source].Add(1)
		} else if !isNew {
			w.books.repeated[source].add(row)
			w.fault(string(w.run.manifest.Inputs[source].Name), row).wrong(RowRepeated, "", "", "")
		}
		return true
	}
	return false
}

// verifyComplete checks that the counts add up and that every row of the inputs is in a
// report.
func (v *verifier) verifyComplete() {
	var read int64
	for i, in := range v.run.manifest.Inputs {
		if v.run.many(i) { // that no variant is missing only the input tells
			read += v.books.variants[i].Load()
		} else {
			read += in.Records
		}
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
	if c.Read != read && !(v.run.mapping == "" && v.run.anyMany()) {
		v.wrong(BadCount, "counts.read", read, c.Read)
	}
	if sum := c.Created + c.Existing + c.Duplicate + c.Rejected; c.Read != sum {
		v.wrong(BadCount, "counts", sum, c.Read)
	}
	if v.run.mode() != legacy.Off && v.run.mapping != "" && !v.broken.Load() {
		v.verifyTold()
	}
	if v.run.beyond() != nil && v.run.mapping != "" && !v.broken.Load() {
		v.verifyMigration()
	}
	if v.run.mapping != "" && !v.broken.Load() {
		v.verifyLinks()
	}
}
