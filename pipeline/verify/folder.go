package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/linkforge/bulk/pipeline/manifest"
)

// path returns that of a file of the folder.
func (v *verifier) path(name string) string { return filepath.Join(v.cfg.Dir, name) }

// checkFolder compares the folder with the list of files in the manifest, and
// notes which of them cannot be read. Links to files are followed.
func (v *verifier) checkFolder() error {
	known := []string{manifest.Name, manifest.TimingsName}
	for _, file := range v.manifest.Files {
		known = append(known, file.Name)
		info, err := os.Stat(v.path(file.Name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			v.fault(file.Name, 0).wrong(FileMissing, "", "", "")
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			v.fault(file.Name, 0).wrong(Damaged, "", "a file", info.Mode().Type().String())
		default:
			continue
		}
		v.unread = append(v.unread, file.Name)
		v.broken.Store(true)
	}
	entries, err := os.ReadDir(v.cfg.Dir)
	for _, e := range entries {
		if !slices.Contains(known, e.Name()) {
			v.doubt(e.Name(), 0).wrong(FileUnlisted, "", "a file that the manifest lists", "")
		}
	}
	return err
}

// digests compares the files with their digests in the manifest.
func (v *verifier) digests(ctx context.Context) error {
	for _, file := range v.manifest.Files {
		if slices.Contains(v.unread, file.Name) {
			continue
		}
		switch sum, err := digest(ctx, v.path(file.Name)); {
		case err != nil:
			return err
		case sum != file.SHA256:
			v.fault(file.Name, 0).wrong(FileSum, "", file.SHA256, sum)
		}
	}
	return nil
}

func digest(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum, buf := sha256.New(), make([]byte, 1<<20)
	for {
		n, err := f.Read(buf)
		sum.Write(buf[:n])
		switch {
		case err == io.EOF:
			return hex.EncodeToString(sum.Sum(nil)), nil
		case err != nil:
			return "", err
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		}
	}
}
