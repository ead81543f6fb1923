package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/sink"
)

// checkProfile refuses the run if CheckProfile does. It notes the workspaces whose profile is to
// be set.
func (j *job) checkProfile(ctx context.Context, session sink.Session) (err error) {
	if j.unset = nil; session == nil || len(j.result.Workspaces) == 0 {
		return nil
	}
	j.unset, err = CheckProfile(ctx, session, j.result.Workspaces, j.cfg.Profile)
	return err
}

// CheckProfile returns a UsageError if one of these workspaces, of which there must be one, has
// links of another profile: their URLs would get a second link. Otherwise it returns those that
// have another profile and no links.
func CheckProfile(ctx context.Context, session sink.Session, workspaces []string, profile canon.Profile) (unset []string, err error) {
	plain, ours := canon.Profile{}.Name(), profile.Name()
	set, err := session.Profiles(ctx, workspaces)
	if err != nil {
		return nil, err
	}
	for _, w := range workspaces {
		if cmp.Or(set[w], plain) != ours {
			unset = append(unset, w)
		}
	}
	return unset, refuseLinks(ctx, session, unset, func(w string) (theirs, options string) {
		return "profile " + cmp.Or(set[w], plain), "profile " + ours
	})
}

// refuseLinks returns a UsageError if one of these workspaces has links. Of what they are, and of what
// else the options are, differ says.
func refuseLinks(ctx context.Context, session sink.Session, workspaces []string, differ func(workspace string) (theirs, options string)) error {
	if len(workspaces) == 0 {
		return nil
	}
	populated, err := session.Populated(ctx, workspaces)
	if err != nil {
		return err
	}
	if i := slices.Index(populated, true); i >= 0 {
		theirs, options := differ(workspaces[i])
		return &UsageError{fmt.Errorf("workspace %q has links of %s, and the options are those of %s: use the options of the former, or another workspace",
			workspaces[i], theirs, options)}
	}
	return nil
}
