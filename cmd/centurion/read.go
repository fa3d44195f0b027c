package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/host"
	"centurion/server"
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
	cmd.Flags().BoolVar(&all, "all", false, "the missions of every project, with their directories")
	return cmd
}

func tasksCommand(c *cli) *cobra.Command {
	return listCommand(c, "tasks [MISSION]", "Show the task board of a mission", "Show the task board of a mission (default: the latest).",
		"  centurion tasks\n  centurion tasks msn_0199…", exactly(0, 1, "at most one mission"), noMissions,
		func(ctx context.Context, v *view, args []string) error {
			all, err := v.API.Tasks(ctx, first(args))
			if len(args) == 0 && centurion.KindOf(err) == centurion.KindNotFound {
				return host.NoMissionError{} // what was to be the first one did not start
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
			return tui.Tasks(c.out, taskNouns(all), c.listOptions(ctx, v.API, m))
		})
}

func taskNouns(all []server.Task) []centurion.Task {
	nouns := make([]centurion.Task, len(all))
	for i, t := range all {
		nouns[i] = t.Noun()
	}
	return nouns
}

func showCommand(c *cli) *cobra.Command {
	var derived derivedFlags
	prompt, tree := false, false
	cmd := readCommand(c, "show [ID]", "Show a mission, task or session whole",
		"Show one thing whole (default: the latest mission): a mission with its tasks and receipts, a task or a session with what it was given and its conversation.\n"+
			"With --progress show how far it was after each of its newest steps while it has not ended, with --notices what was told of\n"+
			"it in passing. With --tree show all that was said in a session, a mission's first or a task's: its line and its branches.\n"+
			"A task of the latest mission may be named by its item, a session by its address.",
		"  centurion show\n  centurion show msn_0199…\n  centurion show tsk_0199… --format json\n  centurion show msn_0199… --progress\n"+
			"  centurion show ses_0199… --prompt\n  centurion show T2\n  centurion show --tree 0/", exactly(0, 1, "at most one id"),
		func(ctx context.Context, v *view, args []string) error {
			id, err := shownID(ctx, v.API, first(args))
			if err != nil {
				return err
			}
			if derived.any() {
				return v.showDerived(ctx, derived, id)
			}
			if tree {
				return v.showTree(ctx, id)
			}
			s, object, err := gather(ctx, v.API, id)
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
				o.Doubt = doubtsOf(ctx, v.API, s.Task.Mission)
			}
			o.Prompt = prompt
			return tui.Show(c.out, s, o)
		})
	derived.bind(cmd)
	cmd.ValidArgsFunction = complete(c, 1, agentsOf, missions)
	cmd.Flags().BoolVar(&prompt, "prompt", false, "a task or session: its system prompt whole")
	cmd.Flags().BoolVar(&tree, "tree", false, "the messages of a session as a tree, with its branches and marks")
	return cmd
}

// gather collects what belongs to one id, for people and as the object for scripts.
func gather(ctx context.Context, api server.API, id string) (tui.Shown, any, error) {
	switch {
	case strings.HasPrefix(id, string(centurion.PrefixTask)+"_"):
		t, err := api.Task(ctx, id)
		if err != nil {
			return tui.Shown{}, nil, err
		}
		s := tui.Shown{Task: new(t.Noun())}
		object := struct {
			server.Task
			Given    *given           `json:"given,omitempty"`
			Messages []server.Message `json:"messages"`
		}{t, nil, []server.Message{}}
		if t.Session != "" {
			r, err := api.Session(ctx, t.Session)
			switch {
			case centurion.KindOf(err) == centurion.KindNotFound: // it was removed with the task, which stands in the archive
				return s, object, nil
			case err != nil:
				return tui.Shown{}, nil, err
			}
			if object.Messages, err = api.Messages(ctx, t.Session); err != nil {
				return tui.Shown{}, nil, err
			}
			s.Session, s.Messages, object.Given = &r, messageNouns(object.Messages), givenTo(r, object.Messages)
		}
		return s, object, nil
	case strings.HasPrefix(id, string(centurion.PrefixSession)+"_"):
		r, err := api.Session(ctx, id)
		if err != nil {
			return tui.Shown{}, nil, err
		}
		s, err := account(ctx, api, r)
		if err != nil {
			return s, nil, err
		}
		msgs, err := api.Messages(ctx, r.ID)
		s.Messages = messageNouns(msgs)
		return s, struct {
			centurion.Session
			Own      centurion.Spent  `json:"own"`
			Total    centurion.Spent  `json:"total"`
			Counters counters         `json:"counters"`
			Given    *given           `json:"given,omitempty"`
			Messages []server.Message `json:"messages"`
		}{*s.Session, s.Own, s.Total, countersOf(r, msgs), givenTo(r, msgs), msgs}, err
	case strings.HasPrefix(id, string(centurion.PrefixMission)+"_"):
		return gatherMission(ctx, api, id)
	}
	return tui.Shown{}, nil, &centurion.Error{Op: "show", Kind: centurion.KindUsage, Msg: fmt.Sprintf("%q is not the id of a mission, task or session", id),
		Hint: "ids begin with msn_, tsk_ or ses_; see: centurion ps, centurion tasks"}
}

