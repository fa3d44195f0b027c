package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"centurion"
	"centurion/event/view"
	"centurion/text"
)

// Timeline shows who worked when, according to the events.
type Timeline struct {
	From  centurion.Time `json:"from"`
	To    centurion.Time `json:"to"`
	Lanes []Lane         `json:"lanes"` // the mission's own agent first, then tasks in the order they were queued
	Gaps  []Gap          `json:"gaps"`  // times without work on the mission, oldest first; they do not overlap
	Marks []Mark         `json:"marks"` // of the whole mission
}

// Lane is one task, or the mission's own agent.
type Lane struct {
	Task  string `json:"task,omitempty"` // empty for the mission's own agent
	Agent string `json:"agent"`
	Item  string `json:"item,omitempty"`
	Title string `json:"title"`
	End   string `json:"end,omitempty"` // how the task ended; empty before that
	Spans []Span `json:"spans"`
	Marks []Mark `json:"marks"`
}

// Span is a time of one activity.
type Span struct {
	Kind    SpanKind       `json:"kind"`
	From    centurion.Time `json:"from"`
	To      centurion.Time `json:"to"`
	Attempt int            `json:"attempt,omitempty"`
}

// SpanKind is the activity of a span.
type SpanKind string

// The kinds of span.
const (
	SpanWait   SpanKind = "wait"   // for a slot, a predecessor, files, a provider, a person
	SpanWork   SpanKind = "work"   // a session ran
	SpanVerify SpanKind = "verify" // its checks ran
	SpanMerge  SpanKind = "merge"  // its work was being integrated
)

// Mark is an event at one moment.
type Mark struct {
	Kind MarkKind       `json:"kind"`
	Time centurion.Time `json:"time"`
	Text string         `json:"text,omitempty"` // details, one line
}

// MarkKind is the kind of a mark.
type MarkKind string

// The kinds of mark.
const (
	MarkRetry    MarkKind = "retry"    // a retry after a failure
	MarkReturn   MarkKind = "return"   // a failed check or a conflict returned it to its worker
	MarkKill     MarkKind = "kill"     // it was interrupted: cancelled, aborted, stalled, or its host died
	MarkMerge    MarkKind = "merge"    // its work is on the mission's branch
	MarkConflict MarkKind = "conflict" // its work had merge conflicts
	MarkRed      MarkKind = "red"      // a check failed
	MarkFail     MarkKind = "fail"     // the task failed, or is blocked
	MarkDone     MarkKind = "done"     // the task was completed
)

// Gap is a time without work on the mission.
type Gap struct {
	Kind   string         `json:"kind"` // paused, blocked, failed, completed, cancelled, or restart: its host was gone
	From   centurion.Time `json:"from"`
	To     centurion.Time `json:"to"`
	Reason string         `json:"reason,omitempty"`
}

// Restart is the kind of a gap after which the mission's host had disappeared without notice.
const Restart = "restart"

// Lanes computes the timeline from a mission's events. In a running mission, open spans last until d.Now.
func Lanes(d Data) Timeline {
	l := &laner{root: d.Mission.Session, lanes: map[string]*lane{}, bySession: map[string]*lane{}, asks: map[string]bool{}}
	l.main = l.lane("")
	l.main.Agent = cmp.Or(d.Mission.Options.Agent, "commander")
	l.main.Title = "the mission's own agent"
	attempts := d.attempts()
	l.asked = slices.ContainsFunc(d.Events, func(e centurion.Event) bool {
		return e.Type == centurion.EventMessageCreated && e.Session == l.root && view.Read(e).Role == string(centurion.RoleAssistant)
	})
	for i, e := range d.Events {
		if e.Type == centurion.EventDelta || e.Type == centurion.EventToast || e.Time.IsZero() {
			continue
		}
		_, l.resuming = attempts[i]
		l.see(e)
	}
	end := l.last
	if l.ended != nil && l.ended.From.Before(end.Time) { // what a person does with its work later is not working time
		end = l.ended.From
	}
	if d.Mission.Status.Alive() && l.ended == nil && d.Now.After(end.Time) {
		end = d.Now
	}
	for _, ln := range l.order {
		ln.close(end)
	}
	t := Timeline{From: l.first, To: end, Lanes: []Lane{}, Gaps: l.gaps, Marks: l.marks}
	for _, ln := range l.order {
		if ln == l.main && len(ln.Spans) == 0 && len(ln.Marks) == 0 {
			continue
		}
		t.Lanes = append(t.Lanes, ln.Lane)
	}
	name(t.Lanes, d.Tasks)
	return t
}

// name adds to the lanes what the tasks know better than the events.
func name(lanes []Lane, tasks []centurion.Task) {
	gone := centurion.Continued(tasks)
	for _, t := range tasks {
		i := slices.IndexFunc(lanes, func(l Lane) bool { return l.Task == t.ID })
		if i < 0 {
			continue
		}
		l := &lanes[i]
		l.Agent, l.Title, l.Item = cmp.Or(t.Agent, l.Agent), cmp.Or(t.Title, l.Title), cmp.Or(t.Item, l.Item)
		if gone[t.ID] != "" && l.End != "" {
			l.End += ", then continued in another task"
		}
	}
}

