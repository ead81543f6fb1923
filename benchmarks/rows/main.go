// Command rows makes of a mapping the finished rows of the table links, for COPY:
// as text in the order of the input, as text in the order of the codes, and
// binary in the order of the codes. The mapping is that of a dry run of one input.
//
//	rows MAPPING INPUT_ORDER.txt CODE_ORDER.txt CODE_ORDER.bin
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/linkforge/bulk/benchmarks/harness"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/report"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: rows MAPPING INPUT_ORDER.txt CODE_ORDER.txt CODE_ORDER.bin")
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
	m, err := report.OpenMapping(mapping)
	if err != nil {
		return err
	}
	defer m.Close()
	bin, err := create(binary)
	if err != nil {
		return err
	}
	enc := newEncoder(bin, asOf)
	var lines []line
	err = read(m, func(row int64, l *link) {
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
func read(m *report.MappingReader, visit func(int64, *link)) error {
	for {
		r, err := m.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if r.Outcome != report.Created {
			continue
		}
		l := &link{workspace: string(r.Workspace), code: string(r.Code), canonical: string(r.Canonical)}
		if o := string(r.Original); o != l.canonical {
			l.original = &o
		}
		l.key = codegen.Sum(codegen.AppendInput(nil, r.Canonical, r.Workspace, 0)).Key()
		visit(r.Row.Row, l)
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
