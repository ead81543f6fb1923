package verify_test

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline"
)

// byHand makes the mapping of URLs that are canonical already, in one workspace
// and with codes of n characters, one URL at a time. Its rows are URL, code and
// salt, or the URL alone if it has no code. It shares nothing with the pipeline.
func byHand(urls []string, workspace string, n, retries int) []string {
	const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	var rows []string
	taken := map[string]bool{}
	for _, url := range slices.Compact(slices.Sorted(slices.Values(urls))) {
		row := url
		for salt := 0; salt <= retries; salt++ {
			input := url + "|" + workspace
			if salt > 0 {
				input += fmt.Sprint("|", salt)
			}
			sum := sha256.Sum256([]byte(input))
			number, code := new(big.Int).SetBytes(sum[:16]), ""
			for number.Sign() > 0 {
				digit := new(big.Int)
				number.DivMod(number, big.NewInt(58), digit)
				code = alphabet[digit.Int64():digit.Int64()+1] + code
			}
			if code = strings.Repeat("1", max(0, n-len(code))) + code; !taken[code[:n]] {
				taken[code[:n]] = true
				row = fmt.Sprint(url, " ", code[:n], " ", salt)
				break
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// The mapping of a run is what thirty lines make of the same URLs.
func TestByHand(t *testing.T) {
	var urls []string
	for i := range 900 {
		urls = append(urls, fmt.Sprintf("http://example.com/%d", i*i%701))
	}
	for _, n := range []int{1, 2, 3, 10, 22, 24} {
		for _, retries := range []int{1, 10} {
			job(t, pipeline.Config{Workspace: "demo", CodeLength: n, MaxRetries: retries}, map[string]string{"a.txt": strings.Join(urls, "\n")})
			var got []string
			for _, line := range lines(t, "mapping.csv")[1:] {
				if cells := strings.Split(strings.TrimSpace(line), ","); cells[7] == "created" {
					got = append(got, cells[4]+" "+cells[5]+" "+cells[8])
				}
			}
			for _, line := range lines(t, "rejects.csv")[1:] {
				got = append(got, strings.Split(line, ",")[5])
			}
			slices.Sort(got)
			got = slices.Compact(got)
			want := byHand(urls, "demo", n, retries)
			if slices.Sort(want); !slices.Equal(got, want) {
				t.Errorf("length %d, %d retries: %d rows, want %d", n, retries, len(got), len(want))
			}
		}
	}
}
