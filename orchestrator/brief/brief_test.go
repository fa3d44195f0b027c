package brief

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/claims"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/review"
	"centurion/orchestrator/state"
	"centurion/permission"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// stands is where a plan stands that has some tasks, with what shows that its done items are done.
func stands(doc *todo.Doc, proofs []review.ItemProof, tasks ...centurion.Task) Standing {
	s := StandingOf(review.View{Plan: plan.View{Doc: doc}, Tasks: tasks}, nil)
	s.proofs = proofs
	return s
}

// What keeps a plan from its end is named with the call that helps.
func TestStatusNamesWhatHelps(t *testing.T) {
	t.Run("blocked", func(t *testing.T) {
		t.Parallel()
		doc, err := todo.Parse([]byte("# Plan\n- [!] T4 Four\n- [~] T5 Five\n- [x] T6 Six\n"))
		if err != nil {
			t.Fatal(err)
		}
		s := stands(doc, []review.ItemProof{{Item: todo.Item{ID: "T6"}, Why: "unproven: x", Proof: centurion.ProofUnproven}}, centurion.Task{ID: "tsk_5", Item: "T5", Agent: "worker", Status: centurion.TaskRunning},
			centurion.Task{ID: "tsk_4", Item: "T4", Agent: "worker", Status: centurion.TaskBlocked, Session: "ses_4"})
		var b strings.Builder
		s.Say(&b)
		has(t, b.String(), "1 running, 1 done (1 unproven: T6), 0 cancelled, 1 blocked", "T4 is blocked: resume it", `"item":"T4","resume":"T4"`, GoOn)
		if strings.Contains(b.String(), AllTaken) {
			t.Errorf("nothing is said to be startable:\n%s", b.String())
		}
	})
	t.Run("a check that can only pass", func(t *testing.T) {
		t.Parallel()
		doc, err := todo.Parse([]byte("# Plan\n- [~] T5 Five\n- [x] T6 Six\n"))
		if err != nil {
			t.Fatal(err)
		}
		worthOf := func(reviewed bool) []review.ItemProof {
			return []review.ItemProof{{Item: todo.Item{ID: "T6", Verify: []string{"true"}}, Why: "unproven: x", Proof: centurion.ProofUnproven, Reviewed: reviewed}}
		}
		const line = "T6's check `true` can only pass: send the plan with one that fails without the work; it is run at once"
		s := stands(doc, worthOf(false), centurion.Task{ID: "tsk_5", Item: "T5", Agent: "worker", Status: centurion.TaskRunning})
		var b strings.Builder
		s.Say(&b)
		has(t, b.String(), line)
		b.Reset()
		s.proofs = worthOf(true)
		s.Say(&b)
		if strings.Contains(b.String(), line) {
			t.Errorf("a review has passed:\n%s", b.String())
		}
	})
	t.Run("marked by hand", func(t *testing.T) {
		t.Parallel()
		doc, err := todo.Parse([]byte("# Plan\n- [~] T4 Four\n- [!] T5 Five\n- [~] T6 Six\n- [!] T7 Seven\n"))
		if err != nil {
			t.Fatal(err)
		}
		s := stands(doc, nil, centurion.Task{ID: "tsk_6", Item: "T6", Agent: "worker", Status: centurion.TaskRunning},
			centurion.Task{ID: "tsk_7", Item: "T7", Agent: "worker", Status: centurion.TaskBlocked})
		equal(t, "marked", strings.Join(s.marked(), "\n"), "Marked as blocked: T5. Set those that can continue to open with update_todo.\n"+
			"Marked as running, but no task works on it: T4. Delegate it, or do it and set it to done with update_todo.")
	})
	t.Run("unproven, while others work", func(t *testing.T) {
		t.Parallel()
		doc, err := todo.Parse([]byte("# Plan\n- [~] T5 Five\n- [x] T6 Six\n"))
		if err != nil {
			t.Fatal(err)
		}
		s := stands(doc, []review.ItemProof{{Item: todo.Item{ID: "T6"}, Why: "unproven: x", Proof: centurion.ProofUnproven}}, centurion.Task{ID: "tsk_5", Item: "T5", Agent: "worker", Status: centurion.TaskRunning})
		var b strings.Builder
		s.Say(&b)
		has(t, b.String(), "T6 can be fixed (delegate_task with the item) or reviewed now")
		if strings.Contains(b.String(), "nothing is to be started") {
			t.Errorf("two things at once:\n%s", b.String())
		}
	})
}

