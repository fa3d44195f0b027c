// Package session runs one conversation of one agent to its end: it asks the model, runs the tools that the answer calls
// for, and asks again, until the model ends its turn. It owns the conversation's history and writes every step of it to
// the store before it acts on it.
//
// It knows nothing of missions. What surrounds a conversation (messages that arrive in between, budgets, what changes
// while it runs) reaches it through [Host].
package session

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"centurion"
	"centurion/provider"
	"centurion/store"
	"centurion/tools"
)

// Model answers requests; *provider.Client is the real one.
type Model interface {
	Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error]
}

// Host is what surrounds a conversation.
type Host interface {
	// Before is called before each request. It returns messages that were added to the session's history meanwhile, and
	// already stored. An error ends the turn before the request is made: centurion.KindBudget when nothing may be spent.
	Before(ctx context.Context) ([]centurion.Message, error)
	// Spent records, inside tx, what an answer has cost.
	Spent(tx *store.Tx, u centurion.Usage) error
	// Status returns what the model should know right now and what changes all the time. It is sent as a
	// message of its own at the very end and never stored; empty means nothing.
	Status() string
	// Waiting tells that the session waits for the provider, and with nil that it goes on; it may block until it may.
	Waiting(ctx context.Context, w *provider.Wait) error
	// Consume records, inside tx, that the results of these tasks stand in a tool call of the message.
	Consume(tx *store.Tx, message string, tasks []string) error
}

// Config is what a session works with. Its fields are not changed while it runs.
type Config struct {
	Store    *store.Store
	Model    Model
	Ref      centurion.ModelRef
	Price    *centurion.Price
	MaxOut   int // tokens of one answer; 0 means the model's own limit
	Tools    []tools.Tool
	Call     tools.Call // the surroundings of its tool calls; ID, Message and Progress are filled in for each
	Host     Host
	Fence    func(tx *store.Tx) error // refuses, inside tx, what a superseded attempt writes; nil refuses nothing
	Publish  func(centurion.Event)    // token deltas; nil drops them
	Root     string                   // the project directory, as told in stored messages
	MaxSteps int                      // requests in one turn, the last of them for an answer without calls; 0 means 200

	Temperature *float64 // nil means the model's default

	Policy     Policy          // which calls of one answer may overlap; "" means PolicyAuto
	EveryEvent bool            // each piece of an answer is in the store before the next is taken, instead of every 100 ms
	Media      centurion.Media // which files the model takes; others are told of in words

	Window int         // tokens of the model's window; 0 means unknown: then it is the provider who says that it is full
	Buffer int         // tokens of it that stay free; 0 means what [Buffer] says
	Asked  func() bool // reports, once, that somebody wants the history shortened; nil means never

	// Changed records, inside tx, that calls whose results are stored there changed files. Nil keeps no record.
	Changed func(tx *store.Tx, files []string) error
	// Unbegun reports whether a call that a restart has left without a result had not begun, because it still waited for a
	// person's permission: it simply runs again. Nil knows of none.
	Unbegun func(ctx context.Context, call centurion.Part) bool
	// Running is told by how many the calls have become more, or fewer, that are under way. Between the batches of an answer one
	// call more counts than runs, until the last batch is stored: the next is about to begin. It may be called by several
	// goroutines at once. When a turn has ended the sum is 0. Nil is not told.
	Running func(more int)
	// Parks is asked of the history each time that all calls of an answer have their results, and reports whether the turn ends there
	// without another request, because the model could only say that it waits. Nil lets every turn go on.
	Parks func(ctx context.Context, history []centurion.Message) bool
	// Reserve is asked before each request whether it may be made, and may make it wait. Nil lets every request be made.
	Reserve func(ctx context.Context, n Need) (Cover, error)
	// Calls records, inside tx, that the n calls of an answer begin. It returns how many of them may, and why no more. Nil
	// lets all run.
	Calls func(tx *store.Tx, n int) (may int, why string, err error)
}

// maxSteps bounds a turn whose model never stops calling tools. It is far above what a task needs; budgets and the
// stall audit end a runaway earlier.
const maxSteps = 200

// Session is one conversation. It belongs to the goroutine that calls its methods.
type Session struct {
	cfg     Config
	rec     centurion.Session
	history []centurion.Message // what is sent: see viewOf
	byName  map[string]tools.Tool
	specs   []provider.ToolSpec

	fresh      int  // index in history of the first message that is newer than the last compaction
	row        int  // compactions since the last answer
	compacting bool // what is being spent is spent on a summary
	last       bool // the request is the last of its turn
	status     int  // bytes of what the newest request told beside its history
}

// Outcome is how a turn ended.
type Outcome struct {
	Text   string   // the text of the last answer
	Finish string   // one of the centurion.Finish… constants
	Files  []string // project-relative paths that its tools changed, each once
	Steps  int      // requests made
}

