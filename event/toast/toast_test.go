package toast

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/event"
	"centurion/event/view"
	"centurion/text"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) centurion.Time { return centurion.Time{Time: noon.Add(d)} }

// script makes events of a mission, each with the next number.
type script struct {
	events []centurion.Event
	now    time.Duration
}

func (s *script) fact(typ centurion.EventType, data string) *script {
	s.events = append(s.events, centurion.Event{Seq: int64(len(s.events) + 1), Time: at(s.now), Type: typ, Mission: "msn_1", Session: "ses_root",
		Data: json.RawMessage(data)})
	return s
}

func (s *script) task(typ centurion.EventType, id string, status centurion.TaskStatus, more ...string) *script {
	data := fmt.Sprintf(`{"agent":"worker","title":"Write %s","parent":"ses_root","session":"ses_%s","status":%q,"attempt":1%s}`, id, id, status, strings.Join(more, ""))
	s.fact(typ, data)
	e := &s.events[len(s.events)-1]
	e.Task, e.Session = "tsk_"+id, "ses_"+id
	return s
}

func (s *script) queued(ids ...string) *script {
	for _, id := range ids {
		s.task(centurion.EventTaskQueued, id, centurion.TaskQueued)
	}
	return s
}

func (s *script) started(ids ...string) *script {
	for _, id := range ids {
		s.task(centurion.EventTaskStarted, id, centurion.TaskRunning)
	}
	return s
}

func (s *script) ended(id string, status centurion.TaskStatus, more ...string) *script {
	return s.task(centurion.EventType("task."+string(status)), id, status, more...)
}

func (s *script) wait(d time.Duration) *script { s.now += d; return s }

// toasts are what a fresh Deriver makes of the events and of the time after them.
func (s *script) toasts() []Notice {
	var d Deriver
	var all []Notice
	for _, e := range s.events {
		all = append(all, d.Apply(e)...)
	}
	return append(all, d.Flush(noon.Add(s.now+Window))...)
}

