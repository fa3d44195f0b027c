// Package agent drives the sessions of one mission: their turns, the recovery of turns that failed, the results and messages that arrive
// for them, and the slot and the part of the budget that they need. What their tools do, and what becomes of their work, is decided
// above.
package agent

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/approval"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/pulse"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
)

// Config is what the sessions of a mission go by.
type Config struct {
	Models
	Session  session.Config            // what all sessions have in common
	Policies map[string]session.Policy // which tool calls of one answer may overlap, for single agents, by name
	GateWait time.Duration             // a longer wait for a provider gives the slot back
	Await    time.Duration             // how long a call waits for a task
	Poll     time.Duration             // the least time between two looks at the mission's own agent
	Limits   pulse.Limits
}

// Above is what the sessions ask of the mission that they belong to.
type Above struct {
	// Take puts a delivery into the history of the session that it is for.
	Take func(tx *store.Tx, rec *centurion.Session, p plan.View, d store.Delivery) (centurion.Message, error)
	// Startable says, for a model, what the mission's own agent could do now instead of waiting for its tasks, "" if that is nothing.
	Startable func(ctx context.Context) (string, error)
	// Answered is called when a turn has ended, with its outcome and why it did not end well.
	Answered func(ctx context.Context, c *Conversation, out session.Outcome, cause error)
}

// Around is what stands around one conversation.
type Around interface {
	Status() string                                        // what its model should know right now, at the end of each request
	Seen()                                                 // the model has answered a request with that
	News(ctx context.Context) ([]centurion.Message, error) // what it is told before a request, put into its history already
}

// manyWriters is how many writing calls may run at the same time: as good as any number.
const manyWriters = 1 << 30

// Sessions are the sessions of one mission that are being worked on.
type Sessions struct {
	st        *state.Mission
	iso       *isolation.Checkouts
	plan      *plan.Plan
	approvals *approval.Approvals
	reserves  *budget.Reserves
	cfg       Config
	above     Above

	// Stagnant counts the continuations of the mission's own agent in a row that changed nothing; its loop's own.
	Stagnant int

	// writers lets tool calls that write run at the same time and a check run alone: a call takes one, a check takes all.
	writers *semaphore.Weighted

	mu      sync.Mutex               // protects what follows
	open    map[string]*Conversation // by session id
	drivers map[string]*Conversation // who has a session, by its id, from before it is loaded
}

// New returns the sessions of a mission, of which none is open.
func New(st *state.Mission, iso *isolation.Checkouts, p *plan.Plan, approvals *approval.Approvals, reserves *budget.Reserves, cfg Config, above Above) *Sessions {
	return &Sessions{st: st, iso: iso, plan: p, approvals: approvals, reserves: reserves, cfg: cfg, above: above, writers: semaphore.NewWeighted(manyWriters),
		open: map[string]*Conversation{}, drivers: map[string]*Conversation{}}
}

// New returns the conversation of a session, which is yet to be opened.
func (m *Sessions) New(ctx context.Context, rec centurion.Session, agent agents.Agent, t *state.Run) (*Conversation, error) {
	model, err := m.cfg.Model(rec.Model.Provider + "/" + rec.Model.ID)
	if err != nil {
		return nil, err
	}
	c := &Conversation{m: m, id: rec.ID, account: m.st.ID, Agent: agent, Task: t, Attempt: rec.Metadata.Attempt, Pulse: pulse.New()}
	c.failures.c, c.children.c = c, c
	if t != nil {
		c.account = t.Account
	}
	if c.Seat, err = m.iso.Seat(ctx, rec.ID, c.taskID()); err != nil {
		return nil, err
	}
	h := host{c}
	c.cfg = m.cfg.Session
	c.cfg.Store, c.cfg.Host, c.cfg.Fence = m.st.Store, h, func(*store.Tx) error { return c.Current() }
	c.cfg.MaxSteps, c.cfg.Temperature, c.cfg.Policy = agent.Steps, agent.Temperature, cmp.Or(m.cfg.Policies[agent.Name], c.cfg.Policy)
	c.cfg.Reserve, c.cfg.Calls, c.cfg.Unbegun, c.cfg.Running, c.cfg.Changed = h.reserve, h.begun, m.approvals.OnlyAsked, c.Pulse.Running, h.changed
	c.cfg.Asked = func() bool { return c.asked.Swap(false) }
	if t == nil {
		c.cfg.Parks = c.children.parks
	}
	c.talkTo(model)
	return c, nil
}

