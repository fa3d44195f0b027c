package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/store"
)

// Agent is another program that takes the turns of a session: it makes its own requests and its own calls, and has a history of its own.
type Agent interface {
	// Answer takes one turn. What comes meanwhile is told to said, in order and by nobody any more after the return.
	Answer(ctx context.Context, p Prompt, said *Saying) (Ended, error)
}

// Prompt is what an agent is to answer.
type Prompt struct {
	Known centurion.Outside // its own conversation; zero if there is none yet
	More  string            // what it has not answered, for an agent that has that conversation
	Whole string            // what it has to know, for one that has not
}

// Ended is the end of an agent's turn.
type Ended struct {
	Finish string // one of the centurion.Finish… constants
	Usage  centurion.Usage
}

// Call is a call of such an agent, as far as it is known.
type Call struct {
	ID, Tool, Title string
	Status          centurion.ToolStatus // running, completed, error
	Input           json.RawMessage      // nil leaves it as it is
	Output          string               // "" likewise; of a failed call its error
	Metadata        map[string]any
	Files           []string // changed, once it is completed
	Note            bool     // it is no call but something of the agent's own that readers know as one, and may change
}

const (
	maxSaid     = 256 << 10 // bytes of one part of an agent's text, and of a message before the next begins
	maxHandover = 60 << 10  // bytes that an agent without its history is told of it
)

// Saying stores what an agent does in a turn, as messages like those of a session that asks a model itself.
type Saying struct {
	s   *Session
	ctx context.Context

	mu     sync.Mutex // protects the fields below
	a      *answer
	at     map[string]int // the parts of the message's calls, by id
	past   map[string]bool
	open   int // running calls
	dirty  map[int]bool
	stored time.Time // when something of it was stored last
	text   string    // of the last message that has one
	files  pathSet
	steps  int
	said   bool // it has said or done something
}

// TurnOf is [Session.Turn] by an agent from outside. Nothing of what it asks its provider for is seen, so that nothing is reserved; calls
// are counted when they begin, and the cost that it reports at the end.
func (s *Session) TurnOf(ctx context.Context, agent Agent) (out Outcome, err error) {
	files := newPathSet()
	for cut := 0; ; {
		if err := s.takeIn(ctx); err != nil {
			return out, err
		}
		y := &Saying{s: s, ctx: ctx, past: map[string]bool{}, files: files, steps: out.Steps}
		p := s.prompt()
		if err := y.begin(); err != nil {
			return out, err
		}
		end, err := agent.Answer(ctx, p, y)
		if s.cfg.Running != nil && y.open > 0 {
			s.cfg.Running(-y.open)
		}
		err = y.over(end, err)
		out = Outcome{Text: y.text, Finish: end.Finish, Files: files.sorted(), Steps: y.steps}
		if err != nil || end.Finish != centurion.FinishLength {
			return out, cmp.Or(err, ended(ctx))
		}
		if cut++; cut > maxContinuations {
			return out, &StuckError{Said: end.Finish, Times: cut}
		}
		if err := s.sayCut(ctx); err != nil {
			return out, err
		}
	}
}

// prompt returns what is to be answered.
func (s *Session) prompt() (p Prompt) {
	if o := s.rec.Metadata.Outside; o != nil {
		p.Known = *o
	}
	from, broken := 0, false
	for i, m := range s.history {
		if m.Role == centurion.RoleAssistant && m.Finish == centurion.FinishStop {
			from, broken = i+1, false
		} else if m.Role == centurion.RoleAssistant && m.Error != nil {
			broken = true
		}
	}
	var more, whole []string
	if broken {
		more = append(more, "(Your last turn was broken off before its end. You may have read this before: look at what you have done, and continue.)")
	}
	for i, m := range s.history {
		if text := strings.TrimSpace(wordsOf(m)); m.Role == centurion.RoleUser && i >= from && text != "" {
			more = append(more, text)
		}
	}
	whole = append(whole, s.rec.Metadata.System)
	whole = append(whole, handover(s.history)...)
	if now := s.cfg.Host.Status(); now != "" {
		more, whole = append(more, now), append(whole, now)
	}
	p.More, p.Whole = strings.Join(more, "\n\n"), strings.TrimSpace(strings.Join(whole, "\n\n"))
	return p
}

