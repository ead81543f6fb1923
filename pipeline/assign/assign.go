// Package assign decides which URL gets which code.
//
// # The rule
//
// Take the distinct canonical URLs of a workspace one at a time, in ascending order
// of their bytes:
//
//   - A URL that the store has keeps the code that it has there.
//   - Any other tries salt 0, 1, 2 and so on up to the highest salt. It gets the first
//     code that neither the store nor a URL before it has.
//   - If all those codes are taken, the URL gets none (code_space_exhausted).
//
// codegen/README.md has an example, and how a code is computed;
// testdata/assign.jsonl has 60 worked cases.
//
// # The algorithm
//
// Going through all URLs in turn would need all of them in memory, so [Settle]
// reaches the same result in another way. A code that several want goes to an owner
// in the store, otherwise to the smallest canonical URL. This is a stable matching in
// which all codes rank the URLs alike, so it has exactly one solution, and deferred
// acceptance finds it: each URL proposes its next code, the code keeps the better of
// its holder and the proposer, and the other one proposes its next code in turn.
//
// The order of the proposals makes no difference. Therefore only the URLs that
// contest a code need to be in memory. Settle asks [Holders] about the others when a
// URL proposes their code.
//
// Two shortcuts are wrong: to retry without taking the code from a worse holder, and
// to stop after a fixed number of rounds.
//
// The package knows no files, stores or goroutines.
package assign

import (
	"bytes"
	"context"
	"errors"
)

// A Slot is a code in a workspace. A claim holds one at most.
type Slot struct {
	Workspace uint32 // a number that the caller gave the workspace
	Code      string
}

// A URL claims a code. Of several that claim a slot, the one with the smallest canonical
// URL is the best. Settle and its result refer to the bytes of Canonical, so they must
// not change while either is in use.
type URL struct {
	Workspace uint32
	Canonical []byte
}

// A Claim is a URL and the code that it proposes or holds. In the result of Settle this
// is the code that it gets.
type Claim struct {
	URL
	Salt      int    // of Code
	Code      string // meaningless if Exhausted
	Exhausted bool   // every salt was tried, and every code has a better holder
}

// A Holder is the owner of a slot that is not among the claims. As with a URL, the bytes
// of Canonical must not change while Settle or its result is in use.
type Holder struct {
	Fixed     bool   // an owner that cannot be moved: every claim is turned away
	Canonical []byte // or a URL that would get the slot, its first code, unless a better one claims it
	Salt      int    // of that code
}

// Holders knows the owners of slots that are not among the claims.
type Holders interface {
	// Holders reports the holders of slots, in any order: i is the index of the
	// slot. A slot without a holder is not reported. Slots are distinct, and none
	// is asked for twice. A URL that was reported or was given to Settle is a
	// claim from then on, and must not be reported again.
	Holders(ctx context.Context, slots []Slot, report func(i int, h Holder)) error
}

// A Proposer returns the code of a URL at a salt; "": nobody may have that code.
type Proposer func(u *URL, salt int) string

// Settle gives every URL its code: the first, from salt 0 to maxRetries, that no better
// claimant gets, and which may be had. With maxRetries 0 only salt 0 is tried (in pipeline.Config, 0 means the
// default). urls must be distinct, and must include all URLs that share their first code
// with another URL of the workspace, or have none. The result has the claims of urls first, in
// their order, then those of the URLs that Holders reported. The error is that of who,
// or the cause of the end of ctx, or that maxRetries is negative.
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

// contest is the state of the deferred acceptance. Every claim holds its slot, or is
// in the queue with a proposal, or is exhausted.
type contest struct {
	propose    Proposer
	maxRetries int
	claims     []Claim
	holds      map[Slot]int32 // index of the claim, nobody or fixed; absent: not asked yet
	queue      []int32        // claims whose proposal is not yet answered
}

const (
	nobody = int32(-1)
	fixed  = int32(-2)
)

// next makes a claim propose its next code.
func (c *contest) next(i int32) {
	claim := &c.claims[i]
	for claim.Salt < c.maxRetries {
		claim.Salt++
		if claim.Code = c.propose(&claim.URL, claim.Salt); claim.Code != "" {
			c.queue = append(c.queue, i)
			return
		}
	}
	claim.Exhausted = true
}

// ask gets the holders of the slots in the queue that nobody proposed before.
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
		c.claims = append(c.claims, Claim{URL: URL{slots[i].Workspace, h.Canonical}, Code: slots[i].Code, Salt: h.Salt})
	})
}

// round answers every proposal in the queue. Claims that are turned away propose again.
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
