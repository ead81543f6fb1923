// Package gen generates URL lists for benchmarks. The same options give the same list on
// every machine.
package gen

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Options describe a list. Shares are between 0 and 1.
type Options struct {
	Rows       int64
	First      int64   // number of the first distinct URL, which decides whether lists overlap
	Duplicates float64 // share of rows that repeat an earlier URL, in another spelling if one of the two is dirty
	Dirty      float64 // share of rows that need more than the fast path to be canonicalized
	Rejects    float64 // share of rows that have no canonical form
	Workspaces int     // number of workspaces in a column "workspace"; 0: no such column
	Codes      bool    // a column "code" has another code for each row, of six base62 characters
	Rules      bool    // columns "expires_at" and "owner_id": one of 1,000 days and of 1,000 owners
	Expanded   bool    // in place of each URL there are Variants rows: what a campaign with Parameters makes of it
	Seed       uint64
}

// Parameters are those of the campaign of [Options.Expanded], as flags of bulk.
var Parameters = []string{"utm_campaign=spring", "utm_content=header,footer", "utm_medium=email,social,paid", "utm_source=newsletter,facebook,linkedin,partner,print"}

// Variants is how many combinations they have.
const Variants = 30

var (
	hosts    = []string{"www.example.com", "shop.example.org", "news.example.net", "blog.example.co.uk", "docs.example.io", "cdn.assets.example.com"}
	sections = []string{"products", "articles", "2024/05/17", "en-gb/help", "users", "categories/home-and-garden", "p", "api/v2/items"}
	words    = []string{"spring", "collection", "guide", "how", "to", "best", "review", "summer", "price", "report", "annual", "new", "update", "world", "market", "local"}
)

// mix spreads the bits of a number.
const mix = 0x9e3779b97f4a7c15

// Write writes the list as CSV with a header. A row has about 80 bytes.
func Write(w io.Writer, o Options) error {
	out := bufio.NewWriterSize(w, 1<<20)
	header := "url"
	if o.Workspaces > 0 {
		header += ",workspace"
	}
	if o.Codes {
		header += ",code"
	}
	if o.Rules {
		header += ",expires_at,owner_id"
	}
	out.WriteString(header + "\n")
	var line []byte
	row := uint64(0)
	err := o.each(func(url, workspace []byte) error {
		if o.Expanded {
			return writeVariants(out, url)
		}
		line = append(line[:0], url...)
		if o.Workspaces > 0 {
			line = append(append(line, ','), workspace...)
		}
		if o.Codes {
			line = appendCode(append(line, ','), row)
			row++
		}
		if o.Rules {
			line = appendRules(line, url)
		}
		_, err := out.Write(append(line, '\n'))
		return err
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// writeVariants writes the variants of a URL, in the order of their numbers.
func writeVariants(out *bufio.Writer, url []byte) error {
	base, fragment, _ := strings.Cut(string(url), "#")
	for _, own := range []string{"utm_source=mail&", "&utm_source=mail"} {
		base = strings.Replace(base, own, "", 1)
	}
	if fragment != "" {
		fragment = "#" + fragment
	}
	variants := []string{base}
	for _, p := range Parameters {
		name, values, _ := strings.Cut(p, "=")
		var next []string
		for _, v := range variants {
			for value := range strings.SplitSeq(values, ",") {
				mark := "&"
				if !strings.Contains(v, "?") {
					mark = "?"
				}
				next = append(next, v+mark+name+"="+value)
			}
		}
		variants = next
	}
	for _, v := range variants {
		if _, err := out.WriteString(v + fragment + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// each visits the rows in their order; the bytes are valid until visit returns.
func (o Options) each(visit func(url, workspace []byte) error) error {
	rnd := rand.New(rand.NewPCG(o.Seed, 1))
	var url, workspace []byte
	distinct := int64(0)
	for range o.Rows {
		n := o.First + distinct
		if distinct > 0 && rnd.Float64() < o.Duplicates {
			n = o.First + rnd.Int64N(distinct)
		} else {
			distinct++
		}
		url = appendURL(url[:0], n, rnd.Float64() < o.Dirty)
		if rnd.Float64() < o.Rejects {
			url = append(url[:0], "ftp://example.com/"...)
			url = strconv.AppendInt(url, n, 10)
		}
		if o.Workspaces > 0 {
			workspace = appendWorkspace(workspace[:0], uint64(n)*mix>>32%uint64(o.Workspaces))
		}
		if err := visit(url, workspace); err != nil {
			return err
		}
	}
	return nil
}

// appendWorkspace appends ws_ and at least six digits.
func appendWorkspace(dst []byte, n uint64) []byte { return fmt.Appendf(dst, "ws_%06d", n) }

// appendCode appends the code of a row. No two rows below 62^6 have the same, and the codes are
// not in the order of the rows.
func appendCode(dst []byte, row uint64) []byte {
	const digits, all = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 62 * 62 * 62 * 62 * 62 * 62
	n := row * 2654435761 % all // a factor that has no divisor with 62 in common
	for range 6 {
		dst = append(dst, digits[n%62])
		n /= 62
	}
	return dst
}

// appendRules appends an expiry after 2030 and an owner, which follow from the URL.
func appendRules(dst, url []byte) []byte {
	h := fnv.New32a()
	h.Write(url)
	n := int(h.Sum32())
	dst = time.Date(2030, 1, 1+n%1000, 0, 0, 0, 0, time.UTC).AppendFormat(append(dst, ','), time.RFC3339)
	return strconv.AppendInt(append(dst, ",user-"...), int64(n/1000%1000), 10)
}

// appendURL appends URL number n in a nearly canonical spelling, or in a dirty spelling
// of the same canonical form.
func appendURL(dst []byte, n int64, dirty bool) []byte {
	h := uint64(n)*mix ^ uint64(n)>>7
	pick := func(list []string) string {
		h = h*6364136223846793005 + 1442695040888963407
		return list[h>>33%uint64(len(list))]
	}
	host, section, a, b, c := pick(hosts), pick(sections), pick(words), pick(words), pick(words)
	scheme, port, slash, dash := "https://", "/", "/", "-"
	if dirty {
		scheme, port, slash, dash = "HTTPS://", ":443/", "/./", "%2d"
	}
	for _, s := range [...]string{scheme, host, port, section, slash, a, "-", b, dash, c, "-"} {
		dst = append(dst, s...)
	}
	dst = strconv.AppendInt(dst, n, 10)
	if dirty {
		dst = strconv.AppendInt(append(dst, "/?utm_source=mail&id="...), n%9973, 10)
		return append(dst, "#top"...)
	}
	dst = strconv.AppendInt(append(dst, "?id="...), n%9973, 10)
	return append(dst, "&utm_source=mail"...)
}
