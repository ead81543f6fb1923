package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/linkforge/bulk/"

// layers lists, for each package, what of this module it may import, from the bottom up.
// Values flow one way: cmd, pipeline, the stages emit, remove, settle and intake, then what they use.
var layers = map[string][]string{
	"canon":                  {},
	"codegen":                {},
	"pipeline/assign":        {}, // also for use in a distributed runner
	"pipeline/fsys":          {},
	"pipeline/fsys/fsystest": {"pipeline/fsys"},
	"pipeline/shorturl":      {"canon", "codegen"},
	"pipeline/outcome":       {"pipeline/legacy"},
	"pipeline/legacy":        {}, // knows no URL
	"pipeline/charset":       {},
	"pipeline/columnar":      {},                // what source must know of hostile files
	"pipeline/extsort":       {"pipeline/fsys"}, // knows no URL
	"pipeline/packed":        {},
	"pipeline/topk":          {},
	"pipeline/profile":       {"codegen"},
	"pipeline/attrs":         {"canon", "pipeline/profile"}, // of canon how bytes become text
	"pipeline/hygiene":       {"pipeline/shorturl", "canon", "codegen", "pipeline/legacy", "pipeline/profile"},
	"pipeline/rules":         {"pipeline/outcome", "pipeline/profile"},
	"pipeline/columns":       {"canon", "codegen", "pipeline/profile"}, // of canon how bytes become text
	"pipeline/campaign":      {"canon"},                                // also for use in a distributed runner
	"pipeline/source":        {"pipeline/charset", "pipeline/columnar", "pipeline/columns", "pipeline/fsys", "pipeline/profile"},
	"pipeline/along":         {"pipeline/attrs", "pipeline/columns", "pipeline/hygiene", "pipeline/manifest", "pipeline/profile", "pipeline/record", "pipeline/terms"},
	"pipeline/judge":         {"pipeline/campaign", "canon", "codegen", "pipeline/hygiene", "pipeline/legacy", "pipeline/outcome", "pipeline/rules"}, // also for use in a distributed runner
	"pipeline/terms":         {"pipeline/campaign", "canon", "pipeline/charset", "pipeline/hygiene", "pipeline/judge", "pipeline/legacy", "pipeline/manifest", "pipeline/rules"},
	"pipeline/manifest":      {"pipeline/fsys"},
	"pipeline/outdir":        {"pipeline/fsys", "pipeline/manifest"},
	"pipeline/report":        {"pipeline/shorturl", "canon", "codegen", "pipeline/legacy", "pipeline/outcome", "pipeline/rules", "pipeline/terms"},
	"pipeline/readback":      {"canon", "pipeline/columns", "pipeline/fsys", "pipeline/manifest", "pipeline/outcome", "pipeline/report", "pipeline/source", "pipeline/terms"},
	"pipeline/survey":        {"pipeline/manifest", "pipeline/outcome", "pipeline/readback", "pipeline/rules", "pipeline/terms", "pipeline/topk"},
	"pipeline/record":        {"codegen", "pipeline/legacy", "pipeline/outcome", "pipeline/packed", "pipeline/rules"}, // also for use in a distributed runner

	"pipeline/campaign/campaigntest": {},
	"internal/crash":                 {},
	"internal/quick":                 {},

	"sink":                 {},
	"sink/sqlite":          {"sink"},
	"sink/postgres":        {"sink"},
	"sink/postgres/pgtest": {"internal/quick"},
	"sink/sinktest":        {"sink", "codegen"},

	"pipeline/intake": {"pipeline/shorturl", "pipeline/campaign", "canon", "codegen", "pipeline/along", "pipeline/claim", "pipeline/columns", "pipeline/extsort", "pipeline/judge", "pipeline/legacy", "pipeline/manifest", "pipeline/outcome", "pipeline/packed", "pipeline/profile", "pipeline/record", "pipeline/rules", "pipeline/source", "pipeline/terms"},
	"pipeline/claim":  {"codegen", "pipeline/extsort", "pipeline/legacy", "pipeline/packed", "pipeline/record", "pipeline/rules", "sink"},
	"pipeline/settle": {"codegen", "pipeline/assign", "pipeline/claim", "pipeline/extsort", "pipeline/legacy", "pipeline/outcome", "pipeline/packed", "pipeline/record", "pipeline/rules", "sink"},
	"pipeline/emit":   {"pipeline/campaign", "canon", "codegen", "pipeline/claim", "pipeline/extsort", "pipeline/intake", "pipeline/legacy", "pipeline/manifest", "pipeline/outcome", "pipeline/packed", "pipeline/record", "pipeline/report", "pipeline/rules", "pipeline/settle", "sink"},
	"pipeline/remove": {"canon", "codegen", "pipeline/columns", "pipeline/extsort", "pipeline/intake", "pipeline/legacy", "pipeline/outcome", "pipeline/packed", "pipeline/profile", "pipeline/record", "pipeline/report", "pipeline/rules", "pipeline/source", "sink"},
	"pipeline/stage":  {"codegen", "pipeline/assign", "pipeline/columns", "pipeline/emit", "pipeline/estimate", "pipeline/extsort", "pipeline/intake", "pipeline/legacy", "pipeline/manifest", "pipeline/outcome", "pipeline/outdir", "pipeline/packed", "pipeline/record", "pipeline/report", "pipeline/settle", "pipeline/shorturl", "pipeline/source", "pipeline/terms", "sink"}, // for any scheduler or engine
	"pipeline/load":   {"codegen", "pipeline/emit", "pipeline/manifest", "pipeline/outcome", "pipeline/readback", "pipeline/terms", "sink"},
	"pipeline": {"pipeline/campaign", "canon", "codegen", "pipeline/along", "pipeline/columns", "pipeline/emit", "pipeline/extsort", "pipeline/fsys", "pipeline/hygiene", "pipeline/intake", "pipeline/judge", "pipeline/legacy", "pipeline/load", "pipeline/manifest", "pipeline/outcome",
		"pipeline/outdir", "pipeline/profile", "pipeline/record", "pipeline/remove", "pipeline/report", "pipeline/rules", "pipeline/settle", "pipeline/shorturl", "pipeline/source", "pipeline/stage", "sink", "pipeline/terms"},

	"pipeline/verify":   {"pipeline/shorturl", "pipeline/campaign", "canon", "codegen", "pipeline/along", "pipeline/columns", "pipeline/extsort", "pipeline/fsys", "pipeline/hygiene", "pipeline/judge", "pipeline/legacy", "pipeline/manifest", "pipeline/outcome", "pipeline/packed", "pipeline/profile", "pipeline/readback", "pipeline/record", "pipeline/report", "pipeline/rules", "pipeline/source", "sink", "pipeline/terms"},
	"pipeline/diff":     {"pipeline/campaign", "codegen", "pipeline/columns", "pipeline/extsort", "pipeline/fsys", "pipeline/legacy", "pipeline/manifest", "pipeline/outcome", "pipeline/readback", "pipeline/packed", "pipeline/record", "pipeline/report", "pipeline/rules", "pipeline/source", "pipeline/terms"},
	"pipeline/explain":  {"canon", "codegen", "pipeline/manifest", "pipeline/outcome", "pipeline/rules", "sink"},
	"pipeline/estimate": {"codegen"},
	"pipeline/page":     {"codegen", "pipeline/account", "pipeline/estimate", "pipeline/hygiene", "pipeline/manifest", "pipeline/survey", "pipeline/topk"},
	"pipeline/account":  {"canon", "pipeline/hygiene", "pipeline/legacy", "pipeline/manifest", "pipeline/outcome", "pipeline/rules", "pipeline/terms"}, // knows no medium

	"cmd/bulk": {"internal/crash", "pipeline/campaign", "canon", "pipeline/charset", "codegen", "pipeline", "pipeline/account", "pipeline/columns", "pipeline/verify", "pipeline/diff", "pipeline/explain", "pipeline/estimate", "pipeline/hygiene", "pipeline/legacy", "pipeline/manifest",
		"pipeline/outcome", "pipeline/outdir", "pipeline/page", "pipeline/profile", "pipeline/readback", "pipeline/report", "pipeline/survey", "pipeline/rules", "pipeline/source", "pipeline/stage", "sink", "sink/sqlite", "sink/postgres"},
}

