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

// Conversation drives one session: its turns, its recovery, and the results that arrive for it. It belongs to one
// goroutine: the mission's loop for the Commander, the task's for every other.
type Conversation struct {
	m       *Sessions
	id      string
	account string // its name among the reserves
	Agent   agents.Agent
	Task    *state.Run // nil for the Commander
	Attempt int        // the fencing number of the task's attempt
	Sess    *session.Session
	Slot    *slots.Slot // nil for the Commander, which holds none
	Pulse   *pulse.Pulse
	Live    Live // what is known of it from outside
	isolation.Seat
	cfg      session.Config
	around   Around
	failures failures
	children children

	Untold int         // results taken into the history that the model has not seen
	Urgent int         // of these, the ones that wake
	Heard  int         // messages of a person taken into the history that the model has not seen
	asked  atomic.Bool // a person wants the history shortened
	gate   gate        // the wait for a provider
}

// ID is that of the session.
func (c *Conversation) ID() string { return c.id }

// AuthorOf is a conversation as the merge queue knows it.
func AuthorOf(c *Conversation) *merge.Author {
	return &merge.Author{Seat: &c.Seat, Task: c.Task, Agent: c.Agent, Session: c.id, Say: c.Say}
}

// Config is what the session is opened with.
func (c *Conversation) Config() session.Config { return c.cfg }

func (c *Conversation) taskID() string {
	if c.Task == nil {
		return ""
	}
	return c.Task.ID
}

// Load reads the session from the store and repairs what was left half done.
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

// Fenced is Current, and records what was refused.
func (c *Conversation) Fenced(ctx context.Context, what string) error {
	err := c.Current()
	if err == nil {
		return nil
	}
	return errors.Join(err, c.m.st.RecordRefusal(ctx, c.Task.ID, c.id, c.Attempt, what))
}

// Turn runs one turn, which can be aborted from outside, and tells those who wait for its answer.
func (c *Conversation) Turn(ctx context.Context) (session.Outcome, error) {
	if err := c.goesOn(ctx); err != nil {
		return session.Outcome{}, err
	}
	turn, over := c.Live.begin(ctx)
	defer over() // also after a crash: whoever waits for the end of the turn must not wait for ever
	out, err := c.turns(turn)
	over() // before the answers: who asks again from now on finds them in the store
	if (c.Task != nil || !state.Crashed(err)) && c.m.st.Ctx.Err() == nil {
		c.m.above.Answered(ctx, c.m.st.ID, c.id, out, err)
	}
	return out, err
}

