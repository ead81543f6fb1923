// Command rows makes of a mapping the finished rows of the table links, for COPY:
// as text in the order of the input, as text in the order of the codes, and
// binary in the order of the codes. The mapping is that of a dry run, as CSV, of
// one input.
//
//	rows MAPPING.csv INPUT_ORDER.txt CODE_ORDER.txt CODE_ORDER.bin
package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/linkforge/bulk/benchmarks/harness"
	"github.com/linkforge/bulk/codegen"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: rows MAPPING.csv INPUT_ORDER.txt CODE_ORDER.txt CODE_ORDER.bin")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "rows:", err)
		os.Exit(1)
	}
}

// A line is a row of the table as text, and where it stood in the input.
type line struct {
	row  int64
	text []byte
}

func run(mapping, inputOrder, codeOrder, binary string) (err error) {
	asOf, err := time.Parse(time.DateOnly, harness.AsOf)
	if err != nil {
		return err
	}
	f, err := os.Open(mapping)
	if err != nil {
		return err
	}
	defer f.Close()
	bin, err := create(binary)
	if err != nil {
		return err
	}
	enc := newEncoder(bin, asOf)
	var lines []line
	err = read(f, func(row int64, l *link) {
		lines = append(lines, line{row, l.text(asOf)})
		enc.row(l)
	})
	enc.trailer()
	if err = errors.Join(err, bin.close(), write(codeOrder, lines)); err != nil {
		return err
	}
	slices.SortFunc(lines, func(a, b line) int { return int(a.row - b.row) })
	return write(inputOrder, lines)
}

// read visits the links of a mapping: its rows that were created.
func read(r io.Reader, visit func(int64, *link)) error {
	records := csv.NewReader(bufio.NewReaderSize(r, 1<<20))
	records.ReuseRecord = true
	header, err := records.Read()
	if err != nil {
		return err
	}
	column := map[string]int{}
	for i, name := range header {
		column[name] = i
	}
	for _, name := range []string{"row", "workspace_id", "original_url", "canonical_url", "short_code", "outcome"} {
		if _, ok := column[name]; !ok {
			return fmt.Errorf("the mapping has no column %s", name)
		}
	}
	for {
		rec, err := records.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if rec[column["outcome"]] != "created" {
			continue
		}
		row, err := strconv.ParseInt(rec[column["row"]], 10, 64)
		if err != nil {
			return err
		}
		l := &link{workspace: rec[column["workspace_id"]], code: rec[column["short_code"]], canonical: rec[column["canonical_url"]]}
		if o := rec[column["original_url"]]; o != l.canonical {
			l.original = &o
		}
		l.key = codegen.Sum(codegen.AppendInput(nil, []byte(l.canonical), []byte(l.workspace), 0)).Key()
		visit(row, l)
	}
}

// A file is written through a buffer.
type file struct {
	*bufio.Writer
	f *os.File
}

func create(name string) (*file, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	return &file{bufio.NewWriterSize(f, 1<<20), f}, nil
}

func (f *file) close() error { return errors.Join(f.Flush(), f.f.Close()) }

func write(name string, lines []line) error {
	f, err := create(name)
	if err != nil {
		return err
	}
	for _, l := range lines {
		f.Write(l.text) // Flush tells
	}
	return f.close()
}
