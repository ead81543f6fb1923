package rules

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func at(text string) Expiry {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return Expiry{At, t.Unix()}
}

func (p Params) String() string {
	return fmt.Sprintf("expires=%s limit=%d type=%s owner=%q ref=%q", p.Expiry, p.Limit, p.Type, p.Owner, p.Ref)
}

func TestParse(t *testing.T) {
	full := Flags{Expiry: at("2026-05-01T00:00:00Z"), ExpiresIn: time.Hour, Limit: 7, Type: Temporary, Owner: []byte("o")}
	in := Flags{ExpiresIn: 90 * 24 * time.Hour}
	row := Flags{Identity: ByRow}
	for _, test := range []struct {
		flags Flags
		cells string // by column, with commas between them
		want  string
	}{
		{Flags{}, ",,,,", `expires= limit=0 type= owner="" ref=""`},
		{Flags{}, "2026-01-02,5,PERMANENT,u1,r", `expires=2026-01-02T00:00:00Z limit=5 type=PERMANENT owner="u1" ref=""`},
		{Flags{}, " 2026-01-02 , 5 , temporary , u1 ,", `expires=2026-01-02T00:00:00Z limit=5 type=TEMPORARY owner=" u1 " ref=""`},
		{Flags{}, " ,\t, ,,", `expires= limit=0 type= owner="" ref=""`},
		{Flags{}, ",,TEMPORARY,,", `expires=+28800 limit=0 type=TEMPORARY owner="" ref=""`},
		{Flags{TemporaryTTL: time.Minute}, ",,TEMPORARY,,", `expires=+60 limit=0 type=TEMPORARY owner="" ref=""`},
		{Flags{TemporaryTTL: time.Minute}, ",,PERMANENT,,", `expires= limit=0 type=PERMANENT owner="" ref=""`},
		{in, ",,,,", `expires=+7776000 limit=0 type= owner="" ref=""`},
		{in, ",,TEMPORARY,,", `expires=+7776000 limit=0 type=TEMPORARY owner="" ref=""`},
		{in, "2026-01-02,,,,", `expires=2026-01-02T00:00:00Z limit=0 type= owner="" ref=""`},
		{full, ",,,,", `expires=2026-05-01T00:00:00Z limit=7 type=TEMPORARY owner="o" ref=""`},
		{full, "1767312000,1,PERMANENT,é\x01,", "expires=2026-01-02T00:00:00Z limit=1 type=PERMANENT owner=\"é\\x01\" ref=\"\""},
		{row, ",,,,a|b", `expires= limit=0 type= owner="" ref="a|b"`},
		{row, ",,,,a\x00", `id: "a\x00" is not UTF-8 without U+0000`},
		{Flags{}, ",,,,a\x00\xff", `expires= limit=0 type= owner="" ref=""`},
		{Flags{}, "soon,,,,", `id: "soon" is not a time such as 2026-01-31T18:00:00Z, 2026-01-31 or 1769882400`},
		{Flags{}, ",0,,,", `expires= limit=0 type= owner="" ref=""`},
		{Flags{}, "0001-01-01T00:00:00Z,null,,,", `expires= limit=0 type= owner="" ref=""`},
		{in, "Never,,,,", `expires=+7776000 limit=0 type= owner="" ref=""`},
		{Flags{}, "1767312000.0,100.0,,,", `expires=2026-01-02T00:00:00Z limit=100 type= owner="" ref=""`},
		{Flags{}, ",1e2,,,", `expires= limit=100 type= owner="" ref=""`},
		{Flags{}, ",1.5,,,", `id: "1.5" is not a whole number of 1 or more`},
		{Flags{}, ",-1,,,", `id: "-1" is not a whole number of 1 or more`},
		{Flags{}, ",,EVER,,", `id: "EVER" is not PERMANENT or TEMPORARY`},
		{Flags{}, ",,,\xff,", `id: "\xff" is not UTF-8 without U+0000`},
		{full, "x,x,x,x,x", `id: "x" is not a time such as 2026-01-31T18:00:00Z, 2026-01-31 or 1769882400`},
	} {
		var cells Cells
		for c, cell := range strings.Split(test.cells, ",") {
			cells[c] = []byte(cell)
		}
		p, bad, ok := test.flags.Parse(&cells)
		got := p.String()
		if !ok {
			got = bad.Detail("id", cells[bad])
		}
		if got != test.want {
			t.Errorf("%+v %q:\n%s\nwant\n%s", test.flags, test.cells, got, test.want)
		}
	}
}

