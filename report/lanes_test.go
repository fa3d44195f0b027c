package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/event"
	"centurion/text"
)

// told is a timeline in words: each lane with its spans and marks, and the gaps, in seconds since the beginning.
func told(t Timeline) []string {
	sec := func(x centurion.Time) int { return int(x.Sub(at(0).Time).Seconds()) }
	var out []string
	for _, l := range t.Lanes {
		line := l.Task + ":"
		if l.Task == "" {
			line = l.Agent + ":"
		}
		for _, s := range l.Spans {
			line += fmt.Sprintf(" %s %d-%d", s.Kind, sec(s.From), sec(s.To))
			if s.Attempt > 1 {
				line += fmt.Sprintf("#%d", s.Attempt)
			}
		}
		for _, m := range l.Marks {
			line += fmt.Sprintf(" !%s %d", m.Kind, sec(m.Time))
		}
		out = append(out, line)
	}
	for _, g := range t.Gaps {
		out = append(out, fmt.Sprintf("%s %d-%d", g.Kind, sec(g.From), sec(g.To)))
	}
	return out
}

func TestLanes(t *testing.T) {
	t.Parallel()
	start := fact(0, centurion.EventMissionStarted, "", "root", event.MissionData{Agent: "commander"})
	queued := moved(1, centurion.EventTaskQueued, "a", centurion.TaskQueued, 0, "")
	begun := moved(3, centurion.EventTaskStarted, "a", centurion.TaskRunning, 1, "")
	end := func(sec int) centurion.Event {
		return fact(sec, centurion.EventMissionCompleted, "", "root", event.MissionEnd{})
	}
	resumed := func(sec int) centurion.Event {
		return fact(sec, centurion.EventMissionResumed, "", "root", event.MissionData{Reason: "its host went away"})
	}
	for name, x := range map[string]struct {
		events []centurion.Event
		alive  bool
		want   []string
	}{
		"nothing": {},
		"its own agent waits for a person": {events: []centurion.Event{start,
			fact(2, centurion.EventToolStarted, "", "root", event.ToolData{Tool: "ask_user"}),
			fact(2, centurion.EventQuestionAsked, "", "root", event.AskData{ID: "que_1", Type: "question"}),
			fact(3, centurion.EventPartUpdated, "", "root", nil), // of the call that waits
			fact(9, centurion.EventQuestionAnswered, "", "root", event.AskData{ID: "que_1", Answer: "yes", By: "person"}),
			fact(10, centurion.EventPermissionAsked, "", "root", event.AskData{ID: "per_1", Type: "permission", Answer: "reject", By: "policy"}),
			fact(12, centurion.EventPermissionAsked, "", "root", event.AskData{ID: "per_2", Type: "permission"}),
			fact(14, centurion.EventPermissionReplied, "", "root", event.AskData{ID: "per_2", Answer: "once", By: "person"}), end(15)},
			want: []string{"commander: work 0-2 wait 2-9 work 9-12 wait 12-14 work 14-15"}},
		"a question of its own outlives its host": {events: []centurion.Event{start,
			fact(2, centurion.EventQuestionAsked, "", "root", event.AskData{ID: "que_1", Type: "question"}),
			fact(2, centurion.EventPermissionAsked, "", "root", event.AskData{ID: "per_1", Type: "permission"}),
			fact(4, centurion.EventMissionBlocked, "", "root", event.MissionEnd{}), resumed(10),
			fact(12, centurion.EventQuestionAnswered, "", "root", event.AskData{ID: "que_1", Answer: "yes", By: "person"}), end(15)},
			want: []string{"commander: work 0-2 wait 2-4 wait 10-12 work 12-15", "blocked 4-10"}},
		"a question of its own is answered while nobody works on it": {events: []centurion.Event{start,
			fact(2, centurion.EventQuestionAsked, "", "root", event.AskData{ID: "que_1", Type: "question"}),
			fact(4, centurion.EventMissionBlocked, "", "root", event.MissionEnd{}),
			fact(6, centurion.EventQuestionAnswered, "", "root", event.AskData{ID: "que_1", Answer: "yes", By: "person"}), resumed(10), end(15)},
			want: []string{"commander: work 0-2 wait 2-4 work 10-15", "blocked 4-10"}},
		"a task": {events: []centurion.Event{start, queued, begun, moved(8, centurion.EventTaskCompleted, "a", centurion.TaskCompleted, 1, ""), end(9)},
			want: []string{"commander: work 0-9", "a: wait 1-3 work 3-8 !done 8"}},
		"a red check sends it back": {events: []centurion.Event{start, queued, begun,
			moved(5, centurion.EventTaskVerifying, "a", centurion.TaskVerifying, 1, ""), fact(5, centurion.EventVerifyStarted, "a", "", event.VerifyData{}),
			fact(6, centurion.EventVerifyFailed, "a", "", event.VerifyData{}), moved(7, centurion.EventTaskUpdated, "a", centurion.TaskRunning, 1, "red"),
			moved(9, centurion.EventTaskFailed, "a", centurion.TaskFailed, 1, ""), end(9)},
			want: []string{"commander: work 0-9", "a: wait 1-3 work 3-5 verify 5-7 work 7-9 !red 6 !return 7 !fail 9"}},
		"a conflict, then a merge": {events: []centurion.Event{start, queued, begun,
			moved(4, centurion.EventTaskUpdated, "a", centurion.TaskMerging, 1, ""), fact(5, centurion.EventMergeConflict, "a", "", event.MergeData{}),
			moved(5, centurion.EventTaskUpdated, "a", centurion.TaskRunning, 1, ""), moved(7, centurion.EventTaskUpdated, "a", centurion.TaskMerging, 1, ""),
			fact(8, centurion.EventMergeDone, "a", "", event.MergeData{}), moved(8, centurion.EventTaskCompleted, "a", centurion.TaskCompleted, 1, ""), end(8)},
			want: []string{"commander: work 0-8", "a: wait 1-3 work 3-4 merge 4-5 work 5-7 merge 7-8 !conflict 5 !return 5 !merge 8 !done 8"}},
		"a request is repeated": {events: []centurion.Event{start, queued, begun, moved(4, centurion.EventTaskWaiting, "a", centurion.TaskWaiting, 1, "retry in 2s"),
			fact(4, centurion.EventTaskRetrying, "a", "ses_a", event.RetryData{Attempt: 1, WaitMS: 2000, Error: "429"}),
			moved(6, centurion.EventTaskUpdated, "a", centurion.TaskRunning, 1, ""), moved(7, centurion.EventTaskCancelled, "a", centurion.TaskCancelled, 1, "no"), end(7)},
			want: []string{"commander: work 0-7", "a: wait 1-3 work 3-4 wait 4-6 work 6-7 !retry 4 !kill 7"}},
		"the host dies": {events: []centurion.Event{start, queued, begun, answered(5, "ses_a", "m", "worker", 1, 1, 0), resumed(100),
			moved(101, centurion.EventTaskRetrying, "a", centurion.TaskRunning, 2, ""), moved(103, centurion.EventTaskCompleted, "a", centurion.TaskCompleted, 2, ""), end(104)},
			want: []string{"commander: work 0-5 work 100-104", "a: wait 1-3 work 3-5 wait 100-101 work 101-103#2 !kill 5 !done 103", "restart 5-100"}},
		"paused and resumed": {events: []centurion.Event{start, queued, begun, fact(5, centurion.EventMissionPaused, "", "root", event.MissionEnd{Reason: "night"}), resumed(50),
			moved(51, centurion.EventTaskUpdated, "a", centurion.TaskRunning, 1, ""), end(52)},
			want: []string{"commander: work 0-5 work 50-52", "a: wait 1-3 work 3-5 wait 50-51 work 51-52", "paused 5-50"}},
		"idle until a delivery, then the last checks": {events: []centurion.Event{start, fact(2, centurion.EventSessionIdle, "", "root", event.SessionData{}),
			fact(6, centurion.EventMessageCreated, "", "root", event.SessionData{}), fact(7, centurion.EventVerifyStarted, "", "root", event.VerifyData{Final: true}),
			fact(9, centurion.EventVerifyFailed, "", "root", event.VerifyData{Final: true}), end(10)},
			want: []string{"commander: work 0-2 wait 2-6 work 6-7 verify 7-9 wait 9-10 !red 9"}},
		"a check that is not green yet is no red one": {events: []centurion.Event{start, fact(7, centurion.EventVerifyStarted, "", "root", event.VerifyData{}),
			fact(9, centurion.EventVerifyFailed, "", "root", event.VerifyData{Early: true}), end(10)},
			want: []string{"commander: work 0-7 verify 7-9 wait 9-10"}},
		"stalled, fenced, aborted": {events: []centurion.Event{start, queued, begun, fact(4, centurion.EventTaskStalled, "a", "ses_a", event.StallData{Last: "ls"}),
			fact(5, centurion.EventTaskFenced, "a", "ses_a", event.FenceData{Attempt: 1}), fact(6, centurion.EventSessionAborted, "", "ses_a", event.AbortData{Reason: "mine"}), end(7)},
			want: []string{"commander: work 0-7", "a: wait 1-3 work 3-7 !kill 4 !kill 5 !kill 6"}},
		"still at work": {events: []centurion.Event{start, queued, begun}, alive: true, want: []string{"commander: work 0-60", "a: wait 1-3 work 3-60"}},
		"a clock that goes back": {events: []centurion.Event{start, queued, moved(10, centurion.EventTaskStarted, "a", centurion.TaskRunning, 1, ""),
			moved(4, centurion.EventTaskCompleted, "a", centurion.TaskCompleted, 1, ""), end(11)}, want: []string{"commander: work 0-11", "a: wait 1-10 !done 10"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := Data{Mission: centurion.Mission{Session: "root", Status: centurion.MissionCompleted}, Events: x.events, Now: at(60)}
			if x.alive {
				d.Mission.Status = centurion.MissionRunning
			}
			if d := cmp.Diff(x.want, told(Lanes(d))); d != "" {
				t.Error(d)
			}
		})
	}
}

