package audit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/sink"
)

// storeName stands for the store in findings.
const storeName = "store"

// storeChecker goes over all links of the store and, beside them, over those that
// the mapping says are there.
type storeChecker struct {
	*checker
	run    int32        // of the manifest; 0: unknown
	wanted *claimCursor // links of the mapping
	needs  *extsort.Writer
	number int64 // of the link in the store's order, from 1
}

// verifyStore checks every link of the store by itself, and that every link of
// the mapping is there as the run put it.
func (v *verifier) verifyStore(ctx context.Context) (err error) {
	scanner, ok := v.cfg.Store.(sink.Scanner)
	if !ok {
		return errors.New("this store cannot list its links")
	}
	run, err := v.findRun(ctx)
	if err != nil {
		return err
	}
	if err := v.stored.Finish(); err != nil {
		return err
	}
	low := v.newClaims()
	defer func() { err = errors.Join(err, low.Close()) }()
	c := &storeChecker{checker: &checker{verifier: v}, run: run, wanted: &claimCursor{v: v, sorted: v.stored}, needs: low.NewWriter()}
	defer c.wanted.close()
	if err := scanner.Scan(ctx, c.link); err != nil {
		return err
	}
	for ; c.wanted.more(); c.wanted.next() {
		c.missing()
	}
	if err := errors.Join(c.wanted.err, c.needs.Err(), low.Finish()); err != nil || low.Len() == 0 {
		return err
	}
	return v.explainStored(ctx, scanner, low)
}

// findRun returns the run that left this manifest; 0, with a finding, if the
// store has none.
func (v *verifier) findRun(ctx context.Context) (int32, error) {
	runs, err := v.cfg.Store.Runs(ctx)
	if err != nil || v.mapping == "" || v.dryRun() {
		return 0, err
	}
	for _, run := range runs {
		if run.ManifestSHA256 != v.result.ManifestSHA256 {
			continue
		}
		if report.Counts(run.Counts) != v.manifest.Counts {
			v.log.add(Finding{Kind: BadCount, File: storeName, Row: int64(run.ID), Column: "counts",
				Expected: report.Text(fmt.Sprint(v.manifest.Counts)), Found: report.Text(fmt.Sprint(run.Counts))})
		}
		return run.ID, nil
	}
	v.log.add(Finding{Kind: ManifestSum, File: report.ManifestName, Expected: "the digest of a run of the store", Found: report.Text(v.result.ManifestSHA256)})
	return 0, nil
}

func (v *verifier) dryRun() bool { return option{v.manifest.Options}.flag("dry_run") }

// want files a link of the mapping that the store must have.
func (w *checker) want(r *link) {
	c := claim{created: r.Outcome == report.Created, row: r.Number, code: r.Code, canonical: r.Canonical}
	if text := canon.Trim(r.Original); !bytes.Equal(text, r.Canonical) {
		c.owner = escapeInvalid(text)
	}
	w.file(w.wanted, r.Workspace, &c)
}