// Open loads the session of a conversation, which works with the given tools and calls from then on. Another one that has the session
// is refused: see drive.
func (m *Sessions) Open(ctx context.Context, c *Conversation, rec centurion.Session, held []tools.Tool, call tools.Call, around Around) error {
	call.Media = c.cfg.Media
	c.cfg.Tools, c.cfg.Call, c.around = held, call, around
	if err := m.drive(c); err != nil {
		return err
	}
	err := c.Load(ctx)
	if err == nil {
		recall(call.Seen, rec, c.Sess)
		err = m.approvals.CloseQuestions(ctx, c.id, c.taskID())
	}
	if err != nil {
		m.Forget(c)
		return err
	}
	c.failures.restore(rec.Metadata.Retry)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[c.id] = c
	return nil
}

// recall rebuilds what a session that goes on knows of files: what it was given when it began, and what it has read and
// written since, as far as it still stands in what its model is sent. Which versions those were is what counts, wherever
// and in whichever copy of the conversation the calls were made.
func recall(seen *tools.Seen, rec centurion.Session, s *session.Session) {
	for _, g := range rec.Metadata.Given {
		if g.Whole {
			seen.Saw(g.Path, g.Version)
		}
	}
	for call := range s.Calls() {
		seen.Recall(call)
	}
}

// drive makes c the conversation of its session. A session has one at a time: two would both take what arrives for it, answer
// it and run calls for it, and the second would repair what the first is at. So another one is refused with KindConflict
// while the first has the session, unless a newer attempt has superseded it: then it writes nothing more, see fences.
func (m *Sessions) drive(c *Conversation) error {
	for {
		m.mu.Lock()
		other := m.drivers[c.id]
		m.mu.Unlock()
		if other != nil && other.Current() == nil {
			return &centurion.Error{Op: "open session", Kind: centurion.KindConflict, Msg: "session " + c.id + " is being worked on already",
				Hint: "write to it with: centurion send --mission " + m.st.ID}
		}
		m.mu.Lock()
		same := m.drivers[c.id] == other
		if same {
			m.drivers[c.id] = c
		}
		m.mu.Unlock()
		if same {
			return nil
		}
	}
}

// Forget lets go of a conversation that is over, or could not be opened. A newer one of the same session stays.
func (m *Sessions) Forget(c *Conversation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.drivers[c.id] == c {
		delete(m.drivers, c.id)
	}
	if m.open[c.id] == c {
		delete(m.open, c.id)
	}
}

// All lists the conversations that are open, in no order.
func (m *Sessions) All() []*Conversation {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*Conversation, 0, len(m.open))
	for _, c := range m.open {
		all = append(all, c)
	}
	return all
}

// Of returns the conversation of a session that is being worked on, or nil.
func (m *Sessions) Of(session string) *Conversation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open[session]
}

// On returns the conversation that works on a task, for "" the mission's own agent's, or nil.
func (m *Sessions) On(task string) *Conversation {
	all := m.All()
	if i := slices.IndexFunc(all, func(c *Conversation) bool { return c.taskID() == task }); i >= 0 {
		return all[i]
	}
	return nil
}

// Compact shortens the history of a session before its next request, if the session is being worked on.
func (m *Sessions) Compact(session string) {
	if c := m.Of(session); c != nil {
		c.asked.Store(true)
	}
}

// Resting reports whether the conversation of a task, for "" the mission's own, waits for nothing but that many answers and the ends of
// tasks that live. It is true for one that is not open.
func (m *Sessions) Resting(task string, answers int, lives func(task string) bool) bool {
	c := m.On(task)
	return c == nil || c.Pulse.Resting(answers, lives)
}

// Write lets a call write in the project's own directory, unless a check runs there; then it waits. The call runs with the context that
// is returned; over is called behind it.
func (m *Sessions) Write(ctx context.Context) (in context.Context, over func(), err error) {
	if err := m.writers.Acquire(ctx, 1); err != nil {
		return nil, nil, context.Cause(ctx)
	}
	return context.WithValue(ctx, writing{}, true), func() { m.writers.Release(1) }, nil
}

// writing marks the context of a call that may write in the project's own directory.
type writing struct{}

// Alone runs f while no tool call of the mission writes there.
func (m *Sessions) Alone(ctx context.Context, f func() error) error {
	if err := m.writers.Acquire(ctx, manyWriters); err != nil {
		return context.Cause(ctx)
	}
	defer m.writers.Release(manyWriters)
	return f()
}

// yield lets checks run while a call that may write waits for a person. resume is called when it goes on.
func (m *Sessions) yield(ctx context.Context) (resume func() error) {
	if ctx.Value(writing{}) == nil {
		return func() error { return nil }
	}
	m.writers.Release(1)
	return func() error { return m.writers.Acquire(context.WithoutCancel(ctx), 1) }
}
