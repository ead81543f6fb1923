package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/sink"
)

// checkProfile refuses the run if a workspace has links of another profile: their URLs would
// get a second link. It notes the workspaces that have no links and another profile.
func (j *job) checkProfile(ctx context.Context, session sink.Session) error {
	if j.unset = nil; session == nil || len(j.result.Workspaces) == 0 {
		return nil
	}
	plain, ours := canon.Profile{}.Name(), j.cfg.Profile.Name()
	set, err := session.Profiles(ctx, j.result.Workspaces)
	switch {
	case errors.Is(err, sink.ErrOldTables) && ours == plain:
		return nil
	case errors.Is(err, sink.ErrOldTables):
		return &UsageError{fmt.Errorf("the store cannot have links of profile %s: %w", ours, err)}
	case err != nil:
		return err
	}
	var others []string
	for _, w := range j.result.Workspaces {
		if cmp.Or(set[w], plain) != ours {
			others = append(others, w)
		}
	}
	if len(others) == 0 {
		return nil
	}
	populated, err := session.Populated(ctx, others)
	if err != nil {
		return err
	}
	for i, w := range others {
		if populated[i] {
			return &UsageError{fmt.Errorf("workspace %q has links of profile %s, and this run has profile %s: use the options of that profile, or another workspace",
				w, cmp.Or(set[w], plain), ours)}
		}
	}
	j.unset = others
	return nil
}
