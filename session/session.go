// Package session runs one conversation of one agent to its end: it asks the model, runs the tools that the answer calls, and asks
// again, until the model ends its turn. It owns the conversation's history and stores every step before acting on it.
//
// It knows nothing of missions. The environment of a conversation (incoming messages, budgets, changing status) reaches it through
// [Host].
package session

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
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

// Host is the environment of a conversation.
type Host interface {
	// Before is called before each request. It returns messages that were added to the stored history meanwhile. An error ends the turn
	// without a request: centurion.KindBudget if nothing may be spent.
	Before(ctx context.Context) ([]centurion.Message, error)
	// Spent records the cost of an answer in tx.
	Spent(tx *store.Tx, u centurion.Usage) error
	// Status returns changing information for the model. It is sent as a separate message at the very end and never stored; empty means
	// none.
	Status() string
	// Waiting reports that the session waits for the provider, and with nil that it continues; it may block until that is allowed.
	Waiting(ctx context.Context, w *provider.Wait) error
	// Consume records in tx that a tool call of the message contains the results of these tasks.
	Consume(tx *store.Tx, message string, tasks []string) error
}

// Config configures a session. Its fields must not change while it runs.
type Config struct {
	Store  *store.Store
	Model  Model
	Ref    centurion.ModelRef
	Price  *centurion.Price
	MaxOut int // tokens of one answer; 0 means the model's own limit
	Tools  []tools.Tool
	// Renewed changes, at a compaction, what is fixed in the session's record until the next one, and returns the tools from then on; nil
	// leaves them as they are.
	Renewed  func(ctx context.Context, rec *centurion.Session) []tools.Tool
	Call     tools.Call // the context of its tool calls; ID, Message and Progress are set for each
	Host     Host
	Hooks    centurion.Hooks          // of plugins; nil has none
	Fence    func(tx *store.Tx) error // refuses in tx writes of a superseded attempt; nil allows all
	Publish  func(centurion.Event)    // publishes token deltas; nil drops them
	Root     string                   // the project directory for stored messages
	MaxSteps int                      // requests in one turn, the last one for an answer without calls; 0 means 200

	Temperature *float64 // nil means the model's default

	Policy     Policy          // which calls of one answer may run in parallel; "" means PolicyAuto
	EveryEvent bool            // stores each piece of an answer before the next is read, instead of every 100 ms
	Media      centurion.Media // the file types that the model accepts; others are described in words

	Window int         // tokens of the model's window; 0 if unknown: then the provider reports when it is full
	Buffer int         // tokens to keep free in it; 0 means the result of [Buffer]
	Asked  func() bool // reports, once, that a compaction was requested; nil means never

	// Changed records in tx the files changed by calls whose results are stored. Nil records nothing.
	Changed func(tx *store.Tx, files []string) error
	// Unbegun reports whether a call without a result after a restart had not begun because it waited for a permission: then it simply
	// runs again. Nil means never.
	Unbegun func(ctx context.Context, call centurion.Part) bool
	// Running is called with each change of the number of running calls. Between the batches of an answer one additional call counts,
	// until the last batch is stored, because the next one is about to begin. Calls may be concurrent. At the end of a turn the sum is
	// 0. It may be nil.
	Running func(more int)
	// Parks is called each time all calls of an answer have their results, and reports whether the turn ends without another request,
	// because the model could only say that it waits. Nil never ends a turn.
	Parks func(ctx context.Context, history []centurion.Message) bool
	// Reserve permits each request, and may block. Nil permits all.
	Reserve func(ctx context.Context, n Need) (Cover, error)
	// Calls records in tx the start of an answer's n calls. It returns how many may start, and why no more. Nil permits all.
	Calls func(tx *store.Tx, n int) (may int, why string, err error)
}

// maxSteps limits a turn whose model never stops calling tools. It is far above the needs of a task; budgets and the stall audit end a
// runaway turn earlier.
const maxSteps = 200

// Session is one conversation. It belongs to the goroutine that calls its methods.
type Session struct {
	cfg     Config
	rec     centurion.Session
	history []centurion.Message // the messages to send: see viewOf
	byName  map[string]tools.Tool
	specs   []provider.ToolSpec

	fresh      int               // index in history of the first message after the last compaction
	row        int               // compactions since the last answer
	compacting bool              // the current cost is for a summary
	last       bool              // the current request is the last of its turn
	status     int               // bytes of the newest request's status
	leaf       string            // the newest message of a session that nobody works on and that is being shortened
	unusable   bool              // it was told that plugins have made a history of it that no provider takes
	acted      map[string]string // the plugins of which it was told, by hook
}

