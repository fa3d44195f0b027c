package orchestrator

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/provider"
	"centurion/provider/scripted"
	"centurion/session"
	"centurion/store"
)

// Each limit stops the mission as paused with everything kept, and a raised one lets it go on to its end.
func TestBudget(t *testing.T) {
	for limit, test := range map[string]struct {
		opts, more centurion.MissionOptions
		reason     string
	}{
		"max_cost":     {centurion.MissionOptions{MaxCost: 0.06}, centurion.MissionOptions{MaxCost: 10}, "the cost limit of $0.06 is reached"},
		"max_tokens":   {centurion.MissionOptions{MaxTokens: 60_000}, centurion.MissionOptions{MaxTokens: 1e7}, "the token limit (60000) is reached"},
		"max_rounds":   {centurion.MissionOptions{MaxRounds: 6}, centurion.MissionOptions{MaxRounds: 100}, "the request limit (6) is reached"},
		"max_duration": {centurion.MissionOptions{MaxDuration: 150_000}, centurion.MissionOptions{MaxDuration: 3_600_000}, "the time limit of 2m30s is reached"},
	} {
		t.Run(limit, func(t *testing.T) {
			costly := func(s script) script {
				return func(r scripted.Request) scripted.Answer {
					a := s(r)
					a.Usage = &scripted.Usage{Input: 9000, Output: 100}
					return a
				}
			}
			bubble(t, map[string]script{
				"commander": costly(steps(do(plans("- [ ] T1 One", "- [ ] T2 Two", "- [ ] T3 Three", "  - after: T2")), do(work("T1", "x"), work("T2", "x"), work("T3", "x")), say("I wait"))),
				"worker":    costly(minutes(4, "made")),
			}, func(r *rig) {
				m := r.mission(test.opts)
				r.is(m, centurion.MissionPaused, test.reason)
				has(t, m.Reason, "resume --max-cost")
				told := r.events(m.ID, centurion.EventBudgetExceeded)
				if len(told) != 1 {
					t.Fatalf("told %d times", len(told))
				}
				has(t, string(told[0].Data), `"limit":"`+limit+`"`)
				for _, task := range r.tasks(m.ID) {
					if task.Status != centurion.TaskQueued {
						t.Errorf("task %s is %s", task.Item, task.Status)
					}
				}
				has(t, r.read(todoMD), "- [ ] T1", "- [ ] T2", "- [ ] T3")
				spent := m.Usage.USD

				if again := r.run(m.ID); again.Status != centurion.MissionPaused || limit != "max_duration" && again.Rounds != m.Rounds {
					t.Errorf("without a raise: %s after %d requests more", again.Status, again.Rounds-m.Rounds)
				}
				if err := r.host.Control.Raise(r.ctx, m.ID, test.more); err != nil {
					t.Fatal(err)
				}
				m = r.run(m.ID)
				r.is(m, centurion.MissionCompleted, "")
				equal(t, "tasks", len(r.tasks(m.ID)), 3)
				if m.Usage.USD <= spent || m.ElapsedMS < (8*time.Minute).Milliseconds() {
					t.Errorf("spent $%f after $%f, in %d ms", m.Usage.USD, spent, m.ElapsedMS)
				}
			})
		})
	}
}

// A model without a price is not held to a cost.
func TestBudgetWithoutPrice(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		client := provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: r.http})
		r.cfg.Model = func(string) (Model, error) { return Model{Client: client, Ref: ref}, nil }
		r.restart()
		m := r.mission(centurion.MissionOptions{MaxCost: 0.0000001})
		r.is(m, centurion.MissionCompleted, "")
		if !m.Usage.Unpriced {
			t.Error("its cost is told as if it were known")
		}
	})
}

