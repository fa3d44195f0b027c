package session

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/provider"
	"centurion/recovery"
	"centurion/store"
)

// unsent marks a tool part whose call never became part of an accepted answer: the stream failed before it was complete.
const unsent = "unsent"

// History turns stored messages into what a provider accepts: every call has exactly one result, directly after its answer; failed
// answers are omitted, except answered ones with text that a person stopped; successive user messages are joined. Messages replaced by
// a compaction are omitted.
func History(stored []centurion.Message) []provider.Message {
	stored = viewOf(stored).history
	out := make([]provider.Message, 0, 2*len(stored)) // an answer and the result of its call
	others := false                                   // someone other than the person has written in that role
	asked := false                                    // the next summary was requested by a person
	stopped := ""                                     // the text of a stopped answer; dropped if the question is only asked again
	for i := range stored {
		m := &stored[i]
		if c := pointer(m); c != nil {
			asked = !c.Auto
			continue
		}
		if m.Summary {
			out = appendUser(out, headed(m.Text(), asked))
			continue
		}
		if m.Role == centurion.RoleUser {
			if stopped != "" {
				out, stopped = append(out, provider.Message{Role: provider.Assistant, Text: stopped}), ""
			}
			text := textOf(m)
			if others = others || m.Origin != centurion.OriginPerson; others && m.Origin == centurion.OriginPerson {
				text = fromPerson + text
			}
			out = appendUser(out, text, centurion.FilesOf(m.Parts)...)
			continue
		}
		if m.Finish == "" || m.Finish == centurion.FinishError {
			forget(out, m)
			continue
		}
		a := provider.Message{Role: provider.Assistant, Text: m.Text()}
		var results []provider.Message
		said := 0 // bytes of the text so far
		for _, p := range m.Parts {
			switch {
			case p.Type == centurion.PartReasoning:
				a.Reasoning += p.Text
				if p.Metadata != nil {
					a.Thoughts = append(a.Thoughts, provider.Thought{Text: p.Text, Metadata: p.Metadata, Said: said, Calls: len(a.Calls)})
				}
			case p.Type == centurion.PartText:
				said += len(p.Text)
			case p.Type == centurion.PartTool && sent(p):
				a.Calls = append(a.Calls, provider.Call{ID: p.CallID, Name: p.Tool, Arguments: string(p.State.Input)})
				results = append(results, provider.Message{Role: provider.Tool, CallID: p.CallID, Text: resultOf(p.State), Files: centurion.FilesOf(p.State.Attachments)})
			}
		}
		if a.Text == "" && len(a.Calls) == 0 {
			continue
		}
		if m.Finish == centurion.FinishCancelled && len(a.Calls) == 0 {
			stopped = a.Text
			continue
		}
		stopped = ""
		out = append(append(out, a), results...)
	}
	return out
}

// sent reports whether a tool part belongs to an accepted answer and has a result.
func sent(p centurion.Part) bool {
	return p.State != nil && p.State.Ended() && p.State.Metadata[unsent] != true && json.Valid(p.State.Input)
}

func appendUser(to []provider.Message, text string, files ...centurion.File) []provider.Message {
	if n := len(to); n > 0 && to[n-1].Role == provider.User {
		to[n-1].Text += "\n\n" + text
		to[n-1].Files = append(to[n-1].Files, files...)
		return to
	}
	return append(to, provider.Message{Role: provider.User, Text: text, Files: files})
}

// fromPerson marks a person's words among the host's in the same role.
const fromPerson = "From the person:\n"

// lastStep is added to the last request of a turn.
const lastStep = "This is the last request of your turn: no tool call is run any more. End with a text: what is done, how it was checked, what is left."

// request builds the next request: the history, and at its very end the changing status, so that everything before it is the same in
// each request and can be cached by the provider.
func (s *Session) request(ctx context.Context) provider.Request {
	msgs := shown(s.hookHistory(ctx, fitting(s.history, s.cfg.Ref)), s.cfg.Media)
	status := s.cfg.Host.Status()
	if s.last {
		status = strings.TrimSpace(status + "\n" + lastStep)
	}
	if s.status = len(status); status != "" {
		// A separate message: joined to the newest one it would change the text that the next request repeats.
		msgs = append(msgs, provider.Message{Role: provider.User, Text: "<status>\n" + status + "\n</status>", Fleeting: true})
	}
	return provider.Request{Session: s.rec.ID, Parent: s.rec.ParentID, System: s.rec.Metadata.Prompt(), Messages: msgs,
		Tools: s.specs, MaxOutput: s.cfg.MaxOut, Temperature: s.cfg.Temperature}
}

