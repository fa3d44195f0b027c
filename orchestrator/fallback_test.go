package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/guard"
	"centurion/provider"
	"centurion/provider/scripted"
)

// providers gives a rig the models a/1, a/2 and b/1 in place of one, and the chains of the models by their name.
func (r *rig) providers(chain func(agent, model string) []string) {
	var gates provider.Gates
	models := map[string]Model{}
	for _, name := range []string{"a/1", "a/2", "b/1"} {
		p, id, _ := strings.Cut(name, "/")
		m := centurion.ModelRef{Provider: p, ID: id}
		c := provider.New(provider.Endpoint{Model: m, BaseURL: scripted.URL + "/" + p, HTTP: r.http, Gates: &gates, EchoReasoning: p == "b", MaxRetries: -1})
		models[name] = Model{Client: c, Ref: m, Price: &centurion.Price{Input: float64(len(models) + 1)}, Closed: c.Closed}
	}
	models[""] = models["a/1"]
	r.cfg.Model = func(name string) (Model, error) {
		if m, ok := models[name]; ok {
			return m, nil
		}
		return Model{}, &centurion.Error{Kind: centurion.KindConfig, Msg: "no such model: " + name}
	}
	r.cfg.Fallback = chain
	r.restart()
}

func always(names ...string) func(string, string) []string {
	return func(string, string) []string { return names }
}

// changes lists the changes of model that were told, as "from>to".
func (r *rig) changes(mission string) string {
	r.t.Helper()
	var told []string
	for _, e := range r.events(mission, centurion.EventSessionModel) {
		d, err := event.Decode[event.ModelData](e)
		if err != nil || d.Reason == "" {
			r.t.Errorf("told without a reason: %s", e.Data)
		}
		told = append(told, d.From+">"+d.To)
	}
	return strings.Join(told, " ")
}

// byModel answers by the name of the model that is asked, and counts the requests of each.
type byModel struct {
	mu    sync.Mutex
	asked []string
	says  map[string]func(n int) scripted.Answer
}

func (b *byModel) answer(q scripted.Request) scripted.Answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, m := range b.asked {
		if m == q.Model {
			n++
		}
	}
	b.asked = append(b.asked, q.Model)
	if f := b.says[q.Model]; f != nil {
		return f(n + 1)
	}
	return say("made")
}

func status(code int) func(int) scripted.Answer {
	return func(int) scripted.Answer {
		return scripted.Answer{Error: &scripted.Error{Status: code, Message: "no"}}
	}
}

// ORCH-77, ORCH-82, ORCH-84: the chain of models is carried out: each model once in a row of failures, with its own three
// attempts; a good answer keeps the model for that session, and the next session begins with its own again.
func TestFallback(t *testing.T) {
	for name, test := range map[string]struct {
		says    map[string]func(int) scripted.Answer // by the name behind the slash
		chain   []string
		changed string
		asked   string
		status  centurion.TaskStatus
		took    time.Duration
	}{
		"the key is refused": {map[string]func(int) scripted.Answer{"2": status(401)}, []string{"a/2", "b/1"}, "a/2>b/1", "2 1", centurion.TaskCompleted, 0},
		"failing for ever, then the next": {map[string]func(int) scripted.Answer{"2": status(500)}, []string{"b/1"}, "a/2>b/1", "2 2 2 2 1",
			centurion.TaskCompleted, 35 * time.Second},
		"the whole chain fails": {map[string]func(int) scripted.Answer{"2": status(404), "1": status(404)}, []string{"b/1", "a/1", "a/2"}, "a/2>b/1 b/1>a/1", "2 1 1",
			centurion.TaskFailed, 0},
		"too many requests, twice": {map[string]func(int) scripted.Answer{"2": status(429)}, []string{"b/1"}, "a/2>b/1", "2 2 1", centurion.TaskCompleted, 30 * time.Second},
		"what cannot be had is passed over": {map[string]func(int) scripted.Answer{"2": status(404)}, []string{"c/9", "b/1"}, "a/2>b/1", "2 1",
			centurion.TaskCompleted, 0},
		"no chain": {map[string]func(int) scripted.Answer{"2": status(404)}, nil, "", "2", centurion.TaskFailed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			model := &byModel{says: test.says}
			bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": model.answer}, func(r *rig) {
				r.providers(func(agent, model string) []string {
					if agent == "worker" && model == "a/2" {
						return test.chain
					}
					return nil
				})
				r.with("worker", "a/2")
				began := time.Now()
				m := r.mission(centurion.MissionOptions{})
				r.is(m, centurion.MissionCompleted, "")
				equal(t, "changes", r.changes(m.ID), test.changed)
				equal(t, "asked", strings.Join(model.asked, " "), test.asked)
				task := r.tasks(m.ID)[0]
				equal(t, "status", task.Status, test.status)
				equal(t, "took", time.Since(began).Round(time.Second), test.took)
				rec, err := r.store.Session(r.ctx, task.Session)
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "own model", rec.Own().String(), "a/2")
				if test.status == centurion.TaskCompleted {
					equal(t, "model", *rec.Model, centurion.SessionModel{ID: "1", Provider: "b"})
					if rec.Metadata.Retry != nil {
						t.Errorf("after a good answer: %+v", rec.Metadata.Retry)
					}
				} else if task.Error == nil || task.Error.Hint == "" {
					t.Errorf("it failed without a next step: %+v", task.Error)
				}
			})
		})
	}
}

