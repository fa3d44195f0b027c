package orchestrator

import (
	"testing"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/guard"
	"centurion/tools"
)

// ORCH-14: each worker's end is told of its own session, with its result and under its parent, and so is the delivery to
// that parent, which goes on at the moment of the end and not at the next poll.
func TestEndsAreTold(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "a")), say("I wait"), do(work("", "b")), say("I wait again")),
		"worker":    minutes(1, "made"),
	}, func(r *rig) {
		began := time.Now()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "took", time.Since(began).Round(time.Second), 2*time.Minute)
		ends, told := r.events(m.ID, centurion.EventTaskCompleted), r.events(m.ID, centurion.EventTaskDelivered)
		if len(ends) != 2 || len(told) != 2 {
			t.Fatalf("%d ends and %d deliveries are told", len(ends), len(told))
		}
		for i, task := range r.tasks(m.ID) {
			d, err := event.Decode[event.TaskData](ends[i])
			if err != nil || d.Result != "made" || d.Parent != m.Session || ends[i].Task != task.ID || ends[i].Session != task.Session {
				t.Errorf("the end of task %d: %+v of %s, %v", i, d, ends[i].Session, err)
			}
			if told[i].Task != task.ID || told[i].Session != m.Session || told[i].Seq < ends[i].Seq || !told[i].Time.Equal(ends[i].Time.Time) {
				t.Errorf("the delivery of task %d, which ended at %v: %+v", i, ends[i].Time, told[i])
			}
		}
	})
}

// ORCH-15: a delegation that reaches the host all the same is refused by the role, and by the depth where a role would allow
// it; nothing is recorded.
func TestHostRefusesToSpawn(t *testing.T) {
	slow := minutes(10, "done")
	bubble(t, map[string]script{
		"commander": steps(do(handTo("planner", "", "plan")), say("I wait")),
		"planner":   steps(do(handTo("worker", "", "look")), say("I wait")),
		"worker":    slow,
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(time.Minute)
		live := r.host.running(m.ID)
		deep := r.tasks(m.ID)[1]
		live.mu.Lock()
		c := live.convs[deep.Session]
		live.mu.Unlock()
		if c == nil || c.agent.Name != agents.Worker {
			t.Fatalf("the second task is the %s's", deep.Agent)
		}
		may := c.agent
		may.Delegates = []string{agents.Worker}
		for said, agent := range map[string]agents.Agent{"the worker may not delegate to the worker": c.agent, "a task at depth 2 does not hand work on": may} {
			d := delegator{&conversation{m: live, agent: agent, sess: c.sess}}
			_, err := d.Delegate(r.ctx, &tools.Call{ID: "x", Message: "y"}, tools.Delegation{Agent: agents.Worker, Prompt: "do my work"})
			if centurion.KindOf(err) != centurion.KindPermission || centurion.HintOf(err) == "" {
				t.Fatalf("%v", err)
			}
			has(t, err.Error(), said)
		}
		equal(t, "tasks", len(r.tasks(m.ID)), 2)
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
	})
}
