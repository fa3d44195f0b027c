package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/retention"
	"centurion/orchestrator/state"
	"centurion/provider/scripted"
	"centurion/store"
)

// cleans runs the host's cleaner until the test calls end.
func (r *rig) cleans() (end func()) {
	ctx, cancel := context.WithCancel(r.ctx)
	var g guard.Group
	host := r.host
	g.Go("clean", func() error {
		host.Keeper.Clean(ctx, func(err error) { r.t.Errorf("clean: %v", err) })
		return nil
	})
	return func() {
		cancel()
		if err := g.Wait(); err != nil {
			r.t.Error(err)
		}
	}
}

// archiveLines returns the lines of the archive.
func (r *rig) archiveLines() (lines []string) {
	r.t.Helper()
	names, err := r.ws.Names(retention.Dir, ".jsonl")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, n := range names {
		lines = append(lines, strings.Split(strings.TrimSuffix(r.read(retention.Dir+"/"+n), "\n"), "\n")...)
	}
	return lines
}

// past records a mission with n completed and delivered tasks, each with a session and an answer.
func (r *rig) past(status centurion.MissionStatus, n int, change func(*centurion.Task)) (centurion.Mission, []centurion.Task) {
	r.t.Helper()
	m := r.start(centurion.MissionOptions{})
	var tasks []centurion.Task
	r.update(func(tx *store.Tx) error {
		tasks = nil
		for i := range n {
			t := centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: m.ID, Parent: m.Session, Call: fmt.Sprint("call ", i),
				Agent: "worker", Title: "past", Prompt: strings.Repeat("whole prompt ", 50), Result: strings.Repeat("whole result ", 50),
				Status: centurion.TaskCompleted, Session: centurion.NewID(centurion.PrefixSession), Files: []string{"a.go"},
				Created: centurion.Now(), Ended: centurion.Time{Time: time.Now().Add(time.Duration(i) * time.Millisecond)}}
			if change != nil {
				change(&t)
			}
			rec := centurion.Session{ID: t.Session, Agent: "worker", ParentID: m.Session, Metadata: centurion.SessionMeta{Mission: m.ID, Task: t.ID, Address: fmt.Sprint("0/", i)}}
			msg := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: rec.ID, Role: centurion.RoleUser}
			part := centurion.Part{ID: centurion.NewID(centurion.PrefixPart), SessionID: rec.ID, MessageID: msg.ID, Type: centurion.PartText, Text: "x"}
			d := store.Delivery{ID: centurion.NewID(centurion.PrefixDelivery), Mission: m.ID, Session: m.Session, Task: t.ID, Created: centurion.Now(), Taken: centurion.Now()}
			for _, err := range []error{tx.PutTask(&t), tx.PutSession(&rec), tx.PutMessage(&msg), tx.PutPart(&part), tx.PutDelivery(&d)} {
				if err != nil {
					return err
				}
			}
			tasks = append(tasks, t)
		}
		rec, err := tx.Mission(m.ID)
		if err != nil {
			return err
		}
		rec.Status = status
		return tx.PutMission(&rec)
	})
	return m, tasks
}

