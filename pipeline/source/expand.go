package source

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/linkforge/bulk/pipeline/columns"
)

// Expand turns the arguments of a command into the names of inputs, sorted by their bytes. A
// pattern as in a shell (*, ?, [a-z]) is replaced with the files that it matches, unless a file
// has the very name of the pattern. As in a shell, a name that starts with a dot needs a dot in
// the pattern. "-" is stdin, which may be nil. A pattern without a match is a *[UsageError], unless
// none is allowed, and so is a file that is given twice, also by different paths or as standard input.
func Expand(patterns []string, stdin io.Reader, none bool) ([]string, error) {
	var names []string
	for _, pattern := range patterns {
		if _, err := os.Lstat(pattern); pattern == "-" || err == nil || !strings.ContainsAny(pattern, `*?[`) {
			names = append(names, pattern)
			continue
		}
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, &columns.UsageError{Input: pattern, Msg: "not a valid pattern"}
		}
		found = slices.DeleteFunc(found, func(name string) bool { return hidden(pattern, name) })
		if len(found) == 0 && !none {
			return nil, &columns.UsageError{Input: pattern, Msg: "no file matches"}
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	return names, distinct(names, stdin)
}

// hidden says whether an element of name starts with a dot and that of the pattern does not.
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

// distinct returns an error if two of the names, which are sorted, are of one file.
func distinct(names []string, stdin io.Reader) error {
	type file struct{ device, number uint64 } // os.SameFile would compare each with all
	seen := make(map[file]string)
	for i, name := range names {
		if i > 0 && name == names[i-1] {
			return &columns.UsageError{Input: name, Msg: "is given twice"}
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
			return &columns.UsageError{Input: name, Msg: "is the same file as " + other}
		}
		seen[f] = name
	}
	return nil
}