// What a person does with the work after the mission's end is told by the clock, and what was taken back is not called merged.
func TestMergesAfterTheEnd(t *testing.T) {
	t.Parallel()
	d := Data{Mission: centurion.Mission{ID: "m", Session: "root", Status: centurion.MissionCompleted}, Now: at(900), Events: []centurion.Event{
		fact(0, centurion.EventMissionStarted, "", "root", event.MissionData{}), fact(30, centurion.EventMergeDone, "", "", event.MergeData{Branch: "next"}),
		fact(60, centurion.EventMissionCompleted, "", "root", event.MissionEnd{}),
		fact(600, centurion.EventMergeDone, "", "", event.MergeData{Branch: "main", Person: true}), fact(660, centurion.EventMergeUndone, "", "", event.MergeData{Branch: "main"})}}
	var b strings.Builder
	if err := New(d).Markdown(&b); err != nil {
		t.Fatal(err)
	}
	if want := "\n- at 30s: integrated into next\n- at 2026-03-01 09:10:00 UTC: merged main\n- at 2026-03-01 09:11:00 UTC: reverted from main\n"; !strings.Contains(b.String(), want) {
		t.Errorf("%q is not in %s", want, b.String())
	}
	if page := pageOf(t, d); !strings.Contains(page, `<td class="t">reverted</td><td class="w" data-label="From">2026-03-01 09:11:00 UTC</td>`) {
		t.Error("the page does not tell when it was taken back")
	}
}

