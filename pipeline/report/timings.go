package report

import (
	"bytes"
	"encoding/json"
	"io"
	"time"
)

// Timings is what may differ between two equal runs, for people to read.
type Timings struct {
	RunID       int32          `json:"run_id,omitempty"`
	Fingerprint string         `json:"fingerprint,omitempty"`
	Store       string         `json:"store,omitempty"` // without password
	Started     time.Time      `json:"started"`
	Finished    time.Time      `json:"finished"`
	Seconds     float64        `json:"seconds"`
	Workers     int            `json:"workers"`
	Memory      int64          `json:"memory,omitempty"` // bytes allowed; 0: no bound
	Stages      []Stage        `json:"stages"`
	Details     map[string]any `json:"details,omitempty"`
}

// Stage is a part of the work. Stages overlap, so their seconds may add up to
// more than those of the run.
type Stage struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Rows    int64   `json:"rows,omitempty"`
	Bytes   int64   `json:"bytes,omitempty"`
}

// WriteTimings writes t as indented JSON with a newline at the end.
func WriteTimings(w io.Writer, t *Timings) error { return writeJSON(w, t) }

// marshal is json.Marshal, but leaves the & of a URL alone.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
