package manifest

import (
	"bytes"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/linkforge/bulk/internal/quick"
	"github.com/linkforge/bulk/pipeline/fsys/fsystest"
)

func TestMain(m *testing.M) { os.Exit(quick.Main(m)) }

var update = flag.Bool("update", false, "write the golden files")

// golden compares with testdata/name.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s differs (%v); got\n%s\nwant\n%s", path, err, got, want)
	}
}

func exampleManifest() *Manifest {
	team := Text("team")
	return &Manifest{
		Version: "1.2.3", Profile: "linkforge-1", UnicodeVersion: "15.0.0",
		Scheme:  Scheme{Name: "sha256-base58", CodeLength: 10, MaxRetries: 10},
		Options: Options{"base_url": "https://sho.rt/?a=1&b=<2>", "carry": true, "limit": int64(5), "workspace": Text("\xff")},
		AsOf:    time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.FixedZone("", 3600)),
		Inputs: []Input{
			{Name: "links\n\xfe.csv", Format: "csv", Compression: "gzip",
				Dialect: &Dialect{Delimiter: ",", Quote: `"`, Header: true, Encoding: "utf-8"},
				Columns: []Text{"url", "team", "\xff"}, URLColumns: []Text{"url"}, WorkspaceColumn: &team,
				Records: 5, Size: 1 << 40, SHA256: strings.Repeat("ab", 32)},
			{Name: "-", Format: "text", Records: 3, RecordsSHA256: strings.Repeat("cd", 32)},
		},
		Counts:  Counts{Read: 8, Created: 4, Existing: 1, Duplicate: 1, Rejected: 2},
		Reasons: map[string]int64{"unsupported_scheme": 1, "bad_host": 1},
		Files:   []FileSum{{"mapping.csv", 6, strings.Repeat("01", 32), strings.Repeat("03", 16)}, {"rejects.csv", 2, strings.Repeat("02", 32), ""}},
	}
}

func TestManifest(t *testing.T) {
	var out bytes.Buffer
	if err := Write(&out, exampleManifest()); err != nil {
		t.Fatal(err)
	}
	golden(t, "manifest.json", out.Bytes())

	got, err := Read(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want := exampleManifest()
	want.AsOf = want.AsOf.UTC()
	want.Options["base_url"] = Text("https://sho.rt/?a=1&b=<2>")
	want.Inputs[1].Columns, want.Inputs[1].URLColumns = []Text{}, []Text{}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read back\n%+v\nwant\n%+v", got, want)
	}
	var again bytes.Buffer
	if err := Write(&again, got); err != nil || !bytes.Equal(again.Bytes(), out.Bytes()) {
		t.Errorf("written again (%v):\n%s", err, again.Bytes())
	}
}

// legacyManifest is that of a run with legacy codes.
func legacyManifest() *Manifest {
	m := exampleManifest()
	links, code, kind := int64(7), Text("slug"), Text("kind")
	m.LinksCreated = &links
	m.Inputs[0].Profile, m.Inputs[0].CodeColumn, m.Inputs[0].KindColumn = "bulk", &code, &kind
	m.Options = Options{"legacy": Text("keep"), "code_pattern": Text("[a-z]+"), "on_conflict": Text("reject"), "fold_case": false,
		"reserved_sha256": Text(strings.Repeat("ef", 32)), "profile": Text("auto"), "map": Text("code=slug,url=target")}
	m.Legacy = &Legacy{Aliases: 3, Conflicts: 1, WithoutCode: 2, CaseTwins: &CaseTwins{4, Twins{{"AB", "Ab", "ab"}, {"X", "x"}}},
		Damaged: &OddCodes{2, CodeOfRow{"links.csv", 9, "2.19E+26"}}}
	return m
}

func TestLegacyManifest(t *testing.T) {
	for name, change := range map[string]func(*Manifest){
		"manifest_legacy.json": func(*Manifest) {},
		"manifest_legacy_clean.json": func(m *Manifest) {
			*m.LinksCreated, m.Legacy = 0, new(Legacy) // a zero is told
		},
	} {
		want := legacyManifest()
		change(want)
		var out bytes.Buffer
		if err := Write(&out, want); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.Bytes())
		got, err := Read(out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if got.AsOf, want.Inputs[1] = want.AsOf, got.Inputs[1]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read back\n%+v\nwant\n%+v", name, got, want)
		}
	}
}

