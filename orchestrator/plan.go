package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/loop"
	"centurion/store"
	"centurion/tools"
	"centurion/workspace/todo"
)

// planView is the plan as it stands: the zero value is a mission without one.
type planView struct{ doc *todo.Doc }

// plan reads the mission's plan.
func (m *mission) plan() (planView, error) {
	doc, _, err := m.todo.Load()
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
			if p.doc == nil || slices.ContainsFunc(p.doc.Unmet(t.Item), func(id string) bool { return !alive[id] || held[id] }) {
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

// todoChanged is called whenever the plan's file has changed, whoever changed it: the change is told, what waited for it
// looks again, and a running item that was removed takes its task with it.
func (m *mission) todoChanged() {
	ctx := m.ctx
	if err := m.tellTodo(ctx); err != nil {
		m.end(err)
		return
	}
	p, err := m.plan()
	if err == nil && p.doc != nil && lacksIDs(p.doc) {
		p.doc, err = m.todo.Edit(ctx, func(d *todo.Doc) error { d.AssignIDs(); return nil })
	}
	if err == nil && p.doc != nil {
		for _, r := range m.runsNow() {
			if _, ok := p.doc.Item(r.item); r.item != "" && !ok {
				r.cancel(&centurion.Error{Kind: centurion.KindCancelled, Msg: "its item " + r.item + " was removed from the plan"})
			}
		}
	}
	m.notify()
}

// tellTodo records what the plan's marks are, and that the mission has had items.
func (m *mission) tellTodo(ctx context.Context) error {
	m.telling.Lock()
	defer m.telling.Unlock()
	p, err := m.plan()
	if err != nil || p.doc == nil {
		return nil // an unreadable plan is found, and told, when the mission is idle
	}
	counts := p.doc.Counts()
	data := event.TodoData{TodoCounts: event.TodoCounts(counts)}
	if m.isNewPlan(p) {
		data.Title, data.Items = p.doc.Title(), p.told()
	} else if counts == m.toldCounts {
		return nil
	}
	err = m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		rec, err := tx.Mission(m.id)
		if err != nil {
			return err
		}
		if counts.Total() > 0 && !rec.HadItems {
			rec.HadItems = true
			if err := tx.PutMission(&rec); err != nil {
				return err
			}
		}
		_, err = tx.Append(centurion.Event{Type: centurion.EventTodoUpdated, Mission: m.id, Session: rec.Session, Data: event.Data(data)})
		return err
	})
	if ctx.Err() != nil {
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

// planner fulfils tools.Planner for one conversation.
type planner struct{ c *conversation }

var _ tools.Planner = planner{}

// UpdateTodo applies one change of the plan. An item that is marked as done and has a verify command is checked first.
func (p planner) UpdateTodo(ctx context.Context, _ *tools.Call, u tools.TodoUpdate) (string, error) {
	m := p.c.m
	if u.Level != 0 {
		if err := m.setLevel(ctx, u.Level); err != nil {
			return "", err
		}
	}
	var doc *todo.Doc
	var err error
	if strings.TrimSpace(u.Content) != "" {
		if doc, err = m.todo.Replace(ctx, u.Content, m.keepsRunning); err != nil {
			return "", err
		}
	}
	var notes []string
	if len(u.Items) > 0 {
		if notes, err = m.proveTicks(ctx, p.c, u.Items); err != nil {
			return "", err
		}
	}
	u.Items = withoutOwnTick(p.c, u.Items)
	if len(u.Items) > 0 || len(u.Add) > 0 || doc != nil && lacksIDs(doc) {
		if doc, err = m.todo.Edit(ctx, func(d *todo.Doc) error { return m.applyTodo(d, u) }); err != nil {
			return "", err
		}
	}
	if doc == nil {
		plan, err := m.plan()
		if err != nil || plan.doc == nil {
			return "Level noted. There is no todo list yet.", err
		}
		doc = plan.doc
	}
	if err := m.tellTodo(ctx); err != nil {
		return "", err
	}
	m.notify()
	return strings.Join(append(notes, outline(doc)), "\n"), nil
}

// withoutOwnTick leaves out that a task ticks its own item: the host does that when the task ends.
func withoutOwnTick(c *conversation, updates []tools.ItemUpdate) []tools.ItemUpdate {
	out := slices.Clone(updates)
	for i, u := range out {
		if mark, err := markOf(u.Status); c.task != nil && u.ID == c.task.item && err == nil && mark == todo.Done {
			out[i].Status = ""
		}
	}
	return out
}

// keepsRunning refuses a new plan that drops an item somebody works on.
func (m *mission) keepsRunning(_, next *todo.Doc) error {
	for _, r := range m.runsNow() {
		if r.item == "" {
			continue
		}
		if _, ok := next.Item(r.item); !ok {
			return &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("the new list has no item %s, which task %s works on", r.item, r.id),
				Hint: "keep the item, or cancel the task first"}
		}
	}
	if len(next.Items()) == 0 {
		return &centurion.Error{Kind: centurion.KindUsage, Msg: "the new list has no items", Hint: "write items like «- [ ] T1 Do this @worker»"}
	}
	return nil
}

// lacksIDs reports whether an item of the plan has no id yet.
func lacksIDs(d *todo.Doc) bool {
	return slices.ContainsFunc(d.Items(), func(it todo.Item) bool { return it.ID == "" })
}

// applyTodo makes the changes of single items and adds new ones.
func (m *mission) applyTodo(d *todo.Doc, u tools.TodoUpdate) error {
	d.AssignIDs()
	var later []tools.ItemUpdate
	for _, it := range u.Items {
		if it.Status != "" {
			mark, err := markOf(it.Status)
			if err != nil {
				return err
			}
			if err := d.SetMark(it.ID, mark); err != nil {
				return err
			}
		}
		if it.Title != "" {
			if err := d.SetTitle(it.ID, it.Title); err != nil {
				return err
			}
		}
		if it.Note != "" {
			if err := d.AddNote(it.ID, it.Note); err != nil {
				return err
			}
		}
		later = append(later, it) // what it waits for may be an item that is added now
	}
	for _, n := range u.Add {
		if _, err := d.Add(n.Section, todo.Item{ID: n.ID, Title: n.Title, Agent: strings.TrimPrefix(n.Agent, "@"), Mark: todo.Open,
			After: n.After, Files: n.Files, Verify: n.Verify}); err != nil {
			return err
		}
	}
	for _, it := range later {
		if err := d.AddAfter(it.ID, it.After...); err != nil {
			return err
		}
	}
	return nil
}

// markOf reads a status as a model writes it.
func markOf(status string) (todo.Mark, error) {
	switch strings.ToLower(status) {
	case "open", "pending":
		return todo.Open, nil
	case "done", "completed":
		return todo.Done, nil
	case "cancelled", "canceled":
		return todo.Cancelled, nil
	case "blocked":
		return todo.Blocked, nil
	}
	return 0, &centurion.Error{Kind: centurion.KindUsage, Msg: fmt.Sprintf("%q is not a status", status),
		Hint: "use open, done, cancelled or blocked; running is set by delegate_task"}
}

func (m *mission) setLevel(ctx context.Context, level int) error {
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		rec, err := tx.Mission(m.id)
		if err != nil {
			return err
		}
		rec.Level = cmp.Or(rec.Options.Level, level)
		if err := tx.PutMission(&rec); err != nil {
			return err
		}
		_, err = tx.Append(centurion.Event{Type: centurion.EventMissionUpdated, Mission: m.id, Session: rec.Session,
			Data: event.Data(living(rec))})
		return err
	})
}

