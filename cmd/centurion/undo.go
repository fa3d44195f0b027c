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
	cmd.Flags().BoolVar(&q.DryRun, "dry-run", false, "show what would change, and change nothing")
	cmd.Flags().BoolVar(&q.Drop, "yes", false, "do not ask before the branch of a mission that was not merged is taken back")
	cmd.Flags().BoolVar(&q.Redo, "redo", false, "bring back what was taken back")
	cmd.Flags().BoolVar(&q.Force, "force", false, "without git: also files that somebody has changed since")
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
	if !live || q.Drop || q.DryRun || look.Dropped || look.Refused != nil { // else it is asked for here, or further on
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

// undo takes something back, after a question where that is due.
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