func show(all []Notice) string {
	var b strings.Builder
	for _, n := range all {
		fmt.Fprintf(&b, "%s|%s|%s|%d\n", n.Title, strings.ReplaceAll(n.Message, "\n", "⏎"), n.Variant, n.Duration)
	}
	return b.String()
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// ORCH-94, ORCH-96, ORCH-98: the consolidated list, to the letter. A task is new for five seconds.
func TestList(t *testing.T) {
	l := List{Tasks: []centurion.Task{
		{Title: "Plan", Agent: "planner", Status: centurion.TaskCompleted, Created: at(-time.Hour)},
		{Title: "Read the code", Agent: "worker", Status: centurion.TaskCompleted, Created: at(-time.Hour)},
		{Title: "Not this", Agent: "worker", Status: centurion.TaskCancelled, Created: at(-time.Hour)},
		{Title: "Write the\nparser", Agent: "worker", Status: centurion.TaskRunning, Created: at(-5 * time.Second), Started: at(-4 * time.Second)},
		{Title: "Write its test", Agent: "worker", Status: centurion.TaskVerifying, Created: at(-4999 * time.Millisecond), Started: at(-2 * time.Second)},
		{Title: "Check both", Agent: "reviewer", Status: centurion.TaskRunning, Created: at(-2 * time.Hour), Started: at(-62 * time.Second)},
	}}
	expect(t, l.Text(noon), `Running (3): [2/5]
⚡ Write the parser (worker) - 4s
⚡ Write its test (worker) - 2s ← NEW
⚡ Check both (reviewer) - 1m02s
Slots: 3/50 · worker 2/10 · reviewer 1/10`)

	l.Slots, l.PerAgent = 3, 2
	l.Tasks = append(l.Tasks, centurion.Task{Title: "Describe it", Agent: "worker", Status: centurion.TaskQueued, Created: at(-time.Second)},
		centurion.Task{Title: "Ship it", Agent: "worker", Status: centurion.TaskWaiting, Created: at(-time.Minute)})
	expect(t, l.Text(noon), `Running (3): [2/7]
⚡ Write the parser (worker) - 4s
⚡ Write its test (worker) - 2s ← NEW
⚡ Check both (reviewer) - 1m02s
Queued (1):
· Describe it (worker) - 1s ← NEW
Waiting (1):
◦ Ship it (worker) - 1m00s
Slots: 3/3 · worker 2/2 · reviewer 1/2`)
	expect(t, l.Remaining(), "Still running: 3 | Queued: 2")
	expect(t, List{}.Text(noon), "Running (0): [0/0]")
	expect(t, List{Tasks: l.Tasks[:3]}.Remaining()+List{Tasks: l.Tasks[:3]}.SlotLine(), "")
}

func TestListNamesTenOfAGroup(t *testing.T) {
	var l List
	for i := range 13 {
		l.Tasks = append(l.Tasks, centurion.Task{Title: fmt.Sprint("Q", i), Agent: "worker", Status: centurion.TaskQueued, Created: at(-time.Minute)})
	}
	text := l.Text(noon)
	if !strings.Contains(text, "Queued (13):\n") || !strings.Contains(text, "· Q9 (worker) - 1m00s\n… and 3 more\nSlots: 0/50") || strings.Contains(text, "Q10") {
		t.Error(text)
	}
}

// ORCH-95: the templates of all notices, to the letter. None is shown for ever.
func TestPresets(t *testing.T) {
	var b strings.Builder
	seen := map[string]bool{}
	for _, p := range Presets() {
		fmt.Fprintf(&b, "%s|%s|%s|%s|%d\n", p.Name, p.Title, strings.ReplaceAll(p.Message, "\n", "⏎"), p.Variant, p.Duration.Milliseconds())
		if seen[p.Name] || p.Duration <= 0 || rank(p.Variant) < 0 {
			t.Errorf("%+v", p)
		}
		seen[p.Name] = true
	}
	expect(t, b.String(), `mission_started|Mission started|{goal}|info|4000
mission_resumed|Mission resumed|{goal}|info|4000
mission_complete|Mission complete|{goal}⏎{account}|success|8000
mission_failed|Mission failed|{goal}⏎{reason}|error|10000
mission_blocked|Mission blocked|{goal}⏎{reason}|warning|10000
mission_paused|Mission paused|{goal}⏎{reason}|warning|8000
mission_cancelled|Mission cancelled|{goal}⏎{reason}|warning|5000
task_started|Tasks|{list}|info|3000
task_completed||Task completed: {title} ({time})|success|4000
task_failed||Task failed: {title} ({time}): {reason}|error|8000
task_cancelled||Task cancelled: {title} ({time}): {reason}|warning|4000
task_blocked||Task blocked: {title} ({time}): {reason}|warning|8000
task_retried||Task tried again: {title} (attempt {attempt}): {reason}|warning|4000
all_complete|All tasks complete|{summary}|success|6000
all_ended|All tasks ended|{summary}|warning|8000
countdown||Going on in {time}|info|2000
needs_you|Centurion needs you|{what}⏎{goal}|warning|10000
budget|Budget reached|{limit}: {spent} of {max}|warning|8000
agent|Another agent|{agent} continues. The next request is paid in full: nothing of the conversation is cached for it.|info|6000
retry|Waiting for the model|Retry in {time}: {reason}|warning|4000
`)
	expect(t, fmt.Sprint(preset("mission_failed").Toast("goal", "", "reason", "see {goal}")), "{Mission failed see {goal} error 10000}")
	expect(t, fmt.Sprint(preset("mission_started").Toast("goal", "")), "{Mission started Mission started info 4000}")
}

// ORCH-28, ORCH-29, ORCH-30, ORCH-106, ORCH-107, ORCH-126: which facts give a toast, and what it says.
func TestFacts(t *testing.T) {
	const goal = `{"goal":"Mend\n it"}`
	start := func() *script { return (&script{}).fact(centurion.EventMissionStarted, goal) }
	const told = "Mission started|Mend it|info|4000\n"
	one := func() *script { return start().wait(time.Second).queued("a").started("a").wait(12 * time.Second) }
	const oneTold = told + "Tasks|Running (1): [0/1]⏎⚡ Write a (worker) - 0s ← NEW⏎Slots: 1/50 · worker 1/10|info|3000\n"
	for name, c := range map[string]struct {
		s    *script
		want string
	}{
		"started":            {start(), told},
		"resumed":            {(&script{}).fact(centurion.EventMissionResumed, goal), "Mission resumed|Mend it|info|4000\n"},
		"complete":           {start().fact(centurion.EventMissionCompleted, `{"cost":1.239,"duration_ms":62000,"tasks":{"completed":3}}`), told + "Mission complete|Mend it⏎3 tasks completed · 1m02s · $1.24|success|8000\n"},
		"failed":             {start().fact(centurion.EventMissionFailed, `{"reason":"the key\u0007 is refused"}`), told + "Mission failed|Mend it⏎the key is refused|error|10000\n"},
		"paused":             {start().fact(centurion.EventMissionPaused, `{"reason":"max_cost"}`), told + "Mission paused|Mend it⏎max_cost|warning|8000\n"},
		"blocked":            {start().fact(centurion.EventMissionBlocked, `{"reason":"which one?"}`), told + "Mission blocked|Mend it⏎which one?|warning|10000\n"},
		"cancelled":          {start().fact(centurion.EventMissionCancelled, `{}`), told + "Mission cancelled|Mend it|warning|5000\n"},
		"countdown":          {start().fact(centurion.EventMissionUpdated, `{"countdown_ms":2500}`), told + "|Going on in 2s|info|2500\n"},
		"countdown is off":   {start().fact(centurion.EventMissionUpdated, `{"countdown_ms":0}`), told},
		"shortest":           {start().fact(centurion.EventMissionUpdated, `{"countdown_ms":1}`), told + "|Going on in 0s|info|1\n"},
		"permission, unsaid": {start().fact(centurion.EventPermissionAsked, `{}`), told + "Centurion needs you|Something waits for your permission⏎Mend it|warning|10000\n"},
		"one task done":      {start().fact(centurion.EventMissionCompleted, `{"duration_ms":1000,"tasks":{"completed":1}}`), told + "Mission complete|Mend it⏎1 task completed · 1s|success|8000\n"},
		"limits of one's own": {(&script{}).fact(centurion.EventMissionStarted, `{"goal":"g","options":{"max_workers":3,"max_per_agent":2}}`).queued("a").started("a"),
			"Mission started|g|info|4000\nTasks|Running (1): [0/1]⏎⚡ Write a (worker) - 0s ← NEW⏎Slots: 1/3 · worker 1/2|info|3000\n"},
		"no countdown":     {start().fact(centurion.EventMissionUpdated, `{"level":2}`), told},
		"budget":           {start().fact(centurion.EventBudgetExceeded, `{"limit":"max_cost","spent":5.02,"max":5}`), told + "Budget reached|max cost: $5.02 of $5.00|warning|8000\n"},
		"budget of time":   {start().fact(centurion.EventBudgetExceeded, `{"limit":"max_duration","spent":61000,"max":60000}`), told + "Budget reached|max duration: 1m01s of 1m00s|warning|8000\n"},
		"budget of tokens": {start().fact(centurion.EventBudgetExceeded, `{"limit":"max_tokens","spent":61000,"max":60000}`), told + "Budget reached|max tokens: 61k of 60k|warning|8000\n"},
		"another agent":    {start().fact(centurion.EventSessionAgent, `{"agent":"looker","from":"assistant","to":"looker","reason":"x"}`), told + "Another agent|looker continues. The next request is paid in full: nothing of the conversation is cached for it.|info|6000\n"},
		"resumed while asked": {start().fact(centurion.EventQuestionAsked, `{}`).fact(centurion.EventMissionResumed, `{}`).fact(centurion.EventPlanAsked, `{}`),
			told + "Centurion needs you|A question waits for your answer⏎Mend it|warning|10000\nMission resumed|Mend it|info|4000\nCenturion needs you|A plan waits for your approval⏎Mend it|warning|10000\n"},
		"paused while asked": {start().fact(centurion.EventQuestionAsked, `{}`).fact(centurion.EventMissionPaused, `{}`).fact(centurion.EventPlanAsked, `{}`),
			told + "Centurion needs you|A question waits for your answer⏎Mend it|warning|10000\nMission paused|Mend it|warning|8000\nCenturion needs you|A plan waits for your approval⏎Mend it|warning|10000\n"},
		"paused for the first time it is seen": {(&script{}).fact(centurion.EventMissionUpdated, goal).fact(centurion.EventMissionPaused, `{}`), "Mission paused|Mend it|warning|8000\n"},
		"a wait without a length":              {start().fact(centurion.EventProviderRetry, `{"reason":"gate"}`), told},
		"permission":                           {start().fact(centurion.EventPermissionAsked, `{"permission":"bash","patterns":["echo secret"]}`), told + "Centurion needs you|Something waits for your permission: bash⏎Mend it|warning|10000\n"},
		"question":                             {start().fact(centurion.EventQuestionAsked, `{"text":"secret?"}`), told + "Centurion needs you|A question waits for your answer⏎Mend it|warning|10000\n"},
		"plan":                                 {start().fact(centurion.EventPlanAsked, `{}`), told + "Centurion needs you|A plan waits for your approval⏎Mend it|warning|10000\n"},
		"a policy answers":                     {start().fact(centurion.EventPermissionAsked, `{"by":"policy"}`).fact(centurion.EventPermissionReplied, `{"by":"policy"}`), told},
		"several asks": {start().fact(centurion.EventQuestionAsked, `{"id":"a"}`).fact(centurion.EventQuestionAsked, `{"id":"b"}`).fact(centurion.EventQuestionAnswered, `{"id":"a"}`).fact(centurion.EventQuestionAsked, `{"id":"c"}`),
			told + "Centurion needs you|A question waits for your answer⏎Mend it|warning|10000\n"},
		"asked again": {start().fact(centurion.EventQuestionAsked, `{}`).fact(centurion.EventQuestionAnswered, `{}`).fact(centurion.EventPlanAsked, `{}`),
			told + "Centurion needs you|A question waits for your answer⏎Mend it|warning|10000\nCenturion needs you|A plan waits for your approval⏎Mend it|warning|10000\n"},
		"a wait that nearly is over": {start().fact(centurion.EventProviderRetry, `{"wait_ms":30000,"reason":"rate_limit"}`).wait(29*time.Second).fact(centurion.EventProviderRetry, `{"wait_ms":9000,"reason":"gate"}`),
			told + "Waiting for the model|Retry in 30s: rate limit|warning|8000\n"},
		"retries of many sessions": {start().fact(centurion.EventProviderRetry, `{"wait_ms":30000,"reason":"rate_limit"}`).wait(time.Second).fact(centurion.EventProviderRetry, `{"wait_ms":9000,"reason":"gate"}`).
			wait(29*time.Second).fact(centurion.EventProviderRetry, `{"wait_ms":1500,"reason":"rate_limit"}`), told + "Waiting for the model|Retry in 30s: rate limit|warning|8000\nWaiting for the model|Retry in 2s: rate limit|warning|1500\n"},
		"a task is tried again": {one().task(centurion.EventTaskRetrying, "a", centurion.TaskRunning, `,"reason":"stalled"`), oneTold + "|Task tried again: Write a (attempt 1): stalled|warning|4000\n"},
		"task completed":        {one().ended("a", centurion.TaskCompleted), oneTold + "|Task completed: Write a (12s)|success|4000\n"},
		"task failed":           {one().ended("a", centurion.TaskFailed, `,"error":{"kind":"timeout","message":"no answer"}`), oneTold + "|Task failed: Write a (12s): no answer|error|8000\n"},
		"failed, unsaid":        {one().ended("a", centurion.TaskFailed, `,"error":{"kind":"timeout"}`), oneTold + "|Task failed: Write a (12s): timeout|error|8000\n"},
		"task cancelled":        {one().ended("a", centurion.TaskCancelled), oneTold + "|Task cancelled: Write a (12s)|warning|4000\n"},
		"task blocked":          {one().ended("a", centurion.TaskBlocked, `,"reason":"which key?"`), oneTold + "|Task blocked: Write a (12s): which key?|warning|8000\n"},
		"task blocked, and continues at once": {one().ended("a", centurion.TaskBlocked).task(centurion.EventTaskUpdated, "a", centurion.TaskQueued),
			oneTold + "Tasks|Running (0): [0/1]⏎Queued (1):⏎· Write a (worker) - 12s⏎Slots: 0/50|info|3000\n"},
		"ended before the mission's end": {one().ended("a", centurion.TaskCompleted).fact(centurion.EventMissionCompleted, `{}`),
			oneTold + "|Task completed: Write a (12s)|success|4000\nMission complete|Mend it⏎0s|success|8000\n"},
		"ended before the mission's pause": {one().ended("a", centurion.TaskCompleted).fact(centurion.EventMissionPaused, `{}`),
			oneTold + "|Task completed: Write a (12s)|success|4000\nMission paused|Mend it|warning|8000\n"},
		"nothing of note": {start().fact(centurion.EventTodoUpdated, `{}`).fact(centurion.EventToolCompleted, `{}`).fact(centurion.EventMessageUpdated, `{}`).fact(centurion.EventVerifyFailed, `{}`), told},
		"odd data": {(&script{}).fact(centurion.EventMissionStarted, `[]`).fact(centurion.EventMissionCompleted, `7`).fact(centurion.EventTaskCompleted, `null`),
			"Mission started|Mission started|info|4000\nMission complete|0s|success|8000\n"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, show(c.s.toasts()), c.want) })
	}
}

