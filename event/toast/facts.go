package toast

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"centurion"
	"centurion/event/view"
	"centurion/text"
)

// see returns the toast for a fact about the mission itself, its model or its person.
func (m *mission) see(e centurion.Event, d view.Fact) (Toast, bool) {
	switch e.Type {
	case centurion.EventMissionStarted, centurion.EventMissionResumed:
		m.called, m.waits = false, time.Time{}
		name := text.If(e.Type == centurion.EventMissionResumed, "mission_resumed", "mission_started")
		return preset(name).Toast("goal", m.goal()), true
	case centurion.EventMissionUpdated:
		if d.Countdown == nil || *d.Countdown <= 0 {
			return Toast{}, false
		}
		t := preset("countdown").Toast("time", text.Span(text.Millis(*d.Countdown)))
		t.Duration = *d.Countdown
		return t, true
	case centurion.EventMissionCompleted, centurion.EventMissionFailed, centurion.EventMissionPaused,
		centurion.EventMissionBlocked, centurion.EventMissionCancelled:
		return m.end(e, d), true
	case centurion.EventPermissionAsked, centurion.EventQuestionAsked, centurion.EventPlanAsked:
		return m.asked(e, d)
	case centurion.EventPermissionReplied, centurion.EventQuestionAnswered, centurion.EventPlanAnswered:
		m.called = m.called && len(m.board.Asks) > 0
	case centurion.EventBudgetExceeded:
		return preset("budget").Toast("limit", clean(strings.ReplaceAll(d.Limit, "_", " ")), "spent", text.Limit(d.Limit, d.Spent),
			"max", text.Limit(d.Limit, d.Max)), true
	case centurion.EventProviderRetry, centurion.EventTaskRetrying:
		return m.retry(e, d)
	case centurion.EventSessionAgent:
		return preset("agent").Toast("agent", clean(view.Read(e).Agent)), true
	}
	return Toast{}, false
}

// goal is the mission's goal in one line.
func (m *mission) goal() string { return clean(m.board.Goal) }

func (m *mission) end(e centurion.Event, d view.Fact) Toast {
	m.called = false
	_, how, _ := strings.Cut(string(e.Type), ".")
	if e.Type == centurion.EventMissionCompleted {
		how = "complete"
	}
	done := d.Tasks[string(centurion.TaskCompleted)]
	account := text.Dots(text.When(done > 0, centurion.Count(done, "task")+" completed"), text.Span(text.Millis(d.DurationMS)),
		text.When(d.Cost > 0, text.USD(d.Cost)))
	return preset("mission_"+how).Toast("goal", m.goal(), "reason", clean(d.Reason), "account", account)
}

// asked says once that something waits, no matter how much. What a policy answers right away is skipped. The details are left out: a
// command or a question may hold things that do not belong on every screen.
func (m *mission) asked(e centurion.Event, d view.Fact) (Toast, bool) {
	if d.By != "" || m.called {
		return Toast{}, false
	}
	m.called = true
	what := "A question waits for your answer"
	switch {
	case e.Type == centurion.EventPlanAsked:
		what = "A plan waits for your approval"
	case e.Type == centurion.EventPermissionAsked:
		what = strings.TrimSuffix("Something waits for your permission: "+clean(d.Permission), ": ")
	}
	return preset("needs_you").Toast("what", what, "goal", m.goal()), true
}

// retry says that the model is being waited for, once per wait: one rate limit holds up every session of a mission.
func (m *mission) retry(e centurion.Event, d view.Fact) (Toast, bool) {
	if d.WaitMS <= 0 { // a new attempt has its reason in the same field, and no wait
		if e.Type != centurion.EventTaskRetrying {
			return Toast{}, false
		}
		t := m.board.Task(e.Task)
		return preset("task_retried").Toast("title", clean(t.Title), "attempt", strconv.Itoa(max(1, t.Attempt)), "reason", clean(d.Reason)), true
	}
	wait := text.Millis(d.WaitMS)
	if e.Time.Before(m.waits) {
		return Toast{}, false
	}
	m.waits = e.Time.Add(wait)
	p := preset("retry")
	p.Duration = max(Window, min(wait, 2*p.Duration))
	return p.Toast("time", text.Span(wait+time.Second-1), "reason", clean(strings.ReplaceAll(d.Reason, "_", " "))), true
}

