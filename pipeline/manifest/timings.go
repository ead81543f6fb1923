package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/linkforge/bulk/pipeline/fsys"
)

// Timings is what may differ between two equal runs, for people to read. Sizes
// are in bytes.
type Timings struct {
	RunID       int32          `json:"run_id,omitempty"`
	Fingerprint string         `json:"fingerprint,omitempty"`
	Store       string         `json:"store,omitempty"` // without password
	Started     time.Time      `json:"started"`
	Finished    time.Time      `json:"finished"`
	Seconds     float64        `json:"seconds"`
	Workers     int            `json:"workers"`
	Memory      int64          `json:"memory,omitempty"`      // allowed; 0: no bound
	PeakMemory  int64          `json:"peak_memory,omitempty"` // resident, of the process so far; 0: the system does not tell
	Sorted      int64          `json:"sorted"`                // records, rejects and rows, with their heads in the sort
	Spilled     int64          `json:"spilled"`               // went to --tmp; what is divided once more counts twice
	GC          GC             `json:"gc"`
	Stages      []Stage        `json:"stages"`
	Details     map[string]any `json:"details,omitempty"` // what the store tells
	Told        Told           `json:"told,omitzero"`
}

// Told is what a run tells people beside its manifest: here, so that its directory tells it, too.
type Told struct {
	Workspaces    []string         `json:"workspaces,omitempty"`     // of the accepted rows, in byte order; of very many the first
	NewWorkspaces []string         `json:"new_workspaces,omitempty"` // of these, the ones in which the store had no link
	Folds         bool             `json:"folds,omitempty"`          // they fold case, as the store says, though the run was not told so
	Rewritten     int64            `json:"rewritten,omitempty"`      // accepted rows whose URL is not as its canonical form
	RewrittenBy   map[string]int64 `json:"rewritten_by,omitempty"`   // of these, by how their URLs were changed
	Unchanged     map[string]int64 `json:"links_unchanged,omitempty"`
	Nones         int64            `json:"no_ends,omitempty"`            // accepted rows whose expiry or use limit is a word for none
	NotUTF8       *Noted           `json:"not_utf8,omitempty"`           // accepted rows whose URL has bytes that are not UTF-8, which Text has as %XX
	Resolved      *Noted           `json:"resolved,omitempty"`           // accepted rows whose URL was resolved against --target-base
	Dates         int64            `json:"dates_without_time,omitempty"` // accepted rows whose expiry is a date without a time
	LinksByValue  []LinksByValue   `json:"links_by_value,omitempty"`     // of a campaign, by parameter
	Counter       Counter          `json:"counter,omitzero"`             // of a scheme that has one
}

// LinksByValue tells how many links, new ones and those that were there, the values of a parameter of a campaign have.
type LinksByValue struct {
	Parameter string       `json:"parameter"`
	Values    int64        `json:"values"`             // different ones
	AtLeast   bool         `json:"at_least,omitempty"` // there are more, which were not counted
	Links     []ValueLinks `json:"links"`              // of the values with the most links
}

// ValueLinks is how many links have a value.
type ValueLinks struct {
	Value Text  `json:"value"` // at most the first 100 bytes
	Links int64 `json:"links"`
}

// Counter says where the counter of the store stands after a run.
type Counter struct {
	Last  int64 `json:"last"`            // number that was given out; 0: none
	Start int64 `json:"start,omitempty"` // to which the run was to move the counter; 0: it was not
	Was   int64 `json:"was,omitempty"`   // with Start: the next number before
	Moved bool  `json:"moved,omitempty"` // Start was ahead
}

// Stage is a part of the work:
//
//	read    of the inputs, canonical forms, hashes; bytes are those of the inputs as they lie
//	wait    for the store: a session is opened, another run may hold its locks, and it is tried again after a pause
//	settle  every URL gets its code; the store is looked up
//	order   rows go into the order of the input, if the mapping is to have it; links are loaded
//	write   mapping and collisions, bytes are theirs; links are loaded
//	finish  rejects, manifest, and the files reach the disk; bytes are those of all files
//	fsync   the part of finish that waits for the disk
//
// A stage that was done again, after a conflict or a failure of the store, is there
// as often.
type Stage struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Rows    int64   `json:"rows,omitempty"`
	Bytes   int64   `json:"bytes,omitempty"`
}

// GC is what the memory of the process so far has cost.
type GC struct {
	Cycles     uint64  `json:"cycles"`
	CPUSeconds float64 `json:"cpu_seconds"`
	Allocated  uint64  `json:"allocated"` // in all
}

// WriteTimings writes t as indented JSON with a newline at the end.
func WriteTimings(w io.Writer, t *Timings) error { return writeJSON(w, t) }

// maxTimings is the most bytes of timings that are read.
const maxTimings = 16 << 20

// ReadTimings reads the timings of a run; nil: the directory has none.
func ReadTimings(dir string) (*Timings, error) {
	path := filepath.Join(dir, TimingsName)
	data, err := fsys.OS{}.ReadFile(path, maxTimings)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t := new(Timings)
	if err := json.Unmarshal(data, t); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}
