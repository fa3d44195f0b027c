package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/event"
	"centurion/text"
)

// Apply takes the next event and returns its content. Once the board has a mission, it ignores events of others: then ours is false.
func (b *Board) Apply(e centurion.Event) (p Fact, ours bool) {
	id := text.Clean(e.Mission)
	b.ID = cmp.Or(b.ID, id)
	if id != "" && id != b.ID {
		return Fact{}, false
	}
	p = Read(e)
	b.apply(e, p)
	return p, true
}

func (b *Board) apply(e centurion.Event, p Fact) {
	if b.tasks == nil {
		b.tasks, b.sessions, b.agents = map[string]*Task{}, map[string]*Worker{}, map[string]string{}
	}
	if !e.Time.IsZero() {
		b.Last = e.Time.Time
	}
	if e.Type != centurion.EventMissionUpdated && e.Type != centurion.EventMessageQueued {
		b.Countdown = time.Time{} // something happens again
	}
	switch kind, _, _ := strings.Cut(string(e.Type), "."); kind {
	case "mission", "budget":
		b.applyMission(e, p)
	case "todo":
		b.Todo = event.TodoCounts{Open: p.Open, Running: p.Running, Done: p.Done, Cancelled: p.Cancelled, Blocked: p.Blocked}
	case "task":
		b.applyTask(e, p)
	case "session", "message", "tool", "provider":
		b.applySession(e, p)
	case "verify":
		b.applyVerify(e, p)
	case "merge":
		b.applyMerge(e, p)
	case "permission", "question", "plan":
		b.applyAsk(e, p)
	}
}

// applyMerge tracks where the mission's work is.
func (b *Board) applyMerge(e centurion.Event, p Fact) {
	switch e.Type {
	case centurion.EventMergeDone:
		b.Unmerged = !p.Person
	case centurion.EventMergeUndone:
		b.Unmerged = b.Unmerged || p.Person
	}
}

func (b *Board) applyMission(e centurion.Event, p Fact) {
	set(&b.Goal, p.Goal)
	set(&b.Directory, p.Directory)
	set(&b.Branch, p.Branch)
	setIf(&b.Level, p.Level)
	if o := p.Options; o != nil {
		setIf(&b.Slots, o.MaxWorkers)
		setIf(&b.PerAgent, o.MaxPerAgent)
		setIf(&b.MaxCost, o.MaxCost)
		setIf(&b.MaxTokens, o.MaxTokens)
	}
	setIf(&b.MaxCost, p.MaxCost)
	setIf(&b.MaxTokens, p.MaxTokens)
	if p.Usage.Tokens.Total() >= b.reported.Tokens.Total() {
		b.reported = p.Usage
	}
	switch e.Type {
	case centurion.EventMissionStarted, centurion.EventMissionResumed:
		if b.Started.IsZero() {
			b.Started = e.Time.Time
		}
		b.Status = centurion.MissionStatus(cmp.Or(p.Status, string(centurion.MissionRunning)))
		b.Ended, b.End, b.Reason = time.Time{}, nil, ""
		b.Asks = slices.DeleteFunc(b.Asks, func(a *Ask) bool { return a.Type != "question" }) // these are asked again
		if e.Session != "" {
			b.Session = e.Session
			b.sessions[e.Session] = &b.Commander
		}
	case centurion.EventMissionUpdated:
		b.Status = centurion.MissionStatus(cmp.Or(p.Status, string(b.Status)))
		set(&b.Reason, p.Reason)
		if p.Countdown != nil {
			b.Countdown = time.Time{}
			if *p.Countdown > 0 {
				b.Countdown = e.Time.Add(text.Millis(*p.Countdown))
			}
		}
	case centurion.EventBudgetExceeded:
		set(&b.Reason, p.Reason)
	}
	if e.Type.EndsMission() {
		b.end(e, p)
	}
}

func (b *Board) end(e centurion.Event, p Fact) {
	_, status, _ := strings.Cut(string(e.Type), ".")
	b.Status = centurion.MissionStatus(status)
	b.Reason = cmp.Or(text.Clean(p.Reason), b.Reason)
	b.Ended = e.Time.Time
	b.Countdown = time.Time{}
	if p.Usage == (centurion.Usage{}) {
		p.Usage = b.counted
	}
	p.Reason, p.Summary = b.Reason, strings.Join(text.CleanLines(p.Summary), "\n")
	b.End = &p
}

