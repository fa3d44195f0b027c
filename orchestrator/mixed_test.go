package orchestrator

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/permission"
	"centurion/provider"
	"centurion/provider/scripted"
	"centurion/session"
	"centurion/workspace/todo"
)

// temper is what the workers of a mixed mission are like, and how it ends.
type temper struct {
	name string
	n    int // workers
	ends centurion.TaskStatus
	kind centurion.Kind // of the error with which it ends
}

const mixedSlots = 50

// tempers are sixty workers for fifty slots.
var tempers = []temper{
	{"quick", 8, centurion.TaskCompleted, ""},
	{"silent answer", 5, centurion.TaskCompleted, ""}, // ten minutes in one answer: its provider's connection is cut, once
	{"silent tool", 5, centurion.TaskCompleted, ""},   // ten minutes in one command
	{"red check", 4, centurion.TaskFailed, centurion.KindVerify},
	{"refused", 4, centurion.TaskFailed, centurion.KindRefusal},
	{"unknown tool", 4, centurion.TaskCompleted, ""},
	{"limited", 6, centurion.TaskCompleted, ""}, // 429 with Retry-After, then well
	{"tool crashes", 4, centurion.TaskCompleted, ""},
	{"crashes once", 3, centurion.TaskCompleted, ""},
	{"crashes always", 3, centurion.TaskFailed, centurion.KindCrashed},
	{"asks", 4, centurion.TaskCompleted, ""},
	{"asks in vain", 2, centurion.TaskCompleted, ""},
	{"forbidden", 2, centurion.TaskCompleted, ""},
	{"cancelled", 6, centurion.TaskCancelled, centurion.KindCancelled},
}

// mixedWorkers lists the workers' tempers so that each kind is spread over the whole line.
func mixedWorkers() (all []temper) {
	for round := range tempers[0].n {
		for _, t := range tempers {
			if round < t.n {
				all = append(all, t)
			}
		}
	}
	return all
}

func mixedItem(i int) string { return fmt.Sprintf("T%d", i) }

// mixed is the cast of the mixed mission. Everybody goes by his history, so that a restart leads him nowhere else.
func mixed(workers []temper) map[string]script {
	return map[string]script{
		"commander": func(q scripted.Request) scripted.Answer { return mixedCommander(workers, q) },
		"worker":    func(q scripted.Request) scripted.Answer { return mixedWorker(workers[piece(q)], q) },
	}
}

// mixedEnd is how the Commander hears of an end.
var mixedEnd = regexp.MustCompile(`Task (T\d+) \(worker: do T\d+\) (is completed|has failed|was cancelled|is blocked)`)

// mixedCommander plans, delegates everything in one answer, cancels some workers a minute after it has heard of the first
// failure, and gives up the items whose workers have failed.
func mixedCommander(workers []temper, q scripted.Request) scripted.Answer {
	did, told := map[string]bool{}, map[string]string{}
	task := map[string]string{} // by item
	results := map[string]string{}
	for _, m := range q.Messages() {
		if m.Role == "tool" {
			results[m.CallID] = m.Text
		}
		for _, g := range mixedEnd.FindAllStringSubmatch(m.Text, -1) {
			told[g[1]] = g[2]
		}
	}
	for _, m := range q.Messages() {
		for _, c := range m.Calls {
			if strings.HasPrefix(results[c.ID], "interrupted by a restart") {
				continue
			}
			did[c.Name+c.Arguments] = true
			for i := range workers {
				if c.Name == "delegate_task" && strings.Contains(c.Arguments, `"do `+mixedItem(i)+`"`) {
					task[mixedItem(i)] = nameIn(results[c.ID])
				}
			}
		}
	}
	var next []scripted.Call
	once := func(c scripted.Call) {
		if !did[c.Name+c.Arguments] {
			next = append(next, c)
		}
	}
	if once(mixedPlan(workers)); len(next) > 0 {
		return do(next...)
	}
	for i, w := range workers {
		if task[mixedItem(i)] == "" {
			next = append(next, work(mixedItem(i), fmt.Sprintf("piece %d: %s", i, w.name)))
		}
	}
	if len(next) > 0 || len(told) == 0 {
		return scripted.Answer{Say: "I wait.", Calls: next}
	}
	if once(call("bash", args{"command": "sleep 1m"})); len(next) > 0 {
		return do(next...)
	}
	for i, w := range workers {
		id := mixedItem(i)
		if w.ends == centurion.TaskCancelled {
			once(call("cancel_task", args{"task_id": task[id], "reason": "not needed"}))
			told[id] = "was cancelled"
		}
		if told[id] == "has failed" || told[id] == "was cancelled" {
			once(mark(id, "cancelled"))
		}
	}
	return scripted.Answer{Say: "I wait.", Calls: next}
}

