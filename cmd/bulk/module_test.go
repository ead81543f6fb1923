package main

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A module of others is refused by go get if a file in it has a name that some system
// does not allow, and by go install if it replaces or excludes what it needs.
func TestModuleIsToBeHad(t *testing.T) {
	data := read(t, "../../go.mod")
	if found := regexp.MustCompile(`(?m)^(exclude|replace)\b.*`).Find(data); found != nil {
		t.Errorf("go.mod: %s", found)
	}
	refused := regexp.MustCompile("(?i)^(con|prn|aux|nul|(com|lpt)[1-9])([.]|$)|[\"'*<>?`|:\\\\]")
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() != ".." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if refused.MatchString(d.Name()) {
			t.Errorf("%s: no file of a module may have that name", path)
		}
		return err
	})
	must(t, err)
}
