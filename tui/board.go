package tui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"centurion"
)

// Board is a mission as it can be told from its events. The zero Board is ready; it is not safe for concurrent use.
// All text in it is clean (see [Clean]) except that of asks, which is shown through [Escape].
type Board struct {
	ID        string
	Goal      string
	Directory string
	Branch    string
	Unmerged  bool // its branch has work that is not on the person's
	Level     int
	Status    centurion.MissionStatus
	Reason    string
	Started   time.Time
	Ended     time.Time
	MaxCost   float64 // USD; 0 without a cap
	MaxTokens int64
	Slots     int // workers at once; 0 means 50
	PerAgent  int // workers of one agent at once; 0 means 10
	Todo      Todo
	Tasks     []*Task // in the order they were recorded
	Asks      []*Ask  // open ones, oldest first
	Commander Worker  // the root session
	Countdown time.Time
	End       *End

	reported centurion.Usage // as the mission's own events say
	counted  centurion.Usage // as its messages add up
	tasks    map[string]*Task
	sessions map[string]*Worker
	agents   map[string]string // by session
	last     time.Time         // of the newest event
}

// Todo counts the items of the list by state.
type Todo struct{ Open, Running, Done, Cancelled, Blocked int }

// Total returns the number of items that count: cancelled ones do not.
func (t Todo) Total() int { return t.Open + t.Running + t.Done + t.Blocked }

// Worker is what a session is doing.
type Worker struct {
	Session string
	Address string
	Doing   string // the newest tool call or line of text
	Said    string // the newest whole answer, several lines
	Retry   *Retry // it waits for the provider

	partial string // the line of text that streams
}

// Retry is a wait that the provider asked for.
type Retry struct {
	Attempt int
	Reason  string
	Until   time.Time
}

// Task is a delegated piece of work.
type Task struct {
	Worker

	ID      string
	Agent   string
	Title   string
	Item    string
	Status  centurion.TaskStatus
	Reason  string // what it waits for, or why it ended as it did
	Attempt int
	Files   []string
	Usage   centurion.Usage
	Queued  time.Time
	Started time.Time // of the newest attempt
	Ended   time.Time
}

// Age returns how long the task has run, waited, or took.
func (t *Task) Age(now time.Time) time.Duration {
	from := t.Started
	if from.IsZero() {
		from = t.Queued
	}
	if !t.Ended.IsZero() {
		now = t.Ended
	}
	return max(0, now.Sub(from))
}

// Name is what the task is called in one word: its item, else its address, else the end of its id.
func (t *Task) Name() string {
	switch {
	case t.Item != "":
		return t.Item
	case t.Address != "":
		return t.Address
	}
	id := Clean(t.ID)
	return "#" + id[max(0, len(id)-4):]
}

// Ask is a question that waits for a person.
type Ask struct {
	ID         string
	Type       string // permission, question or plan
	Session    string
	Task       string
	Agent      string
	Address    string // of who asks, in the mission
	Line       string // those above it
	Permission string
	Patterns   []string
	Always     []string
	Title      string
	Text       string
	Options    []string
	Items      []Item // of a plan
	CostLow    float64
	CostHigh   float64
	Metadata   map[string]any
	Created    time.Time
	Deadline   time.Time
}

// End is how a run of the mission ended.
type End struct {
	Usage      centurion.Usage
	Duration   time.Duration
	Tasks      map[string]int
	Verified   int
	Unverified int
	Unproven   []string // ids of items
	Flaky      []string
	Reason     string
	Summary    string // the Commander's, several lines
}

// Usage returns what the mission has cost so far: what its events say or what its messages add up to, whichever is more.
func (b *Board) Usage() centurion.Usage {
	if b.End != nil {
		return b.End.Usage
	}
	u := b.reported
	if b.counted.Tokens.Total() > u.Tokens.Total() {
		u = b.counted
	}
	u.Unpriced = b.reported.Unpriced || b.counted.Unpriced
	return u
}

// Elapsed returns how long the mission has run.
func (b *Board) Elapsed(now time.Time) time.Duration {
	switch {
	case b.End != nil && b.End.Duration > 0:
		return b.End.Duration
	case b.Started.IsZero():
		return 0
	case !b.Ended.IsZero():
		now = b.Ended
	}
	return max(0, now.Sub(b.Started))
}

// In returns the tasks in one of the states, in order.
func (b *Board) In(states ...centurion.TaskStatus) []*Task {
	var out []*Task
	for _, t := range b.Tasks {
		if slices.Contains(states, t.Status) {
			out = append(out, t)
		}
	}
	return out
}

// Active returns the tasks that hold a worker.
func (b *Board) Active() []*Task {
	return b.In(centurion.TaskRunning, centurion.TaskVerifying, centurion.TaskMerging)
}

// isGoal reports whether a message of the person is the goal that was told already; the host may have added to it what
// a command such as /plan means.
func (b *Board) isGoal(text string) bool { return b.Goal != "" && strings.HasPrefix(text, b.Goal) }

// Task returns a task by id, or nil.
func (b *Board) Task(id string) *Task { return b.tasks[id] }

