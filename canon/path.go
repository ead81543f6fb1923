package canon

import "bytes"

// appendPath appends the canonical form of a path, which is empty or starts
// with a slash or backslash. The rules after the first work on what the one
// before them has written, in place.
func appendPath(dst, path []byte) []byte {
	start := len(dst)
	dst = appendSegments(dst, path)
	p := dropTrailingSlash(collapseSlashes(removeDotSegments(dst[start:])))
	if len(p) == 0 {
		return append(dst[:start], '/')
	}
	return dst[:start+len(p)]
}

// appendSegments appends path percent-normalised, with every backslash turned
// into a slash. No escape can reach over a backslash.
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

// removeDotSegments shortens p, which is empty or starts with a slash, by the
// rule of RFC 3986 §5.2.4.
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

// collapseSlashes shortens each run of slashes in p to one.
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
