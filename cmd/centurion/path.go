package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/server"
)

func pathCommand(c *cli) *cobra.Command {
	cmd := readCommand(c, "path TASK", "Print where a task works",
		"Print the directory that a task works in, to open it in an editor. A task that has ended works nowhere: then the branch\n"+
			"is told that holds its work, and how to look at it. A task of the latest mission may be named by its item, and a\n"+
			"mission is its Commander's directory.",
		"  code \"$(centurion path T2)\"\n  centurion path tsk_0199…", exactly(1, 1, "a task"),
		func(ctx context.Context, v *view, args []string) error {
			id, err := shownID(ctx, v.API, args[0])
			if err != nil {
				return err
			}
			at, err := whereIs(ctx, v.API, id)
			if err != nil {
				return err
			}
			if v.json() {
				return writeJSON(c.out, at)
			}
			_, err = fmt.Fprintln(c.out, at.Dir)
			return err
		})
	cmd.ValidArgsFunction = complete(c, 1, agentsOf, missions)
	return cmd
}

// standing is where something works, as JSON.
type standing struct {
	ID     string `json:"id"`
	Dir    string `json:"dir"`
	Branch string `json:"branch,omitempty"` // empty if it works in the project's own directory
	Start  string `json:"start,omitempty"`  // the commit that its work stands on
}

// whereIs finds where a task, or the Commander of a mission, works.
func whereIs(ctx context.Context, api server.API, id string) (standing, error) {
	at := standing{ID: id}
	var own *centurion.Checkout
	mission, ended := id, ""
	if strings.HasPrefix(id, string(centurion.PrefixTask)+"_") {
		t, err := api.Task(ctx, id)
		if err != nil {
			return at, err
		}
		own, mission = t.Checkout, t.Mission
		if t.Status.Ended() {
			ended = string(t.Status)
		}
	}
	m, err := api.Mission(ctx, mission)
	if err != nil {
		return at, err
	}
	if mission == id {
		own = m.Checkout
		if m.Status.Ended() {
			ended = string(m.Status)
		}
	}
	switch {
	case m.Isolation != "worktree":
		at.Dir = m.Directory
	case own != nil:
		at.Dir, at.Branch, at.Start = own.Dir, own.Branch, own.Start
	case ended != "":
		return at, &centurion.Error{Op: "path", Kind: centurion.KindConflict, Msg: fmt.Sprintf("%s is %s: its checkout is given back, and what was merged is on the branch %s", id, ended, m.Branch),
			Hint: fmt.Sprintf("look at it with: git log %s; what was not merged: git branch --list 'centurion/%s/*'", m.Branch, m.ID)}
	default:
		return at, &centurion.Error{Op: "path", Kind: centurion.KindConflict, Msg: id + " has written nothing yet and has no checkout",
			Hint: "it gets one when it first writes; until then it reads the branch " + m.Branch}
	}
	return at, nil
}
