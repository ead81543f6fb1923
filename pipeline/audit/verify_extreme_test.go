package audit

import (
	"math"
	"testing"
)

// No limit at all of findings does not mean that they are sorted with each one.
func TestVerifyMostFindings(t *testing.T) {
	l := findings{most: math.MaxInt}
	for row := range int64(1000) {
		l.add(Finding{Row: -row})
	}
	if l.list[0].Row != 0 {
		t.Error("findings are sorted before there are too many")
	}
}

// The least memory that can be asked for is a bound, too.
func TestVerifyLeastMemory(t *testing.T) {
	v := &verifier{cfg: VerifyConfig{Memory: 1, TempDir: t.TempDir()}, groups: groups{ids: map[string]uint32{}}}
	s := v.newSorter(compareClaims)
	w := s.NewWriter()
	for range 100 {
		file(w, v.groups.id([]byte("demo")), &claim{owner: make([]byte, 1<<16)})
	}
	if err := s.Finish(); err != nil || s.Spilled() == 0 {
		t.Errorf("nothing is spilled: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
