package source

import (
	"context"
	"encoding/csv"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/profile"
)

// exports returns the fixtures, each with the name of its profile: the longest that begins its own.
func exports(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../testdata/exports/*")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, file := range files {
		base := filepath.Base(file)
		if strings.HasSuffix(base, ".expected.csv") || base == "README.md" {
			continue
		}
		for _, name := range profile.Names() {
			if strings.HasPrefix(base, name) && len(name) > len(found[file]) {
				found[file] = name
			}
		}
	}
	return found
}

// links reads an input to its end: of each row the URL, and the codes after it.
func links(t *testing.T, in *Input) (rows [][]string) {
	t.Helper()
	err := in.Read(context.Background(), 1, func(_ int, b *Batch) error {
		var cells Cells
		cells.Of(b)
		if len(b.Errors) > 0 {
			t.Errorf("%s: row %d: %s", in.Name, b.Errors[0].Row, b.Errors[0].Detail)
		}
		for i := range b.Rows {
			row := []string{string(cells.URL(in.URLs, i))}
			for _, code := range in.Codes(nil, cells, i) {
				row = append(row, string(code.Text))
			}
			rows = append(rows, row)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return rows
}

// Each export is known for what it is, and every URL and code comes out of it byte for byte.
func TestExports(t *testing.T) {
	fixtures := exports(t)
	for _, name := range profile.Names() {
		if !slices.Contains(slices.Collect(maps.Values(fixtures)), name) {
			t.Errorf("no export of %s", name)
		}
	}
	for file, name := range fixtures {
		in, err := Open(context.Background(), file, Options{Choice: columns.Choice{Legacy: true}})
		if err != nil {
			t.Error(err)
			continue
		}
		if in.Profile != name || !in.IsCode(in.Code) {
			t.Errorf("%s: profile %q, code column %d", file, in.Profile, in.Code)
		}
		f, err := os.Open(strings.TrimSuffix(file, filepath.Ext(file)) + ".expected.csv")
		if err != nil {
			t.Fatal(err)
		}
		want, err := csv.NewReader(f).ReadAll()
		if f.Close(); err != nil {
			t.Fatal(err)
		}
		got := links(t, in)
		if len(got) < 5 || len(got) != len(want)-1 {
			t.Errorf("%s: %d rows, want %d", file, len(got), len(want)-1)
			continue
		}
		for i, row := range got {
			if w := append(want[i+1][:1:1], strings.Fields(want[i+1][1])...); !slices.Equal(row, w) {
				t.Errorf("%s: row %d: %q, want %q", file, i+1, row, w)
			}
		}
	}
}

// Without Legacy, Profile and Map an export is read as any other file.
func TestExportsPlain(t *testing.T) {
	for file := range exports(t) {
		for _, opts := range []Options{{}, {Choice: columns.Choice{Profile: profile.Auto}}, {Choice: columns.Choice{Profile: profile.None}}} {
			in, err := Open(context.Background(), file, opts)
			if err != nil {
				continue
			}
			if in.Profile != "" || in.Code != -1 || in.Kind != -1 || in.Workspace != -1 || in.array != 0 || in.Format == "beacon" {
				t.Errorf("%s: profile %q, code %d, format %s", file, in.Profile, in.Code, in.Format)
			}
			in.Close()
		}
	}
}

func TestRoles(t *testing.T) {
	const bulk = "workspace_id,short_code,kind,canonical_url,original_url\nw,c,link,http://a/,\n"
	for _, tt := range []struct {
		name, data string
		opts       Options
		want       string // profile, then the columns of URL, code, workspace and kind; or an error
	}{
		{"usual names", "Slug,Target\na,http://a/\n", Options{Choice: columns.Choice{Legacy: true}}, " Target Slug"},
		{"the URL column has a code's name", "hash,slug\nhttp://a/,a\n", Options{Choice: columns.Choice{Legacy: true, URLColumn: "hash"}, Header: HeaderYes}, " hash slug"},
		{"none", "name,url\na,http://a/\n", Options{Choice: columns.Choice{Legacy: true}}, `!no column has a known name for codes. Give it with Options.CodeColumn, by name or number; path(COLUMN) takes codes from the paths of URLs. Columns: 1 "name", 2 "url"`},
		{"a list of URLs", "url\nhttp://a/\n", Options{Choice: columns.Choice{Legacy: true}}, "!no column has a known name for codes"},
		{"several", "slug,alias,url\na,b,http://a/\n", Options{Choice: columns.Choice{Legacy: true}}, "!more than one column has a known name for codes"},
		{"one that the profile does not know", "keyword,url,slug\na,http://a/,b\n", Options{Choice: columns.Choice{Legacy: true}}, `!has the columns of the profile yourls, but also ["slug"], where URLs or codes may be. Choose with Options.Profile`},
		{"rejects of two exports", "source,row,byte_offset,reason,detail,keyword,url,address,banned,target,visit_count,raw\n,,,,,a,http://a/,,,,,\n", Options{Choice: columns.Choice{Legacy: true}}, `!has the columns of the profile kutt, but also ["keyword" "url"]`},
		{"one that the profile does not know, and a flag", "keyword,url,slug\na,http://a/,b\n", Options{Choice: columns.Choice{Legacy: true, CodeColumn: "slug"}}, " url slug"},
		{"one that the profile does not know, and its name", "keyword,url,slug\na,http://a/,b\n", Options{Choice: columns.Choice{Legacy: true, Profile: "yourls"}}, "yourls url keyword"},
		{"detected", "keyword,url,user\na,http://a/,u\n", Options{Choice: columns.Choice{Legacy: true}}, "yourls url keyword"},
		{"no profile", "keyword,url\na,http://a/\n", Options{Choice: columns.Choice{Legacy: true, Profile: "none"}}, " url keyword"},
		{"flags win", "keyword,url,n,w\na,http://a/,b,x\n", Options{Choice: columns.Choice{Legacy: true, CodeColumn: "n", WorkspaceColumn: "w", Map: map[string]string{"code": "url"}}}, "yourls url n w"},
		{"a map wins", "keyword,url,n,k\na,http://a/,b,x\n", Options{Choice: columns.Choice{Legacy: true, Map: map[string]string{"code": "3", "kind": "k"}}}, "yourls url n k"},
		{"numbers", "a,http://a/,b\n", Options{Choice: columns.Choice{Legacy: true, Map: map[string]string{"code": "3", "url": "2"}}}, " column_2 column_3"},
		{"a path", "from,to\nhttp://a/x,http://b/\n", Options{Choice: columns.Choice{Legacy: true, Map: map[string]string{"code": "path(from)", "url": "to"}}}, " to from"},
		{"bulk export", bulk, Options{Choice: columns.Choice{Legacy: true}}, "bulk original_url canonical_url short_code workspace_id kind"},
		{"a named profile without codes", bulk, Options{Choice: columns.Choice{Profile: "bulk"}}, "bulk original_url canonical_url workspace_id"},
		{"a map without codes", "from,to\nx,http://b/\n", Options{Choice: columns.Choice{Map: map[string]string{"code": "from", "url": "to"}}}, " to"},
		{"another profile", "keyword,url\na,http://a/\n", Options{Choice: columns.Choice{Legacy: true, Profile: "kutt", URLColumn: "url"}}, `!has no column "address", where the profile kutt has its codes`},
		{"another profile's URL", "keyword,url\na,http://a/\n", Options{Choice: columns.Choice{Profile: "kutt"}}, `!has no column "target", where the profile kutt has its URLs`},
		{"no such column", "keyword,url\na,http://a/\n", Options{Choice: columns.Choice{Legacy: true, Map: map[string]string{"code": "path(x)"}}}, `!there is no column "x" for Options.Map code`},
		{"no such profile", "", Options{Choice: columns.Choice{Profile: "nosuch"}}, `!there is no profile "nosuch"`},
		{"no such role", "", Options{Choice: columns.Choice{Map: map[string]string{"slug": "1"}}}, `!"slug" is not one of url, code, workspace, kind, domain,`},
	} {
		in, err := openBytes([]byte(tt.data), tt.opts)
		if msg, bad := strings.CutPrefix(tt.want, "!"); bad {
			if _, usage := errors.AsType[*columns.UsageError](err); !usage || !strings.Contains(err.Error(), msg) {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got := in.Profile
		for _, c := range append(slices.Clone(in.URLs), in.Code, in.Workspace, in.Kind) {
			if c >= 0 {
				got += " " + in.Columns[c]
			}
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestParseMap(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"code=path(old_url),url=2":  {"code": "path(old_url)", "url": "2"},
		"url=a=b":                   {"url": "a=b"},
		"code=a,url=b,code=trim(c)": {"code": "a,trim(c)", "url": "b"},
		"url":                       nil,
		"url=":                      nil,
		"url=1,url=2":               nil,
		"slug=1":                    nil,
	} {
		got, err := columns.ParseMap(text)
		if (err != nil) != (want == nil) || err == nil && !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// A row with the cells of a variant has just the code of the variant.
func TestVariantCells(t *testing.T) {
	for _, cut := range []string{"a", "path(a)", "list(path(a))", "trim(path(a))", "path(trim(a))"} {
		for _, code := range []string{"abc", "a/b", "/a", "a/", `q"\<`, "menü"} {
			if strings.Contains(cut, "trim") && strings.Trim(code, "/") != code {
				continue // no row has it
			}
			table, err := columns.Describe("test", "csv", []string{"url", "a"}, columns.Choice{Legacy: true, CodeColumn: cut})
			if err != nil {
				t.Fatal(err)
			}
			cell := string(table.VariantCells(columns.Code{Text: []byte(code)})[1])
			var b strings.Builder
			w := csv.NewWriter(&b)
			w.WriteAll([][]string{{"url", "a"}, {"http://a/", cell}})
			again, err := openBytes([]byte(b.String()), Options{Choice: columns.Choice{Legacy: true, CodeColumn: cut}})
			if err != nil {
				t.Fatal(err)
			}
			if got := links(t, again); !slices.Equal(got[0][1:], []string{code}) {
				t.Errorf("%s: %q: the cell is %q, which gives %q", cut, code, cell, got)
			}
		}
	}
	in, err := Open(context.Background(), "../../testdata/exports/bitly-api.json", Options{Choice: columns.Choice{Legacy: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	got := map[string]string{}
	for c, cell := range in.VariantCells(columns.Code{Text: []byte("Spring")}) {
		got[in.Columns[c]] = string(cell)
	}
	if want := map[string]string{"id": "/Spring", "custom_bitlinks": "[]"}; !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestDocuments(t *testing.T) {
	const one, rest = `{"id":"b.example/x","link":"https://b.example/x","custom_bitlinks":[],"long_url":"http://a/"}`, `"pagination":{"next":"","l":["]","}"]}`
	long := strings.Repeat(" ", 2*defaultBlock)
	for _, tt := range []struct {
		name, data string
		opts       Options
		want       string // columns of the records, or an error
	}{
		{"whole", `{"links":[` + one + `],` + rest + `}`, Options{}, `1@10 "b.example/x|https://b.example/x|[]|http://a/"`},
		{"byte order mark", "\xef\xbb\xbf{ \"links\" : [ " + one + `]}` + "\n", Options{}, `1@17 "b.example/x|https://b.example/x|[]|http://a/"`},
		{"members far behind", `{"links":[` + one + long + `]` + long + `,` + rest + long + `}` + long, Options{}, `1@10 "b.example/x|https://b.example/x|[]|http://a/"`},
		{"a record that is none", `{"links":[` + one + `,7],` + rest + `}`, Options{}, `1@10 "b.example/x|https://b.example/x|[]|http://a/" 2@104 malformed_row`},
		{"no record", `{"links":[],` + rest + `}`, Options{}, ``},
		{"it ends in the array", `{"links":[` + one, Options{}, "!the text ends within the array"},
		{"it ends behind the array", `{"links":[` + one + `],"pagination":{`, Options{}, "!the text ends within the array"},
		{"brackets", `{"links":[` + one + long + `],"pagination":{]}`, Options{}, "!the brackets of a value do not match"},
		{"a bracket", `{"links":[` + one + long + `],"pagination":]}`, Options{}, "!the brackets of a value do not match"},
		{"something follows", `{"links":[` + one + long + `],` + rest + `}7`, Options{}, "!'7' after the end of the array"},
		{"another's", `{"links":[{"url":"http://a/","slug":"s"}]}`, Options{}, "!no column has a known name for codes"},
		{"one a line", `{"url":"http://a/","slug":"s","data":[{"x":1}]}` + "\n" + `{"url":"http://b/","slug":"t"}`, Options{},
			`1@0 "http://a/|s|[{\"x\":1}]" 2@48 "http://b/|t|∅"`},
		{"no profile", `{"links":[` + one + `],` + rest + `}`, Options{Choice: columns.Choice{Profile: "none"}}, "!no column has a known URL name"},
		{"another profile", `{"links":[` + one + `],` + rest + `}`, Options{Choice: columns.Choice{Profile: "sink"}}, `!has no column "url", where the profile sink`},
	} {
		tt.opts.Legacy = true
		var got []string
		for _, name := range []string{"-", write(t, "a.json", []byte(tt.data))} {
			tt.opts.Stdin = strings.NewReader(tt.data)
			in, err := Open(context.Background(), name, tt.opts)
			var recs []rec
			if err == nil {
				recs, err = collect(in)
			}
			if msg, bad := strings.CutPrefix(tt.want, "!"); bad {
				if err == nil || !strings.Contains(err.Error(), msg) {
					t.Errorf("%s: %v", tt.name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			got = nil
			for _, r := range recs {
				text, _, _ := strings.Cut(r.String(), " (")
				got = append(got, text)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("%s: %s: %s, want %s", tt.name, name, got, tt.want)
			}
		}
	}
}

// Rejects have the columns of the export, so its profile is found again, also if they came as a TSV
// of escapes.
func TestRejectsOfExports(t *testing.T) {
	_, recs, err := readBytes([]byte("keyword\turl\ttitle\na\\\\b\thttp://a/\t\"\\t\\x\n"), Options{Choice: columns.Choice{Legacy: true}})
	if err != nil || len(recs) != 1 || recs[0].cells != "a\\b|http://a/|\"\t\\x" {
		t.Errorf("%v, %v", recs, err)
	}
	in, err := openBytes([]byte("source,row,byte_offset,reason,detail,in_source,target,hits,raw\nx,1,0,bad_code,,/a/,http://a/,1,\n"), Options{Choice: columns.Choice{Legacy: true}})
	if err != nil {
		t.Fatal(err)
	}
	if got := links(t, in); in.Profile != "yourls-csv" || !slices.Equal(got[0], []string{"http://a/", "a"}) {
		t.Errorf("%s: %q", in.Profile, got)
	}
}

func TestBeacon(t *testing.T) {
	data := "#PREFIX: http://s.example/\r\n#X: y\r\na|http://a/|b\r\nnone\r\n#c|\"\r\n"
	for _, workers := range []int{1, 3} {
		in, err := openBytes([]byte(data), Options{Choice: columns.Choice{Legacy: true}, Block: 8})
		if err != nil {
			t.Fatal(err)
		}
		recs, err := collectBy(in, workers)
		if err != nil || len(recs) != 3 || recs[0].String() != `1@35 "a|http://a/|b"` || recs[1].detail != "1 field where there should be 2" || recs[2].cells != `#c|"` {
			t.Errorf("%v, %v", recs, err)
		}
	}
	if in, err := openBytes([]byte(data), Options{}); err == nil && in.Format != "csv" {
		t.Error(in.Format)
	}
}

// carriedOnly are columns of exports that say nothing that a run could keep or judge.
var carriedOnly = map[string]string{
	"id": "the program's own number", "folder_id": "the program's own number", "userId": "the program's own number",
	"updatedAt": "when somebody edited it", "updated_at": "when somebody edited it", "lastClicked": "when it was used last", "last_access": "when it was used last",
	"shortLink": "code and domain again", "shortUrl": "code and domain again", "Short URL": "code and domain again", "link": "code and domain again", "short_url": "code and domain again",
	"expiredUrl": "where it leads once it has ended; that is told as expired", "expire_url": "where it leads once it has ended; that is told as expired",
	"proxy": "how its preview looks", "rewrite": "how its page is shown", "cloaking": "how its page is shown", "doIndex": "for search engines", "crawlable": "for search engines",
	"description": "a note", "comment": "a note", "comments": "a note", "image": "how its preview looks", "folder_name": "where its owner files it", "Campaign": "where its owner files it",
	"forwardQuery": "bulk links take no query along", "skip_qs": "bulk links take no query along", "visitsSummary.nonBots": "a part of the clicks", "visitsSummary.bots": "a part of the clicks",
	"utm_source": "in the URL already", "utm_medium": "in the URL already", "utm_campaign": "in the URL already", "utm_term": "in the URL already", "utm_content": "in the URL already",
	"password_contact": "beside the password", "split_percent": "beside the other target", "ttl": "how long the program caches it", "owner": "the name of a person",
	"creator": "the name of a person", "created_by": "the name of a person", "client_id": "the program's own number", "references.group": "the program's own number",
	"group_id": "the program's own number", "domain.id": "the program's own number", "domain.ref": "the program's own number", "domain.active": "of the domain, not of the link",
	"url_key": "bulk makes it again", "base_key": "bulk makes it again", "run_id": "of another store", "Updated at": "when somebody edited it",
	"type": "of pages that do more than redirect", "match": "of pages that do more than redirect", "match_type": "of pages that do more than redirect", "action_type": "of pages that do more than redirect",
	"match_url": "the code again", "match_data.source.flag_query": "how its server compares URLs", "match_data.source.flag_case": "how its server compares URLs", "position": "the order of rules",
	"link_type": "of link rules (--rules)", "user_id": "the owner, of link rules (--rules)", "hits": "how many are left of a month's quota", "metadata": "notes of programs",
	"is_custom": "how the code was made", "is_api": "how the code was made", "slug_mode": "how the code was made", "langcode": "the language of the site",
}

// Each column of an export has a role, or a reason to have none.
func TestColumnsOfExports(t *testing.T) {
	for file := range exports(t) {
		in, err := Open(context.Background(), file, Options{Choice: columns.Choice{Legacy: true, Roles: true, Ends: true}})
		if err != nil {
			t.Error(err)
			continue
		}
		used := map[string]bool{}
		for _, c := range in.Mapped() {
			used[c.Name] = true
		}
		for _, name := range in.Columns {
			if !used[name] && carriedOnly[name] == "" {
				t.Errorf("%s: the column %q has no role, and no reason to have none", file, name)
			}
		}
		in.Close()
	}
}

// A document says whether it is all that its program has.
func TestPage(t *testing.T) {
	const link = `{"shortCode":"a","shortUrl":"https://s.example/a","longUrl":"https://a.example/","dateCreated":"2024-01-01T00:00:00Z","title":null}`
	kutt := func(rest string) string {
		return `{` + rest + `"data":[{"address":"a","target":"https://a.example/","banned":false,"visit_count":1}]}`
	}
	large := `,"html":"` + strings.Repeat("x", 2<<20) + `","total":3000`
	many := strings.Repeat(`,"html":"`+strings.Repeat("x", 32<<10)+`"`, 64) + `,"total":3000`
	for data, want := range map[string]*Page{
		`[` + link + `]`: nil,
		`{"shortUrls":{"data":[` + link + `],"pagination":{"currentPage":1,"pagesCount":3,"totalItems":21}}}`:                               {Records: 1, Total: 21, More: true},
		`{"shortUrls":{"pagination":{"currentPage":3,"pagesCount":3},"data":[` + link + `]},"x":1}`:                                         {Records: 1, Total: -1, Last: true},
		kutt(`"limit":10,"skip":0,"total":4321,`):                                                                                           {Records: 1, Total: 4321},
		kutt(`"total":1,"truncated":true,`):                                                                                                 {Records: 1, Total: 1, More: true},
		`{"links":[{"url":"https://a.example/","slug":"a","createdAt":1,"updatedAt":1}],"cursor":"x","list_complete":false,"version":"1"}`:  {Records: 1, Total: -1, More: true},
		`{"links":[{"id":"b.example/a","custom_bitlinks":[],"long_url":"https://a.example/"}],"pagination":{"prev":"","next":"","page":2}}`: {Records: 1, Total: -1, Last: true},
		kutt(`"total":"3000",`):                              {Records: 1, Total: 3000},
		kutt(`"total":3000.0,`):                              {Records: 1, Total: 3000},
		kutt(`"total":-1,"next":{},`):                        {Records: 1, Total: -1, Last: true},
		kutt(`"total":2,"stats":{"total":9000},`):            {Records: 1, Total: 2},
		kutt(`"total":2,"meta":{"total":3,"next":"/2"},`):    {Records: 1, Total: 3, More: true},
		kutt(`"x":1,`)[:len(kutt(`"x":1,`))-1] + large + `}`: {Records: 1, Total: 3000},
		kutt(`"x":1,`)[:len(kutt(`"x":1,`))-1] + many + `}`:  {Records: 1, Total: -1, Unread: true},
	} {
		in, err := openBytes([]byte(data), Options{Choice: columns.Choice{Legacy: true}})
		if err != nil {
			t.Errorf("%s: %v", data, err)
			continue
		}
		if got := in.Page(); (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: %+v, want %+v", data, got, want)
		}
		in.Close()
	}
}
