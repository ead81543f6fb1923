package harness

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// AsOf is the time that runs record, so that equal ones leave equal bytes.
const AsOf = "2026-01-01"

// BulkOutput notes what a finished run of bulk left in its folder: the bytes, the
// rows if the step did not know, the digest of its mapping from the manifest, and
// what timings.json says.
func (s *Sample) BulkOutput(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		s.Bytes += info.Size()
	}
	var manifest struct {
		Counts struct{ Read int64 }
		Files  []struct{ Name, SHA256 string }
	}
	if err := readJSON(filepath.Join(folder, "manifest.json"), &manifest); err != nil {
		return err
	}
	if s.Rows == 0 {
		s.Rows = manifest.Counts.Read
	}
	for _, f := range manifest.Files {
		if strings.HasPrefix(f.Name, "mapping.") {
			s.Digest = f.SHA256
		}
	}
	return s.timings(filepath.Join(folder, "timings.json"))
}

// timings reads the stages, in seconds, and the numbers among the details.
func (s *Sample) timings(file string) error {
	var timings struct {
		Stages []struct {
			Name    string
			Seconds float64
		}
		Details map[string]any
	}
	if err := readJSON(file, &timings); err != nil {
		return err
	}
	s.FsyncInside = true
	s.Stages = map[string]float64{}
	for _, stage := range timings.Stages {
		s.Stages[stage.Name] += stage.Seconds
	}
	s.Fsync = s.Stages["fsync"]
	for name, v := range timings.Details {
		if n, ok := v.(float64); ok {
			s.Stages[name] = n
		}
	}
	return nil
}

func readJSON(file string, v any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}