func mixedPlan(workers []temper) scripted.Call {
	var lines []string
	for i, w := range workers {
		lines = append(lines, fmt.Sprintf("- [ ] %s A worker: %s", mixedItem(i), w.name))
		if w.name == "red check" {
			lines = append(lines, "  - verify: `false "+mixedItem(i)+"`")
		}
	}
	return plans(lines...)
}

func mixedWorker(w temper, q scripted.Request) scripted.Answer {
	n := piece(q)
	result := say(fmt.Sprintf("result <%d>", n))
	// until works with a command until one of the answers stands in the history.
	until := func(command string, answers ...string) scripted.Answer {
		for _, m := range q.Messages() {
			if m.Role == "tool" && slices.ContainsFunc(answers, func(a string) bool { return strings.Contains(m.Text, a) }) {
				return result
			}
		}
		return do(call("bash", args{"command": command, "timeout": 600_000}))
	}
	switch w.name {
	case "silent answer":
		if q.Turn == 1 {
			return after(10*time.Minute, result)
		}
	case "silent tool":
		return until("build 9m59s", "(no output)")
	case "refused":
		return scripted.Answer{Error: &scripted.Error{Status: 403, Message: "Your input was flagged", Code: "content_policy_violation"}}
	case "unknown tool":
		if !strings.Contains(texts(q), "Tool not found: frobnicate") {
			return do(call("frobnicate", args{}))
		}
	case "limited":
		if q.Turn == 1 {
			return scripted.Answer{Error: &scripted.Error{Status: 429, RetryAfter: 20 * time.Second}}
		}
	case "tool crashes":
		return until("panic", "crashed: the shell has crashed")
	case "asks":
		return until(fmt.Sprintf("touch asked-%d", n), "(no output)", "not allowed: bash")
	case "asks in vain":
		return until(fmt.Sprintf("touch vain-%d", n), "not allowed: bash")
	case "forbidden":
		return until(fmt.Sprintf("touch forbidden-%d", n), "not allowed: bash")
	case "cancelled":
		return until("build 9m", "never")
	}
	return result
}

// mixedRules ask for some commands and forbid others.
func mixedRules(string) []permission.Level {
	return append(rules(permission.Allow), permission.Level{Name: "mixed", Rules: []permission.Rule{
		{Permission: "bash", Pattern: "touch asked-*", Action: permission.Ask},
		{Permission: "bash", Pattern: "touch vain-*", Action: permission.Ask},
		{Permission: "bash", Pattern: "touch forbidden-*", Action: permission.Deny},
	}})
}

// mines are sessions that panic: once, or whenever they ask the model.
type mines struct {
	session.Model

	mu   sync.Mutex
	trod map[string]bool
}

func (x *mines) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	first := req.Messages[0].Text
	x.mu.Lock()
	crashes := strings.Contains(first, ": crashes always") || strings.Contains(first, ": crashes once") && !x.trod[req.Session]
	if crashes {
		x.trod[req.Session] = true
	}
	x.mu.Unlock()
	if !crashes {
		return x.Model.Stream(ctx, req)
	}
	return func(yield func(provider.Delta, error) bool) {
		yield(provider.Delta{Type: provider.Text, Text: "half an ans"}, nil)
		panic("the model has crashed")
	}
}

