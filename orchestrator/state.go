package orchestrator

import (
	"cmp"
	"context"
	"slices"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/mail"
	"centurion/store"
)

// What a session is at, as [State] tells it.
type (
	Wait        = agent.Wait
	Activity    = agent.Activity
	RunningCall = agent.RunningCall
)

// State is how a session stands. Activity, Waits and Calls are of one moment; the rest is what the store held right after
// it.
type State struct {
	Session  string         `json:"session"`
	Address  string         `json:"address"`
	Mission  string         `json:"mission"`
	Task     string         `json:"task,omitempty"`
	Agent    string         `json:"agent"`
	Model    string         `json:"model"` // "provider/model"
	Tools    []string       `json:"tools,omitempty"`
	Activity Activity       `json:"activity"`
	Waits    Wait           `json:"waits,omitempty"` // what it waits for; empty if for nothing
	Since    centurion.Time `json:"since,omitzero"`  // when its turn began, or the last one ended; zero if nobody works on it
	Reason   string         `json:"reason,omitempty"`
	Calls    []RunningCall  `json:"calls"`
	Queued   int            `json:"queued"` // messages and results that it has not read
	Children []Child        `json:"children"`
	// Newest is the id of the newest message, which may still be streaming.
	Newest   string           `json:"newest,omitempty"`
	Messages int              `json:"messages"`
	Tokens   centurion.Tokens `json:"tokens"`
	Cost     float64          `json:"cost"`
	Unpriced bool             `json:"unpriced,omitempty"`
}

// Child is a task that a session has delegated.
type Child struct {
	Task    string               `json:"task"`
	Session string               `json:"session,omitempty"`
	Agent   string               `json:"agent"`
	Title   string               `json:"title"`
	Status  centurion.TaskStatus `json:"status"`
	Reason  string               `json:"reason,omitempty"`
	Calls   []RunningCall        `json:"calls,omitempty"`
}

// State returns how a session stands, named by its id or that of its task or mission. It never waits for the session:
// what runs in it, and a question that waits for a person, do not hold it up. The error has centurion.KindNotFound for an
// unknown id, and centurion.KindConflict for a task that has no session yet.
func (h *Host) State(ctx context.Context, id string) (State, error) {
	return stateIn(ctx, h.cfg.Store, id, h.running)
}

// StoredState is [Host.State] where nobody works on anything.
func StoredState(ctx context.Context, st *store.Store, id string) (State, error) {
	return stateIn(ctx, st, id, func(string) *mission { return nil })
}

func stateIn(ctx context.Context, st *store.Store, id string, running func(string) *mission) (State, error) {
	to, err := mail.Find(ctx, st, "", id)
	if err != nil {
		return State{}, err
	}
	if to.Session == "" {
		return State{}, &centurion.Error{Op: "look at session", Kind: centurion.KindConflict, Msg: "task " + to.Task + " has no session yet",
			Hint: "see what it waits for: centurion show " + to.Task}
	}
	var s State
	m := running(to.Mission)
	if m != nil {
		if c := m.sessions.Of(to.Session); c != nil {
			now := c.Live.Standing()
			s = State{Activity: now.Activity, Waits: now.Waits, Since: now.Since, Reason: now.Reason, Calls: now.Calls}
			for _, t := range c.Config().Tools {
				s.Tools = append(s.Tools, t.Name())
			}
		}
	}
	return s, s.fill(ctx, st, to, m)
}

// fill adds what the store knows.
func (s *State) fill(ctx context.Context, st *store.Store, to mail.Receiver, m *mission) error {
	rec, err := st.Session(ctx, to.Session)
	if err != nil {
		return err
	}
	mission, err := st.Mission(ctx, to.Mission)
	if err != nil {
		return err
	}
	tasks, err := st.Tasks(ctx, to.Mission)
	if err != nil {
		return err
	}
	waiting, err := st.PendingDeliveries(ctx, to.Session)
	if err != nil {
		return err
	}
	newest, messages, err := st.Newest(ctx, to.Session)
	if err != nil {
		return err
	}
	s.Session, s.Address, s.Mission, s.Task, s.Agent = rec.ID, rec.Metadata.Address, to.Mission, to.Task, rec.Agent
	s.Tokens, s.Cost, s.Unpriced, s.Queued, s.Messages = rec.Tokens, rec.Cost, rec.Metadata.Unpriced, len(waiting), messages
	if rec.Model != nil {
		s.Model = rec.Model.Provider + "/" + rec.Model.ID
	}
	s.Newest = newest
	if s.Calls == nil {
		s.Calls = []RunningCall{}
	}
	s.children(tasks, m)
	s.judge(mission, tasks, m != nil)
	return nil
}

func (s *State) children(tasks []centurion.Task, m *mission) {
	s.Children = []Child{}
	for _, t := range tasks {
		if t.Parent != s.Session {
			continue
		}
		c := Child{Task: t.ID, Session: t.Session, Agent: t.Agent, Title: t.Title, Status: t.Status, Reason: t.Reason}
		if m != nil {
			if conv := m.sessions.Of(t.Session); conv != nil {
				c.Calls = conv.Live.Running()
			}
		}
		s.Children = append(s.Children, c)
	}
}

// judge says what a session is that has no turn of its own to tell of.
func (s *State) judge(m centurion.Mission, tasks []centurion.Task, worked bool) {
	i := slices.IndexFunc(tasks, func(t centurion.Task) bool { return t.ID == s.Task })
	switch {
	case m.Status.Ended() && !(s.Task == "" && mail.Continues(m)) || i >= 0 && tasks[i].Status.Ended():
		s.Activity, s.Waits = agent.Ended, ""
		if i >= 0 {
			s.Reason = tasks[i].Reason
		}
		return
	case !worked || m.Status.Ended(): // also while its work is being cleared away
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
