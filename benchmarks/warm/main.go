//go:build unix

// Command warm touches so many bytes of memory and ends. A virtual machine gives
// memory that was free for a while back to its host, and to take it again costs
// more than most that is measured here (5 µs a page were seen, a second of 700 MB
// of output): whoever comes first after a pause would pay it.
//
//	warm BYTES
package main

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "warm:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d arguments, want the number of bytes", len(args))
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n <= 0 {
		return fmt.Errorf("%q is no number of bytes", args[0])
	}
	memory, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	for i := 0; i < n; i += os.Getpagesize() {
		memory[i] = 1
	}
	return unix.Munmap(memory)
}
