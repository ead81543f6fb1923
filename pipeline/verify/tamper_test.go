package verify_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/verify"
	"github.com/linkforge/bulk/sink"
)

// lines splits a CSV of the run into its records, header first.
func lines(t *testing.T, name string) []string {
	t.Helper()
	data := must(os.ReadFile(filepath.Join("out", name)))
	var list []string
	for len(data) > 0 {
		end, quotes := 0, 0
		for ; data[end] != '\n' || quotes%2 == 1; end++ {
			if data[end] == '"' {
				quotes++
			}
		}
		list = append(list, string(data[:end+1]))
		data = data[end+1:]
	}
	return list
}

func put(t *testing.T, name string, list []string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join("out", name), []byte(strings.Join(list, "")), 0o666); err != nil {
		t.Fatal(err)
	}
	fixDigests(t)
}

// tampered is a run with collisions and existing links and, if the codes have one
// character, exhausted rows. It returns the store.
func tampered(t *testing.T, format report.Format, order report.Order, length int) sink.Store {
	cfg := base(length)
	cfg.MaxRetries, cfg.ReportOrder = 4, order
	cfg.Store = openStore(t, t.TempDir())
	rows := 500 * length * length
	job(t, cfg, map[string]string{"a.csv": table(5, rows/8, "url,team,note")})
	cfg.ReportFormat = format
	job(t, cfg, map[string]string{"a.csv": table(5, rows/10, "url,team,note"), "b.csv": table(1, rows, "url,team,note")})
	clean(t, verify.Config{})
	if m := readManifest(t); m.Counts.Existing == 0 || length == 1 && m.Reasons["code_space_exhausted"] == 0 || m.Files[1].Rows == 0 {
		t.Fatalf("nothing to tamper with: %+v", m)
	}
	return cfg.Store
}

// inOrders runs a test on mappings of both orders.
func inOrders(t *testing.T, test func(t *testing.T, order report.Order)) {
	for _, order := range []report.Order{report.SortOrder, report.InputOrder} {
		t.Run("order="+string(order), func(t *testing.T) { test(t, order) })
	}
}

// apart is how far some n of the lines lie apart; -short: three of them.
func apart[T any](lines []T, n int) int {
	if testing.Short() {
		n = 3
	}
	return 1 + len(lines)/n
}

// Records removed, doubled or swapped are found although the digests and the
// numbers of rows are made to fit.
func TestVerifyRecords(t *testing.T) { inOrders(t, testVerifyRecords) }

func testVerifyRecords(t *testing.T, order report.Order) {
	tampered(t, report.CSV, order, 1)
	for file, wants := range map[string][3]verify.Kind{
		"mapping.csv":    {verify.RowMissing, verify.RowRepeated, verify.BadOrder},
		"rejects.csv":    {verify.RowMissing, verify.RowRepeated, verify.BadOrder},
		"collisions.csv": {verify.Uncollided, verify.BadOrder, verify.BadOrder},
	} {
		good := lines(t, file)
		for i := 1; i < len(good); i += apart(good, 12) {
			next := 1 + i%(len(good)-1)
			swapped := slices.Clone(good)
			swapped[i], swapped[next] = swapped[next], swapped[i]
			for how, bad := range [][]string{slices.Delete(slices.Clone(good), i, i+1), slices.Insert(slices.Clone(good), i, good[i]), swapped} {
				put(t, file, bad)
				v := verified(t, verify.Config{})
				if !slices.Contains(kinds(v), wants[how]) {
					t.Errorf("%s: record %d, way %d: found %v, want %s", file, i, how, kinds(v), wants[how])
				}
				if how < 2 && !slices.Contains(kinds(v), verify.BadCount) {
					t.Errorf("%s: record %d, way %d: the number of rows is not found", file, i, how)
				}
			}
		}
		put(t, file, good)
	}
	clean(t, verify.Config{})
}

