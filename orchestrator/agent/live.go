package agent

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"centurion"
	"centurion/event"
	"centurion/provider"
	"centurion/session"
	"centurion/store"
)

// Live is what is known of a conversation from outside while it runs: whether it has a turn, what it is at, and how that
// is ended. Its methods never wait for the conversation.
type Live struct {
	mu     sync.Mutex // protects what follows
	end    context.CancelCauseFunc
	over   chan struct{} // closed when the turn has ended
	since  time.Time     // when the turn began, or when the last one ended
	asking int           // requests to the model that are under way
	waits  map[Wait]int
	calls  map[*RunningCall]struct{}
	stop   *AbortedError // a person has stopped it, which is not recorded yet
	stood  *AbortedError // it stands still since a person has stopped it
	goOn   bool          // a person has resumed it
}

// AbortedError ends a turn and not its session.
type AbortedError struct{ err *centurion.Error }

// Error is what the message that was cut off is stored with.
func (e *AbortedError) Error() string {
	return StoppedByPerson(e.Why())
}

// StoppedByPerson says that a person has aborted a turn, and why, by what a session's metadata keep of it.
func StoppedByPerson(why string) string {
	if why == "" || why == AbortedByPerson {
		return "stopped by the person"
	}
	return "stopped by the person: " + why
}

func (e *AbortedError) Unwrap() error { return e.err }

// Why is the reason that the person gave.
func (e *AbortedError) Why() string { return e.err.Msg }

// begin says that a turn begins; over has to be called at its end. Somebody may have stopped it before it could.
func (l *Live) begin(ctx context.Context) (turn context.Context, over func()) {
	turn, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end, l.over, l.since = end, done, time.Now()
	if l.stop != nil {
		end(l.stop)
	}
	return turn, sync.OnceFunc(func() {
		l.mu.Lock()
		l.end, l.over, l.since, l.asking = nil, nil, time.Now(), 0
		clear(l.calls)
		l.mu.Unlock()
		close(done)
		end(nil)
	})
}

// Abort ends the turn, or says of a conversation that has none that it shall not begin another one unasked. Ended is
// closed when the turn has ended, nil if there was none.
func (l *Live) Abort(cause *AbortedError) (ended <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop == nil {
		l.stop = cause
	}
	if l.end == nil {
		return nil
	}
	l.end(l.stop)
	return l.over
}

// Wait says that the conversation waits for something, until done is called.
func (l *Live) Wait(what Wait) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waits == nil {
		l.waits = map[Wait]int{}
	}
	l.waits[what]++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.waits[what]--; l.waits[what] <= 0 {
			delete(l.waits, what)
		}
	})
}

// Call says that a tool call runs, until done is called.
func (l *Live) Call(tool, id, message string) (done func()) {
	c := &RunningCall{Tool: tool, ID: id, Message: message, Since: centurion.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == nil {
		l.calls = map[*RunningCall]struct{}{}
	}
	l.calls[c] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.calls, c)
	}
}

// Running lists the tool calls that run, the longest first.
func (l *Live) Running() []RunningCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runningNow()
}

// runningNow is called with the lock held.
func (l *Live) runningNow() []RunningCall {
	out := make([]RunningCall, 0, len(l.calls))
	for c := range maps.Keys(l.calls) {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b RunningCall) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(a.Message, b.Message), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// asked is a model of which is known when it is asked.
type asked struct {
	session.Model
	l *Live
}

func (a asked) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		a.l.mu.Lock()
		a.l.asking++
		a.l.mu.Unlock()
		defer func() {
			a.l.mu.Lock()
			a.l.asking = max(a.l.asking-1, 0) // a turn that crashed has reset it
			a.l.mu.Unlock()
		}()
		a.Model.Stream(ctx, req)(yield)
	}
}

// Aborts of the Commander's turn.

// AbortedIn returns the abort that an error comes from, or nil; one of a mission that stops is none any more.
func AbortedIn(ctx context.Context, err error) *AbortedError {
	a, ok := errors.AsType[*AbortedError](err)
	if !ok || ctx.Err() != nil {
		return nil
	}
	return a
}

// Stands records that a person has stopped the conversation, once for each time.
func (c *Conversation) Stands(ctx context.Context) error {
	c.Live.mu.Lock()
	stop := c.Live.stop
	c.Live.mu.Unlock()
	if stop == nil {
		return nil
	}
	err := c.m.st.Store.Update(ctx, func(tx *store.Tx) error {
		if err := errors.Join(c.Current(), c.Sess.PutAborted(tx, stop.Why())); err != nil {
			return err
		}
		_, err := tx.Append(c.fact(centurion.EventSessionAborted, event.AbortData{Reason: stop.Why()}))
		return err
	})
	if err != nil {
		return err
	}
	c.Live.mu.Lock()
	defer c.Live.mu.Unlock()
	c.Live.stop, c.Live.stood = nil, stop
	return nil
}

// StandsSince returns why the conversation stands still, nil if nobody has stopped it.
func (c *Conversation) StandsSince() *AbortedError {
	c.Live.mu.Lock()
	defer c.Live.mu.Unlock()
	return c.Live.stood
}

