package canon

import (
	"bytes"
	"slices"
)

// A Step is a rule that changed a URL, and the whole URL after it. The URL need not
// be UTF-8.
type Step struct {
	Rule, After string
}

// The parts of a URL, in their order.
const (
	partScheme = iota
	partSlashes
	partUserinfo
	partHost
	partPort
	partPath
	partQuery
	partFragment
	partCount
)

// An explanation is a URL on its way to its canonical form.
type explanation struct {
	parts [partCount][]byte
	steps []Step
}

// set replaces a part. If that changes the part, it adds a step.
func (e *explanation) set(rule string, part int, text []byte) {
	if bytes.Equal(e.parts[part], text) {
		return
	}
	e.parts[part] = text
	e.steps = append(e.steps, Step{rule, string(bytes.Join(e.parts[:], nil))})
}

// Explain returns the rules that change raw, in their order. Each starts from the URL
// of the step before it. The last step has the form that [Profile.Append] gives; if
// there is none, raw is canonical. If raw is refused there are no steps, and the error
// is the [Reason].
func (p Profile) Explain(raw []byte) ([]Step, error) {
	if _, err := p.Append(nil, raw); err != nil {
		return nil, err
	}
	var e explanation
	s := Trim(raw)
	if len(s) < len(raw) {
		e.steps = append(e.steps, Step{"trim", string(s)})
	}
	u, _ := split(s, p.AssumeScheme) // no errors here and in the authority: Append has found none
	path, query, fragment := splitRest(u.rest)
	e.parts = [...][]byte{u.scheme, u.slashes, u.userinfo, u.host, u.port, path, query, fragment}
	if u.slashes == nil {
		e.set("scheme: assumed", partSlashes, []byte("://"))
	}
	e.authority(p, u)
	e.path(path)
	e.query(p.StripParams, query)
	if p.KeepFragment && len(fragment) > len("#") {
		e.set("fragment: percent-encoding", partFragment, appendFragment(nil, fragment, new(Changes)))
	} else {
		e.set("fragment", partFragment, nil)
	}
	return e.steps, nil
}

func (e *explanation) authority(p Profile, u splitURL) {
	e.set("scheme", partScheme, appendScheme(nil, u.scheme))
	e.set("authority", partSlashes, []byte("://"))
	userinfo, _ := p.appendUserinfo(nil, u.userinfo)
	e.set("userinfo", partUserinfo, userinfo)
	port, _ := parsePort(u.port, len(u.scheme) == len("https"))
	e.set("port", partPort, appendPort(nil, port))
	host, _ := appendHost(nil, u.host)
	e.set("host", partHost, host)
}

func (e *explanation) path(path []byte) {
	p := bytes.ReplaceAll(path, []byte(`\`), []byte("/"))
	e.set("path: backslashes", partPath, p)
	p = appendNormal(nil, p, inPath)
	e.set("path: percent-encoding", partPath, p)
	p = removeDotSegments(bytes.Clone(p))
	e.set("path: dot segments", partPath, p)
	p = collapseSlashes(bytes.Clone(p))
	e.set("path: runs of slashes", partPath, p)
	p = dropTrailingSlash(p)
	e.set("path: trailing slash", partPath, p)
	if len(p) == 0 {
		e.set("path: empty", partPath, []byte("/"))
	}
}

func (e *explanation) query(strip StripParams, query []byte) {
	query = e.strip(strip, query)
	if len(query) == 0 {
		return
	}
	q := query[1:]
	pieces, _ := cutPieces(nil, q)
	if len(pieces) == 0 {
		e.set("query: empty pieces", partQuery, nil)
		return
	}
	q = appendPieces([]byte("?"), q, pieces)
	e.set("query: empty pieces", partQuery, q)
	q = appendNormal([]byte("?"), q[1:], inQuery)
	e.set("query: percent-encoding", partQuery, q)
	pieces, _ = cutPieces(nil, q[1:])
	sortPieces(pieces, q[1:])
	e.set("query: order", partQuery, appendPieces([]byte("?"), q[1:], pieces))
}

// strip drops the pieces that match, one a step, and returns the query that is left.
func (e *explanation) strip(strip StripParams, query []byte) []byte {
	if len(query) == 0 {
		return nil
	}
	pieces := bytes.Split(query[1:], []byte("&"))
	for i := 0; i < len(pieces); {
		pattern := strip.Match(pieces[i])
		if pattern == "" {
			i++
			continue
		}
		if pieces = slices.Delete(pieces, i, i+1); len(pieces) > 0 {
			query = append([]byte("?"), bytes.Join(pieces, []byte("&"))...)
		} else {
			query = nil
		}
		e.set("query: strip "+pattern, partQuery, query)
	}
	return query
}
