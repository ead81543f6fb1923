package source

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"unicode/utf8"

	"github.com/linkforge/bulk/pipeline/charset"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/fsys"
)

// peekBytes is how much of an input is looked at to find its format and dialect.
const peekBytes = 64 << 10

// Open looks at the start of the named input ("-": Options.Stdin) and decides how to read
// it. A regular file is closed again until Read, so that thousands of inputs need one
// descriptor. Of a stream, Open waits for the first Options.Block bytes, and keeps them.
//
// If there is no such file, or an input cannot be read as the options ask, the error is a *[UsageError].
func Open(ctx context.Context, name string, opts Options) (*Input, error) {
	opts, err := opts.settled()
	if err != nil {
		return nil, &columns.UsageError{Input: name, Msg: err.Error()}
	}
	in := &Input{Table: columns.New(name, opts.Choice), opts: opts, total: -1}
	if err := in.open(ctx); err != nil {
		return nil, err
	}
	err = in.settle()
	if err != nil || in.info != nil {
		in.close()
	}
	if err == nil {
		return in, nil
	}
	_, usage := errors.AsType[*columns.UsageError](err)
	if _, placed := errors.AsType[*ReadError](err); !usage && !placed && ctx.Err() == nil {
		err = &ReadError{Input: name, After: -1, Err: err}
	}
	return nil, err
}

// open starts the stream of the input.
func (in *Input) open(ctx context.Context) error {
	raw, err := in.raw(ctx)
	if err != nil {
		return err
	}
	block := in.opts.Block
	if in.info != nil {
		block = int(min(int64(block), in.info.Size()+1))
		if !in.started {
			block = min(block, peekBytes)
		}
	}
	count := &in.done
	if in.direct() {
		count = new(atomic.Int64)
	}
	in.src = newWindow(ctx, newStream(newDigest(raw, count, !in.opts.digests()), block, in.opts.Encoding))
	return nil
}

