package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/server"
	"centurion/text"
)

// project is an open project whose facts are told.
type project struct {
	*Project
	told server.Follower
}

// session is a conversation of the editor.
type session struct {
	*project
	*conn
	id string

	// The connection protects these.
	mission string
	used    bool // a prompt came from this editor
	turn    *turn
	finish  string                        // why its newest answer ended
	inChat  string                        // the question that the next prompt answers
	asked   map[string]context.CancelFunc // what the editor is asked

	stopping chan struct{} // has a token when a run of its mission has ended
	telling  telling
}

// update is what a session/update tells.
type update struct {
	Kind      string     `json:"sessionUpdate,omitempty"`
	Content   any        `json:"content,omitempty"` // a block, or the []toolContent of a call
	Call      string     `json:"toolCallId,omitempty"`
	Title     string     `json:"title,omitempty"`
	Tool      string     `json:"kind,omitempty"`
	Status    string     `json:"status,omitempty"`
	Locations []location `json:"locations,omitempty"`
	Input     any        `json:"rawInput,omitempty"`
	Output    any        `json:"rawOutput,omitempty"`
	Entries   *[]entry   `json:"entries,omitempty"`
	Commands  *[]any     `json:"availableCommands,omitempty"`
	Mode      string     `json:"currentModeId,omitempty"`
}

// The kinds of texts.
const (
	userChunk    = "user_message_chunk"
	agentChunk   = "agent_message_chunk"
	thoughtChunk = "agent_thought_chunk"
)

// update tells the editor of a session. It waits while the editor is slow.
func (c *conn) update(session string, u update) error {
	err := c.out.room(c.ctx)
	if err == nil {
		err = c.server.Notify(c.ctx, "session/update", map[string]any{"sessionId": session, "update": u})
	}
	if c.ctx.Err() != nil {
		return nil // nobody is there to be told
	}
	return err
}