// with gives an agent a model of its own.
func (r *rig) with(agent, model string) {
	r.t.Helper()
	a, err := r.host.cfg().Cast.Find(agent)
	if err != nil {
		r.t.Fatal(err)
	}
	cast, _, err := r.host.cfg().Cast.With(agents.Definition{Name: a.Name, Model: model, Mode: a.Mode})
	if err != nil {
		r.t.Fatal(err)
	}
	r.cfg.Cast = cast
	r.restart()
}

// A good answer keeps the new model for its session; a later session of the same agent begins with its own again. The cost
// is the new model's from then on.
func TestFallbackKeepsAndForgets(t *testing.T) {
	model := &byModel{says: map[string]func(int) scripted.Answer{"2": func(n int) scripted.Answer {
		if n == 1 {
			return status(404)(n)
		}
		return say("made by two")
	}, "1": func(n int) scripted.Answer {
		if n < 3 {
			return do(call("ls", args{}))
		}
		return say("made by one")
	}}}
	bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait"), do(work("", "y")), say("I wait")), "worker": model.answer}, func(r *rig) {
		r.providers(always("b/1"))
		r.with("worker", "a/2")
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "asked", strings.Join(model.asked, " "), "2 1 1 1 2")
		equal(t, "changes", r.changes(m.ID), "a/2>b/1")
		has(t, r.tasks(m.ID)[0].Result+" "+r.tasks(m.ID)[1].Result, "made by one", "made by two")
		one := r.tasks(m.ID)[0].Usage
		if want := float64(one.Tokens.Input+one.Tokens.Cache.Read) * 3 / 1e6; one.USD < want/2 || one.USD > want { // b/1 costs $3, a/2 $2
			t.Errorf("%d tokens of b/1 cost $%f, want about $%f", one.Tokens.Total(), one.USD, want)
		}
	})
}

// A restart in the middle forgets neither the model nor what has failed already.
func TestFallbackSurvivesRestart(t *testing.T) {
	model := &byModel{says: map[string]func(int) scripted.Answer{"2": status(404), "1": status(500)}}
	bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": model.answer}, func(r *rig) {
		r.providers(always("b/1", "a/2"))
		r.with("worker", "a/2")
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(7 * time.Second)
		l.goAway(byKill)
		m = r.run(m.ID)
		equal(t, "asked", strings.Join(model.asked, " "), "2 1 1 1 1")
		equal(t, "changes", r.changes(m.ID), "a/2>b/1")
		equal(t, "status", r.tasks(m.ID)[0].Status, centurion.TaskFailed)
	})
}

// While the gate of an agent's own model is closed for long, its new sessions begin with the first of the chain that is
// free, and are told to.
func TestBeginsWithAFreeModel(t *testing.T) {
	model := &byModel{}
	bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait"), do(call("ls", args{})), do(work("", "y")), say("I wait")), "worker": model.answer}, func(r *rig) {
		r.providers(always("a/1", "b/1"))
		left := map[string]time.Duration{"a/2": time.Minute, "a/1": time.Second}
		have := r.cfg.Model
		r.cfg.Model = func(name string) (Model, error) {
			m, err := have(name)
			m.Closed = func() time.Duration { return left[name] }
			return m, err
		}
		r.with("worker", "a/2")
		m := r.start(centurion.MissionOptions{})
		m = r.run(m.ID)
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "changes", r.changes(m.ID), "a/2>b/1 a/2>b/1")
		left["a/2"] = 20 * time.Second // less than one waits for a rate limit
		if ref, why := r.host.cfg().agentConfig().Free("worker", centurion.ModelRef{Provider: "a", ID: "2"}); ref.String() != "a/2" || why != "" {
			t.Errorf("for a short wait it begins with %s: %s", ref, why)
		}
	})
}

