// Package manifest describes a run: what it was given and what came of it ([Manifest]),
// how long it took ([Timings]), how many rejects it may have ([MaxRejects]), and the names
// of the files that it leaves.
//
// Everything but the timings is a function of the inputs, the content of the store, the
// options that can change a result, and as_of: no clock, no number of workers, no size of
// memory reaches it.
package manifest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/linkforge/bulk/pipeline/fsys"
)

// The names of the files that a run leaves beside the mapping, which is mapping.csv, .parquet
// or .arrow. A run that had too many rejects leaves neither mapping nor collisions.
const (
	Name           = "manifest.json"
	TimingsName    = "timings.json"
	RejectsName    = "rejects.csv"
	CollisionsName = "collisions.csv"
	PartsDir       = "mapping" // of a mapping in parts (package stage): mapping/00000-….csv and so on, in the order of Manifest.Files

	// PageName is the page of a run for people. It may be written and replaced later.
	PageName = "report.html"
)

// IsBeside reports whether the directory of a run may have a file of this name that its manifest does not
// list: the manifest itself, the timings, the page, and what is left of a page if its writer was killed.
func IsBeside(name string) bool {
	unfinished := strings.HasPrefix(name, "."+PageName+".") && strings.HasSuffix(name, ".tmp")
	return name == Name || name == TimingsName || name == PageName || unfinished
}

// StageDir is what tasks leave beside a mapping in parts (package stage).
const StageDir = "stage"

// Reports returns the files of a run as if a mapping in parts were one, whose digest is not known, and the
// names of the parts; nil: it has none.
func (m *Manifest) Reports() (files Files, parts []string) {
	for _, f := range m.Files {
		if !IsPart(f.Name) {
			files = append(files, f)
			continue
		}
		if parts = append(parts, f.Name); len(parts) == 1 {
			files = append(files, FileSum{Name: "mapping.csv", RowDigest: m.RowDigest})
		}
		files[len(files)-1].Rows += f.Rows
	}
	return files, parts
}

// IsPart reports whether a file is a part of a mapping.
func IsPart(name string) bool {
	return strings.HasPrefix(name, PartsDir+"/") && path.Dir(path.Clean(name)) == PartsDir
}

// IsReport reports whether a run may leave a report of this name.
func IsReport(name string) bool {
	switch name {
	case "mapping.csv", "mapping.parquet", "mapping.arrow", RejectsName, CollisionsName:
		return true
	}
	return false
}

// Mapping returns the name of the mapping; "": a run that may store no links has none.
func (l Files) Mapping() string {
	for i := range l {
		if name := l[i].Name; IsReport(name) && name != RejectsName && name != CollisionsName {
			return name
		}
	}
	return ""
}

const (
	MaxInputs  = 1 << 20 // of a run: the sort key of a reject has room for so many
	maxColumns = 1 << 14 // of an input: columns.MaxColumns
	maxFiles   = 1 << 20 // there are three, or as many parts of a mapping as there are shards
	MaxTwins   = 3       // examples of CaseTwins
	MaxDomains = 100     // of Domains

	CountedDomains = 10_000          // if there are more, they are not counted
	maxCodes       = 1 << 14         // of an example
	MaxSize        = MaxInputs << 10 // bytes: an input takes some 500, and more of many columns
)

// A Manifest says what a run was given and what came of it. Whatever is the
// same between two runs over the same inputs, store and as_of is the same here;
// clock, workers, memory, store and run are in [Timings].
type Manifest struct {
	Version        string           `json:"version"` // of the tool
	Profile        string           `json:"profile"`
	UnicodeVersion string           `json:"unicode_version"` // of the tables for international host names
	Scheme         Scheme           `json:"scheme"`
	Options        Options          `json:"options"`
	AsOf           time.Time        `json:"as_of"` // UTC
	Inputs         Inputs           `json:"inputs"`
	Counts         Counts           `json:"counts"`
	LinksCreated   *int64           `json:"links_created,omitempty"` // with aliases; nil: as many as Counts.Created
	Reasons        map[string]int64 `json:"reasons"`                 // rejects by reason
	MergedDiffers  *MergedDiffers   `json:"merged_differs,omitempty"`
	Legacy         *Legacy          `json:"legacy,omitempty"`    // nil: the run has no mode of legacy codes
	Rules          *Rules           `json:"rules,omitempty"`     // nil: the run has no link rules, and no workspace has links with any
	Numbers        *Numbers         `json:"numbers,omitempty"`   // nil: the scheme has no counter
	Campaign       *Campaign        `json:"campaign,omitempty"`  // nil: a row is one link
	Migration      *Migration       `json:"migration,omitempty"` // nil: the run does not look at what links were beyond code and URL
	Files          Files            `json:"files"`
	RowDigest      string           `json:"row_digest,omitempty"` // of a mapping in parts: of all together; "": it is one file

	Delete bool `json:"delete,omitempty"` // it was read from that of a delete (Deletion)
}

