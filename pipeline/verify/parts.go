package verify

import (
	"slices"

	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/shorturl"
)

// A Part is the stable name of something that Run did not compare.
type Part string

// What Run may leave out.
const (
	Files          Part = "files"           // the reports: the manifest has a value that no run writes, so rows cannot be computed again
	Links          Part = "links"           // the run stored nothing and has no mapping
	Details        Part = "reject_details"  // another version of the program wrote them, in its own words
	Inputs         Part = "inputs"          // none were given, or a report or an input cannot be read as the run read it
	Params         Part = "parameters"      // that rows gave for their links: only the inputs tell them
	BeyondLimit    Part = "beyond_limit"    // records of the inputs that the run did not read, because it was told how many to read
	Secret         Part = "secret"          // of the scheme, none was given: that each code is that of its URL or number is believed
	Words          Part = "blocklist"       // of the run, none was given: that it has the words for which codes were skipped is believed, and that no code of the run contains one
	Attributes     Part = "attrs"           // what went along with links, of which the mapping has no columns (--no-carry)
	ShortURLs      Part = "short_url"       // they have domains of rows, of which the mapping has no columns (--no-carry)
	Store          Part = "store"           // none was given
	LinksInStore   Part = "links_in_store"  // it was a dry run, which stores none
	ManifestDigest Part = "manifest_sha256" // neither Config.ManifestSHA256 nor a run of the store says which it must be
)

// sayParts fills in what was compared, and what was not. Rows of a run that is not understood
// were not compared with anything.
func (v *verifier) sayParts(run *run, understood bool) {
	m := run.manifest
	inputs := v.inputs != nil && !v.broken() && !slices.Contains(v.inputs.other, true)
	store := understood && v.cfg.Store != nil
	if inputs {
		v.result.Inputs = len(v.inputs.paths)
	}
	for _, p := range []struct {
		part Part
		left bool
	}{
		{Files, !understood},
		{Links, run.noMapping},
		{Details, understood && v.result.Rejects > 0 && v.cfg.Version != m.Version},
		{Inputs, !inputs},
		{Params, understood && !inputs && run.ruling.flags != nil && run.mapping != ""},
		{BeyondLimit, inputs && slices.ContainsFunc(m.Inputs, func(in manifest.Input) bool { return in.RecordsSHA256 != "" })},
		{Secret, understood && !run.coding.known && run.mapping != ""},
		{Words, understood && !run.coding.listed && run.mapping != ""},
		{Attributes, understood && store && run.terms.Beyond != nil && !run.terms.Carry},
		{ShortURLs, understood && run.base.Has(shorturl.Domain) && !run.terms.Beyond.ByDomain() && !run.terms.Carry},
		{Store, !store},
		{LinksInStore, store && run.terms.DryRun},
		{ManifestDigest, v.cfg.ManifestSHA256 == "" && !(store && run.stores())},
	} {
		if p.left {
			v.result.NotCompared = append(v.result.NotCompared, p.part)
		}
	}
}
