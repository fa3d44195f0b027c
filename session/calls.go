package session

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/store"
	"centurion/tools"
)

// maxResult limits a tool's output in the history, in bytes. Tools shorten their output more sensibly; this is for those that do not.
const maxResult = 100 << 10

// calls are the tool calls of one answer in the history.
type calls struct {
	msg   *centurion.Message
	parts []int    // indexes of the tool parts
	args  [][]byte // their arguments as received
}

func (c calls) part(n int) *centurion.Part { return &c.msg.Parts[c.parts[n]] }

// left returns the calls that have not ended: surplus ones were answered together with their answer.
func (c calls) left() calls {
	out := calls{msg: c.msg}
	for n := range c.parts {
		if !c.part(n).State.Ended() {
			out.parts, out.args = append(out.parts, c.parts[n]), append(out.args, c.args[n])
		}
	}
	return out
}

// runCalls runs the calls of an accepted answer and stores all results, in the order of the calls, before the next request. Independent
// calls run in parallel. Every call gets a result, unless one of them continues later: then those not begun are left, too, for
// [Session.finishCalls].
func (s *Session) runCalls(ctx context.Context, c calls) (ran, error) {
	c = c.left()
	r := &callRun{s: s, calls: c, effects: make([]tools.Effect, len(c.parts)), inputs: make([]json.RawMessage, len(c.parts)),
		unbegun: make([]bool, len(c.parts)), files: newPathSet()}
	for n := range c.parts {
		r.inputs[n], r.effects[n] = s.effect(c.part(n), c.args[n])
	}
	if err := r.all(ctx); err != nil {
		return ran{}, err
	}
	err := ended(ctx)
	if err == nil {
		return ran{files: r.files.sorted(), endTurn: r.endTurn}, nil
	}
	if serr := r.leave(ctx); serr != nil {
		return ran{}, serr
	}
	if slices.ContainsFunc(c.parts, func(n int) bool { return !c.msg.Parts[n].State.Ended() }) {
		return ran{files: r.files.sorted()}, err // the turn is not over: it continues with the remaining calls
	}
	return ran{files: r.files.sorted()}, s.cancelled(ctx, c.msg)
}

// ran is the combined effect of the calls of an answer.
type ran struct {
	files   []string
	endTurn bool
}

// disturb reports whether two calls of one answer must run one after the other.
func disturb(a, b tools.Effect) bool {
	switch {
	case a.ReadOnly && b.ReadOnly:
		return false
	case a.Alike != "" && a.Alike == b.Alike:
		return false
	case len(a.Writes) > 0 && len(b.Writes) > 0:
		return slices.ContainsFunc(a.Writes, func(p string) bool { return slices.Contains(b.Writes, p) })
	}
	return true
}

// effect returns the input of a call and its effect. A call with an unknown tool or malformed arguments, raw, has none and ends here
// with an error.
func (s *Session) effect(p *centurion.Part, raw json.RawMessage) (json.RawMessage, tools.Effect) {
	in, e, err := s.effectOf(p.Tool, raw)
	if err != nil {
		fail(p, modelError(err))
		return nil, tools.Effect{ReadOnly: true}
	}
	return in, e
}

func (s *Session) effectOf(tool string, raw json.RawMessage) (in json.RawMessage, e tools.Effect, err error) {
	t, ok := s.byName[tool]
	if !ok {
		return nil, e, errors.New("Tool not found: " + tool)
	}
	err = guard.Call("tool "+tool, func() (err error) {
		if in, err = tools.Normalize(t, raw); err == nil {
			e = t.Effect(in)
		}
		return err
	})
	return in, e, err
}

// byOwnName replaces an alias of a held tool in a call by the tool's own name, so that the history has only one name, and returns the
// arguments in that tool's form.
func (s *Session) byOwnName(p *centurion.Part, raw []byte) []byte {
	holds := func(tool string) bool { return s.byName[tool] != nil }
	own := tools.Served(p.Tool, holds)
	if own == "" || holds(p.Tool) {
		return raw
	}
	raw = tools.Adapt(p.Tool, raw)
	p.Tool = own
	return raw
}

// fail ends a call with an error.
func fail(p *centurion.Part, text string) {
	p.State.Status, p.State.Error = centurion.ToolError, text
	p.State.Time.End = time.Now().UnixMilli()
}

// runCall runs one call and fills in its state, without storing it.
func (s *Session) runCall(ctx context.Context, p *centurion.Part, in json.RawMessage, begun func()) tools.Result {
	t := s.byName[p.Tool]
	call := s.cfg.Call
	call.ID, call.Message, call.Session = p.CallID, p.MessageID, s.rec.ID
	call.Progress, call.Begun = func(line string) { s.publish(p, "progress", line) }, begun
	out := printing{tell: func(piece string) { s.publish(p, "output", piece) }}
	defer out.end()
	call.Output = &out
	var decided []tools.Decision
	call.Decided = func(d tools.Decision) {
		if !slices.Contains(decided, d) { // a page may redirect many times
			decided = append(decided, d)
		}
	}
	touched := map[string][]string{}
	call.Changed = func(what string, by []string) { touched[what] = by }
	var r tools.Result
	err := guard.Call("tool "+p.Tool, func() (err error) {
		r, err = t.Run(ctx, &call, in)
		return err
	})
	if errors.Is(err, tools.ErrLater) && ctx.Err() != nil {
		return tools.Result{} // it has no result: finishCalls runs it again
	}
	if err != nil {
		text := s.cfg.Call.Keys.Text(modelError(err))
		if _, crashed := errors.AsType[*guard.PanicError](err); ctx.Err() != nil && !crashed {
			text = stopped
		}
		fail(p, text)
		p.State.Metadata = withDecisions(r.Metadata, decided, touched) // also of a failed call
		return r
	}
	p.State.Status, p.State.Output, p.State.Title, p.State.Metadata = centurion.ToolCompleted, centurion.Clip(s.cfg.Call.Keys.Text(r.Output), maxResult), r.Title, withDecisions(r.Metadata, decided, touched)
	attach(p, r.Attachments)
	p.State.Time.End = time.Now().UnixMilli()
	return r
}

