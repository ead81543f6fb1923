package claim

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// Config says how claims are settled. All fields but Run must be set.
type Config struct {
	Order     record.Order
	Names     *record.Workspaces
	Populated []bool // workspaces, by number, that have links in the store
	Run       int32  // an unfinished run that this one continues: its links are Made; 0: none
	Parts     bool   // identities may have parts: a code that the store has is that of an identity, not of a URL
	Lookup    func(ctx context.Context, probes []sink.Probe, visit func(sink.Found) error) error
	Sorter    extsort.Config // all but the order
}

// Settled is who has each code that rows claim. It must be closed.
type Settled struct {
	Twins legacy.Twins // of codes that differ only in case

	cfg      Config
	claims   *extsort.Sorter
	verdicts *extsort.Sorter
}

const chunkClaims = 1 << 14 // that are held while the store is asked about their codes, at most

// Close gives up memory and files.
func (s *Settled) Close() error { return s.verdicts.Close() }

// Settle settles the claims, which NewSorter sorted. The result must be closed, also with an
// error.
func Settle(ctx context.Context, claims *extsort.Sorter, cfg Config) (*Settled, error) {
	s := &Settled{cfg: cfg, claims: claims}
	sorter := cfg.Sorter
	sorter.CompareGroups, sorter.Compare = cfg.Names.Compare, bytes.Compare
	s.verdicts = extsort.New(sorter)
	w := &walk{Settled: s, to: s.verdicts.NewWriter()}
	if err := w.all(ctx); err != nil {
		return s, err
	}
	if err := s.verdicts.Finish(ctx); err != nil {
		return s, err
	}
	// A bucket that was loaded once may be loaded by several goroutines.
	return s, s.verdicts.InOrder(ctx, 1, func(_ int, b *extsort.Bucket) error { b.Release(); return nil })
}

// stateOf returns Made or There, by the run that made a link.
func (s *Settled) stateOf(run int32) State {
	if s.cfg.Run != 0 && run == s.cfg.Run {
		return Made
	}
	return There
}

// take notes that a code is taken, if URLs may have it at salt 0.
func (s *Settled) take(to *extsort.Writer, group uint32, code []byte) {
	if len(code) != s.cfg.Order.Length() {
		return
	}
	v := Verdict{State: taken, Code: code}
	s.file(to, group, s.cfg.Order.KeyOf(code), &v)
}

func (s *Settled) file(to *extsort.Writer, group uint32, key uint64, v *Verdict) {
	var buf [256]byte // longer ones are allocated
	rec := v.append(buf[:0])
	copy(to.Reserve(group, key, len(rec)), rec)
}

// An owner is who has a code.
type owner struct {
	identity []byte   // of a link of the store without its parts
	key      sink.Key // of a link of the store, with Config.Parts
	code     []byte
	state    State // Made or There; 0: the store has not got it
	alias    bool
}

// has reports whether a claim is that of the owner.
func (w *walk) has(o *owner, p *pending) bool {
	if !w.cfg.Parts || o.state == 0 {
		return bytes.Equal(p.Identity, o.identity)
	}
	if o.alias {
		canonical, parts := rules.CutKey(p.Identity)
		w.input = codegen.AppendAlias(w.input[:0], canonical, w.cfg.Names.Name(w.codes[p.code].group), parts, o.code)
		return codegen.Sum(w.input).Key() == o.key
	}
	return p.Key == o.key
}

// A walk goes over the claims.
type walk struct {
	*Settled
	to *extsort.Writer

	// The chunk in hand, in one bucket of the claims. Its first code may be the last one of the
	// chunk before.
	codes  []code
	claims []pending
	input  []byte // of a hash
}

// A code is one that rows claim.
type code struct {
	group uint32
	owner owner // the first claim, unless the store says otherwise
	known bool  // the store was asked
}

// A pending claim is not settled yet.
type pending struct {
	Claim
	code int // in the chunk
}

