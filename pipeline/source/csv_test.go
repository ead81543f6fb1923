package source

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestCSVRecords(t *testing.T) {
	long, eight := strings.Repeat("x", 16), strings.Repeat(",abcdefg", 32)
	for _, tt := range []struct {
		name, in string
		ncols    int
		want     []string
	}{
		{"plain", "a,b\nc,d\n", 2, []string{`1@0 "a|b"`, `2@4 "c|d"`}},
		{"no newline at the end", "a,b\nc,d", 2, []string{`1@0 "a|b"`, `2@4 "c|d"`}},
		{"CRLF", "a,b\r\nc,d\r\n", 2, []string{`1@0 "a|b"`, `2@5 "c|d"`}},
		{"CR is data", "a\rb,\r\r\n\rc,d\r", 2, []string{`1@0 "a\rb|\r"`, `2@7 "\rc|d\r"`}},
		{"CR alone at the end", "a\n\r", 1, []string{`1@0 "a"`}},
		{"empty lines are no records", "\n\r\na,b\n\n\nc,d\n\r\n", 2, []string{`1@3 "a|b"`, `2@9 "c|d"`}},
		{"empty cells", ",\n,\n,a\n", 2, []string{`3@4 "|a"`}},
		{"delimiter last", "a,", 2, []string{`1@0 "a|"`}},
		{"quotes", "\"a,\"\"b\"\"\",\"\"\n\"\",\"c\"\r\n", 2, []string{`1@0 "a,\"b\"|"`, `2@13 "|c"`}},
		{"quoted lines", "\"a\nb\r\nc\",d\ne,f\n", 2, []string{`1@0 "a\nb\r\nc|d"`, `2@11 "e|f"`}},
		{"quotes at the end", "a,\"b\"", 2, []string{`1@0 "a|b"`}},
		{"empty quoted line", "\"\"\na\n", 1, []string{`2@3 "a"`}},
		{"not UTF-8", "\xff\xff,\xc3\n", 2, []string{`1@0 "\xff\xff|\xc3"`}},
		{"ragged", "a\nb,c,d\ne,f\n", 2, []string{
			`1@0 malformed_row (1 field where there should be 2; with --pad-rows the missing ones are blank) "a"`,
			`2@2 malformed_row (3 fields where there should be 2) "b,c,d"`, `3@8 "e|f"`}},
		{"too long by a CR", long + "\r,x\na,b\n" + long + "\r\n", 2, []string{
			`1@0 field_too_long (field 1 is longer than 16 bytes; raw has the first 16 of the line's 19 bytes) "` + long + `"`,
			`2@20 "a|b"`, `3@24 malformed_row (1 field where there should be 2; with --pad-rows the missing ones are blank) "` + long + `"`}},
		{"too long by a CR at the end", long + "\r", 1, []string{
			`1@0 field_too_long (field 1 is longer than 16 bytes; raw has the first 16 of the line's 17 bytes) "` + long + `"`}},
		{"as long as it may be before a CRLF", "fourteen bytes," + long + "\r\nb,c\n", 2, []string{ // LF is in the next block
			`1@0 "fourteen bytes|` + long + `"`, `2@33 "b|c"`}},
		{"bare quote", "a\"b,c\r\nd,e\n", 2, []string{
			`1@0 malformed_row (quote inside unquoted field 1) "a\"b,c"`, `2@7 "d|e"`}},
		{"text after quote", "a,\"b\"c\nd,e\n", 2, []string{
			`1@0 malformed_row (text after the closing quote of field 2) "a,\"b\"c"`, `2@7 "d|e"`}},
		{"CR after quote", "a,\"b\"\r", 2, []string{
			`1@0 malformed_row (text after the closing quote of field 2) "a,\"b\"\r"`}},
		{"NUL", "a\x00,b\nc,\"\x00\"\nd,e\n", 2, []string{
			`1@0 malformed_row (NUL byte in field 1) "a\x00,b"`,
			`2@5 malformed_row (NUL byte in field 2) "c,\"\x00\""`, `3@11 "d|e"`}},
		{"unterminated", "a,\"b\nc,d\ne,f\n", 2, []string{
			`1@0 malformed_row (the quote of field 2 is never closed) "a,\"b"`, `2@5 "c|d"`, `3@9 "e|f"`}},
		{"fault on a later line costs the first", "\"a\nb\"c,d\ne,f\n", 2, []string{
			`1@0 malformed_row (text after the closing quote of field 1, on a later line) "\"a"`,
			`2@3 malformed_row (quote inside unquoted field 1) "b\"c,d"`, `3@9 "e|f"`}},
		{"so does one of a later field", "\"a\n\",b\x00\n\"a\n\",b\"\n", 2, []string{
			`1@0 malformed_row (NUL byte in field 2, on a later line) "\"a"`,
			`2@3 malformed_row (NUL byte in field 1) "\",b\x00"`,
			`3@8 malformed_row (quote inside unquoted field 2, on a later line) "\"a"`,
			`4@11 malformed_row (1 field where there should be 2; with --pad-rows the missing ones are blank) "\",b\""`}},
		{"and one that is too long, or never closed", "\"a\n\"," + long + "x\n\"a\n\",\"" + long + "x\"\n\"a\n\",\"b\"\"\n", 2, []string{
			`1@0 field_too_long (field 2 is longer than 16 bytes, on a later line) "\"a"`,
			fmt.Sprintf(`2@3 field_too_long (field 1 is longer than 16 bytes; raw has the first 16 of the line's 19 bytes) "\",%s"`, long[2:]),
			`3@23 field_too_long (field 2 is longer than 16 bytes, on a later line) "\"a"`,
			fmt.Sprintf(`4@26 field_too_long (text after the closing quote of field 1; raw has the first 16 of the line's 21 bytes) "\",\"%s"`, long[3:]),
			`5@48 malformed_row (the quote of field 2 is never closed, on a later line) "\"a"`,
			`6@51 malformed_row (text after the closing quote of field 1) "\",\"b\"\""`}},
		{"but not of one that begins on the first", "a,\"b\n" + long + "\"\nc,\"d\n\n", 2, []string{
			`1@0 field_too_long (field 2 is longer than 16 bytes) "a,\"b"`,
			fmt.Sprintf(`2@5 field_too_long (field 1 is longer than 16 bytes; raw has the first 16 of the line's 17 bytes) "%s"`, long),
			`3@23 malformed_row (the quote of field 2 is never closed) "c,\"d"`}},
		{"long field", long + "," + long + "\n" + long + "x,b\nc,d\n", 2, []string{
			fmt.Sprintf(`1@0 "%s|%s"`, long, long),
			fmt.Sprintf(`2@34 field_too_long (field 1 is longer than 16 bytes; raw has the first 16 of the line's 19 bytes) "%s"`, long),
			`3@54 "c|d"`}},
		{"long quoted field", "\"" + long + "\n\",b\nc,d\n", 2, []string{
			fmt.Sprintf(`1@0 field_too_long (field 1 is longer than 16 bytes; raw has the first 16 of the line's 17 bytes) "\"%s"`, long[1:]),
			`2@18 malformed_row (the quote of field 1 is never closed) "\",b"`, `3@22 "c|d"`}},
		{"long record", strings.Repeat("abcdefg,", 40) + "\nc,d\n", 2, []string{
			`1@0 field_too_long (record is longer than 256 bytes with its line ending; raw has the first 16 of the line's 320 bytes) "abcdefg,abcdefg,"`,
			`2@321 "c|d"`}},
		{"record as long as it may be", eight[1:] + "\n" + eight + "\n" + eight, 2, []string{
			fmt.Sprintf(`1@0 field_too_long (32 fields where there should be 2; raw has the first 16 of the line's 255 bytes) %q`, eight[1:17]),
			fmt.Sprintf(`2@256 field_too_long (record is longer than 256 bytes with its line ending; raw has the first 16 of the line's 256 bytes) %q`, eight[:16]),
			fmt.Sprintf(`3@513 field_too_long (33 fields where there should be 2; raw has the first 16 of the line's 256 bytes) %q`, eight[:16])}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, block := range []int{1, 2, 3, 7, 1 << 16} {
				opts := Options{MaxField: 16, Block: block}
				recs, err := split([]byte(tt.in), ',', tt.ncols, opts)
				if err != nil {
					t.Fatal(err)
				}
				checkWorkers(t, []byte(tt.in), ',', tt.ncols, opts)
				if got := strs(recs); !slices.Equal(got, tt.want) {
					t.Errorf("block %d:\n got %v\nwant %v", block, strings.Join(got, "\n     "), strings.Join(tt.want, "\n     "))
				}
			}
		})
	}
}

