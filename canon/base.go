package canon

import (
	"bytes"
	"fmt"
)

// A Base is a URL against which others are resolved that have neither scheme nor host. It does not
// change.
type Base struct {
	text  string
	root  []byte // scheme and authority
	path  []byte // perhaps empty
	query []byte // from its '?' on, or empty
}

// ParseBase reads an absolute URL of http or https, without user name, password and fragment.
func ParseBase(text string) (*Base, error) {
	s := Trim([]byte(text))
	scheme := bytes.Index(s, []byte("://")) // "://" itself may also be in a path
	_, err := Profile{}.Append(nil, s)
	switch {
	case err == error(Userinfo):
		return nil, fmt.Errorf("the URL has a user name or password") // which are not shown
	case err != nil:
		return nil, fmt.Errorf("%q is not a URL such as https://shop.example: %w", text, err)
	case bytes.IndexByte(s, '#') >= 0:
		return nil, fmt.Errorf("%q has a fragment", text)
	case scheme < 0 || scheme > len("https"):
		return nil, fmt.Errorf("%q is not a URL such as https://shop.example", text)
	}
	b := &Base{text: string(s)}
	after := scheme + len("://")
	end := after + authorityLen(s[after:])
	b.root, b.path = s[:end], s[end:]
	if i := bytes.IndexByte(b.path, '?'); i >= 0 {
		b.path, b.query = b.path[:i], b.path[i:]
	}
	return b, nil
}

// String returns what ParseBase has read, without spaces around it.
func (b *Base) String() string { return b.text }

// Resolve appends the URL that a reference leads to on a page at the base (RFC 3986, section 5.2), if
// the reference begins, but for what [Trim] removes, with one '/', with '?', '#', "./" or "../". Otherwise it
// appends nothing, and ok is false. (Two slashes come before a host.)
func (b *Base) Resolve(dst, reference []byte) (url []byte, ok bool) {
	s := Trim(reference)
	if len(s) == 0 {
		return dst, false
	}
	path, rest := s, []byte(nil)
	if i := bytes.IndexAny(s, "?#"); i >= 0 {
		path, rest = s[:i], s[i:]
	}
	start := len(dst) + len(b.root)
	switch dst = append(dst, b.root...); {
	case s[0] == '?':
		return append(append(dst, b.path...), s...), true
	case s[0] == '#':
		return append(append(append(dst, b.path...), b.query...), s...), true
	case s[0] == '/' && (len(s) == 1 || !isSlashOrBackslash(s[1])):
	case bytes.HasPrefix(s, []byte("./")), bytes.HasPrefix(s, []byte("../")):
		dst = append(dst, b.path[:bytes.LastIndexByte(b.path, '/')+1]...)
		if len(dst) == start {
			dst = append(dst, '/')
		}
	default:
		return dst[:start-len(b.root)], false
	}
	dst = append(dst, path...)
	return append(dst[:start+len(removeDotSegments(dst[start:]))], rest...), true
}
