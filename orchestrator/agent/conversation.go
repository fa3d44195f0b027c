package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"centurion"
	"centurion/acp"
	"centurion/agents"
	"centurion/event"
	"centurion/failpoint"
	"centurion/guard"
	"centurion/orchestrator/approval"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/pulse"
	"centurion/orchestrator/slots"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/store"
	"centurion/text"
)

// Conversation drives one session: its turns, its recovery, and the results that arrive for it. It belongs to one goroutine: the
// mission's loop for the Commander, otherwise the task's.
type Conversation struct {
	m       *Sessions
	id      string
	account string // its account in the budget's reserves
	Agent   agents.Agent
	Task    *state.Run // nil for the Commander
	Attempt int        // the fencing number of the task's attempt
	Sess    *session.Session
	Slot    *slots.Slot // nil for the Commander
	Pulse   *pulse.Pulse
	Live    Live // its state as seen from outside
	isolation.Seat
	cfg      session.Config
	Outside  *acp.Program // takes its turns; nil if a model does
	above    []string     // the agents of the sessions above, nearest first
	around   Around
	failures failures
	children children

	Untold int         // results in the history that the model has not seen
	Urgent int         // those of Untold that wake
	Heard  int         // messages of a person in the history that the model has not seen
	asked  atomic.Bool // a person requested a compaction
	gate   gate        // the wait for a provider
}

// ID is the id of the session.
func (c *Conversation) ID() string { return c.id }

// AuthorOf returns a conversation as an author for the merge queue.
func AuthorOf(c *Conversation) *merge.Author {
	return &merge.Author{Seat: &c.Seat, Task: c.Task, Agent: c.Agent, Session: c.id, Say: c.Say}
}

// Config is the configuration of the session.
func (c *Conversation) Config() session.Config { return c.cfg }

func (c *Conversation) taskID() string {
	if c.Task == nil {
		return ""
	}
	return c.Task.ID
}

// Load reads the session from the store and repairs unfinished state.
func (c *Conversation) Load(ctx context.Context) error {
	s, err := session.Open(ctx, c.cfg, c.id)
	if err == nil {
		c.Sess = s
	}
	return err
}

// Current refuses an attempt that a newer one has superseded, or whose task has ended. The error wraps [state.ErrSuperseded].
func (c *Conversation) Current() error {
	if c.Task == nil {
		return nil
	}
	select {
	case <-c.Task.Done:
		return &centurion.Error{Kind: centurion.KindConflict, Err: state.ErrSuperseded,
			Msg: fmt.Sprintf("attempt %d of task %s writes no more: the task has ended", c.Attempt, c.Task.Name)}
	default:
	}
	return c.m.st.Fences.Check(c.Task.ID, c.Attempt)
}

// Fenced is Current, and also records the refusal.
func (c *Conversation) Fenced(ctx context.Context, what string) error {
	err := c.Current()
	if err == nil {
		return nil
	}
	return errors.Join(err, c.m.st.RecordRefusal(ctx, c.Task.ID, c.id, c.Attempt, what))
}

// Turn runs one turn, which can be aborted from outside, and notifies those waiting for its answer.
func (c *Conversation) Turn(ctx context.Context) (session.Outcome, error) {
	if err := c.goesOn(ctx); err != nil {
		return session.Outcome{}, err
	}
	turn, over := c.Live.begin(ctx)
	defer over() // also after a crash: waiters for the end of the turn must not hang
	out, err := c.turns(turn)
	over() // before the answers: who asks again from now on finds them in the store
	if (c.Task != nil || !state.Crashed(err)) && c.m.st.Ctx.Err() == nil {
		c.m.above.Answered(ctx, c.m.st.ID, c.id, out, err)
	}
	return out, err
}