// A byte changed in any column of a report in CSV is found, and named, although
// the digests are made to fit; in the owner of a code, which the store may have from
// a run with more retries, with the store. What only the input can tell is left out:
// offsets, cells that are carried, and details and raw lines of rows that were not
// split.
func TestVerifyBytes(t *testing.T) { inOrders(t, testVerifyBytes) }

func testVerifyBytes(t *testing.T, order report.Order) {
	store := tampered(t, report.CSV, order, 2)
	for file, columns := range map[string]map[int][]verify.Kind{
		"mapping.csv": {
			0: {verify.BadSource, verify.RowMissing}, 1: {verify.RowMissing}, 2: {verify.BadOrder, verify.BadCode}, 3: {verify.BadCanonical},
			4: {verify.BadCanonical}, 5: {verify.BadCode, verify.BadDuplicate, verify.BadSalt}, 6: {verify.BadShortURL},
			7: {verify.Damaged}, 8: {verify.BadCode, verify.BadSalt, verify.BadDuplicate},
		},
		"rejects.csv": {0: {verify.BadSource, verify.RowMissing}, 1: {verify.RowMissing}, 3: {verify.BadReason}, 4: {verify.BadDetail}},
		"collisions.csv": {0: {verify.BadCode, verify.BadCollision, verify.Uncollided}, 1: {verify.BadCode, verify.BadCollision, verify.Uncollided},
			2: {verify.BadCode, verify.BadOrder, verify.Uncollided}, 3: {verify.BadCode}, 4: {verify.BadOwner}},
	} {
		good := lines(t, file)
		for column, wants := range columns {
			var fit []int
			for i, line := range good[1:] {
				if cells := cellsOf(line); cells[column] != "" && !strings.Contains(line, "malformed") {
					fit = append(fit, 1+i)
				}
			}
			if len(fit) == 0 {
				t.Errorf("%s: column %d has nothing to change", file, column)
			}
			for n := 0; n < len(fit); n += apart(fit, 6) {
				i := fit[n]
				bad := slices.Clone(good)
				bad[i] = changed(cellsOf(good[i]), column)
				put(t, file, bad)
				cfg := verify.Config{}
				if wants[0] == verify.BadOwner {
					cfg.Store = store
				}
				v := verified(t, cfg)
				if !slices.ContainsFunc(wants, func(k verify.Kind) bool { return v.Kinds[k] > 0 }) {
					t.Errorf("%s: %q made %q: found %v, want %v", file, good[i], bad[i], kinds(v), wants)
				}
			}
		}
		put(t, file, good)
	}
}

// Another row than the first in the sort that says it is the link of its URL is
// found, in whatever order the mapping is.
func TestVerifyLinks(t *testing.T) { inOrders(t, testVerifyLinks) }

func testVerifyLinks(t *testing.T, order report.Order) {
	tampered(t, report.CSV, order, 2)
	good := lines(t, "mapping.csv")
	type url struct{ source, workspace, canonical string }
	links, swaps, most := map[url][]int{}, 0, 10
	if testing.Short() {
		most = 5
	}
	for i, line := range good[1:] {
		if cells := strings.Split(line, ","); !strings.Contains(line, `"`) {
			key := url{cells[0], cells[2], cells[4]}
			links[key] = append(links[key], 1+i)
		}
	}
	for _, at := range links {
		link := slices.IndexFunc(at, func(i int) bool { return strings.Contains(good[i], ",created,") })
		if link < 0 || len(at) == 1 || swaps == most {
			continue
		}
		swaps++
		i, j := at[link], at[(link+1)%len(at)]
		bad := slices.Clone(good)
		bad[i] = strings.Replace(bad[i], ",created,", ",duplicate,", 1)
		bad[j] = strings.Replace(bad[j], ",duplicate,", ",created,", 1)
		put(t, "mapping.csv", bad)
		if v := verified(t, verify.Config{}); v.Kinds[verify.BadOutcome] == 0 {
			t.Errorf("%s instead of %s: found %v", good[j], good[i], kinds(v))
		}
	}
	if swaps == 0 {
		t.Fatal("no URL has two rows")
	}
}

