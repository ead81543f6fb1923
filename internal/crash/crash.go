// Package crash decides how a command ends that has a fault.
package crash

import (
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// AsSignal has a panic, and SIGQUIT, end the process by SIGABRT. By default they exit with 2, which would
// mean that nothing was done. The system may dump the memory of what a signal ends, which has passwords: a
// limit prevents that.
func AsSignal() {
	debug.SetTraceback("crash")
	var core unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &core); err == nil {
		core.Cur = min(1, core.Max) // too little for a file; unlike 0, it also keeps Linux from piping the dump to a program
		_ = unix.Setrlimit(unix.RLIMIT_CORE, &core)
	}
}
