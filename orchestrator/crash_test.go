package orchestrator

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/provider"
	"centurion/provider/scripted"
	"centurion/session"
)

// fragile is a model that crashes after an answer which says «crash now».
type fragile struct{ session.Model }

func (f fragile) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		for d, err := range f.Model.Stream(ctx, req) {
			if strings.Contains(d.Text, "crash now") {
				panic("the model has crashed")
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func crashingModel(r *rig) func(string) (Model, error) {
	client := provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: r.http})
	return func(string) (Model, error) {
		return Model{Client: fragile{client}, Ref: ref, Price: &centurion.Price{Input: 1, Output: 10}}, nil
	}
}

// OPAL-75, OPAL-79, C-22: a Commander's loop that crashes, in a turn or outside of one, begins anew with its history; four
// crashes within five seconds end the mission, which says so and can be resumed. Crashes that lie further apart do not.
func TestLoopCrashes(t *testing.T) {
	for name, test := range map[string]struct {
		times  int64
		apart  time.Duration
		status centurion.MissionStatus
		begun  int
	}{
		"three times":           {3, 0, centurion.MissionCompleted, 3},
		"four times":            {4, 0, centurion.MissionFailed, 3},
		"six times, far apart":  {6, 3 * time.Second, centurion.MissionCompleted, 6},
		"four times, too close": {4, 1500 * time.Millisecond, centurion.MissionFailed, 3},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": func(q scripted.Request) scripted.Answer {
				if strings.Contains(texts(q), "tool:") {
					return after(test.apart, scripted.Answer{Error: &scripted.Error{Status: 404, Message: "no such model"}})
				}
				return bash("build 1m")
			}}, func(r *rig) {
				var left atomic.Int64
				r.cfg.Fallback = func(string, string) []string { // it is asked outside of the session's own care
					if left.Add(-1) >= 0 {
						panic("the loop has crashed")
					}
					return nil
				}
				r.restart()
				m := r.start(centurion.MissionOptions{})
				left.Store(test.times)
				m = r.run(m.ID)
				if test.status == centurion.MissionFailed {
					r.is(m, test.status, "4 times within 5s")
					has(t, m.Reason, "the loop has crashed", "centurion resume "+m.ID)
				} else if strings.Contains(m.Reason, "crashed") {
					t.Errorf("it did not get over it: %s", m.Reason)
				}
				begun := 0
				for _, e := range r.events(m.ID, centurion.EventMissionUpdated) {
					if d, err := event.Decode[event.MissionData](e); err == nil && strings.HasPrefix(d.Reason, "begun anew after a crash") {
						begun++
					}
				}
				equal(t, "begun anew", begun, test.begun)
				equal(t, "the command ran", r.shell.times("build 1m"), 1)
			})
		})
	}
}

// OPAL-75: what a crash has left half done in memory is forgotten: the loop begins anew with what is stored.
func TestCrashForgetsWhatIsNotStored(t *testing.T) {
	bubble(t, map[string]script{"commander": func(q scripted.Request) scripted.Answer {
		if q.Number == 2 {
			return scripted.Answer{Error: &scripted.Error{Status: 404, Message: "no such model"}}
		}
		if q.Number == 1 {
			return bash("build 1m")
		}
		return say("done")
	}}, func(r *rig) {
		var id string
		crashed := false
		r.cfg.Fallback = func(string, string) []string {
			if id != "" && !crashed {
				crashed = true
				r.host.running(id).loop.Root.Sess.Add(centurion.Message{ID: "msg_x", Role: centurion.RoleUser,
					Parts: []centurion.Part{{Type: centurion.PartText, Text: "half done"}}})
				panic("the loop has crashed")
			}
			return nil
		}
		r.restart()
		m := r.start(centurion.MissionOptions{})
		id = m.ID
		r.is(r.run(id), centurion.MissionCompleted, "")
		asked := r.requests("commander")
		if len(asked) < 3 {
			t.Fatalf("%d requests", len(asked))
		}
		has(t, texts(asked[2]), "build it", "tool:")
		if strings.Contains(texts(asked[2]), "half done") {
			t.Errorf("what is not stored is sent:\n%s", texts(asked[2]))
		}
	})
}

// OPAL-5, OPAL-19, OPAL-20, OPAL-76, OPAL-80: when what runs the tools dies, the agent begins anew and has it again; the call is not
// run a second time unseen, and what it delegated lives on.
func TestToolRunnerCrashes(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), bash("hook"), bash("build 1s"), say("I wait")),
		"worker":    minutes(3, "made"),
	}, func(r *rig) {
		var ran atomic.Int64
		r.hook(func(context.Context, string) {
			ran.Add(1)
			runtime.Goexit() // no panic that could be caught where the tool runs
		})
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "ran", ran.Load(), 1)
		got := r.results(m.ID, "bash")
		has(t, got[0], "interrupted", "effects are unknown")
		equal(t, "the next call ran", r.shell.times("build 1s"), 1)
		task := r.tasks(m.ID)[0]
		equal(t, "the task", task.Result, "made")
		equal(t, "its attempts", task.Attempt, 1)
	})
}

// OPAL-58, OPAL-59, OPAL-60, OPAL-73: a tool that crashes is that call's error, its neighbours in the answer are not
// touched, and the agent goes on.
func TestToolCrashes(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(call("bash", args{"command": "panic"}), call("ls", args{}), call("bash", args{"command": "build 1s"})), say("done"))}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		has(t, r.results(m.ID, "bash")[0], "crashed: the shell has crashed")
		equal(t, "the other ran", r.shell.times("build 1s"), 1)
		equal(t, "requests", len(r.requests("commander")), 2)
		equal(t, "begun anew", r.count(m.ID, centurion.EventProviderRetry), 0)
	})
}

