package plan

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// refusing is a plan whose mission can be ended, and the cause of its end.
func refusing(t *testing.T, text string, m centurion.Mission, tasks ...centurion.Task) (*Plan, context.Context) {
	t.Helper()
	p := planned(t, text, m, tasks...)
	ctx, end := context.WithCancelCause(t.Context())
	t.Cleanup(func() { end(nil) })
	file, _ := p.File.Where()
	return New(state.New(ctx, end, p.st.Store, *p.st.Spent.Load(), agents.Default()), nil, nil, file, func([]byte) bool { return false }), ctx
}

// refuse makes the state refuse to read or write a table, until the end of the test or mend.
func refuse(t *testing.T, s *store.Store, table string, write bool) (mend func()) {
	t.Helper()
	undo, err := storetest.Fail(t.Context(), s, table, write)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := undo(); err != nil {
			t.Fatal(err)
		}
	}
}

// What the state refuses to read or to write is an error of each step that needs it, and no error without that.
func TestRefusedByTheState(t *testing.T) {
	t.Parallel()
	const one, none = "# P\n- [~] T1 One\n  - verify: `make`\n- [ ] T2 Two\n  - after: T1\n", "# P\n"
	meet := func(p *Plan) error { return p.MeetPlan(p.st.Ctx, centurion.Mission{}) }
	mistakes := func(p *Plan) error {
		_, err := p.TellMistakes(p.st.Ctx, View{}, errors.New("unread"))
		return err
	}
	for name, c := range map[string]struct {
		text, table string
		write       bool
		do          func(p *Plan) error
	}{
		"checks that nobody approved": {one, "mission", true, meet},
		"a plan that is met":          {one, "journal", true, meet},
		"a mission that owns a file": {one, "mission", true, func(p *Plan) error {
			_, err := p.File.Edit(p.st.Ctx, func(d *todo.Doc) error { return d.SetTitle("T1", "Uno") })
			return err
		}},
		"the level of a mission": {one, "mission", false, func(p *Plan) error {
			_, err := p.SetLevel(p.st.Ctx, 2, "commander")
			return err
		}},
		"a new level": {one, "mission", true, func(p *Plan) error {
			_, err := p.SetLevel(p.st.Ctx, 2, "commander")
			return err
		}},
		"a level that is told": {one, "journal", true, func(p *Plan) error {
			_, err := p.SetLevel(p.st.Ctx, 2, "commander")
			return err
		}},
		"what a level allows":  {none, "mission", false, func(p *Plan) error { return p.LevelAllows(p.st.Ctx, View{}, agents.Agent{Name: agents.Worker}) }},
		"tasks without a plan": {none, "task", false, func(p *Plan) error { return p.InferLevel(p.st.Ctx) }},
		"an inferred level":    {one, "mission", true, func(p *Plan) error { return p.InferLevel(p.st.Ctx) }},
		"whom an end would free": {one, "task", false, func(p *Plan) error {
			_, err := p.WouldFree(p.st.Ctx, centurion.Task{Item: "T1"}, centurion.TaskCompleted)
			return err
		}},
		"a mark that is told":    {one, "journal", true, func(p *Plan) error { return p.MarkItem(p.st.Ctx, "T2", MarkRunning) }},
		"a mark that is settled": {one, "journal", true, func(p *Plan) error { return p.SettleItem(p.st.Ctx, "T1", centurion.TaskCompleted) }},
		"marks after a crash":    {one, "journal", true, func(p *Plan) error { _, err := p.Reconcile(p.st.Ctx, nil); return err }},
		"items of tasks":         {one, "task", false, func(p *Plan) error { return p.KnowItems(p.st.Ctx) }},
		"a note of mistakes":     {one, "journal", true, mistakes},
		"a word about mistakes":  {one, "delivery", true, mistakes},
		"that it has had items":  {one, "mission", true, func(p *Plan) error { return p.TellTodo(p.st.Ctx) }},
		"items that are told":    {one, "journal", true, func(p *Plan) error { return p.TellTodo(p.st.Ctx) }},
		"a word about edits":     {one, "delivery", false, func(p *Plan) error { p.editsWord = "del_1"; _, err := p.HasEdits(p.st.Ctx, ""); return err }},
		"marks that were kept":   {one, "task", false, func(p *Plan) error { return p.remarkMended(p.st.Ctx) }},
		"a word that is replaced": {one, "delivery", false, func(p *Plan) error {
			return p.st.Store.Update(p.st.Ctx, func(tx *store.Tx) error { _, _, err := UnreadWord(tx, "del_1"); return orFound(err) })
		}},
	} {
		p, _ := refusing(t, c.text, centurion.Mission{})
		mend := refuse(t, p.st.Store, c.table, c.write)
		before, _ := p.File.Raw()
		if err := c.do(p); err == nil {
			t.Errorf("%s: no error", name)
		}
		if now, err := p.File.Raw(); name == "a mission that owns a file" && (err != nil || string(now.Bytes()) != string(before.Bytes())) {
			t.Errorf("%s: it was written: %s, %v", name, now.Bytes(), err)
		}
		mend()
		p, ctx := refusing(t, c.text, centurion.Mission{})
		if err := c.do(p); err != nil || ctx.Err() != nil {
			t.Errorf("%s, when nothing is refused: %v, %v", name, err, ctx.Err())
		}
	}
}

