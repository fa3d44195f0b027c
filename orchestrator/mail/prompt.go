package mail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/store"
	"centurion/text"
)

// Reply is the answer of the turn that answered a [Post].
type Reply struct {
	Posted
	Text    string          `json:"text"`              // of the turn's last answer; may be empty after a failed turn
	Finish  string          `json:"finish"`            // one of the centurion.Finish… constants
	Message string          `json:"message,omitempty"` // the id of the last answer
	Usage   centurion.Usage `json:"usage"`             // of the answers since the message was read
	// Error is why the turn failed, nil if it did not.
	Error *centurion.TaskError `json:"error,omitempty"`
}

// Prompt stores a message as [Desk.Send] does and waits for the answer of the turn that answers it. The turn that reads a message that
// steers answers it together with everything else that it reads; each queued message has a turn of its own, in the order in which they
// were sent. The same [Post] sent again, by its ID, waits for the same answer, also after that turn, and in another process.
//
// Launch begins to work on a mission that nobody works on, or refuses to; it is called when the message is stored. With a nil launch such
// a mission is refused at once with centurion.KindConflict, before anything is stored.
//
// The end of ctx ends the waiting, not the turn. A turn that fails or is aborted, and a mission that stops before, are errors of their
// kind; the message is kept if it was not read. A tool call is refused, as it would wait for itself.
func (d *Desk) Prompt(ctx context.Context, p Post, launch func(mission string) error) (Reply, error) {
	if err := agent.RefuseInCall(ctx, "prompt"); err != nil {
		return Reply{}, err
	}
	if err := p.complete(); err != nil {
		return Reply{}, err
	}
	to, err := Find(ctx, d.store, p.Mission, p.To)
	if err != nil {
		return Reply{}, err
	}
	if r, found, err := d.answeredBefore(ctx, to.Mission, p.ID); found || err != nil {
		return r, err
	}
	if launch == nil {
		if attended, err := d.attended(ctx, to.Mission); err != nil {
			return Reply{}, err
		} else if !attended {
			return Reply{}, d.Unattended(ctx, to.Mission)
		}
	}
	w := d.join(to.Mission, p.ID)
	defer d.leave(w)
	posted, err := d.Send(ctx, p)
	if err != nil {
		return Reply{}, err
	}
	if posted.Compact { // it was for the host, and no agent answers
		return Reply{Posted: posted}, nil
	}
	attended, err := d.stored(ctx, w)
	if err != nil {
		return Reply{Posted: posted}, err
	}
	r, over, err := d.await(ctx, w, attended)
	switch {
	case over && launch != nil:
		r, err = d.promptAnew(ctx, to.Mission, p.ID, launch)
	case over && !attended:
		err = d.Unattended(ctx, to.Mission)
	}
	r.Posted = posted
	return r, err
}

// promptAnew waits for the answer to a stored message of a mission that had stopped before.
func (d *Desk) promptAnew(ctx context.Context, mission, id string, launch func(mission string) error) (Reply, error) {
	w := d.join(mission, id)
	defer d.leave(w)
	if attended, err := d.stored(ctx, w); err != nil {
		return Reply{}, err
	} else if !attended {
		if err := launch(mission); err != nil {
			return Reply{}, err
		}
	}
	r, _, err := d.await(ctx, w, true)
	return r, err
}

