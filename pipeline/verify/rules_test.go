package verify_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/verify"
	"github.com/linkforge/bulk/sink"
)

const rulesHeader = "url,expires_at,max_uses,link_type,owner_id,ref,note\n"

// rulesRun is a run with link rules: of a new link, one that has not changed, and for each change
// one that exists, with duplicates and rejects.
func rulesRun(t *testing.T, change func(*pipeline.Config)) (store sink.Store, dir string) {
	t.Helper()
	dir = t.TempDir()
	cfg := pipeline.Config{Workspace: "demo", Version: "test", Store: openStore(t, dir), Rules: new(rules.Flags), OnDrift: rules.Update}
	if change != nil {
		change(&cfg)
	}
	job(t, cfg, map[string]string{"a.csv": rulesHeader +
		x + "dead,2026-01-01,,,,,\n" + x + "temporary,,,TEMPORARY,,,\n" + x + "plain,,,,,,\n" + x + "same,,7,,,,\n" +
		x + "owned,,,,ann,,\n" + x + "ended,2026-01-01,,,ann,,\n"})
	job(t, cfg, map[string]string{"a.csv": rulesHeader +
		x + "new,2026-06-01,,,ann,r1,\n" + x + "new,2026-05-01,,,ann,,\n" + x + "new,,,,bob,,\n" + x + "new,2026-06-01,,,ann,r1,\n" + // the first speaks
		x + "dead,2026-06-01,,,,,\n" + x + "temporary,,,permanent,ann,,\n" + x + "plain,,5,,,,\n" + x + "same,,7,,,,\n" +
		x + "owned,,,,bob,,\n" + x + "owned,,3,,,,\n" + x + "ended,,,,bob,,\n" + x + "none,soon,,,,,\nftp://x,,,,,,\n"})
	clean(t, verify.Config{Store: cfg.Store, Inputs: []string{"a.csv"}})
	return cfg.Store, dir
}

// What is changed in a report of a run with link rules is found, and named, although the digests are
// made to fit.
func TestVerifyRulesTampered(t *testing.T) {
	row := func(name string, more ...string) map[string]string {
		where := map[string]string{"canonical_url": x + name}
		for i := 0; i < len(more); i += 2 {
			where[more[i]] = more[i+1]
		}
		return where
	}
	reject := func(url string) map[string]string { return map[string]string{"url": url} }
	always := []tampering{
		{mappingFile, row("new", "outcome", "created"), "expires_at", "2026-06-02T00:00:00Z", verify.BadParameter},
		{mappingFile, row("new", "outcome", "created"), "in_expires_at", "2026-06-02", verify.BadParameter},
		{mappingFile, row("new", "outcome", "created"), "in_expires_at", "soon", verify.BadOutcome},
		{mappingFile, row("new", "outcome", "created"), "owner_id", "eve", verify.BadParameter},
		{mappingFile, row("new", "in_owner_id", "bob"), "owner_id", "bob", verify.BadParameter}, // it shows what the link has
		{mappingFile, row("new", "in_expires_at", "2026-05-01"), "expires_at", "2026-05-01T00:00:00Z", verify.BadParameter},
		{mappingFile, row("same"), "max_uses", "8", verify.BadChange},
		{mappingFile, row("plain"), "max_uses", "6", verify.BadParameter},
		{mappingFile, row("plain"), "max_uses", "05", verify.BadParameter},
		{mappingFile, row("temporary"), "link_type", "", verify.BadParameter},
		{mappingFile, row("same"), "change", "renewed", verify.Damaged},
		{mappingFile, row("new", "in_owner_id", "bob"), "change", "", verify.BadChange},
		{mappingFile, row("new", "outcome", "created"), "change", "revived", verify.BadChange},
		{mappingFile, row("new", "outcome", "created"), "outcome", "existing", verify.BadCount},
		{mappingFile, row("new", "outcome", "created"), "outcome", "duplicate", verify.BadOutcome},
		{mappingFile, row("new", "in_owner_id", "bob"), "outcome", "created", verify.BadOutcome},
		{mappingFile, row("new", "in_owner_id", "bob"), "short_code", "zzzzzzzzzz", verify.BadDuplicate},
		{mappingFile, row("new", "in_owner_id", "bob"), "salt", "1", verify.BadDuplicate},
		{mappingFile, row("same"), "short_code", "zzzzzzzzzz", verify.BadCode},
		{rejectsFile, reject(x + "none"), "expires_at", "2026-01-02", verify.BadReason},
		{rejectsFile, reject(x + "none"), "detail", "expires_at: soon", verify.BadDetail},
		{rejectsFile, reject(x + "ended"), "reason", "drifted", verify.BadReason},
		{rejectsFile, reject(x + "ended"), "detail", "the link belongs to ann", verify.BadDetail},
		{rejectsFile, reject(x + "ended"), "owner_id", "", verify.BadReason},
	}
	updating := append([]tampering{
		{mappingFile, row("dead"), "change", "", verify.BadCount},
		{mappingFile, row("dead"), "change", "claimed", verify.BadChange},
		{mappingFile, row("plain"), "change", "drifted", verify.BadCount}, // the link could have an owner
		{mappingFile, row("plain"), "change", "other_owner", verify.BadChange},
		{mappingFile, row("temporary"), "change", "updated", verify.BadCount},
		{mappingFile, row("owned", "in_owner_id", ""), "change", "updated", verify.BadChange},
		{mappingFile, row("owned", "in_owner_id", "bob"), "change", "", verify.BadChange},
		{mappingFile, row("owned", "in_owner_id", "bob"), "outcome", "existing", verify.BadOutcome},
		{mappingFile, row("new", "in_expires_at", "2026-05-01"), "change", "other_owner", verify.BadChange},
	}, always...)
	rejecting := append([]tampering{
		{rejectsFile, reject(x + "plain"), "detail", "the link has other parameters: uses", verify.BadDetail},
		{rejectsFile, reject(x + "plain"), "max_uses", "many", verify.BadReason},
		{rejectsFile, reject(x + "new"), "expires_at", "2026-06-01", verify.BadReason},
		{rejectsFile, reject(x + "new"), "detail", "the link has other parameters: expires_at, owner_id", verify.BadDetail},
		{mappingFile, row("dead"), "change", "updated", verify.BadOutcome},
	}, always[:4]...)
	for onDrift, list := range map[rules.OnDrift][]tampering{rules.Update: updating, rules.Reject: rejecting} {
		inOrders(t, func(t *testing.T, order report.Order) {
			rulesRun(t, func(c *pipeline.Config) { c.OnDrift, c.ReportOrder = onDrift, order })
			areFound(t, onDrift.String(), list)
		})
	}
}

