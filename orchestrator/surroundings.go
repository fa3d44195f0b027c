package orchestrator

import (
	"context"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/orchestrator/state"
	"centurion/provider"
	"centurion/store"
)

// A conversation is what surrounds its session: the methods here make it a [session.Host].

// Before brings what arrived and refuses a request that the budget does not allow.
func (c *conversation) Before(ctx context.Context) ([]centurion.Message, error) {
	if err := c.m.st.WithinBudget(); err != nil {
		return nil, err
	}
	if err := c.withinOwn(); err != nil {
		return nil, err
	}
	arrived, err := c.collect(ctx, false)
	c.told()
	if err != nil {
		return arrived, err
	}
	heard, err := c.hearOfFiles(ctx)
	return append(arrived, heard...), err
}

// Spent adds the cost of an answer to the task and the mission.
func (c *conversation) Spent(tx *store.Tx, u centurion.Usage) error {
	rec, err := tx.Mission(c.m.st.ID)
	if err != nil {
		return err
	}
	rec.Usage = rec.Usage.Plus(u)
	rec.Rounds++
	rec.ElapsedMS = c.m.st.Elapsed()
	rec.Updated = centurion.Now()
	var t centurion.Task
	if c.task != nil {
		if t, err = tx.Task(c.task.ID); err != nil {
			return err
		}
		t = c.task.Spend(t, u)
	}
	rec.Reserved = c.m.reserves.Settle(c.account(), rec, t)
	if err := tx.PutMission(&rec); err != nil {
		return err
	}
	c.m.st.Spent.Store(&rec)
	if u.Tokens.Total() > 0 && !c.sess.Compacting() { // a request that failed, or for a summary, has told nobody anything
		c.m.background.heard(c.id())
		c.over.heard()
	}
	if c.task == nil {
		return nil
	}
	return tx.PutTask(&t)
}

// changed keeps with its task which files the conversation has changed, so that neither a failure nor the end of the
// host lets them be forgotten.
func (c *conversation) changed(tx *store.Tx, files []string) error {
	if c.task == nil {
		c.m.iso.Wrote.Store(true)
		return nil
	}
	t, err := tx.Task(c.task.ID)
	if err != nil {
		return err
	}
	t.Files = append(t.Files, files...)
	slices.Sort(t.Files)
	t.Files = slices.Compact(t.Files)
	return tx.PutTask(&t)
}

// Consume marks the results of tasks as taken, because they stand in the result of a tool call.
func (c *conversation) Consume(tx *store.Tx, message string, tasks []string) error {
	pending, err := tx.PendingDeliveries(c.id())
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

// Waiting gives the slot back while the provider makes the session wait for longer than a moment. The session goes on
// only after it has the slot again.
func (c *conversation) Waiting(ctx context.Context, w *provider.Wait) error {
	if w != nil {
		if c.gated.IsZero() && w.For > c.m.h.cfg.GateWait {
			c.gated = time.Now()
			c.pulse.Leave()
			c.slot.Release()
			c.ungate = c.live.wait(WaitProvider)
		}
		return nil
	}
	if c.gated.IsZero() {
		return nil
	}
	c.gated = time.Time{}
	c.gateOpened()
	defer c.pulse.Enter()
	return c.slot.Acquire(ctx)
}

// Status is what the model should know right now: for those who plan, where the plan stands; for a worker, who else is
// at work on what, and which of its background commands have ended.
func (c *conversation) Status() string {
	if c.task == nil {
		return strings.TrimSpace(strings.TrimRight(c.m.brief.Status(&c.m.claims, c.m.hasClaimed(), c.m.budgetLine)+"\n"+c.m.whoElse("", c.id())+c.overlong(), "\n") + "\n" + c.m.background.news(c.id()))
	}
	var b strings.Builder
	b.WriteString(c.task.Left())
	b.WriteString(c.m.whoElse(c.Holder, c.id()))
	if long := c.overlong(); long != "" {
		b.WriteString(long + "\n")
	}
	b.WriteString(c.m.background.news(c.id()))
	return strings.TrimSpace(b.String())
}
