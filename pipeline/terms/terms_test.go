package terms

import (
	"bytes"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/judge"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/rules"
	"pgregory.net/rapid"
)

// draw draws the terms of a run.
func draw(t *rapid.T) *Terms {
	is := func(name string) bool { return rapid.Bool().Draw(t, name) }
	word := func(name string) string { return rapid.SampledFrom([]string{"", "x", "a,b", "né"}).Draw(t, name) }
	limits, _ := manifest.ParseMaxRejects("5%")
	strip, _ := canon.ParseStripParams("utm_*")
	w := &Terms{
		ReportFormat: "parquet", ReportOrder: rapid.SampledFrom([]string{"sort", "input"}).Draw(t, "order"), BaseURL: word("base"),
		ExcelSafe: is("safe"), Carry: is("carry"), DryRun: is("dry"), Limit: rapid.Int64Range(0, 9).Draw(t, "limit"), Workspace: word("workspace"), MaxField: 7,
		URLs:     canon.Profile{MaxLength: 100, KeepFragment: is("fragment"), AssumeScheme: rapid.SampledFrom([]canon.AssumedScheme{canon.NoScheme, canon.HTTPS}).Draw(t, "scheme")},
		Encoding: rapid.SampledFrom([]string{"", "windows-1252", "utf-16be"}).Draw(t, "encoding"), Program: word("program"), CodeFrom: word("from"),
	}
	if is("rejects") {
		w.MaxRejects = limits
	}
	if is("base") {
		w.Base, _ = canon.ParseBase("https://shop.example/a")
	}
	if is("strip") {
		w.URLs.StripParams = strip
	}
	if is("map") {
		w.Map = map[string]string{"url": "2", "code": word("column")}
	}
	if is("legacy") {
		w.Codes = &Codes{Codes: judge.Codes{Mode: rapid.SampledFrom([]legacy.Mode{legacy.Keep, legacy.Both, legacy.Map}).Draw(t, "mode"), Pattern: legacy.DefaultPattern},
			OnConflict: legacy.Generate, ReservedSHA256: word("reserved")}
		if w.Fold = is("fold"); is("pattern") {
			w.Codes.Pattern = "[a-z]+"
			w.Codes.Rules.Pattern, _ = legacy.ParsePattern(w.Codes.Pattern)
		}
	}
	if is("beyond") {
		w.Beyond = &Beyond{Attrs: word("attrs"), Policy: hygiene.Defaults(), KeepCreated: is("created"), Domains: rapid.SampledFrom([]legacy.Domains{legacy.DomainsOff, legacy.DomainsKeep}).Draw(t, "domains")}
		if is("default") {
			w.Beyond.DefaultDomain = "c.example:8080"
		}
		if is("short") {
			w.Beyond.ShortDomains = map[string]bool{"a.example": true, "b.example": true}
		}
	}
	if is("rules") {
		w.Rules = &Rules{OnDrift: rules.Update, Revive: rules.ReviveNone, Flags: rules.Flags{
			Identity: rules.ByParams, TemporaryTTL: time.Hour, Limit: rapid.Int64Range(0, 3).Draw(t, "uses"), Type: rules.Temporary, Owner: []byte("o" + word("owner")),
		}}
		if is("expires") {
			w.Rules.Expiry = rules.Expiry{When: rules.At, Seconds: 1_800_000_000}
		}
		if is("in") {
			w.Rules.ExpiresIn = 90 * time.Minute
		}
	}
	return w
}

// written returns what is read of a manifest that has these options.
func written(t *rapid.T, w *Terms, options manifest.Options) *manifest.Manifest {
	var buf bytes.Buffer
	if err := manifest.Write(&buf, &manifest.Manifest{Profile: w.URLs.Name(), Options: options}); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Read(buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// What is written is read again.
func TestParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := draw(t)
		got, problems := Parse(written(t, want, want.Options()))
		if len(problems) > 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %+v\nwant %+v", got, problems, want)
		}
	})
}

// An option that is missing, is another, or is strange is a problem of that name, but for those that
// may be anything.
func TestProblems(t *testing.T) {
	free := map[string]bool{"base_url": true, "workspace": true, "attrs": true, "reserved_sha256": true, "profile": true, "code_from": true, "limit": true, "max_field": true, "owner": true, "target_base": true}
	rapid.Check(t, func(t *rapid.T) {
		w := draw(t)
		options := w.Options()
		for name, v := range maps.Clone(options) {
			if len(name) > len(mapPrefix) && name[:len(mapPrefix)] == mapPrefix {
				continue
			}
			wrong := maps.Clone(options)
			switch v := v.(type) {
			case bool:
				wrong[name] = "yes"
			case int64:
				wrong[name] = "many"
			case string:
				if wrong[name] = v + "/("; free[name] {
					wrong[name] = true
				}
			}
			if _, problems := Parse(written(t, w, wrong)); len(problems) == 0 || problems[0].Field != "options."+name {
				t.Errorf("%s = %q: %+v", name, wrong[name], problems)
			}
		}
		strange := maps.Clone(options)
		strange["speed"] = "fast"
		if _, problems := Parse(written(t, w, strange)); len(problems) != 1 || problems[0].Field != "options.speed" {
			t.Errorf("%+v", problems)
		}
		delete(options, "excel_safe")
		delete(options, "report_order") // earlier versions did not write it
		w.ReportOrder = "sort"
		if _, problems := Parse(written(t, w, options)); len(problems) != 1 || problems[0].Field != "options.excel_safe" {
			t.Errorf("%+v", problems)
		}
	})
}
