package source

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Expand turns the arguments of a command into the names of inputs, sorted
// bytewise. A pattern in the shell's style (*, ?, [a-z]) stands for the files
// that it matches, unless a file has that very name; like a shell's, it meets
// no name that starts with a dot unless it says so. "-" is standard input, which
// may be nil. A pattern that matches nothing, and a file that is named twice, by
// whatever path or as standard input, is a *[UsageError].
func Expand(patterns []string, stdin io.Reader) ([]string, error) {
	var names []string
	for _, pattern := range patterns {
		if _, err := os.Lstat(pattern); pattern == "-" || err == nil || !strings.ContainsAny(pattern, `*?[`) {
			names = append(names, pattern)
			continue
		}
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, &UsageError{pattern, "the pattern is malformed"}
		}
		found = slices.DeleteFunc(found, func(name string) bool { return hidden(pattern, name) })
		if len(found) == 0 {
			return nil, &UsageError{pattern, "no file matches"}
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	return names, distinct(names, stdin)
}

// hidden says that an element of name starts with a dot where the pattern does
// not.
func hidden(pattern, name string) bool {
	patterns := strings.Split(filepath.Clean(pattern), "/")
	elements := strings.Split(name, "/")
	for i, e := range elements {
		if strings.HasPrefix(e, ".") && i < len(patterns) && !strings.HasPrefix(patterns[i], ".") {
			return true
		}
	}
	return false
}

// distinct refuses two names, in sorted order, for one file.
func distinct(names []string, stdin io.Reader) error {
	type file struct{ device, number uint64 } // os.SameFile would compare each with all
	seen := make(map[file]string)
	for i, name := range names {
		if i > 0 && name == names[i-1] {
			return &UsageError{name, "named twice"}
		}
		info, err := os.Stat(name)
		if name == "-" {
			f, ok := stdin.(*os.File)
			if !ok {
				continue
			}
			info, err = f.Stat()
		}
		if err != nil {
			continue // Open will say what is wrong with it
		}
		stat := info.Sys().(*syscall.Stat_t)
		f := file{uint64(stat.Dev), stat.Ino}
		if other, ok := seen[f]; ok {
			return &UsageError{name, "is the same file as " + other}
		}
		seen[f] = name
	}
	return nil
}
