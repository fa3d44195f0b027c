package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/server"
	"centurion/takeover"
	"centurion/tui"
)

// workID returns the id of the mission or task that a person means, and the latest mission's for "". Of several tasks of an
// item the newest is meant that has changed something.
func workID(ctx context.Context, api server.API, typed string) (string, error) {
	if typed == "" {
		m, err := api.Mission(ctx, "")
		return m.ID, err
	}
	id, err := idOf(ctx, api, typed)
	if err != nil || strings.Contains(typed, "_") {
		return id, err
	}
	if strings.HasPrefix(id, string(centurion.PrefixSession)+"_") {
		s, err := api.Session(ctx, id)
		if err != nil {
			return "", err
		}
		if s.Metadata.Task != "" {
			return s.Metadata.Task, nil
		}
		return s.Metadata.Mission, nil
	}
	m, err := api.Mission(ctx, "")
	if err != nil {
		return id, nil
	}
	tasks, err := api.Tasks(ctx, m.ID)
	for _, t := range slices.Backward(tasks) {
		if strings.EqualFold(t.Item, typed) && (len(t.Landed) > 0 || t.Checkout != nil) {
			return t.ID, err
		}
	}
	return id, err
}

// refused says why nothing was touched, and what to do. A person has to act: the exit code says so.
func (c *cli) refused(r *takeover.Refusal) {
	c.code = exitBlocked
	fmt.Fprintf(c.err, "centurion: nothing was changed: %s\nnext: %s\n", oneLine(r.Why), oneLine(r.Next))
}

// undoLine tells a person how to take back what they have just done.
func (c *cli) undoLine(command string) {
	if command != "" {
		fmt.Fprintf(c.err, "undo: %s\n", command)
	}
}

// where says where a person's work stands.
func where(branch string) string {
	if branch == "" {
		return "the detached HEAD"
	}
	return branch
}

// commitName is a commit as people read it.
func commitName(id string) string {
	if id == "" {
		return "nothing"
	}
	return id[:min(len(id), 10)]
}

// completeWork completes missions, and the tasks and items of the latest one.
func (c *cli) completeWork(tasks bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, _ := c.completeMission(cmd, args, typed)
		if tasks {
			found = append(found, c.completeItems(cmd, "", typed)...)
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeItems completes the items, and the ids of the tasks, of a mission.
func (c *cli) completeItems(cmd *cobra.Command, mission, typed string) (found []cobra.Completion) {
	f := &readFlags{dir: cmd.Flag("dir").Value.String(), format: "text"}
	// Where nothing can be read there is nothing to complete; the command itself says why.
	_ = c.with(cmd.Context(), f, func(api server.API) error {
		all, err := api.Tasks(cmd.Context(), mission)
		for _, t := range all {
			for _, name := range []string{t.Item, t.ID} {
				if name != "" && strings.HasPrefix(name, typed) && !slices.ContainsFunc(found, func(s string) bool { return strings.HasPrefix(s, name+"\t") }) {
					found = append(found, cobra.CompletionWithDesc(name, tui.Clean(string(t.Status)+": "+t.Title)))
				}
			}
		}
		return err
	})
	return found
}