func strs(recs []rec) (s []string) {
	for _, r := range recs {
		s = append(s, r.String())
	}
	return s
}

func TestLineRecords(t *testing.T) {
	in := "http://a,b\"\r\n\n \r\n\r\nc\x00d\nxxxxxxxxxxxxxxxxx\ny\r"
	want := []string{
		`1@0 "http://a,b\""`,
		`3@19 malformed_row (NUL byte in field 1) "c\x00d"`,
		`4@23 field_too_long (field 1 is longer than 16 bytes; raw has the first 16 of the line's 17 bytes) "xxxxxxxxxxxxxxxx"`,
		`5@41 "y\r"`,
	}
	for _, block := range []int{1, 2, 5, 1 << 16} {
		recs, err := split([]byte(in), 0, 1, Options{MaxField: 16, Block: block})
		if got := strs(recs); err != nil || !slices.Equal(got, want) {
			t.Errorf("block %d: %v\n got %v\nwant %v", block, err, got, want)
		}
	}
}

// pieces are what a generated input is made of.
var pieces = []string{"a", "bc", "http://x/y", ",", ",", ";", "\"", "\"", "\"\"", "\n", "\n", "\r\n", "\r", "\x00", "\xff", "é", "0123456789abcdef"}

func generated(t *rapid.T) []byte {
	return []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 60).Draw(t, "pieces"), ""))
}

