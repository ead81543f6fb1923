package profile

import (
	"slices"
	"strings"
	"testing"
)

func TestColumnIs(t *testing.T) {
	for _, tt := range []struct {
		column, name string
		want         bool
	}{
		{"Short URL", "short_url", true},
		{"Short URL", "url", false},
		{"geo.*", "geo.DE", true},
		{"geo.*", "Geo.de.x", true},
		{"geo.*", "geo", false},
		{"geo.*", "geometry", false},
		{"geo*", "geo.DE", false},
	} {
		if got := (Column{Name: tt.column}).Is(tt.name); got != tt.want {
			t.Errorf("%s is %s: %t", tt.column, tt.name, got)
		}
	}
}

// Of a member of an object, what is said of another thing than the link is not said of the link.
func TestRoleOf(t *testing.T) {
	for name, want := range map[string]Role{
		"hasPassword": Password, "settings.password": Password, "user.settings.password": "", "owner.password": "",
		"settings.user.password": "", "analytics.enabled": "", "stats.clicks": Clicks, "user.clicks": "", "qr_code.disabled": "",
		"Archived?": Archived, "Has password:": Password, "Expires*": Expires, "expire_at_views": MaxUses, "meta.max_visits": MaxUses, "geo.DE": Targets, "x.y": "",
	} {
		if got := RoleOf(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestIsStatus(t *testing.T) {
	for name, want := range map[string]bool{"Status": true, "link_status": true, "Status?": true, "http_status": false, "link.status.x": false} {
		if got := IsStatus(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// No two profiles can be taken for each other, and each has what a run needs.
func TestTable(t *testing.T) {
	for _, p := range table {
		if Named(p.Name) != p {
			t.Errorf("two profiles are called %s", p.Name)
		}
		if len(p.Of(URL)) == 0 || len(p.Of(Code)) == 0 || len(p.Learned) == 0 || p.Product == "" {
			t.Errorf("%s has no URL, code, product or source", p.Name)
		}
		for _, c := range p.Columns {
			if p.Format == "" && !p.known[Fold(c.Name)] {
				t.Errorf("%s: %s is in no header", p.Name, c.Name)
			}
		}
		if p.Format != "" {
			continue
		}
		header := strings.Split(strings.ReplaceAll(strings.Join(p.Header, ","), "|", ","), ",")
		for _, h := range [][]string{header, append(header, p.Optional...)} {
			slices.Sort(h)
			if found, strange := Detect(slices.Compact(h)); found != p || strange != nil {
				t.Errorf("%s: %q is taken for %v", p.Name, h, found)
			}
		}
	}
}

func TestDetect(t *testing.T) {
	for header, want := range map[string]string{
		"keyword,url":                   "yourls",
		"\ufeffKey_Word, URL ,mood":     "yourls",
		"keyword,url,keyword":           "",
		"keyword,url,slug,target,ip":    "yourls slug target",
		"link,url":                      "",
		"link,url,clicks":               "dub",
		"source,target,hits":            "yourls-csv",
		"short_code,canonical_url,kind": "",
		"short_code,original_url,link_type,status,redirect_count":   "short-urls",
		"short_code,original_url,link_type,status,access_count":     "",
		"shortcode,target,hits,expires_at":                          "cloudshortener",
		"short_code,original_url,expires_at":                        "cloudshortener",
		"short_code,original_url,expires_at,title":                  "",
		"originalURL,shortURL,expiry,maxUsage,currentUsage,active":  "redis-links",
		"workspace_id,short_code,original_url,normalized_url,title": "short-link",
		// Exports of bulk, with attributes that are called like columns of others.
		"workspace_id,short_code,kind,canonical_url,original_url,link_type,status,owner_id":                  "bulk",
		"workspace_id,short_code,kind,canonical_url,original_url,link_type,status,user_id,redirect_count":    "bulk",
		"workspace_id,short_code,kind,canonical_url,original_url,normalized_url,title,created_by,is_deleted": "bulk",
		"row,workspace_id,canonical_url,original_url,short_code,outcome,link_type,status,user_id":            "",
		"code,url":                          "",
		"long url,tags,title,shorturl":      "shlink",
		"long url,tags,title,shortcode,key": "shlink key",
	} {
		got := ""
		if p, strange := Detect(strings.Split(header, ",")); p != nil {
			got = strings.Join(append([]string{p.Name}, strange...), " ")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct{ column, cell, want string }{
		{"c", " /a b/?x", " /a b/?x"},
		{"path(c)", "bit.example/aBc", "aBc"},
		{"path(c)", "https://bit.example/a/B%20ü/", "a/B ü"},
		{"path(c)", "h/x/", "x"},
		{"path(c)", "h/x//", "x/"},
		{"path(c)", "h/x/?y", "x"},
		{"path(c)", "h//", ""},
		{"trim(path(c))", "https://h//x//?y", "x"},
		{"path(trim(c))", "/h/x//", "x"},
		{"trim(trim(c))", "/x/", "x"},
		{"list(trim(path(c)))", `["h//a//","https://h/b"]`, "a b"},
		{"path(c)", "HTTP://h/x?y=/z#/w", "x"},
		{"path(c)", "h/x#?", "x"},
		{"path(c)", "/x", "x"},
		{"path(c)", "//x", "/x"},
		{"path(c)", "h/http://a/b", "http://a/b"},
		{"path(c)", "h?u=http://a/b", ""},
		{"path(c)", "https://h", ""},
		{"path(c)", "https://h?x/y", ""},
		{"path(c)", "h/", ""},
		{"path(c)", "www.example", ""},
		{"path(c)", "https://word", ""},
		{"path(c)", "word", "word"},
		{"path(c)", "caf%C3%A9", "café"},
		{"path(c)", "caf%C3%A9.html", "café.html"},
		{"path(c)", "", ""},
		{"path(c)", "https://h/a%2Fb%2f/", "a/b/"},
		{"path(c)", "/50%", "50%"},
		{"trim(path(c))", "/x%2F/", "x/"},
		{"trim(c)", "/a%20b/", "a%20b"},
		{"trim(c)", "/abc/", "abc"},
		{"trim(c)", "a/b?x", "a/b?x"},
		{"trim(c)", "/", ""},
		{"list(c)", `["a","\u00e9\"",""]`, "a é\" "},
		{"list(c)", `[]`, ""},
		{"list(c)", `null`, ""},
		{"list(c)", `["a",1]`, `a 1`},
		{"list(path(c))", `["h/a","https://h/b"]`, "a b"},
	} {
		c := ParseColumn(tt.column)
		if c.Name != "c" || c.String() != tt.column {
			t.Errorf("%s: %+v", tt.column, c)
		}
		cells := [][]byte{[]byte(tt.cell)}
		if c.List {
			cells = Cells(cells[0])
		}
		var got []string
		for _, cell := range cells {
			got = append(got, string(c.Cut.Of(cell)))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s of %q: %q, want %q", tt.column, tt.cell, got, tt.want)
		}
	}
	for text, name := range map[string]string{"path(a": "path(a", "path": "path", "x(a)": "x(a)", "list(x(a))": "x(a)", "list(list(a))": "list(a)"} {
		if got := ParseColumn(text); got.Name != name || got.Cut != Plain {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
