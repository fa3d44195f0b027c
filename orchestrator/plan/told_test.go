package plan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/loop"
	"centurion/orchestrator/isolation"
	"centurion/store"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// What a person changes is one notice for the mission's own agent until it is read: it has all of it, is taken back when nothing is left of it, and
// wakes nobody.
func TestOneNoticeOfEdits(t *testing.T) {
	t.Parallel()
	p, ctx := refusing(t, "- [ ] T1 One\n- [ ] T2 Two\n", centurion.Mission{Session: "ses_1"})
	edit := func(pairs ...string) {
		t.Helper()
		path := filepath.Join(p.st.Spent.Load().Directory, workspace.TodoPath)
		b, err := os.ReadFile(path)
		if err = errors.Join(err, os.WriteFile(path, []byte(strings.NewReplacer(pairs...).Replace(string(b))), 0o600)); err != nil {
			t.Fatal(err)
		}
		p.Changed()
		if ctx.Err() != nil {
			t.Fatal(context.Cause(ctx))
		}
	}
	waits := func() (d store.Delivery, text string) {
		t.Helper()
		all, err := p.st.Store.PendingDeliveries(ctx, "ses_1")
		has, herr := p.HasEdits(ctx, "ses_1")
		if err != nil || herr != nil || len(all) > 1 || has != (len(all) > 0) {
			t.Fatalf("%+v, has edits: %t; %v, %v", all, has, err, herr)
		}
		for _, d = range all {
			want := store.Delivery{ID: d.ID, Mission: "msn_1", Session: "ses_1", Created: d.Created, Origin: centurion.OriginHost, Text: d.Text}
			if !reflect.DeepEqual(d, want) {
				t.Errorf("%+v", d)
			}
		}
		return d, strings.TrimPrefix(d.Text, "The person has changed the plan: ")
	}
	edit()
	if _, err := p.File.Edit(ctx, func(d *todo.Doc) error { return d.AddNote("T1", "n") }); err != nil {
		t.Fatal(err)
	}
	edit("One", "Uno")
	first, text := waits()
	if text != `T1 is now "Uno" (it was "One").` {
		t.Error(text)
	}
	edit("Two", "Due")
	if d, text := waits(); d.ID != first.ID || text != `T1 is now "Uno" (it was "One"), T2 is now "Due" (it was "Two").` {
		t.Errorf("the second is %s instead of %s: %s", d.ID, first.ID, text)
	}
	edit("Uno", "One", "Due", "Two")
	if _, text := waits(); text != "" {
		t.Errorf("nothing is left, but told: %s", text)
	}
	edit("One", "Eins")
	d, _ := waits()
	if d.Taken = centurion.Now(); d.ID == first.ID {
		t.Error("what was taken back is told again")
	}
	other := store.Delivery{ID: "del_1", Mission: "msn_1", Session: "ses_2"}
	if err := p.st.Store.Update(ctx, func(tx *store.Tx) error { return errors.Join(tx.PutDelivery(&d), tx.PutDelivery(&other)) }); err != nil {
		t.Fatal(err)
	}
	if has, err := p.HasEdits(ctx, "ses_2"); has || err != nil {
		t.Errorf("another notice is taken for it: %v", err)
	}
	edit("Two", "Zwei")
	if _, text := waits(); text != `T2 is now "Zwei" (it was "Two").` {
		t.Errorf("after it has read of the first: %s", text)
	}
}

