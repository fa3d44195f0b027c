package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"centurion"
	"centurion/session"
	"centurion/store"
)

// Reply is the answer of the turn that a [Post] was answered in.
type Reply struct {
	Posted
	Text    string          `json:"text"`              // of the turn's last answer; may be empty after a turn that failed
	Finish  string          `json:"finish"`            // one of the centurion.Finish… constants
	Message string          `json:"message,omitempty"` // the id of the last answer
	Usage   centurion.Usage `json:"usage"`             // of the answers since the message was read
	// Error is why the turn did not end well, nil if it did.
	Error *centurion.TaskError `json:"error,omitempty"`
}

// prompts are those who wait for the answer of a turn. Each turn that ends, and each mission that stops, answers its own:
// nobody waits for what cannot come any more.
type prompts struct {
	mu      sync.Mutex      // protects what follows
	open    map[string]bool // missions that are being worked on, also between two beginnings
	waiting map[*waiter]struct{}
}

type waiter struct {
	mission, id string
	answered    chan struct{} // closed when reply and err are set
	reply       Reply
	err         error
}

// Prompt stores a message as [Host.Send] does and waits for the answer of the turn that answers it. A message that steers
// is answered by the turn that reads it, together with what else it reads; each that is queued has a turn of its own, in
// the order in which they were sent. The same [Post] sent again, by its ID, waits for the same answer, also after that
// turn, and in another process.
//
// The end of ctx ends the waiting, not the turn. A turn that fails or is aborted, and a mission that stops before, are
// errors of their kind; the message is kept if it was not read. A mission that nobody works on is refused at once with
// centurion.KindConflict, before anything is stored; a tool call is refused, too, as it would wait for itself.
func (h *Host) Prompt(ctx context.Context, p Post) (Reply, error) { return h.PromptAnd(ctx, p, nil) }

// PromptAnd is Prompt with a function that begins to work on a mission that nobody works on, or refuses to. It is called
// when the message is stored.
func (h *Host) PromptAnd(ctx context.Context, p Post, launch func(mission string) error) (Reply, error) {
	const op = "prompt"
	if err := inCall(ctx, op); err != nil {
		return Reply{}, err
	}
	if err := p.settle(); err != nil {
		return Reply{}, err
	}
	to, err := h.receiver(ctx, p)
	if err != nil {
		return Reply{}, err
	}
	if r, found, err := h.answeredBefore(ctx, to.mission, p.ID); found || err != nil {
		return r, err
	}
	if launch == nil && !h.prompts.isOpen(to.mission) {
		return Reply{}, h.unattended(ctx, to.mission)
	}
	w := h.prompts.join(to.mission, p.ID)
	defer func() { h.prompts.leave(w) }()
	posted, err := h.Send(ctx, p)
	if err != nil {
		return Reply{}, err
	}
	if posted.Compact { // the host has heard it, and nobody answers
		return Reply{Posted: posted}, nil
	}
	if !h.prompts.isOpen(to.mission) {
		if launch == nil {
			return Reply{Posted: posted}, h.unattended(ctx, to.mission)
		}
		h.prompts.leave(w) // what stopped before it was stored has no answer for it
		w = h.prompts.join(to.mission, p.ID)
		if err := launch(to.mission); err != nil {
			return Reply{Posted: posted}, err
		}
	}
	if r, found, err := h.answeredBefore(ctx, to.mission, p.ID); found || err != nil { // in the moment before it was waited for
		r.Posted = posted
		return r, err
	}
	select {
	case <-w.answered:
		w.reply.Posted = posted
		return w.reply, w.err
	case <-ctx.Done():
		return Reply{Posted: posted}, context.Cause(ctx)
	}
}

// unattended says that nobody works on a mission.
func (h *Host) unattended(ctx context.Context, id string) error {
	rec, err := h.cfg.Store.Mission(ctx, id)
	if err != nil {
		return err
	}
	if err := reachable(rec, Posted{}); err != nil {
		return err
	}
	return &centurion.Error{Op: "prompt", Kind: centurion.KindConflict, Msg: fmt.Sprintf("nobody would answer: mission %s is %s", id, standing(rec.Status)),
		Hint: "go on with it: centurion resume " + id + "; or leave the message without waiting for its answer"}
}

// answeredBefore looks for the answer to a message that was read before, in a session that has no turn now.
func (h *Host) answeredBefore(ctx context.Context, mission, id string) (Reply, bool, error) {
	all, err := h.cfg.Store.Deliveries(ctx, mission)
	if err != nil {
		return Reply{}, false, err
	}
	i := slices.IndexFunc(all, func(d store.Delivery) bool { return d.ID == id })
	if i < 0 || all[i].Taken.IsZero() {
		return Reply{}, false, nil
	}
	if m := h.running(mission); m != nil {
		if c := m.conversation(all[i].Session); c != nil && c.live.busy() {
			return Reply{}, false, nil
		}
	}
	r, err := h.replyTo(ctx, all[i])
	return r, err == nil && ends(r.Finish), err
}

