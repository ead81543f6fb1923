package harness

import (
	"bufio"
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// A Machine describes where and with what something was measured. Nothing in it
// identifies one machine among others of its kind.
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

// Inspect describes this machine and the checkout in the working directory.
func Inspect(ctx context.Context) Machine {
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
	m.Kernel, _ = Output(ctx, "uname", "-sr")
	if rev, err := Output(ctx, "git", "describe", "--always", "--dirty"); err == nil {
		m.Revision = rev
	}
	return m
}

// procValue returns the value of the first line "key : value" of a file, or "".
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
