package harness

import (
	"bufio"
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Machine is where and with what something was measured. It says nothing that
// tells the machine from another of its kind.
type Machine struct {
	Date     string            `json:"date"`     // UTC
	Revision string            `json:"revision"` // of bulk
	CPU      string            `json:"cpu"`
	Cores    int               `json:"cores"`
	RAM      int64             `json:"ram_bytes"`
	Kernel   string            `json:"kernel"`
	Go       string            `json:"go"`                 // that built bulk
	Versions map[string]string `json:"versions,omitempty"` // of the peers
}

// Inspect describes this machine and the checkout in a folder.
func Inspect(ctx context.Context, dir string) Machine {
	m := Machine{
		Date: time.Now().UTC().Format(time.DateOnly), Cores: runtime.NumCPU(), Go: runtime.Version(),
		CPU: runtime.GOARCH, Versions: map[string]string{}, Revision: "unknown",
	}
	if model := procValue("/proc/cpuinfo", "model name"); model != "" {
		m.CPU = model + ", family " + procValue("/proc/cpuinfo", "cpu family") + ", " + runtime.GOARCH
	}
	if kib, _, ok := strings.Cut(procValue("/proc/meminfo", "MemTotal"), " "); ok {
		n, _ := strconv.ParseInt(kib, 10, 64)
		m.RAM = n << 10
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	if rev, err := Output(ctx, dir, "git", "describe", "--always", "--dirty"); err == nil {
		m.Revision = rev
	}
	return m
}

// procValue finds the first line "key : value" of a file.
func procValue(file, key string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if k, v, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
