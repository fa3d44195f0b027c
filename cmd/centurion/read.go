package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/cli/lookup"
	"centurion/cli/print"
	"centurion/event/progress"
	"centurion/event/toast"
	"centurion/host"
	"centurion/orchestrator/agent"
	"centurion/server"
	"centurion/text"
	"centurion/tui"
)

func psCommand(c *cli) *cobra.Command {
	all := false
	cmd := listCommand(c, "ps", "List the missions of this project", "List the missions of this project, or of every project with --all, newest first.",
		"  centurion ps\n  centurion ps --all\n  centurion ps --format json", exactly(0, 0, "no arguments"), noMissions,
		func(ctx context.Context, v *view, _ []string) error {
			all, err := v.API.Missions(ctx)
			if err != nil {
				return err
			}
			if v.json() {
				return writeJSON(c.out, all)
			}
			return c.printMissions(all)
		})
	here := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !all {
			return here(cmd, args)
		}
		return c.everyMission(cmd.Context(), cmd.Flag("dir").Value.String(), cmd.Flag("format").Value.String())
	}
	cmd.Flags().BoolVar(&all, "all", false, "missions of every project, with their directories")
	return cmd
}

func tasksCommand(c *cli) *cobra.Command {
	return listCommand(c, "tasks [MISSION]", "Show the task board of a mission", "Show the task board of a mission (default: the latest).",
		"  centurion tasks\n  centurion tasks msn_0199…", exactly(0, 1, "at most one mission"), noMissions,
		func(ctx context.Context, v *view, args []string) error {
			all, err := v.API.Tasks(ctx, first(args))
			if len(args) == 0 && centurion.KindOf(err) == centurion.KindNotFound {
				return host.NoMissionError{} // the first one did not start
			}
			if err != nil {
				return err
			}
			if v.json() {
				return writeJSON(c.out, all)
			}
			m, err := v.API.Mission(ctx, first(args))
			if err != nil {
				return err
			}
			return tui.Tasks(c.out, lookup.Tasks(all), c.listOptions(ctx, v.API, m))
		})
}

func showCommand(c *cli) *cobra.Command {
	var steps, notices, prompt, tree bool
	cmd := readCommand(c, "show [ID]", "Show a mission, task or session whole",
		"Show one thing whole (default: the latest mission): a mission with its tasks and receipts, a task or a session with what it was given and its conversation.\n"+
			"With --progress show how far it was after each of its newest steps while it has not ended, with --notices what was told of\n"+
			"it in passing. With --tree show all that was said in a session, a mission's first or a task's: its line and its branches.\n"+
			"A task of the latest mission may be named by its item, a session by its address.",
		"  centurion show\n  centurion show msn_0199…\n  centurion show tsk_0199… --format json\n  centurion show msn_0199… --progress\n"+
			"  centurion show ses_0199… --prompt\n  centurion show T2\n  centurion show --tree 0/", exactly(0, 1, "at most one id"),
		on(lookup.IDOrLatest, func(ctx context.Context, v *view, id string) error {
			switch {
			case steps && notices:
				return &centurion.Error{Kind: centurion.KindUsage, Msg: "--progress and --notices are two different things to show",
					Hint: "give one of them: centurion show " + id + " --progress"}
			case steps || notices:
				return v.showDerived(ctx, steps, id)
			case tree:
				return v.showTree(ctx, id)
			}
			s, object, err := lookup.Gather(ctx, v.API, id)
			if err != nil {
				return err
			}
			if s.Mission == nil {
				if object, err = v.withState(ctx, id, object); err != nil {
					return err
				}
			}
			if v.json() {
				return writeJSON(c.out, object)
			}
			o := c.showOptions()
			if s.Mission != nil {
				o = c.listOptions(ctx, v.API, server.Mission{ID: s.Mission.ID, Status: s.Mission.Status, Options: s.Mission.Options})
			}
			if s.Task != nil {
				o.Doubt = lookup.Doubts(ctx, v.API, s.Task.Mission)
			}
			o.Prompt = prompt
			return tui.Show(c.out, s, o)
		}))
	cmd.Flags().BoolVar(&steps, "progress", false, "newest 100 steps of the session")
	cmd.Flags().BoolVar(&notices, "notices", false, "newest 100 notifications of the session")
	cmd.ValidArgsFunction = complete(c, 1, agentsOf, missions)
	cmd.Flags().BoolVar(&prompt, "prompt", false, "full system prompt of a task or session")
	cmd.Flags().BoolVar(&tree, "tree", false, "messages of a session as a tree, with branches and marks")
	return cmd
}