// What one of two manifests has no value for is a difference, and what came of a run is none.
func TestDifference(t *testing.T) {
	plain, legacy := exampleManifest(), legacyManifest()
	legacy.Options, legacy.Inputs = maps.Clone(plain.Options), exampleManifest().Inputs
	if got := Difference(plain, legacy); got != "" {
		t.Errorf("the results differ: %s", got)
	}
	legacy.Options["legacy"] = Text("keep")
	if got, want := Difference(plain, legacy), `option legacy: null then, "keep" now`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := Difference(legacy, plain), `option legacy: "keep" then, null now`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	delete(legacy.Options, "legacy")
	for want, change := range map[string]func(*Scheme){
		`secret_fingerprint: null then, "30416db80da3dc10" now`: func(s *Scheme) { s.Fingerprint = "30416db80da3dc10" },
		`multiplier: null then, "3" now`:                        func(s *Scheme) { s.Multiplier = 3 },
		`blocklist_sha256: null then, "abc" now`:                func(s *Scheme) { s.Blocklist = "abc" },
	} {
		legacy.Scheme = plain.Scheme
		if change(&legacy.Scheme); Difference(plain, legacy) != want {
			t.Errorf("%s, want %s", Difference(plain, legacy), want)
		}
	}
	legacy.Scheme = plain.Scheme
	code := Text("slug")
	for name, change := range map[string]func(*Input){
		"profile": func(in *Input) { in.Profile = "bulk" },
		"code":    func(in *Input) { in.CodeColumn = &code },
		"kind":    func(in *Input) { in.KindColumn = &code },
	} {
		legacy.Inputs = exampleManifest().Inputs
		change(&legacy.Inputs[0])
		if got := Difference(plain, legacy); !strings.Contains(got, "read in another way") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestEmptyManifestHasNoNull(t *testing.T) {
	var out bytes.Buffer
	if err := Write(&out, &Manifest{Inputs: []Input{{}}}); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out.Bytes(), []byte("null")) {
		t.Errorf("got %s", &out)
	}
}

func TestReadManifestRefuses(t *testing.T) {
	tests := map[string]string{
		"":                                        "unexpected end",
		"[]":                                      "it cannot be a JSON array",
		`{"scheme":{"code_length":"7"}}`:          "scheme.code_length cannot be a JSON string",
		`{"name": "a web application"}`:           "no profile",
		`{"profile": "linkforge-1"} {}`:           "after top-level value",
		`{"profile": "linkforge-1"`:               "unexpected end",
		`{"profile":"p","options":{"a":1.5}}`:     "option a: neither a text nor",
		`{"profile":"p","options":{"a":null}}`:    "option a: neither a text nor",
		`{"profile":"p","options":{"a":{"b":1}}}`: "neither a string nor base64",
		`{"profile":"p","inputs":{}}`:             "not a list",
		`{"profile":"p","inputs":[` + strings.Repeat("{},", MaxInputs) + `{}]}`:                "more than 1048576 elements",
		`{"profile":"p","inputs":[{"columns":[` + strings.Repeat(`"",`, maxColumns) + `""]}]}`: "more than 16384 elements",
		`{"profile":"p","files":[` + strings.Repeat("{},", maxFiles) + `{}]}`:                  "more than 1048576 elements",
		`{"profile":"p","legacy":{"case_twins":{"examples":[[],[],[],[]]}}}`:                   "more than 3 elements",
		`{"profile":"p","inputs":[{"name":{"base64":"*"}}]}`:                                   "illegal base64",
	}
	for data, want := range tests {
		if _, err := Read([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.99s: got %v, want %q", data, err, want)
		}
	}
}

func TestWriteManifestChangesNothing(t *testing.T) {
	m := exampleManifest()
	if err := Write(&bytes.Buffer{}, m); err != nil {
		t.Fatal(err)
	}
	if want := exampleManifest(); !reflect.DeepEqual(m, want) || !maps.Equal(m.Reasons, want.Reasons) {
		t.Errorf("got %+v", m)
	}
}

func TestTimings(t *testing.T) {
	var out bytes.Buffer
	err := WriteTimings(&out, &Timings{RunID: 3, Store: "sqlite:bulk.db", Workers: 2,
		Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Finished: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), Seconds: 1,
		Stages: []Stage{{Name: "read", Seconds: 0.5, Rows: 10, Bytes: 800}}, Details: map[string]any{"peak": 1}})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "timings.json", out.Bytes())
}

// A manifest is read by the file system that is given; its digest is that of its bytes.
func TestManifestDigest(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, Name), []byte("abc"), 0o666); err != nil {
		t.Fatal(err)
	}
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	data, err := ReadFile(nil, filepath.Join(dir, Name))
	if got := Digest(data); err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	failing := fsystest.FS{Before: func(string) error { return syscall.EIO }}
	if _, err := ReadFile(failing, filepath.Join(dir, Name)); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
}

// FuzzManifest reads any bytes as a manifest. What can be read, and is written again,
// reads as it did.
func FuzzManifest(f *testing.F) {
	var out bytes.Buffer
	if err := Write(&out, exampleManifest()); err != nil {
		f.Fatal(err)
	}
	f.Add(bytes.Clone(out.Bytes()))
	f.Add([]byte(`{"profile":"x","options":{"a":null,"b":[]},"inputs":[null,{"name":null,"columns":[{"base64":"/w=="}]}]}`))
	out.Reset()
	if err := Write(&out, legacyManifest()); err != nil {
		f.Fatal(err)
	}
	f.Add(bytes.Clone(out.Bytes()))
	f.Add([]byte(`{"profile":"x","as_of":"0001-01-01T00:00:00+23:59"}`))
	f.Add([]byte(`{"profile":"x","as_of":"0000-01-01T00:00:00+23:59"}`)) // in UTC the year before
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Read(data)
		if err != nil {
			return
		}
		var first, second bytes.Buffer
		if err := Write(&first, m); err != nil {
			t.Fatal(err)
		}
		again, err := Read(first.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if err := Write(&second, again); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%v\n%s\n%s", err, first.Bytes(), second.Bytes())
		}
	})
}
