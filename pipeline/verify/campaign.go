package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/judge"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/record"
)

// readCampaign finds the columns of a campaign, and calls bad with what no run writes.
func (r *run) readCampaign(bad func(field string, expected, got any)) {
	plan := r.terms.Campaign
	if (r.manifest.Campaign != nil) != (plan != nil) {
		bad("campaign", "there if, and only if, options has expand", r.manifest.Campaign != nil)
	}
	if plan == nil {
		return
	}
	if name := plan.Stripped(r.terms.URLs.StripParams); name != "" {
		bad("options.expand", "no parameter that the profile strips", name)
	}
	for i := range r.manifest.Inputs {
		in := &r.manifest.Inputs[i]
		if len(in.Columns) == 0 || in.Records == 0 && len(in.Columns) == 1 { // nobody knows its columns
			continue
		}
		var err error
		if r.judged[i].Campaign, err = plan.Bind(texts(in.Columns)); err != nil {
			bad(fmt.Sprintf("inputs[%d].columns", i), "the columns of options.expand", err)
		}
	}
}

// limited returns the books by which rejects are limited: of a campaign rows of the inputs, of which the
// manifest tells only the least and the most that have a reject.
func (r *run) limited() (least, most manifest.Counts) {
	least = r.manifest.Counts
	if r.terms.Campaign == nil || r.manifest.Campaign == nil {
		return least, least
	}
	least.Read = r.manifest.Inputs.Rows()
	expanded := r.manifest.Campaign.Expanded
	late := max(least.Rejected-(least.Read-expanded), 0) // rejects of variants
	least.Rejected, most = least.Read-expanded+min(late, 1), least
	most.Rejected = least.Read - expanded + min(late, expanded)
	return least, most
}

// many reports whether a row of an input may have become several.
func (r *run) many(input int) bool { return r.terms.Campaign != nil || r.codes.many(input) }

// anyMany reports whether a row of any input may have become several.
func (r *run) anyMany() bool { return r.terms.Campaign != nil || r.codes.anyMany() }

// variantKey tells variants of a campaign apart, as legacy codes do with other rows that one row became.
func variantKey(number int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(number)) }

// keyOf returns what tells a row of the mapping from others that its row became.
func (r *run) keyOf(l *link) []byte {
	if r.terms.Campaign != nil {
		return variantKey(l.Variant)
	}
	return l.Legacy
}

// keyOfReject is keyOf of a reject.
func (r *run) keyOfReject(variant int64, code []byte) []byte {
	if variant > 0 {
		return variantKey(variant)
	}
	return code
}

// variantOf returns the number of the variant that a reject is of, and its detail without that; 0: the
// row was rejected as a whole.
func (r *run) variantOf(rej *outcome.Reject) (number int64, detail string) {
	if r.terms.Campaign == nil {
		return 0, rej.Detail
	}
	return outcome.CutVariant(rej.Detail)
}

// resolved returns a URL of an input as a run takes it. Buf is used again.
func (r *run) resolved(buf *[]byte, url []byte) []byte {
	if r.terms.Base == nil {
		return url
	}
	full, ok := r.terms.Base.Resolve((*buf)[:0], url)
	if *buf = full; ok {
		return full
	}
	return url
}

// A variantChecker checks rows of the mapping against their plan, for one goroutine.
type variantChecker struct {
	run  *run
	url  []byte // that was resolved
	plan *campaign.Plan
	row  *campaign.Row
	to   *variantWriter
}

// check says which cell of a row is wrong; "": none is.
func (c *variantChecker) check(r *link) (column, expected, got string) {
	url := c.row.URLOf(c.run.resolved(&c.url, r.InputURL), r.Values)
	c.to.file(r.source, r.Row.Row, r.Variant, c.row.Tagged)
	if what := c.plan.CheckVariant(r.Variant, r.Values); what != "" {
		return "variant", what, strconv.FormatInt(r.Variant, 10)
	}
	if !bytes.Equal(url, r.Original) {
		return "original_url", string(url), string(r.Original)
	}
	return "", "", ""
}

// A variantWriter files which variants of rows the reports have.
type variantWriter struct{ *extsort.Writer }

// file files a variant of a row; 0: the row was rejected as a whole.
func (w *variantWriter) file(source int, row, number int64, tagged bool) {
	if source < 0 || row < 1 || row >= mostRecords {
		return
	}
	rec := w.Reserve(0, record.Place{Source: source, Row: row}.Key(), 9)
	binary.BigEndian.PutUint64(rec, uint64(number))
	rec[8] = byte(btoi(tagged))
}

// newVariantWriter returns a writer for one goroutine; nil: a row is one link.
func (s *sorters) newVariantWriter() *variantWriter {
	if s.variants == nil {
		return nil
	}
	return &variantWriter{s.variants.NewWriter()}
}

// verifyVariants checks that no row has a variant twice, or beside a reject of all of it, and counts what the
// manifest tells of the campaign. The rows are all that the reports have; with a mapping, they are
// told so.
func verifyVariants(ctx context.Context, rows *extsort.Sorter, run *run, whole bool, found *findings) error {
	if err := rows.Finish(ctx); err != nil {
		return err
	}
	c := rows.Cursor(ctx, 0)
	defer c.Close()
	got := manifest.Campaign{Combinations: run.terms.Campaign.Combinations()}
	var last struct {
		key    uint64
		number uint64
		any    bool
	}
	for c.Next() {
		rec := c.Record()
		number := binary.BigEndian.Uint64(rec)
		switch same := last.any && c.Key() == last.key; {
		case same && (number == last.number || last.number == 0):
			at := record.PlaceOf(c.Key(), -1)
			found.fault(string(run.manifest.Inputs[at.Source].Name), at.Row).wrong(RowRepeated, "variant", "", strconv.FormatUint(number, 10))
		case !same && number != 0:
			if got.Expanded++; rec[8] == 1 {
				got.Tagged++
			}
		}
		last.key, last.number, last.any = c.Key(), number, true
	}
	if err := c.Err(); err != nil || !whole || run.mapping == "" {
		return err
	}
	has := *run.manifest.Campaign
	for _, n := range []struct {
		field     string
		want, has int64
	}{{"combinations", got.Combinations, has.Combinations}, {"expanded", got.Expanded, has.Expanded}} {
		if n.want != n.has {
			found.wrong(BadCount, "campaign."+n.field, n.want, n.has)
		}
	}
	if has.Tagged < got.Tagged || has.Tagged > has.Expanded { // rejects of variants do not tell it
		found.wrong(BadCount, "campaign.tagged", got.Tagged, has.Tagged)
	}
	return nil
}

// judgeRow says why a run rejects a row. Of a variant of a campaign, whose number is not 0, all that is
// known of its row, and of itself, is in order: then it has its URL and canonical form.
func (r *run) judgeRow(source int, row *judge.Row, variant int64) (reason, detail string) {
	if r.judge.Campaign == nil {
		return r.judge.Row(&r.judged[source], row)
	}
	start := len(row.Canonical)
	reason, detail = r.judge.Expand(&r.judged[source], row)
	if row.Canonical = row.Canonical[:start]; reason != "" || variant == 0 {
		return reason, detail
	}
	r.judge.VariantOf(row, variant)
	return "", ""
}
