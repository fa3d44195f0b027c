package takeover

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"centurion"
	"centurion/store"
)

var update = flag.Bool("update", false, "rewrite what the tests compare with")

// teller writes down what was told and recorded of each step, with names for what is different each time.
type teller struct {
	*rig
	out   strings.Builder
	names map[string]string
	seq   int64
}

var unsteady = regexp.MustCompile(`[0-9a-f]{40}|[0-9a-f]{12}\b|(?:msn|tsk|ses|dlv)_[0-9A-Za-z]+|\b1[0-9]{12}\b|\d{4}-\d\d-\d\d[T ][0-9:.]+Z?`)

// steady replaces commits, ids and times.
func (w *teller) steady(s string) string {
	return unsteady.ReplaceAllStringFunc(s, func(id string) string {
		kind := "c"
		switch {
		case strings.Contains(id, "_"):
			kind = id[:3]
		case len(id) == 13 || strings.Contains(id, ":"):
			return "TIME"
		}
		key := id[:min(len(id), 12)]
		if kind != "c" {
			key = id
		}
		if w.names[key] == "" {
			w.names[key] = fmt.Sprintf("%s%d", kind, len(w.names)+1)
		}
		return w.names[key]
	})
}

func (w *teller) line(what string, v any) {
	w.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		w.t.Fatal(err)
	}
	fmt.Fprintf(&w.out, "  %s %s\n", what, w.steady(string(b)))
}

