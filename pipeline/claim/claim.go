// Package claim decides who has each legacy code of a run ("Kept codes, one at a time" in
// codegen/README.md, step 1): the URL that has it in the store, or else the smallest
// canonical URL of the rows that claim it. Where the identities of links have parts, a URL here is
// one with its parts.
//
// While rows are read, each code that one brings along is filed as a claim ([File]) in a
// sort by code ([NewSorter]). [Settle] walks over the claims, asks the store about the
// codes in their order, and writes what is not to be expected into another sort, which is in
// the order of the records: claims that are lost, or whose code the store has ([Verdict]).
// So the records can be settled beside it, one bucket at a time, and where every code is new
// and has one URL there is nothing to read.
package claim

import (
	"bytes"
	"cmp"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/sink"
)

// A Claim is a code that a row brings along for its URL. In the sort its group is that of the
// workspace and its key record.CodeKey; its content is
//
//	url_key 16 | code as of packed.AppendCell | identity
type Claim struct {
	Key      sink.Key // of the URL
	Code     []byte
	Identity []byte // the canonical URL, with the parts of the identity (rules.AppendKey)
}

// File adds a claim to a sorter.
func File(w *extsort.Writer, group uint32, c Claim) {
	var buf [256]byte // longer ones are allocated
	rec := append(packed.AppendCell(append(buf[:0], c.Key[:]...), c.Code), c.Identity...)
	copy(w.Reserve(group, record.CodeKey(c.Code), len(rec)), rec)
}

// decode reads what File wrote. The result refers to rec.
func decode(rec []byte) (c Claim) {
	c.Key = sink.Key(rec)
	c.Code, c.Identity = packed.CutCell(rec[len(c.Key):])
	return c
}

// NewSorter returns a sorter of claims: by workspace, code in lower case, code, canonical
// URL. The order of the configuration is filled in.
func NewSorter(cfg extsort.Config, names *record.Workspaces) *extsort.Sorter {
	cfg.CompareGroups = names.Compare
	cfg.Compare = func(a, b []byte) int {
		x, y := decode(a), decode(b)
		if c := legacy.CompareFolded(x.Code, y.Code); c != 0 {
			return c
		}
		return cmp.Or(bytes.Compare(x.Code, y.Code), bytes.Compare(x.Identity, y.Identity))
	}
	return extsort.New(cfg)
}

// A State is what became of a claim.
type State byte

// The states of claims. A claim of which there is no verdict is won, and the store has not
// got its code.
const (
	Lost  State = iota + 1 // another URL has the code
	Made                   // the store has it, from an earlier attempt of the run
	There                  // the store has it, from before the run
	taken                  // no claim: the code, of the length of generated ones, has an owner
)

// aliasBit marks a link of the store as an alias.
const aliasBit = 0x80

// Taken reports whether the verdict is on no claim, but says that its Code has an owner, so that no
// URL can get it.
func (v *Verdict) Taken() bool { return v.State == taken }

// A Verdict is what became of a claim.
type Verdict struct {
	State State
	URL   sink.Key // that claims
	Code  []byte   // that it claims
	Text  []byte   // of a lost claim: the canonical URL that has the code, without parts
	Alias bool     // of Made and There: the store has it as an alias
}

// append encodes the verdict. In the sort its group and key are those of the records of its URL,
// and its content is in the order of their codes, in which there is no byte 0:
//
//	url_key 16 | code | 0 | state, with aliasBit | text
func (v *Verdict) append(dst []byte) []byte {
	dst = append(append(append(dst, v.URL[:]...), v.Code...), 0, byte(v.State))
	if v.Alias {
		dst[len(dst)-1] |= aliasBit
	}
	return append(dst, v.Text...)
}

func decodeVerdict(rec []byte) (v Verdict) {
	v.URL = sink.Key(rec)
	v.Code, rec, _ = bytes.Cut(rec[len(v.URL):], []byte{0})
	v.State, v.Alias, v.Text = State(rec[0]&^aliasBit), rec[0]&aliasBit != 0, rec[1:]
	return v
}
