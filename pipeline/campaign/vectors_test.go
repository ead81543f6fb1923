package campaign_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/campaign/campaigntest"
)

// plan makes and binds the plan of a case.
func planOf(v *campaigntest.Case) (*campaign.Plan, campaign.Columns, error) {
	most := int64(campaign.DefaultMost)
	if v.MaxExpand != nil {
		most = *v.MaxExpand
	}
	name := ""
	text, given := v.Text()
	if given {
		name = "campaign.yaml"
	}
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
	for _, v := range campaigntest.Cases(t, "testdata/expand.jsonl") {
		t.Run(v.Name, func(t *testing.T) {
			p, columns, err := planOf(&v)
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
func checkRows(t *testing.T, v *campaigntest.Case, p *campaign.Plan, columns campaign.Columns) {
	row := p.NewRow()
	got := v.Expect.Counts
	got.Records, got.Read, got.Created, got.Duplicate, got.Rejected = int64(len(v.Rows)), 0, 0, 0, 0
	strip, _ := canon.ParseStripParams(strings.Join(v.StripParams, ","))
	profile := canon.Profile{StripParams: strip}
	var tagged int64
	links := map[string]bool{}
	for n := range v.Rows {
		reason, parameter, variants := expand(t, p, row, columns, profile, v.Workspace, v.Columns, v.Cells(n))
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
		if what := want.Difference(variants); what != "" {
			t.Errorf("row %d: %s", n+1, what)
		}
	}
	if got != v.Expect.Counts || tagged != v.Expect.Tagged {
		t.Errorf("counts %+v, tagged %d; want %+v, %d", got, tagged, v.Expect.Counts, v.Expect.Tagged)
	}
}

// expand expands a row as a run does.
func expand(t *testing.T, p *campaign.Plan, row *campaign.Row, columns campaign.Columns, profile canon.Profile, workspace string, names []string, cells [][]byte) (reason, parameter string, variants []campaigntest.Variant) {
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
		x := campaigntest.Variant{Variant: row.Number(), URL: string(row.AppendURL(nil)), Values: map[string]string{}}
		canonical, bad := profile.Append(nil, []byte(x.URL))
		if bad != nil {
			if err == nil {
				t.Errorf("%s: the extremes did not tell of %v", x.URL, bad)
			}
			return bad.Error(), "", nil
		}
		x.Canonical = string(canonical)
		x.Code = string(scheme.AppendCode(nil, scheme.Sum(codegen.AppendInput(nil, canonical, []byte(workspace), 0))))
		values, _ := p.Values(nil, nil, x.Variant, []byte(x.URL))
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
