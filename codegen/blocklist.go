package codegen

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// minWord is the least number of characters of a word. A word of 2 would be in about one code
// of a hundred.
const minWord = 3

// A Blocklist has words that no generated code may contain. Words and codes are compared in
// their folded form: ASCII lower case, and letters for the digits that look like them. Any
// number of goroutines may use it.
//
// It is an automaton of Aho and Corasick. A state is a beginning of a word: the longest one that
// the bytes read so far end with. State 0 is the empty one.
type Blocklist struct {
	words   []string   // folded, distinct, sorted
	class   [256]uint8 // of a byte; bytes of one folded form have one class; 0: in no word
	classes int
	next    []int32  // the next state: of state · classes + class
	found   []string // the longest word that a state ends with, or ""
}

// ParseBlocklist reads words of ASCII, one a line. White space around a word does not count.
// Lines that are blank or begin with # are skipped. A word must have at least 3 characters.
func ParseBlocklist(text []byte) (*Blocklist, error) {
	words := map[string]bool{}
	n := 0
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) {
		n++
		word := bytes.TrimSpace(line)
		if len(word) == 0 || word[0] == '#' {
			continue
		}
		if bytes.ContainsFunc(word, func(r rune) bool { return r > unicode.MaxASCII }) {
			return nil, fmt.Errorf("line %d: %q has a character that is not ASCII, and codes have none", n, word)
		}
		if len(word) < minWord {
			return nil, fmt.Errorf("line %d: %q has fewer than %d characters: too many codes contain it", n, word, minWord)
		}
		words[string(bytes.Map(fold, word))] = true
	}
	l := &Blocklist{words: slices.Sorted(maps.Keys(words))}
	l.classify()
	l.plant()
	l.link()
	return l, nil
}

// fold returns the folded form of an ASCII character.
func fold(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		r += 'a' - 'A'
	}
	if i := strings.IndexRune("01i3457", r); i >= 0 {
		return rune("olleast"[i])
	}
	return r
}

// classify gives each byte its class.
func (l *Blocklist) classify() {
	var class [256]uint8 // of folded bytes
	l.classes = 1
	for _, b := range []byte(strings.Join(l.words, "")) {
		if class[b] == 0 {
			class[b] = uint8(l.classes)
			l.classes++
		}
	}
	for b := range l.class {
		l.class[b] = class[fold(rune(b))]
	}
}

// plant makes the states and the steps that go on in a word. All other steps lead to state 0.
func (l *Blocklist) plant() {
	l.next, l.found = make([]int32, l.classes), make([]string, 1)
	for _, word := range l.words {
		state := int32(0)
		for _, b := range []byte(word) {
			step := int(state)*l.classes + int(l.class[b])
			if l.next[step] == 0 {
				l.next[step] = int32(len(l.found))
				l.next = append(l.next, make([]int32, l.classes)...)
				l.found = append(l.found, "")
			}
			state = l.next[step]
		}
		l.found[state] = word
	}
}

// link makes the other steps. They lead where those of the state's longest proper end that is
// a state lead. That end is shorter, so its steps are made before.
func (l *Blocklist) link() {
	end := make([]int32, len(l.found))
	queue := []int32{0}
	for ; len(queue) > 0; queue = queue[1:] {
		state := queue[0]
		for c := range l.classes {
			step := &l.next[int(state)*l.classes+c]
			var other int32
			if state != 0 {
				other = l.next[int(end[state])*l.classes+c]
			}
			if *step == 0 {
				*step = other
				continue
			}
			end[*step] = other
			if l.found[*step] == "" {
				l.found[*step] = l.found[other]
			}
			queue = append(queue, *step)
		}
	}
}

// Match returns the folded word that the code contains: of several the one that ends first,
// and of these the longest. It returns "" if there is none.
func (l *Blocklist) Match(code []byte) string {
	state := 0
	for _, b := range code {
		state = int(l.next[state*l.classes+int(l.class[b])])
		if word := l.found[state]; word != "" {
			return word
		}
	}
	return ""
}

// Share returns which share of all codes of a length contains a word, where each place of a code
// has one of these digits.
func (l *Blocklist) Share(digits string, length int) (share float64) {
	weights := make([]float64, l.classes) // of a class: the share of the digits that are of it
	for _, d := range []byte(digits) {
		weights[l.class[d]] += 1 / float64(len(digits))
	}
	at := make([]float64, len(l.found)) // of a state: the share of the beginnings without a word that lead to it
	at[0] = 1
	for range length {
		next := make([]float64, len(at))
		for state, part := range at {
			if part == 0 {
				continue
			}
			for class, weight := range weights {
				to := l.next[state*l.classes+class]
				if l.found[to] != "" {
					share += part * weight
				} else {
					next[to] += part * weight
				}
			}
		}
		at = next
	}
	return min(share, 1)
}

// SHA256 returns the SHA-256 of the folded words, each followed by a line feed, in ascending
// order of bytes, as 64 hexadecimal digits.
func (l *Blocklist) SHA256() string {
	h := sha256.New()
	for _, word := range l.words {
		io.WriteString(h, word+"\n")
	}
	return hex.EncodeToString(h.Sum(nil))
}
