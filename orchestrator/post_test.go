package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/orchestrator/mail"
	"centurion/provider/scripted"
	"centurion/session"
	"centurion/workspace"
)

// send writes to an agent.
func (r *rig) send(mission, to, text string, queue bool) mail.Posted {
	r.t.Helper()
	got, err := r.host.Mail.Send(r.ctx, mail.Post{Mission: mission, To: to, Text: text, Queue: queue})
	if err != nil {
		r.t.Errorf("send to %s: %v", to, err)
	}
	return got
}

// heard returns what stands in a session's history of a person, apart from the goal, in order.
func (r *rig) heard(session string) string {
	r.t.Helper()
	messages, err := r.store.Messages(r.ctx, session)
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, m := range messages {
		if m.Role == centurion.RoleUser && m.Origin == centurion.OriginPerson && m.Text() != "build it" {
			out = append(out, m.Text())
		}
	}
	return strings.Join(out, "|")
}

// texts returns the texts of a request's messages.
func texts(q scripted.Request) string {
	var b strings.Builder
	for _, m := range q.Messages() {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Text)
	}
	return b.String()
}

// C-23: what steers is read after the tool calls that are under way, what is queued at the end of the turn; both in the
// order in which they were sent, once, and as they were typed.
func TestSteerAndQueue(t *testing.T) {
	const typed = "  use tabs,\n\tnot spaces /pause"
	bubble(t, map[string]script{
		"commander": steps(do(call("bash", args{"command": "sleep 1m", "description": "x"})), do(call("ls", args{})), say("the turn ends"), say("second turn")),
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(30 * time.Second)
		r.send(m.ID, "0/", "later", true)
		for _, text := range []string{typed, "two", "three"} {
			got := r.send(m.ID, "0", text, false)
			if !got.Working || got.Address != "0/" || got.Agent != "commander" || got.Session != m.Session {
				t.Errorf("posted %+v", got)
			}
		}
		equal(t, "read while a tool runs", r.heard(m.Session), "")
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()

		asked := r.requests("commander")
		equal(t, "requests", len(asked), 4)
		has(t, texts(asked[1]), "user: build it", "assistant", "tool", "user: "+typed, "two", "three")
		for _, q := range asked[:3] {
			if strings.Contains(texts(q), "later") {
				t.Error("what was queued came before the end of the turn")
			}
		}
		has(t, texts(asked[3]), "the turn ends", "user: later")
		equal(t, "told", r.heard(m.Session), typed+"|two|three|later")
		equal(t, "queued", r.count(m.ID, centurion.EventMessageQueued), 4)
		told := 0
		for _, e := range r.events(m.ID, centurion.EventMessageCreated) {
			if d, err := event.Decode[event.QueuedData](e); err == nil && d.Origin == centurion.OriginPerson {
				told++
			}
		}
		equal(t, "told of in events, with the goal", told, 5)
	})
}

// ORCH-26, ORCH-104: an idle Commander is woken by a person's message at once, also while its tasks run, and before what it
// waits for.
func TestMessageWakes(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait"), say("understood")),
		"worker":    minutes(10, "made"),
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(time.Minute)
		began := time.Now()
		r.send(m.ID, "0/", "hurry", false)
		synctest.Wait()
		asked := r.requests("commander")
		equal(t, "requests", len(asked), 2)
		equal(t, "woken after", time.Since(began), 0)
		equal(t, "last", strings.Contains(asked[1].Last(), "hurry"), true)
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
		equal(t, "told", r.heard(m.Session), "hurry")
	})
}

// Who has no session yet, or waits for a slot, reads what was written to it when it runs.
func TestMessageToWaitingTask(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two", "  - after: T1")), do(work("T1", "first"), work("T2", "second")), say("I wait"),
			do(call("mission_complete", args{"summary": "built"}))),
		"worker": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "second") {
				return say("made")
			}
			return minutes(2, "made")(q)
		},
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(30 * time.Second)
		second := r.task(m.ID, "T2")
		equal(t, "session", second.Session, "")
		got := r.send(m.ID, second.ID, "mind the gap", false)
		equal(t, "state", got.State, centurion.TaskWaiting)
		r.send(m.ID, "t2", "and the step", true) // by its item
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
		equal(t, "told", r.heard(r.task(m.ID, "T2").Session), "mind the gap|and the step")
		for _, q := range r.requests("worker") {
			if strings.Contains(q.First(), "second") && q.Step() == 1 {
				has(t, texts(q), "second", "mind the gap")
			}
		}
		equal(t, "the other", r.heard(r.task(m.ID, "T1").Session), "")
	})
}