// The facts about a plan are whole: what can start, what comes next and what is stuck, with its mistake.
func TestLook(t *testing.T) {
	t.Parallel()
	p := planned(t, "- [ ] T1 One\n- [~] T2 Two\n- [x] T3 Three\n- [!] T4 Four\n- [-] T5 Five\n- [ ] T6 Six\n  - after: T4\n- [ ] T7 Seven\n  - after: T99\n- [ ] T8 Group\n  - [~] T9 Nine\n    - after: T1\n", centurion.Mission{})
	var f loop.Facts
	p.Look(&f)
	want := loop.Facts{HasTodo: true, Counts: loop.Counts{Open: 2, Running: 2, Done: 1, Cancelled: 1, Blocked: 2}, Runnable: []string{"T1"},
		Next: []string{"T1 One", "T2 Two", "T6 Six", "T9 Nine"}, Stuck: []string{"T4 Four", "T6 Six", "T7 Seven (line 9: T7 comes after T99, which does not exist; did you mean T9?)"}}
	if !reflect.DeepEqual(f, want) {
		t.Errorf("%+v, want\n%+v", f, want)
	}
	waiting := []centurion.Task{{Item: "T1"}, {Item: "T10", Title: "Ten"}}
	v := parsed(t, "- [ ] T1 One\n* T10 Ten\n")
	f = loop.Facts{}
	v.AddMisread(&f, waiting)
	if f.Counts.Blocked != 1 || fmt.Sprint(f.Stuck) != "[T10 Ten (line 2: it is not read as an item)]" {
		t.Errorf("%+v", f)
	}
	p, f = planned(t, "```\n", centurion.Mission{}), loop.Facts{}
	if p.Look(&f); f.TodoError == "" || f.HasTodo || p.Detail() != workspace.Early {
		t.Errorf("one that cannot be read: %+v", f)
	}
	p = planned(t, "- [x] T1 One\n- [-] T2 Two\n- [-] T3 Three\n- [-] T4 Four\n", centurion.Mission{})
	if got := p.Detail(); got != workspace.Level(1, 1) || got == workspace.Level(1, 4) {
		t.Errorf("with all done that is to be done: %v", got)
	}
}

