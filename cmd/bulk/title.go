package main

import (
	"strings"
	"unsafe"

	"github.com/linkforge/bulk/sink/postgres"
)

// hidePasswords returns a copy of the arguments of the process and overwrites
// those that hold the password of a store with what may be seen: the runtime's
// strings lie where the system reads the process list from.
func hidePasswords(args []string) []string {
	own := make([]string, len(args))
	for i, arg := range args {
		own[i] = strings.Clone(arg)
		_, dsn, ok := strings.Cut(arg, "=")
		if !ok || !strings.HasPrefix(arg, "--") {
			dsn = arg
		}
		if !isPostgres(dsn) {
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
