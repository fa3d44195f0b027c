package orchestrator

import (
	"testing"

	"centurion"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/merge"
	"centurion/permission"
	"centurion/provider/scripted"
	"centurion/store"
	"centurion/worktree"
)

// A task that has changed nothing merges nothing, and its check is run all the same: a tick takes more than words.
func TestNothingChangedIsChecked(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`")), do(work("T1", makeA)), say("I wait"), complete()),
		"worker":    steps(say("made a"), do(writes("a.txt", "a\n")), say("now I have")),
	})
	m := r.mission(centurion.MissionOptions{})
	r.is(m, centurion.MissionCompleted, "")
	one := r.task(m.ID, "T1")
	equal(t, "returns", one.Returns, 1)
	has(t, r.requests("worker")[1].Last(), "The host ran your acceptance command", "no a.txt")
	equal(t, "commits", r.git("rev-list", "--count", "main.."+isolation.BranchOf(m.ID)), "1")
}

// A check of the mission that may not run guards no merge: it is not run behind the rules' back.
func TestForbiddenCheckGuardsNothing(t *testing.T) {
	t.Parallel()
	r, m := idle(t, map[string]string{"base.txt": "base\n"})
	tip := m.iso.Ground.Base.Commit
	r.write(todoMD, "# Plan\n- verify: `exists base.txt`\n\n- [x] T1 One\n")
	l := &merge.Work{Agent: "worker", Onto: tip, Next: r.onTop(m, tip, map[string]string{"base.txt": "", "other.txt": "x\n"})}
	for _, c := range []struct {
		action permission.Action
		red    bool
		runs   int
	}{{permission.Deny, false, 0}, {permission.Allow, true, 3}} {
		r.host.cfg().Rules = func(string) []permission.Level { return rules(c.action) }
		red, err := m.queue.BrokenBy(r.ctx, tip, l)
		if err != nil || (red != nil) != c.red || r.shell.times("exists base.txt") != c.runs {
			t.Errorf("%s: %+v, %v, %d runs", c.action, red, err, r.shell.times("exists base.txt"))
		}
	}
}

// At the end the commands of done items run, and not those of items that were given up.
func TestFinalChecksAreOfDoneItems(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [x] T1 One", "  - verify: `passes`", "- [-] T2 Two", "  - verify: `exists never.txt`")), complete()),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "runs for what is done", r.shell.times("passes"), 1)
		equal(t, "runs for what was given up", r.shell.times("exists never.txt"), 0)
	})
}

// A plan that had items and has vanished is no plan without items: the mission is not complete, whoever says so.
func TestVanishedPlanIsNeverComplete(t *testing.T) {
	var r *rig
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			switch q.Step() {
			case 1:
				return do(plans("- [ ] T1 One"))
			case 2:
				removeFile(t, r, todoMD)
				return complete()
			}
			return say("it is done")
		},
	}, func(got *rig) {
		r = got
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionBlocked, "has vanished")
		has(t, r.results(m.ID, "mission_complete")[0], "not complete; missing:", "the todo list had items and has none any more")
	})
}

// Of those who have changed the same files a conflict names who is not known to the work yet: what it stands on conflicts with nothing.
func TestIntentsOfWhatIsNew(t *testing.T) {
	t.Parallel()
	r, m := idle(t, map[string]string{"x.txt": "0\n"})
	base := m.iso.Ground.Base.Commit
	first := r.onTop(m, base, map[string]string{"x.txt": "1\n"})
	second := r.onTop(m, first, map[string]string{"x.txt": "2\n"})
	other := r.onTop(m, second, map[string]string{"y.txt": "3\n"})
	err := r.store.Update(r.ctx, func(tx *store.Tx) error {
		for _, x := range []struct{ item, before, commit, file string }{{"T1", base, first, "x.txt"}, {"T2", first, second, "x.txt"}, {"T3", second, other, "y.txt"}} {
			task := centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: m.st.ID, Agent: "worker", Item: x.item, Title: "do " + x.item, Result: "wants " + x.item,
				Status: centurion.TaskCompleted, Landed: []centurion.Landed{{Commit: x.commit, Before: x.before, Files: []centurion.FileChange{{Path: x.file, Status: "modified"}}}}}
			if err := tx.PutTask(&task); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.queue.Intents(r.ctx, &merge.Work{Commit: worktree.Commit{Parent: first}}, []string{"x.txt"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "intents", got, "- T2 do T2 (x.txt): wants T2\n")
}
