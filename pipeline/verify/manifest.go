package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/judge"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/report"
)

// A run is what the manifest says of how rows were made. It does not change.
type run struct {
	manifest  *manifest.Manifest
	profile   canon.Profile
	retries   int          // highest salt of a link that the run made
	mostSalt  int          // highest salt that is tried to explain an older one
	workspace []byte       // of rows without one
	base      *report.Base // of short_url; nil: blank
	excelSafe bool
	carry     bool
	dryRun    bool
	order     report.Order
	mapping   string        // name of the file; "": there is none
	noMapping bool          // because the run had too many rejects
	columns   columns.Union // of all inputs, as the run united them
	judge     *judge.Judge
	judged    []judge.Columns // of each input
	coding
	codes
	ruling
	migration
}

// stores reports whether the run stored links, and with them the digest of its manifest.
func (r *run) stores() bool { return r.mapping != "" && !r.dryRun }

// understand reads from a manifest how rows were made. If ok is false, they cannot be made
// again.
func understand(m *manifest.Manifest, found *findings) (r *run, ok bool) {
	ok = true
	bad := func(field string, expected, got any) {
		found.wrong(BadManifest, field, expected, got)
		ok = false
	}
	text := func(name string) string { return string(manifest.Option[manifest.Text](m.Options, name)) }
	is := func(name string) bool { return manifest.Option[bool](m.Options, name) }
	r = &run{
		manifest: m, retries: m.Scheme.MaxRetries, mostSalt: max(m.Scheme.MaxRetries, codegen.DefaultRetries),
		workspace: []byte(text("workspace")), excelSafe: is("excel_safe"), carry: is("carry"), dryRun: is("dry_run"), order: report.SortOrder,
	}
	var err error
	if r.profile, err = canon.ParseProfile(m.Profile); err != nil {
		bad("profile", "the name of a profile", m.Profile)
	}
	r.profile.MaxLength = int(manifest.Option[int64](m.Options, "max_url_length"))
	if list := r.profile.StripParams.String(); text("strip_params") != list {
		bad("options.strip_params", list, text("strip_params"))
	}
	if is("keep_fragment") != r.profile.KeepFragment {
		bad("options.keep_fragment", r.profile.KeepFragment, is("keep_fragment"))
	}
	if order := text("report_order"); order != "" { // earlier versions had only one order
		if r.order, err = report.ParseOrder(order); err != nil {
			bad("options.report_order", "sort or input", order)
		}
	}
	r.base = report.NewBase(text("base_url"))
	if r.profile.AssumeScheme, err = canon.ParseAssumedScheme(text("assume_scheme")); err != nil {
		bad("options.assume_scheme", "http or https", text("assume_scheme"))
	}
	if r.profile.Validate() != nil {
		bad("options.max_url_length", "0 to 8192", r.profile.MaxLength)
	}
	r.readScheme(bad)
	r.readInputs(bad)
	r.readRules(bad)
	r.readCodes(bad)
	r.findParams()
	r.setJudge()
	r.readFiles(text("report_format"), bad)
	limit, err := manifest.ParseMaxRejects(text("max_rejects"))
	exceeded := err == nil && limit.Exceeded(m.Counts) || r.conflict == legacy.Fail && m.Reasons[outcome.CodeTaken] > 0
	all := m.Counts.Rejected == m.Counts.Read && m.Counts.Read > 0 // earlier versions wrote a mapping then
	if r.mapping != "" && exceeded || r.noMapping && !exceeded && !all {
		found.wrong(BadManifest, "options.max_rejects", "a limit that the rejects exceed if, and only if, there is no mapping", text("max_rejects"))
	}
	return r, ok
}

// setJudge has rows judged as the run did.
func (r *run) setJudge() {
	r.judge = &judge.Judge{Profile: r.profile, Rules: r.flags}
	if r.mode != legacy.Off {
		r.judge.Codes = &judge.Codes{Mode: r.mode, Rules: r.rules, Pattern: r.pattern}
	}
	if r.terms != nil {
		r.judge.Hygiene, r.judge.ByDomain = &r.terms.Hygiene, r.terms.ByDomain()
	}
	for i := range r.manifest.Inputs {
		in := &r.manifest.Inputs[i]
		c := judge.Columns{Input: string(in.Name), Names: texts(in.Columns)}
		if r.params != nil {
			c.Params = r.params[i]
		}
		if r.along != nil && r.along[i] != nil {
			c.Hygiene = r.along[i].Hygiene()
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
	for _, f := range r.manifest.Files {
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

// inputNumbers returns the numbers of the inputs by their names, which a report
// writes as text gives them.
func (r *run) inputNumbers(text func(name string) string) map[string]int {
	numbers := make(map[string]int, len(r.manifest.Inputs))
	for i, in := range r.manifest.Inputs {
		numbers[text(string(in.Name))] = i
	}
	return numbers
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
