package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/verify"
)

// code is that of one character which a URL has at a salt.
func code(url string, salt int) string {
	scheme := must(codegen.New(1))
	return string(scheme.AppendCode(nil, codegen.Sum(codegen.AppendInput(nil, []byte(url), []byte("demo"), salt))))
}

// contested are three URLs whose code at salt 0 is 7, and then others.
func contested() (urls []string) {
	for i := 0; len(urls) < 3; i++ {
		url := fmt.Sprintf("http://example.com/%04d", i)
		if code(url, 0) == "7" && (len(urls) == 0 || code(url, 1) != code(urls[len(urls)-1], 1) && code(url, 1) != "7") {
			urls = append(urls, url)
		}
	}
	return urls
}

// A forgery in which every row is right by itself, and every digest and number
// fits, is found by what the rows are to each other.
func TestVerifyForged(t *testing.T) { inOrders(t, testVerifyForged) }

func testVerifyForged(t *testing.T, order report.Order) {
	urls := contested()
	job(t, pipeline.Config{Workspace: "demo", CodeLength: 1, ReportOrder: order}, map[string]string{"a.txt": strings.Join(urls, "\n") + "\nftp://x\n"})
	clean(t, verify.Config{})
	mapping, collisions := lines(t, "mapping.csv"), lines(t, "collisions.csv")
	forge := func(salts ...int) (rows, owned []string) {
		holder := ""
		for i, salt := range salts {
			if salt == 0 && holder == "" {
				holder = urls[i]
			}
		}
		rows, owned = mapping[:1:1], collisions[:1:1]
		for i, salt := range salts {
			rows = append(rows, fmt.Sprintf("a.txt,%d,demo,%s,%s,%s,,created,%d\n", i+1, urls[i], urls[i], code(urls[i], salt), salt))
			if salt > 0 {
				owned = append(owned, fmt.Sprintf("demo,%s,0,7,%s\n", urls[i], holder))
			}
		}
		return rows, owned
	}
	for _, c := range []struct {
		salts []int
		want  string
	}{
		{[]int{1, 0, 1}, "[precedence]"},
		{[]int{0, 0, 1}, "[code_shared]"},
		{[]int{0, 1, 0}, "[code_shared]"},
		{[]int{1, 1, 0}, "[precedence]"},
	} {
		rows, owned := forge(c.salts...)
		put(t, "mapping.csv", rows)
		put(t, "collisions.csv", owned)
		m := readManifest(t)
		m.Files[1].Rows = int64(len(owned) - 1)
		writeManifest(t, m)
		if v := verified(t, verify.Config{}); fmt.Sprint(kinds(v)) != c.want {
			t.Errorf("salts %v: found %v, want %s: %+v", c.salts, kinds(v), c.want, v.Findings)
		}
	}
}

// A line of collisions.csv that no link asks for is found, before all others and after.
func TestVerifyIdleLine(t *testing.T) {
	job(t, pipeline.Config{Workspace: "demo", CodeLength: 1}, map[string]string{"a.txt": strings.Join(contested(), "\n") + "\nftp://x\n"})
	good := lines(t, "collisions.csv")
	for _, after := range []bool{false, true} {
		url := ""
		for i := 0; url == "" || code(url, 0) == "7" || (code(url, 0) > "7") != after; i++ {
			url = fmt.Sprintf("http://nobody.example/%d", i)
		}
		at := 1
		if after {
			at = len(good)
		}
		put(t, "collisions.csv", slices.Insert(slices.Clone(good), at, "demo,"+url+",0,"+code(url, 0)+",\n"))
		m := readManifest(t)
		m.Files[1].Rows = int64(len(good))
		writeManifest(t, m)
		if v := verified(t, verify.Config{}); v.Kinds[verify.BadCollision] != 1 {
			t.Errorf("after the others %v: found %+v", after, v.Findings)
		}
	}
}

// A row of a URL that has a link, whatever its code, is not rejected because the
// codes are exhausted.
func TestVerifyForgedReject(t *testing.T) { inOrders(t, testVerifyForgedReject) }

