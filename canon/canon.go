// Package canon computes the canonical form of a URL. Two URLs are the same link
// exactly when their canonical forms are equal, byte for byte.
//
// The canonical URL is the identity of a link, never its destination: a redirect
// service must serve the original URL ([Profile.Complete]). A fragment is not part
// of the identity, so all fragments of a page are one link, unless
// [Profile.KeepFragment] is set.
//
// # The rules
//
// These are the rules of profile linkforge-1 in brief. README.md beside this
// package has each of them in full, with examples and with its source; it is
// enough to write another implementation. The steps are taken in this order, and
// the first that finds a fault gives the reason why a URL is refused.
//
//	step       rule                                        refused as
//	---------  ------------------------------------------  ------------------
//	trim       bytes 0x00-0x20 and Unicode white space     empty
//	           go at both ends
//	controls   none inside                                 control_character
//	scheme     http or https, in lower case                unsupported_scheme
//	                                                       missing_scheme
//	authority  two slashes must follow; \ counts as /      missing_authority
//	userinfo   "@" and ":@" are dropped, all else refused  userinfo
//	port       the scheme's own and empty ones are         bad_port
//	           dropped, and leading zeros
//	host       lower case, escapes decoded; UTS #46 if     empty_host
//	           not ASCII; IPv4 dotted decimal as WHATWG    bad_host
//	           reads it; IPv6 as RFC 5952 writes it
//	path       \ is /; escapes normalised; dot segments
//	           removed; runs of / become one; no / at
//	           the end; "" becomes /
//	query      escapes normalised; split at &; empty
//	           pieces dropped; sorted by what is before
//	           the first =, with equal ones in their order
//	fragment   dropped
//	length     at most 65,536 bytes of input after trim,   too_long
//	           8,192 of canonical form
//
// Escapes normalised: %XX of a letter, digit, "-", ".", "_" or "~" is decoded;
// any other %XX stays, with upper-case digits; a "%" that starts no escape
// becomes %25; a byte that is not allowed in its place becomes %XX.
//
//	HTTP://Example.com:80/a/../b/?y=2&x=1#top  → http://example.com/b?x=1&y=2
//	http://example.com/%7ejoe/%c3%a9           → http://example.com/~joe/%C3%A9
//	http://bücher.example\a                    → http://xn--bcher-kva.example/a
//	http://127.1                               → http://127.0.0.1/
//	http://joe:pw@example.com/                 → userinfo
//	ftp://example.com/                         → unsupported_scheme
//
// For every input:
//
//   - the canonical form of a canonical form is itself;
//   - it is ASCII, a valid RFC 3986 URI of at most 8,192 bytes, without '|',
//     space or control character;
//   - a URL and what a WHATWG URL parser makes of it have the same canonical
//     form, if both have one.
//
// testdata/canonical.jsonl has 267 worked cases, testdata/options.jsonl has 105 for profiles
// with options.
//
// # Use
//
// [Profile.Append] is what runs for each row. [Trim] is its first step alone.
// [Detail] and [Profile.Explain] tell a person why a URL was refused, and which
// rules changed it; they are slower, and allocate. A [Profile] can also keep user
// information or fragments, and drop parameters of the query, under another name, and
// take URLs without a scheme as if they had one.
//
// # Compatibility
//
// The canonical form is the identity of stored links, so the rules never change
// under a name that [Profile.Name] returns: other rules have another name. The
// reasons are a closed list and keep their spelling. The texts of Detail and the
// rule names of Explain are for people and may change.
//
// The package knows no files, stores or goroutines. All of it is safe for
// concurrent use.
package canon

import "bytes"

const maxInput = 65536 // bytes after trimming

// MaxLength is the most bytes that a canonical form can have.
const MaxLength = 8192

// A Profile is the set of rules in force. The zero value is linkforge-1.
type Profile struct {
	// KeepUserinfo keeps a user name and password instead of refusing them.
	KeepUserinfo bool

	// KeepFragment keeps a fragment that is not empty, percent-normalised.
	KeepFragment bool

	// StripParams drops parameters of the query. The zero value drops none.
	StripParams StripParams

	// AssumeScheme is the scheme of URLs that start with a host that has a dot, or with
	// two slashes and a host. Like MaxLength it is not part of the name.
	AssumeScheme AssumedScheme

	// MaxLength is the greatest length of a canonical form in bytes, 1 to 8,192;
	// 0 means 8,192. It decides what is refused and never how a form is spelled,
	// so it is not part of the name.
	MaxLength int
}

