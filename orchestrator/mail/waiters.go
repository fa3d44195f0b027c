package mail

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"centurion"
)

// waiters are the callers that wait for the answer of a turn. Each turn that ends, and each mission that stops, answers its own: nobody
// waits for an answer that cannot come any more.
type waiters struct {
	mu      sync.Mutex               // protects what follows
	open    map[string]bool          // running missions, including those between two runs
	closing map[string]chan struct{} // missions of which it is being decided whether they continue; closed when it is
	waiting map[*waiter]struct{}
}

// waiter is one caller. waiters.mu protects sent and inTime.
type waiter struct {
	mission, id string
	sent        bool          // its message is stored: a run that works on the mission from then on answers it
	inTime      bool          // it was stored before the current run had its verdict
	answered    chan struct{} // closed when the fields below are set
	reply       Reply
	err         error
	over        bool // err is the end of a run that was over when the message was stored
}

// join enters a caller that will wait.
func (p *waiters) join(mission, id string) *waiter {
	w := &waiter{mission: mission, id: id, answered: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting[w] = struct{}{}
	return w
}

func (p *waiters) leave(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, w)
}

// of lists the waiters of a mission.
func (p *waiters) of(mission string) []*waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ofNow(mission)
}

// ofNow is called with the lock held.
func (p *waiters) ofNow(mission string) (all []*waiter) {
	for w := range p.waiting {
		if w.mission == mission {
			all = append(all, w)
		}
	}
	return all
}

// answer ends one caller's wait, once.
func (p *waiters) answer(w *waiter, r Reply, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, waits := p.waiting[w]; !waits {
		return
	}
	delete(p.waiting, w)
	w.reply, w.err = r, err
	close(w.answered)
}

// Attended reports whether a run of a mission is at work, or about to begin.
func (p *waiters) Attended(mission string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open[mission]
}

// Expect says that a run of a mission is about to begin: until [Desk.Closed] it answers messages to the mission.
func (p *waiters) Expect(mission string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[mission] = true
}

// stored says that a waiter's message is stored, and reports whether a run of its mission will answer it.
func (p *waiters) stored(ctx context.Context, w *waiter) (attended bool, err error) {
	p.mu.Lock()
	w.sent = true
	p.mu.Unlock()
	return p.attended(ctx, w.mission)
}

// attended reports whether a mission is running. It waits while that is being decided.
func (p *waiters) attended(ctx context.Context, mission string) (bool, error) {
	for {
		p.mu.Lock()
		open, decided := p.open[mission], p.closing[mission]
		p.mu.Unlock()
		if open || decided == nil {
			return open, nil
		}
		select {
		case <-decided:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// Verdict says that the run of a mission is about to record how it stops. It answers the messages that are stored by now, or their waiters
// learn how it stopped; later messages came when it was over.
func (p *waiters) Verdict(mission string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.ofNow(mission) {
		w.inTime = w.sent
	}
}

// close says that nobody works on a mission any more, unless decide says otherwise. It returns the waiters whose messages are stored.
// A waiter that comes later, or is still about to store its message, has to begin the mission, and does not learn how it had ended.
func (p *waiters) close(mission string) (left []*waiter, decide func(goesOn bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	decided := make(chan struct{})
	delete(p.open, mission)
	p.closing[mission] = decided
	left = slices.DeleteFunc(p.ofNow(mission), func(w *waiter) bool { return !w.sent })
	return left, func(goesOn bool) {
		if goesOn {
			p.Expect(mission)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.closing[mission] == decided {
			delete(p.closing, mission)
		}
		close(decided)
	}
}

// end tells the waiters that are left when a mission has stopped.
func (p *waiters) end(left []*waiter, rec centurion.Mission, id string, cause error) {
	err := &centurion.Error{Op: "prompt", Kind: centurion.KindConflict, Err: cause, Hint: "see: centurion show " + id,
		Msg: fmt.Sprintf("mission %s is %s before the message was answered: %s", id, rec.Status, rec.Reason)}
	switch {
	case rec.Status.Alive(): // it was handed over: the next host has the answer under the same id
		err.Kind, err.Msg, err.Hint = centurion.KindNetwork, "another host goes on with mission "+id, "ask it again, under the same id"
	case !rec.Status.Ended():
		err.Kind, err.Hint = centurion.KindInterrupted, "the message is kept; go on with: centurion resume "+id
	}
	p.mu.Lock()
	for _, w := range left {
		w.over = !w.inTime
	}
	p.mu.Unlock()
	for _, w := range left {
		p.answer(w, Reply{}, err)
	}
}
