package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"centurion"
	"centurion/orchestrator/agent"
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
	mu      sync.Mutex               // protects what follows
	open    map[string]bool          // missions that are being worked on, also between two beginnings
	closing map[string]chan struct{} // missions that are looked at once more before nobody works on them; closed when that is decided
	waiting map[*waiter]struct{}
}

// waiter is somebody who waits for an answer. prompts.mu protects sent and inTime.
type waiter struct {
	mission, id string
	sent        bool          // its message is stored: whoever works on the mission from then on answers it
	inTime      bool          // it was stored before the run that is at work had its verdict
	answered    chan struct{} // closed when what follows is set
	reply       Reply
	err         error
	over        bool // err is the end of a run that was over when the message was stored
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
	if err := agent.RefuseInCall(ctx, op); err != nil {
		return Reply{}, err
	}
	if err := p.settle(); err != nil {
		return Reply{}, err
	}
	to, err := receiverOf(ctx, h.cfg.Store, p)
	if err != nil {
		return Reply{}, err
	}
	if r, found, err := h.answeredBefore(ctx, to.mission, p.ID); found || err != nil {
		return r, err
	}
	if launch == nil {
		if attended, err := h.prompts.attended(ctx, to.mission); err != nil {
			return Reply{}, err
		} else if !attended {
			return Reply{}, h.Unattended(ctx, to.mission)
		}
	}
	w := h.prompts.join(to.mission, p.ID)
	defer h.prompts.leave(w)
	posted, err := h.Send(ctx, p)
	if err != nil {
		return Reply{}, err
	}
	if posted.Compact { // the host has heard it, and nobody answers
		return Reply{Posted: posted}, nil
	}
	attended, err := h.prompts.stored(ctx, w)
	if err != nil {
		return Reply{Posted: posted}, err
	}
	r, over, err := h.await(ctx, w, attended)
	if over && !attended && launch == nil {
		err = h.Unattended(ctx, to.mission)
	}
	if !over || launch == nil {
		r.Posted = posted
		return r, err
	}
	r, err = h.promptAnew(ctx, to.mission, p.ID, launch)
	r.Posted = posted
	return r, err
}

// promptAnew waits for the answer to a message that is stored, of a mission that had stopped before.
func (h *Host) promptAnew(ctx context.Context, mission, id string, launch func(mission string) error) (Reply, error) {
	w := h.prompts.join(mission, id)
	defer h.prompts.leave(w)
	if attended, err := h.prompts.stored(ctx, w); err != nil {
		return Reply{}, err
	} else if !attended {
		if err := launch(mission); err != nil {
			return Reply{}, err
		}
	}
	r, _, err := h.await(ctx, w, true)
	return r, err
}

// await waits for the answer to a message that is stored, or only looks for it if nobody works on its mission. Over says that
// nobody who has worked on the mission until now could answer it; the error may be how their work ended.
func (h *Host) await(ctx context.Context, w *waiter, attended bool) (r Reply, over bool, err error) {
	if r, found, err := h.answeredBefore(ctx, w.mission, w.id); found || err != nil { // in the moment before it was waited for
		return r, false, err
	}
	if !attended {
		select {
		case <-w.answered:
		default:
			return Reply{}, true, nil
		}
	}
	select {
	case <-w.answered:
		return w.reply, w.over, w.err
	case <-ctx.Done():
		return Reply{}, false, context.Cause(ctx)
	}
}

// Unattended says that nobody works on a mission: the error has centurion.KindConflict and a hint at what would help.
func (h *Host) Unattended(ctx context.Context, id string) error {
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
		if c := m.sessions.Of(all[i].Session); c != nil && c.Live.Busy() {
			return Reply{}, false, nil
		}
	}
	r, err := h.replyTo(ctx, all[i])
	return r, err == nil && ends(r.Finish), err
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
func (m *mission) answerPrompts(ctx context.Context, c *agent.Conversation, out session.Outcome, cause error) {
	h := m.h
	waiting := h.prompts.of(m.st.ID)
	if len(waiting) == 0 || m.st.Ctx.Err() != nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	all, err := h.cfg.Store.Deliveries(ctx, m.st.ID)
	if err != nil {
		return // they are told when the mission stops, which an unreadable store makes it do
	}
	for _, w := range waiting {
		i := slices.IndexFunc(all, func(d store.Delivery) bool { return d.ID == w.id })
		if i < 0 || all[i].Taken.IsZero() || all[i].Session != c.ID() {
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

// stored says that a waiter's message is stored, and reports whether somebody works on its mission, who will answer it.
func (p *prompts) stored(ctx context.Context, w *waiter) (attended bool, err error) {
	p.mu.Lock()
	w.sent = true
	p.mu.Unlock()
	return p.attended(ctx, w.mission)
}

// attended reports whether somebody works on a mission. It waits while that is being decided.
func (p *prompts) attended(ctx context.Context, mission string) (bool, error) {
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

// verdict says that the run of a mission is about to record how it stops. Whose message is stored by now is answered by it,
// or is told how it stopped; for who comes later it was over.
func (p *prompts) verdict(mission string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.ofNow(mission) {
		w.inTime = w.sent
	}
}

// close says that nobody works on a mission any more, unless decide says otherwise. It returns who has waited for it until now.
// Who comes later, or is still about to store its message, has to begin it, and is not told how it had ended.
func (p *prompts) close(mission string) (left []*waiter, decide func(goesOn bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	decided := make(chan struct{})
	if p.closing == nil {
		p.closing = map[string]chan struct{}{}
	}
	delete(p.open, mission)
	p.closing[mission] = decided
	left = slices.DeleteFunc(p.ofNow(mission), func(w *waiter) bool { return !w.sent })
	return left, func(goesOn bool) {
		if goesOn {
			p.begin(mission)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.closing[mission] == decided {
			delete(p.closing, mission)
		}
		close(decided)
	}
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
	p.mu.Lock()
	for _, w := range left {
		w.over = !w.inTime
	}
	p.mu.Unlock()
	for _, w := range left {
		p.answer(w, Reply{}, err)
	}
}
