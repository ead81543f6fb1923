//go:build linux || darwin

// Package pgtest runs a private PostgreSQL server for tests and benchmarks. The server has
// a new temporary directory and listens on a Unix socket there. When the process that
// started it ends, in whatever way, the server stops and the directory is deleted. The
// package never uses another server: the programs that it starts, and its addresses, ignore
// the PG* environment variables.
//
//	var server = pgtest.New(pgtest.Options{})
//
//	func TestMain(m *testing.M) { os.Exit(server.Main(m)) }
//
//	func TestStore(t *testing.T) { dsn := server.Database(t); … }
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Options of a server. The zero value is right for tests.
type Options struct {
	Durable  bool              // keep the defaults of fsync and full_page_writes, for benchmarks
	Tmp      string            // where to create the server's directory; the server's account must have access; "": in memory, or where the system has temporary files
	TCP      bool              // listen on a free port of 127.0.0.1, too
	Settings []string          // more settings, as name=value
	HBA      []string          // the first lines of pg_hba.conf; the other lines trust everybody
	Files    map[string][]byte // files beside pg_hba.conf, for the settings
	Disk     int64             // bytes of a file system for the tablespace [Disk], which [Server.Fill] fills and a stop of the server empties; 0: none
}

// A Server is a PostgreSQL server that this process owns. It is safe for concurrent use.
type Server struct {
	opts Options

	mu      sync.Mutex // guards all below
	started bool
	err     error // of the first start, which is not retried
	bin     string
	dir     string // holds the socket, and the cluster in data
	port    int
	cred    *syscall.Credential // nil: the account of this process
	watcher *exec.Cmd
	hangUp  io.Closer // a pipe; when it closes, the watcher stops the server
	last    int       // number of the last database
	mounts  bool      // the disk is a file system of its own
}

// New returns a server that starts when it is first needed.
func New(opts Options) *Server { return &Server{opts: opts} }

// Start creates the cluster and starts the server, once. If this machine has no server
// programs, the error wraps [ErrNoPrograms].
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.started = true
		if s.err = s.create(); s.err != nil {
			s.remove()
		}
	}
	return s.err
}

// Close stops the server and deletes its directory. It does nothing if the server did not
// start.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove()
}

// Stop stops the server like a crash: without a checkpoint, and every connection is lost.
func (s *Server) Stop() error { return s.control("stop", "-m", "immediate") }

// Restart starts a stopped server again, with the same data and addresses.
func (s *Server) Restart() error { return s.start() }

// start starts the server. The wrapper, if any, is a command that runs another one.
func (s *Server) start(wrapper ...string) error {
	if s.mounts {
		wrapper = append([]string{"unshare"}, s.mount()...)
	}
	return s.run(append(wrapper, s.pgctl("start", "-l", filepath.Join(s.dir, "log"))...)...)
}

func (s *Server) create() error {
	var err error
	if s.bin, err = programs(); err != nil {
		return err
	}
	if s.cred, err = unprivileged(); err != nil {
		return err
	}
	tmp, err := place(s.opts, s.cred)
	if err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp(tmp, "pgtest"); err != nil {
		return err
	}
	for _, step := range []func() error{func() error { return s.give(s.dir) }, s.watch, s.initdb, s.checkVersion, s.configure, s.disk} {
		if err := step(); err != nil {
			return err
		}
	}
	for tries := 1; ; tries++ {
		err := errors.Join(s.listen(), s.start())
		if err == nil {
			break
		}
		if !s.opts.TCP || tries == 5 {
			return err // otherwise another process may have taken the port
		}
	}
	// The first connection to a database finds out what its catalog is like, and leaves that in a file, which
	// is copied to new databases.
	if err := s.ExecContext(context.Background(), "template1", "SELECT"); err != nil || s.opts.Disk == 0 {
		return err
	}
	return s.ExecContext(context.Background(), common, "CREATE TABLESPACE "+Disk+" LOCATION '"+s.diskDir()+"'")
}