func (b *Board) applyTask(e centurion.Event, p Fact) {
	id := cmp.Or(e.Task, p.ID)
	if id == "" {
		return
	}
	t := b.tasks[id]
	if t == nil {
		t = &Task{Task: centurion.Task{ID: id, Mission: e.Mission, Status: centurion.TaskQueued, Created: e.Time}}
		b.tasks[id] = t
		b.Tasks = append(b.Tasks, t)
	}
	set(&t.Agent, p.Agent)
	set(&t.Title, p.Title)
	set(&t.Item, p.Item)
	set(&t.Parent, p.Parent)
	set(&t.Short, p.Name)
	setIf(&t.Attempt, p.Attempt)
	if len(p.Files) > 0 {
		t.Files = text.Each(p.Files, text.Clean)
	}
	if p.Usage.Tokens.Total() >= t.Usage.Tokens.Total() && p.Usage != (centurion.Usage{}) {
		t.Usage = p.Usage
	}
	b.moveTask(t, e, p)
}

// StatusAfter returns the state of a task after an event: the one it names, else the one implied by its type.
func StatusAfter(e centurion.Event, p Fact, now centurion.TaskStatus) centurion.TaskStatus {
	_, last, _ := strings.Cut(string(e.Type), ".")
	for _, s := range []string{p.Status, last} {
		if st := centurion.TaskStatus(s); slices.Contains(centurion.TaskStatuses, st) {
			return st
		}
	}
	if e.Type == centurion.EventTaskStarted {
		return centurion.TaskRunning
	}
	return now
}

func (b *Board) moveTask(t *Task, e centurion.Event, p Fact) {
	status := StatusAfter(e, p, t.Status)
	if e.Type == centurion.EventTaskDelivered || t.Status.Ended() && !t.Status.CanBecome(status) {
		return
	}
	before := t.Status
	t.Status, t.Reason, t.Error = status, text.Clean(p.Reason), p.TaskError()
	if s := cmp.Or(p.Session, e.Session); s != "" && s != t.Session && s != b.Session {
		b.bind(t, s)
	}
	if !status.Ended() {
		t.Ended = centurion.Time{}
	}
	switch {
	case status.Ended():
		t.Ended, t.Retry = e.Time, nil
		if p.Result != "" {
			t.Said = strings.Join(text.CleanLines(p.Result), "\n")
		}
	case e.Type == centurion.EventTaskRetrying && p.WaitMS > 0:
		t.Retry = &Retry{Attempt: p.Attempt, Reason: Words(cmp.Or(t.Reason, text.Clean(p.Error.Message))), Until: e.Time.Add(p.Wait())}
		t.Doing = ""
	case status == centurion.TaskRunning && (t.Started.IsZero() || before == centurion.TaskQueued):
		t.Started, t.Retry, t.Doing = e.Time, nil, ""
	}
}

// bind makes a session the one that works on t.
func (b *Board) bind(t *Task, session string) {
	if old := b.sessions[session]; old != nil && old != &t.Worker {
		t.Address = cmp.Or(old.Address, t.Address)
	}
	t.Session = session
	b.sessions[session] = &t.Worker
}

// workerOf finds or creates the worker of an event's session. A session without a task is the Commander's if it is the first such
// session or has the root's address.
func (b *Board) workerOf(e centurion.Event) *Worker {
	if w := b.sessions[e.Session]; w != nil {
		return w
	}
	if t := b.tasks[e.Task]; t != nil {
		b.bind(t, e.Session)
		return &t.Worker
	}
	w := &Worker{}
	if e.Task == "" && (b.Session == "" || b.Session == e.Session) {
		b.Session = e.Session
		w = &b.Commander
	}
	b.sessions[e.Session] = w
	return w
}

