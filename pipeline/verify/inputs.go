package verify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/source"
)

// An inputCheck reads the inputs again.
type inputCheck struct {
	findings *findings
	run      *run
	reports  *reports
	books    *books
	sorts    *sorters
	sums     *sums
	inputs   *inputs
	joins    bool           // only the inputs tell what rows say of their links
	source   source.Options // how inputs are read
	workers  int
}

// check compares every row of the run with what follows from its record of the
// input.
//
// First each side only adds up keyed digests of its rows. If the sums agree, the rows agree,
// with a chance of 2^-64 to be wrong; run is the sum of the run. If they differ, run and inputs are read once more, and
// the parts of all rows are sorted and compared. That is done at once if an input can be read
// only once, or if the run has no mapping, or if a
// row may have become several, or if only the inputs tell what rows say of their links.
func (c *inputCheck) check(ctx context.Context, run uint64) (err error) {
	again := c.run.mapping != "" && !c.joins && !slices.ContainsFunc(c.inputs.paths, onlyOnce) && !c.run.anyMany()
	if again || c.reports.broken.Load() {
		input, err := c.read(ctx, true)
		if err != nil {
			return err
		}
		if c.reports.broken.Load() || !slices.Contains(c.inputs.other, false) || run == input {
			return nil
		}
	}
	c.sums.rows = c.sorts.new(bytes.Compare)
	defer func() { err, c.sums.rows = errors.Join(err, c.sums.rows.Close()), nil }()
	if err := c.fileRun(ctx); err != nil {
		return err
	}
	if _, err := c.read(ctx, !again); err != nil {
		return err
	}
	return c.compareRows(ctx)
}

// onlyOnce reports whether an input is no regular file, so that it can be read only once.
func onlyOnce(path string) bool {
	info, err := os.Stat(path)
	return path == "-" || err == nil && !info.Mode().IsRegular()
}

// read reads the inputs and returns the sum of what the run must have made of each row.
// The first time it also compares the inputs themselves with what the manifest says of them.
func (c *inputCheck) read(ctx context.Context, first bool) (total uint64, err error) {
	limit := c.run.terms.Limit
	left := limit
	hashers := make([]*rowHasher, c.workers) // one set for all inputs, since the sort holds memory for each
	for i := range hashers {
		hashers[i] = c.sums.newHasher()
	}
	for i, path := range c.inputs.paths {
		if limit > 0 && left <= 0 {
			if m := &c.run.manifest.Inputs[i]; first && m.Records != 0 {
				c.findings.fault(string(m.Name), 0).wrong(InputSum, "records", strconv.FormatInt(m.Records, 10), "0")
			}
			continue
		}
		in, err := c.open(ctx, path, i)
		if err != nil {
			return 0, err
		}
		if in == nil {
			left -= c.run.manifest.Inputs[i].Records
			continue
		}
		if limit > 0 {
			in.Limit = left
		}
		if err := c.replay(ctx, in, i, hashers); err != nil {
			return 0, err
		}
		left -= in.Records()
		if first {
			c.checkInput(in, i)
		}
	}
	for _, s := range hashers {
		total += s.total
	}
	return total, nil
}

// fileRun puts the sums of all rows of the run into the sort. It leaves out rows that the
// run has more than once: they are findings already, and there may be very many.
func (c *inputCheck) fileRun(ctx context.Context) error {
	s, held := c.sums.newHasher(), heldCoder{run: c.run, groups: newGrouper(c.sorts.groups)}
	if err := c.reports.eachLink(ctx, func(l *link) {
		if l.source < 0 || !c.isRow(l.source, l.Row.Row) {
			return
		}
		var said []byte
		if c.joins {
			said = held.said(l)
		}
		s.row(l, said)
	}); err != nil {
		return err
	}
	r, err := openReport(ctx, c.reports, manifest.RejectsName, false, readback.OpenRejects)
	if r == nil || err != nil {
		return err
	}
	defer r.Close()
	sources, cells := c.run.inputNumbers(asIs), cellsOfRejects(c.run, r.Columns)
	for r, err := range r.Rows() {
		if isCell(err) {
			continue
		} else if err != nil {
			return err
		}
		if source, ok := sources[r.Source]; ok && c.isRow(source, r.Row) {
			code, _, _ := cells.code(r, source)
			variant, _ := c.run.variantOf(r)
			s.rejected(source, r, c.run.keyOfReject(variant, code.Text), cells.workspace(r, source, code))
		}
	}
	return nil
}

// isRow reports whether an input can have a row of this number, which the run does not
// have more than once.
func (c *inputCheck) isRow(source int, row int64) bool {
	return row > 0 && row < mostRecords && !c.books.repeated[source].has(row)
}

// inputs are the inputs that are read again.
type inputs struct {
	paths []string // one for each input of the manifest
	other []bool   // for each: it cannot be read any more as the run read it
}

