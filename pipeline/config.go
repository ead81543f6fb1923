package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/along"
	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/shorturl"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/sink"
)

// Config says what a run does. Set Inputs, Out, and Workspace or Source.WorkspaceColumn, or
// both, unless each input has a column of workspaces by its profile. Zero in any other field means
// its default.
type Config struct {
	Inputs []string // files, "-", or patterns as of package source
	Source source.Options
	Limit  int64 // read only so many records; 0: all

	Partial    bool // a document of a program that says that it is one page of several is taken as it is
	AllowEmpty bool // inputs without a single record are no error, and so are patterns that match no file

	Workspace string // of all rows, or of those whose cell of the workspace column is blank

	Legacy         legacy.Mode     // what becomes of the codes that rows bring along (Source.CodeColumn)
	Codes          legacy.Rules    // of these
	CodePattern    string          // as Codes.Pattern was given; "": legacy.DefaultPattern
	ReservedSHA256 string          // of the file that Codes.Reserved was read from, hexadecimal; "": none
	OnConflict     legacy.Conflict // what becomes of rows whose code belongs to another URL; "": Reject

	// What a link was beyond code and URL. Each of these is looked at only with Legacy, or if
	// one of them or a column of Source.Map asks for it.
	Domains      legacy.Domains  // what becomes of codes of several domains
	Attrs        string          // what goes along with links: "none", or a list of column names and "profile"; "": "profile" with Legacy, otherwise "none"
	KeepCreated  bool            // created_at of links is their creation time in the input, if that can be read
	Hygiene      *hygiene.Policy // what becomes of links that the store cannot keep as they were; nil: the defaults
	ShortDomains map[string]bool // of short URLs, by which loops and chains are found beside those of rows (hygiene.ParseDomains)

	DefaultDomain string // of rows whose cells tell none (hygiene.ParseDomain); "": none

	Campaign   *campaign.Plan // each row becomes a link for each combination of its parameters; nil: one link
	TargetBase *canon.Base    // URLs without scheme and host are resolved against it; nil: they are not

	Rules   *rules.Flags   // the parameters of rows are read; nil: they are not, unless Source.Map has one
	NoRules bool           // expiry and use limit that inputs of a run with Legacy tell are left out; otherwise they are link rules, also without Rules
	OnDrift rules.OnDrift  // what becomes of links whose rows differ
	Revive  rules.Revivals // which dead links come back to life; zero: those that nobody deleted

	Profile    canon.Profile
	Scheme     Scheme
	CodeLength int // characters; 0: 10, or 7 if that is the default of the scheme
	MaxRetries int // highest salt; 0: 10, or 4 if that is the default of the scheme; NoRetries: salt 0 only

	Store     sink.Store    // nil: nothing is looked up, nothing is stored
	StoreName string        // for timings.json; without a password
	DryRun    bool          // look the store up, write nothing to it
	NoWait    bool          // fail with sink.ErrLocked or outdir.ErrBusy rather than wait for another run
	RetryFor  time.Duration // how long to retry when the store does not answer, unless it did so by itself (postgres.Options.RetryFor); 0: 2 minutes, negative: no retry

	Out          string // output directory; a dry run adds .dry, and one that may store no links .failed
	Overwrite    bool
	NewRun       bool          // give up unfinished runs of the same fingerprint rather than resume one
	ReportFormat report.Format // "": CSV
	ReportOrder  report.Order  // "": SortOrder
	BaseURL      string        // of short_url, as of package shorturl; "": blank
	ExcelSafe    bool
	NoCarry      bool // leave the other columns of the input out of the mapping

	MaxRejects manifest.MaxRejects
	ExpectRows int64     // rows that the inputs must have; 0: any number
	AsOf       time.Time // zero: now
	Workers    int       // 0: as many as processors, or as Memory allows
	Memory     int64     // bytes that the run may use, with debug.SetMemoryLimit, see the package comment; 0: no bound
	TempDir    string    // of what does not fit; "": that of the system
	Version    string    // of the tool, for the manifest

	// DiskBound, which may be nil, is called when goroutines begin to wait for the disk
	// beside those that compute: when all is read, if rows did not fit in memory, and
	// whenever the mapping is about to be written.
	DiskBound func()

	counts bool // a preview counts the URLs of other profiles

	// For tests.
	spillAt  int64                                     // of budget: records, rejects and placed, whatever Memory says; 0: by Memory
	fs       fsys.FS                                   // nil: that of the system
	freeRoom func(dir string) (bytes int64, err error) // nil: as the system tells

	Logger *slog.Logger  // nil: silent
	Outage sink.Outage   // told when a store does not answer, unless that tries again by itself (postgres.Options.Outage); nil: sink.LogOutage of Logger
	Status *Status       // nil: nobody watches
	Opened func([]Input) // told what the inputs are, before their rows are read; nil: nobody is
}

