package manifest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Difference names the first thing in which a run differs from an earlier one, with both
// values; "": none. What is not known of one of them does not count: before its inputs are
// read a run knows neither their digests nor, of a stream, its size.
func Difference(then, now *Manifest) string {
	a, b := then.settings(), now.settings()
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if a[name] != b[name] {
			return fmt.Sprintf("%s: %s then, %s now", name, cmp.Or(a[name], "null"), cmp.Or(b[name], "null"))
		}
	}
	before := map[Text]*Input{}
	for i := range then.Inputs {
		before[then.Inputs[i].Name] = &then.Inputs[i]
	}
	for i := range now.Inputs {
		in := &now.Inputs[i]
		switch old := before[in.Name]; {
		case old == nil:
			return fmt.Sprintf("input %s: not there then", in.Name)
		case old.differs(in):
			return fmt.Sprintf("input %s: other content, or read in another way", in.Name)
		}
		delete(before, in.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		return fmt.Sprintf("input %s: not there now", name)
	}
	return ""
}

// settings returns all that a run was told, by name, as it stands in the manifest.
func (m *Manifest) settings() map[string]string {
	asOf := "not given"
	if !m.AsOf.IsZero() {
		asOf = m.AsOf.UTC().Format(time.RFC3339Nano)
	}
	s := map[string]string{
		"version": plain(m.Version), "profile": plain(m.Profile), "unicode_version": plain(m.UnicodeVersion),
		"scheme": plain(m.Scheme.Name), "code_length": plain(m.Scheme.CodeLength), "max_retries": plain(m.Scheme.MaxRetries),
		"as_of": asOf,
	}
	for name, v := range m.Scheme.Rest() {
		s[name] = plain(v)
	}
	for name, v := range m.Options {
		s["option "+name] = plain(v)
	}
	return s
}

// differs reports whether an input differs from what it was then in anything that is known
// of both.
func (in Input) differs(now *Input) bool {
	other := *now
	in.Records, other.Records, in.BlankRows, other.BlankRows = 0, 0, 0, 0
	if in.Size == 0 || other.Size == 0 {
		in.Size, other.Size = 0, 0
	}
	if in.Digest() == "" || other.Digest() == "" {
		in.SHA256, in.RecordsSHA256, other.SHA256, other.RecordsSHA256 = "", "", "", ""
	}
	return plain(in) != plain(other)
}

// Digest is that of what was read of the input; "": not known.
func (in *Input) Digest() string { return cmp.Or(in.SHA256, in.RecordsSHA256) }

// plain writes a value as the manifest does.
func plain(v any) string {
	if s, ok := v.(string); ok {
		v = Text(s)
	}
	b, err := marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(b))
}
