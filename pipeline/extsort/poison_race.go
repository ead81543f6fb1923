//go:build race

package extsort

// poison spoils memory that is given up, so that the tests with the race detector find out who still
// reads it.
func poison(memory []byte) {
	memory[0] = 0xdb
	for n := 1; n < len(memory); n *= 2 {
		copy(memory[n:], memory[:n])
	}
}