// ORCH-37, ORCH-41, ORCH-123, ORCH-127, ORCH-128, ORCH-129, ORCH-142, C-14, IKI-84: the session of a task that has ended is dropped after
// 10 minutes, its record goes to the archive whole after 30, that of a failed one after 10. It stays readable.
func TestDropAndArchive(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "works"), work("", "fails")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "fails") {
				return scripted.Answer{Error: &scripted.Error{Status: 400, Message: "no"}}
			}
			return say(strings.Repeat("made ", 2000))
		},
	}, func(r *rig) {
		defer r.cleans()()
		m := r.start(centurion.MissionOptions{})
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
		tasks := r.tasks(m.ID)
		one, two := tasks[0], tasks[1]
		equal(t, "the second", two.Status, centurion.TaskFailed)
		at := func(d time.Duration, dropped, lines int) {
			t.Helper()
			time.Sleep(time.Until(one.Ended.Add(d)))
			synctest.Wait()
			equal(t, fmt.Sprint("sessions dropped after ", d), r.count(m.ID, centurion.EventSessionDeleted), dropped)
			if n := len(r.archiveLines()); n != lines {
				t.Errorf("%d lines of the archive after %s, want %d", n, d, lines)
			}
		}
		at(9*time.Minute+59*time.Second, 0, 0)
		at(10*time.Minute+time.Second, 2, 1)
		has(t, r.archiveLines()[0], two.ID, `"failed"`)
		at(29*time.Minute+59*time.Second, 2, 1)
		at(30*time.Minute+time.Second, 2, 2)
		var got struct{ ID, Result, Prompt string }
		if err := json.Unmarshal([]byte(r.archiveLines()[1]), &got); err != nil || got.ID != one.ID || got.Result != one.Result || got.Prompt != one.Prompt {
			t.Errorf("archived: %+v, %v", got, err)
		}
		rec, err := r.store.Session(r.ctx, one.Session)
		if err != nil || rec.Time.Archived == 0 {
			t.Errorf("the session is %+v, %v", rec.Time, err)
		}
		if err := state.Dropped(rec); centurion.KindOf(err) != centurion.KindNotFound || centurion.HintOf(err) == "" {
			t.Errorf("a dropped session is resumed: %v", err)
		}
		if msgs, err := r.store.Messages(r.ctx, one.Session); err != nil || len(msgs) == 0 {
			t.Errorf("the messages are gone: %v", err)
		}
		at(24*time.Hour-time.Minute, 2, 2)
	})
}

// A session that was dropped is not opened any more.
func TestDroppedIsNotResumed(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		m, tasks := r.past(centurion.MissionRunning, 1, nil)
		end := r.cleans()
		time.Sleep(11 * time.Minute)
		end()
		equal(t, "dropped", r.count(m.ID, centurion.EventSessionDeleted), 1)
		rec, err := r.store.Mission(r.ctx, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		running := newMission(r.ctx, r.host, rec)
		if _, err := running.opener.Open(r.ctx, tasks[0].Session, nil); centurion.KindOf(err) != centurion.KindNotFound {
			t.Errorf("it was opened: %v", err)
		}
		running.drop(nil)
	})
}

// ORCH-43: a record is in the archive exactly once, at whatever step the host died; what a crash has cut off is mended.
func TestArchiveOnce(t *testing.T) {
	for _, left := range []string{"nothing", "the line", "half of the line", "the line without its end", "the line twice"} {
		t.Run(left, func(t *testing.T) {
			bubble(t, nil, func(r *rig) {
				ago := centurion.Time{Time: time.Now().Add(-time.Hour)}
				_, tasks := r.past(centurion.MissionCompleted, 3, func(t *centurion.Task) { t.Ended, t.Archiving = ago, true })
				_, line, err := retention.Line(tasks[1], nil)
				if err != nil {
					t.Fatal(err)
				}
				file, first, _ := retention.Line(tasks[0], nil)
				text := string(first) + "\n" + map[string]string{"nothing": "", "the line": string(line) + "\n", "half of the line": string(line[:len(line)/2]),
					"the line without its end": string(line), "the line twice": string(line) + "\n" + string(line) + "\n"}[left]
				r.write(file, text)
				end := r.cleans()
				synctest.Wait()
				time.Sleep(time.Second)
				synctest.Wait()
				end()
				r.restart()
				end = r.cleans() // again: it is done
				time.Sleep(time.Hour)
				end()
				lines := r.archiveLines()
				equal(t, "lines", len(lines), 3)
				for i, task := range tasks {
					n := 0
					for _, l := range lines {
						var a struct{ ID, Result string }
						if err := json.Unmarshal([]byte(l), &a); err != nil {
							t.Errorf("a line is %q: %v", l, err)
						}
						if a.ID == task.ID && a.Result == task.Result {
							n++
						}
					}
					equal(t, fmt.Sprint("lines of task ", i), n, 1)
					if got, err := r.store.Task(r.ctx, task.ID); err != nil || got.Archived.IsZero() || got.Archiving {
						t.Errorf("task %d is marked %v %v, %v", i, got.Archived, got.Archiving, err)
					}
				}
			})
		})
	}
}

