package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/explain"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/pipeline/verify"
	"github.com/linkforge/bulk/sink/postgres"
)

// Texts of the library that name flags: details of rejects, which stand in files, and what only the
// command says. Package campaign reads the text of flags.
var mayNameFlags = map[string]bool{
	"pipeline/beam/cmd/bulk-beam": true, // a command
	"pipeline/account":            true, "pipeline/campaign": true, "pipeline/hygiene": true, "pipeline/outcome": true, "pipeline/rules": true, "pipeline/source/csv.go": true, "pipeline/source/rejects.go": true, "pipeline/preview.go": true, "sink/postgres/errors.go": true,
}

// Errors of the library name fields of its configuration, which exist, and the command has their flags.
func TestErrorsNameFields(t *testing.T) {
	root := rootCommand(newUI(io.Discard, io.Discard))
	flags := map[string]bool{}
	for _, c := range root.Commands() {
		for flag := range fieldFlags {
			if f := c.Flags().Lookup(fieldFlags[flag]); f != nil {
				flags[fieldFlags[flag]] = true
			}
		}
	}
	configs := []reflect.Type{reflect.TypeFor[pipeline.Config](), reflect.TypeFor[pipeline.DeleteConfig](), reflect.TypeFor[verify.Config](), reflect.TypeFor[source.Options](),
		reflect.TypeFor[postgres.Options](), reflect.TypeFor[explain.Rules]()}
	for name, flag := range fieldFlags {
		known := false
		for _, c := range configs {
			known = known || hasField(c, strings.Split(name, "."))
		}
		if !known || !flags[flag] {
			t.Errorf("%s: it is a field: %t; --%s is a flag: %t", name, known, flag, flags[flag])
		}
	}
	flagLike := regexp.MustCompile(`--[a-z%]`)
	for _, dir := range []string{"../../pipeline", "../../sink", "../../codegen", "../../canon"} {
		must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			pkg, _ := filepath.Rel("../..", path)
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || mayNameFlags[pkg] || mayNameFlags[filepath.Dir(pkg)] ||
				strings.HasSuffix(filepath.Dir(pkg), "test") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					text, _ := strconv.Unquote(lit.Value)
					if flagLike.MatchString(text) {
						t.Errorf("%s names a flag: %s", pkg, text)
					}
					for _, m := range field.FindAllStringSubmatch(text, -1) {
						if fieldFlags[m[1]] == "" {
							t.Errorf("%s: no flag is known for %s", pkg, m[0])
						}
					}
				}
				return true
			})
			return nil
		}))
	}
	if got := inFlags("no Config.Workspace: Config.Source.Map code=x. Options.URLColumn."); got != "no --workspace: --map code=x. --url-column." {
		t.Error(got)
	}
}

// hasField reports whether a struct has a field, by the names that lead to it.
func hasField(in reflect.Type, names []string) bool {
	for in.Kind() == reflect.Pointer {
		in = in.Elem()
	}
	f, ok := in.FieldByName(names[0])
	return ok && (len(names) == 1 || hasField(f.Type, names[1:]))
}
