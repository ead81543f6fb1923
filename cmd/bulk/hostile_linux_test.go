package main

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// apart gives a command mounts of its own, if it may have them: in most containers
// not even root may.
func apart(c *child) {
	attr := &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		attr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
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