func TestParseExpiry(t *testing.T) {
	for text, want := range map[string]string{
		"2026-01-02T03:04:05Z":          "2026-01-02T03:04:05Z",
		"2026-01-02T03:04:05.999Z":      "2026-01-02T03:04:05Z",
		"1969-12-31T23:59:58.5Z":        "1969-12-31T23:59:58Z",
		"2026-01-02T03:04:05+01:00":     "2026-01-02T02:04:05Z",
		"2026-01-02 03:04:05":           "2026-01-02T03:04:05Z",
		"2026-01-02t03:04:05z":          "2026-01-02T03:04:05Z",
		"2026-01-02":                    "2026-01-02T00:00:00Z",
		"0001-01-01":                    "0001-01-01T00:00:00Z",
		"9999-12-31":                    "9999-12-31T00:00:00Z",
		"1767323045":                    "2026-01-02T03:04:05Z",
		"1767323045999":                 "2026-01-02T03:04:05Z",
		"9999-12-31T23:59:59-01:00":     "",
		"0000-12-31T23:59:59Z":          "",
		"0001-01-01T00:00:00+00:01":     "",
		"2026-02-29":                    "",
		"2026-1-2":                      "",
		"2026-01-02T03:04":              "",
		"2026-01-02T24:00:00Z":          "",
		"20260102":                      "",
		"":                              "",
		"never":                         "",
		"2026-01-02T03:04:05Z and more": "",
	} {
		e, ok := ParseExpiry([]byte(text))
		if got := e.String(); ok != (want != "") || got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// Every day that package time knows, and no other.
func TestParseUTC(t *testing.T) {
	var text [len("2006-01-02T15:04:05Z")]byte
	for year := 0; year <= 10000; year++ {
		for month := 0; month <= 13; month++ {
			for _, day := range []int{0, 1, 27, 28, 29, 30, 31, 32} {
				for _, clock := range []string{"", "T00:00:00Z", "T23:59:59Z"} {
					cell := fmt.Appendf(text[:0], "%04d-%02d-%02d%s", year, month, day, clock)
					want, err := time.Parse(time.RFC3339, string(cell)+"T00:00:00Z"[min(len(clock), 10):])
					got, ok := parseUTC(cell)
					if isTime := err == nil && year > 0; ok != isTime || ok && got != want.Unix() {
						t.Fatalf("%s: %d, want %d, %v", cell, got, want.Unix(), err)
					}
				}
			}
		}
	}
	for i := range len(text) {
		cell := []byte("2026-01-02T03:04:05Z")
		cell[i] = 'x'
		if _, ok := parseUTC(cell); ok {
			t.Errorf("%s was read", cell)
		}
	}
}

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "007": 7, "9223372036854775807": math.MaxInt64,
		"9223372036854775808": 0, "99999999999999999999": 0, "0": 0, "": 0, "-1": 0, "+1": 0, "1.0": 0, "1e3": 0, " 1": 0, "١": 0,
	} {
		if got, ok := ParseLimit([]byte(text)); ok != (want > 0) || ok && got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	good := Flags{Expiry: at("2026-01-02T00:00:00Z"), ExpiresIn: time.Second, Limit: 1, Owner: []byte("u1")}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, bad := range []Flags{
		{ExpiresIn: -time.Second}, {TemporaryTTL: time.Millisecond}, {Limit: -1}, {Expiry: Expiry{Reckoned, 1}}, {Owner: []byte("\x00")},
	} {
		if bad.Check() == nil {
			t.Errorf("%+v is good", bad)
		}
	}
}

func TestNames(t *testing.T) {
	for n := range identities {
		if i, err := ParseIdentity(Identity(n).String()); err != nil || int(i) != n {
			t.Error(i, err)
		}
	}
	for n := range ways {
		if o, err := ParseOnDrift(OnDrift(n).String()); err != nil || int(o) != n {
			t.Error(o, err)
		}
	}
	for n := range changes {
		if c, err := ParseChange(Change(n).String()); err != nil || int(c) != n {
			t.Error(c, err)
		}
	}
	if _, err := ParseIdentity(""); err == nil || err.Error() != `"" is not one of ["url" "params" "row"]` {
		t.Error(err)
	}
	for text, want := range map[string]Status{"": StatusActive, "ACTIVE": StatusActive, "EXPIRED": StatusExpired, "DELETED": StatusDeleted, "active": StatusOther, "BANNED": StatusOther} {
		if got := StatusOf(text); got != want {
			t.Errorf("%s: %d", text, got)
		}
	}
	for text, want := range map[string]Type{"": NoType, "PERMANENT": Permanent, "TEMPORARY": Temporary, "temporary": NoType} {
		if got := TypeOf(text); got != want {
			t.Errorf("%s: %d", text, got)
		}
	}
}

// someParams draws parameters, many of them alike.
func someParams(t *rapid.T) (p Params) {
	p.Expiry = rapid.SampledFrom([]Expiry{
		{}, {}, at("2026-01-02T00:00:00Z"), at("2026-01-03T00:00:00Z"), at("0001-01-01T00:00:00Z"), at("9999-12-31T23:59:59Z"),
		at("1970-01-01T00:00:00Z"), at("1969-12-31T23:59:59Z"), {Reckoned, 1}, {Reckoned, 28800}, {Reckoned, math.MaxInt64 / int64(time.Second)},
	}).Draw(t, "expiry")
	p.Limit = rapid.SampledFrom([]int64{0, 0, 1, 2, 255, 256, 1 << 32, math.MaxInt64}).Draw(t, "limit")
	p.Type = rapid.SampledFrom([]Type{NoType, Permanent, Temporary}).Draw(t, "type")
	p.Owner = []byte(rapid.SampledFrom([]string{"", "", "u1", "u10", "u\x01", "U", "é", "\U0010ffff"}).Draw(t, "owner"))
	return p
}

// The encoding has the order of the parameters, and all that they have.
func TestEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := someParams(t), someParams(t)
		x, y := a.Append([]byte{}), b.Append(nil)
		if got, want := bytes.Compare(x, y), Compare(&a, &b); got != want {
			t.Errorf("%s and %s: %d, want %d (%x, %x)", a, b, got, want, x, y)
		}
		if back := Compare(&b, &a); back != -Compare(&a, &b) {
			t.Errorf("%s and %s: %d", b, a, back)
		}
		encoded, rest := Split(append(x[:len(x):len(x)], y...))
		var l Link
		if l.Write(&a, 0); a.Expiry.When != Reckoned {
			if row, ok := l.AppendRow(nil); !ok || !bytes.Equal(row, x) {
				t.Errorf("%s: %x, want %x", a, row, x)
			}
		}
		var got Params
		end := got.Cut(encoded)
		if got.String() != a.String() || len(end) != 0 || !bytes.Equal(rest, y) || !bytes.Equal(encoded, x) {
			t.Errorf("%s, want %s", got, a)
		}
	})
}

