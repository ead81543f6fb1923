package hygiene

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/canon"
)

var asOf = time.Date(2024, 3, 1, 10, 11, 12, 0, time.UTC)

func TestParseDomains(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"S.test, go.test:8080,s.test":    "go.test:8080 s.test",
		"menü.example":                   "xn--men-joa.example",
		"s.test:443":                     "s.test",
		"localhost":                      "localhost",
		"s.test,":                        `!"" is not a domain, such as go.example`,
		"https://s.test":                 `!"https://s.test" is not a domain, such as go.example`,
		"s.test/":                        `!"s.test/" is not a domain, such as go.example`,
		"@s.test":                        `!"@s.test" is not a domain, such as go.example`,
		"s test":                         `!"s test" is not a domain, such as go.example`,
		"s.test:x":                       `!"s.test:x" is not a domain, such as go.example`,
		strings.Repeat("s.", 9000) + "t": "!",
	} {
		domains, err := ParseDomains(text)
		got := strings.Join(slices.Sorted(maps.Keys(domains)), " ")
		if err != nil {
			got = "!" + err.Error()
		}
		if got != want && (want != "!" || err == nil) {
			t.Errorf("%.50s: %s, want %s", text, got, want)
		}
	}
}

// columns are those of the cells that cellsOf returns.
var columns = Columns{Regex: []int{0}, Password: []int{1, 2}, Archived: []int{3, 4}, Enabled: []int{5}, Expires: []int{6, 7}, Targets: []int{8, 9}}

func cellsOf(cells map[int]string) func(int) []byte {
	return func(column int) []byte { return []byte(cells[column]) }
}

func TestCells(t *testing.T) {
	rules := Rules{AsOf: asOf}
	for _, tt := range []struct {
		cells map[int]string
		want  string
	}{
		{nil, ""},
		{map[int]string{0: "0", 1: "false", 2: "null", 3: "FALSE", 4: "active", 5: "true", 6: "0", 7: "", 8: "{}", 9: "[]"}, ""},
		{map[int]string{0: "1"}, "pattern"},
		{map[int]string{2: "s3cret"}, "protected"},
		{map[int]string{4: "banned"}, "inactive"},
		{map[int]string{3: "TRUE"}, "inactive"},
		{map[int]string{5: "false"}, "inactive"},
		{map[int]string{5: "disabled"}, "inactive"},
		{map[int]string{6: "2024-03-01T10:11:12Z"}, "expired"},
		{map[int]string{6: "2024-03-01T10:11:13Z"}, ""},
		{map[int]string{7: "1709287872"}, "expired"},
		{map[int]string{6: "2025-01-01", 7: "2020-01-01"}, ""},
		{map[int]string{6: "0", 7: "2020-01-01"}, "expired"},
		{map[int]string{6: "2 days"}, ""},
		{map[int]string{9: `{"DE":"https://shop.example/"}`}, "targeted"},
		{map[int]string{0: "t", 1: "x", 3: "1", 6: "2020-01-01", 8: "x"}, "pattern protected inactive expired targeted"},
	} {
		if got := rules.Cells(&columns, cellsOf(tt.cells)); text(got) != tt.want {
			t.Errorf("%v: %s, want %s", tt.cells, text(got), tt.want)
		}
	}
	redirects := Columns{Redirects: []int{0}, Status: []int{1}, Archived: []int{2}}
	for _, tt := range []struct {
		cells           map[int]string
		want            string
		redirect, state string // cells that are not read
	}{
		{map[int]string{0: "301", 1: "ACTIVE"}, "", "", ""},
		{map[int]string{0: "410.0"}, "inactive", "", ""},
		{map[int]string{1: "410"}, "inactive", "", ""},
		{map[int]string{1: "Deleted"}, "inactive", "", ""},
		{map[int]string{1: "expired"}, "expired", "", ""},
		{map[int]string{0: "303", 1: "404"}, "", "303", ""},
		{map[int]string{0: "none", 1: "404"}, "", "404", ""},
		{map[int]string{1: "1"}, "", "", "1"},
		{map[int]string{0: "moved", 1: "draft", 2: "2999-01-01"}, "", "moved", "2999-01-01"},
		{map[int]string{2: "2020-01-01"}, "inactive", "", ""},
	} {
		cell := cellsOf(tt.cells)
		redirect, _ := redirects.BadRedirect(cell)
		if got, state := rules.Cells(&redirects, cell), rules.BadState(&redirects, cell); text(got) != tt.want || string(redirect) != tt.redirect || string(state) != tt.state {
			t.Errorf("%v: %s, %q, %q", tt.cells, text(got), redirect, state)
		}
	}
	if got := rules.Cells(&Columns{}, nil); got != 0 {
		t.Errorf("no columns: %s", text(got))
	}
}

