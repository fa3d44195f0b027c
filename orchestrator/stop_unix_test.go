//go:build unix

package orchestrator

import (
	"os"
	"testing"

	"centurion"
	"centurion/orchestrator/agent"
)

// OPAL-18, OPAL-62: stopping a session ends the processes of its tool calls before it returns: the command, a child that
// ignores SIGTERM, and one that was forked twice so that its parent is gone.
func TestRealStop(t *testing.T) {
	const twice = `(sh -c 'trap "" TERM; echo $$ > grand.new; mv grand.new grand; while :; do sleep 1; done' & ) ; until test -e grand; do sleep 0.01; done; ` + stays
	for name, status := range map[string]centurion.TaskStatus{"the task": centurion.TaskCancelled, "the mission": centurion.TaskQueued} {
		t.Run(name, func(t *testing.T) {
			r := realRig(t, oneWorker(do(call("bash", args{"command": twice}))))
			pipe := r.pipe()
			m := r.start(centurion.MissionOptions{})
			l := r.live(m.ID)
			pid, err := os.ReadFile(pipe)
			if err != nil || !r.process(string(pid)) || !r.process(r.read("grand")) {
				t.Errorf("it does not run: %q, %v", pid, err)
			}
			if s, err := r.host.Control.State(r.ctx, r.tasks(m.ID)[0].ID); err != nil || len(s.Calls) != 1 || s.Waits != agent.WaitTool {
				t.Errorf("state %+v, %v", s, err)
			}
			id := m.ID
			if name == "the task" {
				id = r.tasks(m.ID)[0].Session
			}
			if err := r.host.Control.Stop(r.ctx, id, ""); err != nil {
				t.Error(err)
			}
			if r.process(r.read("grand")) {
				t.Error("the grandchild still runs")
			}
			r.nothing(string(pid))
			equal(t, "task", r.tasks(m.ID)[0].Status, status)
			l.settled()
		})
	}
}
