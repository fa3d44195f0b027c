package lookup

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"centurion"
	"centurion/server"
	"centurion/takeover"
)

// Undoable finds the mission whose work reached the person's branch or files last, else the latest with work on its own branch. A
// running mission is not skipped: its error says how to stop it.
func Undoable(ctx context.Context, api server.API, q takeover.UndoRequest) (m server.Mission, look takeover.UndoReport, err error) {
	looks, err := undoLooks(ctx, api, q, func(a, b server.Mission) int {
		return cmp.Or(reached(b).Compare(reached(a).Time), b.Started.Compare(a.Started.Time))
	})
	if err != nil {
		return m, look, err
	}
	var failed []error
	for l := range looks {
		if l.err == nil || l.Status.Alive() || centurion.KindOf(l.err) != centurion.KindConflict {
			return l.Mission, l.report, l.err
		}
		failed = append(failed, l.err)
	}
	return m, look, noneToUndo("no mission here has changes to revert", failed)
}

// reached returns when a mission's work last reached the person's branch or files; zero if it has not.
func reached(m server.Mission) centurion.Time {
	switch {
	case m.Merged != nil:
		return m.Merged.Time
	case m.Isolation == centurion.IsolationShared:
		return m.Updated
	}
	return centurion.Time{}
}

// Redoable finds the mission with the latest undo that has not been redone. Running missions are skipped.
func Redoable(ctx context.Context, api server.API, q takeover.UndoRequest) (m server.Mission, look takeover.UndoReport, err error) {
	looks, err := undoLooks(ctx, api, q, func(a, b server.Mission) int { return b.Started.Compare(a.Started.Time) })
	if err != nil {
		return m, look, err
	}
	var failed []error
	for l := range looks {
		switch {
		case l.err != nil && centurion.KindOf(l.err) != centurion.KindConflict:
			return m, look, l.err
		case l.err != nil:
			failed = append(failed, l.err)
		case m.ID == "" || l.report.Undone.After(look.Undone.Time):
			m, look = l.Mission, l.report
		}
	}
	if m.ID != "" {
		return m, look, nil
	}
	return m, look, noneToUndo("no mission here has a reverted change", failed)
}

// undoLook is what an undo of a mission would do, or why it cannot.
type undoLook struct {
	server.Mission
	report takeover.UndoReport
	err    error
}

// undoLooks tries one mission after the other, in the given order.
func undoLooks(ctx context.Context, api server.API, q takeover.UndoRequest, order func(a, b server.Mission) int) (iter.Seq[undoLook], error) {
	all, err := api.Missions(ctx)
	slices.SortStableFunc(all, order)
	q.DryRun = true
	return func(yield func(undoLook) bool) {
		for _, m := range all {
			report, err := api.Undo(ctx, m.ID, q)
			if !yield(undoLook{m, report, err}) {
				return
			}
		}
	}, err
}

// noneToUndo returns the error if no mission fits. A single mission's own error says more.
func noneToUndo(msg string, failed []error) error {
	if len(failed) == 1 {
		return failed[0]
	}
	e := &centurion.Error{Kind: centurion.KindConflict, Msg: msg, Hint: "see: centurion ps"}
	if len(failed) > 0 {
		e.Err = failed[0]
	}
	return e
}
