// Package source reads lists of URLs as Arrow record batches. The formats are CSV and TSV, JSON,
// BEACON, Parquet, Arrow IPC, plain text, and the rejects of an earlier run. Each row has its number
// and its offset in the input.
//
// [Expand] turns the arguments of a command into the names of inputs. [Open] looks at the
// start of an input and finds its compression, format, dialect and columns. Nothing more is
// read before [Input.Read], so a wrong option or an ambiguous column is an error before any
// work starts. (Exceptions: the description of a Parquet or Arrow file is at its end, so Open
// copies one that comes as a stream, or is compressed, to a temporary file. The names of the
// columns may be anywhere in a JSON text, so Open reads all of it, and copies one that comes as a
// stream.)
//
// # Records and row errors
//
// If a record of a text format cannot be split its first line is a [RowError], and reading
// resumes at the next line: no other record is lost. An empty line is no record. Bytes that
// are not UTF-8 are data. A file with a UTF-16 byte order mark is decoded. Its offsets are
// those of the text in UTF-8, with a byte order mark. An unpaired surrogate becomes U+FFFD.
//
// With Options.Encoding a text is decoded likewise, also one that has the byte order mark of it. A record with bytes that the encoding lacks is
// malformed, as a whole if it can be split, and its raw line has U+FFFD in their place. A rejects file
// is UTF-8 nevertheless ([Input.NotDecoded]). JSON, Parquet and Arrow files, and a text with the byte
// order mark of another encoding, are refused.
//
// A record whose cells are all empty, null or white space is blank. It has a number, and is counted
// ([Input.BlankRows]), but it is no row, however many cells it has.
//
// A record is read from left to right, and the first of these faults counts: a quote inside an
// unquoted field, text after a closing quote, a NUL, a quote that is never closed, a field
// longer than Options.MaxField (without its quotes), a record longer than 16 times that or
// than 1 GiB (three times as much in rejects, for their quotes); at the end of the record,
// another number of fields than in the header or, without one, in the first record. In a
// Parquet or Arrow file, a row over 1 GiB is an error that ends Read.
//
// # JSON
//
// A JSON text (RFC 8259) is an array of objects, or objects one after the other, with or without
// line ends between and in them. Each object is a record. Its columns are the members of all
// objects in the order in which they are met; a member of an object in it is named by its path,
// with dots. A cell is the decoded text of a string; a number, true and false as they are written (but
// a number that is a name, as its value: see columns.Table.Names; also in Parquet and Arrow);
// an array, or an object without members, as JSON without white space. It is null if the member
// is null or not there. A member that is null in some records and an object in others is no column.
//
// A record is malformed if two of its members have one name, if it has bytes that are not
// UTF-8, if a decoded string has half of a surrogate pair, or if it is no object. It is too long
// if it has more bytes than Options.MaxField. Objects one after the other may be broken: if no
// object ends where the next one, or a line, begins, the rest of the line is malformed, and
// reading resumes at the next line. In an array an error of syntax ends Open: what follows could
// be taken for something else than it is.
//
// # Profiles
//
// With Options.Legacy, Profile or Map a file may be taken for the export of another shortener
// (package profile), which then tells the columns. Only then two more kinds of text are known:
//
//   - a JSON object that has the array of records as a member. The other members are skipped;
//     those in the beginning of the text, or the names in the first record, tell whose it is.
//   - BEACON: lines that begin with #PREFIX: or #FORMAT: BEACON, further ones with #, then records.
//     The first | of a line separates code and URL; all other bytes are data, quotes too.
//
// A TSV of the table of YOURLS has no quotes, but the escapes of mysql --batch.
//
// # Memory
//
// While an input is read it holds three blocks of 320 KiB, twice the size of a record that is
// longer than a block, for zstd a window of at most 128 MiB, and for each worker
//
//   - of a text, a block and two batches: one for records that were read from the block
//     before all blocks ahead of it were read, one for records before these;
//   - of JSON, 1 MiB of records and the last of these, and a batch;
//   - of Parquet or Arrow, a batch.
//
// The names of the columns of a JSON text take 16 times Options.MaxField at most.
//
// Four workers of a Parquet input share a row group. They hold the dictionary and one page of
// each column, as decoded and as text. A page with which they take more than 4 GiB and 16 times
// the size of the file is an error. All workers of an Arrow input share one record batch, of at
// most 4 GiB.
//
// A batch takes 1 MiB of cells and the size of its last record, and 4 bytes for each cell and
// 16 for each record.
package source

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/linkforge/bulk/pipeline/charset"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/profile"
)

// A Reason is the name of a row error that reading can find. The names are part of the format
// of the rejects file and do not change.
type Reason string