func cellsOf(line string) []string { return must(csv.NewReader(strings.NewReader(line)).Read()) }

// changed returns a line with another byte in the middle of a cell.
func changed(cells []string, column int) string {
	cell := []byte(cells[column])
	at := len(cell) / 2
	switch c := cell[at]; {
	case column == 2 && c == '0':
		cell[at] = '9'
	case c >= '1' && c <= '9':
		cell[at] = '1' + (c-'1'+1)%9
	case c == '0':
		cell[at] = '1'
	case c == 'z':
		cell[at] = 'y'
	default:
		cell[at] = c + 1
	}
	cells[column] = string(cell)
	var line strings.Builder
	w := csv.NewWriter(&line)
	w.Write(cells)
	w.Flush()
	return line.String()
}

// A mapping in a columnar format is tampered with as a whole: it is written anew.
func TestVerifyColumnar(t *testing.T) { inOrders(t, testVerifyColumnar) }

func testVerifyColumnar(t *testing.T, order report.Order) {
	changes := map[string]struct {
		want   verify.Kind
		change func(r *readback.MappingRow)
	}{
		"source":        {verify.BadSource, func(r *readback.MappingRow) { r.Source = "c.csv" }},
		"row":           {verify.RowMissing, func(r *readback.MappingRow) { r.Row.Row++ }},
		"workspace_id":  {verify.BadWorkspace, func(r *readback.MappingRow) { r.Workspace = []byte("a|b") }},
		"original_url":  {verify.BadCanonical, func(r *readback.MappingRow) { r.Original = append(r.Original, 'x') }},
		"canonical_url": {verify.BadCanonical, func(r *readback.MappingRow) { r.Canonical = append(r.Canonical, 'x') }},
		"short_code":    {verify.BadCode, func(r *readback.MappingRow) { r.Code = []byte("?") }},
		"outcome":       {verify.BadCount, func(r *readback.MappingRow) { r.Outcome = (r.Outcome + 1) % 3 }},
		"salt":          {verify.BadSalt, func(r *readback.MappingRow) { r.Salt += 1 }},
		"removed":       {verify.RowMissing, nil},
	}
	places := []int64{1, 131}
	if testing.Short() {
		places = []int64{131}
	}
	for _, format := range []report.Format{report.Parquet, report.Arrow} {
		tampered(t, format, order, 1)
		path := "out/mapping." + string(format)
		good := must(os.ReadFile(path))
		for name, c := range changes {
			for _, at := range places {
				if err := os.WriteFile(path, good, 0o666); err != nil {
					t.Fatal(err)
				}
				rewrite(t, path, format, at, c.change)
				v := verified(t, verify.Config{})
				repeated := name == "short_code" || name == "salt" // by each duplicate of a link
				if v.Kinds[c.want] == 0 && !(repeated && v.Kinds[verify.BadDuplicate] > 0) {
					t.Errorf("%s, %s of row %d: found %v, want %s", format, name, at, kinds(v), c.want)
				}
			}
		}
		m := readManifest(t)
		m.Options["report_format"], m.Files[0].Name = "csv", "mapping.csv"
		writeManifest(t, m)
		if err := os.WriteFile("out/mapping.csv", good, 0o666); err != nil {
			t.Fatal(err)
		}
		fixDigests(t)
		if v := verified(t, verify.Config{}); fmt.Sprint(kinds(v)) != "[damaged]" || string(v.Findings[0].Found) != string(format) {
			t.Errorf("%s as mapping.csv: found %v", format, v.Findings)
		}
	}
}

// rewrite writes a mapping anew with one row changed, or without it.
func rewrite(t *testing.T, path string, format report.Format, at int64, change func(*readback.MappingRow)) {
	t.Helper()
	m := must(readback.OpenMapping(t.Context(), path, readback.Options{}))
	defer m.Close()
	var out bytes.Buffer
	w := must(report.NewMapping(&out, format, report.MappingOptions{Carried: m.Carried, BaseURL: "https://sho.rt"}))
	b := w.Block()
	for {
		r, err := m.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Number == at {
			if change == nil {
				continue
			}
			change(r)
		}
		b.Append(&r.Row)
	}
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	fixDigests(t)
}

