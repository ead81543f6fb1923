package canon

import "bytes"

// appendPath appends the canonical form of a path, which is empty or starts
// with a slash or backslash. Each rule after the first changes, in place, what
// the rule before it has written.
func appendPath(dst, path []byte, c *Changes) []byte {
	start := len(dst)
	dst = appendSegments(dst, path)
	p := dst[start:]
	c.set(Escapes, !bytes.Equal(p, path))
	n := len(p)
	p = removeDotSegments(p)
	c.set(DotSegments, len(p) < n)
	n = len(p)
	p = collapseSlashes(p)
	c.set(Slashes, len(p) < n)
	n = len(p)
	p = dropTrailingSlash(p)
	c.set(TrailingSlash, len(p) < n)
	if len(p) == 0 {
		c.set(EmptyPath, true)
		return append(dst[:start], '/')
	}
	return dst[:start+len(p)]
}

// appendSegments appends path percent-normalised, with slashes instead of
// backslashes. It cuts the path at backslashes, since none is inside an escape.
func appendSegments(dst, path []byte) []byte {
	for {
		i := bytes.IndexByte(path, '\\')
		if i < 0 {
			return appendNormal(dst, path, inPath)
		}
		dst = append(appendNormal(dst, path[:i], inPath), '/')
		path = path[i+1:]
	}
}

// removeDotSegments removes dot segments from p, which is empty or starts with a
// slash (RFC 3986 §5.2.4). It works in place.
func removeDotSegments(p []byte) []byte {
	if !bytes.Contains(p, []byte("/.")) {
		return p
	}
	out := p[:0]
	for len(p) > 0 {
		end := bytes.IndexByte(p[1:], '/') + 1
		if end == 0 {
			end = len(p)
		}
		segment := p[:end]
		p = p[end:]
		dots := string(segment) == "/." || string(segment) == "/.."
		if !dots {
			out = append(out, segment...)
			continue
		}
		if len(segment) == len("/..") {
			out = out[:max(bytes.LastIndexByte(out, '/'), 0)]
		}
		if len(p) == 0 {
			out = append(out, '/')
		}
	}
	return out
}

// collapseSlashes shortens each run of slashes in p to one slash, in place.
func collapseSlashes(p []byte) []byte {
	if !bytes.Contains(p, []byte("//")) {
		return p
	}
	out := p[:1]
	for _, c := range p[1:] {
		if c != '/' || out[len(out)-1] != '/' {
			out = append(out, c)
		}
	}
	return out
}

// dropTrailingSlash drops one slash at the end of p, unless it is all of p.
func dropTrailingSlash(p []byte) []byte {
	if len(p) > 1 && p[len(p)-1] == '/' {
		return p[:len(p)-1]
	}
	return p
}
