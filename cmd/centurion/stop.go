package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/cli/lookup"
	"centurion/server"
)

const abortHelp = `End the turn of an agent, not its session: its request and its tool calls end with their processes.

ID is a session, a task, a mission (its Commander), an item of the plan such as T2, or an address such as 0/3. Unread
messages to the agent are answered next. Otherwise the Commander is idle until you write to it or resume the mission; without
a terminal (--ask deny or allow) the mission pauses once none of its tasks is running, and "run" exits with 3. A task is
cancelled.`

func abortCommand(c *cli) *cobra.Command {
	return endingCommand(c, "abort ID", "End an agent's turn, not its session", abortHelp,
		"  centurion abort 0/\n  centurion abort T2 --reason \"wrong file\"", stopAction{
			do: func(ctx context.Context, api server.API, id, reason string) error { return api.Abort(ctx, id, reason) },
			done: func(ctx context.Context, api server.API, typed, id string) string {
				return "aborted the turn of " + id + afterAbort(ctx, api, typed, id)
			}})
}

const stopHelp = `End an agent's session with all that it has started: its turn, its tool calls with their processes, and its tasks with
theirs. It returns when they have ended.

ID is a session, a task, a mission, an item of the plan such as T2, or an address such as 0/3. A task is cancelled with the tasks
below it. The Commander's session is its mission, which is paused and can be resumed.`

func stopCommand(c *cli) *cobra.Command {
	return endingCommand(c, "stop ID", "End an agent with all that it has started", stopHelp,
		"  centurion stop T2\n  centurion stop 0/1 --reason \"goes in circles\"", stopAction{
			over: overAlready,
			do:   func(ctx context.Context, api server.API, id, reason string) error { return api.Stop(ctx, id, reason) },
			done: func(ctx context.Context, api server.API, _, id string) string {
				return "stopped " + id + afterStop(ctx, api, id)
			}})
}

// afterStop says how to resume a mission whose first session was stopped. A stopped task has ended.
func afterStop(ctx context.Context, api server.API, id string) string {
	s, err := api.State(ctx, id)
	if err != nil || s.Task != "" {
		return ""
	}
	return "; its mission is paused; continue with: centurion resume " + s.Mission
}

// stopAction is a command that stops something of an agent.
type stopAction struct {
	over func(ctx context.Context, api server.API, id string) string // the message if there is nothing to end, else ""
	do   func(ctx context.Context, api server.API, id, reason string) error
	// done is the message afterwards. It is computed before: the host may end with its mission.
	done func(ctx context.Context, api server.API, typed, id string) string
}

// afterAbort says how to continue an agent whose turn was aborted, if that is up to the person.
func afterAbort(ctx context.Context, api server.API, typed, id string) string {
	s, err := api.State(ctx, id)
	if err != nil || s.Task != "" || s.Queued > 0 {
		return ""
	}
	m, err := api.Mission(ctx, s.Mission)
	if err != nil || m.Status.Ended() {
		return ""
	}
	resume := "centurion resume " + m.ID
	if m.Options.Ask != "ask" || !m.Status.Alive() {
		return "; its mission pauses; continue with: " + resume
	}
	to := id
	if strings.Contains(typed, "/") { // which send understands too
		to = typed
	}
	return fmt.Sprintf("; it is idle; continue with: centurion send %s \"TEXT\"  or: %s", to, resume)
}

// overAlready says that a task or mission has already ended. If it cannot be read, the stop itself reports why.
func overAlready(ctx context.Context, api server.API, id string) string {
	s, err := api.State(ctx, id)
	if err != nil {
		return ""
	}
	if s.Task != "" {
		t, err := api.Task(ctx, s.Task)
		if err != nil || !t.Status.Ended() {
			return ""
		}
		return fmt.Sprintf("nothing to stop: task %s is %s", t.ID, t.Status)
	}
	m, err := api.Mission(ctx, s.Mission)
	if err != nil || m.Status.Alive() || m.Reason == server.Interrupted {
		return ""
	}
	return fmt.Sprintf("nothing to stop: mission %s is %s", m.ID, m.Status)
}

func endingCommand(c *cli, use, short, long, example string, e stopAction) *cobra.Command {
	var reason string
	cmd := projectCommand(c, use, short, long, example, exactly(1, 1, "an id"), func(ctx context.Context, v *view, args []string) error {
		id, err := lookup.ID(ctx, v.API, args[0])
		if err != nil {
			return err
		}
		said := ""
		if e.over != nil {
			said = e.over(ctx, v.API, id)
		}
		if said == "" {
			said = e.done(ctx, v.API, args[0], id)
			if err := v.AsHost(ctx, func(api server.API) error { return e.do(ctx, api, id, reason) }); err != nil {
				return err
			}
		}
		return c.printResult(v.format, map[string]string{"id": id, "done": strings.Fields(said)[0]}, said)
	})
	cmd.ValidArgsFunction = complete(c, 1, agentsOf)
	cmd.Flags().StringVar(&reason, "reason", "", "reason, stored with the session")
	return cmd
}

func pauseCommand(c *cli) *cobra.Command {
	var reason string
	cmd := projectCommand(c, "pause [ID]", "Pause a mission", "Pause a mission (default: the latest that runs) so that it can be resumed. Unfinished answers are dropped.",
		"  centurion pause\n  centurion pause msn_0199… --reason \"the office closes\"", exactly(0, 1, "at most one mission"),
		func(ctx context.Context, v *view, args []string) error {
			m, err := lookup.ToPause(ctx, v.API, first(args))
			if err != nil {
				return err
			}
			return c.say(v.AsHost(ctx, func(api server.API) error { return api.Pause(ctx, m.ID, reason) }), "paused "+m.ID+"; continue with: centurion resume "+m.ID)
		})
	cmd.ValidArgsFunction = complete(c, 1, missions)
	cmd.Flags().StringVar(&reason, "reason", "", "reason, stored with the mission")
	return cmd
}

func cancelCommand(c *cli) *cobra.Command {
	var reason string
	cmd := projectCommand(c, "cancel ID", "Cancel a mission or a task", "Cancel a mission or a task. What it has changed in the project stays.",
		"  centurion cancel msn_0199… --reason \"wrong branch\"", exactly(1, 1, "an id"),
		on(lookup.ID, func(ctx context.Context, v *view, id string) error {
			what, err := lookup.Living(ctx, v.API, id)
			if err != nil {
				return err
			}
			err = v.AsHost(ctx, func(api server.API) error { return api.Cancel(ctx, what, reason) })
			if err == nil && strings.HasPrefix(what, string(centurion.PrefixMission)+"_") { // a cancelled task is done again by its mission
				fmt.Fprintf(c.err, "undo: centurion fork %s to continue with a copy\n", what)
			}
			return c.say(err, "cancelled "+what)
		}))
	cmd.Flags().StringVar(&reason, "reason", "", "reason, stored with the mission or task")
	return cmd
}