// Every number of the manifest that says something about the files is checked.
func TestVerifyManifest(t *testing.T) {
	tampered(t, report.CSV, report.SortOrder, 1)
	good := *readManifest(t)
	for name, c := range map[string]struct {
		want   verify.Kind
		change func(m *manifest.Manifest)
	}{
		"profile":  {verify.BadManifest, func(m *manifest.Manifest) { m.Profile = "linkforge-2" }},
		"userinfo": {verify.BadReason, func(m *manifest.Manifest) { m.Profile = "linkforge-1+userinfo" }},
		"fragment": {verify.BadManifest, func(m *manifest.Manifest) { m.Profile = "linkforge-1+fragment" }},
		"fragments": {verify.BadCanonical, func(m *manifest.Manifest) {
			m.Profile, m.Options["keep_fragment"] = "linkforge-1+fragment", true
		}},
		"parameters": {verify.BadManifest, func(m *manifest.Manifest) { m.Options["strip_params"] = "a" }},
		"parameter": {verify.BadCanonical, func(m *manifest.Manifest) {
			m.Profile, m.Options["strip_params"] = "linkforge-1+strip(a)", "a"
		}},
		"scheme":     {verify.BadManifest, func(m *manifest.Manifest) { m.Scheme.Name = "x" }},
		"length":     {verify.BadCode, func(m *manifest.Manifest) { m.Scheme.CodeLength = 2 }},
		"fold":       {verify.BadManifest, func(m *manifest.Manifest) { m.Options["fold_case"] = true }},
		"no length":  {verify.BadManifest, func(m *manifest.Manifest) { m.Scheme.CodeLength = 25 }},
		"retries":    {verify.BadSalt, func(m *manifest.Manifest) { m.Scheme.MaxRetries = 0 }},
		"many":       {verify.BadManifest, func(m *manifest.Manifest) { m.Scheme.MaxRetries = 1<<20 + 1 }},
		"base":       {verify.BadShortURL, func(m *manifest.Manifest) { m.Options["base_url"] = "https://sho.ru" }},
		"longest":    {verify.BadCanonical, func(m *manifest.Manifest) { m.Options["max_url_length"] = int64(20) }},
		"order":      {verify.BadOrder, func(m *manifest.Manifest) { m.Options["report_order"] = "input" }},
		"no order":   {verify.BadManifest, func(m *manifest.Manifest) { m.Options["report_order"] = "random" }},
		"carry":      {verify.BadColumns, func(m *manifest.Manifest) { m.Options["carry"] = false }},
		"input":      {verify.BadSource, func(m *manifest.Manifest) { m.Inputs[1].Name = "c.csv" }},
		"inputs":     {verify.BadManifest, func(m *manifest.Manifest) { m.Inputs[0].Name = "c.csv" }},
		"records":    {verify.RowMissing, func(m *manifest.Manifest) { m.Inputs[0].Records++ }},
		"fewer":      {verify.BadSource, func(m *manifest.Manifest) { m.Inputs[0].Records-- }},
		"absurd":     {verify.BadManifest, func(m *manifest.Manifest) { m.Inputs[0].Records = 1 << 62 }},
		"huge":       {verify.RowMissing, func(m *manifest.Manifest) { m.Inputs[0].Records = 1 << 40 }},
		"columns":    {verify.BadColumns, func(m *manifest.Manifest) { m.Inputs[0].Columns[2] = "notes" }},
		"read":       {verify.BadCount, func(m *manifest.Manifest) { m.Counts.Read++ }},
		"created":    {verify.BadCount, func(m *manifest.Manifest) { m.Counts.Created++ }},
		"existing":   {verify.BadCount, func(m *manifest.Manifest) { m.Counts.Existing++ }},
		"duplicate":  {verify.BadCount, func(m *manifest.Manifest) { m.Counts.Duplicate++ }},
		"rejected":   {verify.BadCount, func(m *manifest.Manifest) { m.Counts.Rejected++ }},
		"reasons":    {verify.BadCount, func(m *manifest.Manifest) { m.Reasons["userinfo"]++ }},
		"rows":       {verify.BadCount, func(m *manifest.Manifest) { m.Files[1].Rows++ }},
		"digest":     {verify.FileSum, func(m *manifest.Manifest) { m.Files[2].SHA256 = m.Files[1].SHA256 }},
		"row digest": {verify.RowDigest, func(m *manifest.Manifest) { m.Files[0].RowDigest = "0" }},
		"file":       {verify.BadManifest, func(m *manifest.Manifest) { m.Files = m.Files[:2] }},
		"own digest": {verify.ManifestSum, func(m *manifest.Manifest) { m.Version = "0" }},
	} {
		writeManifest(t, &good)
		digest := digestOf(t, "out/manifest.json")
		m := readManifest(t)
		c.change(m)
		writeManifest(t, m)
		if v := verified(t, verify.Config{ManifestSHA256: digest}); v.Kinds[c.want] == 0 || v.Kinds[verify.ManifestSum] == 0 {
			t.Errorf("%s: found %v, want %s", name, kinds(v), c.want)
		} else if missing := m.Inputs[0].Records - good.Inputs[0].Records; name == "huge" && v.Kinds[verify.RowMissing] != missing {
			t.Errorf("%d rows are missing, not %d", v.Kinds[verify.RowMissing], missing)
		}
	}
}

