package profile

import (
	"bytes"

	"github.com/linkforge/bulk/codegen"
)

// HostOf returns the host, with its port, of a cell that is a URL or a domain, in ASCII lower case;
// empty: there is none. A cell without a scheme or // before it must have a dot in its host, and no
// escape: otherwise it is taken for a path.
func HostOf(cell []byte) []byte {
	host, known := host(cell)
	if !known && !mayBeHost(host) {
		return nil
	}
	return host
}

// mayBeHost reports whether a text without a scheme or // before it is taken for a host.
func mayBeHost(text []byte) bool { return bytes.IndexByte(text, '.') >= 0 && !codegen.HasEscape(text) }

// DomainOf returns what HostOf does, for a cell that has a domain even if it is a single word.
func DomainOf(cell []byte) []byte {
	host, _ := host(cell)
	if string(host) == "null" {
		return nil
	}
	return host
}

// host returns what may be the host of a cell. It is known to be one if a scheme or // is before it.
func host(cell []byte) (host []byte, known bool) {
	host, known = afterScheme(bytes.TrimSpace(cell))
	if !known {
		host, known = bytes.CutPrefix(host, []byte("//"))
	}
	if end := bytes.IndexAny(host, `/\?#`); end >= 0 {
		host = host[:end]
	}
	host = host[bytes.LastIndexByte(host, '@')+1:]
	if bytes.IndexFunc(host, isUpper) >= 0 {
		host = appendLower(nil, host)
	}
	return host, known
}

// afterScheme returns what follows the scheme and :// of a URL, or the whole cell.
func afterScheme(cell []byte) (rest []byte, found bool) {
	i := bytes.Index(cell, []byte("://"))
	if i < 0 || bytes.ContainsAny(cell[:i], "/?#") {
		return cell, false
	}
	return cell[i+len("://"):], true
}

func isUpper(r rune) bool { return 'A' <= r && r <= 'Z' }

// appendLower appends a text in ASCII lower case.
func appendLower(dst, text []byte) []byte {
	for _, c := range text {
		if isUpper(rune(c)) {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}
