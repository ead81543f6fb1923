package manifest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
)

// FileSHA256 returns the digest of a file, in hexadecimal. The error is that of the file, or
// the cause that ended ctx.
func FileSHA256(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum, buf := sha256.New(), make([]byte, 128<<10)
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
