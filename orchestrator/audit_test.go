package orchestrator

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/pulse"
	"centurion/orchestrator/state"
	"centurion/provider"
	"centurion/provider/scripted"
	"centurion/store"
)

// ORCH-117, ORCH-140: unless it is configured, a hang is found after 5 minutes, and an attempt may work for an hour.
func TestJudgedByDefault(t *testing.T) {
	c := unbegun(t).h.cfg()
	equal(t, "limits", c.agentConfig().Limits, pulse.Limits{Silent: 5 * time.Minute, Worked: time.Hour})
}

// ORCH-35, ORCH-36, ORCH-138: the poll starts with the first task, looks every second, and ends with the last one. Where
// no task is there is no poll.
func TestPoll(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(after(time.Minute, do(work("", "x"))), after(20*time.Second, say("I wait")), after(time.Minute, say("done"))),
		"worker":    steps(after(30*time.Second, say("made"))),
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(59 * time.Second)
		equal(t, "polls before the first task", r.host.auditor.Polls(), 0)
		time.Sleep(11 * time.Second)
		if n := r.host.auditor.Polls(); n < 9 || n > 10 {
			t.Errorf("%d polls in the ten seconds of a task", n)
		}
		r.is(l.settled(), centurion.MissionCompleted, "")
		if n := r.host.auditor.Polls(); n < 29 || n > 31 {
			t.Errorf("%d polls for a task of half a minute in a mission of three", n)
		}
		equal(t, "tasks that are looked at", r.host.auditor.Living(), 0)
	})
}

// ORCH-117, ORCH-121, ORCH-139: a session that is silent for ten minutes in a tool, or that is silent after it has had output, is
// neither completed nor failed nor cut off.
func TestSilentIsBusy(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker": steps(do(call("bash", args{"command": "build 9m59s", "timeout": 600_000})),
			scripted.Answer{Say: "looks done", Stall: time.Minute, Calls: []scripted.Call{call("ls", args{})}}, say("made")),
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		for range 10 {
			time.Sleep(time.Minute)
			if one := r.task(m.ID, ""); one.Status != centurion.TaskRunning {
				t.Fatalf("the busy task is %s (%s)", one.Status, one.Reason)
			}
		}
		r.is(l.settled(), centurion.MissionCompleted, "")
		equal(t, "result", r.task(m.ID, "").Result, "made")
		equal(t, "stalls", r.count(m.ID, centurion.EventTaskStalled), 0)
	})
}

// hanging is a model whose first answers never come, as from a provider that is not heard of any more.
type hanging struct {
	*provider.Client
	agent string
	times atomic.Int64 // that are left
}

func (h *hanging) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	if (req.Parent != "") != (h.agent == "worker") || h.times.Add(-1) < 0 {
		return h.Client.Stream(ctx, req)
	}
	return func(yield func(provider.Delta, error) bool) {
		<-ctx.Done()
		yield(provider.Delta{}, context.Cause(ctx))
	}
}

// hangs makes the answers to an agent hang so many times.
func (r *rig) hangs(agent string, times int64) {
	h := &hanging{Client: provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: r.http}), agent: agent}
	h.times.Store(times)
	r.cfg.Model = func(string) (Model, error) { return Model{Client: h, Ref: ref}, nil }
	r.restart()
}

// A mission that has ended in the store is not told to have stalled, whatever its last turn still waits for; a living one is.
func TestStallOfAnEndedMission(t *testing.T) {
	for status, told := range map[centurion.MissionStatus]int{centurion.MissionCancelled: 0, centurion.MissionRunning: 1} {
		t.Run(string(status), func(t *testing.T) {
			bubble(t, nil, func(r *rig) {
				rec, _ := r.past(status, 0, nil)
				m := newMission(r.ctx, r.host, rec)
				defer m.st.End(nil)
				c := r.conversation(m, nil, 1)
				ended := make(chan error, 1)
				c.Pulse.Begin(func(cause error) { ended <- cause })
				time.Sleep(6 * time.Minute)
				c.Examine()
				if err := <-ended; centurion.KindOf(err) != centurion.KindStall {
					t.Errorf("its turn ended with %v", err)
				}
				equal(t, "told", r.count(rec.ID, centurion.EventTaskStalled), told)
			})
		})
	}
}

// ORCH-36: a session without any sign of life for five minutes is told of, cut off and tried again after five seconds, also
// the mission's own, for which nobody polls. After three times it has failed.
func TestStall(t *testing.T) {
	for _, test := range []struct {
		agent string
		times int64
		want  centurion.TaskStatus
	}{{"worker", 2, centurion.TaskCompleted}, {"worker", 9, centurion.TaskFailed}, {"commander", 1, centurion.TaskCompleted}} {
		t.Run(test.agent+" "+string(test.want), func(t *testing.T) {
			bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait"))}, func(r *rig) {
				r.hangs(test.agent, test.times)
				began := time.Now()
				m := r.start(centurion.MissionOptions{})
				l := r.live(m.ID)
				r.is(l.settled(), centurion.MissionCompleted, "")
				one := r.task(m.ID, "")
				equal(t, "task", one.Status, test.want)
				stalls := r.events(m.ID, centurion.EventTaskStalled)
				times := min(test.times, 4)
				equal(t, "stalls", len(stalls), int(times))
				want := time.Duration(times)*5*time.Minute + time.Duration(min(times, 3))*5*time.Second
				if took := one.Ended.Sub(began); took < want || took > want+10*time.Second {
					t.Errorf("it took %s, want %s", took, want)
				}
				d, err := event.Decode[event.StallData](stalls[0])
				if err != nil || d.Last != "a request to the model" || d.SilentMS < 300_000 || (stalls[0].Task == one.ID) != (test.agent == "worker") {
					t.Errorf("told: %+v of %q, %v", d, stalls[0].Task, err)
				}
				if test.want == centurion.TaskFailed && one.Error.Kind != centurion.KindStall {
					t.Errorf("it failed with %+v", one.Error)
				}
			})
		})
	}
}