// NoRetries is the MaxRetries that allows salt 0 only.
const NoRetries = -1

// A UsageError is a run that cannot start as it was asked for.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Validate returns a UsageError that joins all that is wrong with the configuration, or
// nil. Run does so too.
func (c Config) Validate() error {
	_, err := c.withDefaults()
	return err
}

var errNoWorkspace = errors.New("no workspace: give one with Config.Workspace, or its column with Config.Source.WorkspaceColumn")

// withDefaults returns the configuration with every default filled in, or a
// UsageError that joins all that is wrong with it.
func (c Config) withDefaults() (Config, error) {
	_, spec := c.Scheme.withDefaults()
	c.CodeLength = cmp.Or(c.CodeLength, spec.Length)
	switch c.MaxRetries {
	case 0:
		c.MaxRetries = spec.Retries
	case NoRetries:
		c.MaxRetries = 0
	}
	c.Profile.MaxLength = cmp.Or(c.Profile.MaxLength, canon.MaxLength)
	c.Source.MaxField = cmp.Or(c.Source.MaxField, source.DefaultMaxField)
	c.Source.TempDir = cmp.Or(c.Source.TempDir, c.TempDir)
	c.RetryFor = cmp.Or(c.RetryFor, 2*time.Minute)
	c.ReportFormat = cmp.Or(c.ReportFormat, report.CSV)
	c.CodePattern = cmp.Or(c.CodePattern, legacy.DefaultPattern)
	c.OnConflict = cmp.Or(c.OnConflict, legacy.Reject)
	if c.Rules == nil && c.Source.MapsParams() {
		c.Rules = new(rules.Flags)
	}
	if c.Rules != nil {
		flags := *c.Rules
		flags.TemporaryTTL = cmp.Or(flags.TemporaryTTL, rules.DefaultTemporaryTTL)
		c.Rules = &flags
	}
	c.Source.Legacy, c.Source.Rules = c.Legacy != legacy.Off, c.Rules != nil
	c.Source.Ends = c.mayEnd()
	if c.migrates() {
		c.withMigration()
	}
	c.ReportOrder = cmp.Or(c.ReportOrder, report.SortOrder)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Outage == nil {
		c.Outage = sink.LogOutage(c.Logger)
	}
	c.Status = cmp.Or(c.Status, new(Status))
	if c.DiskBound == nil {
		c.DiskBound = func() {}
	}
	if c.Opened == nil {
		c.Opened = func([]Input) {}
	}
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
		for c.Memory > 0 && c.Memory < c.LeastMemory() && c.Workers > 1 {
			c.Workers--
		}
	}
	if c.freeRoom == nil {
		c.freeRoom = freeRoom
	}
	if err := c.validate(); err != nil {
		return c, &UsageError{err}
	}
	return c, nil
}

// migrates reports whether the run looks at what a link was beyond code and URL.
func (c *Config) migrates() bool {
	return c.Legacy != legacy.Off || c.Domains != legacy.DomainsOff || c.Attrs != "" && c.Attrs != along.None ||
		c.KeepCreated || c.Hygiene != nil || len(c.ShortDomains) > 0 || c.DefaultDomain != "" || c.Source.MapsExtra() || c.base().Has(shorturl.Domain)
}

