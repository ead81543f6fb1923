package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const deploy = "../../testdata/deploy"

// The units of the nightly job are right, as far as systemd can tell without starting them.
func TestUnits(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip(err)
	}
	self, err := os.Executable() // verify wants a program that exists
	must(t, err)
	dir := t.TempDir()
	args := []string{"verify", "--man=no"}
	for _, name := range []string{"bulk-nightly.service", "bulk-nightly.timer"} {
		write(t, dir, name, strings.ReplaceAll(string(read(t, deploy, name)), "/usr/local/bin/bulk", self))
		args = append(args, filepath.Join(dir, name))
	}
	if out, err := exec.Command("systemd-analyze", args...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// Every setting of the nightly job is one of bulk run.
func TestNightlyConfig(t *testing.T) {
	file := filepath.Join(deploy, "nightly.yaml")
	var stdout, stderr strings.Builder
	if code := bulk([]string{"config", "run", "--config", file}, nil, &stdout, &stderr); code != exitDone {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	keys := regexp.MustCompile(`(?m)^[a-z-]+:`).FindAllString(string(read(t, file)), -1)
	if len(keys) != strings.Count(stdout.String(), " # "+file+":") {
		t.Errorf("%d keys: %s", len(keys), &stdout)
	}
}

// The line for cron runs the job again after the exit codes that say so, and only then.
func TestCron(t *testing.T) {
	_, line, _ := strings.Cut(string(read(t, deploy, "bulk.cron")), " * * * bulk ")
	dir := t.TempDir()
	line = strings.NewReplacer("/usr/local/bin/bulk", "sh "+filepath.Join(dir, "bulk"), "sleep 300", ":", "/var/lib/bulk/log", filepath.Join(dir, "log")).Replace(line)
	for codes, want := range map[string]int{"0": 1, "3": 1, "1": 1, "4": 1, "6 130 134 137 0": 5, "6 6 6 6 6 6 6 6 6 6 6 6 6": 12} {
		write(t, dir, "codes", strings.ReplaceAll(codes, " ", "\n")+"\n")
		write(t, dir, "log", "")
		write(t, dir, "bulk", "echo $*\ncd "+dir+"\ncode=$(head -1 codes)\nsed -i.was 1d codes\nexit $code\n")
		cmd := exec.Command("sh", "-c", line)
		if out, err := cmd.CombinedOutput(); err != nil && !errors.As(err, new(*exec.ExitError)) || len(out) > 0 {
			t.Errorf("%v: %s", err, out)
		}
		if got := strings.Count(string(read(t, dir, "log")), "run --config /etc/bulk/nightly.yaml\n"); got != want {
			t.Errorf("exit codes %s: %d runs, want %d", codes, got, want)
		}
	}
}
