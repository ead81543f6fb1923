// Command naive does the main job of bulk in the way that one would write in an afternoon:
// net/url, math/big, maps and encoding/csv, in memory and in one goroutine. It is a peer of
// the benchmarks. On lists of package gen without rejects and workspaces it writes the
// mapping that bulk writes; on other lists it does not (see canonical).
//
//	naive INPUT.csv WORKSPACE OUTPUT.csv
package main

import (
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
)

const (
	alphabet   = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	codeLength = 10
	maxSalt    = 10
)

// A link is a row of the input and its result.
type link struct {
	row                       int
	original, canonical, code string
	outcome                   string
	salt                      int
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: naive INPUT.csv WORKSPACE OUTPUT.csv")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "naive:", err)
		os.Exit(1)
	}
}

func run(input, workspace, output string) error {
	links, err := read(input)
	if err != nil {
		return err
	}
	if err := assign(links, workspace); err != nil {
		return err
	}
	slices.SortFunc(links, func(a, b *link) int {
		switch {
		case a.code != b.code:
			return strings.Compare(a.code, b.code)
		case a.original != b.original:
			return strings.Compare(a.original, b.original)
		}
		return a.row - b.row
	})
	setOutcomes(links)
	return write(output, input, workspace, links)
}

// read reads the first column. The first record is the header.
func read(name string) ([]*link, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	if _, err := r.Read(); err != nil {
		return nil, err
	}
	var links []*link
	for row := 1; ; row++ {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return links, nil
		}
		if err != nil {
			return nil, err
		}
		c, err := canonical(record[0])
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", row, err)
		}
		links = append(links, &link{row: row, original: record[0], canonical: c})
	}
}

// assign gives each canonical URL a code. If several want the same code, the URL that
// sorts first gets it, and the others get their next free one.
func assign(links []*link, workspace string) error {
	codes := map[string]*link{} // by canonical URL
	for _, l := range links {
		codes[l.canonical] = l
	}
	urls := make([]string, 0, len(codes))
	for u := range codes {
		urls = append(urls, u)
	}
	slices.Sort(urls)
	taken := make(map[string]bool, len(urls))
	for _, u := range urls {
		l := codes[u]
		for l.code = code(u, workspace, 0); taken[l.code]; l.code = code(u, workspace, l.salt) {
			if l.salt++; l.salt > maxSalt {
				return fmt.Errorf("no code is left for %s", u)
			}
		}
		taken[l.code] = true
	}
	for _, l := range links {
		l.code, l.salt = codes[l.canonical].code, codes[l.canonical].salt
	}
	return nil
}

// setOutcomes makes the first row of each code the link and the others duplicates.
func setOutcomes(links []*link) {
	last := ""
	for _, l := range links {
		l.outcome = "created"
		if l.code == last {
			l.outcome = "duplicate"
		}
		last = l.code
	}
}

// code is the beginning of the hash in Base58. A salt of 0 is the first choice of a URL.
func code(canonical, workspace string, salt int) string {
	input := canonical + "|" + workspace
	if salt > 0 {
		input += "|" + strconv.Itoa(salt)
	}
	sum := sha256.Sum256([]byte(input))
	n, base, digit := new(big.Int).SetBytes(sum[:16]), big.NewInt(58), new(big.Int)
	var digits []byte
	for n.Sign() > 0 {
		n.DivMod(n, base, digit)
		digits = append(digits, alphabet[digit.Int64()])
	}
	for len(digits) < codeLength {
		digits = append(digits, alphabet[0])
	}
	slices.Reverse(digits)
	return string(digits[:codeLength])
}

// write writes the mapping with the columns that bulk writes.
func write(output, source, workspace string, links []*link) (err error) {
	f, err := os.Create(output)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := csv.NewWriter(f)
	if err := w.Write([]string{"source", "row", "workspace_id", "original_url", "canonical_url", "short_code", "short_url", "outcome", "salt"}); err != nil {
		return err
	}
	for _, l := range links {
		record := []string{source, strconv.Itoa(l.row), workspace, l.original, l.canonical, l.code, "", l.outcome, strconv.Itoa(l.salt)}
		if err := w.Write(record); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
