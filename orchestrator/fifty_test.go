package orchestrator

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/provider/scripted"
)

// fifty is a cast whose Commander hands out n tasks and whose workers end soon, after a minute, with a failure, or after
// ten minutes in which nothing is heard of them. Every model answer takes latency longer. They go by their history, so
// that a restart leads them nowhere else.
func fifty(n int, latency time.Duration) map[string]script {
	slow := func(d time.Duration, a scripted.Answer) scripted.Answer { return after(d+latency, a) }
	return map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			if q.Step() == 1 {
				return slow(0, many(n))
			}
			return slow(0, say("I wait"))
		},
		"worker": func(q scripted.Request) scripted.Answer {
			n := piece(q)
			result := fmt.Sprintf("result <%d>", n)
			switch {
			case n%5 == 0:
				if strings.HasPrefix(q.Last(), "(no output)") { // the command has run to its end
					return slow(0, say(result))
				}
				return slow(0, do(call("bash", args{"command": "build 9m59s", "timeout": 600000})))
			case n%5 == 1:
				return slow(time.Minute, say(result))
			case n%5 == 2:
				return scripted.Answer{Delay: latency, Error: &scripted.Error{Status: 401, Message: result}}
			}
			return slow(time.Duration(n)*10*time.Millisecond, say(result))
		},
	}
}

func piece(q scripted.Request) (n int) {
	_, rest, _ := strings.Cut(q.First(), "piece")
	_, _ = fmt.Sscan(rest, &n)
	return n
}

// completions asserts that each of n results came once and in time: never before its worker's last answer, and not long
// after its task's end.
func (r *rig) completions(m centurion.Mission, n int, failed func(int) bool, late time.Duration) {
	r.t.Helper()
	r.is(m, centurion.MissionCompleted, "")
	tasks := r.tasks(m.ID)
	equal(r.t, "tasks", len(tasks), n)
	told := map[string]centurion.Time{}
	for _, e := range r.events(m.ID, centurion.EventTaskDelivered) {
		if _, twice := told[e.Task]; twice {
			r.t.Errorf("task %s was told twice", e.Task)
		}
		told[e.Task] = e.Time
	}
	history := r.userText(m.Session)
	for i, task := range tasks {
		want := centurion.TaskCompleted
		if failed(i) {
			want = centurion.TaskFailed
		}
		if task.Status != want {
			r.t.Errorf("task %d is %s, want %s", i, task.Status, want)
		}
		if c := strings.Count(history, fmt.Sprintf("result <%d>", i)); c != 1 {
			r.t.Errorf("the result of task %d stands %d times in the history", i, c)
		}
		at, ok := told[task.ID]
		if !ok {
			r.t.Errorf("the result of task %d was missed", i)
			continue
		}
		if d := at.Sub(task.Ended.Time); d < 0 || d > late {
			r.t.Errorf("the result of task %d was told %s after its end", i, d)
		}
		messages, err := r.store.Messages(r.ctx, task.Session)
		if err != nil {
			r.t.Fatal(err)
		}
		if last := messages[len(messages)-1]; at.Millis() < last.Time.Completed || last.Finish == "" {
			r.t.Errorf("the result of task %d was told before its worker's last answer had ended", i)
		}
	}
	equal(r.t, "ends that were told", r.count(m.ID, centurion.EventTaskCompleted)+r.count(m.ID, centurion.EventTaskFailed), n)
	r.checkDeliveries(m.ID)
}

// stop is when and how a host goes away.
type stop struct {
	at  time.Duration
	way string
}

func (s stop) String() string { return s.way + " after " + s.at.String() }

// O3, ORCH-117, ORCH-121: fifty completions, some in no time and some after ten silent minutes, with a model that answers at
// once, soon or late: none is missed, none comes early, and each is delivered once, also when the host goes away in the middle.
func TestFiftyAcrossRestarts(t *testing.T) {
	for _, test := range []struct {
		latency time.Duration
		stops   []stop
	}{
		{0, nil},
		{2 * time.Second, nil},
		{0, []stop{{200 * time.Millisecond, byHandover}, {30 * time.Second, byKill}}},
		{500 * time.Millisecond, []stop{{900 * time.Millisecond, byHandover}, {61 * time.Second, byKill}}},
		{2 * time.Second, []stop{{2 * time.Second, byHandover}, {2300 * time.Millisecond, byKill}, {10 * time.Minute, byKill}}},
		{2 * time.Second, []stop{{4 * time.Second, byKill}, {62 * time.Second, byHandover}, {time.Minute, byShutdown}}},
	} {
		t.Run(fmt.Sprintf("%s %v", test.latency, test.stops), func(t *testing.T) {
			bubble(t, fifty(50, test.latency), func(r *rig) {
				r.cfg.PerAgent = 50
				r.restart()
				m := r.start(centurion.MissionOptions{})
				for _, s := range test.stops {
					l := r.live(m.ID)
					time.Sleep(s.at)
					l.goAway(s.way)
				}
				m = r.run(m.ID)
				// What ended while no Commander was there is told as soon as it is there again and has answered.
				r.completions(m, 50, func(n int) bool { return n%5 == 2 }, 3*time.Second+2*test.latency)
			})
		})
	}
}