// watch follows what happens in a project, from now on.
func (c *conn) watch(ctx context.Context, opened *Project) (*project, error) {
	seq, err := opened.Bridge.LastSeq(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.projects[opened.Directory]
	if p != nil {
		return p, nil
	}
	p = &project{Project: opened}
	c.projects[opened.Directory] = p
	c.jobs.Go("tell editor", func() error {
		err := p.told.Run(c.ctx, server.EventQuery{After: seq, Follow: true, Deltas: true}, p.Bridge.Events, func(ctx context.Context, e centurion.Event) (err error) {
			for _, s := range c.of(p, e) {
				err = cmp.Or(s.tell(ctx, e), err)
			}
			return err
		}, c.Say)
		if c.ctx.Err() != nil {
			return nil
		}
		return err
	})
	return p, nil
}

// flushed waits until all facts that there are were told.
func (s *session) flushed(ctx context.Context) error {
	seq, err := s.Bridge.LastSeq(ctx)
	if err != nil {
		return err
	}
	return s.told.Await(ctx, seq)
}

// named is the part of a fact's data that says what it is about.
type named struct {
	Message string `json:"message"`
	Part    string `json:"part"`
}

// tell tells one fact, or a piece of a text.
func (s *session) tell(ctx context.Context, e centurion.Event) error {
	if e.Type == centurion.EventDelta {
		return s.tellDelta(ctx, e)
	}
	s.note(e)
	switch e.Type {
	case centurion.EventMessageUpdated, centurion.EventToolStarted, centurion.EventToolCompleted, centurion.EventSessionError:
		n, err := event.Decode[named](e)
		if err != nil || n.Message == "" {
			return err
		}
		var parts []string
		if n.Part != "" {
			parts = []string{n.Part}
		}
		m, err := s.API().Message(ctx, e.Session, n.Message, parts...)
		if err != nil {
			return err
		}
		return s.tellMessage(m, e.Task, n.Part == "")
	case centurion.EventTodoUpdated:
		return s.tellPlan(ctx)
	case centurion.EventPermissionAsked, centurion.EventQuestionAsked, centurion.EventPlanAsked,
		centurion.EventPermissionReplied, centurion.EventQuestionAnswered, centurion.EventPlanAnswered:
		return s.look(ctx)
	}
	return nil
}

// note keeps what a turn waits for.
func (s *session) note(e centurion.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	begins := e.Type == centurion.EventMissionStarted || e.Type == centurion.EventMissionResumed
	switch {
	case begins && s.mission == "":
		s.mission = e.Mission
	case e.Type == centurion.EventSessionAborted && e.Session == s.id && s.turn != nil:
		s.turn.cancelled = true
		s.turn.leave()
	case e.Type.EndsMission():
		select {
		case s.stopping <- struct{}{}:
		default: // its turn has not looked yet
		}
	}
	if begins && s.turn != nil && s.turn.cancelled { // the message was brought after the cancel
		s.stop()
	}
}

func (s *session) tellDelta(ctx context.Context, e centurion.Event) error {
	d, err := event.Decode[event.DeltaData](e)
	t := &s.telling
	t.mu.Lock()
	defer t.mu.Unlock()
	kind := map[string]string{"text": agentChunk, "reasoning": thoughtChunk}[d.Field]
	switch {
	case err != nil:
		return err
	case d.Gap:
		t.gap = true
	case kind != "" && e.Session == s.id && !t.gap:
		return s.chunk(kind, d.Part, d.Delta)
	case d.Field == "output" && t.calls[d.Part] == string(centurion.ToolRunning):
		t.prints[d.Part] = text.Tail(t.prints[d.Part]+d.Delta, event.MaxPrinted)
		return s.update(s.id, update{Kind: "tool_call_update", Call: d.Part, Content: []toolContent{inner(fenced(text.Printed(t.prints[d.Part])))}})
	}
	return nil
}

// chunk tells a piece of a text. One that follows another of its kind is apart from it: editors put pieces together.
func (s *session) chunk(kind, part, piece string) error {
	t := &s.telling
	t.sent[part] += len(piece)
	if t.last != "" && t.last != kind+part && strings.HasPrefix(t.last, kind) {
		piece = "\n\n" + piece
	}
	t.last = kind + part
	return s.update(s.id, update{Kind: kind, Content: textBlock(piece)})
}

// tellMessage tells what was not told yet of a message: the texts of the session's own agent, and the calls of all. Whole says that m has
// all its parts.
func (s *session) tellMessage(m server.Message, task string, whole bool) error {
	t := &s.telling
	t.mu.Lock()
	defer t.mu.Unlock()
	own := m.Info.SessionID == s.id
	if own && m.Info.Role == centurion.RoleUser {
		t.last = ""
	}
	if m.Info.Role != centurion.RoleAssistant || m.Info.Summary {
		return nil
	}
	for _, part := range m.Parts {
		kind := map[centurion.PartType]string{centurion.PartText: agentChunk, centurion.PartReasoning: thoughtChunk}[part.Type]
		if sent := t.sent[part.ID]; kind != "" && own && len(part.Text) > sent {
			if err := s.chunk(kind, part.ID, part.Text[sent:]); err != nil {
				return err
			}
		}
		if part.Type != centurion.PartTool || part.State == nil || t.calls[part.ID] == string(part.State.Status) {
			continue
		}
		u := s.call(part, m.Info.SessionID, task)
		if t.calls[part.ID] != "" {
			u.Kind = "tool_call_update"
		}
		t.calls[part.ID] = string(part.State.Status)
		t.last = ""
		delete(t.prints, part.ID)
		if err := s.update(s.id, u); err != nil {
			return err
		}
	}
	if own && whole {
		t.gap = false
		s.mu.Lock()
		s.finish = m.Info.Finish
		s.mu.Unlock()
	}
	return nil
}

// replay tells a conversation from its beginning. What its agent writes at this moment comes when it is whole.
func (s *session) replay(ctx context.Context) error {
	t := &s.telling
	t.mu.Lock()
	t.reset()
	t.gap = true
	t.mu.Unlock()
	all, err := s.API().Messages(ctx, s.id)
	for i, m := range all {
		if err == nil && m.Info.Role == centurion.RoleUser && m.Origin == centurion.OriginPerson {
			err = s.tellPrompt(m.Parts)
		}
		if err == nil {
			err = s.tellMessage(m, "", i == len(all)-1 && m.Info.Time.Completed > 0)
		}
	}
	if err == nil && s.mission != "" {
		if err = s.tellPlan(ctx); err == nil {
			err = s.look(ctx)
		}
	}
	return err
}

// tellPrompt tells a message of the person.
func (s *session) tellPrompt(parts []centurion.Part) error {
	for _, part := range parts {
		said := part.Text
		switch {
		case part.Type == centurion.PartFile:
			said = part.File.Label()
		case part.Type != centurion.PartText || part.Synthetic:
			continue
		}
		if err := s.update(s.id, update{Kind: userChunk, Content: textBlock(said)}); err != nil {
			return err
		}
	}
	return nil
}

// entry is an item of a plan.
type entry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"` // pending, in_progress, completed
}

// tellPlan tells the plan of the session's mission, with the reasons of what is blocked.
func (s *session) tellPlan(ctx context.Context) error {
	plan, err := s.API().Todo(ctx, s.mission)
	if err != nil || len(plan.Items) == 0 {
		return err
	}
	reasons := map[string]string{}
	if plan.Blocked > 0 {
		tasks, err := s.API().Tasks(ctx, s.mission)
		if err != nil {
			return err
		}
		for _, t := range tasks { // the newest counts
			reasons[t.Item] = t.Reason
		}
	}
	entries := []entry{}
	for _, it := range plan.Items {
		one := entry{it.ID + " " + it.Title, "medium", map[string]string{"running": "in_progress", "done": "completed", "cancelled": "completed"}[it.Status]}
		switch {
		case it.Status == "blocked" && reasons[it.ID] != "":
			one.Content += " (blocked: " + reasons[it.ID] + ")"
		case it.Status == "blocked" || it.Status == "cancelled":
			one.Content += " (" + it.Status + ")"
		}
		if one.Status == "" {
			one.Status = "pending"
		}
		entries = append(entries, one)
	}
	return s.update(s.id, update{Kind: "plan", Entries: &entries})
}

// object is a raw input as JSON, if it is an object.
func object(raw json.RawMessage) map[string]any {
	var m map[string]any
	_ = json.Unmarshal(raw, &m) // a model may write anything
	return m
}
