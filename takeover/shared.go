package takeover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/failpoint"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/text"
	"centurion/worktree"
)

// span is a set of the project's own files between two trees of their history.
type span struct {
	from, to string
	paths    []string
}

// wrote lists the recorded writes of a mission or a task in the project itself, in order of their end, unfinished ones last.
func (w *workDone) wrote() []centurion.Landed {
	type record struct {
		centurion.Landed
		ended centurion.Time
	}
	var all []record
	add := func(from []centurion.Landed, ended centurion.Time) {
		for _, l := range from {
			if l.Before == "" {
				continue
			}
			if ended.IsZero() { // its records may be older than its last write
				l.Commit = ""
			}
			all = append(all, record{l, ended})
		}
	}
	if w.task != nil {
		add(w.task.Landed, w.task.Ended)
	} else {
		add(w.mission.Wrote, w.mission.Updated)
		for _, t := range w.tasks {
			add(t.Landed, t.Ended)
		}
	}
	slices.SortStableFunc(all, func(a, b record) int {
		switch {
		case a.ended.IsZero() == b.ended.IsZero():
			return a.ended.Compare(b.ended.Time)
		case a.ended.IsZero():
			return 1
		}
		return -1
	})
	out := make([]centurion.Landed, len(all))
	for i, r := range all {
		out[i] = r.Landed
	}
	return out
}

// spans combines the records: each file from before its first write until after the last. now replaces the end of unfinished ones.
func spans(all []centurion.Landed, now string) []span {
	type ends struct{ from, to string }
	first, files := map[string]centurion.Landed{}, map[string]ends{}
	var names []string
	for _, l := range all {
		for _, f := range l.Files {
			for _, name := range []string{f.Path, f.Old} {
				if name == "" {
					continue
				}
				if was, known := first[name]; !known || l.Time.Before(was.Time.Time) {
					first[name] = l
				}
				if _, known := files[name]; !known {
					names = append(names, name)
				}
				files[name] = ends{first[name].Before, cmp.Or(l.Commit, now)}
			}
		}
	}
	slices.Sort(names)
	var out []span
	for _, name := range names {
		e := files[name]
		at := slices.IndexFunc(out, func(s span) bool { return s.from == e.from && s.to == e.to })
		if at < 0 {
			out = append(out, span{from: e.from, to: e.to})
			at = len(out) - 1
		}
		out[at].paths = append(out[at].paths, name)
	}
	return out
}

// withHistory calls do with the history of the project's files and their current tree.
func (p *Person) withHistory(ctx context.Context, w *workDone, do func(s *worktree.Shadow, now string, all []span) error) error {
	return p.host.Project.WithHistory(ctx, func(s *worktree.Shadow) error {
		recorded := w.wrote()
		if s == nil || len(recorded) == 0 {
			return notRecorded(*w)
		}
		now, err := s.Save(ctx, "before a person looked")
		if err != nil {
			return err
		}
		return do(s, now, spans(recorded, now))
	})
}

// sharedDiff returns the changes made in the project itself.
func (p *Person) sharedDiff(ctx context.Context, w workDone, c Change, o DiffOptions) (Change, error) {
	err := p.withHistory(ctx, &w, func(s *worktree.Shadow, _ string, all []span) error {
		var told strings.Builder
		for _, sp := range all {
			files, err := sp.stat(ctx, s, sp.from, sp.to)
			if err != nil {
				return err
			}
			c.Files = addFiles(c.Files, files)
			paths := namedIn(sp.paths, o.Paths)
			if !o.Patch || len(paths) == 0 {
				continue
			}
			patch, err := s.Patch(ctx, sp.from, sp.to, o.Color, paths...)
			if err != nil {
				return err
			}
			told.WriteString(patch)
		}
		c.setPatch(told.String())
		return nil
	})
	return c, err
}

// stat lists the changes of the span's files between two trees.
func (sp span) stat(ctx context.Context, s *worktree.Shadow, from, to string) ([]centurion.FileChange, error) {
	if from == to {
		return nil, nil
	}
	all, err := s.Stat(ctx, from, to)
	return slices.DeleteFunc(all, func(f centurion.FileChange) bool {
		return !slices.Contains(sp.paths, f.Path) && (f.Old == "" || !slices.Contains(sp.paths, f.Old))
	}), err
}

// namedIn lists the files that are at or below one of some paths; all files if there are no paths.
func namedIn(files, paths []string) []string {
	if len(paths) == 0 {
		return files
	}
	return slices.DeleteFunc(slices.Clone(files), func(f string) bool {
		return !slices.ContainsFunc(paths, func(p string) bool {
			p = strings.TrimSuffix(strings.TrimPrefix(p, "./"), "/")
			return p == "." || f == p || strings.HasPrefix(f, p+"/")
		})
	})
}

