package codegen_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/linkforge/bulk/codegen"
)

// schemeVectors calls f with each line of schemes.jsonl that is of a kind.
func schemeVectors(t *testing.T, kind string, f func(line map[string]any)) {
	t.Helper()
	n := 0
	vectors(t, "schemes.jsonl", func(line map[string]any) {
		if line["kind"] == kind {
			f(line)
			n++
		}
	})
	if n == 0 {
		t.Errorf("no case of kind %s", kind)
	}
}

func secretOf(line map[string]any) codegen.Secret {
	return codegen.NewSecret([]byte(line["secret"].(string)))
}

// secret is one of many bytes, for tests that need any.
var secret = codegen.NewSecret([]byte("0123456789abcdef"))

func TestFingerprints(t *testing.T) {
	schemeVectors(t, "fingerprint", func(line map[string]any) {
		if got := secretOf(line).Fingerprint(); got != line["fingerprint"] {
			t.Errorf("%v: %s", line, got)
		}
	})
	for _, none := range []codegen.Secret{{}, codegen.NewSecret(nil), codegen.NewSecret([]byte{})} {
		if none.Fingerprint() != "" || none != (codegen.Secret{}) || none.String() != "none" {
			t.Errorf("%q, %v of no secret", none.Fingerprint(), none)
		}
	}
}

// What is printed, logged or encoded has the fingerprint, and not the secret in any form.
func TestSecretStaysSecret(t *testing.T) {
	const text = "correct horse battery staple"
	s := codegen.NewSecret([]byte(text))
	type exported struct{ Key codegen.Secret }
	type unexported struct{ key codegen.Secret }
	keyed, _ := codegen.NewKeyed(s, 7)
	counter, _ := codegen.NewCounter(s, 1)
	permuted, _ := codegen.NewPermuted(s)
	values := []any{s, &s, exported{s}, &exported{s}, unexported{s}, &unexported{s}, []codegen.Secret{s},
		map[string]codegen.Secret{"key": s}, map[codegen.Secret]int{s: 1}, keyed, &keyed, counter, permuted}
	var out bytes.Buffer
	for _, v := range values {
		for _, verb := range []string{"v", "+v", "#v", "s", "q", "x", "X", "d", "U", "08b", "T", "p"} {
			fmt.Fprintf(&out, "%"+verb+"\n", v)
		}
		fmt.Fprintln(&out, v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("a secret", "v", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("a secret", "v", v)
		if text, err := json.Marshal(v); err == nil {
			out.Write(text)
		}
	}
	for _, form := range []string{text[:7], hex.EncodeToString([]byte(text[:7])), base64.StdEncoding.EncodeToString([]byte(text[:6])),
		strings.Trim(fmt.Sprint([]byte(text[:7])), "[]")} {
		if strings.Contains(strings.ToLower(out.String()), strings.ToLower(form)) {
			t.Errorf("the secret is shown as %s", form)
		}
	}
	want := "30416db80da3dc10"
	if text, err := json.Marshal(exported{s}); string(text) != `{"Key":"`+want+`"}` || err != nil {
		t.Errorf("%s, %v", text, err)
	}
	for _, got := range []string{s.String(), fmt.Sprint(s), fmt.Sprintf("%#v", s), fmt.Sprintf("%x", &s)} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
