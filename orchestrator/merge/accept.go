package merge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/worktree"
)

// Author is a session whose work is merged: a task's, or that of the mission's own agent.
type Author struct {
	*isolation.Seat
	Task    *state.Run // nil for the mission's own agent
	Agent   agents.Agent
	Session string
	Say     func(ctx context.Context, origin centurion.Origin, text string) error // adds a message to its history
}

// mayChange reports whether its agent may change files.
func (a *Author) mayChange() bool { return a.Agent.Holds("write") || a.Agent.Holds("edit") }

// Accept judges the work of an ended turn and merges it. It returns why the work is returned to its session, or nil.
func (m *Queue) Accept(ctx context.Context, a *Author, out *session.Outcome, returns int) (*Rejection, error) {
	if err := m.askForeignChecks(ctx, a); err != nil {
		return nil, err
	}
	stuck, back, err := m.unfinished(ctx, a, out.Text)
	if back == nil && err == nil {
		back, err = m.unruled(ctx, a, out.Text)
	}
	if back != nil || err != nil {
		return back, err
	}
	if m.iso.Isolated() {
		return m.landTask(ctx, a, out, stuck)
	}
	if len(out.Files) == 0 {
		if back, err := m.onlyAsks(ctx, a, out.Text); back != nil || err != nil {
			return back, err
		}
	}
	failed, err := m.prove(ctx, a, returns)
	switch {
	case err != nil:
		return nil, err
	case stuck:
		return stuckShared(failed), nil
	case failed == nil:
		return nil, nil
	}
	return &Rejection{Text: m.failedText(a, *failed), Short: brief.Account(*failed), Cause: event.ReturnedCheck, Command: failed.Command}, nil
}

// landTask commits what a task's session has written, proves it on top of the mission's branch and merges it. stuck means that its
// agent considers it unfinished.
func (m *Queue) landTask(ctx context.Context, a *Author, out *session.Outcome, stuck bool) (*Rejection, error) {
	t, err := m.st.Store.Task(ctx, a.Task.ID)
	if err != nil {
		return nil, err
	}
	l := &Work{Task: a.Task, Agent: a.Agent.Name, Item: t.Item, Given: t.Verify, Stuck: stuck, Idle: len(t.Landed) == 0, More: t.Returns < m.returns}
	if t.Race != nil {
		l.Race, l.Checks = t.Race.ID, t.Name()
	}
	if it, ok := m.plan.ItemNow(t.Item); ok && !t.Reviews {
		l.Verify, l.Keeps = it.Verify, strings.EqualFold(strings.TrimSpace(it.Proof), string(centurion.ProofRegression))
	} else if !ok && !t.Reviews { // its line is unreadable, or has just been removed
		if p, err := m.plan.Read(); err == nil && p.IsGone(t.Item) {
			return nil, plan.Removed(t.Item)
		}
		l.Verify = t.Verify
	}
	if len(l.Verify) > 0 && !stuck {
		tasks, err := m.st.Store.Tasks(ctx, m.st.ID)
		if err != nil {
			return nil, err
		}
		l.Mends = mayMend(t, tasks, m.returns)
	}
	kept, back, err := m.bring(ctx, a, l, commitMessage(t, out.Text), out.Text)
	if back != nil {
		return back, err
	}
	if len(kept) > 0 {
		note := fmt.Sprintf("(The %s is not to change files. What it changed with shell commands was not merged; it is on the branch %s: %s)",
			a.Agent.Name, a.Checkout().Where().Branch, centurion.Clip(strings.Join(kept, ", "), 500))
		if !strings.Contains(out.Text, note) {
			out.Text += "\n\n" + note
		}
	}
	if l.Landed != nil {
		out.Files = append(out.Files, m.iso.InProject(centurion.Paths(l.Landed.Files))...)
		out.Files = slices.Compact(slices.Sorted(slices.Values(out.Files)))
	}
	return nil, err
}

// LandOwn merges what the mission's own agent has written so far, so that its delegates see it and its claims can be checked. The
// mission's own checks guard the merge. It returns why the work was not merged, or nil.
func (m *Queue) LandOwn(ctx context.Context, a *Author) (*Rejection, error) {
	m.own.Lock()
	defer m.own.Unlock()
	rec, err := m.st.Store.Mission(ctx, m.st.ID)
	if err != nil || a.Checkout() == nil {
		return nil, err
	}
	message := fmt.Sprintf("%s\n\nMission: %s\nAgent: %s\n", centurion.Clip(state.FirstLines(rec.Goal, 1, 1000), 72), m.st.ID, a.Agent.Name)
	_, back, err := m.bring(ctx, a, &Work{Agent: a.Agent.Name}, message, "")
	return back, err
}

