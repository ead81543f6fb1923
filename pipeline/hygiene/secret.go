package hygiene

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/legacy"
)

// A secret is a part of a text that only some may see.
type secret struct {
	from, to int
	what     string
	name     []byte // of a parameter
}

// String says what it is, and does not show it.
func (s secret) String() string {
	if s.name != nil {
		return fmt.Sprintf("the parameter %.64q", s.name)
	}
	return s.what
}

// Redact replaces by … in a URL, for terminals and logs: a user name and a password before the
// host, the values of parameters such as token, and e-mail addresses in the query or fragment. What
// a parameter's value has in escapes, such as another URL, is not looked at.
//
// The text may also be a message with URLs in it: if a blank is before the first "://", '?', '#' or
// '@', blanks end a URL, while otherwise they are a part of it.
func Redact(url string) string {
	for {
		redacted := redact(url)
		if redacted == url {
			return url
		}
		url = redacted // a separator may be hidden now, so that a parameter has more
	}
}

// redact hides what secrets finds.
func redact(url string) string {
	found := secrets([]byte(url))
	if len(found) == 0 {
		return url
	}
	hidden := make([]bool, len(url))
	for _, s := range found {
		for i := s.from; i < s.to; i++ {
			hidden[i] = true
		}
	}
	var out strings.Builder
	for i := range len(url) {
		switch {
		case !hidden[i]:
			out.WriteByte(url[i])
		case i == 0 || !hidden[i-1]:
			out.WriteString("…")
		}
	}
	return out.String()
}

// maySecrets reports whether secrets may find something in a URL. Most URLs have no '@' and no
// parameter whose name ends like a secret one. An escape may hide either.
func maySecrets(url []byte) bool {
	if bytes.IndexByte(url, '@') >= 0 {
		return true
	}
	at := bytes.IndexByte(url, '?')
	if hash := bytes.IndexByte(url, '#'); at < 0 || 0 <= hash && hash < at {
		at = hash
	}
	if at < 0 {
		return false
	}
	for end := at; ; end++ {
		next := bytes.IndexByte(url[end:], '=')
		if next < 0 {
			break
		}
		end += next
		if name := url[at+1 : end]; len(name) >= len("sig") && endsAsSecret(name[len(name)-3:]) {
			return true
		}
	}
	for i := at; ; i++ {
		next := bytes.IndexByte(url[i:], '%')
		if next < 0 {
			return false
		}
		i += next
		if bytes.HasPrefix(url[i:], []byte("%40")) || inName(url[at:i]) {
			return true
		}
	}
}

// inName reports whether a query ends within the name of a parameter.
func inName(query []byte) bool {
	for i := len(query) - 1; i > 0; i-- {
		switch query[i] {
		case '=':
			return false
		case '?', '#', '&', ';':
			return true
		}
	}
	return true
}

// endsAsSecret reports whether a secret name may end with three bytes.
func endsAsSecret(end []byte) bool {
	for _, c := range end {
		if c == '?' || c == '#' || c == '&' || c == ';' { // a shorter name
			return false
		}
	}
	a, b := legacy.Lower(end[1]), legacy.Lower(end[2])
	switch uint16(a)<<8 | uint16(b) {
	case 'e'<<8 | 'n', 'r'<<8 | 'd', 'w'<<8 | 'd', 'e'<<8 | 't', 'e'<<8 | 'y', 'r'<<8 | 'e', 'i'<<8 | 'd', 't'<<8 | 'h', 's'<<8 | 's',
		'i'<<8 | 'g', 'w'<<8 | 't', 't'<<8 | 'p', 'a'<<8 | 'l':
		return true
	}
	return !isAlnum(a) || !isAlnum(b)
}

