//go:build linux || darwin

// Package pgtest runs a private, throw-away PostgreSQL server for tests and
// benchmarks: a cluster in a fresh temporary folder that listens on a Unix
// socket in that folder and is gone when the process that made it is, however
// that ended. It never talks to a server somebody else runs: neither the
// programs that it starts nor the addresses that it hands out look at PG*.
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
	Durable  bool              // keep fsync and the like as a server has them by default: for benchmarks
	Tmp      string            // folder that the server's is made in, which its account can get to; "": memory, or that of the system
	TCP      bool              // listen on a free port of 127.0.0.1 too
	Settings []string          // more of them, as name=value
	HBA      []string          // lines that pg_hba.conf starts with; the rest trusts everybody
	Files    map[string][]byte // that are put beside pg_hba.conf, for the settings to name
	Disk     int64             // bytes of a file system for the tablespace [Disk], which [Server.Fill] fills and a stop of the server empties; 0: none
}

// A Server is a PostgreSQL server that this process owns. Its methods may be
// called by several goroutines at once.
type Server struct {
	opts Options

	mu      sync.Mutex // guards all below
	started bool
	err     error // of the first start; it is not tried again
	bin     string
	folder  string // the cluster is in its data, the socket in itself
	port    int
	cred    *syscall.Credential // nil: this process's own
	watcher *exec.Cmd
	hangUp  io.Closer // the pipe that tells the watcher that this process is gone
	last    int       // number of the last database
	mounts  bool      // the disk is a file system of its own
}

// New returns a server that starts when it is first needed.
func New(opts Options) *Server { return &Server{opts: opts} }

// Start makes the cluster and starts the server, if that has not been done.
// Without server programs on this machine the error wraps [ErrNoPrograms].
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

// Close stops the server and removes everything. A server that did not start
// is closed already.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove()
}

// Stop stops the server at once, as a crash would: no checkpoint, every
// connection cut.
func (s *Server) Stop() error { return s.control("stop", "-m", "immediate") }

// Restart starts a stopped server again, over the same data and on the same
// addresses.
func (s *Server) Restart() error { return s.start() }

// start starts the server by way of the wrapper, a command that runs another.
func (s *Server) start(wrapper ...string) error {
	if s.mounts {
		wrapper = append([]string{"unshare"}, s.mount()...)
	}
	return s.run(append(wrapper, s.pgctl("start", "-l", filepath.Join(s.folder, "log"))...)...)
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
	if s.folder, err = os.MkdirTemp(tmp, "pgtest"); err != nil {
		return err
	}
	for _, step := range []func() error{func() error { return s.give(s.folder) }, s.watch, s.initdb, s.checkVersion, s.configure, s.disk} {
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
			return err // otherwise somebody else may have got the port first
		}
	}
	if s.opts.Disk == 0 {
		return nil
	}
	return s.ExecContext(context.Background(), "postgres", "CREATE TABLESPACE "+Disk+" LOCATION '"+s.diskFolder()+"'")
}

// initdb makes the cluster.
func (s *Server) initdb() error {
	command := []string{filepath.Join(s.bin, "initdb"), "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"}
	if !s.opts.Durable {
		command = append(command, "--no-sync")
	}
	if s.opts.Disk > 0 {
		command = append(command, "--wal-segsize=1") // shorter than a limited file
	}
	return s.run(command...)
}

func (s *Server) data() string { return filepath.Join(s.folder, "data") }

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

// set appends settings; the last of a name counts.
func (s *Server) set(settings ...string) error {
	conf, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = conf.WriteString("\n" + strings.Join(settings, "\n") + "\n")
	return errors.Join(err, conf.Close())
}

// configure writes the settings and the files, and puts the HBA lines in front.
func (s *Server) configure() error {
	settings := []string{"unix_socket_directories='" + s.folder + "'", "unix_socket_permissions=0777"}
	if !s.opts.Durable {
		// synchronous_commit stays: a server that was killed must remember.
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

// give makes the server's account the owner of a file or folder.
func (s *Server) give(path string) error {
	if s.cred == nil {
		return nil
	}
	return os.Chown(path, int(s.cred.Uid), int(s.cred.Gid))
}

// watch starts the process that ends the server and removes the folder once
// this process has closed its pipe or is dead. It has a process group of its
// own, so that Ctrl-C does not reach it.
func (s *Server) watch() error {
	const script = `read -r _; "$1" -D "$2/data" -m immediate stop; rm -rf "$2"`
	cmd := s.command("/bin/sh", "-c", script, "pgtest", filepath.Join(s.bin, "pg_ctl"), s.folder)
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
		s.watcher.Wait() // it tells whether there was a server to stop, which does not matter
		s.watcher = nil
	}
	return os.RemoveAll(s.folder) // the server's account may not take it out of a folder of root's
}

func (s *Server) control(verb string, args ...string) error { return s.run(s.pgctl(verb, args...)...) }

func (s *Server) pgctl(verb string, args ...string) []string {
	return append([]string{filepath.Join(s.bin, "pg_ctl"), verb, "-s", "-w", "-t", "300", "-D", s.data()}, args...)
}

// run runs a command for the server; its output is in the error.
func (s *Server) run(command ...string) error {
	cmd := s.command(command[0], command[1:]...)
	// Not a pipe: the server inherits it from pg_ctl and keeps it open.
	out, err := os.CreateTemp(s.folder, "output")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		log, _ := os.ReadFile(filepath.Join(s.folder, "log"))
		return fmt.Errorf("%s: %w: %s%s", strings.Join(command, " "), err, bytes.TrimSpace(said), tail(log))
	}
	return nil
}

func tail(log []byte) []byte { return bytes.TrimSpace(log[max(0, len(log)-2000):]) }

// command prepares a program that runs under the server's account, in its
// folder, without PG* variables.
func (s *Server) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = s.folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PG") && !strings.HasPrefix(v, "LC_") && !strings.HasPrefix(v, "LANG") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// freePort finds a port that nobody listens on now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
