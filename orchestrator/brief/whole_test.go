package brief

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/review"
	"centurion/orchestrator/state"
	"centurion/permission"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/workspace/todo"
)

func docOf(t *testing.T, text string) *todo.Doc {
	t.Helper()
	doc, err := todo.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func minute(n int) centurion.Time {
	return centurion.Time{Time: time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC)}
}

// The state of a plan counts items by their tasks, from the hand-out on, and ends with what is to be done next.
func TestStandingIsWhole(t *testing.T) {
	t.Parallel()
	task := func(item string, s centurion.TaskStatus) centurion.Task {
		return centurion.Task{ID: "tsk_" + item, Item: item, Agent: "worker", Status: s}
	}
	for name, c := range map[string]struct {
		plan    string
		tasks   []centurion.Task
		proofs  []review.ItemProof
		claimed bool
		want    string
	}{
		"nothing begun": {"- [ ] T1 One\n- [ ] T2 Two\n  - after: T1\n", nil, nil, false, "Todo: 2 open, 0 running, 0 done, 0 cancelled, 0 blocked. Can be started: T1.\n" + GoOn + "\n"},
		"handed out": {"- [ ] T1 One\n- [ ] T2 Two\n- [~] T3 Three\n- [!] T4 Four\n- [!] T5 Five\n", []centurion.Task{task("T1", centurion.TaskWaiting), task("T2", centurion.TaskRunning), task("T3", centurion.TaskWaiting), task("T4", centurion.TaskWaiting), task("T5", centurion.TaskRunning)}, nil, false,
			"Todo: 0 open, 2 running, 3 waiting, 0 done, 0 cancelled, 0 blocked.\n" + AllTaken + "\n"},
		"gone, and groups": {"- [ ] T1 One\n  - [x] T2 Two\n", []centurion.Task{task("T9", centurion.TaskRunning), task("T1", centurion.TaskRunning)}, nil, false, "Todo: 0 open, 0 running, 1 done, 0 cancelled, 0 blocked.\n" + AllTaken + "\n"},
		"a group's task":   {"- [ ] T1 One\n  - [ ] T2 Two\n", []centurion.Task{task("T1", centurion.TaskRunning)}, nil, false, "Todo: 1 open, 0 running, 0 done, 0 cancelled, 0 blocked. Can be started: T2.\n" + GoOn + "\n"},
		"all done":         {"- [x] T1 One\n- [-] T2 Two\n", nil, nil, false, "Todo: 0 open, 0 running, 1 done, 1 cancelled, 0 blocked.\n" + AllDone + "\n"},
		"claimed":          {"- [x] T1 One\n", nil, nil, true, "Todo: 0 open, 0 running, 1 done, 0 cancelled, 0 blocked.\n" + ClaimedDone + "\n"},
		"blocked by hand":  {"- [!] T1 One\n", nil, nil, false, "Todo: 0 open, 0 running, 0 done, 0 cancelled, 1 blocked.\nMarked as blocked: T1. Set those that can continue to open with update_todo.\n"},
		"blocked":          {"- [!] T1 One\n", []centurion.Task{task("T1", centurion.TaskBlocked)}, nil, false, "Todo: 0 open, 0 running, 0 done, 0 cancelled, 1 blocked.\nT1 is blocked: hand it out anew, with what would help; set it to cancelled; or, where only the person can help, end your turn with the question.\n" + NotFinished + ".\n"},
		"running by hand":  {"- [~] T1 One\n", nil, nil, false, "Todo: 0 open, 1 running, 0 done, 0 cancelled, 0 blocked.\nMarked as running, but no task works on it: T1. Delegate it, or do it and set it to done with update_todo.\n" + GoOn + "\n"},
		"a failed review":  {"- [x] T1 One\n- [ ] T2 Look @reviewer\n  - after: T1\n", []centurion.Task{{ID: "tsk_2", Item: "T2", Agent: agents.Reviewer, Status: centurion.TaskCompleted, Reason: state.FoundFaults, Result: "FAIL: x"}}, nil, false, "T2's review failed: add an item for what it found first, and let T2 wait for it (after)."},
		"unproven":         {"- [x] T1 One\n", nil, []review.ItemProof{{Item: todo.Item{ID: "T1"}, Why: "unproven: x", Proof: centurion.ProofUnproven}}, false, "1 done (1 unproven: T1), 0 cancelled, 0 blocked.\n"},
		"left undone":      {"- [x] T1 One\n", nil, []review.ItemProof{{Item: todo.Item{ID: "T1"}, Why: "why", Left: "rest"}}, false, "T1 is not done (why): " + fmt.Sprintf(review.Undone, "rest") + "\n" + NotFinished + ".\n"},
	} {
		s := stands(docOf(t, c.plan), c.proofs, c.tasks...)
		s.claimed = c.claimed
		var b strings.Builder
		s.Say(&b)
		if got := b.String(); got != c.want && (name != "a failed review" && name != "unproven" && name != "left undone" || !strings.Contains(got, c.want)) {
			t.Errorf("%s:\n%s; want\n%s", name, got, c.want)
		}
	}
	s := stands(docOf(t, "- [ ] T1 One\n- [!] T2 Two\n"), nil, centurion.Task{ID: "tsk_2", Item: "T2", Agent: "worker", Session: "ses_2", Status: centurion.TaskBlocked})
	const want = `Can be started: T1. T2 is blocked: resume it (delegate_task {"agent":"worker","item":"T2","resume":"T2",…}), or hand it out anew, with what would help; set it to cancelled; or, where only the person can help, end your turn with the question.`
	equal(t, "what could be done now", s.Startable(), want)
	s = stands(docOf(t, "- [x] T1 One\n"), []review.ItemProof{{Item: todo.Item{ID: "T1"}, Why: "why", Proof: centurion.ProofUnproven}, {Item: todo.Item{ID: "T2"}, Why: "y", Blank: true, Evidence: centurion.EvidenceNone}, {Item: todo.Item{ID: "T3"}, Why: "x", Left: "rest"}})
	s.MayReview = true
	equal(t, "reviews", strings.Join(s.reviews(), "\n"), "T1 needs a review (why): delegate_task "+plan.ReviewCall("T1")+"\nT2 is not shown to be done: "+review.Blank+"\nT3 is not done (x): "+fmt.Sprintf(review.Undone, "rest"))
	s.MayReview = false
	equal(t, "without a reviewer", strings.Join(s.reviews(), "\n"), "T3 is not done (x): "+fmt.Sprintf(review.Undone, "rest"))
}

