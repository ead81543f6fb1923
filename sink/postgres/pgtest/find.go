//go:build linux || darwin

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/linkforge/bulk/internal/quick"
)

// ErrNoPrograms: initdb and pg_ctl are not on this machine.
var ErrNoPrograms = errors.New("no PostgreSQL server programs: neither on PATH, nor by pg_config, nor in /usr/lib/postgresql")

// programs finds the directory of the server's programs: on PATH, by pg_config, or the
// newest version where Debian installs them.
func programs() (string, error) {
	var dirs []string
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(debian, func(a, b string) int { return version(b) - version(a) })
	for _, dir := range append(dirs, debian...) {
		if executable(dir, "initdb") && executable(dir, "pg_ctl") && executable(dir, "postgres") {
			return dir, nil
		}
	}
	return "", ErrNoPrograms
}

// leastVersion is the oldest version that the tests work with. Before 15 every role may
// create tables in the schema public; before 14 some settings that tests read do not exist.
const leastVersion = 15

// checkVersion refuses a cluster of an older server.
func (s *Server) checkVersion() error {
	data, err := os.ReadFile(filepath.Join(s.data(), "PG_VERSION"))
	number := strings.TrimSpace(string(data))
	if n, _ := strconv.Atoi(number); err == nil && n < leastVersion {
		err = fmt.Errorf("the tests need PostgreSQL %d or newer, %s has %s", leastVersion, s.bin, number)
	}
	return err
}

// version of /usr/lib/postgresql/VERSION/bin.
func version(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return n
}

func executable(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode()&0o111 != 0
}

// unprivileged is the account for the server if this process is root: the server refuses to
// run as root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
			gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
		}
	}
	return nil, errors.New("root may not run a PostgreSQL server, and there is no user postgres or nobody")
}

// place is the directory in which the server's directory is created: Options.Tmp, or in
// memory if there is room and the server is not durable. In memory, creating a database
// takes a third of the time.
func place(opts Options, cred *syscall.Credential) (string, error) {
	if opts.Tmp != "" {
		if !suitable(opts.Tmp, cred) {
			return "", fmt.Errorf("no server can be in %s: the name is too long or needs quotes, or other users have no access", opts.Tmp)
		}
		return opts.Tmp, nil
	}
	if dir := quick.Memory(); dir != "" && !opts.Durable {
		return dir, nil
	}
	if dir := os.TempDir(); suitable(dir, cred) {
		return dir, nil
	}
	return "/tmp", nil
}

// suitable reports whether the name of a directory leaves room for the name of a socket,
// which may have 107 bytes, and needs no quotes, and whether the server's account has
// access.
func suitable(dir string, cred *syscall.Credential) bool {
	return len(dir) <= 64 && !strings.ContainsAny(dir, ` '"\,`) && (cred == nil || public(dir))
}

// public reports whether all users have access to a directory.
func public(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return dir == "/"
		}
		dir = filepath.Dir(dir)
	}
}
