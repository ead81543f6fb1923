package columns

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/linkforge/bulk/pipeline/profile"
)

// Settle finds the columns of workspace, URL, code and kind by the choice, or else by the profile, or
// else by the names in the header. The errors are of type *UsageError.
func (t *Table) Settle() (err error) {
	t.settleProfile()
	if t.Workspace, err = t.settleColumn(profile.Workspace); err != nil {
		return err
	}
	if found, err := t.settleByCode(); found || err != nil {
		return err
	}
	if err = t.settleURLs(); err != nil {
		return err
	}
	if t.choice.Legacy && t.Format == "rejects" && t.Known == nil && t.doubt == "" && !t.choice.named() && t.choice.Profile != profile.None && len(t.URLs) > 1 {
		return t.Usage("has the columns of several programs, so that no profile fits, and what the columns say of a link would be ignored. " +
			"Make a file of the rows of each source, without the columns that are blank in all of them, or give Options.Profile or Options.Map")
	}
	if t.choice.Legacy {
		if t.Kind, err = t.settleColumn(profile.Kind); err != nil {
			return err
		}
		err = t.settleCodes()
	}
	if (t.choice.Rules || t.choice.Ends) && err == nil {
		err = t.settleParams()
	}
	if t.choice.Roles && err == nil {
		err = t.settleRoles()
	}
	return err
}

// SettleText makes one column of a text in which each line is a URL or, with Choice.ByCode, perhaps a
// code.
func (t *Table) SettleText() error {
	t.Columns, t.URLs = []string{"url"}, []int{0}
	if t.choice.Legacy {
		return t.Usage(noCodes)
	}
	_, err := t.settleByCode()
	return err
}

func (t *Table) settleURLs() error {
	if want, option := t.choice.asked(profile.URL); want != "" {
		i, err := t.column(want, option)
		t.URLs = []int{i}
		return err
	}
	if t.Known != nil {
		t.URLs = nil
		for _, c := range t.known(profile.URL) {
			t.URLs = append(t.URLs, c.column)
		}
		if t.URLs == nil {
			return t.Usage(t.lacks(profile.URL, "URLs") + ". Give the URL column with Options.URLColumn, by name or number")
		}
		return nil
	}
	t.URLs = namedColumns(t.header, profile.IsURLName)
	switch {
	case len(t.URLs) == 1 || len(t.URLs) > 1 && t.Format == "rejects":
		return nil
	case len(t.URLs) > 1:
		return t.Usage("more than one column has a known URL name. Give the right one with Options.URLColumn, by name or number")
	case len(t.Columns) == 1:
		t.URLs = []int{0}
		return nil
	case t.NoHeader:
		return t.Usage(t.unnamed())
	}
	return t.Usage("no column has a known URL name. Give the URL column with Options.URLColumn, by name or number")
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
func (t *Table) unnamed() string {
	url, urls := 0, 0
	for i, cell := range t.First {
		if HasURL(cell) {
			url, urls = i+1, urls+1
		}
	}
	switch {
	case urls == 1 && url == 1 && len(t.Columns) == 2:
		return "column 1 looks like the URL: use Options.URLColumn 1 (or Options.Delimiter tab, if each line is one URL)"
	case urls == 1:
		return fmt.Sprintf("column %d looks like the URL: use Options.URLColumn %[1]d", url)
	case urls > 1 || t.SaidNoHeader:
		return "there is no header. Give the number of the URL column with Options.URLColumn"
	}
	return "no column has a known URL name. Give the URL column with Options.URLColumn, by name (by number, if the file has no header)"
}

// column finds the column that an option asks for: by its name in the header, by its unique
// name, by a similar name in the header (see profile.Fold), or by its number.
func (t *Table) column(want, option string) (int, error) {
	same := func(name string) bool { return name == want }
	alike := func(name string) bool { return profile.Fold(name) == profile.Fold(want) }
	header := t.header
	if t.choice.UniqueNames {
		header = nil
	}
	for _, try := range []struct {
		names []string
		fits  func(name string) bool
	}{{header, same}, {t.Columns, same}, {header, alike}} {
		found := -1
		for i, name := range try.names {
			if !try.fits(name) {
				continue
			}
			if found >= 0 {
				return 0, t.Usage(fmt.Sprintf("%s %q fits more than one column", option, want))
			}
			found = i
		}
		if found >= 0 {
			return found, nil
		}
	}
	if n, err := strconv.Atoi(want); err == nil && n >= 1 && n <= len(t.Columns) {
		return n - 1, nil
	}
	return 0, t.Usage(fmt.Sprintf("there is no column %q for %s", want, option))
}

// Usage makes a usage error that lists the columns or, without a header, the first record: at
// most 30 of them, and of each at most 60 characters.
func (t *Table) Usage(msg string) error {
	const most = 30
	names, what := t.Columns, "Columns"
	if t.First != nil && t.NoHeader {
		names, what = t.First, "First record"
		if t.Before != "" {
			msg += ". The first line cannot be split: " + t.Before
		}
	}
	var list []string
	for i, name := range names[:min(most, len(names))] {
		list = append(list, fmt.Sprintf("%d %.60q", i+1, Escaped(name)))
	}
	if more := len(names) - most; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	msg += ". " + what + ": " + strings.Join(list, ", ")
	if len(t.Skipped) > 0 {
		msg += fmt.Sprintf(". These may have several values a row and cannot be used: %.60q", t.Skipped[:min(most, len(t.Skipped))])
	}
	return &UsageError{t.Name, msg}
}
