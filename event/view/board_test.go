package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/event/view"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// facts are events of a mission, one a second; each is a type, the task that it is of ("" for none) and its data.
func facts(all ...[3]string) (out []centurion.Event) {
	for i, f := range all {
		e := fact(centurion.EventType(f[0]), f[2])
		e.Seq, e.Mission, e.Session, e.Time = int64(i+1), "msn_1", "ses_root", centurion.Time{Time: noon.Add(time.Duration(i) * time.Second)}
		if f[1] != "" {
			e.Task, e.Session = f[1], "ses_"+f[1]
		}
		out = append(out, e)
	}
	return out
}

func board(all ...[3]string) *view.Board {
	b := &view.Board{}
	for _, e := range facts(all...) {
		b.Apply(e)
	}
	return b
}

// asks are the open asks, as type and id.
func asks(b *view.Board) string {
	var out []string
	for _, a := range b.Asks {
		out = append(out, a.Type+" "+a.ID)
	}
	return strings.Join(out, ", ")
}

// Asks are open until they are answered. What a policy answers waits for nobody, and a mission that is resumed asks anew for
// everything but its questions.
func TestBoardAsks(t *testing.T) {
	started, resumed := [3]string{"mission.started", "", `{}`}, [3]string{"mission.resumed", "", `{}`}
	permission, question := [3]string{"permission.asked", "tsk_a", `{"id":"per_1"}`}, [3]string{"question.asked", "", `{"id":"que_1"}`}
	for name, c := range map[string]struct {
		all   [][3]string
		want  string
		needs bool
	}{
		"open":               {[][3]string{started, permission, question}, "permission per_1, question que_1", true},
		"before a start":     {[][3]string{permission}, "permission per_1", true},
		"answered":           {[][3]string{started, permission, question, {"permission.replied", "tsk_a", `{"id":"per_1"}`}}, "question que_1", true},
		"asked again":        {[][3]string{started, permission, permission}, "permission per_1", true},
		"by a policy":        {[][3]string{started, {"permission.asked", "", `{"id":"per_1","by":"policy"}`}}, "", false},
		"stopped":            {[][3]string{started, permission, {"mission.paused", "", `{}`}}, "permission per_1", false},
		"resumed":            {[][3]string{started, permission, question, {"plan.asked", "", `{"id":"pln_1"}`}, {"mission.paused", "", `{}`}, resumed}, "question que_1", true},
		"another's answer":   {[][3]string{started, permission, {"permission.replied", "", `{"id":"per_2"}`}}, "permission per_1", true},
		"another kind's own": {[][3]string{started, permission, {"question.answered", "", `{"id":"per_1"}`}}, "permission per_1", true},
	} {
		b := board(c.all...)
		if got := asks(b); got != c.want || b.NeedsYou() != c.needs {
			t.Errorf("%s: %q, needs you %v; want %q, %v", name, got, b.NeedsYou(), c.want, c.needs)
		}
	}
}

// A mission's branch and directory are known from its start, and stay where a later event names none.
func TestBoardPlace(t *testing.T) {
	b := board([3]string{"mission.started", "", `{"branch":"centurion/1","directory":"/p"}`}, [3]string{"mission.updated", "", `{}`})
	if b.Branch != "centurion/1" || b.Directory != "/p" {
		t.Errorf("%q in %q", b.Branch, b.Directory)
	}
}

