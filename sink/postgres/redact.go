package postgres

import (
	"net/url"
	"strings"
)

// mask replaces a secret.
const mask = "xxxxx"

// Redact replaces every password in a database address, a URL or keyword=value pairs, by
// xxxxx. If the address is malformed, it hides too much rather than too little.
func Redact(dsn string) string {
	if scheme, rest, ok := strings.Cut(dsn, "://"); ok && !strings.ContainsAny(scheme, "= ") {
		return scheme + "://" + redactURL(rest)
	}
	return redactPairs(dsn)
}

// redactURL hides everything between the first colon and the last @, because a password with
// unescaped delimiters can end anywhere. If there is no @, it hides everything from the
// first port that is not a number: the host may be missing. Among the parameters it hides
// secret values, values that mention a secret, and parameters without a value: these may be
// the rest of a password with an &.
func redactURL(s string) string {
	hidden := make([]bool, len(s))
	hide := func(from, to int) {
		for i := from; i < to; i++ {
			hidden[i] = true
		}
	}
	if at := strings.LastIndexByte(s, '@'); at < 0 {
		hide(badPort(s), len(s))
	} else if colon := strings.IndexByte(s, ':'); colon >= 0 {
		hide(colon+1, at)
	}
	for from := strings.IndexByte(s, '?') + 1; from > 0 && from < len(s); {
		to := from + strings.IndexByte(s[from:]+"&", '&')
		key, value, ok := strings.Cut(s[from:to], "=")
		switch {
		case !ok:
			hide(from, to)
		case secret(key) || secret(value) && key != "passfile":
			hide(from+len(key)+1, to)
		}
		from = to + 1
	}
	var out strings.Builder
	for i := range len(s) {
		if !hidden[i] {
			out.WriteByte(s[i])
		} else if i == 0 || !hidden[i-1] {
			out.WriteString(mask)
		}
	}
	return out.String()
}

// badPort returns the index in a list of hosts of the first port that is not a number, or
// the length of s.
func badPort(s string) int {
	inBrackets := false
	for i := 0; i < len(s) && !strings.ContainsRune("/?#", rune(s[i])); i++ {
		switch s[i] {
		case '[', ']':
			inBrackets = s[i] == '['
		case ':':
			port := s[i+1:]
			if end := strings.IndexAny(port, ",/?#"); end >= 0 {
				port = port[:end]
			}
			if !inBrackets && strings.Trim(port, "0123456789") != "" {
				return i + 1
			}
		}
	}
	return len(s)
}

// secret reports whether the value of a parameter must not be shown. The key may be
// percent-escaped.
func secret(key string) bool {
	if plain, err := url.QueryUnescape(key); err == nil {
		key = plain
	} else {
		return true
	}
	key = strings.ToLower(strings.TrimSpace(key))
	return key != "passfile" && (strings.Contains(key, "pass") || strings.Contains(key, "secret") || strings.Contains(key, "token"))
}

// redactPairs redacts key = 'value' … as libpq reads it: blanks around the = are allowed, a
// value ends at a blank or is quoted, \ escapes. It hides everything from the first text
// that is not such a pair.
func redactPairs(s string) string {
	var out strings.Builder
	for rest := s; rest != ""; {
		trimmed := strings.TrimLeft(rest, blanks)
		out.WriteString(rest[:len(rest)-len(trimmed)])
		if trimmed == "" {
			break
		}
		key, after, ok := strings.Cut(trimmed, "=")
		name := strings.TrimRight(key, blanks)
		if !ok || name == "" || strings.ContainsAny(name, blanks+"'\\:@/") { // : @ / are those of a URL without its scheme
			out.WriteString(mask)
			break
		}
		value := strings.TrimLeft(after, blanks)
		n := valueLen(value)
		if n < 0 || secret(name) {
			out.WriteString(name + "=" + mask)
		} else {
			out.WriteString(key + "=" + after[:len(after)-len(value)] + value[:n])
		}
		if n < 0 {
			break
		}
		rest = value[n:]
	}
	return out.String()
}

const blanks = " \t\n\r\v\f"

// valueLen is the length of the value at the start of s, or -1 if its closing quote is
// missing.
func valueLen(s string) int {
	quoted := strings.HasPrefix(s, "'")
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case quoted && i > 0 && s[i] == '\'':
			return i + 1
		case !quoted && strings.IndexByte(blanks, s[i]) >= 0:
			return i
		}
	}
	if quoted {
		return -1
	}
	return len(s)
}
