package explain

import (
	"time"

	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// A Life is what a link has beyond its URL. The names in JSON are those of columns of the store, and
// live.
type Life struct {
	Expires    *time.Time `json:"expires_at,omitempty"`
	MaxUses    *int64     `json:"max_uses,omitempty"`
	Uses       int64      `json:"access_count,omitempty"`
	Type       string     `json:"link_type,omitempty"`
	Owner      string     `json:"owner_id,omitempty"`
	Ref        string     `json:"ref,omitempty"`
	Status     string     `json:"status,omitempty"`
	Marked     *time.Time `json:"marked_at,omitempty"`
	Change     string     `json:"change,omitempty"` // the last one
	ChangedRun int32      `json:"changed_run,omitempty"`
	Live       bool       `json:"live"` // at Rules.Terms.AsOf
}

// lifeOf describes what a link has; nil: it has nothing.
func (r *Rules) lifeOf(l *sink.Rules) *Life {
	life := Life{Uses: l.Uses, Type: string(l.Type), Owner: string(l.Owner), Ref: string(l.Ref), Status: l.Status, Change: l.Change, ChangedRun: l.ChangedRun}
	if at := l.Expires; !at.IsZero() {
		life.Expires = &at
	}
	if at := l.Marked; !at.IsZero() {
		life.Marked = &at
	}
	if most := max(l.MaxUses, 0); l.MaxUses != 0 { // -1: the stored value is 0
		life.MaxUses = &most
	}
	if life == (Life{}) {
		return nil
	}
	stored := linkOfRules(l)
	life.Live = stored.Live(r.Terms.AsOf)
	return &life
}

// judge fills in what a run would do with the existing link.
func (r *Rules) judge(s *Standing, l *sink.Rules) {
	j := rules.Judge{Terms: r.Terms}
	j.Begin(&rules.Stored{Link: linkOfRules(l)})
	j.See(&r.Params)
	verdict := j.Verdict()
	result := verdict.Row(r.Terms, 0, &r.Params)
	s.Change, s.Differs = result.Change.String(), result.Differs.String()
	if result.Reason != rules.Accepted {
		s.Outcome = result.Reason.String()
	}
}

// linkOfRules is a link of a store as package rules knows it.
func linkOfRules(l *sink.Rules) rules.Link {
	link := rules.Link{Limit: l.MaxUses, Uses: l.Uses, Type: rules.TypeOf(string(l.Type)), Owner: l.Owner, Status: rules.StatusOf(l.Status)}
	if !l.Expires.IsZero() {
		link.Expiry = rules.Expiry{When: rules.At, Seconds: l.Expires.Unix()}
	}
	return link
}

// Accepted reports whether a run would accept the URL.
func (s *Standing) Accepted() bool {
	return s.Outcome == outcome.Created.String() || s.Outcome == outcome.Existing.String()
}