// sharedUndo reverts changes made in the project itself, or restores them.
func (p *Person) sharedUndo(ctx context.Context, w workDone, r UndoReport, q UndoRequest) (UndoReport, error) {
	if t := w.task; t != nil && !t.Status.Ended() {
		return r, conflict("end it first: centurion cancel "+t.ID, "task %s is %s", t.ID, t.Status)
	}
	id := cmp.Or(r.Task, r.Mission)
	err := p.withHistory(ctx, &w, func(s *worktree.Shadow, now string, all []span) error {
		if q.Redo {
			all = spans(w.forced(), now)
			for i := range all {
				all[i].from, all[i].to = all[i].to, all[i].from
			}
		}
		changed, there, err := sharedChecks(ctx, s, now, all, &r)
		if err != nil {
			return err
		}
		r.Person = true
		if there {
			if found, err := w.cutOff(ctx, s, all, q, &r); found || err != nil {
				return err
			}
		}
		switch {
		case there && q.Redo:
			return conflict("see: centurion diff "+id, "the work of %s was not reverted", id)
		case there || !q.Redo && w.takenBack():
			return conflict("restore it with: centurion undo --redo "+id, "the work of %s was reverted already", id)
		}
		if r.Refused, err = sharedRefusal(ctx, s, all, changed, q, id); err != nil || r.Refused != nil {
			return err
		}
		if q.DryRun {
			return nil
		}
		if (len(changed) > 0 || w.goesOn()) && !q.Redo { // before any change, so that the earlier state is known in any case
			if err := p.recordForced(ctx, &w, now); err != nil {
				return err
			}
		}
		if err := restoreAll(ctx, s, all, q, id); err != nil {
			return err
		}
		failpoint.Hit(failpoint.UndoMoved)
		return nil
	})
	if err != nil || q.DryRun || r.Refused != nil {
		return r, err
	}
	r.Back = q.back(id)
	return p.sharedUndone(context.WithoutCancel(ctx), w, r, q)
}

// sharedRefusal says why files cannot be reverted or restored; nil if they can. changed are files that differ from the work's result.
func sharedRefusal(ctx context.Context, s *worktree.Shadow, all []span, changed []string, q UndoRequest, id string) (*Refusal, error) {
	if len(changed) > 0 && !q.Force {
		r := &Refusal{Overlap: changed, Why: someNames(changed) + " changed since",
			Next: fmt.Sprintf("revert later changes first, or revert them too: centurion undo --force %s (--redo restores both)", id)}
		if q.Redo {
			r.Next = fmt.Sprintf("revert later changes first, or lose them: centurion undo --redo --force %s", id)
		}
		return r, nil
	}
	var blocked []string
	for _, sp := range all {
		more, err := s.Blocked(ctx, sp.from, sp.to, sp.paths...)
		if err != nil {
			return nil, err
		}
		blocked = append(blocked, more...)
	}
	if len(blocked) == 0 {
		return nil, nil
	}
	slices.Sort(blocked)
	return &Refusal{Overlap: blocked, Why: "something else is now at the path of a file to restore: " + someNames(blocked),
		Next: fmt.Sprintf("revert later changes first, or move them away; then: centurion %s %s", undoWord(q), id)}, nil
}