// O3: two hundred workers end while the Commander is busy, in one long answer or one long command: all their results are there
// when it is done, and none twice.
func TestManyDeliveries(t *testing.T) {
	answer := after(100*time.Second, do(call("ls", args{})))
	command := do(call("bash", args{"command": "build 100s", "timeout": 200000}))
	for name, test := range map[string]struct {
		n    int
		busy scripted.Answer
		way  string // in which the host goes away meanwhile
	}{
		"in a long answer":            {200, answer, ""},
		"in an answer, handed over":   {40, answer, byHandover},
		"in a long command, and dies": {40, command, byKill},
	} {
		n := test.n
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": func(q scripted.Request) scripted.Answer {
					switch {
					case q.Step() == 1:
						a := many(n)
						a.Calls = append(a.Calls, onward)
						return a
					case !strings.Contains(q.Last(), "result <") && q.Step() < 5:
						return test.busy
					}
					return say("I wait")
				},
				"worker": func(q scripted.Request) scripted.Answer {
					return after(time.Duration(piece(q)%50)*time.Second, say(fmt.Sprintf("result <%d>", piece(q))))
				},
			}, func(r *rig) {
				r.cfg.PerAgent, r.cfg.Workers = n, n
				r.restart()
				m := r.start(centurion.MissionOptions{})
				l := r.live(m.ID)
				time.Sleep(70 * time.Second)
				synctest.Wait()
				equal(t, "told while it is busy", r.count(m.ID, centurion.EventTaskDelivered), 0)
				ended := 0
				for _, task := range r.tasks(m.ID) {
					if task.Status == centurion.TaskCompleted {
						ended++
					}
				}
				equal(t, "ended while it is busy", ended, n)
				if test.way != "" {
					l.goAway(test.way)
					l = r.live(m.ID)
				}
				m = l.settled()
				r.completions(m, n, func(int) bool { return false }, 200*time.Second)
			})
		})
	}
}

// O3: fifty tasks end, some in no time and some after ten silent minutes: none is missed, each is told once.
func TestFiftyCompletions(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(many(50), say("I wait")),
		"worker": func(r scripted.Request) scripted.Answer {
			var n int
			fmt.Sscanf(r.First()[strings.Index(r.First(), "piece"):], "piece %d", &n)
			result := fmt.Sprintf("result <%d>", n)
			switch {
			case n%5 == 0: // ten minutes in one command, of which nothing is heard
				return steps(do(call("bash", args{"command": "build 9m59s", "timeout": 600000})), say(result))(r)
			case n%5 == 1:
				return after(time.Minute, say(result))
			case n%5 == 2:
				return scripted.Answer{Error: &scripted.Error{Status: 401, Message: result}}
			}
			return after(time.Duration(n)*10*time.Millisecond, say(result))
		},
	}, func(r *rig) {
		r.cfg.PerAgent = 50
		r.restart()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		asked := r.requests("commander")
		var text strings.Builder
		for _, msg := range asked[len(asked)-1].Messages() {
			text.WriteString(msg.Text)
		}
		failed := 0
		for n, task := range r.tasks(m.ID) {
			want := centurion.TaskCompleted
			if n%5 == 2 {
				want, failed = centurion.TaskFailed, failed+1
			}
			equal(t, fmt.Sprint("task ", n), task.Status, want)
			if c := strings.Count(text.String(), fmt.Sprintf("result <%d>", n)); c != 1 {
				t.Errorf("the result of task %d stands %d times in the history", n, c)
			}
		}
		if woken := len(asked) - 2; woken > failed+1 {
			t.Errorf("the commander was woken %d times for %d failures and the end", woken, failed)
		}
		equal(t, "silent commands", r.shell.times("build 9m59s"), 10)
		deliveries, _ := r.store.Deliveries(r.ctx, m.ID)
		equal(t, "deliveries", len(deliveries), 50)
		told := map[string]centurion.Time{}
		for _, e := range r.events(m.ID, centurion.EventTaskDelivered) {
			told[e.Task] = e.Time
		}
		for _, task := range r.tasks(m.ID) {
			if late := told[task.ID].Sub(task.Ended.Time); late < 0 || late > time.Second {
				t.Errorf("a result was told %s after its task had ended", late)
			}
		}
	})
}