// wordsOf is a message as text, with the names of its files.
func wordsOf(m centurion.Message) string {
	var text strings.Builder
	text.WriteString(m.Text())
	for _, p := range m.Parts {
		if p.Type == centurion.PartFile && p.File != nil {
			text.WriteString("\n[file: " + cmp.Or(p.File.Name, p.File.Mime) + "]")
		}
	}
	return text.String()
}

// handover tells a history to an agent that has none of it: the first message whole, and of the rest what is newest.
func handover(history []centurion.Message) (out []string) {
	var rest []string
	did := false
	for i, m := range history {
		text := strings.TrimSpace(wordsOf(m))
		if m.Role == centurion.RoleUser && i > 0 && text != "" {
			rest = append(rest, text)
		}
		if i == 0 {
			out = append(out, text)
		}
		if m.Role != centurion.RoleAssistant {
			continue
		}
		did = true
		if text != "" {
			rest = append(rest, "You said: "+centurion.Clip(text, 4000))
		}
		for _, p := range toolParts(&m) {
			result, failed := p.State.Result()
			how := "You called"
			if failed {
				how = "You called, and it failed:"
			}
			rest = append(rest, fmt.Sprintf("%s %s %s: %s", how, p.Tool, cmp.Or(p.State.Title, centurion.Clip(string(p.State.Input), 200)), centurion.Clip(result, 300)))
		}
	}
	size, from := 0, len(rest)
	for from > 0 && size+len(rest[from-1]) <= maxHandover {
		from--
		size += len(rest[from])
	}
	if did {
		out = append(out, "You have worked on this before, in a conversation that is not there any more. Your files are as you left them: look at them first. This is what is known of it:")
	}
	if from > 0 {
		out = append(out, fmt.Sprintf("(%s left out)", centurion.Count(from, "older entry")))
	}
	return append(out, rest[from:]...)
}

// Joined stores which conversation of its own the agent has, and what that has cost until now.
func (y *Saying) Joined(o centurion.Outside) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	rec := y.s.rec
	rec.Metadata.Outside = &o
	err := y.s.update(context.WithoutCancel(y.ctx), func(tx *store.Tx) error { return tx.PutSession(&rec) })
	if err == nil {
		y.s.rec = rec
	}
	return err
}

// Message is the id of the message that is being said.
func (y *Saying) Message() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.a.msg.ID
}

// Answer is the text of that message until now.
func (y *Saying) Answer() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.a.msg.Text()
}

// Text adds a piece to the agent's answer.
func (y *Saying) Text(piece string) error { return y.grow(centurion.PartText, piece) }

// Thought adds a piece to what the agent thinks.
func (y *Saying) Thought(piece string) error { return y.grow(centurion.PartReasoning, piece) }

func (y *Saying) grow(t centurion.PartType, piece string) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if piece == "" {
		return nil
	}
	if err := y.next(); err != nil {
		return err
	}
	a := y.a
	at, other := &a.text, &a.thought
	if t == centurion.PartReasoning {
		at, other = other, at
	}
	if *at >= 0 && len(a.msg.Parts[*at].Text) > maxSaid {
		*at = -1
	}
	*at, *other = y.s.grow(a, *at, t, piece), -1
	y.dirty[*at], y.said = true, true
	if time.Since(y.stored) < flushEvery {
		return nil
	}
	return y.store(nil)
}

// next begins another message if the calls of this one have ended, as a model's answer to them would be, or if it is large.
func (y *Saying) next() error {
	if y.open > 0 || len(y.a.calls) == 0 && y.a.size < 4*maxSaid {
		return nil
	}
	a := y.fresh()
	if err := y.close(centurion.FinishToolCalls, nil, centurion.Usage{}, func(tx *store.Tx) error { return y.announce(tx, a) }); err != nil {
		return err
	}
	y.turnTo(a)
	return nil
}