// initdb creates the cluster.
func (s *Server) initdb() error {
	command := []string{filepath.Join(s.bin, "initdb"), "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"}
	if !s.opts.Durable {
		command = append(command, "--no-sync")
	}
	if s.opts.Disk > 0 {
		command = append(command, "--wal-segsize=1") // shorter than the limit of a file, see limited
	}
	return s.run(command...)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// listen chooses the addresses.
func (s *Server) listen() (err error) {
	listen := ""
	s.port = 5432
	if s.opts.TCP {
		listen = "127.0.0.1"
		if s.port, err = freePort(); err != nil {
			return err
		}
	}
	return s.set("listen_addresses='"+listen+"'", "port="+strconv.Itoa(s.port))
}

// set appends settings. The last one of a name counts.
func (s *Server) set(settings ...string) error {
	conf, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = conf.WriteString("\n" + strings.Join(settings, "\n") + "\n")
	return errors.Join(err, conf.Close())
}

// configure writes the settings and the files, and puts the HBA lines before the others.
func (s *Server) configure() error {
	settings := []string{"unix_socket_directories='" + s.dir + "'", "unix_socket_permissions=0777"}
	if !s.opts.Durable {
		// synchronous_commit stays on: a server that was killed must keep its commits.
		settings = append(settings, "fsync=off", "full_page_writes=off")
	}
	if err := s.set(append(settings, s.opts.Settings...)...); err != nil {
		return err
	}
	path := filepath.Join(s.data(), "pg_hba.conf")
	rest, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append([]byte(strings.Join(s.opts.HBA, "\n")+"\n"), rest...), 0o600); err != nil {
		return err
	}
	for name, content := range s.opts.Files {
		path := filepath.Join(s.data(), name)
		if err := errors.Join(os.WriteFile(path, content, 0o600), s.give(path)); err != nil {
			return err
		}
	}
	return nil
}

// give makes the server's account the owner of a file or directory.
func (s *Server) give(path string) error {
	if s.cred == nil {
		return nil
	}
	return os.Chown(path, int(s.cred.Uid), int(s.cred.Gid))
}

// watch starts a process that stops the server and deletes its directory when this process
// has closed the pipe or is dead. The watcher has its own process group, so Ctrl-C does not
// stop it.
func (s *Server) watch() error {
	const script = `read -r _; "$1" -D "$2/data" -m immediate stop; rm -rf "$2"`
	cmd := s.command("/bin/sh", "-c", script, "pgtest", filepath.Join(s.bin, "pg_ctl"), s.dir)
	cmd.SysProcAttr.Setpgid = true
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the watcher of the server: %w", err)
	}
	s.watcher, s.hangUp = cmd, pipe
	return nil
}

func (s *Server) remove() error {
	if s.watcher != nil {
		s.hangUp.Close()
		s.watcher.Wait() // an error says only that no server was running
		s.watcher = nil
	}
	return os.RemoveAll(s.dir) // the server's account may not delete it from a directory of root
}

func (s *Server) control(verb string, args ...string) error { return s.run(s.pgctl(verb, args...)...) }

func (s *Server) pgctl(verb string, args ...string) []string {
	return append([]string{filepath.Join(s.bin, "pg_ctl"), verb, "-s", "-w", "-t", "300", "-D", s.data()}, args...)
}

// run runs a command for the server. The error has its output.
func (s *Server) run(command ...string) error {
	cmd := s.command(command[0], command[1:]...)
	// Not a pipe: the server would inherit it from pg_ctl and keep it open.
	out, err := os.CreateTemp(s.dir, "output")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		return fmt.Errorf("%s: %w: %s%s", strings.Join(command, " "), err, bytes.TrimSpace(said), tail(log))
	}
	return nil
}

func tail(log []byte) []byte { return bytes.TrimSpace(log[max(0, len(log)-2000):]) }

// command prepares a program that runs under the server's account, in its directory, without
// PG* variables.
func (s *Server) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PG") && !strings.HasPrefix(v, "LC_") && !strings.HasPrefix(v, "LANG") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// freePort finds a port that no process listens on now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