// ORCH-74, ORCH-86: failures of the model are recovered a bounded number of times; what no repetition cures is told with what to do.
func TestModelFailures(t *testing.T) {
	fails := func(status int) scripted.Answer {
		return scripted.Answer{Error: &scripted.Error{Status: status, Message: "no"}}
	}
	for name, test := range map[string]struct {
		answer func(turn int) scripted.Answer
		status centurion.TaskStatus
		kind   centurion.Kind
		asked  int
		took   time.Duration
	}{
		"500 once":         {first(1, fails(500)), centurion.TaskCompleted, "", 2, 5 * time.Second},
		"500 three times":  {first(3, fails(500)), centurion.TaskCompleted, "", 4, 35 * time.Second},
		"500 for ever":     {first(99, fails(500)), centurion.TaskFailed, centurion.KindOverloaded, 4, 35 * time.Second},
		"401":              {first(99, fails(401)), centurion.TaskFailed, centurion.KindAuth, 1, 0},
		"cut once":         {first(1, scripted.Answer{Say: "this is cut off", Cut: scripted.CutHalf}), centurion.TaskCompleted, "", 2, 5 * time.Second},
		"cut for ever":     {first(99, scripted.Answer{Say: "this is cut off", Cut: scripted.CutHalf}), centurion.TaskFailed, centurion.KindStreamCut, 4, 15 * time.Second},
		"nothing was said": {first(1, scripted.Answer{}), centurion.TaskCompleted, "", 2, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(work("", "x")), say("I wait")),
				"worker":    func(r scripted.Request) scripted.Answer { return test.answer(r.Turn) },
			}, func(r *rig) {
				began := time.Now()
				m := r.mission(centurion.MissionOptions{})
				r.is(m, centurion.MissionCompleted, "")
				task := r.tasks(m.ID)[0]
				equal(t, "status", task.Status, test.status)
				equal(t, "requests", len(r.requests("worker")), test.asked)
				equal(t, "took", time.Since(began).Round(time.Second), test.took)
				equal(t, "attempt", task.Attempt, 1)
				retries := 0
				for _, e := range r.events(m.ID, centurion.EventTaskRetrying) {
					if e.Task == task.ID {
						retries++
					}
				}
				equal(t, "retries that were told", retries, test.asked-1)
				if test.kind == "" {
					return
				}
				if task.Error == nil || task.Error.Kind != test.kind {
					t.Errorf("error %+v", task.Error)
				}
				has(t, r.requests("commander")[1].Last(), "has failed", "Why: ")
			})
		})
	}
}

func first(n int, a scripted.Answer) func(int) scripted.Answer {
	return func(turn int) scripted.Answer {
		if turn <= n {
			return a
		}
		return say("made")
	}
}

// A failure gives its slot back before it waits.
func TestRetryGivesTheSlotBack(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "first"), work("", "second")), say("I wait")),
		"worker": func(r scripted.Request) scripted.Answer {
			if strings.Contains(r.First(), "first") {
				return first(1, scripted.Answer{Error: &scripted.Error{Status: 500}})(r.Turn)
			}
			return after(3*time.Second, say("made"))
		},
	}, func(r *rig) {
		r.cfg.PerAgent = 1
		r.restart()
		began := time.Now()
		r.is(r.mission(centurion.MissionOptions{}), centurion.MissionCompleted, "")
		equal(t, "took", time.Since(began).Round(time.Second), 5*time.Second)
	})
}

