// Package legacy says what a run does with the codes that the rows of a legacy link set bring
// along, and which codes may be kept. It knows nothing of files, stores or URLs.
package legacy

import (
	"bytes"
	"fmt"
	"regexp"
)

// A Mode says what becomes of legacy codes.
type Mode string

// The modes.
const (
	Off  Mode = ""     // the run has none
	Keep Mode = "keep" // a URL's smallest code is that of its link, the others are aliases
	Both Mode = "both" // the link has a generated code, all others are aliases
	Map  Mode = "map"  // only generated codes are stored; the mapping shows the old ones
)

// ParseMode checks the name of a mode.
func ParseMode(name string) (Mode, error) {
	switch m := Mode(name); m {
	case Off, Keep, Both, Map:
		return m, nil
	}
	return "", fmt.Errorf("%q is not keep, both or map", name)
}

// Keeps reports whether legacy codes are stored.
func (m Mode) Keeps() bool { return m == Keep || m == Both }

// The kinds of links, as the column kind of the mapping has them.
const (
	KindLink  = "link"
	KindAlias = "alias"
)

// KindOf returns KindAlias or KindLink.
func KindOf(isAlias bool) string {
	if isAlias {
		return KindAlias
	}
	return KindLink
}

// A Conflict says what becomes of a row whose code belongs to another URL.
type Conflict string

// The ways to deal with a conflict.
const (
	Reject   Conflict = "reject"   // the row is a reject
	Fail     Conflict = "fail"     // the run stores nothing
	Generate Conflict = "generate" // the row goes on as one without a code
)

// ParseConflict checks the name of a way.
func ParseConflict(name string) (Conflict, error) {
	switch c := Conflict(name); c {
	case Reject, Fail, Generate:
		return c, nil
	}
	return "", fmt.Errorf("%q is not reject, fail or generate", name)
}

// DefaultPattern is the shape of codes unless another is given.
const DefaultPattern = `[A-Za-z0-9._~-]{1,64}`

// MaxCode is the most bytes that a code may have, whatever the pattern.
const MaxCode = 1024

// Rules say which codes may be kept. The zero value is DefaultPattern and no reserved words.
type Rules struct {
	Pattern  *regexp.Regexp  // of the whole code; nil: DefaultPattern
	Reserved map[string]bool // words that no code may be
}

// Domains says what becomes of codes of several domains.
type Domains string

// The ways.
const (
	DomainsOff   Domains = ""      // as DomainsMerge, but nobody has decided it
	DomainsKeep  Domains = "keep"  // each domain is a workspace
	DomainsMerge Domains = "merge" // all have one workspace: of codes that collide one is kept
)

// ParseDomains checks the name of a way.
func ParseDomains(name string) (Domains, error) {
	switch d := Domains(name); d {
	case DomainsOff, DomainsKeep, DomainsMerge:
		return d, nil
	}
	return "", fmt.Errorf("%q is not keep or merge", name)
}

// DomainOf returns the domain of a workspace that AppendWorkspace has made in a run that has one (or none);
// empty: it has none.
func DomainOf(of, workspace []byte) []byte {
	if len(workspace) == 0 {
		return of
	}
	rest, _ := bytes.CutPrefix(of, workspace)
	domain, ok := bytes.CutPrefix(rest, []byte("/"))
	if !ok {
		return nil
	}
	return domain
}

// AppendWorkspace appends the workspace of a domain, in a run that has one (or none: it is empty):
// WORKSPACE/DOMAIN, or the one of both that is there.
func AppendWorkspace(dst, workspace, domain []byte) []byte {
	dst = append(dst, workspace...)
	if len(workspace) > 0 && len(domain) > 0 {
		dst = append(dst, '/')
	}
	return append(dst, domain...)
}
