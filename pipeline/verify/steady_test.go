package verify_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/verify"
	"github.com/linkforge/bulk/sink"
)

// stretches is a run whose mapping is checked in three stretches, with collisions and a
// reject. It returns the store.
func stretches(t *testing.T, order report.Order) sink.Store {
	t.Helper()
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "http://example.com/%d\n", i)
	}
	cfg := pipeline.Config{Workspace: "demo", CodeLength: 3, ReportOrder: order, Version: "test", Store: openStore(t, t.TempDir())}
	job(t, cfg, map[string]string{"a.txt": b.String() + "ftp://x\n"})
	return cfg.Store
}

// A file that is not there, is no report, or ends early is a finding like any other. The
// whole of the mapping is checked nevertheless if it is another one, and of the links that
// the store has none is too many because the mapping cannot be read.
func TestVerifyMissing(t *testing.T) { inOrders(t, testVerifyMissing) }

func testVerifyMissing(t *testing.T, order report.Order) {
	store := stretches(t, order)
	for _, name := range []string{"mapping.csv", "rejects.csv", "collisions.csv"} {
		good := must(os.ReadFile("out/" + name))
		rows, cut := int64(10_000), "[damaged file_sum]"
		if name == "mapping.csv" {
			rows, cut = 0, "[count damaged file_sum row_digest]"
		}
		for what, c := range map[string]struct {
			content []byte
			want    string
		}{
			"missing": {nil, "[file_missing]"}, "no report": {[]byte("source,row\n"), "[damaged file_sum]"}, "cut off": {good[:len(good)-5], cut},
		} {
			os.Remove("out/" + name)
			if c.content != nil {
				os.WriteFile("out/"+name, c.content, 0o666)
			}
			v := verified(t, verify.Config{Store: store, MaxFindings: 3})
			if fmt.Sprint(kinds(v)) != c.want || v.Kinds[verify.Damaged] > 1 || len(v.Findings) > 3 || v.Rows < rows {
				t.Errorf("%s %s: %d rows, found %v, want %s", name, what, v.Rows, v.Findings, c.want)
			}
		}
		os.WriteFile("out/"+name, good, 0o666)
	}
}

// A manifest is judged before it is believed: that it names other inputs than were
// given is no mistake of whoever gave them if it is not the one that was noted, or is
// one that no run leaves.
func TestVerifyManifestNamesOthers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *manifest.Manifest)
		noted  bool
		want   []verify.Kind // nil: an error
	}{
		"others, noted": {func(m *manifest.Manifest) { m.Inputs[0].Name, m.Inputs[1].Name = "c.csv", "d.csv" }, true, []verify.Kind{verify.ManifestSum, verify.BadSource}},
		"others":        {func(m *manifest.Manifest) { m.Inputs[0].Name, m.Inputs[1].Name = "c.csv", "d.csv" }, false, nil},
		"another":       {func(m *manifest.Manifest) { m.Inputs[1].Name = "c.csv" }, false, []verify.Kind{verify.BadSource, verify.RowMissing}}, // the last file is taken for it
		"fewer, noted":  {func(m *manifest.Manifest) { m.Inputs = m.Inputs[:1] }, true, []verify.Kind{verify.ManifestSum, verify.BadSource}},
		"one twice":     {func(m *manifest.Manifest) { m.Inputs[1].Name = "a.csv" }, false, []verify.Kind{verify.BadManifest}},
	} {
		cfg := base(10)
		cfg.DryRun = true
		result := job(t, cfg, twoInputs())
		m := readManifest(t)
		c.change(m)
		writeManifest(t, m)
		check := verify.Config{Dir: "out", Version: "test", Inputs: []string{"a.csv", "b.csv"}, MaxFindings: 10_000}
		if c.noted {
			check.ManifestSHA256 = result.ManifestSHA256
		}
		v, err := verify.Run(context.Background(), check)
		if c.want == nil {
			if usage := (*columns.UsageError)(nil); !errors.As(err, &usage) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, kind := range c.want {
			if v.Kinds[kind] == 0 {
				t.Errorf("%s: found %v, want %s", name, kinds(v), kind)
			}
		}
		if c.noted && !slices.ContainsFunc(v.Findings, func(f verify.Finding) bool { return f.Column == "inputs" && f.Found != "" }) {
			t.Errorf("%s: nothing says why no input is replayed: %v", name, v.Findings)
		}
	}
}

// A row of an input that is there twice is named, whichever worker meets it first, and
// is not compared with the input: which of the two would it be?
func TestVerifyRepeated(t *testing.T) { inOrders(t, testVerifyRepeated) }

func testVerifyRepeated(t *testing.T, order report.Order) {
	stretches(t, order)
	mapping, rejects, most := lines(t, "mapping.csv"), lines(t, "rejects.csv"), []int{1, 2, 8, 2}
	if testing.Short() {
		most = []int{8}
	}
	number := func(line string) (row int) {
		fmt.Sscanf(line, "a.txt,%d,", &row)
		return row
	}
	for name, c := range map[string]struct{ at, like int }{ // the row of the mapping that gets the number of another
		"later stretch": {9000, 10}, "earlier stretch": {10, 9000}, "a reject": {5000, 0},
	} {
		bad, other := slices.Clone(mapping), rejects[1]
		if c.like > 0 {
			other = mapping[c.like]
		}
		lost, twice := number(bad[c.at]), number(other)
		bad[c.at] = strings.Replace(bad[c.at], fmt.Sprint(lost), fmt.Sprint(twice), 1)
		put(t, "mapping.csv", bad)
		for _, workers := range most {
			found := map[verify.Kind][]int64{}
			for _, f := range verified(t, verify.Config{Workers: workers, Inputs: []string{"a.txt"}}).Findings {
				if f.File == "a.txt" {
					found[f.Kind] = append(found[f.Kind], f.Row)
				}
			}
			if got, want := fmt.Sprint(found), fmt.Sprintf("map[input:[%d] row_missing:[%[1]d] row_repeated:[%d]]", lost, twice); got != want {
				t.Errorf("%s, %d workers: found %v, want %v", name, workers, got, want)
			}
		}
		put(t, "mapping.csv", mapping)
	}
}

// What is no workspace is found in each row that has it, also where it is blank or
// the rows go to several workers.
func TestVerifyWorkspaces(t *testing.T) {
	stretches(t, report.SortOrder)
	for _, workspace := range []string{"", "a|b"} {
		bad := lines(t, "mapping.csv")
		for i, line := range bad[1:] {
			bad[i+1] = strings.Replace(line, ",demo,", ","+workspace+",", 1)
		}
		put(t, "mapping.csv", bad)
		for _, workers := range []int{1, 3} {
			if v := verified(t, verify.Config{Workers: workers}); v.Kinds[verify.BadWorkspace] != 10_000 {
				t.Errorf("%q, %d workers: %d of 10,000 rows", workspace, workers, v.Kinds[verify.BadWorkspace])
			}
		}
		for i, line := range bad[1:] {
			bad[i+1] = strings.Replace(line, ","+workspace+",", ",demo,", 1)
		}
		put(t, "mapping.csv", bad)
	}
}