// What comes before an item is handed over nearest first, clipped; who changed its files besides is named, the newest ten.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	v := review.View{Plan: plan.View{Doc: docOf(t, "- [x] T1 One\n- [x] T2 Two\n  - after: T1\n- [ ] T3 Three\n  - after: T2\n  - files: src/**\n")}}
	done := func(id, item, result string, files ...string) centurion.Task {
		return centurion.Task{ID: id, Item: item, Title: item + "'s", Agent: "worker", Status: centurion.TaskCompleted, Result: result, Files: files}
	}
	failed := done("0", "T1", "no")
	failed.Status = centurion.TaskFailed
	again := done("4", "T2", "PASS")
	again.Reviews = true
	v.Tasks = []centurion.Task{failed, done("1", "T1", "one", "a.go"), done("2", "T2", "old"), done("3", "T2", " "+strings.Repeat("x", 900)+" ", "src/b.go"), again}
	for i := range 12 {
		v.Tasks = append(v.Tasks, done(fmt.Sprint("w", i), "", fmt.Sprint("made ", i), fmt.Sprintf("src/%d.go", i), "doc.md"))
	}
	undone, lost := done("u", "", "undone", "src/u.go"), done("l", "", "lost", "src/l.go")
	undone.Undone, lost.Race = minute(1), &centurion.Race{ID: "l", Lost: true}
	v.Tasks = append(v.Tasks, undone, lost, done("k", "", "known", "src/k.go"))
	it, _ := v.Plan.Doc.Item("T3")
	var b strings.Builder
	handedOver(&b, v, it, func(t centurion.Task) bool { return t.ID == "k" })
	var want strings.Builder
	want.WriteString("\n# Handed over by what came before\n- T2 T2's: " + strings.Repeat("x", 900) + "\n  files changed: src/b.go\n- T1 T1's: one\n  files changed: a.go\n\n# Who has changed your files before you\n")
	for i := 2; i < 12; i++ {
		want.WriteString(fmt.Sprintf("- w%d 's changed src/%d.go: made %d\n", i, i, i))
	}
	equal(t, "handed over", b.String(), want.String())
	v.Tasks[3].Result, v.Tasks = strings.Repeat("x", 4000), v.Tasks[:5]
	b.Reset()
	handedOver(&b, v, it, func(centurion.Task) bool { return false })
	if n := strings.Count(b.String(), "x"); n > maxHandedOver || n < maxHandedOver-100 || strings.Contains(b.String(), "one") {
		t.Errorf("%d bytes of a long result, and more:\n%s", n, b.String())
	}
}

