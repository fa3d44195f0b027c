package agent

import (
	"context"
	"fmt"
	"slices"

	"centurion"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/state"
	"centurion/provider"
	"centurion/session"
	"centurion/store"
)

// host implements [session.Host] for a conversation.
type host struct{ c *Conversation }

var _ session.Host = host{}

// Before returns arrived messages, and refuses a request that the budget does not allow.
func (h host) Before(ctx context.Context) ([]centurion.Message, error) {
	c := h.c
	if err := c.m.st.WithinTimeAndCalls(); err != nil {
		return nil, err
	}
	if c.Task != nil && c.Task.Refused.Load() { // it asked for more tool calls than its own budget has
		return nil, h.spentOwn(centurion.Count(c.Task.Now.Load().Budget.ToolCalls, "tool call"))
	}
	arrived, err := c.collect(ctx, false)
	c.Told()
	if err != nil {
		return arrived, err
	}
	news, err := c.around.News(ctx)
	return append(arrived, news...), err
}

// spentOwn ends the conversation's task because its own budget, described by what, is used up.
func (h host) spentOwn(what string) error {
	err := state.OwnBudgetError("%s", what)
	h.c.Task.Cancel(err)
	return err
}

// Spent adds the cost of an answer to the task and the mission.
func (h host) Spent(tx *store.Tx, u centurion.Usage) error {
	c := h.c
	rec, err := tx.Mission(c.m.st.ID)
	if err != nil {
		return err
	}
	rec.Usage = rec.Usage.Plus(u)
	rec.Rounds++
	rec.ElapsedMS = c.m.st.Elapsed()
	rec.Updated = centurion.Now()
	var t centurion.Task
	if c.Task != nil {
		if t, err = tx.Task(c.Task.ID); err != nil {
			return err
		}
		t = c.Task.Spend(t, u)
	}
	rec.Reserved = c.m.reserves.Settle(c.account, rec, t)
	if err := tx.PutMission(&rec); err != nil {
		return err
	}
	c.m.st.Spent.Store(&rec)
	if u.Tokens.Total() > 0 && !c.Sess.Compacting() { // a failed or summary request has shown the model nothing
		c.around.Seen()
	}
	if c.Task == nil {
		return nil
	}
	return tx.PutTask(&t)
}

// changed records the files that the conversation has changed in its task, so that neither a failure nor the end of the host loses
// them.
func (h host) changed(tx *store.Tx, files []string) error {
	if h.c.Task == nil {
		h.c.m.iso.Wrote.Store(true)
		return nil
	}
	t, err := tx.Task(h.c.Task.ID)
	if err != nil {
		return err
	}
	t.Files = append(t.Files, files...)
	slices.Sort(t.Files)
	t.Files = slices.Compact(t.Files)
	return tx.PutTask(&t)
}

// Consume marks the results of tasks as taken, because a tool result contains them.
func (h host) Consume(tx *store.Tx, message string, tasks []string) error {
	pending, err := tx.PendingDeliveries(h.c.id)
	if err != nil {
		return err
	}
	for _, d := range pending {
		for _, id := range tasks {
			if d.Task != id {
				continue
			}
			t, err := tx.Task(id)
			if err != nil {
				return err
			}
			if err := state.Take(tx, d, t, message); err != nil {
				return err
			}
		}
	}
	return nil
}

// Waiting releases the slot while the provider delays the session for more than a moment. The session continues only after it has
// reacquired the slot.
func (h host) Waiting(ctx context.Context, w *provider.Wait) error {
	c := h.c
	if w != nil {
		if c.gate.end == nil && w.For > c.m.cfg.GateWait {
			c.Pulse.Leave()
			c.Slot.Release()
			c.gate.end = c.Live.Wait(WaitProvider)
		}
		return nil
	}
	if c.gate.end == nil {
		return nil
	}
	c.gate.opened()
	defer c.Pulse.Enter()
	return c.Slot.Acquire(ctx)
}

// Status is the current status text for the model.
func (h host) Status() string { return h.c.around.Status() }

// reserve covers a request before it is made. It keeps the slot meanwhile: another session would need a part of the same budget.
func (h host) reserve(ctx context.Context, n session.Need) (session.Cover, error) {
	c, b := h.c, h.c.m.reserves
	grant, err := b.Request(ctx, c.account, budget.Need{Input: n.Input, MaxOut: n.MaxOut, Price: c.cfg.Price}, func(why string) (func() error, error) {
		done := c.Live.Wait(WaitBudget)
		return func() error { done(); return c.goOn(ctx) }, c.halt(ctx, why)
	})
	if err != nil {
		return session.Cover{}, err
	}
	if d := grant.Lacks; grant.Own {
		return session.Cover{}, h.spentOwn(d.Say(budget.Own(c.Task.Now.Load().Budget)[d]))
	}
	return session.Cover{MaxOut: grant.MaxOut, Done: func() { b.Done(c.account) }}, nil
}

// begun records the start of n tool calls of an answer, and returns how many of them may run.
func (h host) begun(tx *store.Tx, n int) (may int, why string, err error) {
	c := h.c
	rec, err := tx.Mission(c.m.st.ID)
	if err != nil {
		return 0, "", err
	}
	may = n
	if most := rec.Options.MaxToolCalls; most > 0 && most-rec.ToolCalls < may {
		may, why = max(0, most-rec.ToolCalls), fmt.Sprintf("the mission's limit of %d tool calls is reached. Call it again when it has been raised.", most)
	}
	var t centurion.Task
	if c.Task != nil {
		if t, err = tx.Task(c.Task.ID); err != nil {
			return 0, "", err
		}
		if most := t.Budget.ToolCalls; most > 0 && most-t.ToolCalls < may {
			may, why = max(0, most-t.ToolCalls), fmt.Sprintf("the task's own budget of %s is used up.", centurion.Count(most, "tool call"))
			c.Task.Refused.Store(true)
		}
		t.ToolCalls += may
		c.Task.Now.Store(&t)
		err = tx.PutTask(&t)
	}
	rec.ToolCalls += may
	c.m.st.Spent.Store(&rec)
	if err == nil {
		err = tx.PutMission(&rec)
	}
	return may, why, err
}