// A task that has ended stays so, whatever an older attempt still tells; one that was blocked goes on.
func TestBoardTasks(t *testing.T) {
	moved := func(all ...string) *view.Task {
		var events [][3]string
		for _, m := range all {
			typ, status, _ := strings.Cut(m, " ")
			events = append(events, [3]string{"task." + typ, "tsk_a", fmt.Sprintf(`{"status":%q,"reason":"r %s"}`, status, typ)})
		}
		return board(events...).Task("tsk_a")
	}
	for all, want := range map[string]centurion.TaskStatus{
		"queued queued|started running|completed completed|updated running":  centurion.TaskCompleted,
		"queued queued|started running|completed completed|failed failed":    centurion.TaskCompleted,
		"queued queued|started running|cancelled cancelled|updated queued":   centurion.TaskCancelled,
		"queued queued|started running|blocked blocked|updated queued":       centurion.TaskQueued,
		"queued queued|started running|completed completed|delivered queued": centurion.TaskCompleted,
	} {
		x := moved(strings.Split(all, "|")...)
		if x.Status != want || want.Ended() == x.Ended.IsZero() {
			t.Errorf("%s: it is %s, ended %v", all, x.Status, x.Ended)
		}
	}
	done := board([3]string{"task.started", "tsk_a", `{"status":"running"}`}, [3]string{"task.completed", "tsk_a", `{"status":"completed","result":"one\u0007\ntwo"}`}).Task("tsk_a")
	if done.Said != "one\ntwo" {
		t.Errorf("its result is told as %q", done.Said)
	}
	if x := moved("queued queued", "started running", "verifying verifying", "updated running"); !x.Started.Equal(noon.Add(time.Second)) {
		t.Errorf("sent back to its worker it began at %v", x.Started)
	}
}

// What a mission has cost never falls: it is what its events say or what its answers add up to, whichever is more. An answer that
// comes after its task has ended is the mission's only.
func TestBoardUsage(t *testing.T) {
	answer := func(task string, n int) [3]string {
		return [3]string{"message.updated", task, fmt.Sprintf(`{"usage":{"tokens":{"output":%d},"cost":0.5}}`, n)}
	}
	reported := func(n int) [3]string {
		return [3]string{"mission.updated", "", fmt.Sprintf(`{"usage":{"tokens":{"output":%d},"cost":2}}`, n)}
	}
	task := [3]string{"task.started", "tsk_a", `{"status":"running"}`}
	for name, c := range map[string]struct {
		all          [][3]string
		mission, own int64
	}{
		"answers":             {[][3]string{task, answer("tsk_a", 5), answer("", 3)}, 8, 5},
		"told more":           {[][3]string{task, answer("tsk_a", 5), reported(20)}, 20, 5},
		"then less":           {[][3]string{task, reported(20), reported(7), {"mission.updated", "", `{"level":2}`}}, 20, 0},
		"after its end":       {[][3]string{task, answer("tsk_a", 5), {"task.completed", "tsk_a", `{"status":"completed"}`}, answer("tsk_a", 4)}, 9, 5},
		"the task's own sum":  {[][3]string{task, answer("tsk_a", 5), {"task.updated", "tsk_a", `{"status":"running","usage":{"tokens":{"output":9}}}`}}, 5, 9},
		"told at the end":     {[][3]string{answer("", 3), {"mission.completed", "", `{"tokens":{"output":30}}`}}, 30, 0},
		"not told at the end": {[][3]string{answer("", 3), {"mission.completed", "", `{}`}}, 3, 0},
	} {
		b := board(c.all...)
		own := int64(0)
		if x := b.Task("tsk_a"); x != nil {
			own = x.Usage.Tokens.Total()
		}
		if got := b.Usage().Tokens.Total(); got != c.mission || own != c.own {
			t.Errorf("%s: the mission has %d, the task %d; want %d and %d", name, got, own, c.mission, c.own)
		}
	}
	for _, unpriced := range [][][3]string{{reported(9), {"message.updated", "", `{"tokens":1,"unpriced":true}`}}, {{"mission.updated", "", `{"usage":{"tokens":{"output":1},"unpriced":true}}`}, answer("", 9)}} {
		if u := board(unpriced...).Usage(); !u.Unpriced {
			t.Errorf("an answer without a price is lost: %+v", u)
		}
	}
}