// ORCH-22, ORCH-77, ORCH-109: what only a person can mend blocks the mission with its question and the next step, and it goes
// on when the person has mended it, or has named another model.
func TestAsksAPerson(t *testing.T) {
	for code, hint := range map[int]string{401: "auth login", 404: "centurion models", 429: "fewer workers"} {
		for _, with := range []string{"", "b/1"} {
			t.Run(fmt.Sprint(code, " mended with ", with), func(t *testing.T) {
				bad := true
				bubble(t, map[string]script{"commander": func(q scripted.Request) scripted.Answer {
					if bad {
						return status(code)(1)
					}
					return say("done")
				}}, func(r *rig) {
					r.providers(nil)
					m := r.mission(centurion.MissionOptions{Model: "a/1"})
					r.is(m, centurion.MissionBlocked, "no")
					has(t, m.Reason, hint)
					if rec, err := r.store.Session(r.ctx, m.Session); err != nil || rec.Metadata.Retry != nil {
						t.Errorf("the failures that were given up are kept: %+v, %v", rec.Metadata.Retry, err)
					}
					bad = false
					if err := r.host.Control.Raise(r.ctx, m.ID, centurion.MissionOptions{Model: with}); err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					m = r.run(m.ID)
					r.is(m, centurion.MissionCompleted, "")
					if with == "" && code == 429 && time.Since(began) > 20*time.Minute {
						t.Errorf("it went on after %s", time.Since(began))
					}
					rec, err := r.store.Session(r.ctx, m.Session)
					if err != nil || with != "" && rec.Model.Provider != "b" {
						t.Errorf("it talks to %+v: %v", rec.Model, err)
					}
				})
			})
		}
	}
}

// breaks is a model that fails with an error of its own.
type breaks struct {
	mu   sync.Mutex
	errs []error // one after the other, then it answers
	n    int
}

func (b *breaks) Stream(context.Context, provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		b.mu.Lock()
		b.n++
		var err error
		if len(b.errs) > 0 {
			err = b.errs[0]
			b.errs = b.errs[1:]
		}
		b.mu.Unlock()
		if err != nil {
			yield(provider.Delta{}, err)
			return
		}
		if yield(provider.Delta{Type: provider.Text, Text: "done"}, nil) {
			yield(provider.Delta{Type: provider.Done, Finish: centurion.FinishStop}, nil)
		}
	}
}

// ORCH-22, ORCH-109: a failure is never met with silence: whatever kind it is of, the mission stops with a reason and a next
// step, the error was told once for every request that failed, and the last event says it.
func TestNoFailureIsSilent(t *testing.T) {
	for _, kind := range []centurion.Kind{centurion.KindInternal, centurion.KindUsage, centurion.KindConfig, centurion.KindNotFound,
		centurion.KindConflict, centurion.KindPermission, centurion.KindState, centurion.KindAuth, centurion.KindRateLimit,
		centurion.KindOverloaded, centurion.KindNetwork, centurion.KindStreamCut, centurion.KindStall, centurion.KindOverflow,
		centurion.KindRefusal, centurion.KindModelNotFound, centurion.KindInvalidRequest, centurion.KindTimeout, centurion.KindCrashed,
		centurion.KindBudget, centurion.KindVerify, centurion.KindNoAnswer} {
		t.Run(string(kind), func(t *testing.T) {
			bubble(t, nil, func(r *rig) {
				model := &breaks{}
				for range 20 {
					model.errs = append(model.errs, &centurion.Error{Op: "call model", Kind: kind, Msg: "it broke"})
				}
				r.cfg.Model = func(string) (Model, error) { return Model{Client: model, Ref: ref}, nil }
				r.restart()
				m := r.mission(centurion.MissionOptions{})
				if m.Status == centurion.MissionCompleted {
					t.Fatal("it is told as completed")
				}
				has(t, m.Reason, "it broke", "(", ")")
				equal(t, "errors that were told", r.count(m.ID, centurion.EventSessionError), model.n)
				all := r.events(m.ID)
				has(t, string(all[len(all)-1].Data), "it broke")
			})
		})
	}
}

