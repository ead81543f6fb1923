package main

import (
	"fmt"
	"net/url"
	"path"
	"strings"
)

// canonical brings a URL into the canonical form as far as net/url can: scheme and host in
// lower case, no default port, no fragment, no dot segments, no trailing slash, the query
// sorted by name. Like net/url, it rejects a stray percent sign, loses query pairs with a
// semicolon, and decodes and encodes escaped characters again, so it is not idempotent.
func canonical(s string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil {
		return "", err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", fmt.Errorf("%q is not a web address", s)
	}
	u.Host = strings.ToLower(u.Host)
	if port := u.Port(); port == "443" && u.Scheme == "https" || port == "80" && u.Scheme == "http" {
		u.Host = u.Hostname()
	}
	u.Path, u.RawPath = path.Clean("/"+u.Path), ""
	u.RawQuery = u.Query().Encode()
	u.Fragment, u.RawFragment = "", ""
	return u.String(), nil
}
