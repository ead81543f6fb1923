package canon

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Detail tells a person why raw was refused for reason r. The text is printable
// UTF-8 and starts in lower case. It quotes at most a few dozen bytes of the part
// at fault, and never a password. It is empty if r is not a reason of this
// package.
func Detail(raw []byte, r Reason) string {
	s := Trim(raw)
	u, _ := split(s, HTTPS) // if r is about what follows the scheme, one was assumed
	switch r {
	case Empty:
		return "nothing is left after trimming"
	case ControlCharacter:
		return controlDetail(raw, s)
	case UnsupportedScheme:
		return fmt.Sprintf("scheme %s is not http or https", quote(s[:schemeLen(s)]))
	case MissingScheme:
		return missingDetail(s)
	case MissingAuthority:
		return fmt.Sprintf("two slashes must follow %s", quote(s[:min(schemeLen(s)+1, len(s))]))
	case Userinfo:
		return userinfoDetail(u)
	case BadPort:
		return portDetail(u)
	case EmptyHost:
		return "host is empty"
	case BadHost:
		return hostDetail(u)
	case TooLong:
		return lengthDetail(s)
	}
	return ""
}

// missingDetail hides an input that may have a password before an '@'.
func missingDetail(s []byte) string {
	input := "input"
	if !hasAt(s) {
		input = quote(s)
	}
	return input + " does not start with http:// or https://"
}

// hasAt reports whether s has an '@', escaped or not. What is before an '@' may be
// a password.
func hasAt(s []byte) bool {
	return bytes.IndexByte(s, '@') >= 0 || bytes.Contains(s, []byte("%40"))
}

// cutColon cuts s at its first colon, escaped or not. What is after a colon may be
// a password.
func cutColon(s []byte) (before, after []byte, found bool) {
	for i, c := range s {
		if c == ':' {
			return s[:i], s[i+1:], true
		}
		if c == '%' && bytes.EqualFold(s[i:min(i+3, len(s))], []byte("%3A")) {
			return s[:i], s[i+3:], true
		}
	}
	return s, nil, false
}

func controlDetail(raw, s []byte) string {
	trimmed := cap(raw) - cap(s) // s is a part of raw and shares its end of capacity
	for i, c := range s {
		if c < 0x20 || c == 0x7F {
			return fmt.Sprintf("control character 0x%02x at byte %d", c, trimmed+i+1)
		}
	}
	return "control character"
}

func userinfoDetail(u splitURL) string {
	user, password, _ := cutColon(bytes.TrimSuffix(u.userinfo, []byte("@")))
	switch {
	case len(password) == 0:
		return fmt.Sprintf("user name %s before %s", quote(user), namedHost(u))
	case len(user) == 0:
		return "password before " + namedHost(u)
	}
	return fmt.Sprintf("user name %s and password before %s", quote(user), namedHost(u))
}

// namedHost returns "host" and the host. It leaves the host out if a colon is in it
// or before it and an '@' is in it or after it: the host may then be a part of a
// password that has an unescaped slash.
func namedHost(u splitURL) string {
	_, _, before := cutColon(u.userinfo)
	_, _, in := cutColon(u.host)
	if (before || in) && (hasAt(u.host) || hasAt(u.rest)) {
		return "host"
	}
	return "host " + quote(u.host)
}

// portDetail leaves the port out if an '@' is in it or after it. What looks like a
// port may then be a part of a password that has an unescaped slash.
func portDetail(u splitURL) string {
	digits := bytes.TrimPrefix(u.port, []byte(":"))
	port := "port " + quote(digits)
	if hasAt(digits) || hasAt(u.rest) {
		port = "port"
	}
	for _, c := range digits {
		if c-'0' > 9 {
			return port + " is not a number"
		}
	}
	return port + " is above 65535"
}

// hostDetail repeats the checks of appendHost until one fails.
func hostDetail(u splitURL) string {
	host, quoted := u.host, namedHost(u)
	if len(host) > 0 && host[0] == '[' {
		return quoted + " is not an IPv6 address in brackets"
	}
	name, ascii := appendDecoded(nil, host)
	if !ascii {
		if !utf8.Valid(name) {
			return quoted + " is not UTF-8"
		}
		first := mapFirst.Replace(string(name))
		mapped, err := uts46.ToUnicode(first)
		if err != nil || hasBadACE(first) {
			return quoted + " is not a valid internationalized name"
		}
		name = []byte(mapped)
	}
	if i := badByte(name); i >= 0 && quoted != "host" {
		return quoted + " contains " + quote(name[i:i+1])
	}
	if hasEmptyLabel(name) {
		return quoted + " has an empty label"
	}
	if endsInNumber(name) {
		return quoted + " ends in a number but is not an IPv4 address"
	}
	return quoted + " is not a valid name"
}

func lengthDetail(s []byte) string {
	if len(s) > maxInput {
		return fmt.Sprintf("input has %d bytes, above %d", len(s), maxInput)
	}
	return "canonical form is longer than the limit"
}

// quote returns the start of s in double quotes, escaped where not printable.
func quote(s []byte) string {
	const most = 60
	if len(s) <= most {
		return strconv.Quote(string(s))
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return strconv.Quote(string(s[:end])) + "…"
}
