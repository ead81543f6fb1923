package audit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/audit"
	"github.com/linkforge/bulk/pipeline/report"
)

// A forgery in which every row is right by itself, and every digest and number
// fits, is found by what the rows are to each other.
func TestVerifyForged(t *testing.T) { inOrders(t, testVerifyForged) }

func testVerifyForged(t *testing.T, order report.Order) {
	scheme, err := codegen.New(1)
	if err != nil {
		t.Fatal(err)
	}
	code := func(url string, salt int) string {
		return string(scheme.AppendCode(nil, codegen.Sum(codegen.AppendInput(nil, []byte(url), []byte("demo"), salt))))
	}
	var urls []string // three of one code at salt 0, and of others then
	for i := 0; len(urls) < 3; i++ {
		url := fmt.Sprintf("http://example.com/%04d", i)
		if code(url, 0) == "7" && (len(urls) == 0 || code(url, 1) != code(urls[len(urls)-1], 1) && code(url, 1) != "7") {
			urls = append(urls, url)
		}
	}
	job(t, pipeline.Config{Workspace: "demo", CodeLength: 1, ReportOrder: order}, map[string]string{"a.txt": strings.Join(urls, "\n") + "\nftp://x\n"})
	clean(t, audit.VerifyConfig{})
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
		if v := verify(t, audit.VerifyConfig{}); fmt.Sprint(kinds(v)) != c.want {
			t.Errorf("salts %v: found %v, want %s: %+v", c.salts, kinds(v), c.want, v.Findings)
		}
	}
}
