package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/store"
	"centurion/worktree"
)

// accept judges the work of a turn that has ended and puts it where it belongs. It returns why the work goes back to its
// session, or nil.
func (m *mission) accept(ctx context.Context, c *conversation, out *session.Outcome, returns int) (*merge.Rejection, error) {
	stuck, back, err := m.unfinished(ctx, c, out.Text)
	if back == nil && err == nil {
		back, err = m.unruled(ctx, c, out.Text)
	}
	if back != nil || err != nil {
		return back, err
	}
	if m.iso.Isolated() {
		return m.landTask(ctx, c, out, stuck)
	}
	if len(out.Files) == 0 {
		if back, err := m.onlyAsks(ctx, c, out.Text); back != nil || err != nil {
			return back, err
		}
	}
	failed, err := m.prove(ctx, c, returns)
	switch {
	case err != nil:
		return nil, err
	case stuck:
		return stuckShared(failed), nil
	case failed == nil:
		return nil, nil
	}
	return &merge.Rejection{Text: m.failedText(c, *failed), Short: merge.Account(*failed), Cause: event.ReturnedCheck, Command: failed.Command}, nil
}

// landTask commits what a task's session has written, proves it on top of the mission's branch and puts it there. stuck says that its agent
// takes it for unfinished.
func (m *mission) landTask(ctx context.Context, c *conversation, out *session.Outcome, stuck bool) (*merge.Rejection, error) {
	t, err := m.h.cfg.Store.Task(ctx, c.task.ID)
	if err != nil {
		return nil, err
	}
	l := &merge.Work{Task: c.task, Agent: c.agent.Name, Item: t.Item, Given: t.Verify, Stuck: stuck}
	if it, ok := m.plan.ItemNow(t.Item); ok && !t.Reviews {
		l.Verify, l.Keeps = it.Verify, strings.EqualFold(strings.TrimSpace(it.Proof), string(centurion.ProofRegression))
	} else if !ok && !t.Reviews { // its line cannot be read, or it was removed in this moment
		if p, err := m.plan.Read(); err == nil && p.IsGone(t.Item) {
			return nil, plan.Removed(t.Item)
		}
		l.Verify = t.Verify
	}
	l.More = t.Returns < m.h.cfg.Returns
	if len(l.Verify) > 0 && !stuck {
		if l.Mends, err = m.mayMend(ctx, t); err != nil {
			return nil, err
		}
	}
	checkout := c.Checkout()
	note := ""
	if checkout != nil {
		if l.Commit, err = checkout.Commit(ctx, commitMessage(t, out.Text)); err != nil {
			return nil, err
		}
		if l.Commit.ID != "" && !mayChange(c) {
			note = fmt.Sprintf("(The %s is not to change files. What it changed with shell commands was not merged; it is on the branch %s: %s)",
				c.agent.Name, checkout.Where().Branch, centurion.Clip(strings.Join(centurion.Paths(l.Commit.Files), ", "), 500))
			l.Commit = worktree.Commit{}
		}
		back, err := m.queue.LeftMarkers(ctx, l)
		if back != nil || err != nil {
			return back, err
		}
	}
	if l.Commit.ID == "" {
		if back, err := m.onlyAsks(ctx, c, out.Text); back != nil || err != nil {
			return back, err
		}
	}
	l.Idle = l.Commit.ID == "" && len(t.Landed) == 0
	if l.Commit.ID != "" || len(l.Verify) > 0 {
		if err := m.st.MoveRun(ctx, c.task, centurion.TaskVerifying, nil); err != nil {
			return nil, err
		}
		if err := m.queue.Land(ctx, l); err != nil || l.Back != nil {
			return l.Back, err
		}
	}
	if note != "" && !strings.Contains(out.Text, note) {
		out.Text += "\n\n" + note
	}
	if l.Landed != nil {
		out.Files = append(out.Files, m.iso.InProject(centurion.Paths(l.Landed.Files))...)
		slices.Sort(out.Files)
		out.Files = slices.Compact(out.Files)
	}
	return nil, moveOn(ctx, c, l.There)
}

// mayChange reports whether a conversation's agent is there to change files.
func mayChange(c *conversation) bool { return c.agent.Holds("write") || c.agent.Holds("edit") }

