package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/orchestrator/state"
	"centurion/recovery"
	"centurion/session"
	"centurion/store"
	"centurion/text"
)

// failures tracks consecutive failures of a conversation.
type failures struct {
	c      *Conversation
	streak recovery.Streak
	failed []string         // the models given up during this streak
	wait   *centurion.Retry // the rest of a wait interrupted by a restart, until the next turn
}

// restore restores the streak recorded before a restart.
func (f *failures) restore(wait *centurion.Retry) {
	if f.wait = wait; wait != nil {
		f.streak, f.failed = recovery.Streak{Attempts: wait.Attempts, RateLimits: wait.RateLimits}, wait.Failed
	}
}

// reset ends the streak, after a good answer or before a fresh start.
func (f *failures) reset() { f.streak, f.failed = recovery.Streak{}, nil }

// recover carries out the decision about a failed turn, including its wait. A nil error means that the turn is to be repeated.
func (f *failures) recover(ctx context.Context, cause error) error {
	c := f.c
	f.streak = f.streak.After(cause)
	d := c.m.cfg.Recovery.Decide(recovery.Failure{Err: cause, Attempt: f.streak.Attempts, RateLimits: f.streak.RateLimits,
		Task: c.Task != nil, Patient: c.Outside != nil, Model: f.model(), Fallbacks: f.fallbacks()})
	switch d.Action {
	case recovery.Retry:
	case recovery.Inject:
		if err := c.Say(ctx, centurion.OriginHost, d.Prompt); err != nil {
			return err
		}
	case recovery.Compact:
		return f.compact(ctx, cause)
	case recovery.Fallback:
		return f.fallBack(ctx, d, cause)
	default:
		return f.giveUp(ctx, d, cause)
	}
	return f.pause(ctx, d, cause)
}

// model is the session's current model.
func (f *failures) model() string {
	r := f.c.Sess.Record()
	return r.Model.Provider + "/" + r.Model.ID
}

// pause waits before a failed turn is repeated. The slot is released meanwhile.
func (f *failures) pause(ctx context.Context, d recovery.Decision, cause error) error {
	c, typ := f.c, centurion.EventProviderRetry
	data := event.RetryData{Attempt: f.streak.Attempts, WaitMS: d.Wait.Milliseconds(), Reason: d.Reason, Error: cause.Error()}
	wait := centurion.Retry{At: centurion.Time{Time: time.Now().Add(d.Wait)}, WaitMS: data.WaitMS, Reason: d.Reason,
		Attempts: f.streak.Attempts, RateLimits: f.streak.RateLimits, Failed: f.failed}
	err := c.m.st.Store.Update(ctx, func(tx *store.Tx) error {
		if err := errors.Join(c.Current(), c.Sess.PutRetry(tx, wait)); err != nil {
			return err
		}
		if c.Task != nil {
			typ = centurion.EventTaskRetrying
			if _, err := state.MoveTask(tx, c.Task.ID, centurion.TaskWaiting, retryIn(d.Wait, d.Reason)); err != nil {
				return err
			}
		}
		_, err := tx.Append(c.fact(typ, data))
		return err
	})
	if err != nil {
		return err
	}
	return f.sleep(ctx, d.Wait)
}

// retryIn sets a task's reason to the wait.
func retryIn(d time.Duration, reason string) func(*centurion.Task) {
	return func(t *centurion.Task) {
		t.Reason = fmt.Sprintf("retry in %s: %s", text.Took(d.Round(time.Second)), reason)
	}
}

// waitOut waits for the rest of a wait interrupted by a restart.
func (f *failures) waitOut(ctx context.Context) error {
	left := f.wait.Left(centurion.Now())
	reason := ""
	if f.wait != nil {
		reason = f.wait.Reason
	}
	f.wait = nil
	if left == 0 {
		return nil
	}
	if f.c.Task != nil {
		if err := f.c.m.st.MoveRun(ctx, f.c.Task, centurion.TaskWaiting, retryIn(left, reason)); err != nil {
			return err
		}
	}
	return f.sleep(ctx, left)
}

// sleep releases the slot for d.
func (f *failures) sleep(ctx context.Context, d time.Duration) error {
	c := f.c
	c.Slot.Release()
	defer c.Live.Wait(WaitRetry)()
	defer c.m.st.Notify()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return c.Resume(ctx)
}

// fallbacks lists the models that the session can continue with: those after its own one, without models given up in this streak and
// unavailable ones.
func (f *failures) fallbacks() []string {
	rec, now, models := f.c.Sess.Record(), f.model(), f.c.m.cfg.Models
	return slices.DeleteFunc(models.chain(rec.Agent, rec.Own()), func(name string) bool {
		if name == now || slices.Contains(f.failed, name) {
			return true
		}
		_, err := models.Model(name)
		return err != nil
	})
}

