package orchestrator

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"centurion"
	"centurion/acp"
	"centurion/acp/acptest"
	"centurion/agents"
	"centurion/event"
	"centurion/guard"
	"centurion/permission"
	"centurion/provider/scripted"
)

// helper is a program in this process that does what a script says, each time that it is started.
type helper struct {
	io.Reader
	io.Writer
	group guard.Group
	close func()
}

func startHelper(script string) *helper {
	toAgent, ours := io.Pipe()
	theirs, fromAgent := io.Pipe()
	h := &helper{Reader: theirs, Writer: ours}
	h.close = sync.OnceFunc(func() { _, _, _ = ours.Close(), theirs.Close(), toAgent.Close() })
	a := &acptest.Agent{Script: script}
	h.group.Go("agent", func() error {
		a.Serve(toAgent, fromAgent)
		return fromAgent.Close()
	})
	return h
}

func (h *helper) Close() error { h.close(); return nil }
func (h *helper) Kill()        { h.close() }
func (h *helper) Wait() error  { return h.group.Wait() }

// helped is a mission whose commander hands its work to a program from outside.
func helped(r *rig, starts ...string) centurion.Mission {
	r.t.Helper()
	r.cfg.Cast = ownCast(r.t.(*testing.T), agents.Definition{Name: "helper", Mode: "subagent", Description: "helps", Prompt: "You help.", Model: "outside/helper", Source: "h.md"})
	r.restart()
	known := r.host.cfg().Model
	begun := 0
	program := &acp.Program{Name: "helper", Command: "./helper", Start: func(context.Context, centurion.Place) (acp.Process, error) {
		begun++
		if script := starts[min(begun, len(starts))-1]; script != "" {
			return startHelper(script), nil
		}
		return nil, &centurion.Error{Kind: centurion.KindConfig, Msg: "it cannot be started"}
	}}
	r.cfg.Model = func(name string) (Model, error) {
		if strings.HasPrefix(name, "outside/") {
			return Model{Ref: centurion.ModelRef{Provider: "outside", ID: "helper"}, Outside: program}, nil
		}
		return known(name)
	}
	r.restart()
	return r.start(centurion.MissionOptions{Ask: "ask"})
}

// ORCH-117: a program from outside that says nothing has stalled, is told of and begun again; what it is in the middle of may take its time.
func TestOutsiderStalls(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(handTo("helper", "", "help")), say("I wait"))}, func(r *rig) {
		m := helped(r, "on \ncall c1 execute build\nsleep 9m\ncall c1 execute build\nsleep 9m\ndone c1 built\nsay one\nsleep 4m\nsay more\nhang\n", "on \nsay two\n")
		l := r.live(m.ID)
		time.Sleep(6 * time.Minute)
		task := r.tasks(m.ID)[0]
		s := r.state(task.ID)
		equal(t, "while it builds", string(s.Activity)+" "+string(s.Waits), "busy model")
		equal(t, "stalls while it builds", r.count(m.ID, centurion.EventTaskStalled), 0)
		r.is(l.settled(), centurion.MissionCompleted, "")
		stalls := r.events(m.ID, centurion.EventTaskStalled)
		if len(stalls) != 1 {
			t.Fatalf("%d stalls", len(stalls))
		}
		d, err := event.Decode[event.StallData](stalls[0])
		equal(t, "it was last at", d.Last, "a call of build")
		equal(t, "silent for", d.SilentMS/60_000, 5)
		equal(t, "minutes until then", int(stalls[0].Time.Sub(task.Started.Time)/time.Minute), 27)
		if task = r.tasks(m.ID)[0]; err != nil || task.Status != centurion.TaskCompleted || task.Result != "two" {
			t.Errorf("%+v, %v", task, err)
		}
	})
}

// A program from outside that asks for a permission is asked about as our own tools are, and waits for the person as long as that takes.
func TestOutsiderAsks(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(handTo("helper", "", "help")), say("I wait"))}, func(r *rig) {
		r.cfg.Rules = func(string) []permission.Level { return rules(permission.Ask) }
		m := helped(r, "on \npermit execute build | {\"rawInput\": {\"command\": [\"go\", \"build\"]}}\npermit think muse\nsay made\n")
		l := r.live(m.ID)
		var ask string
		for _, a := range r.waitFor(m.ID, 1) { // to hand it out
			ask = a.ID
		}
		r.answer(ask, "once")
		time.Sleep(time.Second)
		open := r.waitFor(m.ID, 1)
		equal(t, "asked", open[0].Permission+" "+strings.Join(open[0].Patterns, " "), "bash go build")
		task := r.tasks(m.ID)[0]
		equal(t, "its state", string(r.state(task.ID).Waits), "person")
		time.Sleep(10 * time.Minute)
		equal(t, "stalls while it asks", r.count(m.ID, centurion.EventTaskStalled), 0)
		r.answer(open[0].ID, "once")
		r.is(l.settled(), centurion.MissionCompleted, "")
		task = r.tasks(m.ID)[0]
		equal(t, "its answer", task.Result, "[build : yes][muse: yes]made")
	})
}

