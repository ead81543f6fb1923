package emit

import (
	"bytes"
	"context"
	"encoding/binary"
	"iter"
	"maps"
	"math"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/settle"
	"github.com/linkforge/bulk/sink"
)

// keptURL is url for a run that keeps legacy codes.
func (f *formatter) keptURL(p *piece, first, from, to int) {
	b, s, key := p.bucket, f.e.settled, record.Key(p.bucket.Record(from))
	f.row.Workspace = f.e.rows.Workspaces.Name(b.Group(from))
	d, link := f.e.link(b, first, &p.chunk.codes)
	f.row.Number = b.numberOf(first)
	f.row.LinkCode, f.row.LinkSalt = link, d.Salt
	var known map[string]origin // of duplicates, by code
	for i := from; i < to; i++ {
		row := s.Row(b.number, i)
		if row.Lost() || !row.Won() && d.Reason != "" {
			continue
		}
		result, _ := s.Result(b.number, i)
		if result.Reason != rules.Accepted {
			continue
		}
		r := record.Decode(b.Record(i))
		if f.links != nil {
			f.sortLinks(b.Group(i), &r, row, &d, link, key)
			continue
		}
		f.row.Outcome, f.row.Code, f.row.Salt, f.row.Alias, f.row.Rules.Change = outcome.Duplicate, link, d.Salt, false, result.Change
		switch {
		case row.Won():
			f.row.Code, f.row.Salt = r.Legacy().Code, -1
			if f.row.Alias = !bytes.Equal(f.row.Code, link); row.First() {
				f.row.Outcome = row.Outcome()
			}
		case row.First():
			f.row.Outcome = row.Outcome()
		}
		f.row.Generated = row.Bears() && !d.Kept && d.Reason == "" && d.Outcome == outcome.Created
		if row.Bears() && d.Salt > 0 {
			p.salted = append(p.salted, d)
		}
		if !row.First() {
			o := known[string(f.row.Code)]
			if o.first == nil {
				if known == nil {
					known = map[string]origin{}
				}
				o = origin{f.e.originOf(b, max(first, o.searched), i, f.row.Code, link), i}
				known[string(f.row.Code)] = o
			}
			if o.first != nil {
				f.merged.add(f.e.cfg.Profile, p, i, o.first, f.e.rows, &r)
			}
		}
		f.emit(p, i, &r)
	}
}

// sortLinks puts what the store is to get with a row into the sort of links: its own code, and
// the link of its URL, whose code is given.
func (f *formatter) sortLinks(group uint32, r *record.Record, row settle.Row, d *settle.Decision, link []byte, key sink.Key) {
	switch {
	case !row.First() || row.Stored():
	case row.Won():
		f.row.Code = r.Legacy().Code
		f.file(group, r, key, !bytes.Equal(f.row.Code, link))
	case d.Kept: // it speaks for a link whose code another row has
		f.row.Code = link
		f.file(group, r, key, false)
	}
	if row.Bears() && !d.Kept && !d.Stored && d.Reason == "" {
		f.row.Code = link
		f.file(group, r, key, false)
	}
}

// link returns what becomes of a URL, given by its first record in the bucket, and the code of its
// link, which may be appended to codes.
func (e *emitter) link(b *sharedBucket, first int, codes *[]byte) (d settle.Decision, link []byte) {
	d = e.settled.Decide(b.number, first, b.Group(first), b.Record(first))
	if b.codes != nil {
		if link, _ = b.codes.Of(first); link != nil {
			d.Salt = -1
			return d, link
		}
	}
	switch {
	case d.Reason != "" || d.Code != "":
		return d, []byte(d.Code)
	case d.Kept:
		at := e.settled.LinkRow(b.number, first)
		return d, e.code(b, at, nil)
	}
	start := len(*codes)
	*codes = e.rows.Order.AppendFirst(*codes, b.Record(first))
	return d, (*codes)[start:len(*codes):len(*codes)]
}

// code returns the short code of record i, which is not lost, of a URL whose link is given.
func (e *emitter) code(b *sharedBucket, i int, link []byte) []byte {
	row, rec := e.settled.Row(b.number, i), b.Record(i)
	if !row.Won() {
		return link
	}
	return record.LegacyCode(rec)
}

// An origin is the first row of a code of a URL; first is nil if there is none among the rows
// before searched: such a row lost its own code and goes on without (legacy.Generate).
type origin struct {
	first    *record.Record
	searched int
}

// originOf returns the first row that has a code, among [from, to) of the bucket or in an earlier
// one; nil: there is none. The code of the URL's link is given.
func (e *emitter) originOf(b *sharedBucket, from, to int, code, link []byte) *record.Record {
	for i := to - 1; i >= from; i-- {
		if e.settled.Row(b.number, i).First() && bytes.Equal(e.code(b, i, link), code) {
			r := record.Decode(b.Record(i))
			return &r
		}
	}
	return b.origins.rows[string(code)]
}

