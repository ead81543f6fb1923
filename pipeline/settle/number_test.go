package settle

import (
	"bytes"
	"cmp"
	"testing"

	"pgregory.net/rapid"
)

// Keys and rests are ordered as the texts are.
func TestKeying(t *testing.T) {
	text := rapid.Custom(func(t *rapid.T) []byte {
		return []byte(rapid.StringMatching(`(http|https)://(www\.)?[ab]{1,2}(\.example/[ab]{0,9})?`).Draw(t, "text"))
	})
	rapid.Check(t, func(t *rapid.T) {
		k := newKeying(rapid.SliceOfN(text, 0, 12).Draw(t, "sample"))
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		keyA, restA := k.key(a)
		keyB, restB := k.key(b)
		if c := cmp.Or(cmp.Compare(keyA, keyB), bytes.Compare(restA, restB)); c != bytes.Compare(a, b) {
			t.Errorf("%s and %s: %d", a, b, c)
		}
	})
}
