package toast

import (
	"cmp"

	"centurion"
	"centurion/event/view"
)

// Board is the consolidated list as it follows from a mission's events. The zero Board is ready; it is not safe for
// concurrent use.
type Board struct {
	Slots, PerAgent int // caps to show; see List

	tasks []*centurion.Task
	byID  map[string]*centurion.Task
	asks  map[string]string // the task of each open question, by the question's id
}

// List returns the list as it stands.
func (b *Board) List() List {
	l := List{Tasks: make([]centurion.Task, len(b.tasks)), Slots: b.Slots, PerAgent: b.PerAgent, Asking: map[string]bool{}}
	for _, task := range b.asks {
		l.Asking[task] = true
	}
	for i, t := range b.tasks {
		l.Tasks[i] = *t
	}
	return l
}

// Task returns a task by id.
func (b *Board) Task(id string) (centurion.Task, bool) {
	t := b.byID[id]
	if t == nil {
		return centurion.Task{}, false
	}
	return *t, true
}

// Apply takes the next event; those that are not about a task change nothing. A task that has ended stays ended, whatever
// an older attempt still says of it, unless a person's answer has freed a blocked one.
func (b *Board) Apply(e centurion.Event) {
	b.ask(e)
	if e.Task == "" || !aboutTask(e.Type) {
		return
	}
	d, err := view.Decode(e)
	if err != nil {
		return // data of another form has nothing to show
	}
	t := b.byID[e.Task]
	if t == nil {
		t = &centurion.Task{ID: e.Task, Mission: e.Mission, Status: centurion.TaskQueued, Created: e.Time}
		if b.byID == nil {
			b.byID = map[string]*centurion.Task{}
		}
		b.byID[e.Task] = t
		b.tasks = append(b.tasks, t)
	}
	if t.Status.Ended() && t.Status != centurion.TaskBlocked {
		return
	}
	t.Agent, t.Title, t.Item = cmp.Or(d.Agent, t.Agent), cmp.Or(d.Title, t.Title), cmp.Or(d.Item, t.Item)
	t.Parent, t.Session, t.Attempt = cmp.Or(d.Parent, t.Parent), cmp.Or(d.Session, t.Session), max(d.Attempt, t.Attempt)
	t.Reason, t.Error = d.Reason, d.TaskError()
	before := t.Status
	t.Status = cmp.Or(d.TaskStatus(), t.Status)
	switch {
	case t.Status.Ended():
		t.Ended = e.Time
	case before.Ended():
		t.Ended = centurion.Time{}
	}
	if t.Status == centurion.TaskRunning && (t.Started.IsZero() || before == centurion.TaskQueued) {
		t.Started = e.Time
	}
}

// ask notes which tasks have an open question to the person.
func (b *Board) ask(e centurion.Event) {
	switch e.Type {
	case centurion.EventPermissionAsked, centurion.EventQuestionAsked, centurion.EventPlanAsked:
		d, err := view.Decode(e)
		if err != nil || d.By != "" || e.Task == "" {
			return
		}
		if b.asks == nil {
			b.asks = map[string]string{}
		}
		b.asks[d.ID] = e.Task
	case centurion.EventPermissionReplied, centurion.EventQuestionAnswered, centurion.EventPlanAnswered:
		if d, err := view.Decode(e); err == nil {
			delete(b.asks, d.ID)
		}
	}
	if e.Type.EndsMission() {
		b.asks = nil // nobody waits for the answer any more
	}
}

// aboutTask reports whether an event of this type moves a task. That a result was delivered or a write refused does not.
func aboutTask(t centurion.EventType) bool {
	switch t {
	case centurion.EventTaskQueued, centurion.EventTaskWaiting, centurion.EventTaskStarted, centurion.EventTaskUpdated,
		centurion.EventTaskVerifying, centurion.EventTaskRetrying, centurion.EventTaskCompleted, centurion.EventTaskFailed,
		centurion.EventTaskCancelled, centurion.EventTaskBlocked:
		return true
	}
	return false
}
