package hygiene

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/profile"
	"github.com/linkforge/bulk/pipeline/shorturl"
)

// Rules find the kinds of a row: first by its cells, then by its URL.
type Rules struct {
	Policy       Policy
	ShortDomains map[string]bool // see ParseDomains; the domain of a row is one, too
	Merged       bool            // equal codes of several domains are one link
	Fold         bool            // codes that differ only in ASCII case are the same
	AsOf         time.Time       // a link that expired by then is Expired
	Ends         bool            // expiry and use limit are left out
}

// ParseDomains reads domains that are separated by commas, each perhaps with a port. They become
// the hosts of canonical URLs.
func ParseDomains(text string) (map[string]bool, error) {
	if text == "" {
		return nil, nil
	}
	domains := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		domain, ok := canonicalDomain(part)
		if !ok {
			return nil, fmt.Errorf("%q is not a domain, such as go.example", part)
		}
		domains[domain] = true
	}
	return domains, nil
}

// ParseDomain reads the domain of rows that have none of their own, which becomes what profile.DomainOf
// returns.
func ParseDomain(text string) (string, error) {
	if _, ok := canonicalDomain(text); !ok || strings.TrimSpace(text) != text {
		return "", fmt.Errorf("%q is not a domain, such as go.example", text)
	}
	return string(profile.DomainOf([]byte(text))), nil
}

// WithDomain returns domains, as of ParseDomains, with one of ParseDomain among them; "": without.
func WithDomain(domains map[string]bool, domain string) map[string]bool {
	canonical, ok := canonicalDomain(domain)
	if !ok {
		return domains
	}
	all := map[string]bool{canonical: true}
	maps.Copy(all, domains)
	return all
}

func canonicalDomain(text string) (domain string, ok bool) {
	host, ok := shorturl.Host([]byte(strings.TrimSpace(text)))
	return string(host), ok
}

// Columns are the columns of the cells that Cells looks at, by the roles of package profile.
type Columns struct {
	Regex, Password, Archived, Enabled, Expires, Targets, Starts, Limits, Clicks, Redirects, Status []int

	Domains bool // rows have domains
}

// JudgeCells returns the kinds that the cells of a row show, and why it is rejected for one of them;
// reason "": it is not.
func (r *Rules) JudgeCells(c *Columns, cell func(column int) []byte) (s Set, reason, detail string) {
	s = r.Cells(c, cell)
	if kind, rejects := r.Policy.Rejects(s); rejects {
		return s, kind.String(), kind.Detail(c, cell, nil, nil)
	}
	return s, "", ""
}

// JudgeURL does so for the kinds that the URL of a row shows, which it adds to the others.
func (r *Rules) JudgeURL(s Set, original, canonical, code, domain []byte) (_ Set, reason, detail string) {
	if s |= r.URL(original, canonical, code, domain); s == 0 { // as nearly always
		return s, "", ""
	}
	if kind, rejects := r.Policy.Rejects(s); rejects {
		return s, kind.String(), kind.Detail(nil, nil, original, canonical)
	}
	return s, "", ""
}

// Cells returns the kinds that the cells of a row show.
func (r *Rules) Cells(c *Columns, cell func(column int) []byte) (s Set) {
	if anyCell(c.Regex, cell, profile.IsTrue) {
		s.Add(Pattern)
	}
	if anyCell(c.Password, cell, profile.IsSet) {
		s.Add(Protected)
	}
	if r.isOver(c, cell) || anyCell(c.Enabled, cell, profile.IsFalse) || c.isGone(cell) || c.has(profile.Dead, cell) {
		s.Add(Inactive)
	}
	expiry, ends := c.expiry(cell)
	limit := c.limit(cell)
	if ends && !expiry.After(r.AsOf) || limit > 0 && c.clicks(cell) >= limit || anyCell(c.Archived, cell, profile.IsExpired) || c.has(profile.Ended, cell) {
		s.Add(Expired)
	}
	if r.Ends && (ends || limit > 0) {
		s.Add(Ends)
	}
	if starts, ok := timeOf(c.Starts, cell); ok && starts.After(r.AsOf) {
		s.Add(Starts)
	}
	if anyCell(c.Targets, cell, profile.IsSet) {
		s.Add(Targeted)
	}
	return s
}

// isOver reports whether a cell says that the link no longer works, or since when.
func (r *Rules) isOver(c *Columns, cell func(column int) []byte) bool {
	for _, column := range c.Archived {
		if profile.IsOver(cell(column), r.AsOf) {
			return true
		}
	}
	return false
}

