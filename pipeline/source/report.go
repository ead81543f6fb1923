package source

import (
	"context"
	"errors"
	"fmt"
)

// reportColumns is how many columns a report may have beside those of its inputs.
const reportColumns = 16

// OpenReport opens a file that a run wrote as Open opens an input, but detects only its
// format: Parquet, an Arrow file, or else CSV in UTF-8 with a header, the delimiter comma
// and the double quote. Its cells may have NUL bytes, each line ends, and it is not
// compressed. No column is taken for that of the URLs, and no digest is computed. Of the
// options BatchRows, MaxField and FS count.
func OpenReport(ctx context.Context, name string, opts Options) (*Input, error) {
	return Open(ctx, name, Options{BatchRows: opts.BatchRows, MaxField: opts.MaxField, FS: opts.FS, Block: 128 << 10, report: true})
}

// openReport finds the columns of a report in CSV by its header.
func (in *Input) openReport(w *window) error {
	switch {
	case len(w.buf) == w.pos:
		return errors.New("is empty")
	case w.encoding != "utf-8":
		return fmt.Errorf("is %s", w.encoding)
	}
	newReport := func() *splitter {
		s := newSplitter(',', '"', in.opts.MaxField, false)
		s.keep += reportColumns
		return s
	}
	s := newReport()
	end, fault, err := s.first(w, 0)
	if err == nil && fault != nil {
		err = errors.New("the first line is no header: " + fault.detail)
	}
	if err == nil {
		err = in.checkWidth(s.count)
	}
	if err != nil {
		return err
	}
	in.Format = "csv"
	in.SetNames(texts(s.fields))
	in.openLines(end, func() *lines { return &lines{splitter: newReport(), ncols: s.count, whole: true} })
	return nil
}