// estimate guesses the tokens of a request and its answer for endpoints that do not report them: four bytes per token, which for source
// code errs to the safe side by about a tenth.
func estimate(req provider.Request, answer int) centurion.Tokens {
	n := len(req.System)
	for _, m := range req.Messages {
		n += len(m.Text) + len(m.Reasoning)
		for _, t := range m.Thoughts {
			n += sealed(t.Metadata)
		}
		for _, c := range m.Calls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	for _, t := range req.Tools {
		n += len(t.Description) + len(t.Schema)
	}
	for _, m := range req.Messages {
		n += 4 * tokensOfFiles(m.Files)
	}
	return centurion.Tokens{Input: int64(n / 4), Output: int64(answer / 4)}
}

// sealed counts the bytes of a thought that only its provider can read.
func sealed(metadata map[string]any) (n int) {
	for _, owned := range metadata {
		fields, _ := owned.(map[string]any)
		for _, v := range fields {
			text, _ := v.(string)
			n += len(text)
		}
	}
	return n
}

// fact makes an event of a session.
func fact(rec *centurion.Session, t centurion.EventType, data any) centurion.Event {
	return centurion.Event{Type: t, Mission: rec.Metadata.Mission, Session: rec.ID, Task: rec.Metadata.Task, Data: event.Data(data)}
}

type pathSet map[string]bool

func newPathSet() pathSet { return pathSet{} }

func (p pathSet) add(paths ...string) {
	for _, s := range paths {
		p[s] = true
	}
}

func (p pathSet) sorted() []string { return slices.Sorted(maps.Keys(p)) }

// PutModel records, in tx, the model of the session from its next request on, and the failures that led to it. The session's own model
// is kept. Open the session again with the new model afterwards.
func (s *Session) PutModel(tx *store.Tx, to centurion.ModelRef, r centurion.Retry) error {
	s.isAsked()
	rec := s.rec
	if rec.Metadata.OwnModel == nil {
		rec.Metadata.OwnModel = rec.Model
	}
	rec.Model = &centurion.SessionModel{ID: to.ID, Provider: to.Provider}
	if own := rec.Metadata.OwnModel; own != nil && *own == *rec.Model {
		rec.Metadata.OwnModel = nil
	}
	rec.Metadata.Retry = &r
	if err := tx.PutSession(&rec); err != nil {
		return err
	}
	s.rec = rec
	return nil
}

// ClearRetry records, in tx, that no request waits for a retry: the streak of failures is over.
func (s *Session) ClearRetry(tx *store.Tx) error {
	s.isAsked()
	s.rec.Metadata.Retry = nil
	return tx.PutSession(&s.rec)
}

// fitting omits thoughts of other models from the history: reasoning is signed by its model, and others refuse it.
func fitting(stored []centurion.Message, model centurion.ModelRef) []centurion.Message {
	foreign := func(m centurion.Message) bool {
		return m.Role == centurion.RoleAssistant && m.Model != model &&
			slices.ContainsFunc(m.Parts, func(p centurion.Part) bool { return p.Type == centurion.PartReasoning })
	}
	if !slices.ContainsFunc(stored, foreign) {
		return stored
	}
	fit := slices.Clone(stored)
	for i, m := range fit {
		if foreign(m) {
			fit[i].Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p centurion.Part) bool { return p.Type == centurion.PartReasoning })
		}
	}
	return fit
}

// forget removes thoughts from a history if the provider has refused them, according to m; it would refuse them again. Later thoughts
// are sent as usual.
func forget(history []provider.Message, m *centurion.Message) {
	if m.Error == nil {
		return
	}
	_, fault := recovery.Classify(&centurion.Error{Kind: centurion.KindInvalidRequest, Status: m.Error.Data.StatusCode, Msg: m.Error.Data.Message})
	if fault != recovery.FaultThinkingOrder {
		return
	}
	for i := range history {
		history[i].Thoughts = nil
	}
}

// Calls yields the tool calls of the current line that are sent with their results, oldest first. It omits calls replaced by a
// compaction, and reads whose text was shortened; written text is in the call itself. It may be called only between turns.
func (s *Session) Calls() iter.Seq[centurion.Part] {
	return func(yield func(centurion.Part) bool) {
		for i := range s.history {
			for _, p := range s.history[i].Parts {
				if p.Type != centurion.PartTool || !sent(p) || p.Tool == "read" && p.State.Metadata[clipped] != nil {
					continue
				}
				if !yield(p) {
					return
				}
			}
		}
	}
}
