package session

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/provider"
	"centurion/store"
)

// hookModel is the model of a request, as hooks see it.
type hookModel struct {
	Provider string `json:"providerID"`
	ID       string `json:"id"`
}

// hookInput is the input of the hooks of a session.
type hookInput struct {
	centurion.Hooked
	Model   *hookModel `json:"model,omitempty"`
	Message string     `json:"messageID,omitempty"`
	Part    string     `json:"partID,omitempty"`
}

func (s *Session) hookInput() hookInput {
	return hookInput{Hooked: s.rec.HookedBy(), Model: &hookModel{s.cfg.Ref.Provider, s.cfg.Ref.ID}}
}

// hook runs a hook of plugins. What fails there changes nothing. Who changed something is noted in the journal, once for each hook.
func hook[T any](ctx context.Context, s *Session, name string, in hookInput, out T) T {
	out, by, err := centurion.RunHook(ctx, s.cfg.Hooks, name, in, out)
	if who := strings.Join(by, ", "); err == nil && who != "" && s.acted[name] != who {
		if s.update(ctx, func(tx *store.Tx) error { return Acted(tx, &s.rec, name, by, "") }) == nil {
			s.acted[name] = who
		}
	}
	return out
}

// Acted notes in the journal, in tx, that plugins have changed something of a session, or of one of its messages.
func Acted(tx *store.Tx, rec *centurion.Session, hook string, by []string, message string) error {
	if len(by) == 0 {
		return nil
	}
	_, err := tx.Append(fact(rec, centurion.EventPluginActed, event.PluginData{Hook: hook, By: "plugin " + strings.Join(by, ", "), Message: message}))
	return err
}

// Plugged notes in the journal, in tx, who has changed what the requests of a session begin with, unless it was so before.
func Plugged(tx *store.Tx, rec *centurion.Session, was *centurion.Plugged) error {
	now := rec.Metadata.Plugged
	if now == nil || was != nil && reflect.DeepEqual(now.By, was.By) {
		return nil
	}
	for _, hook := range slices.Sorted(maps.Keys(now.By)) {
		if err := Acted(tx, rec, hook, now.By[hook], ""); err != nil {
			return err
		}
	}
	return nil
}

// requestParams and the types after it are the outputs of hooks.
type requestParams struct {
	Temperature *float64 `json:"temperature,omitempty"`
	MaxOutput   int      `json:"maxOutputTokens,omitempty"`
}

type requestHeaders struct {
	Headers map[string]string `json:"headers"`
}

type finishedText struct {
	Text string `json:"text"`
}

type summaryWanted struct {
	Context []string `json:"context"`
	Prompt  string   `json:"prompt,omitempty"`
}

type hookMessages struct {
	Messages []hookMessage `json:"messages"`
}

// hookMessage is a message as hooks see it.
type hookMessage struct {
	Info  centurion.Message `json:"info"`
	Parts []centurion.Part  `json:"parts"`
}

// hookRequest lets plugins change the parameters and headers of a request.
func (s *Session) hookRequest(ctx context.Context, req *provider.Request) {
	params := hook(ctx, s, centurion.HookParams, s.hookInput(), requestParams{req.Temperature, req.MaxOutput})
	req.Temperature = params.Temperature
	if params.MaxOutput > 0 && (s.cfg.MaxOut == 0 || params.MaxOutput < s.cfg.MaxOut) { // the rest of the window is planned with
		req.MaxOutput = params.MaxOutput
	}
	for k, v := range hook(ctx, s, centurion.HookHeaders, s.hookInput(), requestHeaders{map[string]string{}}).Headers {
		if k == "" || strings.ContainsAny(k, " :\r\n\x00") || strings.ContainsAny(v, "\r\n\x00") {
			continue
		}
		if req.Header == nil {
			req.Header = map[string]string{}
		}
		req.Header[k] = v
	}
}

// hookHistory returns the history of a request, as plugins want it. The stored one stays, and is sent if no provider would take theirs.
func (s *Session) hookHistory(ctx context.Context, stored []centurion.Message) []provider.Message {
	if s.cfg.Hooks == nil || !s.cfg.Hooks.Has(centurion.HookMessages) {
		return History(stored)
	}
	var in hookMessages
	for _, m := range stored {
		in.Messages = append(in.Messages, hookMessage{m, m.Parts})
	}
	var changed []centurion.Message
	for _, m := range hook(ctx, s, centurion.HookMessages, s.hookInput(), in).Messages {
		m.Info.Parts = m.Parts
		if i := slices.IndexFunc(stored, func(old centurion.Message) bool { return old.ID == m.Info.ID }); i >= 0 {
			m.Info.Origin, m.Info.Prev = stored[i].Origin, stored[i].Prev // which are not in its format
		}
		changed = append(changed, m.Info)
	}
	msgs := History(changed)
	if acceptable(msgs) {
		return msgs
	}
	if !s.unusable {
		s.unusable = s.update(ctx, func(tx *store.Tx) error {
			_, err := tx.Append(fact(&s.rec, centurion.EventMissionUpdated, event.MissionData{Note: "what a plugin made of a conversation (" +
				centurion.HookMessages + ") is not used: no provider would take it"}))
			return err
		}) == nil
	}
	return History(stored)
}

// acceptable reports whether a provider takes messages in this order. Each call has its result: see [History].
func acceptable(msgs []provider.Message) bool {
	for i, m := range msgs {
		if i == 0 && m.Role != provider.User || i > 0 && m.Role == provider.Assistant && msgs[i-1].Role == provider.Assistant {
			return false
		}
	}
	return len(msgs) > 0 && msgs[len(msgs)-1].Role != provider.Assistant
}

// hookTexts lets plugins change the finished texts of an answer.
func (s *Session) hookTexts(ctx context.Context, m *centurion.Message) {
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Type != centurion.PartText {
			continue
		}
		in := s.hookInput()
		in.Message, in.Part = m.ID, p.ID
		if out := hook(ctx, s, centurion.HookText, in, finishedText{p.Text}); strings.TrimSpace(out.Text) != "" { // an answer without text would be none
			p.Text = out.Text
		}
	}
}

// hookSummary lets plugins say what a summary is to have, or how it is asked for.
func (s *Session) hookSummary(ctx context.Context, system, prompt string) (string, string) {
	out := hook(ctx, s, centurion.HookCompacting, s.hookInput(), summaryWanted{Context: []string{}})
	if out.Prompt != "" {
		system = out.Prompt
	}
	if len(out.Context) > 0 {
		prompt = strings.Join(out.Context, "\n\n") + "\n\n" + prompt
	}
	return system, prompt
}
