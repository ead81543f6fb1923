package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/sink"
)

// A writtenSession is of a store in which another writer takes some codes and URLs of the run when
// half of its links are there. It does so once.
type writtenSession struct {
	sink.Session
	taken *[]sink.Link
}

func (s *writtenSession) Load(ctx context.Context, run sink.Run, chunks iter.Seq2[[]sink.Link, error]) error {
	if *s.taken != nil {
		return s.Session.Load(ctx, run, chunks)
	}
	var all []sink.Link
	for links, err := range chunks {
		if err != nil {
			return err
		}
		for _, l := range links {
			l.Workspace, l.Code, l.Canonical, l.Original = bytes.Clone(l.Workspace), bytes.Clone(l.Code), bytes.Clone(l.Canonical), bytes.Clone(l.Original)
			all = append(all, l)
		}
	}
	load := func(run sink.Run, links []sink.Link) error {
		return s.Session.Load(ctx, run, func(yield func([]sink.Link, error) bool) { yield(links, nil) })
	}
	half := len(all) / 2
	for i, l := range all[half:] {
		switch url := fmt.Sprintf("http://stranger.example/%d", i); {
		case i%10 == 0: // the code of a link, or of an alias
			*s.taken = append(*s.taken, link(string(l.Workspace), url, string(l.Code)))
		case i%10 == 5 && !l.Alias: // the URL
			*s.taken = append(*s.taken, link(string(l.Workspace), string(l.Canonical), fmt.Sprintf("~%d", i)))
		}
	}
	slices.SortFunc(*s.taken, func(a, b sink.Link) int {
		return slices.Compare(slices.Concat(a.Workspace, []byte{0}, a.Code), slices.Concat(b.Workspace, []byte{0}, b.Code))
	})
	other, err := s.Session.Start(ctx, sink.Run{Fingerprint: "other", AsOf: asOf, Aliases: true})
	if err := errors.Join(err, load(run, all[:half]), load(other, *s.taken), s.Session.Loaded(ctx, other), s.Session.Finish(ctx, other)); err != nil {
		return err
	}
	return load(run, all[half:])
}

// When another writer takes codes and URLs in the middle of a run, the run settles again: whoever
// lost a code is told who has it, all other codes are kept, and no alias is without a link.
func TestLegacyBesideAnotherWriter(t *testing.T) {
	other, empty := inPostgres(t)
	for name, fresh := range map[string]func() sink.Store{
		"sqlite": func() sink.Store { return openStore(t, t.TempDir()) }, "postgres": func() sink.Store { empty(); return other },
	} {
		for _, mode := range []legacy.Mode{legacy.Keep, legacy.Both} {
			t.Run(name+"/"+string(mode), func(t *testing.T) { testBesideAnotherWriter(t, fresh(), mode) })
		}
	}
}

func testBesideAnotherWriter(t *testing.T, store sink.Store, mode legacy.Mode) {
	t.Chdir(t.TempDir())
	killLegacyInput(t, 2000)
	inputs := map[string]string{"a.csv": read(t, "a.csv")}
	var taken []sink.Link
	cfg := base(2)
	cfg.Legacy, cfg.Source.Map = mode, map[string]string{"kind": "kind"}
	cfg.Store = sessions{store, func(s sink.Session) sink.Session { return &writtenSession{s, &taken} }}
	files, result := job(t, cfg, inputs)

	type place struct{ workspace, text string }
	owners, links := map[place]string{}, map[place]bool{}
	aliases, ours := map[place]sink.Key{}, int64(0)
	must(t, store.Scan(context.Background(), func(l *sink.Stored) error {
		owners[place{string(l.Workspace), string(l.Code)}] = string(l.Canonical)
		if url := (place{string(l.Workspace), string(l.Canonical)}); l.Alias {
			aliases[url] = l.Base
		} else {
			links[url] = true
		}
		if l.Run == result.RunID {
			ours++
		}
		return nil
	}))
	if ours != result.LinksCreated || len(taken) < 50 {
		t.Errorf("%d links, %d were created; %d were taken", ours, result.LinksCreated, len(taken))
	}
	for url, base := range aliases {
		if !links[url] || base != codegen.Sum(codegen.AppendInput(nil, []byte(url.text), []byte(url.workspace), 0)).Key() {
			t.Errorf("%v has aliases, but no link", url)
		}
	}
	for _, r := range records(t, files["mapping.csv"]) {
		if owners[place{r["workspace_id"], r["short_code"]}] != r["canonical_url"] || r["legacy_code"] != "" && r["legacy_code"] != r["short_code"] {
			t.Fatalf("%v: the code is that of %q", r, owners[place{r["workspace_id"], r["short_code"]}])
		}
	}
	toOthers := 0
	for _, r := range records(t, files["rejects.csv"]) {
		_, owner, _ := strings.Cut(r["detail"], " belongs to ")
		workspace := r["team"]
		if workspace == "" {
			workspace = cfg.Workspace
		}
		if r["reason"] != outcome.CodeTaken || owners[place{workspace, r["code"]}] != owner {
			t.Fatalf("%v: the code is that of %q", r, owners[place{workspace, r["code"]}])
		}
		if strings.HasPrefix(owner, "http://stranger.example/") {
			toOthers++
		}
	}
	if c := result.Counts; toOthers == 0 || c.Read != 2000 || c.Read != c.Created+c.Existing+c.Duplicate+c.Rejected || c.Existing == 0 {
		t.Errorf("%d rows lost their codes to the other writer, %+v", toOthers, c)
	}
	cfg.Store = store
	again, repeated := job(t, cfg, inputs)
	if got, want := again["mapping.csv"], strings.ReplaceAll(files["mapping.csv"], ",created,", ",existing,"); got != want || repeated.LinksCreated != 0 {
		t.Errorf("again: %s, was %s", firstDifference(got, want), firstDifference(want, got))
	}
	sameReports(t, again, files, "rejects.csv", "collisions.csv")
}
