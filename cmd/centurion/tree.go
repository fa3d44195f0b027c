package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/cli/lookup"
	"centurion/cli/print"
	"centurion/server"
	"centurion/tui"
)

const forkHelp = `Copy a conversation, up to a message of it, into a new mission with the same goal, agent and model.

SESSION is the id or address of a session (0/ is the latest mission's Commander), or the id of a mission or task, for its
session. The copy is paused: continue it with ` + "`centurion resume MISSION`" + `, after a message with ` + "`centurion send MISSION TEXT`" + ` if you like.
The original is not affected. Both work on the same files; the plan is copied. The cost of copied messages is not counted
again.`

func forkCommand(c *cli) *cobra.Command {
	at := ""
	cmd := projectCommand(c, "fork SESSION", "Copy a conversation into a new mission", forkHelp,
		"  centurion fork 0/\n  centurion fork ses_0199… --at msg_0199…\n  centurion fork msn_0199… --at -4", exactly(1, 1, "one session"),
		on(lookup.Conversation, func(ctx context.Context, v *view, id string) error {
			return v.AsHost(ctx, func(api server.API) error {
				got, err := api.Fork(ctx, id, at)
				if err != nil {
					return err
				}
				return c.printResult(v.format, got, fmt.Sprintf("copied %s of %s into mission %s, which is paused\nundo: centurion cancel %s\ncontinue it: centurion resume %s",
					centurion.Count(got.Messages, "message"), got.From.Session, got.Mission, got.Mission, got.Mission))
			})
		}))
	cmd.Flags().StringVar(&at, "at", "", "last message to copy: id, mark, or -N (default: the newest)")
	cmd.ValidArgsFunction = complete(c, 1, conversations)
	completeFlag(cmd, "at", complete(c, 2, points))
	return cmd
}

const rewindHelp = `Rewind a conversation to an older message, or to one of another branch.

SESSION is the id or address of a session (0/ is the latest mission's Commander), or the id of a mission or task, for its
session. Nothing is deleted: later messages stay as a branch under a mark, which is printed; rewind to that mark to undo
it. Files, the plan and tasks do not change. A mission that had ended is paused; continue it with ` + "`centurion resume`" + `.

--mark names the current message. Without --to it only sets the mark.`

func rewindCommand(c *cli) *cobra.Command {
	var r server.Rewind
	cmd := projectCommand(c, "rewind SESSION", "Rewind a conversation to an older message", rewindHelp,
		"  centurion rewind 0/ --to -2\n  centurion rewind 0/ --mark before-the-refactoring\n  centurion rewind 0/ --to before-the-refactoring\n"+
			"  centurion rewind ses_0199… --to msg_0199…", exactly(1, 1, "one session"),
		on(lookup.Conversation, func(ctx context.Context, v *view, id string) error {
			return v.AsHost(ctx, func(api server.API) error {
				got, err := api.Rewind(ctx, id, r)
				if err != nil {
					return err
				}
				return c.printResult(v.format, got, print.Rewound(got, r))
			})
		}))
	cmd.Flags().StringVar(&r.To, "to", "", "target: message id, mark, or -N for N messages back")
	cmd.Flags().StringVar(&r.Mark, "mark", "", "name for the current message")
	cmd.ValidArgsFunction = complete(c, 1, conversations)
	completeFlag(cmd, "to", complete(c, 2, points))
	return cmd
}

// showTree is `centurion show --tree`.
func (v *view) showTree(ctx context.Context, id string) error {
	session, err := lookup.Conversation(ctx, v.API, id)
	if err != nil {
		return err
	}
	t, err := v.API.Tree(ctx, session)
	if err != nil {
		return err
	}
	if v.json() {
		return writeJSON(v.out, t)
	}
	return tui.Tree(v.out, tui.Branches{Session: t.Session, Messages: lookup.Messages(t.Messages), Leaf: t.Leaf}, v.showOptions())
}