// base is that of short URLs; nil: there are none.
func (c *Config) base() *shorturl.Base { return shorturl.NewBase(c.BaseURL) }

// withMigration fills in the defaults of what is looked at beyond code and URL.
func (c *Config) withMigration() {
	if c.Attrs == "" && (c.Legacy != legacy.Off || c.Source.MapsAny(along.IsRole)) {
		c.Attrs = along.Profile
	}
	c.Attrs = cmp.Or(c.Attrs, along.None)
	c.Source.Roles, c.Source.ByDomain, c.Source.DefaultDomain = true, c.Domains == legacy.DomainsKeep, c.DefaultDomain
	_, c.Source.Along, _ = along.Parse(c.Attrs) // validate has its error
	policy := c.Policy()
	c.Hygiene = &policy
}

// Policy returns Hygiene, or the defaults.
func (c *Config) Policy() hygiene.Policy {
	if c.Hygiene == nil {
		return hygiene.Defaults()
	}
	return *c.Hygiene
}

func (c *Config) validate() error {
	var problems []error
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	check := func(field string, err error) {
		if err != nil {
			complain("Config.%s: %w", field, err)
		}
	}
	if len(c.Inputs) == 0 {
		complain("no input")
	}
	if c.Out == "" {
		complain("no output directory")
	}
	if c.Workspace != "" {
		if err := codegen.CheckWorkspace([]byte(c.Workspace)); err != nil {
			complain("Config.Workspace: %w: %q", err, c.Workspace)
		}
	} else if !c.Source.HasWorkspaces() && c.Domains != legacy.DomainsKeep {
		problems = append(problems, errNoWorkspace)
	}
	problems = append(problems, c.Source.Validate())
	if c.Source.UniqueNames { // the fingerprint does not have it
		complain("UniqueNames of the source is for reading the inputs of a finished run")
	}
	if _, _, err := c.Scheme.Make(c.CodeLength); err != nil {
		problems = append(problems, err)
	}
	check("Profile.MaxLength", c.Profile.Validate())
	if c.MaxRetries < 0 || c.MaxRetries > codegen.MostRetries {
		complain("Config.MaxRetries %d is not within 0 to %d", c.MaxRetries, codegen.MostRetries)
	}
	if c.Workers < 0 {
		complain("Config.Workers %d is negative", c.Workers)
	}
	if least := c.LeastMemory(); c.Memory != 0 && c.Memory < least {
		complain("Config.Memory %s, which is too little: the least is %dMiB with Config.Workers %d", size(c.Memory), least>>20, c.Workers)
	}
	if c.TempDir != "" {
		if info, err := os.Stat(c.TempDir); err != nil {
			complain("Config.TempDir %s: %w", c.TempDir, fsys.Cause(err))
		} else if !info.IsDir() {
			complain("Config.TempDir %s is not a directory", c.TempDir)
		}
	}
	if c.Limit < 0 {
		complain("Config.Limit %d is negative", c.Limit)
	}
	if c.ExpectRows < 0 {
		complain("Config.ExpectRows %d is negative", c.ExpectRows)
	}
	if c.ExpectRows > 0 && c.Limit > 0 {
		complain("Config.ExpectRows cannot be used with Config.Limit")
	}
	_, badMode := legacy.ParseMode(string(c.Legacy))
	_, badConflict := legacy.ParseConflict(string(c.OnConflict))
	check("Legacy", badMode)
	check("OnConflict", badConflict)
	_, badDomains := legacy.ParseDomains(string(c.Domains))
	check("Domains", badDomains)
	if c.Domains == legacy.DomainsKeep && (c.Source.WorkspaceColumn != "" || c.Source.Map["workspace"] != "") {
		complain("Config.Domains keep cannot be used with a workspace column")
	}
	if c.DefaultDomain != "" {
		domain, err := hygiene.ParseDomain(c.DefaultDomain)
		if err == nil && domain != c.DefaultDomain {
			err = fmt.Errorf("%q is not as hygiene.ParseDomain returns it", c.DefaultDomain)
		}
		check("DefaultDomain", err)
	}
	if c.Attrs != "" {
		_, _, badAttrs := along.Parse(c.Attrs)
		check("Attrs", badAttrs)
	}
	c.checkLegacy(complain)
	c.checkRules(complain)
	c.checkCampaign(complain)
	_, badFormat := report.ParseFormat(string(c.ReportFormat))
	_, badOrder := report.ParseOrder(string(c.ReportOrder))
	check("ReportFormat", badFormat)
	check("ReportOrder", badOrder)
	check("BaseURL", checkBaseURL(c.BaseURL))
	if y := c.AsOf.UTC().Year(); y < 1 || y > 9999 { // JSON has no others
		complain("Config.AsOf %s is out of range", c.AsOf.Format(time.RFC3339))
	}
	return errors.Join(problems...)
}