// turns runs turns until one succeeds, recovering where possible.
func (c *Conversation) turns(ctx context.Context) (session.Outcome, error) {
	if err := c.failures.waitOut(ctx); err != nil {
		return session.Outcome{}, err
	}
	for {
		var out session.Outcome
		err := guard.Call("session "+c.id, func() (err error) {
			turn, over := c.watch(ctx)
			defer over()
			out, err = c.m.above.Turner(c).Turn(turn)
			return err
		})
		c.gate.opened()
		if err == nil {
			c.failures.reset()
			return out, nil
		}
		if errors.Is(err, errRecast) {
			c.failures.reset()
			if err := c.Load(ctx); err != nil {
				return out, err
			}
			continue
		}
		if errors.Is(err, state.ErrSuperseded) {
			return out, errors.Join(err, c.m.st.RecordRefusal(ctx, c.Task.ID, c.id, c.Attempt, "its conversation"))
		}
		if cause := context.Cause(ctx); cause != nil {
			return out, cause
		}
		if state.Crashed(err) { // its memory may be inconsistent
			if err := c.Load(ctx); err != nil {
				return out, err
			}
			if c.Task == nil || c.Task.Awaited.Load() > 0 || c.Sess.Record().Metadata.Tools != nil {
				return out, err // the mission restarts its loop, and waiters for a task or a sub-agent are notified at once
			}
		}
		if out.Steps > 1 { // at least one good answer came before the failure
			c.failures.reset()
		}
		if stuck, ok := errors.AsType[*session.StuckError](err); ok {
			return out, c.failures.noHeadway(stuck)
		}
		if err := c.failures.recover(ctx, err); err != nil {
			return out, err
		}
	}
}

// talkTo sets the model of the session.
func (c *Conversation) talkTo(m Model) {
	c.cfg.Model, c.cfg.Ref, c.cfg.Price = asked{c.Pulse.Heard(m.Client), &c.Live}, m.Ref, m.Price
	c.cfg.MaxOut, c.cfg.Window = m.MaxOut, m.Context
	c.cfg.Media, c.cfg.Call.Media, c.Outside = m.Media, m.Media, m.Outside
}

// Running records that the conversation's task runs again after a wait.
func (c *Conversation) Running(ctx context.Context) error {
	if c.Task == nil {
		return nil
	}
	return c.m.st.MoveRun(ctx, c.Task, centurion.TaskRunning, nil)
}

// Resume reacquires the slot and records that the task runs.
func (c *Conversation) Resume(ctx context.Context) error {
	if err := c.Slot.Acquire(ctx); err != nil {
		return err
	}
	return c.Running(ctx)
}

// Leave records that the conversation waits and releases its slot. Several of its tool calls may do so at the same time; each calls
// Enter when its wait is over.
func (c *Conversation) Leave(ctx context.Context, why string) error {
	c.Slot.Leave()
	if err := c.halt(ctx, why); err != nil {
		return errors.Join(err, c.Enter())
	}
	return nil
}

// halt records that the conversation waits, and keeps its slot.
func (c *Conversation) halt(ctx context.Context, why string) error {
	c.Pulse.Leave()
	c.m.reserves.Rest(c.account)
	if c.Task == nil {
		return nil
	}
	return c.m.st.MoveRun(ctx, c.Task, centurion.TaskWaiting, func(t *centurion.Task) { t.Reason = why })
}

// goOn ends a halt.
func (c *Conversation) goOn(ctx context.Context) error {
	defer c.Pulse.Enter()
	c.m.reserves.Wake(c.account)
	return c.Running(ctx)
}

// Enter ends a Leave. It waits for the slot as long as the conversation lives, even if the waiting call was given up.
func (c *Conversation) Enter() error {
	defer c.Pulse.Enter()
	ctx := c.m.st.Ctx
	if c.Task != nil {
		ctx = c.Task.Ctx
	}
	c.m.reserves.Wake(c.account)
	last, err := c.Slot.Enter(ctx)
	if err != nil || !last {
		return err
	}
	return c.Running(ctx)
}

// Desk returns the desk for the conversation's asks.
func (c *Conversation) Desk() approval.Desk {
	return approval.Desk{Approvals: c.m.approvals, Caller: approval.Caller{Agent: c.Agent.Name, Above: c.above, Current: c.Current, Rest: c.rest}}
}