// Waiting tasks that wait for ever: for nobody, for each other, for a line that is not read, and all of them without a plan.
func TestHeldForNobody(t *testing.T) {
	t.Parallel()
	const chain = "- [ ] T1 One\n- [ ] T2 Two\n  - after: T1\n- [ ] T3 Three\n  - after: T2\n* T4 Four\n"
	for name, c := range map[string]struct {
		text  string
		items []string // that wait, in the order of their tasks
		alive []string
		want  int
	}{
		"for who works":    {chain, []string{"T2", "T3"}, []string{"T1", "T2", "T3"}, 0},
		"for nobody":       {chain, []string{"T2"}, []string{"T2"}, 1},
		"all behind it":    {chain, []string{"T3", "T2"}, []string{"T2", "T3"}, 2},
		"a line":           {chain, []string{"T4"}, []string{"T4"}, 1},
		"two of one item":  {chain, []string{"T2", "T2"}, []string{"T2"}, 1},
		"without an item":  {chain, []string{""}, nil, 0},
		"the plan is gone": {"", []string{"T1", "T2"}, []string{"T1", "T2"}, 2},
	} {
		var v View
		if c.text != "" {
			v = parsed(t, c.text)
		}
		alive := map[string]bool{}
		for _, id := range c.alive {
			alive[id] = true
		}
		var waiting []centurion.Task
		for _, id := range c.items {
			waiting = append(waiting, centurion.Task{Item: id})
		}
		if got := v.HeldForNobody(waiting, alive); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// A plan that a person wants to see holds all but planners until it is accepted; where nothing may be written before, also a small one.
func TestHeldAndWanted(t *testing.T) {
	t.Parallel()
	one, show := parsed(t, "- [ ] T1 One\n"), centurion.MissionOptions{ShowPlan: true}
	first := centurion.MissionOptions{ShowPlan: true, PlanFirst: true}
	for name, c := range map[string]struct {
		v            View
		rec          centurion.Mission
		agent        string
		held, wanted bool
	}{
		"shown":               {one, centurion.Mission{Options: show}, "worker", true, false},
		"a planner":           {one, centurion.Mission{Options: show}, agents.Planner, false, false},
		"accepted":            {one, centurion.Mission{Options: first, Accepted: true}, "worker", false, false},
		"small":               {one, centurion.Mission{Options: show, Level: 1}, "worker", false, false},
		"small, before all":   {one, centurion.Mission{Options: first, Level: 1}, "worker", true, false},
		"nobody wants it":     {one, centurion.Mission{}, "worker", false, false},
		"none yet":            {View{}, centurion.Mission{Options: show}, "worker", false, false},
		"none yet, and first": {View{}, centurion.Mission{Options: first}, "worker", false, true},
		"none, but accepted":  {View{}, centurion.Mission{Options: first, Accepted: true}, "worker", false, false},
	} {
		if got, err := c.v.Held(c.rec, c.agent), c.v.Wanted(c.rec); got != c.held || (err != nil) != c.wanted || err != nil && centurion.KindOf(err) != centurion.KindPermission {
			t.Errorf("%s: held %t, wanted %v", name, got, err)
		}
	}
}

// The level follows the number of items that are not groups, and what an agent or a person says counts more; without a plan, tasks leave it open.
func TestLevels(t *testing.T) {
	t.Parallel()
	items := func(n int, more string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "- [ ] T%d Item\n", i+1)
		}
		return b.String() + more
	}
	for text, want := range map[string]int{"": 1, items(5, ""): 2, items(6, ""): 3, items(4, "- [ ] T8 Group\n  - [ ] T9 Nine\n"): 2, items(1, "- [ ] T2 Two\n  - after: T1\n"): 3} {
		if got := ImpliedLevel(parsed(t, text).Items()); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	p := planned(t, "", centurion.Mission{Options: centurion.MissionOptions{Level: 3}})
	for level, want := range map[int]string{2: "The level stays 3: the person has set it.", 3: ""} {
		if note, err := p.SetLevel(t.Context(), level, "commander"); note != want || err != nil {
			t.Errorf("level %d: %q, %v", level, note, err)
		}
	}
	for agent, want := range map[string]string{agents.Planner: "", agents.Reviewer: "", agents.Worker: "this mission is of level 3, set by the person, and there is no todo list yet"} {
		if err := p.LevelAllows(t.Context(), View{}, agents.Agent{Name: agent}); err != nil && err.Error() != want || (err == nil) != (want == "") {
			t.Errorf("%s: %v", agent, err)
		}
	}
	p = planned(t, "", centurion.Mission{Level: 2})
	if err := errors.Join(p.LevelAllows(t.Context(), View{}, agents.Agent{Name: agents.Worker}), p.LevelAllows(t.Context(), parsed(t, "- [ ] T1 One\n"), agents.Agent{Name: agents.Worker})); err != nil {
		t.Error(err)
	}
	for want, tasks := range map[int][]centurion.Task{1: nil, 0: {{ID: "tsk_1", Status: centurion.TaskCompleted}}} {
		p := planned(t, "", centurion.Mission{}, tasks...)
		err := p.InferLevel(t.Context())
		if m, merr := p.st.Store.Mission(t.Context(), "msn_1"); err != nil || merr != nil || m.Level != want {
			t.Errorf("of %d tasks: level %d, %v, %v", len(tasks), m.Level, err, merr)
		}
	}
}

// What is published: a plan with other items whole, other marks alone; a mission whose plan has lost its items keeps its level, and a change counts
// also where its writer was just interrupted.
func TestWhatIsPublished(t *testing.T) {
	t.Parallel()
	p := planned(t, "- [ ] T1 One\n", centurion.Mission{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	dir := p.st.Spent.Load().Directory
	for _, c := range []struct {
		text  string
		ctx   context.Context
		told  string // the items with their agents and marks
		level int
	}{
		{"- [ ] T1 One\n", t.Context(), "T1 One  open", 2},
		{"- [~] T1 One\n", gone, "", 2},
		{"- [~] T1 One @worker\n", t.Context(), "T1 One worker running", 2},
		{"- [~] T1 One @worker\n- [ ] T2 Two\n  - after: T1\n", t.Context(), "T1 One worker running, T2 Two  open", 3},
		{"# None\n", t.Context(), "", 3},
	} {
		seq := p.st.Store.LastSeq()
		if err := errors.Join(os.WriteFile(filepath.Join(dir, workspace.TodoPath), []byte(c.text), 0o600), p.TellTodo(c.ctx)); err != nil {
			t.Fatal(err)
		}
		events, err := p.st.Store.Events(t.Context(), store.EventQuery{After: seq, Types: []centurion.EventType{centurion.EventTodoUpdated}})
		if err != nil || len(events) != 1 {
			t.Fatalf("%q: %d events, %v", c.text, len(events), err)
		}
		d, err := event.Decode[event.TodoData](events[0])
		var told []string
		for _, it := range d.Items {
			told = append(told, it.ID+" "+it.Title+" "+it.Agent+" "+it.Status)
		}
		if m, merr := p.st.Store.Mission(t.Context(), "msn_1"); err != nil || merr != nil || strings.Join(told, ", ") != c.told || m.Level != c.level || !m.HadItems {
			t.Errorf("%q: told %q, level %d; %v, %v", c.text, told, m.Level, err, merr)
		}
	}
	mend := refuse(t, p.st.Store, "journal", true)
	defer mend()
	write := os.WriteFile(filepath.Join(dir, workspace.TodoPath), []byte("- [ ] T1 One\n"), 0o600)
	if err := errors.Join(write, p.TellTodo(gone)); err != nil {
		t.Errorf("the error of a mission that stops: %v", err)
	}
}

// Mistakes of a plan are told with their lines, a line once, and one of several that is corrected counts as corrected.
func TestMistakes(t *testing.T) {
	t.Parallel()
	v := parsed(t, "- [ ] T1 One\n  - after: T9\n* T2 Two\n")
	got := v.mistakes(nil, []string{"T1", "T2"}, todo.Problem{Line: 1, Msg: "see lines 2, 3 and line 4"}, todo.Problem{Line: 3, Msg: "twice"})
	var all []string
	for _, m := range got {
		all = append(all, fmt.Sprintf("%q %s: %s", m.Key, m.Place, m.Text))
	}
	const lost = "it is not read as item T2, whose task is kept: write `- [~] T2 title`, or delete the line to cancel the task"
	want := `"* T2 Two\n` + lost + `" line 3: line 3 (* T2 Two): ` + lost
	if len(all) != 3 || all[0] != want || !strings.HasPrefix(all[1], `"`) || all[2] != `"- [ ] T1 One\nsee and " line 1: line 1 (- [ ] T1 One): see lines 2, 3 and line 4` {
		t.Errorf("%s", strings.Join(all, "\n"))
	}
	for range 8 { // the order of a map
		p, ctx := refusing(t, "- [ ] T1 One\n", centurion.Mission{})
		p.toldMistakes.standing = map[string]toldMistake{"unread": {}, "a": {}, "b": {}}
		if mended, err := p.TellMistakes(ctx, View{}, errors.New("x")); !mended || err != nil {
			t.Fatalf("two are corrected: %t, %v", mended, err)
		}
		seq := p.st.Store.LastSeq()
		if mended, err := p.TellMistakes(ctx, View{}, errors.New("x")); mended || err != nil || p.st.Store.LastSeq() != seq {
			t.Fatalf("nothing has changed: %t, %v", mended, err)
		}
	}
	p, _ := refusing(t, "", centurion.Mission{}, centurion.Task{ID: "tsk_1", Item: "T1"}, centurion.Task{ID: "tsk_2"})
	if err := p.KnowItems(t.Context()); err != nil || !reflect.DeepEqual(p.File.Had.ids, map[string]bool{"T1": true, "": true}) {
		t.Errorf("%v, %v", p.File.Had.ids, err)
	}
}

// Who may take part in a race, and why an item's cannot be run; a person's plan with one is told as a mistake, and what was there before is not
// refused.
func TestRacers(t *testing.T) {
	t.Parallel()
	p, ctx := refusing(t, "", centurion.Mission{})
	p.iso = &isolation.Checkouts{Ground: &isolation.Ground{}}
	for race, want := range map[string]string{"": "[]", "Worker, worker": "[worker worker]", "nobody": `race: of T1: there is no agent "nobody"; agents that can take part: worker`,
		"worker, reviewer": `race: of T1: "reviewer" changes no files; agents that can take part: worker`, "commander": `race: of T1: "commander" changes no files; agents that can take part: worker`} {
		it := todo.Item{ID: "T1", Title: "One"}
		if race != "" {
			it.Race = strings.Split(race, ", ")
		}
		names, err := p.Racers(it)
		if got := fmt.Sprint(names); err == nil && got != want || err != nil && err.Error() != want {
			t.Errorf("%s: %s, %v", race, got, err)
		}
	}
	const one = "- [ ] T1 One\n  - race: nobody, worker\n  - verify: `make`\n- [x] T2 Two\n  - race: nobody, worker\n  - verify: `make`\n"
	v := parsed(t, one)
	if got := p.unrunnable(v); len(got) != 1 || got[0].Line != 1 || !strings.HasSuffix(got[0].Msg, "; name some of them, the same one twice if you like") {
		t.Errorf("%+v", got)
	}
	if _, err := p.TellMistakes(ctx, v, nil); err != nil || len(p.toldMistakes.standing) != 1 {
		t.Errorf("told %+v, %v", p.toldMistakes, err)
	}
	if err := errors.Join(p.RefuseRaces(v.Doc, v.Doc), p.RefuseRaces(v.Doc, parsed(t, "- [ ] T1 One\n").Doc)); err != nil || p.RefuseRaces(nil, v.Doc) == nil || p.RefuseRaces(parsed(t, "- [ ] T1 One\n").Doc, v.Doc) == nil {
		t.Errorf("refused: %v", err)
	}
	p.iso = &isolation.Checkouts{}
	if _, err := p.Racers(todo.Item{Title: "One", Race: []string{"worker"}}); centurion.KindOf(err) != centurion.KindConflict || !strings.HasPrefix(err.Error(), "race: of One: each try needs a worktree") {
		t.Error(err)
	}
}

// What is remarked on a changed plan comes in a fixed order, each with its advice, only what is new, and not more than a few of a kind.
func TestRemarks(t *testing.T) {
	t.Parallel()
	p, _ := refusing(t, "", centurion.Mission{})
	p.iso = &isolation.Checkouts{}
	const before = "- [ ] T1 One\n  - files: a.go\n  - verify: `true`\n"
	after := parsed(t, before+"- [ ] T2 Two\n  - files: a.go\n  - verify: `make | tail`\n- [-] T3 Three\n- [ ] T4 Four @reviewer\n  - verify: `make | tail`\n")
	got := p.Remarks(parsed(t, before), after)
	want := []string{"T1 and T2 share a.go", "Items whose `files:` overlap", "T3 is cancelled", "T2's check `make | tail` may hide a failure", "Let the exit code"}
	for i, r := range got {
		if len(got) != len(want) || !strings.HasPrefix(r, want[i]) {
			t.Fatalf("%s", strings.Join(got, "\n"))
		}
	}
	if got := p.Remarks(after, after); len(got) > 0 || len(want) != 5 {
		t.Errorf("nothing is new: %s", got)
	}
	var lines []string
	for i := range maxRemarks + 3 {
		lines = append(lines, fmt.Sprint(i))
	}
	if got := strings.Join(FirstOf(lines, []string{"1"}), " "); got != "0 2 3 4 5 6 … and 2 more like this." {
		t.Error(got)
	}
	if got := strings.Join(FirstOf([]string{"0", "1", "2", "3", "4", "5"}, nil), " "); got != "0 1 2 3 4 5" {
		t.Error(got)
	}
	if got := strings.Join(FirstOf([]string{"0", "1", "2", "3", "4", "5", "6"}, nil), " "); got != "0 1 2 3 4 5 … and 1 more like this." {
		t.Error(got)
	}
	if got := Outline(parsed(t, "- [ ] T1 One\n  - verify: `make`\n  - after: T9\n").Doc); got != "1 item: 0 open, 0 running, 0 done, 0 cancelled, 1 blocked.\n[!] T1 One (after T9)\nProblem in line 3: T1 comes after T9, which does not exist" {
		t.Error(got)
	}
	if got := fmt.Sprint(parsed(t, "# P\n- verify: `z`\n- [ ] T1 One\n  - verify: `b`\n  - verify: `a`\n- [ ] T2 Two\n  - verify: `b`\n").VerifyLines()); got != "[a b z]" {
		t.Error(got)
	}
}