// The order of rows as rule 2 has it.
func TestOrder(t *testing.T) {
	u1, u2 := []byte("u1"), []byte("u2")
	rows := []Params{
		{Owner: u1, Expiry: Expiry{Reckoned, 60}, Limit: 1, Type: Temporary},
		{Owner: u2},
		{Type: Permanent}, {}, {Type: Temporary},
		{Limit: 300}, {Limit: 20}, {Limit: 3, Type: Permanent}, {Limit: 3},
		{Expiry: at("2026-01-03T00:00:00Z"), Type: Temporary}, {Expiry: at("2026-01-02T00:00:00Z")}, {Expiry: at("1960-01-02T00:00:00Z")},
		{Expiry: Expiry{Reckoned, 60}}, {Expiry: Expiry{Reckoned, 60}, Limit: 9},
	}
	for i := 1; i < len(rows); i++ {
		if a, b := &rows[i-1], &rows[i]; Compare(a, b) >= 0 || bytes.Compare(a.Append(nil), b.Append(nil)) >= 0 {
			t.Errorf("%s is not before %s", a, b)
		}
	}
	if n := len(rows[3].Append(nil)); n != 3 {
		t.Errorf("a row without parameters has %d bytes", n)
	}
}

// A store may have times that no row can have. In as many bytes as the time of a row, some would be
// the same.
func TestAppendRowOfAnyTime(t *testing.T) {
	for _, seconds := range []int64{year1 - 1, year10000, year1 + 1<<40} {
		l := Link{Expiry: Expiry{At, seconds}}
		if row, ok := l.AppendRow(nil); ok {
			t.Errorf("%d: %x", seconds, row)
		}
	}
}