// isGone reports whether the redirect code says that the link no longer works.
func (c *Columns) isGone(cell func(column int) []byte) bool {
	return anyCell(c.Redirects, cell, profile.IsGone) || anyCell(c.Status, cell, profile.IsGone)
}

// has reports whether a status says this of the link.
func (c *Columns) has(life profile.Life, cell func(column int) []byte) bool {
	for _, column := range c.Status {
		if profile.LifeOf(cell(column)) == life {
			return true
		}
	}
	return false
}

// isCode reports whether a cell may be a status of HTTP.
func isCode(cell []byte) bool {
	code, _ := profile.ParseCount(cell)
	return 100 <= code && code <= 599
}

// BadRedirect returns the first cell that is to have the redirect code of a link, and has another one than
// a link may have; nil: there is none.
func (c *Columns) BadRedirect(cell func(column int) []byte) (bad []byte, column int) {
	for _, column := range c.Redirects {
		text := cell(column)
		if _, ok := profile.ParseRedirect(text); !ok && profile.IsSet(text) && !profile.IsGone(text) {
			return text, column
		}
	}
	for _, column := range c.Status {
		if text := cell(column); isCode(text) && profile.LifeOf(text) == profile.Unclear {
			return text, column
		}
	}
	return nil, -1
}

// BadState returns the first cell that is to say whether a link works, if it does not say so in a way
// that is understood, or has a time that is to come and is no expiry; nil: there is none.
func (r *Rules) BadState(c *Columns, cell func(column int) []byte) (bad []byte) {
	for _, column := range c.Archived {
		if text := cell(column); !profile.IsState(text) && !profile.IsOver(text, r.AsOf) && !slices.Contains(c.Expires, column) {
			return text
		}
	}
	for _, column := range c.Enabled {
		if text := cell(column); !profile.IsState(text) {
			return text
		}
	}
	for _, column := range c.Status {
		if text := cell(column); !isCode(text) && profile.LifeOf(text) == profile.Unclear {
			return text
		}
	}
	return nil
}

func anyCell(columns []int, cell func(column int) []byte, is func([]byte) bool) bool {
	for _, column := range columns {
		if is(cell(column)) {
			return true
		}
	}
	return false
}

// Seen returns the kinds that can be found if there are these columns.
func (r *Rules) Seen(c *Columns) (s Set) {
	for kind, known := range map[Kind]bool{
		Pattern: len(c.Regex) > 0, Protected: len(c.Password) > 0, Inactive: len(c.Archived)+len(c.Enabled)+len(c.Redirects)+len(c.Status) > 0, Expired: len(c.Expires)+len(c.Limits)+len(c.Status) > 0, Starts: len(c.Starts) > 0, Ends: true,
		Targeted: len(c.Targets) > 0, Loop: len(r.ShortDomains) > 0 || c.Domains, Chain: len(r.ShortDomains) > 0 || c.Domains, Secret: r.Policy[Secret] != Keep,
		Suspect: r.Policy[Suspect] != Keep, Private: r.Policy[Private] != Keep,
	} {
		if known {
			s.Add(kind)
		}
	}
	return s
}

// BadExpiry returns the cell that is to say when a link expires, if none says so in a way that is
// understood; nil: there is none.
func (c *Columns) BadExpiry(cell func(column int) []byte) (bad []byte) {
	return badTime(c.Expires, cell)
}

// BadStart does so for the time at which a link begins to work.
func (c *Columns) BadStart(cell func(column int) []byte) (bad []byte) {
	return badTime(c.Starts, cell)
}

// badTime returns the first cell of these columns that is no time, if none has a time.
func badTime(columns []int, cell func(column int) []byte) (bad []byte) {
	if _, ok := timeOf(columns, cell); ok {
		return nil
	}
	for _, column := range columns {
		if text := cell(column); !profile.IsNoTime(text) {
			return text
		}
	}
	return nil
}

// expiry returns when a link expires, by the first column that has a time.
func (c *Columns) expiry(cell func(column int) []byte) (time.Time, bool) {
	return timeOf(c.Expires, cell)
}

// limit returns how often a link may be used, by the first column that says so; 0: it is not limited.
func (c *Columns) limit(cell func(column int) []byte) int64 { return countOf(c.Limits, cell) }

// clicks returns how often a link was used, as far as is known.
func (c *Columns) clicks(cell func(column int) []byte) int64 { return countOf(c.Clicks, cell) }

