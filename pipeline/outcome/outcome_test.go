package outcome

import (
	"strings"
	"testing"
)

func TestDetails(t *testing.T) {
	const pattern = "[a-z]+"
	long := strings.Repeat("x", 2000)
	for _, test := range []struct{ got, want string }{
		{BadCodeDetail([]byte("a b"), pattern), `the code "a b" does not match --code-pattern [a-z]+`},
		{BadCodeDetail([]byte(long[:1024]), pattern), `the code "` + long[:64] + `" does not match --code-pattern [a-z]+`},
		{BadCodeDetail([]byte(long), pattern), `the code "` + long[:64] + `" has 2000 bytes, and a code may have 1024`},
		{BadCodeDetail([]byte("a\xff"), pattern), `the code "a\xff" is not UTF-8`},
		{BadCodeDetail([]byte("a\n"), pattern), `the code "a\n" has a control character`},
		{CodeReservedDetail([]byte("login")), `the code "login" is on the list of --reserved`},
		{CodeTakenDetail([]byte("abc"), []byte("https://a.example/?x=1"), []byte("https://b.example/")), `the code "abc" belongs to https://a.example/?x=1`},
		{CodeTakenDetail([]byte("abc"), []byte("https://a.example/"), []byte("https://a.example/")), `the code "abc" belongs to https://a.example/, with another expiry, use limit or reference`},
		{CodeTakenDetail([]byte("abc"), []byte(long[:300]), nil), `the code "abc" belongs to ` + long[:300]},
		{CodeTakenDetail([]byte("abc"), []byte(long[:301]), nil), `the code "abc" belongs to ` + long[:300] + "…"},
	} {
		if test.got != test.want {
			t.Errorf("%s\nwant %s", test.got, test.want)
		}
	}
}