// Another row than the one that speaks for a link is found, whether it has other parameters or
// comes later in the sort only because of its place.
func TestVerifyRulesSpeaker(t *testing.T) {
	inOrders(t, func(t *testing.T, order report.Order) {
		rulesRun(t, func(c *pipeline.Config) { c.ReportOrder = order })
		good := lines(t, mappingFile)
		speaker := slices.IndexFunc(good, func(line string) bool { return strings.Contains(line, ",created,") })
		for i, line := range good {
			if !strings.Contains(line, x+"new") || i == speaker {
				continue
			}
			bad := slices.Clone(good)
			bad[speaker] = strings.Replace(good[speaker], ",created,", ",duplicate,", 1)
			bad[i] = strings.Replace(line, ",duplicate,", ",created,", 1)
			put(t, mappingFile, bad)
			if v := verified(t, verify.Config{}); v.Kinds[verify.BadOutcome] == 0 {
				t.Errorf("%s instead of %s: found %v", line, good[speaker], v.Findings)
			}
		}
	})
}

// What is changed in lines of collisions.csv is found where identities have parts, these too.
func TestVerifyRulesCollisions(t *testing.T) {
	inOrders(t, func(t *testing.T, order report.Order) {
		cfg := pipeline.Config{Workspace: "demo", Version: "test", CodeLength: 1, MaxRetries: 20, ReportOrder: order, Rules: &rules.Flags{Identity: rules.ByParams}}
		var b strings.Builder
		for i := range 40 {
			fmt.Fprintf(&b, "%s%d,,%d,,,,\n", x, i%3, i/3+1)
		}
		job(t, cfg, map[string]string{"a.csv": rulesHeader + b.String()})
		clean(t, verify.Config{})
		good := lines(t, "collisions.csv")
		if len(good) < 10 {
			t.Fatal("too few collisions")
		}
		find := func(what string, i int, bad []string) {
			put(t, "collisions.csv", bad)
			if v := verified(t, verify.Config{}); v.Kinds[verify.BadOrder]+v.Kinds[verify.Uncollided]+v.Kinds[verify.BadCollision]+v.Kinds[verify.BadOwner]+v.Kinds[verify.BadCode] == 0 {
				t.Errorf("line %d, %s: found %v", i, what, kinds(v))
			}
		}
		for i := 1; i < len(good); i += apart(good, 8) {
			find("removed", i, slices.Delete(slices.Clone(good), i, i+1))
			find("doubled", i, slices.Insert(slices.Clone(good), i, good[i]))
			for column := 1; column < 6; column++ {
				bad := slices.Clone(good)
				bad[i] = changed(cellsOf(good[i]), column)
				find(fmt.Sprint("column ", column), i, bad)
			}
		}
	})
}

