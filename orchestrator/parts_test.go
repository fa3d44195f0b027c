package orchestrator

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/orchestrator/control"
	"centurion/provider/scripted"
	"centurion/session"
	"centurion/tools"
)

// OPAL-6, OPAL-7, OPAL-9: what an agent needs is there before it asks its model for the first time, after a crash as at the
// beginning: its conversation in the store, its tools, and the children that it had.
func TestStartOrder(t *testing.T) {
	var r *rig
	var id string
	var found []string
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			s, err := r.host.Control.State(r.ctx, id)
			if err != nil || !slices.Equal(s.Tools, q.Tools()) || len(s.Tools) < 5 {
				t.Errorf("its tools are %q, and it tells its model of %q: %v", s.Tools, q.Tools(), err)
			}
			messages, err := r.store.Messages(r.ctx, s.Session)
			if err != nil || len(messages) == 0 || messages[0].Text() != q.First() {
				t.Errorf("the store has %d messages when the model is asked %q: %v", len(messages), q.First(), err)
			}
			alive := 0
			if m := r.host.running(id); m != nil {
				alive = len(m.st.Runs())
			}
			found = append(found, fmt.Sprint(s.Activity, " ", s.Waits, " ", alive))
			return steps(do(work("", "x"), onward), bash("build 5m"), say("I wait"))(q)
		},
		"worker": minutes(9, "made"),
	}, func(rg *rig) {
		r = rg
		id = r.start(centurion.MissionOptions{}).ID
		l := r.live(id)
		time.Sleep(time.Minute)
		l.goAway(byKill)
		before := len(found)
		r.is(r.run(id), centurion.MissionCompleted, "")
		equal(t, "at the first request", found[0], "busy model 0")
		equal(t, "at the first one after the kill", found[before], "busy model 1")
		equal(t, "sessions of workers", len(r.tasks(id)), 1)
	})
}

// OPAL-21, OPAL-22, OPAL-23: by the id of a session, and by nothing else, one finds its tool calls, its children and its
// conversation, and nothing of another session.
func TestPartsByID(t *testing.T) {
	goal := func(q scripted.Request) string {
		if strings.Contains(texts(q), "second") {
			return "second"
		}
		return "first"
	}
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			return steps(do(work("", goal(q)), onward), do(withID("run "+goal(q), call("bash", args{"command": "build 5m"}))), say("I wait"))(q)
		},
		"worker": func(q scripted.Request) scripted.Answer {
			return steps(do(withID("look "+goal(q), call("bash", args{"command": "build 9m"}))))(q)
		},
	}, func(r *rig) {
		var lives []*life
		missions := map[string]centurion.Mission{}
		for _, name := range []string{"first", "second"} {
			m, err := r.host.Start(r.ctx, name, centurion.MissionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			missions[name] = m
			lives = append(lives, r.live(m.ID))
		}
		time.Sleep(time.Minute)
		for name, m := range missions {
			s := r.state(m.Session)
			if len(s.Calls) != 1 || !strings.HasPrefix(s.Calls[0].ID, "run "+name) {
				t.Errorf("calls of the %s: %+v", name, s.Calls)
			}
			task := r.tasks(m.ID)[0]
			if len(s.Children) != 1 || s.Children[0].Task != task.ID || s.Children[0].Session != task.Session || s.Children[0].Title == "" {
				t.Errorf("children of the %s: %+v", name, s.Children)
			}
			c := r.state(task.Session)
			if len(c.Calls) != 1 || !strings.HasPrefix(c.Calls[0].ID, "look "+name) || len(c.Children) != 0 || c.Mission != m.ID {
				t.Errorf("the child of the %s: %+v", name, c)
			}
			for of, id := range map[string]string{"its": s.Session, "its child's": c.Session} {
				tree, err := r.store.Tree(r.ctx, id)
				if err != nil || len(tree.Messages) < 2 || tree.Session.ID != id {
					t.Errorf("%s conversation, of the %s: %d messages, %v", of, name, len(tree.Messages), err)
				}
				for _, msg := range tree.Messages {
					if msg.SessionID != id {
						t.Errorf("%s conversation, of the %s, has a message of %s", of, name, msg.SessionID)
					}
				}
			}
		}
		if _, err := r.host.Control.State(r.ctx, "ses_first"); centurion.KindOf(err) != centurion.KindNotFound {
			t.Errorf("of no session: %v", err)
		}
		for _, l := range lives {
			r.is(l.wait(), centurion.MissionCompleted, "")
		}
	})
}

