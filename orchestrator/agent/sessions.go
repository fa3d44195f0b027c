// Package agent drives the sessions of one mission: their turns, recovery from failed turns, incoming results and messages, and the
// slot and budget they need. Their tools, and the fate of their work, are decided above.
package agent

import (
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

// Config configures the sessions of a mission.
type Config struct {
	Models
	Session  session.Config            // shared by all sessions
	Policies map[string]session.Policy // overlapping tool calls, by agent name where it has its own policy
	GateWait time.Duration             // longer waits for a provider release the slot
	Await    time.Duration             // how long a call waits for a task
	Poll     time.Duration             // the minimum time between two checks of the mission's own agent
	Limits   pulse.Limits
	External tools.External // nil has no tools
}

// Above is the part of the mission that its sessions call.
type Above struct {
	// Take adds a delivery to the history of its session.
	Take func(tx *store.Tx, rec *centurion.Session, p plan.View, d store.Delivery) (centurion.Message, error)
	// Startable describes, for a model, the items that the mission's own agent could start instead of waiting; "" if there are none.
	Startable func(ctx context.Context) (string, error)
	// Begins returns how a session changes that an agent of this name takes over.
	Begins func(ctx context.Context, agent string) (func(*centurion.Session), error)
	Turner func(c *Conversation) Turner // who takes the turns: the session, or [Conversation.Outside]
	// Recast gives a conversation the agent, the tools and the model of its record as it is now.
	Recast func(ctx context.Context, c *Conversation, rec centurion.Session) error
	// Answered is called at the end of a turn of a session, unless its mission stops, with its outcome and the error of a failed one.
	Answered func(ctx context.Context, mission, session string, out session.Outcome, cause error)
}

// Turner takes the turns of a conversation.
type Turner interface {
	Turn(ctx context.Context) (session.Outcome, error)
}

// Around provides the context of one conversation.
type Around interface {
	Status() string                                        // current status, at the end of each request
	Seen()                                                 // the model has answered a request with that status
	News(ctx context.Context) ([]centurion.Message, error) // messages before a request, already in its history
	// Renewed changes what is fixed in the session's record until the next compaction, and returns the tools from then on.
	Renewed(ctx context.Context, rec *centurion.Session) []tools.Tool
}

// manyWriters is the number of writing calls that may run at the same time: practically unlimited.
const manyWriters = 1 << 30

// Sessions are the running sessions of one mission.
type Sessions struct {
	st        *state.Mission
	iso       *isolation.Checkouts
	plan      *plan.Plan
	approvals *approval.Approvals
	reserves  *budget.Reserves
	cfg       Config
	above     Above

	// Stagnant counts consecutive continuations of the mission's own agent that changed nothing. It belongs to the mission's loop.
	Stagnant int

	// writers lets writing tool calls run in parallel but a check run alone: a call takes one, a check takes all.
	writers *semaphore.Weighted

	mu      sync.Mutex               // protects the fields below
	open    map[string]*Conversation // by session id
	drivers map[string]*Conversation // the owner of each session, by id, from before it is loaded
}

// New returns the sessions of a mission, none open.
func New(st *state.Mission, iso *isolation.Checkouts, p *plan.Plan, approvals *approval.Approvals, reserves *budget.Reserves, cfg Config, above Above) *Sessions {
	return &Sessions{st: st, iso: iso, plan: p, approvals: approvals, reserves: reserves, cfg: cfg, above: above, writers: semaphore.NewWeighted(manyWriters),
		open: map[string]*Conversation{}, drivers: map[string]*Conversation{}}
}

// New returns the conversation of a session, to be opened.
func (m *Sessions) New(ctx context.Context, rec centurion.Session, agent agents.Agent, t *state.Run) (*Conversation, error) {
	c := &Conversation{m: m, id: rec.ID, account: m.st.ID, Task: t, Attempt: rec.Metadata.Attempt, Pulse: pulse.New()}
	c.failures.c, c.children.c = c, c
	if t != nil {
		c.account = t.Account
	}
	var err error
	if c.Seat, err = m.iso.Seat(ctx, rec.ID, c.taskID()); err != nil {
		return nil, err
	}
	for id := rec.ParentID; id != ""; {
		up, err := m.st.Store.Session(ctx, id)
		if err != nil {
			return nil, err
		}
		c.above, id = append(c.above, up.Agent), up.ParentID
	}
	h := host{c}
	c.cfg = m.cfg.Session
	c.cfg.Store, c.cfg.Host, c.cfg.Fence = m.st.Store, h, func(*store.Tx) error { return c.Current() }
	c.cfg.Reserve, c.cfg.Calls, c.cfg.Unbegun, c.cfg.Running, c.cfg.Changed = h.reserve, h.begun, m.approvals.OnlyAsked, c.Pulse.Running, h.changed
	c.cfg.Asked = func() bool { return c.asked.Swap(false) }
	if t == nil {
		c.cfg.Parks = c.children.parks
	}
	return c, m.Play(c, agent, rec)
}

// Open loads the session of a conversation that has its tools. It fails if another conversation owns the session: see drive.
func (m *Sessions) Open(ctx context.Context, c *Conversation, rec centurion.Session) error {
	if err := m.drive(c); err != nil {
		return err
	}
	err := c.Load(ctx)
	if err == nil {
		recall(c.cfg.Call.Seen, rec, c.Sess)
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

// recall rebuilds what a resumed session knows of files: those it was given at its start, and those read and written since, as far as
// its model's context still contains them. Versions decide, regardless of where the calls were made and in which copy of the
// conversation.
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

// drive makes c the owner of its session. Two owners would both consume its deliveries, answer them and run their calls, and the second
// would repair the first's unfinished state. So while the first owns the session, the second is refused with KindConflict, unless a
// newer attempt has superseded the first, which then writes nothing more: see fences.
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

// Forget removes a conversation that is over, or could not be opened. A newer one of the same session stays.
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

// All lists the open conversations, in no order.
func (m *Sessions) All() []*Conversation {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*Conversation, 0, len(m.open))
	for _, c := range m.open {
		all = append(all, c)
	}
	return all
}

// Of returns the open conversation of a session, or nil.
func (m *Sessions) Of(session string) *Conversation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open[session]
}

// On returns the conversation that works on a task ("" for the mission's own agent), or nil.
func (m *Sessions) On(task string) *Conversation {
	all := m.All()
	if i := slices.IndexFunc(all, func(c *Conversation) bool { return c.taskID() == task }); i >= 0 {
		return all[i]
	}
	return nil
}

// Notify wakes everything in the mission that waits for a change.
func (m *Sessions) Notify() { m.st.Notify() }

// Compact requests a compaction of an open session before its next request, or at once in the mission's own if that has no turn.
func (m *Sessions) Compact(session string) {
	if c := m.Of(session); c != nil {
		c.asked.Store(true)
		m.Notify()
	}
}

// Resting reports whether the conversation of a task ("" for the mission's own) waits for nothing but that many answers and the ends of
// living tasks. It is true for one that is not open.
func (m *Sessions) Resting(task string, answers int, lives func(task string) bool) bool {
	c := m.On(task)
	return c == nil || c.Pulse.Resting(answers, lives)
}

// Write admits a call that writes in the project's own directory; it waits while a check runs there. Run the call with the returned
// context, and call over afterwards.
func (m *Sessions) Write(ctx context.Context) (in context.Context, over func(), err error) {
	if err := m.writers.Acquire(ctx, 1); err != nil {
		return nil, nil, context.Cause(ctx)
	}
	return context.WithValue(ctx, writing{}, true), func() { m.writers.Release(1) }, nil
}

// writing marks the context of a call admitted by Write.
type writing struct{}

// Alone runs f while no admitted call runs.
func (m *Sessions) Alone(ctx context.Context, f func() error) error {
	if err := m.writers.Acquire(ctx, manyWriters); err != nil {
		return context.Cause(ctx)
	}
	defer m.writers.Release(manyWriters)
	return f()
}

// yield lets checks run while an admitted call waits for a person. Call resume before it continues.
func (m *Sessions) yield(ctx context.Context) (resume func() error) {
	if ctx.Value(writing{}) == nil {
		return func() error { return nil }
	}
	m.writers.Release(1)
	return func() error { return m.writers.Acquire(context.WithoutCancel(ctx), 1) }
}
