package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/orchestrator/state"
	"centurion/permission"
	"centurion/provider/scripted"
	"centurion/tools"
)

// another starts one more attempt of a mission's task while the one before still runs, as nothing in the program may do.
func (r *rig) another(mission, task string) {
	r.t.Helper()
	t, err := r.store.Task(r.ctx, task)
	if err != nil {
		r.t.Error(err)
	}
	r.host.running(mission).tasks.Launch(t)
}

// refusals returns what attempts of a task were kept from writing, as "attempt: what".
func (r *rig) refusals(mission, task string) (all []string) {
	r.t.Helper()
	for _, e := range r.events(mission, centurion.EventTaskFenced) {
		var d event.FenceData
		if err := json.Unmarshal(e.Data, &d); err != nil || e.Task != task || e.Session == "" {
			r.t.Errorf("the refusal %+v: %v", e, err)
		}
		all = append(all, fmt.Sprintf("%d: %s", d.Attempt, d.Refused))
	}
	return all
}

// stored returns everything that the sessions of a mission hold, as text.
func (r *rig) stored(mission string) string {
	r.t.Helper()
	var b strings.Builder
	sessions, err := r.store.Sessions(r.ctx, mission)
	for _, s := range sessions {
		messages, merr := r.store.Messages(r.ctx, s.ID)
		err = errors.Join(err, merr)
		text, jerr := json.Marshal(messages)
		err = errors.Join(err, jerr)
		b.Write(text)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return b.String()
}

// ORCH-116, TRIAL R3, I2: an attempt that a newer one has taken over from says nothing more, whether it ends before or after:
// not in its conversation, not in its task, and no result of it is delivered.
func TestStaleAttemptSaysNothing(t *testing.T) {
	for name, test := range map[string]struct{ stale, fresh time.Duration }{
		"the stale one ends first": {20 * time.Second, 40 * time.Second},
		"the stale one ends last":  {40 * time.Second, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			bubble(t, map[string]script{
				"commander": func(q scripted.Request) scripted.Answer {
					return steps(do(work("", "x"), work("", "another")), say("I wait"))(q)
				},
				"worker": func(q scripted.Request) scripted.Answer {
					switch {
					case strings.Contains(q.First(), "another"): // keeps the mission alive until both have ended
						return after(time.Minute, say("kept"))
					case asked.Add(1) == 1:
						return after(test.stale, scripted.Answer{Say: "outdated", Calls: []scripted.Call{call("write", args{"filePath": "stale.txt", "content": "x"})}})
					}
					return after(test.fresh, say("fresh"))
				},
			}, func(r *rig) {
				m := r.start(centurion.MissionOptions{})
				l := r.live(m.ID)
				time.Sleep(time.Second)
				synctest.Wait()
				one := r.tasks(m.ID)[0]
				r.another(m.ID, one.ID)
				m = l.settled()
				r.is(m, centurion.MissionCompleted, "")
				one = r.tasks(m.ID)[0]
				equal(t, "attempt", one.Attempt, 2)
				equal(t, "status", one.Status, centurion.TaskCompleted)
				equal(t, "result", one.Result, "fresh")
				equal(t, "told", r.told(m.Session, "fresh"), 1)
				if text := r.stored(m.ID); strings.Contains(text, "outdated") {
					t.Errorf("the stale answer is stored: %s", text)
				}
				if _, err := os.Stat(filepath.Join(r.dir, "stale.txt")); err == nil {
					t.Error("the stale attempt has written a file")
				}
				equal(t, "refused", strings.Join(r.refusals(m.ID, one.ID), "; "), "1: its conversation; 1: its result")
				ends := 0
				for _, e := range r.events(m.ID) {
					if e.Task == one.ID && e.Type == centurion.EventTaskCompleted {
						ends++
					}
				}
				equal(t, "ends", ends, 1)
			})
		})
	}
}

