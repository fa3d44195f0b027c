package orchestrator

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
)

// A person wants to see the plan before anything is written: then the Commander's own writing and work without a plan are refused with the
// way, and what it does by itself waits for the answer, also of a plan of one step. Reading does not wait. What was not accepted is asked
// again after a resume.
func TestNothingIsWrittenBeforeThePlan(t *testing.T) {
	write := call("write", args{"filePath": "a.txt", "content": "a"})
	cast := map[string]script{"commander": steps(do(write, work("", "do it"), call("bash", args{"command": "touch b.txt", "description": "x"}), call("ls", args{"path": "."})),
		do(call("update_todo", args{"level": 1, "content": "- [ ] T1 One\n  - verify: `exists a.txt`\n"})), do(write), do(write), do(mark("T1", "done")), say("done"))}
	opts := centurion.MissionOptions{ShowPlan: true, PlanFirst: true, Ask: "deny"}
	bubble(t, cast, func(r *rig) {
		r.write("there.txt", "x")
		written := func() bool {
			_, err := os.Stat(filepath.Join(r.dir, "a.txt"))
			return err == nil
		}
		var g guard.Group
		m := r.start(opts)
		done := r.inBackground(&g, m.ID)
		ask := r.oneAsk(m.ID)
		time.Sleep(time.Hour)
		synctest.Wait()
		has(t, ask.Text, "T1 One")
		has(t, texts(r.requests("commander")[0]), "wants to see the plan before anything is written")
		for _, tool := range []string{"write", "delegate_task", "bash"} {
			has(t, r.results(m.ID, tool)[0], "wants to see the plan before anything is written", "update_todo")
		}
		has(t, r.results(m.ID, "ls")[0], "there.txt")
		equal(t, "requests", len(r.requests("commander")), 3)
		equal(t, "written", written(), false)
		r.answer(ask.ID, "quit")
		r.is(<-done, centurion.MissionPaused, "the plan was not accepted")
		if err := r.host.Control.Raise(r.ctx, m.ID, centurion.MissionOptions{}); err != nil {
			t.Fatal(err)
		}
		done = r.inBackground(&g, m.ID)
		ask = r.oneAsk(m.ID)
		equal(t, "written", written(), false)
		r.answer(ask.ID, "run")
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
		equal(t, "written", written(), true)
	})
}

// The same holds for a task of a mission of one step, also after a resume without that wish.
func TestTaskWaitsForThePlan(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(call("update_todo", args{"level": 1, "content": "- [ ] T1 One\n  - verify: `exists a.txt`\n"})), do(work("T1", "x")), say("I wait")),
		"worker":    steps(writeFile("a.txt")),
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{ShowPlan: true, PlanFirst: true, Ask: "deny"})
		for _, answer := range []string{"quit", "run"} {
			done := r.inBackground(&g, m.ID)
			ask := r.oneAsk(m.ID)
			equal(t, "worker's requests", len(r.requests("worker")), 0)
			r.answer(ask.ID, answer)
			m = <-done
			if err := r.host.Control.Raise(r.ctx, m.ID, centurion.MissionOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		r.is(m, centurion.MissionCompleted, "")
		g.Wait()
	})
}