func TestURL(t *testing.T) {
	domains, err := ParseDomains("s.test,go.test:8080,menü.test")
	if err != nil {
		t.Fatal(err)
	}
	rules := Rules{Policy: Defaults(), ShortDomains: domains}
	fold := rules
	fold.Fold = true
	merged := Rules{Merged: true}
	none := Rules{}
	for _, tt := range []struct {
		rules             *Rules
		url, code, domain string
		want              string
	}{
		{&rules, "https://shop.example/abc", "abc", "", ""},
		{&rules, "http://S.test/abc", "abc", "", "loop"},
		{&rules, "http://s.test/abc?x=1", "abc", "s.test", "loop"},
		{&rules, "http://s.test/abc/", "abc", "", "loop"},
		{&rules, "http://s.test/abc", "abc/", "", "loop"},
		{&rules, "http://s.test/a/b", "a/b", "", "loop"},
		{&rules, "http://s.test/abc", "abc", "go.test:8080", "chain"},
		{&rules, "http://s.test/abc", "Abc", "", "chain"},
		{&fold, "http://s.test/abc", "Abc", "", "loop"},
		{&rules, "http://s.test/abc", "abcd", "", "chain"},
		{&rules, "http://s.test/abc", "", "", "chain"},
		{&rules, "http://s.test/", "", "", ""},
		{&rules, "http://s.test/?x", "abc", "", ""},
		{&rules, "http://go.test:8080/abc", "abc", "", "loop"},
		{&rules, "http://go.test/abc", "abc", "", ""},
		{&rules, "http://sub.s.test/abc", "abc", "", ""},
		{&rules, "http://s.test/menü", "menü", "", "loop"},
		{&rules, "http://s.test/menü", "men%c3%bc", "", "chain"},
		{&rules, "http://s.test/men%25c3%25bc/", "men%c3%bc", "", "loop"},
		{&rules, "http://s.test/%", "%", "", "loop"},
		{&rules, "http://menü.test/x", "x", "menü.test", "loop"},
		{&rules, "http://menü.test/x", "x", "xn--men-joa.test", "loop"},
		{&rules, "http://s.test/x", "x", "menü.test", "chain"},
		{&rules, "http://s.test/abc?token=x", "abc", "", "loop secret"},
		{&none, "http://s.test/abc?token=x", "abc", "", ""},
		{&rules, " https://shop.example/?token=x ", "abc", "", "secret"},
		{&merged, "http://own.test/abc", "abc", "own.test", "loop"},
		{&merged, "http://own.test/x", "abc", "own.test", "chain"},
		{&merged, "http://own.test/", "abc", "own.test", ""},
		{&merged, "http://other.test/abc", "abc", "own.test", ""},
		{&merged, "http://own.test:8080/abc", "abc", "own.test", ""},
		{&merged, "https://own.test/abc", "abc", "own.test:443", "loop"},
		{&merged, "http://menü.test/abc", "abc", "menü.test", "loop"},
		{&merged, "http://own.test/", "", "", ""},
		{&rules, "http://own.test/abc", "abc", "own.test", "loop"},
		{&rules, "http://http://shop.example/", "", "", "suspect"},
		{&rules, "https://HTTPS:443//shop.example/", "", "", "suspect"},
		{&rules, "https://http.example/", "", "", ""},
		{&rules, "https://a.example/xhttps://b.example/", "", "", "suspect"},
		{&rules, "https://a.example/x1HTTP://b.example/", "", "", "suspect"},
		{&rules, `https:\\a.example\xhttp://b.example/`, "", "", "suspect"},
		{&rules, "https://a.example/éhttp://b.example/", "", "", "suspect"},
		{&rules, "https://a.example/%C3%A9http://b.example/", "", "", "suspect"},
		{&rules, "https://a.example/%20http://b.example/", "", "", ""},
		{&rules, "https://web.example/2020/http://b.example/", "", "", ""},
		{&rules, "https://a.example/http://b.example/x/http://c.example/yhttp://d.example/", "", "", "suspect"},
		{&rules, "https://a.example/x=http://b.example/", "", "", ""},
		{&rules, "https://a.example/xhttp:/b.example/", "", "", ""},
		{&rules, "https://a.example/xftp://b.example/", "", "", ""},
		{&rules, "https://a.example/?xhttp://b.example/", "", "", ""},
		{&rules, "https://a.example/#xhttp://b.example/", "", "", ""},
		{&rules, "http://localhost:3000/x", "", "", "private"},
		{&rules, "http://App.LocalHost/x", "", "", "private"},
		{&rules, "http://nas.local./x", "", "", "private"},
		{&rules, "http://wiki.corp.internal/", "", "", "private"},
		{&rules, "http://localhost.example/", "", "", ""},
		{&rules, "http://mylocal/", "", "", ""},
		{&rules, "http://127.1/", "", "", "private"},
		{&rules, "http://10.1.2.3:8080/", "", "", "private"},
		{&rules, "http://172.31.0.1/", "", "", "private"},
		{&rules, "http://172.32.0.1/", "", "", ""},
		{&rules, "http://192.168.0.1/", "", "", "private"},
		{&rules, "http://0xC0A80001/", "", "", "private"},
		{&rules, "http://169.254.169.254/latest", "", "", "private"},
		{&rules, "http://8.8.8.8/", "", "", ""},
		{&rules, "http://[::1]:8080/", "", "", "private"},
		{&rules, "http://[fd00::1]/", "", "", "private"},
		{&rules, "http://[fe80::1]/", "", "", "private"},
		{&rules, "http://[::ffff:10.0.0.1]/", "", "", "private"},
		{&rules, "http://[2001:db8::1]/", "", "", ""},
		{&none, "http://localhost/xhttp://b/", "", "", ""},
	} {
		canonical, err := canon.Profile{}.Append(nil, []byte(tt.url))
		if err != nil {
			t.Fatal(err)
		}
		if got := tt.rules.URL([]byte(tt.url), canonical, []byte(tt.code), []byte(tt.domain)); text(got) != tt.want {
			t.Errorf("%s of %q at %q: %s, want %s", tt.url, tt.code, tt.domain, text(got), tt.want)
		}
	}
	url := []byte("http://u@s.test/abc#x") // of a profile that keeps both
	if got := rules.URL(nil, url, []byte("abc"), nil); text(got) != "loop" {
		t.Errorf("%s: %s", url, text(got))
	}
}