// rest waits for a person. Meanwhile the slot is released, and checks that wait for writers do not wait for this call.
func (c *Conversation) rest(ctx context.Context, why string, wait func() error) error {
	defer c.Live.Wait(WaitPerson)()
	if err := c.Leave(ctx, why); err != nil {
		return err
	}
	resume := c.m.yield(ctx)
	err := wait()
	if rerr := resume(); rerr != nil {
		return rerr
	}
	return errors.Join(err, c.Enter())
}

// Say adds a text to the history.
func (c *Conversation) Say(ctx context.Context, origin centurion.Origin, text string) error {
	return c.Sess.Say(ctx, origin, text)
}

// TakeIn moves arrived deliveries into the history. It may be called only between turns.
func (c *Conversation) TakeIn(ctx context.Context) error {
	arrived, err := c.collect(ctx, true)
	c.Sess.Add(arrived...)
	return err
}

// Told records that the model is about to see everything taken in.
func (c *Conversation) Told() { c.Untold, c.Urgent, c.Heard = 0, 0, 0 }

// SpokenTo takes in deliveries, and reports whether a person's message continues the conversation; then it has its slot.
func (c *Conversation) SpokenTo(ctx context.Context) (bool, error) {
	if err := c.TakeIn(ctx); err != nil || c.Heard == 0 {
		return false, err
	}
	err := c.Resume(ctx)
	return err == nil, err
}

// collect consumes the pending deliveries of the session: each is marked as taken in the transaction that adds it to the history.
// During a turn it skips messages queued for the end of the turn, between turns the host's notices.
func (c *Conversation) collect(ctx context.Context, idle bool) ([]centurion.Message, error) {
	waiting, err := c.m.st.Store.PendingDeliveries(ctx, c.id)
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	var arrived []centurion.Message
	var untold, urgent, heard int
	// A queued message gets a turn of its own: it is taken only when no other message of a person is pending.
	alone := func(pending []store.Delivery) bool {
		return idle && heard == 0 && c.Heard == 0 && !slices.ContainsFunc(pending, func(d store.Delivery) bool { return state.IsMail(d) && !d.Queue })
	}
	cast, err := castOf(ctx, c, waiting)
	if err != nil {
		return nil, err
	}
	p, _ := c.m.plan.Read() // errors of the plan are reported elsewhere
	err = c.m.st.Store.Update(ctx, func(tx *store.Tx) error {
		arrived, untold, urgent, heard = nil, 0, 0, 0
		pending, err := tx.PendingDeliveries(c.id)
		if err := errors.Join(err, c.Current()); err != nil {
			return err
		}
		rec := c.Sess.Record()
		cast.now = rec
		for _, d := range pending {
			if d.Queue && !alone(pending) || idle && state.IsWord(d) {
				continue
			}
			if known, err := cast.take(tx, &rec, d); !known || err != nil { // the unknown one has come since, and is read next
				return err
			}
			msg, err := c.m.above.Take(tx, &rec, p, d)
			if err != nil {
				return err
			}
			arrived = append(arrived, msg)
			switch {
			case state.IsMail(d):
				heard++
			case d.Task != "":
				untold++
				if d.Wake {
					urgent++
				}
			}
		}
		return nil
	})
	failpoint.Hit(failpoint.DeliveryTaken)
	if err != nil {
		return nil, err
	}
	c.Untold += untold
	c.Urgent += urgent
	c.Heard += heard
	if heard > 0 && c.Task == nil {
		c.m.Stagnant = 0 // a person has said how to continue
	}
	return cast.over(ctx, arrived, idle)
}

// watch starts the auditing of a turn. The Commander's turn uses a timer, since the poll runs only while tasks live.
func (c *Conversation) watch(ctx context.Context) (turn context.Context, over func()) {
	turn, end := context.WithCancelCause(ctx)
	c.Pulse.Begin(end)
	if c.Task == nil {
		c.lookIn(c.m.cfg.Limits.Silent)
	}
	return turn, func() {
		c.Pulse.Over()
		end(nil)
	}
}