// laner processes events in order.
type laner struct {
	root        string
	main        *lane
	order       []*lane
	lanes       map[string]*lane // by task; "" is the mission's own agent
	bySession   map[string]*lane
	first, last centurion.Time
	ended       *Gap // the current gap; nil while the mission is running
	gaps        []Gap
	marks       []Mark
	asks        map[string]bool // open asks of the mission's own agent, by id; true for questions
	asked       bool            // the journal has requests of the mission's own agent
	resuming    bool            // the current event starts an attempt after a resume: nothing of the task had failed
}

// lane is a lane under construction.
type lane struct {
	Lane
	doing   SpanKind // "" for nothing
	since   centurion.Time
	attempt int
	checks  int // running checks for it
	over    bool
}

func (l *laner) lane(task string) *lane {
	ln := l.lanes[task]
	if ln == nil {
		ln = &lane{Lane: Lane{Task: task, Spans: []Span{}, Marks: []Mark{}}}
		l.lanes[task] = ln
		l.order = append(l.order, ln)
	}
	return ln
}

// turn changes the current activity.
func (ln *lane) turn(to SpanKind, at centurion.Time, attempt int) {
	if ln.doing == to && ln.attempt == attempt {
		return
	}
	ln.close(at)
	ln.doing, ln.since, ln.attempt = to, at, attempt
}

// close ends the current activity.
func (ln *lane) close(at centurion.Time) {
	if ln.doing != "" && at.After(ln.since.Time) {
		ln.Spans = append(ln.Spans, Span{Kind: ln.doing, From: ln.since, To: at, Attempt: ln.attempt})
	}
	ln.doing = ""
}

func (ln *lane) mark(k MarkKind, at centurion.Time, said string) {
	ln.Marks = append(ln.Marks, Mark{Kind: k, Time: at, Text: text.Clean(said)})
}

// sentAgain is the text of a return without a reason.
const sentAgain = "sent back to its worker"

// back marks a return of work. A task's new status and the event of its return follow each other; only the second has a reason.
func (ln *lane) back(at centurion.Time, why string) {
	if n := len(ln.Marks); n > 0 && ln.Marks[n-1].Kind == MarkReturn && ln.Marks[n-1].Text == sentAgain {
		ln.Marks[n-1].Text = text.Clean(why)
		return
	}
	ln.mark(MarkReturn, at, why)
}

// see processes one event.
func (l *laner) see(e centurion.Event) {
	if l.first.IsZero() {
		l.first, l.last = e.Time, e.Time
	}
	if e.Time.Before(l.last.Time) { // the clock was set back; the picture needs increasing times
		e.Time = l.last
	}
	switch {
	case strings.HasPrefix(string(e.Type), "mission."):
		l.mission(e)
	case strings.HasPrefix(string(e.Type), "task."):
		l.task(e)
	case strings.HasPrefix(string(e.Type), "verify."):
		l.verify(e)
	case strings.HasPrefix(string(e.Type), "merge."):
		l.merge(e)
	default:
		l.session(e)
	}
	l.last = e.Time
}

func (l *laner) mission(e centurion.Event) {
	d := view.Read(e)
	switch {
	case e.Type == centurion.EventMissionStarted:
		l.main.Agent = cmp.Or(d.Agent, l.main.Agent)
		if l.asked { // it works from its first request
			l.main.turn(SpanWait, e.Time, 0)
		} else {
			l.main.turn(SpanWork, e.Time, 0)
		}
	case e.Type == centurion.EventMissionResumed:
		l.resumed(e, d)
		maps.DeleteFunc(l.asks, func(_ string, question bool) bool { return !question }) // these are asked again
		l.main.turn(l.working(), e.Time, 0)
	case e.Type.EndsMission():
		kind := strings.TrimPrefix(string(e.Type), "mission.")
		for _, ln := range l.order {
			ln.close(e.Time)
			ln.checks = 0
		}
		l.ended = &Gap{Kind: kind, From: e.Time, Reason: text.Clean(d.Reason)}
	}
}

// resumed ends a gap. If no event began the gap, the host died after its last event and interrupted all current work.
func (l *laner) resumed(e centurion.Event, d view.Fact) {
	gap := l.ended
	if gap == nil {
		gap = &Gap{Kind: Restart, From: l.last, Reason: text.Clean(d.Reason)}
		for _, ln := range l.order {
			was := ln.doing
			ln.close(l.last)
			ln.checks = 0
			if ln != l.main && was != "" && was != SpanWait {
				ln.mark(MarkKill, l.last, cmp.Or(d.Reason, "its host went away"))
			}
		}
	}
	gap.To = e.Time
	l.gaps = append(l.gaps, *gap)
	l.ended = nil
	for _, ln := range l.order {
		if ln != l.main && !ln.over {
			ln.turn(SpanWait, e.Time, ln.attempt)
		}
	}
}