// task adds a fact about a task to the list and notes what to report of it.
func (m *mission) task(e centurion.Event) (d view.Fact) {
	var before centurion.TaskStatus
	known := m.board.Task(e.Task)
	if known != nil {
		before = known.Status
	}
	d, _ = m.board.Apply(e)
	t := m.board.Task(e.Task)
	if t == nil {
		return d
	}
	f := m.family(cmp.Or(t.Parent, m.board.Session))
	if !slices.Contains(f.batch, t.ID) && (!t.Status.Ended() || !before.Ended()) {
		f.batch = append(f.batch, t.ID)
	}
	switch {
	case t.Status.Ended() && !before.Ended():
		f.ended = append(f.ended, t.ID)
	case known == nil || e.Type == centurion.EventTaskStarted:
		f.started = true
	default:
		return d
	}
	f.after = e.Seq
	if f.opened.IsZero() {
		f.opened = e.Time
	}
	return d
}

// tell makes one notice of everything that happened to a family's tasks since the last one.
func (m *mission) tell(id string, f *family, now centurion.Time) Notice {
	n := Notice{Time: now, After: f.after, Mission: id, Session: f.parent}
	list := Of(&m.board)
	f.ended = slices.DeleteFunc(f.ended, m.lives) // one was blocked and continues
	switch {
	case len(f.ended) == 0:
		n.Toast = preset("task_started").Toast("list", list.Text(now.Time))
	case len(f.batch) > 1 && !slices.ContainsFunc(f.batch, m.lives):
		n.Toast = m.summary(f)
	default:
		n.Toast = m.endings(f, list, now.Time)
	}
	if !slices.ContainsFunc(f.batch, m.lives) {
		f.batch = nil
	}
	f.opened, f.ended, f.started = centurion.Time{}, nil, false
	return n
}

// lives reports whether a task has not ended.
func (m *mission) lives(id string) bool {
	return !m.board.Task(id).Status.Ended()
}

// endings describes how tasks ended and what is left: the whole list if others started at the same moment.
func (m *mission) endings(f *family, list List, now time.Time) Toast {
	all := m.tasks(f.ended)
	worst := preset("task_completed")
	for _, t := range all {
		if p := preset("task_" + string(t.Status)); rank(p.Variant) > rank(worst.Variant) {
			worst = p
		}
	}
	lines := atMost(MaxLines, all, func(t centurion.Task) string {
		return preset("task_"+string(t.Status)).text("title", clean(t.Title), "time", text.Span(Age(t, now)), "reason", why(t))
	})
	left := text.If(f.started, list.Text(now), list.Remaining())
	worst.Message = "{lines}"
	return worst.Toast("lines", strings.Join(append(lines, text.Filled(left)...), "\n"))
}

// summary describes how a whole batch ended.
//
//	3 tasks in 1m02s: 2 ok, 1 failed, 0 cancelled
//	✓ Write the parser (12s)
//	✓ Write its test (1m02s)
//	✗ Describe both (3s)
func (m *mission) summary(f *family) Toast {
	all := m.tasks(f.batch)
	count := map[centurion.TaskStatus]int{}
	var from, to time.Time
	for _, t := range all {
		count[t.Status]++
		if from.IsZero() || t.Created.Before(from) {
			from = t.Created.Time
		}
		if t.Ended.After(to) {
			to = t.Ended.Time
		}
	}
	head := fmt.Sprintf("%s in %s: %d ok, %d failed, %d cancelled", centurion.Count(len(all), "task"), text.Span(to.Sub(from)),
		count[centurion.TaskCompleted], count[centurion.TaskFailed], count[centurion.TaskCancelled]) +
		text.When(count[centurion.TaskBlocked] > 0, fmt.Sprintf(", %d blocked", count[centurion.TaskBlocked]))
	lines := append([]string{head}, atMost(MaxLines, all, func(t centurion.Task) string {
		return fmt.Sprintf("%s %s (%s)", mark(t.Status), clean(t.Title), text.Span(Age(t, to)))
	})...)
	p := preset(text.If(count[centurion.TaskCompleted] < len(all), "all_ended", "all_complete"))
	if count[centurion.TaskFailed] > 0 {
		p.Variant = Error
	}
	return p.Toast("summary", strings.Join(lines, "\n"))
}

func (m *mission) tasks(ids []string) []centurion.Task {
	all := make([]centurion.Task, len(ids))
	for i, id := range ids {
		all[i] = m.board.Task(id).Task
	}
	return all
}

// why returns the reason for a task's end.
func why(t centurion.Task) string {
	if t.Error != nil {
		return clean(cmp.Or(t.Error.Message, string(t.Error.Kind)))
	}
	return clean(t.Reason)
}

func rank(v Variant) int { return slices.Index([]Variant{Info, Success, Warning, Error}, v) }
