package orchestrator

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
	"centurion/orchestrator/state"
	"centurion/provider"
	"centurion/session"
	"centurion/store"
)

// live is what is known of a conversation from outside while it runs: whether it has a turn, what it is at, and how that
// is ended. Its methods never wait for the conversation.
type live struct {
	mu     sync.Mutex // protects what follows
	end    context.CancelCauseFunc
	over   chan struct{} // closed when the turn has ended
	since  time.Time     // when the turn began, or when the last one ended
	asking int           // requests to the model that are under way
	waits  map[Wait]int
	calls  map[*RunningCall]struct{}
	stop   *abortedError // a person has stopped it, which is not recorded yet
	stood  *abortedError // it stands still since a person has stopped it
	goOn   bool          // a person has resumed it
}

// abortedError ends a turn and not its session.
type abortedError struct{ err *centurion.Error }

// Error is what the message that was cut off is stored with.
func (e *abortedError) Error() string {
	return StoppedByPerson(e.why())
}

// StoppedByPerson says that a person has aborted a turn, and why, by what a session's metadata keep of it.
func StoppedByPerson(why string) string {
	if why == "" || why == abortedByPerson {
		return "stopped by the person"
	}
	return "stopped by the person: " + why
}

func (e *abortedError) Unwrap() error { return e.err }

func (e *abortedError) why() string { return e.err.Msg }

// turn runs one turn, which can be aborted from outside, and tells those who wait for its answer.
func (c *conversation) turn(ctx context.Context) (session.Outcome, error) {
	if err := c.goesOn(ctx); err != nil {
		return session.Outcome{}, err
	}
	turn, over := c.live.begin(ctx)
	defer over() // also after a crash: whoever waits for the end of the turn must not wait for ever
	out, err := c.turns(turn)
	over() // before the answers: who asks again from now on finds them in the store
	if c.task != nil || !state.Crashed(err) {
		c.answerPrompts(ctx, out, err)
	}
	return out, err
}

// begin says that a turn begins; over has to be called at its end. Somebody may have stopped it before it could.
func (l *live) begin(ctx context.Context) (turn context.Context, over func()) {
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

// abort ends the turn, or says of a conversation that has none that it shall not begin another one unasked. Ended is
// closed when the turn has ended, nil if there was none.
func (l *live) abort(cause *abortedError) (ended <-chan struct{}) {
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

// wait says that the conversation waits for something, until done is called.
func (l *live) wait(what Wait) (done func()) {
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

// call says that a tool call runs, until done is called.
func (l *live) call(tool, id, message string) (done func()) {
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

// running lists the tool calls that run, the longest first.
func (l *live) running() []RunningCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runningNow()
}

// runningNow is called with the lock held.
func (l *live) runningNow() []RunningCall {
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
	l *live
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

// abortedIn returns the abort that an error comes from, or nil; one of a mission that stops is none any more.
func abortedIn(ctx context.Context, err error) *abortedError {
	a, ok := errors.AsType[*abortedError](err)
	if !ok || ctx.Err() != nil {
		return nil
	}
	return a
}

// stands records that a person has stopped the conversation, once for each time.
func (c *conversation) stands(ctx context.Context) error {
	c.live.mu.Lock()
	stop := c.live.stop
	c.live.mu.Unlock()
	if stop == nil {
		return nil
	}
	e := centurion.Event{Type: centurion.EventSessionAborted, Mission: c.m.st.ID, Session: c.id(), Data: event.Data(event.AbortData{Reason: stop.why()})}
	if c.task != nil {
		e.Task = c.task.ID
	}
	err := c.m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		if err := errors.Join(c.current(), c.sess.PutAborted(tx, stop.why())); err != nil {
			return err
		}
		_, err := tx.Append(e)
		return err
	})
	if err != nil {
		return err
	}
	c.live.mu.Lock()
	defer c.live.mu.Unlock()
	c.live.stop, c.live.stood = nil, stop
	return nil
}

// standsSince returns why the conversation stands still, nil if nobody has stopped it.
func (c *conversation) standsSince() *abortedError {
	c.live.mu.Lock()
	defer c.live.mu.Unlock()
	return c.live.stood
}

// goesOn records that a conversation that a person had stopped begins a turn again.
func (c *conversation) goesOn(ctx context.Context) error {
	if c.sess.Record().Metadata.Aborted == "" {
		return nil
	}
	err := c.m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error { return errors.Join(c.current(), c.sess.PutAborted(tx, "")) })
	c.live.mu.Lock()
	defer c.live.mu.Unlock()
	c.live.stood = nil
	return err
}

// stoppedBefore takes over from the host before that a person had stopped the Commander. A person who resumes the mission
// ends that.
func (m *mission) stoppedBefore() bool {
	why := m.root.sess.Record().Metadata.Aborted
	if why == "" || m.resumed {
		return false
	}
	m.root.live.mu.Lock()
	defer m.root.live.mu.Unlock()
	m.root.live.stood = aborted(why)
	return true
}

// lookForStop is what an idle Commander does about what was done to it from outside: it stands still, or goes on.
func (m *mission) lookForStop(ctx context.Context) (stands bool, err error) {
	if err := m.root.stands(ctx); err != nil {
		return false, err
	}
	l := &m.root.live
	l.mu.Lock()
	goOn := l.goOn && l.stood != nil
	l.goOn = false
	l.mu.Unlock()
	if goOn {
		if err := m.root.say(ctx, centurion.OriginHost, m.resumedWord()); err != nil {
			return false, err
		}
		m.root.heard++ // a person has said so
	}
	return m.root.standsSince() != nil, nil
}

// resumedWord is what the root's agent is told when its person lets it go on.
func (m *mission) resumedWord() string {
	if state.Alone(m.st.Profile) {
		return "The person has resumed your work. Look at what has changed meanwhile, then go on."
	}
	return "The person has resumed the mission. Look at the todo list and at what has changed meanwhile, then go on."
}

// afterAbort reports whether a task's conversation goes on although a person has stopped its turn: with what was written
// to it. Otherwise the task ends as cancelled.
func (c *conversation) afterAbort(ctx context.Context, err error) (goOn bool, _ error) {
	if abortedIn(ctx, err) == nil {
		return false, err
	}
	if rerr := c.stands(ctx); rerr != nil {
		return false, rerr
	}
	if terr := c.takeIn(ctx); terr != nil || c.heard == 0 {
		return false, errors.Join(err, terr)
	}
	if berr := c.slot.Acquire(ctx); berr != nil {
		return false, berr
	}
	return true, c.running(ctx)
}

// abortedByPerson is why a turn was aborted where the person gave no reason.
const abortedByPerson = "a person has stopped the turn"

func aborted(reason string) *abortedError {
	return &abortedError{&centurion.Error{Kind: centurion.KindCancelled, Msg: reason}}
}

// gateOpened ends what is told of a wait for the provider.
func (c *conversation) gateOpened() {
	if c.ungate != nil {
		c.ungate()
		c.ungate = nil
	}
}
