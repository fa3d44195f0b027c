package v1

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/roots"
	"centurion/server"
)

// prompt is the body of a message to a session.
type prompt struct {
	MessageID string              `json:"messageID"`
	Model     *centurion.ModelRef `json:"model"`
	Agent     string              `json:"agent"`
	NoReply   bool                `json:"noReply"`
	Tools     map[string]bool     `json:"tools"`
	Format    any                 `json:"format"`
	System    string              `json:"system"`
	Variant   string              `json:"variant"`
	Parts     []centurion.Part    `json:"parts"`
}

// command is the body of POST /session/{id}/command.
type command struct {
	MessageID string           `json:"messageID"`
	Agent     string           `json:"agent"`
	Model     string           `json:"model"`
	Arguments string           `json:"arguments"`
	Command   string           `json:"command"`
	Variant   string           `json:"variant"`
	Parts     []centurion.Part `json:"parts"`
}

func (p *Project) promptRoutes() map[string]route {
	return map[string]route{
		"POST /session/{id}/message": func(r *http.Request) (any, error) { return p.prompted(r, true) },
		"POST /session/{id}/prompt_async": func(r *http.Request) (any, error) {
			_, err := p.prompted(r, false)
			return nil, err
		},
		"POST /session/{id}/command": p.commanded,
		"POST /session/{id}/abort": func(r *http.Request) (any, error) {
			s, err := p.session(r)
			if err != nil {
				return nil, err
			}
			err = p.API().Abort(r.Context(), s.ID, "")
			if s.Metadata.Mission == "" || centurion.KindOf(err) == centurion.KindConflict { // nothing is to be ended
				err = nil
			}
			return true, err
		},
		"POST /session/{id}/summarize": p.summarize,
	}
}

// prompted brings a message to a session, whose first one begins a mission, and with wait answers with the last message of the answer.
func (p *Project) prompted(r *http.Request, wait bool) (any, error) {
	b, err := read[prompt](r)
	if err != nil {
		return nil, err
	}
	s, err := p.session(r)
	if err != nil {
		return nil, err
	}
	text, parts, err := p.Content(r.Context(), b.Parts)
	if err != nil {
		return nil, err
	}
	first := Begin{Session: s.ID, Goal: text, Message: b.MessageID, Parts: parts, Agent: b.Agent, noReply: b.NoReply}
	if b.Model != nil {
		first.Model = b.Model.String()
	}
	return p.bring(r.Context(), s, first, wait)
}

// commanded carries a command of the person's or the project's out.
func (p *Project) commanded(r *http.Request) (any, error) {
	b, err := read[command](r)
	if err != nil {
		return nil, err
	}
	s, err := p.session(r)
	if err != nil {
		return nil, err
	}
	first, err := p.Expand(r.Context(), b.Command, b.Arguments)
	if err != nil {
		return nil, err
	}
	_, parts, err := p.Content(r.Context(), b.Parts)
	if err != nil {
		return nil, err
	}
	first.Session, first.Message = s.ID, b.MessageID
	first.Parts = append([]centurion.Part{{Type: centurion.PartText, Text: first.Goal}}, parts...)
	if first.Profile != agents.ProfileMission {
		first.Agent, first.Model = cmp.Or(first.Agent, b.Agent), cmp.Or(first.Model, b.Model)
	}
	got, err := p.bring(r.Context(), s, first, true)
	if m, ok := got.(message); ok {
		p.send("command.executed", executedEvent{b.Command, s.ID, b.Arguments, m.Info.ID})
	}
	return got, err
}

type executedEvent struct {
	Name      string `json:"name"`
	Session   string `json:"sessionID"`
	Arguments string `json:"arguments"`
	Message   string `json:"messageID"`
}

// bring brings a message to a session, and with wait returns the answer.
func (p *Project) bring(ctx context.Context, s centurion.Session, b Begin, wait bool) (any, error) {
	if b.Goal == "" {
		return nil, usage("parts: the message is empty")
	}
	err := cmp.Or(p.checkID(ctx, s.ID, b.Message), p.checkModel(ctx, b.Model), p.byPlugin(ctx, s, &b))
	if err != nil {
		return nil, err
	}
	opened := s.Metadata.Mission == ""
	if opened && !b.noReply {
		return p.first(ctx, s, b, wait)
	}
	if !opened {
		if err := p.mayTake(ctx, s, b); err != nil {
			return nil, err
		}
	}
	if b.noReply {
		return p.note(ctx, s, b)
	}
	post := mail.Post{ID: cmp.Or(b.Message, centurion.NewID(centurion.PrefixDelivery)), To: s.ID, Text: b.Goal, Parts: b.Parts, Resume: true, Rest: true, Origin: centurion.OriginPerson}
	post.Agent, post.Model, post.Typed = b.Agent, b.Model, b.Typed
	if !wait {
		_, err := p.API().Send(ctx, post)
		return nil, err
	}
	reply, err := p.API().Prompt(ctx, post)
	if err != nil && reply.Session == "" {
		return nil, err
	}
	return p.newest(ctx, s.ID, reply.Message, centurion.Now(), err)
}