// Of a reject, too, the place and the form of its cells are checked.
func TestVerifyRejects(t *testing.T) {
	job(t, base(10), map[string]string{"a.csv": "url,team,note\nhttp://a/,x,\nftp://a/,x,\nragged\nftp://b/,x,\n"})
	clean(t, verify.Config{})
	good := lines(t, "rejects.csv")
	for name, c := range map[string]struct {
		line     int
		old, new string
		kind     verify.Kind
		column   string
	}{
		"row past the last":   {3, "a.csv,4,", "a.csv,5,", verify.BadSource, "row"},
		"offset too low":      {1, ",2,27,", ",2,0,", verify.BadOffset, "byte_offset"},
		"offset as before":    {2, ",3,39,", ",3,27,", verify.BadOffset, "byte_offset"},
		"no offset":           {2, ",3,39,", ",3,,", verify.BadOffset, "byte_offset"},
		"raw line and cells":  {2, ",ragged,,,ragged", ",http://c/,,,ragged", verify.BadCells, "raw"},
		"neither":             {2, ",ragged,,,ragged", ",,,,", verify.BadCells, "raw"},
		"raw line of a split": {1, ",ftp://a/,x,,", ",ftp://a/,x,,ragged", verify.BadReason, "reason"},
	} {
		bad := slices.Clone(good)
		if bad[c.line] = strings.Replace(bad[c.line], c.old, c.new, 1); bad[c.line] == good[c.line] {
			t.Fatalf("%s: %q", name, good[c.line])
		}
		put(t, "rejects.csv", bad)
		found := verified(t, verify.Config{}).Findings
		if !slices.ContainsFunc(found, func(f verify.Finding) bool {
			return f.Kind == c.kind && f.File == "rejects.csv" && f.Row == int64(c.line) && string(f.Column) == c.column
		}) {
			t.Errorf("%s: found %+v", name, found)
		}
	}
	put(t, "rejects.csv", append(slices.Clone(good[:3]), `a.csv,"`))
	if v := verified(t, verify.Config{}); v.Kinds[verify.Damaged] != 1 || v.Rejects != 0 {
		t.Errorf("damaged after two rejects: %d rejects, found %+v", v.Rejects, v.Findings)
	}
}

// A mapping that is checked in several stretches is checked where one ends, too.
func TestVerifyStretches(t *testing.T) { inOrders(t, testVerifyStretches) }