// pure packages know no files, no stores and no goroutines: they import nothing else.
var pure = map[string]string{
	"canon":             "bytes cmp encoding/binary fmt golang.org/x/net/idna golang.org/x/text/unicode/norm math math/bits net/netip slices strconv strings unicode unicode/utf8",
	"codegen":           "bytes cmp crypto/aes crypto/cipher crypto/hmac crypto/sha256 crypto/subtle encoding encoding/binary encoding/hex errors fmt github.com/cespare/xxhash/v2 hash io maps math/bits slices strconv strings unicode unicode/utf8",
	"pipeline/account":  "cmp fmt maps slices strconv strings time " + module + "canon " + module + "pipeline/hygiene " + module + "pipeline/legacy " + module + "pipeline/manifest " + module + "pipeline/outcome " + module + "pipeline/rules" + " " + module + "pipeline/terms",
	"pipeline/assign":   "bytes context errors",
	"pipeline/attrs":    "bytes fmt strconv time " + module + "canon " + module + "pipeline/profile",
	"pipeline/campaign": "bytes cmp encoding/json errors fmt go.yaml.in/yaml/v3 hash/maphash io maps math regexp slices strings unicode unicode/utf8 " + module + "canon",
	"pipeline/charset":  "fmt golang.org/x/text/encoding/charmap golang.org/x/text/transform slices strconv strings",
	"pipeline/columns":  "bytes encoding/json fmt math slices strconv strings unicode " + module + "canon " + module + "codegen " + module + "pipeline/profile",
	"pipeline/hygiene":  "bytes fmt iter maps math/bits net/netip regexp slices strings time unicode unicode/utf8 " + module + "canon " + module + "codegen " + module + "pipeline/legacy " + module + "pipeline/profile" + " " + module + "pipeline/shorturl",
	"pipeline/judge":    "bytes unicode/utf8 " + module + "canon " + module + "codegen " + module + "pipeline/campaign " + module + "pipeline/hygiene " + module + "pipeline/legacy " + module + "pipeline/outcome " + module + "pipeline/rules",
	"pipeline/legacy":   "bufio bytes cmp fmt io regexp strings unicode/utf8",
	"pipeline/outcome":  "fmt strconv strings unicode/utf8 " + module + "pipeline/legacy",
	"pipeline/packed":   "bytes encoding/binary",
	"pipeline/page":     "bytes cmp crypto/sha256 embed encoding/base64 fmt html/template io maps math net/url slices strconv strings time unicode/utf8 " + module + "codegen " + module + "pipeline/account " + module + "pipeline/estimate " + module + "pipeline/hygiene " + module + "pipeline/manifest " + module + "pipeline/survey " + module + "pipeline/topk",
	"pipeline/profile":  "bytes cmp encoding/json slices strconv strings time unicode " + module + "codegen",
	"pipeline/shorturl": "bytes strconv strings " + module + "canon " + module + "codegen",
	"pipeline/record":   "bytes cmp encoding/binary math/bits slices sync sync/atomic " + module + "codegen " + module + "pipeline/legacy " + module + "pipeline/outcome " + module + "pipeline/packed " + module + "pipeline/rules",
	"pipeline/topk":     "cmp crypto/sha256 slices strings",
	"pipeline/terms":    "bytes crypto/sha256 encoding/hex errors maps slices strings time " + module + "canon " + module + "pipeline/campaign " + module + "pipeline/charset " + module + "pipeline/hygiene " + module + "pipeline/judge " + module + "pipeline/legacy " + module + "pipeline/manifest " + module + "pipeline/rules",
	"pipeline/rules":    "bytes cmp fmt math/bits strconv strings time unicode/utf8 " + module + "pipeline/outcome " + module + "pipeline/profile",
}