// What a task changed beyond its item's files counts as it was merged; a review and an item that names none have nothing outside.
func TestOutside(t *testing.T) {
	t.Parallel()
	w := New(nil, &isolation.Checkouts{}, nil, nil)
	v := plan.View{Doc: docOf(t, "- [ ] T1 One\n  - files: src/**, a.md\n- [ ] T2 Two\n")}
	landed := []centurion.Landed{{Files: []centurion.FileChange{{Path: "m.go"}, {Path: "src/x.go"}}}, {Files: []centurion.FileChange{{Path: "m.go"}, {Path: "b.md", Old: "old.md", Status: "R"}}}}
	for name, c := range map[string]struct {
		task centurion.Task
		want string
	}{
		"written":    {centurion.Task{Item: "T1", Files: []string{"z.go", "src/a.go", "a.md", "b.go", "z.go"}}, "[b.go z.go] [src/** a.md]"},
		"merged":     {centurion.Task{Item: "T1", Files: []string{"z.go"}, Landed: landed}, "[b.md m.go old.md] [src/** a.md]"},
		"inside":     {centurion.Task{Item: "T1", Files: []string{"src/a.go"}}, "[] [src/** a.md]"},
		"a review":   {centurion.Task{Item: "T1", Reviews: true, Files: []string{"z.go"}}, "[] []"},
		"no files":   {centurion.Task{Item: "T2", Files: []string{"z.go"}}, "[] []"},
		"it is gone": {centurion.Task{Item: "T9", Files: []string{"z.go"}}, "[] []"},
		"no item":    {centurion.Task{Files: []string{"z.go"}}, "[] []"},
	} {
		files, planned := w.Outside(v, c.task)
		if got := fmt.Sprint(files, " ", planned); strings.ReplaceAll(got, "][", "] [") != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	var b strings.Builder
	w.outsideLine(&b, v, centurion.Task{Item: "T1", Files: []string{"z.go"}})
	w.reviewOutside(&b, v, []centurion.Task{{Item: "T1", Files: []string{"z.go"}}, {Item: "T1", Files: []string{"z.go"}}}, map[string]bool{"T1": true})
	w.reviewOutside(&b, v, []centurion.Task{{Item: "T1", Files: []string{"z.go"}}}, map[string]bool{"T2": true})
	equal(t, "told", b.String(), "Outside its files: z.go (the plan gives it src/**, a.md)\n"+
		"\nLOOK AT THIS: files were changed that the plan does not give to the item:\n- T1, outside its files: z.go (the plan gives it src/**, a.md)\n")
}

// The end of a race says what became of the others, and what they cost.
func TestRaceLines(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t)
	try := func(n int, s centurion.TaskStatus, lost bool) centurion.Task {
		return centurion.Task{ID: fmt.Sprint("tsk_", n), Mission: "msn_1", Item: "T1", Agent: "a", Status: s, Usage: centurion.Usage{USD: 0.5, Tokens: centurion.Tokens{Input: 3}}, Race: &centurion.Race{ID: "tsk_1", Try: n, Lost: lost, Agents: []string{"a", "a", "a"}}}
	}
	failed := try(2, centurion.TaskFailed, false)
	failed.Error = &centurion.TaskError{Message: "it broke"}
	other := try(4, centurion.TaskFailed, false)
	other.Race = &centurion.Race{ID: "tsk_4", Try: 1}
	for status, want := range map[centurion.TaskStatus]string{centurion.TaskCompleted: "It decided the race for T1.", centurion.TaskFailed: "No try of T1 has succeeded."} {
		var b strings.Builder
		err := st.Update(t.Context(), func(tx *store.Tx) error {
			own, lost := try(1, status, false), try(3, centurion.TaskCancelled, true)
			b.Reset()
			return errors.Join(tx.PutTask(&own), tx.PutTask(&failed), tx.PutTask(&lost), tx.PutTask(&other), raceLines(tx, &b, own), raceLines(tx, &b, centurion.Task{ID: "tsk_1"}))
		})
		equal(t, string(status), b.String(), want+" The others: T1/2 (a) has failed (it broke), cost $0.50, 3 tokens; T1/3 (a) was overtaken, cost $0.50, 3 tokens.\n")
		if err != nil {
			t.Error(err)
		}
	}
}

