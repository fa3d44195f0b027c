package takeover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/orchestrator/revert"
	"centurion/store"
	"centurion/text"
	"centurion/worktree"
)

// Refusal says why a person's files or branch were left unchanged.
type Refusal struct {
	Why       string     `json:"why"`
	Next      string     `json:"next"`
	Overlap   []string   `json:"overlap,omitempty"` // files with the person's own changes that the merge would change
	Conflicts []Conflict `json:"conflicts,omitempty"`
}

// Conflict is a file on which two sides disagree.
type Conflict struct {
	Path string `json:"path"` // relative to the repository's top
	Kind string `json:"kind"` // content, modify/delete, binary …
}

// workDone is the work of a mission, or of one of its tasks, in the project's repository.
type workDone struct {
	repo    *worktree.Repo
	mission centurion.Mission
	tasks   []centurion.Task
	task    *centurion.Task // nil for the whole mission
	look    bool            // only asks for possible redos: does not record one that has happened already
	back    bool            // the last undone work was found where it had been, see settleRedo
	settled bool            // its plan was settled only now, see finishPlan
}

// workOf finds the work of a mission or a task. The error has centurion.KindNotFound for an unknown id.
func (p *Person) workOf(ctx context.Context, id string) (workDone, error) {
	var w workDone
	missionID := id
	if strings.HasPrefix(id, string(centurion.PrefixTask)+"_") {
		t, err := p.store.Task(ctx, id)
		if err != nil {
			return w, err
		}
		w.task, missionID = &t, t.Mission
	}
	var err error
	if w.mission, err = p.store.Mission(ctx, missionID); err != nil {
		return w, err
	}
	w.tasks, err = p.store.Tasks(ctx, missionID)
	return w, err
}

// open opens the repository of work done in checkouts.
func (w *workDone) open(ctx context.Context, p *Person) error {
	if w.mission.Base == nil || w.mission.Branch == "" {
		return conflict("see: centurion show "+w.mission.ID, "mission %s has not begun to work yet", w.mission.ID)
	}
	repo, err := p.host.Project.Repository(ctx)
	w.repo = repo
	return err
}

// shared reports whether the mission works in the project itself.
func (w *workDone) shared() bool { return w.mission.Isolation == centurion.IsolationShared }

// tasksThat lists the tasks for which holds does.
func (w *workDone) tasksThat(holds func(centurion.Task) bool) []centurion.Task {
	return slices.DeleteFunc(slices.Clone(w.tasks), func(t centurion.Task) bool { return !holds(t) })
}

// standing lists the tasks with work that was not reverted.
func (w *workDone) standing() []centurion.Task {
	return w.tasksThat(func(t centurion.Task) bool { return len(t.Landed) > 0 && t.Undone.IsZero() })
}

// conflict is an error of centurion.KindConflict.
func conflict(hint, format string, args ...any) error {
	return &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf(format, args...), Hint: hint}
}

// aside lists the git-ignored files of a mission's work.
func (w *workDone) aside() []centurion.Aside {
	all := slices.Clone(w.mission.Aside)
	for _, t := range w.tasks {
		all = append(all, t.Aside...)
	}
	return all
}

// landed lists the commits of a task that are still in effect on the mission's branch, oldest first.
func landed(t centurion.Task) []centurion.Landed {
	at := 0
	for i, l := range t.Landed {
		if l.Reverts {
			at = i + 1
		}
	}
	return t.Landed[at:]
}

// landedOf is landed for a task that was undone, as before the undo.
func landedOf(t centurion.Task) []centurion.Landed {
	if t.Undone.IsZero() || len(t.Landed) == 0 {
		return landed(t)
	}
	last := len(t.Landed) - 1
	t.Landed = t.Landed[:last] // the undo
	return landed(t)
}