// Scheme is how codes are made.
type Scheme struct {
	Name       string `json:"name"`
	CodeLength int    `json:"code_length"`
	MaxRetries int    `json:"max_retries"`

	Fingerprint string `json:"fingerprint,omitempty"`      // of its secret; "": it has none
	Multiplier  int64  `json:"multiplier,omitempty"`       // of counter-base62
	Blocklist   string `json:"blocklist_sha256,omitempty"` // of the words that no generated code contains (codegen.Blocklist); "": there are none
}

// Rest returns what only some schemes have, by name, as texts.
func (s *Scheme) Rest() map[string]string {
	rest := map[string]string{}
	if s.Fingerprint != "" {
		rest["secret_fingerprint"] = s.Fingerprint
	}
	if s.Multiplier != 0 {
		rest["multiplier"] = strconv.FormatInt(s.Multiplier, 10)
	}
	if s.Blocklist != "" {
		rest["blocklist_sha256"] = s.Blocklist
	}
	return rest
}

// Numbers are those that a run took from the counter.
type Numbers struct {
	Ranges  []Range `json:"ranges"`  // in the order in which the run got them; of a dry run those that it would get
	Skipped int64   `json:"skipped"` // of these, the ones that no link has: their codes were taken or blocked
}

// A Range is the numbers from First to Last.
type Range struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// The lists of a manifest. A list that is longer than any run can make it is refused: a
// manifest may come from anybody.
type (
	Inputs  []Input // by name
	Columns []Text
	Files   []FileSum
	Codes   []Text
	Twins   []Codes
)

// BlankRows returns how many records of all inputs are blank.
func (l Inputs) BlankRows() (n int64) {
	for i := range l {
		n += l[i].BlankRows
	}
	return n
}

// Rows returns how many records of all inputs are rows.
func (l Inputs) Rows() (n int64) {
	for i := range l {
		n += l[i].Records - l[i].BlankRows
	}
	return n
}

func (l *Inputs) UnmarshalJSON(data []byte) error  { return readList(l, data, MaxInputs) }
func (l *Columns) UnmarshalJSON(data []byte) error { return readList(l, data, maxColumns) }
func (l *Files) UnmarshalJSON(data []byte) error   { return readList(l, data, maxFiles) }
func (l *Codes) UnmarshalJSON(data []byte) error   { return readList(l, data, maxCodes) }
func (l *Twins) UnmarshalJSON(data []byte) error   { return readList(l, data, MaxTwins) }

func readList[L ~[]T, T any](list *L, data []byte, most int) error {
	*list = nil
	d := json.NewDecoder(bytes.NewReader(data))
	if begin, err := d.Token(); err != nil || begin == nil {
		return err
	} else if begin != json.Delim('[') {
		return errors.New("not a list")
	}
	*list = L{}
	for d.More() {
		if len(*list) == most {
			return fmt.Errorf("a list of more than %d elements", most)
		}
		var one T
		if err := d.Decode(&one); err != nil {
			return err
		}
		*list = append(*list, one)
	}
	return nil
}

