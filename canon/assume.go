package canon

import (
	"bytes"
	"fmt"
	"slices"
)

// An AssumedScheme is the scheme of URLs that have none. The zero value refuses them.
type AssumedScheme byte

const (
	NoScheme AssumedScheme = iota
	HTTP
	HTTPS
)

var schemes = [...][]byte{NoScheme: nil, HTTP: []byte("http"), HTTPS: []byte("https")}

// String returns "http" or "https", or "" for NoScheme.
func (a AssumedScheme) String() string { return string(schemes[a]) }

// ParseAssumedScheme reads what String returns.
func ParseAssumedScheme(text string) (AssumedScheme, error) {
	i := slices.IndexFunc(schemes[:], func(s []byte) bool { return string(s) == text })
	if i < 0 {
		return NoScheme, fmt.Errorf("scheme %q is not http or https", text)
	}
	return AssumedScheme(i), nil
}

// Complete returns raw as a redirect service can serve it: trimmed, with the scheme that
// [Profile.AssumeScheme] gives it. Without one it is [Trim]. Otherwise the result is a copy.
func (p Profile) Complete(raw []byte) []byte {
	s := Trim(raw)
	if p.AssumeScheme == NoScheme {
		return s
	}
	u, err := split(s, p.AssumeScheme)
	if err != nil || u.slashes != nil {
		return s
	}
	return bytes.Join([][]byte{u.scheme, []byte("://"), u.userinfo, u.host, u.port, u.rest}, nil)
}

// precedes reports whether s, which has no scheme of ours, is taken as if it had this one,
// and returns it from its authority on. n is the length of what looks like a scheme, or 0.
func (a AssumedScheme) precedes(s []byte, n int) (rest []byte, ok bool) {
	if a == NoScheme {
		return nil, false
	}
	if rest, ok = bytes.CutPrefix(s, []byte("//")); ok {
		return rest, len(rest) == 0 || !isSlashOrBackslash(rest[0])
	}
	authority := s[:authorityLen(s)]
	if n > 0 && !isPort(authority[n+1:]) {
		return nil, false
	}
	host := authority[bytes.LastIndexByte(authority, '@')+1:]
	return s, bytes.IndexByte(host[:portColon(host)], '.') >= 0
}

// isPort reports whether what follows the first colon shows that a host is before it.
func isPort(s []byte) bool {
	return len(s) > 0 && len(s) <= len("65535") && len(bytes.Trim(s, digits)) == 0
}
