package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/account"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/page"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/survey"
)

// report gathers what the page shows.
func (p *pageMaker) report(ctx context.Context) (*page.Report, error) {
	m, data, err := p.manifest()
	if err != nil {
		return nil, err
	}
	r := &page.Report{Name: p.name(), Manifest: m, Deletion: m.Delete}
	if r.Timings, err = manifest.ReadTimings(p.dir); err != nil {
		return nil, err
	}
	told, next := p.told, page.Fact{}
	if told == nil {
		if told, next, err = p.ofFiles(ctx, m, data, r.Timings); err != nil {
			return nil, err
		}
	}
	r.Facts = pageFacts(told)
	if next.Text != "" {
		r.Facts = append(r.Facts, next)
	}
	if p.verdict != nil {
		r.Verdict, r.Problem = pageFacts(p.verdict), p.verdict.Level == account.Problem
	}
	if !m.Delete {
		r.Survey, err = survey.Read(ctx, p.dir, m)
	}
	return r, err
}

// name is what the directory is called.
func (p *pageMaker) name() string {
	if abs, err := filepath.Abs(p.dir); err == nil && !filepath.IsLocal(p.dir) || p.dir == "." {
		return filepath.Base(abs)
	}
	return p.dir
}

// ofFiles returns the account that the files give, and what is to be done next if that is no command.
func (p *pageMaker) ofFiles(ctx context.Context, m *manifest.Manifest, data []byte, t *manifest.Timings) (a *account.Account, next page.Fact, err error) {
	rejected, err := firstRejects(ctx, p.dir, m)
	if err != nil {
		return nil, next, err
	}
	next = page.Fact{Key: "command"}
	dry := manifest.Option[bool](m.Options, "dry_run")
	if dry {
		next.Text = "run the same command again, without --dry-run"
	}
	rejects := filepath.Join(p.dir, manifest.RejectsName)
	if m.Delete {
		d, err := manifest.ReadDeletion(data)
		if err != nil {
			return nil, next, err
		}
		of := account.OfDeletion(p.dir, d, manifest.Digest(data))
		grace, _ := parseAge(defaultGrace) // a constant
		of.Until, of.Grace, of.RejectsFile, of.Advice, of.Rejected = d.AsOf.Add(grace), defaultGrace, rejects, deleteAdvice, rejected
		return of.Account(), next, nil
	}
	of := account.OfDirectory(p.dir, m, manifest.Digest(data), t)
	of.Rejected, of.RejectsFile, of.Amend = rejected, rejects, amend(dry || of.Refused != "")
	switch {
	case of.Refused != "":
		next.Text = "correct the inputs, or change the flags; then run the same command again"
	case !dry && of.Store != "":
		of.Command, next.Note = p.checkCommand(m, of.Store)
	}
	return of.Account(), next, nil
}

// mostChecked is how many inputs a command on a page has.
const mostChecked = 20

// checkCommand returns the command that checks the run, and what is to be added to it.
func (p *pageMaker) checkCommand(m *manifest.Manifest, store string) (command, note string) {
	var inputs []string
	for i := range m.Inputs {
		if name := string(m.Inputs[i].Name); name != "-" {
			inputs = append(inputs, name)
		}
	}
	if n := len(inputs); n > mostChecked {
		inputs, note = nil, fmt.Sprintf("add --inputs FILE for each of the %s", count(int64(n), "input"))
	}
	var flags [][2]string
	if m.Scheme.Fingerprint != "" {
		flags = append(flags, [2]string{"scheme-key-file", "FILE"})
	}
	if m.Scheme.Blocklist != "" {
		flags = append(flags, [2]string{"blocklist", "FILE"})
	}
	return checkCommand(p.dir, inputs, store, flags), note
}

// firstRejects returns the first reject of each reason of a run.
func firstRejects(ctx context.Context, dir string, m *manifest.Manifest) (first map[string]account.Example, err error) {
	first = map[string]account.Example{}
	if len(m.Reasons) == 0 {
		return first, nil
	}
	rows, err := readback.OpenRejects(ctx, filepath.Join(dir, manifest.RejectsName), readback.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for row, err := range rows.Rows() {
		if err != nil {
			return nil, err
		}
		if _, known := first[row.Reason]; !known && m.Reasons[row.Reason] > 0 {
			first[row.Reason] = exampleOfReject(&pipeline.PreviewRow{Source: manifest.Text(row.Source), Row: row.Row, URL: urlOf(row, rows.Columns, m.Inputs), Reason: row.Reason, Detail: row.Detail})
		}
		if len(first) == len(m.Reasons) {
			break
		}
	}
	return first, nil
}

// urlOf returns the cell of a reject that has the URL, or its line if that could not be split.
func urlOf(row *outcome.Reject, columns []string, inputs manifest.Inputs) manifest.Text {
	if len(row.Raw) > 0 {
		return manifest.Text(row.Raw)
	}
	for i := range inputs {
		if in := &inputs[i]; string(in.Name) == row.Source && len(in.URLColumns) > 0 {
			if c := slices.Index(columns, string(in.URLColumns[0])); c >= 0 {
				return manifest.Text(row.Cells[c])
			}
		}
	}
	return ""
}

// pageFacts returns the facts of an account as a page shows them: in the words of a terminal.
func pageFacts(a *account.Account) (list []page.Fact) {
	mentioned := a.Mentioned()
	for i := range a.Facts {
		f := &a.Facts[i]
		n, counts := f.Value.(int64)
		p := page.Fact{Key: f.Key, In: f.In, Number: n, Depth: f.Depth, Look: f.Look, Copy: f.Exact, Note: f.Note}
		switch {
		case !f.Told() || mentioned[f.Key] && (!counts || f.Name == ""):
			p.Hidden = true
		case counts && f.Name != "":
			p.Name = f.Name
		case f.Words != "":
			p.Text = claim(a, f)
		default:
			p.Name, p.Text = f.Name, cmp.Or(valueText(f), "–")
		}
		for _, part := range f.By {
			if f.Value != nil {
				p.By = append(p.By, page.Count{Name: part.Name, Count: part.Count})
			}
		}
		if e := f.Example; e != nil {
			p.Example = e.Text
			if e.Row > 0 {
				p.Place = e.Source + ", row " + thousands(e.Row)
			}
		}
		if !p.Hidden {
			p.Said = claim(a, f)
		}
		list = append(list, p)
	}
	return list
}

// writePage writes the page of a run that has ended with err.
func (u *ui) writePage(ctx context.Context, o *runOptions, r *pipeline.Result, err error) error {
	if !o.html || r.ManifestSHA256 == "" {
		return nil
	}
	p := &pageMaker{dir: r.Out, told: o.account(u, r, err).Account()}
	if r.Repeated { // which tells less than its files
		p.told = nil
	}
	file, err := p.writeBeside(ctx)
	if errors.Is(err, errInterrupted) {
		return err
	}
	if err != nil { // %v: something was done, whatever kind of error this is
		return fmt.Errorf("the run ended, but its page was not written: %v", err)
	}
	u.wrotePage(file)
	return nil
}
