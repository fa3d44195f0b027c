package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/cli/lookup"
	"centurion/cli/print"
	"centurion/server"
	"centurion/takeover"
	"centurion/text"
	"centurion/tui"
)

const undoHelp = `Revert the changes of a mission or a task. Without an argument it reverts the newest merge or change of your files, or else
the branch of the latest mission that has one. It prints what it chose and asks first on a terminal.

A merged mission: its newest merge is reverted on your branch and in your files. An unmerged mission: its own branch is reset to
its start after a question, and the old tip is kept. A task: a reverting commit is added to its mission's branch, and to yours if
the task was merged. Its item is open again; items that come after it in the plan stay and are named.
Uncommitted changes stay, also in the same files. If they cannot be separated from the reverted changes, nothing is touched and
the exit code is 4. Without git the files are restored to their earlier state; files that have changed since are named, and
--force reverts them too.

Pause a running mission first. --redo restores the latest undo, a merge too: exactly, or on top of your later commits. It
refuses what a merge refuses.`

func undoCommand(c *cli) *cobra.Command {
	var q takeover.UndoRequest
	cmd := projectCommand(c, "undo [MISSION|TASK]", "Revert the changes of a mission or task", undoHelp,
		"  centurion undo\n  centurion undo msn_0199…\n  centurion undo T3\n  centurion undo T3 --redo\n  centurion undo msn_0199… --dry-run",
		exactly(0, 1, "a mission or a task"),
		func(ctx context.Context, v *view, args []string) error {
			id := ""
			if len(args) > 0 {
				var err error
				if id, err = lookup.Work(ctx, v.API, args[0]); err != nil {
					return err
				}
			}
			return v.AsHost(ctx, func(api server.API) error {
				if id != "" {
					return v.undo(ctx, api, id, q)
				}
				return v.undoLatest(ctx, api, q)
			})
		})
	cmd.Flags().BoolVar(&q.DryRun, "dry-run", false, "show what would change, without changing anything")
	cmd.Flags().BoolVar(&q.Drop, "yes", false, "reset the branch of an unmerged mission without asking")
	cmd.Flags().BoolVar(&q.Redo, "redo", false, "restore the latest undo")
	cmd.Flags().BoolVar(&q.Force, "force", false, "without git: also files that have changed since")
	cmd.ValidArgsFunction = complete(c, 1, missions, items)
	return cmd
}

// undoLatest undoes or redoes the latest work of any mission, and says whose it is.
func (v *view) undoLatest(ctx context.Context, api server.API, q takeover.UndoRequest) error {
	what, find := "revert", lookup.Undoable
	if q.Redo {
		what, find = "restore", lookup.Redoable
	}
	m, look, err := find(ctx, api, q)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("mission %s (%s)", m.ID, text.Clean(centurion.Clip(strings.Join(strings.Fields(m.Goal), " "), 60)))
	switch {
	case q.Redo:
	case look.Dropped:
		what = "reset the branch of"
	case m.Merged != nil:
		what += " the merge of"
	}
	live := v.live() && !v.json()
	if !live || q.Drop || q.DryRun || look.Dropped || look.Refused != nil { // otherwise it is asked here, or later
		v.note(what + " " + name)
		return v.undo(ctx, api, m.ID, q)
	}
	if err := tui.Stat(v.out, look.Files, v.showOptions()); err != nil {
		return err
	}
	key, err := v.choose(ctx, what+" "+name+"? (y/N)", "yn", "n")
	if err != nil || key != "y" {
		return err
	}
	return v.undo(ctx, api, m.ID, q)
}

// undo undoes something, asking first if necessary.
func (v *view) undo(ctx context.Context, api server.Person, id string, q takeover.UndoRequest) error {
	live := v.live() && !v.json()
	if live && !q.Drop && !q.DryRun {
		look := q
		look.DryRun = true
		got, err := api.Undo(ctx, id, look)
		if err != nil {
			return err
		}
		if got.Dropped {
			if err := tui.Stat(v.out, got.Files, v.showOptions()); err != nil {
				return err
			}
			key, err := v.choose(ctx, "nothing of mission "+got.Mission+" is on your branch; reset its own branch to its start? (y/N)", "yn", "n")
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
		v.printRefusal(got.Refused)
	}
	if v.json() {
		return writeJSON(v.out, got)
	}
	return print.Undo(v.out, got, v.showOptions())
}
