package emit

import (
	"bytes"
	"slices"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/settle"
	"github.com/linkforge/bulk/sink"
)

// A formatter turns records into rows and links, for one goroutine.
type formatter struct {
	e   *emitter
	row report.Row
	to  *extsort.Writer // of rows that are placed
	buf []byte

	links *extsort.Writer // of links that are not in the order of their codes; nil: they are

	carried  [][]byte     // of the link in hand
	values   []byte       // of the variant in hand
	input    []byte       // its URL in the input
	with     record.Rules // of the row in hand
	digest   report.RowDigest
	counts   [outcome.Count]int64
	aliases  int64 // rows
	changes  rules.ChangeCounts
	existing rules.ChangeCounts
	merged   merging
	tally    *campaign.Tally // nil: a row is one link
}

func newFormatter(e *emitter) *formatter {
	f := &formatter{e: e}
	f.digest.Columns = e.cfg.Columns
	if plan := e.rows.Campaign; plan != nil {
		f.tally = plan.NewTally()
	}
	if e.links != nil {
		f.links = e.links.NewWriter()
	}
	if e.placed != nil {
		f.to = e.placed.NewWriter()
	}
	return f
}

// err is the error of placing rows and links.
func (f *formatter) err() error {
	for _, w := range []*extsort.Writer{f.to, f.links} {
		if w != nil && w.Err() != nil {
			return w.Err()
		}
	}
	return nil
}

// touchAhead is the number of records whose memory is asked for at once.
const touchAhead = 32

// walk visits records of the piece in order, each where the visit before says. Their
// memory is asked for ahead.
func walk(p *piece, visit func(i int) (next int)) {
	touched := p.start
	for i := p.start; i < p.end; i = visit(i) {
		if i+touchAhead/2 > touched {
			p.bucket.Touch(touched, touched+touchAhead)
			touched += touchAhead
		}
	}
}

// format fills in a piece of the records.
func (f *formatter) format(p *piece) {
	b := p.bucket.Bucket
	p.chunk = f.e.free.Get().(*chunk)
	p.chunk.links, p.chunk.codes = p.chunk.links[:0], slices.Grow(p.chunk.codes[:0], (p.end-p.start)*f.e.rows.Order.Length())
	if f.e.cfg.Rules {
		p.chunk.rules = slices.Grow(p.chunk.rules[:0], p.end-p.start)
	}
	first := b.FirstOf(p.start, record.KeySize)
	walk(p, func(i int) (next int) {
		end := b.EndOf(i, p.end, record.KeySize)
		if f.e.settled.Claims() != nil {
			f.keptURL(p, first, i, end)
		} else {
			f.url(p, first, i, end)
		}
		first = end
		return end
	})
}

// url adds the records [from, to) of the URL whose first record in the bucket is given; its
// very first may be in an earlier bucket.
func (f *formatter) url(p *piece, first, from, to int) {
	b, key := p.bucket, record.Key(p.bucket.Record(from))
	d, code := f.e.link(b, first, &p.chunk.codes)
	if d.Reason != "" {
		return
	}
	f.row.Workspace, f.row.Code, f.row.Salt, f.row.Number = f.e.rows.Workspaces.Name(b.Group(from)), code, d.Salt, b.numberOf(first)
	if first == 0 && f.e.settled.Continues(b.number) {
		first = -1
	}
	var origin *record.Record // the first row of the URL
	for i := from; i < to; i++ {
		r := record.Decode(b.Record(i))
		f.row.Outcome, f.row.Rules.Change = outcome.Duplicate, rules.NoChange
		if i == first {
			f.row.Outcome = d.Outcome
		}
		if result, ok := f.e.settled.Result(b.number, i); ok {
			if result.Reason != rules.Accepted {
				continue
			}
			f.row.Outcome, f.row.Rules.Change = result.Outcome, result.Change
		}
		if f.links != nil {
			if f.row.Outcome != outcome.Duplicate && !d.Stored {
				f.file(b.Group(i), &r, key, false)
			}
			continue
		}
		f.row.Generated = f.row.Outcome == outcome.Created
		if i != first {
			if origin == nil {
				origin = b.first(first)
			}
			f.merged.add(f.e.cfg.Profile, p, i, origin, f.e.rows, &r)
		}
		if f.row.Outcome != outcome.Duplicate { // the row that is the link
			if f.e.load != nil && f.e.cfg.Links == nil && !d.Stored {
				p.chunk.links = append(p.chunk.links, f.link(&r, key))
				if f.e.cfg.Rules {
					p.chunk.giveRules(f, &r)
				}
			}
			if d.Salt > 0 {
				p.salted = append(p.salted, d)
			}
		}
		f.emit(p, i, &r)
	}
}

// emit formats the row in hand, which is record i of the bucket, or places it.
func (f *formatter) emit(p *piece, i int, r *record.Record) {
	shown := p.bucket.shown.Of(i)
	if f.e.placed == nil {
		f.add(p, r, shown)
		return
	}
	placed := record.Placed{Workspace: p.bucket.Group(i), Outcome: f.row.Outcome, Salt: f.row.Salt, Code: f.row.Code, Number: f.row.Number,
		Alias: f.row.Alias, LinkCode: f.row.LinkCode, LinkSalt: f.row.LinkSalt, Change: f.row.Rules.Change, Shown: shown, Record: p.bucket.Record(i)}
	f.buf = placed.File(f.to, r.Place, f.buf)
}