// ORCH-34, ORCH-38, ORCH-97: tasks that are added within half a second are one toast with the list, and so are those that end.
func TestOneToastForMany(t *testing.T) {
	s := (&script{}).queued("a", "b", "c").started("a").wait(200 * time.Millisecond).started("b").wait(10 * time.Second)
	s.ended("a", centurion.TaskCompleted).wait(499 * time.Millisecond).started("c")
	expect(t, show(s.toasts()), `Tasks|Running (2): [0/3]⏎⚡ Write a (worker) - 0s ← NEW⏎⚡ Write b (worker) - 0s ← NEW⏎Queued (1):⏎· Write c (worker) - 0s ← NEW⏎Slots: 2/50 · worker 2/10|info|3000
|Task completed: Write a (10s)⏎Running (2): [1/3]⏎⚡ Write b (worker) - 10s⏎⚡ Write c (worker) - 0s⏎Slots: 2/50 · worker 2/10|success|4000
`)
	s = (&script{}).queued("a", "b", "c", "d").started("a", "b", "c").wait(12 * time.Second)
	s.ended("a", centurion.TaskCompleted).wait(300*time.Millisecond).ended("b", centurion.TaskFailed)
	all := s.toasts()
	expect(t, show(all[1:]), "|Task completed: Write a (12s)⏎Task failed: Write b (12s)⏎Still running: 1 | Queued: 1|error|8000\n")
	if n := all[1]; n.Session != "ses_root" || n.After != int64(len(s.events)) || !n.Time.Equal(noon.Add(12*time.Second+Window)) {
		t.Errorf("%+v", n)
	}
	s.wait(Window).ended("c", centurion.TaskCompleted)
	expect(t, s.toasts()[2].Message, "Task completed: Write c (12s)\nStill running: 0 | Queued: 1")
}

