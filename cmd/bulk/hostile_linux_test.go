package main

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// mortal are the attributes of a process that is killed when this one ends.
func mortal() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// apart gives a command mounts of its own, if it may have them: in most containers
// not even root may.
func apart(c *child) {
	attr := mortal()
	if os.Getuid() == 0 {
		attr.Unshareflags = syscall.CLONE_NEWNS
	} else {
		attr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	try := exec.Command(c.Path, "-test.run", "^$")
	try.SysProcAttr = attr
	if try.Run() == nil {
		c.SysProcAttr = attr
	}
}

func mountDisk(dir string) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+strconv.Itoa(diskSize))
}