// What is read is what the model reads, and neither workers nor blocks nor batches show
// in it.
func TestCSVModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := generated(t)
		opts := Options{
			MaxField:  rapid.SampledFrom([]int{1, 3, 8, 1000}).Draw(t, "maxField"),
			BatchRows: rapid.SampledFrom([]int{1, 7, 65536}).Draw(t, "batch"),
			Block:     rapid.OneOf(rapid.IntRange(1, 80), rapid.Just(4096)).Draw(t, "block"),
		}
		ncols := rapid.IntRange(1, 3).Draw(t, "ncols")
		checkModel(t, data, ncols, opts)
		checkWorkers(t, data, ',', ncols, opts)
		checkWorkers(t, data, 0, 1, opts)
	})
}

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

func checkModel(t failer, data []byte, ncols int, opts Options) {
	t.Helper()
	recs, err := split(data, ',', ncols, opts)
	if err != nil {
		t.Fatalf("%v", err)
	}
	want := model(data, ncols, opts.MaxField)
	if !slices.Equal(recs, want) {
		t.Fatalf("input %q, %d columns, %+v:\n got %v\nwant %v", data, ncols, opts, strs(recs), strs(want))
	}
}

// Well-formed input reads as the standard library reads it, and each record's
// offset is where its bytes are.
func TestCSVStandard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ncols := rapid.IntRange(1, 4).Draw(t, "ncols")
		cell := rapid.StringOfN(rapid.SampledFrom([]rune("ab,;\"\n é/:")), 0, 12, -1)
		rows := rapid.SliceOfN(rapid.SliceOfN(cell, ncols, ncols), 1, 20).Draw(t, "rows")
		var buf bytes.Buffer
		w := csv.NewWriter(&buf)
		w.UseCRLF = rapid.Bool().Draw(t, "CRLF")
		var starts []int64
		for i, row := range rows {
			if strings.TrimSpace(strings.Join(row, "")) == "" {
				rows[i][0] = "not empty"
			}
			w.Flush()
			starts = append(starts, int64(buf.Len()))
			w.Write(rows[i])
		}
		w.Flush()
		r := csv.NewReader(bytes.NewReader(buf.Bytes()))
		want, err := r.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		recs, err := splitBy(rapid.IntRange(1, 3).Draw(t, "workers"), buf.Bytes(), ',', ncols, Options{Block: rapid.IntRange(1, 64).Draw(t, "block")})
		if err != nil || len(recs) != len(want) {
			t.Fatalf("%d records, want %d: %v", len(recs), len(want), err)
		}
		for i, rec := range recs {
			// The library makes CRLF in a quoted field LF; we keep it.
			if got := strings.ReplaceAll(rec.cells, "\r\n", "\n"); got != strings.Join(want[i], "|") || rec.offset != starts[i] {
				t.Fatalf("got %v, want %q at %d", rec, want[i], starts[i])
			}
		}
	})
}