// ORCH-116: what a command of a stale attempt had to tell, and the calls after it, come to nothing.
func TestStaleAttemptCallsNothing(t *testing.T) {
	var asked atomic.Int64
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			switch asked.Add(1) {
			case 1:
				return do(call("bash", args{"command": "build 1m"}), call("write", args{"filePath": "stale.txt", "content": "x"}))
			case 2:
				return after(90*time.Second, do(call("write", args{"filePath": "fresh.txt", "content": "x"})))
			}
			return say("fresh")
		},
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		one := r.tasks(m.ID)[0]
		r.another(m.ID, one.ID)
		time.Sleep(time.Minute)
		synctest.Wait()
		before := r.task(m.ID, "")
		equal(t, "while the newer one works", before.Status, centurion.TaskRunning)
		m = l.settled()
		r.is(m, centurion.MissionCompleted, "")
		one = r.task(m.ID, "")
		equal(t, "result", one.Result, "fresh")
		equal(t, "files", strings.Join(one.Files, " "), "fresh.txt")
		if _, err := os.Stat(filepath.Join(r.dir, "stale.txt")); err == nil {
			t.Error("the stale attempt has written a file")
		}
		has(t, r.results(m.ID, "bash")[0], "interrupted by a restart")
		equal(t, "refused", strings.Join(r.refusals(m.ID, one.ID), "; "), "1: its conversation; 1: its result")
	})
}

// ORCH-15, ORCH-116: in a stale attempt tools that read still run; every other is refused, changes nothing, and the refusal
// is recorded with the tool's name.
func TestStaleToolCalls(t *testing.T) {
	inputs := map[string]args{
		"read": {"filePath": "a.txt"}, "ls": {}, "glob": {"pattern": "*"}, "grep": {"pattern": "a"},
		"write": {"filePath": "stale.txt", "content": "x"}, "edit": {"filePath": "a.txt", "oldString": "a", "newString": "stale"},
		"bash":           {"command": "rm a.txt"},
		"run_background": {"command": "rm a.txt"}, "check_background": {},
		"update_todo":    {"level": 2, "content": "# Plan\n- [ ] T9 Stale\n"},
		"update_context": {"note": "stale"},
		"delegate_task":  {"agent": "worker", "description": "x", "prompt": "stale"},
		"webfetch":       {"url": "https://a.example"}, "websearch": {"query": "x"}, "codesearch": {"query": "x"}, "cache_docs": {"action": "clear"},
	}
	away := map[string]bool{"webfetch": true, "websearch": true, "codesearch": true} // they read what is not there in this test
	reads := map[string]bool{"read": true, "ls": true, "glob": true, "grep": true, "check_background": true}
	for _, agent := range []string{"worker", "planner", "reviewer"} {
		t.Run(agent, func(t *testing.T) {
			var asked atomic.Int64
			once := func(scripted.Request) scripted.Answer {
				if asked.Add(1) == 1 {
					return after(time.Minute, say("stale"))
				}
				return say("fresh")
			}
			bubble(t, map[string]script{
				"commander": steps(do(plans("- [ ] T1 One"), handTo(agent, "", "x")), say("I wait"), do(mark("T1", "cancelled"))),
				agent:       once,
			}, func(r *rig) {
				r.write("a.txt", "a\n")
				m := r.start(centurion.MissionOptions{})
				l := r.live(m.ID)
				time.Sleep(time.Second)
				synctest.Wait()
				one := r.task(m.ID, "")
				running := r.host.running(m.ID)
				c := running.sessions.Of(one.Session)
				running.st.Fences.Raise(one.ID, 2)
				plan, seq := r.read(todoMD), r.store.LastSeq()
				var refused []string
				for _, tool := range c.Config().Tools {
					in, ok := inputs[tool.Name()]
					if !ok {
						t.Fatalf("what is %s called with?", tool.Name())
					}
					raw, err := json.Marshal(in)
					if err != nil {
						t.Fatal(err)
					}
					surroundings := c.Config().Call
					surroundings.ID, surroundings.Session, surroundings.Message = "call_1", one.Session, "msg_1"
					surroundings.Progress = func(string) {}
					if err = runTool(r, tool, &surroundings, raw); reads[tool.Name()] || away[tool.Name()] {
						if err != nil && !(away[tool.Name()] && strings.Contains(err.Error(), "the network is not available here")) {
							t.Errorf("%s: %v", tool.Name(), err)
						}
						continue
					}
					if !errors.Is(err, state.ErrSuperseded) || centurion.KindOf(err) != centurion.KindConflict {
						t.Errorf("%s: %v", tool.Name(), err)
					}
					refused = append(refused, "1: a call of "+tool.Name())
				}
				equal(t, "refused", strings.Join(r.refusals(m.ID, one.ID), "; "), strings.Join(refused, "; "))
				equal(t, "rows that were written", int(r.store.LastSeq()-seq), len(refused))
				equal(t, "plan", r.read(todoMD), plan)
				equal(t, "file", r.read("a.txt"), "a\n")
				equal(t, "commands", len(r.shell.ran), 0)
				equal(t, "tasks", len(r.tasks(m.ID)), 1)
				if _, err := os.Stat(filepath.Join(r.dir, "stale.txt")); err == nil {
					t.Error("the stale attempt has written a file")
				}
				r.another(m.ID, one.ID)
				m = l.settled()
				r.is(m, centurion.MissionCompleted, "")
				equal(t, "result", r.task(m.ID, "").Result, "fresh")
			})
		})
	}
}

