package orchestrator

import (
	"cmp"
	"context"
	"slices"

	"centurion"
	"centurion/store"
)

// Wait is what a session waits for.
type Wait string

// What a session waits for.
const (
	WaitModel    Wait = "model"    // the answer to a request
	WaitTool     Wait = "tool"     // its tool calls
	WaitSlot     Wait = "slot"     // the right to run
	WaitPerson   Wait = "person"   // an answer, or a word after its turn was aborted
	WaitRetry    Wait = "retry"    // the time at which a failed request is repeated
	WaitChild    Wait = "child"    // tasks that it has delegated
	WaitProvider Wait = "provider" // a provider that lets nobody ask at the moment
	WaitBudget   Wait = "budget"   // a part of the budget
	WaitCheck    Wait = "check"    // the acceptance commands of its work
	WaitTask     Wait = "task"     // what its task waits for; see Reason
)

// waitOrder says which of several waits is told: what a person can do something about comes first, and who waits for a
// child in a tool call waits for the child.
var waitOrder = [...]Wait{WaitPerson, WaitRetry, WaitProvider, WaitBudget, WaitSlot, WaitChild}

// Activity is whether a session has a turn.
type Activity string

// The activities of a session.
const (
	Idle    Activity = "idle"    // no turn; something that is under way, or a person, will begin one
	Busy    Activity = "busy"    // it has a turn
	Stopped Activity = "stopped" // nobody works on its mission
	Ended   Activity = "ended"   // its task or mission is over
)

// RunningCall is a tool call that runs.
type RunningCall struct {
	Tool    string         `json:"tool"`
	ID      string         `json:"id"`
	Message string         `json:"message"` // the answer that it stands in
	Since   centurion.Time `json:"since"`
}

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
	to, err := (&Host{cfg: Config{Store: st}}).receiver(ctx, Post{To: id})
	if err != nil {
		return State{}, err
	}
	if to.session == "" {
		return State{}, &centurion.Error{Op: "look at session", Kind: centurion.KindConflict, Msg: "task " + to.task + " has no session yet",
			Hint: "see what it waits for: centurion show " + to.task}
	}
	var s State
	m := running(to.mission)
	if m != nil {
		if c := m.conversation(to.session); c != nil {
			s = c.live.state()
			s.Tools = c.names
		}
	}
	return s, s.fill(ctx, st, to, m)
}

// state is what the conversation itself knows, in one moment.
func (l *live) state() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := State{Activity: Idle, Calls: l.runningNow(), Since: centurion.Time{Time: l.since}}
	if l.since.IsZero() {
		s.Since = centurion.Time{}
	}
	if l.end != nil {
		s.Activity = Busy
	}
	i := slices.IndexFunc(waitOrder[:], func(w Wait) bool { return l.waits[w] > 0 })
	switch {
	case i >= 0:
		s.Waits = waitOrder[i]
	case len(l.calls) > 0:
		s.Waits = WaitTool
	case l.asking > 0:
		s.Waits = WaitModel
	case l.end == nil && (l.stop != nil || l.stood != nil):
		s.Waits = WaitPerson
		if l.stood != nil {
			s.Reason = l.stood.why()
		}
	}
	return s
}

// fill adds what the store knows.
func (s *State) fill(ctx context.Context, st *store.Store, to receiver, m *mission) error {
	rec, err := st.Session(ctx, to.session)
	if err != nil {
		return err
	}
	mission, err := st.Mission(ctx, to.mission)
	if err != nil {
		return err
	}
	tasks, err := st.Tasks(ctx, to.mission)
	if err != nil {
		return err
	}
	waiting, err := st.PendingDeliveries(ctx, to.session)
	if err != nil {
		return err
	}
	newest, messages, err := st.Newest(ctx, to.session)
	if err != nil {
		return err
	}
	s.Session, s.Address, s.Mission, s.Task, s.Agent = rec.ID, rec.Metadata.Address, to.mission, to.task, rec.Agent
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
			if conv := m.conversation(t.Session); conv != nil {
				c.Calls = conv.live.running()
			}
		}
		s.Children = append(s.Children, c)
	}
}

// judge says what a session is that has no turn of its own to tell of.
func (s *State) judge(m centurion.Mission, tasks []centurion.Task, worked bool) {
	i := slices.IndexFunc(tasks, func(t centurion.Task) bool { return t.ID == s.Task })
	switch {
	case m.Status.Ended() && !(s.Task == "" && Continues(m)) || i >= 0 && tasks[i].Status.Ended():
		s.Activity, s.Waits = Ended, ""
		if i >= 0 {
			s.Reason = tasks[i].Reason
		}
		return
	case !worked || m.Status.Ended(): // also while its work is being cleared away
		s.Activity, s.Waits, s.Since, s.Tools, s.Reason = Stopped, "", centurion.Time{}, nil, m.Reason
		return
	}
	s.Activity = cmp.Or(s.Activity, Idle)
	if s.Waits != "" || s.Activity == Busy {
		return
	}
	if i < 0 {
		if slices.ContainsFunc(s.Children, func(c Child) bool { return !c.Status.Ended() }) {
			s.Waits = WaitChild
		}
		return
	}
	s.Reason = tasks[i].Reason
	switch tasks[i].Status {
	case centurion.TaskQueued:
		s.Waits = WaitSlot
	case centurion.TaskVerifying:
		s.Waits = WaitCheck
	case centurion.TaskWaiting:
		s.Waits = WaitTask
	}
}
