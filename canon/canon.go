// Package canon gives a URL its canonical form: the bytes by which two
// spellings of one URL are known to be the same.
//
// The rules are those of the page canonicalization.md, profile linkforge-1;
// its worked cases are testdata/canonical.jsonl. The package builds on RFC 3986
// (syntax, §6.2.2 and §6.2.3 for normalisation), the WHATWG URL standard (hosts,
// and what browsers read where the RFC is silent), UTS #46 (internationalized
// names) and RFC 5952 (IPv6). For every input:
//
//   - the form of a form is itself;
//   - the form is ASCII, a valid RFC 3986 URI of at most 8,192 bytes, without
//     '|', space or control character;
//   - the form of what a browser makes of a URL is the form of the URL.
//
// [Profile.Append] is the way of a row. [Trim] is its first step alone.
// [Detail] and [Profile.Explain] tell a person why a URL was refused and how
// its form came about; they are slower, and allocate.
//
// # Compatibility
//
// The form is the identity of stored links, so the rules never change under a
// name that [Profile.Name] returns: other rules are another name. The reasons
// are a closed list and keep their spelling. The texts of Detail and the rule
// names of Explain are for people and may change.
//
// The package is pure: it knows of no files, stores or goroutines, and all of
// it is safe for concurrent use.
package canon

import "fmt"

const maxInput = 65536 // bytes after trimming

// MaxLength is the most bytes that a canonical form can have.
const MaxLength = 8192

// A Profile is the set of rules in force. The zero value is linkforge-1.
type Profile struct {
	// KeepUserinfo keeps a user name and password instead of refusing them.
	KeepUserinfo bool

	// MaxLength is the greatest length of a canonical form in bytes; 0 means
	// 8,192, which is also the most it can be. It decides what is refused and
	// never how a form is spelled, so it is no part of the name.
	MaxLength int
}

// Name returns the name under which the forms of p are comparable.
func (p Profile) Name() string {
	if p.KeepUserinfo {
		return "linkforge-1+userinfo"
	}
	return "linkforge-1"
}

// Validate reports whether the fields of p are in range.
func (p Profile) Validate() error {
	if p.MaxLength < 0 || p.MaxLength > MaxLength {
		return fmt.Errorf("maximal length of a canonical URL %d is not in 0 to %d", p.MaxLength, MaxLength)
	}
	return nil
}

func (p Profile) limit() int {
	if p.MaxLength <= 0 || p.MaxLength > MaxLength {
		return MaxLength
	}
	return p.MaxLength
}

// Append appends the canonical form of raw to dst. If raw is refused it returns
// dst as it was, and a [Reason]: that of the first rule, in the order of the
// page, that finds a fault. raw may hold any bytes; it must not overlap the
// capacity of dst. Only internationalized names, IPv6 literals and queries of
// very many parameters cost an allocation besides the growth of dst.
func (p Profile) Append(dst, raw []byte) ([]byte, error) {
	s := Trim(raw)
	n, at := scan(s)
	if at != atEnd {
		return p.appendFrom(dst, s, n, at)
	}
	if len(s) > maxInput || n > p.limit() {
		return dst, TooLong
	}
	return append(dst, s[:n]...), nil
}

// appendFrom does what is left to do once scan has found s[:n] canonical.
func (p Profile) appendFrom(dst, s []byte, n int, at stage) ([]byte, error) {
	if len(s) == 0 {
		return dst, Empty
	}
	if hasControl(s[n:]) {
		return dst, ControlCharacter
	}
	out, rest := append(dst, s[:n]...), s[n:]
	if at == atScheme {
		u, err := split(s)
		if err != nil {
			return dst, err
		}
		if out, err = p.appendAuthority(out, u); err != nil {
			return dst, err
		}
		rest = u.rest
	}
	if len(s) > maxInput {
		return dst, TooLong
	}
	path, query, _ := splitRest(rest)
	if at != atQuery {
		out = appendPath(out, path)
	}
	out = appendQuery(out, query)
	if len(out)-len(dst) > p.limit() {
		return dst, TooLong
	}
	return out, nil
}
