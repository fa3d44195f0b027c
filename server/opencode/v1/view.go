package v1

import (
	"context"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/event"
	"centurion/server"
)

// view is what the readers of a project's events were told, as far as the next event depends on it.
type view struct {
	mu     sync.Mutex             // protects the fields below
	status map[string]state       // of the sessions that are not idle
	tasks  map[string]server.Task // by the session, message and call that made them
	roots  map[string]string      // the root session of a mission
	todos  map[string][]todoItem  // by mission
	opened map[string]bool        // sessions told before their mission began
	works  map[string]bool        // missions that are worked on
	prints map[string]string      // what running commands have printed, by part

	parts map[string]bool     // that were told, while they are written; used by the follower only, like held
	held  map[string]*unended // by message: answers whose calls run
}

// unended is an answer whose end is told when its calls have ended, as OpenCode's server does.
type unended struct {
	info  centurion.Message
	end   []centurion.Part
	calls map[string]bool // that have not ended, by part
}

// follow turns facts into OpenCode's events. It reads again only what a fact names.
func (p *Project) follow(ctx context.Context) error {
	seq, err := p.API().LastSeq(ctx)
	if err == nil {
		err = p.begin(ctx)
	}
	if err != nil {
		return err
	}
	return p.told.Run(ctx, server.EventQuery{After: seq, Follow: true, Deltas: true, Toasts: true}, p.Follow, p.tell, p.Note)
}

// begin learns what works at the start.
func (p *Project) begin(ctx context.Context) error {
	v := &p.view
	v.mu.Lock()
	defer v.mu.Unlock()
	v.status, v.tasks, v.roots, v.todos, v.opened, v.works, v.prints, v.parts, v.held = map[string]state{}, map[string]server.Task{}, map[string]string{}, map[string][]todoItem{}, map[string]bool{}, map[string]bool{}, map[string]string{}, map[string]bool{}, map[string]*unended{}
	missions, err := p.API().Missions(ctx)
	if err != nil {
		return err
	}
	for _, m := range missions {
		v.roots[m.ID] = m.Session
		tasks, err := p.API().Tasks(ctx, m.ID)
		if err != nil {
			return err
		}
		for _, t := range tasks {
			v.tasks[t.Parent+"/"+t.Call] = t
		}
		if !m.Status.Alive() {
			continue
		}
		v.works[m.ID] = true
		working := []string{m.Session}
		for _, t := range tasks {
			if t.Session != "" && !t.Status.Ended() {
				working = append(working, t.Session)
			}
		}
		for _, id := range working {
			s, err := p.API().Session(ctx, id)
			if err != nil {
				return err
			}
			if now := statusAtStart(s); now != idle {
				v.status[id] = state{m.ID, now}
			}
		}
	}
	return nil
}

// send tells all readers an event.
func (p *Project) send(kind string, properties any) {
	p.pass(eventText(kind, properties), kind == "message.part.delta")
}

// tell tells one fact.
func (p *Project) tell(ctx context.Context, e centurion.Event) error {
	p.endRetry(e)
	switch e.Type {
	case centurion.EventDelta:
		return p.tellDelta(ctx, e)
	case centurion.EventToast:
		return p.tellToast(e)
	case centurion.EventMissionStarted, centurion.EventMissionResumed:
		p.view.mu.Lock()
		p.view.roots[e.Mission], p.view.works[e.Mission] = e.Session, true
		p.view.mu.Unlock()
		if e.Type == centurion.EventMissionResumed { // one that begins has a message first
			p.tellStatus(e.Mission, e.Session, busy)
		}
	case centurion.EventSessionOpened, centurion.EventSessionCreated, centurion.EventSessionRenamed, centurion.EventSessionRemoved,
		centurion.EventSessionAgent, centurion.EventSessionModel:
		return p.tellSession(ctx, e)
	case centurion.EventRewound:
		return p.tellRewound(ctx, e)
	case centurion.EventMessageCreated, centurion.EventMessageUpdated, centurion.EventCompacted:
		return p.tellMessage(ctx, e)
	case centurion.EventPluginActed:
		n, err := event.Decode[named](e)
		if err != nil || n.Message == "" {
			return err
		}
		return p.tellParts(ctx, e.Session, n.Message)
	case centurion.EventToolStarted, centurion.EventToolCompleted:
		n, err := event.Decode[named](e)
		if err != nil || n.Part == "" {
			return err
		}
		return p.tellParts(ctx, e.Session, n.Message, n.Part)
	case centurion.EventTodoUpdated:
		return p.tellTodo(ctx, e)
	case centurion.EventProviderRetry:
		return p.tellRetry(e)
	case centurion.EventSessionError:
		return p.tellError(ctx, e)
	case centurion.EventSessionIdle, centurion.EventSessionAborted:
		return p.tellRest(ctx, e)
	case centurion.EventPermissionAsked, centurion.EventQuestionAsked, centurion.EventPlanAsked:
		return p.tellAsk(ctx, e)
	case centurion.EventPermissionReplied, centurion.EventQuestionAnswered, centurion.EventPlanAnswered:
		return p.tellAnswer(e)
	}
	if strings.HasPrefix(string(e.Type), "task.") {
		return p.tellTask(ctx, e)
	}
	if e.Type.EndsMission() {
		p.tellEnd(e.Mission)
	}
	return nil
}