func (l *laner) task(e centurion.Event) {
	ln := l.lane(e.Task)
	d := view.Read(e)
	ln.Agent, ln.Title, ln.Item = cmp.Or(d.Agent, ln.Agent), cmp.Or(d.Title, ln.Title), cmp.Or(d.Item, ln.Item)
	if e.Session != "" && e.Session != l.root {
		l.bySession[e.Session] = ln
	}
	attempt := max(d.Attempt, ln.attempt)
	switch e.Type {
	case centurion.EventTaskRetrying:
		if !l.resuming {
			ln.mark(MarkRetry, e.Time, cmp.Or(d.Error.Text, d.Reason))
		}
		if d.TaskStatus() != centurion.TaskRunning { // a request to a model is repeated after a wait
			ln.turn(SpanWait, e.Time, ln.attempt)
			return
		}
	case centurion.EventTaskStalled:
		ln.mark(MarkKill, e.Time, "nothing came from it: "+d.Last)
		return
	case centurion.EventTaskFenced:
		ln.mark(MarkKill, e.Time, "a superseded attempt was kept from writing: "+d.Refused)
		return
	case centurion.EventTaskReturned:
		ln.back(e.Time, whyReturned(d))
		return
	case centurion.EventTaskDelivered:
		return
	}
	l.move(ln, e, d, attempt)
}

// move updates a lane to a task's new status.
func (l *laner) move(ln *lane, e centurion.Event, d view.Fact, attempt int) {
	status := view.StatusAfter(e, d, "")
	was := ln.doing
	ln.over = status.Ended() && status != centurion.TaskBlocked
	why := cmp.Or(text.When(d.TaskError() != nil, d.Error.Message), d.Reason)
	if status == centurion.TaskRunning && (was == SpanVerify || was == SpanMerge) {
		ln.back(e.Time, cmp.Or(why, sentAgain))
	}
	doing := map[centurion.TaskStatus]SpanKind{centurion.TaskQueued: SpanWait, centurion.TaskWaiting: SpanWait,
		centurion.TaskRunning: SpanWork, centurion.TaskVerifying: SpanVerify, centurion.TaskMerging: SpanMerge}
	if to, ok := doing[status]; ok {
		ln.turn(to, e.Time, attempt)
	}
	switch status {
	case centurion.TaskCompleted:
		ln.finish(MarkDone, e.Time, cmp.Or(doneBut(d), "completed"), "")
	case centurion.TaskFailed:
		ln.finish(MarkFail, e.Time, "failed", why)
	case centurion.TaskBlocked:
		ln.finish(MarkFail, e.Time, "blocked", why)
	case centurion.TaskCancelled:
		ln.finish(MarkKill, e.Time, "cancelled", why)
	}
	if !status.Ended() {
		ln.End = ""
	}
}

func (ln *lane) finish(k MarkKind, at centurion.Time, end, why string) {
	ln.close(at)
	ln.End, ln.checks = end, 0
	ln.mark(k, at, strings.TrimSuffix(end+": "+why, ": "))
}

// verify draws a check on its lane. The time of a verifying task is drawn anyway.
func (l *laner) verify(e centurion.Event) {
	ln := l.main
	if e.Task != "" {
		ln = l.lane(e.Task)
	}
	d := view.Read(e)
	if e.Type == centurion.EventVerifyStarted {
		ln.checks++
		if !ln.over && ln.doing != SpanMerge {
			ln.turn(SpanVerify, e.Time, ln.attempt)
		}
		return
	}
	if e.Type == centurion.EventVerifyFailed && !d.Early {
		ln.mark(MarkRed, e.Time, cmp.Or(d.Error.Text, d.Command))
	}
	if ln.checks = max(ln.checks-1, 0); ln.checks == 0 && ln == l.main && ln.doing == SpanVerify {
		ln.turn(SpanWait, e.Time, 0)
	}
}

// takenBack begins the text of a mark for work that was reverted from a branch.
const takenBack = "reverted from "

// integrated is the word for work merged into the mission's own branch; into the person's it is "merged".
const integrated = "integrated"

func (l *laner) merge(e centurion.Event) {
	d := view.Read(e)
	m := Mark{Kind: MarkMerge, Time: e.Time, Text: text.Clean(text.If(d.Person, "merged ", integrated+" into ") + d.Branch)}
	switch e.Type {
	case centurion.EventMergeUndone:
		m.Text = text.Clean(takenBack + d.Branch)
	case centurion.EventMergeConflict:
		m.Kind, m.Text = MarkConflict, text.Clean("conflict in "+strings.Join(d.Files, ", "))
	}
	if e.Task == "" {
		l.marks = append(l.marks, m)
		return
	}
	ln := l.lane(e.Task)
	ln.Marks = append(ln.Marks, m)
}
