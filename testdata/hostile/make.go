// Command hostile writes the files of this directory. Each of them is damaged, or takes far more
// memory than it has bytes:
//
//	go run ./testdata/hostile
//
// How bulk must answer each stands in cmd/bulk/hostile_test.go.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

const dir = "testdata/hostile"

func main() {
	log.SetFlags(0)
	files := map[string][]byte{}
	for _, more := range []map[string][]byte{texts(), parquets(), arrows()} {
		maps.Copy(files, more)
	}
	old, _ := filepath.Glob(dir + "/*.*")
	for _, name := range old {
		if filepath.Ext(name) != ".go" {
			must(os.Remove(name))
		}
	}
	for name, data := range files {
		must(os.WriteFile(filepath.Join(dir, name), data, 0o666))
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

const (
	head = "url,note\nhttp://example.com/first,1\n"
	tail = "\nhttp://example.com/last,3\n"
)

// texts are a few kilobytes each that stand for very much.
func texts() map[string][]byte {
	return map[string][]byte{
		"bomb-line.csv.gz":  gzipped(head, 512<<20, "a"+tail),
		"bomb-line.csv.zst": zstded(head, 'a', 512<<20, "a"+tail),
		"bomb-rows.csv.zst": zstded(head, '\n', 512<<20, tail),
		"field.csv.zst":     zstded(head+`http://example.com/middle,"`, 'a', 100<<20, `"`+tail),
		"columns.csv.zst":   zstded("url", ',', 1_000_000_000, "\n"+strings.Repeat(",", 10)),
		"quote.csv.zst":     zstded(head+`"`, 'a', 64<<20, tail), // is never closed
		"window.csv.zst":    append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3}, rawBlock([]byte(head), true)...),
		"cut.csv.gz":        gzipped(head, 1<<20, tail)[:500],
		"cut.csv.zst":       zstded(head, 'a', 1<<20, tail)[:40],
		"line-more.csv.gz":  append(gzipped(head, 10, tail), '\n'),
		"text-more.csv.gz":  append(gzipped(head, 10, tail), "http://example.com/"...),
		"text-more.csv.zst": append(zstded(head, 'a', 10, tail), "http://example.com/"...),
		"checksum.csv.gz":   flipped(gzipped(head, 10, tail), -5),
		"zero.csv":          []byte(head + "http://example.com/\x00,2" + tail),
		"utf16.csv":         {0xff, 0xfe, 'u', 0, 'r', 0, 'l', 0, '\n', 0, 0x00, 0xd8, 'x'},
		"rejects.csv":       []byte("source,row,byte_offset,reason,detail,url,raw\nx,1,0,malformed_row,\"never closed,,\n"),
	}
}

func flipped(data []byte, at int) []byte {
	data[len(data)+at] ^= 0xff
	return data
}

// gzipped compresses before, so many letters a, and after.
func gzipped(before string, n int, after string) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	io.WriteString(w, before)
	letters := bytes.Repeat([]byte("a"), 1<<20)
	for ; n > 0; n -= min(n, len(letters)) {
		w.Write(letters[:min(n, len(letters))])
	}
	io.WriteString(w, after)
	must(w.Close())
	return b.Bytes()
}

// zstded makes a frame with a window of 128 KiB in which c, n times, takes 4 bytes
// for each 128 KiB (RFC 8878, section 3.1.1.2).
func zstded(before string, c byte, n int, after string) []byte {
	b := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 7 << 3}, rawBlock([]byte(before), false)...)
	for ; n > 0; n -= min(n, 1<<17) {
		b = append(block(b, min(n, 1<<17), 1, false), c)
	}
	return append(b, rawBlock([]byte(after), true)...)
}

func rawBlock(data []byte, last bool) []byte { return append(block(nil, len(data), 0, last), data...) }

func block(b []byte, size, kind int, last bool) []byte {
	v := uint32(size<<3 | kind<<1)
	if last {
		v |= 1
	}
	return append(b, byte(v), byte(v>>8), byte(v>>16))
}

// replaced puts something in the place of the n-th of a 64-bit integer, which must
// be there.
func replaced(data []byte, n int, old, now int64) []byte {
	data = bytes.Clone(data)
	pattern := binary.LittleEndian.AppendUint64(nil, uint64(old))
	for at := 0; ; {
		i := bytes.Index(data[at:], pattern)
		if i < 0 {
			log.Fatal(fmt.Sprint("no ", old))
		}
		at += i
		if n--; n == 0 {
			binary.LittleEndian.PutUint64(data[at:], uint64(now))
			return data
		}
		at += 8
	}
}
