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

type urlRow struct {
	URL string `parquet:"url,snappy"`
}

// WriteParquet writes the URLs of the list as Parquet, compressed with Snappy. A row group
// has 1,048,576 rows. Workspaces must be 0, and Codes and Rules false.
func WriteParquet(w io.Writer, o Options) error {
	if o.Workspaces > 0 || o.Codes || o.Rules {
		return errors.New("lists in Parquet have no workspaces and no codes")
	}
	out := parquet.NewGenericWriter[urlRow](w, parquet.MaxRowsPerRowGroup(parquetGroup))
	var rows []urlRow
	flush := func() error {
		_, err := out.Write(rows)
		rows = rows[:0]
		return err
	}
	err := o.each(func(url, _ []byte) error {
		if rows = append(rows, urlRow{string(url)}); len(rows) < parquetBatch {
			return nil
		}
		return flush()
	})
	return errors.Join(err, flush(), out.Close())
}
