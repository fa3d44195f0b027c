package isolation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"centurion"
	"centurion/event"
	"centurion/store"
	"centurion/tools"
	"centurion/worktree"
)

// trees stores the project's files before and after each task when all tasks write in the same directory, so that the work can be
// reverted.
type trees struct {
	mu     sync.Mutex       // held while the directory is read; protects the fields below
	shadow *worktree.Shadow // nil until first used
	off    bool             // there is no history, and the person was notified
	passed map[string]bool  // files the history skips, already notified
}

// history opens the history of the project's files, once per host. It returns nil if there is none.
func (p *Project) history(ctx context.Context) (*worktree.Shadow, error) {
	if p.openShadow == nil || p.trees.off || p.trees.shadow != nil {
		return p.trees.shadow, nil
	}
	s, err := p.openShadow(ctx)
	if err == nil {
		p.trees.shadow = s
	}
	return s, err
}

// WithHistory calls do with the history of the project's files (nil if this host keeps none) while holding its lock. The error is that
// of do, or of opening the history.
func (p *Project) WithHistory(ctx context.Context, do func(*worktree.Shadow) error) error {
	p.trees.mu.Lock()
	defer p.trees.mu.Unlock()
	s, err := p.history(ctx)
	if err != nil {
		return err
	}
	return do(s)
}

// saveTree records the project's files and returns their tree, "" without a history. A failure is notified once and stops no work.
func (m *Checkouts) saveTree(ctx context.Context, label string) (string, error) {
	t := &m.project.trees
	t.mu.Lock()
	defer t.mu.Unlock()
	s, err := m.project.history(ctx)
	if err == nil && s == nil {
		return "", nil
	}
	tree := ""
	if err == nil {
		tree, err = s.Save(ctx, label)
	}
	if err == nil {
		err = m.tellPassedOver(ctx, s.LeftOut())
	}
	if err == nil || ctx.Err() != nil {
		return tree, err
	}
	t.off, t.shadow = true, nil
	return "", m.st.Tell(ctx, func(d *event.MissionData) { d.Note = "undo will not bring files back: " + err.Error() })
}

// tellPassedOver notifies the person once of each file that the history skips. The lock of the trees is held.
func (m *Checkouts) tellPassedOver(ctx context.Context, files []string) error {
	t := &m.project.trees
	files = slices.DeleteFunc(files, func(f string) bool { return t.passed[f] })
	if len(files) == 0 {
		return nil
	}
	if t.passed == nil {
		t.passed = map[string]bool{}
	}
	for _, f := range files {
		t.passed[f] = true
	}
	const shown = 5
	names := strings.Join(files[:min(len(files), shown)], ", ")
	if more := len(files) - shown; more > 0 {
		names += " and " + centurion.Count(more, "more file")
	}
	return m.st.Tell(ctx, func(d *event.MissionData) {
		d.Note = fmt.Sprintf("undo will not bring back %s: larger than %s, or not to be read", names, centurion.Bytes(worktree.MaxShadow))
	})
}

// RecordTree records the project's files before a call that writes. after records the changes of the call.
func (m *Checkouts) RecordTree(ctx context.Context, c *Seat, call *tools.Call, e tools.Effect) (after func(context.Context, tools.Result) error, err error) {
	none := func(context.Context, tools.Result) error { return nil }
	if m.project.openShadow == nil {
		return none, nil
	}
	tree, err := m.saveTree(ctx, c.Holder+" "+call.ID)
	if err != nil || tree == "" {
		return none, err
	}
	if err := m.putTrees(ctx, c.HoldsFor, func(l *centurion.Landed) {
		if l.Before == "" {
			l.Before = tree
		}
	}); err != nil {
		return none, err
	}
	return func(ctx context.Context, res tools.Result) error {
		named := e.Writes != nil || len(res.Files) > 0
		if named && (c.HoldsFor != "" || len(res.Files) == 0) {
			return m.putTrees(ctx, c.HoldsFor, func(l *centurion.Landed) { l.Files = joinChanges(l.Files, modified(res.Files)) })
		}
		now, err := m.saveTree(ctx, c.Holder+" after "+call.ID)
		if err != nil || now == "" || now == tree {
			return err
		}
		changed, err := m.changedBetween(ctx, tree, now)
		if err != nil {
			return err
		}
		all := len(changed)
		if named { // others may have written meanwhile
			changed = slices.DeleteFunc(changed, func(f centurion.FileChange) bool { return !slices.Contains(res.Files, f.Path) })
		}
		if c.HoldsFor == "" {
			if err := m.putTurn(ctx, centurion.Landed{Before: tree, Commit: now, Files: changed, Time: centurion.Now()}, len(changed) == all); err != nil {
				return err
			}
		}
		return m.putTrees(ctx, c.HoldsFor, func(l *centurion.Landed) {
			if l.Files = joinChanges(l.Files, changed); !named {
				l.Commit = now
			}
		})
	}, nil
}

