package campaign_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/campaign"
)

// A vector is a line of testdata/expand.jsonl.
type vector struct {
	Name         string
	Flags        []string
	File         *string
	FileBase64   []byte `json:"file_base64"`
	FilePadding  int    `json:"file_padding"`
	Columns      []string
	OtherColumns []string `json:"other_columns"`
	Rows         [][]any
	Workspace    string
	StripParams  []string `json:"strip_params"`
	MaxExpand    *int64   `json:"max_expand"`
	Expect       struct {
		Usage        bool
		Says         []string
		Options      string `json:"options_expand"`
		Combinations int64
		Warned       []string
		Counts       struct{ Records, Read, Created, Duplicate, Rejected int64 }
		Tagged       int64
		Rows         []expected
	}
}

// An expected is what becomes of a row.
type expected struct {
	Reject, Parameter string
	Variants          []variant
	Count             int
	First, Last       *variant
	SHA256            string
}

type variant struct {
	Variant   int64
	URL       string
	URLBase64 []byte `json:"url_base64"`
	Canonical string
	Code      string `json:"short_code"`
	Values    map[string]string
}

func (v *vector) file() (string, []byte) {
	text := v.FileBase64
	if v.File != nil {
		text = []byte(*v.File)
	}
	if v.FilePadding > 0 {
		text = append(append(append(text, '#'), bytes.Repeat([]byte("x"), v.FilePadding)...), '\n')
	}
	if v.File == nil && v.FileBase64 == nil {
		return "", nil
	}
	return "campaign.yaml", text
}

func (v *vector) row(n int) [][]byte {
	var cells [][]byte
	for _, cell := range v.Rows[n] {
		switch c := cell.(type) {
		case string:
			cells = append(cells, []byte(c))
		case nil:
			cells = append(cells, nil)
		case map[string]any:
			b, _ := base64.StdEncoding.DecodeString(c["base64"].(string))
			cells = append(cells, b)
		}
	}
	return cells
}

func vectors(t testing.TB) (list []vector) {
	f, err := os.Open("testdata/expand.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	if lines.Err() != nil || len(list) != 249 {
		t.Fatalf("%d cases, %v", len(list), lines.Err())
	}
	return list
}

// plan makes and binds the plan of a case.
func (v *vector) plan() (*campaign.Plan, campaign.Columns, error) {
	most := int64(campaign.DefaultMost)
	if v.MaxExpand != nil {
		most = *v.MaxExpand
	}
	name, text := v.file()
	p, err := campaign.Parse(v.Flags, name, text, most)
	if err != nil {
		return nil, nil, err
	}
	strip, err := canon.ParseStripParams(strings.Join(v.StripParams, ","))
	if err != nil {
		return nil, nil, err
	}
	if name := p.Stripped(strip); name != "" {
		return nil, nil, fmt.Errorf("%s would be stripped", name)
	}
	if v.OtherColumns != nil {
		if _, err := p.Bind(v.OtherColumns); err != nil {
			return nil, nil, err
		}
	}
	columns, err := p.Bind(v.Columns)
	return p, columns, err
}

func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			p, columns, err := v.plan()
			if v.Expect.Usage {
				if err == nil {
					t.Fatal("no error")
				}
				for _, word := range v.Expect.Says {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("%q does not say %q", err, word)
					}
				}
				t.Log(err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if p.Text() != v.Expect.Options || p.Combinations() != v.Expect.Combinations {
				t.Errorf("%d combinations of %s, want %d of %s", p.Combinations(), p.Text(), v.Expect.Combinations, v.Expect.Options)
			}
			var warned []string
			for _, m := range p.Misspelled() {
				warned = append(warned, m.Name)
			}
			if !slices.Equal(warned, v.Expect.Warned) {
				t.Errorf("warned of %q, want %q", warned, v.Expect.Warned)
			}
			again, err := campaign.ParseText(p.Text())
			if err != nil {
				t.Fatalf("the plan of its text: %v", err)
			}
			bound, err := again.Bind(v.Columns)
			if err != nil {
				t.Fatal(err)
			}
			checkRows(t, &v, p, columns)
			checkRows(t, &v, again, bound)
		})
	}
}

