// Package source reads URL lists (CSV and TSV, Parquet, Arrow IPC, plain text,
// and the rejects of an earlier run) as Arrow record batches whose rows know
// where they came from.
//
// [Expand] turns the arguments of a command into the names of inputs. [Open]
// looks at the start of an input and settles its compression, format, dialect
// and columns; nothing is read past that until [Input.Read], so a wrong option
// or an ambiguous column is known before any work starts. (A Parquet or Arrow
// file in a stream or under compression is the exception: its description is at
// its end, so it is first copied to a temporary file.)
//
// # Records and row errors
//
// A record of a text format that cannot be split is a [RowError] and costs no
// other record: it is the physical line on which it starts, and reading resumes
// at the following line. An empty line is no record. Bytes that are not UTF-8
// are data. A file with a UTF-16 byte order mark is decoded, and its offsets
// are those of the UTF-8 text, byte order mark included; an unpaired surrogate
// becomes U+FFFD.
//
// A record is read left to right, and the first thing wrong with it is its
// fault: a quote inside an unquoted field, text after a closing quote, a NUL, a
// quote that is never closed, a field over Options.MaxField (without its quotes)
// or a record over 16 times that or over 1 GiB (of rejects, three times as much, for
// their quotes); at its end, another number of fields than the header, or the first
// record, has. Of the columnar formats, a row over 1 GiB cannot be read, and nothing
// behind it.
//
// # Memory
//
// An input that is being read holds three blocks of 320 KiB, twice the size of a
// record that is longer than that, for zstd a window of at most 128 MiB, and for each
// worker
//
//   - of a text, a block and two batches: one for the records that it reads from its
//     block before all blocks ahead of it have been read, one for those that turn
//     out to come before them;
//   - of a columnar format, a batch.
//
// Every four workers of a Parquet input hold a row group: of each column its dictionary
// and one page, as decoded and as text. That is at most 4 GiB and 16 times the size
// of the file, and the page that exceeds it, which is an error. The workers of an Arrow
// input together hold one record batch, of at most 4 GiB.
//
// A batch takes at most 1 MiB of cells and the record that exceeds it, 4 bytes a
// cell and 16 a record.
package source

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/linkforge/bulk/pipeline/fsys"
)

// A Reason is the stable name of a row error found while reading. The list is
// closed and part of the contract of the rejects file.
type Reason string

// The reasons that reading alone can give.
const (
	MalformedRow Reason = "malformed_row"  // ragged, bare quote or NUL
	FieldTooLong Reason = "field_too_long" // a field longer than Options.MaxField, or any fault on a line longer than that
)

// A RowError is a record that could not be split into fields. It is data, not
// a failure: reading goes on after it.
type RowError struct {
	Row    int64 // counts records from 1; a malformed record counts as one
	Offset int64 // byte offset of the record after decompression, -1 if the format has none
	Reason Reason
	Detail string // for people: "3 fields where there should be 5"
	// Raw is the physical line without its line ending. Of a line longer than
	// Options.MaxField only the first MaxField bytes are kept; then Reason is
	// FieldTooLong, and Detail tells the length of the line.
	Raw []byte
}

// A Batch holds consecutive records of one input, and the row errors met among
// them. It and all byte slices obtained from it belong to the receiver until
// that returns.
type Batch struct {
	// Record has one Binary column for each of Input.Columns, in that order
	// (null: the format's null, or a cell that the record does not have).
	Record arrow.Record
	// Rows and Offsets have Record.NumRows() elements: the 1-based number of
	// the record and the byte offset where it starts (-1: none).
	Rows, Offsets []int64
	// Errors are the records of this stretch that could not be split, by row.
	Errors []RowError
}

// Options say how inputs are read. The zero value detects everything.
type Options struct {
	Delimiter       byte      // 0: detect among , ; tab |
	Quote           byte      // 0: '"'
	Header          Header    // default HeaderAuto
	URLColumn       string    // name, or 1-based number; "": by the usual names
	WorkspaceColumn string    // name, or 1-based number; "": none
	UniqueNames     bool      // the two columns are named as in Input.Columns, never as in the header; not for a run
	FirstURL        bool      // if two cells of a rejects row may hold its URL, the first does, as in earlier versions
	KnownAs         string    // the name whose extension tells a list of URLs from CSV; "": that of the input; not for a run
	MaxField        int       // bytes; 0: 1 MiB
	BatchRows       int       // most records in a batch; 0: 32768
	Block           int       // bytes of a text that are read at a time; 0: 256 KiB
	Stdin           io.Reader // of "-". It is not closed; one call of its Read may still be waiting after the context is cancelled
	FS              fsys.FS   // of the files; nil: that of the system
	TempDir         string    // for copies of streams that need random access; "": that of the system

	report bool // see OpenReport
}

// DefaultMaxField is the Options.MaxField of the zero value, in bytes.
const DefaultMaxField = 1 << 20

const (
	mostRecord       = 1 << 30 // bytes: offsets of a batch are int32
	defaultBatchRows = 32 << 10
	defaultBlock     = 256 << 10
)

