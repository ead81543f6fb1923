package verify_test

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/verify"
)

// A counted is a scheme with a counter.
type counted struct {
	scheme  manifest.Scheme
	counter codegen.Counter
	secret  codegen.Secret
	words   *codegen.Blocklist
}

// counters are the schemes with a counter, and one without a secret.
func counters() []counted {
	list := []counted{
		{manifest.Scheme{Name: codegen.NameCounter, Multiplier: 1}, must(codegen.NewCounter(codegen.Secret{}, 1)), codegen.Secret{}, nil},
		{manifest.Scheme{Name: codegen.NameCounter, Multiplier: 1315423911}, must(codegen.NewCounter(secret, 1315423911)), secret, shortWords},
		{manifest.Scheme{Name: codegen.NamePermuted}, must(codegen.NewPermuted(secret)), secret, shortWords},
	}
	for i := range list {
		s := &list[i].scheme
		s.CodeLength, s.Fingerprint = codegen.CounterLength, list[i].secret.Fingerprint()
		if list[i].words != nil {
			s.Blocklist = list[i].words.SHA256()
		}
	}
	return list
}

// count makes the mapping of the run in the working folder, which was made with sha256-base58, that of a
// run with a counter: each link that was generated gets the next number that is not blocked, in the order
// of workspace, canonical URL and parts, of which the code tells which rows have the same.
func (c *counted) count(t *testing.T, parts func(row map[string]string) string) {
	t.Helper()
	all := must(csv.NewReader(strings.NewReader(strings.Join(lines(t, mappingFile), ""))).ReadAll())
	at := map[string]int{}
	for i, name := range all[0] {
		at[name] = i
	}
	_, both := at["link_code"]
	m := readManifest(t)
	identity := func(row []string) string {
		cells := map[string]string{}
		for name, i := range at {
			cells[name] = row[i]
		}
		return row[at["workspace_id"]] + "\x00" + row[at["canonical_url"]] + "\x00" + parts(cells)
	}
	rows := all[1:]
	order := slices.Clone(rows)
	slices.SortStableFunc(order, func(a, b []string) int { return cmp.Compare(identity(a), identity(b)) })
	existing := map[string]bool{}
	for _, row := range rows {
		salt, link := row[at["salt"]], row[at["short_code"]]
		if both {
			salt, link = row[at["link_salt"]], row[at["link_code"]]
		}
		if salt == "" || row[at["outcome"]] == "existing" && row[at["short_code"]] == link || strings.HasSuffix(row[at["canonical_url"]], "/k") {
			existing[identity(row)] = true // or it brought its code along
		}
	}
	numbers, codes := map[string]string{}, map[string]string{}
	next, skipped := int64(101), int64(0)
	for _, row := range order {
		id := identity(row)
		if _, again := numbers[id]; again || existing[id] {
			continue
		}
		for {
			if next == 131 { // another reservation came between
				next = 1001
			}
			code := string(c.counter.AppendCode(nil, uint64(next)))
			numbers[id], codes[id] = fmt.Sprint(next), code
			if next++; c.words == nil || c.words.Match([]byte(code)) == "" {
				break
			}
			skipped++
		}
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write(slices.Insert(slices.Clone(all[0]), at["salt"]+1, "number"))
	for _, row := range rows {
		id := identity(row)
		if code := codes[id]; code != "" {
			if both && row[at["short_code"]] == row[at["link_code"]] || !both && row[at["salt"]] != "" {
				row[at["short_code"]] = code
			}
			if both {
				row[at["link_code"]] = code
			}
		}
		if row[at["salt"]] = ""; both {
			row[at["link_salt"]] = ""
		}
		w.Write(slices.Insert(slices.Clone(row), at["salt"]+1, numbers[id]))
	}
	w.Flush()
	m.Scheme = c.scheme
	m.Numbers = &manifest.Numbers{Ranges: []manifest.Range{{First: 101, Last: min(next-1, 130)}}, Skipped: skipped}
	if next > 1001 {
		m.Numbers.Ranges = append(m.Numbers.Ranges, manifest.Range{First: 1001, Last: next - 1})
	}
	m.Files[1].Rows = 0
	writeManifest(t, m)
	put(t, manifest.CollisionsName, lines(t, manifest.CollisionsName)[:1])
	put(t, mappingFile, []string{b.String()})
}

func noParts(map[string]string) string { return "" }

// checks are ways to check a run with a counter.
func (c *counted) checks() map[string]verify.Config {
	if c.secret.Fingerprint() == "" {
		return map[string]verify.Config{"all": {}}
	}
	return secrets(c.words)
}

// A run with a counter is found to be what it says, with secret and list and without.
func TestVerifyNumbersClean(t *testing.T) {
	for i, c := range counters() {
		for _, order := range []report.Order{report.SortOrder, report.InputOrder} {
			for name, with := range c.checks() {
				t.Run(fmt.Sprintf("%d/%s/%s", i, order, name), func(t *testing.T) {
					cfg := base(10)
					cfg.ReportOrder, cfg.BaseURL, cfg.Store = order, "", openStore(t, t.TempDir())
					job(t, cfg, map[string]string{"a.csv": table(5, 100, "url,team,note")})
					job(t, cfg, twoInputs())
					c.count(t, noParts)
					with.Inputs, with.Workers = []string{"?.csv"}, 3
					clean(t, with)
				})
			}
		}
	}
}

// So are those that keep legacy codes, and those whose identities have parts.
func TestVerifyNumbersOfModes(t *testing.T) {
	for i, c := range counters() {
		for _, order := range []report.Order{report.SortOrder, report.InputOrder} {
			for _, mode := range []legacy.Mode{legacy.Map, legacy.Keep, legacy.Both} {
				legacyRun(t, mode, func(c *pipeline.Config) { c.ReportOrder, c.CodeLength, c.MaxRetries = order, 7, 4 })
				c.count(t, noParts)
				for name, with := range c.checks() {
					t.Run(fmt.Sprintf("%d/%s/%s/%s", i, order, mode, name), func(t *testing.T) { clean(t, with) })
				}
			}
			for _, identity := range []rules.Identity{rules.ByURL, rules.ByParams, rules.ByRow} {
				for _, carry := range []bool{true, false} {
					rulesRun(t, func(c *pipeline.Config) {
						c.ReportOrder, c.Rules.Identity, c.NoCarry = order, identity, !carry
					})
					c.count(t, func(row map[string]string) string {
						p, _, _ := (&rules.Flags{Identity: identity}).Parse(&rules.Cells{[]byte(row["expires_at"]), []byte(row["max_uses"]), nil, nil, []byte(row["ref"])})
						return string(identity.AppendParts(nil, &p))
					})
					for name, with := range c.checks() {
						t.Run(fmt.Sprintf("%d/%s/%s/carry=%t/%s", i, order, identity, carry, name), func(t *testing.T) { clean(t, with) })
					}
				}
			}
		}
	}
}

// What is changed in the mapping or the manifest of a run with a counter is found, and named, although
// the digests are made to fit: also without the secret, but for what only that can tell.
func TestVerifyNumbersTampered(t *testing.T) {
	for i, c := range counters() {
		for _, order := range []report.Order{report.SortOrder, report.InputOrder} {
			cfg := base(10)
			cfg.ReportOrder, cfg.BaseURL, cfg.Source.WorkspaceColumn, cfg.Store = order, "", "", openStore(t, t.TempDir())
			job(t, cfg, map[string]string{"a.csv": "url\n" + x + "k\n"})
			var urls []string
			for _, letter := range "abbcdk" {
				urls = append(urls, x+string(letter))
			}
			job(t, cfg, map[string]string{"a.csv": "url\n" + strings.Join(urls, "\n") + "\nftp://x\n"})
			c.count(t, noParts)
			cells := map[string][]string{} // code and number by URL
			for _, row := range must(csv.NewReader(strings.NewReader(strings.Join(lines(t, mappingFile), ""))).ReadAll()) {
				cells[row[4]] = []string{row[5], row[9]}
			}
			row := func(name string, more ...string) map[string]string {
				where := map[string]string{"canonical_url": x + name}
				for i := 0; i < len(more); i += 2 {
					where[more[i]] = more[i+1]
				}
				return where
			}
			always := []tampering{
				{mappingFile, row("a"), "number", "", verify.BadNumber},
				{mappingFile, row("a"), "number", "0", verify.Damaged},
				{mappingFile, row("a"), "number", "7", verify.BadNumber},
				{mappingFile, row("a"), "number", cells[x+"d"][1], verify.BadNumber},
				{mappingFile, row("d"), "number", cells[x+"c"][1], verify.BadNumber},
				{mappingFile, row("b", "outcome", "duplicate"), "number", cells[x+"d"][1], verify.BadDuplicate},
				{mappingFile, row("b", "outcome", "duplicate"), "number", "", verify.BadDuplicate},
				{mappingFile, row("k"), "number", cells[x+"d"][1], verify.BadNumber},
				{mappingFile, row("a"), "salt", "0", verify.BadSalt},
				{mappingFile, row("a"), "short_code", cells[x+"d"][0], verify.CodeShared},
				{mappingFile, row("a"), "short_code", cells[x+"k"][0], verify.CodeShared},
				{mappingFile, row("a"), "short_code", "short", verify.BadCode},
				{mappingFile, row("a"), "outcome", "existing", verify.BadNumber},
				{mappingFile, row("k"), "outcome", "created", verify.BadNumber},
			}
			for name, with := range c.checks() {
				list := always
				if name != "no secret" && name != "neither" {
					list = append(slices.Clone(list), tampering{mappingFile, row("a"), "short_code", "zzzzzzz", verify.BadCode})
				}
				if with.Words != nil {
					list = append(slices.Clone(list), tampering{mappingFile, row("a"), "short_code", "aaaaaaa", verify.Blocked})
				}
				t.Run(fmt.Sprintf("%d/%s/%s", i, order, name), func(t *testing.T) {
					areFoundWith(t, with, name, list)
					verifyNumbersManifest(t, with)
				})
			}
		}
	}
}

func verifyNumbersManifest(t *testing.T, with verify.Config) {
	t.Helper()
	for field, change := range map[string]func(m *manifest.Manifest){
		"numbers":           func(m *manifest.Manifest) { m.Numbers = nil },
		"numbers.skipped":   func(m *manifest.Manifest) { m.Numbers.Skipped++; m.Numbers.Ranges[0].Last += 2 },
		"numbers.ranges[0]": func(m *manifest.Manifest) { m.Numbers.Ranges[0].First = 0 },
		"numbers.ranges[1]": func(m *manifest.Manifest) {
			m.Numbers.Ranges = append(m.Numbers.Ranges, manifest.Range{First: 50, Last: 60})
		},
		"scheme.code_length": func(m *manifest.Manifest) { m.Scheme.CodeLength = 8 },
		"scheme.multiplier":  func(m *manifest.Manifest) { m.Scheme.Multiplier = 62 },
		"scheme.fingerprint": func(m *manifest.Manifest) { m.Scheme.Fingerprint = "x" },
	} {
		good, m := readManifest(t), readManifest(t)
		change(m)
		writeManifest(t, m)
		v := verified(t, with)
		if !slices.ContainsFunc(v.Findings, func(f verify.Finding) bool { return string(f.Column) == field }) {
			t.Errorf("%s: found %v", field, v.Findings)
		}
		writeManifest(t, good)
	}
	good := lines(t, manifest.CollisionsName)
	put(t, manifest.CollisionsName, append(slices.Clone(good), "demo,"+x+"a,0,abcdefg,"+x+"b\n"))
	if v := verified(t, with); v.Kinds[verify.BadCollision] == 0 {
		t.Errorf("a line of collisions.csv: found %v", v.Findings)
	}
	put(t, manifest.CollisionsName, good)
	clean(t, with)
}

// A number is that of the link of a URL, also in rows that brought a code along.
func TestVerifyNumbersLegacyTampered(t *testing.T) {
	c := counters()[2]
	for mode, list := range map[legacy.Mode][]tampering{
		legacy.Keep: {
			{mappingFile, map[string]string{"short_code": "abc"}, "number", "101", verify.BadDuplicate},
			{mappingFile, map[string]string{"short_code": "tWo"}, "number", "101", verify.BadNumber},
			{mappingFile, map[string]string{"canonical_url": x + "d"}, "number", "", verify.BadNumber},
			{mappingFile, map[string]string{"canonical_url": x + "d"}, "short_code", "zzz", verify.BadCode},
			{mappingFile, map[string]string{"short_code": "tWo"}, "salt", "0", verify.BadSalt},
		},
		legacy.Both: {
			{mappingFile, map[string]string{"short_code": "abc"}, "number", "105", verify.BadDuplicate},
			{mappingFile, map[string]string{"short_code": "tWo"}, "number", "", verify.BadCount},
			{mappingFile, map[string]string{"short_code": "tWo"}, "link_code", "zzz", verify.BadCode},
			{mappingFile, map[string]string{"short_code": "tWo"}, "link_salt", "0", verify.BadSalt},
			{mappingFile, map[string]string{"short_code": "new"}, "number", "101", verify.BadDuplicate},
			{mappingFile, map[string]string{"canonical_url": x + "d"}, "number", "", verify.BadNumber},
		},
	} {
		for _, order := range []report.Order{report.SortOrder, report.InputOrder} {
			legacyRun(t, mode, func(c *pipeline.Config) { c.ReportOrder, c.CodeLength, c.MaxRetries = order, 7, 4 })
			c.count(t, noParts)
			for name, with := range c.checks() {
				t.Run(fmt.Sprint(mode, " ", order, " ", name), func(t *testing.T) {
					areFoundWith(t, with, name, list)
				})
			}
		}
	}
}

// Where neither a cell nor a code tells whether an expiry was reckoned, rows of one code are taken for
// those of one link.
func TestVerifySchemeReckoned(t *testing.T) {
	for _, order := range []report.Order{report.SortOrder, report.InputOrder} {
		for _, carry := range []bool{true, false} {
			cfg := keyed(7, nil)
			cfg.Store, cfg.ReportOrder, cfg.NoCarry, cfg.Source.WorkspaceColumn = openStore(t, t.TempDir()), order, !carry, ""
			cfg.Rules = &rules.Flags{Identity: rules.ByParams, ExpiresIn: 24 * time.Hour}
			job(t, cfg, map[string]string{"a.csv": "url,expires_at\n" + x + "a,\n" + x + "a,2026-01-03T03:04:05Z\n" + x + "a,\n" + x + "a,2026-01-03 03:04:05Z\n" +
				x + "b,2026-01-03T03:04:05Z\n" + x + "b,\nftp://x,\n"})
			if m := readManifest(t); m.Counts.Created != 4 {
				t.Fatalf("another run: %+v", m.Counts)
			}
			for name, with := range secrets(nil) {
				t.Run(fmt.Sprintf("%s/carry=%t/%s", order, carry, name), func(t *testing.T) {
					clean(t, with)
					with.Store, with.Inputs = cfg.Store, []string{"a.csv"}
					clean(t, with)
				})
			}
		}
	}
}