// checkLegacy checks that nothing is asked for legacy codes that are not looked at, or not kept.
func (c *Config) checkLegacy(complain func(format string, args ...any)) {
	for _, o := range []struct {
		field        string
		given, keeps bool
	}{
		{"Source.CodeColumn", c.Source.CodeColumn != "", false},
		{"Source.Map code", c.Source.Map["code"] != "", false},
		{"Codes.Pattern", c.Codes.Pattern != nil, true},
		{"Codes.Reserved", c.ReservedSHA256 != "", true},
		{"OnConflict", c.OnConflict != legacy.Reject, true},
	} {
		switch {
		case !o.given || c.Legacy.Keeps() || c.Legacy == legacy.Map && !o.keeps:
		case o.keeps:
			complain("Config.%s goes with Config.Legacy keep or both", o.field)
		default:
			complain("Config.%s goes with Config.Legacy keep, both or map", o.field)
		}
	}
}

// checkCampaign checks what does not go with a campaign.
func (c *Config) checkCampaign(complain func(format string, args ...any)) {
	if c.Campaign == nil {
		return
	}
	if c.Legacy != legacy.Off {
		complain("Config.Legacy cannot be used with Config.Campaign: a code can be that of one link only")
	}
	if name := c.Campaign.Stripped(c.Profile.StripParams); name != "" {
		complain("Config.Profile.StripParams would strip %s, which Config.Campaign puts in", name)
	}
}

// identity says what tells links of one URL apart.
func (c *Config) identity() rules.Identity {
	if c.Rules == nil {
		return rules.ByURL
	}
	return c.Rules.Identity
}

// rulesByFlags reports whether link rules do something to rows that have no column of parameters.
func (c *Config) rulesByFlags() bool {
	f := c.Rules
	return f.Expiry.When != rules.Never || f.ExpiresIn > 0 || f.Limit > 0 || f.Type != rules.NoType || len(f.Owner) > 0 ||
		f.Identity == rules.ByRow || c.OnDrift != rules.Keep || c.Revive != rules.ReviveEnded
}

// mayEnd reports whether the links of a run with legacy codes end as the inputs say, though it was told
// nothing of link rules.
func (c *Config) mayEnd() bool { return c.Legacy != legacy.Off && !c.NoRules && c.Rules == nil }

// checkRules checks the flags of link rules.
func (c *Config) checkRules(complain func(format string, args ...any)) {
	switch {
	case c.NoRules && c.Rules != nil:
		complain("Config.NoRules cannot be used with a flag of link rules")
	case c.NoRules && c.Legacy == legacy.Off:
		complain("Config.NoRules goes with Config.Legacy keep, both or map")
	}
	if c.Rules == nil {
		return
	}
	if err := c.Rules.Check(); err != nil {
		complain("link rules: %w", err)
	}
}