func TestAxis(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{"0": 0, "400ms": 400 * time.Millisecond, "45s": 45 * time.Second, "5m": 5 * time.Minute, "1m30s": 90 * time.Second,
		"1h30m": 90 * time.Minute, "1d": 24 * time.Hour, "2d03h": 51 * time.Hour} {
		if got := axis(d); got != want {
			t.Errorf("axis(%s) is %q, want %q", d, got, want)
		}
	}
	for _, whole := range []time.Duration{time.Millisecond, 90 * time.Millisecond, 3 * time.Second, 7 * time.Minute, 23 * time.Hour, 40 * 24 * time.Hour, 20 * 365 * 24 * time.Hour} {
		got := ticks(whole, 200, 1000)
		if len(got) == 0 || len(got) > 13 {
			t.Errorf("%s has %d ticks", whole, len(got))
		}
		for i, k := range got {
			if i > 0 && k.X-got[i-1].X < tickRoom-8 {
				t.Errorf("%s: the ticks %q and %q are %f apart", whole, got[i-1].Label, k.Label, k.X-got[i-1].X)
			}
		}
	}
}

// big is a mission of a day with many tasks, restarts and retries.
func big(tasks int) Data {
	d := sample()
	d.Events = d.Events[:1]
	d.Tasks = nil
	day := 24 * 3600
	for i := range tasks {
		name, from := fmt.Sprintf("t%03d", i), i*day/tasks
		d.Tasks = append(d.Tasks, centurion.Task{ID: name, Item: fmt.Sprintf("T%d", i), Title: strings.Repeat("A long title ", 8), Agent: "worker"})
		d.Events = append(d.Events, moved(from, centurion.EventTaskQueued, name, centurion.TaskQueued, 0, ""))
		for k := range 20 {
			d.Events = append(d.Events, moved(from+1+k*9, centurion.EventTaskRetrying, name, centurion.TaskRunning, k+1, "again"))
		}
		if i%10 == 0 {
			d.Events = append(d.Events, fact(from+181, centurion.EventMissionResumed, "", "ses_root", event.MissionData{Reason: "its host went away"}))
		}
		d.Events = append(d.Events, moved(from+190, centurion.EventTaskCompleted, name, centurion.TaskCompleted, 20, ""))
	}
	return d
}

