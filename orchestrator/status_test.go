package orchestrator

import (
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/review"
	"centurion/provider/scripted"
	"centurion/tools"
	"centurion/workspace/todo"
)

// §8: what has no check needs a review. The refusal and the status name the call; a reviewer takes the done item as it is.
func TestReviewOfADoneItem(t *testing.T) {
	for name, test := range map[string]struct {
		verdicts []string
		reviews  int
		works    int
	}{
		"passes":         {[]string{"PASS"}, 1, 1},
		"fails at first": {[]string{"FAIL\na.txt: empty", "PASS"}, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			reviews, needed := 0, 0
			bubble(t, map[string]script{
				"commander": func(q scripted.Request) scripted.Answer {
					switch last := q.Last(); {
					case q.Step() == 1:
						return do(barePlan("- [ ] T1 One"))
					case strings.Contains(last, "has found faults"), q.Step() == 2:
						return do(work("T1", "make it"))
					case strings.Contains(last, "T1 needs a review"):
						if needed++; needed == 1 {
							return complete()
						}
						return do(handTo("reviewer", "T1", "look at it"))
					case strings.Contains(last, "call mission_complete"):
						return complete()
					}
					return say("I wait")
				},
				"reviewer": func(scripted.Request) scripted.Answer {
					reviews++
					return say(test.verdicts[reviews-1])
				},
			}, func(r *rig) {
				m := r.mission(centurion.MissionOptions{})
				r.is(m, centurion.MissionCompleted, "")
				equal(t, "verified", m.Verified, 1)
				equal(t, "unverified", m.Unverified, 0)
				equal(t, "reviews", len(r.requests("reviewer")), test.reviews)
				equal(t, "works", len(r.requests("worker")), test.works)
				const call = `delegate_task {"agent":"reviewer","item":"T1",`
				has(t, r.results(m.ID, "mission_complete")[0], "item T1 (One): it has no verify command; no review has passed since its work ended: "+call)
				saw, early := false, false
				for _, q := range r.requests("commander") {
					saw = saw || strings.Contains(q.Last(), "T1 needs a review (it has no verify command): "+call)
					early = early || strings.Contains(q.Last(), "needs a review") && strings.Contains(q.Last(), "call mission_complete,")
				}
				if !saw || early {
					t.Errorf("the status has named the review: %v, and the end beside it: %v", saw, early)
				}
				has(t, r.read(todoMD), "[x] T1")
				if test.reviews == 2 {
					equal(t, "notices of the fault", r.told(m.Session, "T1 is open again"), 1)
				}
			})
		})
	}
}

// A worker does not get an item that is done and proven; the refusal says who does.
func TestDoneItemIsNotHandedOutAgain(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One")), do(work("T1", "x")), say("I wait"), do(work("T1", "again")), say("done")),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "tasks", len(r.tasks(m.ID)), 1)
		has(t, r.results(m.ID, "delegate_task")[1], "item T1 is done", `the reviewer may take it as it is: {"agent":"reviewer","item":"T1"`)
	})
}

// An item that is done and in doubt goes to a worker again, and is open by that.
func TestDoubtfulItemIsMended(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(barePlan("- [ ] T1 One", "- [ ] T2 Review @reviewer", "  - after: T1")), do(work("T1", "x")), say("I wait"),
			do(work("T1", "again")), say("I wait"), do(handTo("reviewer", "T2", "look")), say("I wait")),
		"worker":   steps(after(time.Second, say("made")), after(time.Second, say("made"))),
		"reviewer": steps(say("PASS")),
	}, func(r *rig) {
		r.is(r.mission(centurion.MissionOptions{}), centurion.MissionCompleted, "")
		equal(t, "requests of workers", len(r.requests("worker")), 2)
	})
}

