package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/failpoint"
	"centurion/guard"
	"centurion/orchestrator/approval"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/pulse"
	"centurion/orchestrator/slots"
	"centurion/orchestrator/state"
	"centurion/recovery"
	"centurion/session"
	"centurion/store"
	"centurion/text"
	"centurion/tools"
)

// conversation drives one session: its turns, its recovery, and the results that arrive for it. It belongs to one
// goroutine: the mission's loop for the Commander, the task's for every other.
type conversation struct {
	m       *mission
	agent   agents.Agent
	task    *state.Run // nil for the Commander
	attempt int        // the fencing number of the task's attempt
	cfg     session.Config
	sess    *session.Session
	slot    *slots.Slot // nil for the Commander, which holds none
	pulse   *pulse.Pulse

	untold int // results taken into the history that the model has not seen
	urgent int // of these, the ones that wake
	heard  int // messages of a person taken into the history that the model has not seen
	streak recovery.Streak
	failed []string         // the models that this row of failures has ended with
	wait   *centurion.Retry // a wait that a restart has cut off, until the next turn
	over   pointedOut       // which shared texts it was told are too long
	asked  atomic.Bool      // a person wants the history shortened
	live   live             // what is known of it from outside
	isolation.Seat
	names  []string  // of the tools that it holds
	gated  time.Time // since when the provider makes it wait; zero while it does not
	ungate func()    // ends what is told of that wait

	listed atomic.Pointer[string] // how its tasks stood when it listed them last
}

// open loads a session to be driven.
func (m *mission) open(ctx context.Context, id string, t *state.Run) (*conversation, error) {
	rec, err := m.h.cfg.Store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := state.Dropped(rec); err != nil {
		return nil, err
	}
	agent, err := m.wakes(rec)
	if err != nil {
		return nil, err
	}
	model, err := m.h.cfg.Model(rec.Model.Provider + "/" + rec.Model.ID)
	if err != nil {
		return nil, err
	}
	held, err := tools.Named(m.h.briefs.Held(agent, rec)...)
	if err != nil {
		return nil, err
	}
	c := &conversation{m: m, agent: agent, task: t, attempt: rec.Metadata.Attempt, pulse: pulse.New()}
	task := ""
	if t != nil {
		task = t.ID
	}
	if c.Seat, err = m.iso.Seat(ctx, id, task); err != nil {
		return nil, err
	}
	call := c.surroundings(rec)
	c.cfg = session.Config{Store: m.h.cfg.Store, Tools: c.dress(held, rec), Call: call, Host: c,
		Fence: func(*store.Tx) error { return c.current() }, Publish: m.h.cfg.Publish, Root: m.h.cfg.Workspace.Dir(),
		MaxSteps: agent.Steps, Temperature: agent.Temperature, Reserve: c.reserve, Calls: c.begun, Unbegun: m.approvals.OnlyAsked, Running: c.pulse.Running, Changed: c.changed,
		Policy: cmp.Or(m.h.cfg.Policies[agent.Name], m.h.cfg.Policy), EveryEvent: m.h.cfg.EveryEvent,
		Buffer: m.h.cfg.Buffer, Asked: func() bool { return c.asked.Swap(false) }}
	if t == nil {
		c.cfg.Parks = c.parks
	}
	c.talkTo(model)
	if err := m.drive(id, c); err != nil {
		return nil, err
	}
	if err = c.load(ctx, id); err == nil {
		recall(call.Seen, rec, c.sess)
		err = m.approvals.CloseQuestions(ctx, id, task)
	}
	if err != nil {
		m.park(id, c)
		return nil, err
	}
	if c.wait = rec.Metadata.Retry; c.wait != nil {
		c.streak, c.failed = recovery.Streak{Attempts: c.wait.Attempts, RateLimits: c.wait.RateLimits}, c.wait.Failed
	}
	m.mu.Lock()
	m.convs[id] = c
	m.mu.Unlock()
	return c, nil
}

// load reads the session from the store and repairs what was left half done.
func (c *conversation) load(ctx context.Context, id string) error {
	s, err := session.Open(ctx, c.cfg, id)
	if err == nil {
		c.sess = s
	}
	return err
}

func (c *conversation) id() string { return c.sess.Record().ID }

