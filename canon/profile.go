package canon

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

const (
	baseName     = "linkforge-1"
	nameFragment = "+fragment"
	nameStrip    = "+strip("
	nameUserinfo = "+userinfo"
)

// Name returns the name of the rules: linkforge-1, then +fragment, +strip(PATTERNS) and
// +userinfo, in this order, for the fields that are set. Canonical forms may be compared only
// under one name.
func (p Profile) Name() string {
	name := baseName
	if p.KeepFragment {
		name += nameFragment
	}
	if !p.StripParams.empty() {
		name += nameStrip + p.StripParams.String() + ")"
	}
	if p.KeepUserinfo {
		name += nameUserinfo
	}
	return name
}

// ParseProfile returns the profile that has this name. Its AssumeScheme and MaxLength are 0.
func ParseProfile(name string) (p Profile, err error) {
	rest := strings.TrimPrefix(name, baseName)
	rest, p.KeepFragment = strings.CutPrefix(rest, nameFragment)
	if patterns, ok := strings.CutPrefix(rest, nameStrip); ok {
		patterns, rest, _ = strings.Cut(patterns, ")")
		p.StripParams, err = ParseStripParams(patterns)
	}
	p.KeepUserinfo = rest == nameUserinfo
	if err != nil || p.Name() != name {
		return Profile{}, fmt.Errorf("%q is not the name of a profile", name)
	}
	return p, nil
}

// Validate reports whether the fields of p are in range.
func (p Profile) Validate() error {
	if p.MaxLength < 0 || p.MaxLength > MaxLength {
		return fmt.Errorf("maximal length of a canonical URL %d is not in 0 to %d", p.MaxLength, MaxLength)
	}
	if p.AssumeScheme > HTTPS {
		return fmt.Errorf("scheme %d is not one that can be assumed", p.AssumeScheme)
	}
	return nil
}

// StripParams is a set of patterns for the names of parameters. Equal sets are equal by ==.
// ParseStripParams makes one; the zero value is empty.
type StripParams struct {
	list string // see String
}

// ParseStripParams reads patterns that are separated by commas. A pattern is the name of a
// parameter, or the beginning of one with '*' at its end. "" is the empty set.
func ParseStripParams(text string) (StripParams, error) {
	if text == "" {
		return StripParams{}, nil
	}
	var patterns []string
	for pattern := range strings.SplitSeq(text, ",") {
		name, isPrefix := strings.CutSuffix(pattern, "*")
		if name == "" || strings.ContainsAny(name, " &=()*") {
			return StripParams{}, fmt.Errorf("pattern %q is not the name of a parameter, or the beginning of one with * at its end", pattern)
		}
		name = string(appendParam(nil, []byte(name)))
		if isPrefix {
			name += "*"
		}
		patterns = append(patterns, name)
	}
	slices.Sort(patterns)
	return StripParams{strings.Join(slices.Compact(patterns), ",")}, nil
}

func (s StripParams) empty() bool { return s.list == "" }

// String returns the patterns as they stand in the name of a profile: percent-normalised, in
// lower case, distinct, sorted and joined by commas.
func (s StripParams) String() string { return s.list }

// appendParam appends the name of a parameter as it is compared: percent-normalised and in
// ASCII lower case.
func appendParam(dst, name []byte) []byte {
	start := len(dst)
	dst = appendNormal(dst, name, inQuery)
	for i, c := range dst[start:] {
		if c-'A' <= 'Z'-'A' {
			dst[start+i] = c | 0x20
		}
	}
	return dst
}

// Match returns the first pattern for the name of a piece of a query; "": there is none. The
// piece need not be normalised.
func (s StripParams) Match(piece []byte) string {
	name, _, _ := bytes.Cut(piece, []byte("="))
	var buf [128]byte
	name = appendParam(buf[:0], name)
	for rest := s.list; rest != ""; {
		var pattern string
		pattern, rest, _ = strings.Cut(rest, ",")
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok && len(name) >= len(prefix) && string(name[:len(prefix)]) == prefix || string(name) == pattern {
			return pattern
		}
	}
	return ""
}

// appendQuery is appendQuery without the pieces that match.
func (s StripParams) appendQuery(dst, query []byte, c *Changes) []byte {
	var buf [512]byte
	kept, dropped := s.strip(buf[:0], query)
	c.set(Parameters, dropped)
	return appendQuery(dst, kept, c)
}

// strip returns a query, which is empty or starts with '?', without the pieces that match. Their
// order and empty pieces stay. If one matches it appends the result to buf and returns that.
func (s StripParams) strip(buf, query []byte) (kept []byte, dropped bool) {
	if s.empty() || len(query) <= len("?") {
		return query, false
	}
	kept = append(buf, '?')
	for piece := range bytes.SplitSeq(query[1:], []byte("&")) {
		if s.Match(piece) != "" {
			dropped = true
			continue
		}
		kept = append(append(kept, piece...), '&')
	}
	if !dropped {
		return query, false
	}
	return kept[:len(kept)-1], true // without the '?' if nothing is left, otherwise without an '&'
}

// dropped returns the pieces of a query that match, normalised, each with an '&' behind it.
func (s StripParams) dropped(query []byte) string {
	var out []byte
	for piece := range bytes.SplitSeq(bytes.TrimPrefix(query, []byte("?")), []byte("&")) {
		if s.Match(piece) != "" {
			out = append(appendNormal(out, piece, inQuery), '&')
		}
	}
	return string(out)
}