// A review that is handed out or planned is named with what it will judge, and nothing that it covers is offered for one more.
func TestStatusNamesReviewsUnderWay(t *testing.T) {
	t.Parallel()
	at := func(minute int) centurion.Time {
		return centurion.Time{Time: time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)}
	}
	doubt := func(id string) review.ItemProof {
		return review.ItemProof{Item: todo.Item{ID: id}, Why: "unproven: x", Proof: centurion.ProofUnproven}
	}
	made := []centurion.Task{
		{ID: "tsk_5", Item: "T5", Agent: "worker", Status: centurion.TaskCompleted, Started: at(1), Ended: at(2)},
		{ID: "tsk_7", Item: "T7", Agent: "worker", Status: centurion.TaskCompleted, Started: at(1), Ended: at(9)},
	}
	const offer = "reviewed now, or when the others are done"
	for name, test := range map[string]struct {
		plan  string
		alive centurion.Task
		want  string
		last  string
	}{
		"queued":      {"- [ ] T6 Look @reviewer\n  - after: T5, T7\n", centurion.Task{Item: "T6", Agent: "reviewer", Status: centurion.TaskQueued}, "T6 reviews T5, T7 when it begins.\n", AllTaken},
		"running":     {"- [~] T6 Look @reviewer\n  - after: T5, T7\n", centurion.Task{Item: "T6", Agent: "reviewer", Status: centurion.TaskRunning, Started: at(10)}, "T6 reviews T5, T7 now.\n", AllTaken},
		"planned":     {"- [ ] T6 Look @reviewer\n  - after: T5, T7, T8\n- [~] T8 Eight\n", centurion.Task{Item: "T8", Agent: "worker", Status: centurion.TaskRunning}, "T6 reviews T5, T7 after T8.\n", AllTaken},
		"of one":      {"- [~] T6 Look @reviewer\n  - after: T5\n", centurion.Task{Item: "T6", Agent: "reviewer", Status: centurion.TaskRunning, Started: at(10)}, "T6 reviews T5 now.\n", ": T7 can be fixed (delegate_task with the item) or " + offer},
		"begun early": {"- [~] T6 Look @reviewer\n  - after: T5, T7\n", centurion.Task{Item: "T6", Agent: "reviewer", Status: centurion.TaskRunning, Started: at(5)}, "T6 reviews T5 now.\n", ": T7 can be fixed (delegate_task with the item) or " + offer},
		"no item":     {"", centurion.Task{Agent: "reviewer", Status: centurion.TaskRunning, Started: at(10)}, "tsk_9 reviews T5, T7 now.\n", AllTaken},
		"as it is":    {"", centurion.Task{Item: "T7", Reviews: true, Agent: "reviewer", Status: centurion.TaskRunning, Started: at(10)}, "tsk_9 reviews T7 now.\n", ": T5 can be fixed (delegate_task with the item) or " + offer},
		"other work":  {"- [~] T8 Eight\n", centurion.Task{Item: "T8", Agent: "worker", Status: centurion.TaskRunning}, "", ": T5, T7 can be fixed (delegate_task with the item) or " + offer},
		"for a start": {"- [ ] T6 Look @reviewer\n  - after: T5, T7\n- [~] T8 Eight\n", centurion.Task{Item: "T8", Agent: "worker", Status: centurion.TaskRunning}, "Can be started: T6.\n", GoOn},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := todo.Parse([]byte("# Plan\n- [x] T5 Five\n- [x] T7 Seven\n" + test.plan))
			if err != nil {
				t.Fatal(err)
			}
			test.alive.ID = "tsk_9"
			s := stands(doc, []review.ItemProof{doubt("T5"), doubt("T7")}, append(made[:2:2], test.alive)...)
			var b strings.Builder
			s.Say(&b)
			has(t, b.String(), test.want, test.last)
			if strings.Contains(b.String(), offer) != strings.Contains(test.last, offer) {
				t.Errorf("a review is offered:\n%s", b.String())
			}
		})
	}
}

