// Package plan owns the todo.md of one mission: its path, reading and marking it, changes by others, and its mistakes. Its grammar is
// in workspace/todo; packages above decide whether an item is proven.
package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"centurion"
	"centurion/event"
	"centurion/loop"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// Watch calls changed whenever a plan's file may have changed, until ctx ends.
type Watch func(ctx context.Context, file *workspace.TodoFile, changed func()) error

// Plan is the plan of one mission.
type Plan struct {
	st      *state.Mission
	iso     *isolation.Checkouts
	watch   Watch
	trusted func(text []byte) bool
	File    *File
	// Checked reports changes of frozen checks when the file has changed; nil reports none.
	Checked func(ctx context.Context) error
	// ownsTodo is true once the file is recorded as this mission's.
	ownsTodo atomic.Bool

	telling      sync.Mutex // held while the plan is read and published; protects the fields below
	toldPlan     string     // the plan's items when last published
	toldCounts   todo.Counts
	toldMistakes ToldMistakes
	toldEdits    PlanEdits // changes by others, as in editsWord
	editsWord    string    // the pending notice of them
}

// New returns the plan of a mission, stored in file. trusted reports whether a person has trusted a plan with a text.
func New(st *state.Mission, iso *isolation.Checkouts, watch Watch, file *workspace.TodoFile, trusted func(text []byte) bool) *Plan {
	p := &Plan{st: st, iso: iso, watch: watch, trusted: trusted}
	p.File = newPlanFile(file, p.ownTodo)
	return p
}

// Desk finds a place for a new mission's plan, and moves an existing plan away.
type Desk struct {
	store   *store.Store
	ws      *workspace.Workspace
	planOf  func(mission string) *File // of a running mission, otherwise nil
	trusted func(text []byte) bool
}

// NewDesk returns the desk of a project. trusted reports whether a person has trusted a plan with a text.
func NewDesk(st *store.Store, ws *workspace.Workspace, planOf func(mission string) *File, trusted func(text []byte) bool) *Desk {
	return &Desk{store: st, ws: ws, planOf: planOf, trusted: trusted}
}

// Detail is the current size limit of the shared texts. With an unreadable plan it is the largest.
func (p *Plan) Detail() workspace.Detail {
	v, err := p.Read()
	if err != nil || v.Doc == nil {
		return workspace.Early
	}
	c := v.Doc.Counts()
	return workspace.Level(c.Done, c.Total()-c.Cancelled)
}

// ItemNow returns the current state of an item.
func (m *Plan) ItemNow(id string) (todo.Item, bool) {
	p, err := m.Read()
	if err != nil || p.Doc == nil || id == "" {
		return todo.Item{}, false
	}
	return p.Doc.Item(id)
}

// Read reads the mission's plan.
func (m *Plan) Read() (View, error) {
	if state.Alone(m.st.Profile) { // the file, if any, belongs to others
		return View{}, nil
	}
	doc, err := m.File.Load()
	return View{doc}, err
}

// Look adds the plan's state to the facts.
func (m *Plan) Look(f *loop.Facts) View {
	p, err := m.Read()
	if err != nil {
		f.TodoError = err.Error()
		return p
	}
	if p.Doc == nil {
		return p
	}
	f.HasTodo = true
	f.Counts = loop.Counts(p.Doc.Counts())
	runnable := p.Doc.Runnable()
	for _, it := range runnable {
		f.Runnable = append(f.Runnable, it.ID)
	}
	for _, it := range p.Doc.Items() {
		if it.Group {
			continue
		}
		switch p.Doc.Status(it.ID) {
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

// Changed handles every change of the plan's file: it publishes the change and its mistakes, wakes waiting tasks, and ends the task of
// a removed running item.
func (m *Plan) Changed() {
	ctx := m.st.Ctx
	// A person's save of an older text dropped changes by agents. If they cannot be restored now, the next edit tries again.
	_ = m.File.Heal(ctx)
	if m.Checked != nil {
		if err := m.Checked(ctx); err != nil && ctx.Err() == nil {
			m.st.End(err)
			return
		}
	}
	if err := m.TellTodo(ctx); err != nil {
		m.st.End(err)
		return
	}
	p, err := m.Read()
	if err == nil && p.Doc != nil && LacksIDs(p.Doc) {
		p.Doc, err = m.File.Edit(ctx, func(d *todo.Doc) error { d.AssignIDs(); return nil })
	}
	if err == nil {
		for _, r := range m.st.Runs() {
			if p.IsGone(r.Item) {
				r.Cancel(Removed(r.Item))
			}
		}
	}
	mended, told := m.TellMistakes(ctx, p, err)
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

// TellTodo publishes the plan's marks, and records that the mission has had items.
func (m *Plan) TellTodo(ctx context.Context) error {
	m.telling.Lock()
	defer m.telling.Unlock()
	p, err := m.Read()
	if err != nil || p.Doc == nil {
		return nil // an unreadable plan is reported when the mission is idle
	}
	counts, level := p.Doc.Counts(), 0
	data := event.TodoData{TodoCounts: event.TodoCounts(counts)}
	if m.isNewPlan(p) {
		data.Title, data.Items, level = p.Doc.Title(), p.Told(), ImpliedLevel(p.Items())
	} else if counts == m.toldCounts {
		return nil
	}
	// A written change is published even if its writer was just interrupted.
	err = m.st.Store.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
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

// isNewPlan reports whether the plan has other items than when it was last published in full; marks do not count.
func (m *Plan) isNewPlan(p View) bool {
	var b strings.Builder
	for _, it := range p.Items() {
		fmt.Fprintln(&b, it.ID, it.Shown(), it.Agent, it.After)
	}
	if b.String() == m.toldPlan {
		return false
	}
	m.toldPlan = b.String()
	return true
}

// itemsAtWork returns the items of living tasks, including waiting ones.
func (m *Plan) itemsAtWork(ctx context.Context) (map[string]bool, error) {
	tasks, err := m.st.Store.Tasks(ctx, m.st.ID)
	items := map[string]bool{}
	for _, t := range tasks {
		if !t.Status.Ended() && t.Item != "" {
			items[t.Item] = true
		}
	}
	return items, err
}

// RunOf returns the id of the living task that works on an item, or "".
func (m *Plan) RunOf(item string) string {
	for _, r := range m.st.Runs() {
		if r.Item == item {
			return r.ID
		}
	}
	return ""
}
