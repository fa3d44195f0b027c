package acp

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/guard"
	v1 "centurion/server/opencode/v1"
	"centurion/server/rpc"
)

// turn is a prompt that is being worked on. The connection protects its flags.
type turn struct {
	ctx       context.Context
	leave     context.CancelFunc // ends the waiting, not the work
	cancelled bool               // by the editor, or by someone else
	inChat    bool               // an agent's question is answered by the next prompt
}

// block is a piece of a message.
type block struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	Data     string    `json:"data,omitempty"` // base64
	Mime     string    `json:"mimeType,omitempty"`
	URI      string    `json:"uri,omitempty"`
	Name     string    `json:"name,omitempty"`
	Resource *resource `json:"resource,omitempty"`
}

type resource struct {
	URI  string  `json:"uri"`
	Text *string `json:"text"`
	Blob string  `json:"blob"` // base64
}

func textBlock(s string) block { return block{Type: "text", Text: s} }

// begin begins a turn of a session, which has one at a time.
func (c *conn) begin(id string) (*session, *turn, error) {
	s, err := c.session(id)
	if err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.turn != nil {
		return nil, nil, &centurion.Error{Kind: centurion.KindConflict, Msg: "session " + s.id + " is still working on a prompt", Hint: "wait for its answer, or end it with session/cancel"}
	}
	t := &turn{}
	t.ctx, t.leave = context.WithCancel(c.ctx)
	s.turn, s.used, s.finish = t, true, ""
	return s, t, nil
}

// end ends the turn of a session.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn.leave()
	s.turn = nil
}

// prompt brings a message to a session, and answers when its mission has nothing more to do.
func (s *session) prompt(ctx context.Context, t *turn, prompt []block) (any, error) {
	b, err := s.read(ctx, prompt)
	if err != nil {
		return nil, err
	}
	defer guard.After(ctx, "leave turn", t.leave)()
	m, err := s.work(t, b)
	if ferr := s.flushed(ctx); ferr != nil { // what was told comes before the answer
		return nil, ferr
	}
	reason, err := s.reason(t, m, err)
	return map[string]string{"stopReason": reason}, err
}

// reason is why a turn has ended, in the words of the protocol. What they do not say is told as a text.
func (s *session) reason(t *turn, m centurion.Mission, err error) (string, error) {
	s.mu.Lock()
	cancelled, inChat, finish := t.cancelled, t.inChat, s.finish
	s.mu.Unlock()
	switch {
	case cancelled:
		return "cancelled", nil
	case inChat:
		return "end_turn", nil
	case err != nil:
		return "", err
	case m.Status == centurion.MissionFailed:
		return "", &centurion.Error{Kind: centurion.KindInternal, Msg: "the mission failed: " + cmp.Or(m.Reason, "no reason is known"), Hint: "see: centurion show " + m.ID}
	case m.Status != centurion.MissionCompleted:
		text := fmt.Sprintf("\n\n*The mission is %s: %s* A new message continues it.", m.Status, cmp.Or(m.Reason, "no reason is known"))
		return "end_turn", s.update(s.id, update{Kind: agentChunk, Content: textBlock(text)})
	case finish == centurion.FinishLength:
		return "max_tokens", nil
	case finish == centurion.FinishFilter:
		return "refusal", nil
	}
	return "end_turn", nil
}

// work gives a message to a session, and waits until its mission has stopped.
func (s *session) work(t *turn, b v1.Begin) (m centurion.Mission, err error) {
	ctx := t.ctx
	rec, err := s.API().Session(ctx, s.id)
	if err != nil {
		return m, err
	}
	s.mu.Lock()
	ask := s.inChat
	s.inChat = ""
	s.mu.Unlock()
	mission := rec.Metadata.Mission
	switch {
	case ask != "":
		err = s.Bridge.Answer(ctx, ask, b.Goal)
	case mission == "":
		if b.Profile == "" {
			if b.Profile, err = s.ProfileOf(ctx, cmp.Or(b.Agent, rec.Agent)); err != nil {
				return m, err
			}
			b.Agent, b.Profile = cmp.Or(b.Agent, rec.Agent), cmp.Or(b.Profile, agents.ProfileMission)
		}
		begun, berr := s.Begin(context.WithoutCancel(ctx), b) // an editor that leaves has begun it all the same
		err, mission = berr, begun.ID
		if berr == nil {
			s.began(mission)
			if got, serr := s.API().Session(ctx, s.id); serr == nil && got.Agent != rec.Agent {
				err = s.update(s.id, update{Kind: "current_mode_update", Mode: got.Agent})
			}
		}
	default:
		if err = s.SameAgent(ctx, rec, b); err == nil {
			_, err = s.Bridge.Prompt(ctx, rpc.PromptParams{Session: s.id, Text: b.Goal, Parts: b.Parts, Typed: b.Typed})
		}
	}
	if err != nil {
		return m, err
	}
	return s.stopped(ctx, mission)
}

