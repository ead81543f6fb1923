package settle

import (
	"context"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/assign"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// A Coder makes the codes of URLs, and the decisions about those that contest a code. It knows neither
// records nor a store. Its workspaces are frozen, and it is safe for concurrent use.
type Coder struct {
	Order      record.Order
	MaxRetries int // highest salt
	Names      *record.Workspaces
}

// Settle is assign.Settle with these codes.
func (c *Coder) Settle(ctx context.Context, urls []assign.URL, who assign.Holders) ([]assign.Claim, error) {
	return assign.Settle(ctx, urls, c.propose, c.MaxRetries, who)
}

// Decision returns what becomes of a URL that contested a code.
func (c *Coder) Decision(claim *assign.Claim) Decision {
	if claim.Exhausted {
		return Decision{Reason: outcome.CodeSpaceExhausted, Detail: outcome.ExhaustedDetail(c.MaxRetries, c.Order.Words != nil), Salt: -1}
	}
	return Decision{URL: claim.URL, Code: claim.Code, Salt: claim.Salt}
}

// Key returns the url_key of a URL.
func (c *Coder) Key(u *assign.URL) sink.Key { return codegen.Sum(c.input(u, 0)).Key() }

// propose is an assign.Proposer.
func (c *Coder) propose(u *assign.URL, salt int) string {
	var buf [codegen.MaxLength]byte
	code := c.Order.AppendCode(buf[:0], c.Order.Sum(c.input(u, salt)))
	if c.Order.Word(code) != "" {
		return ""
	}
	return string(code)
}

// input is what is hashed.
func (c *Coder) input(u *assign.URL, salt int) []byte {
	canonical, parts := rules.CutKey(u.Canonical)
	return codegen.AppendIdentity(nil, canonical, c.Names.Name(u.Workspace), parts, salt)
}

// slot returns that of a code of a link.
func (c *Coder) slot(d *Decision, code string) assign.Slot {
	return assign.Slot{Workspace: d.URL.Workspace, Code: code}
}
