package orchestrator

import (
	"cmp"
	"context"
	"fmt"

	"centurion"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
)

// account is the name of the conversation's account.
func (c *conversation) account() string {
	if c.task != nil {
		return c.task.Account
	}
	return c.m.st.ID
}

// reserve covers a request before it is made. The slot is kept while that takes: whoever got it instead would need a part
// of the same budget.
func (c *conversation) reserve(ctx context.Context, n session.Need) (session.Cover, error) {
	b := c.m.reserves
	grant, err := b.Request(ctx, c.account(), budget.Need{Input: n.Input, MaxOut: n.MaxOut, Price: c.cfg.Price}, func(why string) (func() error, error) {
		done := c.live.wait(WaitBudget)
		return func() error { done(); return c.goOn(ctx) }, c.halt(ctx, why)
	})
	if err != nil {
		return session.Cover{}, err
	}
	if grant.Own {
		return session.Cover{}, c.spentOwn(grant.Lacks)
	}
	return session.Cover{MaxOut: grant.MaxOut, Done: func() { b.Done(c.account()) }}, nil
}

// begun records that n tool calls of an answer begin, and says how many of them may.
func (c *conversation) begun(tx *store.Tx, n int) (may int, why string, err error) {
	rec, err := tx.Mission(c.m.st.ID)
	if err != nil {
		return 0, "", err
	}
	may = n
	if most := rec.Options.MaxToolCalls; most > 0 && most-rec.ToolCalls < may {
		may, why = max(0, most-rec.ToolCalls), fmt.Sprintf("the mission's limit of %d tool calls is reached. Call it again when it has been raised.", most)
	}
	var t centurion.Task
	if c.task != nil {
		if t, err = tx.Task(c.task.ID); err != nil {
			return 0, "", err
		}
		if most := t.Budget.ToolCalls; most > 0 && most-t.ToolCalls < may {
			may, why = max(0, most-t.ToolCalls), fmt.Sprintf("the task's own budget of %s is used up.", centurion.Count(most, "tool call"))
			c.task.Refused.Store(true)
		}
		t.ToolCalls += may
		c.task.Now.Store(&t)
		err = tx.PutTask(&t)
	}
	rec.ToolCalls += may
	c.m.st.Spent.Store(&rec)
	if err == nil {
		err = tx.PutMission(&rec)
	}
	return may, why, err
}

// portion is what is reserved for a task when it is started: what a small first request of its agent may cost.
// Nothing where nothing is limited.
func (m *mission) portion(t centurion.Task) budget.Amount {
	if m.reserves.State().Limit == (budget.Amount{}) {
		return budget.Amount{}
	}
	rec := m.st.Spent.Load()
	agent, err := m.st.CarriesOut(t)
	if err != nil {
		return budget.Amount{budget.Rounds: 1} // it will fail when it starts, and is told then
	}
	model, err := m.h.cfg.Model(cmp.Or(agent.Model, rec.Options.Model))
	if err != nil {
		return budget.Amount{budget.Rounds: 1}
	}
	bytes := len(agent.Prompt) + len(t.Prompt)
	if held, err := tools.Named(agent.Tools...); err == nil {
		for _, t := range held {
			bytes += len(t.Name()) + len(t.Description()) + schemaBytes
		}
	}
	return budget.Portion(model.Price, session.TokensOf(bytes))
}

// schemaBytes is how long the schema of a tool is, roughly.
const schemaBytes = 500

// cover waits until what a task needs at its start is reserved for it.
func (m *mission) cover(ctx context.Context, r *state.Run) error {
	if r.Covered {
		return nil
	}
	t := r.Now.Load()
	return m.reserves.Cover(ctx, r.Account, m.portion(*t), func(why string) (func() error, error) {
		r.Place.Leave()
		r.Place = nil
		return func() error { return nil }, m.st.MoveRun(ctx, r, centurion.TaskWaiting, func(t *centurion.Task) { t.Reason = why })
	})
}
