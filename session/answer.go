package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/event"
	"centurion/failpoint"
	"centurion/guard"
	"centurion/provider"
	"centurion/store"
)

// flushEvery is the maximum delay before a piece of a streaming answer is stored. A crash loses at most that much of it; the answer is
// requested again anyway.
const flushEvery = 100 * time.Millisecond

// answer is an assistant message while it streams.
type answer struct {
	req     provider.Request
	text    int // index of the growing text part, or -1
	thought int // index of the growing reasoning part, or -1
	finish  string
	tokens  centurion.Tokens
	size    int           // bytes of the answer
	steps   int           // requests of the turn, this one included
	stored  chan struct{} // closed when its row is in the store
	grown   chan struct{} // buffered by one: there is unstored data

	mu    sync.Mutex // while it streams, protects the fields below
	msg   centurion.Message
	calls []int    // indexes of the tool parts, by the stream's index of the call
	args  [][]byte // their arguments so far
}

// endsTurn reports whether nothing is left to do after a complete answer.
func (a *answer) endsTurn() bool { return len(a.calls) == 0 && a.finish != centurion.FinishLength }

// ask makes one request and stores its answer. On return without an error, every tool call of the answer is recorded as running, before
// any of them starts. steps counts the requests of this turn.
func (s *Session) ask(ctx context.Context, steps int) (*answer, error) {
	a := &answer{req: s.request(ctx), steps: steps, text: -1, thought: -1, stored: make(chan struct{}), grown: make(chan struct{}, 1)}
	a.msg = s.newAnswer()
	s.hookRequest(ctx, &a.req)
	over, err := s.reserve(ctx, &a.req, s.need(a.req))
	if err != nil {
		return nil, err
	}
	defer over()
	err = s.stream(ctx, a)
	if !guard.Closed(a.stored) {
		return nil, err // there is nothing to report
	}
	if err == nil {
		err = s.cfg.Host.Waiting(ctx, nil)
	}
	if err != nil {
		return nil, s.abandon(ctx, a, err)
	}
	return a, s.accept(ctx, a)
}

func (s *Session) newAnswer() centurion.Message {
	parent := ""
	for i := len(s.history) - 1; i >= 0 && parent == ""; i-- {
		if s.history[i].Role == centurion.RoleUser && pointer(&s.history[i]) == nil {
			parent = s.history[i].ID
		}
	}
	m := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: s.rec.ID, Role: centurion.RoleAssistant,
		ParentID: parent, Time: centurion.MessageTime{Created: time.Now().UnixMilli()}, Agent: s.rec.Agent,
		Model: s.cfg.Ref, Path: centurion.MessagePath{Cwd: s.cfg.Root, Root: s.cfg.Root}}
	m.Parts = []centurion.Part{newPart(&m, centurion.PartStepStart)}
	return m
}

// newPart returns a part for a message, without adding it.
func newPart(m *centurion.Message, t centurion.PartType) centurion.Part {
	return centurion.Part{ID: centurion.NewID(centurion.PrefixPart), SessionID: m.SessionID, MessageID: m.ID, Type: t}
}

// stream reads the model's answer into a, and stores it meanwhile. The answer's row is written while the request is sent; nothing of
// the answer is read before that.
func (s *Session) stream(ctx context.Context, a *answer) (err error) {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var g guard.Group
	over := make(chan struct{})
	g.Go("store answer", func() error {
		err := s.keep(ctx, a, over)
		if err != nil {
			cancel(err)
		}
		return err
	})
	defer func() {
		close(over)
		if lost := g.Wait(); lost != nil {
			err = lost
		}
	}()
	return s.read(inner, a)
}

// keep stores the row of a and then its pieces, until over is closed; the rest is stored at the end of the answer.
func (s *Session) keep(ctx context.Context, a *answer, over <-chan struct{}) error {
	if err := s.store(ctx, a, true); err != nil {
		return err
	}
	close(a.stored)
	for {
		select {
		case <-a.grown:
		case <-over:
			return nil
		}
		t := time.NewTimer(flushEvery)
		select {
		case <-t.C:
		case <-over:
			t.Stop()
			return nil
		}
		if err := s.store(ctx, a, false); err != nil {
			return err
		}
	}
}

