package plan

import (
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// parsed is a plan that nobody changes.
func parsed(t *testing.T, text string) View {
	t.Helper()
	doc, err := todo.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return View{Doc: doc}
}

// The end of a task marks its item, but for one that somebody has marked otherwise meanwhile.
func TestSettleItem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		was    string
		status centurion.TaskStatus
		want   string
	}{
		"completed":              {"~", centurion.TaskCompleted, "x"},
		"failed":                 {"~", centurion.TaskFailed, " "},
		"cancelled":              {"~", centurion.TaskCancelled, " "},
		"blocked":                {"~", centurion.TaskBlocked, "!"},
		"open again, completed":  {" ", centurion.TaskCompleted, "x"},
		"open again, blocked":    {" ", centurion.TaskBlocked, " "},
		"cancelled by a person":  {"-", centurion.TaskCompleted, "-"},
		"done already, and fail": {"x", centurion.TaskFailed, "x"},
	} {
		p := planned(t, "# P\n- ["+c.was+"] T1 One\n", centurion.Mission{})
		if err := p.SettleItem(t.Context(), "T1", c.status); err != nil {
			t.Fatal(err)
		}
		if it, _ := p.ItemNow("T1"); it.Mark != parsed(t, "- ["+c.want+"] T1 One\n").Items()[0].Mark {
			t.Errorf("%s: %v, want [%s]", name, it.Mark, c.want)
		}
	}
}

// Only a done item is opened again, and a line is marked only if it is clear which one is meant.
func TestMarkItem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text   string
		change func(*todo.Doc, string) error
		want   string
	}{
		"done, opened again":     {"- [x] T1 One\n", OpenAgain, "- [ ] T1 One\n"},
		"running, opened again":  {"- [~] T1 One\n", OpenAgain, "- [~] T1 One\n"},
		"blocked, opened again":  {"- [!] T1 One\n", OpenAgain, "- [!] T1 One\n"},
		"begun":                  {"- [ ] T1 One\n", MarkRunning, "- [~] T1 One\n"},
		"blocked":                {"- [~] T1 One\n", MarkBlocked, "- [!] T1 One\n"},
		"opened":                 {"- [~] T1 One\n", MarkOpen, "- [ ] T1 One\n"},
		"it stands there twice":  {"- [ ] T1 One\n- [ ] T1 Two\n", MarkRunning, "- [ ] T1 One\n- [ ] T1 Two\n"},
		"another item":           {"- [ ] T2 Two\n", MarkRunning, "- [ ] T2 Two\n"},
		"an item without its id": {"- [ ] One\n", MarkRunning, "- [ ] One\n"},
	} {
		p := planned(t, "# P\n"+c.text, centurion.Mission{})
		if err := p.MarkItem(t.Context(), "T1", c.change); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		file, _ := p.File.Where()
		if doc, _, err := file.Load(); err != nil || string(doc.Bytes()) != "# P\n"+c.text && string(doc.Bytes()) != "# P\n"+c.want || !strings.HasSuffix(string(doc.Bytes()), c.want) {
			t.Errorf("%s: %q, want %q, %v", name, doc.Bytes(), c.want, err)
		}
	}
}

// After a crash an item stands as its last task has ended; a review that did not pass leaves its item open, and reviews of an item's
// work say nothing of whether it is done.
func TestReconcile(t *testing.T) {
	t.Parallel()
	worker := func(status centurion.TaskStatus) centurion.Task {
		return centurion.Task{Agent: "worker", Status: status}
	}
	review := func(said string, of bool) centurion.Task {
		return centurion.Task{Agent: "reviewer", Status: centurion.TaskCompleted, Result: said, Reviews: of}
	}
	for name, c := range map[string]struct {
		text  string
		tasks []centurion.Task
		want  string
	}{
		"completed":                     {"- [~] T1 One\n", []centurion.Task{worker(centurion.TaskCompleted)}, "- [x] T1 One\n"},
		"nobody's":                      {"- [~] T1 One\n", nil, "- [ ] T1 One\n"},
		"queued":                        {"- [~] T1 One\n", []centurion.Task{worker(centurion.TaskQueued)}, "- [~] T1 One\n"},
		"a person's mark":               {"- [!] T1 One\n", []centurion.Task{worker(centurion.TaskCompleted)}, "- [!] T1 One\n"},
		"failed, then completed":        {"- [~] T1 One\n", []centurion.Task{worker(centurion.TaskFailed), worker(centurion.TaskCompleted)}, "- [x] T1 One\n"},
		"a review that passed":          {"- [~] T1 One\n", []centurion.Task{review("PASS", false)}, "- [x] T1 One\n"},
		"a review that found faults":    {"- [~] T1 One\n", []centurion.Task{review("FAIL: a.go", false)}, "- [ ] T1 One\n"},
		"a review without a verdict":    {"- [~] T1 One\n", []centurion.Task{review("I looked.", false)}, "- [ ] T1 One\n"},
		"failed, and its review passed": {"- [~] T1 One\n", []centurion.Task{worker(centurion.TaskFailed), review("PASS", true)}, "- [ ] T1 One\n"},
		"a group":                       {"- [~] T1 One\n  - [x] T1.1 Sub\n", []centurion.Task{worker(centurion.TaskCompleted)}, "- [~] T1 One\n  - [x] T1.1 Sub\n"},
	} {
		for i := range c.tasks {
			c.tasks[i].ID, c.tasks[i].Item = "tsk_"+string(rune('1'+i)), "T1"
		}
		p := planned(t, "# P\n"+c.text, centurion.Mission{}, c.tasks...)
		marked, err := p.Reconcile(t.Context(), c.tasks)
		file, _ := p.File.Where()
		if doc, _, lerr := file.Load(); err != nil || lerr != nil || string(doc.Bytes()) != "# P\n"+c.want || (len(marked) == 1) != (c.want != c.text) {
			t.Errorf("%s: %q, want %q, marked %v, %v", name, doc.Bytes(), c.want, marked, err)
		}
	}
}

