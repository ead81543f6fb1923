package diff

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/terms"
	"golang.org/x/sync/errgroup"
)

// An operand is one of the two that are compared.
type operand struct {
	manifest  *manifest.Manifest // nil: a mapping alone
	digest    string             // SHA-256 of manifest.json; of a mapping alone, of that
	excelSafe bool               // cells of the mapping may be defused; without a manifest, as the other side
	mapping   manifest.FileSum   // its name is a path; "": a run that had too many rejects
	rejects   manifest.FileSum
	terms     *terms.Terms       // of the run; of a mapping alone, those of a plain one
	files     []manifest.FileSum // all reports, with their paths; of a mapping in parts, these
	parts     fsys.FS            // that has the parts as one mapping; nil: it is one
	changed   map[string]bool    // names of the reports: whether a file has another digest than its manifest says
}

// openSide finds out what is at a path.
func openSide(path string) (*operand, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return &operand{terms: &terms.Terms{}, mapping: manifest.FileSum{Name: path}}, isFile(path, info)
	}
	s := &operand{changed: map[string]bool{}}
	if s.manifest, s.digest, err = manifest.ReadDir(path); err != nil {
		return nil, err
	}
	s.terms, _ = terms.Parse(s.manifest) // an option that no run has counts as none
	s.excelSafe = s.terms.ExcelSafe
	files, parts := s.manifest.Reports()
	if parts != nil {
		s.mapping = files[0]
		s.mapping.Name = filepath.Join(path, files[0].Name)
		s.parts = readback.Parts(path, files[0].Name, parts)
	}
	for _, file := range s.manifest.Files {
		name := file.Name
		if !manifest.IsReport(name) && !manifest.IsPart(name) {
			continue
		}
		file.Name = filepath.Join(path, name)
		s.files = append(s.files, file)
		switch {
		case name == manifest.RejectsName:
			s.rejects = file
		case name != manifest.CollisionsName && !manifest.IsPart(name):
			s.mapping = file
		}
		info, err := os.Stat(file.Name)
		if err == nil {
			err = isFile(file.Name, info)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: a file that its manifest lists: %w", path, err)
		}
	}
	return s, nil
}

// columns returns the columns of the mapping of the run; of a mapping alone, those of a plain run.
func (s *operand) columns() report.Columns {
	if s.manifest == nil {
		return report.Columns{}
	}
	return report.ColumnsOf(s.terms, s.manifest.Numbers != nil, s.manifest.Rules != nil)
}

// isFile rejects what cannot be read twice, such as a FIFO, which may not even open.
func isFile(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return &columns.UsageError{Input: path, Msg: "is not a regular file: it may have to be read twice"}
	}
	return nil
}

