package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"centurion/orchestrator"
)

const compactHelp = `Shorten a conversation before its next request: the older part of it is replaced by a summary, which the model is asked for.
Nothing is deleted; centurion show tells the whole of it.

ADDRESS is 0/ for the Commander, 0/3 for its fourth child, an item of the plan such as T2, or the id of a session, task or
mission (default: the Commander of the latest mission). The message /compact does the same: centurion send 0/ /compact, or m in
the live view. In a mission that has stopped it is done when it is resumed, in a complete run of the profile assistant when it is written
to. Where nothing can be shortened, nothing happens.`

func compactCommand(c *cli) *cobra.Command {
	f, p := &readFlags{}, orchestrator.Post{Text: orchestrator.CompactWord}
	cmd := &cobra.Command{Use: "compact [ADDRESS]", Short: "Shorten a conversation", Long: compactHelp,
		Example: "  centurion compact\n  centurion compact 0/3\n  centurion compact T2 --mission msn_0199…",
		Args:    exactly(0, 1, "at most one address"), ValidArgsFunction: complete(c, 1, agentsOf),
		RunE: func(cmd *cobra.Command, args []string) error {
			if p.To = first(args); p.To == "" {
				err := c.open(cmd.Context(), f, func(v *view) error {
					m, err := v.API.Mission(cmd.Context(), p.Mission)
					p.To = m.ID
					return err
				})
				if err != nil {
					return err
				}
			}
			return c.send(cmd.Context(), f, p)
		}}
	f.bind(cmd)
	cmd.Flags().StringVar(&p.Mission, "mission", "", "where the address is looked for (default: the latest mission)")
	return cmd
}

// compacts says what becomes of a wish for a shorter history.
func compacts(got orchestrator.Posted, who string) string {
	switch {
	case got.Short:
		return fmt.Sprintf("nothing to shorten: the conversation of %s is short", who)
	case !got.Working && got.Status.Ended():
		return fmt.Sprintf("the conversation of %s will be shortened with its next request: when you write to it with centurion send --wait %s \"TEXT\"", who, got.Mission)
	case !got.Working:
		return fmt.Sprintf("the conversation of %s will be shortened with its next request, when mission %s goes on: centurion resume %s", who, got.Mission, got.Mission)
	}
	return fmt.Sprintf("the conversation of %s will be shortened before its next request; if it is idle, that is when you send it a message", who)
}
