package intake

import (
	"github.com/linkforge/bulk/pipeline/along"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/record"
)

// Migration says what a run looks at beyond code and URL.
type Migration struct {
	Domains legacy.Domains
	Hygiene hygiene.Rules
	Times   bool // creation times are kept, so they must be times
}

// Seen returns the kinds that the columns of the input, or the rules, tell.
func (i *Input) Seen(m *Migration) (seen hygiene.Set) {
	if m == nil {
		return 0
	}
	return m.Hygiene.Seen(&i.hygiene)
}

// Told is what the rows say beyond code and URL: those that are not rejected before their codes are
// settled.
type Told struct {
	Domains  map[string]int64                // rows of inputs that have domains, by domain; "": none. At most manifest.CountedDomains + 1: then there are more
	Warned   [hygiene.KindCount]record.Noted // rows of which the policy warns; the text is their URL
	NoTime   record.Noted                    // rows whose creation time cannot be read; the text is its cell
	NoExpiry record.Noted                    // rows whose expiry cannot be read; the text is its cell
}

func (t *Told) merge(o *Told) {
	for domain, n := range o.Domains {
		t.addDomain([]byte(domain), n)
	}
	for kind := range t.Warned {
		t.Warned[kind].Merge(&o.Warned[kind])
	}
	t.NoTime.Merge(&o.NoTime)
	t.NoExpiry.Merge(&o.NoExpiry)
}

func (t *Told) addDomain(domain []byte, n int64) {
	if t.Domains == nil {
		t.Domains = map[string]int64{}
	}
	domain = domain[:min(len(domain), 255)] // no domain is longer
	if _, known := t.Domains[string(domain)]; known || len(t.Domains) <= manifest.CountedDomains {
		t.Domains[string(domain)] += n
	}
}

// byURL says why a row is rejected because of what URL and code tell of its link; found is what the
// cells tell. Any other row is counted.
func (w *worker) byURL(in *Input, i int, at record.Place, old *record.Legacy, domain []byte, found hygiene.Set) (reason, detail string) {
	rules, original := &w.cfg.Migration.Hygiene, w.batch.URL(in.URLs, i)
	var code []byte
	if old != nil {
		code = old.Code
	}
	own := domain
	if w.cfg.Migration.Domains != legacy.DomainsKeep { // a code is that of any domain
		own = nil
	}
	found, reason, detail = rules.JudgeURL(found, original, record.StartedCanonical(w.buf), code, own)
	if reason != "" {
		return reason, detail
	}
	if in.hasDomains {
		w.told.addDomain(domain, 1)
	}
	if found != 0 {
		for kind := range rules.Policy.Warned(found).All() {
			w.told.Warned[kind].Note(original, at)
		}
	}
	if w.cfg.Migration.Times {
		if cell := along.BadCreated(in.Input, w.cellOf(i)); cell != nil {
			w.told.NoTime.Note(cell, at)
		}
	}
	if len(in.hygiene.Expires) > 0 {
		if cell := in.hygiene.BadExpiry(w.cellOf(i)); cell != nil {
			w.told.NoExpiry.Note(cell, at)
		}
	}
	return "", ""
}

// cellOf returns how to get the cells of a row.
func (w *worker) cellOf(i int) func(column int) []byte {
	return func(c int) []byte { return w.batch.Cell(c, i) }
}