// turns runs turns until one ends well, recovering from what can be recovered.
func (c *Conversation) turns(ctx context.Context) (session.Outcome, error) {
	if err := c.failures.waitOut(ctx); err != nil {
		return session.Outcome{}, err
	}
	for {
		var out session.Outcome
		err := guard.Call("session "+c.id, func() (err error) {
			turn, over := c.watch(ctx)
			defer over()
			out, err = c.Sess.Turn(turn)
			return err
		})
		c.gate.opened()
		if err == nil {
			c.failures.reset()
			return out, nil
		}
		if errors.Is(err, state.ErrSuperseded) {
			return out, errors.Join(err, c.m.st.RecordRefusal(ctx, c.Task.ID, c.id, c.Attempt, "its conversation"))
		}
		if cause := context.Cause(ctx); cause != nil {
			return out, cause
		}
		if state.Crashed(err) { // what it has in memory may be half done
			if err := c.Load(ctx); err != nil {
				return out, err
			}
			if c.Task == nil || c.Task.Awaited.Load() > 0 || c.Sess.Record().Metadata.Tools != nil {
				return out, err // the mission begins its loop anew, and who waits for a task or a sub-agent hears of it at once
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

// talkTo makes a model the one that the session is opened with.
func (c *Conversation) talkTo(m Model) {
	c.cfg.Model, c.cfg.Ref, c.cfg.Price = asked{c.Pulse.Heard(m.Client), &c.Live}, m.Ref, m.Price
	c.cfg.MaxOut, c.cfg.Window = m.MaxOut, m.Context
	c.cfg.Media, c.cfg.Call.Media = m.Media, m.Media
}

// Running records that the conversation's task runs again after a wait.
func (c *Conversation) Running(ctx context.Context) error {
	if c.Task == nil {
		return nil
	}
	return c.m.st.MoveRun(ctx, c.Task, centurion.TaskRunning, nil)
}

// Resume takes the slot again and records that the task runs.
func (c *Conversation) Resume(ctx context.Context) error {
	if err := c.Slot.Acquire(ctx); err != nil {
		return err
	}
	return c.Running(ctx)
}

// Leave records that the conversation waits for somebody else and gives its slot back. Several of its tool calls may do
// so at the same time; each of them calls Enter when its wait is over.
func (c *Conversation) Leave(ctx context.Context, why string) error {
	c.Slot.Leave()
	if err := c.halt(ctx, why); err != nil {
		return errors.Join(err, c.Enter())
	}
	return nil
}

// halt records that the conversation waits; its slot it keeps.
func (c *Conversation) halt(ctx context.Context, why string) error {
	c.Pulse.Leave()
	c.m.reserves.Rest(c.account)
	if c.Task == nil {
		return nil
	}
	return c.m.st.MoveRun(ctx, c.Task, centurion.TaskWaiting, func(t *centurion.Task) { t.Reason = why })
}

// goOn ends what halt began.
func (c *Conversation) goOn(ctx context.Context) error {
	defer c.Pulse.Enter()
	c.m.reserves.Wake(c.account)
	return c.Running(ctx)
}

// Enter ends what Leave began. It waits for the slot as long as the conversation lives, even when the call that waited
// has been given up.
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

// Desk is where the conversation asks a person.
func (c *Conversation) Desk() approval.Desk {
	return approval.Desk{Approvals: c.m.approvals, Caller: approval.Caller{Agent: c.Agent.Name, Current: c.Current, Rest: c.rest}}
}

// rest waits for a person. The slot is given back meanwhile, and a check that waits for writers does not wait for this call.
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

// Say puts a text into the history.
func (c *Conversation) Say(ctx context.Context, origin centurion.Origin, text string) error {
	return c.Sess.Say(ctx, origin, text)
}

// TakeIn moves what has arrived for this session into its history. It may be called between turns only.
func (c *Conversation) TakeIn(ctx context.Context) error {
	arrived, err := c.collect(ctx, true)
	c.Sess.Add(arrived...)
	return err
}

// Told says that the model is about to see everything that was taken in.
func (c *Conversation) Told() { c.Untold, c.Urgent, c.Heard = 0, 0, 0 }

// SpokenTo takes in what has arrived, and reports whether the conversation goes on because a person has written to it: then it has its slot.
func (c *Conversation) SpokenTo(ctx context.Context) (bool, error) {
	if err := c.TakeIn(ctx); err != nil || c.Heard == 0 {
		return false, err
	}
	if err := c.Resume(ctx); err != nil {
		return false, err
	}
	return true, nil
}

// collect consumes what waits for this session: each delivery is marked as taken in the transaction that puts it into the
// history. Messages that wait for the end of a turn are left alone while one goes on, and the host's words between turns.
func (c *Conversation) collect(ctx context.Context, idle bool) ([]centurion.Message, error) {
	waiting, err := c.m.st.Store.PendingDeliveries(ctx, c.id)
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	var arrived []centurion.Message
	var untold, urgent, heard int
	// A message that is queued has a turn of its own: it is taken when nothing else of a person is there to be answered.
	alone := func(pending []store.Delivery) bool {
		return idle && heard == 0 && c.Heard == 0 && !slices.ContainsFunc(pending, func(d store.Delivery) bool { return state.IsMail(d) && !d.Queue })
	}
	p, _ := c.m.plan.Read() // the plan's own fault is told elsewhere
	err = c.m.st.Store.Update(ctx, func(tx *store.Tx) error {
		arrived, untold, urgent, heard = nil, 0, 0, 0
		pending, err := tx.PendingDeliveries(c.id)
		if err := errors.Join(err, c.Current()); err != nil {
			return err
		}
		rec := c.Sess.Record()
		for _, d := range pending {
			if d.Queue && !alone(pending) || idle && state.IsWord(d) {
				continue
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
		c.m.Stagnant = 0 // a person has said how to go on
	}
	return arrived, nil
}

// watch begins a turn under the eyes of the auditor. The Commander's own turn has a timer instead of the poll, which
// lives with the tasks only.
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

// lookIn examines the Commander's conversation after d, and again as long as its turn goes on.
func (c *Conversation) lookIn(d time.Duration) {
	p := c.Pulse
	p.After(d, func() {
		_ = guard.Call("audit", func() error { // it is a look from outside: its fault is none of the turn
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

// Examine judges whether the conversation has stalled or has worked for too long, and ends its turn or its task then.
func (c *Conversation) Examine() {
	s := c.Pulse.Signs(c.Task != nil)
	switch c.m.cfg.Limits.Judge(s) {
	case pulse.Stalled:
		end := c.Pulse.Take()
		if end == nil {
			return
		}
		// It is told before the turn ends, unless the mission has had its last event. The turn's own writes tell what is wrong with the store.
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

// fact is an event of the session.
func (c *Conversation) fact(t centurion.EventType, data any) centurion.Event {
	return centurion.Event{Type: t, Mission: c.m.st.ID, Session: c.id, Task: c.taskID(), Data: event.Data(data)}
}

// ToEnd runs turns until the conversation has ended one with nothing left to come for it: a session whose own tasks
// still run is not finished. A turn that had ended before a restart is not repeated.
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

// answered refuses an end without a word: what its parent would be told is nothing. An answer that is empty is asked for
// again by the session itself; this is for one that was cut off or held back before its first word.
func answered(out session.Outcome) error {
	if strings.TrimSpace(out.Text) != "" {
		return nil
	}
	return &centurion.Error{Kind: centurion.KindNoAnswer, Msg: "it ended without a result (" + out.Finish + ")",
		Hint: "hand it out again with a narrower prompt, or resume it and ask for the result alone"}
}

// gate is the wait of a conversation for a provider that lets nobody ask. end ends what is told of it; it is nil while nobody waits.
type gate struct{ end func() }

func (g *gate) opened() {
	if g.end != nil {
		g.end()
		g.end = nil
	}
}