// New describes a session that is to be created. The system prompt is fixed from then on.
func New(rec centurion.Session, now centurion.Time) centurion.Session {
	if rec.ID == "" {
		rec.ID = centurion.NewID(centurion.PrefixSession)
	}
	rec.Time = centurion.Span{Created: now.Millis(), Updated: now.Millis()}
	return rec
}

// Create records a session with its first message, in tx.
func Create(tx *store.Tx, rec *centurion.Session, origin centurion.Origin, prompt string, files ...centurion.File) error {
	if err := tx.PutSession(rec); err != nil {
		return err
	}
	if _, err := tx.Append(fact(rec, centurion.EventSessionCreated, map[string]any{
		"agent": rec.Agent, "address": rec.Metadata.Address, "title": rec.Title, "attempt": rec.Metadata.Attempt,
	})); err != nil {
		return err
	}
	_, err := Say(tx, rec, origin, prompt, files...)
	return err
}

// Say appends a user message to a session, in tx, and returns it as stored. Files stand behind its text.
func Say(tx *store.Tx, rec *centurion.Session, origin centurion.Origin, text string, files ...centurion.File) (centurion.Message, error) {
	now := time.Now().UnixMilli()
	m := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: rec.ID, Role: centurion.RoleUser,
		Origin: origin, Time: centurion.MessageTime{Created: now}, Agent: rec.Agent, Model: modelOf(rec)}
	p := centurion.Part{ID: centurion.NewID(centurion.PrefixPart), SessionID: rec.ID, MessageID: m.ID,
		Type: centurion.PartText, Text: text, Synthetic: origin == centurion.OriginHost}
	if err := tx.PutMessage(&m); err != nil {
		return m, err
	}
	if err := tx.PutPart(&p); err != nil {
		return m, err
	}
	m.Parts = []centurion.Part{p}
	for _, f := range files {
		p := centurion.FilePart(rec.ID, m.ID, f)
		if err := tx.PutPart(&p); err != nil {
			return m, err
		}
		m.Parts = append(m.Parts, p)
	}
	_, err := tx.Append(fact(rec, centurion.EventMessageCreated, map[string]any{
		"message": m.ID, "role": m.Role, "origin": origin, "agent": rec.Agent, "text": centurion.Clip(text, 2000)}))
	return m, err
}

// Open loads a session and repairs what a restart has left half done, so that the next request is valid.
func Open(ctx context.Context, cfg Config, id string) (*Session, error) {
	s := &Session{cfg: cfg, byName: map[string]tools.Tool{}}
	var err error
	if s.rec, err = cfg.Store.Session(ctx, id); err != nil {
		return nil, err
	}
	for _, t := range cfg.Tools {
		s.byName[t.Name()] = t
		s.specs = append(s.specs, tools.Spec(t))
	}
	if s.history, err = cfg.Store.Messages(ctx, id); err != nil {
		return nil, err
	}
	for i := range s.history {
		for _, p := range s.history[i].Parts {
			if p.State != nil {
				p.State.Input = canonical(p.State.Input)
			}
		}
	}
	if err := s.repair(ctx); err != nil {
		return nil, fmt.Errorf("repair session %s: %w", id, err)
	}
	v := viewOf(s.history)
	s.history, s.fresh, s.row = v.history, v.fresh, v.row
	return s, nil
}

// Record returns the session as it was last stored.
func (s *Session) Record() centurion.Session { return s.rec }

// Turn asks the model until it ends its turn. The history is stored at every step, so a Turn that ends with an error, or
// with the process, can be repeated: the next one goes on from there. When ctx ends, the error is its cause and every
// call of the last answer has a result. The error is a [*StuckError] if the model makes no headway.
func (s *Session) Turn(ctx context.Context) (Outcome, error) {
	var out Outcome
	files := newPathSet()
	left, err := s.finishCalls(ctx)
	files.add(left.files...)
	out.Files = files.sorted()
	if err != nil {
		return out, err
	}
	if left.endTurn {
		out.Finish = centurion.FinishToolCalls
		return out, s.idle(ctx, out)
	}
	if n := len(s.history); n > 0 && s.history[n-1].Finish == centurion.FinishLength && len(toolParts(&s.history[n-1])) == 0 {
		if err := s.sayCut(ctx); err != nil { // a restart came in between
			return out, err
		}
	}
	cut := 0 // answers in a row that were not complete
	for {
		if s.Parks(ctx) {
			last := s.history[len(s.history)-1]
			out.Text, out.Finish = last.Text(), last.Finish
			return out, s.idle(ctx, out)
		}
		a, err := s.step(ctx, &out)
		if err != nil {
			return out, err
		}
		if len(a.calls) > 0 && a.finish == centurion.FinishToolCalls {
			done, err := s.runCalls(ctx, calls{msg: &s.history[len(s.history)-1], parts: a.calls, args: a.args})
			files.add(done.files...)
			out.Files = files.sorted()
			if err != nil {
				return out, err
			}
			if done.endTurn {
				return out, s.idle(ctx, out)
			}
			if err := s.stuck(); err != nil {
				return out, err
			}
			cut = 0
			continue
		}
		if len(a.calls) == 0 && a.finish != centurion.FinishLength {
			return out, s.idle(ctx, out)
		}
		if cut++; cut > maxContinuations {
			return out, &StuckError{Said: a.finish, Times: cut}
		}
		if len(a.calls) > 0 {
			continue // their results say it
		}
		if err := s.sayCut(ctx); err != nil {
			return out, err
		}
	}
}