// The reasons that this package gives.
const (
	MalformedRow Reason = "malformed_row"  // wrong number of fields, misplaced quote or NUL; no JSON object
	FieldTooLong Reason = "field_too_long" // a field, or an object, longer than Options.MaxField, or any fault on a line longer than that
)

// A RowError is a record that could not be split into fields. It is data, not a failure:
// reading continues after it.
type RowError struct {
	Row    int64 // number of the record, from 1; a malformed record counts as one
	Offset int64 // byte offset of the record after decompression, -1 if the format has none
	Reason Reason
	Detail string // for people: "3 fields where there should be 5"
	// Raw is the line without its line ending; of JSON, the element of the array, or the
	// object or line. If it is longer than Options.MaxField, Raw has its first MaxField bytes,
	// Reason is FieldTooLong, and Detail has its length.
	Raw []byte
	// Cells are those of a line of CSV with too few, by column; nil: it is none.
	Cells [][]byte
}

// A Batch holds consecutive records of one input, and the row errors among them. The receiver
// may use it, and all byte slices from it, until the receiver returns.
type Batch struct {
	// Record has one Binary column for each of Input.Columns, in that order. A cell is null
	// if it is in the input, or if the record does not have it.
	Record arrow.Record
	// Rows and Offsets have Record.NumRows() elements: the 1-based number of
	// the record and the byte offset where it starts (-1: none).
	Rows, Offsets []int64
	// Errors are the records among these that could not be split, by row.
	Errors []RowError

	from *batcher
}

// Memory is that of a batch's columns. The zero value is none yet.
type Memory struct{ cols []column }

// Keep gives the receiver the memory of Record, which stays valid for as long. What m had
// before is used for further batches.
func (b *Batch) Keep(m *Memory) {
	if m.cols == nil {
		m.cols = make([]column, len(b.from.cols))
	}
	b.from.cols, m.cols = m.cols, b.from.cols
}

// Options say how inputs are read. The zero value detects everything.
type Options struct {
	columns.Choice
	Delimiter byte      // 0: detect among , ; tab |
	Quote     byte      // 0: '"'
	Header    Header    // default HeaderAuto
	Encoding  string    // of CSV and text, of charset.Names; "": UTF-8, or any bytes
	PadRows   bool      // cells that are missing at the end of a record of CSV are blank, if none of their columns has a role
	KnownAs   string    // a name whose extension tells if the input is a list of URLs or CSV; "": that of the input; not for a run
	MaxField  int       // bytes; 0: 1 MiB
	BatchRows int       // most records in a batch; 0: 32768
	Block     int       // bytes of a text that are read at a time; 0: 256 KiB
	Stdin     io.Reader // of "-". It is not closed. After the context is cancelled one call of its Read may still be waiting
	FS        fsys.FS   // nil: the file system of the operating system
	TempDir   string    // for copies of streams that need random access; "": the system's
	Sample    int       // of Parquet and Arrow about so many rows are read, which begin row groups or record batches, and no digest is computed; 0: all
	RowGroups Groups    // of Parquet only these are read, and no digest is computed unless the first is one of them

	report bool // see OpenReport
}

// digests reports whether the digest of an input is computed.
func (o *Options) digests() bool { return !o.report && o.Sample == 0 && o.RowGroups.From == 0 }

// Groups are the row groups from one to below another, counted from 0, of so many that the file must have;
// the zero value: all.
type Groups struct {
	From int `json:"from"`
	To   int `json:"to"`
	Of   int `json:"of"`
}

// DefaultMaxField is the Options.MaxField of the zero value, in bytes.
const DefaultMaxField = 1 << 20

const (
	mostRecord       = 1 << 30 // bytes: offsets of a batch are int32
	defaultBatchRows = 32 << 10
	defaultBlock     = 256 << 10
)

// settled returns o with its defaults filled in, once it is valid.
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
	case o.Encoding != "" && !slices.Contains(charset.Names(), o.Encoding):
		return o, fmt.Errorf("Options.Encoding %q is not the name of an encoding", o.Encoding)
	case o.Quote == o.Delimiter || unusable(o.Quote) || unusable(o.Delimiter):
		return o, errors.New("delimiter and quote must be two different ASCII characters, and not those of a line ending")
	}
	return o, o.Check()
}

// Validate checks all that does not depend on an input.
func (o Options) Validate() error {
	_, err := o.settled()
	return err
}

func unusable(c byte) bool { return c == '\n' || c == '\r' || c >= 0x80 }

// Header says whether the first record of a CSV input names the columns.
type Header int

const (
	HeaderAuto Header = iota // it does if it has a known name for URLs, or Options.URLColumn, and no URL
	HeaderYes
	HeaderNo
)