// Without carried cells only the inputs tell what rows say of their links: with them each row is judged.
func TestVerifyRulesInputs(t *testing.T) {
	inOrders(t, func(t *testing.T, order report.Order) {
		for _, c := range []struct {
			url, column, to string
			want            verify.Kind
		}{
			{"plain", "max_uses", "6", verify.BadParameter},
			{"owned", "change", "", verify.BadChange},
		} {
			rulesRun(t, func(c *pipeline.Config) { c.NoCarry, c.ReportOrder = true, order })
			bad := tampering{mappingFile, map[string]string{"canonical_url": x + c.url}, c.column, c.to, c.want}
			bad.apply(t)
			for inputs, want := range map[string]bool{"a.csv": true, "": false} {
				var cfg verify.Config
				if inputs != "" {
					cfg.Inputs = []string{inputs}
				}
				v := verified(t, cfg)
				if (v.Kinds[c.want] > 0) != want || slices.Contains(v.NotCompared, verify.Params) == want {
					t.Errorf("%+v, inputs %q: found %+v, not compared %v", bad, inputs, v.Findings, v.NotCompared)
				}
			}
		}
	})
}

// The parts of identities are proved by the codes, and with inputs row by row.
func TestVerifyRulesParts(t *testing.T) {
	inOrders(t, func(t *testing.T, order report.Order) {
		for _, identity := range []rules.Identity{rules.ByParams, rules.ByRow} {
			for _, noCarry := range []bool{false, true} {
				rulesRun(t, func(c *pipeline.Config) {
					c.Rules, c.NoCarry, c.ReportOrder = &rules.Flags{Identity: identity}, noCarry, order
				})
				good := lines(t, mappingFile)
				at := slices.Index(cellsOf(good[0]), "parts")
				for i := 1; i < len(good); i++ {
					for _, to := range []string{"", "|e=+60", "|r=%", "%zz"} {
						cells := cellsOf(good[i])
						if cells[at] == to {
							continue
						}
						cells[at] = to
						bad := slices.Clone(good)
						bad[i] = strings.Join(cells, ",") + "\n" // no cell needs quotes
						put(t, mappingFile, bad)
						if v := verified(t, verify.Config{}); v.Failed() == 0 {
							t.Errorf("%s, no carry %t: %q for %s is not found", identity, noCarry, to, good[i])
						}
						if v := verified(t, verify.Config{Inputs: []string{"a.csv"}}); v.Kinds[verify.InputDiffers] != 1 {
							t.Errorf("%s, no carry %t: %q for %s, with inputs: %+v", identity, noCarry, to, good[i], v.Findings)
						}
					}
				}
			}
		}
	})
}