// fallBack switches to another model, records and publishes that, and moves to the lanes of its provider. The streak starts again, but
// remembers the models given up.
func (f *failures) fallBack(ctx context.Context, d recovery.Decision, cause error) error {
	c := f.c
	model, err := c.m.cfg.Model(d.Model)
	if err != nil {
		return err
	}
	failed := append(slices.Clone(f.failed), f.model())
	data := event.ModelData{Agent: c.Agent.Name, From: f.model(), To: model.Ref.String(), Kind: d.Kind, Reason: d.Reason, Error: cause.Error()}
	err = c.m.st.Store.Update(ctx, func(tx *store.Tx) error {
		if err := c.Current(); err != nil {
			return err
		}
		if err := c.Sess.PutModel(tx, model.Ref, centurion.Retry{At: centurion.Now(), Failed: failed}); err != nil {
			return err
		}
		_, err := tx.Append(c.fact(centurion.EventSessionModel, data))
		return err
	})
	if err != nil {
		return err
	}
	f.reset()
	f.failed = failed
	c.talkTo(model)
	if err := c.Load(ctx); err != nil {
		return err
	}
	if !c.Slot.Move(model.Ref) {
		return nil
	}
	c.m.st.Notify()
	if err := c.m.st.MoveRun(ctx, c.Task, centurion.TaskWaiting, func(t *centurion.Task) { t.Reason = "a free place at " + model.Ref.String() }); err != nil {
		return err
	}
	return c.Resume(ctx)
}

// AskError ends a turn that only a person can let continue.
type AskError struct{ why *centurion.Error }

func (e *AskError) Error() string { return e.why.Error() }

func (e *AskError) Unwrap() error { return e.why }

// giveUp ends a streak that cannot be recovered; a later continuation starts a new one.
func (f *failures) giveUp(ctx context.Context, d recovery.Decision, cause error) error {
	f.reset()
	c := f.c
	err := c.m.st.Store.Update(ctx, func(tx *store.Tx) error {
		if err := c.Current(); err != nil {
			return err
		}
		return c.Sess.ClearRetry(tx)
	})
	if err != nil {
		return err
	}
	failed := &centurion.Error{Kind: d.Kind, Err: cause, Hint: d.Hint}
	if d.Action == recovery.AskPerson {
		reason := d.Reason
		if said := cause.Error(); !strings.Contains(reason, said) {
			reason += ": " + said
		}
		failed = &centurion.Error{Kind: d.Kind, Msg: reason, Hint: failed.Hint}
		return &AskError{failed}
	}
	return failed
}

// compact shortens the conversation after its provider refused it as too long. reason is added to the error if that fails.
func (f *failures) compact(ctx context.Context, reason error) error {
	err := guard.Call("compact "+f.c.id, func() error { return f.c.Sess.Compact(ctx) })
	if cause := context.Cause(ctx); err == nil || cause != nil {
		return cause
	}
	if centurion.KindOf(err) != centurion.KindOverflow {
		return err
	}
	return &centurion.Error{Kind: centurion.KindOverflow, Err: overflow(reason, err), Hint: centurion.HintOf(err)}
}

// overflow joins the error of a failed compaction with its reason, unless both are the same.
func overflow(reason, err error) error {
	if reason.Error() == err.Error() {
		return err
	}
	return errors.Join(reason, err)
}

// StuckError ends a task that needs instructions, of a person or of the mission's own agent, to continue.
type StuckError struct{ Err *centurion.Error }

func (e *StuckError) Error() string { return e.Err.Error() }
func (e *StuckError) Unwrap() error { return e.Err }

// noHeadway handles a turn that was ended because it made no progress: it repeated one call, or its answers were cut off. For the
// mission's own agent a person is asked. The delegator of a task is notified; a sub-agent's end reports the failure.
func (f *failures) noHeadway(stuck *session.StuckError) error {
	if f.c.Task == nil {
		return &state.Blocked{Question: fmt.Sprintf("The %s %s. What should it do?", f.c.Agent.Name, state.InWords(stuck.Did()))}
	}
	if f.c.Sess.Record().Metadata.Tools != nil {
		return stuck
	}
	return &StuckError{&centurion.Error{Kind: centurion.KindTimeout, Msg: centurion.Clip(stuck.Error(), 2000),
		Hint: "set the item to open with update_todo and hand it out again with what would help, or ask the person"}}
}