// settled returns o with its defaults filled in.
func (o Options) settled() (Options, error) {
	o.MaxField = cmp.Or(o.MaxField, DefaultMaxField)
	o.BatchRows = cmp.Or(o.BatchRows, defaultBatchRows)
	o.Block = cmp.Or(o.Block, defaultBlock)
	o.Quote = cmp.Or(o.Quote, '"')
	o.FS = fsys.Or(o.FS)
	switch {
	case o.MaxField < 1 || o.MaxField > mostRecord:
		return o, errors.New("the field limit must be between 1 byte and 1 GiB")
	case o.BatchRows < 1 || o.Block < 1:
		return o, errors.New("batch size and block size cannot be negative")
	case o.Header < HeaderAuto || o.Header > HeaderNo:
		return o, errors.New("the header is none of HeaderAuto, HeaderYes and HeaderNo")
	case o.Quote == o.Delimiter || unusable(o.Quote) || unusable(o.Delimiter):
		return o, errors.New("delimiter and quote must be two different ASCII characters, and not those of a line ending")
	}
	return o, nil
}

// Validate checks what does not depend on an input.
func (o Options) Validate() error {
	_, err := o.settled()
	return err
}

func unusable(c byte) bool { return c == '\n' || c == '\r' || c >= 0x80 }

// Header says whether the first record of a CSV input names the columns.
type Header int

const (
	HeaderAuto Header = iota // only if it has a known name of the URL column, or Options.URLColumn, and no URL
	HeaderYes
	HeaderNo
)

// A UsageError is an input that cannot be read as asked: an ambiguous or
// missing column, the same file twice. Nothing was processed.
type UsageError struct {
	Input string // as it was named
	Msg   string
}

func (e *UsageError) Error() string { return e.Input + ": " + e.Msg }

// A Dialect is what was settled about a CSV input.
type Dialect struct {
	Delimiter string
	Quote     string
	Header    bool
	Encoding  string // "utf-8" (any bytes), "utf-16le", "utf-16be"
	BOM       bool

	// Of the raw lines of a rejects file: what Options give; "": nothing, or the usual quote.
	RawDelimiter, RawQuote string
}

// An Input is an opened source. It is read once.
type Input struct {
	Name        string   // as it was named; "-" is standard input
	Format      string   // "csv", "text", "parquet", "arrow", "rejects"
	Compression string   // "", "gzip" or "zstd"
	Dialect     *Dialect // nil where the format has none
	Columns     []string // unique, in file order; the provenance columns of a rejects file are left out
	Skipped     []string // names of columns left out, as they may have several values a row
	Blank       bool     // a CSV without a record, so that its one column is made up
	URLs        []int    // index of the URL column in Columns; several only in a rejects file, of whose rows each has at most one that is not empty
	Workspace   int      // index of the workspace column in Columns; -1: none
	Limit       int64    // most records that Read yields, good and bad; 0: all. To be set before Read
	Among       []string // columns that the rejects of the run will have; nil: Columns. To be set before Read: if they differ, RowError.Detail says so

	Unread []bool // columns whose cells are not needed: of Parquet and Arrow they are null; nil: none. To be set before Read

	opts         Options
	header       []string             // the names of Columns as they are there
	first        []string             // the first record of a CSV that can be split; it may be the header
	before       string               // why the very first record cannot be split; "": it can
	info         fs.FileInfo          // as it was when opened; nil: not a regular file
	src          *window              // what Open left open, or Read opened
	file         fsys.File            // what src reads; nil: standard input
	spool        fsys.File            // the decompressed bytes, where a format needs them at random
	randomAccess bool                 // the format needs them at random
	drain        func() error         // reads src to its end, once; nil: not before Read
	read         func(*reading) error // the records of the format; set by Open
	started      bool                 // Read or Close was called
	others       bool                 // Among is other than Columns
	records      atomic.Int64
	cut          bool      // Limit stopped Read
	sums         hash.Hash // of the records; nil without a limit
	sum          [sha256.Size]byte
	size         int64
	busy         atomic.Int64 // nanoseconds; see Busy
	done         atomic.Int64 // raw bytes read so far
	total        int64        // raw bytes, -1: unknown
}

// Size is the length of the input as it lies (compressed), in bytes; 0 before
// the end of Read and where Cut.
func (in *Input) Size() int64 { return in.size }

// SHA256 is the digest of the bytes as they lie, after Read; where Cut, that of
// the records read: SHA-256 over each record's cells or raw line, each with its
// length before it. Of a report it is zero.
func (in *Input) SHA256() [32]byte { return in.sum }

// Header returns the names of Columns as they are in the input, of which some may be
// equal. It belongs to the Input.
func (in *Input) Header() []string { return in.header }

// unread says that the cells of column i are not needed.
func (in *Input) unread(i int) bool { return in.Unread != nil && in.Unread[i] }

// Records is the number of records seen, good and bad.
func (in *Input) Records() int64 { return in.records.Load() }

// Busy is how long the workers of Read, all together, were at work: parsing, or in
// emit. The rest of their time they waited for bytes or for one another.
func (in *Input) Busy() time.Duration { return time.Duration(in.busy.Load()) }

// waited takes what a worker has waited off the time that it was busy.
func (in *Input) waited(since time.Time) { in.busy.Add(-int64(time.Since(since))) }

// Cut says that Limit stopped Read before the end of the input.
func (in *Input) Cut() bool { return in.cut }

// Progress is the number of raw bytes read so far, by Open and then anew by Read,
// and to be read in all (-1: unknown). It may be called while Read is running.
func (in *Input) Progress() (read, total int64) {
	read, total = in.done.Load(), in.total
	if total >= 0 {
		read = min(read, total)
	}
	return read, total
}