// An old copy of the plan does not open what is done or under way; an item with other work in it is new.
func TestKeepMarks(t *testing.T) {
	t.Parallel()
	const old = "# P\n- [x] T1 One\n- [~] T2 Two\n- [-] T3 Three\n- [!] T4 Four\n- [ ] T5 Five\n"
	for name, c := range map[string]struct{ sent, want, kept string }{
		"a copy from before": {"# P\n- [ ] T1 One\n- [ ] T2 Two\n- [ ] T3 Three\n- [ ] T4 Four\n- [ ] T5 Five\n",
			"# P\n- [x] T1 One\n- [~] T2 Two\n- [-] T3 Three\n- [ ] T4 Four\n- [ ] T5 Five\n",
			"T1 stays done, although you sent it as open; to reopen it, set its status to open with items.|" +
				"T2 stays running, although you sent it as open.|" +
				"T3 stays cancelled, although you sent it as open; to reopen it, set its status to open with items."},
		"other work":  {"# P\n- [ ] T1 Other\n- [ ] T2 Other\n- [ ] T6 Six\n", "# P\n- [ ] T1 Other\n- [~] T2 Other\n- [ ] T6 Six\n", "T2 stays running, although you sent it as open."},
		"other marks": {"# P\n- [!] T1 One\n- [x] T2 Two\n", "# P\n- [!] T1 One\n- [x] T2 Two\n", ""},
	} {
		sent := parsed(t, c.sent)
		if kept := strings.Join(keepMarks(parsed(t, old).Doc, sent.Doc), "|"); kept != c.kept || string(sent.Doc.Bytes()) != c.want {
			t.Errorf("%s: %q, %q", name, kept, sent.Doc.Bytes())
		}
	}
}

// The published plan has all that a client shows of an item, and groups only by their items.
func TestToldPlan(t *testing.T) {
	t.Parallel()
	p := planned(t, "# The title\n- [ ] T1 Group\n  - [x] T2 One @worker\n    - files: a.go\n    - verify: `make`\n- [ ] T3 Two\n  - after: T2\n", centurion.Mission{Session: "ses_1"})
	if err := p.TellTodo(t.Context()); err != nil {
		t.Fatal(err)
	}
	told, err := p.st.Store.Events(t.Context(), store.EventQuery{Types: []centurion.EventType{centurion.EventTodoUpdated}})
	if err != nil || len(told) != 1 || told[0].Mission != "msn_1" || told[0].Session != "ses_1" {
		t.Fatalf("%+v, %v", told, err)
	}
	d, err := event.Decode[event.TodoData](told[0])
	if err != nil || d.Title != "The title" || d.Done != 1 || d.Open != 1 || len(d.Items) != 2 {
		t.Fatalf("%+v, %v", d, err)
	}
	one, two := d.Items[0], d.Items[1]
	if one.ID != "T2" || one.Title != "One" || one.Agent != "worker" || !slices.Equal(one.Files, []string{"a.go"}) || !slices.Equal(one.Verify, []string{"make"}) || one.Status != "done" {
		t.Errorf("%+v", one)
	}
	if two.ID != "T3" || !slices.Equal(two.After, []string{"T2"}) || two.Status != "open" {
		t.Errorf("%+v", two)
	}
	v, err := p.Read()
	if lines := v.VerifyLines(); err != nil || !slices.Equal(lines, []string{"make"}) || len(View{}.VerifyLines()) > 0 {
		t.Errorf("verify lines: %v", lines)
	}
}

// A plan that the person gives is carried out where it is or copied, and a text that is no plan takes nobody's place.
func TestGivenPlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		given, text string
		owns        bool
		kind        centurion.Kind
	}{
		"in its place":       {workspace.TodoPath, "# P\n- [ ] T1 One\n", true, ""},
		"another file":       {"my.md", "# P\n- [ ] T1 One\n", true, ""},
		"none":               {"", "", false, ""},
		"one that is gone":   {"gone.md", "", false, centurion.KindUsage},
		"one that is no one": {"my.md", "# P\n```\n", false, centurion.KindUsage},
	} {
		ws := project(t)
		write(t, ws, workspace.TodoPath, "# P\n- [ ] T9 Old\n")
		s := storetest.Open(t)
		if c.text != "" {
			write(t, ws, c.given, c.text)
		}
		got, err := NewDesk(s, ws, func(string) *File { return nil }, func(text []byte) bool { return string(text) == c.text }).ClaimTodo(t.Context(), c.given)
		if centurion.KindOf(err) != c.kind || got.owns != c.owns || got.known != c.owns || (got.aside != "") != (err == nil && c.given != workspace.TodoPath) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if c.owns {
			if b, _, err := ws.ReadFile(workspace.TodoPath, 0); string(b) != c.text || err != nil {
				t.Errorf("%s: %q, %v", name, b, err)
			}
		} else if b, _, _ := ws.ReadFile(workspace.TodoPath, 0); err != nil && string(b) != "# P\n- [ ] T9 Old\n" {
			t.Errorf("%s: the old plan is %q", name, b)
		}
	}
}