// read reads the answer piece by piece.
func (s *Session) read(ctx context.Context, a *answer) error {
	for d, err := range s.cfg.Model.Stream(ctx, a.req) {
		select {
		case <-a.stored:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if d.Type == provider.Waiting {
			if err := s.retrying(ctx, d.Wait); err != nil {
				return err
			}
			continue
		}
		n := s.take(a, d)
		if s.cfg.EveryEvent {
			if err := s.storePart(ctx, a, n); err != nil {
				return err
			}
			continue
		}
		select {
		case a.grown <- struct{}{}:
		default:
		}
	}
	if a.finish == "" {
		if err := ended(ctx); err != nil {
			return err
		}
		return &centurion.Error{Op: "call model", Kind: centurion.KindStreamCut, Msg: "the answer ended without a finish reason"}
	}
	return nil
}

// take adds a piece to a. It returns the index of the grown part, or -1.
func (s *Session) take(a *answer, d provider.Delta) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch d.Type {
	case provider.Text:
		a.thought = -1
		a.text = s.grow(a, a.text, centurion.PartText, d.Text)
		return a.text
	case provider.Reasoning:
		a.text = -1
		a.thought = s.grow(a, a.thought, centurion.PartReasoning, d.Text)
		return a.thought
	case provider.ReasoningEnd:
		if a.thought < 0 && d.Metadata != nil { // an unreadable block
			a.thought = s.grow(a, -1, centurion.PartReasoning, "")
		}
		ended := a.thought
		if ended >= 0 {
			a.msg.Parts[ended].Metadata = d.Metadata
		}
		a.text, a.thought = -1, -1
		return ended
	case provider.CallStart:
		a.text, a.thought = -1, -1
		a.begin(d)
		return a.calls[len(a.calls)-1]
	case provider.CallInput:
		a.args[d.Index] = append(a.args[d.Index], d.Text...)
		a.size += len(d.Text)
		return a.calls[d.Index]
	case provider.Done:
		a.finish, a.tokens = d.Finish, d.Tokens
	}
	return -1
}

// grow adds text to the part at index i, or to a new part if i is -1, and notifies watchers.
func (s *Session) grow(a *answer, i int, t centurion.PartType, text string) int {
	if i < 0 {
		i = len(a.msg.Parts)
		p := newPart(&a.msg, t)
		p.Time.Start = time.Now().UnixMilli()
		a.msg.Parts = append(a.msg.Parts, p)
	}
	p := &a.msg.Parts[i]
	p.Text += text
	a.size += len(text)
	s.publish(p, string(t), text)
	return i
}

func (a *answer) begin(d provider.Delta) {
	a.calls = append(a.calls, len(a.msg.Parts))
	a.args = append(a.args, nil)
	p := newPart(&a.msg, centurion.PartTool)
	p.CallID, p.Tool, p.State = d.CallID, d.Name, &centurion.ToolState{Status: centurion.ToolPending}
	a.msg.Parts = append(a.msg.Parts, p)
	a.size += len(d.Name)
}

