package verify

import (
	"math"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/terms"
)

// No limit at all of findings does not mean that they are sorted with each one.
func TestVerifyMostFindings(t *testing.T) {
	l := newList(math.MaxInt)
	for row := range int64(1000) {
		l.add(Finding{Row: -row})
	}
	if l.first[0].Row != 0 {
		t.Error("findings are sorted before there are too many")
	}
}

// A finding does not hold a cell of a reader's largest size; what people read in full
// is whole.
func TestVerifyLongestFinding(t *testing.T) {
	v := newFindings(10)
	whole := strings.Repeat("é", mostText/2)
	v.fault("a", 1).wrong(BadCanonical, "", whole, "é"+whole)
	v.fault("a", 2).wrong(BadCanonical, "", "x"+whole, strings.Repeat("\x80", 1<<20))
	for i, want := range []string{whole, whole + "… (16384 of 16386 bytes)", "x" + whole[2:] + "… (16383 of 16385 bytes)", ""} {
		f := v.faults.first[i/2]
		got := string(f.Expected)
		if i%2 == 1 {
			got = string(f.Found)
		}
		if want != "" && got != want || len(got) > mostText+50 {
			t.Errorf("text %d: %d bytes, ends in %q", i, len(got), got[len(got)-40:])
		}
	}
}

// The least memory that can be asked for is a bound, too.
func TestVerifyLeastMemory(t *testing.T) {
	sorts := newSorters(&Config{Memory: 1, TempDir: t.TempDir()}, &run{terms: &terms.Terms{}})
	s := sorts.claims
	w := s.NewWriter()
	for range 100 {
		file(w, sorts.groups.id([]byte("demo")), &claim{owner: make([]byte, 1<<16)})
	}
	if err := s.Finish(t.Context()); err != nil || s.Spilled() == 0 {
		t.Errorf("nothing is spilled: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// What the rows of run and inputs were sorted with is let go, since the store needs its
// share of the memory.
func TestVerifyInputsLetsGo(t *testing.T) {
	v := newVerifier(Config{Dir: t.TempDir(), Inputs: []string{"-"}})
	v.inputs = new(inputs)
	v.run = &run{terms: &terms.Terms{}, manifest: &manifest.Manifest{}}
	v.reports, v.sorts = &reports{run: v.run, unread: []string{manifest.RejectsName}}, newSorters(&v.cfg, v.run)
	sums := v.newSums()
	if err := v.records(sums).check(t.Context(), 0); err != nil || sums.rows != nil {
		t.Errorf("%v, rows %p", err, sums.rows)
	}
}
