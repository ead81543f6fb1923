package audit_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/audit"
	"github.com/linkforge/bulk/pipeline/report"
)

// stretches is a run whose mapping is checked in three stretches.
func stretches(t *testing.T, order report.Order) {
	t.Helper()
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "http://example.com/%d\n", i)
	}
	job(t, pipeline.Config{Workspace: "demo", ReportOrder: order, DryRun: true, Version: "test"}, map[string]string{"a.txt": b.String() + "ftp://x\n"})
}

// Where one file is missing or damaged, the whole of the mapping is checked
// nevertheless, and nothing is said to be wrong with it.
func TestVerifyBesideDamage(t *testing.T) { inOrders(t, testVerifyBesideDamage) }

func testVerifyBesideDamage(t *testing.T, order report.Order) {
	stretches(t, order)
	for _, name := range []string{"rejects.csv", "collisions.csv"} {
		good := lines(t, name)
		os.Remove("out/" + name)
		if v := verify(t, audit.VerifyConfig{}); fmt.Sprint(kinds(v)) != "[file_missing]" || v.Rows != 10_000 {
			t.Errorf("%s missing: %d rows, found %v", name, v.Rows, v.Findings)
		}
		os.WriteFile("out/"+name, []byte("source,row\n"), 0o666)
		if v := verify(t, audit.VerifyConfig{}); fmt.Sprint(kinds(v)) != "[damaged file_sum]" || v.Rows != 10_000 {
			t.Errorf("%s no report: %d rows, found %v", name, v.Rows, v.Findings)
		}
		os.WriteFile("out/"+name, []byte(strings.Join(good, "")), 0o666)
	}
}