func (p *Project) root(ctx context.Context, mission string) (string, error) {
	p.view.mu.Lock()
	root := p.view.roots[mission]
	p.view.mu.Unlock()
	if root != "" {
		return root, nil
	}
	m, err := p.API().Mission(ctx, mission)
	return m.Session, err
}

func (p *Project) tellSession(ctx context.Context, e centurion.Event) error {
	s, err := p.API().Session(ctx, e.Session)
	if err != nil {
		return err
	}
	v := &p.view
	v.mu.Lock()
	kind := "session.updated"
	switch {
	case e.Type == centurion.EventSessionOpened:
		kind, v.opened[s.ID] = "session.created", true
	case e.Type == centurion.EventSessionRemoved:
		kind = "session.deleted"
	case e.Type == centurion.EventSessionCreated && !v.opened[s.ID]:
		kind = "session.created"
	}
	v.mu.Unlock()
	p.send(kind, sessionEvent{s.ID, shownSession(s)})
	return nil
}

// tellMessage tells a message that is new or has changed, with its parts.
func (p *Project) tellMessage(ctx context.Context, e centurion.Event) error {
	n, err := event.Decode[named](e)
	if err != nil {
		return err
	}
	if e.Type == centurion.EventCompacted { // the message that the summary answers has no fact of its own
		m, err := p.API().Message(ctx, e.Session, n.Message)
		if err == nil {
			err = p.tellParts(ctx, e.Session, m.Info.ParentID)
		}
		if err != nil {
			return err
		}
	}
	if err := p.tellParts(ctx, e.Session, n.Message); err != nil {
		return err
	}
	switch {
	case e.Type == centurion.EventCompacted:
		p.send("session.compacted", idleEvent{e.Session})
	case e.Type == centurion.EventMessageCreated:
		p.tellWork(e, n.Shell)
	default: // an answer is whole: its session has new sums
		s, err := p.API().Session(ctx, e.Session)
		if err != nil {
			return err
		}
		p.send("session.updated", sessionEvent{s.ID, shownSession(s)})
	}
	return nil
}

// tellParts tells these parts of a message, or the message with all of them.
func (p *Project) tellParts(ctx context.Context, session, id string, parts ...string) error {
	m, err := p.API().Message(ctx, session, id, parts...)
	if err != nil {
		return err
	}
	whole := m.Info.Time.Completed > 0 // what a client waits for comes last
	if len(parts) == 0 && !whole {
		p.send("message.updated", messageEvent{session, m.Info})
	}
	held := &unended{info: m.Info, calls: map[string]bool{}}
	for _, part := range m.Parts {
		if part.Type == centurion.PartTool && part.State != nil && !part.State.Ended() && m.Info.Finish == centurion.FinishToolCalls {
			held.calls[part.ID] = true
		}
		if part.Type == centurion.PartStepFinish && len(held.calls) > 0 {
			held.end = append(held.end, part)
			continue
		}
		p.tellPart(part)
	}
	switch {
	case len(parts) > 0:
		p.tellHeld(m)
	case len(held.calls) > 0:
		p.view.held[m.Info.ID] = held
	case whole:
		delete(p.view.held, m.Info.ID)
		p.send("message.updated", messageEvent{session, m.Info})
	}
	return nil
}

// tellHeld tells the end of an answer when the last of its calls has ended. m has the parts that have changed.
func (p *Project) tellHeld(m server.Message) {
	held := p.view.held[m.Info.ID]
	if held == nil {
		return
	}
	for _, part := range m.Parts {
		if part.State != nil && part.State.Ended() {
			delete(held.calls, part.ID)
		}
	}
	if len(held.calls) > 0 {
		return
	}
	delete(p.view.held, m.Info.ID)
	for _, part := range held.end {
		p.tellPart(part)
	}
	p.send("message.updated", messageEvent{held.info.SessionID, held.info})
}

// tellPart tells a part. A call is first told as one that waits, as OpenCode's server does.
func (p *Project) tellPart(part centurion.Part) {
	now, told := time.Now().UnixMilli(), p.view.parts
	if part.Type == centurion.PartTool && part.State != nil {
		if !told[part.ID] && part.State.Status != centurion.ToolPending {
			waits := part
			waits.State = &centurion.ToolState{Status: centurion.ToolPending}
			p.send("message.part.updated", partEvent{part.SessionID, p.shown(waits), now})
		}
		told[part.ID] = true
	}
	if part.Type != centurion.PartTool || part.State.Ended() {
		delete(told, part.ID)
		p.printed(part.ID, "")
	}
	p.send("message.part.updated", partEvent{part.SessionID, p.shown(part), now})
}

