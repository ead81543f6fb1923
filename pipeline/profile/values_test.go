package profile

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"
	"unicode/utf8"
)

func TestTags(t *testing.T) {
	for _, tt := range []struct{ cell, separator, want string }{
		{"sale|spring", "|", "sale;spring"},
		{" sale , spring,,sale, ", ",", "sale;spring"},
		{"a,b, c", ", ", "a,b;c"},
		{"a,b|c", "", "a,b;c"},
		{"a, b", "", "a;b"},
		{"a|b", ",", "a|b"},
		{"b,a", ",", "b;a"},
		{`["a,b"," c ","","a,b"]`, "|", "a,b;c"},
		{` [1,null,true,"x"] `, ",", "1;true;x"},
		{`[{"id":1,"name":"a"},{"title":"b"},{"name":"","title":"c"},{"id":1},{"name":2}]`, ",", `a;b;c;{"id":1};{"name":2}`},
		{`[x]`, ",", "[x]"},
		{`["x"`, ",", `["x"`},
		{"[]", ",", ""},
		{"null", ",", "null"},
		{" , ", ",", ""},
		{"", "", ""},
	} {
		if got := string(bytes.Join(TagsOf([]byte(tt.cell), tt.separator), []byte(";"))); got != tt.want {
			t.Errorf("%q by %q: %q, want %q", tt.cell, tt.separator, got, tt.want)
		}
	}
}

// An array of tags has these tags.
func FuzzTags(f *testing.F) {
	f.Add("a, b|c", ",")
	f.Add(`[{"name":"a"},"b",["c"]]`, "|")
	f.Fuzz(func(t *testing.T, cell, separator string) {
		if !utf8.ValidString(cell) || !utf8.ValidString(separator) {
			return
		}
		tags := []string{}
		for _, tag := range TagsOf([]byte(cell), separator) {
			tags = append(tags, string(tag))
		}
		array, err := json.Marshal(tags)
		if err != nil {
			t.Fatal(err)
		}
		var again []string
		for _, tag := range TagsOf(array, separator) {
			again = append(again, string(tag))
		}
		if !slices.Equal(tags, again) {
			t.Errorf("%q become %q", tags, again)
		}
	})
}

func TestParseTime(t *testing.T) {
	for cell, want := range map[string]string{
		"2014-03-01T10:11:12Z":           "2014-03-01T10:11:12Z",
		" 2014-03-01T10:11:12.5+01:00 ":  "2014-03-01T09:11:12.5Z",
		"2014-03-01t10:11:12z":           "2014-03-01T10:11:12Z",
		"2014-03-01T10:11:12+0000":       "2014-03-01T10:11:12Z",
		"2014-03-01T10:11:12.000-0130":   "2014-03-01T11:41:12Z",
		"2014-03-01 10:11:12":            "2014-03-01T10:11:12Z",
		"2014-03-01 10:11:12.678":        "2014-03-01T10:11:12.678Z",
		"2014-03-01 10:11:12+0000":       "2014-03-01T10:11:12Z",
		"2014-03-01 10:11:12 +0000":      "2014-03-01T10:11:12Z",
		"2014-03-01 10:11:12+01:00":      "2014-03-01T09:11:12Z",
		"2014-03-01 10:11:12 +01:00":     "2014-03-01T09:11:12Z",
		"2014-03-01 10:11:12 UTC":        "2014-03-01T10:11:12Z",
		"2014-03-01 10:11:12+00":         "2014-03-01T10:11:12Z",
		"2014-03-01 10:11:12.5+02":       "2014-03-01T08:11:12.5Z",
		"2014-03-01 10:11:12+0530":       "2014-03-01T04:41:12Z",
		"2014-03-01T10:11:12-08":         "2014-03-01T18:11:12Z",
		"2014-03-01":                     "2014-03-01T00:00:00Z",
		"0001-01-01":                     "0001-01-01T00:00:00Z",
		"9999-12-31T23:59:59.999999999Z": "9999-12-31T23:59:59.999999999Z",
		"123456789":                      "1973-11-29T21:33:09Z",
		"1709287872":                     "2024-03-01T10:11:12Z",
		"1709287872123":                  "2024-03-01T10:11:12.123Z",
		"1709287872.0":                   "2024-03-01T10:11:12Z",
		"1.709287872e+09":                "2024-03-01T10:11:12Z",
		"1709287872.5":                   "",
		"":                               "",
		"null":                           "",
		"12345678":                       "",
		"17092878721":                    "",
		"20140301101112":                 "",
		"-123456789":                     "",
		"+1709287872":                    "",
		"1_709287872":                    "",
		"0000-01-01":                     "",
		"0000-00-00 00:00:00":            "",
		"0001-01-01T00:00:00+01:00":      "",
		"9999-12-31T23:59:59-01:00":      "",
		"2014-03-01T10:11:12":            "2014-03-01T10:11:12Z",
		"2014-02-30":                     "",
		"01/03/2014":                     "",
		"2014-03-01 10:11:12 CET":        "",
		"2 days":                         "",
	} {
		text := ""
		got, ok := ParseTime([]byte(cell))
		if ok {
			text = got.Format(time.RFC3339Nano)
		}
		if text != want || !ok && !got.IsZero() {
			t.Errorf("%q: %q, want %q", cell, text, want)
		}
	}
}