// step tells the outcome of one request, and everything that it has changed.
func (w *teller) step(name string, report any, err error) {
	w.t.Helper()
	fmt.Fprintf(&w.out, "%s\n", name)
	if err != nil {
		w.line("error", []string{string(centurion.KindOf(err)), err.Error(), centurion.HintOf(err)})
	}
	w.line("report", report)
	m, err := w.store.Mission(w.t.Context(), w.mission.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	w.line("mission", map[string]any{"status": m.Status, "reason": m.Reason, "merged": m.Merged, "taken_back": m.TakenBack, "reverted": m.Reverted, "wrote": m.Wrote})
	tasks, err := w.store.Tasks(w.t.Context(), w.mission.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, t := range tasks {
		w.line("task "+t.Item, map[string]any{"undone": !t.Undone.IsZero(), "landed": t.Landed})
	}
	events, err := w.store.Events(w.t.Context(), store.EventQuery{After: w.seq, Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range events {
		w.seq = e.Seq
		w.line("event "+string(e.Type)+" "+w.steady(e.Mission+" "+e.Session+" "+e.Task), e.Data)
	}
	if m.Todo != "" {
		fmt.Fprintf(&w.out, "  stands %s\n", w.stands())
	}
	if m.Base != nil {
		fmt.Fprintf(&w.out, "  files %s\n  branch %s\n", strings.ReplaceAll(w.git("ls-files"), "\n", " "), w.steady(w.git("rev-parse", "main")+" "+w.git("rev-parse", m.Branch)+" "+w.git("log", "-1", "--format=%B")))
	}
}

func (w *teller) merge(q MergeRequest) {
	w.t.Helper()
	r, err := w.Merge(w.t.Context(), w.mission.ID, q)
	w.step(fmt.Sprintf("merge %+v", q), r, err)
}

func (w *teller) undo(id string, q UndoRequest) {
	w.t.Helper()
	r, err := w.Undo(w.t.Context(), id, q)
	w.step(fmt.Sprintf("undo %s %+v", w.steady(id), q), r, err)
}

// compare holds what was told against the golden file.
func (w *teller) compare() {
	w.t.Helper()
	file := filepath.Join("testdata", w.t.Name()+".txt")
	got := w.out.String()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	a, b := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			w.t.Fatalf("line %d of %s\nwas: %s\nnow: %s", i+1, file, strings.Join(a[min(i, len(a)):min(i+1, len(a))], ""), strings.Join(b[min(i, len(b)):min(i+1, len(b))], ""))
		}
	}
}

func newTeller(r *rig) *teller { return &teller{rig: r, names: map[string]string{}} }

// Everything that is told and recorded of a mission's work while it is merged in two parts, taken back and brought back, whole and by task.
func TestToldOfMerged(t *testing.T) {
	t.Parallel()
	w := newTeller(newRig(t).planned())
	second := w.item("b.txt", "T3")
	w.merge(MergeRequest{DryRun: true})
	w.merge(MergeRequest{Only: []string{"T1"}, Squash: true})
	w.merge(MergeRequest{})
	w.merge(MergeRequest{})
	back, redo := UndoRequest{}, UndoRequest{Redo: true}
	w.undo(w.mission.ID, UndoRequest{DryRun: true})
	w.undo(w.mission.ID, back)
	w.undo(w.mission.ID, UndoRequest{Redo: true, DryRun: true})
	w.undo(w.mission.ID, redo)
	w.undo(second.ID, UndoRequest{DryRun: true})
	w.undo(second.ID, back)
	w.undo(second.ID, back)
	w.undo(w.mission.ID, redo) // that of the task
	w.undo(w.mission.ID, back)
	w.undo(w.mission.ID, back)
	w.undo(w.mission.ID, redo)
	w.write("c.txt", "mine\n")
	w.git("add", "c.txt")
	w.git("commit", "-q", "-m", "Mine")
	w.undo(w.mission.ID, UndoRequest{Redo: true, DryRun: true})
	w.undo(w.mission.ID, redo) // onto what the person has committed
	w.compare()
}

// The same of work that is only on the mission's own branch.
func TestToldOfUnmerged(t *testing.T) {
	t.Parallel()
	w := newTeller(newRig(t).planned())
	second := w.item("b.txt", "T3")
	w.undo(w.mission.ID, UndoRequest{})
	w.undo(w.mission.ID, UndoRequest{DryRun: true})
	w.undo(second.ID, UndoRequest{})
	w.merge(MergeRequest{Only: []string{"T3"}})
	w.undo(w.mission.ID, UndoRequest{Drop: true})
	w.undo(w.mission.ID, UndoRequest{Redo: true, DryRun: true})
	w.undo(w.mission.ID, UndoRequest{Redo: true})
	w.undo(second.ID, UndoRequest{Redo: true})
	w.undo(second.ID, UndoRequest{Redo: true})
	w.compare()
}

// The same of what stands in the way, and of a mission that is not complete.
func TestToldOfRefused(t *testing.T) {
	t.Parallel()
	w := newTeller(newRig(t).planned())
	w.item("b.txt", "T3")
	w.write(".opencode/todo.md", "# P\n- [x] T1 Make a.txt @worker\n- [ ] T2 Look at it @reviewer\n  - after: T1\n- [x] T3 Make b.txt\n- [ ] T4 More\n")
	w.amend(func(m *centurion.Mission) { m.Status, m.Reason = centurion.MissionPaused, "enough" })
	w.write("a.txt", "mine\n")
	w.merge(MergeRequest{Unfinished: true})
	w.merge(MergeRequest{Only: []string{"T1"}})
	w.git("add", "a.txt")
	w.git("commit", "-q", "-m", "Mine")
	w.merge(MergeRequest{Unfinished: true, Squash: true})
	w.merge(MergeRequest{Only: []string{"T1"}})
	w.merge(MergeRequest{})
	w.merge(MergeRequest{Only: []string{"T3", "T9"}})
	w.merge(MergeRequest{Only: []string{"T3"}})
	w.write("b.txt", "mine, too\n")
	w.undo(w.mission.ID, UndoRequest{})
	w.git("commit", "-q", "-a", "-m", "Mine, too")
	w.undo(w.mission.ID, UndoRequest{})
	w.compare()
}

// The same of a merge whose host has died: after it was made, with a commit of the person's since; and before.
func TestToldOfCutOff(t *testing.T) {
	t.Parallel()
	w := newTeller(newRig(t).planned())
	w.item("b.txt", "T3")
	w.git("commit", "-q", "--allow-empty", "-m", "Mine before")
	forget := func() { w.amend(func(m *centurion.Mission) { m.Merged.Commit = "" }) }
	w.merge(MergeRequest{Only: []string{"T1"}})
	w.merge(MergeRequest{Squash: true}) // so that the commit names the mission, like a worker's
	w.git("commit", "-q", "--allow-empty", "-m", "Mine")
	forget()
	w.merge(MergeRequest{})
	w.undo(w.mission.ID, UndoRequest{})
	w.amend(func(m *centurion.Mission) {
		m.Merged = &centurion.Merged{Branch: "main", Before: w.git("rev-parse", "main"), From: m.Merged.From, Commits: []string{"x"}, Earlier: m.Merged}
	})
	w.merge(MergeRequest{DryRun: true})
	w.compare()
}

// The same of work in the project itself.
func TestToldOfShared(t *testing.T) {
	t.Parallel()
	r, s := newShared(t, map[string]string{"a": "1\n", "b": "1\n", "c": "1\n"})
	w := newTeller(r)
	first := r.wrote(s, 1, true, map[string]string{"a": "2\n"})
	r.wrote(s, 2, true, map[string]string{"b": "2\n", "c": ""})
	w.merge(MergeRequest{})
	w.undo(first.ID, UndoRequest{DryRun: true})
	w.undo(first.ID, UndoRequest{})
	w.undo(first.ID, UndoRequest{})
	w.undo(first.ID, UndoRequest{Redo: true})
	w.write("b", "mine\n")
	w.undo(w.mission.ID, UndoRequest{})
	w.undo(w.mission.ID, UndoRequest{Force: true})
	w.write("a", "mine\n")
	w.undo(w.mission.ID, UndoRequest{Redo: true})
	w.undo(w.mission.ID, UndoRequest{Redo: true, Force: true})
	w.compare()
}

// item puts a file on the mission's branch as the work of a task of an item.
func (r *rig) item(name, item string) centurion.Task {
	r.t.Helper()
	r.write(".git/info/exclude", ".opencode\n") // the plan is nobody's work
	r.add(name)
	tasks, err := r.store.Tasks(r.t.Context(), r.mission.ID)
	if err != nil {
		r.t.Fatal(err)
	}
	task := tasks[len(tasks)-1]
	for _, t := range tasks {
		if len(t.Landed) > 0 && t.Landed[0].Files[0].Path == name {
			task = t
		}
	}
	task.Item, task.Title = item, "Make "+name
	r.put(&task)
	r.write(".opencode/todo.md", "# P\n- [x] T1 Make a.txt @worker\n- [x] T2 Look at it @reviewer\n  - after: T1\n- [x] "+item+" Make "+name+" @worker\n")
	return task
}
