package harness

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// AsOf is the time that all runs record, so that equal runs write equal bytes.
const AsOf = "2026-01-01"

// BulkOutput notes what a finished run of bulk left in its output directory: the size of
// the files, the digest of the mapping, and the stages and numbers of timings.json.
func (s *Sample) BulkOutput(dir string) error {
	entries, err := os.ReadDir(dir)
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
		Files []struct{ Name, SHA256 string }
	}
	if err := readJSON(filepath.Join(dir, "manifest.json"), &manifest); err != nil {
		return err
	}
	for _, f := range manifest.Files {
		if strings.HasPrefix(f.Name, "mapping.") {
			s.Digest = f.SHA256
		}
	}
	var timings struct {
		Stages []struct {
			Name    string
			Seconds float64
		}
		Details map[string]any
	}
	if err := readJSON(filepath.Join(dir, "timings.json"), &timings); err != nil {
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
