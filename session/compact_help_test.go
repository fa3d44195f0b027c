package session_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/provider"
	"centurion/session"
	"centurion/store"
)

// answerer is a model without a wire: it looks at every request and answers it.
type answerer struct {
	main    func(provider.Request) (provider.Delta, error) // the answer's text and what it reports; nil says «done»
	summary func(provider.Request) (string, error)         // nil writes a short one
	asked   []provider.Request                             // those of the agent itself
	summed  []provider.Request                             // those for a summary
}

// forSummary tells a request for a summary from the agent's own.
func forSummary(req provider.Request) bool { return req.System != system }

func (a *answerer) Stream(_ context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		req.Messages = slices.Clone(req.Messages)
		text, done, err := "done", provider.Delta{}, error(nil)
		switch {
		case forSummary(req):
			a.summed = append(a.summed, req)
			text = "The work goes well."
			if a.summary != nil {
				text, err = a.summary(req)
			}
		default:
			a.asked = append(a.asked, req)
			if a.main != nil {
				done, err = a.main(req)
			}
		}
		if err != nil {
			yield(provider.Delta{}, err)
			return
		}
		if !yield(provider.Delta{Type: provider.Text, Text: text}, nil) {
			return
		}
		done.Type, done.Finish = provider.Done, centurion.FinishStop
		yield(done, nil)
	}
}

func bytesOf(req provider.Request) int {
	n := len(req.System)
	for _, m := range req.Messages {
		n += len(m.Text)
		for _, c := range m.Calls {
			n += len(c.Arguments)
		}
	}
	return n
}

// past writes messages straight into the store, as a session left them.
type past struct {
	tx  *store.Tx
	rec *centurion.Session
	n   int

	tool  string          // that is called, look if empty
	usage centurion.Usage // of each answer
}

func (p *past) user(origin centurion.Origin, text string) error {
	_, err := session.Say(p.tx, p.rec, origin, text)
	return err
}

// answer stores an answer with calls, each with a result of so many bytes.
func (p *past) answer(text, finish string, results ...int) error {
	m := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: p.rec.ID, Role: centurion.RoleAssistant,
		Agent: p.rec.Agent, Model: ref, Finish: finish, Usage: p.usage}
	if err := p.tx.PutMessage(&m); err != nil {
		return err
	}
	parts := []centurion.Part{{Type: centurion.PartText, Text: text}}
	for _, size := range results {
		p.n++
		st := &centurion.ToolState{Status: centurion.ToolCompleted, Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, p.n)),
			Output: fmt.Sprintf("result %d:", p.n) + strings.Repeat("x", size)}
		if size%7 == 0 {
			st.Status, st.Error = centurion.ToolError, st.Output
		}
		parts = append(parts, centurion.Part{Type: centurion.PartTool, CallID: fmt.Sprintf("call_%d", p.n), Tool: cmp.Or(p.tool, "look"), State: st})
	}
	for _, part := range parts {
		part.ID, part.SessionID, part.MessageID = centurion.NewID(centurion.PrefixPart), p.rec.ID, m.ID
		if err := p.tx.PutPart(&part); err != nil {
			return err
		}
	}
	return nil
}

// rigOf makes a session that speaks to a model without a wire, with a history.
func rigOf(t testing.TB, model session.Model, write func(p *past) error) *rig {
	t.Helper()
	r := newRig(t, inOrder(), tool{name: "look", effect: readOnly})
	r.cfg.Model = model
	r.fill(write)
	return r
}

// fill makes a new session with a history.
func (r *rig) fill(write func(p *past) error) {
	r.t.Helper()
	r.id = r.create()
	rec := r.record()
	if err := r.store.Update(r.t.Context(), func(tx *store.Tx) error { return write(&past{tx: tx, rec: &rec}) }); err != nil {
		r.t.Fatal(err)
	}
	r.reopen()
}

// append adds to the history of the session.
func (r *rig) append(write func(p *past) error) {
	r.t.Helper()
	rec := r.record()
	if err := r.store.Update(r.t.Context(), func(tx *store.Tx) error { return write(&past{tx: tx, rec: &rec, n: 1000 * len(r.compactions())}) }); err != nil {
		r.t.Fatal(err)
	}
	r.reopen()
}

// rounds writes n steps of one turn, each with one result of so many bytes, after which the agent has to answer.
func rounds(n, size int) func(p *past) error {
	return func(p *past) error {
		for i := range n {
			if err := p.answer(fmt.Sprintf("step %d", i), centurion.FinishToolCalls, size); err != nil {
				return err
			}
		}
		return nil
	}
}