func TestParts(t *testing.T) {
	p := Params{Expiry: Expiry{Reckoned, 28800}, Limit: 10, Type: Temporary, Owner: []byte("u1"), Ref: []byte("50% é|\x7f\x1f")}
	for id, want := range map[Identity]string{ByURL: "x", ByParams: "x|e=+28800|m=10", ByRow: "x|r=50%25 é%7C%7F%1F"} {
		if got := id.AppendParts([]byte("x"), &p); string(got) != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if got := ByParams.AppendParts(nil, &Params{Ref: p.Ref}); len(got) != 0 {
		t.Errorf("%s", got)
	}
	if got := string(AppendRef(nil, nil, "a|b.csv", 12)); got != "a|b.csv:12" {
		t.Error(got)
	}
	for _, ref := range []string{"a|b.csv:12", "50%", "ü\x01", ""} {
		if parts := ByRow.AppendParts(nil, &Params{Ref: []byte(ref)}); string(RefOf(parts)) != ref {
			t.Errorf("%q: %s", ref, parts)
		}
	}
	last := []byte(nil)
	for _, id := range [][2]string{{"https://a/x", ""}, {"https://a/x", "|m=1"}, {"https://a/xy", ""}, {"https://a/x~", ""}, {"https://a/x~", "|e=+1"}} {
		key := AppendKey(nil, []byte(id[0]), []byte(id[1]))
		if bytes.Compare(last, key) >= 0 {
			t.Errorf("%q is not before %q", last, key)
		}
		if c, parts := CutKey(key); string(c) != id[0] || string(parts) != id[1] {
			t.Errorf("%q, %q", c, parts)
		}
		last = key
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"2026-01-02", "2026-01-02T03:04:05.5+01:00", "1767323045", "12", "TEMPORARY", "u1", "\xff"} {
		f.Add([]byte(seed), []byte(seed), []byte(seed), []byte(seed), []byte(seed))
	}
	f.Fuzz(func(t *testing.T, expires, uses, kind, owner, ref []byte) {
		flags := Flags{Identity: ByRow}
		p, _, ok := flags.Parse(&Cells{expires, uses, kind, owner, ref})
		if !ok {
			return
		}
		var q Params
		if rest := q.Cut(p.Append(nil)); Compare(&p, &q) != 0 || len(rest) != 0 {
			t.Errorf("%s, want %s", q, p)
		}
		if e, ok := ParseExpiry([]byte(p.Expiry.String())); p.Expiry.When == At && (!ok || e != p.Expiry) {
			t.Errorf("%s became %s", p.Expiry, e)
		}
		parts := ByParams.AppendParts(ByRow.AppendParts(nil, &p), &p)
		if bytes.ContainsFunc(parts, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("%q", parts)
		}
	})
}