// restoreAll sets the files of spans from their later to their earlier state.
func restoreAll(ctx context.Context, s *worktree.Shadow, all []span, q UndoRequest, id string) error {
	for _, sp := range all {
		_, changed, err := s.Restore(ctx, sp.from, sp.to, q.Force, sp.paths...)
		if err == nil && len(changed) > 0 { // they were changed since the check
			err = conflict("see what there is with: centurion diff "+id+"; then ask for it again",
				"%s changed meanwhile, and not all of the work is as it should be", someNames(changed))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cutOff reports whether all files are in the requested state although that was not recorded: a host died in between, or the person did
// the same by other means. r describes the result.
func (w *workDone) cutOff(ctx context.Context, s *worktree.Shadow, all []span, q UndoRequest, r *UndoReport) (bool, error) {
	if !slices.ContainsFunc(w.mine(), func(t centurion.Task) bool { return t.Undone.IsZero() != q.Redo }) {
		return false, nil
	}
	for _, sp := range all {
		files, err := sp.stat(ctx, s, sp.to, sp.from)
		if err != nil {
			return false, err
		}
		r.Files = addFiles(r.Files, files)
	}
	return len(r.Files) > 0, nil
}

// goesOn reports whether a task of the work is still running: the state of its files at the undo is recorded nowhere else.
func (w *workDone) goesOn() bool {
	return slices.ContainsFunc(w.mine(), func(t centurion.Task) bool { return t.Ended.IsZero() })
}

// forced returns the records of the writes, with the reverted state of the files where it differs.
func (w *workDone) forced() []centurion.Landed {
	all := w.wrote()
	for i := range all {
		all[i].Commit = cmp.Or(all[i].Forced, all[i].Commit)
	}
	return all
}

// mine returns the tasks of the work that have written something.
func (w *workDone) mine() []centurion.Task {
	all := w.tasks
	if w.task != nil {
		all = []centurion.Task{*w.task}
	}
	return slices.DeleteFunc(slices.Clone(all), func(t centurion.Task) bool { return len(t.Landed) == 0 })
}

// takenBack reports whether all tasks of the work were undone; then the current content of their files is not theirs.
func (w *workDone) takenBack() bool {
	mine := w.mine()
	return len(mine) > 0 && !slices.ContainsFunc(mine, func(t centurion.Task) bool { return t.Undone.IsZero() })
}

// recordForced records, for work about to be undone, that its files have changed since, and their state. For a task undone before, an
// earlier tree has its work.
func (p *Person) recordForced(ctx context.Context, w *workDone, now string) error {
	mine := slices.DeleteFunc(w.mine(), func(t centurion.Task) bool { return !t.Undone.IsZero() })
	if err := state.ChangeTasks(ctx, p.store, mine, func(t *centurion.Task) { t.Landed = withForced(t.Landed, now) }, nil); err != nil || w.task != nil {
		return err
	}
	return p.putWrote(ctx, w, func(l []centurion.Landed) []centurion.Landed { return withForced(l, now) })
}

func withForced(all []centurion.Landed, tree string) []centurion.Landed {
	all = slices.Clone(all)
	for i := range all {
		all[i].Forced = tree
	}
	return all
}

// putWrote changes the recorded writes of a mission's own agent.
func (p *Person) putWrote(ctx context.Context, w *workDone, change func([]centurion.Landed) []centurion.Landed) error {
	if len(w.mission.Wrote) == 0 {
		return nil
	}
	return p.store.Update(ctx, func(tx *store.Tx) error {
		m, err := tx.Mission(w.mission.ID)
		if err != nil {
			return err
		}
		m.Wrote = change(m.Wrote)
		return tx.PutMission(&m)
	})
}

// sharedChecks lists the files that an undo would change and those that differ from the work's result. there is true if all are in the
// requested state already.
func sharedChecks(ctx context.Context, s *worktree.Shadow, now string, all []span, r *UndoReport) (changed []string, there bool, err error) {
	there = true
	for _, sp := range all {
		files, err1 := sp.stat(ctx, s, now, sp.from)
		since, err2 := sp.stat(ctx, s, sp.to, now)
		if err := errors.Join(err1, err2); err != nil {
			return nil, false, err
		}
		there = there && len(files) == 0
		r.Files = addFiles(r.Files, files)
		changed = append(changed, centurion.Paths(since)...)
	}
	slices.Sort(changed)
	return changed, there, nil
}

// sharedUndone records that the work of tasks was reverted or restored.
func (p *Person) sharedUndone(ctx context.Context, w workDone, r UndoReport, q UndoRequest) (UndoReport, error) {
	mine, when := w.mine(), centurion.Now()
	if q.Redo {
		back := func(t *centurion.Task) { t.Undone, t.Landed = centurion.Time{}, withForced(t.Landed, "") }
		if w.task != nil {
			return r, p.restoreTask(ctx, w, back)
		}
		if err := p.putWrote(ctx, &w, func(l []centurion.Landed) []centurion.Landed { return withForced(l, "") }); err != nil {
			return r, err
		}
		return r, p.restore(ctx, w, "this mission's work", mine, back, func(centurion.Reverted) bool { return true })
	}
	var err error
	change := func(t *centurion.Task) { t.Undone = when }
	if w.task != nil {
		r.Open, err = p.revertTask(ctx, w, change)
	} else {
		r.Open, err = p.revert(ctx, w, centurion.Reverted{What: "all of this mission's work"}, nil, mine, change)
	}
	if err != nil {
		return r, err
	}
	return r, p.store.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.Append(centurion.Event{Type: centurion.EventMergeUndone, Mission: r.Mission, Session: w.mission.Session, Task: r.Task,
			Data: event.Data(event.MergeData{Person: true}.WithFiles(r.Files))})
		return err
	})
}

// notRecorded is the error when changes in the project itself were not recorded.
func notRecorded(w workDone) error {
	whose := text.If(w.task != nil, "task "+idOf(w.task), "mission "+w.mission.ID)
	return conflict("see: centurion tasks "+w.mission.ID, "nothing was recorded that %s has changed in the project", whose)
}