// Input is a file that was read, or standard input.
type Input struct {
	Name            Text     `json:"name"`
	Format          string   `json:"format"`
	Compression     string   `json:"compression,omitempty"`
	Dialect         *Dialect `json:"dialect,omitempty"`
	Profile         string   `json:"profile,omitempty"` // of the program that wrote the file
	Columns         Columns  `json:"columns"`
	URLColumns      Columns  `json:"url_columns"` // several only in a rejects file
	WorkspaceColumn *Text    `json:"workspace_column,omitempty"`
	CodeColumn      *Text    `json:"code_column,omitempty"`
	CodeColumns     Columns  `json:"code_columns,omitempty"` // if several were given: CodeColumn is the first of them
	KindColumn      *Text    `json:"kind_column,omitempty"`
	// If the run looks at what links were beyond code and URL: columns of further roles
	// (package profile) by role, those that go along with links by attribute, and those that are
	// not carried.
	Roles   map[string]Columns `json:"roles,omitempty"`
	Attrs   map[string]Columns `json:"attrs,omitempty"`
	LeftOut Columns            `json:"left_out,omitempty"`
	Records int64              `json:"records"`
	// BlankRows are the records that are no rows, since their cells are all empty, null or white space.
	BlankRows int64 `json:"blank_rows,omitempty"`
	// Size and SHA256 are of the bytes as they lie. Where --limit cut the input,
	// RecordsSHA256 takes their place.
	Size          int64  `json:"size,omitempty"`
	SHA256        string `json:"sha256,omitempty"`
	RecordsSHA256 string `json:"records_sha256,omitempty"`
}

// Dialect is what was settled about a CSV input.
type Dialect struct {
	Delimiter string `json:"delimiter"`
	Quote     string `json:"quote"`
	Header    bool   `json:"header"`
	Encoding  string `json:"encoding"`
	BOM       bool   `json:"bom"`

	// Of the raw lines of a rejects file, if it was given rather than detected.
	RawDelimiter string `json:"raw_delimiter,omitempty"`
	RawQuote     string `json:"raw_quote,omitempty"`
}

// Counts are the books: Read = Created + Existing + Duplicate + Rejected.
type Counts struct {
	Read      int64 `json:"read"`
	Created   int64 `json:"created"`
	Existing  int64 `json:"existing"`
	Duplicate int64 `json:"duplicate"`
	Rejected  int64 `json:"rejected"`
}

// MergedDiffers tells of rows whose URL may lead elsewhere than that of the first row of its
// link, which a redirect service serves (canon.Profile.Elsewhere). It is missing if there are none.
type MergedDiffers struct {
	Rows    int64            `json:"rows"`
	By      map[string]int64 `json:"by"`      // rows by what is different; there may be more than one
	Example [2]Spelling      `json:"example"` // the first in the order of the sort: the first row of a link, and the other
}

// Legacy tells of the legacy codes of a run's rows.
type Legacy struct {
	Aliases     int64      `json:"aliases"`      // rows of the mapping whose kind is alias
	Conflicts   int64      `json:"conflicts"`    // rows that claimed the code of another URL
	WithoutCode int64      `json:"without_code"` // rows without a legacy code
	CaseTwins   *CaseTwins `json:"case_twins,omitempty"`
	Damaged     *OddCodes  `json:"damaged,omitempty"` // they look like a number that a spreadsheet or a data frame has rewritten (record.Damaged)
	Escaped     *OddCodes  `json:"escaped,omitempty"` // they have escapes, and are not cut out of a path
}

// CaseTwins tells of codes that differ only in ASCII case. It is missing if there are none.
type CaseTwins struct {
	Groups   int64 `json:"groups"`
	Examples Twins `json:"examples"` // the first groups, at most MaxTwins
}

// TwinsOf returns what legacy.Twins counted.
func TwinsOf(groups int64, examples [][]string) CaseTwins {
	t := CaseTwins{Groups: groups}
	for _, group := range examples {
		var codes Codes
		for _, code := range group {
			codes = append(codes, Text(code))
		}
		t.Examples = append(t.Examples, codes)
	}
	return t
}

// OddCodes tells of codes that may not be those of the old server. It is missing if there are none.
type OddCodes struct {
	Rows    int64     `json:"rows"`
	Example CodeOfRow `json:"example"` // the first in the order of the input
}

// A CodeOfRow is the legacy code of a row.
type CodeOfRow struct {
	Source Text  `json:"source"`
	Row    int64 `json:"row"`
	Code   Text  `json:"code"`
}

// Campaign tells of the variants of rows (package campaign).
type Campaign struct {
	Combinations int64 `json:"combinations"` // that a row can have
	Expanded     int64 `json:"expanded"`     // rows that were not rejected as a whole
	Tagged       int64 `json:"tagged"`       // of these, rows whose own URL had a parameter of the campaign
}

