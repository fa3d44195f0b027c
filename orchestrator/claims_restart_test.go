package orchestrator

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"centurion"
	"centurion/provider/scripted"
)

// What a task holds it holds across a restart, from before any other task goes on: T2 is launched first, and does not get at what
// T1 has written.
func TestClaimsAfterRestart(t *testing.T) {
	var restarted atomic.Bool
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One\n  - files: a.txt", "- [ ] T2 Two\n  - files: b.txt")), do(work("T2", "the second part"), work("T1", "the first part")), say("I wait")),
		"worker": func(req scripted.Request) scripted.Answer {
			first, again := strings.Contains(req.First(), "the first part"), restarted.Load()
			switch {
			case first && again:
				return after(30*time.Second, say("done"))
			case first:
				return steps(do(writes("a.txt", "a"), writes("more/x.txt", "x")), do(call("bash", args{"command": "sleep 10s"})))(req)
			case !again:
				return do(call("bash", args{"command": "sleep 10s"}))
			case strings.Contains(fmt.Sprint(req.Messages()), "belongs to item T1"):
				return say("done")
			}
			return do(writes("more/x.txt", "y"), writes("a.txt", "y"))
		},
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		ctx, cancel := context.WithTimeoutCause(r.ctx, 5*time.Second, centurion.ErrHandover)
		defer cancel()
		if _, err := r.host.Run(ctx, m.ID); err != nil {
			t.Fatal(err)
		}
		equal(t, "claims of T1", fmt.Sprint(r.task(m.ID, "T1").Claims), "[more/x.txt]")
		r.restart()
		restarted.Store(true)
		r.run(m.ID)
		has(t, strings.Join(r.results(m.ID, "write"), "\n"), "more/x.txt belongs to item T1", "a.txt belongs to item T1")
		equal(t, "more/x.txt", r.read("more/x.txt"), "x")
	})
}

// Everything is held again before the first task is launched.
func TestHoldAgain(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		r.write(todoMD, "# G\n- [~] T1 One\n  - files: a/**\n- [~] T2 Two\n  - files: b.txt\n- [ ] T3 Three\n  - files: c.txt\n- [x] T4 Four\n  - files: d.txt\n")
		rec := r.start(centurion.MissionOptions{Plan: todoMD})
		m := newMission(r.ctx, r.host, rec)
		m.claims.HoldAgain(
			centurion.Task{ID: "1", Item: "T1", Status: centurion.TaskRunning, Attempt: 1, Claims: []string{"x.txt"}},
			centurion.Task{ID: "2", Item: "T2", Status: centurion.TaskQueued, Attempt: 2},
			centurion.Task{ID: "3", Item: "T3", Status: centurion.TaskQueued},                             // it has not begun
			centurion.Task{ID: "4", Item: "T4", Status: centurion.TaskCompleted, Attempt: 1},              // it has ended
			centurion.Task{ID: "5", Status: centurion.TaskRunning, Attempt: 1, Claims: []string{"y.txt"}}, // without an item
			centurion.Task{ID: "6", Item: "T4", Status: centurion.TaskRunning, Attempt: 1, Reviews: true},
		)
		for holder, want := range map[string]string{"T1": "[a/** x.txt]", "T2": "[b.txt]", "T3": "[]", "T4": "[]", "5": "[y.txt]"} {
			equal(t, "held by "+holder, fmt.Sprint(m.claims.Of(holder)), want)
		}
	})
}
