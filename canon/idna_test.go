package canon

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/secure/bidirule"
	"golang.org/x/text/unicode/bidi"
)

var update = flag.Bool("update", false, "write the golden files")

// The golden file holds the form of every code point that the tables of
// Unicode 15.0 accept, as lines "from-to form": "=" for itself, "+n" or "-n" for
// the code point n further, else the code points of the form, "." for none.
// It was made by this test with -update, Go 1.26 and golang.org/x/net v0.62.0.
const goldenTable = "testdata/idna-15.0.0.txt"

// formOf returns what r becomes in a name, by the tables in use and without our
// own mapping of U+1E9E. It tries contexts that suit left-to-right characters
// and marks, then right-to-left ones.
func formOf(r rune) (string, bool) {
	for _, context := range []string{"q", "\u05d0"} {
		if form, err := uts46.ToUnicode(context + string(r) + context); err == nil {
			form = strings.TrimSuffix(strings.TrimPrefix(form, context), context)
			return form, true
		}
	}
	return "", false
}

// notation returns form as the golden file writes it.
func notation(r rune, form string) string {
	runes := []rune(form)
	switch {
	case len(runes) == 0:
		return "."
	case len(runes) == 1 && runes[0] == r:
		return "="
	case len(runes) == 1:
		return fmt.Sprintf("%+d", runes[0]-r)
	}
	return strings.Trim(fmt.Sprintf("%04X", runes), "[]")
}

func eachCodePoint(f func(r rune)) {
	for r := rune(utf8.RuneSelf); r <= utf8.MaxRune; r++ {
		if utf8.ValidRune(r) {
			f(r)
		}
	}
}

func writeGoldenTable(t *testing.T) {
	var out bytes.Buffer
	first, last, open := rune(0), rune(0), ""
	flush := func() {
		if open != "" {
			fmt.Fprintf(&out, "%04X-%04X %s\n", first, last, open)
		}
		open = ""
	}
	eachCodePoint(func(r rune) {
		form, ok := formOf(r)
		if !ok {
			return
		}
		if n := notation(r, form); n != open || r != last+1 {
			flush()
			first, open = r, n
		}
		last = r
	})
	flush()
	if err := os.WriteFile(goldenTable, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestTables compares the tables in use with those of Unicode 15.0: they may
// accept more, but give no code point another form, U+1E9E excepted.
func TestTables(t *testing.T) {
	if testing.Short() {
		t.Skip("looks at every code point")
	}
	if *update {
		writeGoldenTable(t)
	}
	f, err := os.Open(goldenTable)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	known := 0
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var first, last rune
		span, want, _ := strings.Cut(lines.Text(), " ")
		if _, err := fmt.Sscanf(span, "%X-%X", &first, &last); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		for r := first; r <= last; r++ {
			known++
			form, ok := formOf(r)
			if got := notation(r, form); (!ok || got != want) && r != '\u1e9e' {
				t.Errorf("%U: form %q, accepted %t; Unicode 15.0 has %q", r, got, ok, want)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	accepted := 0
	eachCodePoint(func(r rune) {
		if _, ok := formOf(r); ok {
			accepted++
		}
	})
	if accepted < known || UnicodeVersion == "15.0.0" && accepted > known {
		t.Errorf("Unicode %s accepts %d code points, 15.0 accepts %d", UnicodeVersion, accepted, known)
	}
}

// TestMappedFirst holds our lists of characters against the tables: what becomes a
// hyphen, and what becomes right-to-left.
func TestMappedFirst(t *testing.T) {
	rightToLeft := func(s string) bool { return bidirule.DirectionString(s) == bidi.RightToLeft }
	eachCodePoint(func(r rune) {
		s := mapFirst.Replace(string(r))
		form, _ := uts46.ToUnicode(s)
		if strings.Contains(form, "-") != strings.ContainsRune(hyphens, r) {
			t.Errorf("%U becomes %q, and is not among the hyphens, or wrongly", r, form)
		}
		if rightToLeft(form) && !rightToLeft(s) {
			t.Errorf("%U becomes %q, which is right-to-left", r, form)
		}
		if want, err := uts46.ToUnicode(string(r)); form != want && r != '\u1e9e' {
			t.Errorf("%U: form %q, %v; the tables have %q", r, form, err, want)
		}
	})
}

// TestCapitalSharpS holds the one form that depends on the version of the
// tables to what newer ones give.
func TestCapitalSharpS(t *testing.T) {
	for _, host := range []string{"STRAẞE.de", "straße.de", "STRA%E1%BA%9EE.de"} {
		got, err := appendHost(nil, []byte(host))
		if want := "xn--strae-oqa.de"; string(got) != want || err != nil {
			t.Errorf("host %q is %q, %v; want %q", host, got, err, want)
		}
	}
}

// TestHyphensAllocate: a name with hyphens is looked at again, but not memory taken
// for each character of it that is ASCII.
func TestHyphensAllocate(t *testing.T) {
	host := []byte("ü" + strings.Repeat("-a", 1000))
	if n := testing.AllocsPerRun(10, func() { appendHost(nil, host) }); n > 50 {
		t.Errorf("allocates %v times for %d bytes", n, len(host))
	}
}

// A zero width non-joiner may stand behind a virama, or between two that would join.
func TestNonJoiners(t *testing.T) {
	for host, ok := range map[string]bool{
		"ب\u200cب": true, "ب\u064b\u200c\u064bب": true, "ب\u200cا": true, "ب\u200cب\u200cب": true, "क\u094d\u200cक": true, "क\u094d\u200c1": true,
		"ꡲ\u200cꡂ": true, "x.ب\u200cب.x1": true,
		"ب\u200cب\u200c1": false, "ب\u200c1": false, "ꡲ\u200ca": false, "ب\u200cـ": false, "ب\u200c\u064b1": false, "é.xn--1-0mc899q": false, "ب\u200c": false, "ا\u200cب": false, "\u200cب": false, "ب\u200c\u200cب": false,
	} {
		if _, err := (Profile{}).Append(nil, []byte("http://"+host+"/")); (err == nil) != ok || err != nil && err != BadHost {
			t.Errorf("%+q: %v", host, err)
		}
	}
}
