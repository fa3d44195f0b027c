//go:build unix

package orchestrator

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"centurion"
	"centurion/provider/scripted"
)

// oneWorker is a mission of one task.
func oneWorker(answers ...scripted.Answer) map[string]script {
	return map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": steps(answers...)}
}

// stays tells its process number through the named pipe «pipe» and then runs for ever, with a child that ignores SIGTERM
// and whose number is in the file «child».
const stays = `sh -c 'trap "" TERM; echo $$ > child.new; mv child.new child; while :; do sleep 1; done' &
echo begun; until test -e child; do sleep 0.01; done; echo $$ > pipe; wait`

func (r *rig) pipe() string {
	r.t.Helper()
	path := filepath.Join(r.dir, "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// process reports whether a process is there and not just waiting to be collected.
func (r *rig) process(number string) bool {
	r.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil {
		r.t.Fatal(err)
	}
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// nothing checks that nothing of what stays does stay.
func (r *rig) nothing(pid string) {
	r.t.Helper()
	if child := r.read("child"); r.process(pid) || r.process(child) {
		r.t.Errorf("process %s or its child %s still runs", pid, child)
	}
	if left, err := os.ReadDir(r.cfg.Scratch); err != nil || len(left) > 0 {
		r.t.Errorf("left behind: %v, %v", left, err)
	}
}

// ORCH-52: when its task ends, its mission is cancelled or paused, or the host shuts down, a background command ends with
// all that it has started, before that is recorded.
func TestRealBackgroundEnds(t *testing.T) {
	for name, test := range map[string]struct {
		stop   func(r *rig, l *life, m string) error
		status centurion.MissionStatus
	}{
		"the mission is cancelled": {func(r *rig, _ *life, m string) error { return r.host.Control.Cancel(r.ctx, m, "") }, centurion.MissionCancelled},
		"the mission is paused":    {func(r *rig, _ *life, m string) error { return r.host.Control.Pause(r.ctx, m, "") }, centurion.MissionPaused},
		"the host shuts down": {func(_ *rig, l *life, _ string) error {
			l.cancel(centurion.ErrShutdown)
			return nil
		}, centurion.MissionPaused},
		"the task is cancelled": {func(r *rig, _ *life, m string) error {
			task := r.task(m, "")
			if err := r.host.Control.Cancel(r.ctx, task.ID, ""); err != nil {
				return err
			}
			if r.process(r.read("child")) {
				return errors.New("it still runs when the task's end is recorded")
			}
			return nil
		}, centurion.MissionCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			r := realRig(t, oneWorker(do(inBack(stays)), do(call("bash", args{"command": "sleep 300; true"}))))
			pipe := r.pipe()
			m := r.start(centurion.MissionOptions{})
			l := r.live(m.ID)
			pid, err := os.ReadFile(pipe)
			if err != nil || !r.process(string(pid)) || !r.process(r.read("child")) {
				t.Errorf("it does not run: %q, %v", pid, err)
			}
			if err := test.stop(r, l, m.ID); err != nil {
				t.Error(err)
			}
			m = l.settled()
			equal(t, "status", m.Status, test.status)
			r.nothing(string(pid))
		})
	}
}

// ORCH-52: the check of a task sees nothing of its background commands.
func TestRealBackgroundEndsBeforeTheCheck(t *testing.T) {
	r := realRig(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - verify: `test -e pid && ! kill -0 $(cat pid)`"), work("T1", "x")), say("I wait")),
		"worker":    steps(do(inBack("echo $$ > new; mv new pid; exec sleep 300"), call("bash", args{"command": "until test -e pid; do sleep 0.01; done"}))),
	})
	m := r.mission(centurion.MissionOptions{})
	r.is(m, centurion.MissionCompleted, "")
	equal(t, "returns", r.task(m.ID, "T1").Returns, 0)
}

// ORCH-53: the status, the new output and the end of a real command: one that is killed with its children, one that
// reaches its time limit, and one that ends by itself while its session runs another with the only slot.
func TestRealBackgroundIsLookedAt(t *testing.T) {
	begin := steps(
		do(inBack(stays), call("run_background", args{"command": "exec sleep 300", "timeout": 100}), // no step of it is sure to come before its limit
			inBack("echo one; until test -e more; do sleep 0.01; done; echo two; exit 3"),
			call("bash", args{"command": "read pid < pipe; echo $pid > pid"})),
		do(checkBack("bg_1")),
		do(killBack("bg_1"), call("bash", args{"command": "touch more"})),
	)
	var second, third atomic.Bool // is known to have ended
	checks := []scripted.Answer{do(checkBack("bg_3")), do(checkBack("bg_2")), do(checkBack("bg_3"))}
	r := realRig(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": func(q scripted.Request) scripted.Answer {
		second.CompareAndSwap(false, strings.Contains(q.Last(), "bg_2 reached its time limit"))
		third.CompareAndSwap(false, strings.Contains(q.Last(), "bg_3 has ended with exit code 3"))
		switch {
		case q.Step() <= 3:
			return begin(q)
		case !second.Load() || !third.Load():
			return after(20*time.Millisecond, do(call("ls", args{})))
		case len(checks) == 0:
			return say("done")
		}
		next := checks[0]
		checks = checks[1:]
		return next
	}})
	r.pipe()
	m := r.mission(centurion.MissionOptions{})
	r.is(m, centurion.MissionCompleted, "")
	got := r.results(m.ID, "check_background")
	if len(got) != 5 {
		t.Fatalf("%d results: %q", len(got), got)
	}
	has(t, got[0], "bg_1 has been running for", "new output", "begun")
	has(t, got[1], "bg_1 was killed after", "no new output, 6 bytes in all")
	has(t, got[2], "bg_3 has ended with exit code 3 after", "new output, of 8 bytes in all:\none\ntwo")
	has(t, got[3], "bg_2 reached its time limit and was killed after", "no output")
	has(t, got[4], "no new output, 8 bytes in all")
	r.nothing(r.read("pid"))
}
