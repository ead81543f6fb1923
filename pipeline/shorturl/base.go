// Package shorturl makes short URLs: a base, which may have the workspace or the domain of a link in it, and
// the path of its code. It is pure.
package shorturl

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
)

// A Mark stands in a base URL for what each link has of its own.
type Mark int

// The marks.
const (
	Workspace Mark = iota // "{workspace}"
	Domain                // "{domain}", of the code
	marks
)

var markTexts = [marks]string{"{workspace}", "{domain}"}

func (m Mark) String() string { return markTexts[m] }

// A Base is what stands before the code in a short URL.
type Base struct {
	before []byte // the first mark
	marked []marked
	has    [marks]place
}

// A marked is a mark, and what follows it.
type marked struct {
	Mark
	host  bool
	after []byte
}

// A place says where a mark is.
type place int

const (
	nowhere place = iota
	asHost        // with its port
	inHost        // it is a part of the host, or has a port beside it
	inPath
)

// NewBase returns the base of a URL, with one slash at its end; of "" it is nil: there are no short URLs.
// A mark counts once.
func NewBase(url string) *Base {
	if url == "" {
		return nil
	}
	b := &Base{}
	rest := strings.TrimRight(url, "/") + "/"
	last, host := &b.before, true
	for {
		m, i := firstMark(rest, &b.has)
		if i < 0 {
			*last = []byte(rest)
			return b
		}
		*last = []byte(rest[:i])
		if scheme := strings.Index(rest[:i], "://"); scheme >= 0 && len(b.marked) == 0 {
			host = !strings.Contains(rest[scheme+len("://"):i], "/")
		} else {
			host = host && !strings.Contains(rest[:i], "/")
		}
		before, after := rest[:i], rest[i+len(markTexts[m]):]
		switch {
		case host && strings.HasSuffix(before, "://") && after[0] == '/':
			b.has[m] = asHost
		case host:
			b.has[m] = inHost
		default:
			b.has[m] = inPath
		}
		b.marked = append(b.marked, marked{Mark: m, host: host})
		last, rest = &b.marked[len(b.marked)-1].after, after
	}
}

// firstMark returns the first mark in a text, of those that were not there before; -1: none.
func firstMark(text string, before *[marks]place) (first Mark, at int) {
	at = -1
	for m, mark := range markTexts {
		if i := strings.Index(text, mark); i >= 0 && before[m] == nowhere && (at < 0 || i < at) {
			first, at = Mark(m), i
		}
	}
	return first, at
}

// Unmarked returns a base URL with a word in place of each mark, once.
func Unmarked(url, word string) string {
	for _, mark := range markTexts {
		url = strings.Replace(url, mark, word, 1)
	}
	return url
}

// Has reports whether short URLs have what a mark stands for. A nil Base has nothing.
func (b *Base) Has(m Mark) bool { return b != nil && b.has[m] != nowhere }

// Fixed returns what all short URLs begin with, if that does not depend on the link; otherwise nil.
func (b *Base) Fixed() []byte {
	if len(b.marked) > 0 {
		return nil
	}
	return b.before
}

// Takes reports whether a value may stand for a mark: in the place of the host only a host name may, and
// with a port only if it is the whole host.
func (b *Base) Takes(m Mark, value []byte) bool {
	if b == nil || b.has[m] != asHost && b.has[m] != inHost {
		return true
	}
	_, ok := Host(value)
	return ok && (b.has[m] == asHost || bytes.IndexByte(value, ':') < 0)
}

// A HostError is a workspace that is no host name, and cannot be a part of the host of a base URL.
type HostError struct{ Workspace string }

func (e *HostError) Error() string {
	return "the workspace " + strconv.Quote(e.Workspace) + " is no host name"
}

// CheckWorkspaces returns a *HostError if there is such a workspace.
func (b *Base) CheckWorkspaces(list []string) error {
	for _, w := range list {
		if !b.Takes(Workspace, []byte(w)) {
			return &HostError{w}
		}
	}
	return nil
}

// Append appends the short URL of a link of a workspace and a domain. Of these, bytes that no URL has
// become %XX; in the place of the host a name is in Punycode.
func (b *Base) Append(dst, workspace, domain, code []byte) []byte {
	dst = append(dst, b.before...)
	for i := range b.marked {
		m := &b.marked[i]
		value := workspace
		if m.Mark == Domain {
			value = domain
		}
		dst = append(m.append(dst, value), m.after...)
	}
	return codegen.AppendPath(dst, code)
}

func (m *marked) append(dst, value []byte) []byte {
	const digits = "0123456789ABCDEF"
	if m.host && bytes.IndexFunc(value, isWide) >= 0 {
		if host, ok := Host(value); ok {
			return append(dst, host...)
		}
	}
	for _, c := range value {
		switch {
		case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9', strings.IndexByte("-._~:/", c) >= 0:
			dst = append(dst, c)
		default:
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		}
	}
	return dst
}

func isWide(r rune) bool { return r >= 0x80 }

// Host returns a host name, perhaps with a port, as a canonical URL has it; not ok: the text is none, or
// it is a number that would become an address.
func Host(text []byte) (host []byte, ok bool) {
	if len(text) == 0 || bytes.ContainsAny(text, "/\\?#@% \t\r\n") {
		return nil, false
	}
	url, err := canon.Profile{}.Append(nil, append([]byte("https://"), text...))
	if err != nil {
		return nil, false
	}
	host = bytes.TrimSuffix(url[len("https://"):], []byte("/"))
	name, _, _ := bytes.Cut(host, []byte(":"))
	isAddress := len(bytes.Trim(name, "0123456789.")) == 0
	return host, !isAddress || bytes.HasPrefix(text, name)
}
