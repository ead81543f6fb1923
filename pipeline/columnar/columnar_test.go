package columnar

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// No file of the corpus ends the process or takes much memory. It is an error or,
// where that does no such harm, a panic of the decoder or rows.
func TestHostile(t *testing.T) {
	names, _ := filepath.Glob("../../testdata/hostile/*.parquet")
	arrows, _ := filepath.Glob("../../testdata/hostile/*.arrow")
	if len(names) < 20 || len(arrows) < 10 {
		t.Fatal("where is the corpus?")
	}
	for _, name := range append(names, arrows...) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		rows := 0
		if filepath.Ext(name) == ".arrow" {
			rows, err = readArrow(data)
		} else {
			rows, err = readParquet(data)
		}
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 64<<20 {
			t.Errorf("%s: took %d bytes", name, after.TotalAlloc-before.TotalAlloc)
		}
		t.Logf("%s: %d rows, %v", filepath.Base(name), rows, err)
	}
}

func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%v", p)
	}
}

func readParquet(data []byte) (rows int, err error) {
	defer recovered(&err)
	f, err := OpenParquet(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return 0, err
	}
	for _, group := range f.RowGroups() {
		for _, column := range group.ColumnChunks() {
			pages := column.Pages()
			for {
				page, err := pages.ReadPage()
				if err == io.EOF {
					break
				}
				if err != nil {
					return rows, err
				}
				rows += int(page.NumRows())
				parquet.Release(page)
			}
		}
	}
	return rows, nil
}

func readArrow(data []byte) (rows int, err error) {
	defer recovered(&err)
	r, alloc, err := OpenArrow(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return 0, err
	}
	for {
		alloc.Reset()
		rec, err := r.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		rows += int(rec.NumRows())
	}
}
