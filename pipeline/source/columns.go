package source

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/linkforge/bulk/canon"
)

// isURLName reports whether a column of this name is one of URLs.
func isURLName(name string) bool {
	switch fold(name) {
	case "url", "urls", "uri", "link", "href",
		"longurl", "longlink", "fullurl", "originalurl", "originallink",
		"destination", "destinationurl", "desturl", "destinationlink",
		"target", "targeturl", "redirecturl":
		return true
	}
	return false
}

// fold makes names comparable that differ in case, white space of any kind, seen or not,
// underscores and hyphens alone.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '_', '-', '\u200b', '\ufeff': // zero width space, byte order mark
			return -1
		}
		if unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// nameColumns takes the cells of a header.
func (in *Input) nameColumns(header []string) { in.header, in.Columns = header, unique(header) }

// unique makes column names of header cells: bytes that are not UTF-8 become %XX, no
// name becomes column_N, the second of a name becomes name_2.
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
	last := make(map[string]int) // number that was tried for a name: lower ones are taken
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

// escaped is a name as it is in reports, and may be given.
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

// settleColumns finds the URL and the workspace column by the options or by
// their names. Without a header, names tell nothing.
func (in *Input) settleColumns() (err error) {
	if in.opts.report {
		return nil
	}
	if in.opts.WorkspaceColumn != "" {
		if in.Workspace, err = in.column(in.opts.WorkspaceColumn, "--workspace-column"); err != nil {
			return err
		}
	}
	if in.opts.URLColumn != "" {
		i, err := in.column(in.opts.URLColumn, "--url-column")
		in.URLs = []int{i}
		return err
	}
	for i, name := range in.header {
		if isURLName(name) {
			in.URLs = append(in.URLs, i)
		}
	}
	switch {
	case len(in.URLs) == 1 || len(in.URLs) > 1 && in.Format == "rejects":
		return nil
	case len(in.URLs) > 1:
		return in.usage("more than one column may hold the URLs; choose one with --url-column NAME or N")
	case len(in.Columns) == 1:
		in.URLs = []int{0}
		return nil
	case in.Dialect != nil && !in.Dialect.Header:
		return in.usage(in.unnamed())
	}
	return in.usage("no column has a known name for URLs; choose one with --url-column NAME or N")
}

// unnamed says how to choose the URL column where no header names it, by which cells of
// the first record look like URLs.
func (in *Input) unnamed() string {
	url, urls := 0, 0
	for i, cell := range in.first {
		if hasURL(cell) {
			url, urls = i+1, urls+1
		}
	}
	switch {
	case urls == 1 && url == 1 && len(in.Columns) == 2:
		return "column 1 looks like the URL: --url-column 1 (if each line is one URL: --delimiter tab)"
	case urls == 1:
		return fmt.Sprintf("column %d looks like the URL: --url-column %[1]d", url)
	case urls > 1 || in.opts.Header == HeaderNo:
		return "no column is known to hold the URLs; choose one with --url-column N"
	}
	return "the first record has no known name for URLs; choose a column with --url-column NAME if it is a header, or else with --url-column N"
}

// column finds the column that an option names: by its name in the header, by its
// unique name, by a name in the header that is alike (see fold), or by its number.
func (in *Input) column(want, option string) (int, error) {
	same := func(name string) bool { return name == want }
	alike := func(name string) bool { return fold(name) == fold(want) }
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

// usage makes a usage error that lists the columns, or the first record.
func (in *Input) usage(msg string) error {
	const most = 50
	names, what := in.Columns, "columns"
	if in.first != nil && !in.Dialect.Header {
		names, what = in.first, "first record"
		if in.before != "" {
			msg += "; the first line cannot be split: " + in.before
		}
	}
	var list []string
	for i, name := range names[:min(most, len(names))] {
		list = append(list, fmt.Sprintf("%d %q", i+1, escaped(name)))
	}
	if more := len(names) - most; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	msg += "; " + what + ": " + strings.Join(list, ", ")
	if len(in.Skipped) > 0 {
		msg += fmt.Sprintf("; repeated, so no use: %q", in.Skipped[:min(most, len(in.Skipped))])
	}
	return &UsageError{in.Name, msg}
}