// orFound is err, unless it says that there is nothing.
func orFound(err error) error {
	if centurion.KindOf(err) == centurion.KindNotFound {
		return nil
	}
	return err
}

// A change of the plan's file whose news cannot be stored ends the mission with the reason, but for one that stops anyway; otherwise it wakes
// who waits.
func TestChangedWhenRefused(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		change, table string
		write         bool
		checked       error
		stopped, ends bool
	}{
		"nothing is refused":     {"# P\n- [ ] T1 Uno\n", "", false, nil, false, false},
		"frozen checks":          {"# P\n- [ ] T1 Uno\n", "", false, broken, false, true},
		"frozen checks, stopped": {"# P\n- [ ] T1 Uno\n", "", false, broken, true, false},
		"the items":              {"# P\n- [ ] T1 Uno\n", "journal", true, nil, false, true},
		"what a person changed":  {"# P\n- [ ] T1 Uno\n", "delivery", true, nil, false, true},
		"a mistake":              {"# P\n- [ ]T1 One\n", "delivery", true, nil, false, true},
		"a mistake, stopped":     {"# P\n- [ ]T1 One\n", "delivery", true, nil, true, false},
		"what is mended":         {"# P\n- [ ] T1 One\n", "task", false, nil, false, true},
	} {
		const was = "# P\n- [ ] T1 One\n"
		p, ctx := refusing(t, was, centurion.Mission{})
		p.st.Add(&state.Run{ID: "tsk_1", Item: "T1"})
		p.Changed()
		if _, err := p.File.Edit(t.Context(), func(d *todo.Doc) error { return d.AddNote("T1", "of the host") }); err != nil {
			t.Fatal(err)
		}
		if name == "what is mended" {
			p.toldMistakes = ToldMistakes{standing: map[string]toldMistake{"x": {}}}
		}
		if ctx.Err() != nil {
			t.Fatal(context.Cause(ctx))
		}
		p.Checked = func(context.Context) error { return c.checked }
		if c.table != "" {
			defer refuse(t, p.st.Store, c.table, c.write)()
		}
		if c.stopped {
			p.st.End(centurion.ErrShutdown)
		}
		if err := os.WriteFile(filepath.Join(p.st.Spent.Load().Directory, workspace.TodoPath), []byte(c.change), 0o600); err != nil {
			t.Fatal(err)
		}
		woken := p.st.Change()
		p.Changed()
		cause := context.Cause(ctx)
		if c.stopped && cause != error(centurion.ErrShutdown) || !c.stopped && (cause != nil) != c.ends || c.checked != nil && c.ends && cause != broken {
			t.Errorf("%s: ended by %v", name, cause)
		}
		select {
		case <-woken:
			if c.ends {
				t.Errorf("%s: woken after its end", name)
			}
		default:
			if !c.ends {
				t.Errorf("%s: not woken", name)
			}
		}
	}
}