// OPAL-32: there are four ways to talk to a session, none of which holds it up. Who asks how it stands gets an answer at
// once; what is sent to it is stored at once and read later; what it does is told to all who watch; and what its children do
// is told with it.
func TestWaysToTalk(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(withID("c1", work("", "x")), withID("c2", call("bash", args{"command": "build 1m"}))), say("noted"),
			do(withID("c9", call("mission_complete", args{"summary": "ok"})))),
		"worker": minutes(2, "made"),
	}, func(r *rig) {
		var asked control.State
		all := r.follow(t, func(m centurion.Mission) {
			time.Sleep(30 * time.Second)
			asked = r.state(m.ID)
			began := time.Now()
			r.send(m.ID, "0/", "also look at y", false)
			equal(t, "sending takes", time.Since(began), 0)
			equal(t, "read at once", len(r.requests("commander")), 1)
			equal(t, "it waits to be read", r.state(m.ID).Queued, 1)
		})
		equal(t, "asked", fmt.Sprint(asked.Activity, " ", asked.Waits, " ", len(asked.Calls)), "busy tool 1")
		has(t, texts(r.requests("commander")[1]), "tool:", "also look at y")
		sameTrace(t, all[1:], all[0].trace...)
		has(t, strings.Join(all[0].trace, "\n"), "tool_execution_start bash c2", "tool_execution_end bash c2", `turn_end "noted"`,
			"[c1 true] agent_end \"made\"", "mission.completed")
	})
}

// OPAL-82: a tool call is handed the directory, the session, the mission, the task and the agent that it belongs to, and
// nothing by which it could wait for its own session.
func TestCallSurroundings(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), bash("hook"), say("I wait")),
		"worker":    steps(bash("hook"), say("made")),
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		seen := map[string]tools.Call{}
		r.hook(func(context.Context, string) {
			for _, c := range r.host.running(m.ID).sessions.All() {
				if len(c.Live.Running()) > 0 {
					seen[c.Agent.Name] = c.Config().Call
				}
			}
		})
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
		task := r.tasks(m.ID)[0]
		for agent, want := range map[string]string{"commander": m.ID + "  commander", "worker": m.ID + " " + task.ID + " worker"} {
			c, ok := seen[agent]
			if got := c.Mission + " " + c.Task + " " + c.Agent; !ok || got != want || c.Workspace != r.ws || c.Runner == nil || c.Seen == nil || c.Gate == nil {
				t.Errorf("a call of the %s belongs to %q: %+v", agent, got, c)
			}
		}
		if seen["worker"].Delegator != nil || seen["commander"].Delegator == nil || seen["worker"].Seen == seen["commander"].Seen {
			t.Error("the two hold each other's")
		}
	})
}

// OPAL-92: the tools that read, run a command and write work side by side in one answer, under each policy that lets them.
func TestReferenceTools(t *testing.T) {
	for _, p := range []session.Policy{session.PolicyAuto, session.PolicyConcurrent, session.PolicySequential} {
		t.Run(string(p), func(t *testing.T) {
			bubble(t, map[string]script{"commander": steps(do(
				call("read", args{"filePath": "a.txt"}),
				call("bash", args{"command": "build 1m"}),
				call("write", args{"filePath": "b.txt", "content": "written\n"}),
			), say("done"))}, func(r *rig) {
				r.write("a.txt", "hello\n")
				r.cfg.Policy = p
				r.restart()
				m := r.start(centurion.MissionOptions{})
				l := r.live(m.ID)
				time.Sleep(30 * time.Second)
				synctest.Wait()
				_, err := os.Stat(filepath.Join(r.dir, "b.txt"))
				equal(t, "it writes while the command runs", err == nil, p == session.PolicyConcurrent)
				r.is(l.settled(), centurion.MissionCompleted, "")
				asked := r.requests("commander")
				equal(t, "requests", len(asked), 2)
				has(t, strings.Join(asked[1].Results(), "\n"), "hello", "b.txt")
				equal(t, "results", len(asked[1].Results()), 3)
				equal(t, "written", r.read("b.txt"), "written\n")
				equal(t, "the command ran", r.shell.times("build 1m"), 1)
				for _, tool := range []string{"read", "bash", "write"} {
					if s := r.part(m.Session, tool, 0).State; s.Status != centurion.ToolCompleted {
						t.Errorf("%s: %s %s", tool, s.Status, s.Error)
					}
				}
			})
		})
	}
}