// ORCH-12, ORCH-136, ORCH-144: a mission of workers that answer at once, are silent for ten minutes, fail, meet limits, crash,
// ask and are cancelled ends with every one of them accounted for, whoever answers what they ask, and across restarts.
func TestMixedWorkers(t *testing.T) {
	for _, test := range []struct {
		ask   string
		stops []stop
	}{
		{"ask", nil},
		{"ask", []stop{{10 * time.Second, byKill}, {5 * time.Minute, byHandover}}},
		{"deny", []stop{{30 * time.Second, byShutdown}}},
	} {
		t.Run(fmt.Sprintf("%s %v", test.ask, test.stops), func(t *testing.T) {
			workers := mixedWorkers()
			bubble(t, mixed(workers), func(r *rig) {
				x := &mixedMission{rig: r, workers: workers, ask: test.ask, stops: test.stops}
				x.run()
			})
		})
	}
}

// mixedMission is one mixed mission and the person who looks after it.
type mixedMission struct {
	*rig
	workers []temper
	ask     string
	stops   []stop
}

func (x *mixedMission) run() {
	client := provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: x.http})
	model := &mines{Model: client, trod: map[string]bool{}}
	x.cfg.Model = func(string) (Model, error) { return Model{Client: model, Ref: ref}, nil }
	x.cfg.Rules, x.cfg.PerAgent, x.cfg.Workers = mixedRules, len(x.workers), mixedSlots
	x.restart()
	m := x.start(centurion.MissionOptions{Ask: x.ask})
	for _, s := range x.stops {
		l := x.live(m.ID)
		x.person(m.ID, time.Now().Add(s.at), l)
		l.goAway(s.way)
	}
	l := x.live(m.ID)
	time.Sleep(time.Second)
	inside := x.host.running(m.ID)
	x.person(m.ID, time.Now().Add(2*time.Hour), l)
	m = l.settled()
	x.is(m, centurion.MissionCompleted, "")
	x.accounted(m)
	x.emptied(inside)
}

// person answers what has been asked for two minutes, until a moment or the mission's end.
func (x *mixedMission) person(mission string, end time.Time, l *life) {
	for time.Now().Before(end) && len(l.done) == 0 {
		time.Sleep(min(30*time.Second, time.Until(end)))
		for _, a := range x.open(mission) {
			switch {
			case time.Since(a.Created.Time) < 2*time.Minute:
			case strings.Contains(a.Title, "vain"):
				x.answer(a.ID, "reject")
			default:
				x.answer(a.ID, "once")
			}
		}
	}
}

// accounted looks for each worker's end, in the store, in the journal, in what the Commander was told, and in the plan.
func (x *mixedMission) accounted(m centurion.Mission) {
	t := x.t
	t.Helper()
	tasks := x.rig.tasks(m.ID)
	equal(t, "tasks", len(tasks), len(x.workers))
	ends := map[string][]centurion.EventType{}
	for _, e := range x.events(m.ID, centurion.EventTaskCompleted, centurion.EventTaskFailed, centurion.EventTaskCancelled, centurion.EventTaskBlocked) {
		ends[e.Task] = append(ends[e.Task], e.Type)
	}
	deliveries, err := x.store.Deliveries(x.ctx, m.ID)
	if err != nil {
		t.Fatal(err)
	}
	taken := map[string]int{}
	for _, d := range deliveries {
		if !d.Taken.IsZero() {
			taken[d.Task]++
		}
	}
	told := map[string]int{}
	for _, e := range x.events(m.ID, centurion.EventTaskDelivered) {
		told[e.Task]++
	}
	plan, err := todo.Parse([]byte(x.read(todoMD)))
	if err != nil {
		t.Fatal(err)
	}
	counts, history := map[centurion.TaskStatus]int{}, x.userText(m.Session)
	of := map[string]centurion.Task{} // by item: there are as many as workers
	for _, task := range tasks {
		of[task.Item] = task
	}
	for i, w := range x.workers {
		task, found := of[mixedItem(i)]
		equal(t, "a task of "+mixedItem(i), found, true)
		what := fmt.Sprintf("%s (%s)", task.Item, w.name)
		counts[task.Status]++
		equal(t, what+" status", task.Status, w.ends)
		equal(t, what+" ends", fmt.Sprint(ends[task.ID]), fmt.Sprintf("[task.%s]", w.ends))
		equal(t, what+" deliveries that were taken", taken[task.ID], 1)
		equal(t, what+" told", told[task.ID], 1)
		kind := centurion.Kind("")
		if task.Error != nil {
			kind = task.Error.Kind
		}
		equal(t, what+" error", kind, w.kind)
		want := todo.Cancelled
		if w.ends == centurion.TaskCompleted {
			want = todo.Done
			equal(t, what+" result", task.Result, fmt.Sprintf("result <%d>", i))
			equal(t, what+" in the history", strings.Count(history, fmt.Sprintf("result <%d>", i)), 1)
		}
		it, _ := plan.Item(task.Item)
		equal(t, what+" mark", it.Mark, want)
	}
	equal(t, "completed", counts[centurion.TaskCompleted], 43)
	equal(t, "failed", counts[centurion.TaskFailed], 11)
	equal(t, "cancelled", counts[centurion.TaskCancelled], 6)
	x.happened(m)
}

