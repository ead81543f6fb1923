// Package outcome is the vocabulary of what becomes of a row: an accepted row has an
// [Outcome], any other is a [Reject], which has one of a closed list of reasons.
package outcome

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/linkforge/bulk/pipeline/legacy"
)

// An Outcome says what became of an accepted row.
type Outcome uint8

const (
	Created   Outcome = iota // this run made the link
	Existing                 // the store had the link
	Duplicate                // an earlier row of the sort is the link
	Count     = iota         // of outcomes
)

func (o Outcome) String() string {
	return [...]string{"created", "existing", "duplicate"}[o]
}

// Reasons of rejects beside those of packages canon and source.
const (
	MissingURL         = "missing_url"   // null or no bytes
	MissingCode        = "missing_code"  // of a row that shall have one
	BadWorkspace       = "bad_workspace" // of codegen.CheckWorkspace
	CodeSpaceExhausted = "code_space_exhausted"
	BadCampaign        = "bad_campaign" // of package campaign

	// Of legacy codes.
	BadCode      = legacy.BadCode
	CodeReserved = legacy.CodeReserved
	CodeTaken    = "code_taken" // another URL has it
)

// VariantDetail is the detail of a reject of a variant.
func VariantDetail(variant int, detail string) string {
	return fmt.Sprintf("variant %d: %s", variant, detail)
}

// CutVariant returns the number of the variant that VariantDetail has put before a detail, and the rest; 0:
// it has none.
func CutVariant(detail string) (variant int64, rest string) {
	after, ok := strings.CutPrefix(detail, "variant ")
	number, rest, colon := strings.Cut(after, ": ")
	variant, err := strconv.ParseInt(number, 10, 64)
	if !ok || !colon || err != nil || variant < 1 {
		return 0, detail
	}
	return variant, rest
}

// MissingURLDetail is the detail of each MissingURL.
const MissingURLDetail = "the URL is blank"

// MissingCodeDetail is the detail of each MissingCode.
const MissingCodeDetail = "there is no code in the cell"

// BadWorkspaceDetail is the detail of BadWorkspace, for a reason; each domain may have a workspace.
func BadWorkspaceDetail(why error, workspace []byte, ofDomain bool) string {
	if ofDomain && len(workspace) == 0 {
		return "the row has no domain: --workspace gives a workspace to such rows"
	}
	return fmt.Sprintf("%v: %.64q", why, workspace)
}

// ExhaustedDetail is the detail of each CodeSpaceExhausted, where salts up to maxRetries were
// tried, and some codes may be blocked.
func ExhaustedDetail(maxRetries int, blocked bool) string {
	detail := fmt.Sprintf("all %d codes of this URL have other owners", maxRetries+1)
	if blocked {
		detail += " or contain a word of --blocklist"
	}
	return detail
}

// BlockedBy begins the owner of a code that contains a word of a blocklist, which follows.
const BlockedBy = "blocklist:"

// BadCodeDetail is the detail of BadCode, where codes must match a pattern.
func BadCodeDetail(code []byte, pattern string) string {
	why := "does not match --code-pattern " + pattern
	switch {
	case len(code) > legacy.MaxCode:
		why = fmt.Sprintf("has %d bytes, and a code may have %d", len(code), legacy.MaxCode)
	case !utf8.Valid(code):
		why = "is not UTF-8"
	case legacy.HasControl(code):
		why = "has a control character"
	case legacy.HasDots(code):
		why = "has a segment . or .. , which browsers remove from a path"
	}
	return fmt.Sprintf("the code %.64q %s", code, why)
}

// CodeReservedDetail is the detail of CodeReserved.
func CodeReservedDetail(code []byte) string {
	return fmt.Sprintf("the code %.64q is on the list of --reserved", code)
}

// BadRedirectDetail says which cell of a column is no redirect code.
func BadRedirectDetail(column string, cell []byte) string {
	return fmt.Sprintf("%s: %.64q is not 301, 302, 307 or 308, nor 410", column, cell)
}

// OtherURLDetail is the detail of a row of a delete whose code is that of another URL, which is
// given.
func OtherURLDetail(url []byte) string { return "the code is that of " + beginning(url) }

// CodeTakenDetail is the detail of CodeTaken, with the canonical URL that has the code. Of a
// long URL it has the beginning. If it is the URL of the row, too, its link is one of other parts.
func CodeTakenDetail(code, owner, canonical []byte) string {
	detail := fmt.Sprintf("the code %.64q belongs to %s", code, beginning(owner))
	if string(owner) == string(canonical) {
		detail += ", with another expiry, use limit or reference"
	}
	return detail
}

// beginning is a URL as details have it.
func beginning(url []byte) string {
	const most = 300
	if len(url) > most {
		return string(url[:most]) + "…"
	}
	return string(url)
}

// A Reject is a row that has no link. The slices belong to the caller.
type Reject struct {
	Source string // the input as it was named
	Row    int64  // its record, from 1
	Offset int64  // byte offset of the record; -1: the format has none
	Reason string
	Detail string
	Cells  [][]byte // one for each input column; nil: null
	Raw    []byte   // the whole line, where it could not be split

	Variant int // of a campaign, where the row is not rejected as a whole; 0: none
}