// findInputs finds the inputs that are to be read again; nil: none. If they are not those of the
// manifest, the caller gave wrong ones, and that is an error. If the manifest is known to be
// changed, it is a finding, and no input is read.
func findInputs(cfg *Config, m *manifest.Manifest, found *findings) (*inputs, error) {
	if len(cfg.Inputs) == 0 {
		return nil, nil
	}
	given, err := source.Expand(cfg.Inputs, cfg.Source.Stdin, len(m.Inputs) == 0)
	if err != nil {
		return nil, err
	}
	paths, err := matchInputs(m.Inputs, given)
	if err != nil && found.faults.kinds[ManifestSum] > 0 {
		found.wrong(BadSource, "inputs", "those that were given", err)
		return nil, nil
	}
	return &inputs{paths: paths, other: make([]bool, len(paths))}, err
}

// matchInputs finds the file of each input of the manifest. A file of the same name is it.
// The others are matched by the end of their paths, the longest ends first: a file and an
// input belong together if no other file and no other input has the same end. The shortest
// end is empty, so a last file matches a last input whatever its name. A wrong match does no
// harm: the digests will differ.
func matchInputs(inputs []manifest.Input, given []string) ([]string, error) {
	named := make(map[string]bool, len(given)) // that are not matched yet
	for _, path := range given {
		named[path] = true
	}
	paths := make([]string, len(inputs))
	find := func(i int, path string) {
		paths[i] = path
		delete(named, path)
	}
	for i, in := range inputs {
		if named[string(in.Name)] {
			find(i, string(in.Name))
		}
	}
	most := 0
	for path := range named {
		most = max(most, 1+strings.Count(filepath.Clean(path), "/"))
	}
	for n := most; n >= 0; n-- {
		files, wanted := map[string][]string{}, map[string][]int{}
		for path := range named {
			if end, ok := lastElements(path, n); ok {
				files[end] = append(files[end], path)
			}
		}
		for i, in := range inputs {
			if end, ok := lastElements(string(in.Name), n); ok && paths[i] == "" {
				wanted[end] = append(wanted[end], i)
			}
		}
		for end, same := range wanted {
			if len(same) == 1 && len(files[end]) == 1 {
				find(same[0], files[end][0])
			}
		}
	}
	given = slices.DeleteFunc(given, func(path string) bool { return !named[path] })
	for i, in := range inputs {
		if paths[i] != "" {
			continue
		}
		last := filepath.Base(string(in.Name))
		if same := slices.IndexFunc(given, func(path string) bool { return filepath.Base(path) == last }); same >= 0 {
			return nil, &columns.UsageError{Input: given[same], Msg: "is not the only " + last + ": give all of them by the paths that the run had"}
		}
		return nil, &columns.UsageError{Input: string(in.Name), Msg: "is an input of the run, but was not given with Config.Inputs"}
	}
	if len(given) > 0 {
		return nil, &columns.UsageError{Input: given[0], Msg: "is not an input of the run"}
	}
	return paths, nil
}

// lastElements returns the last n elements of a path; not ok: it has fewer.
func lastElements(path string, n int) (end string, ok bool) {
	elements := strings.Split(filepath.Clean(path), "/")
	if n > len(elements) {
		return "", false
	}
	return strings.Join(elements[len(elements)-n:], "/"), true
}