// withDecisions returns a tool's data for clients, with the decisions of the gate, and the names of plugins by what of the call they changed.
func withDecisions(data map[string]any, decided []tools.Decision, touched map[string][]string) map[string]any {
	if len(decided)+len(touched) == 0 {
		return data
	}
	out := maps.Clone(data)
	if out == nil {
		out = map[string]any{}
	}
	if len(decided) > 0 {
		out["permission"] = decided
	}
	if len(touched) > 0 {
		out["plugins"] = touched
	}
	return out
}

// modelError is the text of an error for the model: the problem and the remedy.
func modelError(err error) string {
	if p, crashed := errors.AsType[*guard.PanicError](err); crashed {
		return p.Error()
	}
	text := err.Error()
	if e, ok := errors.AsType[*centurion.Error](err); ok && e.Msg != "" && e.Err == nil {
		text = e.Msg
	}
	if hint := centurion.HintOf(err); hint != "" {
		text += ". " + hint
	}
	return text
}

// publish shows watchers the growth of a part. It is not stored: absent watchers miss it.
func (s *Session) publish(p *centurion.Part, field, delta string) {
	if s.cfg.Publish == nil || delta == "" {
		return
	}
	e := fact(&s.rec, centurion.EventDelta, event.DeltaData{Part: p.ID, Message: p.MessageID, Field: field, Delta: delta})
	e.Time, e.After = centurion.Now(), s.cfg.Store.LastSeq()
	s.cfg.Publish(e)
}

// storeResults writes the results of a batch, with the changed files.
func (s *Session) storeResults(ctx context.Context, c calls, batch []int, consumed, changed []string) error {
	return s.update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		if len(changed) > 0 && s.cfg.Changed != nil {
			if err := s.cfg.Changed(tx, changed); err != nil {
				return err
			}
		}
		if len(consumed) > 0 {
			if err := s.cfg.Host.Consume(tx, c.msg.ID, consumed); err != nil {
				return err
			}
		}
		for _, n := range batch {
			p := c.part(n)
			if p.State.Status == centurion.ToolRunning { // continues later
				continue
			}
			if err := tx.PutPart(p); err != nil {
				return err
			}
			if !p.State.Ended() { // begins later
				continue
			}
			if err := s.tellResult(tx, *p); err != nil {
				return err
			}
		}
		return nil
	})
}

// cancelled records that the turn was stopped while the calls of msg ran, and returns the cause.
func (s *Session) cancelled(ctx context.Context, msg *centurion.Message) error {
	cause := ended(ctx)
	msg.Finish = centurion.FinishCancelled
	msg.Error = messageError(cause, s.cfg.Ref.Provider)
	err := s.update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		if err := tx.PutMessage(msg); err != nil {
			return err
		}
		return tellError(tx, &s.rec, cause, msg.ID)
	})
	return errors.Join(cause, err)
}

// tellError records why an answer was broken off.
func tellError(tx *store.Tx, rec *centurion.Session, cause error, message string) error {
	_, err := tx.Append(fact(rec, centurion.EventSessionError, map[string]any{
		"kind": centurion.KindOf(cause), "error": cause.Error(), "message": message}))
	return err
}

// tellCall announces the start of a call, or its end without a run.
func (s *Session) tellCall(tx *store.Tx, p centurion.Part) error {
	if p.State.Ended() {
		return s.tellResult(tx, p)
	}
	_, err := tx.Append(fact(&s.rec, centurion.EventToolStarted, event.ToolData{
		Tool: p.Tool, Call: p.CallID, Message: p.MessageID, Part: p.ID, Input: inputBrief(p.State.Input)}))
	return err
}

func (s *Session) tellResult(tx *store.Tx, p centurion.Part) error {
	d := event.ToolData{Tool: p.Tool, Call: p.CallID, Message: p.MessageID, Part: p.ID, Title: p.State.Title, Error: centurion.Clip(p.State.Error, 2000), Output: centurion.Clip(p.State.Output, 2000)}
	d.Plugins, _ = p.State.Metadata["plugins"].(map[string][]string) // a repaired call has them in its record only
	_, err := tx.Append(fact(&s.rec, centurion.EventToolCompleted, d))
	return err
}

// inputBrief shortens long string arguments, so that the journal does not store a written file twice.
func inputBrief(in json.RawMessage) json.RawMessage {
	if len(in) <= 1000 {
		return in
	}
	var m map[string]any
	if json.Unmarshal(in, &m) != nil {
		return nil
	}
	for k, v := range m {
		switch v := v.(type) {
		case string:
			m[k] = centurion.Clip(v, 200)
		case []any, map[string]any:
			m[k] = "…"
		}
	}
	b, _ := json.Marshal(m) // unmarshalled data can be marshalled
	return b
}
