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
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/source"
)

// verifyInputs compares every row of the run with what follows from its record of the
// input.
//
// First each side only adds up keyed digests of its rows. If the sums agree, the rows agree,
// with a chance of 2^-64 to be wrong. If they differ, run and inputs are read once more, and
// the parts of all rows are sorted and compared. That is done at once if an input can be read
// only once, or if the run has no mapping, or if a
// row may have become several, or if only the inputs tell what rows say of their links.
func (v *verifier) verifyInputs(ctx context.Context) (err error) {
	again := v.run.mapping != "" && !v.joins() && !slices.ContainsFunc(v.inputs, onlyOnce) && !v.run.anyMany()
	if again || v.broken.Load() {
		if err := v.readInputs(ctx, true); err != nil {
			return err
		}
		if v.broken.Load() || !slices.Contains(v.other, false) || v.runTotal.Load() == v.inputTotal.Load() {
			return nil
		}
	}
	v.rows = v.newSorter(bytes.Compare)
	defer func() { err, v.rows = errors.Join(err, v.rows.Close()), nil }()
	if err := v.fileRun(ctx); err != nil {
		return err
	}
	if err := v.readInputs(ctx, !again); err != nil {
		return err
	}
	return v.verifyRows(ctx)
}

// onlyOnce reports whether an input is no regular file, so that it can be read only once.
func onlyOnce(path string) bool {
	info, err := os.Stat(path)
	return path == "-" || err == nil && !info.Mode().IsRegular()
}

// readInputs reads the inputs and sums what the run must have made of each row.
// The first time it also compares the inputs themselves with what the manifest says of them.
func (v *verifier) readInputs(ctx context.Context, first bool) error {
	limit := v.run.terms.Limit
	left := limit
	hashers := make([]*rowHasher, v.cfg.Workers) // one set for all inputs, since the sort holds memory for each
	for i := range hashers {
		hashers[i] = v.newRowHasher()
	}
	for i, path := range v.inputs {
		if limit > 0 && left <= 0 {
			if m := &v.run.manifest.Inputs[i]; first && m.Records != 0 {
				v.fault(string(m.Name), 0).wrong(InputSum, "records", strconv.FormatInt(m.Records, 10), "0")
			}
			continue
		}
		in, err := v.openInput(ctx, path, i)
		if err != nil {
			return err
		}
		if in == nil {
			left -= v.run.manifest.Inputs[i].Records
			continue
		}
		if limit > 0 {
			in.Limit = left
		}
		if err := v.replay(ctx, in, i, hashers); err != nil {
			return err
		}
		left -= in.Records()
		if first {
			v.checkInput(in, i)
		}
	}
	for _, s := range hashers {
		v.inputTotal.Add(s.total)
	}
	return nil
}

// fileRun puts the sums of all rows of the run into the sort. It leaves out rows that the
// run has more than once: they are findings already, and there may be very many.
func (v *verifier) fileRun(ctx context.Context) error {
	s, c := v.newRowHasher(), &checker{verifier: v}
	if err := v.eachLink(ctx, func(l *link) {
		if l.source < 0 || !v.isRow(l.source, l.Row.Row) {
			return
		}
		var said []byte
		if v.joins() {
			said = c.appendSaid(l)
		}
		s.row(l, said)
	}); err != nil {
		return err
	}
	r, err := openReport(ctx, v, manifest.RejectsName, false, readback.OpenRejects)
	if r == nil || err != nil {
		return err
	}
	defer r.Close()
	sources, w := v.run.inputNumbers(asIs), v.newRejectChecker(r.Columns, false)
	for r, err := range r.Rows() {
		if isCell(err) {
			continue
		} else if err != nil {
			return err
		}
		if source, ok := sources[r.Source]; ok && v.isRow(source, r.Row) {
			code := w.legacy(r, source)
			s.file(source, r.Row, code.Text, w.workspaceOf(r, source, code), rowSums{rejected: s.reject(r.Reason, r.Detail, r.Offset, r.Raw, r.Cells)})
		}
	}
	return nil
}

