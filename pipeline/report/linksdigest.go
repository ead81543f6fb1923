package report

import (
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/outcome"
)

// A LinksDigest is a digest of links that does not depend on their order: a RowDigest of their workspaces,
// canonical URLs, codes and kinds. Use NewLinksDigest.
type LinksDigest struct{ d RowDigest }

// NewLinksDigest returns the digest of no links.
func NewLinksDigest() *LinksDigest {
	return &LinksDigest{RowDigest{Columns: Columns{Legacy: legacy.Keep}}}
}

// Add counts a link in.
func (l *LinksDigest) Add(workspace, canonical, code []byte, alias bool) {
	l.d.Add(&Row{Workspace: workspace, Canonical: canonical, Code: code, Alias: alias, Outcome: outcome.Existing, Salt: -1, LinkSalt: -1})
}

// Sum returns the digest as of RowDigest.Sum.
func (l *LinksDigest) Sum() string { return l.d.Sum() }
