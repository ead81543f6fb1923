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
		20: `RUN  STARTED           STATE      WORKSPACES  INPUTS    CREATED  REJECTED
  1  2026-11-24 09:05  finished                           3,520         0
 12                    abandoned  …,999 more  … 3 more
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
