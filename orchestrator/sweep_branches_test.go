package orchestrator

import (
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator/isolation"
	"centurion/provider/scripted"
	"centurion/store"
)

// A host that died may leave branches whose work is merged. They go at the end of the run after it: those of tasks that have ended,
// and only together with all others of their session. What holds work that was never merged stays, and so does the mission's own.
func TestMergedBranchesAreSwept(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			return steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`", "- [ ] T2 Two", "  - verify: `exists b.txt`")), do(work("T1", "make a.txt"), work("T2", "make b.txt")), say("I wait"), complete())(q)
		},
		"worker": func(q scripted.Request) scripted.Answer {
			name := q.First()[strings.Index(q.First(), "make ")+5:][:1]
			return steps(do(writes(name+".txt", name+"\n")), say("made it"))(q)
		},
		"reviewer": steps(say("PASS")),
	})
	m := r.mission(centurion.MissionOptions{})
	r.is(m, centurion.MissionCompleted, "")
	tasks := r.tasks(m.ID)
	if len(tasks) < 2 {
		r.dump(m.ID)
		t.Fatal("too few tasks")
	}
	left := func() []string {
		return strings.Fields(r.git("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/"+isolation.BranchPrefix(m.ID)))
	}
	own := isolation.BranchOf(m.ID)
	equal(t, "branches after an ordinary end", strings.Join(left(), " "), own)
	one, two := isolation.BranchPrefix(m.ID)+tasks[0].ID, isolation.BranchPrefix(m.ID)+tasks[1].ID
	foreign := isolation.BranchPrefix(m.ID) + "somebody"
	unmerged := r.git("commit-tree", "-m", "not merged", own+"^{tree}", "-p", own)
	sweep := func(runs int) []string {
		t.Helper()
		for _, b := range []string{one, one + "-2", two, foreign} {
			r.git("update-ref", "refs/heads/"+b, own)
		}
		r.git("update-ref", "refs/heads/"+two+"-2", unmerged)
		err := r.store.Update(r.ctx, func(tx *store.Tx) error {
			rec, err := tx.Mission(m.ID)
			if err != nil {
				return err
			}
			rec.Runs = runs
			return tx.PutMission(&rec)
		})
		if err != nil {
			t.Fatal(err)
		}
		repo, err := r.host.Project.Repository(r.ctx)
		if err != nil {
			t.Fatal(err)
		}
		idle := r.unbegun(m.ID)
		idle.iso.Ground = &isolation.Ground{Repo: repo}
		idle.iso.SweepBranches(r.ctx)
		return left()
	}
	equal(t, "a mission of one host", len(sweep(1)), 6)
	want := []string{own, foreign, two, two + "-2"}
	slices.Sort(want)
	got := sweep(2)
	slices.Sort(got)
	equal(t, "branches after a host that died", strings.Join(got, " "), strings.Join(want, " "))
	r.edit(tasks[0].ID, func(t *centurion.Task) { t.Status = centurion.TaskRunning })
	equal(t, "of a task that has not ended", len(sweep(2)), 6)
}