// A check that can only pass is named as long as it may still be changed.
func TestStatusNamesChecksThatOnlyPass(t *testing.T) {
	t.Parallel()
	doc, err := todo.Parse([]byte("# Plan\n- [ ] T5 Five\n  - verify: `true`\n"))
	if err != nil {
		t.Fatal(err)
	}
	const line = "T5's check `true` can only pass: send the plan with one that fails without the work before you hand the item out.\n"
	for name, test := range map[string]struct {
		view review.View
		want bool
	}{
		"not begun": {review.View{}, true},
		"begun":     {review.View{Tasks: []centurion.Task{{ID: "tsk_5", Item: "T5"}}}, false},
		"accepted":  {review.View{Mission: centurion.Mission{Accepted: true}}, false},
	} {
		test.view.Plan = plan.View{Doc: doc}
		var b strings.Builder
		StandingOf(test.view, nil).Say(&b)
		if strings.Contains(b.String(), line) != test.want {
			t.Errorf("%s:\n%s", name, b.String())
		}
	}
}

// An item for whose files it would wait, also for those beyond another one's plan, is offered with whom it would wait for.
func TestStatusNamesWhoHoldsFiles(t *testing.T) {
	t.Parallel()
	doc, err := todo.Parse([]byte("# Plan\n- [~] T2 Two\n  - files: stats/**\n- [ ] T4 Four\n  - files: main.go\n- [ ] T5 Five\n  - files: README.md\n"))
	if err != nil {
		t.Fatal(err)
	}
	var held claims.Registry
	held.Take("T2", []string{"stats/**"})
	held.Settle("T2", []string{"main.go"})
	s := stands(doc, nil, centurion.Task{ID: "tsk_2", Item: "T2", Agent: "worker", Status: centurion.TaskRunning})
	s.held = &held
	var b strings.Builder
	s.Say(&b)
	has(t, b.String(), "Can be started: T4 (waits for files of T2 first), T5.\n", GoOn)
	equal(t, "held by T4", len(held.Of("T4")), 0)
	held.Drop("T2")
	b.Reset()
	s.Say(&b)
	has(t, b.String(), "Can be started: T4, T5.\n")
}

// A reviewer is told each check with whose it is, and only its newest run.
func TestChecksOfABrief(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	receiptLines(&b, []centurion.Receipt{{Item: "T1", Command: "x", ExitCode: 1}, {Command: "go vet ./...", ExitCode: 0},
		{Item: "T1", Command: "x", Proof: centurion.ProofProven, FailureLine: "it is missing"},
		{Item: "T2", Command: "y", Proof: centurion.ProofUnproven, Why: "it passes without the work", Weakened: []string{"a_test.go lost a line"}}})
	equal(t, "checks", b.String(), "\n# Checks that the host ran, the newest run of each\n\n"+
		"- mission: `go vet ./...`: exit code 0\n"+
		"- T1: `x`: exit code 0, proven\n  with the work taken out it said: it is missing\n"+
		"- T2: `y`: exit code 0, unproven: it passes without the work\n  LOOK AT THIS: a_test.go lost a line\n")
}

