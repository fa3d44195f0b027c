package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/loop"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/workspace/todo"
)

// planView is the plan as it stands: the zero value is a mission without one.
type planView struct{ doc *todo.Doc }

// plan reads the mission's plan.
func (m *mission) plan() (planView, error) {
	if state.Alone(m.st.Profile) { // whatever lies in the file is somebody else's
		return planView{}, nil
	}
	doc, err := m.todo.Load()
	return planView{doc}, err
}

func (p planView) items() []todo.Item {
	if p.doc == nil {
		return nil
	}
	return p.doc.Items()
}

// heldForNobody counts the tasks among waiting that would wait for ever: for an item that no living task works on, or
// whose own task waits for ever, or for a plan that is no more.
func (p planView) heldForNobody(waiting []centurion.Task, alive map[string]bool) int {
	held := map[string]bool{}
	for again := true; again; {
		again = false
		for _, t := range waiting {
			if t.Item == "" || held[t.Item] {
				continue
			}
			if p.doc == nil || p.doc.Misread(t.Item) > 0 || slices.ContainsFunc(p.doc.Unmet(t.Item), func(id string) bool { return !alive[id] || held[id] }) {
				held[t.Item], again = true, true
			}
		}
	}
	return len(held)
}

// problem says what is wrong in the plan with an item, or "".
func (p planView) problem(id string) string {
	for _, x := range p.doc.Problems() {
		if slices.Contains(x.IDs, id) {
			return fmt.Sprintf(" (line %d: %s)", x.Line, x.Msg)
		}
	}
	return ""
}

// look fills in what the plan says.
func (m *mission) look(f *loop.Facts) planView {
	p, err := m.plan()
	if err != nil {
		f.TodoError = err.Error()
		return p
	}
	if p.doc == nil {
		return p
	}
	f.HasTodo = true
	f.Counts = loop.Counts(p.doc.Counts())
	runnable := p.doc.Runnable()
	for _, it := range runnable {
		f.Runnable = append(f.Runnable, it.ID)
	}
	for _, it := range p.doc.Items() {
		if it.Group {
			continue
		}
		switch p.doc.Status(it.ID) {
		case todo.Open, todo.Running:
			f.Next = append(f.Next, it.ID+" "+it.Title)
			if it.Mark == todo.Open && !slices.Contains(f.Runnable, it.ID) {
				f.Stuck = append(f.Stuck, it.ID+" "+it.Title+p.problem(it.ID))
			}
		case todo.Blocked:
			f.Stuck = append(f.Stuck, it.ID+" "+it.Title+p.problem(it.ID))
		}
	}
	return p
}

// addMisread counts among what is blocked the items of tasks that have not begun and whose line is not read as theirs.
func (p planView) addMisread(f *loop.Facts, waiting []centurion.Task) {
	if p.doc == nil {
		return
	}
	for _, t := range waiting {
		if line := p.doc.Misread(t.Item); line > 0 {
			f.Counts.Blocked++
			f.Stuck = append(f.Stuck, fmt.Sprintf("%s %s (line %d: it is not read as an item)", t.Item, t.Title, line))
		}
	}
}

// todoChanged is called whenever the plan's file has changed, whoever changed it: the change is told, and what is wrong with it, what
// waited for it looks again, and a running item that was removed takes its task with it.
func (m *mission) todoChanged() {
	ctx := m.st.Ctx
	// A person's save of an older text dropped what agents wrote since. If that cannot be mended, the next edit tries again.
	_ = m.todo.Heal(ctx)
	if err := m.tellTodo(ctx); err != nil {
		m.st.End(err)
		return
	}
	p, err := m.plan()
	if err == nil && p.doc != nil && lacksIDs(p.doc) {
		p.doc, err = m.todo.Edit(ctx, func(d *todo.Doc) error { d.AssignIDs(); return nil })
	}
	if err == nil {
		for _, r := range m.st.Runs() {
			if p.isGone(r.Item) {
				r.Cancel(removed(r.Item))
			}
		}
	}
	mended, told := m.tellMistakes(ctx, p, err)
	if told == nil && err == nil {
		told = m.tellEdits(ctx, p)
	}
	if told == nil && mended && err == nil {
		told = m.remarkMended(ctx)
	}
	if told != nil && ctx.Err() == nil {
		m.st.End(told)
		return
	}
	m.st.Notify()
}

// tellTodo records what the plan's marks are, and that the mission has had items.
func (m *mission) tellTodo(ctx context.Context) error {
	m.telling.Lock()
	defer m.telling.Unlock()
	p, err := m.plan()
	if err != nil || p.doc == nil {
		return nil // an unreadable plan is found, and told, when the mission is idle
	}
	counts, level := p.doc.Counts(), 0
	data := event.TodoData{TodoCounts: event.TodoCounts(counts)}
	if m.isNewPlan(p) {
		data.Title, data.Items, level = p.doc.Title(), p.told(), impliedLevel(p.items())
	} else if counts == m.toldCounts {
		return nil
	}
	// What is written is told, also by who was just interrupted.
	err = m.h.cfg.Store.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		rec, err := tx.Mission(m.st.ID)
		if err != nil {
			return err
		}
		if counts.Total() > 0 && !rec.HadItems {
			rec.HadItems = true
			if err := tx.PutMission(&rec); err != nil {
				return err
			}
		}
		if level > 0 && counts.Total() > 0 {
			if _, err := putLevel(tx, m.st.ID, level, centurion.LevelInferred); err != nil {
				return err
			}
		}
		_, err = tx.Append(centurion.Event{Type: centurion.EventTodoUpdated, Mission: m.st.ID, Session: rec.Session, Data: event.Data(data)})
		return err
	})
	if err != nil && ctx.Err() != nil {
		return nil
	}
	m.toldCounts = counts
	return err
}

