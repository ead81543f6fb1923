package account

import (
	"cmp"
	"strings"

	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/rules"
)

// A Preview is what a run would do. Of the Run Out and all about files does not count.
type Preview struct {
	Run
	Kept, Generated, Aliases int64              // links with legacy codes and with generated ones, aliases; of LinksCreated
	Examples                 map[string]Example // by what the rows would become: kept, generated, alias, existing, duplicate, conflict, without_code, or a change
	Seen                     hygiene.Set        // kinds of links that columns or options tell
	Policy                   hygiene.Policy
	Tagged                   *Example // a row whose own URL has a parameter of the campaign; nil: none
	Sets                     []Part   // of the campaign, with their combinations
	Conflicting              bool     // the run would be refused for conflicts over codes
	Links                    bool     // what is counted as different URLs are links, which have more of an identity
	URLs                     int64
	Alternatives             []Alternative
}

// An Alternative is an option that a run does not have, and how many different URLs there would be
// with it.
type Alternative struct {
	Option string `json:"option"`
	URLs   int64  `json:"urls"`
}

// Account returns the facts of the preview.
func (p *Preview) Account() *Account {
	a := &Account{Title: "preview"}
	keeps := p.Mode.Keeps()
	c := p.Counts
	a.add(Fact{In: "counts", Key: "read", Name: "rows", Noun: "row", Value: c.Read, Zero: true})
	a.add(p.campaign(p.Tagged)...)
	a.add(p.sets()...)
	a.add(p.created(keeps)...)
	a.add(Fact{Key: "reasons", Log: "-", Full: Empty{}})
	a.add(p.with("existing", Fact{In: "counts", Key: "existing", Name: "rows that the store has already", Noun: "row", Value: c.Existing, Zero: true}),
		p.with("duplicate", Fact{In: "counts", Key: "duplicate", Name: "rows merged into another", Noun: "row", Value: c.Duplicate, Zero: true}))
	a.add(p.read()...)
	if m := p.MergedDiffers; m != nil {
		f := merged(m, "whose URL may lead elsewhere")
		f.Depth, f.Example.Text = 1, redacted(m.Example[1].URL)
		a.add(f)
	}
	if p.Rules != nil {
		a.add(p.changes()...)
	}
	a.add(dates(p.Dates, p.Nones)...)
	if p.Legacy != nil {
		a.add(Fact{Key: "legacy", Log: "-", Full: p.Legacy})
	}
	if keeps {
		a.add(p.with("conflict", Fact{In: "-", Key: "conflicts", Name: "conflicts over codes", Noun: "conflict", Value: p.Legacy.Conflicts, Zero: true}))
	}
	a.add(Fact{In: "counts", Key: "rejected", Name: "rejected rows", Noun: "row", Value: c.Rejected, Zero: true})
	a.add(p.reasons()...)
	a.add(blankRows(p.BlankRows)...)
	if p.Legacy != nil {
		a.add(p.codes()...)
	}
	if p.Migration != nil {
		a.add(p.migration()...)
	}
	a.add(p.counter()...)
	a.add(p.urls()...)
	a.add(p.end()...)
	return a
}

// counter tells people whether the run would move the counter.
func (p *Preview) counter() (list []Fact) {
	run := p.Run
	run.DryRun = true
	for _, f := range run.start() {
		f.In = "-"
		list = append(list, f)
	}
	return list
}

// sets tells how many combinations the sets of a campaign have.
func (p *Preview) sets() []Fact {
	if len(p.Sets) == 0 {
		return nil
	}
	const most = 10
	f := Fact{Key: "sets", Name: "combinations by set", Noun: "combination", By: p.Sets, Depth: 1}
	if more := int64(len(p.Sets) - most); more > 0 {
		all := map[string]int64{}
		for _, set := range p.Sets {
			all[set.Name] = set.Count
		}
		f.By, f.Full, f.Note = p.Sets[:most], all, "and "+Counted(more, "more set")
	}
	return []Fact{f}
}

// with gives a fact the example of a name, if there is one.
func (p *Preview) with(name string, f Fact) Fact {
	if e, ok := p.Examples[name]; ok {
		e.In, e.Key = "examples", name
		f.Example = &e
	}
	return f
}

// created tells of the links that would be created.
func (p *Preview) created(keeps bool) []Fact {
	all := Fact{Key: "links_created", Value: *p.LinksCreated}
	links := Fact{In: "-", Key: "links_only", Name: "links to create", Noun: "link", Value: p.Kept + p.Generated, Zero: true}
	kept := p.with("kept", Fact{In: "links", Key: "kept", Name: "with their old codes", Noun: "link", Value: p.Kept, Depth: 1})
	generated := p.with("generated", Fact{In: "links", Key: "generated", Name: "with generated codes", Noun: "link", Value: p.Generated, Depth: 1})
	aliases := p.with("alias", Fact{In: "links", Key: "aliases", Log: "aliases_created", Name: "aliases to create", Noun: "alias", Value: p.Aliases, Zero: true})
	if !keeps {
		all.Name, all.Noun, all.Zero, all.Example = links.Name, links.Noun, true, generated.Example
		links.Name, kept.Name, generated.Name, aliases.Name = "", "", "", ""
		generated.Example = nil
	}
	return []Fact{{In: "counts", Key: "created", Value: p.Counts.Created}, all, links, kept, generated, aliases}
}

