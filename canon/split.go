package canon

import (
	"bytes"
	"encoding/binary"
)

// A splitURL has the parts of an input, with their delimiters. Joined in this order
// they are the input, unless the scheme is assumed.
type splitURL struct {
	scheme   []byte // "http" or "https" in any case
	slashes  []byte // the colon and two slashes or backslashes; nil: the scheme is assumed
	userinfo []byte // with its '@', or empty
	host     []byte
	port     []byte // with its ':', or empty
	rest     []byte // path, query and fragment
}

// split cuts s, which is trimmed and not empty, into its parts (RFC 3986 §3; the
// authority ends where WHATWG URL §4.4 ends it). The error is the Reason if s has no
// scheme, and none may be assumed, or no authority.
func split(s []byte, assumed AssumedScheme) (u splitURL, err error) {
	n := schemeLen(s)
	if u.scheme = s[:n]; isHTTP(u.scheme) {
		if len(s) < n+3 || !isSlashOrBackslash(s[n+1]) || !isSlashOrBackslash(s[n+2]) {
			return u, MissingAuthority
		}
		u.slashes, s = s[n:n+3], s[n+3:]
	} else if rest, ok := assumed.precedes(s, n); ok {
		u.scheme, s = schemes[assumed], rest
	} else if n > 0 {
		return u, UnsupportedScheme
	} else {
		return u, MissingScheme
	}
	end := authorityLen(s)
	authority := s[:end]
	u.rest = s[end:]
	at := bytes.LastIndexByte(authority, '@') + 1
	u.userinfo, authority = authority[:at], authority[at:]
	colon := portColon(authority)
	u.host, u.port = authority[:colon], authority[colon:]
	return u, nil
}

// authorityLen returns the length of the authority that s starts with.
func authorityLen(s []byte) int {
	n := 0
	for n < len(s) && class[s[n]]&endsAuthority == 0 {
		n++
	}
	return n
}

// isHTTP reports whether a scheme is "http" or "https" in any case.
func isHTTP(scheme []byte) bool {
	const http, https = 0x70747468, 's' // least byte first
	return (len(scheme) == 4 || len(scheme) == 5 && scheme[4]|0x20 == https) &&
		binary.LittleEndian.Uint32(scheme)|0x20202020 == http
}

// schemeLen returns the length of the scheme before the first colon of s, or 0 if
// that is not a well-formed scheme.
func schemeLen(s []byte) int {
	n := 0
	for n < len(s) && class[s[n]]&inScheme != 0 {
		n++
	}
	if n == len(s) || s[n] != ':' || s[0]|0x20-'a' > 'z'-'a' {
		return 0
	}
	return n
}

func isSlashOrBackslash(c byte) bool { return c == '/' || c == '\\' }

// portColon returns the index of the last colon outside brackets, or the length
// of hostport if there is none.
func portColon(hostport []byte) int {
	colon, inside := len(hostport), false
	for i, c := range hostport {
		switch c {
		case '[':
			inside = true
		case ']':
			inside = false
		case ':':
			if !inside {
				colon = i
			}
		}
	}
	return colon
}

// splitRest cuts what follows the authority. The query starts with its '?', the
// fragment with its '#'; each may be empty.
func splitRest(rest []byte) (path, query, fragment []byte) {
	path = rest
	if i := bytes.IndexByte(path, '#'); i >= 0 {
		path, fragment = path[:i], path[i:]
	}
	if i := bytes.IndexByte(path, '?'); i >= 0 {
		path, query = path[:i], path[i:]
	}
	return path, query, fragment
}
