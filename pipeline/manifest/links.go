package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Links describe the links of an export, in a file beside it (LinksNameOf): what must be true of a run that
// takes them for those of the store.
type Links struct {
	Version    string    `json:"version"` // of the tool
	Rows       int64     `json:"rows"`
	Workspaces []LinksOf `json:"workspaces"` // that have links, in byte order
}

// LinksOf describes those of a workspace.
type LinksOf struct {
	Workspace   Text   `json:"workspace"`
	Profile     string `json:"profile"`
	Scheme      string `json:"scheme"`
	CodeLength  int    `json:"code_length,omitempty"` // of keyed schemes and counters
	Multiplier  int64  `json:"multiplier,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
	Fold        bool   `json:"fold_case,omitempty"`
	Rules       bool   `json:"rules,omitempty"` // links may end
	Links       int64  `json:"links"`
	Digest      string `json:"digest"` // of codes, kinds and URLs: report.LinksDigest
}

// LinksNameOf returns the name of the description of an export.
func LinksNameOf(export string) string { return export + ".manifest.json" }

// WriteLinks writes a description.
func WriteLinks(w io.Writer, l *Links) error { return writeJSON(w, l) }

// ReadLinks reads the description of an export.
func ReadLinks(export string) (*Links, error) {
	name := LinksNameOf(export)
	data, err := ReadFile(nil, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s beside it: only links that bulk export wrote to a file can be used", name)
	}
	l := new(Links)
	if err == nil {
		err = json.Unmarshal(data, l)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return l, nil
}
