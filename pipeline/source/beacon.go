package source

import (
	"bytes"

	"github.com/linkforge/bulk/pipeline/profile"
)

// beacon is the profile of BEACON, as URLTeam writes it: lines that begin with #, then a line
// code|url for each link.
var beacon = profile.Named("urlteam")

func isBeacon(text []byte) bool {
	return bytes.HasPrefix(text, []byte("#FORMAT: BEACON")) || bytes.HasPrefix(text, []byte("#PREFIX:"))
}

// openBeacon opens a BEACON file. The lines before its records are among the bytes that were
// looked at.
func (in *Input) openBeacon(w *window, start int) error {
	for line := range bytes.Lines(w.buf[w.pos+start:]) {
		if line[0] != '#' {
			break
		}
		start += len(line)
	}
	in.Format, in.Known = beacon.Format, beacon
	in.openLines(start, func() *lines {
		s := newSplitter('|', 0, in.opts.MaxField, true)
		s.beacon, s.quote.off = true, true
		return &lines{splitter: s, ncols: 2}
	})
	return in.setColumns([]string{"code", "url"})
}

// unescape undoes the escapes of mysql --batch in the fields.
func (s *splitter) unescape() {
	for i, field := range s.fields {
		if bytes.IndexByte(field, '\\') < 0 {
			continue
		}
		start := len(s.scratch)
		for p := 0; p < len(field); p++ {
			c := field[p]
			if c == '\\' && p+1 < len(field) {
				if k := bytes.IndexByte([]byte(`tn\0`), field[p+1]); k >= 0 {
					c = "\t\n\\\x00"[k]
					p++
				}
			}
			s.scratch = append(s.scratch, c)
		}
		s.fields[i] = s.scratch[start:]
	}
}
