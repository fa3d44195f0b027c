package control

import (
	"cmp"
	"context"
	"slices"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/mail"
	"centurion/store"
)

// State is the state of a session. Activity, Waits and Calls are of one moment; the rest was read from the store right after
// it.
type State struct {
	Session  string              `json:"session"`
	Address  string              `json:"address"`
	Mission  string              `json:"mission"`
	Task     string              `json:"task,omitempty"`
	Agent    string              `json:"agent"`
	Model    string              `json:"model"` // "provider/model"
	Tools    []string            `json:"tools,omitempty"`
	Activity agent.Activity      `json:"activity"`
	Waits    agent.Wait          `json:"waits,omitempty"` // empty if it waits for nothing
	Since    centurion.Time      `json:"since,omitzero"`  // when its turn began, or the last one ended; zero if its mission is not running
	Reason   string              `json:"reason,omitempty"`
	Calls    []agent.RunningCall `json:"calls"`
	Queued   int                 `json:"queued"` // unread messages and results
	Children []Child             `json:"children"`
	// Newest is the id of the newest message, which may still be streaming.
	Newest   string           `json:"newest,omitempty"`
	Messages int              `json:"messages"`
	Tokens   centurion.Tokens `json:"tokens"`
	Cost     float64          `json:"cost"`
	Unpriced bool             `json:"unpriced,omitempty"`
}

// Child is a task delegated by a session.
type Child struct {
	Task    string               `json:"task"`
	Session string               `json:"session,omitempty"`
	Agent   string               `json:"agent"`
	Title   string               `json:"title"`
	Status  centurion.TaskStatus `json:"status"`
	Reason  string               `json:"reason,omitempty"`
	Calls   []agent.RunningCall  `json:"calls,omitempty"`
}

// State returns the state of a session, named by its id or that of its task or mission. It never waits for the session:
// neither work in it nor a question to a person delays it. The error has centurion.KindNotFound for an
// unknown id, and centurion.KindConflict for a task that has no session yet.
func (d *Desk) State(ctx context.Context, id string) (State, error) {
	to, m, err := d.find(ctx, id)
	if err != nil {
		return State{}, err
	}
	if to.Session == "" {
		return State{}, &centurion.Error{Op: "look at session", Kind: centurion.KindConflict, Msg: "task " + to.Task + " has no session yet",
			Hint: "see what it waits for: centurion show " + to.Task}
	}
	var s State
	if m != nil {
		if c := m.Sessions.Of(to.Session); c != nil {
			now := c.Live.Standing()
			s = State{Activity: now.Activity, Waits: now.Waits, Since: now.Since, Reason: now.Reason, Calls: now.Calls}
			for _, t := range c.Config().Tools {
				s.Tools = append(s.Tools, t.Name())
			}
		}
	}
	rec, err := d.Store.Session(ctx, to.Session)
	if err != nil {
		return s, err
	}
	mission, err := d.Store.Mission(ctx, to.Mission)
	if err != nil {
		return s, err
	}
	tasks, err := d.Store.Tasks(ctx, to.Mission)
	if err != nil {
		return s, err
	}
	waiting, err := d.Store.PendingDeliveries(ctx, to.Session)
	if err != nil {
		return s, err
	}
	newest, messages, err := d.Store.Newest(ctx, to.Session)
	if err != nil {
		return s, err
	}
	s.Session, s.Address, s.Mission, s.Task, s.Agent = rec.ID, rec.Metadata.Address, to.Mission, to.Task, rec.Agent
	s.Tokens, s.Cost, s.Unpriced, s.Queued, s.Messages = rec.Tokens, rec.Cost, rec.Metadata.Unpriced, len(waiting), messages
	if rec.Model != nil {
		s.Model = rec.Model.Provider + "/" + rec.Model.ID
	}
	s.Newest = newest
	if s.Calls == nil {
		s.Calls = []agent.RunningCall{}
	}
	s.children(tasks, m)
	s.judge(mission, tasks, m != nil)
	return s, nil
}

// StoredState is [Desk.State] without a host: no mission runs.
func StoredState(ctx context.Context, st *store.Store, id string) (State, error) {
	d := &Desk{Store: st, Running: func(string) *Mission { return nil }}
	return d.State(ctx, id)
}

func (s *State) children(tasks []centurion.Task, m *Mission) {
	s.Children = []Child{}
	for _, t := range tasks {
		if t.Parent != s.Session {
			continue
		}
		c := Child{Task: t.ID, Session: t.Session, Agent: t.Agent, Title: t.Title, Status: t.Status, Reason: t.Reason}
		if m != nil {
			if conv := m.Sessions.Of(t.Session); conv != nil {
				c.Calls = conv.Live.Running()
			}
		}
		s.Children = append(s.Children, c)
	}
}

// judge sets the activity of a session without a turn.
func (s *State) judge(m centurion.Mission, tasks []centurion.Task, worked bool) {
	i := slices.IndexFunc(tasks, func(t centurion.Task) bool { return t.ID == s.Task })
	switch {
	case m.Status.Ended() && !(s.Task == "" && mail.Continues(m)) || i >= 0 && tasks[i].Status.Ended():
		s.Activity, s.Waits = agent.Ended, ""
		if i >= 0 {
			s.Reason = tasks[i].Reason
		}
		return
	case !worked || m.Status.Ended(): // also while its run is closing
		s.Activity, s.Waits, s.Since, s.Tools, s.Reason = agent.Stopped, "", centurion.Time{}, nil, m.Reason
		return
	}
	s.Activity = cmp.Or(s.Activity, agent.Idle)
	if s.Waits != "" || s.Activity == agent.Busy {
		return
	}
	if i < 0 {
		if slices.ContainsFunc(s.Children, func(c Child) bool { return !c.Status.Ended() }) {
			s.Waits = agent.WaitChild
		}
		return
	}
	s.Reason = tasks[i].Reason
	switch tasks[i].Status {
	case centurion.TaskQueued:
		s.Waits = agent.WaitSlot
	case centurion.TaskVerifying:
		s.Waits = agent.WaitCheck
	case centurion.TaskWaiting:
		s.Waits = agent.WaitTask
	}
}