func testVerifyStretches(t *testing.T, order report.Order) {
	const stretch = 4096 // rows
	var b strings.Builder
	for i := range stretch + 100 {
		fmt.Fprintf(&b, "http://example.com/%d\n", i%500)
	}
	b.WriteString("ftp://x\n")
	for _, format := range []report.Format{report.CSV, report.Parquet, report.Arrow} {
		job(t, pipeline.Config{Workspace: "demo", CodeLength: 10, ReportOrder: order, ReportFormat: format, Version: "test"}, map[string]string{"a.txt": b.String()})
		clean(t, verify.Config{Inputs: []string{"a.txt"}})
		if format != report.CSV {
			continue
		}
		good := lines(t, "mapping.csv")
		for i := stretch - 1; i <= stretch+1; i++ {
			bad := slices.Clone(good)
			bad[i], bad[i+1] = bad[i+1], bad[i]
			put(t, "mapping.csv", bad)
			if v := verified(t, verify.Config{}); v.Kinds[verify.BadOrder] == 0 {
				t.Errorf("rows %d and %d swapped: found %v", i, i+1, kinds(v))
			}
		}
	}
}

// Reasons and their numbers are listed by name.
func TestVerifyReasons(t *testing.T) {
	job(t, base(10), map[string]string{"a.csv": "url,team,note\nhttp://me@a.example/,x,\nftp://a.example/,x,\nftp://b.example/,x,\nhttp://a.example/,x,\n"})
	m := readManifest(t)
	m.Reasons["userinfo"]++
	writeManifest(t, m)
	f := verified(t, verify.Config{}).Findings
	if len(f) != 1 || f[0].Expected != "unsupported_scheme 2, userinfo 1" || f[0].Found != "unsupported_scheme 2, userinfo 2" {
		t.Errorf("found %+v", f)
	}
}

// The digest of the rows is that of the cells before they were made safe for a
// spreadsheet, also of those that had apostrophes of their own.
func TestVerifyExcelSafe(t *testing.T) { inOrders(t, testVerifyExcelSafe) }

func testVerifyExcelSafe(t *testing.T, order report.Order) {
	cfg := base(10)
	cfg.ExcelSafe, cfg.ReportOrder = true, order
	job(t, cfg, twoInputs())
	for _, change := range [][2]string{{",'=1+1\n", ",''=1+1\n"}, {",''=1+1\n", ",'=1+1\n"}, {",x\n", ",y\n"}} {
		clean(t, verify.Config{})
		good := lines(t, "mapping.csv")
		all := strings.Join(good, "")
		bad := strings.Replace(all, change[0], change[1], 1)
		if bad == all {
			t.Fatalf("no %q", change[0])
		}
		os.WriteFile("out/mapping.csv", []byte(bad), 0o666)
		if v := verified(t, verify.Config{}); v.Kinds[verify.RowDigest] != 1 {
			t.Errorf("%q: found %v", change, kinds(v))
		}
		os.WriteFile("out/mapping.csv", []byte(all), 0o666)
	}
}

// A cell that a spreadsheet would run is found although the digests are made to
// fit, and that of the rows does not change.
func TestVerifyFormulas(t *testing.T) { inOrders(t, testVerifyFormulas) }

func testVerifyFormulas(t *testing.T, order report.Order) {
	cfg := base(1)
	cfg.ExcelSafe, cfg.ReportOrder = true, order
	job(t, cfg, twoInputs())
	for _, c := range []struct{ file, old, new, column string }{
		{"mapping.csv", ",'=1+1\n", ",=1+1\n", "extra"},
		{"mapping.csv", ",'-x,", ",-x,", "workspace_id"},
		{"mapping.csv", ",'\thttp:", ",\thttp:", "original_url"},
		{"collisions.csv", "'-x,", "-x,", "workspace_id"},
	} {
		good := lines(t, c.file)
		i := slices.IndexFunc(good, func(line string) bool { return strings.Contains(line, c.old) })
		if i < 0 {
			t.Fatalf("no %q in %s", c.old, c.file)
		}
		bad := slices.Clone(good)
		bad[i] = strings.Replace(bad[i], c.old, c.new, 1)
		put(t, c.file, bad)
		v := verified(t, verify.Config{Inputs: []string{"a.csv", "b.csv"}})
		if len(v.Findings) != 1 || v.Findings[0].Kind != verify.BadFormula || v.Findings[0].Row != int64(i) || string(v.Findings[0].Column) != c.column {
			t.Errorf("%q in %s: found %+v", c.new, c.file, v.Findings)
		}
		put(t, c.file, good)
		clean(t, verify.Config{})
	}
}

