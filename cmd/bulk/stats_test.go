package main

import (
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

// Of many days of expiry the next ones are shown. The others are counted together.
func TestTableOfDays(t *testing.T) {
	today := time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC)
	c := newCensus()
	for i := range 20 {
		must(t, c.add(sink.Group{Workspace: "w", Expires: today.AddDate(0, 0, 2*i-4), Links: 1000}))
	}
	must(t, c.add(sink.Group{Workspace: "w", Expires: today, Status: sink.Deleted, Links: 5}))
	must(t, c.add(sink.Group{Workspace: "v", Expires: today, Status: sink.Active, Links: 1}))
	must(t, c.add(sink.Group{Workspace: "v", Links: 7}))
	var got strings.Builder
	must(t, writeTable(&got, 80, c.tableOfDays(today)))
	if want := `EXPIRES (UTC)      ACTIVE LINKS
before 2026-02-03         2,000
2026-02-03                1,001
2026-02-05                1,000
2026-02-07                1,000
2026-02-09                1,000
2026-02-11                1,000
2026-02-13                1,000
2026-02-15                1,000
2026-02-17                1,000
2026-02-19                1,000
2026-02-21                1,000
2026-02-23                1,000
2026-02-25                1,000
2026-02-27                1,000
2026-03-01                1,000
after 2026-03-01          4,000
never                         7
`; got.String() != want {
		t.Errorf("%s", &got)
	}
}
