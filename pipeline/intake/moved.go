package intake

import (
	"github.com/linkforge/bulk/pipeline/along"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/profile"
	"github.com/linkforge/bulk/pipeline/record"
)

// Moved says what a run looks at beyond code and URL.
type Moved struct {
	Domains legacy.Domains
	Hygiene hygiene.Rules
	Times   bool // creation times are kept, so they must be times
}

// Told is what the rows say beyond code and URL.
type Told struct {
	Domains map[string]int64                // accepted rows of inputs that have domains, by domain; "": none
	Warned  [hygiene.KindCount]record.Noted // accepted rows of which the policy warns; the text is their URL
	NoTime  record.Noted                    // accepted rows whose creation time cannot be read; the text is its cell
}

func (t *Told) merge(o *Told) {
	for domain, n := range o.Domains {
		t.addDomain([]byte(domain), n)
	}
	for kind := range t.Warned {
		t.Warned[kind].Merge(&o.Warned[kind])
	}
	t.NoTime.Merge(&o.NoTime)
}

func (t *Told) addDomain(domain []byte, n int64) {
	if t.Domains == nil {
		t.Domains = map[string]int64{}
	}
	t.Domains[string(domain)] += n
}

// moved is what a worker has found out beyond code and URL.
type moved struct {
	Told
	workspace []byte // of the row in hand
}

// byCells says what the cells of a row tell of its link, and why the row is rejected for it.
func (w *worker) byCells(in *Input, i int) (found hygiene.Set, reason, detail string) {
	rules, cell := &w.cfg.Moved.Hygiene, func(c int) []byte { return w.batch.Cell(c, i) }
	found = rules.Cells(&in.hygiene, cell)
	if kind, rejects := rules.Policy.Rejects(found); rejects {
		return found, kind.String(), kind.Detail(&in.hygiene, cell, nil, nil)
	}
	return found, "", ""
}

// byURL adds what URL and code tell of a link. If the row is accepted, it counts.
func (w *worker) byURL(in *Input, i int, at record.Place, old *record.Legacy, domain []byte, found hygiene.Set) (reason, detail string) {
	rules, original := &w.cfg.Moved.Hygiene, w.batch.URL(in.URLs, i)
	var code []byte
	if old != nil {
		code = old.Code
	}
	canonical := record.StartedCanonical(w.buf)
	found |= rules.URL(original, canonical, code, domain)
	if kind, rejects := rules.Policy.Rejects(found); rejects {
		return kind.String(), kind.Detail(nil, nil, original, canonical)
	}
	if in.HasDomains() {
		w.moved.addDomain(domain, 1)
	}
	for kind := range rules.Policy.Warned(found).All() {
		w.moved.Warned[kind].Note(original, at)
	}
	if w.cfg.Moved.Times {
		if cell := along.CreatedCell(in.Input, func(c int) []byte { return w.batch.Cell(c, i) }); len(cell) > 0 {
			if _, ok := profile.ParseTime(cell); !ok {
				w.moved.NoTime.Note(cell, at)
			}
		}
	}
	return "", ""
}