func gatherMission(ctx context.Context, api server.API, id string) (tui.Shown, any, error) {
	m, err := api.Mission(ctx, id)
	if err != nil {
		return tui.Shown{}, nil, err
	}
	tasks, err := api.Tasks(ctx, m.ID)
	if err != nil {
		return tui.Shown{}, nil, err
	}
	receipts, err := api.Receipts(ctx, m.ID)
	if err != nil {
		return tui.Shown{}, nil, err
	}
	sessions, err := api.Sessions(ctx, m.ID)
	return tui.Shown{Mission: new(m.Noun()), Tasks: taskNouns(tasks), Receipts: receipts, Sessions: sessions}, struct {
		server.Mission
		Board    []server.Task       `json:"board"`
		Receipts []centurion.Receipt `json:"receipts"`
		Sessions []centurion.Session `json:"sessions"`
	}{m, tasks, receipts, sessions}, err
}

func messageNouns(all []server.Message) []centurion.Message {
	out := make([]centurion.Message, len(all))
	for i, m := range all {
		out[i] = m.Info
		out[i].Parts, out[i].Origin, out[i].Prev = m.Parts, m.Origin, m.Prev
	}
	return out
}

func logsCommand(c *cli) *cobra.Command {
	f := &readFlags{}
	follow, toasts, style := false, false, ""
	cmd := &cobra.Command{Use: "logs [-f] [ID]", Short: "Print the event log",
		Long: "Print the events of a mission, task or session (default: the latest mission). With -f go on as they come,\n" +
			"until the mission ends or pauses, or the process that works on it is gone and no other takes over, which is said.",
		Example: "  centurion logs -f\n  centurion logs tsk_0199… --format json\n  centurion logs -f --view agent",
		Args:    exactly(0, 1, "at most one id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if id := first(args); follow && (id == "" || strings.HasPrefix(id, string(centurion.PrefixMission)+"_")) {
				c.awaitHost(ctx, f.dir, id)
			}
			return c.open(ctx, f, func(v *view) error {
				q, err := eventsOf(ctx, v.API, first(args))
				if err != nil {
					return err
				}
				q.Toasts, q.View = toasts, style
				q.Deltas = style != "" && follow && v.json()
				events := v.API.Events(ctx, q)
				if follow {
					events = v.Place.Events(ctx, v.API, q, c.note)
				}
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
	cmd.Flags().StringVar(&style, "view", "", "agent: what an agent does, with its children nested; with -f --format json also the text as it is written")
	completeValues(cmd, "view", "agent")
	cmd.ValidArgsFunction = complete(c, 1, agentsOf, missions)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new events as they come")
	cmd.Flags().BoolVar(&toasts, "toasts", false, "also the notices in passing that follow from the events, as tui.toast.show")
	return cmd
}

// eventsOf selects the events of one id, the latest mission's for "".
func eventsOf(ctx context.Context, api server.API, id string) (server.EventQuery, error) {
	if id != "" {
		var err error
		if id, err = idOf(ctx, api, id); err != nil {
			return server.EventQuery{}, err
		}
	}
	switch {
	case strings.HasPrefix(id, string(centurion.PrefixTask)+"_"):
		t, err := api.Task(ctx, id)
		return server.EventQuery{Mission: t.Mission, Task: t.ID}, err
	case strings.HasPrefix(id, string(centurion.PrefixSession)+"_"):
		s, err := api.Session(ctx, id)
		return server.EventQuery{Mission: s.Metadata.Mission, Session: s.ID}, err
	}
	m, err := api.Mission(ctx, id)
	return server.EventQuery{Mission: m.ID}, err
}

func cancelCommand(c *cli) *cobra.Command {
	var reason string
	cmd := projectCommand(c, "cancel ID", "Cancel a mission or a task", "Cancel a mission or a task. What it has changed in the project stays.",
		"  centurion cancel msn_0199… --reason \"wrong branch\"", exactly(1, 1, "an id"),
		func(ctx context.Context, v *view, args []string) error {
			id, err := idOf(ctx, v.API, args[0])
			if err != nil {
				return err
			}
			what, err := living(ctx, v.API, id)
			if err != nil {
				return err
			}
			err = v.AsHost(ctx, func(api server.API) error { return api.Cancel(ctx, what, reason) })
			if err == nil {
				c.undoLine(afterCancel(what))
			}
			return c.say(err, "cancelled "+what)
		})
	cmd.Flags().StringVar(&reason, "reason", "", "kept with the mission or task")
	return cmd
}

// afterCancel is how the work on a mission goes on that was cancelled: as a copy. A task is done anew by its mission.
func afterCancel(id string) string {
	if strings.HasPrefix(id, string(centurion.PrefixMission)+"_") {
		return "centurion fork " + id + ", which goes on as a copy"
	}
	return ""
}
