package manifest

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// A Deletion says what a delete was given and what came of it. It has the names of a [Manifest] where
// it says the same, so that Read reads it.
type Deletion struct {
	Delete         bool             `json:"delete"`  // WriteDeletion sets it
	Version        string           `json:"version"` // of the tool
	Profile        string           `json:"profile"` // of the workspace
	UnicodeVersion string           `json:"unicode_version"`
	Options        Options          `json:"options"`
	AsOf           time.Time        `json:"as_of"` // UTC
	Inputs         Inputs           `json:"inputs"`
	Counts         DeletionCounts   `json:"counts"`
	LinksDeleted   int64            `json:"links_deleted"` // of a dry run: links that would be
	Changes        map[string]int64 `json:"changes"`       // rows of the mapping by change, if there is one
	Reasons        map[string]int64 `json:"reasons"`       // rejects by reason
	Files          Files            `json:"files"`
}

// DeletionCounts are the books of a delete: Read = Existing + Duplicate + Rejected.
type DeletionCounts struct {
	Read      int64 `json:"read"`
	Existing  int64 `json:"existing"`
	Duplicate int64 `json:"duplicate"`
	Rejected  int64 `json:"rejected"`
}

// WriteDeletion writes d as Write writes a Manifest.
func WriteDeletion(w io.Writer, d *Deletion) error {
	c := *d
	c.Delete, c.AsOf, c.Inputs = true, c.AsOf.UTC(), c.Inputs.listed()
	return writeJSON(w, &c)
}

// ReadDeletion reads what WriteDeletion wrote.
func ReadDeletion(data []byte) (*Deletion, error) {
	if _, err := Read(data); err != nil {
		return nil, err
	}
	d := new(Deletion)
	if err := json.Unmarshal(data, d); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return d, nil
}
