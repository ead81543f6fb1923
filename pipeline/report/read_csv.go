package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/linkforge/bulk/pipeline/fsys"
)

// mostRecord bounds what one record, and so a reader, may hold: a quote that
// somebody put in would otherwise make a record of the rest of the file.
const mostRecord = 256 << 20

// csvReader reads the CSV that csvWriter and csvBlock write, and nothing else:
// another quoting, a missing cell or a last line without end is damage.
type csvReader struct {
	file   *os.File
	name   string
	row    int64 // of the record in fields; 0: the header
	buf    []byte
	data   []byte // what was read and not yet used, in buf
	eof    bool
	fields [][]byte // in buf
	after  []string // names of the columns after those that were wanted
}

// openCSV opens a file as newCSVReader does.
func openCSV(path string, want []string) (*csvReader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	c, err := newCSVReader(f, path, want)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return c, nil
}

// newCSVReader reads the header too, which must begin with want.
func newCSVReader(f *os.File, path string, want []string) (*csvReader, error) {
	c := &csvReader{file: f, name: path, row: -1, buf: make([]byte, 1<<20)}
	if err := c.next(); err == io.EOF {
		return nil, c.damage(errors.New("it is empty"))
	} else if err != nil {
		return nil, err
	}
	names := make([]string, len(c.fields))
	for i, name := range c.fields {
		names[i] = string(name)
	}
	var err error
	if c.after, err = columnsAfter(want, names); err != nil {
		return nil, c.damage(err)
	}
	return c, nil
}

// columnsAfter returns the names that follow those that are wanted first.
func columnsAfter(want, names []string) ([]string, error) {
	for i, name := range want {
		if i >= len(names) || names[i] != name {
			return nil, fmt.Errorf("its column %d is not named %s", i+1, name)
		}
	}
	return names[len(want):], nil
}

func (c *csvReader) damage(err error) error { return &DamageError{c.name, c.row, err} }

// next moves to the next record, whose fields are valid until the one after. At
// the end it returns io.EOF.
func (c *csvReader) next() error {
	c.row++
	columns := len(c.fields)
	for {
		line := bytes.IndexByte(c.data, '\n')
		if line >= 0 && bytes.IndexByte(c.data[:line], '"') < 0 {
			c.splitBare(c.data[:line])
		} else if line = recordEnd(c.data); line < 0 {
			if err := c.fill(); err != nil {
				return err
			}
			continue
		} else if err := c.splitQuoted(c.data[:line]); err != nil {
			return err
		}
		c.data = c.data[line+1:]
		if c.row > 0 && len(c.fields) != columns {
			return c.damage(fmt.Errorf("its number of cells is %d rather than %d", len(c.fields), columns))
		}
		return nil
	}
}

// recordEnd returns where the line feed is that ends the first record; -1: not in
// data.
func recordEnd(data []byte) int {
	quotes, at := 0, 0
	for {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			return -1
		}
		quotes += bytes.Count(data[at:at+i], []byte{'"'})
		if at += i + 1; quotes%2 == 0 {
			return at - 1
		}
	}
}

// fill reads more, in a larger buffer if the record needs it.
func (c *csvReader) fill() error {
	switch {
	case c.eof && len(c.data) == 0:
		return io.EOF
	case c.eof:
		return c.damage(errors.New("the file ends within it"))
	case len(c.data) > mostRecord:
		return c.damage(fmt.Errorf("it is over %d bytes", mostRecord))
	case len(c.data) > len(c.buf)/2:
		c.buf = make([]byte, 2*len(c.buf))
	}
	kept := copy(c.buf, c.data)
	n, err := c.file.Read(c.buf[kept:])
	c.data = c.buf[:kept+n]
	if c.eof = err == io.EOF; err != nil && !c.eof {
		return fmt.Errorf("read %s: %w", c.name, fsys.Cause(err))
	}
	return nil
}

func (c *csvReader) splitBare(line []byte) {
	c.fields = c.fields[:0]
	for {
		i := bytes.IndexByte(line, ',')
		if i < 0 {
			c.fields = append(c.fields, line)
			return
		}
		c.fields = append(c.fields, line[:i:i])
		line = line[i+1:]
	}
}

// splitQuoted splits a record some of whose cells are quoted, and takes the
// quotes away where they are.
func (c *csvReader) splitQuoted(rest []byte) error {
	c.fields = c.fields[:0]
	for {
		var cell []byte
		if len(rest) > 0 && rest[0] == '"' {
			cell, rest = unquote(rest[1:])
		} else {
			end := bytes.IndexByte(rest, ',')
			if end < 0 {
				end = len(rest)
			}
			cell, rest = rest[:end:end], rest[end:]
			if bytes.IndexByte(cell, '"') >= 0 {
				return c.damage(errors.New("a quote in a cell without quotes"))
			}
		}
		c.fields = append(c.fields, cell)
		if len(rest) == 0 {
			return nil
		}
		if rest[0] != ',' {
			return c.damage(errors.New("something follows a closing quote"))
		}
		rest = rest[1:]
	}
}

// unquote returns the cell that text, after its opening quote, begins with, and
// what follows its closing quote, which there is.
func unquote(text []byte) (cell, rest []byte) {
	n := 0
	for i := 0; i < len(text); i++ {
		if text[i] == '"' {
			if i+1 == len(text) || text[i+1] != '"' {
				return text[:n:n], text[i+1:]
			}
			i++
		}
		text[n] = text[i]
		n++
	}
	return text[:n:n], nil
}

// number reads a field as the writer wrote it: digits without leading zeros.
// Nothing at all is blank, if that is negative.
func (c *csvReader) number(i int, column string, blank int64) (int64, error) {
	f := c.fields[i]
	if len(f) == 0 && blank < 0 {
		return blank, nil
	}
	if n, ok := parseNumber(f); ok {
		return n, nil
	}
	return 0, &CellError{c.name, c.row, column, string(f)}
}

func parseNumber(f []byte) (int64, bool) {
	if len(f) == 0 || f[0]-'0' > 9 || f[0] == '0' && len(f) > 1 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(f), 10, 64)
	return n, err == nil
}

// Close closes the file.
func (c *csvReader) Close() error { return c.file.Close() }