// moveOn brings a session's checkout to the commit that its work has become, if any, and records it. Where something was written
// meanwhile it stays as it is: what is merged already merges with itself.
func moveOn(ctx context.Context, c *conversation, commit string) error {
	if commit == "" {
		return nil
	}
	if err := c.Checkout().Move(ctx, commit); err != nil {
		if centurion.KindOf(err) == centurion.KindConflict {
			return nil
		}
		return err
	}
	return c.KeepPlace(ctx)
}

// commitMessage says whose work a commit is, and what came of it.
func commitMessage(t centurion.Task, result string) string {
	title := strings.TrimSpace(t.Item + " " + strings.Join(strings.Fields(t.Title), " "))
	body := state.FirstLines(result, 10, 1000)
	if body != "" {
		body += "\n\n"
	}
	return fmt.Sprintf("%s\n\n%sMission: %s\nTask: %s\nAgent: %s\n", centurion.Clip(title, 100), body, t.Mission, t.ID, t.Agent)
}

// returned gives work back to the session that did it, for the n-th time in a row, with what others have done since in its checkout.
// It is told first: a host that dies in between finds the same conflict again, while markers that nobody has explained would be a riddle.
func (m *mission) returned(ctx context.Context, c *conversation, back *merge.Rejection, n int) error {
	if err := m.recordReturn(ctx, c, back, n); err != nil {
		return err
	}
	if err := c.say(ctx, centurion.OriginHost, back.Text); err != nil {
		return err
	}
	return layBack(ctx, c, back)
}

// recordReturn records that work goes back, and why, and adds to the rejection's text what its session has to know.
func (m *mission) recordReturn(ctx context.Context, c *conversation, back *merge.Rejection, n int) error {
	err := m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		e := centurion.Event{Type: centurion.EventTaskReturned, Mission: m.st.ID, Session: c.id(),
			Data: event.Data(event.ReturnData{Cause: back.Cause, Reason: centurion.Clip(back.Short, 2000), Files: back.Files, Command: back.Command, Returns: n})}
		if c.task != nil {
			e.Task = c.task.ID
			if _, err := state.MoveTask(tx, e.Task, centurion.TaskRunning, func(t *centurion.Task) {
				t.Returns, t.CameBack = n, t.CameBack+1
				t.Rejections = append(t.Rejections, centurion.Rejection{Cause: back.Cause, Files: back.Files[:min(len(back.Files), centurion.MaxRejectionFiles)], Command: back.Command})
			}); err != nil {
				return err
			}
		}
		_, err := tx.Append(e)
		return err
	})
	if err == nil && c.Checkout() != nil && back.Tree != "" {
		back.Text += "\nYour checkout holds your work on top of the newest state of the mission now: read files again before you edit them."
	}
	if err != nil || c.task == nil || n == 0 || back.Notice || back.Cause == event.ReturnedHollow {
		return err
	}
	rec, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	back.Text += "\n\n" + countdown(n, m.h.cfg.Returns, m.iso.Isolated(), rec.Options.Ask)
	return err
}

// layBack lays what others have done since into a session's checkout, together with its work.
func layBack(ctx context.Context, c *conversation, back *merge.Rejection) error {
	checkout := c.Checkout()
	if checkout == nil || back.Tree == "" {
		return nil
	}
	if err := checkout.Lay(ctx, back.Tree, back.Onto); err != nil {
		return err
	}
	return c.KeepPlace(ctx)
}

// countdown tells a session how often its work came back, and what becomes of it after the last time. A person is asked only where one is
// there.
func countdown(n, most int, isolated bool, ask string) string {
	end := "your task has failed"
	switch {
	case isolated && ask == "ask":
		end = "your work is not merged and a person is asked"
	case isolated:
		end = "your work is not merged and your task is blocked"
	}
	return fmt.Sprintf("(Returned %d of %d; after that %s.)", n, most, end)
}

// mayMend reports whether a task's work may be sent back because its own tests tell nothing of it. That is done once for a session,
// and never as what would call a person next: such work is merged, and a review decides.
func (m *mission) mayMend(ctx context.Context, t centurion.Task) (bool, error) {
	if t.Returns >= m.h.cfg.Returns {
		return false, nil
	}
	tasks, err := m.st.Store.Tasks(ctx, m.st.ID)
	return !slices.ContainsFunc(tasks, func(o centurion.Task) bool { return o.Session == t.Session && o.RejectedFor(event.ReturnedHollow) }), err
}
