package verify

import (
	"bytes"
	"strconv"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/packed"
)

// A coder makes hashes and codes of identities, for one goroutine.
type coder struct {
	run   *run
	input []byte
}

func newCoder(run *run) *coder { return &coder{run: run} }

// hash hashes an identity, which has these parts, at a salt.
func (c *coder) hash(canonical, workspace, parts []byte, salt int) codegen.Hash {
	c.input = codegen.AppendIdentity(c.input[:0], canonical, workspace, parts, salt)
	return codegen.Sum(c.input)
}

// fill fills in the first code of a link.
func (c *coder) fill(l *link) {
	l.code0, l.salt0 = l.code0[:0], 0
	h := l.hash
	switch {
	case c.run.coding.plain:
	case c.run.coding.spec.Counts:
		l.order = byHash.AppendCode(l.order[:0], h)
		return
	case !c.run.coding.sorts():
		return
	default:
		h, l.salt0 = c.run.coding.maker.First(h, l.Canonical, l.Workspace, l.parts, c.run.retries)
	}
	l.code0 = c.run.coding.maker.AppendCode(l.code0, h)
}

// hasFirst reports whether a link has the code of salt 0, and the mapping is in the order of these.
func (l *link) hasFirst() bool {
	return l.salt0 == 0 && len(l.code0) > 0 && bytes.Equal(l.Code, l.code0)
}

// firstCode returns the first code of a row, by which the mapping is sorted, as far as it is known.
// With a counter that is the code that the scheme by default would give.
func (r *run) firstCode(l *link) (code []byte, known bool) {
	switch {
	case r.coding.spec.Counts:
		return l.order, true
	case r.coding.sorts():
		return l.code0, true
	case l.Salt == 0 && len(l.Code) == r.coding.length && (r.coding.listed || l.Outcome == outcome.Created):
		return l.Code, true
	}
	return nil, false
}

// byHash makes the codes by which rows are sorted if theirs come from numbers.
var byHash, _ = codegen.New(codegen.DefaultLength)

// appendCode appends the code of an identity at a salt: of the length of the run, or if there may be
// such codes of that of another one.
func (c *coder) appendCode(dst, like, canonical, workspace, parts []byte, salt int) []byte {
	scheme := c.run.coding.maker.Scheme
	if len(like) > 0 && len(like) != c.run.coding.length {
		if other, err := scheme.WithLength(len(like)); err == nil {
			scheme = other
		}
	}
	c.input = codegen.AppendIdentity(c.input[:0], canonical, workspace, parts, salt)
	return scheme.AppendCode(dst, scheme.Sum(c.input))
}

// salt0 appends the code of salt 0 of an identity, or what stands in for it.
func (c *coder) salt0(dst, canonical, workspace, parts []byte) []byte {
	if c.run.coding.hashes() {
		return c.appendCode(dst, nil, canonical, workspace, parts, 0)
	}
	return c.standIn(dst, canonical, workspace, parts, 0)
}

// A standIn stands for the code of a URL at a salt, if codes cannot be made: for those that claim it
// to meet. No code begins as it does.
func (c *coder) standIn(dst, canonical, workspace, parts []byte, salt int) []byte {
	key := c.hash(canonical, workspace, parts, salt).Key()
	return append(append(dst, 0), key[:]...)
}

func isStandIn(code []byte) bool { return len(code) > 0 && code[0] == 0 }

// codeText names a code for a finding.
func codeText(code []byte, salt int) string {
	if isStandIn(code) {
		return "its code of salt " + saltText(salt)
	}
	return string(code)
}

// urlSortKey is a key of a sort by canonical URL: the beginning of what follows its scheme.
func urlSortKey(canonical []byte) uint64 {
	if rest, ok := bytes.CutPrefix(canonical, []byte("https://")); ok {
		return 1<<63 | packed.TextKey(rest)>>1
	}
	rest, _ := bytes.CutPrefix(canonical, []byte("http://"))
	return packed.TextKey(rest) >> 1
}

func saltText(salt int) string {
	if salt < 0 {
		return ""
	}
	return strconv.Itoa(salt)
}