// Outcome is the result of a turn.
type Outcome struct {
	Text   string   // the text of the last answer
	Finish string   // one of the centurion.Finish… constants
	Files  []string // project-relative paths changed by its tools, each once
	Steps  int      // number of requests
}

// New describes a new session. Its system prompt is fixed from then on, until another agent takes it over.
func New(rec centurion.Session, now centurion.Time) centurion.Session {
	if rec.ID == "" {
		rec.ID = centurion.NewID(centurion.PrefixSession)
	}
	rec.Time = centurion.Span{Created: now.Millis(), Updated: now.Millis()}
	return rec
}

// Create stores a session with its first message, in tx.
func Create(tx *store.Tx, rec *centurion.Session, origin centurion.Origin, prompt string) error {
	return CreateWith(tx, rec, origin, "", Texts(prompt))
}

// CreateWith stores a session with its first message as [SayParts] does, in tx.
func CreateWith(tx *store.Tx, rec *centurion.Session, origin centurion.Origin, id string, parts []centurion.Part) error {
	if err := tx.PutSession(rec); err != nil {
		return err
	}
	if _, err := tx.Append(fact(rec, centurion.EventSessionCreated, map[string]any{
		"agent": rec.Agent, "address": rec.Metadata.Address, "title": rec.Title, "attempt": rec.Metadata.Attempt,
	})); err != nil {
		return err
	}
	_, err := SayParts(tx, rec, origin, id, parts)
	return err
}

// Texts are the parts of a message that is a text with files after it.
func Texts(text string, files ...centurion.File) []centurion.Part {
	parts := []centurion.Part{{Type: centurion.PartText, Text: text}}
	for _, f := range files {
		parts = append(parts, centurion.Part{Type: centurion.PartFile, File: &f})
	}
	return parts
}

// Say appends a user message to a session, in tx, and returns it as stored.
func Say(tx *store.Tx, rec *centurion.Session, origin centurion.Origin, text string) (centurion.Message, error) {
	return SayParts(tx, rec, origin, "", Texts(text))
}

// SayParts appends a user message of parts without ids to a session, in tx, and returns it as stored. id is its id, "" for a new one; the
// error has centurion.KindUsage if a message has it already.
func SayParts(tx *store.Tx, rec *centurion.Session, origin centurion.Origin, id string, parts []centurion.Part) (centurion.Message, error) {
	m := centurion.Message{ID: cmp.Or(id, centurion.NewID(centurion.PrefixMessage)), SessionID: rec.ID, Role: centurion.RoleUser,
		Origin: origin, Time: centurion.MessageTime{Created: time.Now().UnixMilli()}, Agent: rec.Agent, Model: modelOf(rec)}
	if id != "" {
		if err := tx.CheckNewMessage(id); err != nil {
			return m, err
		}
	}
	for _, p := range parts {
		p.ID, p.SessionID, p.MessageID = centurion.NewID(centurion.PrefixPart), rec.ID, m.ID
		p.Text, p.Synthetic = tx.Redacted(p.Text), p.Synthetic || p.Type == centurion.PartText && origin == centurion.OriginHost
		m.Parts = append(m.Parts, p)
	}
	if err := putMessage(tx, &m); err != nil {
		return m, err
	}
	first := slices.IndexFunc(m.Parts, func(p centurion.Part) bool { return p.Type == centurion.PartText })
	said := m.Parts[max(first, 0)].Text // what is attached to it is not told
	_, err := tx.Append(fact(rec, centurion.EventMessageCreated, map[string]any{
		"message": m.ID, "role": m.Role, "origin": origin, "agent": rec.Agent, "text": centurion.Clip(said, 2000)}))
	return m, err
}