// Each way to stop has its state, a reason and, where something can be done, what that is.
func TestVerdicts(t *testing.T) {
	key := func(scripted.Request) scripted.Answer {
		return scripted.Answer{Error: &scripted.Error{Status: 400, Message: "bad word"}}
	}
	t.Run("completed", func(t *testing.T) {
		bubble(t, nil, func(r *rig) {
			m := r.mission(centurion.MissionOptions{})
			r.is(m, centurion.MissionCompleted, "nothing to verify")
			equal(t, "summary", m.Summary, "done")
			again := r.store.LastSeq()
			m, err := r.host.Run(r.ctx, m.ID)
			if err != nil || m.Status != centurion.MissionCompleted || r.store.LastSeq() != again {
				t.Errorf("a completed mission that is run again: %s, %v", m.Status, err)
			}
		})
	})
	t.Run("failed", func(t *testing.T) {
		bad := true
		bubble(t, map[string]script{"commander": func(r scripted.Request) scripted.Answer {
			if bad {
				return key(r)
			}
			return say("done")
		}}, func(r *rig) {
			m := r.mission(centurion.MissionOptions{})
			r.is(m, centurion.MissionFailed, "bad word")
			if !strings.HasSuffix(m.Reason, ")") {
				t.Errorf("no hint: %s", m.Reason)
			}
			bad = false // the person has mended it
			r.is(r.run(m.ID), centurion.MissionCompleted, "")
		})
	})
	t.Run("cancelled", func(t *testing.T) {
		bubble(t, map[string]script{
			"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two", "  - after: T1")), do(work("T1", "x"), work("T2", "x")), say("I wait")),
			"worker":    minutes(3, "made"),
		}, func(r *rig) {
			var g guard.Group
			m := r.start(centurion.MissionOptions{})
			done := r.inBackground(&g, m.ID)
			time.Sleep(90 * time.Second)
			if err := r.host.Control.Cancel(r.ctx, m.ID, "changed my mind"); err != nil {
				t.Error(err)
			}
			r.runs++
			m = <-done
			g.Wait()
			r.check(m)
			r.is(m, centurion.MissionCancelled, "changed my mind")
			for _, task := range r.tasks(m.ID) {
				equal(t, task.Item, task.Status, centurion.TaskCancelled)
				has(t, task.Error.Message, "changed my mind")
			}
			equal(t, "told", r.count(m.ID, centurion.EventTaskCancelled), 2)
			has(t, r.read(todoMD), "- [ ] T1", "- [ ] T2")
			if err := r.host.Control.Cancel(r.ctx, m.ID, ""); err != nil {
				t.Errorf("cancelled again: %v", err)
			}
			if m, err := r.host.Run(r.ctx, m.ID); err != nil || m.Status != centurion.MissionCancelled {
				t.Errorf("run again: %s, %v", m.Status, err)
			}
		})
	})
	t.Run("cancelled while it is paused", func(t *testing.T) {
		bubble(t, map[string]script{"commander": steps(many(3), say("I wait")), "worker": minutes(3, "made")}, func(r *rig) {
			m := r.mission(centurion.MissionOptions{MaxDuration: 90_000})
			r.is(m, centurion.MissionPaused, "")
			if err := r.host.Control.Cancel(r.ctx, r.tasks(m.ID)[0].ID, "not this one"); err != nil {
				t.Error(err)
			}
			has(t, r.tasks(m.ID)[0].Error.Message, "not this one")
			if err := r.host.Control.Cancel(r.ctx, m.ID, "nothing of it"); err != nil {
				t.Error(err)
			}
			m, _ = r.store.Mission(r.ctx, m.ID)
			r.runs++ // its end is told once more, as another
			r.check(m)
			r.is(m, centurion.MissionCancelled, "nothing of it")
			for _, task := range r.tasks(m.ID) {
				equal(t, "status", task.Status, centurion.TaskCancelled)
			}
		})
	})
	for name, cause := range map[string]error{"with a cause": centurion.ErrShutdown, "without a cause": nil} {
		t.Run("interrupted "+name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": steps(many(2), say("I wait")), "worker": minutes(3, "made")}, func(r *rig) {
				ctx, cancel := context.WithCancelCause(r.ctx)
				time.AfterFunc(90*time.Second, func() { cancel(cause) })
				m := r.runIn(ctx, r.start(centurion.MissionOptions{}).ID)
				r.is(m, centurion.MissionPaused, "interrupted")
				for _, task := range r.tasks(m.ID) {
					equal(t, "status", task.Status, centurion.TaskQueued)
				}
				r.is(r.run(m.ID), centurion.MissionCompleted, "")
				for _, task := range r.tasks(m.ID) {
					equal(t, "result", task.Result, "made")
					equal(t, "attempt", task.Attempt, 2)
				}
			})
		})
	}
	t.Run("run twice at the same time", func(t *testing.T) {
		bubble(t, map[string]script{"commander": func(scripted.Request) scripted.Answer { return after(time.Minute, say("done")) }}, func(r *rig) {
			var g guard.Group
			m := r.start(centurion.MissionOptions{})
			done := r.inBackground(&g, m.ID)
			time.Sleep(time.Second)
			if _, err := r.host.Run(r.ctx, m.ID); centurion.KindOf(err) != centurion.KindConflict {
				t.Errorf("the second run: %v", err)
			}
			r.is(<-done, centurion.MissionCompleted, "")
			g.Wait()
		})
	})
}

