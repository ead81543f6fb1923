package pipeline

import (
	"context"
	"slices"

	"github.com/linkforge/bulk/sink"
)

// checkRules finds out whether rows are held against their links, and which workspaces are to be told
// to the store as having links with link rules.
func (j *job) checkRules(ctx context.Context, session sink.Session) error {
	j.ruled, j.unruled = j.cfg.Rules != nil, nil
	flagged := map[string]bool{}
	if session != nil && len(j.result.Workspaces) > 0 {
		var err error
		if flagged, err = session.Rules(ctx, j.result.Workspaces); err != nil {
			return err
		}
	}
	for _, has := range flagged {
		j.ruled = j.ruled || has
	}
	for id := range j.rows.Ruled {
		if name := string(j.rows.Workspaces.Name(id)); !flagged[name] {
			j.unruled = append(j.unruled, name)
		}
	}
	slices.Sort(j.unruled)
	return nil
}
