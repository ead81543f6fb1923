package legacy

import "bytes"

// Twins counts groups of codes that differ only in ASCII case.
type Twins struct {
	Groups   int64
	Examples [][]string // of the first MaxTwins groups, the first MaxTwins codes

	group uint32
	code  []byte // in hand
	run   int    // codes that differ from it only in case, with itself
}

// MaxTwins are the groups that are examples, and the codes of each.
const MaxTwins = 3

// Add takes the next code of a workspace, in the order of CompareFolded, then of the bytes. It may
// be that of the call before.
func (t *Twins) Add(workspace uint32, code []byte) {
	switch {
	case t.run == 0 || workspace != t.group || CompareFolded(code, t.code) != 0:
		t.run = 1
	case bytes.Equal(code, t.code):
		return
	default:
		t.run++
		t.addTwin(code)
	}
	t.group, t.code = workspace, append(t.code[:0], code...)
}

func (t *Twins) addTwin(code []byte) {
	if t.run == 2 {
		if t.Groups++; t.Groups <= MaxTwins {
			t.Examples = append(t.Examples, []string{string(t.code)})
		}
	}
	if t.Groups <= MaxTwins && t.run <= MaxTwins {
		t.Examples[t.Groups-1] = append(t.Examples[t.Groups-1], string(code))
	}
}
