package shorturl

import (
	"strings"
	"testing"
)

// What every row of a mapping costs.
func TestPlainAllocatesNothing(t *testing.T) {
	base, dst, code := NewBase("https://{workspace}.sho.rt/x/"), make([]byte, 0, 100), []byte("HzMEjeWL2e")
	if n := testing.AllocsPerRun(100, func() { base.Append(dst, []byte("demo"), nil, code) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

func TestBase(t *testing.T) {
	for url, want := range map[string]string{
		"https://sho.rt": "https://sho.rt/a%20b", "https://sho.rt/x//": "https://sho.rt/x/a%20b",
		"https://{workspace}": "https://w%20%25/1/a%20b", "https://sho.rt/{workspace}/x": "https://sho.rt/w%20%25/1/x/a%20b",
	} {
		if got := string(NewBase(url).Append(nil, []byte("w %/1"), []byte("S.example"), []byte("a b"))); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
	if NewBase("") != nil {
		t.Error("there is a base of nothing")
	}
}

func TestMarks(t *testing.T) {
	for _, tt := range []struct{ url, workspace, domain, want string }{
		{"https://{domain}", "w", "s.example:8080", "https://s.example:8080/c"},
		{"https://{domain}/{workspace}/", "a b", "s.example", "https://s.example/a%20b/c"},
		{"https://{workspace}.{domain}/x", "w", "s.example", "https://w.s.example/x/c"},
		{"https://{workspace}", "bücher.example", "", "https://xn--bcher-kva.example/c"},
		{"https://sho.rt/{workspace}", "bücher", "", "https://sho.rt/b%C3%BCcher/c"},
		{"https://sho.rt/{domain}/{domain}", "", "d", "https://sho.rt/d/{domain}/c"},
	} {
		base := NewBase(tt.url)
		if got := string(base.Append(nil, []byte(tt.workspace), []byte(tt.domain), []byte("c"))); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.url, got, tt.want)
		}
		if base.Fixed() != nil {
			t.Errorf("%s is fixed", tt.url)
		}
	}
	if !NewBase("https://{domain}").Has(Domain) || NewBase("https://{domain}").Has(Workspace) || (*Base)(nil).Has(Domain) || string(NewBase("https://sho.rt").Fixed()) != "https://sho.rt/" {
		t.Error("the marks of a base are others")
	}
}

// In the place of the host only a host name may stand, elsewhere anything.
func TestTakes(t *testing.T) {
	for value, want := range map[string]string{ // as the whole host, as a part of it, in the path
		"shop": "yes yes yes", "Shop.Example": "yes yes yes", "bücher.example": "yes yes yes", "my_shop": "yes yes yes", "s.example:8080": "yes no yes", "1.2.3.4": "yes yes yes",
		"": "no no yes", "my shop": "no no yes", "shop/s.example": "no no yes", "a@b": "no no yes", "a?b": "no no yes", "a%41": "no no yes", "42": "no no yes", "a..b": "no no yes", "a:b": "no no yes", "|": "no no yes",
	} {
		var got []string
		for _, url := range []string{"https://{domain}", "https://{domain}.sho.rt/x", "https://sho.rt/{domain}"} {
			got = append(got, map[bool]string{true: "yes", false: "no"}[NewBase(url).Takes(Domain, []byte(value))])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
	if base := NewBase("https://{domain}:8443"); base.Takes(Domain, []byte("a:80")) || !base.Takes(Domain, []byte("a")) || !base.Takes(Workspace, []byte(" ")) {
		t.Error("beside a port")
	}
}
