package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/store"
	"centurion/worktree"
)

// rejection is why work goes back to the session that did it.
type rejection struct {
	text  string // for that session
	short string // for whoever hears that it gave up

	cause   string   // one of event.Returned…
	files   []string // that it is about, of the project
	command string   // that failed

	// notice says that nothing has failed: the session is told once of something that it may have meant, and it does not count
	// among the returns of its work.
	notice bool

	// ends says that going back would not help: the session has said how it stands, and somebody else decides.
	ends bool

	// tree is what is laid into the session's checkout: its work on top of what others have done since, with markers where
	// the two conflict. onto is the commit that it stands on then. Both are empty if the checkout stays as it is.
	tree, onto string
}

// accept judges the work of a turn that has ended and puts it where it belongs. It returns why the work goes back to its
// session, or nil.
func (m *mission) accept(ctx context.Context, c *conversation, out *session.Outcome, returns int) (*rejection, error) {
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
	return &rejection{text: m.failedText(c, *failed), short: account(*failed), cause: event.ReturnedCheck, command: failed.Command}, nil
}

// landTask commits what a task's session has written, proves it on top of the mission's branch and puts it there. stuck says that its agent
// takes it for unfinished.
func (m *mission) landTask(ctx context.Context, c *conversation, out *session.Outcome, stuck bool) (*rejection, error) {
	t, err := m.h.cfg.Store.Task(ctx, c.task.ID)
	if err != nil {
		return nil, err
	}
	l := &landing{task: c.task, agent: c.agent.Name, item: t.Item, given: t.Verify, stuck: stuck}
	if it, ok := m.plan.ItemNow(t.Item); ok && !t.Reviews {
		l.verify, l.keeps = it.Verify, strings.EqualFold(strings.TrimSpace(it.Proof), string(centurion.ProofRegression))
	} else if !ok && !t.Reviews { // its line cannot be read, or it was removed in this moment
		if p, err := m.plan.Read(); err == nil && p.IsGone(t.Item) {
			return nil, plan.Removed(t.Item)
		}
		l.verify = t.Verify
	}
	l.more = t.Returns < m.h.cfg.Returns
	if len(l.verify) > 0 && !stuck {
		if l.mends, err = m.mayMend(ctx, t); err != nil {
			return nil, err
		}
	}
	checkout := c.Checkout()
	note := ""
	if checkout != nil {
		if l.commit, err = checkout.Commit(ctx, commitMessage(t, out.Text)); err != nil {
			return nil, err
		}
		if l.commit.ID != "" && !mayChange(c) {
			note = fmt.Sprintf("(The %s is not to change files. What it changed with shell commands was not merged; it is on the branch %s: %s)",
				c.agent.Name, checkout.Where().Branch, centurion.Clip(strings.Join(centurion.Paths(l.commit.Files), ", "), 500))
			l.commit = worktree.Commit{}
		}
		back, err := m.beforeLanding(ctx, l)
		if back != nil || err != nil {
			return back, err
		}
	}
	if l.commit.ID == "" {
		if back, err := m.onlyAsks(ctx, c, out.Text); back != nil || err != nil {
			return back, err
		}
	}
	l.idle = l.commit.ID == "" && len(t.Landed) == 0
	if l.commit.ID != "" || len(l.verify) > 0 {
		if err := m.st.MoveRun(ctx, c.task, centurion.TaskVerifying, nil); err != nil {
			return nil, err
		}
		if err := m.land(ctx, l); err != nil || l.back != nil {
			return l.back, err
		}
	}
	if note != "" && !strings.Contains(out.Text, note) {
		out.Text += "\n\n" + note
	}
	if l.landed != nil {
		out.Files = append(out.Files, m.iso.InProject(centurion.Paths(l.landed.Files))...)
		slices.Sort(out.Files)
		out.Files = slices.Compact(out.Files)
	}
	return nil, moveOn(ctx, c, l.there)
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

// beforeLanding looks for what must not be merged: conflict markers that were left standing.
func (m *mission) beforeLanding(ctx context.Context, l *landing) (*rejection, error) {
	if l.commit.ID == "" {
		return nil, nil
	}
	left, err := m.leftMarkers(ctx, l.commit)
	if err != nil || len(left) == 0 {
		return nil, err
	}
	return &rejection{text: "There are still conflict markers (<<<<<<<, =======, >>>>>>>) in: " + strings.Join(left, ", ") +
		". Replace each of them with what both sides come to together, then end your turn.",
		short: "it leaves conflict markers in " + strings.Join(left, ", "), cause: event.ReturnedMarkers, files: m.iso.InProject(left)}, nil
}

// leftMarkers lists files into which a commit has brought the markers of a conflict.
func (m *mission) leftMarkers(ctx context.Context, c worktree.Commit) ([]string, error) {
	files, err := m.iso.Ground.Repo.Diff(ctx, c.Parent, c.ID)
	var out []string
	for _, f := range files {
		if marked(f) {
			out = append(out, f.Path)
		}
	}
	return out, err
}

// marked reports whether the lines that a change adds have all three markers, in their order.
func marked(f centurion.FileDiff) bool {
	want := []string{"+<<<<<<< ", "+=======", "+>>>>>>> "}
	for _, h := range f.Hunks {
		for line := range strings.Lines(h.Text) {
			if strings.HasPrefix(line, want[0]) {
				if want = want[1:]; len(want) == 0 {
					return true
				}
			}
		}
	}
	return false
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

// conflict tells of work that does not fit to what others have done since.
func (m *mission) conflict(ctx context.Context, l *landing, laid worktree.Rebased, onto string) (*rejection, error) {
	var files, kinds []string
	for _, x := range laid.Conflicts {
		files = append(files, x.Path)
		kinds = append(kinds, fmt.Sprintf("- %s (%s)", m.iso.InProject([]string{x.Path})[0], x.Kind))
	}
	err := m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		e := centurion.Event{Type: centurion.EventMergeConflict, Mission: m.st.ID, Data: event.Data(event.MergeData{Branch: m.iso.Branch(), Commit: l.commit.ID, Files: files})}
		if l.task != nil {
			t, err := tx.Task(l.task.ID)
			if err != nil {
				return err
			}
			e.Task, e.Session = t.ID, t.Session
		}
		_, err := tx.Append(e)
		return err
	})
	if err != nil {
		return nil, err
	}
	others, err := m.intents(ctx, l, files)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	text.WriteString("Your work does not fit to what others have merged since you began. In conflict:\n" + strings.Join(kinds, "\n") +
		"\n\nWhat the others wanted there:\n" + others)
	if l.task != nil {
		if t, err := m.h.cfg.Store.Task(ctx, l.task.ID); err == nil {
			text.WriteString("\nWhat you were to do: " + strings.TrimSpace(t.Item+" "+t.Title) + "\n")
		}
	}
	text.WriteString("\nBoth are laid together in your checkout now. In text files the places are marked with <<<<<<<, ======= and >>>>>>>: " +
		"the first part is what is merged already, the second is yours. Edit the files so that both intents are kept and no marker is left; " +
		"no git command is needed. Then end your turn; the host integrates it.")
	for _, x := range laid.Conflicts {
		if x.Text == "" {
			text.WriteString("\n" + m.iso.InProject([]string{x.Path})[0] + " cannot be marked: write it anew as it should be.")
		}
	}
	return &rejection{text: text.String(), short: "it conflicts with what others have merged: " + strings.Join(files, ", "),
		cause: event.ReturnedConflict, files: m.iso.InProject(files), tree: laid.Tree, onto: onto}, nil
}