// agentOf names who a session or task belongs to.
func (b *Board) agentOf(session, task string) string {
	if t := b.tasks[task]; t != nil && t.Agent != "" {
		return t.Agent
	}
	return b.agents[session]
}

// Apply takes the next event. Events of other missions are passed over once the board has one.
func (b *Board) Apply(e centurion.Event) {
	if b.takes(e) {
		b.apply(e, read(e))
	}
}

// takes reports whether the event belongs to this board.
func (b *Board) takes(e centurion.Event) bool {
	id := Clean(e.Mission)
	b.ID = cmp.Or(b.ID, id)
	return id == "" || id == b.ID
}

func (b *Board) apply(e centurion.Event, p payload) {
	if b.tasks == nil {
		b.tasks, b.sessions, b.agents = map[string]*Task{}, map[string]*Worker{}, map[string]string{}
	}
	if !e.Time.IsZero() {
		b.last = e.Time.Time
	}
	if e.Type != centurion.EventMissionUpdated && e.Type != centurion.EventMessageQueued {
		b.Countdown = time.Time{} // something happens again
	}
	switch kind, _, _ := strings.Cut(string(e.Type), "."); kind {
	case "mission", "budget":
		b.applyMission(e, p)
	case "todo":
		b.Todo = Todo{p.Open, p.Running, p.Done, p.Cancelled, p.Blocked}
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

// applyMerge follows where the work of the mission stands.
func (b *Board) applyMerge(e centurion.Event, p payload) {
	switch e.Type {
	case centurion.EventMergeDone:
		b.Unmerged = !p.Person
	case centurion.EventMergeUndone:
		b.Unmerged = b.Unmerged || p.Person
	}
}

func (b *Board) applyMission(e centurion.Event, p payload) {
	set(&b.Goal, p.Goal)
	set(&b.Directory, p.Directory)
	set(&b.Branch, p.Branch)
	setIf(&b.Level, p.Level)
	setIf(&b.Slots, p.Options.MaxWorkers)
	setIf(&b.PerAgent, p.Options.MaxPerAgent)
	setIf(&b.MaxCost, p.Options.MaxCost)
	setIf(&b.MaxTokens, p.Options.MaxTokens)
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
		if e.Session != "" {
			b.Commander.Session = e.Session
			b.sessions[e.Session] = &b.Commander
		}
	case centurion.EventMissionUpdated:
		b.Status = centurion.MissionStatus(cmp.Or(p.Status, string(b.Status)))
		set(&b.Reason, p.Reason)
		if p.Countdown != nil {
			b.Countdown = time.Time{}
			if *p.Countdown > 0 {
				b.Countdown = e.Time.Add(time.Duration(*p.Countdown) * time.Millisecond)
			}
		}
	case centurion.EventBudgetExceeded:
		set(&b.Reason, p.Reason)
	}
	if e.Type.EndsMission() {
		b.end(e, p)
	}
}

func (b *Board) end(e centurion.Event, p payload) {
	_, status, _ := strings.Cut(string(e.Type), ".")
	b.Status = centurion.MissionStatus(status)
	b.Reason = cmp.Or(Clean(p.Reason), b.Reason)
	b.Ended = e.Time.Time
	b.Countdown = time.Time{}
	b.End = &End{Usage: p.Usage, Duration: p.duration(), Tasks: p.Tasks, Verified: p.Verified,
		Unverified: p.Unverified, Unproven: CleanLines(strings.Join(p.Unproven, "\n")), Flaky: CleanLines(strings.Join(p.Flaky, "\n")), Reason: b.Reason, Summary: strings.Join(CleanLines(p.Summary), "\n")}
	if p.Usage == (centurion.Usage{}) {
		b.End.Usage = b.counted
	}
}

func (b *Board) applyTask(e centurion.Event, p payload) {
	id := cmp.Or(e.Task, p.ID)
	if id == "" {
		return
	}
	t := b.tasks[id]
	if t == nil {
		t = &Task{ID: id, Queued: e.Time.Time, Status: centurion.TaskQueued}
		b.tasks[id] = t
		b.Tasks = append(b.Tasks, t)
	}
	set(&t.Agent, p.Agent)
	set(&t.Title, p.Title)
	set(&t.Item, p.Item)
	setIf(&t.Attempt, p.Attempt)
	if len(p.Files) > 0 {
		t.Files = nil
		for _, f := range p.Files {
			t.Files = append(t.Files, Clean(f))
		}
	}
	if p.Usage.Tokens.Total() >= t.Usage.Tokens.Total() && p.Usage != (centurion.Usage{}) {
		t.Usage = p.Usage
	}
	b.moveTask(t, e, p)
}

// taskStatus is the state that an event puts a task into: the one it names, else the one its type stands for.
func taskStatus(e centurion.Event, p payload, now centurion.TaskStatus) centurion.TaskStatus {
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

func (b *Board) moveTask(t *Task, e centurion.Event, p payload) {
	status := taskStatus(e, p, t.Status)
	if e.Type == centurion.EventTaskDelivered || t.Status.Ended() && status.Ended() {
		return
	}
	before := t.Status
	t.Status = status
	t.Reason = cmp.Or(Clean(p.Reason), p.Error.full())
	if s := cmp.Or(p.Session, e.Session); s != "" && s != t.Session && s != b.Commander.Session {
		b.bind(t, s)
	}
	switch {
	case status.Ended():
		t.Ended, t.Retry = e.Time.Time, nil
		if p.Result != "" {
			t.Said = strings.Join(CleanLines(p.Result), "\n")
		}
	case e.Type == centurion.EventTaskRetrying && p.WaitMS > 0:
		t.Retry = &Retry{Attempt: p.Attempt, Reason: words(t.Reason), Until: e.Time.Add(time.Duration(p.WaitMS) * time.Millisecond)}
		t.Doing = ""
	case status == centurion.TaskRunning && (t.Started.IsZero() || before == centurion.TaskQueued):
		t.Started, t.Ended, t.Retry, t.Doing = e.Time.Time, time.Time{}, nil, ""
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

// workerOf finds or makes what is known of an event's session. A session without a task is the Commander's if it is the
// first of its kind, or has the address of the root.
func (b *Board) workerOf(e centurion.Event) *Worker {
	if w := b.sessions[e.Session]; w != nil {
		return w
	}
	if t := b.tasks[e.Task]; t != nil {
		b.bind(t, e.Session)
		return &t.Worker
	}
	w := &Worker{Session: e.Session}
	if e.Task == "" && (b.Commander.Session == "" || b.Commander.Session == e.Session) {
		b.Commander.Session = e.Session
		w = &b.Commander
	}
	b.sessions[e.Session] = w
	return w
}

func (b *Board) applySession(e centurion.Event, p payload) {
	if e.Session == "" {
		return
	}
	w := b.workerOf(e)
	if p.Agent != "" {
		b.agents[e.Session] = Clean(p.Agent)
	}
	set(&w.Address, p.Address)
	switch e.Type {
	case centurion.EventProviderRetry:
		w.Retry = &Retry{Attempt: p.Attempt, Reason: cmp.Or(words(Clean(p.Reason)), Clean(p.Error.Message)),
			Until: e.Time.Add(time.Duration(p.WaitMS) * time.Millisecond)}
		return
	case centurion.EventSessionModel:
		w.Doing, w.Retry = "goes on with "+Clean(p.To), nil
	case centurion.EventSessionAborted:
		w.Doing, w.partial = "stopped: "+Clean(p.Reason), ""
	case centurion.EventToolStarted, centurion.EventToolCompleted:
		if s := toolLine(p); s != "" {
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
			w.Doing = Clean(p.Error.Message)
		}
	}
	w.Retry = nil
}

func (b *Board) applyMessage(e centurion.Event, p payload, w *Worker) {
	if lines := CleanLines(p.Text); len(lines) > 0 && p.Type != string(centurion.PartReasoning) {
		w.Said = strings.Join(lines, "\n")
		w.Doing = Clean(lines[len(lines)-1])
	}
	w.partial = ""
	if p.Usage != (centurion.Usage{}) {
		b.counted = b.counted.Plus(p.Usage)
		if t := b.tasks[e.Task]; t != nil && t.Ended.IsZero() {
			t.Usage = t.Usage.Plus(p.Usage)
		}
	}
}

// maxPartial bounds the line that streams: more of it than a screen is wide is never shown.
const maxPartial = 400

// stream takes a piece of text. Of reasoning, too, the newest line is what the worker does now.
func (w *Worker) stream(p payload) {
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
	if s := Clean(w.partial); s != "" {
		w.Doing = s
	}
}

func (b *Board) applyVerify(e centurion.Event, p payload) {
	t := b.tasks[e.Task]
	if t == nil {
		return
	}
	switch e.Type {
	case centurion.EventVerifyStarted:
		t.Doing = "check " + Clean(p.Command)
	case centurion.EventVerifyPassed:
		t.Doing = "passed " + Clean(p.Command)
	case centurion.EventVerifyFailed:
		t.Doing = "failed " + Clean(p.Command)
	}
}

func (b *Board) applyAsk(e centurion.Event, p payload) {
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
	if p.By != "" { // answered in the same moment by a policy: it waits for nobody
		return
	}
	a := b.newAsk(e, p)
	if i >= 0 {
		b.Asks[i] = a
		return
	}
	b.Asks = append(b.Asks, a)
}

// newAsk is the ask that an event tells of.
func (b *Board) newAsk(e centurion.Event, p payload) *Ask {
	kind, _, _ := strings.Cut(string(e.Type), ".")
	return &Ask{ID: p.ID, Type: kind, Session: e.Session, Task: e.Task, Agent: cmp.Or(Clean(p.Agent), b.agentOf(e.Session, e.Task)),
		Address: p.Address, Line: p.Line, Permission: p.Permission, Patterns: p.Patterns, Always: p.Always, Title: p.Title, Text: p.Text, Options: choices(e),
		Items: p.Items, CostLow: p.CostLow, CostHigh: p.CostHigh, Metadata: p.Metadata, Created: e.Time.Time,
		Deadline: p.Deadline.Time}
}
