package orchestrator

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/provider/scripted"
)

// S9: an agent that knows the ids of another mission's task and session can neither read, cancel nor resume it. That it tried
// is recorded, and the task goes on.
func TestForeignTasks(t *testing.T) {
	var victim centurion.Task
	calls := []string{"get_task_result", "cancel_task", "delegate_task"}
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			if !strings.Contains(texts(q), "meddle") {
				return steps(do(work("", "keep a secret")), say("I wait"))(q)
			}
			return steps(do(call(calls[0], args{"task_id": victim.ID}), call(calls[1], args{"task_id": victim.ID}),
				call(calls[2], args{"agent": "worker", "description": "x", "prompt": "tell me", "resume": victim.Session})), say("done"))(q)
		},
		"worker": minutes(5, "the secret"),
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(time.Minute)
		synctest.Wait()
		victim = r.tasks(m.ID)[0]
		other, err := r.host.Start(r.ctx, "meddle", centurion.MissionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r.hasWritten(other.ID)
		if end, err := r.host.Run(r.ctx, other.ID); err != nil || end.Status != centurion.MissionCompleted {
			t.Errorf("the other is %s: %v", end.Status, err)
		}
		for _, tool := range calls {
			got := strings.Join(r.results(other.ID, tool), "\n")
			if !strings.Contains(got, "there is no task") || strings.Contains(got, "secret") {
				t.Errorf("%s of a foreign task gives %q", tool, got)
			}
			if p := r.part(other.Session, tool, 0); p.State.Status != centurion.ToolError {
				t.Errorf("%s is recorded as %s", tool, p.State.Status)
			}
		}
		equal(t, "tasks of the other", len(r.tasks(other.ID)), 0)
		r.is(l.settled(), centurion.MissionCompleted, "")
		equal(t, "the task", r.tasks(m.ID)[0].Result, "the secret")
	})
}

// OPAL-17: each start makes a tree of its own: a mission, its root session at 0/ and, once it runs, the children of that session.
// Nothing of it runs before it is told to.
func TestEachStartIsATree(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": minutes(2, "made")}, func(r *rig) {
		var all [2]centurion.Mission
		for i := range all {
			all[i] = r.start(centurion.MissionOptions{})
		}
		synctest.Wait()
		equal(t, "asked before they run", len(r.model.Requests()), 0)
		equal(t, "at work", len(r.host.Running()), 0)
		var g guard.Group
		for _, m := range all {
			r.inBackground(&g, m.ID)
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		for _, m := range all {
			sessions, err := r.store.Sessions(r.ctx, m.ID)
			if err != nil || len(sessions) != 2 {
				t.Fatalf("%d sessions, %v", len(sessions), err)
			}
			for _, s := range sessions {
				want := "0/ "
				if s.ID != m.Session {
					want = "0/0 " + m.Session
				}
				equal(t, "session", s.Metadata.Address+" "+s.ParentID, want)
			}
		}
		if all[0].Session == all[1].Session {
			t.Error("both have one root")
		}
	})
}

// IKI-48, IKI-50, IKI-51, IKI-52, IKI-55: what agents do is the same to the nanosecond whether somebody reads along or nobody
// does, and a reader that comes late reads the same.
func TestReadersChangeNothing(t *testing.T) {
	var stories [2]string
	for i, watched := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, map[string]script{
				"commander": steps(do(work("", "x")), bash("build 3m"), say("I wait")),
				"worker":    steps(bash("build 5m"), scripted.Answer{Reasoning: "so far", Say: "made"}),
			})
			var g guard.Group
			if watched {
				all := r.spies(&g, 3, "")
				defer func() { sameTrace(t, all[1:], all[0].trace...) }()
			}
			m := r.mission(centurion.MissionOptions{})
			r.is(m, centurion.MissionCompleted, "")
			if err := g.Wait(); err != nil {
				t.Error(err)
			}
			stories[i] = r.stories(m.ID)
		})
	}
	if stories[0] != stories[1] || len(stories[0]) < 1000 {
		t.Errorf("watched:\n%s\nunwatched:\n%s", stories[1], stories[0])
	}
}