// turns runs turns until one ends well, recovering from what can be recovered.
func (c *conversation) turns(ctx context.Context) (session.Outcome, error) {
	if err := c.waitOut(ctx); err != nil {
		return session.Outcome{}, err
	}
	for {
		var out session.Outcome
		err := guard.Call("session "+c.id(), func() (err error) {
			turn, over := c.watch(ctx)
			defer over()
			out, err = c.sess.Turn(turn)
			return err
		})
		c.gated = time.Time{}
		c.gateOpened()
		if err == nil {
			c.healthy()
			return out, nil
		}
		if errors.Is(err, state.ErrSuperseded) {
			return out, errors.Join(err, c.m.st.RecordRefusal(ctx, c.task.ID, c.id(), c.attempt, "its conversation"))
		}
		if cause := context.Cause(ctx); cause != nil {
			return out, cause
		}
		if state.Crashed(err) { // what it has in memory may be half done
			if err := c.load(ctx, c.id()); err != nil {
				return out, err
			}
			if c.task == nil || c.task.Awaited.Load() > 0 || c.sess.Record().Metadata.Tools != nil {
				return out, err // the mission begins its loop anew, and who waits for a task or a sub-agent hears of it at once
			}
		}
		if out.Steps > 1 { // at least one good answer came before the failure
			c.healthy()
		}
		if stuck, ok := errors.AsType[*session.StuckError](err); ok {
			return out, c.noHeadway(stuck)
		}
		if err := c.recoverFrom(ctx, err); err != nil {
			return out, err
		}
	}
}

// recoverFrom carries out what is decided about a failed turn, and waits as long as that says. Without an error the turn
// is to be repeated.
func (c *conversation) recoverFrom(ctx context.Context, cause error) error {
	c.gated = time.Time{} // a request that failed while it waited does not wait any more
	c.streak = c.streak.After(cause)
	d := c.m.h.cfg.Recovery.Decide(recovery.Failure{Err: cause, Attempt: c.streak.Attempts, RateLimits: c.streak.RateLimits,
		Task: c.task != nil, Model: c.m.h.modelName(c), Fallbacks: c.fallbacks()})
	switch d.Action {
	case recovery.Retry:
	case recovery.Inject:
		if err := c.say(ctx, centurion.OriginHost, d.Prompt); err != nil {
			return err
		}
	case recovery.Compact:
		return c.compact(ctx, cause)
	case recovery.Fallback:
		return c.fallBack(ctx, d, cause)
	default:
		return c.giveUp(ctx, d, cause)
	}
	return c.pause(ctx, d, cause)
}

func (h *Host) modelName(c *conversation) string {
	r := c.sess.Record()
	return r.Model.Provider + "/" + r.Model.ID
}

// pause waits before a failed turn is repeated. The slot is given back before and taken again after.
func (c *conversation) pause(ctx context.Context, d recovery.Decision, cause error) error {
	data := event.RetryData{Attempt: c.streak.Attempts, WaitMS: d.Wait.Milliseconds(), Reason: d.Reason, Error: cause.Error()}
	wait := centurion.Retry{At: centurion.Time{Time: time.Now().Add(d.Wait)}, WaitMS: data.WaitMS, Reason: d.Reason,
		Attempts: c.streak.Attempts, RateLimits: c.streak.RateLimits, Failed: c.failed}
	err := c.m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		if err := errors.Join(c.current(), c.sess.PutRetry(tx, wait)); err != nil {
			return err
		}
		typ := centurion.EventProviderRetry
		e := centurion.Event{Mission: c.m.st.ID, Session: c.id(), Data: event.Data(data)}
		if c.task != nil {
			typ, e.Task = centurion.EventTaskRetrying, c.task.ID
			if _, err := state.MoveTask(tx, c.task.ID, centurion.TaskWaiting, func(t *centurion.Task) {
				t.Reason = fmt.Sprintf("retry in %s: %s", text.Took(d.Wait.Round(time.Second)), d.Reason)
			}); err != nil {
				return err
			}
		}
		e.Type = typ
		_, err := tx.Append(e)
		return err
	})
	if err != nil {
		return err
	}
	return c.sleep(ctx, d.Wait)
}

// waitOut waits for the rest of a wait that a restart has cut off.
func (c *conversation) waitOut(ctx context.Context) error {
	left := c.wait.Left(centurion.Now())
	reason := ""
	if c.wait != nil {
		reason = c.wait.Reason
	}
	c.wait = nil
	if left == 0 {
		return nil
	}
	if c.task != nil {
		err := c.m.st.MoveRun(ctx, c.task, centurion.TaskWaiting, func(t *centurion.Task) {
			t.Reason = fmt.Sprintf("retry in %s: %s", text.Took(left.Round(time.Second)), reason)
		})
		if err != nil {
			return err
		}
	}
	return c.sleep(ctx, left)
}

// sleep gives the slot back for d and takes it again after.
func (c *conversation) sleep(ctx context.Context, d time.Duration) error {
	c.slot.Release()
	defer c.live.wait(WaitRetry)()
	defer c.m.st.Notify()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := c.slot.Acquire(ctx); err != nil {
		return err
	}
	return c.running(ctx)
}