// isAlnum reports whether a byte, in lower case, is a letter or digit.
func isAlnum(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

// secrets returns the secrets in a text as Redact takes it. They may overlap.
func secrets(text []byte) (found []secret) {
	first := len(text)
	for _, mark := range [...]byte{'?', '#', '@'} {
		if i := bytes.IndexByte(text[:first], mark); i >= 0 {
			first = i
		}
	}
	if first == len(text) {
		return nil
	}
	if i := bytes.Index(text[:first], []byte("://")); i >= 0 {
		first = i
	}
	start := len(text) - len(bytes.TrimLeftFunc(text, isBlank))
	if bytes.IndexFunc(text[start:first], isBlank) < 0 {
		found = appendUserinfo(found, text[start:], start)
		return appendParameters(found, text[start:], start, true)
	}
	for start < len(text) {
		end := bytes.IndexFunc(text[start:], isBlank)
		if end < 0 {
			end = len(text) - start
		}
		word := bytes.TrimRight(text[start:start+end], "\"'),.;:]}")
		isURL := bytes.Contains(word, []byte("://"))
		if isURL {
			found = appendUserinfo(found, word, start)
		}
		found = appendParameters(found, word, start, isURL)
		start += end + 1
	}
	return found
}

// isBlank reports whether a byte is between URLs.
func isBlank(r rune) bool { return r <= ' ' || r == '<' || r == '>' }

// appendUserinfo appends what is before the last @ of each authority in a URL, which is at an
// offset: at its beginning, if it has no scheme, and after each "://". If an authority has a port
// that is no number, the password may have a '/', '?' or '#': all up to the last @ is hidden.
func appendUserinfo(found []secret, url []byte, offset int) []secret {
	last := bytes.LastIndexByte(url, '@')
	start := 0
	if bytes.HasPrefix(url, []byte("//")) {
		start = len("//")
	}
	for start < last {
		authority := url[start:]
		if end := bytes.IndexAny(authority, `/\?#`); end >= 0 {
			authority = authority[:end]
		}
		at := start + bytes.LastIndexByte(authority, '@')
		if at < start && start > 0 && hasBadPort(authority) {
			at = last
		}
		if at > start && len(bytes.Trim(url[start:at], ":")) > 0 {
			found = append(found, secret{offset + start, offset + at, nameUserinfo(url[start:at]), nil})
			start = at
		}
		next := bytes.Index(url[start:], []byte("://"))
		if next < 0 {
			break
		}
		start += next + len("://")
	}
	return found
}

func hasBadPort(authority []byte) bool {
	port := authority[bytes.LastIndexByte(authority, ':')+1:]
	return len(port) < len(authority) && bytes.IndexByte(port, ']') < 0 && len(bytes.Trim(port, "0123456789")) > 0
}

func nameUserinfo(userinfo []byte) string {
	user, password, _ := bytes.Cut(userinfo, []byte(":"))
	switch {
	case len(password) == 0:
		return "a user name"
	case len(user) == 0:
		return "a password"
	}
	return "a user name and password"
}

// appendParameters appends the secret values in the query and fragment of a URL, which is at an
// offset. A secret value ends only at '&' or '#'.
func appendParameters(found []secret, url []byte, offset int, addresses bool) []secret {
	at := bytes.IndexAny(url, "?#")
	for at >= 0 && at < len(url) { // url[at] is the separator before a parameter
		parameter := upTo(url[at+1:], "?#&;")
		name, value, ok := bytes.Cut(parameter, []byte("="))
		if !ok {
			value = parameter
		}
		at += 1 + len(parameter)
		from := at - len(value)
		if ok && isSecretName(name) {
			if value = upTo(url[from:], "#&"); len(value) > 0 {
				found = append(found, secret{offset + from, offset + from + len(value), "", name})
			}
			at = from + len(value)
		} else if addresses && (bytes.IndexByte(value, '@') >= 0 || bytes.Contains(value, []byte("%40"))) {
			for _, m := range address.FindAllIndex(value, -1) {
				found = append(found, secret{offset + from + m[0], offset + from + m[1], "an e-mail address", nil})
			}
		}
	}
	return found
}

func upTo(text []byte, ends string) []byte {
	if end := bytes.IndexAny(text, ends); end >= 0 {
		return text[:end]
	}
	return text
}

// address matches an e-mail address with all that could be a part of it. The … of Redact could not.
var address = func() *regexp.Regexp {
	const beyond = `\x{80}-\x{2025}\x{2027}-\x{10ffff}`
	const char = `[\w.+%~` + beyond + `-]`
	return regexp.MustCompile(`(?:` + char + `|@)*` + char + `(?:@|%40)` + char + `+\.[A-Za-z` + beyond + `]` + char + `(?:` + char + `|@)*`)
}()

// isSecretName reports whether the values of a parameter are secret, by the letters and digits of
// its name.
func isSecretName(name []byte) bool {
	plain := make([]byte, 0, 64)
	for _, c := range codegen.FromPath(name) {
		if c = legacy.Lower(c); isAlnum(c) {
			plain = append(plain, c)
		}
	}
	switch string(plain) {
	case "auth", "pwd", "pass", "sig", "jwt", "otp", "phpsessid", "jsessionid", "xamzcredential", "accesskey", "privatekey":
		return true
	}
	for _, end := range [...]string{"token", "password", "passwd", "secret", "apikey", "signature", "sessionid"} {
		if bytes.HasSuffix(plain, []byte(end)) {
			return true
		}
	}
	return false
}