// markRunning and its like are what the host itself does to an item.
func markRunning(d *todo.Doc, id string) error { return d.SetMark(id, todo.Running) }
func markOpen(d *todo.Doc, id string) error    { return d.SetMark(id, todo.Open) }
func markDone(d *todo.Doc, id string) error    { return d.SetMark(id, todo.Done) }
func markBlocked(d *todo.Doc, id string) error { return d.SetMark(id, todo.Blocked) }

// markItem changes the mark of an item; no item, or one that was removed meanwhile, is left alone.
func (m *mission) markItem(ctx context.Context, id string, change func(*todo.Doc, string) error) error {
	if id == "" {
		return nil
	}
	_, err := m.todo.Edit(ctx, func(d *todo.Doc) error {
		if _, ok := d.Item(id); !ok {
			return errGone
		}
		return change(d, id)
	})
	if errors.Is(err, errGone) {
		return nil
	}
	if err == nil {
		err = m.tellTodo(ctx)
	}
	return err
}

var errGone = errors.New("the item is gone")

// settleItem gives the item of an ended task its mark, unless somebody has marked it otherwise meanwhile.
func (m *mission) settleItem(ctx context.Context, item string, status centurion.TaskStatus) error {
	if item == "" {
		return nil
	}
	plan, err := m.plan()
	if err != nil || plan.doc == nil {
		return nil // the plan's own fault is told when the mission is idle
	}
	it, ok := plan.doc.Item(item)
	if !ok || it.Mark != todo.Running && (status != centurion.TaskCompleted || it.Mark != todo.Open) {
		return nil
	}
	change := markOpen
	switch status {
	case centurion.TaskCompleted:
		change = markDone
	case centurion.TaskBlocked:
		change = markBlocked
	}
	return m.markItem(ctx, item, change)
}

