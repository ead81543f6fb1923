package main

import (
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

// A table has room on any terminal: texts are cut, then columns are left out, then lines wrap.
func TestTableOfRuns(t *testing.T) {
	many := append(make([]string, 99), "and 4901 more")
	many[0] = "gvo"
	runs := []sink.Run{
		{ID: 1, State: sink.Finished, ManifestSHA256: "00", Started: time.Date(2026, 11, 24, 9, 5, 0, 0, time.Local), Counts: sink.Counts{Read: 3660, Created: 3520, Existing: 140}},
		{ID: 12, State: sink.Abandoned, Inputs: []string{"/data/in/night/links.csv", "b", "c", "d"}, Workspaces: many, Out: "/data/out/night\x1b/links.bulk"},
	}
	for width, want := range map[int]string{
		170: `RUN  STARTED           STATE      WORKSPACES        INPUTS                             OUTPUT DIRECTORY                 READ  CREATED  EXISTING  DUPLICATE  REJECTED
  1  2026-11-24 09:05  finished                                                                                        3,660    3,520       140          0         0
 12                    abandoned  gvo + 4,999 more  /data/in/night/links.csv + 3 more  /data/out/night\x1b/links.bulk
`,
		140: `RUN  STARTED           STATE      WORKSPACES        INPUTS               OUTPUT DIRECTORY       READ  CREATED  EXISTING  DUPLICATE  REJECTED
  1  2026-11-24 09:05  finished                                                                3,660    3,520       140          0         0
 12                    abandoned  gvo + 4,999 more  …links.csv + 3 more  …ight\x1b/links.bulk
`,
		110: `RUN  STARTED           STATE      WORKSPACES     INPUTS           READ  CREATED  EXISTING  DUPLICATE  REJECTED
  1  2026-11-24 09:05  finished                                  3,660    3,520       140          0         0
 12                    abandoned  …+ 4,999 more  ….csv + 3 more
`,
		80: `RUN  STARTED           STATE      WORKSPACES  INPUTS     READ  CREATED  REJECTED
  1  2026-11-24 09:05  finished                         3,660    3,520         0
 12                    abandoned  …,999 more  … 3 more
`,
		40: `RUN  STATE      INPUTS           CREATED
  1  finished                      3,520
 12  abandoned  …s.csv + 3 more
`,
	} {
		var got strings.Builder
		must(t, writeTable(&got, width, tableOfRuns(runs)))
		if got.String() != want {
			t.Errorf("width %d:\n%swant:\n%s", width, &got, want)
		}
	}
	runs[0].LinksCreated = 4000
	var got strings.Builder
	must(t, writeTable(&got, 80, tableOfRuns(runs)))
	if want := `RUN  STARTED           STATE      WORKSPACES  INPUTS    CREATED  REJECTED  LINKS
  1  2026-11-24 09:05  finished                           3,520         0  4,000
 12                    abandoned  …,999 more  … 3 more
`; got.String() != want {
		t.Errorf("with links:\n%swant:\n%s", &got, want)
	}
	runs[1].Numbers = []sink.Range{{First: 1, Last: 10}, {First: 21, Last: 3_000_000}}
	got.Reset()
	must(t, writeTable(&got, 100, tableOfRuns(runs[1:])))
	if want := `RUN  STARTED  STATE      WORKSPACES    INPUTS        READ  CREATED  EXISTING  REJECTED  NUMBERS
 12           abandoned  … 4,999 more  …sv + 3 more                                     … 21-3000000
`; got.String() != want {
		t.Errorf("with numbers:\n%swant:\n%s", &got, want)
	}
}

// No table wraps at 40, 80 or 200 columns, whatever it has.
func TestTablesFit(t *testing.T) {
	wide := "/a/long/路径/" + strings.Repeat("目", 60)
	run := sink.Run{ID: 1234567, State: sink.Abandoned, ManifestSHA256: "00", Started: time.Now(), Workspaces: []string{wide, "b"}, Inputs: []string{wide}, Out: wide, LinksCreated: 1, LinksChanged: 1,
		Counts: sink.Counts{Read: 1e8, Created: 1e8, Existing: 1e8, Duplicate: 1e8, Rejected: 1e8}, Numbers: []sink.Range{{First: 1, Last: 1e8}, {First: 2e8, Last: 3e8}}}
	c := newCensus()
	must(t, c.add(sink.Group{Workspace: wide, Type: "TEMPORARY", Status: "A_STATUS_OF_ANOTHER_PROGRAM", Links: 1e8, Uses: 1e9, Latency: sink.Mean{N: 1, Value: 1e5}}))
	for _, width := range []int{40, 80, 200} {
		for name, table := range map[string][]column{"runs": tableOfRuns([]sink.Run{run, run}), "stats": c.tableOfGroups()} {
			var got strings.Builder
			must(t, writeTable(&got, width, table))
			for line := range strings.Lines(got.String()) {
				if n := cells(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s at %d: %d columns: %s", name, width, n, line)
				}
			}
		}
	}
}
