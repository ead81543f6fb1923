//go:build !linux

package main

import "errors"

func apart(*child) {}

func mountDisk(string) error { return errors.ErrUnsupported }