// Work is unmerged while some of it is on the mission's branch only: also what the person has taken off theirs again.
func TestBoardUnmerged(t *testing.T) {
	own, person := [3]string{"merge.done", "", `{}`}, [3]string{"merge.done", "", `{"person":true}`}
	ownUndone, undone := [3]string{"merge.undone", "", `{}`}, [3]string{"merge.undone", "", `{"person":true}`}
	for want, cases := range map[bool][][][3]string{
		true:  {{own}, {person, own}, {own, person, undone}, {own, ownUndone}},
		false: {{}, {own, person}, {own, person, ownUndone}},
	} {
		for _, all := range cases {
			if b := board(all...); b.Unmerged != want {
				t.Errorf("%v: unmerged is %v", all, b.Unmerged)
			}
		}
	}
}

// A countdown ends with whatever happens next, and the time of a mission counts from its first start.
func TestBoardTime(t *testing.T) {
	started, counting := [3]string{"mission.started", "", `{}`}, [3]string{"mission.updated", "", `{"countdown_ms":2000}`}
	if b := board(started, counting); !b.Countdown.Equal(noon.Add(3 * time.Second)) {
		t.Errorf("the countdown ends at %v", b.Countdown)
	}
	for _, next := range [][3]string{{"mission.updated", "", `{"countdown_ms":0}`}, {"message.created", "", `{}`}, {"mission.paused", "", `{}`}} {
		if b := board(started, counting, next); !b.Countdown.IsZero() {
			t.Errorf("%s: the countdown still ends at %v", next[0], b.Countdown)
		}
	}
	for _, next := range [][3]string{{"message.queued", "", `{}`}, {"mission.updated", "", `{"level":2}`}} {
		if b := board(started, counting, next); b.Countdown.IsZero() {
			t.Errorf("%s %s ends the countdown", next[0], next[2])
		}
	}
	b := board(started, [3]string{"mission.paused", "", `{"reason":"enough"}`}, [3]string{"mission.resumed", "", `{}`})
	if b.End != nil || b.Reason != "" || b.Elapsed(noon.Add(time.Minute)) != time.Minute {
		t.Errorf("resumed: end %v, reason %q, elapsed %v", b.End, b.Reason, b.Elapsed(noon.Add(time.Minute)))
	}
}

// A session's line is what it did last: a whole answer, a tool, or the line that streams; of other missions nothing counts.
func TestBoardWorker(t *testing.T) {
	started := [3]string{"mission.started", "", `{}`}
	delta := func(text string) [3]string {
		return [3]string{string(centurion.EventDelta), "", string(event.Data(event.DeltaData{Field: "text", Delta: text}))}
	}
	retry := [3]string{string(centurion.EventProviderRetry), "", `{"attempt":2,"wait_ms":5000,"reason":"rate_limit"}`}
	for name, c := range map[string]struct {
		all   [][3]string
		doing string
		waits bool
	}{
		"streams":           {[][3]string{started, delta("one\ntw"), delta("o")}, "two", false},
		"answers":           {[][3]string{started, delta("half"), {"message.updated", "", `{"text":"all\nof it\u001b[2J"}`}}, "of it", false},
		"thinks":            {[][3]string{started, {"message.updated", "", `{"text":"all"}`}, {"part.updated", "", `{"type":"reasoning","text":"hm"}`}}, "all", false},
		"waits":             {[][3]string{started, delta("one"), retry}, "one", true},
		"goes on":           {[][3]string{started, retry, delta("one")}, "one", false},
		"begins a new line": {[][3]string{started, delta("one"), {"message.updated", "", `{"text":"one"}`}, delta("next")}, "next", false},
	} {
		b := board(c.all...)
		if b.Commander.Doing != c.doing || (b.Commander.Retry != nil) != c.waits {
			t.Errorf("%s: %q, waits %+v", name, b.Commander.Doing, b.Commander.Retry)
		}
	}
	b := board(started)
	second := fact(centurion.EventToolStarted, `{"tool":"ls"}`) // of a session without a task, which is not the first one
	second.Session = "ses_other"
	if b.Apply(second); b.Commander.Doing != "" || b.Session != "ses_root" {
		t.Errorf("another session is taken for the Commander's: %q in %q", b.Commander.Doing, b.Session)
	}
	other := fact(centurion.EventMissionCompleted, `{}`)
	other.Mission = "msn_2"
	none := view.Board{} // which knows no root session yet
	none.Apply(fact(centurion.EventToolStarted, `{"tool":"ls"}`))
	if none.Commander.Doing != "" {
		t.Errorf("a call of no session is the Commander's: %q", none.Commander.Doing)
	}
	if late := board([3]string{string(centurion.EventToolStarted), "tsk_a", `{"tool":"ls"}`}); late.Commander.Doing != "" || late.Session != "" {
		t.Errorf("who joins late takes a task's agent for the Commander: %q in %q", late.Commander.Doing, late.Session)
	}
	if _, ours := b.Apply(other); ours || b.Status != centurion.MissionRunning {
		t.Errorf("another mission's end: %s", b.Status)
	}
}