func (b *Board) applySession(e centurion.Event, p Fact) {
	if e.Session == "" {
		return
	}
	w := b.workerOf(e)
	if p.Agent != "" {
		b.agents[e.Session] = text.Clean(p.Agent)
	}
	set(&w.Address, p.Address)
	switch e.Type {
	case centurion.EventProviderRetry:
		w.Retry = &Retry{Attempt: p.Attempt, Reason: cmp.Or(Words(text.Clean(p.Reason)), text.Clean(p.Error.Message)),
			Until: e.Time.Add(p.Wait())}
		return
	case centurion.EventSessionModel, centurion.EventSessionAgent:
		w.Doing, w.Retry = "continues with "+text.Clean(p.To), nil
	case centurion.EventSessionAborted:
		w.Doing, w.partial = "stopped: "+text.Clean(p.Reason), ""
	case centurion.EventToolStarted, centurion.EventToolCompleted:
		if s := ToolLine(p); s != "" {
			w.Doing = s
		}
		w.partial = ""
	case centurion.EventDelta:
		w.stream(p)
	case centurion.EventMessageUpdated, centurion.EventPartUpdated:
		b.applyMessage(e, p, w)
	case centurion.EventSessionIdle, centurion.EventSessionError:
		w.partial = ""
		if t := b.tasks[e.Task]; t == nil {
			w.Doing = text.Clean(p.Error.Message)
		}
	}
	w.Retry = nil
}

func (b *Board) applyMessage(e centurion.Event, p Fact, w *Worker) {
	if lines := text.CleanLines(p.Text); len(lines) > 0 && p.Type != string(centurion.PartReasoning) {
		w.Said = strings.Join(lines, "\n")
		w.Doing = text.Clean(lines[len(lines)-1])
	}
	w.partial = ""
	if p.Usage != (centurion.Usage{}) {
		b.counted = b.counted.Plus(p.Usage)
		if t := b.tasks[e.Task]; t != nil && t.Ended.IsZero() {
			t.Usage = t.Usage.Plus(p.Usage)
		}
	}
}

// maxPartial limits the streaming line: more than a screen's width is never shown.
const maxPartial = 400

// stream takes a piece of text. The newest line counts as the worker's activity, even in reasoning.
func (w *Worker) stream(p Fact) {
	if p.Gap || p.Field == "progress" {
		w.partial = ""
	}
	w.partial += p.Delta
	if i := strings.LastIndexByte(strings.TrimRight(w.partial, "\n"), '\n'); i >= 0 {
		w.partial = w.partial[i+1:]
	}
	if len(w.partial) > maxPartial {
		w.partial = strings.ToValidUTF8(w.partial[len(w.partial)-maxPartial:], "")
	}
	if s := text.Clean(w.partial); s != "" {
		w.Doing = s
	}
}

func (b *Board) applyVerify(e centurion.Event, p Fact) {
	words := map[centurion.EventType]string{centurion.EventVerifyStarted: "check ", centurion.EventVerifyPassed: "passed ", centurion.EventVerifyFailed: "failed "}
	if t := b.tasks[e.Task]; t != nil && words[e.Type] != "" {
		t.Doing = words[e.Type] + text.Clean(p.Command)
	}
}

func (b *Board) applyAsk(e centurion.Event, p Fact) {
	kind, what, _ := strings.Cut(string(e.Type), ".")
	same := func(a *Ask) bool {
		return a.Type == kind && (p.ID != "" && a.ID == p.ID || p.ID == "" && a.Session == e.Session)
	}
	i := slices.IndexFunc(b.Asks, same)
	if what != "asked" {
		if i >= 0 {
			b.Asks = slices.Delete(b.Asks, i, i+1)
		}
		return
	}
	if p.By != "" { // a policy answered it right away: it waits for no one
		return
	}
	a := b.NewAsk(e, p)
	if i >= 0 {
		b.Asks[i] = a
		return
	}
	b.Asks = append(b.Asks, a)
}

// NewAsk returns the ask of an event.
func (b *Board) NewAsk(e centurion.Event, p Fact) *Ask {
	p.Type, _, _ = strings.Cut(string(e.Type), ".")
	p.Session, p.Agent = e.Session, cmp.Or(text.Clean(p.Agent), b.AgentOf(e.Session, e.Task))
	return &Ask{Fact: p, Task: e.Task}
}