func testVerifyForgedReject(t *testing.T, order report.Order) {
	for name, first := range map[string]int{"first code": 0, "another salt": 1, "another length": 2} {
		t.Run(name, func(t *testing.T) {
			cfg := pipeline.Config{Workspace: "demo", CodeLength: first, ReportOrder: order, Store: openStore(t, t.TempDir())}
			url := "http://example.com/0"
			if cfg.CodeLength == 1 {
				for i := 0; ; i++ { // until one has to give way
					url = fmt.Sprintf("http://example.com/%d", i)
					if job(t, cfg, map[string]string{"a.txt": url}); !strings.HasSuffix(lines(t, "mapping.csv")[1], ",0\n") {
						break
					}
				}
			} else if first > 0 {
				job(t, cfg, map[string]string{"a.txt": url})
			}
			cfg.CodeLength = 1
			job(t, cfg, map[string]string{"a.txt": url + "\n" + url + "\nftp://x\n"})
			clean(t, verify.Config{Inputs: []string{"a.txt"}, Store: cfg.Store})
			m := readManifest(t)
			m.Counts.Duplicate, m.Counts.Rejected, m.Reasons["code_space_exhausted"] = 0, 2, 1
			m.Files[0].Rows, m.Files[2].Rows = 1, 2
			writeManifest(t, m)
			put(t, "mapping.csv", lines(t, "mapping.csv")[:2])
			rejects := lines(t, "rejects.csv")
			put(t, "rejects.csv", []string{rejects[0], fmt.Sprintf("a.txt,2,%d,code_space_exhausted,all 11 codes of this URL have other owners,%s,\n", len(url)+1, url), rejects[1]})
			if v := verified(t, verify.Config{Inputs: []string{"a.txt"}}); v.Kinds[verify.BadReason] != 1 || len(v.Kinds) > 1 {
				t.Errorf("found %v: %+v", kinds(v), v.Findings)
			}
		})
	}
}

// Of a run without a mapping, too, a row is rejected for what is wrong with it.
func TestVerifyForgedRefused(t *testing.T) {
	refuse(t, base(10), "url,team,note\nhttp://a/,x,\nftp://a/,x,\nftp://b/,x,\n")
	m := readManifest(t)
	m.Counts.Created, m.Counts.Rejected, m.Reasons["unsupported_scheme"], m.Files[0].Rows = 0, 3, 3, 3
	writeManifest(t, m)
	rejects := lines(t, "rejects.csv")
	put(t, "rejects.csv", slices.Insert(rejects, 1, `a.csv,1,14,unsupported_scheme,"scheme ""ftp"" is not http or https",ftp://c/,x,,`+"\n"))
	clean := verified(t, verify.Config{})
	v := verified(t, verify.Config{Inputs: []string{"a.csv"}})
	if clean.Failed() > 0 || v.Kinds[verify.InputDiffers] == 0 || len(v.Kinds) > 1 {
		t.Errorf("found %v, without the input %v", v.Findings, clean.Findings)
	}
}

// A run has a mapping if, and only if, it has no more rejects than it may have.
func TestVerifyForgedLimit(t *testing.T) {
	for _, c := range []struct {
		limit   string
		mapping bool
		want    string
	}{
		{"", true, "[]"}, {"2", true, "[]"}, {"1", true, "[manifest]"}, {"66%", true, "[manifest]"}, {"67%", true, "[]"},
		{"", false, "[manifest]"}, {"2", false, "[manifest]"}, {"x", false, "[manifest]"}, {"1", false, "[]"}, {"66%", false, "[]"},
	} {
		job(t, base(10), map[string]string{"a.csv": "url,team,note\nhttp://a/,x,\nftp://a/,x,\nftp://b/,x,\n"})
		m := readManifest(t)
		if m.Options["max_rejects"] = c.limit; !c.mapping {
			m.Files = m.Files[2:]
		}
		writeManifest(t, m)
		if v := verified(t, verify.Config{}); fmt.Sprint(kinds(v)) != c.want || v.NoMapping == c.mapping {
			t.Errorf("%+v: found %v", c, v.Findings)
		}
	}
}

// A forged code does not hide what is wrong with those after it.
func TestVerifyForgedTwice(t *testing.T) { inOrders(t, testVerifyForgedTwice) }

func testVerifyForgedTwice(t *testing.T, order report.Order) {
	urls := contested()
	first := "http://example.org/"
	for code(first, 0) != "2" {
		first += "x"
	}
	job(t, pipeline.Config{Workspace: "demo", CodeLength: 1, ReportOrder: order}, map[string]string{"a.txt": first + "\n" + strings.Join(urls, "\n") + "\nftp://x\n"})
	clean(t, verify.Config{})
	put(t, "mapping.csv", strings.SplitAfter(strings.Replace(strings.Join(lines(t, "mapping.csv"), ""), first+",2,", first+",~,", 1), "\n"))
	put(t, "collisions.csv", strings.SplitAfter(strings.Replace(strings.Join(lines(t, "collisions.csv"), ""), "7,"+urls[0], "7,"+urls[2], 1), "\n"))
	if v := verified(t, verify.Config{}); fmt.Sprint(kinds(v)) != "[code owner]" || len(v.Findings) != 2 {
		t.Errorf("found %+v", v.Findings)
	}
}