// A task has one name for people, and an error only where it is told of one; no text is the goal of a mission that has none.
func TestBoardNames(t *testing.T) {
	b := board([3]string{"mission.started", "", `{"agent":"scribe"}`}, [3]string{"session.created", "", `{"agent":"scribe"}`},
		[3]string{"task.queued", "tsk_a", `{"name":"w7","item":"T2","agent":"worker"}`}, [3]string{"task.queued", "tsk_b", `{"item":"T3"}`}, [3]string{"task.queued", "tsk_1234", `{}`},
		[3]string{"task.running", "tsk_1234", `{"status":"running","files":["a\u0007.go"]}`}, [3]string{"task.updated", "tsk_1234", `{"status":"running"}`})
	for id, want := range map[string]string{"tsk_a": "w7", "tsk_b": "T3", "tsk_1234": "#1234"} {
		if got := b.Task(id).Name(); got != want {
			t.Errorf("%s is called %s, want %s", id, got, want)
		}
	}
	if b.AgentOf("", "tsk_a") != "worker" || b.AgentOf("ses_root", "") != "scribe" || b.Owner() != "the scribe" || board().Owner() != "the Commander" {
		t.Errorf("agents: %q, %q, %q", b.AgentOf("", "tsk_a"), b.AgentOf("ses_root", ""), b.Owner())
	}
	if active := b.Active(); len(active) != 1 || active[0].ID != "tsk_1234" || active[0].Files[0] != "a.go" {
		t.Errorf("at work: %+v", active)
	}
	goal := board([3]string{"mission.started", "", `{"goal":"Build it"}`})
	if goal.IsGoal("Build") || !goal.IsGoal("Build it\n\n(plan only)") || board().IsGoal("Build it") {
		t.Error("another text is taken for the goal")
	}
	if e := view.Read(fact(centurion.EventTaskFailed, `{"status":"failed"}`)).TaskError(); e != nil {
		t.Errorf("an error that nobody told of: %+v", e)
	}
}

