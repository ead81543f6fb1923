package manifest

import "testing"

func TestMaxRejects(t *testing.T) {
	for _, tt := range []struct {
		limit          string
		read, rejected int64
		want           bool
	}{
		{"0", 5, 0, false}, {"0", 5, 1, true}, {"3", 5, 3, false}, {"3", 5, 4, true},
		{"0%", 5, 0, false}, {"0%", 5, 1, true}, {"20%", 5, 1, false}, {"20%", 5, 2, true}, {"100%", 5, 5, false}, {"12.5%", 8, 1, false}, {"12.5%", 7, 1, true},
		{"0%", 0, 0, false},
		{"0.29%", 50_000, 145, false}, {"0.29%", 50_000, 146, true}, {"0.57%", 10_000, 57, false}, {"0.57%", 10_000, 58, true}, // 0.29 is no binary fraction
	} {
		m, err := ParseMaxRejects(tt.limit)
		if err != nil || m.String() != tt.limit {
			t.Fatalf("%s: %s, %v", tt.limit, m, err)
		}
		if got := m.Exceeded(Counts{Read: tt.read, Rejected: tt.rejected}); got != tt.want {
			t.Errorf("%d of %d, at most %s: %t", tt.rejected, tt.read, tt.limit, got)
		}
	}
	if (MaxRejects{}).Exceeded(Counts{Read: 1, Rejected: 1}) {
		t.Error("there is a limit where none is given")
	}
	for _, text := range []string{"", "-1", "-1%", "100.1%", "NaN%", "%", "1.5", "x"} {
		if _, err := ParseMaxRejects(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