func logsCommand(c *cli) *cobra.Command {
	f := &readFlags{}
	follow, toasts, style := false, false, ""
	cmd := &cobra.Command{Use: "logs [-f] [ID]", Short: "Print the event log",
		Long: "Print the events of a mission, task or session (default: the latest mission). With -f print new ones as they\n" +
			"come, until the mission ends or pauses, or its process is gone and no other takes over.",
		Example: "  centurion logs -f\n  centurion logs tsk_0199… --format json\n  centurion logs -f --view agent",
		Args:    exactly(0, 1, "at most one id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if id := first(args); follow && (id == "" || strings.HasPrefix(id, string(centurion.PrefixMission)+"_")) {
				c.awaitHost(ctx, f.dir, id)
			}
			return c.open(ctx, f, func(v *view) error {
				q, err := lookup.Events(ctx, v.API, first(args))
				if err != nil {
					return err
				}
				q.Toasts, q.View = toasts, style
				q.Deltas = style != "" && follow && v.json()
				q.Follow = follow
				events := v.Place.Events(ctx, v.API, q, c.note)
				if v.json() {
					return tui.RunJSON(ctx, c.out, events)
				}
				if style != "" {
					return tui.RunAgents(ctx, c.out, events)
				}
				return tui.RunPlain(ctx, c.out, events)
			})
		}}
	f.bind(cmd)
	cmd.Flags().StringVar(&style, "view", "", "agent: what an agent does, with its children nested")
	completeValues(cmd, "view", "agent")
	cmd.ValidArgsFunction = complete(c, 1, agentsOf, missions)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print new events as they come")
	cmd.Flags().BoolVar(&toasts, "toasts", false, "also notifications, as tui.toast.show")
	return cmd
}

// withState adds the current state of a session or its task: as a field for scripts, as a line before the text for a person. A session
// that has ended or not started has none.
func (v *view) withState(ctx context.Context, id string, object any) (any, error) {
	s, err := v.API.State(ctx, id)
	switch kind := centurion.KindOf(err); {
	case kind == centurion.KindNotFound || kind == centurion.KindConflict:
		return object, nil
	case err != nil:
		return nil, err
	case v.json():
		return merged(object, map[string]any{"state": s})
	case s.Activity == agent.Ended:
		return object, nil
	}
	_, err = fmt.Fprintln(v.out, print.State(s))
	return object, err
}

