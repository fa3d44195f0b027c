package orchestrator

import (
	"context"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/claims"
	"centurion/store"
	"centurion/tools"
	"centurion/worktree"
)

// setLanding says whether a task's work is on its way to be merged, and wakes those that wait for its files.
func (m *mission) setLanding(c *conversation, landing bool) {
	m.claims.SetLanding(c.holder, landing)
	if landing {
		m.notify()
	}
}

// claimWritten claims what a command has written, and returns those of the files that somebody else is working on.
func (m *mission) claimWritten(ctx context.Context, c *conversation) ([]claims.Held, error) {
	if c.holdsFor == "" { // the mission's own agent holds nothing
		return nil, nil
	}
	changed, err := c.where.uncommitted(ctx)
	if err != nil || len(changed) == 0 {
		return nil, err
	}
	files := m.inProject(changed)
	held, err := m.settleClaims(ctx, c, files, true)
	if err != nil || len(held) == 0 {
		return nil, err
	}
	free := slices.DeleteFunc(slices.Clone(files), func(f string) bool { // nothing was claimed
		return slices.ContainsFunc(held, func(h claims.Held) bool { return h.Path == f })
	})
	_, err = m.settleClaims(ctx, c, free, true)
	return held, err
}

// withOverlap adds to a command's result which files of others it has changed: each is told once, as long as it stays changed.
func withOverlap(c *conversation, res tools.Result, held []claims.Held) tools.Result {
	if lines := c.where.news(held); len(lines) > 0 {
		res.Output = strings.TrimRight(res.Output, "\n") + "\n\n(You have changed files that somebody else is working on at the moment: " + strings.Join(lines, "; ") +
			". Unless your task needs that, take it back before you end your turn.)"
	}
	return res
}

// overlap looks for files in a task's commit that somebody else is working on, which a shell command can change without being
// asked. The session is told once, and can bring them back. If it ends its turn with them again it needs them: its work waits
// then until nobody else works on them, and is merged after theirs.
func (m *mission) overlap(ctx context.Context, c *conversation, commit worktree.Commit) (*rejection, error) {
	files := m.inProject(centurion.Paths(commit.Files))
	held, err := m.settleClaims(ctx, c, files, true)
	if err != nil || len(held) == 0 {
		return nil, err
	}
	above, err := m.ancestors(ctx, c.task.id)
	if err != nil {
		return nil, err
	}
	t, err := m.h.cfg.Store.Task(ctx, c.task.id)
	if err != nil {
		return nil, err
	}
	// Whoever waits for this very task cannot be waited for.
	mayWait := !slices.ContainsFunc(held, func(h claims.Held) bool { return above[h.Holder] })
	if told := !slices.ContainsFunc(held, func(h claims.Held) bool { return !slices.Contains(t.Overlaps, h.Path) }); told && mayWait {
		return nil, m.awaitHolders(ctx, c, files)
	}
	// Of the same files it is told again only where it cannot wait for them: that counts, so that it comes to an end.
	news := slices.ContainsFunc(held, func(h claims.Held) bool { return !slices.Contains(t.Overlaps, h.Path) })
	if err := m.tellOverlap(ctx, c, held); err != nil {
		return nil, err
	}
	back := m.overlapText(commit, held, mayWait)
	back.notice = news
	return back, nil
}

// tellOverlap records of which files the session is told.
func (m *mission) tellOverlap(ctx context.Context, c *conversation, held []claims.Held) error {
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		t, err := tx.Task(c.task.id)
		if err != nil {
			return err
		}
		for _, h := range held {
			t.Overlaps = append(t.Overlaps, h.Path)
		}
		slices.Sort(t.Overlaps)
		t.Overlaps = slices.Compact(t.Overlaps)
		return tx.PutTask(&t)
	})
}

// overlapText tells a session that it has changed files of others, and what it can do.
func (m *mission) overlapText(commit worktree.Commit, held []claims.Held, mayWait bool) *rejection {
	var lines, foreign []string
	for _, h := range held {
		foreign = append(foreign, h.Path)
		lines = append(lines, h.String())
	}
	// The commit is made already, so that HEAD has the change, too.
	undo := strings.Join(m.takeBack(commit, held), "\n    ")
	text := "You have changed files that somebody else is working on at the moment:\n- " + strings.Join(lines, "\n- ") +
		"\nIf your task does not need these changes, bring the files back to what they were (the host has committed your work, so that git shows " +
		"the way back as a change of its own):\n\n    " + undo + "\n\nSay in your result what is needed there, and end your turn."
	if mayWait {
		text += "\nIf it needs them, end your turn with the files as you have them: your work is merged after theirs then, and comes back to you if the two conflict."
	}
	return &rejection{text: text, short: "it changes files that others work on: " + strings.Join(lines, "; "),
		cause: event.ReturnedFiles, files: foreign}
}

// awaitHolders waits until nobody else is working on the files, and claims them. Whoever waits here is waited for by nobody: two
// may have changed each other's files.
func (m *mission) awaitHolders(ctx context.Context, c *conversation, files []string) (err error) {
	m.setLanding(c, true)
	defer func() {
		if err != nil {
			m.setLanding(c, false)
		}
	}()
	told := ""
	for {
		changed := m.change()
		held, err := m.settleClaims(ctx, c, files, true)
		if err != nil {
			return err
		}
		if len(held) == 0 {
			if told == "" {
				return nil
			}
			return m.moveRun(ctx, c.task, centurion.TaskRunning, nil)
		}
		if why := "files of " + held[0].Holder; why != told {
			if err := m.moveRun(ctx, c.task, centurion.TaskWaiting, func(t *centurion.Task) { t.Reason = why }); err != nil {
				return err
			}
			told = why
		}
		m.reserves.Rest(c.task.account)
		err = m.await(ctx, changed, 0)
		m.reserves.Wake(c.task.account)
		if err != nil {
			return err
		}
	}
}

// ancestors returns under which names those hold files that wait for a task: the one that delegated it, and so on upwards.
func (m *mission) ancestors(ctx context.Context, task string) (map[string]bool, error) {
	above := map[string]bool{}
	for task != "" {
		t, err := m.h.cfg.Store.Task(ctx, task)
		if err != nil {
			return nil, err
		}
		parent, err := m.h.cfg.Store.Session(ctx, t.Parent)
		if err != nil {
			return nil, err
		}
		if task = parent.Metadata.Task; task == "" {
			break
		}
		up, err := m.h.cfg.Store.Task(ctx, task)
		if err != nil {
			return nil, err
		}
		above[claims.Name(up.Item, up.ID)] = true
	}
	return above, nil
}