// Parks reports whether the turn ends, or a repeated one would, behind the calls of the last answer without another request.
func (s *Session) Parks(ctx context.Context) bool {
	n := len(s.history)
	return s.cfg.Parks != nil && n > 0 && s.history[n-1].Finish == centurion.FinishToolCalls && ctx.Err() == nil && s.cfg.Parks(ctx, s.history)
}

// sayCut asks for the rest of an answer that was cut off.
func (s *Session) sayCut(ctx context.Context) error {
	return s.Say(ctx, centurion.OriginHost, "Your answer was cut off at the output limit. Continue exactly where it stopped.")
}

// step takes in what arrived, makes room for it, and makes the next request of a turn. What the model has answered
// stands in out as well.
func (s *Session) step(ctx context.Context, out *Outcome) (*answer, error) {
	if err := s.takeIn(ctx); err != nil {
		return nil, err
	}
	if err := s.fit(ctx); err != nil {
		return nil, err
	}
	limit := cmp.Or(s.cfg.MaxSteps, maxSteps)
	if out.Steps == limit {
		return nil, &centurion.Error{Op: "run session", Kind: centurion.KindTimeout,
			Msg: fmt.Sprintf("the model made %s in one turn without ending it", centurion.Count(limit, "request"))}
	}
	out.Steps++
	s.last = out.Steps == limit
	a, err := s.ask(ctx)
	if err != nil {
		return nil, err
	}
	out.Text, out.Finish = a.msg.Text(), a.msg.Finish
	return a, nil
}

// maxContinuations bounds how often in a row an answer that is not complete, mostly because it hit the output limit, is
// continued before its turn ends with a [*StuckError].
const maxContinuations = 3

// takeIn adds what arrived meanwhile to the history.
func (s *Session) takeIn(ctx context.Context) error {
	if err := ended(ctx); err != nil {
		return err
	}
	arrived, err := s.cfg.Host.Before(ctx)
	s.history = append(s.history, arrived...)
	return err
}

// Add takes messages into the history that were stored by somebody else. It may be called between turns only.
func (s *Session) Add(stored ...centurion.Message) { s.history = append(s.history, stored...) }

// Due reports whether the model has something to answer: a turn that never began, or one that did not end well.
func (s *Session) Due() bool {
	if len(s.history) == 0 {
		return false
	}
	last := s.history[len(s.history)-1]
	return last.Role == centurion.RoleUser || last.Finish != centurion.FinishStop &&
		last.Finish != centurion.FinishFilter && last.Finish != centurion.FinishUnknown
}

// Say stores a user message and takes it into the history. It may be called between turns only.
func (s *Session) Say(ctx context.Context, origin centurion.Origin, text string) error {
	var m centurion.Message
	err := s.update(ctx, func(tx *store.Tx) (err error) {
		m, err = Say(tx, &s.rec, origin, text)
		return err
	})
	if err == nil {
		s.history = append(s.history, m)
	}
	return err
}

// PutRetry records, in tx, that the session waits before it repeats a request. The next good answer ends it.
func (s *Session) PutRetry(tx *store.Tx, r centurion.Retry) error {
	s.isAsked()
	s.rec.Metadata.Retry = &r
	return tx.PutSession(&s.rec)
}

// PutAborted records, in tx, why a person has stopped the session's turn; "" says that it goes on.
func (s *Session) PutAborted(tx *store.Tx, why string) error {
	s.rec.Metadata.Aborted = why
	return tx.PutSession(&s.rec)
}

// idle records that the turn has ended.
func (s *Session) idle(ctx context.Context, out Outcome) error {
	return s.update(ctx, func(tx *store.Tx) error {
		_, err := tx.Append(fact(&s.rec, centurion.EventSessionIdle, map[string]any{
			"finish": out.Finish, "steps": out.Steps, "text": centurion.Clip(out.Text, 2000)}))
		return err
	})
}

// update is the only way in which a session writes.
func (s *Session) update(ctx context.Context, f func(tx *store.Tx) error) error {
	return s.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		if s.cfg.Fence != nil {
			if err := s.cfg.Fence(tx); err != nil {
				return err
			}
		}
		return f(tx)
	})
}

// ended returns why ctx ended, or nil.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

func modelOf(rec *centurion.Session) centurion.ModelRef {
	if rec.Model == nil {
		return centurion.ModelRef{}
	}
	return centurion.ModelRef{Provider: rec.Model.Provider, ID: rec.Model.ID}
}
