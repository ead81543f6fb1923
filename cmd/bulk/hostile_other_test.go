//go:build !linux

package main

import (
	"errors"
	"syscall"
)

func mortal() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func apart(*child) {}

func mountDisk(string) error { return errors.ErrUnsupported }
