package sinktest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/linkforge/bulk/sink"
)

var schemeTests = []test{
	{"schemes/workspaces", testSchemes},
	{"schemes/secrets", testSecrets},
	{"schemes/secrets_at_once", testSecretsAtOnce},
}

var (
	hashed   = sink.Scheme{Name: "sha256-base58"}
	keyed    = sink.Scheme{Name: "keyed-base62", CodeLength: 16, Fingerprint: "0123456789abcdef"}
	counter  = sink.Scheme{Name: "counter-base62", CodeLength: 7, Multiplier: 1<<63 - 1, Fingerprint: "fedcba9876543210"}
	folding  = sink.Scheme{Name: "sha256-base32", Fold: true}
	unsalted = sink.Scheme{Name: "counter-base62", CodeLength: 7, Multiplier: 1}
)

// Schemes are stored beside the other settings of workspaces, and come back as they are.
func testSchemes(t *testing.T, db *database) {
	ctx := context.Background()
	expect := func(s sink.Session, want map[string]sink.Scheme, workspaces ...string) {
		t.Helper()
		got, err := s.Schemes(ctx, workspaces)
		noError(t, err)
		if !maps.Equal(got, want) {
			t.Errorf("schemes of %.60q: %+v, want %+v", workspaces, got, want)
		}
	}
	many := make([]string, 40_000)
	for i := range many {
		many[i] = fmt.Sprintf("b%06d", i)
	}
	db.with(func(s sink.Session) {
		expect(s, nil)
		expect(s, nil, many...)
		noError(t, s.SetProfile(ctx, []string{"a"}, "linkforge-1"))
		noError(t, s.SetRules(ctx, []string{"c"}))
		expect(s, nil, "a", "c")
		noError(t, s.SetScheme(ctx, []string{"a", "b", "ü"}, keyed))
		noError(t, s.SetScheme(ctx, []string{"b"}, counter))
		noError(t, s.SetScheme(ctx, []string{"c"}, unsalted))
		noError(t, s.SetScheme(ctx, []string{"d"}, folding))
		noError(t, s.SetScheme(ctx, []string{"e"}, folding))
		expect(s, map[string]sink.Scheme{"a": keyed, "b": counter, "d": folding}, "A", "a", "b", "d")
	}, "a", "b", "c", "d", "e", "ü")
	db.load(links("a", 0, 3), "a")
	db.with(func(s sink.Session) {
		noError(t, s.SetScheme(ctx, []string{"c"}, counter))
		noError(t, s.SetScheme(ctx, []string{"b", "e"}, hashed))
	}, "b", "c", "e")
	db.peek(func(s sink.Session) {
		expect(s, map[string]sink.Scheme{"a": keyed, "b": hashed, "c": counter, "d": folding, "e": hashed, "ü": keyed})
		expect(s, map[string]sink.Scheme{"ü": keyed}, append(many, "ü")...)
		profiles, err := s.Profiles(ctx, nil)
		noError(t, err)
		rules, err := s.Rules(ctx, nil)
		noError(t, err)
		if len(profiles) != 1 || profiles["a"] != "linkforge-1" || len(rules) != 1 || !rules["c"] {
			t.Errorf("profiles %q, rules %v", profiles, rules)
		}
	})
}

// A secret belongs to one scheme. A scheme without one is free.
func testSecrets(t *testing.T, db *database) {
	ctx := context.Background()
	stolen := counter
	stolen.Fingerprint = keyed.Fingerprint
	db.with(func(s sink.Session) {
		noError(t, s.SetScheme(ctx, []string{"a"}, keyed))
		for _, w := range []string{"a", "b"} { // a may have had links, which were undone
			wantIs(t, s.SetScheme(ctx, []string{w}, stolen), sink.ErrSecretInUse)
		}
		noError(t, s.SetScheme(ctx, []string{"b"}, keyed))
		noError(t, s.SetScheme(ctx, []string{"c"}, counter))
		noError(t, s.SetScheme(ctx, []string{"d"}, unsalted))
	}, "a", "b", "c", "d")
	db.peek(func(s sink.Session) {
		set, err := s.Schemes(ctx, nil)
		noError(t, err)
		used, err := s.Fingerprints(ctx)
		noError(t, err)
		if !maps.Equal(set, map[string]sink.Scheme{"a": keyed, "b": keyed, "c": counter, "d": unsalted}) ||
			!maps.Equal(used, map[string]string{keyed.Fingerprint: keyed.Name, counter.Fingerprint: counter.Name}) {
			t.Errorf("schemes %+v, fingerprints %q", set, used)
		}
	})
}

// Sessions that set different schemes with one secret at the same time do not all succeed.
func testSecretsAtOnce(t *testing.T, db *database) {
	var wg sync.WaitGroup
	db.with(func(sink.Session) {})
	for i := range 8 {
		store := db.Open(t)
		wg.Go(func() {
			defer store.Close()
			w := []string{fmt.Sprint("w", i)}
			s, err := store.Lock(context.Background(), w, sink.LockOptions{})
			if err == nil {
				err = errors.Join(s.SetScheme(context.Background(), w, sink.Scheme{Name: fmt.Sprint("scheme", i%4), Fingerprint: "0123456789abcdef"}), s.Close())
			}
			if err != nil && !errors.Is(err, sink.ErrSecretInUse) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	db.peek(func(s sink.Session) {
		set, err := s.Schemes(context.Background(), nil)
		noError(t, err)
		names := slices.Compact(slices.Sorted(func(yield func(string) bool) {
			for _, scheme := range set {
				if !yield(scheme.Name) {
					return
				}
			}
		}))
		if len(set) != 2 || len(names) != 1 {
			t.Errorf("schemes %+v", set)
		}
	})
}
