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

// Live is the state of a running conversation for outside observers: its turn, its waits, and the way to end the turn. Its methods
// never wait for the conversation.
type Live struct {
	mu     sync.Mutex // protects the fields below
	end    context.CancelCauseFunc
	over   chan struct{} // closed when the turn has ended
	since  time.Time     // start of the turn, or end of the last one
	asking int           // running requests to the model
	waits  map[Wait]int
	calls  map[*RunningCall]struct{}
	stop   *AbortedError // a person has stopped it; not recorded yet
	stood  *AbortedError // it is stopped by a person
	goOn   bool          // a person has resumed it
}

// AbortedError ends a turn but not its session.
type AbortedError struct{ err *centurion.Error }

// Error is stored with the interrupted message.
func (e *AbortedError) Error() string {
	return StoppedByPerson(e.Why())
}

// StoppedByPerson describes an aborted turn; why is the reason in the session's metadata.
func StoppedByPerson(why string) string {
	if why == "" || why == AbortedByPerson {
		return "stopped by the person"
	}
	return "stopped by the person: " + why
}

func (e *AbortedError) Unwrap() error { return e.err }

// Why is the person's reason.
func (e *AbortedError) Why() string { return e.err.Msg }

// begin starts a turn; call over at its end. The turn may have been aborted even earlier.
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

// Abort ends the turn. Without one, it prevents the conversation from starting another one by itself. ended is closed at the end of the
// turn, nil if there was none.
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

// Wait marks the conversation as waiting until done is called.
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
		l.waits[what]--
	})
}

// inCall marks the context of a tool call.
type inCall struct{}

// RefuseInCall refuses work that waits for a session to a tool call, which would wait for itself. The error has centurion.KindConflict.
func RefuseInCall(ctx context.Context, op string) error {
	if ctx.Value(inCall{}) == nil {
		return nil
	}
	return &centurion.Error{Op: op, Kind: centurion.KindConflict, Msg: "a tool call cannot wait for a session: it would wait for itself",
		Hint: "return from the call; what it is to bring about can stand in its result"}
}

// Call marks a tool call as running until done is called. The call gets the context that is returned.
func (l *Live) Call(ctx context.Context, tool, id, message string) (in context.Context, done func()) {
	c := &RunningCall{Tool: tool, ID: id, Message: message, Since: centurion.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == nil {
		l.calls = map[*RunningCall]struct{}{}
	}
	l.calls[c] = struct{}{}
	return context.WithValue(ctx, inCall{}, true), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.calls, c)
	}
}

// Running lists the running tool calls, oldest first.
func (l *Live) Running() []RunningCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runningNow()
}

// runningNow needs mu to be held.
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

// asked is a model whose running requests are counted.
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
			a.l.asking = max(a.l.asking-1, 0) // a crashed turn has reset it
			a.l.mu.Unlock()
		}()
		a.Model.Stream(ctx, req)(yield)
	}
}

// Aborts of the Commander's turn.

// AbortedIn returns the abort that caused an error, or nil. In a mission that stops, none counts.
func AbortedIn(ctx context.Context, err error) *AbortedError {
	a, ok := errors.AsType[*AbortedError](err)
	if !ok || ctx.Err() != nil {
		return nil
	}
	return a
}

// Stands records that a person has stopped the conversation, once per stop.
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

// StandsSince returns the abort that stopped the conversation, nil if it is not stopped.
func (c *Conversation) StandsSince() *AbortedError {
	c.Live.mu.Lock()
	defer c.Live.mu.Unlock()
	return c.Live.stood
}

// goesOn records that a stopped conversation starts a turn again.
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

// afterAbort reports whether a task's conversation continues after a person stopped its turn, because a message arrived for it.
// Otherwise the task is cancelled.
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

// AbortedByPerson is the reason of an abort without one.
const AbortedByPerson = "a person has stopped the turn"

// Aborted returns the error that aborts a turn.
func Aborted(reason string) *AbortedError {
	return &AbortedError{&centurion.Error{Kind: centurion.KindCancelled, Msg: reason}}
}

// Wait is a reason why a session waits.
type Wait string

// The reasons.
const (
	WaitModel    Wait = "model"    // an answer of the model
	WaitTool     Wait = "tool"     // tool calls
	WaitSlot     Wait = "slot"     // the right to run
	WaitPerson   Wait = "person"   // an answer, or a message after an abort
	WaitRetry    Wait = "retry"    // the retry of a failed request
	WaitChild    Wait = "child"    // delegated tasks
	WaitProvider Wait = "provider" // a rate-limited provider
	WaitBudget   Wait = "budget"   // a part of the budget
	WaitCheck    Wait = "check"    // acceptance commands
	WaitTask     Wait = "task"     // the wait of its task; see Reason
)

// waitOrder ranks simultaneous waits for display: those that a person can end come first, and a wait for a child within a tool call
// counts as a wait for the child.
var waitOrder = [...]Wait{WaitPerson, WaitRetry, WaitProvider, WaitBudget, WaitSlot, WaitChild, WaitModel}

// Activity tells whether a session has a turn.
type Activity string

// The activities of a session.
const (
	Idle    Activity = "idle"    // no turn; running work, or a person, will start one
	Busy    Activity = "busy"    // it has a turn
	Stopped Activity = "stopped" // its mission is not running
	Ended   Activity = "ended"   // its task or mission is over
)

// RunningCall is a running tool call.
type RunningCall struct {
	Tool    string         `json:"tool"`
	ID      string         `json:"id"`
	Message string         `json:"message"` // the answer that contains it
	Since   centurion.Time `json:"since"`
}

// Standing is the state of a conversation.
type Standing struct {
	Activity Activity
	Waits    Wait           // the reason of its wait; empty if there is none
	Since    centurion.Time // start of its turn, or end of the last one
	Reason   string
	Calls    []RunningCall
}

// Standing returns the state of the conversation at one moment.
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

// Proceed lets a stopped conversation continue at its next [Conversation.TakeUp].
func (l *Live) Proceed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.goOn = true
}

// StoppedBefore restores a stop recorded by an earlier host, and reports whether there is one.
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

// TakeUp applies stops and resumes to an idle conversation. word tells a resumed conversation about it; stands is true if it is
// stopped.
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
		c.Heard++ // at a person's request
	}
	return c.StandsSince() != nil, nil
}
