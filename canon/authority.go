package canon

import (
	"bytes"
	"strconv"
)

// appendAuthority appends scheme and authority in canonical form. It checks
// userinfo, port and host, in this order.
func (p *Profile) appendAuthority(dst []byte, u splitURL, c *Changes) ([]byte, error) {
	start := len(dst)
	dst = appendScheme(dst, u.scheme)
	dst = append(dst, "://"...)
	c.set(Scheme, !bytes.Equal(dst[start:start+len(u.scheme)], u.scheme) || string(u.slashes) != "://")
	secure := len(u.scheme) == len("https")
	start = len(dst)
	dst, err := p.appendUserinfo(dst, u.userinfo)
	if err != nil {
		return dst, err
	}
	c.set(User, !bytes.Equal(dst[start:], u.userinfo))
	port, err := parsePort(u.port, secure)
	if err != nil {
		return dst, err
	}
	start = len(dst)
	if dst, err = appendHost(dst, u.host); err != nil {
		return dst, err
	}
	c.set(Host, !bytes.Equal(dst[start:], u.host))
	start = len(dst)
	dst = appendPort(dst, port)
	c.set(Port, !bytes.Equal(dst[start:], u.port))
	return dst, nil
}

// appendScheme appends a scheme in lower case, RFC 3986 §6.2.2.1.
func appendScheme(dst, scheme []byte) []byte {
	for _, c := range scheme {
		dst = append(dst, c|0x20)
	}
	return dst
}

// appendUserinfo appends userinfo, which ends with '@' or is empty, escaped as
// browsers do. The first colon ends the user name. It is dropped if the password
// is empty.
func (p *Profile) appendUserinfo(dst, userinfo []byte) ([]byte, error) {
	if len(userinfo) == 0 {
		return dst, nil
	}
	user, password, _ := bytes.Cut(userinfo[:len(userinfo)-1], []byte(":"))
	if len(user) == 0 && len(password) == 0 {
		return dst, nil
	}
	if !p.KeepUserinfo {
		return dst, Userinfo
	}
	dst = appendNormal(dst, user, inUserinfo)
	if len(password) > 0 {
		dst = append(dst, ':')
		dst = appendNormal(dst, password, inUserinfo)
	}
	return append(dst, '@'), nil
}

// noPort stands for a port that the canonical form does not show.
const noPort = -1

// parsePort reads a port, which starts with its colon or is empty. The result is
// noPort if the port is empty or the scheme's own (RFC 3986 §6.2.3).
func parsePort(port []byte, secure bool) (int, error) {
	if len(port) <= len(":") {
		return noPort, nil
	}
	n := 0
	for _, c := range port[1:] {
		if c-'0' > 9 {
			return noPort, BadPort
		}
		n = min(n*10+int(c-'0'), 65536)
	}
	if n > 65535 {
		return noPort, BadPort
	}
	if secure && n == 443 || !secure && n == 80 {
		return noPort, nil
	}
	return n, nil
}

func appendPort(dst []byte, port int) []byte {
	if port == noPort {
		return dst
	}
	return strconv.AppendInt(append(dst, ':'), int64(port), 10)
}