// The tip of the branch at a moment is the last merge before it, also of the mission's own agent, and of several at once the last of the chain.
func TestTipAt(t *testing.T) {
	t.Parallel()
	landed := func(n int, from, to string) centurion.Landed {
		return centurion.Landed{Time: minute(n), Before: from, Commit: to}
	}
	v := review.View{Mission: centurion.Mission{Landed: []centurion.Landed{landed(2, "a", "b")}}, Tasks: []centurion.Task{{Landed: []centurion.Landed{landed(1, "0", "a"), landed(4, "c", "d")}}, {Landed: []centurion.Landed{landed(2, "b", "c")}}}}
	for at, want := range map[int]string{0: "", 1: "a", 3: "c", 4: "d", 9: "d"} {
		equal(t, fmt.Sprint("minute ", at), tipAt(v, minute(at).Time), want)
	}
	all := []centurion.Task{{Item: "T1", Status: centurion.TaskCompleted, Agent: "worker"}, {Item: "T2", Status: centurion.TaskCompleted, Agent: "worker", Landed: []centurion.Landed{landed(1, "0", "a")}}, {Item: "T1", Status: centurion.TaskCompleted, Agent: "worker"}}
	if got := idleItems(nil, all); !strings.HasPrefix(got, "\nNothing was changed for T1: its task changed no file.") || idleItems(map[string]bool{"T2": true}, all) != "" {
		t.Errorf("%q", got)
	}
}

// A session has no tool that would always be refused, and nobody to hand work to whom its rules deny.
func TestHeldTools(t *testing.T) {
	t.Parallel()
	d := &Desk{Rules: func(string) []permission.Level {
		return []permission.Level{{Name: "test", Rules: []permission.Rule{{Permission: "task", Pattern: "worker", Action: permission.Deny}}}}
	}}
	held := []string{"read", DelegateTool, "get_task_result", "list_tasks", "cancel_task", "check_background", SkillTool, "websearch"}
	for name, c := range map[string]struct {
		a    agents.Agent
		meta centurion.SessionMeta
		want string
	}{
		"all":           {agents.Agent{Tools: append([]string{"run_background"}, held...), Delegates: []string{"worker"}}, centurion.SessionMeta{Address: "0/", Skills: "x"}, "run_background " + strings.Join(held, " ")},
		"no delegates":  {agents.Agent{Tools: held}, centurion.SessionMeta{Address: "0/", Skills: "x"}, "read skill websearch"},
		"too deep":      {agents.Agent{Tools: held, Delegates: []string{"worker"}}, centurion.SessionMeta{Address: "0/1/2", Skills: "x"}, "read skill websearch"},
		"not too deep":  {agents.Agent{Tools: held[:2], Delegates: []string{"worker"}}, centurion.SessionMeta{Address: "0/1/"}, "read delegate_task"},
		"without skill": {agents.Agent{Tools: held}, centurion.SessionMeta{}, "read websearch"},
	} {
		equal(t, name, strings.Join(d.Held(c.a, centurion.Session{Metadata: c.meta}), " "), c.want)
	}
	equal(t, "callable", strings.Join(d.Callable(agents.Agent{Delegates: []string{"planner", "worker"}}), " "), "planner")
	if err := DepthAllows("0/1/2"); centurion.KindOf(err) != centurion.KindPermission || err.Error() != "a task at depth 2 does not hand work on" {
		t.Error(err)
	}
	withheld := d.Withheld("x")
	if withheld("a.go") || !withheld(".env") {
		t.Errorf("withheld: a.go %t, .env %t", withheld("a.go"), withheld(".env"))
	}
}

// The answer of a person to a task's newest question is told, unless it has another one.
func TestAnswersTo(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t)
	now := centurion.Now()
	asks := []store.Ask{{Type: store.AskQuestion, Task: "a", By: state.ByPerson, Answer: "old", Answered: now}, {Type: store.AskQuestion, Task: "a", By: state.ByPerson, Answer: " new \n one ", Answered: now},
		{Type: store.AskQuestion, Task: "b", By: state.ByPerson, Answer: "x", Answered: now}, {Type: store.AskQuestion, Task: "b"}, {Type: store.AskQuestion, Task: "c", By: state.ByTimeout, Answer: "late", Answered: now},
		{Type: store.AskPermission, Task: "d", By: state.ByPerson, Answer: "once", Answered: now}, {Type: store.AskQuestion, By: state.ByPerson, Answer: "own", Answered: now}}
	err := st.Update(t.Context(), func(tx *store.Tx) error {
		var all error
		for i, a := range asks {
			a.ID, a.Mission = fmt.Sprint("ask_", i), "msn_1"
			all = errors.Join(all, tx.PutAsk(&a))
		}
		return all
	})
	got, aerr := New(state.New(t.Context(), nil, st, centurion.Mission{ID: "msn_1"}, nil), nil, nil, nil).answersTo(t.Context())
	equal(t, "answers", fmt.Sprint(got), `map[a:"new one"]`)
	if err := errors.Join(err, aerr); err != nil {
		t.Error(err)
	}
}
