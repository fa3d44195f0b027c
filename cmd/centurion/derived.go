package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/event/progress"
	"centurion/event/toast"
	"centurion/server"
	"centurion/tui"
)

// derivedFlags ask for what follows from a mission's events instead of what is stored of it.
type derivedFlags struct{ progress, notices bool }

func (f *derivedFlags) bind(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.progress, "progress", false, "the newest 100 steps of a session, or of a mission's or a task's")
	cmd.Flags().BoolVar(&f.notices, "notices", false, "the newest 100 notices of a session, or of a mission's or a task's")
}

func (f *derivedFlags) any() bool { return f.progress || f.notices }

// listOptions are showOptions with the caps on workers that a mission was started with.
func (c *cli) listOptions(ctx context.Context, api server.API, m server.Mission) tui.ShowOptions {
	o := c.showOptions()
	o.Asking = askingOf(ctx, api, m)
	o.Doubt = doubtsOf(ctx, api, m.ID)
	o.Slots, o.PerAgent = m.Options.MaxWorkers, m.Options.MaxPerAgent
	return o
}

// askingOf finds the tasks of a mission that wait for the person. They are left out where that cannot be read: the list is of use without.
func askingOf(ctx context.Context, api server.API, m server.Mission) map[string]bool {
	if !m.Status.Alive() {
		return nil
	}
	asks, err := api.Asks(ctx)
	if err != nil {
		return nil
	}
	out := map[string]bool{}
	for _, a := range asks {
		if a.Mission == m.ID && a.Task != "" {
			out[a.Task] = true
		}
	}
	return out
}

// doubtsOf finds the tasks of a mission whose checks prove too little. They are left out where that cannot be read: the list is of use without.
func doubtsOf(ctx context.Context, api server.API, mission string) map[string]string {
	receipts, err := api.Receipts(ctx, mission)
	if err != nil {
		return nil
	}
	return tui.Doubts(receipts)
}

// sessionOf finds the mission and the session that an id stands for.
func sessionOf(ctx context.Context, api server.API, id string) (mission, session string, err error) {
	q, err := eventsOf(ctx, api, id)
	if err != nil || q.Session != "" {
		return q.Mission, q.Session, err
	}
	if q.Task != "" {
		t, err := api.Task(ctx, q.Task)
		return q.Mission, t.Session, err
	}
	m, err := api.Mission(ctx, q.Mission)
	return q.Mission, m.Session, err
}

// showDerived reads a mission's events once and shows what follows from them for one session.
func (v *view) showDerived(ctx context.Context, want derivedFlags, id string) error {
	if want.progress && want.notices {
		return &centurion.Error{Kind: centurion.KindUsage, Msg: "--progress and --notices are two different things to show",
			Hint: "give one of them: centurion show " + id + " --progress"}
	}
	if _, _, err := gather(ctx, v.API, id); err != nil { // it says best what is wrong with an id
		return err
	}
	mission, session, err := sessionOf(ctx, v.API, id)
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
	if want.progress {
		return v.showProgress(mission, steps.Snapshots(session))
	}
	return v.showNotices(notices.Kept(session))
}

func (v *view) showProgress(mission string, all []progress.Snapshot) error {
	none := "No steps yet."
	if all == nil {
		none = "It has ended, and progress is kept while a session lives. See: centurion logs " + mission
		all = []progress.Snapshot{}
	}
	if v.json() {
		return writeJSON(v.out, all)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(v.out, none)
		return err
	}
	return tui.Progress(v.out, all, v.showOptions())
}

func (v *view) showNotices(all []toast.Notice) error {
	events := make([]centurion.Event, len(all))
	for i, n := range all {
		events[i] = n.Event()
	}
	if v.json() {
		return writeJSON(v.out, events)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(v.out, "No notices.")
		return err
	}
	return tui.Notices(v.out, events, v.showOptions())
}
