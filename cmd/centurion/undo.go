package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/server"
	"centurion/takeover"
	"centurion/tui"
)

const undoHelp = `Take back what a mission or a task has changed. Alone it takes back what came to your branch or your files last; if nothing of any
mission is there, the branch of the latest mission that has one. It says which, and asks first on a terminal.

Of a mission that was merged, the newest merge is taken back from your branch and your files. Of one that was not, nothing is
on your branch; its own branch is taken back to where it began, if you say so, and what stood there is kept. Of a task a
commit that reverts its work is added to its mission's branch, and to yours where it was merged, and its item is open again; items
that come after it in the plan stay, and are named.
What you have not committed stays, also in the same files; where it does not come apart from what is taken back nothing is
touched and the exit code is 4. Without git
the files are brought back as they were; those that somebody has changed since are named, and --force takes them, too.

A mission that is being worked on has to be paused first. --redo brings back what the latest undo has taken back, a merge too: as it
was, or, if you have committed something since, on top of that. It refuses what a merge refuses.`

func undoCommand(c *cli) *cobra.Command {
	var q takeover.UndoRequest
	cmd := projectCommand(c, "undo [MISSION|TASK]", "Take back what a mission or task changed", undoHelp,
		"  centurion undo\n  centurion undo msn_0199…\n  centurion undo T3\n  centurion undo T3 --redo\n  centurion undo msn_0199… --dry-run",
		exactly(0, 1, "a mission or a task"),
		func(ctx context.Context, v *view, args []string) error {
			id := ""
			if len(args) > 0 {
				var err error
				if id, err = workID(ctx, v.API, args[0]); err != nil {
					return err
				}
			}
			return v.AsHost(ctx, func(api server.API) error {
				if id != "" {
					return c.undo(ctx, api, v.format, id, q)
				}
				return c.undoLatest(ctx, api, v.format, q)
			})
		})
	cmd.Flags().BoolVar(&q.DryRun, "dry-run", false, "show what would change, and change nothing")
	cmd.Flags().BoolVar(&q.Drop, "yes", false, "do not ask before the branch of a mission that was not merged is taken back")
	cmd.Flags().BoolVar(&q.Redo, "redo", false, "bring back what was taken back")
	cmd.Flags().BoolVar(&q.Force, "force", false, "without git: also files that somebody has changed since")
	cmd.ValidArgsFunction = complete(c, 1, missions, items)
	return cmd
}

// undoLatest takes back, or brings back, the work of the latest mission of which there is any, and says which it is.
func (c *cli) undoLatest(ctx context.Context, api server.API, format string, q takeover.UndoRequest) error {
	what, find := "take back", undoable
	if q.Redo {
		what, find = "bring back", redoable
	}
	m, look, err := find(ctx, api, q)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("mission %s (%s)", m.ID, tui.Clean(centurion.Clip(strings.Join(strings.Fields(m.Goal), " "), 60)))
	switch {
	case q.Redo:
	case look.Dropped:
		what += " the branch of"
	case m.Merged != nil:
		what += " the merge of"
	}
	live := tui.CanLive(c.in, c.out, c.env) && format != "json"
	if !live || q.Drop || q.DryRun || look.Dropped || look.Refused != nil { // else it is asked for here, or further on
		c.note(what + " " + name)
		return c.undo(ctx, api, format, m.ID, q)
	}
	if err := tui.Stat(c.out, look.Files, c.showOptions()); err != nil {
		return err
	}
	key, err := tui.Choose(ctx, tui.Choice{Text: what + " " + name + "? (y/N)", Keys: "yn", Default: "n", In: c.in, Out: c.out, Env: c.env})
	if err != nil || key != "y" {
		return err
	}
	return c.undo(ctx, api, format, m.ID, q)
}

// undoable finds the mission whose work came last to the person's branch or files, and if there is none the latest with work on a branch of
// its own. One that is being worked on is not passed over: its error says how it is stopped.
func undoable(ctx context.Context, api server.API, q takeover.UndoRequest) (m server.Mission, look takeover.UndoReport, err error) {
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
	return m, look, noneToUndo("no mission here has changed anything that could be taken back", failed)
}

// reached is when work of a mission came to the person's branch or files last; zero if nothing has.
func reached(m server.Mission) centurion.Time {
	switch {
	case m.Merged != nil:
		return m.Merged.Time
	case m.Isolation == centurion.IsolationShared:
		return m.Updated
	}
	return centurion.Time{}
}