func TestWords(t *testing.T) {
	for _, tt := range []struct {
		cells        []string
		yes, no, set bool
	}{
		{[]string{"true", "1", "YES", " y ", "T", "on", "1.0"}, true, false, true},
		{[]string{"Archived", "banned", "disabled", "inactive", "DELETED"}, true, true, true},
		{[]string{"OFF", "False", "0", "no", "n", "F", "0.0"}, false, true, false},
		{[]string{"", " ", "null", "NULL", `\N`, "{}", " [] "}, false, false, false},
		{[]string{"enabled", "active", "2", "2.0", "10.0", "1.5", ".0", "s3cret", `["a"]`, "disabledd", "2023-05-01 00:00:00"}, false, false, true},
	} {
		for _, cell := range tt.cells {
			if yes, no, set := IsTrue([]byte(cell)), IsFalse([]byte(cell)), IsSet([]byte(cell)); yes != tt.yes || no != tt.no || set != tt.set {
				t.Errorf("%q: true %t, false %t, set %t", cell, yes, no, set)
			}
		}
	}
}

func TestParseCount(t *testing.T) {
	for cell, want := range map[string]int64{"5": 5, " 5.0 ": 5, "0": 0, "0.0": 0, "": -1, ".0": -1, "5.00": 5, "10.00": 10, "5.": -1, "5.5": -1, "-1.0": -1, "x.0": -1, "1e3": -1, "999999999999999999": 999999999999999999, "1000000000000000000": -1} {
		if n, ok := ParseCount([]byte(cell)); ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d, %t", cell, n, ok)
		}
	}
}

func TestNoTime(t *testing.T) {
	for cell, want := range map[string]bool{
		"": true, " ": true, "null": true, `\N`: true, "None": true, "never": true, " Infinity ": true, "0": true, "false": true, "[]": true,
		"0001-01-01T00:00:00Z": true, "0001-01-01 00:00:00": true, "0000-00-00": true, "0000-00-00 00:00:00": true,
		"0001-01-01": false, "0001-01-01T00:00:01Z": false, "2030-01-01": false, "0000-01-01": false, "x": false, "00": false, "1": false,
	} {
		if got := IsNoTime([]byte(cell)); got != want {
			t.Errorf("%q: %t", cell, got)
		}
	}
}

func TestWordsAllocateNothing(t *testing.T) {
	cell := []byte(" Disabled ")
	if n := testing.AllocsPerRun(100, func() { IsTrue(cell); IsFalse(cell); IsSet(cell) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

func TestStates(t *testing.T) {
	at := time.Date(2024, 3, 1, 10, 11, 12, 0, time.UTC)
	for _, tt := range []struct {
		cells       []string
		over, state bool
	}{
		{[]string{"true", "1.0", "Deleted", "on"}, true, true},
		{[]string{"false", "off", "", "null", "never", "0000-00-00", "ACTIVE", "enabled", " Live ", "expired"}, false, true},
		{[]string{"2024-03-01T10:11:12Z", "2020-01-01", "1709287872"}, true, false},
		{[]string{"2024-03-01T10:11:13Z", "2030-01-01", "1909287872", "perhaps", "2", "31/12/2020"}, false, false},
	} {
		for _, cell := range tt.cells {
			if over, state := IsOver([]byte(cell), at), IsState([]byte(cell)); over != tt.over || state != tt.state {
				t.Errorf("%q: over %t, state %t", cell, over, state)
			}
		}
	}
}

func TestRedirects(t *testing.T) {
	for _, tt := range []struct {
		cells []string
		code  int64
		gone  bool
		life  Life
	}{
		{[]string{"301", " 301.0 "}, 301, false, Works},
		{[]string{"302"}, 302, false, Works},
		{[]string{"307"}, 307, false, Works},
		{[]string{"308.0"}, 308, false, Works},
		{[]string{"410", "410.0"}, 0, true, Dead},
		{[]string{"", " ", "null", `\N`, "None"}, 0, false, Unsaid},
		{[]string{"ACTIVE", "enabled", "live"}, 0, false, Works},
		{[]string{"Deleted", "archived", "banned", "disabled", "inactive"}, 0, false, Dead},
		{[]string{"EXPIRED"}, 0, false, Ended},
		{[]string{"303", "200", "1", "0", "true", "no", "draft", "301 Moved", "3010", "-301", "301.5"}, 0, false, Unclear},
	} {
		for _, cell := range tt.cells {
			code, ok := ParseRedirect([]byte(cell))
			if gone, life := IsGone([]byte(cell)), LifeOf([]byte(cell)); code != tt.code || ok != (code > 0) || gone != tt.gone || life != tt.life {
				t.Errorf("%q: %d, %t, %d", cell, code, gone, life)
			}
		}
	}
}