// origins are copies of the first rows of a URL in earlier buckets, by code. Where equal codes
// follow each other, they are the last one and that of the link: others have no more duplicates.
type origins struct {
	rows map[string]*record.Record
	last string
}

// origins returns those of the last URL of a bucket, which continues in the next.
func (e *emitter) origins(b *sharedBucket) (o origins) {
	first := b.Bucket.FirstOf(b.Len()-1, record.KeySize)
	_, link := e.link(b, first, new([]byte))
	o.rows = map[string]*record.Record{}
	if first == 0 {
		maps.Copy(o.rows, b.origins.rows)
		o.last = b.origins.last
	}
	for i := first; i < b.Len(); i++ {
		if !e.settled.Row(b.number, i).First() {
			continue
		}
		if o.last != string(link) {
			delete(o.rows, o.last)
		}
		r := record.Decode(b.Record(i))
		o.last = string(e.code(b, i, link))
		o.rows[o.last] = &record.Record{Original: bytes.Clone(r.Original), Place: r.Place}
	}
	return o
}

// file puts the link of the row in hand into the sort of links: the group is that of the
// workspace, the key the first bytes of the code in the order of the bytes, and the content
//
//	code as of packed.AppendCell | url_key 16, of the link of the identity | 1 for an alias, else 0
//	| original and attributes as of packed.AppendNullable
//	| creation time in microseconds of Unix time, 8 bytes; the least there is: the as_of of the run
//	| parts of the identity as of packed.AppendCell, parameters as of rules.Params.Append, only with Config.Rules
//	| canonical
func (f *formatter) file(group uint32, r *record.Record, key sink.Key, isAlias bool) {
	l := f.link(r, key)
	alias := byte(0)
	if isAlias {
		alias = 1
	}
	rec := append(append(packed.AppendCell(f.buf[:0], l.Code), key[:]...), alias)
	rec = packed.AppendNullable(packed.AppendNullable(rec, l.Original), l.Attrs)
	created := int64(math.MinInt64)
	if !l.Created.IsZero() {
		created = l.Created.UnixMicro()
	}
	rec = binary.BigEndian.AppendUint64(rec, uint64(created))
	if f.e.cfg.Rules {
		r.Rules(&f.with)
		rec = f.with.Params.Append(packed.AppendCell(rec, f.with.Parts))
	}
	rec = append(rec, l.Canonical...)
	copy(f.links.Reserve(group, packed.TextKey(l.Code), len(rec)), rec)
	f.buf = rec
}

// SortLinks sorts the links that the store is to get, if legacy codes are kept: by workspace and
// code, which is not the order of the records. The order of the configuration is filled in. The
// sorter is to be closed, also with an error.
func SortLinks(ctx context.Context, rows *intake.Rows, s *settle.Settlement, sorter extsort.Config, cfg Config) (*extsort.Sorter, error) {
	sorter.CompareGroups, sorter.Compare = rows.Workspaces.Compare, packed.CompareFirst
	e := newEmitter(rows, cfg)
	e.settled, e.links = s, extsort.New(sorter)
	if _, err := e.run(ctx, rows.Records, (*formatter).format); err != nil {
		return e.links, err
	}
	return e.links, e.links.Finish(ctx)
}

// sorted yields links that were sorted.
func sorted(ctx context.Context, links *extsort.Sorter, names *record.Workspaces, cfg *Config) iter.Seq2[[]sink.Link, error] {
	var input []byte
	var given []sink.Rules // of the links of a chunk
	if cfg.Rules {
		given = make([]sink.Rules, pieceRows)
	}
	return extsort.Chunks(ctx, links, pieceRows, func(at *extsort.Cursor, n int) sink.Link {
		l := sink.Link{Workspace: names.Name(at.Group())}
		var rec []byte
		l.Code, rec = packed.CutCell(at.Record())
		l.Key, l.Alias, rec = sink.Key(rec), rec[len(l.Key)] == 1, rec[len(l.Key)+1:]
		l.Original, rec = packed.CutNullable(rec)
		l.Attrs, rec = packed.CutNullable(rec)
		if created := int64(binary.BigEndian.Uint64(rec)); created != math.MinInt64 {
			l.Created = time.UnixMicro(created).UTC()
		}
		var with record.Rules
		if rec = rec[8:]; cfg.Rules {
			with.Parts, rec = packed.CutCell(rec)
			rec = with.Params.Cut(rec)
			if cfg.Columns.Ref {
				with.Params.Ref = rules.RefOf(with.Parts)
			}
			l.Rules = &given[n]
			*l.Rules = settle.NewRules(&with.Params, cfg.AsOf)
		}
		l.Canonical = rec
		switch {
		case len(with.Parts) > 0:
			input = codegen.AppendInput(input[:0], l.Canonical, l.Workspace, 0)
			l.Base = codegen.Sum(input).Key()
		case l.Alias:
			l.Base = l.Key
		}
		if l.Alias {
			input = codegen.AppendAlias(input[:0], l.Canonical, l.Workspace, with.Parts, l.Code)
			l.Key = codegen.Sum(input).Key()
		}
		return l
	})
}
