package codegen

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"pgregory.net/rapid"
)

// The codes of redirects.jsonl are asked for by the paths that an independent implementation made.
func TestPathVectors(t *testing.T) {
	file, err := os.Open("../testdata/redirects.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, n := bufio.NewScanner(file), 0
	for lines.Buffer(nil, 1<<20); lines.Scan(); n++ {
		var v struct{ Code, Path string }
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		if got := "/" + string(AppendPath(nil, []byte(v.Code))); got != v.Path {
			t.Errorf("the path of %q is %q, want %q", v.Code, got, v.Path)
		}
		if got := string(FromPath([]byte(v.Path[1:]))); got != v.Code {
			t.Errorf("the code of %q is %q, want %q", v.Path, got, v.Code)
		}
	}
	if err := lines.Err(); err != nil || n != 126 {
		t.Errorf("%d lines: %v", n, err)
	}
}

func TestFromPath(t *testing.T) {
	for path, want := range map[string]string{
		"a%2Fb": "a/b", "a%2fb": "a/b", "a%252Fb": "a%2Fb", "50%": "50%", "%": "%", "%4": "%4", "%zz%41": "%zzA", "%%41": "%A", "caf%C3%A9": "café", "": "",
	} {
		if got := string(FromPath([]byte(path))); got != want {
			t.Errorf("the code of %q is %q, want %q", path, got, want)
		}
		if HasEscape([]byte(path)) != (want != path) {
			t.Errorf("%q has an escape: %t", path, want == path)
		}
	}
}

// Each code comes back from its path, so no two have one path.
func TestPathBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SliceOf(rapid.Byte()).Draw(t, "code")
		path := AppendPath(nil, code)
		if got := FromPath(path); !bytes.Equal(got, code) {
			t.Fatalf("%q came back as %q", code, got)
		}
		if IsPath(code) != bytes.Equal(path, code) {
			t.Fatalf("%q is its own path: %t", code, IsPath(code))
		}
	})
}
