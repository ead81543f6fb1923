package gen

import (
	"errors"
	"io"

	"github.com/parquet-go/parquet-go"
)

// parquetBatch is how many rows are handed to the Parquet writer at once, and
// parquetGroup how many a row group has.
const (
	parquetBatch = 8192
	parquetGroup = 1 << 20
)

type (
	urlRow struct {
		URL string `parquet:"url,snappy"`
	}
	workspaceRow struct {
		URL       string `parquet:"url,snappy"`
		Workspace string `parquet:"workspace,snappy"`
	}
)

// WriteParquet writes the rows that Write writes as Parquet, compressed with
// Snappy, a million rows a group.
func WriteParquet(w io.Writer, o Options) error {
	if o.Workspaces > 0 {
		return writeParquet(w, o, func(url, workspace []byte) workspaceRow { return workspaceRow{string(url), string(workspace)} })
	}
	return writeParquet(w, o, func(url, _ []byte) urlRow { return urlRow{string(url)} })
}

func writeParquet[T any](w io.Writer, o Options, row func(url, workspace []byte) T) error {
	out := parquet.NewGenericWriter[T](w, parquet.MaxRowsPerRowGroup(parquetGroup))
	var rows []T
	flush := func() error {
		_, err := out.Write(rows)
		rows = rows[:0]
		return err
	}
	err := o.each(func(url, workspace []byte) error {
		if rows = append(rows, row(url, workspace)); len(rows) < parquetBatch {
			return nil
		}
		return flush()
	})
	return errors.Join(err, flush(), out.Close())
}