// ORCH-39, ORCH-126: when the whole batch has ended, its summary is told, once, and the next batch begins anew.
func TestBatchSummary(t *testing.T) {
	s := (&script{}).queued("a", "b", "c").started("a", "b", "c").wait(12*time.Second).ended("a", centurion.TaskCompleted)
	s.wait(50*time.Second).ended("b", centurion.TaskFailed).ended("c", centurion.TaskCancelled)
	all := s.toasts()
	expect(t, show(all[2:]), "All tasks ended|3 tasks in 1m02s: 1 ok, 1 failed, 1 cancelled⏎✓ Write a (12s)⏎✗ Write b (1m02s)⏎− Write c (1m02s)|error|8000\n")
	s.wait(time.Minute).queued("d", "e").started("d", "e").wait(3*time.Second).ended("d", centurion.TaskCompleted).ended("e", centurion.TaskCompleted)
	all = s.toasts()
	expect(t, show(all[4:]), "All tasks complete|2 tasks in 3s: 2 ok, 0 failed, 0 cancelled⏎✓ Write d (3s)⏎✓ Write e (3s)|success|6000\n")
}

// Ten of a batch are named; who is blocked counts apart; and how long it took is from the first to the last.
func TestSummaryOfMany(t *testing.T) {
	s := &script{}
	for i := range 12 {
		s.queued(fmt.Sprint(i)).wait(time.Millisecond)
	}
	s.started("0", "1").wait(10*time.Second).ended("0", centurion.TaskBlocked)
	for i := 1; i < 12; i++ {
		s.ended(fmt.Sprint(i), centurion.TaskCompleted).wait(time.Millisecond)
	}
	all := s.toasts()
	text := all[len(all)-1].Message
	if !strings.HasPrefix(text, "12 tasks in 10s: 11 ok, 0 failed, 0 cancelled, 1 blocked\n! Write 0") || !strings.HasSuffix(text, "… and 2 more") {
		t.Error(text)
	}
}

