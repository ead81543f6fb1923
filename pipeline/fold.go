package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/sink"
)

// errOtherFold: the workspaces of the rows fold case, which the job knows now. They are to be read once
// more.
var errOtherFold = errors.New("the workspace folds case")

// askFold asks the store, before the rows are read, whether their workspace folds case, and then reports
// true. If each row may have another one, it reports false.
func (j *job) askFold(ctx context.Context, inputs *intake.Inputs) (asked bool, err error) {
	if j.cfg.Workspace == "" || j.cfg.Domains == legacy.DomainsKeep || slices.ContainsFunc(inputs.List, func(in *intake.Input) bool { return in.Workspace >= 0 }) {
		return false, nil
	}
	j.cfg.Scheme.Fold, err = j.folds(ctx, []string{j.cfg.Workspace})
	return true, err
}

// folds reports whether workspaces fold case: all of them do, or the run was told so.
func (j *job) folds(ctx context.Context, workspaces []string) (folds bool, err error) {
	if j.toldFold || !j.cfg.Scheme.mayFold() || j.cfg.Store == nil || len(workspaces) == 0 {
		return j.toldFold, nil
	}
	err = retry(ctx, j.cfg, &j.meter, func(ctx context.Context) (err error) {
		folds, err = Folds(ctx, j.cfg.Store, workspaces...)
		return err
	})
	return folds, err
}

// Folds reports whether workspaces of a store, of which there must be one, all fold case. One of which
// there is nothing yet, or whose store does not know of such workspaces, does not.
func Folds(ctx context.Context, store sink.Store, workspaces ...string) (folds bool, err error) {
	session, err := store.Peek(ctx)
	if errors.Is(err, sink.ErrMissing) || errors.Is(err, sink.ErrOldTables) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	set, err := session.Schemes(ctx, workspaces)
	return !slices.ContainsFunc(workspaces, func(w string) bool { return !set[w].Fold }), err
}

// readRows reads the rows, as the store says that their workspaces have codes. The caller closes them,
// also with an error, which is errOtherFold if they are to be read once more.
func (j *job) readRows(ctx context.Context, inputs *intake.Inputs) error {
	j.rows = nil
	if j.again { // it was found out when they were read before
		return j.read(ctx, inputs)
	}
	asked, err := j.askFold(ctx, inputs)
	if err != nil {
		return err
	}
	if err := j.read(ctx, inputs); err != nil || asked {
		return err
	}
	before := j.cfg.Scheme.Fold // which workspaces there are does not depend on it
	if j.cfg.Scheme.Fold, err = j.folds(ctx, j.result.Workspaces); err == nil && j.cfg.Scheme.Fold != before {
		err = errOtherFold
	}
	return err
}

// checkFold refuses a run over workspaces of which only some fold case, and one that was told to fold
// case in a workspace that has links and does not. It returns errOtherFold if the rows were read in the
// other way. The schemes are those that the store has of the workspaces.
func (j *job) checkFold(ctx context.Context, session sink.Session, set map[string]sink.Scheme) error {
	var folding, plain []string
	for _, w := range j.result.Workspaces {
		if set[w].Fold {
			folding = append(folding, w)
		} else {
			plain = append(plain, w)
		}
	}
	if j.toldFold && len(plain) > 0 { // those that have no links will fold case
		populated, err := session.Populated(ctx, plain)
		if err != nil {
			return err
		}
		n := 0
		plain = slices.DeleteFunc(plain, func(string) bool { n++; return !populated[n-1] })
	}
	switch {
	case len(folding) > 0 && len(plain) > 0:
		return &UsageError{fmt.Errorf("workspace %q folds case and workspace %q does not: one run cannot have both; with Config.Scheme.Fold those without links fold case, too", folding[0], plain[0])}
	case j.toldFold && len(plain) > 0:
		return &UsageError{fmt.Errorf("Config.Scheme.Fold: workspace %q has links and does not fold case; only the run that makes the first links of a workspace decides that", plain[0])}
	}
	fold := j.toldFold || len(folding) > 0 && j.cfg.Scheme.mayFold() // or checkSchemes refuses it
	if fold != j.cfg.Scheme.Fold {
		j.cfg.Scheme.Fold = fold
		return errOtherFold
	}
	return nil
}

// foldUnknown is the error of rows that are to be read once more, of an input that cannot.
func (j *job) foldUnknown(input string) error {
	return &UsageError{fmt.Errorf("workspace %q folds case, which was found when the rows had been read, and %s cannot be read again: add Config.Scheme.Fold", j.result.Workspaces[0], input)}
}