// So is what the manifest says of link rules.
func TestVerifyRulesManifest(t *testing.T) {
	rulesRun(t, func(c *pipeline.Config) {
		c.Rules = &rules.Flags{ExpiresIn: 24 * time.Hour, Type: rules.Permanent}
	})
	for field, change := range map[string]func(m *manifest.Manifest){
		"rules.changes":         func(m *manifest.Manifest) { m.Rules.Changes["revived"]++ },
		"rules":                 func(m *manifest.Manifest) { m.Rules = nil },
		"options.identity":      func(m *manifest.Manifest) { m.Options["identity"] = "URL" },
		"options.on_drift":      func(m *manifest.Manifest) { delete(m.Options, "on_drift") },
		"options.revive":        func(m *manifest.Manifest) { m.Options["revive"] = "some" },
		"options.temporary_ttl": func(m *manifest.Manifest) { m.Options["temporary_ttl"] = "8h" },
		"options.expires_in":    func(m *manifest.Manifest) { m.Options["expires_in"] = "-24h0m0s" },
		"options.expires_at":    func(m *manifest.Manifest) { m.Options["expires_at"] = "2026-01-02" },
		"options.max_uses":      func(m *manifest.Manifest) { m.Options["max_uses"] = int64(0) },
		"options.link_type":     func(m *manifest.Manifest) { m.Options["link_type"] = "permanent" },
		"options.owner":         func(m *manifest.Manifest) { m.Options["owner"] = "\x00" },
		"inputs[0].columns":     func(m *manifest.Manifest) { m.Options["map_owner_id"] = "nobody" },
	} {
		good, m := readManifest(t), readManifest(t)
		change(m)
		writeManifest(t, m)
		if v := verified(t, verify.Config{}); !slices.ContainsFunc(v.Findings, func(f verify.Finding) bool { return string(f.Column) == field }) {
			t.Errorf("%s: found %v", field, v.Findings)
		}
		writeManifest(t, good)
	}
	for field, change := range map[string]func(m *manifest.Manifest){
		"expires_at": func(m *manifest.Manifest) { m.Options["expires_in"] = "48h0m0s" },
		"max_uses":   func(m *manifest.Manifest) { m.Options["max_uses"] = int64(3) },
		"link_type":  func(m *manifest.Manifest) { delete(m.Options, "link_type") },
		"owner_id":   func(m *manifest.Manifest) { m.Options["owner"] = "eve" },
	} {
		good, m := readManifest(t), readManifest(t)
		change(m)
		writeManifest(t, m)
		if v := verified(t, verify.Config{}); !slices.ContainsFunc(v.Findings, func(f verify.Finding) bool { return f.Kind == verify.BadParameter && string(f.Column) == field }) {
			t.Errorf("%s: found %v", field, v.Findings)
		}
		writeManifest(t, good)
	}
	m := readManifest(t)
	delete(m.Options, "rules")
	writeManifest(t, m)
	if v := verified(t, verify.Config{}); v.Kinds[verify.BadManifest] != 6 {
		t.Errorf("options without rules: found %v", v.Findings)
	}
}

// What the store has of the links that a run with link rules created or changed is compared.
func TestVerifyRulesStore(t *testing.T) {
	link := func(name string) string { return " WHERE canonical_url = '" + x + name + "'" }
	for _, c := range []struct {
		identity rules.Identity
		changes  map[string]verify.Kind
	}{
		{rules.ByURL, map[string]verify.Kind{
			"UPDATE links SET expires_at = '2027-01-01 00:00:00.000000'" + link("new"):  verify.StoreDiffers,
			"UPDATE links SET expires_at = NULL" + link("new"):                          verify.StoreDiffers,
			"UPDATE links SET owner_id = 'eve'" + link("new"):                           verify.StoreDiffers,
			"UPDATE links SET max_uses = 1" + link("new"):                               verify.StoreDiffers,
			"UPDATE links SET link_type = 'TEMPORARY'" + link("new"):                    verify.StoreDiffers,
			"UPDATE links SET ref = 'r1'" + link("new"):                                 verify.StoreDiffers,
			"UPDATE links SET expires_at = '2027-01-01 00:00:00.000000'" + link("dead"): verify.StoreDiffers,
			"UPDATE links SET max_uses = 6" + link("plain"):                             verify.StoreDiffers,
			"UPDATE links SET max_uses = 6" + link("same"):                              verify.StoreDiffers,
			"UPDATE links SET owner_id = 'eve'" + link("owned"):                         verify.StoreDiffers,
			"UPDATE links SET owner_id = 'eve'" + link("temporary"):                     verify.StoreDiffers,
			"UPDATE links SET changed_run = NULL, change = NULL" + link("dead"):         verify.StoreDiffers,
			"UPDATE links SET change = 'updated'" + link("dead"):                        verify.StoreDiffers,
			"UPDATE links SET changed_run = 2, change = 'updated'" + link("same"):       verify.StoreDiffers,
			"UPDATE links SET base_key = url_key" + link("new"):                         "",
			"UPDATE links SET base_key = randomblob(16)" + link("new"):                  verify.StoreKey,
			"UPDATE links SET access_count = 3, status = 'PAUSED'" + link("same"):       "", // as a service does
		}},
		{rules.ByParams, map[string]verify.Kind{
			"UPDATE links SET base_key = NULL WHERE base_key IS NOT NULL":                 verify.StoreKey,
			"UPDATE links SET base_key = randomblob(16) WHERE base_key IS NOT NULL":       verify.StoreKey,
			"UPDATE links SET url_key = randomblob(16)" + link("new") + " AND run_id = 2": verify.StoreDiffers,
		}},
		{rules.ByRow, map[string]verify.Kind{
			"UPDATE links SET url_key = randomblob(16)":         verify.StoreKey,
			"UPDATE links SET ref = 'r2' WHERE ref = 'r1'":      verify.StoreDiffers,
			"UPDATE links SET base_key = NULL WHERE ref = 'r1'": verify.StoreKey,
		}},
	} {
		store, dir := rulesRun(t, func(cfg *pipeline.Config) { cfg.Rules = &rules.Flags{Identity: c.identity} })
		for change, want := range c.changes {
			restore := alter(t, dir, change)
			if v := verified(t, verify.Config{Store: store}); (want == "") != (v.Failed() == 0) || want != "" && v.Kinds[want] == 0 {
				t.Errorf("%s: %s: found %v", c.identity, change, v.Findings)
			}
			restore()
		}
		clean(t, verify.Config{Store: store})
	}
}