// putTurn records what a call of the mission's own agent, or of a sub-agent of its, has changed, at the message that began the turn. alone
// says that nothing else changed during the call.
func (m *Checkouts) putTurn(ctx context.Context, wrote centurion.Landed, alone bool) error {
	m.project.trees.mu.Lock() // calls may end at the same time
	defer m.project.trees.mu.Unlock()
	rec, err := m.st.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return err
	}
	newest, _, err := m.st.Store.Newest(ctx, rec.Session)
	if err != nil {
		return err
	}
	const noParts = "-"
	msg, err := m.st.Store.Message(ctx, rec.Session, newest, noParts)
	if err == nil && msg.Role == centurion.RoleAssistant {
		msg, err = m.st.Store.Message(ctx, rec.Session, msg.ParentID, noParts)
	}
	if err != nil {
		return err
	}
	if last := len(msg.Wrote) - 1; alone && last >= 0 && msg.Wrote[last].Commit == wrote.Before { // nor since the one before
		wrote.Before, wrote.Files = msg.Wrote[last].Before, joinChanges(msg.Wrote[last].Files, wrote.Files)
		msg.Wrote = msg.Wrote[:last]
	}
	msg.Wrote = append(msg.Wrote, wrote)
	return m.st.Store.Update(ctx, func(tx *store.Tx) error { return tx.PutMessage(&msg) })
}

// modified lists files named by a call; their real status is determined at the end.
func modified(files []string) []centurion.FileChange {
	out := make([]centurion.FileChange, len(files))
	for i, f := range files {
		out[i] = centurion.FileChange{Path: f, Status: "modified"}
	}
	return out
}

func (m *Checkouts) changedBetween(ctx context.Context, from, to string) ([]centurion.FileChange, error) {
	t := &m.project.trees
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shadow == nil {
		return nil, nil
	}
	return t.shadow.Stat(ctx, from, to)
}

// joinChanges adds changed files; a newer change of a file replaces the older one.
func joinChanges(have, more []centurion.FileChange) []centurion.FileChange {
	out := slices.Clone(have)
	for _, f := range more {
		if i := slices.IndexFunc(out, func(o centurion.FileChange) bool { return o.Path == f.Path }); i >= 0 {
			out[i] = f
		} else {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b centurion.FileChange) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// putTrees updates the recorded trees around a task's work, or around the Commander's for "".
func (m *Checkouts) putTrees(ctx context.Context, task string, change func(*centurion.Landed)) error {
	return m.st.Store.Update(ctx, func(tx *store.Tx) error {
		with := func(all []centurion.Landed) []centurion.Landed {
			l := centurion.Landed{Time: centurion.Now()}
			if len(all) > 0 {
				l = all[0]
			}
			change(&l)
			return []centurion.Landed{l}
		}
		if task == "" {
			rec, err := tx.Mission(m.st.ID)
			if err != nil {
				return err
			}
			rec.Wrote = with(rec.Wrote)
			return tx.PutMission(&rec)
		}
		t, err := tx.Task(task)
		if err != nil {
			return err
		}
		t.Landed = with(t.Landed)
		return tx.PutTask(&t)
	})
}

// sealTrees records the project's files after the last write of a task (the Commander for ""), and the files it changed: those that its
// calls named, and those that changed while one of its commands ran.
func (m *Checkouts) sealTrees(ctx context.Context, task string, landed []centurion.Landed, named []string) error {
	if m.Isolated() || len(landed) == 0 || landed[0].Before == "" {
		return nil
	}
	before := landed[0].Before
	now, err := m.saveTree(ctx, "end of "+task)
	if err != nil || now == "" {
		return err
	}
	all, err := m.changedBetween(ctx, before, now)
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(all, func(f centurion.FileChange) bool {
		return !slices.Contains(named, f.Path) && !slices.ContainsFunc(landed[0].Files, func(o centurion.FileChange) bool { return o.Path == f.Path })
	})
	return m.putTrees(ctx, task, func(l *centurion.Landed) { l.Commit, l.Files = now, own })
}

// sealOwn is sealTrees for the Commander, once nothing of the mission runs any more.
func (m *Checkouts) sealOwn(ctx context.Context) {
	if m.project.openShadow == nil {
		return
	}
	rec, err := m.st.Store.Mission(ctx, m.st.ID)
	if err != nil || len(rec.Wrote) == 0 {
		return
	}
	_ = m.sealTrees(ctx, "", rec.Wrote, nil) // a missing tree is reported when it is needed
}
