package canon_test

import (
	"errors"
	"fmt"

	"github.com/linkforge/bulk/canon"
)

func ExampleProfile_Append() {
	var p canon.Profile
	buf := make([]byte, 0, 256)
	for _, raw := range []string{
		"HTTP://Example.com:80/api//users/?name=john&id=123#top",
		"https://bücher.example/%7ereader",
		"ftp://example.com",
	} {
		form, err := p.Append(buf[:0], []byte(raw))
		if r, ok := errors.AsType[canon.Reason](err); ok {
			fmt.Printf("refused, %s: %s\n", r, canon.Detail([]byte(raw), r))
			continue
		}
		fmt.Printf("%s\n", form)
	}
	// Output:
	// http://example.com/api/users?id=123&name=john
	// https://xn--bcher-kva.example/~reader
	// refused, unsupported_scheme: scheme "ftp" is not http or https
}

func ExampleProfile_Explain() {
	steps, err := canon.Profile{}.Explain([]byte("https://Example.com:443/a/../b?z&y"))
	if err != nil {
		fmt.Println(err)
	}
	for _, s := range steps {
		fmt.Printf("%-18s %s\n", s.Rule, s.After)
	}
	// Output:
	// port               https://Example.com/a/../b?z&y
	// host               https://example.com/a/../b?z&y
	// path: dot segments https://example.com/b?z&y
	// query: order       https://example.com/b?y&z
}