// formatPlaced fills in a piece of rows that were placed.
func (f *formatter) formatPlaced(p *piece) {
	walk(p, func(i int) (next int) {
		placed := record.DecodePlaced(p.bucket.Record(i))
		f.row.Workspace = f.e.rows.Workspaces.Name(placed.Workspace)
		f.row.Outcome, f.row.Salt, f.row.Code, f.row.Number = placed.Outcome, placed.Salt, placed.Code, placed.Number
		f.row.Alias, f.row.LinkCode, f.row.LinkSalt = placed.Alias, placed.LinkCode, placed.LinkSalt
		f.row.Rules.Change = placed.Change
		r := record.Decode(placed.Record)
		f.add(p, &r, placed.Shown)
		return i + 1
	})
}

// add formats one row. Shown is as of settle.Shown.
func (f *formatter) add(p *piece, r *record.Record, shown []byte) {
	in := f.e.rows.Inputs
	f.row.Source, f.row.Row = in.List[r.Place.Source].Name, r.Place.Row
	f.row.Original, f.row.Canonical = r.Original, r.Canonical
	if f.e.cfg.Columns.Rules {
		f.addRules(r, shown)
	}
	if f.e.cfg.Columns.Legacy != legacy.Off {
		f.row.Legacy = r.Legacy().Written
	}
	if in.KeepURLs() {
		f.addInputURL(in, r)
	} else if !f.e.cfg.NoCarry {
		f.row.Carried = r.Carried(f.row.Carried[:0], len(in.Carried))
	}
	if f.e.cfg.Domains {
		f.row.Domain = r.Domain(len(in.Carried), in.KeepURLs())
	}
	p.block.Append(&f.row)
	f.digest.Add(&f.row)
	f.counts[f.row.Outcome]++
	if f.row.Outcome == outcome.Existing {
		f.existing[f.row.Rules.Change]++
	}
	if f.row.Alias {
		f.aliases++
	}
}

// addInputURL fills in the URL that the input has, what a mapping has of a variant, and the carried cells.
func (f *formatter) addInputURL(in *intake.Inputs, r *record.Record) {
	row := &f.row
	f.carried, row.InputURL = r.InputURL(f.carried[:0], len(in.Carried), f.input[:0])
	f.input = row.InputURL
	if in.Campaign != nil {
		row.Variant = int64(r.Place.Variant)
		row.Values, f.values = in.Campaign.Values(row.Values[:0], f.values[:0], row.Variant, r.Original)
		if row.Outcome != outcome.Duplicate {
			f.tally.Add(row.Variant, row.Values)
		}
	}
	if !f.e.cfg.NoCarry {
		row.Carried = append(row.Carried[:0], f.carried...)
	}
}

// giveRules gives the last link of the chunk the rules of its row, and the key of its URL alone if its
// identity has parts.
func (c *chunk) giveRules(f *formatter, r *record.Record) {
	l := &c.links[len(c.links)-1]
	with := &f.with
	r.Rules(with)
	if len(with.Parts) > 0 {
		f.buf = codegen.AppendInput(f.buf[:0], r.Canonical, l.Workspace, 0)
		l.Base = codegen.Sum(f.buf).Key()
	}
	if f.e.cfg.Columns.Ref {
		with.Params.Ref = rules.RefOf(with.Parts)
	}
	c.rules = append(c.rules, settle.NewRules(&with.Params, f.e.cfg.AsOf))
	l.Rules = &c.rules[len(c.rules)-1]
}

// Original returns the original_url of the link of a row; nil: the same as its canonical URL.
func Original(profile canon.Profile, r *record.Record) []byte {
	if r.IsCanonical() {
		return nil
	}
	return OriginalOf(profile, r.Original, r.Canonical)
}

// OriginalOf is Original for the URLs of a row.
func OriginalOf(profile canon.Profile, original, canonical []byte) []byte {
	if original = profile.Complete(original); !bytes.Equal(original, canonical) {
		return canon.EscapeInvalid(original)
	}
	return nil
}

// addRules fills in what the link of the row in hand has after the run, and the parts of its identity.
func (f *formatter) addRules(r *record.Record, shown []byte) {
	to, with := &f.row.Rules, &f.with
	r.Rules(with)
	if shown != nil {
		to.Cells = settle.CutShown(shown)
	} else {
		to.Cells, f.buf = with.Params.Cells(f.buf, f.e.cfg.AsOf)
	}
	if to.Parts = nil; len(with.Parts) > 0 {
		to.Parts = with.Parts
	}
	if f.e.cfg.Columns.Ref {
		to.Cells[rules.Ref] = rules.RefOf(with.Parts)
	}
	f.changes[to.Change]++
}

// link returns what the store is to hold of the URL of the row in hand.
func (f *formatter) link(r *record.Record, key sink.Key) sink.Link {
	l := sink.Link{Workspace: f.row.Workspace, Code: f.row.Code, Key: key, Canonical: r.Canonical, Original: Original(f.e.cfg.Profile, r)}
	if f.e.cfg.Attrs || f.e.cfg.KeepCreated {
		in := f.e.rows.List[r.Place.Source]
		f.carried = r.Carried(f.carried[:0], len(f.e.rows.Carried))
		if f.e.cfg.Attrs {
			if attrs := in.Along.AppendAttrs(nil, f.carried); len(attrs) > 0 {
				l.Attrs = attrs
			}
		}
		if f.e.cfg.KeepCreated {
			l.Created = in.Along.Created(f.carried)
		}
	}
	return l
}