// How long a mission has run is what its end says, else the time since its first start, up to its end.
func TestBoardElapsed(t *testing.T) {
	started, paused := [3]string{"mission.started", "", `{}`}, [3]string{"mission.paused", "", `{}`}
	for name, c := range map[string]struct {
		b    *view.Board
		want time.Duration
	}{
		"not begun": {board(), 0}, "running": {board(started), time.Minute}, "stopped": {board(started, paused), time.Second},
		"told": {board(started, [3]string{"mission.completed", "", `{"duration_ms":5000}`}), 5 * time.Second},
	} {
		if got := c.b.Elapsed(noon.Add(time.Minute)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// What a task does now is its newest check, call, wait or stop, and a long line that streams is bounded.
func TestBoardDoing(t *testing.T) {
	begun := [][3]string{{"mission.started", "", `{}`}, {"task.queued", "tsk_a", `{"status":"queued","parent":"ses_root"}`}, {"task.started", "tsk_a", `{"status":"running"}`}}
	long := string(event.Data(event.DeltaData{Field: "text", Delta: strings.Repeat("ü", 5000) + "end"}))
	for want, next := range map[string][3]string{
		"check go test ./...":   {"verify.started", "tsk_a", `{"command":"go test ./..."}`},
		"passed go test ./...":  {"verify.passed", "tsk_a", `{"command":"go test ./..."}`},
		"failed go test ./...":  {"verify.failed", "tsk_a", `{"command":"go test ./..."}`},
		"bash make":             {"tool.started", "tsk_a", `{"tool":"bash","input":{"description":"x","command":"make"}}`},
		"grep /a b/":            {"tool.started", "tsk_a", `{"tool":"grep","input":{"pattern":"a b"}}`},
		"glob *.go":             {"tool.started", "tsk_a", `{"tool":"glob","input":{"pattern":"*.go"}}`},
		"read a title":          {"tool.completed", "tsk_a", `{"tool":"read","title":"a title","input":{"path":"x"}}`},
		"think":                 {"tool.started", "tsk_a", `{"tool":"think","input":{"n":1}}`},
		"stopped: by a person":  {string(centurion.EventSessionAborted), "tsk_a", `{"reason":"by a person"}`},
		"continues with b/two":  {string(centurion.EventSessionModel), "tsk_a", `{"from":"a/one","to":"b/two"}`},
		"":                      {string(centurion.EventTaskRetrying), "tsk_a", `{"status":"waiting","wait_ms":5000,"attempt":2,"reason":"rate_limit"}`},
		"the end of a long one": {string(centurion.EventDelta), "tsk_a", long},
	} {
		x := board(append(begun, [3]string{"tool.started", "tsk_a", `{"tool":"ls"}`}, next)...).Task("tsk_a")
		if next[0] == string(centurion.EventDelta) {
			if !strings.HasSuffix(x.Doing, "end") || len(x.Doing) > 400 {
				t.Errorf("a long line is kept with %d bytes", len(x.Doing))
			}
			continue
		}
		if x.Doing != want {
			t.Errorf("%s: %q, want %q", next[0], x.Doing, want)
		}
		if want == "" && (x.Retry == nil || x.Retry.Reason != "rate limit" || !x.Retry.Until.Equal(noon.Add(9*time.Second))) {
			t.Errorf("it waits for %+v", x.Retry)
		}
	}
	if x := board(append(begun, [3]string{string(centurion.EventTaskRetrying), "tsk_a", `{"status":"waiting","wait_ms":5000}`}, [3]string{"task.failed", "tsk_a", `{"status":"failed"}`})...).Task("tsk_a"); x.Retry != nil {
		t.Errorf("an ended task waits for %+v", x.Retry)
	}
	b := board([3]string{"mission.started", "", `{}`}, [3]string{"tool.started", "", `{"tool":"ls"}`}, [3]string{string(centurion.EventSessionError), "", `{"error":"no answer"}`})
	if b.Commander.Doing != "no answer" {
		t.Errorf("a session that failed does %q", b.Commander.Doing)
	}
	if got := view.Words("gate"); !strings.Contains(got, "another session") {
		t.Error(got)
	}
}

// A session is known before its task: what it told then, such as its address, is the task's.
func TestBoardBindsSessions(t *testing.T) {
	b := board([3]string{"mission.started", "", `{}`}, [3]string{"session.created", "tsk_a", `{"address":"0/1","agent":"worker"}`}, [3]string{"task.started", "tsk_a", `{"status":"running"}`})
	if x := b.Task("tsk_a"); x.Address != "0/1" || x.Session != "ses_tsk_a" {
		t.Errorf("%+v", x)
	}
}