// Lengths of time with their two largest units; what has run, what waits for its start and what was never seen to begin.
func TestSpanAndAge(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "0s", 59*time.Second + 999*time.Millisecond: "59s", time.Minute: "1m00s", time.Hour - 1: "59m59s", time.Hour: "1h00m",
		24*time.Hour - 1: "23h59m", 24 * time.Hour: "1d00h", 76 * time.Hour: "3d04h"} {
		expect(t, text.Span(d), want)
	}
	for want, task := range map[time.Duration]centurion.Task{
		time.Minute:      {Created: at(-time.Hour), Started: at(-time.Minute)},
		time.Hour:        {Created: at(-time.Hour)},
		30 * time.Second: {Started: at(-time.Minute), Ended: at(-30 * time.Second)},
		0:                {},
	} {
		if got := Age(task, noon); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// The groups of what has ended, in their order and with their marks.
func TestEndedGroups(t *testing.T) {
	undone := centurion.Task{ID: "r", Status: centurion.TaskCompleted, Undone: at(0)}
	l := List{Tasks: []centurion.Task{{ID: "c", Status: centurion.TaskCancelled}, {ID: "b", Status: centurion.TaskBlocked}, {ID: "f", Status: centurion.TaskFailed}, undone,
		{ID: "d", Status: centurion.TaskCompleted}, {ID: "g", Item: "T1", Status: centurion.TaskBlocked}, {ID: "n", Item: "T1", Resumes: "g", Status: centurion.TaskRunning}}}
	var got []string
	for _, g := range l.Ended() {
		got = append(got, g.Head+g.Mark+g.Tasks[0].ID)
	}
	expect(t, strings.Join(got, " "), "Completed (1):✓d Reverted (1):↶r Failed (1):✗f Blocked (1):!b Continued (1):›g Cancelled (1):−c")
	l = List{}
	for i, agent := range []string{"a", "b", "b", "c"} {
		l.Tasks = append(l.Tasks, centurion.Task{ID: fmt.Sprint(i), Agent: agent, Status: centurion.TaskRunning})
	}
	expect(t, l.SlotLine(), "Slots: 4/50 · b 2/10 · a 1/10 · c 1/10")
}

// A question that a policy answers keeps no task waiting, and none is open once its mission has ended.
func TestBoardForgetsAsks(t *testing.T) {
	for _, test := range []struct {
		ask, then centurion.EventType
		data      string
		want      string
	}{
		{centurion.EventPermissionAsked, centurion.EventTodoUpdated, `{"id":"x","by":"policy"}`, "Running (1)"},
		{centurion.EventQuestionAsked, centurion.EventTodoUpdated, `{"id":"x"}`, "Running (0)"},
		{centurion.EventPlanAsked, centurion.EventMissionPaused, `{"id":"x"}`, "Running (1)"},
		{centurion.EventQuestionAsked, centurion.EventQuestionAnswered, `{"id":"x"}`, "Running (1)"},
	} {
		s := (&script{}).queued("a").started("a").fact(test.ask, test.data)
		s.events[len(s.events)-1].Task = "tsk_a"
		s.fact(test.then, test.data)
		var b view.Board
		for _, e := range s.events {
			b.Apply(e)
		}
		if got := Of(&b).Head(); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s, %s: %s", test.ask, test.data, got)
		}
	}
}