// checkRows expands all rows of a case, with one Row.
func checkRows(t *testing.T, v *vector, p *campaign.Plan, columns campaign.Columns) {
	row := p.NewRow()
	got := v.Expect.Counts
	got.Records, got.Read, got.Created, got.Duplicate, got.Rejected = int64(len(v.Rows)), 0, 0, 0, 0
	strip, _ := canon.ParseStripParams(strings.Join(v.StripParams, ","))
	profile := canon.Profile{StripParams: strip}
	var tagged int64
	links := map[string]bool{}
	for n := range v.Rows {
		reason, parameter, variants := expand(t, p, row, columns, profile, v.Workspace, v.Columns, v.row(n))
		want := &v.Expect.Rows[n]
		if reason != "" {
			got.Read++
			got.Rejected++
			if reason != want.Reject || parameter != want.Parameter {
				t.Errorf("row %d: rejected for %s of %s, want %s of %s", n+1, reason, parameter, want.Reject, want.Parameter)
			}
			continue
		}
		if row.Tagged {
			tagged++
		}
		got.Read += int64(len(variants))
		for _, x := range variants {
			if links[x.Canonical] {
				got.Duplicate++
			} else {
				got.Created++
			}
			links[x.Canonical] = true
		}
		compare(t, n, want, variants)
	}
	if got != v.Expect.Counts || tagged != v.Expect.Tagged {
		t.Errorf("counts %+v, tagged %d; want %+v, %d", got, tagged, v.Expect.Counts, v.Expect.Tagged)
	}
}

// compare compares the variants of a row.
func compare(t *testing.T, n int, want *expected, variants []variant) {
	if want.Count > 0 {
		sum := sha256.New()
		for _, x := range variants {
			fmt.Fprintf(sum, "%d %s %s\n", x.Variant, x.Canonical, x.Code)
		}
		if got := fmt.Sprintf("%x", sum.Sum(nil)); len(variants) != want.Count || got != want.SHA256 {
			t.Fatalf("row %d: %d variants with %s, want %d with %s", n+1, len(variants), got, want.Count, want.SHA256)
		}
		variants = []variant{variants[0], variants[len(variants)-1]}
		want = &expected{Variants: []variant{*want.First, *want.Last}}
	}
	for i := range want.Variants {
		x := &want.Variants[i]
		if x.URLBase64 != nil {
			x.URL, x.URLBase64 = string(x.URLBase64), nil
		}
	}
	equal := func(a, b variant) bool {
		return a.Variant == b.Variant && a.URL == b.URL && a.Canonical == b.Canonical && a.Code == b.Code && maps.Equal(a.Values, b.Values)
	}
	if want.Reject != "" || !slices.EqualFunc(variants, want.Variants, equal) {
		t.Errorf("row %d: got %+v, want %s %+v", n+1, variants, want.Reject, want.Variants)
	}
}

// expand expands a row as a run does.
func expand(t *testing.T, p *campaign.Plan, row *campaign.Row, columns campaign.Columns, profile canon.Profile, workspace string, names []string, cells [][]byte) (reason, parameter string, variants []variant) {
	url := cells[slices.Index(names, "url")]
	switch {
	case len(url) == 0:
		return "missing_url", "", nil
	case len(canon.Trim(url)) == 0:
		return "empty", "", nil
	}
	if f := row.Make(columns, url, func(c int) []byte { return cells[c] }); f != nil {
		if !strings.HasPrefix(f.Detail, f.Parameter+": ") {
			t.Errorf("the detail %q does not begin with %s", f.Detail, f.Parameter)
		}
		return "bad_campaign", f.Parameter, nil
	}
	longest, bare, hasBare := row.AppendExtremes(nil, nil)
	_, err := profile.Append(nil, longest)
	if hasBare && err == nil {
		_, err = profile.Append(nil, bare)
	}
	scheme, schemeErr := codegen.New(10)
	if schemeErr != nil {
		t.Fatal(schemeErr)
	}
	for row.Next() {
		x := variant{Variant: row.Number(), URL: string(row.AppendURL(nil)), Values: map[string]string{}}
		canonical, bad := profile.Append(nil, []byte(x.URL))
		if bad != nil {
			if err == nil {
				t.Errorf("%s: the extremes did not tell of %v", x.URL, bad)
			}
			return bad.Error(), "", nil
		}
		x.Canonical = string(canonical)
		x.Code = string(scheme.AppendCode(nil, scheme.Sum(codegen.AppendInput(nil, canonical, []byte(workspace), 0))))
		values, _ := p.Values(nil, nil, []byte(x.URL))
		for i, value := range values {
			if v := row.Value(i); (v == nil) != (value == nil) || !bytes.Equal(v, value) {
				t.Errorf("%s: %s is %q, and in the URL %q", x.URL, p.Names()[i], v, value)
			}
			if value != nil {
				x.Values[p.Names()[i]] = string(value)
			}
		}
		if what := p.CheckVariant(x.Variant, values); what != "" {
			t.Errorf("variant %d: %s", x.Variant, what)
		}
		variants = append(variants, x)
	}
	if err != nil {
		t.Errorf("the extremes told of %v, and no variant has it", err)
	}
	return "", "", variants
}