// raw opens the input's file. If it is a regular one raw sets in.info, or compares the file
// with it if it was set before.
func (in *Input) raw(ctx context.Context) (io.Reader, error) {
	if in.Name == "-" {
		if in.opts.Stdin == nil {
			return nil, &columns.UsageError{Input: "-", Msg: "there is no standard input"}
		}
		if f, ok := in.opts.Stdin.(*os.File); ok {
			if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
				in.total = info.Size()
			}
		}
		return in.opts.Stdin, nil
	}
	info, err := in.opts.FS.Stat(in.Name)
	switch {
	case in.info == nil && errors.Is(err, fs.ErrNotExist):
		return nil, &NoFileError{&columns.UsageError{Input: in.Name, Msg: fsys.Cause(err).Error()}, err}
	case err != nil:
		return nil, fmt.Errorf("open %s: %w", in.Name, fsys.Cause(err))
	case info.IsDir():
		msg := fmt.Sprintf("is a directory; give its files: '%s'", filepath.Join(in.Name, "*.csv"))
		if _, err := in.opts.FS.Stat(filepath.Join(filepath.Dir(in.Name), "manifest.json")); err == nil { // others may lie there
			msg = "is a directory of a run in parts; give the files that manifest.json beside it lists"
		}
		return nil, &NoFileError{&columns.UsageError{Input: in.Name, Msg: msg}, syscall.EISDIR}
	}
	f, err := openFile(ctx, in.opts.FS, in.Name, info)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil && info.Mode().IsRegular() {
		if in.info == nil {
			in.info, in.total = info, info.Size()
		} else {
			err = in.unchanged(f)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	in.file = f
	return f, nil
}

// A NoFileError is a UsageError: there is no such file, or it is a directory. It wraps the cause, too.
type NoFileError struct {
	*columns.UsageError
	cause error
}

// Unwrap returns the UsageError and the cause.
func (e *NoFileError) Unwrap() []error { return []error{e.UsageError, e.cause} }

// openFile opens a file. Opening a FIFO waits for a writer: if ctx ends meanwhile, a
// goroutine is left waiting.
func openFile(ctx context.Context, files fsys.FS, name string, info fs.FileInfo) (fsys.File, error) {
	if info.Mode()&fs.ModeNamedPipe == 0 {
		return files.Open(name)
	}
	type result struct {
		f   fsys.File
		err error
	}
	opened := make(chan result)
	go func() {
		f, err := files.Open(name)
		select {
		case opened <- result{f, err}:
		case <-ctx.Done():
			if err == nil {
				f.Close()
			}
		}
	}()
	select {
	case r := <-opened:
		return r.f, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// unchanged checks that f is still the file that was opened first.
func (in *Input) unchanged(f fsys.File) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(now, in.info) || now.Size() != in.info.Size() || !now.ModTime().Equal(in.info.ModTime()) {
		return fmt.Errorf("read %s: the file changed after it was opened", in.Name)
	}
	return nil
}

var (
	// noText are the extensions of files that are not text.
	noText = []string{".parquet", ".arrow", ".arrows", ".feather", ".ipc"}
	// jsonExts are the extensions of JSON.
	jsonExts = []string{".json", ".jsonl", ".ndjson"}
	// neverEmpty are the extensions of files that have bytes even without rows.
	neverEmpty = slices.Concat(noText, []string{".gz", ".zst", ".zstd"})
)

// settle finds the format by the first bytes.
func (in *Input) settle() error {
	w := in.src
	if err := w.look(peekBytes); err != nil {
		return err
	}
	in.Compression = w.compression
	if in.opts.report && in.Compression != "" {
		return fmt.Errorf("is %s", in.Compression)
	}
	start := w.buf[w.pos:]
	in.decoded = in.opts.Encoding != "" && w.encoding == in.opts.Encoding
	if ext := strings.ToLower(filepath.Ext(in.Name)); len(start) == 0 && w.compression == "" && slices.Contains(neverEmpty, ext) {
		return fmt.Errorf("is empty: a %s file has bytes even without rows", ext)
	}
	if err := refuse(start, w.compression); err != nil {
		return &columns.UsageError{Input: in.Name, Msg: err.Error()}
	}
	if in.opts.Encoding != "" && hasOwnEncoding(start) {
		return &columns.UsageError{Input: in.Name, Msg: "Options.Encoding " + in.opts.Encoding + " is for CSV and text: Parquet, Arrow and JSON tell how their text is written. Leave it out, or read the file by itself"}
	}
	switch {
	case bytes.HasPrefix(start, []byte("PAR1")):
		return in.openParquet()
	case bytes.HasPrefix(start, []byte("ARROW1")):
		return in.openArrow(true)
	case in.opts.report:
		return in.openReport(w)
	case bytes.HasPrefix(start, []byte{0xff, 0xff, 0xff, 0xff}):
		return in.openArrow(false)
	}
	name := trimCompression(in.Name)
	if ext := strings.ToLower(filepath.Ext(name)); slices.Contains(noText, ext) {
		return fmt.Errorf("does not begin as a %s file: it is damaged, or a text that needs another name", ext)
	}
	// A download may have decompressed a text and kept its name. A text has no zero bytes.
	if name != in.Name && w.compression == "" && bytes.IndexByte(start, 0) >= 0 {
		return fmt.Errorf("does not begin as a %s file, and is not text: it is damaged", strings.ToLower(filepath.Ext(in.Name)))
	}
	switch {
	case isNoText(start):
		return &columns.UsageError{Input: in.Name, Msg: "is neither text nor in a known format: give CSV, JSON, Parquet or Arrow"}
	case isJSON(start):
		return in.openJSON()
	case slices.Contains(jsonExts, strings.ToLower(filepath.Ext(name))) && len(start) > 0 && (start[0] == '[' || start[0] == '{'):
		return &columns.UsageError{Input: in.Name, Msg: "is not JSON: neither its first value nor a line in its beginning can be parsed. If it is CSV, give it another name"}
	}
	return in.openText(w)
}

// refuse returns an error for a known format that cannot be read. It says what to do instead.
// The file may be compressed.
func refuse(start []byte, compression string) error {
	if isOldStream(start) {
		return errors.New("is an Arrow stream in the format from before 2019, which cannot be read: write it with a newer version of Arrow")
	}
	again, first := compression+" -dc FILE | bulk run -", "" // they are called as their commands are
	if compression != "" {
		first = "decompress it with " + compression + ", then: " // the commands below read what is in it
	}
	if bytes.HasPrefix(start, []byte("PK\x03\x04")) && (bytes.Contains(start, []byte("xl/")) || bytes.Contains(start, []byte("opendocument.spreadsheet"))) {
		return errors.New("is a spreadsheet file (.xlsx or .ods), which cannot be read: save it as CSV")
	}
	for magic, f := range map[string]struct{ is, do string }{
		"<!DOCTYPE HTML":      {"an HTML page", "a page to log in, or an error, may have been saved instead of the file"},
		"<HTML":               {"an HTML page", "a page to log in, or an error, may have been saved instead of the file"},
		"<?XML":               {"XML", "convert it to CSV or JSON"},
		"%PDF-":               {"a PDF file", "export the table as CSV"},
		"\xd0\xcf\x11\xe0":    {"a file of an old Office program (.xls, .doc)", "save it as CSV"},
		"\x89PNG":             {"an image", "give the table that it shows"},
		"\xff\xd8\xff":        {"an image", "give the table that it shows"},
		"GIF8":                {"an image", "give the table that it shows"},
		"PK\x03\x04":          {"a ZIP archive", first + "unzip -p FILE | bulk run -"},
		"BZh":                 {"bzip2", first + "bzip2 -dc FILE | bulk run -"},
		"\xfd7zXZ\x00":        {"xz", first + "xz -dc FILE | bulk run -"},
		"\x04\x22\x4d\x18":    {"LZ4", first + "lz4 -dc FILE | bulk run -"},
		"\x1f\x8b":            {"compressed twice", again},
		"\x28\xb5\x2f\xfd":    {"compressed twice", again},
		"SQLite format 3\x00": {"a SQLite database", first + "sqlite3 -csv -header FILE 'SELECT ...' | bulk run -"},
		"PARE":                {"an encrypted Parquet file", "write it without encryption"},
		"FEA1":                {"Feather of version 1", "write it as version 2, or as Parquet"},
	} {
		word := magic == "PARE" || magic == "FEA1" || magic == "GIF8" // a column may be PARENT
		head := start
		if magic[0] == '<' {
			head = bytes.ToUpper(bytes.TrimLeft(bytes.TrimPrefix(start, []byte(utf8BOM)), " \t\r\n"))
		}
		if bytes.HasPrefix(head, []byte(magic)) && (!word || isBinary(start)) {
			return fmt.Errorf("is %s, which cannot be read: %s", f.is, f.do)
		}
	}
	return nil
}

// hasOwnEncoding reports whether the start of an input is of a format that tells how its text is written.
func hasOwnEncoding(start []byte) bool {
	return bytes.HasPrefix(start, []byte("PAR1")) || bytes.HasPrefix(start, []byte("ARROW1")) || bytes.HasPrefix(start, []byte{0xff, 0xff, 0xff, 0xff}) || isJSON(start)
}

// isDecoded reports whether the start of an input, which has no byte order mark, is that of a text in
// an encoding: it is nothing else that is known.
func isDecoded(start []byte, encoding, compression string) bool {
	return encoding != "" && !hasOwnEncoding(start) && refuse(start, compression) == nil && (charset.IsWide(encoding) || !isNoText(start)) && !hasRejectsHead(start)
}

// isNoText says whether the start of an input is like random bytes: not in UTF-8, with control
// characters of eight and more kinds. A text in another encoding has fewer.
func isNoText(start []byte) bool {
	start = start[:min(len(start), 1024)]
	kinds := uint32(0)
	for _, c := range start {
		if c < ' ' && strings.IndexByte("\t\n\v\f\r\x1b", c) < 0 {
			kinds |= 1 << c
		}
	}
	return bits.OnesCount32(kinds) >= 8 && !utf8.Valid(start)
}

// isOldStream says whether an Arrow stream begins as in versions before 0.15: with the length
// of a schema, and the offset of its table. Both numbers are so small that they have zero
// bytes, which a text does not have there.
func isOldStream(start []byte) bool {
	return len(start) >= 8 && start[3]|start[6]|start[7] == 0 && start[4]|start[5] != 0 &&
		binary.LittleEndian.Uint32(start[4:]) < binary.LittleEndian.Uint32(start)
}

// isBinary says whether the start of an input is not text: the numbers in a Parquet footer are
// small, and so have zero bytes, and four zero bytes follow the name of Feather.
func isBinary(start []byte) bool { return bytes.IndexByte(start[:min(len(start), 64)], 0) >= 0 }

// Close releases what the input holds; it cannot be read afterwards. Close may be called more
// than once, but not during Read.
func (in *Input) Close() error {
	in.started = true
	return in.close()
}

func (in *Input) close() error {
	var err error
	if in.src != nil {
		in.src.Close()
	}
	if in.drain != nil && in.direct() {
		in.drain() // it may be under way
	}
	if in.file != nil {
		err = in.file.Close()
	}
	if in.spool != nil {
		if e := in.spool.Close(); e != nil {
			err = errors.Join(err, fmt.Errorf("close the temporary file of %s: %w", in.Name, fsys.Cause(e)))
		}
	}
	in.src, in.file, in.spool = nil, nil, nil
	return err
}