// await waits for the answer to a message that is stored, or only looks for it if nobody works on its mission. Over says that no run of
// the mission until now could answer it; the error may be how the last run ended.
func (d *Desk) await(ctx context.Context, w *waiter, attended bool) (r Reply, over bool, err error) {
	if r, found, err := d.answeredBefore(ctx, w.mission, w.id); found || err != nil { // the answer came before the waiter joined
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

// Unattended is the error of a prompt to a mission that nobody works on: it has centurion.KindConflict and a hint at what would help.
func (d *Desk) Unattended(ctx context.Context, id string) error {
	rec, err := d.store.Mission(ctx, id)
	if err != nil {
		return err
	}
	if err := reachable(rec, Posted{}); err != nil {
		return err
	}
	return &centurion.Error{Op: "prompt", Kind: centurion.KindConflict, Msg: fmt.Sprintf("nobody would answer: mission %s is %s", id, StatusAtRest(rec)),
		Hint: "go on with it: centurion resume " + id + "; or leave the message without waiting for its answer"}
}

// StatusAtRest is the status of a mission that nobody works on: one that is recorded as alive was interrupted.
func StatusAtRest(m centurion.Mission) string {
	return text.If(m.Status.Alive(), "interrupted", string(m.Status))
}

// answeredBefore looks for the answer to a message that was read earlier, in a session without a current turn.
func (d *Desk) answeredBefore(ctx context.Context, mission, id string) (Reply, bool, error) {
	all, err := d.store.Deliveries(ctx, mission)
	if err != nil {
		return Reply{}, false, err
	}
	i := slices.IndexFunc(all, func(d store.Delivery) bool { return d.ID == id })
	if i < 0 || all[i].Taken.IsZero() || all[i].Rest && unread(all, all[i].Session) {
		return Reply{}, false, nil
	}
	if s := d.sessions(mission); s != nil {
		if c := s.Of(all[i].Session); c != nil && c.Live.Busy() {
			return Reply{}, false, nil
		}
	}
	r, err := d.replyTo(ctx, all[i])
	return r, err == nil && ends(r.Finish), err
}

// unread reports whether a message waits for the next request of a session.
func unread(all []store.Delivery, session string) bool {
	return slices.ContainsFunc(all, func(d store.Delivery) bool {
		return d.Session == session && d.Taken.IsZero() && !d.Queue && state.IsMail(d)
	})
}

// ends reports whether an answer with this finish reason ended its turn.
func ends(finish string) bool {
	return finish == centurion.FinishStop || finish == centurion.FinishLength || finish == centurion.FinishFilter || finish == centurion.FinishUnknown
}

// replyTo makes the reply to a message that was read from the answers that came after it.
func (d *Desk) replyTo(ctx context.Context, read store.Delivery) (Reply, error) {
	messages, err := d.store.Messages(ctx, read.Session)
	r := Reply{Posted: Posted{ID: read.ID, Mission: read.Mission, Session: read.Session}}
	i := slices.IndexFunc(messages, func(m centurion.Message) bool { return m.ID == read.Message })
	if err != nil || i < 0 {
		return r, err
	}
	for _, m := range messages[i+1:] {
		if m.Role == centurion.RoleUser {
			if ends(r.Finish) { // the next turn begins here
				break
			}
			continue
		}
		r.Usage = r.Usage.Plus(m.Usage)
		r.Text, r.Finish, r.Message = m.Text(), m.Finish, m.ID
	}
	return r, nil
}

// lastOf makes the reply to a message whose receiver rests now.
func (d *Desk) lastOf(ctx context.Context, read store.Delivery) (Reply, error) {
	r, err := d.replyTo(ctx, read)
	messages, merr := d.store.Messages(ctx, read.Session)
	for _, m := range slices.Backward(messages) {
		if m.Role == centurion.RoleAssistant {
			r.Text, r.Finish, r.Message = m.Text(), m.Finish, m.ID
			break
		}
	}
	return r, cmp.Or(err, merr)
}

// leaveUnanswered lets the messages that wait for a session, and whose senders wait until it rests, have no answer: its turn was aborted.
func (d *Desk) leaveUnanswered(ctx context.Context, session string) error {
	return d.store.Update(ctx, func(tx *store.Tx) error {
		pending, err := tx.PendingDeliveries(session)
		for _, x := range pending {
			if x.Rest && err == nil {
				x.NoReply = true
				err = tx.PutDelivery(&x)
			}
		}
		return err
	})
}

// Answered brings the outcome of a turn to the waiters of the messages that it has read. Cause is why it did not end well. A turn that
// ended because its mission stops is not brought here: its waiters learn the end of the mission.
func (d *Desk) Answered(ctx context.Context, mission, session string, out session.Outcome, cause error) {
	ctx = context.WithoutCancel(ctx)
	_, aborted := errors.AsType[*agent.AbortedError](cause)
	if aborted && d.leaveUnanswered(ctx, session) != nil {
		return // an unreadable store makes the mission stop, which they are told
	}
	waiting := d.of(mission)
	if len(waiting) == 0 {
		return
	}
	all, err := d.store.Deliveries(ctx, mission)
	if err != nil {
		return
	}
	goesOn := cause == nil && unread(all, session)
	for _, w := range waiting {
		i := slices.IndexFunc(all, func(d store.Delivery) bool { return d.ID == w.id })
		if i < 0 || all[i].Session != session || all[i].Taken.IsZero() && !(aborted && all[i].Rest) || all[i].Rest && goesOn {
			continue
		}
		reply := d.replyTo
		if all[i].Rest {
			reply = d.lastOf
		}
		r, err := reply(ctx, all[i])
		if cause != nil {
			r.Error = &centurion.TaskError{Kind: centurion.KindOf(cause), Message: cause.Error(), Hint: centurion.HintOf(cause)}
			err = &centurion.Error{Op: "prompt", Kind: centurion.KindOf(cause), Msg: "the turn did not end well", Err: cause, Hint: centurion.HintOf(cause)}
		} else {
			r.Text, r.Finish = out.Text, out.Finish
		}
		d.answer(w, r, err)
	}
}

// Closed says that the run of a mission has ended, as rec says or with the cause, and tells the waiters. It tells nobody and reports true
// if a message has reopened the mission since rec was read: then the caller continues with it at once.
func (d *Desk) Closed(ctx context.Context, rec centurion.Mission, id string, cause error) (goesOn bool) {
	left, decide := d.close(id)
	rec, reopened := d.reopenedSince(ctx, rec)
	goesOn = reopened && cause == nil && ctx.Err() == nil
	decide(goesOn)
	if !goesOn {
		d.end(left, rec, id, cause)
	}
	return goesOn
}
