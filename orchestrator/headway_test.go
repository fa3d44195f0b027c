package orchestrator

import (
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/provider/scripted"
)

// A Commander that insists on an end that is refused does not spend its budget: after the tenth time a person is asked.
func TestRefusedEndBlocks(t *testing.T) {
	asked := 0
	r := newRig(t, map[string]script{"commander": func(scripted.Request) scripted.Answer {
		if asked++; asked == 1 {
			return do(call("update_todo", args{"content": "# Plan\n- [ ] T1: one\n"}))
		}
		return do(call("mission_complete", args{"summary": "done"}))
	}})
	m := r.mission(centurion.MissionOptions{})
	equal(t, "status", string(m.Status), "blocked")
	has(t, m.Reason, "The commander has called mission_complete 10 times in a row", "T1", "What should it do?")
	if asked != 11 {
		t.Errorf("%d requests were made", asked)
	}
}

// What an agent was told to call is nothing for a person to read.
func TestRefusalInWords(t *testing.T) {
	said := "not complete; missing:\n- item T1 (one): it has no verify command; no review has passed since its work ended: delegate_task " +
		plan.DelegateCall("reviewer", "T2", "review {T2} \"now\"") + "\n- T3 is blocked: resume tsk_1 (delegate_task {\"agent\":\"worker\",\"resume\":\"tsk_1\",…}), or hand it out anew."
	equal(t, "in words", state.InWords(said), "not complete; missing: item T1 (one): it has no verify command; no review has passed since its work ended; "+
		"T3 is blocked: resume tsk_1, or hand it out anew")
	if long := state.InWords(strings.Repeat("much ", 1000)); len(long) > 420 {
		t.Errorf("%d bytes", len(long))
	}
}

// A worker that makes no headway ends its task as blocked, and the Commander is told.
func TestWorkerWithoutHeadway(t *testing.T) {
	r := newRig(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait"), say("done")),
		"worker": func(scripted.Request) scripted.Answer {
			return do(call("read", args{"filePath": "is/not/there.txt"}))
		},
	})
	r.mission(centurion.MissionOptions{})
	task := r.tasks(r.missionOf())[0]
	equal(t, "status", string(task.Status), "blocked")
	if task.Error == nil || task.Rounds != 10 {
		t.Fatalf("after %d rounds: %+v", task.Rounds, task.Error)
	}
	has(t, task.Error.Message, "called read 10 times in a row", "is/not/there.txt")
}

// What a person says while the Commander works is a fresh start: what it did not get done before no longer counts.
func TestPersonIsAFreshStart(t *testing.T) {
	for name, c := range map[string]struct {
		speaks bool
		want   int // requests
	}{"nobody": {false, 8}, "a person": {true, 11}} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			bubble(t, map[string]script{"commander": func(scripted.Request) scripted.Answer {
				switch asked++; asked {
				case 1:
					return do(plans("- [ ] T1 One"))
				case 5: // the third time that nothing was done
					return do(call("bash", args{"command": "sleep 1m", "description": "x"}))
				}
				return say("later")
			}}, func(r *rig) {
				var g guard.Group
				m := r.start(centurion.MissionOptions{})
				done := r.inBackground(&g, m.ID)
				if time.Sleep(30 * time.Second); c.speaks {
					r.send(m.ID, "0", "go on", false)
				}
				<-done
				if err := g.Wait(); err != nil {
					t.Fatal(err)
				}
				equal(t, "requests", asked, c.want)
			})
		})
	}
}