// Whatever lies in the folder in place of a file is told apart, and nothing waits
// for a FIFO. A link to the file is as good as the file. Of one that the manifest
// does not know it is said that nothing vouches for it, which is no fault.
func TestVerifyFolder(t *testing.T) {
	tampered(t, report.CSV, report.SortOrder, 1)
	for _, name := range []string{"mapping.csv", "rejects.csv", "collisions.csv"} {
		path := "out/" + name
		if err := os.Rename(path, "kept"); err != nil {
			t.Fatal(err)
		}
		for what, c := range map[string]struct {
			put  func() error
			want string
		}{
			"folder":           {func() error { return os.Mkdir(path, 0o777) }, "[damaged]"},
			"FIFO":             {func() error { return syscall.Mkfifo(path, 0o666) }, "[damaged]"},
			"link to nothing":  {func() error { return os.Symlink("nothing", path) }, "[file_missing]"},
			"link to the file": {func() error { return os.Symlink("../kept", path) }, "[]"},
		} {
			if err := c.put(); err != nil {
				t.Fatal(err)
			}
			for _, inputs := range [][]string{nil, {"a.csv", "b.csv"}} {
				if v := verified(t, verify.Config{Inputs: inputs}); fmt.Sprint(kinds(v)) != c.want {
					t.Errorf("%s: a %s: found %v, want %s", name, what, kinds(v), c.want)
				}
			}
			os.Remove(path)
		}
		os.Symlink(name, path) // to itself: an error, and no finding
		if _, err := verify.Run(context.Background(), verify.Config{Dir: "out"}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: unreadable: %v", name, err)
		}
		os.Remove(path)
		if err := os.Rename("kept", path); err != nil {
			t.Fatal(err)
		}
	}
	const other = "mapping.\xff" // which JSON cannot have as a string
	os.WriteFile("out/"+other, nil, 0o666)
	os.WriteFile("out/"+manifest.PageName, nil, 0o666) // which is the page of the run
	v := verified(t, verify.Config{})
	if v.Failed() != 0 || len(v.Unexplained) != 1 || v.Unexplained[0].Kind != verify.FileUnlisted || v.Unexplained[0].File != other {
		t.Fatalf("another file: %+v, %+v", v.Findings, v.Unexplained)
	}
	var read verify.Finding
	if err := json.Unmarshal(must(json.Marshal(v.Unexplained[0])), &read); err != nil || read != v.Unexplained[0] {
		t.Errorf("from JSON: %+v, %v", read, err)
	}
}

// The code that a link should have has the length of the one that it has, if it may
// be older than the run.
func TestVerifyCodeOfAnotherLength(t *testing.T) {
	cfg := pipeline.Config{Workspace: "demo", CodeLength: 8, Store: openStore(t, t.TempDir()), Version: "test"}
	list := map[string]string{"a.txt": "http://example.com/\n"}
	job(t, cfg, list)
	cfg.CodeLength = 10
	job(t, cfg, list)
	good := lines(t, "mapping.csv")
	cells := strings.Split(strings.TrimSuffix(good[1], "\n"), ",")
	code := cells[5]
	put(t, "mapping.csv", []string{good[0], changed(cells, 5)})
	f := verified(t, verify.Config{}).Findings
	if len(f) != 1 || f[0].Kind != verify.BadCode || string(f[0].Expected) != code {
		t.Errorf("%q: found %+v", cells, f)
	}
}