// ORCH-42, ORCH-133, ORCH-141: the 1,001st task makes the oldest archived one go, with its session and messages. What runs,
// waits, is not delivered or not archived stays.
func TestGarbage(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": minutes(2, "made")}, func(r *rig) {
		n := 0
		_, tasks := r.past(centurion.MissionPaused, 1000, func(t *centurion.Task) {
			t.Archived = centurion.Now()
			switch n++; n {
			case 1:
				t.Archived = centurion.Time{}
			case 2:
				t.Status = centurion.TaskRunning
			case 3:
				t.Status = centurion.TaskWaiting
			}
		})
		r.update(func(tx *store.Tx) error { // the fourth was not delivered
			ds, err := tx.Deliveries(tasks[3].Mission)
			if err != nil {
				return err
			}
			ds[3].Taken = centurion.Time{}
			return tx.PutDelivery(&ds[3])
		})
		defer r.cleans()()
		time.Sleep(time.Minute)
		if n, err := r.store.TaskCount(r.ctx); err != nil || n != 1000 {
			t.Fatalf("%d tasks before the 1,001st, %v", n, err)
		}
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(time.Minute)
		if n, err := r.store.TaskCount(r.ctx); err != nil || n != 1000 {
			t.Errorf("%d tasks after the 1,001st, %v", n, err)
		}
		for i, task := range tasks[:6] {
			_, err := r.store.Task(r.ctx, task.ID)
			if gone := centurion.KindOf(err) == centurion.KindNotFound; gone != (i == 4) {
				t.Errorf("task %d: %v", i, err)
			}
			_, err = r.store.Session(r.ctx, task.Session)
			msgs, merr := r.store.Messages(r.ctx, task.Session)
			if gone := centurion.KindOf(err) == centurion.KindNotFound && len(msgs) == 0; gone != (i == 4) || merr != nil {
				t.Errorf("session of task %d: %v, %d messages, %v", i, err, len(msgs), merr)
			}
		}
		equal(t, "the one that runs", r.task(m.ID, "").Status, centurion.TaskRunning)
		r.is(l.settled(), centurion.MissionCompleted, "")
	})
}

// Of the tasks that may be removed, the oldest go, and no more than were asked for, also where one transaction does not suffice.
func TestRemoveNoMore(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		m, tasks := r.past(centurion.MissionCompleted, 60, nil)
		var ids []string
		for _, one := range tasks {
			ids = append(ids, one.ID)
		}
		if _, err := r.host.Keeper.Archive(r.ctx, ids); err != nil {
			t.Fatal(err)
		}
		if n, _, err := r.host.Keeper.Remove(r.ctx, r.tasks(m.ID), 55); n != 55 || err != nil {
			t.Fatalf("%d removed, %v", n, err)
		}
		left := r.tasks(m.ID)
		if len(left) != 5 || left[0].ID != tasks[55].ID {
			t.Errorf("%d are left, the first is %+v", len(left), left[0])
		}
	})
}

// The result of a task that was removed is found in the archive.
func TestResultFromTheArchive(t *testing.T) {
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			switch q.Step() {
			case 1:
				return do(work("", "x"))
			case 2:
				return after(time.Minute, do(call("get_task_result", args{"task_id": firstTask(q)})))
			}
			return say("done")
		},
		"worker": steps(say("made it whole")),
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(30 * time.Second)
		one := r.task(m.ID, "")
		if _, err := r.host.Keeper.Archive(r.ctx, []string{one.ID}); err != nil {
			t.Fatal(err)
		}
		one = r.task(m.ID, "")
		if n, _, err := r.host.Keeper.Remove(r.ctx, []centurion.Task{one}, 1); n != 1 || err != nil {
			t.Fatalf("%d removed, %v", n, err)
		}
		r.is(l.settled(), centurion.MissionCompleted, "")
		has(t, strings.Join(r.results(m.ID, "get_task_result"), "\n"), "(from the archive)", one.Name(), "made it whole")
		for _, id := range []string{one.ID, one.ID[:20], strings.TrimPrefix(one.ID, "tsk_")[:16]} {
			if got, err := retention.FromArchive(r.ws, id); err != nil || got.ID != one.ID {
				t.Errorf("%s: %s, %v", id, got.ID, err)
			}
		}
		if _, err := retention.FromArchive(r.ws, "tsk_none"); centurion.KindOf(err) != centurion.KindNotFound {
			t.Errorf("what is not there: %v", err)
		}
	})
}

