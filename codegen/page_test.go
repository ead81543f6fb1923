package codegen_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/linkforge/bulk/codegen"
)

// pageTable returns the rows of the table of README.md below a header, without the
// marks of code.
func pageTable(t *testing.T, header string) (rows [][]string) {
	t.Helper()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, below, _ := strings.Cut(string(page), "\n"+header+"\n")
	for line := range strings.Lines(below) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(strings.ReplaceAll(line, "`", ""), "| \n"), " | ")
		if !strings.HasPrefix(line, "|---") {
			rows = append(rows, cells)
		}
	}
	if len(rows) < 5 {
		t.Fatalf("%d rows below %s", len(rows), header)
	}
	return rows
}

func pageCode(t *testing.T, canonical, workspace string, salt, length int) string {
	t.Helper()
	if err := codegen.CheckWorkspace([]byte(workspace)); err != nil {
		t.Error(err)
	}
	return reference(codegen.Sum(fmt.Appendf(nil, "%s|%s%s", canonical, workspace, []string{"", "|1"}[salt])), length)
}

// TestPage computes the codes of README.md by the definition.
func TestPage(t *testing.T) {
	for _, row := range pageTable(t, "| canonical URL | workspace | salt | length | code |") {
		salt, saltErr := strconv.Atoi(row[2])
		length, lengthErr := strconv.Atoi(row[3])
		if saltErr != nil || lengthErr != nil {
			t.Fatal(row)
		}
		if got := pageCode(t, row[0], row[1], salt, length); got != row[4] {
			t.Errorf("%q: code %s", row, got)
		}
	}
	page, _ := os.ReadFile("README.md")
	key := codegen.Sum([]byte("https://example.com/shop|demo")).Key()
	if hex := fmt.Sprintf("`%x`", key); !strings.Contains(string(page), hex) {
		t.Errorf("README.md has not the hash %s", hex)
	}
	if !strings.Contains(string(page), "`"+codegen.Alphabet+"`") {
		t.Error("README.md has not the alphabet")
	}
	doc, err := os.ReadFile("codegen.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, length := range []int{10, 22} {
		if code := pageCode(t, "http://a.example/", "demo", 0, length); !strings.Contains(string(doc), " "+code+"\n") {
			t.Errorf("the package comment has not the code %s", code)
		}
	}
}

// TestPageParts computes the codes of identities with parts.
func TestPageParts(t *testing.T) {
	for _, row := range pageTable(t, `| canonical URL | parts, in workspace `+"`ws_1`"+` | code |`) {
		parts := strings.ReplaceAll(strings.TrimPrefix(row[1], "none"), `\|`, "|")
		input := codegen.AppendIdentity(nil, []byte(row[0]), []byte("ws_1"), []byte(parts), 0)
		if want := row[0] + "|ws_1" + parts; string(input) != want {
			t.Errorf("%s, want %s", input, want)
		}
		if got := reference(codegen.Sum(input), codegen.DefaultLength); got != row[2] {
			t.Errorf("%q: code %s", row, got)
		}
	}
}

// TestPageAssignment takes the URLs of the page one at a time.
func TestPageAssignment(t *testing.T) {
	owner := map[string]string{"F": "https://example.com/old"}
	for _, row := range pageTable(t, "| canonical URL | salt 0 | salt 1 | gets | because |") {
		gets := "code_space_exhausted"
		for salt := 1; salt >= 0; salt-- {
			code := pageCode(t, row[0], "demo", salt, 1)
			if code != row[1+salt] {
				t.Errorf("%q: code %s at salt %d", row, code, salt)
			}
			if owner[code] == "" || owner[code] == row[0] {
				gets = code
			}
		}
		if gets != row[3] {
			t.Errorf("%q: gets %s", row, gets)
		}
		owner[gets] = row[0]
	}
}

// wantOnPage says which texts README.md does not have.
func wantOnPage(t *testing.T, texts ...string) {
	t.Helper()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if !strings.Contains(string(page), text) {
			t.Errorf("README.md has not %s", text)
		}
	}
}

const pageSecret = "correct horse battery staple"

