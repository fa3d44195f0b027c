package takeover

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/store"
)

// planned gives the rig's mission a plan, with a review of the task's work that has passed.
func (r *rig) planned() *rig {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Join(r.dir, ".opencode"), 0o777); err != nil {
		r.t.Fatal(err)
	}
	r.write(".opencode/todo.md", "# P\n- [x] T1 Make a.txt @worker\n- [x] T2 Look at it @reviewer\n  - after: T1\n")
	r.task.Item, r.mission.Todo, r.mission.HadItems = "T1", ".opencode/todo.md", true
	r.mission.Summary, r.mission.Verified = "Both are done.", 2
	review := centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: r.mission.ID, Agent: "reviewer", Title: "Look at it", Item: "T2",
		Status: centurion.TaskCompleted, Result: "PASS", Started: r.task.Ended, Ended: r.task.Ended}
	err := r.store.Update(r.t.Context(), func(tx *store.Tx) error {
		for _, t := range []*centurion.Task{&r.task, &review} {
			if err := tx.PutTask(t); err != nil {
				return err
			}
		}
		return tx.PutMission(&r.mission)
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return r
}

func (r *rig) plan() string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, ".opencode", "todo.md"))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// stands says how the mission stands: its state and why, its summary, what waits for its agent, the plan's marks, the tasks that are undone.
func (r *rig) stands() string {
	r.t.Helper()
	m, err := r.store.Mission(r.t.Context(), r.mission.ID)
	if err != nil {
		r.t.Fatal(err)
	}
	out := []string{string(m.Status), m.Reason, m.Summary}
	waiting, err := r.store.PendingDeliveries(r.t.Context(), m.Session)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, d := range waiting {
		said, _, _ := strings.Cut(d.Text, ":")
		out = append(out, said)
	}
	doc, _, err := r.workspace.TodoAt(m.Todo).Load()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, it := range doc.Items() {
		out = append(out, it.ID+" "+doc.Status(it.ID).String())
	}
	tasks, err := r.store.Tasks(r.t.Context(), m.ID)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, t := range tasks {
		if !t.Undone.IsZero() {
			out = append(out, t.Item+" reverted")
		}
	}
	return strings.Join(out, ", ")
}

const (
	asItEnded = "completed, , Both are done., T1 done, T2 done"
	t1Undone  = "paused, T1 was reverted, , The user has reverted T1, T1 open, T2 open, T1 reverted, T2 reverted"
)

// Issue "What real use showed", A.6: an undo opens the item and its review and pauses the mission, a redo brings all of that back. So do
// those that were recorded by a host which died before the plan said so, once they are asked for again.
func TestUndoOpensThePlan(t *testing.T) {
	r := newRig(t).planned()
	ctx := t.Context()
	check := func(when, want string) {
		t.Helper()
		if got := r.stands(); got != want {
			t.Errorf("%s: %s\nwant %s", when, got, want)
		}
	}
	undo := func(q UndoRequest, id string) UndoReport {
		t.Helper()
		got, err := r.Undo(ctx, id, q)
		if err != nil || got.Refused != nil {
			t.Fatalf("%+v: %+v, %v", q, got.Refused, err)
		}
		return got
	}
	check("before", asItEnded)
	undo(UndoRequest{}, r.task.ID)
	check("undone", t1Undone)
	told, err := r.store.Events(ctx, store.EventQuery{Mission: r.mission.ID, Types: []centurion.EventType{centurion.EventTodoUpdated}})
	if err != nil || len(told) != 1 {
		t.Fatalf("%d times it is told how the plan stands, %v", len(told), err)
	}
	if d, err := event.Decode[event.TodoData](told[0]); err != nil || d.Open != 2 || d.Done != 0 || len(d.Items) != 2 {
		t.Errorf("the plan is told as %+v, %v", d, err)
	}
	undo(UndoRequest{Redo: true}, r.task.ID)
	check("brought back", asItEnded)

	killed := func(q UndoRequest, id string) { // between what is recorded and what the plan says
		t.Helper()
		plan := r.plan()
		undo(q, id)
		err := r.store.Update(ctx, func(tx *store.Tx) error {
			m, err := tx.Mission(r.mission.ID)
			if err != nil {
				return err
			}
			for i := range m.Reverted {
				m.Reverted[i].Marked = false
			}
			return tx.PutMission(&m)
		})
		if err != nil {
			t.Fatal(err)
		}
		r.write(".opencode/todo.md", plan)
	}
	killed(UndoRequest{}, r.task.ID)
	if got := undo(UndoRequest{}, r.task.ID); strings.Join(got.Open, " ") != "T1 T2" {
		t.Errorf("asked again it opened %v", got.Open)
	}
	check("undone by two hosts", t1Undone)
	undo(UndoRequest{Redo: true}, r.mission.ID)
	check("brought back by the mission's name", asItEnded)

	if _, err := r.Merge(ctx, r.mission.ID, MergeRequest{}); err != nil {
		t.Fatal(err)
	}
	const unmerged = "paused, the merge of this mission's work was reverted, , The user has reverted the merge of this mission's work, T1 open, T2 open, T2 reverted"
	killed(UndoRequest{}, r.mission.ID)
	if got := undo(UndoRequest{}, r.mission.ID); got.Dropped || len(got.Files) != 1 || got.Back == "" {
		t.Errorf("asked again it reports %+v", got)
	}
	check("the merge is undone by two hosts", unmerged)
	undo(UndoRequest{Drop: true}, r.mission.ID)
	check("all of it is undone", strings.NewReplacer("the merge of this mission's work was reverted, ,", "the merge of this mission's work, all of this mission's work were reverted, ,",
		"T1 open,", "The user has reverted all of this mission's work, T1 open,", "T2 open, ", "T2 open, T1 reverted, ").Replace(unmerged))
	undo(UndoRequest{Redo: true}, r.mission.ID)
	check("the branch is back", unmerged)
	undo(UndoRequest{Redo: true}, r.mission.ID)
	check("the merge is back", asItEnded)
	killed(UndoRequest{}, r.mission.ID)
	undo(UndoRequest{Redo: true}, r.mission.ID)
	check("the undo of the merge was cut off, then brought back", asItEnded)
	r.has("a.txt", "a\n")
}

// A redo that was recorded and not carried out is carried out when it is asked for again, and when the mission's next undo comes.
func TestRedoCutOff(t *testing.T) {
	for _, again := range []bool{true, false} {
		r := newRig(t).planned()
		if _, err := r.Undo(t.Context(), r.task.ID, UndoRequest{}); err != nil {
			t.Fatal(err)
		}
		plan := r.plan()
		before, err := r.store.Mission(t.Context(), r.mission.ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Undo(t.Context(), r.task.ID, UndoRequest{Redo: true}); err != nil {
			t.Fatal(err)
		}
		err = r.store.Update(t.Context(), func(tx *store.Tx) error {
			m := before
			m.Reverted[0].Back = true
			return tx.PutMission(&m)
		})
		if err != nil {
			t.Fatal(err)
		}
		r.write(".opencode/todo.md", plan)
		id, want := r.task.ID, asItEnded
		if !again {
			want = t1Undone
		}
		if _, err := r.Undo(context.WithoutCancel(t.Context()), id, UndoRequest{Redo: again}); err != nil {
			t.Fatal(err)
		}
		if got := r.stands(); got != want {
			t.Errorf("redo again %v: %s\nwant %s", again, got, want)
		}
	}
}