// running records that the conversation's task runs again after a wait.
func (c *conversation) running(ctx context.Context) error {
	if c.task == nil {
		return nil
	}
	return c.m.st.MoveRun(ctx, c.task, centurion.TaskRunning, nil)
}

// leave records that the conversation waits for somebody else and gives its slot back. Several of its tool calls may do
// so at the same time; each of them calls enter when its wait is over.
func (c *conversation) leave(ctx context.Context, why string) error {
	c.slot.Leave()
	if err := c.halt(ctx, why); err != nil {
		return errors.Join(err, c.enter())
	}
	return nil
}

// halt records that the conversation waits; its slot it keeps.
func (c *conversation) halt(ctx context.Context, why string) error {
	c.pulse.Leave()
	c.m.reserves.Rest(c.account())
	if c.task == nil {
		return nil
	}
	return c.m.st.MoveRun(ctx, c.task, centurion.TaskWaiting, func(t *centurion.Task) { t.Reason = why })
}

// goOn ends what halt began.
func (c *conversation) goOn(ctx context.Context) error {
	defer c.pulse.Enter()
	c.m.reserves.Wake(c.account())
	return c.running(ctx)
}

// enter ends what leave began. It waits for the slot as long as the conversation lives, even when the call that waited
// has been given up.
func (c *conversation) enter() error {
	defer c.pulse.Enter()
	ctx := c.m.st.Ctx
	if c.task != nil {
		ctx = c.task.Ctx
	}
	c.m.reserves.Wake(c.account())
	last, err := c.slot.Enter(ctx)
	if err != nil || !last {
		return err
	}
	return c.running(ctx)
}

// desk is where the conversation asks a person.
func (c *conversation) desk() approval.Desk {
	return approval.Desk{Approvals: c.m.approvals, Caller: approval.Caller{Agent: c.agent.Name, Current: c.current, Rest: c.rest}}
}

// rest waits for a person. The slot is given back meanwhile, and a check that waits for writers does not wait for this call.
func (c *conversation) rest(ctx context.Context, why string, wait func() error) error {
	defer c.live.wait(WaitPerson)()
	if err := c.leave(ctx, why); err != nil {
		return err
	}
	fenced := ctx.Value(fenceKey{}) != nil && !c.m.iso.Isolated()
	if fenced {
		c.m.writers.Release(1)
	}
	err := wait()
	if fenced {
		if ferr := c.m.writers.Acquire(context.WithoutCancel(ctx), 1); ferr != nil {
			return ferr
		}
	}
	return errors.Join(err, c.enter())
}

func (c *conversation) say(ctx context.Context, origin centurion.Origin, text string) error {
	return c.sess.Say(ctx, origin, text)
}

// takeIn moves what has arrived for this session into its history. It may be called between turns only.
func (c *conversation) takeIn(ctx context.Context) error {
	arrived, err := c.collect(ctx, true)
	c.sess.Add(arrived...)
	return err
}

// told says that the model is about to see everything that was taken in.
func (c *conversation) told() { c.untold, c.urgent, c.heard = 0, 0, 0 }

// collect consumes what waits for this session: each delivery is marked as taken in the transaction that puts it into the
// history. Messages that wait for the end of a turn are left alone while one goes on, and the host's words between turns.
func (c *conversation) collect(ctx context.Context, idle bool) ([]centurion.Message, error) {
	waiting, err := c.m.h.cfg.Store.PendingDeliveries(ctx, c.id())
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	p, _ := c.m.plan.Read() // the plan's own fault is told elsewhere
	var arrived []centurion.Message
	var untold, urgent, heard int
	// A message that is queued has a turn of its own: it is taken when nothing else of a person is there to be answered.
	alone := func(pending []store.Delivery) bool {
		return idle && heard == 0 && c.heard == 0 && !slices.ContainsFunc(pending, func(d store.Delivery) bool { return state.IsMail(d) && !d.Queue })
	}
	err = c.m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		arrived, untold, urgent, heard = nil, 0, 0, 0
		pending, err := tx.PendingDeliveries(c.id())
		if err := errors.Join(err, c.current()); err != nil {
			return err
		}
		rec := c.sess.Record()
		for _, d := range pending {
			if d.Queue && !alone(pending) || idle && state.IsWord(d) {
				continue
			}
			msg, err := c.m.brief.Take(tx, &rec, p, d)
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
	c.untold += untold
	c.urgent += urgent
	c.heard += heard
	if heard > 0 && c.task == nil {
		c.m.stagnant = 0 // a person has said how to go on
	}
	return arrived, nil
}