// Open loads a session and repairs state left unfinished by a restart, so that the next request is valid.
func Open(ctx context.Context, cfg Config, id string) (*Session, error) {
	s := &Session{cfg: cfg, acted: map[string]string{}}
	var err error
	if s.rec, err = cfg.Store.Session(ctx, id); err != nil {
		return nil, err
	}
	s.hold(cfg.Tools)
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

// hold gives the session its tools.
func (s *Session) hold(held []tools.Tool) {
	s.byName, s.specs = map[string]tools.Tool{}, nil
	for _, t := range held {
		s.byName[t.Name()] = t
		s.specs = append(s.specs, tools.Spec(t))
	}
}

// Record returns the session as last stored.
func (s *Session) Record() centurion.Session { return s.rec }

// Turn asks the model until it ends its turn. The history is stored at every step, so a Turn that fails, or is killed, can be repeated
// and continues from there. When ctx ends, the error is its cause and every call of the last answer has a result. The error is a
// [*StuckError] if the model makes no progress.
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
		if err := s.sayCut(ctx); err != nil { // after a restart
			return out, err
		}
	}
	cut := 0 // consecutive incomplete answers
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
		if a.endsTurn() {
			return out, ended(ctx)
		}
		if cut++; cut > maxContinuations {
			return out, &StuckError{Said: a.finish, Times: cut}
		}
		if len(a.calls) > 0 {
			continue // their results say so
		}
		if err := s.sayCut(ctx); err != nil {
			return out, err
		}
	}
}

// Parks reports whether the turn, or a repeated one, ends after the calls of the last answer without another request.
func (s *Session) Parks(ctx context.Context) bool {
	n := len(s.history)
	return s.cfg.Parks != nil && n > 0 && s.history[n-1].Finish == centurion.FinishToolCalls && ctx.Err() == nil && s.cfg.Parks(ctx, s.history)
}

// sayCut requests the rest of a cut-off answer.
func (s *Session) sayCut(ctx context.Context) error {
	return s.Say(ctx, centurion.OriginHost, "Your answer was cut off at the output limit. Continue exactly where it stopped.")
}

// step takes in new messages, makes room for them, and makes the next request of a turn. The model's answer is also recorded in out.
func (s *Session) step(ctx context.Context, out *Outcome) (*answer, error) {
	if err := s.takeIn(ctx); err != nil {
		return nil, err
	}
	if err := s.hookArrived(ctx); err != nil {
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
	a, err := s.ask(ctx, out.Steps)
	if err != nil {
		return nil, err
	}
	out.Text, out.Finish = a.msg.Text(), a.msg.Finish
	return a, nil
}

// maxContinuations limits consecutive continuations of an incomplete answer, usually cut off at the output limit, before its turn ends
// with a [*StuckError].
const maxContinuations = 3

// takeIn adds arrived messages to the history.
func (s *Session) takeIn(ctx context.Context) error {
	if err := ended(ctx); err != nil {
		return err
	}
	arrived, err := s.cfg.Host.Before(ctx)
	s.history = append(s.history, arrived...)
	return err
}

// Add adds messages to the history that others have stored. It may be called only between turns.
func (s *Session) Add(stored ...centurion.Message) { s.history = append(s.history, stored...) }

// Due reports whether the model has something to answer: the turn never began, or did not end well.
func (s *Session) Due() bool {
	if len(s.history) == 0 {
		return false
	}
	last := s.history[len(s.history)-1]
	return last.Role == centurion.RoleUser || last.Finish != centurion.FinishStop &&
		last.Finish != centurion.FinishFilter && last.Finish != centurion.FinishUnknown
}

// Say stores a user message and adds it to the history. It may be called only between turns.
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

// PutRetry records, in tx, that the session waits before it repeats a request. The next good answer clears it.
func (s *Session) PutRetry(tx *store.Tx, r centurion.Retry) error {
	s.isAsked()
	s.rec.Metadata.Retry = &r
	return tx.PutSession(&s.rec)
}

// PutAborted records, in tx, why a person has stopped the session's turn; "" means that it continues.
func (s *Session) PutAborted(tx *store.Tx, why string) error {
	s.rec.Metadata.Aborted = why
	return tx.PutSession(&s.rec)
}

// idle records the end of a turn behind calls. The transaction of an answer without calls does that itself.
func (s *Session) idle(ctx context.Context, out Outcome) error {
	return s.update(ctx, func(tx *store.Tx) error { return tellIdle(tx, &s.rec, out.Finish, out.Steps, out.Text) })
}

func tellIdle(tx *store.Tx, rec *centurion.Session, finish string, steps int, text string) error {
	_, err := tx.Append(fact(rec, centurion.EventSessionIdle, map[string]any{"finish": finish, "steps": steps, "text": centurion.Clip(text, 2000)}))
	return err
}

// update is the session's only way to write.
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
