package orchestrator

import (
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/plan"
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
				"reviewer": func(q scripted.Request) scripted.Answer {
					if q.Step() == 1 {
						return do(look)
					}
					reviews++
					return say(test.verdicts[reviews-1])
				},
			}, func(r *rig) {
				m := r.mission(centurion.MissionOptions{})
				r.is(m, centurion.MissionCompleted, "")
				equal(t, "verified", m.Verified, 1)
				equal(t, "unverified", m.Unverified, 0)
				equal(t, "reviews", reviews, test.reviews)
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
		"reviewer": steps(do(look), say("PASS")),
	}, func(r *rig) {
		r.is(r.mission(centurion.MissionOptions{}), centurion.MissionCompleted, "")
		equal(t, "requests of workers", len(r.requests("worker")), 2)
	})
}

// An item that is done and in doubt stays done where the work on it is refused: nobody works on it, and its review can still begin.
func TestRefusedMendingLeavesItsItemDone(t *testing.T) {
	again := args{"agent": "worker", "description": "again", "prompt": "again", "item": "T1", "budget": args{"rounds": 600}}
	bubble(t, map[string]script{
		"commander": steps(do(barePlan("- [ ] T1 One", "- [ ] T2 Review @reviewer", "  - after: T1")), do(work("T1", "x")), say("I wait"),
			do(call("delegate_task", again)), do(call("read", args{"filePath": todoMD})), do(handTo("reviewer", "T2", "look")), say("I wait")),
		"worker":   steps(after(time.Second, say("made"))),
		"reviewer": steps(do(look), say("PASS")),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{MaxRounds: 50})
		r.is(m, centurion.MissionCompleted, "")
		has(t, r.results(m.ID, "delegate_task")[1], "a budget of 600 requests does not fit")
		has(t, r.results(m.ID, "read")[0], "[x] T1 One")
		equal(t, "requests of workers", len(r.requests("worker")), 1)
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
		has(t, late, "2 done", brief.AllTaken, "w3 reviewer running")
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
}

// mission_complete, called while the plan's review works, names that review and offers no second one.
func TestCompleteNamesReviewUnderWay(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(barePlan("- [ ] T1 One", "- [ ] T2 Look @reviewer", "  - after: T1")), do(work("T1", "x")), say("I wait"),
			complete(), do(handTo("reviewer", "T2", "look"), onward), bash("sleep 30s"), complete(), say("I wait"), complete()),
		"worker":   steps(say("made")),
		"reviewer": steps(do(look), after(time.Minute, say("PASS"))),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		refused := r.results(m.ID, "mission_complete")
		has(t, refused[0], `no review has passed since its work ended: delegate_task {"agent":"reviewer","item":"T2"`)
		has(t, refused[1], "item T1 (One): it has no verify command; T2 reviews it now")
		if strings.Contains(refused[1], "delegate_task") {
			t.Errorf("a second review is offered:\n%s", refused[1])
		}
		equal(t, "requests of the review", len(r.requests("reviewer")), 2)
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
		"cancelled": {"- [-] T5 Five\n- [ ] T6 Six\n  - verify: `x`\n", "- [-] T5 Five\n- [-] T6 Six\n  - verify: `x`\n- [-] T7 Look @reviewer\n", []string{
			"T6 is cancelled, and the end of the mission will say so. If the goal asks for it, open it again instead and find another way."}},
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
