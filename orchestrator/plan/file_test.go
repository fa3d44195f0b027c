package plan

import (
	"context"
	"testing"

	"centurion"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/workspace"
	"centurion/workspace/todo"
)

func project(t *testing.T) *workspace.Workspace {
	t.Helper()
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	return ws
}

func write(t *testing.T, ws *workspace.Workspace, path, text string) {
	t.Helper()
	if err := ws.WriteFile(path, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// A new item gets the id of no item that the plan has had, whichever way it comes in: it would come to have that one's tasks.
func TestIDsOfRemovedItemsAreNotGivenAgain(t *testing.T) {
	t.Parallel()
	ws := project(t)
	write(t, ws, workspace.TodoPath, "# P\n- [ ] T1 One\n- [ ] T2 Two\n")
	p := newPlanFile(ws.Todo(), func(context.Context) error { return nil })
	if _, err := p.Load(); err != nil {
		t.Fatal(err)
	}
	write(t, ws, workspace.TodoPath, "# P\n- [ ] T1 One\n")
	doc, err := p.Edit(t.Context(), func(d *todo.Doc) error {
		_, err := d.Add("", todo.Item{Title: "Three"})
		return err
	})
	if _, again := doc.Item("T2"); err != nil || again || len(doc.Items()) != 2 {
		t.Errorf("an item added: %v, %s", err, doc.Bytes())
	}
	doc, _, err = p.Replace(t.Context(), "# P\n- [ ] T1 One\n- [ ] Four\n", false, func(_, _ *todo.Doc) error { return nil })
	if it := doc.Items()[1]; err != nil || it.ID != "T4" {
		t.Errorf("a text written anew: %v, %s", err, doc.Bytes())
	}
}

// Where a host was killed after it had put the plan of an ended mission away and before that was recorded, the next one records it, and
// what is in its place now is somebody else's.
func TestClaimAfterAKill(t *testing.T) {
	t.Parallel()
	ws := project(t)
	s := storetest.Open(t)
	ended := centurion.Mission{ID: centurion.NewID(centurion.PrefixMission), Status: centurion.MissionCompleted, Todo: workspace.TodoPath, OwnsTodo: true, HadItems: true}
	if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.PutMission(&ended) }); err != nil {
		t.Fatal(err)
	}
	put := workspace.ArchivePath + "/todo-" + ended.ID + ".md"
	write(t, ws, put, "- [x] T1 Done\n")
	write(t, ws, workspace.TodoPath, "- [ ] T1 Mine\n")
	c, err := NewDesk(s, ws, func(string) *File { return nil }, func([]byte) bool { return false }).ClaimTodo(t.Context(), "")
	if err != nil || c.aside == "" || c.owns {
		t.Fatalf("%+v, %v", c, err)
	}
	if b, _, err := ws.ReadFile(c.aside, 0); err != nil || string(b) != "- [ ] T1 Mine\n" {
		t.Errorf("the person's plan: %q, %v", b, err)
	}
	if m, err := s.Mission(t.Context(), ended.ID); err != nil || m.Todo != put {
		t.Errorf("the mission's plan is at %s, %v", m.Todo, err)
	}
}