// settleMerge determines whether a merge happened that a host was performing when it died, after completing what git had begun.
// finished is true if it happened and was not reported before. Later commits of the person are not part of the merge.
func (p *Person) settleMerge(ctx context.Context, w *workDone) (finished bool, err error) {
	if err := w.repo.Settle(ctx); err != nil {
		return false, err
	}
	mm := w.mission.Merged
	if (mm == nil || mm.Commit != "") && len(w.mission.TakenBack) == 0 {
		return false, nil
	}
	head, err := w.repo.Head(ctx)
	if err != nil {
		return false, err
	}
	if mm == nil || mm.Commit != "" {
		return false, p.settleRedo(ctx, w, head)
	}
	made := ""
	if head.Commit != "" && head.Branch == mm.Branch {
		if made, err = w.repo.LastWith(ctx, missionLine(w.mission.ID), mm.Before, head.Commit); err != nil {
			return false, err
		}
	}
	if made == "" {
		return false, p.recordMerged(ctx, w, func(m *centurion.Mission) { m.Merged = m.Merged.Earlier }, nil)
	}
	got := worktree.Merging{Before: mm.Before, After: made, Branch: head.Branch}
	if got.Files, err = w.repo.Stat(ctx, mm.Before, made); err != nil {
		return false, err
	}
	return true, p.recordMerged(ctx, w, func(m *centurion.Mission) { m.Merged.Commit = made }, mergeEvent(centurion.EventMergeDone, w.mission, "", got))
}

// recordMerged changes the recorded merges of a mission, together with the event and, for a reverted merge, the effect on the plan;
// then it applies that effect.
func (p *Person) recordMerged(ctx context.Context, w *workDone, change func(*centurion.Mission), e *centurion.Event, reverted ...*revert.Reversal) error {
	err := p.store.Update(ctx, func(tx *store.Tx) error {
		m, err := tx.Mission(w.mission.ID)
		if err != nil {
			return err
		}
		if m.Merged != nil { // the record is shared with earlier readers
			own := *m.Merged
			m.Merged = &own
		}
		change(&m)
		forgetMerged(&m)
		m.Updated = centurion.Now()
		if err := tx.PutMission(&m); err != nil {
			return err
		}
		if e != nil {
			if _, err := tx.Append(*e); err != nil {
				return err
			}
		}
		for _, rv := range reverted {
			if err := rv.Record(tx); err != nil {
				return err
			}
		}
		return revert.Restore(tx, m.ID, "", nil, func(r centurion.Reverted) bool {
			return !r.Merge.IsZero() && !slices.ContainsFunc(m.TakenBack, func(t centurion.TakenBack) bool { return t.Time.Millis() == r.Merge.Millis() })
		})
	})
	if err != nil {
		return err
	}
	_, _, err = p.reverts.Settle(ctx, w.mission.ID)
	return errors.Join(err, w.again(ctx, p))
}

// again reads the records of the work once more.
func (w *workDone) again(ctx context.Context, p *Person) (err error) {
	if w.mission, err = p.store.Mission(ctx, w.mission.ID); err != nil {
		return err
	}
	if w.tasks, err = p.store.Tasks(ctx, w.mission.ID); err != nil || w.task == nil {
		return err
	}
	t, err := p.store.Task(ctx, w.task.ID)
	w.task = &t
	return err
}

// conflictsOf removes the details that only an agent resolving a conflict needs.
func conflictsOf(all []worktree.Conflict) []Conflict {
	var out []Conflict
	for _, c := range all {
		out = append(out, Conflict{c.Path, c.Kind})
	}
	return out
}

// someNames joins up to a dozen names.
func someNames(names []string) string {
	const most = 12
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// refusal says why a merge, or its undo, changes nothing; nil if nothing is in its way.
func refusal(g worktree.Merging, again string) *Refusal {
	r := &Refusal{Overlap: slices.Clone(g.Overlap), Conflicts: conflictsOf(g.Conflicts)}
	switch {
	case len(g.Overlap) > 0:
		r.Why = "you have uncommitted work in " + someNames(g.Overlap) + ", which would have to be changed"
		r.Next = "commit it, or " + text.If(g.Stash != "", "put it aside with `"+g.Stash+"`", "move it out of the way") + "; then: " + again
	case len(g.Conflicts) > 0:
		var names, uncommitted []string
		for _, c := range g.Conflicts {
			if c.Uncommitted {
				uncommitted = append(uncommitted, c.Path)
			} else {
				names = append(names, c.Path+" ("+c.Kind+")")
			}
		}
		var why []string
		if len(uncommitted) > 0 {
			why = append(why, "it builds on work of yours in "+someNames(uncommitted)+" that was not committed when the mission began, and is not on your branch")
			r.Next = "commit it, then: " + again
		}
		if len(names) > 0 {
			why = append(why, "it does not agree with what your branch has: "+someNames(names))
			r.Next = ""
		}
		r.Why = strings.Join(why, "; ")
	default:
		return nil
	}
	return r
}
