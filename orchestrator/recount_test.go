package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/provider/scripted"
)

// A conflict is no failure of its session: what came back before it counts no more.
func TestConflictBeginsTheCountAnew(t *testing.T) {
	t.Parallel()
	var r *rig
	r = inRepo(t, map[string]string{"x.txt": "nothing\n"}, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two", "  - verify: `exists b.txt`")), do(work("T1", "write one"), work("T2", "write two")), say("I wait"), complete(), say("it ends")),
		"worker": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "write one") {
				if q.Step() == 1 {
					return do(sh("put x.txt one"))
				}
				r.when(func(all []centurion.Event) bool { return count(all, centurion.EventTaskReturned) > 1 })
				return say("it says one")
			}
			switch q.Step() {
			case 1:
				return do(sh("put x.txt two"))
			case 4:
				return do(sh("put b.txt b"))
			case 5: // the other one lands first
				r.when(func(all []centurion.Event) bool { return count(all, centurion.EventMergeDone) > 0 })
			case 6:
				return do(sh("put x.txt one and two"))
			}
			return say("done with it")
		},
	})
	m := r.mission(centurion.MissionOptions{})
	equal(t, "returns told", strings.Join(r.returns(m.ID, r.task(m.ID, "T2").ID), "; "), "check exists b.txt 1; check exists b.txt 2; conflict x.txt 1")
	equal(t, "merged", r.branchHas(m.ID, "x.txt"), "one and two")
}

// What a worker is only told of is no failure either: its work may come back as often as that of others.
func TestNoticeIsNoFailure(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - verify: `holds a.txt good`")), do(work("T1", "write it")), say("I wait"), complete(), say("it ends")),
		"worker": steps(say("Shall I write it?"), do(writes("a.txt", "bad")), say("I have written it."),
			do(writes("a.txt", "good")), say("Now it is right.")),
	}, func(r *rig) {
		r.cfg.Returns = 1
		r.restart()
		m := r.mission(centurion.MissionOptions{})
		task := r.task(m.ID, "T1")
		equal(t, "status", task.Status, centurion.TaskCompleted)
		equal(t, "returns told", strings.Join(r.returns(m.ID, task.ID), "; "), "question  0; check holds a.txt good 1")
	})
}

// What the mission's own agent writes comes back as often as others' work, and begins to count anew once it was merged.
func TestOwnWorkComesBack(t *testing.T) {
	t.Parallel()
	const bad, good = "<<<<<<< mine\none\n=======\ntwo\n>>>>>>> theirs\n", "one and two\n"
	ticked := call("update_todo", args{"items": []args{{"id": "T1", "status": "done"}}})
	for name, test := range map[string]struct {
		then   []scripted.Answer
		status centurion.MissionStatus
		reason string
	}{
		"merged in between": {[]scripted.Answer{do(writes("x.txt", good)), say("later"), do(writes("x.txt", bad)), say("later"), do(writes("x.txt", "both\n")), do(ticked), say("done")},
			centurion.MissionCompleted, ""},
		"twice in a row": {[]scripted.Answer{say("later")}, centurion.MissionBlocked,
			"The commander's own changes could not be merged, 2 times: it leaves conflict markers in x.txt. What should be done?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := []scripted.Answer{do(plans("- [ ] T1 One", "  - verify: `exists x.txt`"), writes("x.txt", bad)), say("later")}
			r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{"commander": steps(append(first, test.then...)...)})
			r.cfg.Returns = 1
			r.restart()
			m := r.mission(centurion.MissionOptions{})
			r.is(m, test.status, test.reason)
			if want := map[bool]string{true: "both"}[test.reason == ""]; r.branchHas(m.ID, "x.txt") != want {
				t.Errorf("the branch has %q, want %q", r.branchHas(m.ID, "x.txt"), want)
			}
		})
	}
}