// accept stores a complete answer with its calls as running.
func (s *Session) accept(ctx context.Context, a *answer) error {
	now := time.Now().UnixMilli()
	if a.tokens.Total() == 0 {
		a.tokens = estimate(a.req, a.size)
	}
	a.msg.Usage = s.cfg.Price.Cost(a.tokens)
	a.msg.Finish = a.finish
	a.msg.Time.Completed = now
	a.close(now)
	s.hookTexts(ctx, &a.msg)
	whole := a.finish == centurion.FinishToolCalls
	for n, i := range a.calls {
		a.args[n] = s.byOwnName(&a.msg.Parts[i], a.args[n])
		st := a.msg.Parts[i].State
		st.Time.Start = now
		st.Input, st.Status = input(a.args[n]), centurion.ToolRunning
		if !whole {
			st.Status, st.Time.End = centurion.ToolError, now
			st.Error = "Not run: the answer was cut off (" + a.finish + ") before it was complete. Call it again, with less input if it was long."
		}
	}
	if a.finish == centurion.FinishFilter { // a filtered answer is not used, whatever it contains
		return s.abandon(ctx, a, &centurion.Error{Op: "call model", Kind: centurion.KindRefusal,
			Msg: "the provider's content filter ended the answer"})
	}
	if a.endsTurn() && strings.TrimSpace(a.msg.Text()) == "" {
		return s.abandon(ctx, a, &centurion.Error{Op: "call model", Kind: centurion.KindNoAnswer,
			Msg: "the model ended its turn with neither text nor a tool call"})
	}
	end := newPart(&a.msg, centurion.PartStepFinish)
	end.Reason, end.Usage = a.finish, a.msg.Usage
	a.msg.Parts = append(a.msg.Parts, end)
	rec := s.spend(a.msg.Usage, now)
	rec.Metadata.Retry = nil
	failpoint.Hit(failpoint.AnswerBefore)
	err := s.update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		if err := s.begin(tx, a); err != nil {
			return err
		}
		if err := s.putAnswer(tx, a, &rec); err != nil {
			return err
		}
		for _, i := range a.calls {
			if err := s.tellCall(tx, a.msg.Parts[i]); err != nil {
				return err
			}
		}
		if a.endsTurn() {
			return tellIdle(tx, &rec, a.finish, a.steps, a.msg.Text())
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.rec, s.row = rec, 0
	s.history = append(s.history, a.msg)
	failpoint.Hit(failpoint.AnswerAccepted)
	return nil
}

// abandon stores a failed answer with the reason, and returns the error that ends the turn.
func (s *Session) abandon(ctx context.Context, a *answer, cause error) error {
	if err := ended(ctx); err != nil {
		cause = err
	}
	now := time.Now().UnixMilli()
	if a.tokens.Total() == 0 && a.size > 0 {
		a.tokens = estimate(a.req, a.size)
	}
	a.msg.Usage = s.cfg.Price.Cost(a.tokens)
	if a.tokens.Total() == 0 {
		a.msg.Usage.Unpriced = false
	}
	a.msg.Time.Completed = now
	a.msg.Finish = centurion.FinishError
	result := "Not run: the answer broke off before it was complete."
	switch centurion.KindOf(cause) {
	case centurion.KindCancelled, centurion.KindInterrupted, centurion.KindBudget, centurion.KindTimeout:
		a.msg.Finish, result = centurion.FinishCancelled, "Cancelled"
	}
	a.msg.Error = messageError(cause, s.cfg.Ref.Provider)
	a.close(now)
	for n, i := range a.calls {
		st := a.msg.Parts[i].State
		*st = centurion.ToolState{Status: centurion.ToolError, Input: input(a.args[n]), Error: result,
			Metadata: map[string]any{unsent: true}, Time: centurion.PartTime{Start: now, End: now}}
	}
	rec := s.spend(a.msg.Usage, now)
	err := s.update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		if err := s.putAnswer(tx, a, &rec); err != nil {
			return err
		}
		return tellError(tx, &rec, cause, a.msg.ID)
	})
	if err != nil {
		return errors.Join(cause, err)
	}
	s.rec = rec
	s.history = append(s.history, a.msg)
	return cause
}

// putAnswer writes the message, its parts, the session's sums and the cost for its mission.
func (s *Session) putAnswer(tx *store.Tx, a *answer, rec *centurion.Session) error {
	if err := s.putWhole(tx, a, rec); err != nil {
		return err
	}
	return s.cfg.Host.Spent(tx, a.msg.Usage)
}

// putWhole is putAnswer without the cost for the mission.
func (s *Session) putWhole(tx *store.Tx, a *answer, rec *centurion.Session) error {
	whole := a.msg
	if len(whole.Parts) > 0 && whole.Parts[0].Type == centurion.PartStepStart {
		whole.Parts = whole.Parts[1:] // unchanged since it was written with the empty row
	}
	if err := putMessage(tx, &whole); err != nil {
		return err
	}
	if err := tx.PutSession(rec); err != nil {
		return err
	}
	_, err := tx.Append(fact(rec, centurion.EventMessageUpdated, map[string]any{
		"message": a.msg.ID, "agent": rec.Agent, "finish": a.msg.Finish, "text": centurion.Clip(a.msg.Text(), 2000),
		"tokens": a.msg.Usage.Tokens, "cost": a.msg.Usage.USD, "unpriced": a.msg.Usage.Unpriced,
		"calls": len(a.calls), "tool_calls": called(a)}))
	return err
}