// A worker that is written to while its work is checked answers before its task ends; what comes too late for one that
// fails goes to the Commander, which is told whom it was for.
func TestMessageAtTheEnd(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprint("fails ", fails), func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(plans("- [ ] T1 One", "  - verify: `sleep 1m`")), do(work("T1", "x")), say("I wait"),
					do(call("update_todo", args{"items": []args{{"id": "T1", "status": "cancelled"}}})), do(call("mission_complete", args{"summary": "s"}))),
				"worker": func(q scripted.Request) scripted.Answer {
					if fails {
						return after(20*time.Second, scripted.Answer{Error: &scripted.Error{Status: 401, Message: "bad key"}})
					}
					return say(fmt.Sprint("made ", q.Step()))
				},
			}, func(r *rig) {
				var g guard.Group
				m := r.start(centurion.MissionOptions{})
				done := r.inBackground(&g, m.ID)
				time.Sleep(10 * time.Second)
				got := r.send(m.ID, "0/0", "one more thing", false)
				r.is(<-done, centurion.MissionCompleted, "")
				g.Wait()
				task := r.task(m.ID, "T1")
				if fails {
					equal(t, "state", got.State, centurion.TaskRunning)
					has(t, r.heard(m.Session), "This was written to "+task.Name()+" (worker, \"do T1\"), which had ended", "one more thing")
					return
				}
				equal(t, "state", got.State, centurion.TaskVerifying)
				equal(t, "told", r.heard(task.Session), "one more thing")
				equal(t, "result", task.Result, "made 2")
				equal(t, "checks", r.shell.times("sleep 1m"), 2)
			})
		})
	}
}

// A mission is not complete while a person's message is unread, whenever it comes: during the turn that claims it, the
// final checks, or the last moment.
func TestMessageBeforeCompletion(t *testing.T) {
	for _, at := range []string{"claim", "check", "verdict"} {
		t.Run(at, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": func(q scripted.Request) scripted.Answer {
					if strings.Contains(texts(q), "wait!") {
						return say("I have read it")
					}
					return after(time.Minute, do(call("mission_complete", args{"summary": "built"})))
				},
			}, func(r *rig) {
				var m centurion.Mission
				sent := false
				if at == "verdict" { // what watches the plan ends after the verdict and before it is recorded
					r.cfg.Watch = func(ctx context.Context, _ *workspace.TodoFile, _ func()) error {
						<-ctx.Done()
						if !sent {
							sent = true
							r.send(m.ID, "0/", "wait!", false)
						}
						return nil
					}
				}
				r.restart()
				var g guard.Group
				m = r.start(centurion.MissionOptions{Verify: []string{"sleep 1m"}})
				done := r.inBackground(&g, m.ID)
				switch at {
				case "claim":
					time.Sleep(30 * time.Second)
					r.send(m.ID, "0/", "wait!", true)
				case "check":
					time.Sleep(90 * time.Second)
					r.send(m.ID, "0/", "wait!", false)
				}
				r.is(<-done, centurion.MissionCompleted, "")
				g.Wait()
				equal(t, "told", r.heard(m.Session), "wait!")
				equal(t, "begun anew", r.count(m.ID, centurion.EventMissionResumed), map[bool]int{true: 1}[at == "verdict"])
				asked := r.requests("commander")
				has(t, texts(asked[len(asked)-1]), "wait!")
				r.runs++
				end, err := r.store.Mission(r.ctx, m.ID)
				if err != nil {
					t.Fatal(err)
				}
				r.check(end)
			})
		})
	}
}

// A mission that has stopped keeps what is written to it, and is told it in place of the word that it was resumed; so does
// one whose host is gone.
func TestMessageToStoppedMission(t *testing.T) {
	bubble(t, map[string]script{
		"commander": stuck(8, do(call("update_todo", args{"items": []args{{"id": "T1", "status": "done"}}})), say("that helps")),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionBlocked, "What should be done differently?")
		r.restart()
		got := r.send(m.ID, m.ID, "like this", false)
		if got.Working || got.Status != centurion.MissionBlocked {
			t.Errorf("posted %+v", got)
		}
		r.send(m.ID, "0/", "or that", false)
		end := r.run(m.ID)
		r.is(end, centurion.MissionCompleted, "")
		equal(t, "told", r.heard(m.Session), "like this|or that")
		asked := r.requests("commander")
		if all := texts(asked[len(asked)-1]); strings.Contains(all, "The person has resumed") {
			t.Errorf("it was told of the resume as well:\n%s", all)
		}
	})
}

// stuck writes a plan, does nothing about it until its n-th step, and then goes on with what follows.
func stuck(n int, then ...scripted.Answer) script {
	all := []scripted.Answer{do(plans("- [ ] T1 One"))}
	for len(all) < n-1 {
		all = append(all, say("hm"))
	}
	return steps(append(all, then...)...)
}

// ORCH-26: a person's message also ends the count of rounds without progress.
func TestMessageIsProgress(t *testing.T) {
	bubble(t, map[string]script{
		"commander": stuck(9, do(call("update_todo", args{"items": []args{{"id": "T1", "status": "done"}}})), say("done")),
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(4*DefaultCountdown + time.Second) // in the fifth countdown, after which it would give up
		r.send(m.ID, "0/", "try again", false)
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
	})
}