// happened looks that the workers were what they were meant to be.
func (x *mixedMission) happened(m centurion.Mission) {
	t := x.t
	t.Helper()
	by := map[string]int{}
	asks, err := x.store.Asks(x.ctx, m.ID, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range asks {
		by[a.By]++
		if a.By == "policy" && a.Answered.Sub(a.Created.Time) > time.Second {
			t.Errorf("%s was answered by policy after %s", a.Title, a.Answered.Sub(a.Created.Time))
		}
	}
	who, nobody := "person", "policy"
	if x.ask == "deny" {
		who, nobody = nobody, who
	}
	equal(t, "answered by a "+nobody, by[nobody], 0)
	if n := by[who]; n < 6 || n > 6 && len(x.stops) == 0 { // who is interrupted before it could use the answer asks again
		t.Errorf("%d asks were answered by a %s, want 6", n, who)
	}
	for _, task := range x.rig.tasks(m.ID) {
		w := x.workers[pieceOf(task.Prompt)]
		if took := task.Ended.Sub(task.Started.Time); w.name == "silent tool" && took < 599*time.Second {
			t.Errorf("%s: the silent one has ended after %s", task.Item, took)
		}
	}
	if peak := x.model.Peak(); peak != mixedSlots && peak != mixedSlots+1 { // and the Commander, who holds no slot
		t.Errorf("%d sessions asked the model at once", peak)
	}
}

func pieceOf(prompt string) (n int) {
	_, rest, _ := strings.Cut(prompt, "piece")
	_, _ = fmt.Sscan(rest, &n)
	return n
}

// emptied looks that nothing of a mission that has ended is left in memory.
func (x *mixedMission) emptied(m *mission) {
	t := x.t
	t.Helper()
	synctest.Wait()
	for what, n := range map[string]int{
		"tasks": len(m.st.Runs()), "conversations": len(m.sessions.All()) - 1, "asks": m.approvals.Pending(), "files that are held": len(m.claims.Others("")),
		"background commands": m.commands.Len(), "delegations": m.tasks.Unrecorded(),
		"claims on the budget": m.loop.Reserves.State().Waiting, "accounts that rest": m.loop.Reserves.State().Resting - 1,
		"missions of the host": len(x.host.missions), "missions that stand still": len(x.host.Space.All()),
		"tasks that are audited": x.host.auditor.Living(),
	} {
		equal(t, what, n, 0)
	}
	if m.sessions.Of(m.loop.Root.ID()) == nil { // it lasts as long as the mission, as its account does
		t.Error("a conversation is left that is not the mission's own")
	}
	if n := m.loop.Reserves.State().Accounts; n != 1 {
		t.Errorf("%d accounts are left", n)
	}
	x.hostHasRoom(mixedSlots)
	x.room("the mission", m.slots, "worker", centurion.ModelRef{}, mixedSlots)
	x.host.slots.Enter(m.slots)
	m.slots.Resize(2*len(x.workers), len(x.workers))
	x.room("the agent", m.slots, "worker", centurion.ModelRef{}, len(x.workers))
}