func hmacOf(text string) []byte {
	mac := hmac.New(sha256.New, []byte(pageSecret))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// pageNumber is the number in a cell.
func pageNumber(t *testing.T, cell string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cell, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPageKeyed(t *testing.T) {
	for _, row := range pageTable(t, "| canonical URL | workspace | salt | length | code with the secret `"+pageSecret+"` |") {
		input := codegen.AppendInput(nil, []byte(row[0]), []byte(row[1]), int(pageNumber(t, row[2])))
		if got := keyedReference([]byte(pageSecret), input, int(pageNumber(t, row[3]))); got != row[4] {
			t.Errorf("%q: code %s", row, got)
		}
	}
	hash := hmacOf("https://example.com/shop|demo")[:16]
	rest := new(big.Int).SetBytes(hash)
	rest.Mod(rest, big.NewInt(codegen.CounterSpace))
	wantOnPage(t, fmt.Sprintf("`%x`", hash), rest.String(), "`"+codegen.KeyedAlphabet+"`",
		fmt.Sprintf("`%x`", hmacOf("bulk:fingerprint")[:8]))
}

// TestPageBase32 takes the bits of the hashes one at a time.
func TestPageBase32(t *testing.T) {
	for _, row := range pageTable(t, "| canonical URL | workspace | salt | length | code of `sha256-base32` | code of `keyed-base32` with the secret `"+pageSecret+"` |") {
		input := codegen.AppendInput(nil, []byte(row[0]), []byte(row[1]), int(pageNumber(t, row[2])))
		sum, length := sha256.Sum256(input), int(pageNumber(t, row[3]))
		for i, hash := range [][]byte{sum[:], hmacOf(string(input))} {
			if got := base32Reference(hash, length); got != row[4+i] {
				t.Errorf("%q: code %s", row, got)
			}
		}
	}
	first := sha256.Sum256([]byte("https://example.com/shop|demo"))
	wantOnPage(t, fmt.Sprintf("byte `%02x`, which is %08b.", first[0], first[0]), "`"+codegen.Base32Alphabet+"`")
}

func TestPageCounter(t *testing.T) {
	for _, row := range pageTable(t, "| secret | multiplier | number | code |") {
		secret := strings.TrimPrefix(row[0], "none")
		if got := counterReference([]byte(secret), pageNumber(t, row[1]), pageNumber(t, row[2])); got != row[3] {
			t.Errorf("%q: code %s", row, got)
		}
	}
	const value = 455740228729
	if got := counterDigits(value); got != "ibCJIAD" {
		t.Errorf("%d is %s", value, got)
	}
	offset := xxhash.Sum64String("my_secret")
	wantOnPage(t, fmt.Sprintf("`%x`", offset), fmt.Sprint(offset), fmt.Sprint(value), "`"+codegen.CounterAlphabet+"`")
}

// TestPagePermuted takes the steps of the page.
func TestPagePermuted(t *testing.T) {
	const p = "01020100003e0a030000000700000000"
	key := hmacOf("bulk:counter-permuted")
	wantOnPage(t, "`"+p+"`", fmt.Sprintf("`%x`", key))
	first, _ := hex.DecodeString(p)
	block := newAES(t, key)
	block.Encrypt(first, first)
	for _, row := range pageTable(t, "| number | code with the secret `"+pageSecret+"` |") {
		number := pageNumber(t, row[0]) % codegen.CounterSpace
		a, b := number/power(62, 4), number%power(62, 4)
		for i := range 10 {
			q := append(make([]byte, 12), byte(i), byte(b>>16), byte(b>>8), byte(b))
			subtle.XORBytes(q, q, first)
			block.Encrypt(q, q)
			a, b = b, (a+binary.BigEndian.Uint64(q)%power(62, 3+i%2))%power(62, 3+i%2)
		}
		if got := counterDigits(a*power(62, 4) + b); got != row[1] {
			t.Errorf("%q: code %s", row, got)
		}
	}
}

func TestPageBlocklist(t *testing.T) {
	for _, row := range pageTable(t, "| words | code | owner |") {
		want := strings.TrimPrefix(strings.TrimPrefix(row[2], "blocklist:"), "none")
		if got := matchReference(strings.Split(row[0], ", "), row[1]); got != want {
			t.Errorf("%q: %s", row, got)
		}
	}
}