// ORCH-47: a task is cancelled by its parent; its item is open again.
func TestTaskIsCancelled(t *testing.T) {
	bubble(t, map[string]script{
		"commander": func(r scripted.Request) scripted.Answer {
			cancel := call("cancel_task", args{"task_id": firstTask(r), "reason": "not needed"})
			return steps(do(plans("- [ ] T1 One", "- [ ] T2 Two")), do(work("T1", "x"), work("T2", "x"), onward), do(call("bash", args{"command": "sleep 90s"}), cancel, cancel),
				do(mark("T1", "cancelled")), say("I wait"))(r)
		},
		"worker": minutes(3, "made"),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		one := r.task(m.ID, "T1")
		equal(t, "status", one.Status, centurion.TaskCancelled)
		has(t, one.Error.Message, "not needed")
		equal(t, "T2", r.task(m.ID, "T2").Status, centurion.TaskCompleted)
		said := r.results(m.ID, "cancel_task")
		has(t, said[0], "is cancelled")
		equal(t, "told", r.count(m.ID, centurion.EventTaskCancelled), 1)
		has(t, r.read(todoMD), "- [-] T1", "- [x] T2")
		equal(t, "cancelled items", fmt.Sprint(m.CancelledItems), "[T1]")
		if len(said) > 1 && !strings.Contains(said[1], "is cancelled") {
			t.Errorf("cancelled again: %s", said[1])
		}
	})
}

// A tool that panics is that call's error; a session that panics is repaired and goes on, and fails in the end.
func TestCrashes(t *testing.T) {
	t.Run("a tool", func(t *testing.T) {
		bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": steps(bash("panic"), say("made"))}, func(r *rig) {
			m := r.mission(centurion.MissionOptions{})
			r.is(m, centurion.MissionCompleted, "")
			has(t, r.results(m.ID, "bash")[0], "crashed: the shell has crashed")
			equal(t, "status", r.tasks(m.ID)[0].Status, centurion.TaskCompleted)
		})
	})
	for _, test := range []struct {
		who    string
		times  int64
		status centurion.MissionStatus
		task   centurion.TaskStatus
	}{
		{"worker", 2, centurion.MissionCompleted, centurion.TaskCompleted}, {"worker", 99, centurion.MissionCompleted, centurion.TaskFailed},
		{"commander", 2, centurion.MissionCompleted, centurion.TaskCompleted}, {"commander", 99, centurion.MissionFailed, ""},
	} {
		t.Run(fmt.Sprint(test.who, " ", test.times, " times"), func(t *testing.T) {
			bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait"))}, func(r *rig) {
				client := provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: r.http})
				model := &crashing{Model: client, who: test.who}
				model.times.Store(test.times)
				r.cfg.Model = func(string) (Model, error) { return Model{Client: model, Ref: ref}, nil }
				r.restart()
				m := r.mission(centurion.MissionOptions{})
				r.is(m, test.status, "")
				if test.task != "" {
					equal(t, "task", r.tasks(m.ID)[0].Status, test.task)
				}
				if test.times == 99 {
					text := m.Reason
					if test.task != "" {
						text = r.tasks(m.ID)[0].Error.Message
						equal(t, "kind", r.tasks(m.ID)[0].Error.Kind, centurion.KindCrashed)
					}
					has(t, text, "the model has crashed")
				}
			})
		})
	}
}