// A cancelled task looks like a warning wherever it is told, never like a failure; one whose time ran out is a failure.
func TestCancelledIsNotFailed(t *testing.T) {
	two := func(a, b centurion.TaskStatus) Toast {
		s := (&script{}).queued("a", "b").started("a", "b").wait(time.Second).ended("a", a).ended("b", b)
		all := s.toasts()
		return all[len(all)-1].Toast
	}
	if got := two(centurion.TaskCompleted, centurion.TaskCancelled); got.Variant != Warning || !strings.Contains(got.Message, "0 failed, 1 cancelled") {
		t.Errorf("cancelled: %+v", got)
	}
	if got := two(centurion.TaskFailed, centurion.TaskCancelled); got.Variant != Error {
		t.Errorf("failed and cancelled: %+v", got)
	}
}

// A parent's tasks are told apart from those of another.
func TestFamilies(t *testing.T) {
	s := (&script{}).queued("a").started("a")
	for i := range s.events {
		s.events[i].Data = json.RawMessage(strings.Replace(string(s.events[i].Data), "ses_root", "ses_planner", 1))
	}
	s.queued("b")
	var sessions []string
	for _, n := range s.toasts() {
		sessions = append(sessions, n.Session)
	}
	if !slices.Equal(sessions, []string{"ses_planner", "ses_root"}) {
		t.Error(sessions)
	}
}