// merged adds fields to an object's JSON.
func merged(object any, more map[string]any) (any, error) {
	b, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, err
	}
	for name, v := range more {
		if fields[name], err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

func pathCommand(c *cli) *cobra.Command {
	cmd := readCommand(c, "path TASK", "Print where a task works",
		"Print the directory that a task works in, to open it in an editor. For a task that has ended, print the branch\n"+
			"that has its work, and how to look at it. A task of the latest mission can be named by its item. For a mission,\n"+
			"print the Commander's directory.",
		"  code \"$(centurion path T2)\"\n  centurion path tsk_0199…", exactly(1, 1, "a task"),
		on(lookup.IDOrLatest, func(ctx context.Context, v *view, id string) error {
			at, err := lookup.Checkout(ctx, v.API, id)
			if err != nil {
				return err
			}
			if at.Overlay {
				c.note("it works in an overlay; it moves to this directory when its present call has ended")
				if err := v.AsHost(ctx, func(api server.API) error { return api.Expand(ctx, id, "") }); err != nil {
					return err
				}
			}
			return c.printResult(v.format, at, at.Dir)
		}))
	cmd.ValidArgsFunction = complete(c, 1, agentsOf, missions)
	return cmd
}

// listOptions are showOptions with the mission's limits for workers.
func (c *cli) listOptions(ctx context.Context, api server.API, m server.Mission) tui.ShowOptions {
	o := c.showOptions()
	o.Asking = lookup.Asking(ctx, api, m)
	o.Doubt = lookup.Doubts(ctx, api, m.ID)
	o.Slots, o.PerAgent = m.Options.MaxWorkers, m.Options.MaxPerAgent
	return o
}

// showDerived reads a mission's events once and shows what they imply for one session.
func (v *view) showDerived(ctx context.Context, ofSteps bool, id string) error {
	if _, _, err := lookup.Gather(ctx, v.API, id); err != nil { // its error describes a wrong id best
		return err
	}
	mission, session, err := lookup.Session(ctx, v.API, id)
	if err != nil {
		return err
	}
	var steps progress.Tracker
	notices := toast.Deriver{Caps: func(string) (slots, perAgent int) {
		m, err := v.API.Mission(ctx, mission)
		if err != nil {
			return 0, 0
		}
		return m.Options.MaxWorkers, m.Options.MaxPerAgent
	}}
	for e, err := range v.API.Events(ctx, server.EventQuery{Mission: mission}) {
		if err != nil {
			return err
		}
		steps.Apply(e)
		notices.Apply(e)
	}
	notices.Flush(centurion.Now().Add(toast.Window))
	if ofSteps {
		all := steps.Snapshots(session)
		none := text.If(all == nil, "It has ended, and progress is kept while a session lives. See: centurion logs "+mission, "No steps yet.")
		return printList(v.cli, v.format, all, none, func() error { return tui.Progress(v.out, all, v.showOptions()) })
	}
	var events []centurion.Event
	for _, n := range notices.Kept(session) {
		events = append(events, n.Event())
	}
	return printList(v.cli, v.format, events, "No notices.", func() error { return tui.Notices(v.out, events, v.showOptions()) })
}

// everyMission is `centurion ps --all`.
func (c *cli) everyMission(ctx context.Context, dir, format string) error {
	if err := checkFormat(format); err != nil {
		return err
	}
	if dir != "" {
		return &centurion.Error{Kind: centurion.KindUsage, Msg: "--all lists the missions of every project, --dir those of one",
			Hint: "leave one of them out"}
	}
	projects, err := host.Projects(ctx, c.getenv, c.note)
	if err != nil {
		return err
	}
	all := []server.Mission{}
	for _, p := range projects {
		all = append(all, p.Missions...)
	}
	slices.SortStableFunc(all, newestFirst)
	return printList(c, format, all, "No missions in any project yet. Start one with: centurion run \"GOAL\"",
		func() error { return c.printWithDirectories(all) })
}

func newestFirst(a, b server.Mission) int { return b.Started.Compare(a.Started.Time) }

// printWithDirectories prints missions with their directories.
func (c *cli) printWithDirectories(all []server.Mission) error {
	for _, m := range all {
		if err := c.printMissions([]server.Mission{m}); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(c.out, "  "+text.Escape(m.Directory)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cli) printMissions(all []server.Mission) error {
	o := c.showOptions()
	o.NeedsYou = map[string]bool{}
	nouns := make([]centurion.Mission, len(all))
	for i, m := range all {
		nouns[i], o.NeedsYou[m.ID] = m.Noun(), m.Asks > 0
	}
	return tui.Missions(c.out, nouns, o)
}

// noteMoved names missions that may belong to this project if it was moved.
func (c *cli) noteMoved(ctx context.Context, dir string) {
	p, ws, err := c.locate(dir)
	if err != nil {
		return // the output itself is complete
	}
	defer ws.Close()
	for _, old := range host.MovedFrom(ctx, p.Dir, c.getenv, c.note) {
		c.note(movedText(old))
	}
}

func movedText(old string) string {
	return fmt.Sprintf("missions of %s are stored, which no longer exists; if you moved it here, move it back to continue them; list them with: centurion ps --all", old)
}