// ORCH-23, ORCH-87, ORCH-110: a good answer ends the row of failures; a message of a user does not, although one is added
// between the failures.
func TestOnlyAnAnswerResets(t *testing.T) {
	broken := errors.New("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'")
	t.Run("a message", func(t *testing.T) {
		bubble(t, nil, func(r *rig) {
			model := &breaks{errs: []error{broken, broken, broken, broken, broken}}
			r.cfg.Model = func(string) (Model, error) { return Model{Client: model, Ref: ref}, nil }
			r.restart()
			began := time.Now()
			m := r.mission(centurion.MissionOptions{})
			r.is(m, centurion.MissionFailed, "tool_calls")
			equal(t, "requests", model.n, 4) // each prompt of the host is a user's message, and still they count
			equal(t, "took", time.Since(began).Round(time.Second), 15*time.Second)
			prompts := 0
			messages, err := r.store.Messages(r.ctx, m.Session)
			if err != nil {
				t.Fatal(err)
			}
			for _, msg := range messages {
				if msg.Role == centurion.RoleUser && strings.Contains(msg.Text(), "broke off before its result") {
					prompts++
				}
			}
			equal(t, "prompts that were added", prompts, 3)
		})
	})
	t.Run("a person's message", func(t *testing.T) {
		bubble(t, nil, func(r *rig) {
			model := &breaks{errs: []error{broken, broken, broken, broken, broken}}
			r.cfg.Model = func(string) (Model, error) { return Model{Client: model, Ref: ref}, nil }
			r.restart()
			var g guard.Group
			m := r.start(centurion.MissionOptions{})
			done := r.inBackground(&g, m.ID)
			time.Sleep(7 * time.Second) // in the second wait
			r.send(m.ID, "0/", "go on", false)
			r.is(<-done, centurion.MissionFailed, "tool_calls")
			g.Wait()
			equal(t, "requests", model.n, 4)
		})
	})
	fails := func(n int) scripted.Answer { // three failures, a good answer, three failures
		if n == 4 {
			return do(call("ls", args{}))
		}
		if n > 7 {
			return say("made")
		}
		return status(500)(n)
	}
	t.Run("an answer", func(t *testing.T) {
		bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": func(q scripted.Request) scripted.Answer { return fails(q.Turn) }}, func(r *rig) {
			m := r.mission(centurion.MissionOptions{})
			equal(t, "status", r.tasks(m.ID)[0].Status, centurion.TaskCompleted)
			equal(t, "waits", r.waits(m.ID, centurion.EventTaskRetrying), "1: 5s, 2: 10s, 3: 20s, 1: 5s, 2: 10s, 3: 20s")
		})
	})
}

// ORCH-85: a failure gives its slot back before it waits, and the attempts are five seconds apart.
func TestRecoveryGivesTheSlotBack(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "first"), work("", "second")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "first") && q.Turn == 1 {
				return scripted.Answer{Say: "this is cut off", Cut: scripted.CutHalf}
			}
			return after(time.Second, say("made"))
		},
	}, func(r *rig) {
		r.cfg.PerAgent = 1
		r.restart()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		one, two := r.tasks(m.ID)[0], r.tasks(m.ID)[1]
		if !two.Ended.Before(one.Ended.Time) || two.Started.Sub(one.Started.Time) > time.Second {
			t.Errorf("the second ran from %s to %s while the first, which ended %s, waited", two.Started, two.Ended, one.Ended)
		}
		if d := one.Ended.Sub(one.Started.Time); d < 6*time.Second || d > 7*time.Second {
			t.Errorf("the first took %s", d)
		}
	})
}

// ORCH-24, ORCH-74: a session that is gone takes its recovery with it: nothing waits, asks or holds a slot for it any more.
func TestRecoveryOfASessionThatIsGone(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": func(scripted.Request) scripted.Answer { return status(500)(1) }}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		var g guard.Group
		done := r.inBackground(&g, m.ID)
		time.Sleep(7 * time.Second)     // in the second wait
		running := r.host.running(m.ID) // it may have ended when the cancel returns
		began := time.Now()
		if err := r.host.Control.Cancel(r.ctx, r.tasks(m.ID)[0].ID, "not needed"); err != nil {
			t.Error(err)
		}
		equal(t, "the cancel took", time.Since(began), 0) // and not the rest of the wait
		asked := len(r.requests("worker"))
		equal(t, "conversations", len(running.sessions.All()), 1) // the Commander's
		<-done
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		equal(t, "requests", len(r.requests("worker")), asked)
		equal(t, "status", r.tasks(m.ID)[0].Status, centurion.TaskCancelled)
	})
}