// R15: tasks whose stored end a jump of the clock has moved into the future or far into the past are cleaned after at most
// the whole time, and what this host saw end is not cleaned early when its stored time jumps.
func TestCleanAfterClockJumps(t *testing.T) {
	for name, d := range map[string]time.Duration{"back a year": 365 * 24 * time.Hour, "not": 0} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(r *rig) {
				m, tasks := r.past(centurion.MissionCompleted, 1, func(t *centurion.Task) { t.Ended.Time = t.Ended.Add(d) })
				defer r.cleans()()
				time.Sleep(time.Minute)
				r.update(func(tx *store.Tx) error { // as if the clock had been set forward a year meanwhile
					one, err := tx.Task(tasks[0].ID)
					if err != nil {
						return err
					}
					one.Ended.Time = one.Ended.Add(-365 * 24 * time.Hour)
					return tx.PutTask(&one)
				})
				r.host.Keeper.Ended(tasks[0].ID)
				r.host.Keeper.Ended("")
				time.Sleep(8 * time.Minute)
				equal(t, "dropped early", r.count(m.ID, centurion.EventSessionDeleted), 0)
				time.Sleep(2 * time.Minute)
				equal(t, "dropped", r.count(m.ID, centurion.EventSessionDeleted), 1)
				time.Sleep(20 * time.Minute)
				equal(t, "lines", len(r.archiveLines()), 1)
			})
		})
	}
}

// ORCH-108: after many sessions nothing is kept in memory for those that have ended.
func TestNothingIsKept(t *testing.T) {
	const n = manyTasks
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			switch {
			case q.Step() <= n/100:
				return do(many(100).Calls...)
			case q.Step() == n/100+1:
				return do(call("bash", args{"command": "build 40m", "timeout": 600_000}))
			}
			return say("done")
		},
		"worker": func(q scripted.Request) scripted.Answer {
			if q.Step() == 1 && strings.HasSuffix(strings.TrimSpace(q.First()), "piece 7") {
				return do(call("run_background", args{"command": "build 1s"}))
			}
			return say("done")
		},
	}, func(r *rig) {
		defer r.cleans()()
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(35 * time.Minute)
		synctest.Wait()
		x := r.host.running(m.ID)
		if x == nil {
			t.Fatal("the mission has ended too early")
		}
		tasks := r.tasks(m.ID)
		equal(t, "tasks", len(tasks), n)
		runs, fenced := len(x.st.Runs()), 0
		for _, task := range tasks {
			if x.st.Fences.Check(task.ID, 0) != nil {
				fenced++
			}
		}
		for what, size := range map[string]int{"runs": runs, "asks": x.approvals.Pending(), "conversations beside the Commander's": len(x.sessions.All()) - 1,
			"fences": fenced, "claims": len(x.claims.Others("")), "background commands": x.commands.Len(),
			"delegations": x.tasks.Unrecorded(), "calls": x.loop.Root.Pulse.Signs(false).Calls - 1} {
			if size != 0 {
				t.Errorf("%s: %d are left", what, size)
			}
		}
		l.settled()
		if len(r.host.missions) > 0 || len(r.host.Space.All()) > 0 || r.host.auditor.Living() > 0 {
			t.Error("the host keeps something of a mission that has ended")
		}
	})
}

// What cannot be archived at the moment is told and tried again; nothing of it is lost.
func TestArchiveCannotBeWritten(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		_, tasks := r.past(centurion.MissionCompleted, 1, func(t *centurion.Task) { t.Ended.Time = t.Ended.Add(-time.Hour) })
		r.write(".opencode/archive", "a file\n")
		ctx, cancel := context.WithCancel(r.ctx)
		var g guard.Group
		var told []error
		g.Go("clean", func() error { r.host.Keeper.Clean(ctx, func(err error) { told = append(told, err) }); return nil })
		time.Sleep(10 * time.Minute)
		if err := os.Remove(r.dir + "/.opencode/archive"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		cancel()
		g.Wait()
		if len(told) == 0 || len(told) > 2 { // of the directory, and of a file in it
			t.Errorf("told: %v", told)
		}
		lines := r.archiveLines()
		if len(lines) != 1 || !strings.Contains(lines[0], tasks[0].ID) {
			t.Errorf("archived: %v", lines)
		}
	})
}
