package pipeline_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/legacy"
)

// Rejects of a legacy run are read as rows of its inputs: uncorrected they are rejected for the
// same reasons, corrected they are links and aliases.
func TestLegacyRejectsFedBack(t *testing.T) {
	const bitly = `{"links": [{"id": "b.example/k1", "custom_bitlinks": ["https://b.example/s"], "long_url": "http://example.com/1"},
		{"id": "b.example/k2", "custom_bitlinks": ["https://b.example/s", "https://b.example/admin", "https://b.example/a/b", "https://b.example/t"], "long_url": "http://example.com/2"},
		{"id": "b.example/k3", "custom_bitlinks": ["https://b.example/u"], "long_url": ""}], "pagination": {}}`
	for name, test := range map[string]struct {
		content string
		reasons string   // of the rejects, sorted
		correct []string // pairs of texts in the rejects
		links   []string // then, of the corrected rows: code, kind and URL
	}{
		"yourls.csv": {
			"keyword,url,title\n" + "k,http://example.com/1,one\na b,http://example.com/2,\"t, wo\"\nadmin,http://example.com/3,\nk,http://example.com/4,four\nl,,five\n",
			"bad_code code_reserved code_taken missing_url",
			[]string{`,a b,`, `,a-b,`, `,admin,`, `,adm,`, `,k,http://example.com/4,`, `,k4,http://example.com/4,`, `,l,,`, `,l,http://example.com/1,`},
			[]string{"a-b link http://example.com/2", "adm link http://example.com/3", "k4 link http://example.com/4", "l alias http://example.com/1"},
		},
		"bitly-api.json": {
			bitly, "bad_code code_reserved code_taken missing_url missing_url",
			[]string{`,b.example/s,`, `,/s2,`, `,b.example/admin,`, `,x.example/adm,`, `,b.example/a/b,`, `,/a-b,`, `,missing_url,the URL is blank,b.example/u,[],,`, `,,,b.example/u,[],http://example.com/3,`},
			[]string{"a-b alias http://example.com/2", "adm alias http://example.com/2", "s2 alias http://example.com/2", "u link http://example.com/3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := keeping(legacy.Keep, openStore(t, t.TempDir()))
			cfg.CodePattern, cfg.Codes.Pattern = "", nil
			cfg.Codes.Reserved, cfg.ReservedSHA256 = map[string]bool{"admin": true}, "sum"
			first, _ := job(t, cfg, map[string]string{name: test.content})
			profile := readManifest(t).Inputs[0].Profile
			rejects := first["rejects.csv"]
			var reasons []string
			for _, r := range records(t, rejects) {
				reasons = append(reasons, r["reason"])
			}
			if slices.Sort(reasons); strings.Join(reasons, " ") != test.reasons {
				t.Errorf("rejected for %q, want %s", reasons, test.reasons)
			}

			again, _ := job(t, cfg, map[string]string{"rejects.csv": rejects})
			place := []string{"source", "row", "byte_offset"}
			sameLines(t, without(t, again["rejects.csv"], place...), without(t, rejects, place...))

			corrected := strings.NewReplacer(test.correct...).Replace(rejects)
			files, result := job(t, cfg, map[string]string{"rejects.csv": corrected})
			if in := readManifest(t).Inputs[0]; in.Format != "rejects" || in.Profile != profile {
				t.Errorf("format %s, profile %s", in.Format, in.Profile)
			}
			var links []string
			for _, r := range records(t, files["mapping.csv"]) {
				links = append(links, r["short_code"]+" "+r["kind"]+" "+r["canonical_url"])
			}
			if slices.Sort(links); !slices.Equal(links, test.links) || result.LinksCreated != int64(len(links)) {
				t.Errorf("%q, %d created, want %q", links, result.LinksCreated, test.links)
			}
		})
	}
}
