package explain

import (
	"math/big"

	"github.com/linkforge/bulk/codegen"
)

// A Counting is the way from a number to its code.
type Counting struct {
	SchemeFacts
	Number    uint64  `json:"number"`
	Product   string  `json:"product,omitempty"`   // of counter-base62: number times multiplier; decimal
	Offset    *uint64 `json:"offset,omitempty"`    // of counter-base62: XXH64 of the secret, modulo 62^7
	Remainder *uint64 `json:"remainder,omitempty"` // of counter-permuted: the number modulo 62^7
	Value     uint64  `json:"value"`               // that the digits stand for: product plus offset, modulo 62^7, or the permuted remainder
	Code      string  `json:"code"`
	Blocked   string  `json:"blocked,omitempty"` // the word that the code contains, so that the number is skipped
}

// Number explains the code of a number. The rules must have a counter.
func Number(r *Rules, number uint64) *Counting {
	code := r.Counter.AppendCode(nil, number)
	value, _ := codegen.CounterValue(code)
	c := &Counting{SchemeFacts: r.facts(), Number: number, Value: value, Code: string(code), Blocked: r.word(code)}
	if r.name() == codegen.NameCounter {
		offset, _ := codegen.CounterValue(r.Counter.AppendCode(nil, 0))
		product := new(big.Int).SetUint64(number)
		c.Product, c.Offset = product.Mul(product, big.NewInt(r.Of.Multiplier)).String(), &offset
	} else {
		remainder := number % codegen.CounterSpace
		c.Remainder = &remainder
	}
	return c
}

// NumberOf explains a code by its number below 62^7; nil: it is not a code of the counter, which the
// rules must have.
func NumberOf(r *Rules, code string) *Counting {
	number, ok := r.Counter.Number([]byte(code))
	if !ok {
		return nil
	}
	return Number(r, number)
}
