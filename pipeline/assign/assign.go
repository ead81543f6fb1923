// Package assign settles who gets which code, as if the URLs had come one at a
// time in ascending byte order (canonicalization.md, "Assignment").
//
// Every code ranks its claimants alike: an owner that cannot be moved first,
// then the smallest canonical URL. That makes it a stable matching with one
// common ranking, which has exactly one solution, and [Settle] finds it by
// deferred acceptance: whoever is turned away, also one that held the code
// until now, proposes its next code. The order of the proposals does not
// matter, so only contested URLs need be in memory: the others are asked about
// through [Holders] when somebody proposes their code.
//
// The package is pure. It knows no files, no stores and no goroutines.
package assign

import (
	"bytes"
	"context"
	"errors"
)

// A Slot is a code in a workspace: what a claim can hold.
type Slot struct {
	Workspace uint32 // a number that the caller gave the workspace
	Code      string
}

// A URL that claims a code. The canonical URL ranks it among the claimants of
// one slot, the smallest first. Settle keeps its bytes, in the result too: they may not
// change until that is done with.
type URL struct {
	Workspace uint32
	Canonical []byte
}

// A Claim is a URL with what it has got so far; in the result of Settle, for good.
type Claim struct {
	URL
	Salt      int    // of Code
	Code      string // meaningless if Exhausted
	Exhausted bool   // every salt was tried and every code had a better owner
}

// A Holder is who has a slot without being among the claims. Settle keeps the bytes,
// as those of a URL.
type Holder struct {
	Fixed     bool   // an owner that cannot be moved: every claim is turned away
	Canonical []byte // or a URL that would get the slot, its code of salt 0, unless a better one claims it
}

// Holders knows who holds codes outside of the contest.
type Holders interface {
	// Holders reports, in any order, the holder of each of these slots (by
	// index) that has one. The slots are distinct and each is asked for once. A
	// URL that was reported, or given to Settle, takes part from then on and
	// must not be reported again.
	Holders(ctx context.Context, slots []Slot, report func(i int, h Holder)) error
}

// A Proposer derives the code of a URL at a salt.
type Proposer func(u *URL, salt int) string

// Settle gives every URL its code: the first, from salt 0 to maxRetries, that
// no better claimant wants. (0 is salt 0 only, unlike in pipeline.Config; less is an
// error.) URLs must be distinct; together they must include all that contest a slot
// with each other at salt 0. The result has the given URLs first, in their order,
// then those that Holders drew in. Any other error is the first one of who, or the cause
// that ended ctx.
func Settle(ctx context.Context, urls []URL, propose Proposer, maxRetries int, who Holders) ([]Claim, error) {
	if maxRetries < 0 {
		return nil, errors.New("the highest salt is negative")
	}
	c := contest{propose: propose, maxRetries: maxRetries, holds: make(map[Slot]int32, len(urls))}
	c.claims = make([]Claim, len(urls))
	for i := range urls {
		c.claims[i] = Claim{URL: urls[i], Salt: -1}
		c.next(int32(i))
	}
	for len(c.queue) > 0 {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := c.ask(ctx, who); err != nil {
			return nil, err
		}
		c.round()
	}
	return c.claims, nil
}

// contest is the state of the deferred acceptance. Every claim either holds its
// slot, or is in the queue with a proposal, or is exhausted.
type contest struct {
	propose    Proposer
	maxRetries int
	claims     []Claim
	holds      map[Slot]int32 // index of the claim, nobody or fixed; absent: not asked yet
	queue      []int32        // claims whose proposal waits for an answer
}

const (
	nobody = int32(-1)
	fixed  = int32(-2)
)

// next lets a claim propose its next code.
func (c *contest) next(i int32) {
	claim := &c.claims[i]
	if claim.Salt == c.maxRetries {
		claim.Exhausted = true
		return
	}
	claim.Salt++
	claim.Code = c.propose(&claim.URL, claim.Salt)
	c.queue = append(c.queue, i)
}

// ask finds out who holds the slots in the queue that were not proposed before.
func (c *contest) ask(ctx context.Context, who Holders) error {
	var slots []Slot
	for _, i := range c.queue {
		slot := Slot{c.claims[i].Workspace, c.claims[i].Code}
		if _, asked := c.holds[slot]; !asked {
			c.holds[slot] = nobody
			slots = append(slots, slot)
		}
	}
	if len(slots) == 0 {
		return nil
	}
	return who.Holders(ctx, slots, func(i int, h Holder) {
		if h.Fixed {
			c.holds[slots[i]] = fixed
			return
		}
		c.holds[slots[i]] = int32(len(c.claims))
		c.claims = append(c.claims, Claim{URL: URL{slots[i].Workspace, h.Canonical}, Code: slots[i].Code})
	})
}

// round answers every proposal in the queue; those turned away propose again.
func (c *contest) round() {
	queue := c.queue
	c.queue = nil
	for _, i := range queue {
		slot := Slot{c.claims[i].Workspace, c.claims[i].Code}
		switch holder := c.holds[slot]; {
		case holder == fixed:
			c.next(i)
		case holder == nobody:
			c.holds[slot] = i
		case bytes.Compare(c.claims[i].Canonical, c.claims[holder].Canonical) < 0:
			c.holds[slot] = i
			c.next(holder)
		default:
			c.next(i)
		}
	}
}