// bring commits an author's work, lands it and moves its checkout to the result. If something was written meanwhile, the checkout
// stays: the merged work can be merged with itself. kept are the changes that stay on the author's branch because it may not change
// files.
func (m *Queue) bring(ctx context.Context, a *Author, l *Work, message, said string) (kept []string, back *Rejection, err error) {
	checkout := a.Checkout()
	if checkout != nil {
		if l.Commit, err = checkout.Commit(ctx, message); err != nil {
			return nil, nil, err
		}
		if l.Commit.ID != "" && !a.mayChange() {
			kept, l.Commit = centurion.Paths(l.Commit.Files), worktree.Commit{}
		}
		if back, err = m.leftMarkers(ctx, l.Commit); back != nil || err != nil {
			return kept, back, err
		}
	}
	if l.Task != nil && l.Commit.ID == "" {
		if back, err = m.onlyAsks(ctx, a, said); back != nil || err != nil {
			return kept, back, err
		}
	}
	l.Idle = l.Idle && l.Commit.ID == ""
	if l.Commit.ID == "" && len(l.Verify) == 0 && l.Race == "" {
		return kept, nil, nil
	}
	if l.Task != nil && len(l.Verify) == 0 { // else its first check says so
		if err := m.st.MoveRun(ctx, l.Task, centurion.TaskVerifying, nil); err != nil {
			return kept, nil, err
		}
	}
	if err := m.Land(ctx, l); err != nil || l.Back != nil || l.There == "" {
		return kept, l.Back, err
	}
	err = checkout.Move(ctx, l.There)
	stays := centurion.KindOf(err) == centurion.KindConflict
	if err != nil && !stays {
		return kept, nil, err
	}
	if recorded := l.Landed != nil; recorded != stays { // the merge's record says where the checkout stands now
		return kept, nil, nil
	}
	return kept, nil, a.KeepPlace(ctx)
}

// commitMessage says whose work a commit is, and its result.
func commitMessage(t centurion.Task, result string) string {
	title := strings.TrimSpace(t.Item + " " + strings.Join(strings.Fields(t.Title), " "))
	body := state.FirstLines(result, 10, 1000)
	if body != "" {
		body += "\n\n"
	}
	return fmt.Sprintf("%s\n\n%sMission: %s\nTask: %s\nAgent: %s\n", centurion.Clip(title, 100), body, t.Mission, t.ID, t.Agent)
}

// mayMend reports whether a task's work may be returned because its own tests say nothing about it. That happens once per session, and
// never as the last step before a person is called: such work is merged, and a review decides.
func mayMend(t centurion.Task, tasks []centurion.Task, most int) bool {
	return t.Returns < most && !slices.ContainsFunc(tasks, func(o centurion.Task) bool { return o.Session == t.Session && o.RejectedFor(event.ReturnedHollow) })
}

// prove runs the acceptance commands of the conversation's item. It returns the receipt of the first one that failed, or nil. An error
// of centurion.KindPermission means that a command may not run.
func (m *Queue) prove(ctx context.Context, a *Author, returns int) (*centurion.Receipt, error) {
	p, err := m.plan.Read()
	if err != nil || p.Doc == nil || a.Task.Item == "" {
		return nil, err
	}
	if p.IsGone(a.Task.Item) {
		return nil, plan.Removed(a.Task.Item)
	}
	t, err := m.st.Store.Task(ctx, a.Task.ID)
	if err != nil {
		return nil, err
	}
	it, ok := p.Doc.Item(a.Task.Item)
	if !ok { // its line is unreadable: the original commands apply
		it.ID, it.Verify = t.Item, t.Verify
	}
	if len(it.Verify) == 0 || t.Reviews {
		return nil, nil
	}
	if err := m.st.MoveRun(ctx, a.Task, centurion.TaskVerifying, nil); err != nil {
		return nil, err
	}
	if returns == m.returns {
		// The last try: another session's half-written work must not decide it.
		if err := m.st.Quiet(ctx, a.Task.ID); err != nil {
			return nil, err
		}
	}
	for _, command := range it.Verify {
		r, err := m.Check(ctx, Check{Command: command, Item: it.ID, Task: a.Task.ID, Agent: a.Agent.Name})
		if err != nil {
			return nil, err
		}
		if !r.Passed {
			return &r, nil
		}
	}
	return nil, nil
}

// failedText tells a worker about a failed check if all write in the same place.
func (m *Queue) failedText(a *Author, r centurion.Receipt) string {
	text := "The host ran your acceptance command and it failed.\n" + brief.Account(r)
	if len(m.claims.Others(a.Holder)) > 0 {
		return text + "\nOthers are working in the project at the same time; if the failure is in their files, say so and end your turn."
	}
	return text + "\nFix the cause, then end your turn; the host runs it again."
}