// A reviewer is told of each file how it was changed, and how many files there are beyond the first hundred.
func TestFilesOfABrief(t *testing.T) {
	t.Parallel()
	files := []centurion.FileChange{{Status: "R", Path: "b", Old: "a", Added: 1, Deleted: 2}, {Status: "A", Path: "c", Binary: true}}
	for len(files) < 102 {
		files = append(files, centurion.FileChange{Status: "M", Path: "d"})
	}
	for n, last := range map[int]string{2: "- A c, binary\n", 100: "- M d, +0 -0\n", 102: "- M d, +0 -0\n- … and 2 more\n"} {
		var b strings.Builder
		fileLines(&b, files[:n])
		has(t, b.String(), "- R b (was a), +1 -2\n- A c, binary\n")
		if !strings.HasSuffix(b.String(), last) || strings.Count(b.String(), "\n") > 101 {
			t.Errorf("of %d files:\n%s", n, b.String())
		}
	}
}

// A reviewer gets what the person attached to the goal and added later, and nothing that the host or an agent said.
func TestPersonsWordsOfABrief(t *testing.T) {
	t.Parallel()
	text := func(s string) centurion.Part { return centurion.Part{Type: centurion.PartText, Text: s} }
	message := func(origin centurion.Origin, parts ...centurion.Part) centurion.Message {
		return centurion.Message{Role: centurion.RoleUser, Origin: origin, Parts: parts}
	}
	note := text("a note of the host")
	note.Synthetic = true
	messages := []centurion.Message{message(centurion.OriginPerson, text("goal"), text("one"), note, text("two")),
		message(centurion.OriginHost, text("go on")), message(centurion.OriginPerson, text(" later "), text("three"))}
	equal(t, "attached", attached(messages), "one\ntwo\n")
	equal(t, "attached to nothing", attached(nil), "")
	equal(t, "added", strings.Join(saidSince(messages), "|"), strings.TrimSpace(messages[2].Text()))
}

// Why work came back is told once for each reason, also when another version has recorded it.
func TestReturnReasons(t *testing.T) {
	t.Parallel()
	all := []centurion.Rejection{{Cause: event.ReturnedCheck, Command: "go test"}, {Cause: event.ReturnedStuck}, {Cause: event.ReturnedStuck}, {Cause: "moonlight"},
		{Cause: event.ReturnedConflict, Files: []string{"a", "b"}}}
	equal(t, "reasons", returnReasons(all), "the check `go test` failed; it said that it was stuck; moonlight; it did not fit to what others had merged in a, b")
}

// What a task without an item has merged that goes on with an item's work is part of a review of that item.
func TestReviewSeesWorkGoneOnWith(t *testing.T) {
	t.Parallel()
	tasks := []centurion.Task{{ID: "1", Item: "T1", Landed: []centurion.Landed{{Before: "a", Commit: "b"}}}, {ID: "2", Landed: []centurion.Landed{{Before: "b", Commit: "c"}}},
		{ID: "3", Resumes: "1", Landed: []centurion.Landed{{Before: "c", Commit: "d"}}}, {ID: "4", Resumes: "3", Landed: []centurion.Landed{{Before: "d", Commit: "e"}}}}
	got := landedFor(map[string]bool{"T1": true}, tasks)
	equal(t, "stretches", fmt.Sprint(got), "[{item T1 a b} {item T1, continued by 3 c d} {item T1, continued by 4 d e}]")
}