// How a turn of a program from outside ends: cut off by a limit of its own, refused, or broken; one that cannot be started fails its task with why.
func TestOutsiderEnds(t *testing.T) {
	for name, c := range map[string]struct {
		starts []string
		status centurion.TaskStatus
		want   string // the result or why it failed
		finish string
	}{
		"at its limit":      {[]string{"on \nsay one\nstop max_tokens\n", "on \nsay two\n"}, centurion.TaskCompleted, "", centurion.FinishLength},
		"refused":           {[]string{"on \nsay no\nstop refusal\n"}, centurion.TaskFailed, "the agent refused to answer", centurion.FinishError},
		"broken off":        {[]string{"on \nsay one\nstop cancelled\n", "on \nsay two\n"}, centurion.TaskCompleted, "two", centurion.FinishError},
		"it cannot start":   {[]string{""}, centurion.TaskFailed, "it cannot be started", centurion.FinishError},
		"its process ended": {[]string{"on \nsay one\ndie 1\n", "on \nsay two\n"}, centurion.TaskCompleted, "two", centurion.FinishError},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": steps(do(handTo("helper", "", "help")), say("I wait"))}, func(r *rig) {
				m := r.live(helped(r, c.starts...).ID).settled()
				task := r.tasks(m.ID)[0]
				got := task.Result
				if task.Error != nil {
					got = task.Error.Message
				}
				equal(t, name+": the first turn", strings.Split(r.finishes(task.Session), " ")[0], c.finish)
				if task.Status != c.status || c.want != "" && got != c.want {
					t.Errorf("%s: %s, %q", name, task.Status, got)
				}
			})
		})
	}
}

// The work of a program from outside is checked when its turn is over: then nothing of it writes any more.
func TestOutsiderIsChecked(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(plans("- [ ] T1 One")), do(handTo("helper", "T1", "help")), say("I wait"), say("well"))}, func(r *rig) {
		r.is(r.live(helped(r, "on \nsay made\n").ID).settled(), centurion.MissionCompleted, "")
	})
}

// A program from outside whose attempt a newer one has taken over from changes nothing more: not by us, and not by itself with our leave.
func TestOutsiderIsFencedOff(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(handTo("helper", "", "help")), say("I wait"))}, func(r *rig) {
		m := helped(r, "on \nsleep 1m\nwrite stale.txt x\npermit execute build | {\"rawInput\": {\"command\": \"build\"}}\nsay stale\n", "on \nsay fresh\n")
		l := r.live(m.ID)
		time.Sleep(time.Second)
		task := r.tasks(m.ID)[0]
		r.host.running(m.ID).st.Fences.Raise(task.ID, 2)
		time.Sleep(2 * time.Minute)
		r.another(m.ID, task.ID)
		r.is(l.settled(), centurion.MissionCompleted, "")
		equal(t, "its answer", r.tasks(m.ID)[0].Result, "fresh")
		refused := strings.Join(r.refusals(m.ID, task.ID), "; ")
		has(t, refused, "1: a call of write; 1: a call of bash")
		if _, err := os.Stat(filepath.Join(r.dir, "stale.txt")); err == nil {
			t.Error("the stale attempt has written a file")
		}
	})
}

// Where all work in one directory, a program from outside writes no file of another item, neither by us nor by itself with our leave.
func TestOutsiderKeepsOffFiles(t *testing.T) {
	plan := plans("- [ ] T1 One\n  - files: one.txt\n- [ ] T2 Two\n  - files: two.txt")
	bubble(t, map[string]script{
		"commander": steps(do(plan), do(handTo("helper", "T1", "help"), work("T2", "x")), say("I wait"), say("well")),
		"worker":    func(scripted.Request) scripted.Answer { return after(time.Minute, say("two")) },
	}, func(r *rig) {
		m := helped(r, "on \nsleep 10s\nwrite two.txt x\npermit edit change | {\"locations\": [{\"path\": \"$CWD/two.txt\"}]}\nwrite one.txt x\nsay made\n")
		r.is(r.live(m.ID).settled(), centurion.MissionCompleted, "")
		has(t, r.tasks(m.ID)[0].Result, "[write: two.txt belongs to item T2", "[change : no]")
		equal(t, "one.txt", r.read("one.txt"), "x")
		if _, err := os.Stat(filepath.Join(r.dir, "two.txt")); err == nil {
			t.Error("it has written a file of another item")
		}
	})
}

// A program from outside that counts its cost from its own start has cost what both of its processes did.
func TestOutsiderCountsAnew(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(handTo("helper", "", "help")), say("I wait"))}, func(r *rig) {
		m := helped(r, "load\non \ncost 5\nsay one\nstop max_tokens\n", "load\non \ncost 1\nsay two\n")
		r.is(r.live(m.ID).settled(), centurion.MissionCompleted, "")
		equal(t, "its cost", r.tasks(m.ID)[0].Usage.USD, 6)
	})
}

// What a program from outside has written by itself in its checkout belongs to its task, and others are told.
func TestOutsiderHoldsWhatItWrote(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"a.txt": "a\n"}, map[string]script{"commander": steps(do(handTo("helper", "", "help")), say("I wait"))})
	m := helped(r, "on \nsh echo x > made.txt\nsay made\n")
	r.is(r.live(m.ID).settled(), centurion.MissionCompleted, "")
	equal(t, "its files", strings.Join(r.tasks(m.ID)[0].Claims, " "), "made.txt")
	equal(t, "on the branch", r.branchHas(m.ID, "made.txt"), "x")
}

// A delegation that is repeated finds its task, and starts nothing; that task has one goroutine and one conversation.
func TestSameCallIsLaunchedOnce(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait"), say("well")),
		"worker":    func(scripted.Request) scripted.Answer { return after(time.Minute, say("made")) },
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(30 * time.Second)
		one := r.tasks(m.ID)[0]
		again := one
		again.ID, again.Status, again.Session = "tsk_again", "", ""
		got, err := r.host.running(m.ID).tasks.Record(again, nil)
		if err != nil || got.ID != one.ID {
			t.Errorf("%+v, %v", got, err)
		}
		r.is(l.settled(), centurion.MissionCompleted, "")
		equal(t, "tasks", len(r.tasks(m.ID)), 1)
		equal(t, "attempts", r.tasks(m.ID)[0].Attempt, 1)
		equal(t, "requests", len(r.requests("worker")), 1)
	})
}
