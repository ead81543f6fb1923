package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/judge"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/shorturl"
	"github.com/linkforge/bulk/pipeline/terms"
)

// A run is what the manifest says of how rows were made. It does not change.
type run struct {
	terms     *terms.Terms
	manifest  *manifest.Manifest
	retries   int            // highest salt of a link that the run made
	mostSalt  int            // highest salt that is tried to explain an older one
	workspace []byte         // of rows without one
	base      *shorturl.Base // of short_url; nil: blank
	order     report.Order
	mapping   string        // name of the file; "": there is none
	parts     []string      // of it, as the manifest lists them; nil: it is one file
	noMapping bool          // because the run had too many rejects
	columns   columns.Union // of all inputs, as the run united them
	judge     *judge.Judge
	judged    []judge.Columns // of each input
	coding    coding
	codes     codes
	ruling    ruling
	migration migration
}

// stores reports whether the run stored links, and with them the digest of its manifest.
func (r *run) stores() bool { return r.mapping != "" && !r.terms.DryRun }

// understand reads from a manifest how rows were made. If ok is false, they cannot be made
// again.
func understand(m *manifest.Manifest, found *findings) (r *run, ok bool) {
	ok = true
	bad := func(field string, expected, got any) {
		found.wrong(BadManifest, field, expected, got)
		ok = false
	}
	told, problems := terms.Parse(m)
	for _, p := range problems {
		bad(p.Field, p.Expected, p.Got)
	}
	r = &run{
		terms: told, manifest: m, retries: m.Scheme.MaxRetries, mostSalt: max(m.Scheme.MaxRetries, codegen.DefaultRetries),
		workspace: []byte(told.Workspace), base: shorturl.NewBase(told.BaseURL), order: report.Order(told.ReportOrder),
	}
	r.readScheme(bad)
	r.readInputs(bad)
	r.readRules(bad)
	r.readCodes(bad)
	r.findParams()
	r.setJudge()
	r.readCampaign(bad)
	r.readFiles(told.ReportFormat, bad)
	least, most := r.limited()
	exceeded := told.MaxRejects.Exceeded(least) || r.codes.conflict == legacy.Fail && m.Reasons[outcome.CodeTaken] > 0
	all := m.Counts.Rejected == m.Counts.Read && m.Counts.Read > 0 // earlier versions wrote a mapping then
	rows := m.Inputs.Rows()
	unexpected := told.ExpectRows != 0 && told.ExpectRows != rows
	if r.mapping != "" && unexpected {
		found.wrong(BadManifest, "options.expect_rows", rows, told.ExpectRows)
	}
	if r.mapping != "" && exceeded || r.noMapping && !exceeded && !all && !unexpected && !told.MaxRejects.Exceeded(most) {
		found.wrong(BadManifest, "options.max_rejects", "a limit that the rejects exceed if, and only if, there is no mapping", told.MaxRejects.String())
	}
	return r, ok
}

// setJudge has rows judged as the run did.
func (r *run) setJudge() {
	r.judge = r.terms.Judge(r.manifest.AsOf)
	for i := range r.manifest.Inputs {
		in := &r.manifest.Inputs[i]
		c := judge.Columns{Input: string(in.Name), Names: texts(in.Columns)}
		if r.ruling.params != nil {
			c.Params = r.ruling.params[i]
		}
		if along := r.migration.along; along != nil && along[i] != nil {
			c.Hygiene = along[i].Hygiene()
		}
		r.judged = append(r.judged, c)
	}
}

// readInputs unites the columns of the inputs, and calls bad with what no run writes of
// inputs.
func (r *run) readInputs(bad func(field string, expected, got any)) {
	read := int64(0)
	for i, in := range r.manifest.Inputs {
		if in.Records < 0 || in.Records > mostRecords-read {
			bad(fmt.Sprintf("inputs[%d].records", i), "0 to 2^43 of all inputs together", in.Records)
			continue
		}
		read += in.Records
		if in.BlankRows < 0 || in.BlankRows > in.Records {
			bad(fmt.Sprintf("inputs[%d].blank_rows", i), fmt.Sprint("0 to ", in.Records), in.BlankRows)
		}
		if i > 0 && in.Name <= r.manifest.Inputs[i-1].Name {
			bad(fmt.Sprintf("inputs[%d].name", i), "a name after "+r.manifest.Inputs[i-1].Name, in.Name)
		}
		r.columns.Add(texts(in.Columns), func(c int) bool {
			name := in.Columns[c]
			return !slices.Contains(in.URLColumns, name) && (in.WorkspaceColumn == nil || *in.WorkspaceColumn != name) && !slices.Contains(in.LeftOut, name)
		})
	}
}

// readFiles finds the mapping, and calls bad unless the files are those of a run. A run
// that had too many rejects lists these alone.
func (r *run) readFiles(format string, bad func(field string, expected, got any)) {
	var names []string
	var files manifest.Files
	files, r.parts = r.manifest.Reports()
	for _, f := range files {
		names = append(names, f.Name)
	}
	all := []string{report.Format(format).FileName(), manifest.CollisionsName, manifest.RejectsName}
	_, err := report.ParseFormat(format)
	switch {
	case err == nil && slices.Equal(names, all):
		r.mapping = all[0]
	case slices.Equal(names, all[2:]):
		r.noMapping = true
	default:
		bad("files", strings.Join(all, " "), strings.Join(names, " "))
	}
}

// inputNumbers are the numbers of the inputs by their names in a report.
type inputNumbers map[string]int

// inputNumbers returns those of a report that writes names as text gives them.
func (r *run) inputNumbers(text func(name string) string) inputNumbers {
	numbers := make(inputNumbers, len(r.manifest.Inputs))
	for i, in := range r.manifest.Inputs {
		numbers[text(string(in.Name))] = i
	}
	return numbers
}

// of returns the number of the input that a report names; -1: it is unknown.
func (n inputNumbers) of(name string) int {
	if i, ok := n[name]; ok {
		return i
	}
	return -1
}

// texts returns the names of columns.
func texts(names []manifest.Text) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = string(name)
	}
	return list
}

// asIs is how rejects.csv writes a name: as its bytes.
func asIs(name string) string { return name }