func TestURLAllocatesNothing(t *testing.T) {
	rules := Rules{Policy: Defaults(), ShortDomains: map[string]bool{"s.test": true}}
	for _, link := range []string{"https://shop.example/a", "https://s.test/Abc", "https://shop.example/a?id=1&Utm_Source=x#top"} {
		url, code := []byte(link), []byte("Abc")
		if n := testing.AllocsPerRun(100, func() { rules.URL(url, url, code, nil) }); n != 0 {
			t.Errorf("%s: %g allocations", link, n)
		}
	}
	cell := []byte("Active")
	if n := testing.AllocsPerRun(100, func() { rules.Cells(&columns, func(int) []byte { return cell[:0] }) }); n != 0 {
		t.Errorf("cells: %g allocations", n)
	}
}

func TestDetail(t *testing.T) {
	cells := cellsOf(map[int]string{7: "2020-01-01"})
	original, canonical := []byte("https://S.test/x?a=1&token=s3cret"), []byte("https://s.test/x?a=1&token=s3cret")
	for k, want := range map[Kind]string{
		Pattern:   "the code is a regular expression, not a code",
		Protected: "the link has a password, which the store cannot keep: it would become public",
		Inactive:  "the link is archived or disabled",
		Expired:   "the link expired at 2020-01-01T00:00:00Z",
		Loop:      "the URL is this link's own short URL",
		Chain:     "the URL leads to another code of s.test",
		Targeted:  "the link has other targets by country or device",
		Secret:    `the URL has a secret: the parameter "token"`,
	} {
		if got := k.Detail(&columns, cells, original, canonical); got != want {
			t.Errorf("%s: %s", k, got)
		}
	}
}

func BenchmarkURL(b *testing.B) {
	rules := Rules{Policy: Defaults(), ShortDomains: map[string]bool{"s.test": true}}
	for name, text := range map[string]string{
		"plain": "https://shop.example/products/2024/spring/sale-of-the-year",
		"query": "https://shop.example/products?id=12345&utm_source=mail&utm_campaign=spring",
	} {
		b.Run(name, func(b *testing.B) {
			url := []byte(text)
			for b.Loop() {
				rules.URL(url, url, nil, nil)
			}
		})
	}
}

func TestParseDomain(t *testing.T) {
	for text, want := range map[string]string{"S.example": "s.example", "s.example:8080": "s.example:8080", "Menü.test": "menü.test", "localhost": "localhost",
		"": "", " s.example": "", "https://s.example": "", "s.example/x": "", "a b": "", "42": "", "a@b": ""} {
		if got, err := ParseDomain(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	short := map[string]bool{"a.test": true}
	if all := WithDomain(short, "menü.test"); len(all) != 2 || !all["xn--men-joa.test"] || !all["a.test"] || len(short) != 1 || len(WithDomain(short, "")) != 1 {
		t.Errorf("%v", all)
	}
}