// A Dialect is how a CSV input is written.
type Dialect struct {
	Delimiter string
	Quote     string
	Header    bool
	Encoding  string // "utf-8" (any bytes), "utf-16le", "utf-16be", or Options.Encoding
	BOM       bool

	// Of the raw lines of a rejects file, as given in Options; "": not given, or the usual quote.
	RawDelimiter, RawQuote string
}

// An Input is an opened source. It is read once.
type Input struct {
	columns.Table
	Compression string   // "", "gzip" or "zstd"
	Dialect     *Dialect // nil where the format has none
	Limit       int64    // most records that Read reads, good, bad and blank; 0: all. Set it before Read
	Among       []string // columns of the run's rejects; nil: Columns. Set it before Read: if they differ, RowError.Detail says so

	Inspect bool // Read notes whether the text is UTF-8 (NotUTF8). To be set before Read

	Unread []bool // columns whose cells are not needed: of Parquet and Arrow they are null; nil: none. To be set before Read

	opts         Options
	page         *Page                // of the document of a program
	beside       []byte               // what stands before its array
	wrapped      *profile.Profile     // whose document it seems to be, though nobody asked for that
	least        int                  // fields of a record in which no cell is missing that has a role; set by Read
	array        int64                // where the elements of a JSON document begin, after a byte order mark; 0: it is none
	info         fs.FileInfo          // of the file when it was opened; nil: not a regular file
	src          *window              // that Open left open, or Read opened
	file         fsys.File            // what src reads; nil: standard input
	spool        fsys.File            // the decompressed bytes, for a format that needs random access
	randomAccess bool                 // the format needs random access
	drain        func() error         // reads src to its end, once; nil: not before Read
	read         func(*reading) error // the records of the format; set by Open
	started      bool                 // Read or Close was called
	decoded      bool                 // from Options.Encoding; set by Open
	others       bool                 // Among differs from Columns
	strange      atomic.Bool          // as of NotUTF8
	records      atomic.Int64
	blanks       atomic.Int64 // among records
	cut          bool         // Limit stopped Read
	sums         hash.Hash    // of the records; nil without a limit
	sum          [sha256.Size]byte
	size         int64
	groups       []int64      // as of RowGroups
	extent       int64        // as of Extent
	done         atomic.Int64 // raw bytes read so far
	total        int64        // raw bytes, -1: unknown
}

// Size is the length of the input in bytes, before decompression; 0 before the end of Read,
// and if Limit cut it.
func (in *Input) Size() int64 { return in.size }

// SHA256 is, after Read, the digest of the input before decompression. If Limit cut it, it is the
// digest of the records that were read: of each the cells or the raw line, each after its length,
// or that it is blank.
// Of a report it is zero.
func (in *Input) SHA256() [32]byte { return in.sum }

// NotUTF8 reports whether a record of the text has bytes that are not UTF-8, if Inspect was set.
func (in *Input) NotUTF8() bool { return in.strange.Load() }

// NotDecoded reports whether Options.Encoding does not count, since the input is the rejects of an
// earlier run.
func (in *Input) NotDecoded() bool { return in.opts.Encoding != "" && !in.decoded }

// unread says that the cells of column i are not needed.
func (in *Input) unread(i int) bool { return in.Unread != nil && in.Unread[i] }

// Records is the number of records seen: rows good and bad, and blank ones.
func (in *Input) Records() int64 { return in.records.Load() }

// BlankRows is the number of records seen that are no rows, since their cells are all empty, null or
// white space.
func (in *Input) BlankRows() int64 { return in.blanks.Load() }

// Rows is the number of records seen that are rows, good and bad.
func (in *Input) Rows() int64 { return in.Records() - in.BlankRows() }

// RowGroups returns how many rows each row group of a Parquet file has.
func (in *Input) RowGroups() []int64 { return in.groups }

// Stamp is the size and the time of modification of a regular file, as Open found them. Read fails if they
// have changed.
func (in *Input) Stamp() string {
	if in.info == nil {
		return ""
	}
	return fmt.Sprint(in.info.Size(), " ", in.info.ModTime().UnixNano())
}

// Extent is about how many records an input of Parquet or Arrow has, after Read.
func (in *Input) Extent() int64 { return in.extent }

// Cut says whether Limit stopped Read before the end of the input.
func (in *Input) Cut() bool { return in.cut }

// Progress returns how many bytes of the input, before decompression, were read so far by Open
// or, once it has begun, by Read, and how many there are (-1: unknown). It may be called during
// Read.
func (in *Input) Progress() (read, total int64) {
	read, total = in.done.Load(), in.total
	if total >= 0 {
		read = min(read, total)
	}
	return read, total
}