// The status never offers the end while a task lives, counts what waits apart, and names what has no item.
func TestStatusWhileTasksLive(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - files: one/**", "- [ ] T2 Two", "  - after: T1")), do(work("T1", "x"), work("T2", "x"), onward), bash("sleep 30s"), say("I wait"),
			do(handTo("reviewer", "", "look"), onward), bash("sleep 5s"), say("I wait")),
		"worker":   func(scripted.Request) scripted.Answer { return after(time.Minute, say("made")) },
		"reviewer": func(scripted.Request) scripted.Answer { return after(time.Minute, say("PASS")) },
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		asked := r.requests("commander")
		has(t, asked[3].Last(), "Todo: 0 open, 1 running, 1 waiting, 0 done", "T1 worker running", "T2 worker waiting: after T1", "T1 (do T1) is being worked on by your own task: one/**")
		late := asked[6].Last()
		has(t, late, "2 done", allTaken, "w3 reviewer running")
		if strings.Contains(late, "mission_complete") {
			t.Errorf("the end is offered while a task lives:\n%s", late)
		}
	})
}

// A review that found faults is not offered again before something was done; a blocked task can be resumed.
func TestStatusNamesWhatHelps(t *testing.T) {
	t.Run("review", func(t *testing.T) {
		bubble(t, map[string]script{
			"commander": steps(do(plans("- [x] T1 One", "- [ ] T2 Review @reviewer", "  - after: T1")), do(handTo("reviewer", "T2", "look")), say("I wait"),
				do(work("", "mend it")), say("I wait"), do(handTo("reviewer", "T2", "look again")), say("I wait")),
			"reviewer": func(q scripted.Request) scripted.Answer {
				if strings.Contains(q.First(), "look again") {
					return say("PASS")
				}
				return say("FAIL\na.txt:1 wrong")
			},
		}, func(r *rig) {
			r.mission(centurion.MissionOptions{})
			asked := r.requests("commander")
			told := asked[2].Last()
			has(t, told, "T2's review failed: add an item for what it found first")
			if strings.Contains(told, "Can be started: T2") {
				t.Errorf("it is offered again:\n%s", told)
			}
			has(t, asked[4].Last(), "Can be started: T2.")
		})
	})
	t.Run("blocked", func(t *testing.T) {
		t.Parallel()
		doc, err := todo.Parse([]byte("# Plan\n- [!] T4 Four\n- [~] T5 Five\n- [x] T6 Six\n"))
		if err != nil {
			t.Fatal(err)
		}
		s := stands(doc, []review.ItemProof{{Item: todo.Item{ID: "T6"}, Why: "unproven: x", Proof: centurion.ProofUnproven}}, centurion.Task{ID: "tsk_5", Item: "T5", Agent: "worker", Status: centurion.TaskRunning},
			centurion.Task{ID: "tsk_4", Item: "T4", Agent: "worker", Status: centurion.TaskBlocked, Session: "ses_4"})
		var b strings.Builder
		s.say(&b)
		has(t, b.String(), "1 running, 1 done (1 unproven: T6), 0 cancelled, 1 blocked", "T4 is blocked: resume it", `"item":"T4","resume":"T4"`, goOn)
		if strings.Contains(b.String(), allTaken) {
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
		s.say(&b)
		has(t, b.String(), line)
		b.Reset()
		s.proofs = worthOf(true)
		s.say(&b)
		if strings.Contains(b.String(), line) {
			t.Errorf("a review has passed:\n%s", b.String())
		}
	})
	t.Run("unproven, while others work", func(t *testing.T) {
		t.Parallel()
		doc, err := todo.Parse([]byte("# Plan\n- [~] T5 Five\n- [x] T6 Six\n"))
		if err != nil {
			t.Fatal(err)
		}
		s := stands(doc, []review.ItemProof{{Item: todo.Item{ID: "T6"}, Why: "unproven: x", Proof: centurion.ProofUnproven}}, centurion.Task{ID: "tsk_5", Item: "T5", Agent: "worker", Status: centurion.TaskRunning})
		var b strings.Builder
		s.say(&b)
		has(t, b.String(), "T6 can be mended (delegate_task with the item) or reviewed now")
		if strings.Contains(b.String(), "nothing is to be started") {
			t.Errorf("two things at once:\n%s", b.String())
		}
	})
}

// stands is where a plan stands that has some tasks, with what shows that its done items are done.
func stands(doc *todo.Doc, proofs []review.ItemProof, tasks ...centurion.Task) planState {
	s := stateOf(review.View{Plan: plan.View{Doc: doc}, Tasks: tasks}, nil)
	s.proofs = proofs
	return s
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
		"queued":      {"- [ ] T6 Look @reviewer\n  - after: T5, T7\n", centurion.Task{Item: "T6", Agent: "reviewer", Status: centurion.TaskQueued}, "T6 reviews T5, T7 when it begins.\n", allTaken},
		"running":     {"- [~] T6 Look @reviewer\n  - after: T5, T7\n", centurion.Task{Item: "T6", Agent: "reviewer", Status: centurion.TaskRunning, Started: at(10)}, "T6 reviews T5, T7 now.\n", allTaken},
		"planned":     {"- [ ] T6 Look @reviewer\n  - after: T5, T7, T8\n- [~] T8 Eight\n", centurion.Task{Item: "T8", Agent: "worker", Status: centurion.TaskRunning}, "T6 reviews T5, T7 after T8.\n", allTaken},
		"of one":      {"- [~] T6 Look @reviewer\n  - after: T5\n", centurion.Task{Item: "T6", Agent: "reviewer", Status: centurion.TaskRunning, Started: at(10)}, "T6 reviews T5 now.\n", ": T7 can be mended (delegate_task with the item) or " + offer},
		"begun early": {"- [~] T6 Look @reviewer\n  - after: T5, T7\n", centurion.Task{Item: "T6", Agent: "reviewer", Status: centurion.TaskRunning, Started: at(5)}, "T6 reviews T5 now.\n", ": T7 can be mended (delegate_task with the item) or " + offer},
		"no item":     {"", centurion.Task{Agent: "reviewer", Status: centurion.TaskRunning, Started: at(10)}, "tsk_9 reviews T5, T7 now.\n", allTaken},
		"as it is":    {"", centurion.Task{Item: "T7", Reviews: true, Agent: "reviewer", Status: centurion.TaskRunning, Started: at(10)}, "tsk_9 reviews T7 now.\n", ": T5 can be mended (delegate_task with the item) or " + offer},
		"other work":  {"- [~] T8 Eight\n", centurion.Task{Item: "T8", Agent: "worker", Status: centurion.TaskRunning}, "", ": T5, T7 can be mended (delegate_task with the item) or " + offer},
		"for a start": {"- [ ] T6 Look @reviewer\n  - after: T5, T7\n- [~] T8 Eight\n", centurion.Task{Item: "T8", Agent: "worker", Status: centurion.TaskRunning}, "Can be started: T6.\n", goOn},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := todo.Parse([]byte("# Plan\n- [x] T5 Five\n- [x] T7 Seven\n" + test.plan))
			if err != nil {
				t.Fatal(err)
			}
			test.alive.ID = "tsk_9"
			s := stands(doc, []review.ItemProof{doubt("T5"), doubt("T7")}, append(made[:2:2], test.alive)...)
			var b strings.Builder
			s.say(&b)
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
		stateOf(test.view, nil).say(&b)
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
	m := unbegun(t)
	m.claims.Take("T2", []string{"stats/**"})
	m.claims.Settle("T2", []string{"main.go"})
	s := stands(doc, nil, centurion.Task{ID: "tsk_2", Item: "T2", Agent: "worker", Status: centurion.TaskRunning})
	s.held = &m.claims
	var b strings.Builder
	s.say(&b)
	has(t, b.String(), "Can be started: T4 (waits for files of T2 first), T5.\n", goOn)
	equal(t, "held by T4", len(m.claims.Of("T4")), 0)
	m.claims.Drop("T2")
	b.Reset()
	s.say(&b)
	has(t, b.String(), "Can be started: T4, T5.\n")
}

// mission_complete, called while the plan's review works, names that review and offers no second one.
func TestCompleteNamesReviewUnderWay(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(barePlan("- [ ] T1 One", "- [ ] T2 Look @reviewer", "  - after: T1")), do(work("T1", "x")), say("I wait"),
			complete(), do(handTo("reviewer", "T2", "look"), onward), bash("sleep 30s"), complete(), say("I wait"), complete()),
		"worker":   steps(say("made")),
		"reviewer": steps(after(time.Minute, say("PASS"))),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		refused := r.results(m.ID, "mission_complete")
		has(t, refused[0], `no review has passed since its work ended: delegate_task {"agent":"reviewer","item":"T2"`)
		has(t, refused[1], "item T1 (One): it has no verify command; T2 reviews it now")
		if strings.Contains(refused[1], "delegate_task") {
			t.Errorf("a second review is offered:\n%s", refused[1])
		}
		equal(t, "reviews", len(r.requests("reviewer")), 1)
	})
}

// A change of the plan is answered with what of it will not go as it looks, once.
func TestRemarks(t *testing.T) {
	t.Parallel()
	planned := func(lines string) plan.View {
		doc, err := todo.Parse([]byte("# Plan\n" + lines))
		if err != nil {
			t.Fatal(err)
		}
		return plan.View{Doc: doc}
	}
	const shares = "- [ ] T2 Two\n  - files: cmd/**\n  - verify: `x`\n- [ ] T3 Three\n  - files: cmd/x.go\n  - verify: `x`\n"
	for name, test := range map[string]struct {
		before, after string
		want          []string
	}{
		"files": {"", shares, []string{"T2 and T3 share cmd/x.go: they run one after the other.", tools.Overlaps(false)}},
		"known": {shares, shares + "- [ ] T4 Four\n  - files: d/**\n  - verify: `x`\n", nil},
		"no files": {"", "- [ ] T6 Six\n  - verify: `x`\n- [ ] T7 Seven\n  - verify: `x`\n- [ ] T8 Look @reviewer\n", []string{"No files are named for T6, T7: others may change the same ones at the same time. " +
			"Name them, or let such an item run alone (`after:`).", tools.Overlaps(false)}},
		"no files, alone": {"", "- [ ] T6 Six\n  - verify: `x`\n- [ ] T7 Seven\n  - verify: `x`\n  - after: T6\n", nil},
		"in order":        {"", shares + "  - after: T2\n", nil},
		"one is done":     {"", strings.Replace(shares, "[ ] T2", "[x] T2", 1), nil},
		"no check":        {"", "- [ ] T6 Six\n", []string{"T6 has no verify command: a review has to pass before the end. Give it one, or plan a review: an item @reviewer with after: T6."}},
		"always green":    {"", "- [ ] T6 Six\n  - verify: `go test ./... || true`\n", []string{"T6's check `go test ./... || true` can only pass and proves nothing. Give it one that fails without the work (of a document: `grep -q 'its words' FILE`) before work on it begins."}},
		"still green":     {"- [ ] T6 Six\n  - verify: `true`\n", "- [ ] T6 Six\n  - verify: `true`\n- [ ] T7 Seven\n  - after: T6\n  - verify: `x`\n", nil},
		"of the mission":  {"", "- verify: `exit 0`\n- [ ] T6 Six\n  - verify: `x`\n", []string{"The mission's check `exit 0` can only pass and proves nothing."}},
		"a filter": {"", "- verify: `go vet ./...; go test ./...`\n- [ ] T6 Six\n  - verify: `go test -v ./... | grep -q PASS`\n  - verify: `go test -run TestSix ./...`\n", []string{
			"T6's check `go test -v ./... | grep -q PASS` may hide a failure: it ends in the filter `grep -q PASS`, and what that finds decides.",
			"The mission's check `go vet ./...; go test ./...` may hide a failure: behind `;` only the last command decides, and `go vet ./...` may fail unseen.", plan.LetDecide}},
		"reviewed":          {"", "- [ ] T6 Six\n- [ ] T7 Look @reviewer\n  - after: T6\n", nil},
		"reviewed with all": {"", "- [ ] T6 Six\n- [ ] T7 Look @reviewer\n", nil},
	} {
		m := unbegun(t)
		if got := m.plan.Remarks(planned(test.before), planned(test.after)); strings.Join(got, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	has(t, plan.Outline(planned("- [ ] T6 Six\n- [ ] T7 Look @reviewer\n  - after: T6\n- [ ] T8 Look @reviewer\n").Doc),
		"T6 Six (no verify command: a review has to pass)", "T7 Look @reviewer (after T6) (a review of T6 and what came before)", "T8 Look @reviewer (a review of all that was merged before it begins)")
}

// A reviewer is told each check with whose it is, and only its newest run.
func TestChecksOfABrief(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	receiptLines(&b, []centurion.Receipt{{Item: "T1", Command: "x", ExitCode: 1}, {Command: "go vet ./...", ExitCode: 0}, {Item: "T1", Command: "x", Proof: centurion.ProofProven}})
	has(t, b.String(), "- mission: `go vet ./...`: exit code 0", "- T1: `x`: exit code 0, proven")
	if strings.Contains(b.String(), "exit code 1") {
		t.Errorf("an old run is told:\n%s", b.String())
	}
}
