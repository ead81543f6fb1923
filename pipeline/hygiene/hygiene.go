// Package hygiene finds the links that a store of plain links cannot keep as they were: one with a
// password becomes public, an archived one comes alive. It knows no files and no stores.
package hygiene

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strings"
)

// A Kind is what is the matter with a link.
type Kind int

// The kinds, in the order in which they are checked: first those that the cells of a row show,
// then those that its URL shows.
const (
	Pattern   Kind   = iota // the code is a regular expression: the row is no link
	Protected               // it has a password
	Inactive                // it is archived, banned, disabled or deleted
	Expired                 // it has expired, or was used up
	Targeted                // it has other destinations by country or device
	Starts                  // it does not work yet
	Ends                    // its expiry or use limit is left out: it would become eternal
	Loop                    // its destination is its own short URL
	Chain                   // its destination is another short URL
	Secret                  // its URL has a password, a token, an e-mail address
	Suspect                 // its URL is two in one, or has a scheme for a host
	Private                 // its host is one that not everybody can reach
	KindCount = iota        // of kinds
)

var names = [KindCount]string{"pattern", "protected", "inactive", "expired", "targeted", "starts", "ends", "loop", "chain", "secret", "suspect", "private"}

// String returns the name of the kind, which is also the reason of rejects.
func (k Kind) String() string { return names[k] }

// ParseKind returns the kind of a name.
func ParseKind(name string) (Kind, error) {
	if i := slices.Index(names[:], name); i >= 0 {
		return Kind(i), nil
	}
	return 0, fmt.Errorf("%q is not %s or %s", name, strings.Join(names[:KindCount-1], ", "), names[KindCount-1])
}

// A Set has kinds.
type Set uint16

// Has reports whether the set has a kind.
func (s Set) Has(k Kind) bool { return s>>k&1 != 0 }

// Add adds a kind.
func (s *Set) Add(k Kind) { *s |= 1 << k }

// All returns the kinds in their order.
func (s Set) All() iter.Seq[Kind] {
	return func(yield func(Kind) bool) {
		for ; s != 0; s &= s - 1 {
			if !yield(Kind(bits.TrailingZeros16(uint16(s)))) {
				return
			}
		}
	}
}
