package codegen_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/linkforge/bulk/codegen"
	"pgregory.net/rapid"
)

// vectors calls f with each line of a file of testdata.
func vectors(t *testing.T, name string, f func(line map[string]any)) {
	t.Helper()
	file, err := os.Open("../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	n := 0
	for ; lines.Scan(); n++ {
		var line map[string]any
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		f(line)
	}
	if lines.Err() != nil || n == 0 {
		t.Fatalf("%s: %d lines, %v", name, n, lines.Err())
	}
}

// checkCodes compares every member "codeN" of a vector with the code of length N, which
// goes behind what is there.
func checkCodes(t *testing.T, line map[string]any, h codegen.Hash) {
	t.Helper()
	for name, want := range line {
		digits, ok := strings.CutPrefix(name, "code")
		if !ok {
			continue
		}
		length, err := strconv.Atoi(digits)
		if err != nil {
			t.Fatal(err)
		}
		scheme, err := codegen.New(length)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(scheme.AppendCode([]byte("code "), h)); got != "code "+want.(string) {
			t.Errorf("%v: %s gives %q, want %s behind \"code \"", line, name, got, want)
		}
	}
}

func TestVectors(t *testing.T) {
	hasher := codegen.NewHasher()
	vectors(t, "codes.jsonl", func(line map[string]any) {
		input := codegen.AppendInput(nil, []byte(line["canonical"].(string)),
			[]byte(line["workspace"].(string)), int(line["salt"].(float64)))
		h := codegen.Sum(input)
		if got := hasher.Sum([]byte(line["canonical"].(string)), []byte(line["workspace"].(string)), int(line["salt"].(float64))); got != h {
			t.Errorf("%v: %x by a Hasher, %x by Sum", line, got, h)
		}
		key := h.Key()
		if got, want := hex.EncodeToString(key[:]), line["sha256"].(string)[:32]; got != want {
			t.Errorf("%v: hash %s", line, got)
		}
		checkCodes(t, line, h)
	})
	vectors(t, "derive.jsonl", func(line map[string]any) {
		var key [16]byte
		if _, err := hex.Decode(key[:], []byte(line["first16"].(string))); err != nil {
			t.Fatal(err)
		}
		checkCodes(t, line, codegen.FromKey(key))
	})
}

// reference is the scheme as its definition reads, with math/big.
func reference(h codegen.Hash, length int) string {
	key := h.Key()
	n := new(big.Int).SetBytes(key[:])
	var digits []byte
	for base, r := big.NewInt(58), new(big.Int); n.Sign() > 0; {
		n.DivMod(n, base, r)
		digits = append(digits, codegen.Alphabet[r.Int64()])
	}
	slices.Reverse(digits)
	s := strings.Repeat("1", max(0, length-len(digits))) + string(digits)
	return s[:length]
}

// The codes are those of the definition, and ranks order hashes as codes do.
func TestMatchesDefinition(t *testing.T) {
	hash := rapid.Custom(func(t *rapid.T) codegen.Hash {
		h := codegen.Hash{Hi: rapid.Uint64().Draw(t, "hi"), Lo: rapid.Uint64().Draw(t, "lo")}
		shift := rapid.IntRange(0, 127).Draw(t, "shift") // hashes of every number of digits
		for range shift {
			h = codegen.Hash{Hi: h.Hi >> 1, Lo: h.Lo>>1 | h.Hi<<63}
		}
		return h
	})
	rapid.Check(t, func(t *rapid.T) {
		checkDefinition(t, hash.Draw(t, "a"), hash.Draw(t, "b"), rapid.IntRange(1, 24).Draw(t, "length"))
	})
}

func FuzzDefinition(f *testing.F) {
	f.Add(uint64(0), uint64(1), uint64(1)<<63, uint64(0), byte(10))
	f.Add(^uint64(0), ^uint64(0), ^uint64(0), ^uint64(1), byte(24))
	f.Fuzz(func(t *testing.T, hiA, loA, hiB, loB uint64, length byte) {
		checkDefinition(t, codegen.Hash{Hi: hiA, Lo: loA}, codegen.Hash{Hi: hiB, Lo: loB}, int(length)%24+1)
	})
}

func checkDefinition(t interface{ Fatalf(string, ...any) }, a, b codegen.Hash, length int) {
	scheme, _ := codegen.New(length)
	codeA, codeB := string(scheme.AppendCode(nil, a)), string(scheme.AppendCode(nil, b))
	if want := reference(a, scheme.Length()); codeA != want {
		t.Fatalf("code %s, want %s", codeA, want)
	}
	rankA, rankB := scheme.Rank(a), scheme.Rank(b)
	n := min(10, scheme.Length())
	if got, want := strings.Compare(codeA[:n], codeB[:n]), cmp.Compare(rankA, rankB); got != want {
		t.Fatalf("codes %s %s compare as %d, ranks %d %d as %d", codeA, codeB, got, rankA, rankB, want)
	}
	if got := scheme.RankOf([]byte(codeA)); got != rankA {
		t.Fatalf("code %s has rank %d, not %d", codeA, rankA, got)
	}
}

// What passes as a workspace makes of a URL and a salt what nothing else does.
func FuzzInput(f *testing.F) {
	f.Add([]byte("http://a/"), []byte("w"), []byte("http://a/"), []byte("w|1"), byte(1), byte(0))
	f.Add([]byte("http://a/"), []byte("\u00e9"), []byte("http://a"), []byte("/|\u00e9"), byte(0), byte(0))
	f.Fuzz(func(t *testing.T, urlA, wsA, urlB, wsB []byte, saltA, saltB byte) {
		if codegen.CheckWorkspace(wsA) != nil || codegen.CheckWorkspace(wsB) != nil || bytes.ContainsRune(urlA, '|') || bytes.ContainsRune(urlB, '|') {
			return
		}
		same := bytes.Equal(urlA, urlB) && bytes.Equal(wsA, wsB) && saltA == saltB
		a, b := codegen.AppendInput(nil, urlA, wsA, int(saltA)), codegen.AppendInput(nil, urlB, wsB, int(saltB))
		if bytes.Equal(a, b) != same {
			t.Errorf("%q and %q", a, b)
		}
	})
}

func TestNew(t *testing.T) {
	for _, length := range []int{-1, 0, 25} {
		if _, err := codegen.New(length); err == nil {
			t.Errorf("length %d was accepted", length)
		}
	}
}

func TestCheckWorkspace(t *testing.T) {
	for _, c := range []struct {
		ws   string
		want error
	}{
		{"42", nil},
		{" not trimmed ", nil},
		{strings.Repeat("é", 64), nil},
		{"", codegen.ErrWorkspaceEmpty},
		{strings.Repeat("é", 65), codegen.ErrWorkspaceLong},
		{"a|1", codegen.ErrWorkspaceBar},
		{"a\x00", codegen.ErrWorkspaceControl},
		{"a\u0085", codegen.ErrWorkspaceControl},
		{"a\u200b", nil}, // a format character, not a control
		{"\xff", codegen.ErrWorkspaceUTF8},
	} {
		if got := codegen.CheckWorkspace([]byte(c.ws)); got != c.want {
			t.Errorf("%q: %v, want %v", c.ws, got, c.want)
		}
	}
}

func ExampleScheme() {
	scheme, _ := codegen.New(codegen.DefaultLength)
	input := codegen.AppendInput(nil, []byte("http://example.com/api/users?id=123&name=john"), []byte("ws_abc123"), 0)
	fmt.Println(string(scheme.AppendCode(nil, codegen.Sum(input))))
	// Output: Gbg5fgTP5s
}

func BenchmarkHashAndCode(b *testing.B) {
	canonical := []byte("https://www.example.com/news/2024/05/some-article-title-here?id=123456&ref=home")
	workspace := []byte("ws_abc123")
	for _, length := range []int{7, 10, 22} {
		b.Run(fmt.Sprintf("length=%d", length), func(b *testing.B) {
			scheme, _ := codegen.New(length)
			hasher := codegen.NewHasher()
			var code []byte
			b.ReportAllocs()
			for b.Loop() {
				code = scheme.AppendCode(code[:0], hasher.Sum(canonical, workspace, 0))
			}
		})
	}
}

func TestSaltOf(t *testing.T) {
	canonical, workspace := []byte("https://example.com/"+strings.Repeat("a", 300)), []byte("demo")
	for _, length := range []int{6, 10, 24} {
		scheme, err := codegen.New(length)
		if err != nil {
			t.Fatal(err)
		}
		for salt := range 4 {
			code := scheme.AppendCode(nil, codegen.Sum(codegen.AppendInput(nil, canonical, workspace, salt)))
			want := salt
			if salt > 2 {
				want = -1
			}
			if got := scheme.SaltOf(canonical, workspace, code, 2); got != want {
				t.Errorf("salt of %s, of salt %d = %d, want %d", code, salt, got, want)
			}
		}
	}
	scheme, err := codegen.New(10)
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{"", "0", strings.Repeat("1", codegen.MaxLength+1)} {
		if got := scheme.SaltOf(canonical, workspace, []byte(code), 100); got != -1 {
			t.Errorf("salt of %q = %d, want -1", code, got)
		}
	}
}
