package source

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline/profile"
)

// nameColumns sets the columns by the cells of a header.
func (in *Input) nameColumns(header []string) { in.header, in.Columns = header, unique(header) }

// setColumns sets the columns of a file that names them, and chooses among them.
func (in *Input) setColumns(names []string) error {
	if err := in.checkWidth(len(names)); err != nil {
		return err
	}
	in.nameColumns(names)
	return in.settleColumns()
}

// unique makes column names of header cells: bytes that are not UTF-8 become %XX, an empty
// name becomes column_N, the second column of a name becomes name_2.
func unique(cells []string) []string {
	names := make([]string, len(cells))
	taken := make(map[string]bool)
	for i, name := range cells {
		if names[i] = escaped(name); names[i] == "" {
			names[i] = fmt.Sprint("column_", i+1)
		}
		taken[names[i]] = true
	}
	seen := make(map[string]bool)
	last := make(map[string]int) // the last number that was tried for a name; lower ones are taken
	for i, name := range names {
		for n := max(last[name]+1, 2); seen[names[i]]; n++ {
			if try := fmt.Sprint(name, "_", n); !taken[try] {
				names[i] = try
			}
			last[name] = n
		}
		seen[names[i]], taken[names[i]] = true, true
	}
	return names
}

// escaped returns a name as reports write it. Options accept it, too.
func escaped(name string) string { return string(canon.EscapeInvalid([]byte(name))) }

// checkWidth refuses more columns than there may be.
func (in *Input) checkWidth(n int) error {
	most := MaxColumns
	if in.opts.report {
		most += reportColumns
	}
	if n > most {
		return &UsageError{in.Name, fmt.Sprintf("has %d columns, more than %d", n, most)}
	}
	return nil
}

// settleColumns finds the columns of workspace, URL, code and kind by the options, or else by the
// profile, or else by the names in the header.
func (in *Input) settleColumns() (err error) {
	if in.opts.report {
		return nil
	}
	in.settleProfile()
	if in.Workspace, err = in.settleColumn(profile.Workspace); err != nil {
		return err
	}
	if found, err := in.settleByCode(); found || err != nil {
		return err
	}
	if err = in.settleURLs(); err != nil {
		return err
	}
	if in.opts.Legacy && in.Format == "rejects" && in.profile == nil && in.doubt == "" && !in.opts.named() && in.opts.Profile != profile.None && len(in.URLs) > 1 {
		return in.usage("has the columns of several programs, so that no profile fits, and what the columns say of a link would be ignored. " +
			"Make a file of the rows of each source, without the columns that are blank in all of them, or give --profile or --map")
	}
	if in.opts.Legacy {
		if in.Kind, err = in.settleColumn(profile.Kind); err != nil {
			return err
		}
		err = in.settleCodes()
	}
	if in.opts.Rules && err == nil {
		err = in.settleParams()
	}
	if in.opts.Roles && err == nil {
		err = in.settleRoles()
	}
	return err
}

func (in *Input) settleURLs() error {
	if want, option := in.opts.asked(profile.URL); want != "" {
		i, err := in.column(want, option)
		in.URLs = []int{i}
		return err
	}
	if in.profile != nil {
		in.URLs = nil
		for _, c := range in.known(profile.URL) {
			in.URLs = append(in.URLs, c.column)
		}
		if in.URLs == nil {
			return in.usage(in.lacks(profile.URL, "URLs") + ". Give the URL column with --url-column, by name or number")
		}
		return nil
	}
	in.URLs = namedColumns(in.header, profile.IsURLName)
	switch {
	case len(in.URLs) == 1 || len(in.URLs) > 1 && in.Format == "rejects":
		return nil
	case len(in.URLs) > 1:
		return in.usage("more than one column has a known URL name. Give the right one with --url-column, by name or number")
	case len(in.Columns) == 1:
		in.URLs = []int{0}
		return nil
	case in.Dialect != nil && !in.Dialect.Header:
		return in.usage(in.unnamed())
	}
	return in.usage("no column has a known URL name. Give the URL column with --url-column, by name or number")
}

// namedColumns returns the columns that have a known name. If none has, the last parts of dotted
// names count; the names with the fewest dots are taken.
func namedColumns(header []string, known func(name string) bool) (found []int) {
	least := math.MaxInt
	for i, name := range header {
		dots := strings.Count(name, ".")
		if dots > least || !known(name[strings.LastIndexByte(name, '.')+1:]) {
			continue
		}
		if dots < least {
			least, found = dots, nil
		}
		found = append(found, i)
	}
	return found
}

// unnamed says how to choose the URL column if no header names it. It looks for URLs in the
// first record.
func (in *Input) unnamed() string {
	url, urls := 0, 0
	for i, cell := range in.first {
		if hasURL(cell) {
			url, urls = i+1, urls+1
		}
	}
	switch {
	case urls == 1 && url == 1 && len(in.Columns) == 2:
		return "column 1 looks like the URL: use --url-column 1 (or --delimiter tab, if each line is one URL)"
	case urls == 1:
		return fmt.Sprintf("column %d looks like the URL: use --url-column %[1]d", url)
	case urls > 1 || in.opts.Header == HeaderNo:
		return "there is no header. Give the number of the URL column with --url-column"
	}
	return "no column has a known URL name. Give the URL column with --url-column, by name (by number, if the file has no header)"
}

// column finds the column that an option asks for: by its name in the header, by its unique
// name, by a similar name in the header (see profile.Fold), or by its number.
func (in *Input) column(want, option string) (int, error) {
	same := func(name string) bool { return name == want }
	alike := func(name string) bool { return profile.Fold(name) == profile.Fold(want) }
	header := in.header
	if in.opts.UniqueNames {
		header = nil
	}
	for _, try := range []struct {
		names []string
		fits  func(name string) bool
	}{{header, same}, {in.Columns, same}, {header, alike}} {
		found := -1
		for i, name := range try.names {
			if !try.fits(name) {
				continue
			}
			if found >= 0 {
				return 0, in.usage(fmt.Sprintf("%s %q fits more than one column", option, want))
			}
			found = i
		}
		if found >= 0 {
			return found, nil
		}
	}
	if n, err := strconv.Atoi(want); err == nil && n >= 1 && n <= len(in.Columns) {
		return n - 1, nil
	}
	return 0, in.usage(fmt.Sprintf("there is no column %q for %s", want, option))
}

// usage makes a usage error that lists the columns or, without a header, the first record: at
// most 30 of them, and of each at most 60 characters.
func (in *Input) usage(msg string) error {
	const most = 30
	names, what := in.Columns, "Columns"
	if in.first != nil && !in.Dialect.Header {
		names, what = in.first, "First record"
		if in.before != "" {
			msg += ". The first line cannot be split: " + in.before
		}
	}
	var list []string
	for i, name := range names[:min(most, len(names))] {
		list = append(list, fmt.Sprintf("%d %.60q", i+1, escaped(name)))
	}
	if more := len(names) - most; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	msg += ". " + what + ": " + strings.Join(list, ", ")
	if len(in.Skipped) > 0 {
		msg += fmt.Sprintf(". These may have several values a row and cannot be used: %.60q", in.Skipped[:min(most, len(in.Skipped))])
	}
	return &UsageError{in.Name, msg}
}
