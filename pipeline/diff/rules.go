package diff

import (
	"bytes"
	"strconv"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
)

// readRules reads the options of link rules that params needs. One that no run has counts as none.
func (s *operand) readRules() {
	text := func(name string) string { return string(manifest.Option[manifest.Text](s.manifest.Options, name)) }
	s.identity, _ = rules.ParseIdentity(text("identity"))
	s.flags.Expiry, _ = rules.ParseExpiry([]byte(text("expires_at")))
	s.flags.ExpiresIn, _ = time.ParseDuration(text("expires_in"))
	s.flags.TemporaryTTL, _ = time.ParseDuration(text("temporary_ttl"))
}

// params returns the expiry, limit and reference of a row. The expiry is Reckoned if it is the one
// that the run gives to rows without any. If it is a part of the identity, the code tells, but only
// that of sha256-base58: others cannot be computed here. Then every expiry that can be the one of the
// run is taken for it. Rows that name the same second are rare.
func (s *operand) params(r *report.Row) rules.Params {
	cells := &r.Rules.Cells
	p := rules.Params{Ref: cells[rules.Ref]}
	p.Expiry, _ = rules.ParseExpiry(cells[rules.ExpiresAt])
	p.Limit, _ = rules.ParseLimit(cells[rules.MaxUses])
	given, _, _ := s.flags.Parse(&rules.Cells{rules.LinkType: cells[rules.LinkType]})
	if given.Expiry.When != rules.Reckoned || given.Expiry.Reckon(s.manifest.AsOf.Unix()) != p.Expiry {
		return p
	}
	reckoned := p
	reckoned.Expiry = given.Expiry
	if s.identity == rules.ByParams && s.manifest.Scheme.Name == codegen.Name && !s.gives(r, &reckoned) {
		return p
	}
	return reckoned
}

// gives reports whether a row with these parameters has the code of its salt, with sha256-base58.
func (s *operand) gives(r *report.Row, p *rules.Params) bool {
	scheme, err := codegen.New(len(r.Code))
	if err != nil {
		return false
	}
	input := codegen.AppendIdentity(nil, r.Canonical, r.Workspace, s.identity.AppendParts(nil, p), r.Salt)
	return bytes.Equal(scheme.AppendCode(nil, codegen.Sum(input)), r.Code)
}

// reckon returns an expiry as the mapping has it, of one that is written as rules.Expiry.Append does.
func (s *operand) reckon(expiry []byte) []byte {
	if !bytes.HasPrefix(expiry, []byte("+")) {
		return expiry
	}
	seconds, _ := strconv.ParseInt(string(expiry), 10, 64)
	return rules.Expiry{When: rules.Reckoned, Seconds: seconds}.Reckon(s.manifest.AsOf.Unix()).Append(nil)
}