func FuzzCSV(f *testing.F) {
	for _, s := range []string{"a,b\nc,d\n", "\"a\n\",\"\"\"\"\r\n", "a,\"b\nc\"d\n\"", "\x00,\"\x00\n\r\r\n\r"} {
		f.Add([]byte(s), byte(2), uint16(8), uint16(3), byte(2))
	}
	f.Fuzz(func(t *testing.T, data []byte, ncols byte, maxField, block uint16, rows byte) {
		for _, magic := range []string{"\x1f\x8b", "\xff\xfe", "\xfe\xff", "\x28\xb5\x2f\xfd"} {
			if strings.HasPrefix(string(data), magic) || isZstd(data) {
				t.Skip("not read as it is")
			}
		}
		opts := Options{MaxField: int(maxField) + 1, BatchRows: int(rows) + 1, Block: int(block) + 1}
		checkModel(t, data, int(ncols)%4+1, opts)
		checkWorkers(t, data, ',', int(ncols)%4+1, opts)
		checkCovered(t, data, int(ncols)%4+1, opts)
	})
}

// isBlankText reports whether a text is only empty lines and blank records.
func isBlankText(text string) bool {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == '"' }) == ""
}

// checkCovered checks that the records, and the empty lines and blank records between them, are all
// of the input.
func checkCovered(t *testing.T, data []byte, ncols int, opts Options) {
	recs, _ := split(data, ',', ncols, opts)
	at := 0
	for i, r := range recs {
		if gap := data[at:r.offset]; !isBlankText(string(gap)) {
			t.Fatalf("%q before record %d is in none", gap, r.row)
		}
		end := len(data)
		if i+1 < len(recs) {
			end = int(recs[i+1].offset)
		}
		// An empty line before it, lest its first bytes are taken for magic.
		part, err := split(slices.Concat([]byte("\n"), data[r.offset:end]), ',', ncols, opts)
		if err != nil || len(part) != 1 || r.reason == "" && part[0].cells != r.cells {
			t.Fatalf("record %v alone reads as %v: %v", r, part, err)
		}
		at = end
	}
	if gap := data[at:]; !isBlankText(string(gap)) {
		t.Fatalf("%q at the end is in no record", gap)
	}
}

// Broken quotes cost linear time, whatever the field limit.
func TestBrokenQuotesAreLinear(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n /= 5
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	mixed := make([]byte, 0, 20*n)
	for range n {
		mixed = append(mixed, []string{"\"http://a/b\n", "x\n", "\"\"\"a\n", "a,\"b\n", "\"a\"\"\n", "\",\"\n", "\"\",\"x\n"}[rnd.IntN(7)]...)
	}
	for name, data := range map[string]string{
		"opened on each line":  strings.Repeat("\"http://example.com/a\n", n),
		"doubled on each line": strings.Repeat("\"a\"\"\n", n),
		"triple":               strings.Repeat("\"\"\"a\n", n),
		"second field":         strings.Repeat("a,\"b\n", n),
		"once, then none":      "\"" + strings.Repeat("http://example.com/a\n", n),
		"none, NUL":            strings.Repeat("\"a\x00\n", n),
		"mixed":                string(mixed),
	} {
		in := testInput([]byte(data), 1, Options{})
		l := newLines(',', 1, in.opts)
		in.openLines(0, func() *lines { return l })
		_, err := collect(in)
		work := l.lf.work + l.quote.work + l.nul.work
		if err != nil || work > 10*len(data) {
			t.Errorf("%s: %d bytes were searched for %d, %v", name, work, len(data), err)
		}
	}
}

// A field that never ends is held to its limit.
func TestEndlessField(t *testing.T) {
	data := "a\n\"" + strings.Repeat("x", 40<<20) + "\nb\n"
	recs, err := split([]byte(data), ',', 1, Options{})
	if err != nil || len(recs) != 3 || recs[1].reason != "field_too_long" || len(recs[1].raw) != 1<<20 || recs[2].cells != "b" {
		t.Fatalf("%d records: %v", len(recs), err)
	}
}

// The number of allocations does not depend on that of the rows.
func TestCSVAllocations(t *testing.T) {
	allocs := func(rows int) float64 {
		data := []byte(strings.Repeat("http://example.com/some/path?of=the&url=,label,\"quoted, \"\"cell\"\"\"\n", rows))
		return testing.AllocsPerRun(5, func() {
			if recs, err := countBy(1, data, 3); err != nil || recs != int64(rows) {
				t.Fatal(recs, err)
			}
		})
	}
	few, many := allocs(8_000), allocs(80_000)
	t.Logf("%v allocations for 8,000 rows, %v for 80,000", few, many)
	if (many-few)/72_000 > 0.02 {
		t.Errorf("%v allocations for 8,000 rows, %v for 80,000", few, many)
	}
}
