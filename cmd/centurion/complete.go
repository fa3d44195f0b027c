package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/server"
	"centurion/tui"
)

// completeValues completes the values of a flag that takes one of a few. The flag must have been bound.
func completeValues(cmd *cobra.Command, flag string, values ...cobra.Completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(fmt.Sprintf("flag %s of %s: %v", flag, cmd.Name(), err)) // whoever calls this has bound it
	}
}

// completeID completes what a session can be named by, and with missions the ids of those, too.
func (c *cli) completeID(missions bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		found, directive := c.completeAddress(cmd, args, typed)
		if !missions || len(args) > 0 {
			return found, directive
		}
		all, _ := c.completeMission(cmd, args, typed)
		return append(found, all...), directive
	}
}

// completeMission completes the ids of missions, newest first.
func (c *cli) completeMission(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.missionsThat(cmd, args, typed, func(server.Mission) bool { return true })
}

// completeResumable completes the ids of missions of which something is left to resume, newest first.
func (c *cli) completeResumable(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.missionsThat(cmd, args, typed, func(m server.Mission) bool { return !m.Status.Ended() })
}

func (c *cli) missionsThat(cmd *cobra.Command, args []string, typed string, fit func(server.Mission) bool) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []cobra.Completion
	f := &readFlags{dir: cmd.Flag("dir").Value.String(), format: "text"}
	// Where nothing can be read there is nothing to complete; the command itself says why.
	_ = c.with(cmd.Context(), f, func(api server.API) error {
		all, err := api.Missions(cmd.Context())
		for _, m := range all {
			if fit(m) && strings.HasPrefix(m.ID, typed) {
				found = append(found, cobra.CompletionWithDesc(m.ID, tui.Clean(string(m.Status)+": "+centurion.Clip(m.Goal, 60))))
			}
		}
		return err
	})
	return found, cobra.ShellCompDirectiveNoFileComp
}