// dense is an hour of one task that is tried again every 20 seconds, four units of the picture.
func dense() Data {
	d := big(0)
	for i := range 180 {
		d.Events = append(d.Events, moved(20*i, centurion.EventTaskRetrying, "t", centurion.TaskRunning, i+1, "again"))
	}
	return d
}

// With 200 tasks and a day nothing lies on something else, or outside of the picture, and the page stays small.
func TestPictureIsLegible(t *testing.T) {
	t.Parallel()
	d := big(200)
	legible(t, draw(Lanes(dense())))
	p := draw(Lanes(d))
	if len(p.Rows) != 201 {
		t.Fatalf("%d rows", len(p.Rows))
	}
	shown := legible(t, p)
	if shown == 0 || shown == len(p.Lines) {
		t.Errorf("%d of %d lines have words", shown, len(p.Lines))
	}
	var b bytes.Buffer
	if err := New(d).HTML(&b); err != nil || b.Len() > 1<<20 {
		t.Errorf("the page has %d bytes, %v", b.Len(), err)
	}
}

// legible reports what lies on something else or outside, and returns how many lines have words.
func legible(t *testing.T, p *picture) (shown int) {
	t.Helper()
	for _, r := range p.Rows {
		if n := len([]rune(r.Label)); n > 34 {
			t.Errorf("the label %q has %d characters", r.Label, n)
		}
		for _, b := range r.Bars {
			if b.X < p.X || b.X+b.W > p.W || b.Y < r.Y || b.Y+b.H > r.Y+r.H {
				t.Errorf("a bar of %q lies outside: %+v", r.Label, b)
			}
		}
		for i, m := range r.Marks {
			if i > 0 && m.X-r.Marks[i-1].X < markWidth {
				t.Errorf("marks of %q lie on each other at %f", r.Label, m.X)
			}
		}
	}
	ends := map[float64]float64{}
	for _, l := range p.Lines {
		if l.Label == "" {
			continue
		}
		shown++
		wide := float64(len(l.Label)) * 5
		from := l.X
		if l.End {
			from -= wide
		}
		if from < ends[l.LabelY] || from+wide > p.W+10 {
			t.Errorf("the words %q at %f lie on others or outside", l.Label, l.X)
		}
		ends[l.LabelY] = from + wide
	}
	return shown
}

