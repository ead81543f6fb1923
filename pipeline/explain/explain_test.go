package explain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/sink"
	"pgregory.net/rapid"
)

// What an explanation says suffices to compute the code again, step by step.
func TestExplainSuffices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.IntRange(codegen.MinLength, codegen.MaxLength).Draw(t, "length")
		scheme, _ := codegen.New(length)
		rules := Rules{Scheme: scheme, Workspace: rapid.StringMatching(`[a-zé]{1,9}`).Draw(t, "workspace")}
		raw := append([]byte(" http://Example.com/"), rapid.SliceOf(rapid.Byte()).Draw(t, "rest")...)
		data, err := json.Marshal(URL(&rules, raw, []int{0, 7}))
		if err != nil {
			t.Fatal(err)
		}
		var e Explanation
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatal(err)
		}
		if string(e.Input) != string(raw) || string(e.Trimmed) != string(canon.Trim(raw)) {
			t.Fatalf("%q trimmed %q, want %q", e.Input, e.Trimmed, raw)
		}
		canonical, err := canon.Profile{}.Append(nil, raw)
		if err != nil {
			if e.Reason != err.Error() || e.Codings != nil {
				t.Fatalf("%+v, want %v", e, err)
			}
			return
		}
		if e.Canonical != string(canonical) {
			t.Fatalf("canonical %q, want %q", e.Canonical, canonical)
		}
		for i, suffix := range []string{"", "|7"} {
			checkCoding(t, e.Codings[i], e.Canonical+"|"+e.Workspace+suffix, length)
		}
	})
}

// A reason is that of a run.
func TestExplainBlank(t *testing.T) {
	for raw, want := range map[string]string{"": outcome.MissingURL, " ": string(canon.Empty)} {
		if e := URL(new(Rules), []byte(raw), nil); e.Reason != want {
			t.Errorf("%q: %s, want %s", raw, e.Reason, want)
		}
	}
}

// checkCoding computes a code with big numbers.
func checkCoding(t *rapid.T, c Coding, input string, length int) {
	sum := sha256.Sum256([]byte(c.HashInput))
	n := new(big.Int).SetBytes(sum[:16])
	integer := n.String()
	digits := ""
	for digit := new(big.Int); n.Sign() > 0; {
		n.QuoRem(n, big.NewInt(58), digit)
		digits = codegen.Alphabet[digit.Int64():][:1] + digits
	}
	code := (strings.Repeat("1", max(length-len(digits), 0)) + digits)[:length]
	want := Coding{Salt: c.Salt, HashInput: input, SHA256: hex.EncodeToString(sum[:]), Integer: integer, Digits: digits, Code: code}
	if c != want {
		t.Fatalf("got  %+v\nwant %+v", c, want)
	}
}

// What no run would have is told, all of it at once, and the store is not asked.
func TestRulesAreChecked(t *testing.T) {
	scheme, _ := codegen.New(10)
	good := Rules{Scheme: scheme, Workspace: "w"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, spoil := range map[string]func(r *Rules){
		"no scheme":                             func(r *Rules) { r.Scheme = codegen.Scheme{} },
		"contains '|': \"a|b\"":                 func(r *Rules) { r.Workspace = "a|b" },
		"-1 is not within 0 to":                 func(r *Rules) { r.MaxRetries = -1 },
		"1048577 is not within 0 to":            func(r *Rules) { r.MaxRetries = codegen.MostRetries + 1 },
		"-5 is not in 0 to":                     func(r *Rules) { r.Profile.MaxLength = -5 },
		"no scheme\nRules.Workspace: workspace": func(r *Rules) { *r = Rules{} },
	} {
		r := good
		spoil(&r)
		if _, err := Ask(t.Context(), &r, fakeSession{}, "http://a/"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// fakeSession is a session that holds some links by workspace and code.
type fakeSession struct {
	sink.Session
	owners map[string]string
}

func (fakeSession) Rules(context.Context, []string) (map[string]bool, error) { return nil, nil }

func (l fakeSession) Lookup(_ context.Context, probes []sink.Probe, visit func(sink.Found) error) error {
	last := ""
	for i, p := range probes {
		if p.Code == nil && len(probes) > 1 { // a Lookup has codes in all probes or in none; here is one
			return fmt.Errorf("probe %d has no code", i)
		}
		if p.Code != nil && string(p.Code) <= last {
			return fmt.Errorf("probe %d is out of order", i)
		}
		last = string(p.Code)
		for code, owner := range l.owners {
			if same := owner == string(p.Canonical); same || code == last {
				f := sink.Found{Probe: i, Same: same, Code: []byte(code), Canonical: []byte(owner)}
				if p.WantRun {
					f.Run = 3
				}
				if p.WantRules {
					f.Rules = new(sink.Rules)
				}
				if err := visit(f); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// In a space of 58 codes, what Ask foretells is what the one-at-a-time rule does.
func TestAsk(t *testing.T) {
	scheme, _ := codegen.New(1)
	rules := Rules{Scheme: scheme, Workspace: "w", MaxRetries: 3}
	held := fakeSession{owners: map[string]string{"legacy": "http://legacy.example/"}}
	seen := map[string]int{}
	for i := range 300 {
		url := fmt.Sprintf("http://%d.example/", i%200)
		if i == 150 {
			url = "http://legacy.example/"
		}
		want := Standing{Outcome: "code_space_exhausted"}
		for salt := 3; salt >= 0; salt-- {
			code := string(scheme.AppendCode(nil, codegen.Sum(codegen.AppendInput(nil, []byte(url), []byte("w"), salt))))
			if held.owners[code] == "" {
				want.Outcome, want.Code, want.Salt = "created", code, &salt
			}
		}
		for code, owner := range held.owners {
			if owner == url {
				want.Outcome, want.Code = "existing", code
			}
		}
		got, err := Ask(context.Background(), &rules, held, url)
		if err != nil {
			t.Fatal(err)
		}
		if got.Outcome != want.Outcome || got.Code != want.Code {
			t.Errorf("%s: %+v, want %+v", url, got, want)
		}
		shown := rules.MaxRetries + 1
		if got.Salt != nil {
			shown = *got.Salt + 1
		} else if got.Code != "" {
			shown = 0
		}
		if len(got.Owners) != shown {
			t.Errorf("%s: %+v has %d owners, want %d", url, got, len(got.Owners), shown)
		}
		for salt, o := range got.Owners {
			if o.Salt != salt || o.Owner != held.owners[o.Code] || (o.Owner == "") != (o.RunID == nil) {
				t.Errorf("%s: %+v, the owner is %q", url, o, held.owners[o.Code])
			}
		}
		if got.Outcome == "created" {
			if *got.Salt != *want.Salt {
				t.Errorf("%s: salt %d, want %d", url, *got.Salt, *want.Salt)
			}
			held.owners[got.Code] = url
		} else if got.Code == "legacy" && got.Salt != nil {
			t.Errorf("%s: salt %d", url, *got.Salt)
		}
		seen[got.Outcome]++
	}
	if len(seen) != 3 {
		t.Errorf("outcomes %v", seen)
	}
}
