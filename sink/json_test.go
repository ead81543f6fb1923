package sink

import (
	"strings"
	"testing"
)

func TestAppendJSON(t *testing.T) {
	for document, want := range map[string]string{
		` { "b" : 1 , "a" : [ true, null, { } ] } `: `{"a":[true,null,{}],"b":1}`,
		`{"a":1,"b":2,"a":3}`:                       `{"a":3,"b":2}`,
		`{"é":1,"z":2,"Z":3,"":4}`:                  `{"":4,"Z":3,"z":2,"é":1}`,
		`"<é\u00e9\u2028\/\ud83d\ude00\u0000\"&>"`:  `"<éé\u2028/😀\u0000\"&>"`,
		"\"\u2028\u2029\\u001F\\u0008\\t\u007f\"":   `"\u2028\u2029\u001f\b\t` + "\u007f\"",
		"\"\xff\"":             "\"\ufffd\"",
		`999999999999999999`:   `999999999999999999`,
		`[1.50,0.0,-1,0]`:      `[1.50,0.0,-1,0]`,
		`[-0,-0.0,-0.5,-0e-2]`: `[0,0.0,-0.5,0.00]`,
		`[1e2,1.5E+3,12.50e1]`: `[100,1500,125.0]`,
		`[1e-2,-1.5e-3,15e-1]`: `[0.01,-0.0015,1.5]`,
		`[0.05e1,0.05e3,0e5]`:  `[0.5,50,0]`,
		`1e131072`:             `1e131072`,
		`1e-16384`:             `1e-16384`,
		`1e99999999999999`:     `1e99999999999999`,
		`-1E-9223372036854775`: `-1E-9223372036854775`,
		`1e131071`:             "1" + strings.Repeat("0", 131_071),
		`1e-16383`:             "0." + strings.Repeat("0", 16_382) + "1",
		`{"a":1} {}`:           `{"a":1} {}`,
		`{"a":1}]`:             `{"a":1}]`,
		` not JSON`:            ` not JSON`,
		``:                     ``,
	} {
		if got := string(AppendJSON([]byte("x"), []byte(document))); got != "x"+want {
			t.Errorf("%q: %.60q, want %.60q", document, got, want)
		} else if again := string(AppendJSON(nil, []byte(want))); again != want {
			t.Errorf("%.60q: %.60q the second time", want, again)
		}
	}
}