// Rules tells what a run did to links that exist.
type Rules struct {
	Changes map[string]int64 `json:"changes"` // rows of the mapping by change (package rules)
}

// Changed returns the number of links of other runs that the run wrote; 0 for nil.
func (r *Rules) Changed() int64 {
	if r == nil {
		return 0
	}
	return r.Changes["updated"] + r.Changes["claimed"] + r.Changes["revived"]
}

// Migration tells what the links of a run's rows were beyond code and URL.
type Migration struct {
	Domains *Domains           `json:"domains,omitempty"` // nil: no column tells a domain
	Hygiene map[string]Hygiene `json:"hygiene"`           // by kind (package hygiene), those that were found
	// Rows, as of Domains, whose creation time is to be kept and cannot be read, and whose expiry,
	// beginning, redirect code or state cannot be read.
	NoTime     *Noted `json:"no_time,omitempty"`
	NoExpiry   *Noted `json:"no_expiry,omitempty"`
	NoStart    *Noted `json:"no_start,omitempty"`
	NoRedirect *Noted `json:"no_redirect,omitempty"`
	NoState    *Noted `json:"no_state,omitempty"`
}

// Domains counts rows by the domain of their code: those that are not rejected before their codes
// are settled.
type Domains struct {
	Count int64            `json:"count"`          // of different domains
	Rows  map[string]int64 `json:"rows,omitempty"` // by domain, at most MaxDomains: those with the most rows; "": rows without one
	More  bool             `json:"more,omitempty"` // there are more than Count, and rows are not counted
}

// DomainCounts counts rows by domain; "": they have none. It has at most CountedDomains + 1 domains:
// then there are more.
type DomainCounts map[string]int64

// Add counts so many rows of a domain.
func (c *DomainCounts) Add(domain []byte, rows int64) {
	if *c == nil {
		*c = DomainCounts{}
	}
	domain = domain[:min(len(domain), 255)] // no domain is longer
	if _, known := (*c)[string(domain)]; known || len(*c) <= CountedDomains {
		(*c)[string(domain)] += rows
	}
}

// Merge takes what another has counted.
func (c *DomainCounts) Merge(o DomainCounts) {
	for domain, rows := range o {
		c.Add([]byte(domain), rows)
	}
}

// DomainsOf describes domains that were counted; nil: none were.
func DomainsOf(rows DomainCounts) *Domains {
	if len(rows) == 0 {
		return nil
	}
	if len(rows) > CountedDomains {
		return &Domains{Count: CountedDomains, More: true}
	}
	d := &Domains{Count: int64(len(rows)), Rows: map[string]int64{}}
	names := slices.SortedFunc(maps.Keys(rows), func(a, b string) int { return cmp.Or(cmp.Compare(rows[b], rows[a]), strings.Compare(a, b)) })
	for _, name := range names[:min(len(names), MaxDomains)] {
		d.Rows[strings.ToValidUTF8(name, "\ufffd")] += rows[name]
	}
	if rows[""] > 0 {
		d.Count--
	}
	return d
}

// Hygiene tells of links that the store cannot keep as they were.
type Hygiene struct {
	Decision string    `json:"decision"`
	Rows     int64     `json:"rows"`              // rejects for this reason; of other decisions as of Domains
	Example  *Spelling `json:"example,omitempty"` // of a warning: the first in the order of the input, and its URL without secrets
}

// Noted tells of rows by the first of them in the order of the input, and of its cell, of which Text
// has the beginning without secrets.
type Noted struct {
	Rows   int64 `json:"rows"`
	Source Text  `json:"source"`
	Row    int64 `json:"row"`
	Text   Text  `json:"text"`
}

// A Spelling is the URL of a row.
type Spelling struct {
	Source Text  `json:"source"`
	Row    int64 `json:"row"`
	URL    Text  `json:"url"`
}

// FileSum is a file of the directory.
type FileSum struct {
	Name      string `json:"name"`
	Rows      int64  `json:"rows"`
	SHA256    string `json:"sha256"`
	RowDigest string `json:"row_digest,omitempty"` // of a mapping; see report.RowDigest
}