// ORCH-134: a hundred notices are kept of each parent session, the newest ones.
func TestKept(t *testing.T) {
	var d Deriver
	s := (&script{}).fact(centurion.EventMissionStarted, `{"goal":"g"}`)
	for i := range 120 {
		s.wait(time.Second).queued(fmt.Sprint(i)).started(fmt.Sprint(i)).wait(time.Second).ended(fmt.Sprint(i), centurion.TaskCompleted)
	}
	for _, e := range s.events {
		d.Apply(e)
	}
	d.Flush(noon.Add(s.now + Window))
	kept := d.Kept("ses_root")
	if len(kept) != event.Kept || kept[99].Message != "Task completed: Write 119 (1s)" || kept[1].Message != "Task completed: Write 70 (1s)" {
		t.Errorf("%d kept, the newest %+v", len(kept), kept[len(kept)-1])
	}
	if n := kept[99]; n.Mission != "msn_1" || n.After != int64(len(s.events)) || n.Event().Mission != "msn_1" || n.Event().Session != "ses_root" || n.Event().After != n.After || !n.Event().Time.Equal(n.Time.Time) {
		t.Errorf("%+v", n)
	}
	if got := d.Kept("ses_other"); got != nil {
		t.Error(got)
	}
}

// Of a mission that is complete or cancelled nothing is remembered; one that stopped in another way may be resumed.
func TestEndedMissionsAreForgotten(t *testing.T) {
	for typ, left := range map[centurion.EventType]int{centurion.EventMissionCompleted: 0, centurion.EventMissionCancelled: 0,
		centurion.EventMissionFailed: 1, centurion.EventMissionPaused: 1, centurion.EventMissionBlocked: 1} {
		var d Deriver
		for _, e := range (&script{}).fact(centurion.EventMissionStarted, `{"goal":"g"}`).queued("a").fact(typ, `{}`).events {
			d.Apply(e)
		}
		if len(d.missions) != left || d.Kept("ses_root") == nil {
			t.Errorf("%s: %d missions are left, want %d", typ, len(d.missions), left)
		}
	}
}

// What has been told of a task stays true, whatever an older attempt says later.
func TestBoardKeepsEnds(t *testing.T) {
	var b view.Board
	s := (&script{}).queued("a").started("a").ended("a", centurion.TaskCompleted).started("a").ended("a", centurion.TaskFailed)
	s.queued("b").ended("b", centurion.TaskBlocked).task(centurion.EventTaskUpdated, "b", centurion.TaskQueued)
	for _, e := range s.events {
		b.Apply(e)
	}
	if a := b.Task("tsk_a"); a.Status != centurion.TaskCompleted {
		t.Errorf("a is %s", a.Status)
	}
	if x := b.Task("tsk_b"); x == nil || x.Status != centurion.TaskQueued || !x.Ended.IsZero() {
		t.Errorf("b is %+v", x)
	}
}

// A toast that waits for more comes out by itself, and the one of a mission's end before that end.
func TestWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := make(chan centurion.Event)
		open := func(ctx context.Context) iter.Seq2[centurion.Event, error] {
			return func(yield func(centurion.Event, error) bool) {
				for {
					select {
					case e, more := <-in:
						if !more || !yield(e, nil) {
							return
						}
					case <-ctx.Done():
						return
					}
				}
			}
		}
		begin := time.Now()
		send := func(s *script) {
			for _, e := range s.events {
				e.Time = centurion.Now()
				in <- e
			}
		}
		go func() {
			send((&script{}).queued("a", "b").started("a", "b"))
			time.Sleep(300 * time.Millisecond)
			send((&script{}).fact(centurion.EventMessageCreated, `{}`)) // it makes nobody wait longer
			time.Sleep(9700 * time.Millisecond)
			send((&script{}).ended("a", centurion.TaskCompleted))
			time.Sleep(10 * time.Second)
			send((&script{}).ended("b", centurion.TaskCompleted).fact(centurion.EventMissionCompleted, `{}`))
		}()
		var got []string
		for e, err := range With(t.Context(), &Deriver{}, open) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Type == centurion.EventToast {
				d, _ := event.Decode[Toast](e)
				first, _, _ := strings.Cut(d.Message, "\n")
				got = append(got, fmt.Sprintf("%s %s", time.Since(begin), first))
				if e.Seq != 0 {
					t.Errorf("a toast has the number %d", e.Seq)
				}
			}
			if e.Type.EndsMission() {
				break
			}
		}
		want := []string{"500ms Running (2): [0/2]", "10.5s Task completed: Write a (10s)", "20s 2 tasks in 20s: 2 ok, 0 failed, 0 cancelled", "20s 0s"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q\nwant %q", got, want)
		}
	})
}