// escapeInvalid writes the bytes that are not UTF-8 as %XX, as the store has them.
func escapeInvalid(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	var out []byte
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 {
			out = fmt.Appendf(out, "%%%02X", text[0])
		} else {
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out
}

// link checks a link of the store.
func (c *storeChecker) link(l *sink.Stored) error {
	c.number++
	for ; c.wanted.more() && c.wanted.compare(l) < 0; c.wanted.next() {
		c.missing()
	}
	for ; c.wanted.more() && c.wanted.compare(l) == 0; c.wanted.next() {
		c.same(&c.wanted.claim, l)
	}
	c.checkLink(l)
	return cmp.Or(c.wanted.err, c.needs.Err())
}

func (c *storeChecker) missing() {
	w := &c.wanted.claim
	c.log.add(Finding{Kind: StoreMissing, File: c.mapping, Row: w.row, Column: "short_code", Expected: "a link of the store", Found: report.Text(w.code)})
}

// same compares a link of the mapping with that of the store.
func (c *storeChecker) same(w *claim, l *sink.Stored) {
	differs := func(column, expected, found string) {
		c.log.add(Finding{Kind: StoreDiffers, File: c.mapping, Row: w.row, Column: column, Expected: report.Text(expected), Found: report.Text(found)})
	}
	if !bytes.Equal(w.canonical, l.Canonical) {
		differs("canonical_url", string(w.canonical), string(l.Canonical))
	}
	if !w.created {
		return
	}
	if !bytes.Equal(w.owner, l.Original) {
		differs("original_url", string(w.owner), string(l.Original))
	}
	if c.run != 0 && l.Run != c.run {
		differs("run_id", fmt.Sprint(c.run), fmt.Sprint(l.Run))
	}
	if !l.Created.Equal(c.manifest.AsOf) {
		differs("created_at", c.manifest.AsOf.String(), l.Created.String())
	}
}

// checkLink checks a link by itself.
func (c *storeChecker) checkLink(l *sink.Stored) {
	wrong := func(kind Kind, column, expected, found string) {
		c.log.add(Finding{Kind: kind, File: storeName, Row: c.number, Column: column, Expected: report.Text(expected), Found: report.Text(found)})
	}
	if key := c.hash(l.Canonical, l.Workspace, 0).Key(); key != l.Key {
		wrong(StoreKey, "url_key", fmt.Sprintf("%x", key), fmt.Sprintf("%x", l.Key))
	}
	// Other runs may have had other options: the most lenient profile keeps all.
	lenient := canon.Profile{KeepUserinfo: true}
	original := l.Original
	if original == nil {
		original = l.Canonical
	}
	if form, err := lenient.Append(c.canon[:0], original); err != nil || !bytes.Equal(form, l.Canonical) {
		wrong(StoreCanonical, "canonical_url", string(form), string(l.Canonical))
	}
	salt := c.saltOf(l.Canonical, l.Workspace, l.Code, max(c.checker.run.mostSalt, saltOfAny))
	if salt < 0 {
		wrong(StoreCode, "short_code", "a code of its URL", string(l.Code))
	}
	scheme, err := codegen.New(len(l.Code))
	for s := 0; s < salt && err == nil; s++ {
		code := scheme.AppendCode(nil, c.hash(l.Canonical, l.Workspace, s))
		c.file(c.needs, l.Workspace, &claim{what: needs, salt: s, row: c.number, code: code, canonical: l.Canonical})
	}
}

// explainStored lists the lower codes that no link of the store has.
func (v *verifier) explainStored(ctx context.Context, scanner sink.Scanner, low *extsort.Sorter) error {
	at := &claimCursor{v: v, sorted: low}
	defer at.close()
	lost := func() {
		v.open.add(Finding{Kind: Unexplained, File: storeName, Row: at.claim.row, Column: "short_code",
			Expected: "an owner of " + report.Text(at.claim.code), Found: report.Text(at.claim.canonical)})
	}
	err := scanner.Scan(ctx, func(l *sink.Stored) error {
		for ; at.more() && at.compare(l) < 0; at.next() {
			lost()
		}
		for at.more() && at.compare(l) == 0 {
			at.next()
		}
		return at.err
	})
	for ; err == nil && at.more(); at.next() {
		lost()
	}
	return cmp.Or(err, at.err)
}

// A claimCursor moves over sorted claims.
type claimCursor struct {
	v      *verifier
	sorted *extsort.Sorter
	bucket *extsort.Bucket
	loaded int // buckets so far
	i      int // in bucket
	known  bool
	err    error
	claim  claim
	group  string
}

// more reports whether there is a claim, which is then in claim and group.
func (c *claimCursor) more() bool {
	for !c.known {
		if c.bucket != nil && c.i < c.bucket.Len() {
			c.claim, c.group, c.known = decodeClaim(c.bucket.Record(c.i)), c.v.groups.name(c.bucket.Group(c.i)), true
			c.i++
			break
		}
		c.close()
		if c.err != nil || c.loaded == c.sorted.Buckets() {
			return false
		}
		c.bucket, c.err = c.sorted.Load(c.loaded)
		c.loaded++
		c.i = 0
	}
	return true
}

func (c *claimCursor) next() { c.known = false }

// compare compares the claim in hand with a link, by workspace and code.
func (c *claimCursor) compare(l *sink.Stored) int {
	return cmp.Or(strings.Compare(c.group, string(l.Workspace)), bytes.Compare(c.claim.code, l.Code))
}

func (c *claimCursor) close() {
	if c.bucket != nil {
		c.bucket.Release()
		c.bucket = nil
	}
}