// all settles all claims.
func (w *walk) all(ctx context.Context) error {
	claims := w.Settled.claims.Cursor(ctx, 2)
	defer claims.Close()
	for claims.Next() {
		w.add(claims.Group(), decode(claims.Record()))
		if claims.Last() || len(w.claims) >= chunkClaims {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
	}
	return claims.Err()
}

// add takes a claim into the chunk.
func (w *walk) add(group uint32, c Claim) {
	if last := len(w.codes) - 1; last >= 0 && w.codes[last].group == group && bytes.Equal(w.codes[last].owner.code, c.Code) {
		if n := len(w.claims) - 1; n >= 0 && w.claims[n].Key == c.Key && w.claims[n].code == last {
			return
		}
		w.claims = append(w.claims, pending{c, last})
		return
	}
	w.Twins.Add(group, c.Code)
	w.codes = append(w.codes, code{group: group, owner: owner{identity: c.Identity, code: c.Code}})
	w.claims = append(w.claims, pending{c, len(w.codes) - 1})
	w.take(w.to, group, c.Code)
}

// flush settles the claims of the chunk. Of its last code more claims may follow.
func (w *walk) flush(ctx context.Context) error {
	if err := w.ask(ctx); err != nil {
		return err
	}
	for i := range w.claims {
		p := &w.claims[i]
		c := &w.codes[p.code]
		o := &c.owner
		v := Verdict{State: o.state, URL: p.Key, Code: p.Code, Alias: o.alias}
		switch {
		case !w.has(o, p):
			v = Verdict{State: Lost, URL: p.Key, Code: p.Code}
			v.Text, _ = rules.CutKey(o.identity)
		case v.State == 0:
			continue
		}
		canonical, parts := rules.CutKey(p.Identity)
		first := w.cfg.Order.First(codegen.FromKey(p.Key), canonical, w.cfg.Names.Name(c.group), parts)
		w.file(w.to, c.group, w.cfg.Order.Key(first.Hash), &v)
	}
	last := w.codes[len(w.codes)-1]
	last.owner.identity, last.owner.code, last.known = bytes.Clone(last.owner.identity), bytes.Clone(last.owner.code), true
	w.codes, w.claims = append(w.codes[:0], last), w.claims[:0]
	return w.to.Err()
}

// ask asks the store who has the codes of the chunk.
func (w *walk) ask(ctx context.Context) error {
	var order []int
	for i := range w.codes {
		if c := &w.codes[i]; !c.known && w.cfg.Populated[c.group] {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &w.codes[i], &w.codes[j]
		return cmp.Or(w.cfg.Names.Compare(a.group, b.group), bytes.Compare(a.owner.code, b.owner.code))
	})
	probes := make([]sink.Probe, len(order))
	for n, i := range order {
		c := &w.codes[i]
		probes[n] = sink.Probe{Workspace: w.cfg.Names.Name(c.group), Code: c.owner.code, WantRun: w.cfg.Run != 0, WantRules: w.cfg.Parts, Parts: w.cfg.Parts}
	}
	if len(probes) == 0 {
		return nil
	}
	return w.cfg.Lookup(ctx, probes, func(f sink.Found) error {
		c := &w.codes[order[f.Probe]]
		c.owner = owner{identity: bytes.Clone(f.Canonical), key: f.Key, code: c.owner.code, state: w.stateOf(f.Run), alias: f.Alias}
		return nil
	})
}

// A Finder answers questions about single codes, for one goroutine. It must be closed.
type Finder struct {
	claims *extsort.Finder
}

// Finder returns a finder.
func (s *Settled) Finder() *Finder { return &Finder{s.claims.Finder()} }

// Close releases what the finder holds.
func (f *Finder) Close() { f.claims.Close() }

// Owner returns the canonical URL, with the parts of the identity, that has a code because of a claim; nil:
// none. The store is to be asked before.
func (f *Finder) Owner(ctx context.Context, group uint32, code []byte) (identity []byte, err error) {
	err = f.claims.Find(ctx, group, record.CodeKey(code), func(rec []byte) bool {
		if c := decode(rec); bytes.Equal(c.Code, code) {
			identity = bytes.Clone(c.Identity)
		}
		return identity == nil
	})
	return identity, err
}
