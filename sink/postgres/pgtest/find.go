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
)

// ErrNoPrograms: initdb and pg_ctl are not on this machine.
var ErrNoPrograms = errors.New("no PostgreSQL server programs: neither on PATH, nor by pg_config, nor in /usr/lib/postgresql")

// programs finds the folder of the server's programs: on PATH, where pg_config
// says, or the newest where Debian puts them.
func programs() (string, error) {
	var folders []string
	if path, err := exec.LookPath("initdb"); err == nil {
		folders = append(folders, filepath.Dir(path))
	}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		folders = append(folders, strings.TrimSpace(string(out)))
	}
	debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(debian, func(a, b string) int { return version(b) - version(a) })
	for _, folder := range append(folders, debian...) {
		if executable(folder, "initdb") && executable(folder, "pg_ctl") && executable(folder, "postgres") {
			return folder, nil
		}
	}
	return "", ErrNoPrograms
}

// leastVersion is what the tests need: from it on not everybody may create tables in the
// schema public, and settings that some look at are there since 14.
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

func executable(folder, name string) bool {
	info, err := os.Stat(filepath.Join(folder, name))
	return err == nil && info.Mode()&0o111 != 0
}

// unprivileged is the account to run the server under: the server refuses to
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
	return nil, errors.New("root may not run a PostgreSQL server, and there is neither a user postgres nor nobody")
}

// place is the folder that the server's folder is made in: where the options say,
// or in memory where there is room and nothing needs to last, which makes databases
// three times as fast to create.
func place(opts Options, cred *syscall.Credential) (string, error) {
	if opts.Tmp != "" {
		if !suitable(opts.Tmp, cred) {
			return "", fmt.Errorf("no server can be in %s: the name is long or needs quotes, or others may not get there", opts.Tmp)
		}
		return opts.Tmp, nil
	}
	if dir := Memory(); dir != "" && !opts.Durable {
		return dir, nil
	}
	if dir := os.TempDir(); suitable(dir, cred) {
		return dir, nil
	}
	return "/tmp", nil
}

// Memory is a folder in memory with room for what tests write; "": there is none.
func Memory() string {
	const memory, room = "/dev/shm", 2 << 30
	var fs syscall.Statfs_t
	if syscall.Statfs(memory, &fs) != nil || uint64(fs.Bavail)*uint64(fs.Bsize) <= room {
		return ""
	}
	return memory
}

// suitable tells whether the name of a folder leaves room for that of a socket,
// which may have 107 bytes, and needs no quotes, and the server's account can get
// there.
func suitable(dir string, cred *syscall.Credential) bool {
	return len(dir) <= 64 && !strings.ContainsAny(dir, ` '"\,`) && (cred == nil || public(dir))
}

// public tells whether everybody can get to a folder.
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