// isNewPlan reports whether the plan has other items than when it was last told whole; marks do not count.
func (m *mission) isNewPlan(p planView) bool {
	var b strings.Builder
	for _, it := range p.items() {
		fmt.Fprintln(&b, it.ID, it.Title, it.Agent, it.After)
	}
	if b.String() == m.toldPlan {
		return false
	}
	m.toldPlan = b.String()
	return true
}

// told is the plan as events tell it.
func (p planView) told() []event.PlanItem {
	var out []event.PlanItem
	for _, it := range p.items() {
		if !it.Group {
			out = append(out, event.PlanItem{ID: it.ID, Title: it.Title, Agent: it.Agent, After: it.After, Files: it.Files,
				Verify: it.Verify, Status: p.doc.Status(it.ID).String()})
		}
	}
	return out
}

// itemsAtWork returns the items that living tasks have, also those that wait: nobody needs to start them.
func (m *mission) itemsAtWork(ctx context.Context) (map[string]bool, error) {
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.st.ID)
	items := map[string]bool{}
	for _, t := range tasks {
		if !t.Status.Ended() && t.Item != "" {
			items[t.Item] = true
		}
	}
	return items, err
}

// isDone reports whether an item is there and done.
func (p planView) isDone(id string) bool {
	if p.doc == nil || id == "" {
		return false
	}
	it, ok := p.doc.Item(id)
	return ok && !it.Group && p.doc.Status(id) == todo.Done
}

// itemOpen checks that an item may be started: it is there and open.
func (p planView) itemOpen(id string) error {
	if id == "" {
		return nil
	}
	if p.doc == nil {
		return &centurion.Error{Kind: centurion.KindNotFound, Msg: fmt.Sprintf("there is no item %q: there is no todo list yet", id),
			Hint: "write it first with update_todo, or delegate without an item"}
	}
	it, ok := p.doc.Item(id)
	if !ok {
		hint := "the items are: " + strings.Join(ids(p.items()), ", ")
		if near := p.doc.Nearest(id); near != "" {
			hint = "did you mean " + near + "?"
		}
		return &centurion.Error{Kind: centurion.KindNotFound, Msg: fmt.Sprintf("there is no item %q", id), Hint: hint}
	}
	if s := p.doc.Status(id); it.Group || s == todo.Done || s == todo.Cancelled {
		what := s.String()
		if it.Group {
			what = "a group; its sub-items are what can be delegated"
		}
		e := &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("item %s is %s", id, what),
			Hint: "set it to open with update_todo if it has to be done again"}
		if s == todo.Done && !it.Group {
			e.Hint += "; the reviewer may take it as it is: " + reviewCall(id)
		}
		return e
	}
	return nil
}

// obstacle says what keeps a task from being launched, or "" if nothing does. Its files are claimed then.
func (m *mission) obstacle(ctx context.Context, r *state.Run) (string, error) {
	rec, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return "", err
	}
	if r.Item == "" && !rec.Options.ShowPlan {
		return "", nil
	}
	p, err := m.plan()
	if err != nil {
		return "the plan cannot be read", nil
	}
	if p.held(rec, r.Agent) {
		return "the plan waits to be accepted", m.askPlan(ctx, rec, p)
	}
	if r.Item == "" {
		return "", nil
	}
	if p.doc == nil {
		return "the plan has vanished", nil
	}
	if t := r.Now.Load(); t != nil && t.Reviews { // what it judges is there, and it changes no file
		return "", nil
	}
	it, ok := p.doc.Item(r.Item)
	switch t := r.Now.Load(); {
	case ok:
	case p.isGone(r.Item):
		return "", removed(r.Item)
	case t != nil && t.Attempt > 0: // it has begun: a slip in the plan does not end it
		return "", nil
	default:
		return fmt.Sprintf("line %d of the plan, which is not read as item %s", p.doc.Misread(r.Item), r.Item), nil
	}
	for _, other := range m.st.Runs() {
		if other.Item == r.Item && other.ID != r.ID {
			return "after its earlier task", nil // it has ended, and its mark is still to be set
		}
	}
	if unmet := p.doc.Unmet(r.Item); len(unmet) > 0 {
		return "after " + strings.Join(unmet, ", "), nil
	}
	holder, ok := m.claims.Take(r.Item, it.Files)
	if !ok {
		above, err := m.iso.Ancestors(ctx, r.ID)
		if err != nil {
			return "", err
		}
		holder, ok = m.claims.Take(r.Item, it.Files, above...)
	}
	if !ok {
		return "files of " + holder, nil
	}
	return "", nil
}

func ids(items []todo.Item) []string {
	out := make([]string, len(items))
	for i, it := range items {
		out[i] = it.ID
	}
	return out
}