// open opens an input as the run did. If it has other columns now, or cannot be
// read with the options of the run, it returns nil; the first time that is a finding.
func (c *inputCheck) open(ctx context.Context, path string, i int) (*source.Input, error) {
	if c.inputs.other[i] {
		return nil, nil
	}
	m := &c.run.manifest.Inputs[i]
	s, err := source.Open(ctx, path, c.options(m))
	_, none := errors.AsType[*source.NoFileError](err)
	if usage, ok := errors.AsType[*columns.UsageError](err); ok && !none && c.source.Validate() == nil && (path != "-" || c.source.Stdin != nil) {
		c.inputs.other[i] = true
		c.findings.fault(string(m.Name), 0).wrong(BadColumns, "", "an input that can be read as the run read it", usage.Msg)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if s.Blank && len(m.Columns) == 0 { // beside other inputs, a run gives an empty one no columns
		s.Columns, s.URLs = nil, nil
	}
	names := texts(m.Columns)
	if !slices.Equal(s.Columns, names) || s.Format != m.Format || len(s.URLs) != len(m.URLColumns) {
		c.inputs.other[i] = true
		c.findings.checkColumns(string(m.Name), append([]string{s.Format}, s.Columns...), append([]string{m.Format}, names...))
		return nil, s.Close()
	}
	s.Among = c.run.columns.Names
	c.run.setRoles(&s.Table, m)
	return s, nil
}

// options returns the options with which an input is read as the run read it.
func (c *inputCheck) options(m *manifest.Input) source.Options {
	opts := c.source
	opts.MaxField = cmp.Or(opts.MaxField, int(c.run.terms.MaxField))
	if d := m.Dialect; d != nil && m.Format == "csv" && len(d.Delimiter) == 1 && len(d.Quote) == 1 {
		opts.Delimiter, opts.Quote, opts.Header = d.Delimiter[0], d.Quote[0], source.HeaderNo
		if d.Header {
			opts.Header = source.HeaderYes
		}
	}
	if d := m.Dialect; d != nil && m.Format == "rejects" && len(d.RawDelimiter) <= 1 && len(d.RawQuote) <= 1 {
		opts.Delimiter, opts.Quote = (d.RawDelimiter + "\x00")[0], (d.RawQuote + "\x00")[0] // 0: there is none
	}
	opts.Encoding, opts.PadRows = c.run.terms.Encoding, c.run.terms.PadRows
	opts.UniqueNames = true // as the manifest has them
	opts.FirstURL = true    // an earlier version may have made the run
	opts.KnownAs = string(m.Name)
	c.run.readAs(m, &opts.Choice)
	return opts
}

// checkInput compares an input, which was read, with what the manifest says of it.
func (c *inputCheck) checkInput(in *source.Input, i int) {
	m := &c.run.manifest.Inputs[i]
	sum := in.SHA256()
	for _, f := range []struct{ column, want, got string }{
		{"", cmp.Or(m.SHA256, m.RecordsSHA256), hex.EncodeToString(sum[:])},
		{"records", strconv.FormatInt(m.Records, 10), strconv.FormatInt(in.Records(), 10)},
		{"blank_rows", strconv.FormatInt(m.BlankRows, 10), strconv.FormatInt(in.BlankRows(), 10)},
		{"size", strconv.FormatInt(m.Size, 10), strconv.FormatInt(in.Size(), 10)},
		{"compression", m.Compression, in.Compression},
		{"dialect", dialectText(m.Dialect), dialectText((*manifest.Dialect)(in.Dialect))},
	} {
		if f.got != f.want {
			c.findings.fault(string(m.Name), 0).wrong(InputSum, f.column, f.want, f.got)
		}
	}
}

func dialectText(d *manifest.Dialect) string {
	if d == nil {
		return ""
	}
	text := fmt.Sprintf("delimiter %q, quote %q, header %t, encoding %s, BOM %t", d.Delimiter, d.Quote, d.Header, d.Encoding, d.BOM)
	if d.RawDelimiter+d.RawQuote != "" {
		text += fmt.Sprintf(", of raw lines delimiter %q, quote %q", d.RawDelimiter, d.RawQuote)
	}
	return text
}

// compareRows compares the sums of each row on both sides.
func (c *inputCheck) compareRows(ctx context.Context) error {
	if err := c.sums.rows.Finish(ctx); err != nil {
		return err
	}
	if c.reports.broken.Load() {
		return nil
	}
	var joined *extsort.Writer
	if c.joins {
		joined = c.sorts.held.NewWriter()
	}
	var run, input rowSums
	var at, of uint64
	compare := func() {
		c.compareSums(at, &run, &input)
		if joined != nil && run.linked && input.linked {
			joinHeld(joined, run.said, input.said)
		}
	}
	rows := c.sums.rows.Cursor(ctx, 0)
	defer rows.Close()
	for rows.Next() {
		key := rows.Key()
		variant, s := decodeSums(rows.Record())
		if key != at || variant != of {
			compare()
			run, input, at, of = rowSums{}, rowSums{}, key, variant
		}
		if s.input {
			input = s
		} else {
			run = s
		}
	}
	if rows.Err() == nil {
		compare()
	}
	if joined != nil && rows.Err() == nil {
		return joined.Err()
	}
	return rows.Err()
}

// compareSums compares the sums of a row on both sides. If there is no mapping, only rejects
// can be compared.
func (c *inputCheck) compareSums(key uint64, run, input *rowSums) {
	place := record.PlaceOf(key, -1)
	number, row := place.Source-1, place.Row
	if key == 0 || c.inputs.other[number] || c.books.repeated[number].has(row) || c.run.mapping == "" && input.linked && !run.filed {
		return
	}
	here := c.findings.fault(string(c.run.manifest.Inputs[number].Name), row)
	switch {
	case !run.filed || !input.filed:
		here.wrong(InputDiffers, "", "a row of the input and of the run", "only one of them")
	case run.linked && !input.linked:
		here.wrong(InputDiffers, "", "a reject", "a link")
	default:
		got, want, columns, where := run.rejected, input.rejected, []string{"reason", "byte_offset", "raw", "input columns"}, "rejects"
		if run.linked {
			got, want, columns, where = run.link, input.link, []string{"original_url", "workspace_id", "carried columns", "legacy_code", "parts"}, "mapping"
		}
		for i, column := range columns {
			if got[i] != want[i] {
				here.wrong(InputDiffers, column, "as the input has it", "another value, in the "+where)
			}
		}
	}
}
