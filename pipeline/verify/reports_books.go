package verify

import (
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/along"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/record"
)

// checkCounts compares the manifest with the rows of a file: their number, and those
// of each outcome that is counted.
func (s *reports) checkCounts(file string, rows int64, outcomes map[string]int64) {
	files, _ := s.run.manifest.Reports()
	for _, f := range files {
		if f.Name == file && f.Rows != rows {
			s.findings.wrong(BadCount, "files."+file+".rows", rows, f.Rows)
		}
	}
	c := s.run.manifest.Counts
	for name, listed := range map[string]int64{"created": c.Created, "existing": c.Existing, "duplicate": c.Duplicate, "rejected": c.Rejected} {
		if n, ok := outcomes[name]; ok && n != listed {
			s.findings.wrong(BadCount, "counts."+name, n, listed)
		}
	}
}

// books note which rows of each input are in the reports. They are safe for concurrent use.
type books struct {
	findings *findings
	run      *run
	seen     []*rowSet      // that a report has
	rejected []*rowSet      // of seen, those in rejects.csv; empty if inputs are not read again
	repeated []*rowSet      // of seen, those that reports have more than once
	variants []atomic.Int64 // rows of an input in the reports, if one of it may have become several
}

func newBooks(run *run, found *findings) *books {
	b := &books{findings: found, run: run, variants: make([]atomic.Int64, len(run.manifest.Inputs))}
	for _, in := range run.manifest.Inputs {
		b.seen = append(b.seen, newRowSet(in.Records))
		b.rejected = append(b.rejected, newRowSet(in.Records))
		b.repeated = append(b.repeated, newRowSet(in.Records))
	}
	return b
}

// account notes that a report has, here, a row of an input, and reports whether the input has such
// a row. A row that reports have twice is a finding of the input, not of a report: it
// depends on the workers which of the two comes second.
func (b *books) account(here spot, name string, source int, row int64) bool {
	switch {
	case source < 0:
		here.wrong(BadSource, "source", "an input of the manifest", name)
	case row < 1 || row > b.seen[source].records:
		here.wrong(BadSource, "row", fmt.Sprint("1 to ", b.seen[source].records), fmt.Sprint(row))
	default:
		if isNew := b.seen[source].add(row); b.run.many(source) {
			b.variants[source].Add(1)
		} else if !isNew {
			b.repeated[source].add(row)
			b.findings.fault(string(b.run.manifest.Inputs[source].Name), row).wrong(RowRepeated, "", "", "")
		}
		return true
	}
	return false
}

// A balance is what the rows of all reports say together, which must agree with the manifest.
type balance struct {
	findings *findings
	run      *run
	books    *books
	whole    bool  // all reports were read to the end
	most     int   // findings of missing rows that are listed
	told     *told // of legacy codes
	bare     int64 // URLs of which no row is the link; only if legacy codes are kept
}

// checkBlank compares how many records of an input no report has with how many are blank.
func (b *balance) checkBlank(in *manifest.Input, missing int64) {
	here := b.findings.fault(string(in.Name), 0)
	switch more := missing - in.BlankRows; {
	case more > 0:
		here.wrong(RowMissing, "", fmt.Sprint("no more than the ", in.BlankRows, " blank rows"), fmt.Sprint(missing))
		b.findings.faults.count(RowMissing, more-1)
	case more < 0:
		here.wrong(BadCount, "blank_rows", fmt.Sprint(missing), fmt.Sprint(in.BlankRows))
	}
}

// check checks that the counts add up and that every row of the inputs is in a
// report.
func (b *balance) check() {
	var read int64
	for i, in := range b.run.manifest.Inputs {
		if b.run.many(i) { // that no variant is missing only the input tells
			read += b.books.variants[i].Load()
		} else {
			read += in.Records - in.BlankRows
		}
		if !b.whole || b.run.mapping == "" {
			continue
		}
		if in.BlankRows > 0 { // only the input tells which they are
			b.checkBlank(&in, b.books.seen[i].missing(func(int64) bool { return false }))
			continue
		}
		listed := 0
		missing := b.books.seen[i].missing(func(row int64) bool {
			b.findings.fault(string(in.Name), row).wrong(RowMissing, "", "", "")
			listed++
			return listed < b.most
		})
		b.findings.faults.count(RowMissing, missing-int64(listed))
	}
	c := b.run.manifest.Counts
	if c.Read != read && !(b.run.mapping == "" && b.run.anyMany()) {
		b.findings.wrong(BadCount, "counts.read", read, c.Read)
	}
	if sum := c.Created + c.Existing + c.Duplicate + c.Rejected; c.Read != sum {
		b.findings.wrong(BadCount, "counts", sum, c.Read)
	}
	if b.run.mapping == "" || !b.whole {
		return
	}
	if b.run.codes.mode != legacy.Off {
		b.checkTold()
	}
	if b.run.terms.Beyond != nil {
		b.checkAlong()
	}
	b.checkLinks()
}

// told is what the rows say of legacy codes. The manifest has it, too.
type told struct {
	aliases, conflicts, withoutCode int64
	perhaps                         int64 // conflicts: rows that are rejected because of link rules, and may have lost their code before
	damaged                         record.Damaged
	along                           along.Told
	unsure                          bool // of along: the mapping does not have all cells of a row
}

