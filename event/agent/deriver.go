package agent

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/event/view"
)

// Deriver turns the events of missions into those of their agents. It must see all facts of a mission from its beginning, in order, to
// know the parents of its sessions; its results may be discarded. The zero Deriver shows every session without a parent, with its
// children nested. It is not safe for concurrent use.
type Deriver struct {
	// Session is the full ID of the session to show, with its children nested: its own events are not nested, even if it has a parent.
	// Empty shows all.
	Session string

	sessions map[string]*session
	tasks    map[string]origin
}

// origin is the starter of a task.
type origin struct{ session, call string }

// session is the known state of a session.
type session struct {
	id, task               string
	agent, address, title  string
	working                bool // between agent_start and its end
	text, finish           string
	messages               []Message
	running                []Call // begun and not ended, oldest first
	mission, newestMessage string
}

// Apply takes the next event and returns the agent events it causes, oldest first. Facts with unreadable data are ignored. If a fact
// causes several events, only the last has its number as Seq; the others have the preceding number as After, so that a reader that
// stops among them and resumes at its highest number gets them again.
func (d *Deriver) Apply(e centurion.Event) []centurion.Event {
	if e.Type == centurion.EventDelta {
		return d.delta(e)
	}
	d.note(e)
	var out []centurion.Event
	if e.Type.EndsMission() {
		out = append(d.close(e), e)
	} else if e.Session != "" && ownFact(e.Type) {
		out = d.fact(d.of(e), e)
	}
	return number(out, e)
}

// ownFact reports whether a fact is the session's own: others only name a session they concern, and another session's task.
func ownFact(t centurion.EventType) bool {
	area, _, _ := strings.Cut(string(t), ".")
	return area == "session" || area == "message" || area == "tool" || area == "provider"
}

// number numbers events by the fact that caused them.
func number(all []centurion.Event, from centurion.Event) []centurion.Event {
	for i := range all {
		all[i].Seq, all[i].After = 0, from.Seq-1
	}
	if n := len(all); n > 0 {
		all[n-1].Seq, all[n-1].After = from.Seq, 0
	}
	return all
}

// of returns the state of an event's session.
func (d *Deriver) of(e centurion.Event) *session {
	s := d.sessions[e.Session]
	if s == nil {
		if d.sessions == nil {
			d.sessions = map[string]*session{}
		}
		s = &session{id: e.Session}
		d.sessions[e.Session] = s
	}
	s.task, s.mission = cmp.Or(s.task, e.Task), cmp.Or(s.mission, e.Mission)
	return s
}

// note remembers who started a task.
func (d *Deriver) note(e centurion.Event) {
	if e.Task == "" || !strings.HasPrefix(string(e.Type), "task.") || d.tasks[e.Task].session != "" {
		return
	}
	t, err := event.Decode[event.TaskData](e)
	if err != nil || t.Parent == "" {
		return
	}
	if d.tasks == nil {
		d.tasks = map[string]origin{}
	}
	call := t.Call
	if _, id, ok := strings.Cut(call, "/"); ok { // message/call
		call = id
	}
	d.tasks[e.Task] = origin{t.Parent, call}
}

// fact returns the events caused by a fact of a session.
func (d *Deriver) fact(s *session, e centurion.Event) []centurion.Event {
	switch e.Type {
	case centurion.EventSessionAborted, centurion.EventRewound, centurion.EventForked: // by a person
		return d.tell(s, e, e.Type, e.Data)
	}
	v, err := view.Decode(e)
	switch {
	case err != nil:
	case e.Type == centurion.EventSessionCreated:
		s.agent, s.address, s.title = v.Agent, v.Address, v.Title
	case e.Type == centurion.EventMessageCreated:
		return d.created(s, e, v)
	case e.Type == centurion.EventCompacted:
		return d.tell(s, e, Compact, CompactData{Message: v.Message, Reason: v.Reason, Before: v.Before, After: v.After})
	case s.working:
		return d.working(s, e, v)
	}
	return nil
}

// working returns the events caused by a fact of a working session.
func (d *Deriver) working(s *session, e centurion.Event, v view.Fact) []centurion.Event {
	switch e.Type {
	case centurion.EventMessageUpdated:
		return d.answered(s, e, v)
	case centurion.EventToolStarted:
		return d.begun(s, e, v)
	case centurion.EventToolCompleted:
		return d.completed(s, e, v)
	case centurion.EventProviderRetry:
		return d.tell(s, e, Retrying, RetryData{Attempt: v.Attempt, WaitMS: v.WaitMS, Reason: v.Reason, Error: v.Error.Text})
	case centurion.EventSessionIdle:
		s.working = false
		return d.tell(s, e, End, EndData{Text: s.text, Finish: s.finish, Messages: slices.Clone(s.messages), Done: true})
	case centurion.EventSessionError:
		return d.fail(s, e, ErrorData{Reason: v.Error.Text, Kind: v.Kind, Message: v.Message})
	}
	return nil
}

// created starts an agent that was idle. Its prompt is stored before anything it does.
func (d *Deriver) created(s *session, e centurion.Event, v view.Fact) []centurion.Event {
	s.newestMessage = v.Message
	var out []centurion.Event
	if !s.working {
		s.working, s.text, s.finish, s.messages, s.running = true, "", "", nil, nil
		start := StartData{Agent: s.agent, Address: s.address, Title: s.title}
		if v.Role == string(centurion.RoleUser) {
			start.Text = v.Text
		}
		out = d.tell(s, e, Start, start)
	}
	if v.Role == string(centurion.RoleUser) {
		s.add(Message{ID: v.Message, Role: centurion.RoleUser, Origin: centurion.Origin(v.Origin), Text: v.Text})
	}
	return out
}