// Who does an item again is told what the reviews since then have found, and what those before it handed over; a reviewer is told neither.
func TestItemOfABrief(t *testing.T) {
	t.Parallel()
	doc, err := todo.Parse([]byte("# P\n- [x] T1 One\n- [ ] T2 Two\n  - after: T1\n  - files: a.go\n  - verify: `go test`\n  - note: mind the gap\n"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(minute int) centurion.Time {
		return centurion.Time{Time: time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)}
	}
	judged := func(id string, minute int, result string) centurion.Task {
		return centurion.Task{ID: id, Item: "T2", Reviews: true, Agent: "reviewer", Status: centurion.TaskCompleted, Reason: state.FoundFaults, Result: result, Ended: at(minute)}
	}
	tasks := []centurion.Task{{ID: "1", Item: "T1", Agent: "worker", Status: centurion.TaskCompleted, Title: "One", Result: "one is there", Files: []string{"b.go"}, Ended: at(1)},
		judged("2", 2, "FAIL: old"), {ID: "3", Item: "T2", Agent: "worker", Status: centurion.TaskCompleted, Ended: at(3)}, judged("4", 4, "FAIL: new")}
	view := review.View{Plan: plan.View{Doc: doc}, Tasks: tasks}
	item := "\n# Item T2 of the plan: Two\n- files: a.go\n- acceptance command, "
	for name, test := range map[string]struct {
		task  centurion.Task
		since time.Time
		want  string
	}{
		"again": {centurion.Task{ID: "5", Item: "T2", Agent: "worker"}, time.Time{}, item + "run by the host when you end: `go test`\n- note: mind the gap\n" +
			"\nWhat the review of T2 found:\nFAIL: new\n\n# Handed over by what came before\n- T1 One: one is there\n  files changed: b.go\n"},
		"gone on":    {centurion.Task{ID: "5", Item: "T2", Agent: "worker"}, at(2).Time, ""},
		"a review":   {centurion.Task{ID: "5", Item: "T2", Agent: "reviewer", Reviews: true}, time.Time{}, item + "which the host has run: `go test`\n- note: mind the gap\n"},
		"no item":    {centurion.Task{ID: "5", Agent: "worker"}, time.Time{}, ""},
		"it is gone": {centurion.Task{ID: "5", Item: "T9", Agent: "worker"}, time.Time{}, ""},
	} {
		var b strings.Builder
		itemBrief(&b, view, test.task, test.since)
		equal(t, name, b.String(), test.want)
	}
}

// A first message lists the project's files to an agent that may list them itself, also where only nobody has decided on it.
func TestFileListFollowsTheRules(t *testing.T) {
	t.Parallel()
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	if err := ws.WriteFile("a.go", []byte("package a\n")); err != nil {
		t.Fatal(err)
	}
	rule := func(a permission.Action) []permission.Level {
		return []permission.Level{{Name: "project", Rules: []permission.Rule{{Permission: "list", Pattern: "*", Action: a}}}}
	}
	lists := agents.Agent{Name: "worker", Tools: []string{"ls"}}
	for name, test := range map[string]struct {
		agent agents.Agent
		rules []permission.Level
		want  bool
	}{
		"allowed":     {lists, rule(permission.Allow), true},
		"not decided": {lists, nil, true},
		"to be asked": {lists, rule(permission.Ask), false},
		"denied":      {lists, rule(permission.Deny), false},
		"without ls":  {agents.Agent{Name: "worker"}, rule(permission.Allow), false},
	} {
		d := &Desk{Workspace: ws, Rules: func(string) []permission.Level { return test.rules }}
		if got := d.fileList(t.Context(), test.agent, nil, ""); strings.Contains(got, "Names only (1 file)") != test.want || strings.Contains(got, "a.go") != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func has(t testing.TB, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, p := range parts {
		i := strings.Index(rest, p)
		if i < 0 {
			t.Errorf("%q is not where it should be in:\n%s", p, text)
			return
		}
		rest = rest[i+len(p):]
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// An agent with a shell that is confined is told what its commands can do, and no other.
func TestConfinedShellIsTold(t *testing.T) {
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	for tool, confined := range map[string]bool{"bash": true, "read": false} {
		for _, on := range []bool{true, false} {
			d := &Desk{Workspace: ws, Confined: on}
			got := d.systemPrompt(agents.Agent{Name: "x", Tools: []string{tool}}, "")
			if strings.Contains(got, "Shell commands are confined") != (on && confined) {
				t.Errorf("%s, confined %v: %s", tool, on, got)
			}
		}
	}
}