// Options are those that can change a result, by name. A value is a string
// (read back as a Text), Text, bool, or integer (read back as an int64).
type Options map[string]any

// Option returns an option, of a type that UnmarshalJSON reads (Text, bool or int64); the
// zero value if it is missing or of another type.
func Option[T Text | bool | int64](o Options, name string) T {
	value, _ := o[name].(T)
	return value
}

// MarshalJSON implements json.Marshaler. Names come in byte order.
func (o Options) MarshalJSON() ([]byte, error) {
	values := make(map[string]any, len(o))
	for name, v := range o {
		if s, ok := v.(string); ok {
			v = Text(s)
		}
		values[name] = v
	}
	return marshal(values)
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *Options) UnmarshalJSON(data []byte) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}
	*o = make(Options, len(values))
	for name, raw := range values {
		v, err := option(raw)
		if err != nil {
			return fmt.Errorf("option %s: %w", name, err)
		}
		(*o)[name] = v
	}
	return nil
}

func option(raw json.RawMessage) (any, error) {
	switch raw[0] {
	case '"', '{':
		var text Text
		err := text.UnmarshalJSON(raw)
		return text, err
	case 't', 'f':
		return raw[0] == 't', nil
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		err = errors.New("neither a text nor true, false or a whole number")
	}
	return n, err
}

// Write writes m as indented JSON with a newline at the end. Equal
// manifests give equal bytes.
func Write(w io.Writer, m *Manifest) error {
	c := *m
	c.AsOf = c.AsOf.UTC()
	if c.Options == nil {
		c.Options = Options{}
	}
	if c.Reasons == nil {
		c.Reasons = map[string]int64{}
	}
	c.Files = append([]FileSum{}, c.Files...) // [] rather than null
	c.Inputs = c.Inputs.listed()
	return writeJSON(w, &c)
}

// listed returns a copy in which no list is null.
func (l Inputs) listed() Inputs {
	l = append(Inputs{}, l...)
	for i := range l {
		in := &l[i]
		in.Columns = append([]Text{}, in.Columns...)
		in.URLColumns = append([]Text{}, in.URLColumns...)
	}
	return l
}

// Read reads what Write wrote. Fields that it does not know, of
// a newer version, are left out.
func Read(data []byte) (*Manifest, error) {
	m := new(Manifest)
	err := json.Unmarshal(data, m)
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("%s cannot be a JSON %s", cmp.Or(e.Field, "it"), e.Value)
	}
	if err == nil && m.Profile == "" {
		err = errors.New("it names no profile")
	}
	if y := m.AsOf.UTC().Year(); err == nil && (y < 0 || y > 9999) { // JSON has no others
		err = errors.New("as_of is out of range")
	}
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return m, nil
}

// ErrNotOurs is the error of what no run left.
var ErrNotOurs = errors.New("not the output of a run")

// ReadFile returns the bytes of a manifest, which may come from anybody: for one of
// more than MaxSize bytes, or what is not a regular file, the error is ErrNotOurs.
// Without files it reads from the file system of the operating system.
func ReadFile(files fsys.FS, path string) ([]byte, error) {
	data, err := fsys.Or(files).ReadFile(path, MaxSize)
	if errors.Is(err, fsys.ErrNotRegular) {
		err = fmt.Errorf("%w: %w", ErrNotOurs, err)
	}
	return data, err
}

// ReadDir reads the manifest of the output directory of a run and returns it with its digest, in
// hexadecimal. Where there is none the error is ErrNotOurs and fs.ErrNotExist. Of a delete it is
// ErrNotOurs.
func ReadDir(dir string) (_ *Manifest, sha256Hex string, err error) {
	path := filepath.Join(dir, Name)
	data, err := ReadFile(nil, path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		err = fmt.Errorf("%s: %w: %w", dir, ErrNotOurs, err)
	}
	if err != nil {
		return nil, "", err
	}
	m, err := Read(data)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	if m.Delete {
		return nil, "", fmt.Errorf("%s: %w: it has the reports of a delete", dir, ErrNotOurs)
	}
	return m, Digest(data), nil
}

// Digest returns the SHA-256 of the bytes of a manifest, in hexadecimal.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// marshal is json.Marshal, but leaves the & of a URL alone.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