func (s *session) add(m Message) {
	s.messages = append(s.messages, m)
	if extra := len(s.messages) - MaxMessages; extra > 0 {
		s.messages = slices.Delete(s.messages, 0, extra)
	}
}

// answered reports a complete answer. A broken one is left to the session's error.
func (d *Deriver) answered(s *session, e centurion.Event, v view.Fact) []centurion.Event {
	if v.Repaired || v.Finish == centurion.FinishCancelled || v.Finish == centurion.FinishError {
		return nil
	}
	m := Message{ID: v.Message, Role: centurion.RoleAssistant, Text: v.Text, Finish: v.Finish, Tokens: &v.Usage.Tokens, Cost: v.Cost}
	s.add(m)
	s.text, s.finish = v.Text, v.Finish
	calls := make([]Call, len(v.ToolCalls))
	for i, c := range v.ToolCalls {
		calls[i] = Call{Call: c.Call, Name: c.Tool}
	}
	return d.tell(s, e, TurnEnd, TurnData{Message: m, ToolCalls: calls})
}

func (d *Deriver) begun(s *session, e centurion.Event, v view.Fact) []centurion.Event {
	if slices.ContainsFunc(s.running, func(c Call) bool { return c.Call == v.Call }) {
		return nil // a restart reports a repeated call again
	}
	args := v.Input
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	s.running = append(s.running, Call{Call: v.Call, Name: v.Tool})
	return d.tell(s, e, ToolStart, ToolStartData{Name: v.Tool, Args: args, Call: v.Call})
}

// completed reports the end of a call, and first its start if it was answered without being run. Calls repaired before an agent starts
// again have already been reported as ended.
func (d *Deriver) completed(s *session, e centurion.Event, v view.Fact) []centurion.Event {
	var out []centurion.Event
	i := slices.IndexFunc(s.running, func(c Call) bool { return c.Call == v.Call })
	if i < 0 {
		out = d.tell(s, e, ToolStart, ToolStartData{Name: v.Tool, Args: json.RawMessage("{}"), Call: v.Call})
	} else {
		s.running = slices.Delete(s.running, i, i+1)
	}
	end := ToolEndData{Name: v.Tool, Call: v.Call, Error: v.Error.Text}
	if v.Error.Text == "" {
		end.Result = v.Output
	}
	return append(out, d.tell(s, e, ToolEnd, end)...)
}

// fail reports that an agent's work ended with an error, after ending its unfinished calls.
func (d *Deriver) fail(s *session, e centurion.Event, why ErrorData) []centurion.Event {
	var out []centurion.Event
	for _, c := range s.running {
		out = append(out, d.tell(s, e, ToolEnd, ToolEndData{Name: c.Name, Call: c.Call, Error: why.Reason})...)
	}
	s.working, s.running = false, nil
	why.Done = true
	return append(out, d.tell(s, e, Error, why)...)
}

// close ends everything that still works when its mission has stopped, children before parents.
func (d *Deriver) close(e centurion.Event) []centurion.Event {
	var open []*session
	for _, id := range slices.Sorted(maps.Keys(d.sessions)) {
		if s := d.sessions[id]; s.working && s.mission == e.Mission {
			open = append(open, s)
		}
	}
	slices.SortStableFunc(open, func(a, b *session) int { return d.depth(b) - d.depth(a) })
	reason := strings.TrimPrefix(string(e.Type), "mission.")
	if v := view.Read(e); v.Reason != "" {
		reason += ": " + v.Reason
	}
	var out []centurion.Event
	for _, s := range open {
		out = append(out, d.fail(s, e, ErrorData{Reason: "the mission is " + reason, Kind: centurion.KindCancelled})...)
	}
	return out
}

func (d *Deriver) depth(s *session) (n int) {
	for range maxDepth {
		up, ok := d.tasks[s.task]
		if !ok || d.sessions[up.session] == nil {
			break
		}
		s = d.sessions[up.session]
		n++
	}
	return n
}

// delta reports a piece of text, or a gap.
func (d *Deriver) delta(e centurion.Event) []centurion.Event {
	v, err := event.Decode[event.DeltaData](e)
	if err != nil {
		return nil
	}
	if v.Gap { // it may concern every session
		return []centurion.Event{{After: e.After, Time: e.Time, Type: Gap, Mission: e.Mission, Session: d.Session, Data: event.Data(nil)}}
	}
	typ := MessageDelta
	switch v.Field {
	case string(centurion.PartText):
	case string(centurion.PartReasoning):
		typ = ThinkingDelta
	default:
		return nil // a tool's progress is not the agent's text
	}
	return d.tell(d.of(e), e, typ, DeltaData{Message: v.Message, Part: v.Part, Delta: v.Delta})
}

// maxDepth is how deep events can nest. Sessions nest two deep; more means that the journal is wrong.
const maxDepth = 32

// tell makes an event of a session, nested into its parents up to the shown one; nil if none of them is shown.
func (d *Deriver) tell(s *session, from centurion.Event, typ centurion.EventType, data any) []centurion.Event {
	e := centurion.Event{After: from.After, Time: from.Time, Type: typ, Mission: from.Mission, Session: s.id, Task: s.task, Data: event.Data(data)}
	for range maxDepth {
		if e.Session == d.Session {
			return []centurion.Event{e}
		}
		up, child := d.tasks[e.Task]
		if !child {
			if d.Session != "" {
				return nil
			}
			return []centurion.Event{e}
		}
		e.Data = event.Data(SubAgentData{ParentCall: up.call, Sub: e.Session, Event: Inner{e.Type, e.Data}})
		e.Type, e.Session, e.Task = SubAgentEvent, up.session, ""
		if parent := d.sessions[up.session]; parent != nil {
			e.Task = parent.task
		}
	}
	return nil
}