// changes tells what the rows would do to links that exist, or why nothing.
func (p *Preview) changes() []Fact {
	list := []Fact{{Key: "rules", Log: "-", Full: p.Rules}}
	for _, c := range []struct {
		change rules.Change
		name   string
	}{
		{rules.Updated, "links to update"}, {rules.Revived, "links to revive"}, {rules.Claimed, "links to claim"},
		{rules.Drifted, "rows that differ from the link"}, {rules.OtherOwner, "rows of another owner"},
	} {
		key := c.change.String()
		if n := p.Rules.Changes[key]; n > 0 {
			list = append(list, p.with(key, Fact{In: "-", Key: key, Name: c.name, Noun: "row", Value: n}))
		}
	}
	return append(list, stays(p.Unchanged, p.Update, "links that stay as they are", 1)...)
}

// reasons tells of rejects by reason, each with its first row.
func (p *Preview) reasons() (list []Fact) {
	for _, part := range parts(p.Reasons) {
		f := reason(part, 1, "")
		if e, ok := p.Rejected[part.Name]; ok {
			e.In = "rejected"
			f.Example = &e
		}
		list = append(list, f)
	}
	return list
}

// codes says what else there is to know of legacy codes.
func (p *Preview) codes() (list []Fact) {
	if t := p.Legacy.CaseTwins; t != nil {
		list = append(list, caseTwins(t, ""))
	}
	if d := p.Legacy.Damaged; d != nil {
		list = append(list, damagedCodes(d, ""))
	}
	if e := p.Legacy.Escaped; e != nil {
		list = append(list, escapedCodes(e))
	}
	list = append(list, p.with("without_code", withoutCode(p.Legacy, p.Counts.Read)))
	for i := range list {
		list[i].In = "-" // legacy has them
	}
	return list
}

// migration tells what the links were beyond code and URL, also which kinds there are not.
func (p *Preview) migration() (list []Fact) {
	if d := p.Migration.Domains; d != nil {
		f := domains(d)
		f.Note = map[legacy.Domains]string{legacy.DomainsKeep: "a workspace each", legacy.DomainsMerge: "one workspace", legacy.DomainsOff: "one workspace, unless --domains keep"}[p.Domains]
		list = append(list, f)
	}
	list = append(list, Fact{In: "migration", Key: "hygiene", Log: "-", Full: Empty{}})
	none, unseen := List{}, List{}
	for kind := range hygiene.Kind(hygiene.KindCount) {
		h := p.Migration.Hygiene[kind.String()]
		h.Decision = cmp.Or(h.Decision, p.Policy[kind].String())
		f := kindOf(kind, h)
		if r, ok := p.Rejected[kind.String()]; ok && f.Example == nil {
			f.Example = &Example{Source: r.Source, Row: r.Row, Text: r.URL}
		}
		switch {
		case h.Rows == 0 && !p.Seen.Has(kind):
			unseen = append(unseen, kind.String())
			continue
		case h.Rows == 0:
			none = append(none, kind.String())
		}
		list = append(list, f)
	}
	list = append(list, Fact{Key: "kinds_none", Value: none, Words: "no links of the kind {}"},
		Fact{Key: "kinds_not_looked_for", Value: unseen, Words: "not looked for (no column or flag): {}"})
	for _, f := range unread(p.Migration) {
		f.Note = ""
		list = append(list, f)
	}
	return list
}

// urls counts different URLs, and what options would make of that number.
func (p *Preview) urls() []Fact {
	f := Fact{Key: "urls", Name: "different URLs", Noun: "URL", Value: p.URLs, Zero: true}
	if p.Links {
		f.Name, f.Noun = "different links", "link"
	}
	list := []Fact{f, {Key: "alternatives", Log: "-", Full: some(p.Alternatives)}}
	for _, o := range p.Alternatives {
		flag, value, ok := strings.Cut(o.Option, " ")
		f := Fact{In: "-", Key: "urls_with_" + strings.TrimPrefix(flag, "--"), Name: "with " + flag, Noun: f.Noun, Value: o.URLs, Depth: 1, Zero: true, Note: difference(o.URLs - p.URLs)}
		if ok {
			f.Note += " (" + strings.Trim(value, "'") + ")"
		}
		list = append(list, f)
	}
	return list
}

// difference says how a number is to another one.
func difference(n int64) string {
	switch {
	case n > 0:
		return Number(n) + " more"
	case n < 0:
		return Number(-n) + " fewer"
	}
	return "no difference"
}

// end says which store it is about and how the run would end.
func (p *Preview) end() []Fact {
	store := Fact{Key: "store", Name: "store", Value: p.Store, Begins: true}
	if p.NewStore {
		store.Words = "store: {}, which the run would create"
	}
	how := "done."
	switch {
	case p.Refused != "" && p.Conflicting:
		how = "no links stored.\n{refused}\n(with --on-conflict generate these rows get generated codes)"
	case p.Refused != "":
		how = "no links stored.\n{refused}"
	case p.Counts.Rejected > 0:
		how = "done, with {rejected} rejected."
	}
	exit := Fact{Key: "exit_code", Value: ID(p.ExitCode), Zero: true, Begins: true, Words: "Nothing was written. bulk run would end with exit code {}: " + how}
	list := []Fact{{Key: "examples", Log: "-", Full: Empty{}}, {Key: "rejected", Log: "-", Full: Empty{}}, store, {Key: "new_store", Value: p.NewStore}, workspaces(p.Workspaces, p.NewWorkspaces, false), {Key: "new_workspaces", Value: some(p.NewWorkspaces)},
		exit}
	if p.Refused != "" {
		list = append(list, Fact{Key: "refused", Value: p.Refused})
	}
	return append(list, Fact{Key: "command", Value: p.Command, Exact: true, Words: "  {}"})
}