// begin stores the row of the first message.
func (y *Saying) begin() error {
	a := y.fresh()
	y.turnTo(a)
	return y.s.update(y.ctx, func(tx *store.Tx) error { return y.announce(tx, a) })
}

func (y *Saying) fresh() *answer { return &answer{text: -1, thought: -1, msg: y.s.newAnswer()} }

// turnTo makes a message the one that is being said.
func (y *Saying) turnTo(a *answer) {
	for id := range y.at {
		y.past[id] = true
	}
	y.a, y.at, y.dirty, y.stored = a, map[string]int{}, map[int]bool{}, time.Now()
	y.steps++
}

// announce stores and tells the row of a message.
func (y *Saying) announce(tx *store.Tx, a *answer) error {
	if err := putMessage(tx, &a.msg); err != nil {
		return err
	}
	_, err := tx.Append(fact(&y.s.rec, centurion.EventMessageCreated, map[string]any{"message": a.msg.ID, "role": a.msg.Role, "agent": y.s.rec.Agent}))
	return err
}

// store stores what has changed, with more.
func (y *Saying) store(more func(tx *store.Tx) error) error {
	y.stored = time.Now()
	err := y.s.update(y.ctx, func(tx *store.Tx) error {
		if more != nil {
			if err := more(tx); err != nil {
				return err
			}
		}
		for _, i := range slices.Sorted(maps.Keys(y.dirty)) { // they are read in the order in which they were stored
			if err := tx.PutPart(&y.a.msg.Parts[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		clear(y.dirty)
	}
	return err
}

// Call tells that a call has begun or changed. An error ends the turn: no more calls may be made.
func (y *Saying) Call(c Call) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	i, known := y.at[c.ID]
	if y.past[c.ID] || known && y.a.msg.Parts[i].State.Ended() && !c.Note {
		return nil // it has ended
	}
	if known {
		return y.change(i, c)
	}
	if err := y.next(); err != nil {
		return err
	}
	a := y.a
	p := newPart(&a.msg, centurion.PartTool)
	p.CallID, p.Tool = c.ID, c.Tool
	p.State = &centurion.ToolState{Status: centurion.ToolRunning, Title: c.Title, Input: y.clean(c.Input), Time: centurion.PartTime{Start: time.Now().UnixMilli()}}
	i = len(a.msg.Parts)
	a.msg.Parts, a.calls, a.text, a.thought = append(a.msg.Parts, p), append(a.calls, i), -1, -1
	y.at[c.ID], y.dirty[i], y.said = i, true, true
	y.running(1)
	may, why := 1, ""
	err := y.store(func(tx *store.Tx) (err error) {
		if !c.Note && y.s.cfg.Calls != nil {
			if may, why, err = y.s.cfg.Calls(tx, 1); err != nil {
				return err
			}
		}
		if may > 0 {
			return y.s.tellCall(tx, p)
		}
		return nil
	})
	if err == nil && may == 0 {
		err = &centurion.Error{Kind: centurion.KindBudget, Msg: why}
	}
	if err != nil || c.Status == centurion.ToolRunning {
		return err
	}
	return y.change(i, c)
}

// change changes a call that is known.
func (y *Saying) change(i int, c Call) error {
	p := &y.a.msg.Parts[i]
	st := *p.State
	st.Title = cmp.Or(c.Title, st.Title)
	if in := y.clean(c.Input); len(in) > 2 { // not {}
		st.Input = in
	}
	if c.Metadata != nil {
		st.Metadata = c.Metadata
	}
	if c.Status == centurion.ToolRunning {
		p.State = &st
		y.dirty[i] = true
		return nil
	}
	output := centurion.Clip(y.s.cfg.Call.Keys.Text(c.Output), maxResult)
	if st.Status, st.Output = c.Status, output; c.Status == centurion.ToolError {
		st.Output, st.Error = "", cmp.Or(output, "It failed.")
	}
	was := p.State.Ended()
	st.Time.End = time.Now().UnixMilli()
	p.State = &st
	y.dirty[i] = true
	y.files.add(c.Files...)
	if !was {
		y.running(-1)
	}
	return y.store(func(tx *store.Tx) error {
		if len(c.Files) > 0 && y.s.cfg.Changed != nil {
			if err := y.s.cfg.Changed(tx, c.Files); err != nil {
				return err
			}
		}
		if was {
			return nil
		}
		return y.s.tellResult(tx, *p)
	})
}

func (y *Saying) running(more int) {
	if y.open += more; y.s.cfg.Running != nil {
		y.s.cfg.Running(more)
	}
}

// clean returns an input as an object without keys.
func (y *Saying) clean(in json.RawMessage) json.RawMessage {
	return input([]byte(y.s.cfg.Call.Keys.Text(string(in))))
}

// over stores the end of the agent's turn.
func (y *Saying) over(end Ended, cause error) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if centurion.KindOf(cause) == centurion.KindBudget && y.ctx.Err() == nil {
		if err := y.s.takeIn(y.ctx); err != nil { // it says whose limit is reached
			cause = err
		}
	}
	if !y.said && cause != nil {
		end.Usage.Unpriced = false // nothing was seen that may have cost something
	}
	y.text = cmp.Or(strings.TrimSpace(y.a.msg.Text()), y.text)
	switch {
	case cause != nil:
	case end.Finish == centurion.FinishFilter:
		cause = &centurion.Error{Kind: centurion.KindRefusal, Msg: "the agent refused to answer"}
	case y.text == "" && end.Finish == centurion.FinishStop:
		cause = &centurion.Error{Kind: centurion.KindNoAnswer, Msg: "the agent ended its turn without any text"}
	}
	if cause == nil {
		return y.close(end.Finish, nil, end.Usage, nil)
	}
	if err := y.close(centurion.FinishError, cause, end.Usage, nil); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// close stores the message with its end, and then what follows it at once. With a cause it is a failed one.
func (y *Saying) close(finish string, cause error, u centurion.Usage, then func(tx *store.Tx) error) error {
	a, now, last := y.a, time.Now().UnixMilli(), finish != centurion.FinishToolCalls
	result := "Not known: the turn was broken off before the call had ended."
	if cause != nil {
		switch centurion.KindOf(cause) {
		case centurion.KindCancelled, centurion.KindInterrupted, centurion.KindBudget, centurion.KindTimeout:
			finish, result = centurion.FinishCancelled, "Cancelled"
		}
		a.msg.Error = messageError(cause, y.s.cfg.Ref.Provider)
	}
	for _, i := range a.calls {
		if st := a.msg.Parts[i].State; !st.Ended() {
			st.Status, st.Error, st.Time.End = centurion.ToolError, result, now
		}
	}
	a.close(now)
	a.msg.Finish, a.msg.Usage, a.msg.Time.Completed = finish, u, now
	end := newPart(&a.msg, centurion.PartStepFinish)
	end.Reason, end.Usage = finish, u
	a.msg.Parts = append(a.msg.Parts, end)
	y.text = cmp.Or(strings.TrimSpace(a.msg.Text()), y.text)
	rec := y.s.rec
	if last {
		rec = y.s.spend(u, now)
	}
	if last && cause == nil {
		rec.Metadata.Retry = nil
	}
	err := y.s.update(context.WithoutCancel(y.ctx), func(tx *store.Tx) error {
		err := y.s.putWhole(tx, a, &rec)
		if err == nil && then != nil {
			err = then(tx)
		}
		if err != nil || !last {
			return err
		}
		if err := y.s.cfg.Host.Spent(tx, u); err != nil {
			return err
		}
		switch {
		case cause != nil:
			return tellError(tx, &rec, cause, a.msg.ID)
		case finish == centurion.FinishStop:
			return tellIdle(tx, &rec, finish, y.steps, y.text)
		}
		return nil
	})
	if err == nil {
		y.s.rec = rec
		y.s.history = append(y.s.history, a.msg)
	}
	return err
}