// ORCH-130: the events are subscribed to once, and the subscription ends with the sequence: when its reader leaves, while
// nothing comes, and when the events end. Nothing is left that would go on.
func TestWithEndsItsSubscription(t *testing.T) {
	for _, leave := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			opened, ended := 0, 0
			open := func(ctx context.Context) iter.Seq2[centurion.Event, error] {
				opened++
				return func(yield func(centurion.Event, error) bool) {
					defer func() { ended++ }()
					for _, e := range (&script{}).fact(centurion.EventMissionStarted, `{"goal":"g"}`).fact(centurion.EventMissionCompleted, `{}`).events {
						if !yield(e, nil) {
							return
						}
					}
					if leave {
						<-ctx.Done() // it follows, and no event comes any more
					}
				}
			}
			n := 0
			for e := range With(t.Context(), &Deriver{}, open) {
				n++
				if leave && e.Type == centurion.EventMissionCompleted {
					break
				}
			}
			if opened != 1 || ended != 1 || n != 4 {
				t.Errorf("leaving %v: opened %d times, ended %d times, after %d events", leave, opened, ended, n)
			}
		})
	}
}

// A reader that leaves at a toast which came by itself gets nothing more, and the subscription ends.
func TestReaderLeavesAtToast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := func(ctx context.Context) iter.Seq2[centurion.Event, error] {
			return func(yield func(centurion.Event, error) bool) {
				for _, e := range (&script{}).queued("a").started("a").events {
					e.Time = centurion.Now()
					if !yield(e, nil) {
						return
					}
				}
				<-ctx.Done()
			}
		}
		for e := range With(t.Context(), &Deriver{}, open) {
			if e.Type == centurion.EventToast {
				break
			}
		}
	})
}

// Who waits for the person does not run, until the answer is there; who is blocked and has been gone on with counts no more.
func TestBoardAskingAndContinued(t *testing.T) {
	s := &script{}
	s.queued("a", "b").started("a", "b")
	s.fact(centurion.EventPermissionAsked, `{"id":"per_1","type":"permission"}`)
	s.events[len(s.events)-1].Task = "tsk_a"
	s.ended("b", centurion.TaskBlocked, `,"item":"T4"`)
	s.task(centurion.EventTaskQueued, "c", centurion.TaskQueued, `,"item":"T4"`)
	var b view.Board
	for _, e := range s.events {
		b.Apply(e)
	}
	if got := Of(&b).Text(noon); !strings.HasPrefix(got, "Running (0): [0/2]\n") || !strings.Contains(got, "Waiting (1):\n◦ Write a") {
		t.Error(got)
	}
	if all := s.toasts(); !strings.Contains(all[len(all)-1].Message, "\nRunning (0): [0/2]\n") {
		t.Errorf("a notice counts it as running: %+v", all)
	}
	s.fact(centurion.EventPermissionReplied, `{"id":"per_1","type":"permission","answer":"once"}`)
	b.Apply(s.events[len(s.events)-1])
	if got := Of(&b).Head(); got != "Running (1): [0/2]" {
		t.Error(got)
	}
}

// An item whose completed work was resumed counts once; work on another item that goes on in the same session is work of its own.
func TestResumedCountsOnce(t *testing.T) {
	done := func(id, item, resumes string) centurion.Task {
		return centurion.Task{ID: id, Item: item, Resumes: resumes, Status: centurion.TaskCompleted}
	}
	l := List{Tasks: []centurion.Task{done("a", "T1", ""), done("b", "T2", ""), done("c", "T1", "a"), done("d", "T3", "b")}}
	expect(t, l.Head(), "Running (0): [3/3]")
	l.Tasks[2].Status = centurion.TaskRunning
	expect(t, l.Head(), "Running (1): [2/3]")
	l.Tasks[2].Status = centurion.TaskCancelled
	expect(t, l.Head(), "Running (0): [3/3]")
}
