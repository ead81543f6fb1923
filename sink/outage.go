package sink

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// An Outage is told that a store does not answer, and until when it is tried: problem is a
// sentence without a full stop. With a zero time it is told that the store answers. It is
// called at each try, by several goroutines, and may be told the same again.
type Outage func(problem string, until time.Time)

// LogOutage returns an Outage that logs one warning when the store stops to answer and one
// message when it answers again, however many tries there are.
func LogOutage(log *slog.Logger) Outage {
	var mu sync.Mutex
	var since time.Time // zero: the store answers
	return func(problem string, until time.Time) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case until.IsZero() && !since.IsZero():
			log.Info("the database answers again", "after", time.Since(since).Round(time.Millisecond))
			since = time.Time{}
		case !until.IsZero() && since.IsZero():
			since = time.Now()
			log.Warn(problem + "; trying for up to " + patience(until.Sub(since)))
		}
	}
}

// patience writes a time for people: 2 minutes, 1m30s, 300ms.
func patience(d time.Duration) string {
	unit := time.Second
	if d < 900*time.Millisecond {
		unit = time.Millisecond
	}
	if d = d.Round(unit); d > time.Minute && d%time.Minute == 0 {
		return fmt.Sprint(int(d/time.Minute), " minutes")
	}
	return d.String()
}
