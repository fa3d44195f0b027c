package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/store"
)

// option is an answer that a person can choose.
type option struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"` // allow_once, allow_always, reject_once
}

// inChat is the option to answer a question by the next prompt: the protocol's dialog takes no text.
const inChat = "chat"

// options are the ways to answer an ask; an id is the answer itself.
func options(a store.Ask) []option {
	switch a.Type {
	case store.AskPermission:
		return []option{{"once", "Allow once", "allow_once"}, {"always", "Always allow " + strings.Join(a.Always, ", "), "allow_always"}, {"reject", "Reject", "reject_once"}}
	case store.AskPlan:
		return []option{{"run", "Run it", "allow_once"}, {"quit", "Not now", "reject_once"}}
	}
	var all []option
	for _, o := range a.Options {
		all = append(all, option{o, o, "allow_once"})
	}
	return append(all, option{inChat, "Answer in the chat", "allow_once"}, option{event.NoAnswer, "Do not answer", "reject_once"})
}

// look adapts what the editor is asked to the open asks of the mission: each is shown once, and no more once it is answered elsewhere.
func (s *session) look(ctx context.Context) error {
	all, err := s.Bridge.Asks(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	open := map[string]bool{}
	for _, a := range all {
		if a.Mission != s.mission {
			continue
		}
		open[a.ID] = true
		if s.asked[a.ID] == nil {
			ctx, cancel := context.WithCancel(s.ctx)
			s.asked[a.ID] = cancel
			s.jobs.Go("ask in editor", func() error { s.ask(ctx, a); return nil })
		}
	}
	for id, cancel := range s.asked {
		if !open[id] {
			cancel()
			delete(s.asked, id)
		}
	}
	return nil
}

// ask shows an ask and stores its answer. After an error it stays open for `centurion asks`.
func (s *session) ask(ctx context.Context, a store.Ask) {
	shown := s.shownAsk(ctx, a)
	shown.Status = "pending"
	rsp, err := s.server.Callback(ctx, "session/request_permission", map[string]any{"sessionId": s.id, "toolCall": shown, "options": options(a)})
	var r struct {
		Outcome struct {
			Outcome string `json:"outcome"`
			Option  string `json:"optionId"`
		} `json:"outcome"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(rsp.ResultString()), &r)
	}
	answer := r.Outcome.Option
	switch {
	case err != nil:
	case r.Outcome.Outcome != "selected": // the turn is cancelled as well; else only a permission can be refused without a word
		if a.Type != store.AskPermission {
			return
		}
		err = s.Bridge.Answer(ctx, a.ID, "reject")
	case a.Type == store.AskQuestion && answer == inChat:
		s.answerInChat(a)
		return
	case !slices.ContainsFunc(options(a), func(o option) bool { return o.ID == answer }):
		err = &centurion.Error{Kind: centurion.KindUsage, Msg: "the editor chose an option that there is not: " + answer}
	default:
		err = s.Bridge.Answer(ctx, a.ID, answer)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) { // the editor may have just left
		s.Say(a.ID + " stays open: " + err.Error() + "; see: centurion asks")
	}
}

// answerInChat ends the prompt, so that the next one is the answer.
func (s *session) answerInChat(a store.Ask) {
	_ = s.update(s.id, update{Kind: agentChunk, Content: textBlock("\n\n" + a.Text)}) // the editor has gone, then
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inChat = a.ID; s.turn != nil {
		s.turn.inChat = true
		s.turn.leave()
	}
}

// shownAsk is an ask as a call: that which waits for it, or one of its own. Its content is the whole of what is approved.
func (s *session) shownAsk(ctx context.Context, a store.Ask) update {
	u := update{Call: a.ID, Title: centurion.Clip(a.Permission+" "+strings.Join(a.Patterns, ", "), 200), Tool: "other"}
	if a.Call != "" {
		if m, err := s.API().Message(ctx, a.Session, a.Message); err == nil {
			for _, part := range m.Parts {
				if part.CallID == a.Call && part.State != nil {
					s.telling.mu.Lock()
					u = s.call(part, a.Session, a.Task)
					s.telling.mu.Unlock()
				}
			}
		}
	}
	if a.Type != store.AskPermission {
		u.Title, _, _ = strings.Cut(a.Title, "\n")
		u.Title = centurion.Clip(u.Title, 200)
	}
	whole := a.Text
	command, _ := a.Metadata["command"].(string)
	for _, more := range append([]string{command, a.Title}, a.Patterns...) {
		if more != "" && !strings.Contains(whole, more) {
			whole += "\n" + more
		}
	}
	if a.Line != "" {
		whole += "\n(" + a.Line + ")"
	}
	content := []toolContent{inner(fenced(strings.TrimSpace(whole)))}
	if diff, _ := a.Metadata["diff"].(string); diff != "" {
		path, _ := a.Metadata["filepath"].(string)
		content = append(content, s.diffs(path, diff)...)
	}
	u.Content, u.Kind = content, ""
	return u
}