// countOf returns the first number of these columns that is above 0; 0: there is none.
func countOf(columns []int, cell func(column int) []byte) int64 {
	for _, column := range columns {
		if n, ok := profile.ParseCount(cell(column)); ok && n > 0 {
			return n
		}
	}
	return 0
}

// timeOf returns the first time of these columns.
func timeOf(columns []int, cell func(column int) []byte) (time.Time, bool) {
	for _, column := range columns {
		if text := cell(column); !profile.IsNoTime(text) {
			if at, ok := profile.ParseTime(text); ok {
				return at, true
			}
		}
	}
	return time.Time{}, false
}

// URL returns the kinds that the URL of a row shows: the original one and its canonical form. The
// row may have a code, and a domain as profile.DomainOf returns it. Loop and Chain need a
// domain, or short domains; Secret, Suspect and Private are not looked for if the policy keeps them. If the original URL
// has no '?', '#' or '@', no other URL in its path, and its host is neither a short domain nor an address,
// nothing is allocated.
func (r *Rules) URL(original, canonical, code, domain []byte) (s Set) {
	host, rest := cutHost(canonical)
	if own := isDomain(domain, host); len(rest) > 0 && (own || r.ShortDomains[string(host)]) {
		switch path := upTo(rest, "?#"); {
		case len(path) == 0:
		case (own || len(domain) == 0 || r.Merged) && legacy.Same(withoutSlash(codegen.FromPath(path)), withoutSlash(code), r.Fold):
			s.Add(Loop)
		default:
			s.Add(Chain)
		}
	}
	if r.Policy[Secret] != Keep && maySecrets(original) && len(secrets(original)) > 0 {
		s.Add(Secret)
	}
	if r.Policy[Suspect] != Keep && (isScheme(nameOf(host)) || hasSecondURL(original)) {
		s.Add(Suspect)
	}
	if r.Policy[Private] != Keep && isPrivate(nameOf(host)) {
		s.Add(Private)
	}
	return s
}

// cutHost returns the host of a canonical URL, with its port, and what follows its slash.
func cutHost(canonical []byte) (host, rest []byte) {
	_, rest, _ = bytes.Cut(canonical, []byte("://"))
	host, rest, _ = bytes.Cut(rest, []byte("/"))
	return host[bytes.LastIndexByte(host, '@')+1:], rest
}

// isDomain reports whether the domain of a row, if it has one, is a host of a canonical URL.
func isDomain(domain, host []byte) bool {
	if bytes.Equal(domain, host) {
		return len(domain) > 0
	}
	if isUsual(domain) { // so it is its own canonical form
		return false
	}
	canonical, ok := canonicalDomain(string(domain))
	return ok && canonical == string(host)
}

// isUsual reports whether a domain has lower-case ASCII letters, digits, dots and hyphens only.
func isUsual(domain []byte) bool {
	for _, c := range domain {
		if !isAlnum(c) && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

// withoutSlash returns a code without one slash at the end.
func withoutSlash(code []byte) []byte { return bytes.TrimSuffix(code, []byte("/")) }

// Detail tells a person why the row of a link of this kind is a reject.
func (k Kind) Detail(c *Columns, cell func(column int) []byte, original, canonical []byte) string {
	switch k {
	case Pattern:
		return "the code is a regular expression, not a code"
	case Protected:
		return "the link has a password, which the store cannot keep: it would become public"
	case Inactive:
		if c.isGone(cell) {
			return "the link is gone (410)"
		}
		return "the link is archived or disabled"
	case Expired:
		if expiry, ok := c.expiry(cell); ok {
			return "the link expired at " + expiry.Format(time.RFC3339)
		}
		return "the link has expired, or was used up"
	case Starts:
		starts, _ := timeOf(c.Starts, cell)
		return "the link does not work before " + starts.Format(time.RFC3339)
	case Ends:
		return "the link has an expiry or a use limit, which --no-rules leaves out: it would become eternal"
	case Loop:
		return "the URL is this link's own short URL"
	case Chain:
		host, _ := cutHost(canonical)
		return fmt.Sprintf("the URL leads to another code of %s", host)
	case Targeted:
		return "the link has other targets by country or device"
	case Secret:
		if found := secrets(original); len(found) > 0 {
			return "the URL has a secret: " + found[0].String()
		}
	case Suspect:
		if host, _ := cutHost(canonical); isScheme(nameOf(host)) {
			return fmt.Sprintf("the host of the URL is %s", nameOf(host))
		}
		return "the path of the URL has another URL in it"
	case Private:
		host, _ := cutHost(canonical)
		return fmt.Sprintf("not everybody can reach the host %s", nameOf(host))
	}
	return ""
}
