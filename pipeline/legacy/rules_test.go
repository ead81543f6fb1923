package legacy

import (
	"io"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
)

func pattern(t testing.TB, text string) *regexp.Regexp {
	t.Helper()
	p, err := ParsePattern(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCheck(t *testing.T) {
	long := strings.Repeat("x", MaxCode)
	reserved := map[string]bool{"admin": true, "Login": true}
	plain, free := Rules{Reserved: reserved}, Rules{Pattern: pattern(t, `(?s).*`), Reserved: reserved}
	fold := Rules{Reserved: map[string]bool{"Admin": true}}.Folded()
	for _, test := range []struct {
		rules Rules
		code  string
		want  string
	}{
		{plain, "aZ09._~-", ""},
		{plain, long[:64], ""},
		{plain, long[:65], BadCode},
		{plain, "", BadCode},
		{plain, "a/b", BadCode},
		{plain, "a+b", BadCode},
		{plain, "a\n", BadCode},
		{plain, "é", BadCode},
		{plain, "admin", CodeReserved},
		{plain, "Admin", ""},
		{plain, "Login", CodeReserved},
		{fold, "admin", CodeReserved},
		{fold, "login", ""},
		{free, "a/é b", ""},
		{free, long, ""},
		{free, long + "x", BadCode},
		{free, "", BadCode},
		{free, "a\xff", BadCode},
		{free, "a\x00", BadCode},
		{free, "a\n", BadCode},
		{free, "\x7f", BadCode},
		{free, "admin", CodeReserved},
		{Rules{Pattern: pattern(t, `a|ab`)}, "ab", ""},
		{Rules{Pattern: pattern(t, `a|ab`)}, "abc", BadCode},
		{Rules{Pattern: pattern(t, `a|ab`)}, "xab", BadCode},
		{Rules{Pattern: pattern(t, `(?i)[a-c]+`)}, "AbC", ""},
		{Rules{Pattern: pattern(t, `(?m)^a$`)}, "a", ""},
	} {
		if got := test.rules.Check([]byte(test.code)); got != test.want {
			t.Errorf("%.70q: %q, want %q", test.code, got, test.want)
		}
	}
}

// The table is the pattern.
func TestDefaultPattern(t *testing.T) {
	p := pattern(t, DefaultPattern)
	for b := range 256 {
		code := []byte{'a', byte(b)}
		if got, want := matchesDefault(code), p.Match(code); got != want {
			t.Errorf("%q: %t, want %t", code, got, want)
		}
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	code := []byte("Summer-Sale.2024")
	for _, rules := range []Rules{{}, {Reserved: map[string]bool{"x": true}}} {
		if n := testing.AllocsPerRun(100, func() { rules.Check(code) }); n != 0 {
			t.Errorf("%+v: %g allocations", rules, n)
		}
	}
}

func TestParsePattern(t *testing.T) {
	if p, err := ParsePattern(""); p != nil || err != nil {
		t.Errorf("%v, %v", p, err)
	}
	for _, bad := range []string{"(", "a)|(b", `\Qa`, "[z-a]"} {
		if p, err := ParsePattern(bad); err == nil || !strings.Contains(err.Error(), "is not a pattern") {
			t.Errorf("%s: %v, %v", bad, p, err)
		}
	}
}

func TestReadReserved(t *testing.T) {
	const text = "\ufeffAdmin\r\n\n  # words\n login \n#x\na b\nÉ"
	want := map[string]bool{"Admin": true, "login": true, "a b": true, "É": true}
	if got, err := ReadReserved(strings.NewReader(text)); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, r := range []io.Reader{strings.NewReader("a\n" + strings.Repeat("x", 1<<20)), iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("a\n")))} {
		if _, err := ReadReserved(r); err == nil || !strings.HasPrefix(err.Error(), "read reserved words after line") {
			t.Error(err)
		}
	}
}

func TestDamaged(t *testing.T) {
	for _, code := range []string{"2.19E+26", "1.2E+05", "1E+10", "2,19E+26", "1.5e+300", "0E+00"} {
		if !Damaged([]byte(code)) {
			t.Errorf("%s is damaged", code)
		}
	}
	for _, code := range []string{"", "1", "12E5", "1E+1", "12E+10", "1.E+10", ".1E+10", "1.2F+10", "1.2E-10", "1E+1a", "1.2E+", "1.2", "aE+10", "E+10"} {
		if Damaged([]byte(code)) {
			t.Errorf("%s is not damaged", code)
		}
	}
}

func TestTwins(t *testing.T) {
	var twins Twins
	for _, c := range []struct {
		workspace uint32
		code      string
	}{
		{0, "A"}, {0, "A"}, {0, "a"}, {0, "a"}, {0, "B"}, {0, "b"}, {0, "c"}, {1, "C"},
		{1, "XYZ"}, {1, "XYz"}, {1, "XyZ"}, {1, "xyz"}, {1, "Z"}, {2, "z"}, {2, "Zz"}, {2, "zz"},
	} {
		twins.Add(c.workspace, []byte(c.code))
	}
	want := [][]string{{"A", "a"}, {"B", "b"}, {"XYZ", "XYz", "XyZ"}}
	if twins.Groups != 4 || !reflect.DeepEqual(twins.Examples, want) {
		t.Errorf("%d groups, with %q; want 4, with %q", twins.Groups, twins.Examples, want)
	}
}