// drivers may only be imported by the packages beside them.
var drivers = map[string]string{
	"modernc.org/sqlite":       "sink/sqlite",
	"github.com/jackc/pgx":     "sink/postgres sink/postgres/pgtest",
	"github.com/parquet-go":    "pipeline/columnar pipeline/source pipeline/report",
	"github.com/spf13":         "cmd/bulk",
	"go.yaml.in/":              "cmd/bulk pipeline/campaign",
	"github.com/prometheus/":   "cmd/bulk",
	"golang.org/x/net":         "canon",
	"github.com/klauspost":     "pipeline/columnar pipeline/source",
	"github.com/andybalholm":   "pipeline/columnar",
	"github.com/pierrec":       "pipeline/columnar",
	"github.com/schollz":       "cmd/bulk",
	"github.com/rogpeppe":      "",
	"pgregory.net/rapid":       "",
	"github.com/apache/arrow/": "pipeline/columnar pipeline/source pipeline/report pipeline/readback",
}

func TestImports(t *testing.T) {
	gone := maps.Clone(layers)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "testdata" || name == "benchmarks" || name != ".." && strings.HasPrefix(name, ".")) {
			if path != "../.." {
				return filepath.SkipDir
			}
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != "../.." {
			return filepath.SkipDir // another module
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		pkg, _ := filepath.Rel("../..", filepath.Dir(path))
		delete(gone, pkg)
		checkImports(t, path, pkg)
		return nil
	})
	if err != nil || len(gone) > 0 {
		t.Fatalf("packages that are not there: %v; %v", slices.Sorted(maps.Keys(gone)), err)
	}
}

