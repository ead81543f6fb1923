package hygiene

import (
	"bytes"
	"net/netip"
	"unicode"
	"unicode/utf8"

	"github.com/linkforge/bulk/codegen"
)

// nameOf returns a host of a canonical URL without its port, and without the dot that may end it.
func nameOf(host []byte) []byte {
	if i := bytes.LastIndexByte(host, ':'); i >= 0 && bytes.IndexByte(host[i:], ']') < 0 {
		host = host[:i]
	}
	return bytes.TrimSuffix(host, []byte("."))
}

// isScheme reports whether a host is the scheme of a URL: of http://http://shop.example/ it is.
func isScheme(name []byte) bool { return string(name) == "http" || string(name) == "https" }

// isPrivate reports whether a host is known to be one that not everybody can reach: a loopback, private or
// link-local address, the names of loopback (RFC 6761, 6.3), those of a local network (RFC 6762, 3), and
// .internal, which ICANN has reserved for private use.
func isPrivate(name []byte) bool {
	if len(name) == 0 {
		return false
	}
	if last := name[len(name)-1]; last == ']' || '0' <= last && last <= '9' {
		addr, err := netip.ParseAddr(string(bytes.Trim(name, "[]")))
		addr = addr.Unmap()
		return err == nil && (addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast())
	}
	if string(name) == "localhost" {
		return true
	}
	for _, suffix := range [...]string{".localhost", ".local", ".internal"} {
		if bytes.HasSuffix(name, []byte(suffix)) {
			return true
		}
	}
	return false
}

// hasSecondURL reports whether the path of a URL, as it was given, has http:// or https:// right after a
// letter or digit, as if two URLs had been joined by mistake. A canonical URL does not tell: it has one
// slash in place of two.
func hasSecondURL(original []byte) bool {
	path := pathOf(original)
	for from := 0; ; {
		i := bytes.Index(path[from:], []byte("://"))
		if i < 0 {
			return false
		}
		i += from
		from = i + len("://")
		for _, scheme := range [...]string{"http", "https"} {
			start := i - len(scheme)
			if start <= 0 || !bytes.EqualFold(path[start:i], []byte(scheme)) {
				continue
			}
			before, _ := utf8.DecodeLastRune(codegen.FromPath(path[:start])) // "%20" is a blank, not a digit
			if unicode.IsLetter(before) || unicode.IsDigit(before) {
				return true
			}
		}
	}
}

// pathOf returns the path of a URL as it was given, perhaps without a scheme.
func pathOf(original []byte) []byte {
	rest := original
	if i := bytes.Index(rest, []byte("://")); i >= 0 && !bytes.ContainsAny(rest[:i], `/\?#`) {
		rest = rest[i:]
	}
	rest = bytes.TrimLeft(rest, `:/\`)
	rest = upTo(rest, "?#")
	if i := bytes.IndexAny(rest, `/\`); i >= 0 {
		return rest[i:]
	}
	return nil
}