// Links that were changed, marked or swept since their run are counted, and are no problems.
func TestVerifyRulesSince(t *testing.T) {
	store, dir := rulesRun(t, nil)
	after := func(what string, want verify.Since) {
		t.Helper()
		if v := verified(t, verify.Config{Store: store}); v.Failed() > 0 || v.Since != want {
			t.Errorf("%s: %+v, found %+v", what, v.Since, v.Findings)
		}
	}
	after("the run", verify.Since{})
	canonical := x + "new"
	item := []sink.Deletion{{Base: codegen.Sum([]byte(canonical + "|demo")).Key(), Canonical: canonical}}
	day := time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)
	err := store.Delete(context.Background(), sink.DeleteOptions{Workspace: "demo", AsOf: day}, func(yield func([]sink.Deletion, error) bool) { yield(item, nil) }, func(sink.Named) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	after("a delete", verify.Since{Marked: 1})
	restore := alter(t, dir, "UPDATE links SET changed_run = 3, change = 'updated', max_uses = 3, original_url = canonical_url || '#' WHERE canonical_url IN ('"+x+"new', '"+x+"dead')")
	after("changes", verify.Since{Changed: 2, Marked: 1})
	restore()
	must(store.Sweep(context.Background(), sink.SweepOptions{AsOf: day}, nil))
	after("a sweep", verify.Since{Gone: 1})
	alter(t, dir, "INSERT INTO links (workspace_id, short_code, url_key, canonical_url, run_id, created_at, updated_at) SELECT 'demo', '"+codeOf(t, "new")+"', randomblob(16), 'https://later.example/', 3, '2100-01-01 00:00:00.000000', updated_at FROM links LIMIT 1")
	v := verified(t, verify.Config{Store: store})
	if v.Since.Gone != 1 || v.Kinds[verify.StoreMissing]+v.Kinds[verify.StoreDiffers] > 0 {
		t.Errorf("another link has the code: %+v, found %+v", v.Since, v.Findings)
	}
	alter(t, dir, "UPDATE workspaces SET rules = 0")
	if v := verified(t, verify.Config{Store: store}); v.Kinds[verify.StoreDiffers] == 0 || v.Since != (verify.Since{}) {
		t.Errorf("in a workspace without rules: %+v, found %+v", v.Since, v.Findings)
	}
}

// The store does not have a dry run: the links of other programs, which have no run either, are not
// taken for links of it.
func TestVerifyRulesSinceDryRun(t *testing.T) {
	dir := t.TempDir()
	cfg := pipeline.Config{Workspace: "demo", Version: "test", Store: openStore(t, dir), Rules: new(rules.Flags)}
	job(t, cfg, map[string]string{"a.csv": rulesHeader + x + "other,,,,,,\n"})
	alter(t, dir, "UPDATE links SET run_id = 0, status = 'DELETED'")
	cfg.DryRun = true
	job(t, cfg, map[string]string{"a.csv": rulesHeader + x + "new,,,,,,\n"})
	if v := verified(t, verify.Config{Store: cfg.Store}); v.Failed() > 0 || v.Since != (verify.Since{}) {
		t.Errorf("%+v, found %+v", v.Since, v.Findings)
	}
}

// codeOf returns the code of a link of the mapping.
func codeOf(t *testing.T, name string) string {
	for _, line := range lines(t, mappingFile) {
		if cells := cellsOf(line); cells[4] == x+name {
			return cells[5]
		}
	}
	t.Fatal(fmt.Sprint("no ", name))
	return ""
}