// note adds a message that wants no answer to a session, and returns it.
func (p *Project) note(ctx context.Context, s centurion.Session, b Begin) (any, error) {
	if s.Metadata.Mission == "" && b.Agent+b.Model != "" { // the next message may leave them out
		c := roots.Change{}
		if b.Model != "" {
			c.Model = &b.Model
		}
		if b.Agent != "" {
			profile, err := p.ProfileOf(ctx, b.Agent)
			if err != nil {
				return nil, err
			}
			c.Agent, c.Profile = &b.Agent, &profile
		}
		changed, err := p.API().Change(ctx, s.ID, c)
		if err != nil {
			return nil, err
		}
		s = changed
	}
	post := mail.Post{ID: cmp.Or(b.Message, centurion.NewID(centurion.PrefixMessage)), To: s.ID, Text: b.Goal, Parts: b.Parts, NoReply: true, Origin: centurion.OriginPerson}
	if _, err := p.API().Send(ctx, post); err != nil {
		return nil, err
	}
	m, err := p.API().Message(ctx, s.ID, post.ID)
	if centurion.KindOf(err) == centurion.KindNotFound { // the session works, and takes it in before its next request
		own := s.Own()
		m = server.Message{Info: centurion.Message{ID: post.ID, SessionID: s.ID, Role: centurion.RoleUser, Time: centurion.MessageTime{Created: time.Now().UnixMilli()}, Agent: s.Agent, Model: own}}
		for _, part := range b.Parts {
			part.ID, part.SessionID, part.MessageID = centurion.NewID(centurion.PrefixPart), s.ID, post.ID
			m.Parts = append(m.Parts, part)
		}
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return p.shownMessage(m), p.toldAll(ctx)
}

// checkID refuses an id that a new message cannot have.
func (p *Project) checkID(ctx context.Context, session, id string) error {
	if id == "" {
		return nil
	}
	if !ids().MatchString(id) {
		return usage(fmt.Sprintf("messageID: %q does not begin with msg, or has more than letters, digits and _.-", id))
	}
	if _, err := p.API().Message(ctx, session, id); centurion.KindOf(err) != centurion.KindNotFound {
		return cmp.Or(err, usage("messageID: there is a message "+id+" already"))
	}
	return nil
}

// mayTake refuses an agent that a session cannot have: a conversation with an assistant continues with any other one, and a mission, its
// tasks and their helpers keep theirs.
func (p *Project) mayTake(ctx context.Context, s centurion.Session, b Begin) error {
	if b.Agent != "" && b.Profile == "" && s.Metadata.Profile == agents.ProfileAssistant && s.ParentID == "" && !b.noReply {
		if profile, err := p.ProfileOf(ctx, b.Agent); err != nil || profile == agents.ProfileAssistant {
			return err
		}
	}
	return p.SameAgent(ctx, s, b)
}

// SameAgent refuses another agent than the session's: its system prompt and tools are fixed.
func (p *Project) SameAgent(ctx context.Context, s centurion.Session, b Begin) error {
	if b.Profile == agents.ProfileMission && s.Metadata.Profile == agents.ProfileAssistant {
		return &centurion.Error{Kind: centurion.KindConflict, Msg: "this session answers questions, and a mission has one of its own", Hint: "open a new session for it"}
	}
	if b.Agent == "" || strings.EqualFold(b.Agent, s.Agent) {
		return nil
	}
	if _, err := p.ProfileOf(ctx, b.Agent); err != nil {
		return err
	}
	return &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("this session is one of %s, and not of %s", s.Agent, b.Agent),
		Hint: "open a new session for another agent, copy this one with /fork, or give /task GOAL in a new session"}
}

// first begins a mission with a session's first message. Its run ends when its agents have nothing more to do.
func (p *Project) first(ctx context.Context, s centurion.Session, b Begin, wait bool) (any, error) {
	given := b
	if b.Profile == "" {
		b.Agent = cmp.Or(b.Agent, s.Agent)
		profile, err := p.ProfileOf(ctx, b.Agent)
		if err != nil {
			return nil, err
		}
		b.Profile = cmp.Or(profile, agents.ProfileMission)
	}
	if b.Model == "" && s.Model != nil {
		b.Model = s.Model.Provider + "/" + s.Model.ID
	}
	after, err := p.API().LastSeq(ctx)
	if err != nil {
		return nil, err
	}
	m, err := p.Begin(context.WithoutCancel(ctx), b) // a client that leaves does not end the mission
	if centurion.KindOf(err) == centurion.KindConflict {
		if now, serr := p.API().Session(ctx, s.ID); serr == nil && now.Metadata.Mission != "" { // another message came at the same time
			return p.bring(ctx, now, given, wait)
		}
	}
	if err != nil || !wait {
		return nil, err
	}
	for e, err := range p.Follow(ctx, server.EventQuery{After: after, Mission: m.ID, Follow: true}) {
		if err != nil {
			return nil, err
		}
		if e.Type == centurion.EventSessionAborted && e.Session == m.Session {
			return p.newest(ctx, m.Session, "", e.Time, &centurion.Error{Kind: centurion.KindConflict, Msg: "the turn was aborted before its answer began"})
		}
		if e.Type.EndsMission() {
			return p.newest(ctx, m.Session, "", e.Time, nil)
		}
	}
	return nil, context.Cause(ctx)
}

// newest is an answer, or for "" the newest one that was begun until then. A turn that was aborted or failed has a message that says so;
// cause counts without one.
func (p *Project) newest(ctx context.Context, session, id string, until centurion.Time, cause error) (any, error) {
	if err := p.toldAll(ctx); err != nil {
		return nil, err
	}
	all, err := p.API().Messages(ctx, session)
	if err != nil {
		return nil, err
	}
	for _, m := range slices.Backward(all) {
		if m.Info.Role == centurion.RoleAssistant && (id == "" && m.Info.Time.Created <= until.Millis() || m.Info.ID == id) {
			return p.shownMessage(m), nil
		}
	}
	if cause == nil {
		cause = &centurion.Error{Kind: centurion.KindInternal, Msg: "there is no answer"}
	}
	return nil, cause
}