// code counts a row that has a legacy code, or none.
func (t *told) code(code []byte, at record.Place) {
	if code == nil {
		t.withoutCode++
		return
	}
	t.damaged.Add(code, at)
}

func (t *told) merge(o *told) {
	t.aliases, t.conflicts, t.withoutCode = t.aliases+o.aliases, t.conflicts+o.conflicts, t.withoutCode+o.withoutCode
	t.perhaps += o.perhaps
	t.damaged.Merge(&o.damaged)
	t.along.Merge(&o.along)
	t.unsure = t.unsure || o.unsure
}

// checkTold compares what the rows say of legacy codes with what the manifest does.
func (b *balance) checkTold() {
	m, t := b.run.manifest, b.told
	b.checkOddCodes("legacy.damaged", m.Legacy.Damaged, t.damaged.All(), func(code []byte) bool { return legacy.Damaged(code) || legacy.IsFloat(code) })
	b.checkOddCodes("legacy.escaped", m.Legacy.Escaped, t.damaged.Escaped(func(source int) bool {
		in := b.run.codes.input(source)
		return in != nil && in.CutsPaths()
	}), codegen.HasEscape)
	conflicts := min(max(t.conflicts, m.Legacy.Conflicts), t.conflicts+t.perhaps)
	for _, c := range []struct {
		field    string
		got, has int64
	}{
		{"aliases", t.aliases, m.Legacy.Aliases}, {"conflicts", conflicts, m.Legacy.Conflicts},
		{"without_code", t.withoutCode, m.Legacy.WithoutCode},
	} {
		if c.got != c.has {
			b.findings.wrong(BadCount, "legacy."+c.field, c.got, c.has)
		}
	}
}

// checkOddCodes compares codes that were found with what a field of the manifest says of them: how many,
// and an example.
func (b *balance) checkOddCodes(field string, said *manifest.OddCodes, found record.Noted, odd func(code []byte) bool) {
	if said == nil {
		said = &manifest.OddCodes{}
	}
	if said.Rows != found.Rows {
		b.findings.wrong(BadCount, field, found.Rows, said.Rows)
	}
	if e := said.Example; said.Rows > 0 && found.Rows > 0 {
		if here := b.run.manifest.Inputs[found.First.Source].Name; e.Source != here || e.Row != found.First.Row || !odd([]byte(e.Code)) {
			b.findings.wrong(BadCount, field+".example", fmt.Sprint(here, " ", found.First.Row), fmt.Sprint(e.Source, " ", e.Row, " ", e.Code))
		}
	}
}

// checkLinks checks how many links the run created: one for each row that says so, and one for
// each URL whose link no row shows, unless the store had that before.
func (b *balance) checkLinks() {
	n, least := b.run.links(), b.run.manifest.Counts.Created
	switch most := least + b.bare; {
	case b.run.codes.mode == legacy.Off && b.run.manifest.LinksCreated != nil, b.run.codes.mode != legacy.Off && b.run.manifest.LinksCreated == nil:
		b.findings.wrong(BadManifest, "links_created", "there if, and only if, options has legacy", b.run.manifest.LinksCreated != nil)
	case n < least || n > most:
		b.findings.wrong(BadCount, "links_created", fmt.Sprintf("%d to %d", least, most), n)
	}
}

// checkAlong compares what the rows say beyond code and URL with what the manifest does, if the
// mapping has all columns.
func (b *balance) checkAlong() {
	m, t := b.run.manifest.Migration, &b.told.along
	if !b.run.terms.Carry || b.told.unsure {
		return
	}
	if want := manifest.DomainsOf(t.Domains); !reflect.DeepEqual(want, m.Domains) {
		b.findings.wrong(BadCount, "migration.domains", domainsText(want), domainsText(m.Domains))
	}
	for kind := range hygiene.Kind(hygiene.KindCount) {
		want, got := t.Warned[kind].Rows, m.Hygiene[kind.String()]
		if b.run.terms.Beyond.Policy[kind] == hygiene.Reject {
			want = b.run.manifest.Reasons[kind.String()]
		}
		if got.Rows != want {
			b.findings.wrong(BadCount, "migration.hygiene."+kind.String(), want, got.Rows)
		}
	}
	for _, c := range []struct {
		field string
		got   int64
		has   *manifest.Noted
	}{{"no_time", t.NoTime.Rows, m.NoTime}, {"no_expiry", t.NoExpiry.Rows, m.NoExpiry}, {"no_start", t.NoStart.Rows, m.NoStart}, {"no_redirect", t.NoRedirect.Rows, m.NoRedirect}, {"no_state", t.NoState.Rows, m.NoState}} {
		has := int64(0)
		if c.has != nil {
			has = c.has.Rows
		}
		if c.got != has {
			b.findings.wrong(BadCount, "migration."+c.field, c.got, has)
		}
	}
}

// domainsText lists domains for a finding.
func domainsText(d *manifest.Domains) string {
	if d == nil {
		return "none"
	}
	return fmt.Sprintf("%d, more %t, rows %v", d.Count, d.More, d.Rows)
}