func runTool(r *rig, tool tools.Tool, c *tools.Call, in json.RawMessage) error {
	_, err := tool.Run(r.ctx, c, in)
	return err
}

// ORCH-116: a call that has waited, for a person or for a check to end, is looked at again before it acts.
func TestStaleCallThatWaited(t *testing.T) {
	for _, wait := range []string{"for a person", "for a check"} {
		t.Run(wait, func(t *testing.T) {
			var asked atomic.Int64
			bubble(t, map[string]script{
				"commander": steps(do(work("", "x")), say("I wait")),
				"worker": func(scripted.Request) scripted.Answer {
					if asked.Add(1) == 1 {
						return do(call("write", args{"filePath": "stale.txt", "content": "x"}))
					}
					return after(time.Minute, say("fresh"))
				},
			}, func(r *rig) {
				checked := make(chan struct{})
				var g guard.Group
				opts := centurion.MissionOptions{}
				if wait == "for a person" {
					opts.Ask = "ask"
					r.cfg.Rules = func(string) []permission.Level {
						return append(rules(permission.Allow), permission.Level{Name: "asks", Rules: []permission.Rule{{Permission: "edit", Pattern: "*", Action: permission.Ask}}})
					}
					r.restart()
				}
				m := r.start(opts)
				l := r.live(m.ID)
				if wait == "for a check" {
					time.Sleep(time.Millisecond)
					g.Go("check", func() error {
						return r.host.running(m.ID).sessions.Alone(r.ctx, func() error { <-checked; return nil })
					})
					synctest.Wait()
				}
				time.Sleep(time.Second)
				synctest.Wait()
				one := r.task(m.ID, "")
				r.another(m.ID, one.ID)
				synctest.Wait()
				if wait == "for a check" {
					close(checked)
				} else {
					r.answer(r.oneAsk(m.ID).ID, "once")
				}
				m = l.settled()
				if err := g.Wait(); err != nil {
					t.Error(err)
				}
				r.is(m, centurion.MissionCompleted, "")
				equal(t, "result", r.task(m.ID, "").Result, "fresh")
				if _, err := os.Stat(filepath.Join(r.dir, "stale.txt")); err == nil {
					t.Error("the stale attempt has written a file")
				}
			})
		})
	}
}
