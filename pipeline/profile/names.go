package profile

import (
	"slices"
	"strings"
	"unicode"
)

// Fold makes two names of columns equal if they differ only in case, white space (also of zero
// width), underscores and hyphens.
func Fold(name string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '_', '-', '\u200b', '\ufeff': // zero width space, byte order mark
			return -1
		}
		if unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// IsURLName reports whether a column of this name is one of URLs.
func IsURLName(name string) bool {
	switch Fold(name) {
	case "url", "urls", "uri", "link", "href",
		"longurl", "longlink", "fullurl", "originalurl", "originallink",
		"destination", "destinationurl", "desturl", "destinationlink",
		"target", "targeturl", "redirecturl":
		return true
	}
	return false
}

// IsCodeName reports whether a column of this name is one of codes. A column of short URLs is
// none: its cells must be cut.
func IsCodeName(name string) bool {
	switch Fold(name) {
	case "code", "shortcode", "urlcode", "linkcode", "customcode", "legacycode", "oldcode",
		"slug", "shortslug", "customslug", "urlslug",
		"keyword", "customkeyword", "alias", "customalias", "shortalias",
		"backhalf", "custombackhalf", "slashtag", "ending", "customending",
		"short", "shortid", "shortkey", "hash", "shorthash", "key", "custom":
		return true
	}
	return false
}

// ParamLike returns the parameter of which a column of this name may be, though nobody knows; "": of
// none.
func ParamLike(name string) Role {
	name = Fold(name)
	for _, like := range [...]struct {
		role  Role
		words string
	}{
		{Expires, "expir,validto,validtill,until,enddate,endsat,endson,endtime"},
		{MaxUses, "limit,max"},
		{LinkType, "type,temporary,permanent"},
		{Owner, "owner"},
	} {
		if slices.ContainsFunc(split(like.words), func(word string) bool { return strings.Contains(name, word) }) {
			return like.role
		}
	}
	return ""
}
