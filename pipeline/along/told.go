package along

import (
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/terms"
)

// Told is what rows say beyond code and URL: those that are not rejected before their codes are
// settled.
type Told struct {
	Domains    manifest.DomainCounts           // of inputs that have domains
	Warned     [hygiene.KindCount]record.Noted // rows of which the policy warns; the text is their URL
	NoTime     record.Noted                    // rows whose creation time cannot be read; the text is its cell
	NoExpiry   record.Noted                    // rows whose expiry cannot be read; the text is its cell
	NoStart    record.Noted                    // likewise of the time at which the link begins to work
	NoRedirect record.Noted                    // likewise of the redirect code
	NoState    record.Noted                    // likewise of the cell that says whether the link works
}

// A Row is one of an input.
type Row struct {
	At       record.Place
	Original []byte
	Domain   []byte                  // of its code, or else of the row
	Found    hygiene.Set             // what its cells and its URL tell
	Cell     func(column int) []byte // of the input
}

// Add takes what a row of an input says, of which the rules of hygiene have been asked.
func (t *Told) Add(a *Along, beyond *terms.Beyond, rules *hygiene.Rules, r *Row) {
	if a.hasDomains {
		t.Domains.Add(r.Domain, 1)
	}
	if r.Found != 0 { // as hardly ever
		for kind := range beyond.Policy.Warned(r.Found).All() {
			t.Warned[kind].Note(r.Original, r.At)
		}
	}
	if beyond.KeepCreated {
		if cell := a.badCreated(r.Cell); cell != nil {
			t.NoTime.Note(cell, r.At)
		}
	}
	if cell := a.hygiene.BadExpiry(r.Cell); cell != nil {
		t.NoExpiry.Note(cell, r.At)
	}
	if cell := a.hygiene.BadStart(r.Cell); cell != nil {
		t.NoStart.Note(cell, r.At)
	}
	if cell, _ := a.hygiene.BadRedirect(r.Cell); cell != nil {
		t.NoRedirect.Note(cell, r.At)
	}
	if cell := rules.BadState(&a.hygiene, r.Cell); cell != nil {
		t.NoState.Note(cell, r.At)
	}
}

// Merge takes what another was told.
func (t *Told) Merge(o *Told) {
	t.Domains.Merge(o.Domains)
	for kind := range t.Warned {
		t.Warned[kind].Merge(&o.Warned[kind])
	}
	t.NoTime.Merge(&o.NoTime)
	t.NoExpiry.Merge(&o.NoExpiry)
	t.NoStart.Merge(&o.NoStart)
	t.NoRedirect.Merge(&o.NoRedirect)
	t.NoState.Merge(&o.NoState)
}