func checkImports(t *testing.T, path, pkg string) {
	allowed, known := layers[pkg]
	if !known {
		t.Errorf("%s: package %s is not in the layers", path, pkg)
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	must(t, err)
	others, isPure := pure[pkg]
	ast.Inspect(file, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.GoStmt, *ast.ChanType:
			if isPure {
				t.Errorf("%s: %s is pure and must have no goroutines", path, pkg)
			}
		}
		return true
	})
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if own, ok := strings.CutPrefix(imported, module); ok && !slices.Contains(allowed, own) {
			t.Errorf("%s: %s must not import %s", path, pkg, own)
		}
		if isPure && !slices.Contains(strings.Fields(others), imported) {
			t.Errorf("%s: %s is pure and must not import %s", path, pkg, imported)
		}
		for driver, users := range drivers {
			if strings.HasPrefix(imported, driver) && !slices.Contains(strings.Fields(users), pkg) {
				t.Errorf("%s: only %q may import %s", path, users, driver)
			}
		}
	}
}

// Each check of package verify takes what it needs: none of its types has more than 20 fields, with
// those of types that it embeds, nor has methods of another one.
func TestVerifyTypesAreSmall(t *testing.T) {
	paths, err := filepath.Glob("../../pipeline/verify/*.go")
	must(t, err)
	paths = slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
	structs, methods := map[string]*ast.StructType{}, map[string]int{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		must(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					methods[typeName(n.Recv.List[0].Type)]++
				}
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					structs[n.Name.Name] = s
				}
			}
			return true
		})
	}
	if len(structs) < 30 || methods["run"] == 0 {
		t.Fatalf("%d types and %d methods of run: this test does not see them", len(structs), methods["run"])
	}
	var fields func(name string) int
	fields = func(name string) (n int) {
		for _, f := range structs[name].Fields.List {
			if n += max(len(f.Names), 1); len(f.Names) > 0 {
				continue
			}
			embedded := typeName(f.Type)
			if structs[embedded] != nil {
				n += fields(embedded)
			}
			if methods[embedded] > 0 {
				t.Errorf("%s embeds %s, which has methods", name, embedded)
			}
		}
		return n
	}
	for name := range structs {
		if n := fields(name); n > 20 {
			t.Errorf("%s has %d fields", name, n)
		}
	}
}

// typeName returns the name of a type of the package, or of a pointer to one; "": it is of another.
func typeName(t ast.Expr) string {
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	name, _ := t.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}