// shown is a part as clients know it.
func (p *Project) shown(part centurion.Part) centurion.Part {
	v := &p.view
	v.mu.Lock()
	defer v.mu.Unlock()
	part = withPrinted(part, v.prints[part.ID])
	if t, made := v.tasks[part.SessionID+"/"+part.MessageID+"/"+part.CallID]; made {
		return shownPart(part, &t)
	}
	return shownPart(part, nil)
}

func (p *Project) tellDelta(ctx context.Context, e centurion.Event) error {
	d, err := event.Decode[event.DeltaData](e)
	switch {
	case err != nil || d.Gap:
		return err
	case d.Field == "output":
		return p.tellPrinted(ctx, e.Session, d)
	case d.Field != "text" && d.Field != "reasoning":
		return nil
	}
	if !p.view.parts[d.Part] { // a client needs the part before its text
		p.view.parts[d.Part] = true
		part := centurion.Part{ID: d.Part, SessionID: e.Session, MessageID: d.Message, Type: centurion.PartType(d.Field), Time: centurion.PartTime{Start: time.Now().UnixMilli()}}
		p.send("message.part.updated", partEvent{e.Session, part, part.Time.Start})
	}
	p.send("message.part.delta", deltaEvent{e.Session, d.Message, d.Part, "text", d.Delta})
	return nil
}

type toastEvent struct {
	Title    string `json:"title,omitempty"`
	Message  string `json:"message"`
	Variant  string `json:"variant"`
	Duration int64  `json:"duration,omitempty"`
}

// Warn shows a person something about the configuration in all clients of the project.
func (p *Project) Warn(text string) { p.Toast("Configuration", text, "warning") }

// Toast shows a person something in all clients of the project. The variants are those of OpenCode: info, success, warning and error.
func (p *Project) Toast(title, message, variant string) {
	p.send("tui.toast.show", toastEvent{Title: title, Message: message, Variant: variant, Duration: 10_000})
}

func (p *Project) tellToast(e centurion.Event) error {
	d, err := event.Decode[toastEvent](e)
	if err == nil {
		p.send("tui.toast.show", d)
	}
	return err
}

type todoEvent struct {
	Session string     `json:"sessionID"`
	Todos   []todoItem `json:"todos"`
}

func (p *Project) tellTodo(ctx context.Context, e centurion.Event) error {
	d, err := event.Decode[event.TodoData](e)
	if err != nil {
		return err
	}
	root, err := p.root(ctx, e.Mission)
	if err != nil {
		return err
	}
	todos := shownTodo(d)
	p.view.mu.Lock()
	p.view.todos[e.Mission] = todos
	p.view.mu.Unlock()
	p.send("todo.updated", todoEvent{root, todos})
	return nil
}

type errorEvent struct {
	Session string    `json:"sessionID"`
	Error   errorName `json:"error"`
}

type errorName struct {
	Name string         `json:"name"`
	Data map[string]any `json:"data"`
}

// tellError tells why a turn broke off, and its message, which has the same error.
func (p *Project) tellError(ctx context.Context, e centurion.Event) error {
	n, err := event.Decode[named](e)
	if err != nil {
		return err
	}
	name := "UnknownError"
	switch centurion.Kind(n.Kind) {
	case centurion.KindCancelled, centurion.KindInterrupted, centurion.KindBudget:
		name = "MessageAbortedError"
	}
	p.send("session.error", errorEvent{e.Session, errorName{name, map[string]any{"message": n.Error}}})
	if n.Message == "" {
		return nil
	}
	return p.tellParts(ctx, e.Session, n.Message)
}

// tellTask tells the call that made a task, whose session can be visited from there, and that the task's session rests once it has ended.
func (p *Project) tellTask(ctx context.Context, e centurion.Event) error {
	if e.Task == "" {
		return nil
	}
	if d, err := event.Decode[event.RetryData](e); err == nil && d.WaitMS > 0 { // a turn of its session is repeated
		return p.tellRetry(e)
	}
	t, err := p.API().Task(ctx, e.Task)
	if err != nil {
		return err
	}
	if d, err := event.Decode[event.TaskData](e); err == nil && d.Session != "" {
		t.Session = d.Session // another attempt may have begun since
	}
	v := &p.view
	v.mu.Lock()
	key := t.Parent + "/" + t.Call
	was, known := v.tasks[key]
	v.tasks[key] = t
	v.mu.Unlock()
	if was.ID == t.ID && was.Session != t.Session { // another attempt
		p.tellIdle(e.Mission, was.Session)
	}
	if t.Status.Ended() {
		p.tellIdle(e.Mission, t.Session)
	}
	message, call, ok := strings.Cut(t.Call, "/")
	if !ok || known && was.Session == t.Session && was.Status.Ended() == t.Status.Ended() {
		return nil
	}
	m, err := p.API().Message(ctx, t.Parent, message)
	if err != nil {
		return err
	}
	for _, part := range m.Parts {
		if part.CallID == call {
			p.send("message.part.updated", partEvent{t.Parent, p.shown(part), time.Now().UnixMilli()})
		}
	}
	return nil
}