// store writes the streamed parts; first also announces the message.
func (s *Session) store(ctx context.Context, a *answer, first bool) error {
	a.mu.Lock()
	m := a.msg
	m.Parts = slices.Clone(m.Parts)
	for n, i := range a.calls {
		m.Parts[i].State = &centurion.ToolState{Status: centurion.ToolPending, Raw: string(a.args[n])}
	}
	a.mu.Unlock()
	err := s.update(ctx, func(tx *store.Tx) error {
		if err := putMessage(tx, &m); err != nil || !first {
			return err
		}
		_, err := tx.Append(fact(&s.rec, centurion.EventMessageCreated, map[string]any{
			"message": m.ID, "role": m.Role, "agent": s.rec.Agent}))
		return err
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.msg.Prev = m.Prev // saves the store a lookup
	return err
}

// storePart writes the streamed part at index i; -1 writes nothing.
func (s *Session) storePart(ctx context.Context, a *answer, i int) error {
	if i < 0 {
		return nil
	}
	a.mu.Lock()
	p := a.msg.Parts[i]
	if n := slices.Index(a.calls, i); n >= 0 {
		p.State = &centurion.ToolState{Status: centurion.ToolPending, Raw: string(a.args[n])}
	}
	a.mu.Unlock()
	return s.update(ctx, func(tx *store.Tx) error { return tx.PutPart(&p) })
}

func putMessage(tx *store.Tx, m *centurion.Message) error {
	if err := tx.PutMessage(m); err != nil {
		return err
	}
	for i := range m.Parts {
		if err := tx.PutPart(&m.Parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// retrying records that the session waits for the provider.
func (s *Session) retrying(ctx context.Context, w *provider.Wait) error {
	text := ""
	if w.Err != nil {
		text = w.Err.Error()
	}
	wait := centurion.Retry{WaitMS: w.For.Milliseconds(), Reason: w.Reason, At: centurion.Time{Time: time.Now().Add(w.For)}}
	if before := s.rec.Metadata.Retry; before != nil {
		wait.Attempts, wait.RateLimits, wait.Failed = before.Attempts, before.RateLimits, before.Failed
	}
	err := s.update(ctx, func(tx *store.Tx) error {
		if err := s.PutRetry(tx, wait); err != nil {
			return err
		}
		_, err := tx.Append(fact(&s.rec, centurion.EventProviderRetry, event.RetryData{
			Attempt: w.Attempt, WaitMS: w.For.Milliseconds(), Reason: w.Reason, Error: text}))
		return err
	})
	if err != nil {
		return err
	}
	return s.cfg.Host.Waiting(ctx, w)
}

// spend returns the session's record with u added.
func (s *Session) spend(u centurion.Usage, now int64) centurion.Session {
	s.isAsked()
	rec := s.rec
	rec.Cost += u.USD
	rec.Tokens = rec.Tokens.Plus(u.Tokens)
	rec.Metadata.Unpriced = rec.Metadata.Unpriced || u.Unpriced
	rec.Time.Updated = now
	return rec
}

// close ends the text parts.
func (a *answer) close(now int64) {
	for i := range a.msg.Parts {
		if p := &a.msg.Parts[i]; p.Type == centurion.PartText || p.Type == centurion.PartReasoning {
			p.Time.End = now
		}
	}
}

// called names the calls of an answer, for readers who see it before the calls.
func called(a *answer) []event.CallData {
	all := make([]event.CallData, len(a.calls))
	for n, i := range a.calls {
		all[n] = event.CallData{Call: a.msg.Parts[i].CallID, Tool: a.msg.Parts[i].Tool}
	}
	return all
}