const (
	fixedMemory  = 48 << 20
	workerMemory = 24 << 20
	groupMemory  = 160 << 20
	leastRecords = 32 << 20
)

// overhead is the memory that is not for records and rejects.
func (c *Config) overhead() int64 {
	n := int64(fixedMemory + max(c.Workers, 1)*workerMemory)
	if c.ReportFormat == report.Parquet || c.ReportFormat == report.Arrow {
		n += groupMemory
	}
	if c.Campaign != nil {
		n += c.Campaign.Memory(max(c.Workers, 1))
	}
	return n
}

// LeastMemory returns the smallest Memory, in bytes, that the run can keep; with Workers 0
// that with one. Each worker needs a chunk of every range.
func (c *Config) LeastMemory() int64 {
	least := int64(max(c.Workers, 1)+1) * leastRecords
	if c.ReportOrder == report.InputOrder {
		least *= 2
	}
	if c.Legacy.Keeps() {
		least *= 2
	}
	if c.counts {
		least *= 2
	}
	if c.Rules != nil || c.mayEnd() {
		least += least / 8
	}
	return c.overhead() + least
}

// size says how many bytes a flag means: 10 was perhaps to be 10MiB.
func size(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d means %d bytes", bytes, bytes)
	}
	return fmt.Sprintf("is %dMiB", bytes>>20)
}

func checkBaseURL(base string) error {
	const form = "is not of the form https://host or https://host/path"
	u, err := url.Parse(shorturl.Unmarked(base, "x"))
	switch {
	case base == "":
		return nil
	case err == nil && u.User != nil: // not shown: it would be, in every mapping and manifest
		return errors.New("the base URL has a user name or password")
	case err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && !strings.ContainsAny(shorturl.Unmarked(base, ""), "?# \"<>\\^`{|}"):
		return nil
	case strings.Contains(base, "@") || strings.Contains(base, "%40"): // not shown either
		return errors.New("the base URL, which may have a password, " + form)
	}
	return fmt.Errorf("base URL %q "+form, base)
}

// A TooManyRejectsError ends a run that rejected more rows than MaxRejects allows, or all of
// them, or any because of a conflict if OnConflict is Fail, or whose inputs do not have ExpectRows. The rejects and the manifest are
// written to Result.Out. The store is unchanged, unless an earlier attempt had stored links
// before another writer took a code.
type TooManyRejectsError struct {
	Rejected, Read int64
	Limit          manifest.MaxRejects
	Rows, Expected int64  // of the inputs; both 0: that is not why
	Conflicts      int64  // rows that claim codes of other URLs, if they are why the run was ended
	First          string // if every row was rejected: where and why the first was
	Column         string // and what was taken for the column of the URLs, if these are at fault
	Out            string // the directory that has the rejects
	Stored         int64  // links of that attempt; mostly 0
	Run            int32  // their run
}

func (e *TooManyRejectsError) Error() string {
	if e.Stored > 0 {
		return e.Why() + fmt.Sprintf("; links had been stored by then (%d): to delete them, run `bulk undo %d`", e.Stored, e.Run)
	}
	return e.Why() + "; no links were stored"
}

// Why says what forbids the run to store links.
func (e *TooManyRejectsError) Why() string {
	text := fmt.Sprintf("%d of %d rows were rejected, more than Config.MaxRejects %s allows", e.Rejected, e.Read, e.Limit)
	switch {
	case e.Rows != e.Expected:
		text = fmt.Sprintf("the inputs have %d rows, and Config.ExpectRows is %d", e.Rows, e.Expected)
	case e.Conflicts > 0:
		text = fmt.Sprintf("%d of %d rows claim codes of other URLs, and Config.OnConflict is fail", e.Conflicts, e.Read)
	case e.Column != "":
		text = fmt.Sprintf("every row was rejected; is %q the column of the URLs? For example %s", e.Column, e.First)
	case e.First != "":
		text = "every row was rejected, for example " + e.First
	}
	return text
}
