package source

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/columns"
)

// Rows are known by their codes if there is a column of codes, unless a column of URLs is given.
func TestByCode(t *testing.T) {
	const rejects = "source,row,byte_offset,reason,detail,slug,code,url,raw\nx,1,0,not_found,,"
	for _, tt := range []struct {
		data string
		opts Options
		want string // columns of codes or URLs, and what the first row has there; or an error
	}{
		{"code\nabc\n", Options{}, "code code: abc"},
		{"Short-Code;note\nabc;x\n", Options{}, "code Short-Code: abc"},
		{"url,code\nhttp://a/,abc\n", Options{}, "code code: abc beside url"},
		{"url,code\nhttp://a/,abc\n", Options{Choice: columns.Choice{CodeColumn: "none"}}, "url url: http://a/"},
		{"page,code\nhttp://a/,abc\n", Options{Choice: columns.Choice{URLColumn: "page"}}, "code code: abc beside page"},
		{"url,code\nhttp://a/,abc\n", Options{Choice: columns.Choice{URLColumn: "none"}}, "code code: abc"},
		{"url,link,code\nhttp://a/,,abc\n", Options{}, "!more than one column has a known URL name. Give the right one with Options.URLColumn, by name or number; with Options.URLColumn none only the codes count"},
		{"url\nhttp://a/\n", Options{Choice: columns.Choice{URLColumn: "none"}}, "!no column has a known name for codes"},
		{"short,url\nhttps://sho.rt/abc,http://a/\n", Options{Choice: columns.Choice{CodeColumn: "path(short)"}}, "code short: abc beside url"},
		{"old name\nabc\n", Options{Choice: columns.Choice{CodeColumn: "old name"}}, "code old name: abc"},
		{"abc,x\n", Options{Choice: columns.Choice{CodeColumn: "1"}}, "code column_1: abc"},
		{"abc\n", Options{}, "url column_1: abc"},
		{"url\nhttp://a/\n", Options{}, "url url: http://a/"},
		{`{"code":"abc","n":1}`, Options{}, "code code: abc"},
		{`[{"n":1,"link":{"url":"http://a/"}}]`, Options{}, "url link.url: http://a/"},
		{rejects + ",abc,,\n", Options{}, "code slug code: abc beside url"},
		{rejects + "abc,,,\n", Options{}, "code slug code: abc beside url"},
		{rejects + ",,http://a/,\n", Options{}, "code slug code:  beside url"},
		{rejects + ",,http://a/,\n", Options{Choice: columns.Choice{CodeColumn: "none"}}, "url url: http://a/"},
		{rejects + "abc,abd,,\n", Options{}, `!record 1: both "slug" and "code" may be the code: empty one of the two cells, or use Options.CodeColumn NAME`},
		{rejects + "abc,abd,,\n", Options{Choice: columns.Choice{CodeColumn: "slug"}}, "code slug: abc beside url"},
		{"slug,code\nabc,abd\n", Options{}, "!more than one column has a known name for codes. Give it with Options.CodeColumn"},
		{"a,b\nabc,abd\n", Options{}, "!no column has a known name for URLs or codes. Give it with Options.URLColumn or Options.CodeColumn"},
		{"a,b\nabc,abd\n", Options{Choice: columns.Choice{CodeColumn: "c"}}, `!there is no column "c" for Options.CodeColumn`},
	} {
		tt.opts.ByCode = true
		in, err := openBytes([]byte(tt.data), tt.opts)
		if msg, bad := strings.CutPrefix(tt.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), msg) {
				t.Errorf("%q: %v", tt.data, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tt.data, err)
			continue
		}
		if got := known(t, in); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.data, got, tt.want)
		}
	}
}

// Of a list with a line for each row, only an option says that the lines are codes.
func TestByCodeOfText(t *testing.T) {
	for column, want := range map[string]string{"": "url url: abc", "1": "code url: abc"} {
		in, err := Open(context.Background(), write(t, "list.txt", []byte("abc\n")), Options{Choice: columns.Choice{ByCode: true, CodeColumn: column}})
		if err != nil {
			t.Fatal(err)
		}
		if got := known(t, in); got != want {
			t.Errorf("column %q: %s, want %s", column, got, want)
		}
	}
}

// known tells by what the first row of an input is known.
func known(t *testing.T, in *Input) (text string) {
	t.Helper()
	var names []string
	for _, c := range in.URLs {
		names = append(names, in.Columns[c])
	}
	err := in.Read(context.Background(), 1, func(_ int, b *Batch) error {
		var cells Cells
		cells.Of(b)
		if in.Code < 0 {
			text = fmt.Sprintf("url %s: %s", strings.Join(names, " "), cells.URL(in.URLs, 0))
			return nil
		}
		var code []byte
		if codes := in.Codes(nil, cells, 0); len(codes) > 0 {
			code = codes[0].Text
		}
		text = fmt.Sprintf("code %s: %s", strings.Join(names, " "), code)
		for _, c := range in.Beside {
			text += " beside " + in.Columns[c]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