// IKI-4, IKI-80: whatever the moment at which the host goes away, the next one tells each message once and in order.
func TestMessagesSurviveTheHost(t *testing.T) {
	commander := func(q scripted.Request) scripted.Answer {
		look := after(time.Second, do(call("ls", args{})))
		return steps(do(work("", "x")), look, look, say("I wait"))(q)
	}
	for n := int64(4); n < 54; n += 5 {
		t.Run(fmt.Sprint("row ", n), func(t *testing.T) {
			bubble(t, map[string]script{"commander": commander, "worker": minutes(1, "made")}, func(r *rig) {
				var g guard.Group
				m := r.start(centurion.MissionOptions{})
				for i := range 3 {
					r.send(m.ID, "0/", fmt.Sprint("steer ", i), false)
				}
				r.send(m.ID, "0/", "last of all", true)
				ctx, cancel := context.WithCancelCause(r.ctx)
				g.Go("hand over", func() error { return r.at(ctx, n, func() { cancel(centurion.ErrHandover) }) })
				end, err := r.host.Run(ctx, m.ID)
				cancel(nil)
				g.Wait()
				if err != nil {
					t.Fatal(err)
				}
				if end.Status.Alive() {
					r.restart()
					end, _ = r.host.Run(r.ctx, m.ID)
				}
				r.is(end, centurion.MissionCompleted, "")
				equal(t, "told", r.heard(m.Session), "steer 0|steer 1|steer 2|last of all")
			})
		})
	}
}

// Who cannot be written to is refused with what would have worked; the same message sent again is stored once.
func TestSendRefused(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One")), do(work("T1", "x")), say("I wait"), after(time.Minute, say("the end is near"))),
		"worker":    minutes(2, "made"),
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(time.Minute)
		refused := func(p mail.Post, kind centurion.Kind, words ...string) {
			t.Helper()
			p.Mission = m.ID
			_, err := r.host.Mail.Send(r.ctx, p)
			if centurion.KindOf(err) != kind {
				t.Errorf("%+v: %v", p, err)
				return
			}
			has(t, err.Error()+" · "+centurion.HintOf(err), words...)
		}
		refused(mail.Post{To: "0/", Text: " \n"}, centurion.KindUsage, "the message is empty", "centurion send")
		refused(mail.Post{To: "0/", Text: strings.Repeat("x", mail.MaxPost+1)}, centurion.KindUsage, "longer than 256 KB", "file")
		refused(mail.Post{To: "0/7", Text: "x"}, centurion.KindNotFound, "has no agent \"0/7\"", "0/ (commander), 0/0 (worker)", "did you mean \"0/\"")
		refused(mail.Post{To: "nobody", Text: "x"}, centurion.KindNotFound, "0/ (commander), 0/0 (worker)", "centurion tasks "+m.ID)
		refused(mail.Post{To: "tsk_nosuch", Text: "x"}, centurion.KindNotFound, "tsk_nosuch")

		for range 2 {
			if _, err := r.host.Mail.Send(r.ctx, mail.Post{ID: "msg_mine", Mission: m.ID, To: "0/0", Text: "once", Parts: session.Texts("once, in parts")}); err != nil {
				t.Error(err)
			}
		}
		refused(mail.Post{ID: "msg_mine", To: "0/0", Text: "another"}, centurion.KindUsage, "another message has the id msg_mine")
		time.Sleep(61 * time.Second) // the worker has ended
		synctest.Wait()
		worker := r.task(m.ID, "T1")
		equal(t, "told", r.heard(worker.Session), "once, in parts")
		if got, err := r.store.Message(r.ctx, worker.Session, "msg_mine"); err != nil || got.Text() != "once, in parts" {
			t.Errorf("under the sender's id is %+v: %v", got, err)
		}
		refused(mail.Post{ID: "msg_mine", To: "0/", Text: "once more"}, centurion.KindUsage, "msg_mine")
		refused(mail.Post{To: "0/0", Text: "x"}, centurion.KindConflict, "0/0 (worker) has ended: its task is completed", "centurion send 0/ --mission "+m.ID)
		refused(mail.Post{To: worker.ID, Text: "x"}, centurion.KindConflict, "has ended")
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
		refused(mail.Post{To: "0/", Text: "x"}, centurion.KindConflict, "is completed", "centurion run")
		equal(t, "queued", r.count(m.ID, centurion.EventMessageQueued), 1)
	})
}

// C-19: a message keeps its origin.
func TestOriginsAreKept(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(call("bash", args{"command": "sleep 1m", "description": "x"})), say("done"))}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(time.Second)
		for _, o := range []centurion.Origin{centurion.OriginHost, centurion.OriginParent, ""} {
			if _, err := r.host.Mail.Send(r.ctx, mail.Post{Mission: m.ID, To: "0/", Text: "by " + string(o), Origin: o}); err != nil {
				t.Error(err)
			}
		}
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()
		messages, err := r.store.Messages(r.ctx, m.Session)
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]centurion.Origin{"by host": centurion.OriginHost, "by parent": centurion.OriginParent, "by ": centurion.OriginPerson} {
			if !slices.ContainsFunc(messages, func(m centurion.Message) bool { return m.Text() == text && m.Origin == want }) {
				t.Errorf("%q has another origin than %s", text, want)
			}
		}
	})
}
