// Package revert applies an undo or redo to the mission that did the work: items are reopened, verdicts on the work become void, notes
// about it are marked, and a completed mission is paused. [Reversal.Record] records that in the transaction of the undo; [Desk.Settle]
// then updates the plan and the notes, also after a crash.
package revert

import (
	"context"
	"errors"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/failpoint"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/review"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// Desk applies the undos of a project.
type Desk struct {
	store *store.Store
	ws    *workspace.Workspace
}

// New returns the desk of a project.
func New(st *store.Store, ws *workspace.Workspace) *Desk { return &Desk{store: st, ws: ws} }

// Reversal is an undo to be recorded.
type Reversal struct {
	centurion.Reverted
	mission string
	plan    string          // path of the mission's plan
	tally   centurion.Tally // of the items that stay done
	pauses  bool
}

// Reversal determines the effect of an undo on the plan of a mission that is not running. r describes the undo; items are the items of
// the reverted work, nil for all done items.
func (d *Desk) Reversal(ctx context.Context, m centurion.Mission, r centurion.Reverted, items []string) (*Reversal, error) {
	out := &Reversal{Reverted: r, mission: m.ID, plan: m.Todo, pauses: m.Status == centurion.MissionCompleted && !state.Alone(m.Options.Profile)}
	var err error
	if out.pauses {
		if out.plan, err = plan.OwnPath(ctx, d.ws, m); err != nil {
			return nil, err
		}
	}
	tasks, err := d.store.Tasks(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	p := d.planAt(out.plan)
	out.Items, out.Reviews = p.RestOn(items, tasks, m.Reverted)
	for i := range tasks {
		if slices.Contains(out.Reviews, tasks[i].ID) || tasks[i].ID == r.Task {
			tasks[i].Undone = centurion.Now()
		}
	}
	if p.Doc == nil {
		return out, nil
	}
	for _, id := range out.Items {
		if err := plan.OpenAgain(p.Doc, id); err != nil {
			return nil, err
		}
	}
	v, err := review.Read(ctx, d.store, m.ID, p)
	v.Tasks = tasks
	out.tally = v.Count(ctx, d.store)
	return out, err
}

// planAt reads the plan at a path; it is empty if there is none or it cannot be read.
func (d *Desk) planAt(path string) plan.View {
	if path == "" {
		return plan.View{}
	}
	doc, _, err := d.ws.TodoAt(path).Load()
	if err != nil {
		return plan.View{}
	}
	return plan.View{Doc: doc}
}

// Record records the reversal, and pauses a completed mission.
func (r *Reversal) Record(tx *store.Tx) error {
	m, err := tx.Mission(r.mission)
	if err != nil {
		return err
	}
	now := centurion.Now()
	for _, id := range r.Reviews {
		t, err := tx.Task(id)
		if err != nil {
			return err
		}
		if _, err := state.MoveTask(tx, id, t.Status, func(t *centurion.Task) { t.Undone = now }); err != nil {
			return err
		}
	}
	d := store.Delivery{ID: centurion.NewID(centurion.PrefixDelivery), Mission: m.ID, Session: m.Session, Created: now, Origin: centurion.OriginHost,
		Text: toldReverted(r.Reverted)}
	if err := tx.PutDelivery(&d); err != nil {
		return err
	}
	entry := r.Reverted
	entry.Word, entry.Marked, entry.Back = d.ID, false, false
	record := func(m *centurion.Mission) {
		m.Reverted = append(slices.Clone(m.Reverted), entry)
		m.Tally = r.tally
	}
	if !r.pauses {
		record(&m)
		return putReverted(tx, m)
	}
	was := centurion.Mission{}
	was.Stands(m)
	_, err = state.MoveMission(tx, m.ID, centurion.MissionPaused, whatReverted([]centurion.Reverted{entry}), func(m *centurion.Mission) {
		m.Stands(centurion.Mission{Status: m.Status, Reason: m.Reason})
		m.Was, m.Todo = &was, r.plan
		record(m)
	})
	return err
}

// putReverted stores a mission whose set of undos has changed, and updates its reason if it is paused because of them.
func putReverted(tx *store.Tx, m centurion.Mission) error {
	if m.Was == nil || len(m.Reverted) == 0 {
		m.Was = nil
		return tx.PutMission(&m)
	}
	was := m.Reason
	m.Reason, m.Updated = whatReverted(m.Reverted), centurion.Now()
	if err := tx.PutMission(&m); err != nil || was == m.Reason {
		return err
	}
	data, err := state.MissionData(tx, m)
	if err != nil {
		return err
	}
	_, err = tx.Append(centurion.Event{Type: state.MissionEvent(m.Status, m.Status), Mission: m.ID, Session: m.Session, Data: event.Data(data)})
	return err
}

// whatReverted describes the undone work.
func whatReverted(all []centurion.Reverted) string {
	var names []string
	for _, r := range all {
		names = append(names, r.What)
	}
	if len(names) == 1 {
		return names[0] + " was reverted"
	}
	return strings.Join(names, ", ") + " were reverted"
}

// toldReverted is the notice of an undo for the mission's own agent.
func toldReverted(r centurion.Reverted) string {
	text := "The user has reverted " + r.What + ": "
	if r.Merge.IsZero() {
		text += "that work is no longer on the mission's branch or in the files."
	} else {
		text += "that work is still on the mission's branch, but no longer on the user's."
	}
	if len(r.Items) > 0 {
		text += " Open again in the plan: " + strings.Join(r.Items, ", ") + "."
	}
	return text + " What was reported about it before no longer holds. Unless the user says otherwise, carry out the open items again, reviews included."
}

// Restore records, in the transaction of a redo, that undone work is back. It covers the undos that match accepts. If the mission was
// resumed since, there are none; then items and what describe the work.
func Restore(tx *store.Tx, mission, what string, items []string, match func(centurion.Reverted) bool) error {
	m, err := tx.Mission(mission)
	if err != nil {
		return err
	}
	m.Reverted = slices.Clone(m.Reverted)
	found := false
	for i, r := range m.Reverted {
		if match(r) {
			m.Reverted[i].Back, found = true, true
		}
	}
	if !found && len(items) > 0 {
		d := store.Delivery{ID: centurion.NewID(centurion.PrefixDelivery), Mission: m.ID, Session: m.Session, Created: centurion.Now(), Origin: centurion.OriginHost,
			Text: "The user has brought back " + what + ", which was reverted before. Done again in the plan: " + strings.Join(items, ", ") + "."}
		if err := tx.PutDelivery(&d); err != nil {
			return err
		}
		m.Reverted = append(m.Reverted, centurion.Reverted{What: what, Items: items, Marked: true, Back: true})
	}
	return tx.PutMission(&m)
}

// Settle applies the recorded undos and redos of a mission to the plan, the notes and the mission's status. It returns the reopened and
// the closed items. Items that the plan no longer has, or a plan that cannot be read, are left alone. The mission must not be running.
func (d *Desk) Settle(ctx context.Context, mission string) (opened, closed []string, err error) {
	m, err := d.store.Mission(ctx, mission)
	if err != nil || !slices.ContainsFunc(m.Reverted, func(r centurion.Reverted) bool { return r.Back || !r.Marked }) {
		return nil, nil, err
	}
	failpoint.Hit(failpoint.UndoRecorded)
	stays := map[string]bool{} // they stay open, whatever else is restored
	for _, r := range m.Reverted {
		for _, id := range r.Items {
			stays[id] = stays[id] || !r.Back
		}
	}
	for _, r := range m.Reverted {
		switch {
		case r.Back:
			closed = append(closed, slices.DeleteFunc(slices.Clone(r.Items), func(id string) bool { return stays[id] })...)
		case !r.Marked:
			opened = append(opened, r.Items...)
		}
	}
	if opened, closed, err = d.remark(ctx, m.Todo, opened, closed); err != nil {
		return opened, closed, err
	}
	if err := d.markNotes(ctx, m); err != nil {
		return opened, closed, err
	}
	p := d.planAt(m.Todo)
	recount, err := d.recount(ctx, m, p)
	if err != nil {
		return opened, closed, err
	}
	return opened, closed, d.store.Update(ctx, func(tx *store.Tx) error { return settled(tx, m, p, recount) })
}

// recount counts the done items after a redo; nil if nothing was redone.
func (d *Desk) recount(ctx context.Context, m centurion.Mission, p plan.View) (*centurion.Tally, error) {
	if !slices.ContainsFunc(m.Reverted, func(r centurion.Reverted) bool { return r.Back }) || p.Doc == nil {
		return nil, nil
	}
	v, err := review.Read(ctx, d.store, m.ID, p)
	for i, t := range v.Tasks {
		if void, was := voided(m.Reverted, t.ID); was && !void {
			v.Tasks[i].Undone = centurion.Time{}
		}
	}
	c := v.Count(ctx, d.store)
	return &c, err
}

// voided reports whether undos make the verdict of a review void, and whether they did before the redos.
func voided(all []centurion.Reverted, review string) (void, was bool) {
	for _, r := range all {
		if slices.Contains(r.Reviews, review) {
			void, was = void || !r.Back, true
		}
	}
	return void, was
}

// remark reopens and closes items of a plan, and returns those it changed.
func (d *Desk) remark(ctx context.Context, path string, open, done []string) (opened, closed []string, err error) {
	p := d.planAt(path)
	change := func(d *todo.Doc, ids []string, from, to todo.Mark) (out []string, err error) {
		for _, id := range ids {
			it, ok := d.Item(id)
			if !ok || it.Mark != from || d.Ambiguous(id) || slices.Contains(out, id) {
				continue
			}
			if err := d.SetMark(id, to); err != nil {
				return nil, err
			}
			out = append(out, id)
		}
		return out, nil
	}
	both := func(d *todo.Doc) error {
		var err1, err2 error
		opened, err1 = change(d, open, todo.Done, todo.Open)
		closed, err2 = change(d, done, todo.Open, todo.Done)
		return errors.Join(err1, err2)
	}
	if p.Doc == nil {
		return nil, nil, nil
	}
	if err := both(p.Doc); err != nil || len(opened)+len(closed) == 0 {
		return nil, nil, err
	}
	_, err = d.ws.TodoAt(path).Edit(ctx, both)
	return opened, closed, err
}

// settled records that the plan and the notes reflect the undos and redos. Once everything is redone, the mission has its status from
// before the first undo.
func settled(tx *store.Tx, was centurion.Mission, p plan.View, recount *centurion.Tally) error {
	m, err := tx.Mission(was.ID)
	if err != nil {
		return err
	}
	if len(m.Reverted) != len(was.Reverted) {
		return nil // another process was faster
	}
	var left []centurion.Reverted
	for _, r := range m.Reverted {
		if !r.Back {
			r.Marked = true
			left = append(left, r)
			continue
		}
		d, unread, err := plan.UnreadWord(tx, r.Word)
		if err != nil {
			return err
		}
		if unread {
			d.Taken = centurion.Now() // not by a message
			if err := tx.PutDelivery(&d); err != nil {
				return err
			}
		}
	}
	for _, r := range m.Reverted {
		for _, id := range r.Reviews {
			if void, _ := voided(m.Reverted, id); void {
				continue
			}
			t, err := tx.Task(id)
			if err == nil {
				_, err = state.MoveTask(tx, id, t.Status, func(t *centurion.Task) { t.Undone = centurion.Time{} })
			}
			if err != nil && centurion.KindOf(err) != centurion.KindNotFound { // it may have been cleaned up
				return err
			}
		}
	}
	back := m.Was
	if m.Reverted = left; recount != nil {
		m.Tally = *recount
	}
	if err := putReverted(tx, m); err != nil {
		return err
	}
	if p.Doc != nil {
		data := event.TodoData{TodoCounts: event.TodoCounts(p.Doc.Counts()), Title: p.Doc.Title(), Items: p.Told()}
		if _, err := tx.Append(centurion.Event{Type: centurion.EventTodoUpdated, Mission: m.ID, Session: m.Session, Data: event.Data(data)}); err != nil {
			return err
		}
	}
	if back == nil || len(left) > 0 || m.Status != centurion.MissionPaused {
		return nil
	}
	_, err = state.MoveMission(tx, m.ID, back.Status, back.Reason, func(m *centurion.Mission) { m.Stands(*back) })
	return err
}
