package legacy

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// The reasons of Check. Package outcome has them too.
const (
	BadCode      = "bad_code"
	CodeReserved = "code_reserved"
)

// Check says why a code may not be kept: BadCode, CodeReserved, or "": it may be. A code that
// is not Possible is bad, whatever the pattern. With DefaultPattern nothing is allocated.
func (r *Rules) Check(code []byte) (reason string) {
	switch {
	case !r.matches(code):
		return BadCode
	case r.Reserved[string(code)]:
		return CodeReserved
	}
	return ""
}

func (r *Rules) matches(code []byte) bool {
	if HasDots(code) {
		return false
	}
	if r.Pattern == nil {
		return matchesDefault(code)
	}
	return Possible(code) && r.Pattern.Match(code)
}

// HasDots reports whether a segment of a code is . or .. : clients remove such segments of a path, so
// no request asks for that code.
func HasDots(code []byte) bool {
	for more := true; more; {
		var segment []byte
		segment, code, more = bytes.Cut(code, []byte("/"))
		if string(segment) == "." || string(segment) == ".." {
			return true
		}
	}
	return false
}

// Possible reports whether bytes can be a code, whatever the pattern: they are UTF-8 without a
// control byte, not empty and no more than MaxCode.
func Possible(code []byte) bool {
	return len(code) > 0 && len(code) <= MaxCode && !HasControl(code) && utf8.Valid(code)
}

// HasControl reports whether a code has a control byte: below 20 or 7F.
func HasControl(code []byte) bool {
	for _, b := range code {
		if b < ' ' || b == 0x7f {
			return true
		}
	}
	return false
}

const (
	defaultBytes = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._~-"
	defaultMost  = 64
)

// isDefault says which bytes DefaultPattern has.
var isDefault = func() (is [256]bool) {
	for _, b := range []byte(defaultBytes) {
		is[b] = true
	}
	return is
}()

func matchesDefault(code []byte) bool {
	for _, b := range code {
		if !isDefault[b] {
			return false
		}
	}
	return len(code) > 0 && len(code) <= defaultMost
}

// Folded returns the rules for codes in ASCII lower case, which is how workspaces that fold case have
// all of theirs.
func (r Rules) Folded() Rules {
	words := make(map[string]bool, len(r.Reserved))
	for word := range r.Reserved {
		words[string(Fold(nil, []byte(word)))] = true
	}
	r.Reserved = words
	return r
}

// ParsePattern reads a pattern that must match a code as a whole; nil for "": DefaultPattern.
func ParsePattern(pattern string) (*regexp.Regexp, error) {
	if pattern == "" {
		return nil, nil
	}
	if _, err := regexp.Compile(pattern); err != nil { // or a)|(b would be well formed
		return nil, fmt.Errorf("%q is not a pattern: %w", pattern, err)
	}
	whole, err := regexp.Compile(`\A(?:` + pattern + `)\z`)
	if err != nil {
		return nil, fmt.Errorf("%q is not a pattern: %w", pattern, err)
	}
	return whole, nil
}

// ReadReserved reads the words that no code may be, one a line. Space around a word does not
// count. Lines that are blank or begin with # are skipped.
func ReadReserved(r io.Reader) (map[string]bool, error) {
	words := map[string]bool{}
	lines := bufio.NewScanner(r)
	n := 0
	for lines.Scan() {
		line := lines.Text()
		if n++; n == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		word := strings.TrimSpace(line)
		if word == "" || word[0] == '#' {
			continue
		}
		words[word] = true
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read reserved words after line %d: %w", n, err)
	}
	return words, nil
}

// Fold appends a code in ASCII lower case.
func Fold(dst, code []byte) []byte {
	for _, b := range code {
		dst = append(dst, Lower(b))
	}
	return dst
}

// CompareFolded compares codes in ASCII lower case.
func CompareFolded(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if x, y := Lower(a[i]), Lower(b[i]); x != y {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(len(a), len(b))
}

// Same reports whether two codes are one: with fold, codes that differ only in ASCII case are.
func Same(a, b []byte, fold bool) bool {
	return bytes.Equal(a, b) || fold && CompareFolded(a, b) == 0
}

// Lower returns an ASCII letter in lower case, and any other byte as it is.
func Lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		b += 'a' - 'A'
	}
	return b
}

// Damaged reports whether a code looks like what a spreadsheet makes of a long number, or of
// a code such as 12E5: 2.19E+26, 1.2E+06.
func Damaged(code []byte) bool {
	rest, n := cutDigits(code)
	if n != 1 {
		return false
	}
	if len(rest) > 0 && (rest[0] == '.' || rest[0] == ',') { // some countries have a comma
		if rest, n = cutDigits(rest[1:]); n == 0 {
			return false
		}
	}
	if len(rest) < 2 || rest[0]|0x20 != 'e' || rest[1] != '+' {
		return false
	}
	rest, n = cutDigits(rest[2:])
	return n >= 2 && len(rest) == 0
}

// IsFloat reports whether a code is a whole number as data frames write it in a column in which a cell
// is blank: 1001.0. If all codes are, they were whole numbers before.
func IsFloat(code []byte) bool {
	rest, n := cutDigits(code)
	return n > 0 && string(rest) == ".0"
}

// cutDigits returns what follows the digits at the beginning, and how many they are.
func cutDigits(s []byte) (rest []byte, n int) {
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return s[n:], n
}
