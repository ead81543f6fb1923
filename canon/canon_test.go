package canon

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// A vector is one worked case of testdata/canonical.jsonl or options.jsonl.
type vector struct {
	Profile   string // "": the default one
	Input     string
	Raw       []byte `json:"input_base64"`
	Canonical string
	Reason    Reason
}

func vectors(t testing.TB) []vector { return readVectors(t, "canonical.jsonl") }

func readVectors(t testing.TB, name string) []vector {
	t.Helper()
	f, err := os.Open("../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []vector
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("line %d: %v", len(all)+1, err)
		}
		if v.Raw == nil {
			v.Raw = []byte(v.Input)
		}
		all = append(all, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestVectors(t *testing.T) {
	all := vectors(t)
	if len(all) != 267 {
		t.Errorf("%d vectors, want 267", len(all))
	}
	for i, v := range all {
		got, err := Profile{}.Append([]byte("before "), v.Raw)
		want, wantErr := "before "+v.Canonical, error(nil)
		if v.Reason != "" {
			wantErr = v.Reason
		}
		if string(got) != want || err != wantErr {
			t.Errorf("vector %d: Append(%.200q) = %.200q, %v; want %.200q, %v", i+1, v.Raw, got, err, want, wantErr)
		}
	}
}

// TestCases holds what the vectors leave open.
func TestCases(t *testing.T) {
	long, name := strings.Repeat("a", maxInput), strings.Repeat("é", MaxLength+1)
	tests := []struct{ input, want string }{
		{"\u2028\u205f\u180e", "missing_scheme"}, // U+180E is no white space
		{"http://example.com/\u00a0\x85", "http://example.com/%C2%A0%85"},
		{"http://example.com/\u0085", "http://example.com/"},
		{"http://example.com/a#\x01b", "control_character"},
		{"http://example.com/\x1fb", "control_character"},
		{"http://example.com/\x1fbcdefghi", "control_character"},
		{"http://example.com/\x7fbcdefghi", "control_character"},
		{"ftp://example.com/\x7fb", "control_character"},
		{"httpſ://example.com/", "missing_scheme"},
		{"z:a", "unsupported_scheme"},
		{"http://user@:99999/", "userinfo"},
		{"http://:99999/", "bad_port"},
		{"http://a..b:x/", "bad_port"},
		{"http://:80/", "empty_host"},
		{"http://%C2%AD/", "bad_host"},
		{"http://a:[b:c/", "bad_port"},
		{"http://[1.2.3.4]/", "bad_host"},
		{"http://%5B::1%5D/", "bad_port"},
		{"http://%5Bb%5D/", "bad_host"},
		{"http://[::%31]/", "bad_host"},
		{"http://１２７.1/", "http://127.0.0.1/"},
		{"http://４.é/", "http://4.xn--9ca/"},
		{"http://a％41/", "bad_host"},
		{"http://é.xn--a/", "bad_host"},
		{"http://é.xn--bcher-kva/", "http://xn--9ca.xn--bcher-kva/"},
		{"http://xn--bcheŕ-kva.de/", "bad_host"},
		{"http://a-é.ＸN\u00ad－﹣bcheŕ-kva。de/", "bad_host"},
		{"http://x。xn--/", "bad_host"},
		{"http://1.2.3.4。XN--/", "bad_host"},
		{"http://\u2137e/", "bad_host"},
		{"http://\u2137/", "http://xn--6db/"},
		{"http://%2561/", "bad_host"},
		{"http://AZ%41%5A/", "http://azaz/"},
		{"http://255.255.255.255/", "http://255.255.255.255/"},
		{"http://1.1.1.1.", "http://1.1.1.1/"},
		{"http://1.1.1.1.0/", "bad_host"},
		{"http://0.0.0.00000000000000000000000000000000256/", "http://0.0.0.174/"},
		{"http://4294967295/", "http://255.255.255.255/"},
		{"http://4294967296/", "bad_host"},
		{"http://18446744073709551617/", "bad_host"},
		{"http://1.16777216/", "bad_host"},
		{"http://1.16777215/", "http://1.255.255.255/"},
		{"http://example.com/a//../../b/..", "http://example.com/"},
		{"http://example.com/a//..//.", "http://example.com/a"},
		{"http://example.com/%2e%2E/%2e", "http://example.com/"},
		{"http://example.com/%\\2e", "http://example.com/%25/2e"},
		{"http://example.com?#?", "http://example.com/"},
		{"http://example.com/?b&a=1&%61=0&=&b=", "http://example.com/?=&a=1&a=0&b&b="},
		{"http://example.com:000000000000000000080/", "http://example.com/"},
		{"http://example.com:6789/", "http://example.com:6789/"},
		{long, "missing_scheme"},
		{"ftp:" + long, "unsupported_scheme"},
		{"http://example.com/#" + long, "too_long"},
		{"http://example.com/%61#" + long[23:], "http://example.com/a"},
		{"http://a..b/#" + long, "bad_host"},
		{"http://" + long + "/", "too_long"},
		{"http://" + name + "/", "too_long"},
		{"http://" + name + "^/", "bad_host"},
		{"http://" + name + "..a/", "bad_host"},
		{"http://" + name + ".1/", "bad_host"},
		{"http://0.0.0." + strings.Repeat("０", MaxLength) + "256/", "http://0.0.0.174/"},
		{"http://" + strings.Repeat("a", 10_700) + "\U0003134a/", "too_long"}, // and too much for Punycode
		{"http://" + strings.Repeat("㌖", 2_700) + "\U0003134a/", "too_long"},  // as well, once ㌖ is six characters
	}
	for _, test := range tests {
		if got := formOrReason(Profile{}, test.input); got != test.want {
			t.Errorf("Append(%.80q) = %.80q, want %q", test.input, got, test.want)
		}
	}
}

func formOrReason(p Profile, input string) string {
	form, err := p.Append(nil, []byte(input))
	if err != nil {
		return err.Error()
	}
	return string(form)
}

func TestKeepUserinfo(t *testing.T) {
	tests := []struct{ input, want string }{
		{"http://@example.com/", "http://example.com/"},
		{"http://:@example.com/", "http://example.com/"},
		{"http://user:@example.com/", "http://user@example.com/"},
		{"http://User:PASS@Example.com/", "http://User:PASS@example.com/"},
		{"http://:p@example.com/", "http://:p@example.com/"},
		{"http://a@b@example.com/", "http://a%40b@example.com/"},
		{"http://a:b:c@example.com/", "http://a:b%3Ac@example.com/"},
		{"http://::@example.com/", "http://:%3A@example.com/"},
		{"http://%7e%3a;=!$&'()*+,é%@example.com:80/", "http://~%3A%3B%3D!$&'()*+,%C3%A9%25@example.com/"},
		{"http://user@/", "empty_host"},
	}
	for _, test := range tests {
		if got := formOrReason(Profile{KeepUserinfo: true}, test.input); got != test.want {
			t.Errorf("Append(%q) = %q, want %q", test.input, got, test.want)
		}
	}
}

func TestMaxLength(t *testing.T) {
	const form = "http://example.com/a"
	for _, input := range []string{form, "http://example.com/%61", form + "/#fragment"} {
		if got, err := (Profile{MaxLength: len(form)}).Append(nil, []byte(input)); string(got) != form || err != nil {
			t.Errorf("Append(%q) at the limit = %q, %v", input, got, err)
		}
		dst := []byte("x")
		if got, err := (Profile{MaxLength: len(form) - 1}).Append(dst, []byte(input)); string(got) != "x" || err != TooLong {
			t.Errorf("Append(%q) over the limit = %q, %v", input, got, err)
		}
	}
}

func TestProfile(t *testing.T) {
	tests := []struct {
		profile Profile
		name    string
		valid   bool
	}{
		{Profile{}, "linkforge-1", true},
		{Profile{KeepUserinfo: true}, "linkforge-1+userinfo", true},
		{Profile{MaxLength: 8192}, "linkforge-1", true},
		{Profile{MaxLength: 8193}, "linkforge-1", false},
		{Profile{MaxLength: -1}, "linkforge-1", false},
		{Profile{AssumeScheme: HTTPS}, "linkforge-1", true},
		{Profile{AssumeScheme: HTTPS + 1}, "linkforge-1", false},
	}
	for _, test := range tests {
		if name := test.profile.Name(); name != test.name {
			t.Errorf("%+v: Name is %q, want %q", test.profile, name, test.name)
		}
		if err := test.profile.Validate(); (err == nil) != test.valid {
			t.Errorf("%+v: Validate: %v, want valid %t", test.profile, err, test.valid)
		}
	}
}

// reasons are all reasons, in the order of the rules that give them.
var reasons = []Reason{
	Empty, ControlCharacter, UnsupportedScheme, MissingScheme, MissingAuthority,
	Userinfo, BadPort, EmptyHost, BadHost, TooLong,
}

// TestReasons gives each reason once, in order.
func TestReasons(t *testing.T) {
	inputs := []string{
		" ", "http://a\tb", "ftp://a", "a", "http:a", "http://a@b/", "http://a:b/", "http://", "http://a b/",
		"http://a/" + strings.Repeat("a", MaxLength),
	}
	for i, r := range reasons {
		if _, err := (Profile{}).Append(nil, []byte(inputs[i])); err != r {
			t.Errorf("Append(%.80q) fails with %v, want %v", inputs[i], err, r)
		}
	}
}

func TestAllocations(t *testing.T) {
	kinds := map[string][]string{
		"ordinary": ordinaryURLs,
		"dirty":    dirtyURLs,
		"refused":  {"", "ftp://a/", "http://a@b/", "http://a:b/", "http://a..b/", "http://1.2.3.256/", "a\x00b"},
		"assumed":  {"a.example/b", "//a.example", "a.example:80/?b"},
		"address":  {"http://127.1:8080/", "http://0x7f000001/"},
		"query":    {"http://example.com/?" + strings.Repeat("b=2&a=1&", 16)},
	}
	dst := make([]byte, 0, 4096)
	for kind, urls := range kinds {
		for _, u := range urls {
			raw := []byte(u)
			if n := testing.AllocsPerRun(10, func() { Profile{AssumeScheme: HTTPS}.Append(dst, raw) }); n != 0 {
				t.Errorf("%s: Append(%q) allocates %v times", kind, u, n)
			}
		}
	}
}

// TestHostileSize gives inputs of the greatest lengths that would take minutes
// if any step were quadratic.
func TestHostileSize(t *testing.T) {
	var han, keys strings.Builder
	for i := range 300_000 {
		han.WriteRune('\u4e00' + rune(i%20_000))
	}
	for i := range 6_000 {
		fmt.Fprintf(&keys, "%x&", 6_000-i)
	}
	inputs := map[string]string{
		"host of many characters": "http://" + han.String() + "/",
		"pieces of one key":       "http://example.com/?" + strings.Repeat("b&", 16_000) + strings.Repeat("a&", 16_000),
		"pieces without text":     "http://example.com/?" + strings.Repeat("&", 65_000) + "a",
		"pieces in reverse":       "http://example.com/?" + keys.String(),
		"dot segments":            "http://example.com" + strings.Repeat("/a", 10_000) + strings.Repeat("/..", 10_000),
	}
	start := time.Now()
	for name, input := range inputs {
		if _, err := (Profile{}).Append(nil, []byte(input)); err != nil && err != TooLong {
			t.Errorf("%s: %v", name, err)
		}
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestTrimSharesMemory(t *testing.T) {
	raw := []byte("\ufeff \x00http://example.com/\u3000\n")
	got := Trim(raw)
	if want := raw[5 : len(raw)-4]; !bytes.Equal(got, want) || &got[0] != &want[0] {
		t.Errorf("Trim(%q) = %q", raw, got)
	}
}