// lookIn examines the Commander's conversation after d, and again until its turn ends.
func (c *Conversation) lookIn(d time.Duration) {
	p := c.Pulse
	p.After(d, func() {
		_ = guard.Call("audit", func() error { // the audit is independent of the turn: its errors are not the turn's
			c.Examine()
			limit := c.m.cfg.Limits.Silent
			s := p.Signs(false)
			next := limit / 10
			if s.Calls == 0 && !s.Waits {
				next = limit - s.Silent
			}
			c.lookIn(max(next, c.m.cfg.Poll))
			return nil
		})
	})
}

// Examine checks whether the conversation has stalled or worked too long, and then ends its turn or its task.
func (c *Conversation) Examine() {
	s := c.Pulse.Signs(c.Task != nil)
	switch c.m.cfg.Limits.Judge(s) {
	case pulse.Stalled:
		end := c.Pulse.Take()
		if end == nil {
			return
		}
		// The event precedes the end of the turn, unless the mission has ended. Errors of the store show up in the turn's own writes.
		_ = c.m.st.Store.Update(c.m.st.Ctx, func(tx *store.Tx) error {
			rec, err := tx.Mission(c.m.st.ID)
			if err != nil || !rec.Status.Alive() {
				return err
			}
			_, err = tx.Append(c.fact(centurion.EventTaskStalled, event.StallData{SilentMS: s.Silent.Milliseconds(), Last: s.Did}))
			return err
		})
		end(&centurion.Error{Kind: centurion.KindStall, Msg: fmt.Sprintf("nothing has come for %s from %s", text.Took(s.Silent.Round(time.Second)), s.Did)})
	case pulse.TooOld:
		if c.Pulse.Expire() {
			c.Task.Cancel(&centurion.Error{Kind: centurion.KindTimeout, Msg: fmt.Sprintf("it has worked for %s, as long as one attempt may", text.Took(s.Worked.Round(time.Second))),
				Hint: "split the work, or raise session_ttl"})
		}
	}
}

// fact returns an event of the session.
func (c *Conversation) fact(t centurion.EventType, data any) centurion.Event {
	return centurion.Event{Type: t, Mission: c.m.st.ID, Session: c.id, Task: c.taskID(), Data: event.Data(data)}
}

// ToEnd runs turns until one ends with nothing left to wait for: a session with running tasks is not finished. A turn that ended before
// a restart is not repeated.
func (c *Conversation) ToEnd(ctx context.Context) (session.Outcome, error) {
	var out session.Outcome
	var files []string
	due := c.Sess.Due()
	if !due {
		text, err := c.m.st.LastText(ctx, c.id)
		if err != nil {
			return out, err
		}
		out.Text, out.Finish = text, centurion.FinishStop
	}
	for {
		if due {
			var err error
			out, err = c.Turn(ctx)
			files = append(files, out.Files...)
			out.Files = files
			if err != nil {
				if goOn, err := c.afterAbort(ctx, err); !goOn {
					return out, err
				}
				continue
			}
		}
		more, err := c.children.await(ctx)
		if err != nil {
			return out, err
		}
		if !more {
			return out, answered(out)
		}
		due = true
	}
}

// answered refuses an end without text, which would leave its parent nothing to read. The session itself retries empty answers; this is
// for one cut off or withheld before its first word.
func answered(out session.Outcome) error {
	if strings.TrimSpace(out.Text) != "" {
		return nil
	}
	return &centurion.Error{Kind: centurion.KindNoAnswer, Msg: "it ended without a result (" + out.Finish + ")",
		Hint: "hand it out again with a narrower prompt, or resume it and ask for the result alone"}
}

// gate is a conversation's wait for a rate-limited provider. end ends its status; it is nil while there is no wait.
type gate struct{ end func() }

func (g *gate) opened() {
	if g.end != nil {
		g.end()
		g.end = nil
	}
}
