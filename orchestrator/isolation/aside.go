package isolation

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/tools"
)

// WithIgnored adds to a tool's result which of the written files git ignores; the session would assume that they get merged.
func WithIgnored(ctx context.Context, w *Workplace, res tools.Result) (tools.Result, error) {
	if len(res.Files) == 0 {
		return res, nil
	}
	ignored, err := w.ignored(ctx, res.Files)
	if err != nil || len(ignored) == 0 {
		return res, err
	}
	res.Output = strings.TrimRight(res.Output, "\n") + "\n\n(git ignores " + strings.Join(ignored, ", ") +
		": it stays in your checkout and is not merged. If the person is to have it, write it where git does not ignore it.)"
	return res, nil
}

// ignored returns the files that git ignores, without those already checked.
func (w *Workplace) ignored(ctx context.Context, files []string) ([]string, error) {
	if err := w.lock(ctx); err != nil {
		return nil, err
	}
	defer w.unlock()
	if w.checkout == nil {
		return nil, nil
	}
	files = slices.DeleteFunc(slices.Clone(files), func(f string) bool { return w.asked[f] })
	if len(files) == 0 {
		return nil, nil
	}
	ignored, err := w.checkout.Ignored(ctx, files)
	if err != nil {
		return nil, err
	}
	if w.asked == nil {
		w.asked = map[string]bool{}
	}
	for _, f := range files {
		w.asked[f] = true
	}
	return ignored, nil
}

// leftAs records that the session has left the checkout of branch, together with the git-ignored files its tools wrote there, and
// notifies the person of them.
func (w *Workplace) leftAs(ctx context.Context, branch string) error {
	aside, err := w.m.Ground.Repo.Aside(branch)
	if err != nil {
		return err
	}
	return w.m.st.Store.Update(ctx, func(tx *store.Tx) error { return putLeft(tx, w.m.st.ID, w.task, aside) })
}

// putLeft does the work of leftAs in a transaction; task is "" for the mission's own agent.
func putLeft(tx *store.Tx, mission, task string, aside []centurion.Aside) error {
	rec, err := tx.Mission(mission)
	if err != nil {
		return err
	}
	who, had := rec.Options.Agent, &rec.Aside
	var t centurion.Task
	if task != "" {
		if t, err = tx.Task(task); err != nil {
			return err
		}
		who, had, t.Checkout = cmp.Or(t.Item, t.Agent), &t.Aside, nil
	} else {
		rec.Checkout = nil
	}
	before := len(*had)
	*had = withAside(*had, aside)
	for _, a := range (*had)[before:] {
		if !rec.Status.Alive() { // no event follows the end of a mission; its record has it
			break
		}
		d := state.Living(rec)
		d.Note = strings.TrimPrefix(who+": ", ": ") + a.String()
		if _, err := tx.Append(centurion.Event{Type: centurion.EventMissionUpdated, Mission: mission, Session: rec.Session, Task: task, Data: event.Data(d)}); err != nil {
			return err
		}
	}
	if task != "" {
		return tx.PutTask(&t)
	}
	return tx.PutMission(&rec)
}

// withAside adds directories to those that are known.
func withAside(known, more []centurion.Aside) []centurion.Aside {
	for _, a := range more {
		if !slices.ContainsFunc(known, func(old centurion.Aside) bool { return old.Dir == a.Dir }) {
			known = append(known, a)
		}
	}
	return known
}

// DropAside removes directories of git-ignored files and returns the removed ones.
func (p *Project) DropAside(ctx context.Context, dirs []string) ([]string, error) {
	if len(dirs) == 0 {
		return nil, nil
	}
	repo, err := p.Repository(ctx)
	if centurion.KindOf(err) == centurion.KindNotFound {
		return nil, nil // the project is no longer in a repository
	}
	if err != nil {
		return nil, err
	}
	return repo.DropAside(dirs...)
}

// WithoutAside lists the task's files without the git-ignored ones, which are not merged. Without isolation there are none of those.
func (m *Checkouts) WithoutAside(t centurion.Task) []string {
	var aside []string
	for _, a := range t.Aside {
		aside = append(aside, m.InProject(a.Files)...)
	}
	return slices.DeleteFunc(slices.Clone(t.Files), func(f string) bool { return slices.Contains(aside, f) })
}
