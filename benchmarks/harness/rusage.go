//go:build unix

package harness

import (
	"os"
	"runtime"
	"syscall"
	"time"
)

// usage reads what a process that has ended took. A nil state is a process that
// did not start.
func usage(state *os.ProcessState, wall time.Duration) Usage {
	if state == nil {
		return Usage{}
	}
	u := Usage{Seconds: wall.Seconds(), CPU: (state.UserTime() + state.SystemTime()).Seconds()}
	if r, ok := state.SysUsage().(*syscall.Rusage); ok {
		u.RSS = int64(r.Maxrss)
		if runtime.GOOS != "darwin" {
			u.RSS *= 1024
		}
	}
	return u
}
