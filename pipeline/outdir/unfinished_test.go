package outdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/linkforge/bulk/pipeline/manifest"
)

// A directory of an unfinished run is refused to a run that differs, and named is
// what differs; the directory stays as it is until the same run, or a new one,
// takes it.
func TestUnfinishedRunIsOthers(t *testing.T) {
	text := func(s string) *manifest.Text { t := manifest.Text(s); return &t }
	tests := []struct {
		want   string
		change func(m *manifest.Manifest)
	}{
		{`version: "1.2.3" then, "1.2.4" now`, func(m *manifest.Manifest) { m.Version = "1.2.4" }},
		{`profile: "linkforge-1" then, "linkforge-1+userinfo"`, func(m *manifest.Manifest) { m.Profile += "+userinfo" }},
		{`unicode_version: "15.0.0" then, "16.0.0" now`, func(m *manifest.Manifest) { m.UnicodeVersion = "16.0.0" }},
		{`scheme: "sha256-base58" then, "other" now`, func(m *manifest.Manifest) { m.Scheme.Name = "other" }},
		{`code_length: 10 then, 12 now`, func(m *manifest.Manifest) { m.Scheme.CodeLength = 12 }},
		{`max_retries: 10 then, 0 now`, func(m *manifest.Manifest) { m.Scheme.MaxRetries = 0 }},
		{`option carry: true then, false now`, func(m *manifest.Manifest) { m.Options["carry"] = false }},
		{`option limit: 5 then, 6 now`, func(m *manifest.Manifest) { m.Options["limit"] = int64(6) }},
		{`option base_url: "https://sho.rt/?a=1&b=<2>" then, "" now`, func(m *manifest.Manifest) { m.Options["base_url"] = "" }},
		{`option later: null then, "x" now`, func(m *manifest.Manifest) { m.Options["later"] = "x" }},
		{`as_of: 2026-01-02T02:04:05.678901Z then, not given now`, func(m *manifest.Manifest) { m.AsOf = time.Time{} }},
		{"input -: not there now", func(m *manifest.Manifest) { m.Inputs = m.Inputs[:1] }},
		{"input x.csv: not there then", func(m *manifest.Manifest) { m.Inputs = append(m.Inputs, manifest.Input{Name: "x.csv"}) }},
		{"input -: other content, or read in another way", func(m *manifest.Manifest) { m.Inputs[1].Format = "csv" }},
		{": other content, or read in another way", func(m *manifest.Manifest) { m.Inputs[0].Compression = "" }},
		{": other content, or read in another way", func(m *manifest.Manifest) { m.Inputs[0].Dialect = nil }},
		{": other content, or read in another way", func(m *manifest.Manifest) { m.Inputs[0].Columns = m.Inputs[0].Columns[1:] }},
		{": other content, or read in another way", func(m *manifest.Manifest) { m.Inputs[0].WorkspaceColumn = text("url") }},
		{".csv: other content, or read in another way", func(m *manifest.Manifest) { m.Inputs[0].URLColumns = []manifest.Text{"note"} }},
		{": other content", func(m *manifest.Manifest) { m.Inputs[0].SHA256 = strings.Repeat("00", 32) }},
		{"input -: other content", func(m *manifest.Manifest) { m.Inputs[1].RecordsSHA256 = strings.Repeat("00", 32) }},
		{".csv: other content", func(m *manifest.Manifest) { unread(m).Inputs[0].Size++ }},
	}
	for _, c := range tests {
		want, change := c.want, c.change
		out := filepath.Join(t.TempDir(), "out")
		leaveBehind(t, out, true)
		before := tree(t, filepath.Dir(out))
		f := claim(t, out, ClaimOptions{})
		m := exampleManifest()
		change(m)
		err := f.Own(m)
		if !errors.Is(err, ErrUnfinished) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--new-run") || !strings.Contains(err.Error(), out) {
			t.Errorf("%s: got %v", want, err)
		}
		if err := f.Abandon(); err != nil {
			t.Error(err)
		}
		if after := tree(t, filepath.Dir(out)); !slices.Equal(after, before) {
			t.Errorf("%s: there was %q, now %q", want, before, after)
		}
		for _, newRun := range []bool{false, true} {
			f, err := Claim(out, ClaimOptions{NewRun: newRun})
			if err == nil && newRun {
				err = f.Own(m)
			} else if err == nil {
				err = f.Own(unread(exampleManifest()))
			}
			if err != nil {
				t.Fatalf("%s: new run %v: %v", want, newRun, err)
			}
			if err := f.Abandon(); err != nil {
				t.Fatal(err)
			}
			if names, _ := list(t, filepath.Dir(out)); len(names) != 0 && newRun {
				t.Errorf("left %q", names)
			}
		}
	}
}

// A mark that says less, because its run was killed while it read, is met by
// all that agrees with it.
func TestMarkOfAnUnreadRun(t *testing.T) {
	for _, then := range []int64{1 << 40, 0} { // 0: not known, as of a pipe
		out := filepath.Join(t.TempDir(), "out")
		for _, size := range []int64{then, 7, 0} {
			f := claim(t, out, ClaimOptions{})
			m := unread(exampleManifest())
			m.Inputs[0].Size = size
			err := f.Own(m)
			if refused := then != 0 && size == 7; errors.Is(err, ErrUnfinished) != refused {
				t.Fatalf("size %d, then %d: %v", size, then, err)
			}
			if err := f.held.Close(); err != nil { // as if killed
				t.Fatal(err)
			}
		}
		run(t, out, false, "x")
		wantRun(t, out, "x")
	}
}

// A mark without options, which no run writes, is one that differs.
func TestMarkWithoutOptions(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	leaveBehind(t, out, true)
	mark := filepath.Join(PartialOf(out), markName)
	if err := os.WriteFile(mark, []byte(`{"profile": "linkforge-1"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	f := claim(t, out, ClaimOptions{})
	if err := f.Own(unread(exampleManifest())); !errors.Is(err, ErrUnfinished) {
		t.Error(err)
	}
	if err := f.Abandon(); err != nil {
		t.Error(err)
	}
}

// A mark that cannot be read is a reason to ask.
func TestDamagedMark(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	leaveBehind(t, out, true)
	mark := filepath.Join(PartialOf(out), markName)
	for _, damage := range []func() error{
		func() error { return os.WriteFile(mark, []byte("{"), 0o666) },
		func() error { return errors.Join(os.Remove(mark), syscall.Mkfifo(mark, 0o666)) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if _, err := Claim(out, ClaimOptions{}); !errors.Is(err, ErrUnfinished) || !strings.Contains(err.Error(), "--new-run") {
			t.Error(err)
		}
	}
	f := claim(t, out, ClaimOptions{NewRun: true})
	if err := f.Abandon(); err != nil {
		t.Fatal(err)
	}
	if names, _ := list(t, filepath.Dir(out)); len(names) != 0 {
		t.Errorf("left %q", names)
	}
}

// What an output is that the store does not know as finished: that of its run,
// whether or not its as_of was asked for.
func TestOutputOfAnUnfinishedRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	for i, length := range []int{10, 10, 11} {
		f := claim(t, out, ClaimOptions{ReplaceLoaded: true})
		m := exampleManifest()
		m.AsOf, m.Scheme.CodeLength = time.Time{}, length
		err := f.Own(m)
		if errors.Is(err, ErrUnfinished) != (length == 11) {
			t.Fatal(err)
		}
		if err == nil {
			err = writeRun(f, fmt.Sprint(i))
		} else {
			err = f.Abandon()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	wantRun(t, out, "1")
}
