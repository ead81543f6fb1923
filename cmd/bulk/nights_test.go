package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A job runs every night on the export of the day. Two nights are killed, of which one is not
// tried again; one night the store is down, one export is empty, and one is rubbish. Nobody
// does anything about it. After each night the output directory holds the mapping of the last
// good one, and in the end the store has every link of every good night.
func TestThirtyNights(t *testing.T) {
	const rows, fresh = 300, 40 // of an export; of these, not in that of the night before
	t.Chdir(t.TempDir())
	dsn := postgresURL(server.Database(t))
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	special := rnd.Perm(28)[:5] // the first night and the last are good
	killed, killedForGood, down, empty, rubbish := special[0]+1, special[1]+1, special[2]+1, special[3]+1, special[4]+1
	address := func(night int) string {
		if night == down {
			return strings.Replace(dsn, "port=", "port=1", 1)
		}
		return dsn
	}
	stored := map[string]bool{}
	good, longest := -1, time.Duration(0)
	for night := range 30 {
		var export strings.Builder
		export.WriteString("id,url\n")
		for i := night * fresh; i < night*fresh+rows && night != empty; i++ {
			fmt.Fprintf(&export, "%d,http://example.com/%d\n", i, i)
		}
		content := export.String()
		if night == rubbish {
			content = strings.ReplaceAll(content, "http:", "<a href=")
		}
		write(t, ".", "export.csv", content)
		job := []string{"run", "export.csv", "--workspace", "demo", "--out", "links.bulk", "--overwrite", "--retry-for", "0s", "--db", address(night)}
		var after *time.Duration
		if night == killed || night == killedForGood {
			moment := time.Duration(rnd.Int64N(int64(longest)))
			after = &moment
		}
		start := time.Now()
		code, output := execute(t, after, job...)
		longest = max(longest, time.Since(start))
		if code == -1 && night == killed || code == exitStore {
			code, output = execute(t, nil, job...)
		}
		want := exitDone
		switch night {
		case killedForGood:
			if code == -1 { // or it came to its end
				want = code
			}
		case down:
			want = exitStore
		case empty:
			want = exitUsage
		case rubbish:
			want = exitTooMany
		}
		if code != want {
			t.Fatalf("night %d: exit code %d, want %d: %s", night, code, want, output)
		}
		mapping := string(read(t, "links.bulk", "mapping.csv"))
		isOf := func(night int) bool {
			return !slices.ContainsFunc([]int{night * fresh, night*fresh + rows - 1}, func(i int) bool {
				return !strings.Contains(mapping, ",http://example.com/"+strconv.Itoa(i)+",")
			})
		}
		if code == exitDone || code == -1 && isOf(night) { // killed when its output was in place
			good = night
			for _, url := range regexp.MustCompile(`http:\S+`).FindAllString(content, -1) {
				stored[url] = true
			}
		}
		if !isOf(good) {
			t.Fatalf("night %d: the mapping is not that of night %d", night, good)
		}
	}
	if code, output := execute(t, nil, "verify", "links.bulk", "--inputs", "export.csv", "--db", dsn); code != exitDone || good != 29 {
		t.Errorf("after night %d: exit code %d: %s", good, code, output)
	}
	if left, _ := filepath.Glob(".*.partial"); len(left) > 0 {
		t.Errorf("%v was left", left)
	}
	for _, link := range postgresStore().dump(t, dsn) {
		url := strings.Fields(link)[2]
		delete(stored, url)
	}
	if len(stored) > 0 {
		t.Errorf("%d links of good nights are missing, such as %v", len(stored), slices.Collect(func(yield func(string) bool) {
			for url := range stored {
				yield(url)
				return
			}
		}))
	}
}