// thinking is a model that says for nine minutes nothing but that it lives.
type thinking struct{ *provider.Client }

func (m thinking) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		for range 18 {
			time.Sleep(30 * time.Second)
			if req.Alive(); ctx.Err() != nil {
				yield(provider.Delta{}, context.Cause(ctx))
				return
			}
		}
		m.Client.Stream(ctx, req)(yield)
	}
}

// ORCH-117: who thinks for long and says that it lives has not stalled.
func TestKeptAlive(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": steps(say("made"))}, func(r *rig) {
		client := thinking{provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: r.http})}
		r.cfg.Model = func(string) (Model, error) { return Model{Client: client, Ref: ref}, nil }
		r.restart()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "stalls", r.count(m.ID, centurion.EventTaskStalled), 0)
	})
}

// deaf is a shell that does not end a command at its limit.
type deaf struct{ *shell }

func (d deaf) Run(ctx context.Context, c centurion.Command) (centurion.CommandResult, error) {
	if c.Script == "hang" {
		time.Sleep(time.Hour) // until other commands have ended, which is no part of its limit
		c.Begun()
		<-ctx.Done()
		return centurion.CommandResult{ExitCode: -1}, context.Cause(ctx)
	}
	return d.shell.Run(ctx, c)
}

// ORCH-117: a tool call that outlives its own limit is a stall, a minute after it; what it waited before is no part of that.
func TestToolBeyondItsLimit(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker":    steps(do(call("bash", args{"command": "hang", "timeout": 120_000})), say("made")),
	}, func(r *rig) {
		r.cfg.Runner, r.cfg.SessionTTL = deaf{r.shell}, 24*time.Hour
		r.restart()
		began := time.Now()
		m := r.mission(centurion.MissionOptions{})
		one := r.task(m.ID, "")
		equal(t, "task", one.Status, centurion.TaskCompleted)
		equal(t, "stalls", r.count(m.ID, centurion.EventTaskStalled), 1)
		if took := one.Ended.Sub(began).Round(10 * time.Second); took != time.Hour+3*time.Minute+10*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// ORCH-140: an attempt that works for an hour fails with the kind timeout, and its parent is told. What it waits for a
// person does not count.
func TestSessionTTL(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "works"), work("", "waits")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "works") {
				return minutes(1000, "never")(q)
			}
			return steps(bash("build 1s"), say("made"))(q)
		},
	}, func(r *rig) {
		r.asksForShell()
		m := r.start(centurion.MissionOptions{Ask: "ask"})
		began := time.Now()
		l := r.live(m.ID)
		time.Sleep(90 * time.Minute)
		r.answer(r.oneAsk(m.ID).ID, "once")
		r.is(l.settled(), centurion.MissionCompleted, "")
		tasks := r.tasks(m.ID)
		old, patient := tasks[0], tasks[1]
		if old.Status != centurion.TaskFailed || old.Error == nil || old.Error.Kind != centurion.KindTimeout {
			t.Errorf("the task that worked for an hour is %s: %+v", old.Status, old.Error)
		}
		if took := old.Ended.Sub(began); took < time.Hour || took > time.Hour+5*time.Second {
			t.Errorf("it ended after %s", took)
		}
		equal(t, "the task that waited", patient.Status, centurion.TaskCompleted)
		equal(t, "stalls", r.count(m.ID, centurion.EventTaskStalled), 0)
		equal(t, "told", r.told(m.Session, "as long as one attempt may"), 1)
	})
}

// ORCH-36: a task that is recorded as running while nobody works on it is launched anew.
func TestForgottenTask(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "lost") {
				return say("found")
			}
			return minutes(2, "made")(q)
		},
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(time.Second)
		lost := centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: m.ID, Parent: m.Session, Call: "none", Agent: "worker",
			Title: "lost", Number: 7, Prompt: "lost", Created: centurion.Now()}
		r.update(func(tx *store.Tx) error {
			if err := tx.PutTask(&lost); err != nil {
				return err
			}
			if _, err := state.MoveTask(tx, lost.ID, centurion.TaskQueued, nil); err != nil {
				return err
			}
			_, err := state.MoveTask(tx, lost.ID, centurion.TaskRunning, nil)
			return err
		})
		time.Sleep(30 * time.Second)
		got, err := r.store.Task(r.ctx, lost.ID)
		if err != nil || got.Status != centurion.TaskCompleted || got.Result != "found" {
			t.Errorf("the lost task is %s: %q, %v", got.Status, got.Result, err)
		}
		if !slices.ContainsFunc(r.events(m.ID, centurion.EventTaskUpdated), func(e centurion.Event) bool {
			return e.Task == lost.ID && strings.Contains(string(e.Data), "nobody worked on it")
		}) {
			t.Error("that nobody worked on it was not told")
		}
		r.is(l.settled(), centurion.MissionCompleted, "")
	})
}
