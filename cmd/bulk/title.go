package main

import (
	"strconv"
	"strings"
	"unsafe"

	"github.com/linkforge/bulk/sink/postgres"
)

// hidePasswords returns a copy of the arguments of the process, and overwrites the originals
// that have the password of a store: the strings of os.Args lie in the memory that the
// system shows in the process list.
func hidePasswords(args []string) []string {
	own := make([]string, len(args))
	for i, arg := range args {
		own[i] = strings.Clone(arg)
		dsn := address(arg)
		if dsn == "" {
			continue
		}
		title := dsn[:strings.Index(dsn, "//")+2]
		if shown := postgres.Redact(dsn); shown == dsn {
			continue
		} else if len(shown) <= len(dsn) {
			title = shown
		}
		bytes := unsafe.Slice(unsafe.StringData(dsn), len(dsn))
		clear(bytes[copy(bytes, title):])
	}
	return own
}

// address returns the address of a server that an argument is or, as in --db=ADDRESS,
// ends with, or "".
func address(arg string) string {
	for i := range arg {
		if isPostgres(arg[i:]) {
			return arg[i:]
		}
	}
	return ""
}

// hideAddresses removes the passwords from a message that may quote arguments.
func hideAddresses(text string, args []string) string {
	for _, arg := range args {
		if dsn := address(arg); dsn != "" {
			shown := postgres.Redact(dsn)
			text = strings.ReplaceAll(text, dsn, shown)
			text = strings.ReplaceAll(text, strconv.Quote(dsn)[1:], strconv.Quote(shown)[1:])
		}
	}
	return text
}
