package verify_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/verify"
)

// TestVerifyManyInputs checks that Run does not unite the columns anew for each
// input, nor hold a large page of rows for it: each would be over the bound.
func TestVerifyManyInputs(t *testing.T) {
	const inputs, columns, mostAnInput, mostAgain = 400, 5, 340_000, 570_000
	t.Chdir(t.TempDir())
	for i := range inputs {
		text := "url"
		for c := range columns {
			text += fmt.Sprintf(",i%dc%d", i, c)
		}
		text += fmt.Sprintf("\nhttps://example.com/%d%s\n", i, strings.Repeat(",", columns))
		if err := os.WriteFile(fmt.Sprintf("%03d.csv", i), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	asOut(t, must(pipeline.Run(context.Background(), pipeline.Config{Inputs: []string{"*.csv"}, Workspace: "w", Out: "out", DryRun: true})).Out)
	allocated := func(found int64) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		v, err := verify.Run(context.Background(), verify.Config{Dir: "out", Inputs: []string{"*.csv"}, Workers: 1})
		runtime.ReadMemStats(&after)
		if err != nil || v.Failed() != found {
			t.Fatal(err, v)
		}
		return (after.TotalAlloc - before.TotalAlloc) / inputs
	}
	if n := allocated(0); n > mostAnInput {
		t.Errorf("%d bytes an input", n)
	}
	mapping := lines(t, "mapping.csv")
	mapping[1] = strings.TrimSuffix(mapping[1], "\n") + "x\n"
	put(t, "mapping.csv", mapping)
	if n := allocated(1); n > mostAgain {
		t.Errorf("%d bytes an input that is read twice", n)
	}
}

// Very many claims on one code are not held but by the sort, which needs 240 bytes
// for each of these.
func TestVerifyManyClaims(t *testing.T) {
	const most = 320
	allocated := func(urls int) (bytes, claims uint64) {
		var list strings.Builder
		for i := range urls {
			fmt.Fprintf(&list, "http://example.com/%d/%0100d\n", i, 0)
		}
		job(t, pipeline.Config{Workspace: "demo", CodeLength: 1, DryRun: true}, map[string]string{"a.txt": list.String()})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		clean(t, verify.Config{Workers: 1, Memory: 1 << 30})
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, 11 * uint64(readManifest(t).Counts.Rejected)
	}
	few, fewClaims := allocated(5_000)
	many, manyClaims := allocated(20_000)
	if n := (many - few) / (manyClaims - fewClaims); n > most {
		t.Errorf("%d bytes a claim", n)
	}
}
