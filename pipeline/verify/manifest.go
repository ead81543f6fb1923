package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
)

// wrong makes a finding of a field of the manifest.
func (v *verifier) wrong(kind Kind, field string, expected, found any) {
	v.fault(manifest.Name, 0).wrong(kind, field, fmt.Sprint(expected), fmt.Sprint(found))
}

// settle takes from the manifest how rows were made, and reports whether it says
// enough to make them again.
func (v *verifier) settle() bool {
	m, ok := v.manifest, true
	bad := func(field string, expected, found any) {
		v.wrong(BadManifest, field, expected, found)
		ok = false
	}
	o := m.Options
	text := func(name string) string { return string(manifest.Option[manifest.Text](o, name)) }
	v.result.DryRun = manifest.Option[bool](o, "dry_run")
	v.run = runOptions{
		profile: canon.Profile{MaxLength: int(manifest.Option[int64](o, "max_url_length"))}, retries: m.Scheme.MaxRetries,
		mostSalt: max(m.Scheme.MaxRetries, codegen.DefaultRetries), workspace: []byte(text("workspace")),
		excelSafe: manifest.Option[bool](o, "excel_safe"), carry: manifest.Option[bool](o, "carry"), order: report.SortOrder,
	}
	v.run.profile.KeepUserinfo = m.Profile == (canon.Profile{KeepUserinfo: true}).Name()
	v.settleRules(bad)
	var err error
	if order := text("report_order"); order != "" { // earlier versions had one order, and did not say
		if v.run.order, err = report.ParseOrder(order); err != nil {
			bad("options.report_order", "sort or input", order)
		}
	}
	if base := text("base_url"); base != "" {
		v.run.base = []byte(strings.TrimRight(base, "/") + "/")
	}
	v.settleInputs(bad)
	if !v.settleFiles(text("report_format")) {
		return false
	}
	limit, err := manifest.ParseMaxRejects(text("max_rejects"))
	if exceeded := err == nil && limit.Exceeded(m.Counts); exceeded != v.result.NoMapping {
		v.wrong(BadManifest, "options.max_rejects", "a limit that the rejects exceed if, and only if, there is no mapping", text("max_rejects"))
	}
	return ok
}

// settleRules checks profile and scheme, and makes the scheme.
func (v *verifier) settleRules(bad func(field string, expected, found any)) {
	m, profile := v.manifest, v.run.profile
	if m.Profile != profile.Name() {
		bad("profile", profile.Name(), m.Profile)
	}
	if profile.Validate() != nil {
		bad("options.max_url_length", "0 to 8192", profile.MaxLength)
	}
	if m.Scheme.Name != codegen.Name {
		bad("scheme.name", codegen.Name, m.Scheme.Name)
	}
	var err error
	if v.run.scheme, err = codegen.New(m.Scheme.CodeLength); err != nil {
		bad("scheme.code_length", "1 to 24", m.Scheme.CodeLength)
	}
	if m.Scheme.MaxRetries < 0 || m.Scheme.MaxRetries > codegen.MostRetries {
		bad("scheme.max_retries", fmt.Sprint("0 to ", codegen.MostRetries), m.Scheme.MaxRetries)
	}
}

// settleInputs makes room to account for the rows of each input, and calls bad with
// what no run writes of inputs.
func (v *verifier) settleInputs(bad func(field string, expected, found any)) {
	read := int64(0)
	for i, in := range v.manifest.Inputs {
		if in.Records < 0 || in.Records > mostRecords-read {
			bad(fmt.Sprintf("inputs[%d].records", i), "0 to 2^43 of all inputs together", in.Records)
			continue
		}
		read += in.Records
		if i > 0 && in.Name <= v.manifest.Inputs[i-1].Name {
			bad(fmt.Sprintf("inputs[%d].name", i), "a name after "+v.manifest.Inputs[i-1].Name, in.Name)
		}
		v.columns.Add(texts(in.Columns), func(c int) bool {
			name := in.Columns[c]
			return slices.Contains(in.URLColumns, name) || in.WorkspaceColumn != nil && *in.WorkspaceColumn == name
		})
		v.seen = append(v.seen, newRowSet(in.Records))
		v.rejected = append(v.rejected, newRowSet(in.Records))
		v.repeated = append(v.repeated, newRowSet(in.Records))
	}
}

// settleFiles checks that the manifest lists the files of a run. A run
// that had too many rejects lists these alone.
func (v *verifier) settleFiles(format string) bool {
	var names []string
	for _, f := range v.manifest.Files {
		names = append(names, f.Name)
	}
	all := []string{report.Format(format).FileName(), manifest.CollisionsName, manifest.RejectsName}
	_, err := report.ParseFormat(format)
	switch {
	case err == nil && slices.Equal(names, all):
		v.mapping = all[0]
	case slices.Equal(names, all[2:]):
		v.result.NoMapping = true
	default:
		v.wrong(BadManifest, "files", strings.Join(all, " "), strings.Join(names, " "))
		return false
	}
	return true
}

// inputNumbers returns the numbers of the inputs by their names, which a report
// writes as text gives them.
func (v *verifier) inputNumbers(text func(name string) string) map[string]int {
	numbers := make(map[string]int, len(v.manifest.Inputs))
	for i, in := range v.manifest.Inputs {
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