// began notes the mission of a session. A prompt that was cancelled meanwhile is stopped.
func (s *session) began(mission string) {
	s.mu.Lock()
	s.mission = mission
	cancelled := s.turn != nil && s.turn.cancelled
	s.mu.Unlock()
	if cancelled {
		s.stop()
	}
}

// stopped waits until a mission has stopped, or nobody waits for that any more.
func (s *session) stopped(ctx context.Context, mission string) (centurion.Mission, error) {
	for {
		m, err := s.API().Mission(ctx, mission)
		if err == nil && !m.Status.Alive() || err != nil && centurion.KindOf(err) != centurion.KindNetwork {
			return m.Noun(), err
		}
		select { // without a host, the next one tells how it goes on
		case <-s.stopping:
		case <-ctx.Done():
			return m.Noun(), context.Cause(ctx)
		}
	}
}

// cancel ends the turn of a session with all that it has started. The next prompt continues.
func (c *conn) cancel(_ context.Context, p struct {
	Session string `json:"sessionId"`
}) (any, error) {
	s, err := c.session(p.Session)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	works := s.turn != nil
	if works {
		s.turn.cancelled = true
	}
	c.mu.Unlock()
	if works {
		s.stop()
	}
	return nil, nil
}

// stop stops a session's mission, without waiting for that.
func (s *session) stop() {
	s.jobs.Go("stop session", func() error {
		err := s.Bridge.Stop(s.ctx, s.id, "cancelled in the editor")
		switch kind := centurion.KindOf(err); {
		case err == nil || s.ctx.Err() != nil:
		case kind == centurion.KindNotFound || kind == centurion.KindConflict: // it has not begun, or has just ended
		default:
			s.Say("session " + s.id + " could not be stopped: " + err.Error())
		}
		return nil
	})
}

// read is the message in a prompt: what the person says, and the parts for the model. One that begins with a command is what that makes of it.
func (s *session) read(ctx context.Context, prompt []block) (b v1.Begin, err error) {
	var given []centurion.Part
	for i, one := range prompt {
		part, perr := s.part(one)
		if perr != nil {
			return b, fmt.Errorf("prompt[%d]: %w", i, perr)
		}
		given = append(given, part)
	}
	if len(given) > 0 {
		word, rest, _ := strings.Cut(given[0].Text, " ")
		if name, ok := strings.CutPrefix(strings.TrimSpace(word), "/"); ok && name != "" && !strings.Contains(name, "/") {
			if b, err = s.Expand(ctx, name, strings.TrimSpace(rest)); err != nil {
				return b, err
			}
			given[0].Text = b.Goal
		}
	}
	goal, parts, err := s.Content(ctx, given)
	if b.Goal, b.Session, b.Parts = cmp.Or(b.Goal, goal), s.id, parts; err == nil && b.Goal == "" {
		err = &centurion.Error{Kind: centurion.KindUsage, Msg: "the prompt is empty"}
	}
	return b, err
}

// part is a part of a message for a block. A link is left to the agent, which can read it.
func (s *session) part(b block) (centurion.Part, error) {
	file := func(name, data string) (centurion.Part, error) {
		raw, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return centurion.Part{}, &centurion.Error{Kind: centurion.KindUsage, Msg: "its data is no base64", Err: err}
		}
		return centurion.Part{Type: centurion.PartFile, File: &centurion.File{Name: name, Data: raw}}, nil
	}
	switch {
	case b.Type == "text":
		return centurion.Part{Type: centurion.PartText, Text: b.Text}, nil
	case b.Type == "image":
		return file("image", b.Data)
	case b.Type == "resource_link":
		return centurion.Part{Type: centurion.PartText, Text: "@" + s.named(b.URI)}, nil
	case b.Type == "resource" && b.Resource != nil && b.Resource.Text != nil:
		return centurion.Part{Type: centurion.PartFile, File: &centurion.File{Name: s.named(b.Resource.URI), Data: []byte(*b.Resource.Text)}}, nil
	case b.Type == "resource" && b.Resource != nil:
		return file(path.Base(b.Resource.URI), b.Resource.Blob)
	}
	return centurion.Part{}, &centurion.Error{Kind: centurion.KindUsage, Msg: fmt.Sprintf("there is no type %q of content here", b.Type), Hint: "send text, image, resource_link or resource"}
}

// named is a resource as an agent knows it: a file of the project by its path there.
func (s *session) named(uri string) string {
	at, err := url.Parse(uri)
	if err != nil || at.Scheme != "file" {
		return uri
	}
	name := filepath.FromSlash(at.Path)
	if rel, err := filepath.Rel(s.Directory, name); err == nil && filepath.IsLocal(rel) {
		name = rel
	}
	if at.Fragment != "" { // lines, as editors write them
		name += "#" + at.Fragment
	}
	return filepath.ToSlash(name)
}
