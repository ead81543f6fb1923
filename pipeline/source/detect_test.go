package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/columns"
)

func TestDialect(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		opts     Options
		want     string // delimiter, header, columns, URL columns, workspace; or the error after "!"
	}{
		{"comma", "url,team\nhttp://a/,x\n", Options{}, `"," true [url team] [0] -1`},
		{"semicolon", "team;URL\nx;http://a/,b\ny;http://c\n", Options{}, `";" true [team URL] [1] -1`},
		{"tab", "a\tlong url\nx\thttp://a/,b;c|d\n", Options{}, `"\t" true [a long url] [1] -1`},
		{"pipe", "Long-URL|b\nhttp://a/,b|x\n", Options{}, `"|" true [Long-URL b] [0] -1`},
		{"URLs decide between equals", "x;http://a/1,2\ny;http://b/3,4\n", Options{Choice: columns.Choice{URLColumn: "2"}}, `";" false [column_1 column_2] [1] -1`},
		{"the steadier decides", "x;http://a/1,2\ny;http://b/3\nz;http://c/\n", Options{Choice: columns.Choice{URLColumn: "2"}}, `";" false [column_1 column_2] [1] -1`},
		{"quotes hold delimiters", "url;note\n\"http://a/;x\";\"a,b\"\n\"http://b\";\"c,d\"\n", Options{}, `";" true [url note] [0] -1`},
		{"a name makes the header", "url,note\nhttp://a/,x,y\nhttp://b/,x,y\nhttp://c/,x,y\n", Options{}, `"," true [url note] [0] -1`},
		{"a name under either", "url,b;link\nhttp://a/,x;y\n", Options{}, `"," true [url b;link] [0] -1`},
		{"one column", "url\nhttp://a/,b\nhttp://c/\n", Options{}, `"\t" true [url] [0] -1`},
		{"names in Latin-1", "url,p\xeache,p\xe9che\nhttp://a/,x,y\n", Options{Choice: columns.Choice{WorkspaceColumn: "p\xe9che"}}, `"," true [url p%EAche p%E9che] [0] 2`},
		{"a name in Latin-1, as it is carried", "nr;Stra\xdfe\n1;http://a/\n", Options{Choice: columns.Choice{URLColumn: "Stra%DFe", WorkspaceColumn: "Stra%DFe"}}, `";" true [nr Stra%DFe] [1] 1`},
		{"one column without header", "http://a/\nhttp://b/x,y\nhttp://c/;d\n", Options{}, `"\t" false [column_1] [0] -1`},
		{"half of the records are not most", "http://a/x,y\nhttp://b/\n", Options{}, `"\t" false [column_1] [0] -1`},
		{"unknown single name is data", "address\nhttp://a/\n", Options{}, `"\t" false [column_1] [0] -1`},
		{"header given", "address\nhttp://a/\n", Options{Header: HeaderYes}, `"\t" true [address] [0] -1`},
		{"header by option", "old_url,new_url\nhttp://a/,http://b/\n", Options{Choice: columns.Choice{URLColumn: "New URL"}}, `"," true [old_url new_url] [1] -1`},
		{"a URL is no header", "http://a/,link\nhttp://b/,link\n", Options{Choice: columns.Choice{URLColumn: "1"}}, `"," false [column_1 column_2] [0] -1`},
		{"nor is http:// alone", "url,http://\nhttp://a/,b\n", Options{Choice: columns.Choice{URLColumn: "1"}}, `"," false [column_1 column_2] [0] -1`},
		{"nor is https:// alone", "url,https://\nhttp://a/,b\n", Options{Choice: columns.Choice{URLColumn: "1"}}, `"," false [column_1 column_2] [0] -1`},
		{"header refused", "url,team\nhttp://a/,b\n", Options{Choice: columns.Choice{URLColumn: "1"}, Header: HeaderNo}, `"," false [column_1 column_2] [0] -1`},
		{"number is no name", "1,2\nhttp://a/,b\n", Options{Choice: columns.Choice{URLColumn: "1"}}, `"," false [column_1 column_2] [0] -1`},
		{"workspace", "url;Team Name\nhttp://a/;x\n", Options{Choice: columns.Choice{WorkspaceColumn: "team_name"}}, `";" true [url Team Name] [0] 1`},
		{"workspace by number", "url;t\nhttp://a/;x\n", Options{Choice: columns.Choice{WorkspaceColumn: "2"}}, `";" true [url t] [0] 1`},
		{"the second of a name", "a,a\nhttp://a/,http://b/\n", Options{Choice: columns.Choice{URLColumn: "a_2"}, Header: HeaderYes}, `"," true [a a_2] [1] -1`},
		{"doubles and blanks", "url,a,a,,a_2\nhttp://a/,1,2,3,4\n", Options{}, `"," true [url a a_3 column_4 a_2] [0] -1`},
		{"exact name first", "URL,url\nhttp://a/,x\n", Options{Choice: columns.Choice{URLColumn: "url"}}, `"," true [URL url] [1] -1`},
		{"delimiter given", "url:team\nhttp//a:x\n", Options{Delimiter: ':'}, `":" true [url team] [0] -1`},
		{"a quote is no delimiter", "url,team;x\n", Options{Choice: columns.Choice{URLColumn: "2"}, Quote: ',', Header: HeaderYes}, `!quote inside unquoted field 1`},
		{"quote given", "url,team\n'http://a,b',x\n", Options{Quote: '\''}, `"," true [url team] [0] -1`},
		{"a name like the magic of encrypted Parquet files", "PARENT_ID,URL\n1,http://a/\n", Options{}, `"," true [PARENT_ID URL] [1] -1`},
		{"empty", "", Options{}, `"\t" false [column_1] [0] -1`},
		{"only empty lines", "\n\r\n", Options{Choice: columns.Choice{URLColumn: "x", WorkspaceColumn: "y"}}, `"\t" false [column_1] [0] -1`},
		{"a list after a title", "sep=;\nurl;title;id\nhttp://a/;x;1\nhttp://b/;y;2\n", Options{Delimiter: '\t'}, `"\t" false [column_1] [0] -1`},
		{"names after a URL are data", "http://a/\nlink,x\nb,y\n", Options{}, `"\t" false [column_1] [0] -1`},
		{"names after a header are data", "url\nlink,x\nhttp://a/,y\n", Options{}, `"\t" true [url] [0] -1`},
		{"names of few are data", "x\nlink,x\nhttp://a/,y\nhttp://b/\nhttp://c/\n", Options{}, `"\t" false [column_1] [0] -1`},
		{"lines in a header", "url,\"a\r\nb\"\r\nhttp://a/,x\r\n", Options{}, `"," true [url a` + "\r\n" + `b] [0] -1`},
		{"a name on two lines", "x,\"Long\nURL\"\n1,http://a/\n", Options{}, `"," true [x Long` + "\n" + `URL] [1] -1`},
		{"white space that is not seen", "\ufeff\ufeffx,URL\u00a0\n1,http://a/\n", Options{Choice: columns.Choice{WorkspaceColumn: "X"}}, `"," true [` + "\ufeffx URL\u00a0" + `] [1] 0`},
		{"a tab in a name", "URL\t,x\nhttp://a/,1\n", Options{}, `"," true [URL` + "\t" + ` x] [0] -1`},
		{"line endings converted twice", "url,b\r\r\nhttp://a/,x\r\r\n", Options{}, `"," true [url b` + "\r" + `] [0] -1`},
		{"only a header", "url,team", Options{}, `"," true [url team] [0] -1`},
		{"first line broken", "a\"b\nhttp://a/,x\nhttp://b/,y\n", Options{Choice: columns.Choice{URLColumn: "1"}}, `"," false [column_1 column_2] [0] -1`},

		{"ambiguous", "link,long_url\nx,http://a/\n", Options{}, `!more than one column has a known URL name. Give the right one with Options.URLColumn, by name or number. Columns: 1 "link", 2 "long_url"`},
		{"none", "a,b\nx,http://a/\n", Options{Header: HeaderYes}, `!no column has a known URL name. Give the URL column with Options.URLColumn, by name or number. Columns: 1 "a", 2 "b"`},
		{"no header", "x,http://a/\ny,http://b/\n", Options{}, `!-: column 2 looks like the URL: use Options.URLColumn 2. First record: 1 "x", 2 "http://a/"`},
		{"nor a URL", "a,b\nx,http://b/\n", Options{}, `!-: no column has a known URL name. Give the URL column with Options.URLColumn, by name (by number, if the file has no header). First record: 1 "a", 2 "b"`},
		{"nor may it be one", "a,b\nx,http://b/\n", Options{Header: HeaderNo}, `!-: there is no header. Give the number of the URL column with Options.URLColumn. First record`},
		{"two URLs", "http://a/,http://b/,x\n", Options{}, `!-: there is no header. Give the number of the URL column with Options.URLColumn. First record`},
		{"a URL of three columns", "http://a/,x,y\n", Options{}, `!-: column 1 looks like the URL: use Options.URLColumn 1. First record`},
		{"no name in Latin-1", "nr;Stra\xdfe\n1;http://a/\n", Options{}, `!First record: 1 "nr", 2 "Stra%DFe"`},
		{"URLs with a comma each", "http://a/1,2\nhttp://b/3,4\n", Options{}, `!-: column 1 looks like the URL: use Options.URLColumn 1 (or Options.Delimiter tab, if each line is one URL). First record`},
		{"two of one name", "url,b,url\nhttp://a/,x,http://b/\n", Options{}, `!more than one column has a known URL name. Give the right one with Options.URLColumn, by name or number. Columns: 1 "url", 2 "b", 3 "url_2"`},
		{"two of the name chosen", "a,a\nhttp://a/,http://b/\n", Options{Choice: columns.Choice{URLColumn: "a"}}, `!Options.URLColumn "a" fits more than one column. Columns: 1 "a", 2 "a_2"`},
		{"two of the workspace's name", "url,t,t\nhttp://a/,x,y\n", Options{Choice: columns.Choice{WorkspaceColumn: "t"}}, `!Options.WorkspaceColumn "t" fits more than one column`},
		{"no such column", "url,b\nhttp://a/,x\n", Options{Choice: columns.Choice{URLColumn: "c"}}, `!there is no column "c" for Options.URLColumn. Columns: 1 "url", 2 "b"`},
		{"no such number", "url,b\nhttp://a/,x\n", Options{Choice: columns.Choice{URLColumn: "3"}}, `!there is no column "3"`},
		{"no workspace", "url,b\nhttp://a/,x\n", Options{Choice: columns.Choice{WorkspaceColumn: "c"}}, `!there is no column "c" for Options.WorkspaceColumn`},
		{"fits two", "a_b,A B,url\n1,2,http://a/\n", Options{Choice: columns.Choice{URLColumn: "ab"}}, `!Options.URLColumn "ab" fits more than one column`},
		{"either delimiter", "http://a/;1,5\nhttp://b/;2,5\n", Options{Choice: columns.Choice{URLColumn: "1"}}, `!cannot tell the columns: both ',' and ';' split the records: choose one with Options.Delimiter`},
		{"broken before the first", "id, \"url\"\n1,http://a/\n2,http://b/\n", Options{}, `!. The first line cannot be split: quote inside unquoted field 2. First record: 1 "1", 2 "http://a/"`},
		{"broken after the first", "1,http://a/\n2, \"http://b/\"\n3,http://c/\n", Options{}, `!-: column 2 looks like the URL: use Options.URLColumn 2. First record: 1 "1", 2 "http://a/"`},
		{"broken header", "a\"b,url\nx,http://a/\n", Options{Header: HeaderYes}, `!the first line is no header: quote inside unquoted field 1`},
		{"a spreadsheet's delimiter first", "sep=;\nurl;title;id\nhttp://a/;x;1\nhttp://b/;y;2\n", Options{}, `";" true [url title id] [0] -1`},
		{"the same in quotes, and a mark", "\ufeff\"sep=|\"\r\nurl|title;x\r\nhttp://a/|x\r\n", Options{}, `"|" true [url title;x] [0] -1`},
		{"a delimiter by a flag too", "sep=;\nurl,title\nhttp://a/,x\n", Options{Delimiter: ','}, `"," true [url title] [0] -1`},
		{"no delimiter of a spreadsheet", "sep=;;\nurl;title\nhttp://a/;x\n", Options{}, `!record 2 is a header, but not the first record: delete what stands before the header`},
		{"a title in as many cells", "Links of May,,\n,,\nurl,title,n\nhttp://a/,x,1\nhttp://b/,y,2\n", Options{}, `!record 3 is a header, but not the first record: delete what stands before the header`},
		{"a comment with a comma", "# all links, of May\nurl,title\nhttp://a/,x\n", Options{}, `!record 2 is a header, but not the first record: delete what stands before the header`},
		{"a title in quotes", "Links of \"May\"\nurl,title\nhttp://a/,x\n", Options{}, `!record 2 is a header, but not the first record: delete what stands before the header`},
		{"a title of one column", "Links of May\nurl\nhttp://a/\n", Options{}, `!record 2 is a header, but not the first record: delete what stands before the header`},
		{"no header is wanted", "b,a\nurl,title\nhttp://a/,x\n", Options{Header: HeaderNo, Choice: columns.Choice{URLColumn: "1"}}, `"," false [column_1 column_2] [0] -1`},
		{"a title first", "Links of May\n\nmade by hand\nurl,title\nhttp://a/,x\n", Options{Header: HeaderYes}, `!cannot tell the columns: record 3 is a header, but not the first record: delete what stands before the header`},
		{"lone CRs", "url,b\rhttp://a/,x\rhttp://b/,y\r", Options{}, `!the header has a CR without an LF, which does not end a line: convert the line endings to LF. Columns: 1 "url", 2 "b\rhttp://a/", `},
		{"no header at all", "", Options{Header: HeaderYes}, `!there is no header`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, err := openBytes([]byte(tt.in), tt.opts)
			if msg, bad := strings.CutPrefix(tt.want, "!"); bad {
				var usage *columns.UsageError
				if !errors.As(err, &usage) || !strings.Contains(err.Error(), msg) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if got := fmt.Sprintf("%q %t %v %v %d", in.Dialect.Delimiter, in.Dialect.Header, in.Columns, in.URLs, in.Workspace); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A header and a first record may be longer than what is looked at first, and have as
// many columns as there may be.
func TestLongFirstRecords(t *testing.T) {
	names := make([]string, columns.MaxColumns)
	for i := range names {
		names[i] = fmt.Sprint("column number ", i)
	}
	names[7] = "url"
	text := strings.Join(names, ",") + "\n" + strings.Repeat("x,", len(names)-1) + "x\n"
	for _, block := range []int{0, 1000} {
		in, recs, err := readBytes([]byte(text), Options{Block: block})
		if err != nil {
			t.Fatal(err)
		}
		if len(in.Columns) != len(names) || in.URLs[0] != 7 || len(recs) != 1 || recs[0].reason != "" {
			t.Errorf("%d columns, %d records", len(in.Columns), len(recs))
		}
	}
	quote := "\"http://a/\n" + strings.Repeat("http://b/\n", 300_000)
	in, err := openBytes([]byte(quote), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := countRows(1, in); n != 300_000 || in.Records() != n+1 || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
}

// What settles the dialect does not depend on how much of the input is there.
func TestSampleOfAnyBlock(t *testing.T) {
	text := strings.Repeat("x,http://a/\n", 6000) + strings.Repeat("x\n", 20_000)
	for _, block := range []int{0, 1000, 1 << 20} {
		in, err := openBytes([]byte(text), Options{Choice: columns.Choice{URLColumn: "2"}, Block: block})
		if err != nil || len(in.Columns) != 2 {
			t.Errorf("in blocks of %d bytes: %v", block, err)
		}
	}
}

// Empty lines before the first record are passed by, be they more than is looked at
// first.
func TestEmptyLinesFirst(t *testing.T) {
	for _, line := range []string{"\n", "\r\n"} {
		in, recs, err := readBytes([]byte(strings.Repeat(line, 500_000)+"a,url\nx,http://a/\n"), Options{})
		if err != nil || len(recs) != 1 || in.URLs[0] != 1 {
			t.Errorf("%q: %v, %v", line, recs, err)
		}
	}
	if _, recs, err := readBytes([]byte(strings.Repeat("\n", 500_000)), Options{}); len(recs) != 0 || err != nil {
		t.Errorf("nothing else: %v, %v", recs, err)
	}
}

func TestOffsets(t *testing.T) {
	for _, in := range []string{"url,b\r\nhttp://a/,x\r\n\r\nhttp://b/,y\n", "\ufeffurl,b\r\nhttp://a/,x\r\n\r\nhttp://b/,y\n"} {
		_, recs, err := readBytes([]byte(in), Options{})
		if err != nil || len(recs) != 2 {
			t.Fatal(recs, err)
		}
		for i, start := range []string{"http://a/,x", "http://b/,y"} {
			if int(recs[i].offset) != strings.Index(in, start) || recs[i].row != int64(i+1) {
				t.Errorf("%v", recs[i])
			}
		}
	}
}