// isRow reports whether an input can have a row of this number, which the run does not
// have more than once.
func (v *verifier) isRow(source int, row int64) bool {
	return row > 0 && row < mostRecords && !v.books.repeated[source].has(row)
}

// findInputs finds the inputs that are to be read again. If they are not those of the
// manifest, the caller gave wrong ones, and that is an error. If the manifest is known to be
// changed, it is a finding, and no input is read.
func (v *verifier) findInputs() error {
	if len(v.cfg.Inputs) == 0 {
		return nil
	}
	given, err := source.Expand(v.cfg.Inputs, v.cfg.Source.Stdin, len(v.run.manifest.Inputs) == 0)
	if err != nil {
		return err
	}
	v.inputs, err = matchInputs(v.run.manifest.Inputs, given)
	if err != nil && v.faults.kinds[ManifestSum] > 0 {
		v.wrong(BadSource, "inputs", "those that were given", err)
		return nil
	}
	v.other = make([]bool, len(v.inputs))
	return err
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

// openInput opens an input as the run did. If it has other columns now, or cannot be
// read with the options of the run, it returns nil; the first time that is a finding.
func (v *verifier) openInput(ctx context.Context, path string, i int) (*source.Input, error) {
	if v.other[i] {
		return nil, nil
	}
	m := &v.run.manifest.Inputs[i]
	s, err := source.Open(ctx, path, v.inputOptions(m))
	_, none := errors.AsType[*source.NoFileError](err)
	if usage, ok := errors.AsType[*columns.UsageError](err); ok && !none && v.cfg.Source.Validate() == nil && (path != "-" || v.cfg.Source.Stdin != nil) {
		v.other[i] = true
		v.fault(string(m.Name), 0).wrong(BadColumns, "", "an input that can be read as the run read it", usage.Msg)
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
		v.other[i] = true
		v.checkColumns(string(m.Name), append([]string{s.Format}, s.Columns...), append([]string{m.Format}, names...))
		return nil, s.Close()
	}
	s.Among = v.run.columns.Names
	v.run.setRoles(&s.Table, m)
	return s, nil
}

// inputOptions returns the options with which an input is read as the run read it.
func (v *verifier) inputOptions(m *manifest.Input) source.Options {
	opts := v.cfg.Source
	opts.MaxField = cmp.Or(opts.MaxField, int(v.run.terms.MaxField))
	if d := m.Dialect; d != nil && m.Format == "csv" && len(d.Delimiter) == 1 && len(d.Quote) == 1 {
		opts.Delimiter, opts.Quote, opts.Header = d.Delimiter[0], d.Quote[0], source.HeaderNo
		if d.Header {
			opts.Header = source.HeaderYes
		}
	}
	if d := m.Dialect; d != nil && m.Format == "rejects" && len(d.RawDelimiter) <= 1 && len(d.RawQuote) <= 1 {
		opts.Delimiter, opts.Quote = (d.RawDelimiter + "\x00")[0], (d.RawQuote + "\x00")[0] // 0: there is none
	}
	opts.UniqueNames = true // as the manifest has them
	opts.FirstURL = true    // an earlier version may have made the run
	opts.KnownAs = string(m.Name)
	v.run.readAs(m, &opts.Choice)
	return opts
}

// checkInput compares an input, which was read, with what the manifest says of it.
func (v *verifier) checkInput(in *source.Input, i int) {
	m := &v.run.manifest.Inputs[i]
	sum := in.SHA256()
	for _, c := range []struct{ column, want, got string }{
		{"", cmp.Or(m.SHA256, m.RecordsSHA256), hex.EncodeToString(sum[:])},
		{"records", strconv.FormatInt(m.Records, 10), strconv.FormatInt(in.Records(), 10)},
		{"size", strconv.FormatInt(m.Size, 10), strconv.FormatInt(in.Size(), 10)},
		{"compression", m.Compression, in.Compression},
		{"dialect", dialectText(m.Dialect), dialectText((*manifest.Dialect)(in.Dialect))},
	} {
		if c.got != c.want {
			v.fault(string(m.Name), 0).wrong(InputSum, c.column, c.want, c.got)
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