// redoable finds the mission of which something was taken back last, and is not back yet. One that is being worked on is passed over.
func redoable(ctx context.Context, api server.API, q takeover.UndoRequest) (m server.Mission, look takeover.UndoReport, err error) {
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
	return m, look, noneToUndo("nothing of any mission here is taken back", failed)
}

// undoLook is what an undo of a mission would do, or why it could not.
type undoLook struct {
	server.Mission
	report takeover.UndoReport
	err    error
}

// undoLooks looks at one mission after the other, in an order.
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

// noneToUndo says that no mission is what was looked for. Of a single one its own error says more.
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

// undo takes something back, after a question where that is due.
func (c *cli) undo(ctx context.Context, api server.Person, format, id string, q takeover.UndoRequest) error {
	live := tui.CanLive(c.in, c.out, c.env) && format != "json"
	if live && !q.Drop && !q.DryRun {
		look := q
		look.DryRun = true
		got, err := api.Undo(ctx, id, look)
		if err != nil {
			return err
		}
		if got.Dropped {
			if err := tui.Stat(c.out, got.Files, c.showOptions()); err != nil {
				return err
			}
			key, err := tui.Choose(ctx, tui.Choice{Text: "nothing of mission " + got.Mission + " is on your branch; take its own branch back to where it began? (y/N)",
				Keys: "yn", Default: "n", In: c.in, Out: c.out, Env: c.env})
			if err != nil || key != "y" {
				return err
			}
			q.Drop = true
		}
	}
	got, err := api.Undo(ctx, id, q)
	if err != nil {
		return err
	}
	if got.Refused != nil {
		c.refused(got.Refused)
	}
	if format == "json" {
		return writeJSON(c.out, got)
	}
	return c.printUndo(got)
}

func (c *cli) printUndo(got takeover.UndoReport) error {
	if got.Refused != nil && got.After == "" {
		return nil
	}
	if err := tui.Stat(c.out, got.Files, c.showOptions()); err != nil {
		return err
	}
	word := "an undo"
	if got.Redo {
		word = "undo --redo"
	}
	if got.DryRun {
		return c.say(nil, strings.Join(append(laterLines(got), "nothing was changed: this is what "+word+" would do"), "\n"))
	}
	what, how := "mission "+got.Mission, "taken back"
	if got.Task != "" {
		what = "task " + got.Task
		if got.Item != "" {
			what = got.Item
		}
	}
	if got.Redo {
		how = "brought back"
	}
	lines := []string{what + " is " + how + undoPlace(got)}
	if got.Kept != "" {
		lines = append(lines, "what stood on its branch is kept as "+got.Kept)
	}
	if len(got.Open) > 0 {
		lines = append(lines, fmt.Sprintf("open again in the plan: %s", tui.Clean(strings.Join(got.Open, ", "))))
	}
	lines = append(lines, laterLines(got)...)
	if got.Back != "" {
		lines = append(lines, "undo: "+got.Back)
	}
	return c.say(nil, strings.Join(lines, "\n"))
}

// laterLines names the items that were built after what is taken back, and stay.
func laterLines(got takeover.UndoReport) []string {
	n := len(got.Later)
	if n == 0 {
		return nil
	}
	names, comes, whether := tui.Clean(strings.Join(got.Later, ", ")), "comes after %s in the plan and stays", "it still works, or take it"
	if n > 1 {
		comes, whether = "come after %s in the plan and stay", "they still work, or take them"
	}
	return []string{fmt.Sprintf("%s "+comes+": see whether %s back, too: centurion undo %s", names, tui.Clean(got.Item), whether, tui.Clean(got.Later[n-1]))}
}

// undoPlace says where something was taken back.
func undoPlace(got takeover.UndoReport) string {
	switch {
	case got.Person && got.After != "":
		return fmt.Sprintf(" on %s: %s → %s", tui.Clean(where(got.Branch)), commitName(got.Before), commitName(got.After))
	case got.After != "":
		return fmt.Sprintf(" on its mission's branch: %s → %s; nothing of it was on yours", commitName(got.Before), commitName(got.After))
	}
	return ": " + centurion.Count(len(got.Files), "file")
}