// intents tells what those wanted whose merged work touches the files and which the work does not stand on.
func (m *mission) intents(ctx context.Context, l *landing, files []string) (string, error) {
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, t := range tasks {
		for _, x := range t.Landed {
			touched := slices.DeleteFunc(centurion.Paths(x.Files), func(f string) bool { return !slices.Contains(files, f) })
			if len(touched) == 0 || l.task != nil && t.ID == l.task.ID {
				continue
			}
			known, err := m.iso.Ground.Repo.IsAncestor(ctx, x.Commit, l.commit.Parent)
			if err != nil {
				return "", err
			}
			if known {
				continue
			}
			said, err := m.st.SaidOf(ctx, t)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "- %s %s (%s): %s\n", t.Name(), t.Title, strings.Join(m.iso.InProject(touched), ", "), state.FirstLines(said, 6, 600))
		}
	}
	if b.Len() == 0 {
		return "- work of the mission's own agent\n", nil
	}
	return b.String(), nil
}

// returned gives work back to the session that did it, for the n-th time in a row, with what others have done since in its checkout.
// It is told first: a host that dies in between finds the same conflict again, while markers that nobody has explained would be a riddle.
func (m *mission) returned(ctx context.Context, c *conversation, back *rejection, n int) error {
	if err := m.recordReturn(ctx, c, back, n); err != nil {
		return err
	}
	if err := c.say(ctx, centurion.OriginHost, back.text); err != nil {
		return err
	}
	return layBack(ctx, c, back)
}

// recordReturn records that work goes back, and why, and adds to the rejection's text what its session has to know.
func (m *mission) recordReturn(ctx context.Context, c *conversation, back *rejection, n int) error {
	err := m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		e := centurion.Event{Type: centurion.EventTaskReturned, Mission: m.st.ID, Session: c.id(),
			Data: event.Data(event.ReturnData{Cause: back.cause, Reason: centurion.Clip(back.short, 2000), Files: back.files, Command: back.command, Returns: n})}
		if c.task != nil {
			e.Task = c.task.ID
			if _, err := state.MoveTask(tx, e.Task, centurion.TaskRunning, func(t *centurion.Task) {
				t.Returns, t.CameBack = n, t.CameBack+1
				t.Rejections = append(t.Rejections, centurion.Rejection{Cause: back.cause, Files: back.files[:min(len(back.files), centurion.MaxRejectionFiles)], Command: back.command})
			}); err != nil {
				return err
			}
		}
		_, err := tx.Append(e)
		return err
	})
	if err == nil && c.Checkout() != nil && back.tree != "" {
		back.text += "\nYour checkout holds your work on top of the newest state of the mission now: read files again before you edit them."
	}
	if err != nil || c.task == nil || n == 0 || back.notice || back.cause == event.ReturnedHollow {
		return err
	}
	rec, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	back.text += "\n\n" + countdown(n, m.h.cfg.Returns, m.iso.Isolated(), rec.Options.Ask)
	return err
}

// layBack lays what others have done since into a session's checkout, together with its work.
func layBack(ctx context.Context, c *conversation, back *rejection) error {
	checkout := c.Checkout()
	if checkout == nil || back.tree == "" {
		return nil
	}
	if err := checkout.Lay(ctx, back.tree, back.onto); err != nil {
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