// wouldFree reports whether the completion of a task's item lets another one be started that nobody has taken up yet.
func (m *mission) wouldFree(ctx context.Context, t centurion.Task, status centurion.TaskStatus) (bool, error) {
	if t.Item == "" || status != centurion.TaskCompleted {
		return false, nil
	}
	plan, err := m.plan()
	if err != nil || plan.doc == nil {
		return false, nil // as above
	}
	before := ids(plan.doc.Runnable())
	if plan.doc.SetMark(t.Item, todo.Done) != nil {
		return false, nil // the item is gone
	}
	waiting, err := m.itemsAtWork(ctx)
	return slices.ContainsFunc(plan.doc.Runnable(), func(it todo.Item) bool {
		return !slices.Contains(before, it.ID) && !waiting[it.ID]
	}), err
}

// reconcile puts the marks right that a host which died could not set any more: the store says what happened.
func (m *mission) reconcile(ctx context.Context, tasks []centurion.Task) error {
	plan, err := m.plan()
	if err != nil || plan.doc == nil {
		return nil // as above
	}
	last := map[string]centurion.TaskStatus{}
	for _, t := range tasks {
		last[t.Item] = t.Status
		if rejects(t.Agent, t.Status, t.Result) {
			last[t.Item] = centurion.TaskCancelled
		}
	}
	for _, it := range plan.items() {
		status, known := last[it.ID]
		if it.Mark != todo.Running || it.Group || known && !status.Ended() {
			continue
		}
		if !known {
			status = centurion.TaskCancelled // nobody works on it: open
		}
		if err := m.settleItem(ctx, it.ID, status); err != nil {
			return err
		}
	}
	return nil
}

// itemsAtWork returns the items that living tasks have, also those that wait: nobody needs to start them.
func (m *mission) itemsAtWork(ctx context.Context) (map[string]bool, error) {
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.id)
	items := map[string]bool{}
	for _, t := range tasks {
		if !t.Status.Ended() && t.Item != "" {
			items[t.Item] = true
		}
	}
	return items, err
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
		return &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("item %s is %s", id, what),
			Hint: "set it to open with update_todo if it has to be done again"}
	}
	return nil
}

// obstacle says what keeps a task from being launched, or "" if nothing does. Its files are claimed then.
func (m *mission) obstacle(ctx context.Context, r *taskRun) (string, error) {
	rec, err := m.h.cfg.Store.Mission(ctx, m.id)
	if err != nil {
		return "", err
	}
	if r.item == "" && !rec.Options.ShowPlan {
		return "", nil
	}
	p, err := m.plan()
	if err != nil {
		return "the plan cannot be read", nil
	}
	if p.held(rec, r.agent) {
		return "the plan waits to be accepted", m.askPlan(ctx, rec, p)
	}
	if r.item == "" {
		return "", nil
	}
	if p.doc == nil {
		return "the plan has vanished", nil
	}
	it, ok := p.doc.Item(r.item)
	if !ok {
		return "", &centurion.Error{Kind: centurion.KindCancelled, Msg: "its item " + r.item + " was removed from the plan"}
	}
	for _, other := range m.runsNow() {
		if other.item == r.item && other.id != r.id {
			return "after task " + other.id, nil // it has ended, and its mark is still to be set
		}
	}
	if unmet := p.doc.Unmet(r.item); len(unmet) > 0 {
		return "after " + strings.Join(unmet, ", "), nil
	}
	if holder, ok := m.claims.take(r.item, it.Files); !ok {
		return "files of " + holder, nil
	}
	return "", nil
}

// outline is the plan in short, for a model that has just changed it.
func outline(d *todo.Doc) string {
	var b strings.Builder
	c := d.Counts()
	fmt.Fprintf(&b, "%d items: %d open, %d running, %d done, %d cancelled, %d blocked.\n", c.Total(), c.Open, c.Running, c.Done, c.Cancelled, c.Blocked)
	for _, it := range d.Items() {
		fmt.Fprintf(&b, "[%c] %s %s", d.Status(it.ID), it.ID, it.Title)
		if it.Agent != "" {
			b.WriteString(" @" + it.Agent)
		}
		if unmet := d.Unmet(it.ID); len(unmet) > 0 && it.Mark == todo.Open {
			b.WriteString(" (after " + strings.Join(unmet, ", ") + ")")
		}
		if len(it.Verify) == 0 && !it.Group {
			b.WriteString(" (no verify command)")
		}
		b.WriteByte('\n')
	}
	for _, p := range d.Problems() {
		fmt.Fprintf(&b, "Problem in line %d: %s\n", p.Line, p.Msg)
	}
	return strings.TrimRight(b.String(), "\n")
}

func ids(items []todo.Item) []string {
	out := make([]string, len(items))
	for i, it := range items {
		out[i] = it.ID
	}
	return out
}

// sortedClaims yields claims by item.
func sortedClaims(held map[string][]string) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for _, k := range slices.Sorted(maps.Keys(held)) {
			if !yield(k, held[k]) {
				return
			}
		}
	}
}