func BenchmarkHTML(b *testing.B) {
	d := big(200)
	for b.Loop() {
		var out bytes.Buffer
		if err := New(d).HTML(&out); err != nil {
			b.Fatal(err)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\x00b\x1b[31mc\u202ed\u200be\xff": "abcde\ufffd", "\x1b]8;;http://x\x07y": "y", "a\r\nb\rc\td": "a\nb\nc    d",
		"o\u0301\u0301\u0301\u0301\u0301\u0301": "o\u0301\u0301\u0301\u0301"} {
		if got := text.CleanText(in); got != want || text.CleanText(got) != got {
			t.Errorf("Clean(%q) is %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"# a": `\# a`, "1. x.": `1\. x.`, "- [x](y)": `\- \[x\](y)`, "see http://a www.b": `see http\://a www\.b`, "a_b*c": `a\_b\*c`,
		"<b>&": "&lt;b&gt;&amp;", "me@home": "me@\u2060home", "a\n# b": "a # b", "==": `\=\=`} {
		if got := inline(in); got != want {
			t.Errorf("inline(%q) is %q, want %q", in, got, want)
		}
	}
	if got := fenced("", "a\n````\nb"); got != "`````\na\n````\nb\n`````\n" {
		t.Errorf("fenced is %q", got)
	}
	if got := code("a``b`"); got != "``` a``b` ```" {
		t.Errorf("code is %q", got)
	}
}

// A lane whose task another has gone on with says so: its item is not blocked.
func TestLaneContinued(t *testing.T) {
	t.Parallel()
	d := Data{Mission: centurion.Mission{ID: "m", Session: "ses_root", Status: centurion.MissionCompleted, Started: at(0)}, Now: at(9),
		Tasks: []centurion.Task{{ID: "tsk_1", Item: "T4", Status: centurion.TaskBlocked}, {ID: "tsk_2", Item: "T4", Status: centurion.TaskCompleted}},
		Events: []centurion.Event{fact(0, centurion.EventMissionStarted, "", "ses_root", event.MissionData{}),
			moved(1, centurion.EventTaskStarted, "tsk_1", centurion.TaskRunning, 1, ""), moved(2, centurion.EventTaskBlocked, "tsk_1", centurion.TaskBlocked, 1, "why"),
			moved(3, centurion.EventTaskStarted, "tsk_2", centurion.TaskRunning, 1, ""), moved(4, centurion.EventTaskCompleted, "tsk_2", centurion.TaskCompleted, 1, "")}}
	var ends []string
	for _, l := range Lanes(d).Lanes {
		if l.Task != "" {
			ends = append(ends, l.End)
		}
	}
	if d := cmp.Diff([]string{"blocked, then continued in another task", "completed"}, ends); d != "" {
		t.Error(d)
	}
}

// Time in which everybody waits for a person is no time at work, also of a question that is open at the end; while somebody works it is.
func TestHeldUp(t *testing.T) {
	t.Parallel()
	ask := func(sec int, id string) centurion.Event {
		return fact(sec, centurion.EventQuestionAsked, "", "root", event.AskData{ID: id, Type: "question"})
	}
	reply := func(sec int, id string) centurion.Event {
		return fact(sec, centurion.EventQuestionAnswered, "", "root", event.AskData{ID: id, Answer: "yes", By: "person"})
	}
	d := Data{Mission: centurion.Mission{ID: "m", Session: "root", Status: centurion.MissionBlocked, ElapsedMS: 800_000}, Events: []centurion.Event{
		fact(0, centurion.EventMissionStarted, "", "root", event.MissionData{}),
		ask(100, "que_1"), reply(400, "que_1"), // nobody works
		answered(410, "root", "msg_1", "commander", 10, 1, 0),
		moved(450, centurion.EventTaskStarted, "a", centurion.TaskRunning, 1, ""),
		ask(500, "que_2"), moved(560, centurion.EventTaskCompleted, "a", centurion.TaskCompleted, 1, ""), reply(600, "que_2"), // for 60 s somebody works
		answered(700, "root", "msg_2", "commander", 10, 1, 0),
		ask(800, "que_3"), // still open
		fact(820, centurion.EventMissionBlocked, "", "root", event.MissionEnd{})}}
	r := New(d)
	if r.HeldMS != 360_000 {
		t.Errorf("held up for %d ms", r.HeldMS)
	}
	if got, want := r.headline(), "7m20s at work · 6m waiting for a person"; !strings.Contains(got, want) {
		t.Errorf("%q does not say %q", got, want)
	}
	// While the mission is paused nobody waits.
	d.Events = []centurion.Event{fact(0, centurion.EventMissionStarted, "", "root", event.MissionData{}), ask(100, "que_1"),
		fact(120, centurion.EventMissionPaused, "", "root", event.MissionEnd{}), fact(520, centurion.EventMissionResumed, "", "root", event.MissionData{}),
		reply(530, "que_1"), fact(600, centurion.EventMissionCompleted, "", "root", event.MissionEnd{})}
	if r = New(d); r.HeldMS != 30_000 {
		t.Errorf("with a pause held up for %d ms", r.HeldMS)
	}
}