func (l *live) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end != nil
}

// ends reports whether an answer that finished so ended its turn.
func ends(finish string) bool {
	return finish == centurion.FinishStop || finish == centurion.FinishLength || finish == centurion.FinishFilter || finish == centurion.FinishUnknown
}

// replyTo makes the reply to a message that was read of what has come since.
func (h *Host) replyTo(ctx context.Context, d store.Delivery) (Reply, error) {
	messages, err := h.cfg.Store.Messages(ctx, d.Session)
	r := Reply{Posted: Posted{ID: d.ID, Mission: d.Mission, Session: d.Session}}
	i := slices.IndexFunc(messages, func(m centurion.Message) bool { return m.ID == d.Message })
	if err != nil || i < 0 {
		return r, err
	}
	for _, m := range messages[i+1:] {
		if m.Role == centurion.RoleUser {
			if ends(r.Finish) { // that is the next turn's
				break
			}
			continue
		}
		r.Usage = r.Usage.Plus(m.Usage)
		r.Text, r.Finish, r.Message = m.Text(), m.Finish, m.ID
	}
	return r, nil
}

// answerPrompts tells those who wait for the answer of a turn that has ended. What ended because the mission stops is told
// when it has stopped.
func (c *conversation) answerPrompts(ctx context.Context, out session.Outcome, cause error) {
	h := c.m.h
	waiting := h.prompts.of(c.m.id)
	if len(waiting) == 0 || c.m.ctx.Err() != nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	all, err := h.cfg.Store.Deliveries(ctx, c.m.id)
	if err != nil {
		return // they are told when the mission stops, which an unreadable store makes it do
	}
	for _, w := range waiting {
		i := slices.IndexFunc(all, func(d store.Delivery) bool { return d.ID == w.id })
		if i < 0 || all[i].Taken.IsZero() || all[i].Session != c.id() {
			continue
		}
		r, err := h.replyTo(ctx, all[i])
		if cause != nil {
			r.Error = &centurion.TaskError{Kind: centurion.KindOf(cause), Message: cause.Error(), Hint: centurion.HintOf(cause)}
			err = &centurion.Error{Op: "prompt", Kind: centurion.KindOf(cause), Msg: "the turn did not end well", Err: cause, Hint: centurion.HintOf(cause)}
		} else {
			r.Text, r.Finish = out.Text, out.Finish
		}
		h.prompts.answer(w, r, err)
	}
}

// join enters somebody who will wait.
func (p *prompts) join(mission, id string) *waiter {
	w := &waiter{mission: mission, id: id, answered: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		p.waiting = map[*waiter]struct{}{}
	}
	p.waiting[w] = struct{}{}
	return w
}

func (p *prompts) leave(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, w)
}

// of lists who waits for something of a mission.
func (p *prompts) of(mission string) []*waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ofNow(mission)
}

// ofNow is called with the lock held.
func (p *prompts) ofNow(mission string) (all []*waiter) {
	for w := range p.waiting {
		if w.mission == mission {
			all = append(all, w)
		}
	}
	return all
}

// answer ends the waiting of one, once.
func (p *prompts) answer(w *waiter, r Reply, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, waits := p.waiting[w]; !waits {
		return
	}
	delete(p.waiting, w)
	w.reply, w.err = r, err
	close(w.answered)
}

func (p *prompts) isOpen(mission string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open[mission]
}

func (p *prompts) begin(mission string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		p.open = map[string]bool{}
	}
	p.open[mission] = true
}

// close says that nobody works on a mission any more, and returns who waits for it until now. Who comes later has to begin
// it, and is not told how it had ended.
func (p *prompts) close(mission string) (left []*waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, mission)
	return p.ofNow(mission)
}

// end tells those who are left when a mission has stopped.
func (p *prompts) end(left []*waiter, rec centurion.Mission, id string, cause error) {
	err := &centurion.Error{Op: "prompt", Kind: centurion.KindConflict, Err: cause, Hint: "see: centurion show " + id,
		Msg: fmt.Sprintf("mission %s is %s before the message was answered: %s", id, rec.Status, rec.Reason)}
	switch {
	case rec.Status.Alive(): // it was handed over: whoever asks the next host with the same id gets the answer there
		err.Kind, err.Msg, err.Hint = centurion.KindNetwork, "another host goes on with mission "+id, "ask it again, under the same id"
	case !rec.Status.Ended():
		err.Kind, err.Hint = centurion.KindInterrupted, "the message is kept; go on with: centurion resume "+id
	}
	for _, w := range left {
		p.answer(w, Reply{}, err)
	}
}