func (p *Profile) limit() int {
	if p.MaxLength <= 0 || p.MaxLength > MaxLength {
		return MaxLength
	}
	return p.MaxLength
}

// hasOptions reports whether query and fragment are not those of linkforge-1.
func (p *Profile) hasOptions() bool { return p.KeepFragment || !p.StripParams.empty() }

// Append appends the canonical form of raw to dst. If raw is refused, it returns
// dst as it was and a [Reason], that of the first step that finds a fault. raw may
// hold any bytes; it must not overlap the capacity of dst. Apart from the growth
// of dst, only internationalized names, IPv6 literals and queries of more than 32
// pieces allocate.
func (p Profile) Append(dst, raw []byte) ([]byte, error) {
	var c Changes
	return p.append(dst, raw, &c)
}

// AppendChanged is Append, and adds to c how raw differs from its canonical form.
func (p Profile) AppendChanged(dst, raw []byte, c *Changes) ([]byte, error) {
	return p.append(dst, raw, c)
}

// append is AppendChanged. With a pointer all arguments fit in registers, and its callers are
// inlined.
func (p *Profile) append(dst, raw []byte, c *Changes) ([]byte, error) {
	s := Trim(raw)
	c.set(WhiteSpace, len(s) < len(raw))
	if p.hasOptions() {
		n, at := scanBeforeQuery(s, c)
		return p.appendFrom(dst, s, n, at, c)
	}
	n, at := scan(s)
	if at != atEnd {
		return p.appendFrom(dst, s, n, at, c)
	}
	if len(s) > maxInput || n > p.limit() {
		return dst, TooLong
	}
	if rest := s[n:]; len(rest) > 0 {
		c.set(TrailingSlash, rest[0] == '/')
		c.set(Fragment, rest[len(rest)-1] != '/' || len(rest) > 1)
	}
	return append(dst, s[:n]...), nil
}

// appendFrom does the rest, where scan has found that s[:n] is canonical.
func (p *Profile) appendFrom(dst, s []byte, n int, at stage, c *Changes) ([]byte, error) {
	if len(s) == 0 {
		return dst, Empty
	}
	if hasControl(s[n:]) {
		return dst, ControlCharacter
	}
	out, rest := append(dst, s[:n]...), s[n:]
	if at == atScheme {
		u, err := split(s, p.AssumeScheme)
		if err != nil {
			return dst, err
		}
		if out, err = p.appendAuthority(out, u, c); err != nil {
			return dst, err
		}
		rest = u.rest
	}
	if len(s) > maxInput {
		return dst, TooLong
	}
	path, query, fragment := splitRest(rest)
	if at != atQuery {
		out = appendPath(out, path, c)
	}
	if p.hasOptions() {
		out = p.appendKept(out, query, fragment, c)
	} else {
		out = appendQuery(out, query, c)
		c.set(Fragment, len(fragment) > 0)
	}
	if len(out)-len(dst) > p.limit() {
		return dst, TooLong
	}
	return out, nil
}

// scanBeforeQuery is scan for all before the query and the fragment, which are left to
// appendFrom.
func scanBeforeQuery(s []byte, c *Changes) (n int, at stage) {
	end := len(s)
	if i := bytes.IndexAny(s, "?#"); i >= 0 {
		end = i
	}
	if n, at = scan(s[:end]); at == atEnd {
		c.set(TrailingSlash, n < end)
		at = atQuery
	}
	return n, at
}

// appendKept appends what the options keep of query and fragment.
func (p *Profile) appendKept(dst, query, fragment []byte, c *Changes) []byte {
	dst = p.StripParams.appendQuery(dst, query, c)
	if p.KeepFragment && len(fragment) > len("#") {
		return appendFragment(dst, fragment, c)
	}
	c.set(Fragment, len(fragment) > 0)
	return dst
}

// appendFragment appends a fragment, which starts with its '#' and is not empty.
func appendFragment(dst, fragment []byte, c *Changes) []byte {
	start := len(dst)
	dst = appendNormal(append(dst, '#'), fragment[1:], inFragment)
	c.set(Escapes, !bytes.Equal(dst[start:], fragment))
	return dst
}