// digests compares the files with their digests in the manifests. What the manifest says of a
// file that was changed does not count any more: it is read.
func (d *differ) digests(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(d.cfg.Workers)
	var mu sync.Mutex
	for _, side := range d.sides {
		if side.manifest == nil {
			g.Go(func() (err error) { side.digest, err = manifest.FileSHA256(gctx, side.mapping.Name); return err })
		}
		for _, file := range side.files {
			g.Go(func() error {
				sum, err := manifest.FileSHA256(gctx, file.Name)
				mu.Lock()
				defer mu.Unlock()
				side.note(file.Name, sum != file.SHA256)
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	names := map[string]bool{}
	for _, side := range d.sides {
		for name, changed := range side.changed {
			names[name] = names[name] || changed
		}
		for _, file := range []*manifest.FileSum{&side.mapping, &side.rejects} {
			if side.changed[filepath.Base(file.Name)] {
				file.SHA256, file.RowDigest = "", ""
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !names[name] {
			continue
		}
		if err := d.emit(&Difference{Change: FileChanged, Field: name, A: d.sides[0].state(name), B: d.sides[1].state(name)}); err != nil {
			return err
		}
	}
	return nil
}

// note notes whether a report was changed: of a mapping in parts, whether one of them was.
func (s *operand) note(path string, changed bool) {
	name := filepath.Base(path)
	if s.parts != nil && filepath.Base(filepath.Dir(path)) == manifest.PartsDir {
		name = filepath.Base(s.mapping.Name)
	}
	s.changed[name] = s.changed[name] || changed
}

// isChanged reports whether any report was changed.
func (s *operand) isChanged() bool {
	return slices.Contains(slices.Collect(maps.Values(s.changed)), true)
}

// state says whether a report was changed; "": the side does not have it.
func (s *operand) state(name string) manifest.Text {
	switch changed, ok := s.changed[name]; {
	case changed:
		return Changed
	case ok:
		return Unchanged
	}
	return ""
}

// sameMapping reports whether the manifests show that the mappings have the
// same rows.
func sameMapping(a, b *operand) bool {
	x, y := a.mapping, b.mapping
	return x.RowDigest != "" && x.RowDigest == y.RowDigest ||
		x.SHA256 != "" && x.SHA256 == y.SHA256 && a.excelSafe == b.excelSafe
}

// noMapping reports whether a side has no mapping.
func (d *differ) noMapping() (bool, error) {
	var names [2]string
	for i, side := range d.sides {
		path := []string{d.cfg.A, d.cfg.B}[i]
		if side.mapping.Name != "" {
			names[i] = "mapping"
			continue
		}
		if d.sides[1-i].manifest == nil {
			return true, fmt.Errorf("%s: %w", path, ErrNoMapping)
		}
		if d.cfg.NoMapping != nil {
			d.cfg.NoMapping(path)
		}
	}
	if names[0] == names[1] {
		return names[0] == "", nil
	}
	return true, d.emit(&Difference{Change: ManifestChanged, Field: "files", A: manifest.Text(names[0]), B: manifest.Text(names[1])})
}

// ErrNoMapping is the error if a mapping is to be compared with a run that has none.
var ErrNoMapping = errors.New("the run stored nothing and has no mapping to compare")

// sameInputs reports whether two runs read the same records from their inputs
// one by one.
func sameInputs(a, b *manifest.Manifest) bool {
	if a == nil || b == nil || len(a.Inputs) == 0 {
		return false
	}
	return slices.EqualFunc(a.Inputs, b.Inputs, func(x, y manifest.Input) bool {
		return x.SHA256 == y.SHA256 && x.RecordsSHA256 == y.RecordsSHA256 && x.SHA256+x.RecordsSHA256 != ""
	})
}

// manifests compares how links were made, by the manifests. Options that only say how files
// are written, or what is stored, do not count.
func (d *differ) manifests() error {
	if d.sides[0].manifest == nil || d.sides[1].manifest == nil {
		return nil
	}
	a, b := settings(d.sides[0].manifest), settings(d.sides[1].manifest)
	if d.sides[0].terms.Mode() != d.sides[1].terms.Mode() && !d.legacy { // that alone is told
		for _, name := range []string{"code_pattern", "on_conflict", "fold_case", "reserved_sha256", "code_from", "map_code", "map_kind"} {
			delete(a, name)
			delete(b, name)
		}
	}
	names := maps.Clone(a)
	maps.Copy(names, b)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a[name] == b[name] {
			continue
		}
		if err := d.emit(&Difference{Change: ManifestChanged, Field: name, A: manifest.Text(a[name]), B: manifest.Text(b[name])}); err != nil {
			return err
		}
	}
	return nil
}

// settings returns, by name, the settings that can change links.
func settings(m *manifest.Manifest) map[string]string {
	ignored := []string{"report_format", "report_order", "excel_safe", "base_url", "carry", "dry_run", "max_rejects"}
	s := map[string]string{
		"profile": m.Profile, "scheme": m.Scheme.Name,
		"code_length": fmt.Sprint(m.Scheme.CodeLength), "max_retries": fmt.Sprint(m.Scheme.MaxRetries),
	}
	maps.Copy(s, m.Scheme.Rest())
	for name, value := range m.Options {
		if name == "profile" { // of the inputs, not of the URLs
			name = "input_profile"
		}
		if !slices.Contains(ignored, name) {
			s[name] = fmt.Sprint(value)
		}
	}
	return s
}

// sources numbers the inputs of a side: those of the manifest as it lists them.
type sources struct {
	ids    map[string]uint32
	names  []string
	last   string // as the file has it
	lastID uint32
}

// newSources returns the inputs of a side; text is how its file writes a name
// that may not be UTF-8.
func (d *differ) newSources(side int, text func(string) string) *sources {
	s := &sources{ids: map[string]uint32{}}
	if d.sameInputs {
		for _, input := range d.sides[side].manifest.Inputs {
			s.number(text(string(input.Name)))
		}
	}
	return s
}

// id returns the number of a source that the file names.
func (s *sources) id(name string) uint32 {
	if name == s.last && len(s.names) > 0 {
		return s.lastID
	}
	s.last = strings.Clone(name) // it may lie in a buffer
	s.lastID = s.number(s.last)
	return s.lastID
}

func (s *sources) number(name string) uint32 {
	id, known := s.ids[name]
	if !known {
		id = uint32(len(s.names))
		s.ids[name] = id
		s.names = append(s.names, name)
	}
	return id
}
