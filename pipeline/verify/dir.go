package verify

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/linkforge/bulk/pipeline/manifest"
)

// checkDir compares an output directory with the list of its files in the manifest, and
// returns those that cannot be read. Links to files are followed.
func checkDir(dir string, files []manifest.FileSum, found *findings) (unread []string, err error) {
	known := []string{manifest.Name, manifest.TimingsName}
	for _, file := range files {
		known = append(known, file.Name)
		info, err := os.Stat(filepath.Join(dir, file.Name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			found.fault(file.Name, 0).wrong(FileMissing, "", "", "")
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			found.fault(file.Name, 0).wrong(Damaged, "", "a file", info.Mode().Type().String())
		default:
			continue
		}
		unread = append(unread, file.Name)
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !slices.Contains(known, e.Name()) {
			found.doubt(e.Name(), 0).wrong(FileUnlisted, "", "a file that the manifest lists", "")
		}
	}
	return unread, err
}

// checkDigests compares the files with their digests in the manifest.
func (v *verifier) checkDigests(ctx context.Context) error {
	for _, file := range v.run.manifest.Files {
		if slices.Contains(v.unread, file.Name) {
			continue
		}
		switch sum, err := manifest.FileSHA256(ctx, filepath.Join(v.cfg.Dir, file.Name)); {
		case err != nil:
			return err
		case sum != file.SHA256:
			v.fault(file.Name, 0).wrong(FileSum, "", file.SHA256, sum)
		}
	}
	return nil
}
