package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
)

// thatKind says of a link of each kind what it is.
var thatKind = [hygiene.KindCount]string{
	hygiene.Pattern:   "is a regular expression",
	hygiene.Protected: "has a password",
	hygiene.Inactive:  "is archived, banned, disabled or deleted",
	hygiene.Expired:   "has expired",
	hygiene.Targeted:  "has targets by country or device",
	hygiene.Loop:      "leads to itself",
	hygiene.Chain:     "leads to another short link",
	hygiene.Secret:    "has a secret in its URL",
}

// migrationLines says what the links of the rows were beyond code and URL. Rejects are told elsewhere.
func migrationLines(o *runOptions, m *manifest.Migration) (say []string) {
	if m == nil {
		return nil
	}
	if d := m.Domains; d != nil && (len(d.Rows) > 1 || d.More) && o.Domains != legacy.DomainsKeep {
		text := "codes of several domains share a workspace: " + domains(d)
		if o.Domains == legacy.DomainsOff {
			text += "; --domains keep makes a workspace of each"
		}
		say = append(say, text)
	}
	for kind := range hygiene.Kind(hygiene.KindCount) {
		h := m.Hygiene[kind.String()]
		if h.Example == nil {
			continue
		}
		say = append(say, fmt.Sprintf("%s with a link that %s (%s=%s), for example %s (%s, row %d)",
			count(h.Rows, "row"), thatKind[kind], kind, h.Decision, h.Example.URL, h.Example.Source, h.Example.Row))
	}
	if n := m.NoTime; n != nil {
		say = append(say, fmt.Sprintf("%s whose creation time cannot be read, for example %q (%s, row %d): these links have the time of the run",
			count(n.Rows, "row"), n.Text, n.Source, n.Row))
	}
	if n := m.NoExpiry; n != nil {
		say = append(say, fmt.Sprintf("%s whose expiry cannot be read, for example %q (%s, row %d): they count as links that have not expired",
			count(n.Rows, "row"), n.Text, n.Source, n.Row))
	}
	return say
}

// migrationAttrs is migrationLines for a log line.
func migrationAttrs(m *manifest.Migration) (attrs []any) {
	if m == nil {
		return nil
	}
	if d := m.Domains; d != nil {
		attrs = append(attrs, "domains", d.Count)
	}
	for _, kind := range slices.Sorted(maps.Keys(m.Hygiene)) {
		attrs = append(attrs, kind, m.Hygiene[kind].Rows)
	}
	if m.NoTime != nil {
		attrs = append(attrs, "no_time", m.NoTime.Rows)
	}
	if m.NoExpiry != nil {
		attrs = append(attrs, "no_expiry", m.NoExpiry.Rows)
	}
	return attrs
}

// domains lists the domains with the most rows.
func domains(d *manifest.Domains) string {
	const most = 5
	if d.More {
		return "more than " + thousands(d.Count)
	}
	rows := maps.Clone(d.Rows)
	if n := rows[""]; n > 0 {
		delete(rows, "")
		rows["none"] = n
	}
	list := strings.SplitN(ways(rows), ", ", most+1)
	if len(list) > most {
		list[most] = "…"
	}
	return strings.Join(list, ", ")
}

// redacted is a text from the input as a terminal or a log may show it: without secrets.
func redacted(text manifest.Text) string { return hygiene.Redact(string(text)) }