// OPAL-10, OPAL-74, OPAL-89, C-22, IKI-85: a child that crashes while its parent waits for it is an error of the parent's call, at
// once and without another try; the parent goes on.
func TestChildCrashes(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(call("delegate_task", args{"agent": "worker", "description": "d", "prompt": "x", "background": false})), say("done without it")),
		"worker":    func(scripted.Request) scripted.Answer { return say("crash now") },
	}, func(r *rig) {
		r.cfg.Model = crashingModel(r)
		r.restart()
		began := time.Now()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "requests of the child", len(r.requests("worker")), 1)
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it took %s", took)
		}
		has(t, r.results(m.ID, "delegate_task")[0], "crashed")
		equal(t, "task", r.tasks(m.ID)[0].Status, centurion.TaskFailed)
		equal(t, "requests of the parent", len(r.requests("commander")), 2)
	})
}

// OPAL-77: what surrounds a mission's loop crashes: that mission has failed, says why, and is no longer held to be at work;
// its task has ended, and its neighbour goes on.
func TestMissionCrashes(t *testing.T) {
	bubble(t, map[string]script{"commander": func(scripted.Request) scripted.Answer { return after(time.Minute, say("done")) }}, func(r *rig) {
		var crash atomic.Bool
		model := crashingModel(r)
		r.cfg.Model = func(name string) (Model, error) {
			if crash.Load() {
				panic("the models have crashed")
			}
			return model(name)
		}
		r.restart()
		one, two := r.start(centurion.MissionOptions{}), r.start(centurion.MissionOptions{})
		l := r.live(one.ID)
		time.Sleep(time.Second)
		crash.Store(true)
		lost, err := r.host.Run(r.ctx, two.ID)
		if err != nil || lost.Status != centurion.MissionFailed || !strings.Contains(lost.Reason, "the models have crashed") {
			t.Errorf("%s (%s), %v", lost.Status, lost.Reason, err)
		}
		equal(t, "at work", len(r.host.Running()), 1)
		crash.Store(false)
		r.is(l.settled(), centurion.MissionCompleted, "")
		again, err := r.host.Run(r.ctx, two.ID)
		if err != nil || again.Status != centurion.MissionCompleted {
			t.Errorf("resumed: %s, %v", again.Status, err)
		}
	})
}

// OPAL-2, OPAL-77: a crash while the end of a mission is seen to ends that mission alone, too, and is its reason.
func TestMissionEndCrashes(t *testing.T) {
	bubble(t, map[string]script{"commander": func(scripted.Request) scripted.Answer { return after(time.Minute, say("done")) }}, func(r *rig) {
		var full atomic.Bool
		model := crashingModel(r)
		r.cfg.Model = func(name string) (Model, error) {
			if full.Load() {
				return Model{}, &centurion.Error{Kind: centurion.KindDisk, Msg: "the disk is full"}
			}
			return model(name)
		}
		r.restart()
		one, two := r.start(centurion.MissionOptions{}), r.start(centurion.MissionOptions{})
		l := r.live(one.ID)
		time.Sleep(time.Second)
		full.Store(true)
		m, _, err := r.host.enter(r.ctx, two.ID)
		if err != nil {
			t.Fatal(err)
		}
		var lost centurion.Mission
		err = guard.Call("mission", func() (err error) {
			lost, err = m.whole(func(error) bool { panic("the wait has crashed") })
			return err
		})
		r.host.leave(m)
		if err != nil || lost.Status != centurion.MissionFailed || !strings.Contains(lost.Reason, "the wait has crashed") {
			t.Errorf("%s (%s), %v", lost.Status, lost.Reason, err)
		}
		equal(t, "at work", len(r.host.Running()), 1)
		r.is(l.settled(), centurion.MissionCompleted, "")
	})
}

// OPAL-78: whoever takes what is published crashes at every delta: sessions do not notice. A hub whose subscriber crashes
// serves the others, and who subscribes anew is served.
func TestPublishCrashes(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(bash("build 1s"), say("done"))}, func(r *rig) {
		hub := &event.Hub{}
		var crash atomic.Bool
		crash.Store(true)
		var lost atomic.Int64
		r.cfg.Publish = func(e centurion.Event) {
			if crash.Load() {
				lost.Add(1)
				panic("the hub has crashed")
			}
			hub.Publish(e)
		}
		r.restart()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "requests", len(r.requests("commander")), 2)
		if lost.Load() == 0 {
			t.Error("nothing was published")
		}
		crash.Store(false)
		ctx, cancel := context.WithCancel(r.ctx)
		var g guard.Group
		got := hub.Subscribe(ctx)
		var seen atomic.Int64
		g.Go("reader", func() error {
			for range got {
				seen.Add(1)
			}
			return nil
		})
		other, err := r.host.Start(r.ctx, "again", centurion.MissionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if rec, err := r.host.Run(r.ctx, other.ID); err != nil || rec.Status != centurion.MissionCompleted {
			t.Errorf("%s, %v", rec.Status, err)
		}
		synctest.Wait()
		cancel()
		if err := errors.Join(g.Wait()); err != nil || seen.Load() == 0 {
			t.Errorf("%d deltas, %v", seen.Load(), err)
		}
	})
}