// goesOn records that a conversation that a person had stopped begins a turn again.
func (c *Conversation) goesOn(ctx context.Context) error {
	if c.Sess.Record().Metadata.Aborted == "" {
		return nil
	}
	err := c.m.st.Store.Update(ctx, func(tx *store.Tx) error { return errors.Join(c.Current(), c.Sess.PutAborted(tx, "")) })
	c.Live.mu.Lock()
	defer c.Live.mu.Unlock()
	c.Live.stood = nil
	return err
}

// afterAbort reports whether a task's conversation goes on although a person has stopped its turn: with what was written
// to it. Otherwise the task ends as cancelled.
func (c *Conversation) afterAbort(ctx context.Context, err error) (goOn bool, _ error) {
	if AbortedIn(ctx, err) == nil {
		return false, err
	}
	if rerr := c.Stands(ctx); rerr != nil {
		return false, rerr
	}
	if terr := c.TakeIn(ctx); terr != nil || c.Heard == 0 {
		return false, errors.Join(err, terr)
	}
	if rerr := c.Resume(ctx); rerr != nil {
		return false, rerr
	}
	return true, nil
}

// AbortedByPerson is why a turn was aborted where the person gave no reason.
const AbortedByPerson = "a person has stopped the turn"

// Aborted ends a turn for a reason.
func Aborted(reason string) *AbortedError {
	return &AbortedError{&centurion.Error{Kind: centurion.KindCancelled, Msg: reason}}
}

// Wait is what a session waits for.
type Wait string

// What a session waits for.
const (
	WaitModel    Wait = "model"    // the answer to a request
	WaitTool     Wait = "tool"     // its tool calls
	WaitSlot     Wait = "slot"     // the right to run
	WaitPerson   Wait = "person"   // an answer, or a word after its turn was aborted
	WaitRetry    Wait = "retry"    // the time at which a failed request is repeated
	WaitChild    Wait = "child"    // tasks that it has delegated
	WaitProvider Wait = "provider" // a provider that lets nobody ask at the moment
	WaitBudget   Wait = "budget"   // a part of the budget
	WaitCheck    Wait = "check"    // the acceptance commands of its work
	WaitTask     Wait = "task"     // what its task waits for; see Reason
)

// waitOrder says which of several waits is told: what a person can do something about comes first, and who waits for a
// child in a tool call waits for the child.
var waitOrder = [...]Wait{WaitPerson, WaitRetry, WaitProvider, WaitBudget, WaitSlot, WaitChild}

// Activity is whether a session has a turn.
type Activity string

// The activities of a session.
const (
	Idle    Activity = "idle"    // no turn; something that is under way, or a person, will begin one
	Busy    Activity = "busy"    // it has a turn
	Stopped Activity = "stopped" // nobody works on its mission
	Ended   Activity = "ended"   // its task or mission is over
)

// RunningCall is a tool call that runs.
type RunningCall struct {
	Tool    string         `json:"tool"`
	ID      string         `json:"id"`
	Message string         `json:"message"` // the answer that it stands in
	Since   centurion.Time `json:"since"`
}

// Standing is how a conversation stands, as it knows itself.
type Standing struct {
	Activity Activity
	Waits    Wait           // what it waits for; empty if for nothing
	Since    centurion.Time // when its turn began, or the last one ended
	Reason   string
	Calls    []RunningCall
}

// Standing is what the conversation itself knows, in one moment.
func (l *Live) Standing() Standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Standing{Activity: Idle, Calls: l.runningNow(), Since: centurion.Time{Time: l.since}}
	if l.since.IsZero() {
		s.Since = centurion.Time{}
	}
	if l.end != nil {
		s.Activity = Busy
	}
	i := slices.IndexFunc(waitOrder[:], func(w Wait) bool { return l.waits[w] > 0 })
	switch {
	case i >= 0:
		s.Waits = waitOrder[i]
	case len(l.calls) > 0:
		s.Waits = WaitTool
	case l.asking > 0:
		s.Waits = WaitModel
	case l.end == nil && (l.stop != nil || l.stood != nil):
		s.Waits = WaitPerson
		if l.stood != nil {
			s.Reason = l.stood.Why()
		}
	}
	return s
}

// Busy reports whether the conversation has a turn.
func (l *Live) Busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end != nil
}

// Proceed lets a conversation go on that a person had stopped. It does so when it looks next: see [Conversation.TakeUp].
func (l *Live) Proceed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.goOn = true
}

// StoppedBefore takes over from the host before that a person had stopped the conversation.
func (c *Conversation) StoppedBefore() bool {
	why := c.Sess.Record().Metadata.Aborted
	if why == "" {
		return false
	}
	c.Live.mu.Lock()
	defer c.Live.mu.Unlock()
	c.Live.stood = Aborted(why)
	return true
}

// TakeUp is what an idle conversation does about what was done to it from outside: it stands still, or goes on, which it is told with word.
func (c *Conversation) TakeUp(ctx context.Context, word string) (stands bool, err error) {
	if err := c.Stands(ctx); err != nil {
		return false, err
	}
	l := &c.Live
	l.mu.Lock()
	goOn := l.goOn && l.stood != nil
	l.goOn = false
	l.mu.Unlock()
	if goOn {
		if err := c.Say(ctx, centurion.OriginHost, word); err != nil {
			return false, err
		}
		c.Heard++ // a person has said so
	}
	return c.StandsSince() != nil, nil
}