// crashing is a model that panics a number of times when one role asks it.
type crashing struct {
	session.Model
	who   string
	times atomic.Int64
}

func (c *crashing) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	line, _, _ := strings.Cut(req.System, "\n")
	if strings.Contains(strings.ToLower(line[:min(30, len(line))]), c.who) && c.times.Add(-1) >= 0 {
		return func(yield func(provider.Delta, error) bool) {
			yield(provider.Delta{Type: provider.Text, Text: "half an ans"}, nil)
			panic("the model has crashed")
		}
	}
	return c.Model.Stream(ctx, req)
}

// ORCH-116: the steps of a launch, in order, and what a failure at each of them leaves behind: no slot, and a task with
// an end.
func TestLaunchInOrder(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait"))}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		task := r.tasks(m.ID)[0]
		var got []string
		for _, e := range r.events(m.ID) {
			if e.Task == task.ID || e.Session == task.Session {
				got = append(got, string(e.Type))
			}
		}
		equal(t, "events", strings.Join(got, " "), "task.queued task.started session.created message.created message.created message.updated session.idle "+
			"task.completed task.delivered")
	})
	for name, breaks := range map[string]func(*rig, *atomic.Int64){
		"the model cannot be had": func(r *rig, asked *atomic.Int64) {
			have := r.host.cfg().Model
			r.cfg.Model = func(s string) (Model, error) {
				if asked.Add(1) > 2 { // the start and the commander's own
					return Model{}, &centurion.Error{Kind: centurion.KindConfig, Msg: "no such model"}
				}
				return have(s)
			}
		},
		"the parent is gone": func(r *rig, asked *atomic.Int64) {
			have := r.host.cfg().Model
			r.cfg.Model = func(s string) (Model, error) {
				if asked.Add(1) > 2 {
					panic("a crash in the middle of a launch")
				}
				return have(s)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": steps(do(plans("- [ ] T1 One")), do(work("T1", "x")), say("I wait"), do(mark("T1", "cancelled")))}, func(r *rig) {
				breaks(r, new(atomic.Int64))
				r.restart()
				m := r.mission(centurion.MissionOptions{})
				r.is(m, centurion.MissionCompleted, "")
				one := r.task(m.ID, "T1")
				equal(t, "status", one.Status, centurion.TaskFailed)
				if one.Error == nil {
					t.Error("it does not say why")
				}
				var text strings.Builder
				for _, msg := range r.requests("commander")[3].Messages() { // told when it ended, or between two steps
					text.WriteString(msg.Text)
				}
				has(t, text.String(), "has failed")
				synctest.Wait()
				r.hostHasRoom(r.host.cfg().Workers) // nobody stands in its line
			})
		})
	}
}

// What cannot be recorded stops the mission instead of being waited for.
func TestEndThatCannotBeRecorded(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": minutes(1, "made")}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(time.Second)
		// The parent's session is lost: the delivery has no receiver.
		err := r.store.Update(r.ctx, func(tx *store.Tx) error {
			task, err := tx.Task(r.tasks(m.ID)[0].ID)
			if err != nil {
				return err
			}
			task.Parent = "ses_gone"
			return tx.PutTask(&task)
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		select {
		case m = <-done:
			equal(t, "status", m.Status, centurion.MissionFailed)
		default:
			t.Error("the mission waits for ever")
			_ = r.host.Control.Cancel(r.ctx, m.ID, "")
			<-done
		}
		g.Wait()
	})
}
